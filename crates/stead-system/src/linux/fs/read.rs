//! Files that are read whole, up to a size.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::Path;

use super::handle::{How, status_of};
use super::path::SystemPath;
use super::status::Status;
use super::walk::open;
use crate::error::FsError;
use crate::kind::FileKind;

/// A regular file that was read.
pub struct Content {
    /// As it was before it was read.
    pub status: Status,
    /// All of it.
    pub bytes: Vec<u8>,
}

/// Reads the file at a path, which is not a link; `None` when nothing is there.
///
/// Guarantees: those of the module. What is not a regular file, or has more than `max` bytes, is refused; no more than that
/// is ever in memory, even when the file grows while it is read.
pub fn read(path: &SystemPath, max: u64) -> Result<Option<Content>, FsError> {
    open(path, How::Read)?.map(|file| read_open(file, path, max)).transpose()
}

/// Reads a file that was opened; `path` is for messages.
pub fn read_open(file: OwnedFd, path: &Path, max: u64) -> Result<Content, FsError> {
    let status = status_of(&file, path)?;
    if status.kind != FileKind::File {
        return Err(FsError::WrongKind { path: path.to_owned(), found: status.kind, wanted: FileKind::File });
    }
    let too_large = || FsError::TooLarge { path: path.to_owned(), max };
    if status.size > max {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(status.size).unwrap_or_default() + 1);
    let read = File::from(file).take(max + 1).read_to_end(&mut bytes);
    read.map_err(|source| FsError::System { doing: "read", path: path.to_owned(), source })?;
    if bytes.len() as u64 > max { Err(too_large()) } else { Ok(Content { status, bytes }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_or_not_a_file_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| SystemPath::here(root.path().join(name));
        std::fs::write(&*at("f"), "12345").unwrap();
        assert_eq!(read(&at("f"), 5).unwrap().unwrap().bytes, b"12345");
        assert!(matches!(read(&at("f"), 4), Err(FsError::TooLarge { max: 4, .. })));
        assert!(matches!(
            read(&SystemPath::here(root.path()), 4),
            Err(FsError::WrongKind { found: FileKind::Directory, .. })
        ));
        assert!(read(&at("g"), 4).unwrap().is_none());
    }

    #[test]
    fn what_grows_while_it_is_read_is_refused() {
        // Its size is given as 0.
        assert!(matches!(read(&SystemPath::here("/proc/version"), 16), Err(FsError::TooLarge { max: 16, .. })));
    }
}
