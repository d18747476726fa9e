//! What is wrong with a file of a module.

use std::path::PathBuf;
use std::sync::Arc;

use stead_core::diag::{Code, Severity};

use crate::text::Place;

/// One finding about a file of a module. It never hides another module, and hides another resource of the same file only
/// where PowerShell does.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Finding {
    /// What kind of finding it is.
    pub code: Code,
    /// An error where what the finding is about cannot be used; a warning where it can, although PowerShell refuses or
    /// ignores it.
    pub severity: Severity,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What to do, in one sentence.
    pub help: Option<String>,
    /// The file.
    pub file: Arc<PathBuf>,
    /// Where in it.
    pub place: Place,
}
