//! A directory that only this user can reach, and files that are replaced as a whole.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Mode, OFlags, chmodat, fchmod, openat};
use stead_host::fs::{
    Durability, Former, FsError, OpenError, Ownership, Place, Replacement, TrustedDirectory, User, Writes,
    remove_abandoned,
};

use super::StoreError;

/// A directory with mode 0700, opened. Everything in it is reached through its descriptor.
#[derive(Clone)]
pub(crate) struct Folder {
    directory: TrustedDirectory,
    /// Each is flushed at once.
    writes: Writes,
}

impl Folder {
    /// Opens the directory, after creating what is missing of it.
    ///
    /// Caveats: that it exists is not on the disk yet ([`Folder::flush_ancestors`]).
    pub(super) fn create(path: &Path) -> Result<Self, StoreError> {
        let path = std::path::absolute(path).map_err(|source| failed("find", path, source))?;
        Self::protected(open_or_create(&path)?)
    }

    /// The same for a directory in this one.
    pub(super) fn within(&self, name: &str) -> Result<Self, StoreError> {
        Self::protected(open_or_create(&self.path().join(name))?)
    }

    /// An existing directory may have been made with another mode.
    fn protected(directory: TrustedDirectory) -> Result<Self, StoreError> {
        if directory.metadata().mode() & 0o777 != 0o700 {
            let changed = chmodat(&directory, ".", Mode::RWXU, AtFlags::empty());
            changed.map_err(|errno| failed("change the mode of", directory.path(), errno.into()))?;
        }
        Ok(Self { directory, writes: Writes::new(Durability::PerFile) })
    }

    /// Its path, behind all links.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The names in it.
    pub(super) fn names(&self) -> Result<BTreeSet<OsString>, StoreError> {
        self.directory.names().map_err(|source| failed("list", self.path(), source))
    }

    /// Removes what killed processes left.
    pub(super) fn remove_abandoned(&self) {
        remove_abandoned(self.directory.as_fd());
    }

    /// A name in it.
    pub(super) fn place(&self, name: impl AsRef<OsStr>, writes: &Writes) -> Result<Place, FsError> {
        let name = name.as_ref();
        Place::within(&self.directory, name, self.path().join(name), writes)
    }

    /// The content of a file; `None` when there is none.
    pub(super) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let place = self.place(name, &Writes::unrecorded())?;
        let Some(file) = place.open(OFlags::RDONLY | OFlags::NONBLOCK)? else { return Ok(None) };
        let mut content = Vec::new();
        File::from(file).read_to_end(&mut content).map_err(|source| failed("read", place.path(), source))?;
        Ok(Some(content))
    }

    /// Replaces a file as a whole, durably, or creates it.
    pub(super) fn replace(&self, name: &str, content: &[u8]) -> Result<(), FsError> {
        let place = self.place(name, &self.writes)?;
        let replacement = Replacement::begin(&place, Former::Any)?;
        replacement.write(content)?;
        replacement.finish(0o600, Ownership::default()).map(drop)
    }

    /// Gives a file a second name that says that it is damaged, in place of an older one; `None` when the file system has no
    /// second names.
    pub(crate) fn set_aside(&self, name: &str) -> Result<Option<PathBuf>, FsError> {
        let damaged = format!("{name}.damaged");
        let is_kept = self.place(name, &self.writes)?.keep_as(OsStr::new(&damaged))?;
        Ok(is_kept.then(|| self.path().join(damaged)))
    }

    /// Removes a file, durably.
    pub(crate) fn remove(&self, name: &str) -> Result<(), FsError> {
        self.place(name, &self.writes)?.remove().map(drop)
    }

    /// Opens a file for reading and writing, after creating it if it does not exist.
    pub(crate) fn open(&self, name: &str) -> Result<File, StoreError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        // The mode is less than that when the process says so.
        let opened = openat(&self.directory, name, flags, mode).and_then(|file| fchmod(&file, mode).map(|()| file));
        opened.map(File::from).map_err(|errno| failed("open", &self.path().join(name), errno.into()))
    }

    /// Locks the directory against other agents. A program that an agent was about to start when it ended has the lock, too,
    /// until it becomes that program, so that it is tried for a moment.
    pub(super) fn lock(&self) -> Result<File, StoreError> {
        const MOMENT: Duration = Duration::from_millis(200);
        let (file, began) = (self.open("lock")?, Instant::now());
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if began.elapsed() < MOMENT => thread::sleep(MOMENT / 20),
                Err(TryLockError::WouldBlock) => return Err(StoreError::InUse(self.path().to_owned())),
                Err(TryLockError::Error(source)) => return Err(failed("lock", self.path(), source)),
            }
        }
    }

    /// Flushes the names in it to the disk.
    pub(super) fn flush(&self) -> Result<(), FsError> {
        self.writes.changed(&self.directory, self.path())
    }

    /// Flushes the names of the directories on the way to it, on its file system.
    pub(super) fn flush_ancestors(&self) -> Result<(), StoreError> {
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

fn open_or_create(path: &Path) -> Result<TrustedDirectory, StoreError> {
    match TrustedDirectory::open(path, User::current().trust()) {
        Err(error) if error.is_not_found() => create(path, error),
        opened => opened.map_err(|source| StoreError::Directory { path: path.to_owned(), source }),
    }
}

fn create(path: &Path, not_found: OpenError) -> Result<TrustedDirectory, StoreError> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(StoreError::Directory { path: path.to_owned(), source: not_found });
    };
    // What is created is flushed together.
    match Place::within(&open_or_create(parent)?, name, path.to_owned(), &Writes::unrecorded())?.make_directory() {
        Err(FsError::System { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => open(path),
        made => made.map(drop).map_err(StoreError::Files).and_then(|()| open(path)),
    }
}

fn open(path: &Path) -> Result<TrustedDirectory, StoreError> {
    let opened = TrustedDirectory::open(path, User::current().trust());
    opened.map_err(|source| StoreError::Directory { path: path.to_owned(), source })
}

fn failed(doing: &'static str, path: &Path, source: io::Error) -> StoreError {
    StoreError::System { doing, path: path.to_owned(), source }
}
