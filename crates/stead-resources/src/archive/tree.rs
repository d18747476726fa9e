//! Comparing a tree with the listing of an archive, and making it the same.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};

use sha2::Sha256;
use stead_core::call::{Execution, Failure};
use stead_core::destruction::{Entries, Item, ItemKind};
use stead_core::digest::hex;
use stead_host::provider::Context;
use stead_system::fs::{self, FileKind, Former, Handle, How, Ownership, Place, Replacement, Status, Writes};

use super::Properties;
use super::format;
use super::listing::{Content, Entry, Listing};
use super::reading::unreadable;
use crate::checksum::digest;
use crate::directory::{Difference, Drift};
use crate::file::content;
use crate::input::{blocked, cannot, transient};
use crate::removal;

/// What the owner of a directory needs to put something into it.
const OWNER_ALL: u32 = 0o700;

/// A tree that is to have what an archive lists.
pub(super) struct Tree<'a> {
    pub(super) cx: &'a Context,
    pub(super) listing: &'a Listing,
    pub(super) ownership: Ownership,
    /// The top as the instance states it, and what that means.
    pub(super) stated: &'a str,
    pub(super) path: &'a Path,
}

/// What a tree has differently.
#[derive(Default)]
pub(super) struct Comparison {
    pub(super) drift: Drift,
    /// Whether any file or link of the archive is there.
    pub(super) has_any: bool,
    /// The files that are to be written, by the entries that have their content.
    files: BTreeMap<usize, Vec<PathBuf>>,
    /// The new directories in which nothing can be created once they have their mode.
    closed: Vec<(PathBuf, u32)>,
}

impl Comparison {
    /// Of what is to be removed.
    pub(super) fn of_removal(drift: Drift) -> Self {
        let has_any = !drift.properties().is_empty();
        Self { drift, has_any, ..Self::default() }
    }
}

/// An open directory of the tree; without a descriptor where it does not exist.
struct Level<'l> {
    below: &'l Path,
    directory: Option<Handle>,
}

