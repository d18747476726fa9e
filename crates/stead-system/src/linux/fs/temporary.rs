//! Temporary names: given for the moment before a rename, and recognised when a killed process left one.

use std::ffi::OsStr;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, flock, fstat, mkdirat, openat, renameat,
    renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use rustix::time::{ClockId, clock_gettime};

use super::TEMPORARY_PREFIX;
use super::error::FsError;
use super::place::Place;
use super::status::{Kind, Status};

/// How often a name is tried. A taken one is an accident that another number avoids, and one that disappears was removed
/// by another run that took it for abandoned.
pub(super) const ATTEMPTS: usize = 16;

const DIGITS: usize = 12;

/// A name that is removed unless it is given up for the final one.
///
/// While it is there, the file that has it is locked (`flock`), so that other runs can tell it from one that a killed
/// process left. Links cannot be locked: whoever has one made for it is prepared to make it again.
pub(super) struct Temporary<'a> {
    place: &'a Place,
    name: String,
    renamed: bool,
}

impl<'a> Temporary<'a> {
    /// Makes something under a new name.
    pub(super) fn create<T>(
        place: &'a Place,
        create: impl Fn(BorrowedFd<'_>, &str) -> Result<T, Errno>,
    ) -> Result<(Self, T), FsError> {
        let random = RandomState::new();
        let mut made = Err(Errno::EXIST);
        let mut name = String::new();
        for attempt in 0..ATTEMPTS {
            name = format!("{TEMPORARY_PREFIX}{:012x}", random.hash_one(attempt) >> 16);
            made = create(place.directory(), &name);
            if !matches!(made, Err(Errno::EXIST)) {
                break;
            }
        }
        let made = made.map_err(|errno| place.failed("write", errno))?;
        Ok((Self { place, name, renamed: false }, made))
    }

    /// A new file, locked.
    pub(super) fn file(place: &'a Place) -> Result<(Self, OwnedFd), FsError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Self::create(place, |directory, name| {
            let file = openat(directory, name, flags, Mode::RUSR | Mode::WUSR)?;
            // Between the two calls another run could take it for abandoned.
            let taken = lock(file.as_fd()) == Lock::Taken || fstat(&file)?.st_nlink == 0;
            if taken { Err(Errno::EXIST) } else { Ok(file) }
        })
    }

    /// A new directory that only its owner can use, locked.
    pub(super) fn directory(place: &'a Place) -> Result<(Self, OwnedFd), FsError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Self::create(place, |directory, name| {
            mkdirat(directory, name, Mode::RWXU)?;
            let made = openat(directory, name, flags, Mode::empty());
            let made = made.map_err(|errno| if errno == Errno::NOENT { Errno::EXIST } else { errno })?;
            let status = fstat(&made)?;
            let is_own = status.st_uid == geteuid().as_raw() && status.st_nlink > 0;
            if lock(made.as_fd()) == Lock::Taken || !is_own { Err(Errno::EXIST) } else { Ok(made) }
        })
    }

    /// The name.
    pub(super) fn name(&self) -> &OsStr {
        OsStr::new(&self.name)
    }

    /// Gives what has it another name in the directory, in place of what has that. Returns false when the temporary
    /// name is not there any more.
    pub(super) fn rename_to(mut self, name: &OsStr) -> Result<bool, FsError> {
        let directory = self.place.directory();
        match renameat(directory, self.name.as_str(), directory, name) {
            Ok(()) => {
                self.renamed = true;
                Ok(true)
            }
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(self.place.failed("replace", errno)),
        }
    }

    /// Gives what has it the final name, unless something has that. Returns whether it did.
    pub(super) fn rename_if_free(mut self) -> Result<bool, FsError> {
        let directory = self.place.directory();
        match renameat_with(directory, self.name.as_str(), directory, self.place.name(), RenameFlags::NOREPLACE) {
            Ok(()) => {
                self.renamed = true;
                Ok(true)
            }
            // The file system cannot tell; asking before is the best that is left.
            Err(Errno::INVAL | Errno::NOSYS) if self.place.status()?.is_none() => {
                let name = self.place.name();
                self.rename_to(name)
            }
            Err(Errno::EXIST | Errno::INVAL | Errno::NOSYS) => Ok(false),
            Err(errno) => Err(self.place.failed("create", errno)),
        }
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.renamed {
            // There is nobody left to tell, and the failure that led here is the one that matters.
            let remove = |flags| unlinkat(self.place.directory(), self.name.as_str(), flags);
            let _ = remove(AtFlags::empty()).or_else(|_| remove(AtFlags::REMOVEDIR));
        }
    }
}

/// The outcome of locking a file.
#[derive(PartialEq, Eq)]
enum Lock {
    Held,
    /// Somebody else has it.
    Taken,
    /// The file system has no locks.
    Unknown,
}

fn lock(file: BorrowedFd<'_>) -> Lock {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Lock::Held,
        Err(Errno::WOULDBLOCK) => Lock::Taken,
        Err(_) => Lock::Unknown,
    }
}

/// Marks a file as in use before it gets a temporary name.
pub(super) fn claim(file: &File) {
    lock(file.as_fd());
}

/// Gives the lock back that [`claim`] took: others may want to lock the file by its final name.
pub(super) fn release(file: &impl AsFd) {
    let _ = flock(file, FlockOperation::Unlock);
}

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

/// Whether a name is one of those that [`Temporary`] makes up.
fn is_temporary(name: &OsStr) -> bool {
    name.as_bytes()
        .strip_prefix(TEMPORARY_PREFIX.as_bytes())
        .is_some_and(|rest| rest.len() == DIGITS && rest.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')))
}

fn remove_if_abandoned(directory: BorrowedFd<'_>, name: &OsStr) {
    let Ok(found) = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else { return };
    // Locked until the name is gone, so that nobody begins to use it in between.
    let kind = Kind::from(FileType::from_raw_mode(found.st_mode));
    let (state, _held) = match kind {
        Kind::Symlink => (Lock::Held, None),
        Kind::File | Kind::Directory => hold(directory, name),
        Kind::Special => return,
    };
    // One that is not empty is none of these, and stays.
    let flags = if kind == Kind::Directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
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

/// Whether it has been there for longer than any run takes.
fn is_old(found: &Status) -> bool {
    const LONG: Duration = Duration::from_hours(24);
    found.identity.is_older_than(LONG, clock_gettime(ClockId::Realtime).tv_sec)
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
