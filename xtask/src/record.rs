//! `record-powershell`: what the player of the tests plays is recorded from PowerShell itself.

use std::path::Path;
use std::process::Command;

/// The harness that plays the recordings, and makes them where it is to write what it computes.
const HARNESS: [&str; 5] = ["test", "--workspace", "--test", "corpus", "powershell/worker"];

/// Records the answers to each `resource` below `corpus/powershell/worker`, and judges them anew.
///
/// # Errors
/// When PowerShell is not there, or a call has no answer.
pub(crate) fn run(root: &Path) -> Result<String, String> {
    // A test that skips would leave the recordings as they are.
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(HARNESS).current_dir(root).env("STEAD_BLESS", "1").env("STEAD_SKIPS", "none");
    let status = cargo.status().map_err(|error| format!("cannot run cargo: {error}"))?;
    if status.success() {
        Ok("recorded below corpus/powershell/worker\n".to_owned())
    } else {
        Err(format!("cargo {} failed: {status}", HARNESS.join(" ")))
    }
}
