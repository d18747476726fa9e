//! Putting something under a name at once.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, Uid, chownat, fstat, linkat, openat, symlinkat, unlinkat};
use rustix::io::Errno;

use super::attributes::Attributes;
use super::change::{set_mode, set_owner};
use super::ownership::Ownership;
use super::place::Place;
use super::status::Status;
use super::temporary::{self, ATTEMPTS, Temporary};
use crate::error::FsError;

/// The node that new content may take the place of.
#[derive(Clone, Copy, Debug)]
pub enum Former<'s> {
    /// Nothing: whatever appears meanwhile stays.
    Absent,
    /// The file that was read, as it was then: one that was changed or exchanged meanwhile stays.
    Unchanged(&'s Status),
    /// Whatever is there.
    Any,
}

/// New content on its way to its name.
///
/// Guarantees: it has no name until it is complete, where the file system has such files. A process that is killed
/// leaves at most a name like `.stead-…` in the moment between two system calls; the next run that writes to the
/// directory removes it. Until [`Replacement::finish`] only the owner of this process can open it; dropped before, it is
/// removed.
pub struct Replacement<'a> {
    place: &'a Place,
    former: Former<'a>,
    /// `None` while it has no name.
    temporary: Option<Temporary<'a>>,
    file: File,
    attributes: Attributes,
}

impl<'a> Replacement<'a> {
    /// Begins new content for a name; nothing is visible there yet.
    pub fn begin(place: &'a Place, former: Former<'a>) -> Result<Self, FsError> {
        place.begin_writing()?;
        let (temporary, fd) = match nameless(place).map_err(|errno| place.failed("write", errno))? {
            Some(fd) => (None, fd),
            None => Temporary::file(place).map(|(temporary, fd)| (Some(temporary), fd))?,
        };
        Ok(Self { place, former, temporary, file: File::from(fd), attributes: Attributes::default() })
    }

    /// Lets the new content have the access list, the labels and the user attributes of the file that it replaces.
    pub fn keep_attributes(&mut self, of: &File) -> Result<(), FsError> {
        self.attributes = Attributes::of(of).map_err(|errno| self.place.failed("read the attributes of", errno))?;
        Ok(())
    }

    /// Lets the new content have these attributes.
    pub(super) fn give_attributes(&mut self, attributes: Attributes) {
        self.attributes = attributes;
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

    /// Gives the content its owner, attributes and mode, and then its name. Returns the file; `None` when what is there
    /// is not the [`Former`] any more, and stays.
    ///
    /// Caveats: a change by a program that takes no part in locking, in the moment between the last look and the rename,
    /// is not noticed.
    pub fn finish(self, mode: u32, ownership: Ownership) -> Result<Option<File>, FsError> {
        self.prepare(mode, ownership)?;
        let this = if self.temporary.is_none() { self.link_final(mode, ownership)? } else { Linked::Temporary(self) };
        let (place, file) = match this {
            Linked::Final(place, file) => (place, file),
            Linked::Taken => return Ok(None),
            Linked::Temporary(this) => {
                let (place, file, true) = this.rename()? else { return Ok(None) };
                (place, file)
            }
        };
        place.renamed()?;
        Ok(Some(file))
    }

    /// Gives nameless content the final name, or a temporary one where something is to be replaced.
    fn link_final(self, mode: u32, ownership: Ownership) -> Result<Linked<'a>, FsError> {
        if !matches!(self.former, Former::Unchanged(_)) {
            match link(&self.file, self.place.directory(), self.place.name()) {
                Ok(()) => return Ok(Linked::Final(self.place, self.file)),
                Err(Errno::EXIST) if matches!(self.former, Former::Absent) => return Ok(Linked::Taken),
                Err(Errno::EXIST) => {}
                Err(errno) if is_unlinkable(errno) => return self.copied(mode, ownership).map(Linked::Temporary),
                Err(errno) => return Err(self.place.failed("create", errno)),
            }
        }
        temporary::claim(&self.file);
        let linked =
            Temporary::create(self.place, |directory, name| match link(&self.file, directory, OsStr::new(name)) {
                Err(errno) if is_unlinkable(errno) => Ok(false),
                linked => linked.map(|()| true),
            });
        match linked? {
            (temporary, true) => Ok(Linked::Temporary(Self { temporary: Some(temporary), ..self })),
            (_, false) => self.copied(mode, ownership).map(Linked::Temporary),
        }
    }

