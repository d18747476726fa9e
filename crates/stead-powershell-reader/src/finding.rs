//! Mistakes in a file of a module.

use std::path::PathBuf;
use std::sync::Arc;

use stead_core::diag::{Code, Severity};

use crate::text::LineColumn;

/// One finding about a file of a module. It never hides another module, and hides another resource of the same file only
/// where PowerShell does.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct ModuleFinding {
    /// The kind of finding.
    pub code: Code,
    /// An error where what the finding is about cannot be used; a warning where it can, although PowerShell refuses or
    /// ignores it.
    pub severity: Severity,
    /// The mistake, in one sentence.
    pub message: String,
    /// The advice, in one sentence.
    pub help: Option<String>,
    /// The file.
    pub file: Arc<PathBuf>,
    /// Where in it.
    pub place: LineColumn,
}
