//! Open files and directories, and how they are opened.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::buffer::spare_capacity;
use rustix::fs::{IFlags, Mode, OFlags, fstat, ioctl_getflags, openat, readlinkat};
use rustix::io::Errno;

use super::status::Status;
use crate::error::FsError;

/// An open file, an open directory, or a look at something. It is closed when this is dropped.
pub type Handle = OwnedFd;

/// A [`Handle`] of somebody else, or whatever else is open.
pub use std::os::fd::{AsFd as AsHandle, BorrowedFd as HandleRef};

/// How something is opened. None of these waits for anybody, or makes a terminal that of this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// To be examined, without a right to read it. Of a link that is the last component, the link itself.
    Look,
    /// As a directory to look names up in, without a right to list it.
    Passage,
    /// For reading the names in a directory.
    Directory,
    /// For reading.
    Read,
}

impl How {
    pub(super) const fn flags(self) -> OFlags {
        match self {
            Self::Look => OFlags::PATH.union(OFlags::CLOEXEC),
            Self::Passage => OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC),
            Self::Directory => OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC),
            Self::Read => OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC),
        }
    }
}

/// The status of what is open; `path` is for messages.
pub fn status_of(opened: &impl AsHandle, path: &Path) -> Result<Status, FsError> {
    fstat(opened).map(Status::from).map_err(|errno| FsError::system("examine", path, errno))
}

/// The target of a link that was opened to be examined.
pub fn link_target_of(link: &impl AsHandle, path: &Path) -> Result<PathBuf, FsError> {
    let target = readlinkat(link, "", Vec::new()).map_err(|errno| FsError::system("examine", path, errno))?;
    Ok(OsString::from_vec(target.into_bytes()).into())
}

/// Returns whether a name in a directory is that of a link. Asks no file system that is mounted there.
pub fn is_link(directory: &impl AsHandle, name: &OsStr) -> io::Result<bool> {
    match readlinkat(directory, name, Vec::new()) {
        Ok(_) => Ok(true),
        Err(Errno::INVAL) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Opens what has a name in a directory to be examined; a link itself.
pub fn look_at(directory: &impl AsHandle, name: &OsStr) -> io::Result<Handle> {
    Ok(openat(directory, name, How::Look.flags() | OFlags::NOFOLLOW, Mode::empty())?)
}

/// Opens a directory again, for reading the names in it and for being changed; `path` is for messages.
pub fn reopen_directory(directory: &impl AsHandle, path: &Path) -> Result<Handle, FsError> {
    let opened = openat(directory, ".", How::Directory.flags(), Mode::empty());
    opened.map_err(|errno| FsError::system("open", path, errno))
}

/// A path to what is open, which is good for this process while it is open.
pub fn path_by_handle(opened: &impl AsHandle) -> PathBuf {
    Path::new("/proc/self/fd").join(opened.as_fd().as_raw_fd().to_string())
}

/// Where what is open is, by a path without links.
pub fn real_path(opened: &impl AsHandle) -> io::Result<PathBuf> {
    std::fs::read_link(path_by_handle(opened))
}

/// Returns whether a flag of the file system protects what is open even from root. Not every file system has flags.
pub fn is_immutable(opened: &impl AsHandle) -> bool {
    // What was opened for a look only does not tell; "." of it is the same directory, opened for more.
    let directory = || ioctl_getflags(openat(opened, ".", How::Directory.flags(), Mode::empty())?);
    let flags = ioctl_getflags(opened).or_else(|_| directory());
    flags.is_ok_and(|flags| flags.intersects(IFlags::IMMUTABLE | IFlags::APPEND))
}

/// Returns whether reading failed because the file was opened to be examined only.
pub fn is_not_readable(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::BADF.raw_os_error())
}

/// A name or a path that was read as bytes: not each of them is text.
pub fn os_text(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}

/// Like [`os_text`], owned.
pub fn os_string(bytes: Vec<u8>) -> OsString {
    OsString::from_vec(bytes)
}

/// Reads from a place in a file, which stays at its own place. Returns how much that was.
pub fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    file.read_at(buffer, at)
}

/// Fills the buffer from a place in a file, which stays at its own place.
pub fn read_exact_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
    file.read_exact_at(buffer, at)
}

/// Reads by one call, as much as there is room for behind what the buffer holds. Returns how much that was.
pub fn read_once(file: &File, buffer: &mut Vec<u8>) -> io::Result<usize> {
    Ok(rustix::io::read(file, spare_capacity(buffer))?)
}
