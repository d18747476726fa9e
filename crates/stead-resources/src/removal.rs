//! What is destroyed when something is removed or makes way.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use stead_core::call::Failure;
use stead_core::destruction::{Entries, Item, ItemKind};
use stead_core::visible::{bytes_text, path_text};
use stead_system::fs::{self, AsHandle, Coverage, FileKind, FsError, Handle, How, Patience, Place};

/// What is at a place, as `shown` in messages; `None` when nothing is there.
///
/// Guarantees: what comes and goes meanwhile does not fail. Caveats: what is mounted below is not listed, and neither is
/// what may not be listed, is very deep, or comes after very many others; the entries say so.
pub(crate) fn item(place: &Place, shown: String, patience: &Patience) -> Result<Option<Item>, Failure> {
    let Some(status) = place.status()? else { return Ok(None) };
    let kind = match status.kind {
        FileKind::Symlink => ItemKind::Symlink { target: target(place) },
        FileKind::File => ItemKind::File { size: status.size },
        FileKind::Directory => ItemKind::Directory(entries(place, patience)?),
        FileKind::Special => ItemKind::Special,
    };
    Ok(Some(Item { path: shown, kind }))
}

/// What a link leads to; nothing, where it is another thing by now.
fn target(place: &Place) -> String {
    place.read_link().map(|target| bytes_text(&target).into_owned()).unwrap_or_default()
}

/// Each level takes a descriptor.
const MAX_DEPTH: usize = 256;

/// How many entries are counted. They take some 25 MB while they are sorted, and a second where nothing is cached.
const MAX_ENTRIES: usize = 250_000;

fn entries(place: &Place, patience: &Patience) -> Result<Entries, FsError> {
    let mut walk = Walk { patience, room: MAX_ENTRIES, found: Entries::default() };
    walk.descend(&place.directory(), place.name(), Path::new(""), MAX_DEPTH)?;
    Ok(walk.found)
}

/// What is below an open directory.
pub(crate) fn below(directory: &impl AsHandle, patience: &Patience) -> Result<Entries, FsError> {
    let mut walk = Walk { patience, room: MAX_ENTRIES, found: Entries::default() };
    walk.descend(directory, OsStr::new("."), Path::new(""), MAX_DEPTH)?;
    Ok(walk.found)
}

/// Notes what is below a directory, the directories before what is in them.
struct Walk<'a> {
    patience: &'a Patience,
    /// How many more entries are read.
    room: usize,
    found: Entries,
}

impl Walk<'_> {
    /// Notes what is in the directory of that name, whose path is `below` the top.
    fn descend(&mut self, parent: &impl AsHandle, name: &OsStr, below: &Path, depth: usize) -> Result<(), FsError> {
        self.patience.check()?;
        let directory = match fs::open_below(parent, name, below) {
            Ok(Some(directory)) => directory,
            // It is gone by now.
            Ok(None) => return Ok(()),
            // What cannot be listed does not fail it: a set reports it, if that matters.
            Err(_) => {
                self.found.mark_incomplete();
                return Ok(());
            }
        };
        match fs::entries_up_to(&directory, below, self.room) {
            Ok((entries, Coverage::Complete)) => self.note(&directory, entries, below, depth),
            Ok((entries, Coverage::Partial)) => {
                self.found.mark_incomplete();
                self.note(&directory, entries, below, depth)
            }
            Err(_) => {
                self.found.mark_incomplete();
                Ok(())
            }
        }
    }

    fn note(
        &mut self,
        directory: &Handle,
        entries: BTreeMap<OsString, FileKind>,
        below: &Path,
        depth: usize,
    ) -> Result<(), FsError> {
        self.room -= entries.len();
        for (name, kind) in entries {
            let path = below.join(&name);
            let end = if kind == FileKind::Directory { "/" } else { "" };
            self.found.push(format!("{}{end}", path_text(&path)));
            match (kind, depth) {
                (FileKind::Directory, 0) => self.found.mark_incomplete(),
                (FileKind::Directory, depth) => self.descend(directory, &name, &path, depth - 1)?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Returns whether a directory holds anything.
pub(crate) fn is_filled(place: &Place) -> Result<bool, FsError> {
    let opened = place.open(How::Directory)?;
    let entries = opened.map(|directory| fs::entries(&directory, place.path())).transpose()?;
    Ok(entries.is_some_and(|entries| !entries.is_empty()))
}

/// A path as it is shown: what the instance states, and what is below it.
pub(crate) fn shown(stated: &str, below: &Path) -> String {
    path_text(&Path::new(stated).join(below)).into_owned()
}

/// A directory with nothing in it.
pub(crate) fn empty_directory() -> ItemKind {
    ItemKind::Directory(Entries::default())
}
