//! A directory that only this user can reach, and files that are replaced as a whole.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Mode, OFlags, chmodat, fchmod, openat};

use super::fs::{
    Durability, FileKind, Former, FsError, How, Identity, OpenError, Ownership, Place, Presence, Replacement,
    TrustedDirectory, User, Writes, is_not_openable, read_open, remove_abandoned,
};

/// The largest file that is read: several times what is kept of the largest document, and less than would take the memory of a
/// machine.
const LARGEST: u64 = 512 << 20;

/// Why a private folder cannot be used, or something in it.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A directory cannot be used.
    #[error("cannot use the directory '{}'", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: OpenError,
    },
    /// File work failed.
    #[error(transparent)]
    Files(#[from] FsError),
    /// The system refused something.
    #[error("cannot {doing} '{}'", path.display())]
    System {
        /// The action that failed, as in "cannot …".
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

impl FolderError {
    /// Returns whether something else is in the place of a file: no file at all, or one that is larger than any that is kept.
    pub fn is_something_else(&self) -> bool {
        match self {
            Self::Files(FsError::WrongKind { .. } | FsError::TooLarge { .. }) => true,
            Self::Files(FsError::System { source, .. }) => is_not_openable(source),
            _ => false,
        }
    }
}

fn failed(doing: &'static str, path: &Path, source: io::Error) -> FolderError {
    FolderError::System { doing, path: path.to_owned(), source }
}

/// A directory with mode 0700, opened. Everything in it is reached through its descriptor.
#[derive(Clone)]
pub struct Folder {
    directory: TrustedDirectory,
    /// Each is flushed at once.
    writes: Writes,
}

impl Folder {
    /// Opens the directory, after creating what is missing of it.
    ///
    /// Caveats: that it exists is not on the disk yet ([`Folder::flush_ancestors`]).
    pub fn create(path: &Path) -> Result<Self, FolderError> {
        let path = std::path::absolute(path).map_err(|source| failed("find", path, source))?;
        Self::protected(open_or_create(&path)?)
    }

    /// Opens the directory; `None` where it does not exist.
    pub fn existing(path: &Path) -> Result<Option<Self>, FolderError> {
        let path = std::path::absolute(path).map_err(|source| failed("find", path, source))?;
        match TrustedDirectory::open(&path, User::current().trust()) {
            // Something else in its place is not the same as nothing: it may have been put there.
            Err(error) if error.is_not_found() && !error.is_not_a_directory() => Ok(None),
            Ok(directory) => Self::protected(directory).map(Some),
            Err(source) => Err(FolderError::Directory { path, source }),
        }
    }

    /// Opens or creates a directory in this one.
    pub fn within(&self, name: &str) -> Result<Self, FolderError> {
        Self::protected(open_or_create(&self.path().join(name))?)
    }

    /// An existing directory may have been made with another mode.
    fn protected(directory: TrustedDirectory) -> Result<Self, FolderError> {
        if directory.metadata().mode() & 0o777 != 0o700 {
            let changed = chmodat(&directory, ".", Mode::RWXU, AtFlags::empty());
            changed.map_err(|errno| failed("change the mode of", directory.path(), errno.into()))?;
        }
        Ok(Self { directory, writes: Writes::new(Durability::PerFile) })
    }

    /// Its path, behind all links.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The names in it.
    pub fn names(&self) -> Result<BTreeSet<OsString>, FolderError> {
        self.directory.names().map_err(|source| failed("list", self.path(), source))
    }

    /// Removes what killed processes left.
    pub fn remove_abandoned(&self) {
        remove_abandoned(self.directory.as_fd());
    }

    /// A name in it.
    fn place(&self, name: impl AsRef<OsStr>, writes: &Writes) -> Result<Place, FsError> {
        let name = name.as_ref();
        Place::within(&self.directory, name, self.path().join(name), writes)
    }

    /// The content of a file; `None` when there is none.
    ///
    /// # Errors
    /// When the system fails, or something else is in its place ([`FolderError::is_something_else`]).
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, FolderError> {
        let place = self.place(name, &Writes::unrecorded())?;
        let Some(file) = place.open(How::Read)? else { return Ok(None) };
        Ok(Some(read_open(file, place.path(), LARGEST)?.bytes))
    }

    /// Replaces a file as a whole, durably, or creates it. A directory in its place gets another name.
    pub fn replace(&self, name: &str, content: &[u8]) -> Result<(), FolderError> {
        self.replaced(name, content, &self.writes)
    }

    /// Replaces a file as a whole, or creates it, without flushing.
    pub fn replace_unflushed(&self, name: &str, content: &[u8]) -> Result<(), FolderError> {
        self.replaced(name, content, &Writes::unrecorded())
    }

    fn replaced(&self, name: &str, content: &[u8], writes: &Writes) -> Result<(), FolderError> {
        let place = self.place(name, writes)?;
        make_way(&place)?;
        let replacement = Replacement::begin(&place, Former::Any)?;
        replacement.write(content)?;
        Ok(replacement.finish(0o600, Ownership::default()).map(drop)?)
    }

    /// Opens a file for reading and for appending, or creates one.
    pub fn append(&self, name: &str, presence: Presence) -> Result<File, FolderError> {
        let opened = self.directory.append(OsStr::new(name), presence);
        opened.map_err(|source| failed("open", &self.path().join(name), source))
    }

    /// What tells a file from every other, and from what it was before; `None` where there is none.
    pub fn identity(&self, name: &str) -> Result<Option<Identity>, FolderError> {
        Ok(self.place(name, &Writes::unrecorded())?.status()?.map(|status| status.identity))
    }

    /// Gives a file a second name, in place of an older one. It is not flushed: the next replacement of the file does that.
    ///
    /// Caveats: there is no second name where the file system has no hard links.
    pub fn keep_former(&self, name: &str, former: &str) -> Result<(), FolderError> {
        self.keep_as(name, former, &Writes::unrecorded()).map(drop)
    }

    /// Gives a file a second name that says that it is damaged, in place of an older one; `None` when the file system has no
    /// second names.
    pub fn set_aside(&self, name: &str) -> Result<Option<PathBuf>, FolderError> {
        let damaged = format!("{name}.damaged");
        let is_kept = self.keep_as(name, &damaged, &self.writes)?;
        Ok(is_kept.then(|| self.path().join(damaged)))
    }

    fn keep_as(&self, name: &str, other: &str, writes: &Writes) -> Result<bool, FolderError> {
        make_way(&self.place(other, writes)?)?;
        Ok(self.place(name, writes)?.keep_as(OsStr::new(other))?)
    }

    /// Removes a file, durably. A directory in its place gets another name.
    pub fn remove(&self, name: &str) -> Result<(), FolderError> {
        self.removed(name.as_ref(), &self.writes)
    }

    /// Removes a file like [`Folder::remove`], without flushing: if a power failure restores it, it must be removed again.
    pub fn remove_unflushed(&self, name: impl AsRef<OsStr>) -> Result<(), FolderError> {
        self.removed(name.as_ref(), &Writes::unrecorded())
    }

    fn removed(&self, name: &OsStr, writes: &Writes) -> Result<(), FolderError> {
        let place = self.place(name, writes)?;
        make_way(&place)?;
        Ok(place.remove().map(drop)?)
    }

    /// Opens a file for reading and writing, after creating it if it does not exist.
    pub fn open(&self, name: &str) -> Result<File, FolderError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        // The mode is less than that when the process says so.
        let opened = openat(&self.directory, name, flags, mode).and_then(|file| fchmod(&file, mode).map(|()| file));
        opened.map(File::from).map_err(|errno| failed("open", &self.path().join(name), errno.into()))
    }

    /// Locks a file in it, for which others are waited for as long; `None` if they keep it. A program that a process was
    /// about to start when it ended has its lock, too, until it becomes that program: a wait of a moment is never too long.
    pub fn lock(&self, name: &str, patience: Duration) -> Result<Option<File>, FolderError> {
        const PAUSE: Duration = Duration::from_millis(10);
        let (file, began) = (self.open(name)?, Instant::now());
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(file)),
                Err(TryLockError::WouldBlock) if began.elapsed() < patience => thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(source)) => return Err(failed("lock", &self.path().join(name), source)),
            }
        }
    }

    /// Flushes the names in it to the disk.
    pub fn flush(&self) -> Result<(), FolderError> {
        Ok(self.writes.changed(&self.directory, self.path())?)
    }

    /// Flushes the names of the directories on the way to it, on its file system.
    pub fn flush_ancestors(&self) -> Result<(), FolderError> {
        for path in self.path().ancestors().skip(1) {
            let ancestor = match File::open(path) {
                // A user who may not read it created nothing in it.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => break,
                opened => opened.map_err(|source| failed("open", path, source))?,
            };
            let metadata = ancestor.metadata().map_err(|source| failed("examine", path, source))?;
            if metadata.dev() != self.directory.metadata().dev() {
                break;
            }
            self.writes.changed(&ancestor, path)?;
        }
        Ok(())
    }
}