    /// Copies the content to a new temporary name.
    fn copied(mut self, mode: u32, ownership: Ownership) -> Result<Self, FsError> {
        let (temporary, fd) = Temporary::file(self.place)?;
        let mut file = File::from(fd);
        let copied = self.file.rewind().and_then(|()| io::copy(&mut self.file, &mut file));
        copied.map_err(|error| self.failed(error))?;
        let copy = Self { temporary: Some(temporary), file, ..self };
        copy.prepare(mode, ownership)?;
        Ok(copy)
    }

    /// Gives what has a temporary name the final one. Returns whether it has that now.
    fn rename(self) -> Result<(&'a Place, File, bool), FsError> {
        let Some(temporary) = self.temporary else { return Ok((self.place, self.file, false)) };
        let renamed = match self.former {
            Former::Absent => temporary.rename_if_free()?,
            Former::Unchanged(former) => self.place.is_still(former)? && temporary.rename_to(self.place.name())?,
            Former::Any if !temporary.rename_to(self.place.name())? => {
                return Err(FsError::Exchanged(self.place.path().to_owned()));
            }
            Former::Any => true,
        };
        temporary::release(&self.file);
        Ok((self.place, self.file, renamed))
    }

    /// Makes the file ready for its name.
    fn prepare(&self, mode: u32, ownership: Ownership) -> Result<(), FsError> {
        let failed = |doing, errno| self.place.failed(doing, errno);
        // The owner first: the system takes set-user-id away when the owner changes.
        set_owner(&self.file, ownership).map_err(|errno| failed("change the owner of", errno))?;
        self.attributes.apply(&self.file).map_err(|source| self.attributes_failed(source))?;
        // Last: an access list has a mode in it.
        set_mode(&self.file, mode).map_err(|errno| failed("change the mode of", errno))?;
        self.place.written(&self.file)
    }
}

