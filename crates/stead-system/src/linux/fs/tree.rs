//! Whole trees, through descriptors.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

use super::TEMPORARY_PREFIX;
use super::error::FsError;
use super::mounts::first_mount;
use super::place::Place;
use super::status::Kind;
use super::walk::open_resolved;
use crate::provider::{Cancel, Context};

/// How long work on a tree may go on.
pub struct Patience {
    cancel: Cancel,
    deadline: Duration,
    until: Option<Instant>,
}

impl Patience {
    /// As long as the call may take, from now on.
    pub fn of(cx: &Context) -> Self {
        Self { cancel: cx.cancel.clone(), deadline: cx.deadline, until: Instant::now().checked_add(cx.deadline) }
    }

    /// Fails when it is over.
    pub fn check(&self) -> Result<(), FsError> {
        if self.cancel.is_cancelled() {
            Err(FsError::Cancelled)
        } else if self.until.is_some_and(|until| Instant::now() > until) {
            Err(FsError::Deadline(self.deadline))
        } else {
            Ok(())
        }
    }
}

/// What is in a directory, in the order of the names' bytes.
pub fn entries(directory: &impl AsFd, path: &Path) -> Result<BTreeMap<OsString, Kind>, FsError> {
    entries_up_to(directory, path, usize::MAX).map(|(found, _)| found)
}

/// Whether all that there is was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coverage {
    /// It was.
    Complete,
    /// There is more.
    Partial,
}

/// As many entries of a directory as asked for, of a larger one whichever the system lists first, in the order of the
/// names' bytes.
pub fn entries_up_to(
    directory: &impl AsFd,
    path: &Path,
    limit: usize,
) -> Result<(BTreeMap<OsString, Kind>, Coverage), FsError> {
    let failed = |errno| FsError::system("list", path, errno);
    let mut found = BTreeMap::new();
    for entry in Dir::read_from(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        if found.len() == limit {
            return Ok((found, Coverage::Partial));
        }
        if let Some(kind) = kind_of(directory.as_fd(), name, entry.file_type()).map_err(failed)? {
            found.insert(name.to_owned(), kind);
        }
    }
    Ok((found, Coverage::Complete))
}

fn kind_of(directory: BorrowedFd<'_>, name: &OsStr, listed: FileType) -> Result<Option<Kind>, Errno> {
    if listed != FileType::Unknown {
        return Ok(Some(listed.into()));
    }
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode).into())),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Opens the directory of that name in another; `None` when nothing is there.
///
/// Fails with [`FsError::MountPoint`] when something is mounted there, and with `ENOTDIR` or `ELOOP` when it is none.
pub fn open_below(directory: &impl AsFd, name: &OsStr, path: &Path) -> Result<Option<OwnedFd>, FsError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
    let opened = match open_resolved(directory, name, flags, resolve) {
        Err(Errno::NOSYS | Errno::PERM) => open_same_device(directory.as_fd(), name, flags),
        opened => opened,
    };
    match opened {
        Ok(fd) => Ok(Some(fd)),
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::XDEV) => Err(FsError::MountPoint(path.to_owned())),
        Err(errno) => Err(FsError::system("open the directory", path, errno)),
    }
}

fn open_same_device(directory: BorrowedFd<'_>, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let opened = openat(directory, name, flags, Mode::empty())?;
    if fstat(&opened)?.st_dev == fstat(directory)?.st_dev { Ok(opened) } else { Err(Errno::XDEV) }
}

/// Removes a directory and everything in it, without following links and without crossing mount points.
///
/// Guarantees: works on trees of any depth with few descriptors; where something is mounted in it nothing is removed. Returns whether
/// something was there.
pub fn remove_tree(place: &Place, patience: &Patience) -> Result<bool, FsError> {
    place.begin_writing()?;
    let Some(top) = open_below(&place.directory(), place.name(), place.path())? else { return Ok(false) };
    first_mount(&top, place.path())?;
    let mut removal = Removal { top, patience, moved: Vec::new(), counter: 0 };
    let top = removal.top.as_fd().try_clone_to_owned();
    let top = top.map_err(|source| FsError::System { doing: "open", path: place.path().to_owned(), source })?;
    removal.empty(&top, place.path(), 0)?;
    while let Some(name) = removal.moved.pop() {
        let path = place.path().join(&name);
        removal.remove_directory(&top, &name, &path, 0)?;
    }
    place.remove_directory()
}

struct Removal<'a> {
    top: OwnedFd,
    patience: &'a Patience,
    /// Directories from far below that were moved right below the top, to be removed later.
    moved: Vec<OsString>,
    counter: u64,
}

impl Removal<'_> {
    /// Deeper directories are moved up, because each level holds a descriptor and a piece of the stack.
    const MAX_DEPTH: usize = 64;

    fn empty(&mut self, directory: &OwnedFd, path: &Path, depth: usize) -> Result<(), FsError> {
        for (name, kind) in entries(directory, path)? {
            self.patience.check()?;
            let below = path.join(&name);
            if kind == Kind::Directory {
                self.remove_directory(directory, &name, &below, depth + 1)?;
            } else {
                remove_name(directory, &name, AtFlags::empty(), &below)?;
            }
        }
        Ok(())
    }

    fn remove_directory(&mut self, parent: &OwnedFd, name: &OsStr, path: &Path, depth: usize) -> Result<(), FsError> {
        if depth > Self::MAX_DEPTH && self.move_up(parent, name) {
            return Ok(());
        }
        if let Some(directory) = open_below(parent, name, path)? {
            self.empty(&directory, path, depth)?;
        }
        remove_name(parent, name, AtFlags::REMOVEDIR, path)
    }

    fn move_up(&mut self, parent: &OwnedFd, name: &OsStr) -> bool {
        self.counter += 1;
        let upper = OsString::from(format!("{TEMPORARY_PREFIX}removal-{}-{}", std::process::id(), self.counter));
        let moved = renameat(parent, name, &self.top, &upper).is_ok();
        if moved {
            self.moved.push(upper);
        }
        moved
    }
}

fn remove_name(directory: &OwnedFd, name: &OsStr, flags: AtFlags, path: &Path) -> Result<(), FsError> {
    match unlinkat(directory, name, flags) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(FsError::system("remove", path, errno)),
    }
}
