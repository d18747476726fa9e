//! Which boot of the machine this is.

use std::path::Path;

use crate::state::BootId;

/// Where Linux says it.
pub const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The present boot, as the file at `path` says. Where that cannot be read, all boots look the same: a restart is then never
/// taken for done.
pub fn boot_id(path: &Path) -> BootId {
    BootId(std::fs::read_to_string(path).map_or_else(|_| "unknown".to_owned(), |id| id.trim().to_owned()))
}
