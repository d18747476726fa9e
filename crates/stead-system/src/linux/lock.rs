//! Locks between processes: one run at a time changes a machine root, and one at a time edits a file that it read.
//!
//! A lock is a `flock` on a file in a directory that only this user can write to. The kernel releases it when its process
//! ends, however that happens; what the file says about it is for messages only.

use std::error::Error;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Seek, Write};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, FlockOperation, Mode, OFlags, fcntl_lock, flock, fstat, ftruncate, openat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::folder::{Folder, FolderError};
use super::fs::{self, FsError, How, Place, Status, SystemPath, Writes};
pub use super::places::Locks;
use super::process::{end_left_behind, traces};
use crate::cancel::Cancel;
pub use crate::waiting::{Owner, Wait, describe};

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// No directory for locks.
    #[error("no directory for locks can be used")]
    Directory(#[source] FsError),
    /// The store that they lie in cannot be used.
    #[error("no directory for locks can be used")]
    Store(#[from] FolderError),
    /// Others could take or remove locks in it.
    #[error("the lock directory '{}' must belong to the user who runs this, and nobody else may write to it", .0.display())]
    Untrusted(PathBuf),
    /// There is no such root.
    #[error("the root '{}' is not a directory", .0.display())]
    NoRoot(PathBuf),
    /// The run was cancelled.
    #[error("cancelled while waiting for a lock")]
    Cancelled,
    /// Somebody else kept it for too long.
    #[error("gave up waiting after {} s for {}", after.as_secs(), describe(owner.as_ref()))]
    Deadline {
        /// How long was waited.
        after: Duration,
        /// Who has it.
        owner: Option<Owner>,
    },
    /// The system failed.
    #[error("cannot lock '{}'", path.display())]
    System {
        /// The file of the lock.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

impl LockError {
    /// Tells a system that has no place for locks from a place that others could use, and from one that fails.
    pub fn is_without_place(&self) -> bool {
        use io::ErrorKind::{NotFound, PermissionDenied, ReadOnlyFilesystem};
        match self {
            Self::Directory(_) => true,
            // Nobody can lock anything there, also where the file of the lock is left from before.
            Self::System { source, .. } => source.kind() == ReadOnlyFilesystem,
            Self::Store(error) => {
                kind(error).is_some_and(|kind| matches!(kind, NotFound | PermissionDenied | ReadOnlyFilesystem))
            }
            _ => false,
        }
    }
}

/// The system's reason for an error, if it has one.
fn kind(error: &FolderError) -> Option<io::ErrorKind> {
    let first: &(dyn Error + 'static) = error;
    let mut errors = std::iter::successors(Some(first), |error| (*error).source());
    errors.find_map(|error| error.downcast_ref::<io::Error>()).map(io::Error::kind)
}

/// A lock that is held until this is dropped.
#[must_use = "the lock is released when this is dropped"]
pub struct Lock {
    // The file holds the lock; it is closed last.
    file: File,
    end: End,
}

/// The fate of the file of a lock before the lock is released.
enum End {
    /// It says nothing that must go.
    Stays,
    /// It says nothing any more. A file system such as ext4 looks through all that was deleted in the last minutes for each
    /// file that it creates, so that a lock that is taken often and removed each time makes all new files slow.
    Emptied,
    /// It is removed. Whoever waits for it finds that it has no name any more, and opens the next one.
    Removed { directory: OwnedFd, name: String },
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Nobody learns of an error, and the next owner overcomes it.
        match &self.end {
            End::Stays => {}
            End::Emptied => drop(ftruncate(&self.file, 0)),
            End::Removed { directory, name } => drop(unlinkat(directory, name.as_str(), AtFlags::empty())),
        }
    }
}

impl Locks {
    /// Locks a machine root: only one run at a time may change what is below it. Whoever only reads does not need it.
    ///
    /// Guarantees: the same lock by whatever path the root is named; free within a second once its process ended. What a run
    /// that was killed left running is ended before this returns, so that no program of another run is beside it.
    pub fn lock_root(&self, root: &Path, command: &str, wait: Wait<'_>) -> Result<Lock, LockError> {
        let opened = fs::open_directory(&SystemPath::here(root)).map_err(LockError::Directory)?;
        let opened = opened.ok_or_else(|| LockError::NoRoot(root.to_owned()))?;
        let (device, inode) = status(&opened, root)?.identity.inode();
        let name = format!("root-{device}-{inode}");
        let (directory, path) = self.open()?;
        let mut file = Acquire { directory: &directory, path: path.join(&name), name: &name }.acquire(wait)?;
        // A run that ends in order leaves no text.
        let left = read_lines(&mut file);
        end_left_behind(left.get(3..).unwrap_or_default());
        introduce(&file, command, !left.is_empty()).map_err(|source| LockError::System { path, source })?;
        // There is one `/`, and any number of other roots.
        let end = if root == Path::new("/") { End::Emptied } else { End::Removed { directory, name } };
        Ok(Lock { file, end })
    }

    /// Locks a name in a directory while what is there is read, changed and replaced.
    ///
    /// Caveats: different names may share a lock, so a thread must not hold two.
    pub fn lock_place(&self, place: &Place, wait: Wait<'_>) -> Result<Lock, LockError> {
        // As many files as this stay in the directory, whatever is edited.
        const FILES: u64 = 64;
        let mut hasher = DefaultHasher::new();
        place.directory_status().map_err(LockError::Directory)?.identity.inode().hash(&mut hasher);
        place.name().hash(&mut hasher);
        let name = format!("file-{:02}", hasher.finish() % FILES);
        let (directory, path) = self.open()?;
        let file = Acquire { directory: &directory, path: path.join(&name), name: &name }.acquire(wait)?;
        Ok(Lock { file, end: End::Stays })
    }

    fn open(&self) -> Result<(OwnedFd, PathBuf), LockError> {
        if let Some(store) = &self.store {
            Folder::create(store)?;
        }
        let mut failed = None;
        for path in &self.candidates {
            match open_or_create(path) {
                Ok(directory) => return trusted(directory, path),
                Err(error) => failed = Some(error),
            }
        }
        Err(LockError::Directory(failed.unwrap_or_else(|| FsError::NoName(PathBuf::new()))))
    }
}

/// A file whose lock other programs of the system take as well, such as lckpwdf(3). It is released when this is dropped.
pub struct ProgramLock {
    file: File,
    path: PathBuf,
}

impl ProgramLock {
    /// Opens the file, after creating it if it is not there. It is not locked yet.
    pub fn open(place: &Place) -> Result<Self, FsError> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::NONBLOCK;
        let path = place.path().to_owned();
        match openat(place.directory(), place.name(), flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => Ok(Self { file: file.into(), path }),
            Err(errno) => Err(FsError::System { doing: "lock", path, source: errno.into() }),
        }
    }

    /// Locks it, unless another program has it locked. Returns whether.
    pub fn try_lock(&self) -> Result<bool, FsError> {
        match fcntl_lock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::ACCESS | Errno::AGAIN) => Ok(false),
            Err(errno) => Err(FsError::System { doing: "lock", path: self.path.clone(), source: errno.into() }),
        }
    }
}

