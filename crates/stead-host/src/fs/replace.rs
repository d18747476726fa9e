//! Putting something under a name at once.

use std::ffi::OsStr;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, RenameFlags, Uid, chownat, fchmod, fchown, fstat, linkat, openat, renameat,
    renameat_with, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::TEMPORARY_PREFIX;
use super::attributes::Attributes;
use super::error::FsError;
use super::place::Place;
use super::status::Status;

/// An owner and a group; what is `None` is left as it is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Ownership {
    /// The owner.
    pub uid: Option<u32>,
    /// The group.
    pub gid: Option<u32>,
}

impl Ownership {
    /// Whether there is anything to change.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }

    /// Applies it to an open file or directory.
    pub fn apply(self, fd: BorrowedFd<'_>) -> Result<(), Errno> {
        if self.is_none() { Ok(()) } else { fchown(fd, self.uid.map(Uid::from_raw), self.gid.map(Gid::from_raw)) }
    }

    /// What of it differs from a status.
    #[must_use]
    pub fn beyond(self, status: &Status) -> Self {
        Self { uid: self.uid.filter(|uid| *uid != status.uid), gid: self.gid.filter(|gid| *gid != status.gid) }
    }
}

/// New content on its way to its name.
///
/// Guarantees: until [`Replacement::finish`] only the owner of this process can open it; dropped before, it is removed.
pub struct Replacement<'a> {
    place: &'a Place,
    temporary: Temporary<'a>,
    file: File,
    attributes: Attributes,
}

impl<'a> Replacement<'a> {
    /// Begins new content for a name; nothing is visible there yet.
    pub fn begin(place: &'a Place) -> Result<Self, FsError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let (temporary, fd) =
            Temporary::create(place, |directory, name| openat(directory, name, flags, Mode::RUSR | Mode::WUSR))?;
        Ok(Self { place, temporary, file: File::from(fd), attributes: Attributes::default() })
    }

    /// Lets the new content have the access list, the labels and the user attributes of the file that it replaces.
    pub fn keep_attributes(&mut self, of: &File) -> Result<(), FsError> {
        self.attributes = Attributes::of(of).map_err(|errno| self.place.failed("read the attributes of", errno))?;
        Ok(())
    }

    /// The file to write to.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Writes content.
    pub fn write(&self, content: &[u8]) -> Result<(), FsError> {
        (&self.file).write_all(content).map_err(|source| self.failed(source))
    }

    fn attributes_failed(&self, source: io::Error) -> FsError {
        FsError::System { doing: "keep the attributes of", path: self.place.path().to_owned(), source }
    }

    /// The error that writing failed.
    pub fn failed(&self, source: io::Error) -> FsError {
        FsError::System { doing: "write", path: self.place.path().to_owned(), source }
    }

    /// Gives the content its owner, attributes and mode, and then its name. Returns the file.
    pub fn finish(mut self, mode: u32, ownership: Ownership) -> Result<File, FsError> {
        self.prepare(mode, ownership)?;
        self.temporary.rename()?;
        Ok(self.file)
    }

    /// The same, unless something has the name by now: then that stays, and the answer is false. Also when the file
    /// system cannot tell.
    pub fn finish_new(mut self, mode: u32, ownership: Ownership) -> Result<bool, FsError> {
        self.prepare(mode, ownership)?;
        self.temporary.rename_if_free()
    }

    fn prepare(&mut self, mode: u32, ownership: Ownership) -> Result<(), FsError> {
        let failed = |doing, errno| self.place.failed(doing, errno);
        // The owner first: the system takes set-user-id away when the owner changes.
        ownership.apply(self.file.as_fd()).map_err(|errno| failed("change the owner of", errno))?;
        self.attributes.apply(&self.file).map_err(|source| self.attributes_failed(source))?;
        // Last: an access list has a mode in it.
        fchmod(&self.file, Mode::from_raw_mode(mode)).map_err(|errno| failed("change the mode of", errno))
    }
}

impl Place {
    /// Puts a symbolic link there at once, in place of anything that is no directory.
    pub fn replace_by_link(&self, target: &OsStr, ownership: Ownership) -> Result<(), FsError> {
        let (temporary, ()) = Temporary::create(self, |directory, name| symlinkat(target, directory, name))?;
        if !ownership.is_none() {
            self.own_link(&temporary, ownership)?;
        }
        temporary.rename()
    }

