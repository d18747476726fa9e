//! What is destroyed when something is removed or makes way.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::OFlags;
use stead_core::call::Failure;
use stead_core::destruction::{Item, ItemKind};
use stead_host::fs::{self, FsError, Kind, Patience, Place, Status};

/// What is at a place, as `shown` in messages; `None` when nothing is there.
///
/// Caveats: what is mounted below is not counted, and neither is what may not be listed or is very deep.
pub(crate) fn item(place: &Place, shown: String, patience: &Patience) -> Result<Option<Item>, Failure> {
    let Some(status) = place.status()? else { return Ok(None) };
    let kind = match status.kind {
        Kind::Directory => ItemKind::Directory { entries_below: entries_below(place, patience)? },
        _ => leaf(place, &status)?,
    };
    Ok(Some(Item { path: shown, kind }))
}

fn leaf(place: &Place, status: &Status) -> Result<ItemKind, FsError> {
    Ok(match status.kind {
        Kind::Symlink => ItemKind::Symlink { target: String::from_utf8_lossy(&place.read_link()?).into_owned() },
        Kind::File => ItemKind::File { size: status.size },
        Kind::Directory | Kind::Special => ItemKind::Special,
    })
}

/// Each level takes a descriptor.
const MAX_DEPTH: usize = 256;

/// How many files, directories and others are below a directory.
fn entries_below(place: &Place, patience: &Patience) -> Result<u64, FsError> {
    match fs::open_below(&place.directory(), place.name(), place.path()) {
        Ok(Some(directory)) => count(&directory, place.path(), patience, MAX_DEPTH),
        _ => Ok(0),
    }
}

fn count(directory: &OwnedFd, path: &Path, patience: &Patience, depth: usize) -> Result<u64, FsError> {
    let Ok(entries) = fs::entries(directory, path) else { return Ok(0) };
    let mut found = entries.len() as u64;
    for (name, _) in entries.into_iter().filter(|(_, kind)| *kind == Kind::Directory && depth > 0) {
        patience.check()?;
        if let Ok(Some(below)) = fs::open_below(directory, &name, path) {
            found += count(&below, path, patience, depth - 1)?;
        }
    }
    Ok(found)
}

/// Whether a directory holds anything.
pub(crate) fn is_filled(place: &Place) -> Result<bool, FsError> {
    let opened = place.open(OFlags::RDONLY | OFlags::DIRECTORY)?;
    let entries = opened.map(|directory| fs::entries(&directory, place.path())).transpose()?;
    Ok(entries.is_some_and(|entries| !entries.is_empty()))
}

/// A path as it is shown: what the instance states, and what is below it.
pub(crate) fn shown(stated: &str, below: &Path) -> String {
    Path::new(stated).join(below).display().to_string()
}

/// A directory with nothing in it.
pub(crate) fn empty_directory() -> ItemKind {
    ItemKind::Directory { entries_below: 0 }
}