fn open_or_create(path: &Path) -> Result<OwnedFd, FsError> {
    if let Some(found) = fs::open(&SystemPath::here(path), How::Directory)? {
        return Ok(found);
    }
    // A new home has no cache directory.
    if let (None, Some(parent)) = (Place::find(&SystemPath::here(path), &Writes::unrecorded())?, path.parent()) {
        create(parent)?;
    }
    create(path)
}

fn create(path: &Path) -> Result<OwnedFd, FsError> {
    let absent = || FsError::System { doing: "open", path: path.to_owned(), source: Errno::NOENT.into() };
    let place = Place::find(&SystemPath::here(path), &Writes::unrecorded())?.ok_or_else(absent)?;
    match place.make_directory() {
        // Another process may have been faster.
        Err(FsError::System { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {
            place.open(How::Directory)?.ok_or_else(absent)
        }
        made => made,
    }
}

fn trusted(directory: OwnedFd, path: &Path) -> Result<(OwnedFd, PathBuf), LockError> {
    let found = status(&directory, path)?;
    let own = found.uid == geteuid().as_raw() && found.mode & 0o022 == 0;
    if own { Ok((directory, path.to_owned())) } else { Err(LockError::Untrusted(path.to_owned())) }
}

fn status(fd: &OwnedFd, path: &Path) -> Result<Status, LockError> {
    let failed = |errno: Errno| LockError::System { path: path.to_owned(), source: errno.into() };
    fstat(fd).map(Status::from).map_err(failed)
}

/// Taking one lock.
struct Acquire<'a> {
    directory: &'a OwnedFd,
    path: PathBuf,
    name: &'a str,
}

/// How long a process has between taking a lock and saying who it is, before others report it as unknown.
const INTRODUCTION: Duration = Duration::from_millis(250);

impl Acquire<'_> {
    fn acquire(&self, mut wait: Wait<'_>) -> Result<File, LockError> {
        let begun = Instant::now();
        let mut pause = Duration::from_millis(1);
        let mut known: Option<Option<Owner>> = None;
        let mut introduced = begun;
        loop {
            let mut file = self.open()?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if self.is_named(&file)? => return Ok(file),
                Ok(()) => continue,
                Err(Errno::WOULDBLOCK) => {}
                Err(errno) => return Err(self.failed(errno)),
            }
            let owner = read_owner(&mut file);
            if owner.is_some() {
                introduced = Instant::now();
            }
            // Of many that hold it in turns, some are just about to say who they are.
            let is_due = owner.is_some() || introduced.elapsed() >= INTRODUCTION;
            if is_due && known.as_ref() != Some(&owner) {
                if (wait.on_wait)(owner.as_ref()).is_break() {
                    return Err(LockError::Cancelled);
                }
                known = Some(owner.clone());
            }
            check(&mut wait, begun, owner)?;
            std::thread::sleep(pause);
            // Short for those who edit one file in turns, long for those who wait for a whole run.
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    fn open(&self) -> Result<File, LockError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(self.directory, self.name, flags, Mode::RUSR | Mode::WUSR);
        opened.map(File::from).map_err(|errno| self.failed(errno))
    }

    /// Returns whether the file that is locked is the one that others will find.
    fn is_named(&self, file: &File) -> Result<bool, LockError> {
        let own = fstat(file).map_err(|errno| self.failed(errno))?;
        match statat(self.directory, self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok((found.st_dev, found.st_ino) == (own.st_dev, own.st_ino)),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(self.failed(errno)),
        }
    }

    fn failed(&self, errno: Errno) -> LockError {
        LockError::System { path: self.path.clone(), source: errno.into() }
    }
}

