//! Whole trees, through descriptors.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, fstat, openat, renameat, unlinkat};
use rustix::io::Errno;

use super::TEMPORARY_PREFIX;
use super::listing::entries;
use super::mounts::first_mount;
use super::place::Place;
use super::walk::open_resolved;
use crate::error::FsError;
use crate::kind::FileKind;
use crate::waiting::Patience;

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
    place.writes().keep_tree(place)?;
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
            if kind == FileKind::Directory {
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
