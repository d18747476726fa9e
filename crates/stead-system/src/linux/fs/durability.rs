//! When what was written is on the disk, and not only in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use super::abandoned::remove_abandoned;
use super::image::Keeper;
use super::status::Status;
use crate::error::FsError;
use crate::linux::places::Locks;

/// The loss that a power failure may cause.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Durability {
    /// Nothing that a writer returned from: each file is flushed before it gets its name, and its directory after it.
    PerFile,
    /// Nothing that was written before [`Writes::flush`] succeeded: one flush for each file system.
    #[default]
    PerRun,
    /// Data that the system did not write by itself yet, which it does within half a minute or so.
    Never,
}

/// The thing that is flushed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FlushTarget {
    /// The content and attributes of one file.
    File,
    /// The names in one directory.
    Directory,
    /// The file system that a directory is on.
    FileSystem,
    /// Everything, where a directory cannot be opened for reading; errors are not reported then.
    Everything,
}

/// Asks the system to flush.
type Flush = dyn Fn(FlushTarget, BorrowedFd<'_>) -> Result<(), Errno> + Send + Sync;

/// The writes of a run: how durable they are to be, and which file systems and directories they reached. Clones share
/// it.
#[derive(Clone)]
pub struct Writes {
    recorder: Option<Arc<Recorder>>,
    locks: Option<Arc<Locks>>,
    /// Takes what is about to be changed.
    pub(super) keeper: Option<Arc<dyn Keeper>>,
    flushed: FlushedBy,
}

/// Which of the clones flushes what all of them wrote.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FlushedBy {
    This,
    Another,
}

struct Recorder {
    durability: Durability,
    flush: Box<Flush>,
    /// By device. Opened before the first write: a descriptor reports the write errors since it was opened.
    file_systems: Mutex<BTreeMap<u64, FileSystem>>,
    /// The directories, by device and inode, in which nothing is left of killed runs.
    cleaned: Mutex<BTreeSet<(u64, u64)>>,
}

struct FileSystem {
    target: FlushTarget,
    directory: OwnedFd,
    path: PathBuf,
}

impl Default for Writes {
    fn default() -> Self {
        Self::new(Durability::default())
    }
}

impl Writes {
    /// Writes of one run.
    pub fn new(durability: Durability) -> Self {
        Self::with_flush(durability, flush)
    }