impl Tree<'_> {
    /// Compares, and with [`Execution::Actual`] makes directories and links; the files are left to [`Tree::write_files`].
    ///
    /// A directory gets its mode and owner as it is made: one that is there is never touched again.
    pub(super) fn compare(&self, top: Option<&Handle>, execution: Execution) -> Result<Comparison, Failure> {
        let mut comparison = Comparison::default();
        let patience = self.cx.patience();
        let top = top.map(Handle::try_clone).transpose().map_err(|error| cannot("open", self.path, error))?;
        let mut levels = vec![Level { below: Path::new(""), directory: top }];
        for (below, entry) in self.listing.iter() {
            patience.check()?;
            while levels.last().is_some_and(|level| Some(level.below) != below.parent()) {
                levels.pop();
            }
            let parent = levels.last().and_then(|level| level.directory.as_ref());
            let spot = self.spot(parent, below)?;
            match entry {
                Entry::Directory { mode } => {
                    let directory = self.directory(&spot, *mode, execution, &mut comparison)?;
                    levels.push(Level { below, directory });
                }
                Entry::File(wanted) => self.file(&spot, wanted, &mut comparison)?,
                Entry::Link { target } => self.link(&spot, target, execution, &mut comparison)?,
            }
        }
        Ok(comparison)
    }

    fn spot<'s>(&self, parent: Option<&Handle>, below: &'s Path) -> Result<Spot<'s>, Failure> {
        let name = below.file_name().unwrap_or_default();
        let within = |parent| Place::within(parent, name, self.path.join(below), &self.cx.writes);
        let place = parent.map(within).transpose()?;
        let found = place.as_ref().map(Place::status).transpose()?.flatten();
        Ok(Spot { below, place, found })
    }

    fn shown(&self, below: &Path) -> String {
        removal::shown(self.stated, below)
    }

    fn directory(
        &self,
        spot: &Spot<'_>,
        mode: u32,
        execution: Execution,
        comparison: &mut Comparison,
    ) -> Result<Option<Handle>, Failure> {
        match (&spot.found, &spot.place) {
            // It may hold more than the archive, or be part of the system: its mode and owner are not the archive's.
            (Some(found), Some(place)) if found.kind == FileKind::Directory => {
                Ok(fs::open_below(&place.directory(), place.name(), place.path())?)
            }
            (Some(found), _) => Err(self.in_the_way(spot.below, found.kind, FileKind::Directory)),
            (None, place) => {
                comparison.drift.note(Difference::Missing, spot.below);
                if self.listing.is_empty_directory(spot.below) {
                    let kind = ItemKind::Directory(Entries::default());
                    comparison.drift.effects.creates.push(Item { path: self.shown(spot.below), kind });
                }
                if mode & OWNER_ALL != OWNER_ALL {
                    comparison.closed.push((spot.below.to_owned(), mode));
                }
                let place = place.as_ref().filter(|_| execution == Execution::Actual);
                Ok(place.map(|place| place.make_directory_with(mode | OWNER_ALL, self.ownership)).transpose()?)
            }
        }
    }

    fn in_the_way(&self, below: &Path, found: FileKind, wanted: FileKind) -> Failure {
        let path = self.path.join(below);
        let (found, wanted) = (found.word(), wanted.word());
        blocked(
            Properties::PATH,
            format!("'{}' is a {found}, the archive has a {wanted} there. Remove it first", path.display()),
        )
    }

    fn file(&self, spot: &Spot<'_>, wanted: &Content, comparison: &mut Comparison) -> Result<(), Failure> {
        comparison.has_any |= spot.found.is_some();
        let path = || self.shown(spot.below);
        let content = |size, sha256| ItemKind::Content { size, sha256 };
        match (&spot.found, &spot.place) {
            (Some(found), Some(place)) if found.kind == FileKind::File => {
                let same = has_content(place, found, wanted)?;
                if same && found.mode == wanted.mode && self.ownership.beyond(found).is_none() {
                    return Ok(());
                }
                if !same {
                    let effects = &mut comparison.drift.effects;
                    effects.destroys.push(Item { path: path(), kind: content(found.size, None) });
                    let digest = Some(hex(&wanted.sha256));
                    effects.creates.push(Item { path: path(), kind: content(wanted.size, digest) });
                }
            }
            (Some(found), _) if found.kind == FileKind::Directory => {
                return Err(self.in_the_way(spot.below, found.kind, FileKind::File));
            }
            (_, place) => {
                self.replaces(place.as_ref(), spot.below, comparison)?;
                let kind = ItemKind::File { size: wanted.size };
                comparison.drift.effects.creates.push(Item { path: path(), kind });
            }
        }
        comparison.drift.note(spot.difference(), spot.below);
        comparison.files.entry(wanted.number).or_default().push(spot.below.to_owned());
        Ok(())
    }

    /// Notes what is lost at a place.
    fn replaces(&self, place: Option<&Place>, below: &Path, comparison: &mut Comparison) -> Result<(), Failure> {
        let Some(place) = place else { return Ok(()) };
        let lost = removal::item(place, self.shown(below), &self.cx.patience())?;
        comparison.drift.effects.destroys.extend(lost);
        Ok(())
    }

    fn link(
        &self,
        spot: &Spot<'_>,
        target: &OsStr,
        execution: Execution,
        comparison: &mut Comparison,
    ) -> Result<(), Failure> {
        comparison.has_any |= spot.found.is_some();
        match (&spot.found, &spot.place) {
            (Some(found), Some(place))
                if found.kind == FileKind::Symlink
                    && self.ownership.beyond(found).is_none()
                    && place.read_link()? == target.as_encoded_bytes() =>
            {
                return Ok(());
            }
            (Some(found), _) if found.kind == FileKind::Directory => {
                return Err(self.in_the_way(spot.below, found.kind, FileKind::Symlink));
            }
            (_, place) => self.replaces(place.as_ref(), spot.below, comparison)?,
        }
        comparison.drift.note(spot.difference(), spot.below);
        let kind = ItemKind::Symlink { target: target.to_string_lossy().into_owned() };
        comparison.drift.effects.creates.push(Item { path: self.shown(spot.below), kind });
        match spot.place.as_ref().filter(|_| execution == Execution::Actual) {
            Some(place) => Ok(place.replace_by_link(target, self.ownership)?),
            None => Ok(()),
        }
    }

    /// Writes the files that differ, and closes the directories that are to be closed.
    pub(super) fn write_files(&self, archive: &File, top: &Handle, comparison: &mut Comparison) -> Result<(), Failure> {
        let mut files = std::mem::take(&mut comparison.files);
        if !files.is_empty() {
            format::for_each(&mut &*archive, &self.cx.patience(), &mut |number, _, content| {
                let paths = files.remove(&number).unwrap_or_default();
                self.write(top, &paths, content)
            })?;
        }
        if !files.is_empty() {
            return Err(changed_meanwhile());
        }
        for (below, mode) in comparison.closed.iter().rev() {
            let (directory, path) = (self.descend(top, below)?, self.path.join(below));
            self.cx.writes.change(&directory, &path, Ownership::default(), Some(*mode))?;
        }
        Ok(())
    }

    fn write(&self, top: &Handle, paths: &[PathBuf], content: &mut dyn Read) -> Result<(), Failure> {
        let mut first: Option<File> = None;
        for below in paths {
            let Some(Entry::File(wanted)) = self.listing.get(below) else { continue };
            let directory = self.descend(top, below.parent().unwrap_or(Path::new("")))?;
            let name = below.file_name().unwrap_or_default();
            let place = Place::within(&directory, name, self.path.join(below), &self.cx.writes)?;
            let replacement = Replacement::begin(&place, Former::Any)?;
            match &first {
                Some(first) => content::copy(first, &replacement)?,
                None => copy(content, &replacement, wanted)?,
            }
            let written = replacement.finish(wanted.mode, self.ownership)?;
            first = first.or(written);
        }
        Ok(())
    }

    /// Opens a directory of the listing, which exists by now.
    fn descend(&self, top: &Handle, below: &Path) -> Result<Handle, Failure> {
        let mut at = top.try_clone().map_err(|error| cannot("open", self.path, error))?;
        let mut path = self.path.to_owned();
        for name in below {
            path.push(name);
            let next = fs::open_below(&at, name, &path)?;
            at =
                next.ok_or_else(|| transient(Properties::PATH, format!("'{}' was removed meanwhile", path.display())))?;
        }
        Ok(at)
    }

    /// Removes the files and links of the archive, and its directories where nothing else is in them.
    pub(super) fn remove(&self, top: &Handle, execution: Execution) -> Result<Drift, Failure> {
        let mut drift = Drift::default();
        if execution == Execution::Actual && !fs::mounts_below(top).is_empty() {
            self.remove_below(top, Path::new(""), Execution::WhatIf, &mut Drift::default())?;
        }
        self.remove_below(top, Path::new(""), execution, &mut drift)?;
        Ok(drift)
    }

    fn remove_below(
        &self,
        directory: &Handle,
        below: &Path,
        execution: Execution,
        drift: &mut Drift,
    ) -> Result<(), Failure> {
        let patience = self.cx.patience();
        for (name, kind) in fs::entries(directory, &self.path.join(below))? {
            patience.check()?;
            let path = below.join(&name);
            let place = Place::within(directory, &name, self.path.join(&path), &self.cx.writes)?;
            let inner = match (self.listing.get(&path), kind) {
                (Some(Entry::Directory { .. }), FileKind::Directory) => {
                    let Some(inner) = fs::open_below(directory, &name, place.path())? else { continue };
                    if !self.is_removed_whole(&inner, &path)? {
                        self.remove_below(&inner, &path, execution, drift)?;
                        continue;
                    }
                    Some(inner)
                }
                (Some(Entry::File(_) | Entry::Link { .. }), kind) if kind != FileKind::Directory => None,
                _ => continue,
            };
            drift.note(Difference::Extra, &path);
            drift.effects.destroys.extend(removal::item(&place, self.shown(&path), &patience)?);
            match (execution, inner) {
                (Execution::WhatIf, _) => {}
                (Execution::Actual, None) => _ = place.remove()?,
                // One by one: what appears there meanwhile stays, and then so does the directory.
                (Execution::Actual, Some(inner)) => {
                    self.remove_below(&inner, &path, execution, &mut Drift::default())?;
                    place.remove_directory()?;
                }
            }
        }
        Ok(())
    }

    /// Returns whether all that is in a directory is of the archive.
    fn is_removed_whole(&self, directory: &Handle, below: &Path) -> Result<bool, Failure> {
        for (name, kind) in fs::entries(directory, &self.path.join(below))? {
            let path = below.join(&name);
            let whole = match (self.listing.get(&path), kind) {
                (Some(Entry::Directory { .. }), FileKind::Directory) => {
                    let inner = fs::open_below(directory, &name, &self.path.join(&path))?;
                    inner.map_or(Ok(true), |inner| self.is_removed_whole(&inner, &path))?
                }
                (Some(Entry::File(_) | Entry::Link { .. }), kind) => kind != FileKind::Directory,
                _ => false,
            };
            if !whole {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A path of the listing, and what is there.
struct Spot<'s> {
    below: &'s Path,
    place: Option<Place>,
    found: Option<Status>,
}

impl Spot<'_> {
    fn difference(&self) -> Difference {
        if self.found.is_some() { Difference::Different } else { Difference::Missing }
    }
}

fn has_content(place: &Place, found: &Status, wanted: &Content) -> Result<bool, Failure> {
    if found.size != wanted.size {
        return Ok(false);
    }
    let place = Place::within(&place.directory(), place.name(), place.path().to_owned(), &Writes::unrecorded())?;
    let Some(file) = place.open(How::Read)? else { return Ok(false) };
    let file = File::from(file);
    let is_file = fs::status_of(&file, place.path()).is_ok_and(|status| status.kind == FileKind::File);
    let sha256 = content::sha256(&file).map_err(|error| cannot("read", place.path(), error))?;
    Ok(is_file && sha256 == Some(hex(&wanted.sha256)))
}

/// Copies the content of an entry, if it is still the one that was listed.
fn copy(content: &mut dyn Read, replacement: &Replacement<'_>, wanted: &Content) -> Result<(), Failure> {
    let mut file = replacement.file();
    let write = |bytes: &[u8]| file.write_all(bytes).map_err(|error| replacement.failed(error).into());
    let sha256: [u8; 32] = digest::<Sha256, Failure>(content, unreadable, write)?.into();
    if sha256 == wanted.sha256 { Ok(()) } else { Err(changed_meanwhile()) }
}

/// The failure that an archive is not the one that was checked any more.
pub(super) fn changed_meanwhile() -> Failure {
    transient(Properties::SOURCE, "the archive was changed while it was read")
}
