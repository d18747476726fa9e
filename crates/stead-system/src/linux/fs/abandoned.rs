//! Temporary names that a killed process left.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, flock, openat, statat, unlinkat};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use super::TEMPORARY_PREFIX;
use super::status::Status;
use crate::kind::FileKind;

const DIGITS: usize = 12;

/// Removes what killed processes left in a directory. What cannot be listed, opened or removed stays.
pub fn remove_abandoned(directory: BorrowedFd<'_>) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(entries) = openat(directory, ".", flags, Mode::empty()).and_then(Dir::new) else { return };
    for entry in entries.flatten() {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if is_temporary(name) {
            remove_if_abandoned(directory, name);
        }
    }
}

/// Returns whether a name is one of those of temporary files.
fn is_temporary(name: &OsStr) -> bool {
    name.as_bytes()
        .strip_prefix(TEMPORARY_PREFIX.as_bytes())
        .is_some_and(|rest| rest.len() == DIGITS && rest.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')))
}

fn remove_if_abandoned(directory: BorrowedFd<'_>, name: &OsStr) {
    let Ok(found) = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else { return };
    // Locked until the name is gone, so that nobody begins to use it in between.
    let kind = FileKind::from(FileType::from_raw_mode(found.st_mode));
    let (state, _held) = match kind {
        FileKind::Symlink => (Lock::Held, None),
        FileKind::File | FileKind::Directory => hold(directory, name),
        FileKind::Special => return,
    };
    // One that is not empty is none of these, and stays.
    let flags = if kind == FileKind::Directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    if state == Lock::Held || (state == Lock::Unknown && is_old(&Status::from(found))) {
        let _ = unlinkat(directory, name, flags);
    }
}

fn hold(directory: BorrowedFd<'_>, name: &OsStr) -> (Lock, Option<OwnedFd>) {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match openat(directory, name, flags, Mode::empty()) {
        Ok(file) => (lock(file.as_fd()), Some(file)),
        Err(_) => (Lock::Unknown, None),
    }
}

/// Returns whether it has been there for longer than any run takes.
fn is_old(found: &Status) -> bool {
    const LONG: Duration = Duration::from_hours(24);
    found.identity.is_older_than(LONG, clock_gettime(ClockId::Realtime).tv_sec)
}

/// The outcome of locking a file.
#[derive(PartialEq, Eq)]
pub(super) enum Lock {
    Held,
    /// Somebody else has it.
    Taken,
    /// The file system has no locks.
    Unknown,
}

pub(super) fn lock(file: BorrowedFd<'_>) -> Lock {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Lock::Held,
        Err(Errno::WOULDBLOCK) => Lock::Taken,
        Err(_) => Lock::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_names_are_temporary() {
        assert!(is_temporary(OsStr::new(".stead-0123456789ab")));
        for other in [".stead-", ".stead-0123456789abc", ".stead-0123456789aB", ".stead-removal-1-1", "0123456789ab"] {
            assert!(!is_temporary(OsStr::new(other)), "{other}");
        }
    }
}
