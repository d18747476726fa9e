//! The file that is there.

use std::fs::File;
use std::io;
use std::path::Path;

use stead_core::call::Failure;
use stead_system::fs::{self, FileKind, FsError, Handle, How, Status};

use super::Properties;
use crate::input::blocked;

/// An open file with its status.
pub(crate) struct Current {
    pub(crate) file: File,
    pub(crate) status: Status,
}

impl Current {
    /// Opens it without waiting for anything; when its content is not needed, it may be unreadable.
    pub(super) fn open(
        path: &Path,
        open: impl Fn(How) -> Result<Option<Handle>, FsError>,
        reads: bool,
    ) -> Result<Option<Self>, Failure> {
        let opened = match open(How::Read) {
            // A socket cannot be opened at all, and what cannot be read can still be examined.
            Err(FsError::System { source, .. }) if fs::is_not_openable(&source) => open(How::Look)?,
            Err(FsError::System { source, .. }) if !reads && source.kind() == io::ErrorKind::PermissionDenied => {
                open(How::Look)?
            }
            Err(error) => return Err(instead(error)),
            Ok(opened) => opened,
        };
        let Some(fd) = opened else { return Ok(None) };
        let status = fs::status_of(&fd, path)?;
        match status.kind {
            FileKind::File => Ok(Some(Self { file: fd.into(), status })),
            found => Err(not_a_file(found)),
        }
    }
}

/// The failure of an error; of another kind of node it says how to get rid of it.
pub(super) fn instead(error: FsError) -> Failure {
    if let FsError::WrongKind { found, .. } = error { not_a_file(found) } else { error.into() }
}

fn not_a_file(found: FileKind) -> Failure {
    let hint = match found {
        FileKind::Symlink => {
            "Name the path that it leads to, or remove the link with Stead/Symlink and '_exist: false'"
        }
        FileKind::Directory => {
            "Correct the path, or remove the directory first, with Stead/Directory and '_exist: false'"
        }
        FileKind::File | FileKind::Special => "It is left alone",
    };
    blocked(Properties::PATH, format!("there is a {} where the file should be. {hint}", found.word()))
}
