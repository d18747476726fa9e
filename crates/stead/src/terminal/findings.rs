//! Findings about texts of users.

use stead_core::diag::{self, Diagnostic};
use stead_core::text::Sources;

use super::is_coloured;
use super::output::complain_coloured;

/// Prints findings on standard error, with their lines of the document.
pub(crate) fn show_findings(findings: &[Diagnostic], sources: &Sources) {
    complain_coloured(&diag::render_all(findings, sources, is_coloured()));
}
