//! Putting something under a name at once.

use std::ffi::OsStr;
use std::fs::File;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{
    AtFlags, CWD, Gid, Mode, OFlags, RenameFlags, Uid, chownat, fchmod, fchown, fstat, linkat, openat, renameat,
    renameat_with, symlinkat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid, getgroups};
use rustix::time::{ClockId, clock_gettime};

use super::TEMPORARY_PREFIX;
use super::attributes::Attributes;
use super::error::FsError;
use super::place::Place;
use super::status::{Kind, Status};

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

    /// Whether this process may make what it creates at a path belong so: root may, others only what they are.
    pub fn check_allowed(self, path: &Path) -> Result<(), FsError> {
        let is_own = |gid: u32| {
            gid == getegid().as_raw() || getgroups().is_ok_and(|groups| groups.contains(&Gid::from_raw(gid)))
        };
        let own = self.uid.is_none_or(|uid| uid == geteuid().as_raw()) && self.gid.is_none_or(is_own);
        let allowed = own || geteuid().is_root();
        if allowed { Ok(()) } else { Err(FsError::system("change the owner of", path, Errno::PERM)) }
    }

    /// What of it differs from a status.
    #[must_use]
    pub fn beyond(self, status: &Status) -> Self {
        Self { uid: self.uid.filter(|uid| *uid != status.uid), gid: self.gid.filter(|gid| *gid != status.gid) }
    }
}

/// How new content is kept until it gets its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Without any name: of a process that is killed nothing is left. A new name also takes least time so.
    Nameless,
    /// Under a temporary name, which the final one is given by a rename: takes least time to put in place of a file.
    Named,
}

impl Way {
    /// What takes so few bytes is written in no time in which a process is likely to be killed.
    const BRIEF: u64 = 64 * 1024;

    /// The way for so many bytes, where a file is to be replaced or none is there.
    pub fn of(replaces: bool, bytes: u64) -> Self {
        if replaces && bytes <= Self::BRIEF { Self::Named } else { Self::Nameless }
    }
}

/// New content on its way to its name.
///
/// Guarantees: until [`Replacement::finish`] only the owner of this process can open it; dropped before, it is removed.
pub struct Replacement<'a> {
    place: &'a Place,
    /// `None` while it has no name.
    temporary: Option<Temporary<'a>>,
    file: File,
    attributes: Attributes,
}