/// Which name new content has got.
enum Linked<'a> {
    Final(&'a Place, File),
    Temporary(Replacement<'a>),
    /// None: something else has the final one.
    Taken,
}

/// Repeats an attempt that answers `None` when a file was changed by others since it was read.
pub fn retry_changed<T, E: From<FsError>>(
    path: &Path,
    mut attempt: impl FnMut() -> Result<Option<T>, E>,
) -> Result<T, E> {
    // Each one takes less than a millisecond; who writes more often than that is not waited for.
    const ATTEMPTS: usize = 32;
    for _ in 0..ATTEMPTS {
        if let Some(done) = attempt()? {
            return Ok(done);
        }
    }
    Err(FsError::KeepsChanging(path.to_owned()).into())
}

/// Neither the right to link a nameless file nor `/proc` to find it in.
fn is_unlinkable(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::PERM | Errno::ACCESS)
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
    /// Creates a directory with a mode and an owner, and opens it.
    ///
    /// Guarantees: it has them as soon as it has its name.
    pub fn make_directory_with(&self, mode: u32, ownership: Ownership) -> Result<OwnedFd, FsError> {
        self.begin_writing()?;
        let (temporary, directory) = Temporary::directory(self)?;
        set_owner(&directory, ownership).map_err(|errno| self.failed("change the owner of", errno))?;
        set_mode(&directory, mode).map_err(|errno| self.failed("change the mode of", errno))?;
        if !temporary.rename_if_free()? {
            return Err(self.failed("create the directory", Errno::EXIST));
        }
        temporary::release(&directory);
        self.renamed()?;
        Ok(directory)
    }

    /// Puts a symbolic link there at once, in place of anything that is not a directory.
    pub fn replace_by_link(&self, target: &OsStr, ownership: Ownership) -> Result<(), FsError> {
        self.begin_writing()?;
        for _ in 0..ATTEMPTS {
            let (temporary, ()) = Temporary::create(self, |directory, name| symlinkat(target, directory, name))?;
            if !ownership.is_none() {
                self.own_name(temporary.name(), ownership)?;
            }
            if temporary.rename_to(self.name())? {
                return self.renamed();
            }
        }
        Err(FsError::Exchanged(self.path().to_owned()))
    }

    /// Changes the owner of the link that is there.
    pub fn own(&self, ownership: Ownership) -> Result<(), FsError> {
        self.begin_writing()?;
        self.own_name(self.name(), ownership)?;
        self.renamed()
    }

    /// Gives what is there a second name in the same directory, in place of what has that name.
    ///
    /// Returns false when the file system has no second names.
    pub fn keep_as(&self, name: &OsStr) -> Result<bool, FsError> {
        self.begin_writing_as(name)?;
        for _ in 0..ATTEMPTS {
            let linked = Temporary::create(self, |directory, temporary| {
                match linkat(directory, self.name(), directory, temporary, AtFlags::empty()) {
                    Ok(()) => Ok(true),
                    Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => Ok(false),
                    Err(errno) => Err(errno),
                }
            });
            let (temporary, true) = linked? else { return Ok(false) };
            let temporary_name = temporary.name().to_owned();
            if temporary.rename_to(name)? {
                // A rename between two names of one file leaves both.
                let _ = unlinkat(self.directory(), &temporary_name, AtFlags::empty());
                self.renamed()?;
                return Ok(true);
            }
        }
        Err(FsError::Exchanged(self.path().to_owned()))
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

#[cfg(test)]
mod tests {
    use std::fs::{read_dir, read_to_string, write};

    use super::*;
    use crate::linux::fs::{SystemPath, Writes};

    fn place_in(directory: &tempfile::TempDir) -> Place {
        Place::find(&SystemPath::here(directory.path().join("f")), &Writes::default()).unwrap().unwrap()
    }

    fn names_in(directory: &tempfile::TempDir) -> usize {
        read_dir(directory.path()).unwrap().count()
    }

    #[test]
    fn content_has_no_name_until_it_is_complete() {
        let directory = tempfile::tempdir().unwrap();
        let place = place_in(&directory);
        for (content, former) in [("new", Former::Absent), ("other", Former::Any)] {
            let before = names_in(&directory);
            let replacement = Replacement::begin(&place, former).unwrap();
            replacement.write(content.as_bytes()).unwrap();
            let has_none = replacement.temporary.is_none();
            assert!(!has_none || names_in(&directory) == before);
            replacement.finish(0o640, Ownership::default()).unwrap().unwrap();
            assert_eq!(read_to_string(place.path()).unwrap(), content);
            assert_eq!(place.status().unwrap().map(|status| status.mode), Some(0o640));
            assert_eq!(names_in(&directory), 1);
        }
    }

    #[test]
    fn what_cannot_be_linked_is_copied() {
        let directory = tempfile::tempdir().unwrap();
        let place = place_in(&directory);
        let replacement = Replacement::begin(&place, Former::Any).unwrap();
        replacement.write(b"content").unwrap();
        let copy = replacement.copied(0o600, Ownership::default()).unwrap();
        assert!(copy.rename().unwrap().2);
        assert_eq!(read_to_string(place.path()).unwrap(), "content");
        let Some(fd) = nameless(&place).unwrap() else { return };
        link_by_proc(&File::from(fd), place.directory(), OsStr::new("by proc")).unwrap();
        assert_eq!(names_in(&directory), 2);
    }

    /// With a nameless file and with a temporary name, which not every file system spares us.
    fn finished(place: &Place, former: Former<'_>, named: bool) -> bool {
        let mut replacement = Replacement::begin(place, former).unwrap();
        if named {
            replacement = replacement.copied(0o600, Ownership::default()).unwrap();
        }
        replacement.write(b"mine").unwrap();
        replacement.finish(0o600, Ownership::default()).unwrap().is_some()
    }

    #[test]
    fn what_others_put_there_meanwhile_stays() {
        for named in [false, true] {
            let directory = tempfile::tempdir().unwrap();
            let place = place_in(&directory);
            write(place.path(), "read").unwrap();
            let read = place.status().unwrap().unwrap();
            write(place.path(), "theirs").unwrap();
            assert!(!finished(&place, Former::Absent, named));
            assert!(!finished(&place, Former::Unchanged(&read), named));
            assert_eq!(read_to_string(place.path()).unwrap(), "theirs");

            let read = place.status().unwrap().unwrap();
            assert!(finished(&place, Former::Unchanged(&read), named));
            assert_eq!(read_to_string(place.path()).unwrap(), "mine");
            place.remove().unwrap();
            assert!(!finished(&place, Former::Unchanged(&read), named));
            assert!(finished(&place, Former::Absent, named));
            assert_eq!(names_in(&directory), 1);
        }
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_is_in_use_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        write(path.join(".stead-0123456789ab"), "left").unwrap();
        std::os::unix::fs::symlink("left", path.join(".stead-0123456789ac")).unwrap();
        write(path.join(".stead-of a user"), "not ours").unwrap();
        let place = place_in(&directory);
        let (in_use, _file) = Temporary::file(&place).unwrap();
        assert!(finished(&place, Former::Absent, false));
        let mut names: Vec<_> = read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        let mut expected = [in_use.name(), OsStr::new(".stead-of a user"), OsStr::new("f")];
        expected.sort();
        assert_eq!(names, expected);
    }

    #[test]
    fn a_run_that_gives_up_on_a_busy_file_says_so() {
        let failed = retry_changed::<(), FsError>(Path::new("/f"), || Ok(None));
        assert!(matches!(failed, Err(FsError::KeepsChanging(_))));
    }
}
