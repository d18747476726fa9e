//! The names in a directory.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, RawDir, statat};
use rustix::io::Errno;

use super::handle::Handle;
use crate::error::FsError;
use crate::kind::FileKind;

/// Returns the names in a directory, in the order of their bytes.
pub fn entries(directory: &impl AsFd, path: &Path) -> Result<BTreeMap<OsString, FileKind>, FsError> {
    entries_up_to(directory, path, usize::MAX).map(|(found, _)| found)
}

/// The part of a directory that was read.
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
) -> Result<(BTreeMap<OsString, FileKind>, Coverage), FsError> {
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

/// Hands on every name in a directory as the system lists it, with what has it where the system says so; for those who read
/// thousands of directories.
pub fn for_each_name(directory: Handle, mut each: impl FnMut(&OsStr, Option<FileKind>)) -> io::Result<()> {
    /// So many bytes of names are read at a time; one name takes at most a few hundred.
    const NAMES: usize = 16 << 10;
    let mut buffer = [MaybeUninit::uninit(); NAMES];
    let mut entries = RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            each(name, Some(entry.file_type()).filter(|kind| *kind != FileType::Unknown).map(FileKind::from));
        }
    }
    Ok(())
}

fn kind_of(directory: BorrowedFd<'_>, name: &OsStr, listed: FileType) -> Result<Option<FileKind>, Errno> {
    if listed != FileType::Unknown {
        return Ok(Some(listed.into()));
    }
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode).into())),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}