    /// Changes the owner of the link that is there.
    pub fn own(&self, ownership: Ownership) -> Result<(), FsError> {
        self.own_name(self.name(), ownership)
    }

    /// Gives what is there a second name in the same directory, in place of what has that name.
    ///
    /// Returns false when the file system has no second names.
    pub fn keep_as(&self, name: &OsStr) -> Result<bool, FsError> {
        let linked = Temporary::create(self, |directory, temporary| {
            match linkat(directory, self.name(), directory, temporary, AtFlags::empty()) {
                Ok(()) => Ok(true),
                Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => Ok(false),
                Err(errno) => Err(errno),
            }
        });
        let (temporary, true) = linked? else { return Ok(false) };
        renameat(self.directory(), temporary.name.as_str(), self.directory(), name)
            .map_err(|errno| self.failed("keep a backup of", errno))?;
        // A rename between two names of one file leaves both; dropping the temporary one takes it away.
        drop(temporary);
        Ok(true)
    }

    fn own_link(&self, temporary: &Temporary<'_>, ownership: Ownership) -> Result<(), FsError> {
        self.own_name(OsStr::new(&temporary.name), ownership)
    }

    fn own_name(&self, name: &OsStr, ownership: Ownership) -> Result<(), FsError> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let failed = |errno| self.failed("change the owner of", errno);
        let link = openat(self.directory(), name, flags, Mode::empty()).map_err(failed)?;
        let status = fstat(&link).map_err(failed)?;
        // Somebody who may write to the directory could have put another file there.
        if status.st_mode & 0o170_000 != 0o120_000 || status.st_nlink != 1 {
            return Err(FsError::Exchanged(self.path().to_owned()));
        }
        let (uid, gid) = (ownership.uid.map(Uid::from_raw), ownership.gid.map(Gid::from_raw));
        chownat(&link, "", uid, gid, AtFlags::EMPTY_PATH).map_err(failed)
    }
}

/// A name that goes away unless it is given up for the final one.
struct Temporary<'a> {
    place: &'a Place,
    name: String,
    renamed: bool,
}

impl<'a> Temporary<'a> {
    fn create<T>(
        place: &'a Place,
        create: impl Fn(BorrowedFd<'_>, &str) -> Result<T, Errno>,
    ) -> Result<(Self, T), FsError> {
        // A taken name is an accident that another number mends, unless somebody takes them all.
        const ATTEMPTS: u32 = 16;
        let random = RandomState::new();
        let mut outcome = Err(Errno::EXIST);
        for attempt in 0..ATTEMPTS {
            let name = format!("{TEMPORARY_PREFIX}{:012x}", random.hash_one(attempt) >> 16);
            outcome = create(place.directory(), &name).map(|made| (name, made));
            if !matches!(outcome, Err(Errno::EXIST)) {
                break;
            }
        }
        let (name, made) = outcome.map_err(|errno| place.failed("create a file beside", errno))?;
        Ok((Self { place, name, renamed: false }, made))
    }

    /// Returns whether the name was free.
    fn rename_if_free(mut self) -> Result<bool, FsError> {
        let directory = self.place.directory();
        match renameat_with(directory, self.name.as_str(), directory, self.place.name(), RenameFlags::NOREPLACE) {
            Ok(()) => {
                self.renamed = true;
                Ok(true)
            }
            Err(Errno::EXIST | Errno::INVAL | Errno::NOSYS) => Ok(false),
            Err(errno) => Err(self.place.failed("create", errno)),
        }
    }

    fn rename(mut self) -> Result<(), FsError> {
        let renamed = renameat(self.place.directory(), self.name.as_str(), self.place.directory(), self.place.name());
        self.renamed = renamed.is_ok();
        renamed.map_err(|errno| self.place.failed("replace", errno))
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.renamed {
            // There is nobody left to tell, and the failure that led here is the one that matters.
            let _ = unlinkat(self.place.directory(), self.name.as_str(), AtFlags::empty());
        }
    }
}