    /// Returns it with another way to flush, for tests.
    pub fn with_flush(
        durability: Durability,
        flush: impl Fn(FlushTarget, BorrowedFd<'_>) -> Result<(), Errno> + Send + Sync + 'static,
    ) -> Self {
        let flush = Box::new(flush);
        let recorder = Recorder { durability, flush, file_systems: Mutex::default(), cleaned: Mutex::default() };
        Self { recorder: Some(Arc::new(recorder)), locks: None, keeper: None, flushed: FlushedBy::This }
    }

    /// A clone whose [`Writes::flush`] does nothing: what it writes is flushed when these are.
    #[must_use]
    pub fn flushed_elsewhere(&self) -> Self {
        Self { flushed: FlushedBy::Another, ..self.clone() }
    }

    /// Returns it locked against other processes while a file is read, changed and replaced.
    #[must_use]
    pub fn with_locks(self, locks: Locks) -> Self {
        Self { locks: Some(Arc::new(locks)), ..self }
    }

    /// A clone that has what it changes kept.
    #[must_use]
    pub fn kept_by(&self, keeper: Arc<dyn Keeper>) -> Self {
        Self { keeper: Some(keeper), ..self.clone() }
    }

    pub(crate) fn locks(&self) -> Option<&Locks> {
        self.locks.as_deref()
    }

    /// For a place that is only read: nothing is recorded, flushed or cleaned.
    pub const fn unrecorded() -> Self {
        Self { recorder: None, locks: None, keeper: None, flushed: FlushedBy::This }
    }

    /// Flushes each file system that was written to since the last time, also when another one fails.
    ///
    /// Guarantees: a failure is reported once and not repeated as success; the first one is returned.
    pub fn flush(&self) -> Result<(), FsError> {
        let Some(recorder) = self.recorder.as_ref().filter(|_| self.flushed == FlushedBy::This) else { return Ok(()) };
        let written = std::mem::take(&mut *lock(&recorder.file_systems));
        let flushed = written.into_values().map(|each| recorder.flush(each.target, each.directory.as_fd(), &each.path));
        // All of them, before the first failure is looked for.
        flushed.collect::<Vec<_>>().into_iter().collect()
    }

    /// To be called before anything is written to a directory: records it, and removes what killed runs left there.
    pub(super) fn begin(&self, directory: BorrowedFd<'_>, path: &Path) -> Result<(), FsError> {
        let Some(recorder) = &self.recorder else { return Ok(()) };
        let stat = fstat(directory).map_err(|errno| FsError::system("examine the directory of", path, errno))?;
        let (device, inode) = Status::from(stat).identity.inode();
        if lock(&recorder.cleaned).insert((device, inode)) {
            remove_abandoned(directory);
        }
        recorder.record(device, directory, path)
    }

    /// To be called once the content of a file is complete, before it gets its name.
    pub(super) fn written(&self, file: BorrowedFd<'_>, path: &Path) -> Result<(), FsError> {
        self.flush_now(FlushTarget::File, || file.try_clone_to_owned(), path)
    }

    /// To be called when names in a directory have changed.
    pub(super) fn renamed(&self, directory: BorrowedFd<'_>, path: &Path) -> Result<(), FsError> {
        self.flush_now(FlushTarget::Directory, || open_for_reading(directory), path)
    }

    /// To be called when the owner or mode of an open file or directory was changed in place.
    pub(crate) fn changed(&self, file: &impl AsFd, path: &Path) -> Result<(), FsError> {
        let Some(recorder) = &self.recorder else { return Ok(()) };
        let file = file.as_fd();
        self.flush_now(FlushTarget::File, || reopen(file), path)?;
        let stat = fstat(file).map_err(|errno| FsError::system("examine", path, errno))?;
        recorder.record(Status::from(stat).identity.inode().0, file, path)
    }

    fn flush_now(
        &self,
        target: FlushTarget,
        open: impl FnOnce() -> std::io::Result<OwnedFd>,
        path: &Path,
    ) -> Result<(), FsError> {
        let Some(recorder) = self.recorder.as_ref().filter(|recorder| recorder.durability == Durability::PerFile)
        else {
            return Ok(());
        };
        match open() {
            Ok(opened) => recorder.flush(target, opened.as_fd(), path),
            Err(source) => Err(FsError::Flush { path: path.to_owned(), source }),
        }
    }
}

impl Recorder {
    fn record(&self, device: u64, within: BorrowedFd<'_>, path: &Path) -> Result<(), FsError> {
        let mut file_systems = lock(&self.file_systems);
        if self.durability != Durability::PerRun || file_systems.contains_key(&device) {
            return Ok(());
        }
        let opened = match reopen(within) {
            Ok(directory) => Ok((FlushTarget::FileSystem, directory)),
            // Whoever may write there but not read.
            Err(_) => within.try_clone_to_owned().map(|directory| (FlushTarget::Everything, directory)),
        };
        let (target, directory) = opened.map_err(|source| FsError::Flush { path: path.to_owned(), source })?;
        file_systems.insert(device, FileSystem { target, directory, path: path.to_owned() });
        Ok(())
    }

    fn flush(&self, target: FlushTarget, fd: BorrowedFd<'_>, path: &Path) -> Result<(), FsError> {
        (self.flush)(target, fd).map_err(|errno| FsError::Flush { path: path.to_owned(), source: errno.into() })
    }
}

fn flush(target: FlushTarget, fd: BorrowedFd<'_>) -> Result<(), Errno> {
    match target {
        FlushTarget::File | FlushTarget::Directory => rustix::fs::fsync(fd),
        FlushTarget::FileSystem => rustix::fs::syncfs(fd),
        FlushTarget::Everything => {
            rustix::fs::sync();
            Ok(())
        }
    }
}

/// Opens a directory that was opened to look names up in, so that it can be flushed.
fn open_for_reading(directory: BorrowedFd<'_>) -> std::io::Result<OwnedFd> {
    Ok(openat(directory, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Opens a file or a directory again.
fn reopen(fd: BorrowedFd<'_>) -> std::io::Result<OwnedFd> {
    let itself = format!("/proc/self/fd/{}", fd.as_raw_fd());
    open_for_reading(fd).or_else(|_| {
        Ok(openat(CWD, itself, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?)
    })
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
