//! Temporary names: given for the moment before a rename, and recognised when a killed process left one.

use std::ffi::OsStr;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, FlockOperation, Mode, OFlags, RenameFlags, flock, fstat, mkdirat, openat, renameat, renameat_with,
    unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::TEMPORARY_PREFIX;
use super::abandoned::{Lock, lock};
use super::place::Place;
use crate::error::FsError;

/// How often a name is tried. A taken one is an accident that another number avoids, and one that disappears was removed
/// by another run that took it for abandoned.
pub(super) const ATTEMPTS: usize = 16;

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

/// Marks a file as in use before it gets a temporary name.
pub(super) fn claim(file: &File) {
    lock(file.as_fd());
}

/// Gives the lock back that [`claim`] took: others may want to lock the file by its final name.
pub(super) fn release(file: &impl AsFd) {
    let _ = flock(file, FlockOperation::Unlock);
}