/// Gives a directory that is in the place of a file another name, which says that it is damaged: no file takes its place otherwise.
fn make_way(place: &Place) -> Result<(), FsError> {
    /// More than anybody puts there.
    const NAMES: u32 = 100;
    if place.status()?.is_none_or(|status| status.kind != FileKind::Directory) {
        return Ok(());
    }
    let mut renamed = Ok(());
    for number in 1..=NAMES {
        let mut aside = place.name().to_owned();
        aside.push(format!(".damaged-{number}"));
        renamed = place.rename_if_free(&aside);
        if !matches!(&renamed, Err(FsError::System { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists) {
            break;
        }
    }
    renamed
}

fn open_or_create(path: &Path) -> Result<TrustedDirectory, FolderError> {
    match TrustedDirectory::open(path, User::current().trust()) {
        Err(error) if error.is_not_found() => create(path, error),
        opened => opened.map_err(|source| FolderError::Directory { path: path.to_owned(), source }),
    }
}

fn create(path: &Path, not_found: OpenError) -> Result<TrustedDirectory, FolderError> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(FolderError::Directory { path: path.to_owned(), source: not_found });
    };
    // What is created is flushed together.
    match Place::within(&open_or_create(parent)?, name, path.to_owned(), &Writes::unrecorded())?.make_directory() {
        Err(FsError::System { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => open(path),
        made => made.map(drop).map_err(FolderError::Files).and_then(|()| open(path)),
    }
}

fn open(path: &Path) -> Result<TrustedDirectory, FolderError> {
    let opened = TrustedDirectory::open(path, User::current().trust());
    opened.map_err(|source| FolderError::Directory { path: path.to_owned(), source })
}