impl<'a> Replacement<'a> {
    /// Begins new content for a name; nothing is visible there yet.
    pub fn begin(place: &'a Place, way: Way) -> Result<Self, FsError> {
        let nameless = match way {
            Way::Nameless => nameless(place).map_err(|errno| place.failed("create a file beside", errno))?,
            Way::Named => None,
        };
        let (temporary, fd) = match nameless {
            Some(fd) => (None, fd),
            None => Temporary::file(place).map(|(temporary, fd)| (Some(temporary), fd))?,
        };
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
    pub fn finish(self, mode: u32, ownership: Ownership) -> Result<File, FsError> {
        let (this, done) = self.settle(mode, ownership)?;
        if !done {
            let temporary = this.temporary.map_or_else(|| Temporary::of(this.place, &this.file), Ok)?;
            temporary.rename()?;
        }
        Ok(this.file)
    }

    /// The same, unless something has the name by now: then that stays, and the answer is false. Also when the file
    /// system cannot tell.
    pub fn finish_new(self, mode: u32, ownership: Ownership) -> Result<bool, FsError> {
        let (this, done) = self.settle(mode, ownership)?;
        if done { Ok(true) } else { this.temporary.map_or(Ok(false), Temporary::rename_if_free) }
    }

    /// Makes it ready, and gives what has no name the final one. Returns whether it has that now.
    fn settle(self, mode: u32, ownership: Ownership) -> Result<(Self, bool), FsError> {
        self.dress(mode, ownership)?;
        if self.temporary.is_some() {
            return Ok((self, false));
        }
        match link(&self.file, self.place.directory(), self.place.name()) {
            Ok(()) => Ok((self, true)),
            Err(Errno::EXIST) => Ok((self, false)),
            // Neither the right to link it nor /proc to find it in.
            Err(Errno::NOENT | Errno::PERM | Errno::ACCESS) => Ok((self.copied(mode, ownership)?, false)),
            Err(errno) => Err(self.place.failed("create", errno)),
        }
    }

    /// The same with a temporary name.
    fn copied(mut self, mode: u32, ownership: Ownership) -> Result<Self, FsError> {
        let (temporary, fd) = Temporary::file(self.place)?;
        let mut file = File::from(fd);
        let copied = self.file.rewind().and_then(|()| io::copy(&mut self.file, &mut file));
        copied.map_err(|error| self.failed(error))?;
        let copy = Self { temporary: Some(temporary), file, ..self };
        copy.dress(mode, ownership)?;
        Ok(copy)
    }

    fn dress(&self, mode: u32, ownership: Ownership) -> Result<(), FsError> {
        let failed = |doing, errno| self.place.failed(doing, errno);
        // The owner first: the system takes set-user-id away when the owner changes.
        ownership.apply(self.file.as_fd()).map_err(|errno| failed("change the owner of", errno))?;
        self.attributes.apply(&self.file).map_err(|source| self.attributes_failed(source))?;
        // Last: an access list has a mode in it.
        fchmod(&self.file, Mode::from_raw_mode(mode)).map_err(|errno| failed("change the mode of", errno))
    }
}

/// A file without a name in the directory; `None` when the file system has none.
fn nameless(place: &Place) -> Result<Option<OwnedFd>, Errno> {
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    match openat(place.directory(), ".", flags, Mode::RUSR | Mode::WUSR) {
        Ok(fd) => Ok(Some(fd)),
        // Which of them it is depends on the file system and on whether the kernel knows of such files.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Gives a nameless file its name, if nothing has it.
fn link(file: &File, directory: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
    match linkat(file, "", directory, name, AtFlags::EMPTY_PATH) {
        // It takes a right that not everybody has; everybody may go by /proc.
        Err(Errno::NOENT | Errno::PERM | Errno::INVAL) => link_by_proc(file, directory, name),
        linked => linked,
    }
}

fn link_by_proc(file: &File, directory: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
    use std::os::fd::AsRawFd;
    let itself = format!("/proc/self/fd/{}", file.as_raw_fd());
    linkat(CWD, itself, directory, name, AtFlags::SYMLINK_FOLLOW)
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
        let mut name = usual(place.name());
        let mut made = create(place.directory(), &name);
        if matches!(made, Err(Errno::EXIST)) && is_abandoned(place, &name, clock_gettime(ClockId::Realtime).tv_sec) {
            // If somebody else removed it first, that of a run that goes on may be hit, which then fails.
            let _ = unlinkat(place.directory(), name.as_str(), AtFlags::empty());
            made = create(place.directory(), &name);
        }
        let random = RandomState::new();
        for attempt in 0..ATTEMPTS {
            if !matches!(made, Err(Errno::EXIST)) {
                break;
            }
            name = format!("{TEMPORARY_PREFIX}{:012x}", random.hash_one(attempt) >> 16);
            made = create(place.directory(), &name);
        }
        let made = made.map_err(|errno| place.failed("create a file beside", errno))?;
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

    /// A new file.
    fn file(place: &'a Place) -> Result<(Self, OwnedFd), FsError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Self::create(place, |directory, name| openat(directory, name, flags, Mode::RUSR | Mode::WUSR))
    }

    /// A name for a file that has none.
    fn of(place: &'a Place, file: &File) -> Result<Self, FsError> {
        Self::create(place, |directory, name| link(file, directory, OsStr::new(name))).map(|(temporary, ())| temporary)
    }

    fn rename(mut self) -> Result<(), FsError> {
        let renamed = renameat(self.place.directory(), self.name.as_str(), self.place.directory(), self.place.name());
        self.renamed = renamed.is_ok();
        renamed.map_err(|errno| self.place.failed("replace", errno))
    }
}

/// The temporary name that is tried first for a final one: always the same, so that what a killed process left there is
/// met, and removed, when the same file is replaced again.
fn usual(name: &OsStr) -> String {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    format!("{TEMPORARY_PREFIX}{:012x}", hasher.finish() >> 16)
}

/// Whether this user left something there longer ago than any run takes.
fn is_abandoned(place: &Place, name: &str, now: i64) -> bool {
    const LONG: Duration = Duration::from_hours(24);
    let found = place.sibling_status(OsStr::new(name)).ok().flatten();
    found.is_some_and(|found| {
        let own = found.uid == geteuid().as_raw() && matches!(found.kind, Kind::File | Kind::Symlink);
        own && found.identity.is_older_than(LONG, now)
    })
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.renamed {
            // There is nobody left to tell, and the failure that led here is the one that matters.
            let _ = unlinkat(self.place.directory(), self.name.as_str(), AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{read_dir, read_to_string, write};

    use super::*;

    fn place_in(directory: &tempfile::TempDir) -> Place {
        Place::find(&directory.path().join("f")).unwrap().unwrap()
    }

    fn names_in(directory: &tempfile::TempDir) -> usize {
        read_dir(directory.path()).unwrap().count()
    }

    #[test]
    fn what_is_new_or_long_has_no_name_until_it_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let place = place_in(&directory);
        for content in ["new", "other"] {
            let before = names_in(&directory);
            let replacement = Replacement::begin(&place, Way::Nameless).unwrap();
            replacement.write(content.as_bytes()).unwrap();
            let has_none = replacement.temporary.is_none();
            assert!(!has_none || names_in(&directory) == before);
            replacement.finish(0o640, Ownership::default()).unwrap();
            assert_eq!(read_to_string(place.path()).unwrap(), content);
            assert_eq!(place.status().unwrap().map(|status| status.mode), Some(0o640));
            assert_eq!(names_in(&directory), 1);
        }
    }

    #[test]
    fn what_cannot_be_linked_is_copied() {
        let directory = tempfile::tempdir().unwrap();
        let place = place_in(&directory);
        let replacement = Replacement::begin(&place, Way::Nameless).unwrap();
        replacement.write(b"content").unwrap();
        let copy = replacement.copied(0o600, Ownership::default()).unwrap();
        copy.temporary.unwrap().rename().unwrap();
        assert_eq!(read_to_string(place.path()).unwrap(), "content");
        let Some(fd) = nameless(&place).unwrap() else { return };
        link_by_proc(&File::from(fd), place.directory(), OsStr::new("by proc")).unwrap();
        assert_eq!(names_in(&directory), 2);
    }

    #[test]
    fn what_a_killed_process_left_is_told_from_what_is_in_use() {
        let directory = tempfile::tempdir().unwrap();
        let place = place_in(&directory);
        let left = usual(place.name());
        write(directory.path().join(&left), "half").unwrap();
        let now = clock_gettime(ClockId::Realtime).tv_sec;
        assert!(!is_abandoned(&place, &left, now + 3600));
        assert!(is_abandoned(&place, &left, now + 2 * 86_400));
        assert!(!is_abandoned(&place, "none", now + 2 * 86_400));
        let replacement = Replacement::begin(&place, Way::Named).unwrap();
        assert_ne!(replacement.temporary.as_ref().unwrap().name, left);
        replacement.finish(0o600, Ownership::default()).unwrap();
        assert_eq!(read_to_string(directory.path().join(&left)).unwrap(), "half");
        assert_eq!(names_in(&directory), 2);
    }
}
