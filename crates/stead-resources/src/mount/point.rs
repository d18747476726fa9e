//! Mount points, by paths that nobody else can make lead elsewhere.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use stead_core::call::Failure;
use stead_system::fs::{self, FsError, Handle, SystemPath, open_directory};

use crate::input::cannot;

/// A name in an open directory.
pub(super) struct Point {
    directory: Handle,
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
        match fs::is_link(&directory, name) {
            Ok(true) => match directory_at(path)? {
                // It has no links any more.
                Some((_, real)) => Self::find(&real),
                None => Ok(None),
            },
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            _ => Ok(Some(Self { directory, name: name.to_owned(), path: real.join(name) })),
        }
    }

    /// Opens what is mounted there, or else what is there.
    pub(super) fn open(&self) -> io::Result<Handle> {
        fs::look_at(&self.directory, &self.name)
    }

    /// A path to it that is good for this process while this value lives. Unlike [`Point::open`] it does not keep busy what
    /// is mounted there.
    pub(super) fn through_descriptor(&self) -> PathBuf {
        fs::path_by_handle(&self.directory).join(&self.name)
    }
}

/// A directory, and its path without links.
fn directory_at(path: &Path) -> Result<Option<(Handle, PathBuf)>, Failure> {
    let opened = match open_directory(&SystemPath::here(path)) {
        Err(FsError::System { source, .. }) if source.kind() == ErrorKind::NotADirectory => None,
        opened => opened?,
    };
    let with_path = |directory: Handle| {
        let real = fs::real_path(&directory).map_err(|error| cannot("examine", path, error))?;
        Ok((directory, real))
    };
    opened.map(with_path).transpose()
}
