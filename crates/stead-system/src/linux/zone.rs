//! The time zone of the machine, which may change while this process runs.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use jiff::tz::TimeZone;

/// The time zone of a machine, read again after each change. A library that reads it once keeps the old one.
#[derive(Debug)]
pub struct LocalZone {
    path: PathBuf,
    known: Mutex<Option<(Stamp, TimeZone)>>,
}

/// Distinguishes versions of the zone file: target of the link; device, inode and time of the last status change
/// (seconds, nanoseconds).
type Stamp = (Option<PathBuf>, u64, u64, i64, i64);

impl Default for LocalZone {
    fn default() -> Self {
        Self::of(Path::new("/etc/localtime"))
    }
}

impl LocalZone {
    /// The zone of a file, or link, such as `/etc/localtime`.
    pub fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), known: Mutex::default() }
    }

    /// The zone as it is now: that of `TZ` if the process has it, else that of the file; UTC if there is none.
    pub fn now(&self) -> TimeZone {
        if std::env::var_os("TZ").is_some() {
            return TimeZone::system();
        }
        let Some(stamp) = self.stamp() else { return TimeZone::UTC };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, zone)) = known.as_ref().filter(|(read, _)| *read == stamp) {
            return zone.clone();
        }
        let zone = std::fs::read(&self.path).ok().and_then(|data| TimeZone::tzif("local", &data).ok());
        let zone = zone.unwrap_or(TimeZone::UTC);
        *known = Some((stamp, zone.clone()));
        zone
    }

    fn stamp(&self) -> Option<Stamp> {
        let found = self.path.metadata().ok()?;
        Some((self.path.read_link().ok(), found.dev(), found.ino(), found.mtime(), found.mtime_nsec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of a zone with one offset, in the first version of the format.
    fn fixed(hours: i32) -> Vec<u8> {
        let mut file = b"TZif\0".to_vec();
        file.extend([0; 15]);
        // No leap seconds, transitions; one type with a name of four bytes.
        for count in [0_u32, 0, 0, 0, 1, 4] {
            file.extend(count.to_be_bytes());
        }
        file.extend((hours * 3600).to_be_bytes());
        file.extend([0, 0]);
        file.extend(b"ABC\0");
        file
    }

    #[test]
    fn the_zone_is_that_of_the_file_at_each_moment() {
        let folder = tempfile::tempdir().unwrap();
        let (file, at) = (folder.path().join("localtime"), jiff::Timestamp::UNIX_EPOCH);
        let zone = LocalZone::of(&file);
        let hours = || zone.now().to_offset(at).seconds() / 3600;
        assert_eq!(hours(), 0, "without a file it is UTC");
        for wanted in [9, -3] {
            std::fs::write(folder.path().join(format!("zone{wanted}")), fixed(wanted)).unwrap();
            let _ = std::fs::remove_file(&file);
            std::os::unix::fs::symlink(format!("zone{wanted}"), &file).unwrap();
            assert_eq!(hours(), wanted);
        }
    }
}
