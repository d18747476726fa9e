//! Which boot of the machine this is, and when it is to end.

use std::path::Path;

use jiff::Timestamp;
use stead_system::machine;
pub use stead_system::machine::BOOT_ID;

use crate::state::BootId;

/// Where systemd says when the machine is going to be shut down or restarted.
pub(crate) const SCHEDULED: &str = "/run/systemd/shutdown/scheduled";

/// Returns when the machine is going to be shut down or restarted, as the file at `path` says: a line `USEC=` with
/// microseconds.
pub(crate) fn scheduled_shutdown(path: &Path) -> Option<Timestamp> {
    let text = std::fs::read_to_string(path).ok()?;
    let microseconds = text.lines().find_map(|line| line.strip_prefix("USEC="))?;
    Timestamp::from_microsecond(microseconds.trim().parse().ok()?).ok()
}

/// The present boot, as the file at `path` says. Where that cannot be read, all boots look the same: a restart is then never
/// taken for done.
pub fn boot_id(path: &Path) -> BootId {
    BootId(machine::boot_id(path).unwrap_or_else(|| "unknown".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shutdown_that_is_scheduled_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scheduled");
        assert_eq!(scheduled_shutdown(&path), None);
        std::fs::write(&path, "USEC=1767268800000000\nWARN_WALL=1\nMODE=reboot\n").unwrap();
        assert_eq!(scheduled_shutdown(&path).unwrap().to_string(), "2026-01-01T12:00:00Z");
    }
}
