//! A bundle that comes in parts, each kept as it comes.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use stead_core::bundle::{Bundle, Reach};
use stead_engine::error_chain;
use stead_release::Digest;
use stead_resources::transfer::TransferStart;
use stead_system::folder::{Folder, FolderError};
use stead_system::fs::reason;

use super::FetchError;

/// A bundle by its name, which grows in a folder of its own. `fetch` writes what is missing into the file, and returns false if the
/// source does not have it.
///
/// Guarantees: what broke off goes on where it was, also in another process, and what is whole is not fetched again.
pub(crate) fn grown(
    place: &Path,
    name: &Digest,
    mut fetch: impl FnMut(TransferStart<'_>, &File) -> Result<bool, FetchError>,
) -> Result<Option<Vec<u8>>, FetchError> {
    let folder = Folder::create(place).map_err(|error| unusable(&error))?;
    for other in folder.names().map_err(|error| unusable(&error))? {
        if other.to_str() != Some(name.as_str()) {
            folder.remove_unflushed(&other).map_err(|error| unusable(&error))?;
        }
    }
    let mut to = folder.open(name.as_str()).map_err(|error| unusable(&error))?;
    let is_it = |bytes: &[u8]| Bundle::decode(bytes, Reach::Machine, Some(name.as_str())).is_ok();
    let had = content(&mut to)?;
    if is_it(&had) {
        return Ok(Some(had));
    }
    if !fetch(TransferStart::Part, &to)? {
        return Ok(None);
    }
    let bytes = content(&mut to)?;
    if had.is_empty() || is_it(&bytes) {
        return Ok(Some(bytes));
    }
    // What was there may not have been the beginning of it.
    if fetch(TransferStart::Anew, &to)? { content(&mut to).map(Some) } else { Ok(None) }
}

pub(super) fn unusable(error: &FolderError) -> FetchError {
    FetchError::new(error_chain(error))
}

/// All of a file.
pub(super) fn content(file: &mut File) -> Result<Vec<u8>, FetchError> {
    let mut bytes = Vec::new();
    let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_end(&mut bytes));
    read.map(|_| bytes).map_err(|error| FetchError::new(reason(&error)))
}
