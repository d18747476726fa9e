//! Where these tests keep the worker that PowerShell compiled: one for all of them.

use std::path::Path;

use stead_powershell::worker::{KeptWorker, Settings};
use stead_system::fs::User;

/// The settings with that place.
pub(crate) fn kept(settings: Settings) -> Settings {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("powershell");
    Settings { compiled: Some(KeptWorker { folder, user: User::current() }), ..settings }
}
