//! Files that commands write.

use std::path::Path;

use rustix::io::Errno;
use stead_host::fs::{Former, FsError, Ownership, Place, Replacement, Writes};

/// Writes a file, at once and whole. No link that another user made leads it elsewhere.
pub(super) fn write(file: &Path, content: &[u8], mode: u32, writes: &Writes) -> Result<(), FsError> {
    write_as(file, content, (mode, Ownership::default()), writes)
}

/// The same with an owner and a group.
pub(super) fn write_as(
    file: &Path,
    content: &[u8],
    (mode, ownership): (u32, Ownership),
    writes: &Writes,
) -> Result<(), FsError> {
    let place = place(file, writes)?;
    let new = Replacement::begin(&place, Former::Any)?;
    new.write(content)?;
    new.finish(mode, ownership)?;
    Ok(())
}

/// Where a file is, or will be. Its directory must exist.
pub(super) fn place(path: &Path, writes: &Writes) -> Result<Place, FsError> {
    Place::find(path, writes)?.ok_or_else(|| failed("write", path, Errno::NOENT))
}

/// That the system refuses something.
pub(super) fn failed(doing: &'static str, path: &Path, errno: Errno) -> FsError {
    FsError::System { doing, path: path.to_owned(), source: errno.into() }
}
