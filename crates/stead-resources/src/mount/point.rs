//! Mount points, by paths that nobody else can make lead elsewhere.

#![expect(clippy::disallowed_methods, reason = "it asks the running kernel, and is not called for another system")]

use std::ffi::OsString;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;
use stead_core::call::Failure;
use stead_system::fs::{FsError, SystemPath, open_directory};

use crate::input::cannot;

/// A name in an open directory.
pub(super) struct Point {
    directory: OwnedFd,
    name: OsString,
    /// Its path without links, as the kernel lists it.
    pub(super) path: PathBuf,
}

impl Point {
    /// `None` where nothing is there. Fails where another user placed a link on the way.
    pub(super) fn find(path: &Path) -> Result<Option<Self>, Failure> {
        let Some((parent, name)) = path.parent().zip(path.file_name()) else {
            return Ok(directory_at(path)?.map(|(directory, path)| Self { directory, name: ".".into(), path }));
        };
        let Some((directory, real)) = directory_at(parent)? else { return Ok(None) };
        match readlinkat(&directory, name, Vec::new()) {
            Ok(_) => match directory_at(path)? {
                // It has no links any more.
                Some((_, real)) => Self::find(&real),
                None => Ok(None),
            },
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(_) => Ok(Some(Self { directory, name: name.to_owned(), path: real.join(name) })),
        }
    }

    /// Opens what is mounted there, or else what is there.
    pub(super) fn open(&self) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(&self.directory, &self.name, flags, Mode::empty())
    }

    /// A path to it that is good for this process while this value lives. Unlike [`Point::open`] it does not keep busy what
    /// is mounted there.
    pub(super) fn through_descriptor(&self) -> PathBuf {
        by_descriptor(&self.directory).join(&self.name)
    }
}

/// A path to what is open that is good for this process meanwhile.
pub(super) fn by_descriptor(opened: &OwnedFd) -> PathBuf {
    Path::new("/proc/self/fd").join(opened.as_raw_fd().to_string())
}

/// A directory, and its path without links.
fn directory_at(path: &Path) -> Result<Option<(OwnedFd, PathBuf)>, Failure> {
    let opened = match open_directory(&SystemPath::here(path)) {
        Err(FsError::System { source, .. }) if source.kind() == std::io::ErrorKind::NotADirectory => None,
        opened => opened?,
    };
    let with_path = |directory: OwnedFd| {
        let real = std::fs::read_link(by_descriptor(&directory)).map_err(|error| cannot("examine", path, error))?;
        Ok((directory, real))
    };
    opened.map(with_path).transpose()
}