fn check(wait: &mut Wait<'_>, begun: Instant, owner: Option<Owner>) -> Result<(), LockError> {
    if wait.cancel.is_cancelled() {
        Err(LockError::Cancelled)
    } else if begun.elapsed() >= wait.deadline {
        Err(LockError::Deadline { after: wait.deadline, owner })
    } else {
        Ok(())
    }
}

/// Says who has the lock: a line each for the process, the time and the command, and those by which its programs are found.
///
/// A new file is not truncated: ext4 writes what follows that to the disk when the file is closed, and waits for it.
fn introduce(mut file: &File, command: &str, is_used: bool) -> io::Result<()> {
    if is_used {
        ftruncate(file, 0)?;
        file.rewind()?;
    }
    let (pid, now, command) = (std::process::id(), jiff::Timestamp::now(), command.replace('\n', " "));
    file.write_all(format!("{pid}\n{now}\n{command}\n{}", traces()).as_bytes())
}

fn read_owner(file: &mut File) -> Option<Owner> {
    let mut lines = read_lines(file).into_iter();
    let (pid, since, command) = (lines.next()?.parse().ok()?, lines.next()?, lines.next()?);
    Some(Owner { pid, since, command })
}

/// Returns the lines of the file of a lock; none where it cannot be read.
fn read_lines(file: &mut File) -> Vec<String> {
    // Nobody's command needs more.
    const MOST: u64 = 64 << 10;
    let mut text = String::new();
    let _ = file.take(MOST).read_to_string(&mut text);
    text.lines().map(str::to_owned).collect()
}

impl Place {
    /// Locks the name against other processes that record their writes with the same [`Locks`].
    ///
    /// `None` when there are no locks, or no directory for them: then a change by another process is still noticed
    /// before a file is replaced, but for the last moment.
    pub fn lock(&self, cancel: &Cancel, deadline: Duration) -> Result<Option<Lock>, LockError> {
        let Some(locks) = self.writes().locks() else { return Ok(None) };
        match locks.lock_place(self, Wait { cancel, deadline, on_wait: &mut |_| ControlFlow::Continue(()) }) {
            Err(error) if error.is_without_place() => Ok(None),
            locked => locked.map(Some),
        }
    }
}
