//! Comparing one tree with another, and making it the same.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use stead_core::call::{Execution, Failure};
use stead_core::destruction::{Effects, Entries, Item, ItemKind};
use stead_core::visible::{bytes_text, path_text};
use stead_host::provider::{Context, TraceLevel};
use stead_system::fs::{
    self, FileKind, Former, FsError, Handle, How, Ownership, Patience, Place, Replacement, Status, SystemPath, Writes,
};

use super::Properties;
use crate::file::content;
use crate::input::{blocked, cannot, impossible};
use crate::removal;

/// What one tree has differently from another.
#[derive(Default)]
pub(crate) struct Drift {
    lines: Vec<String>,
    missing: usize,
    different: usize,
    extra: usize,
    /// What is created and destroyed below.
    pub(crate) effects: Effects,
}

/// How an entry of the target differs.
#[derive(Clone, Copy)]
pub(crate) enum Difference {
    /// It is not there.
    Missing,
    /// It has another kind, content, mode or owner.
    Different,
    /// It does not belong there.
    Extra,
}

impl Difference {
    fn word(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Different => "different",
            Self::Extra => "extra",
        }
    }
}

impl Drift {
    /// Enough for a person to see what is going on; a tree may have millions of files.
    const SHOWN: usize = 100;

    /// The properties that it is about.
    pub(crate) fn properties(&self) -> Vec<&'static str> {
        [(Properties::SOURCE, self.missing + self.different), (Properties::PURGE, self.extra)]
            .into_iter()
            .filter_map(|(name, count)| (count > 0).then_some(name))
            .collect()
    }

    /// One line for each difference, up to a limit.
    pub(crate) fn lines(&self) -> Vec<String> {
        let more = (self.missing + self.different + self.extra).saturating_sub(self.lines.len());
        let more = (more > 0).then(|| format!("and {more} more"));
        self.lines.iter().cloned().chain(more).collect()
    }

    /// How many differences there are of each kind.
    pub(crate) fn summary(&self) -> String {
        use Difference::{Different, Extra, Missing};
        let counts = [(Missing, self.missing), (Different, self.different), (Extra, self.extra)];
        let present = counts.into_iter().filter(|(_, count)| *count > 0);
        present.map(|(what, count)| format!("{count} {}", what.word())).collect::<Vec<_>>().join(", ")
    }

    /// What is created and destroyed below.
    pub(crate) fn into_effects(self) -> Effects {
        self.effects
    }

    pub(crate) fn note(&mut self, what: Difference, path: &Path) {
        match what {
            Difference::Missing => self.missing += 1,
            Difference::Different => self.different += 1,
            Difference::Extra => self.extra += 1,
        }
        if self.lines.len() < Self::SHOWN {
            self.lines.push(format!("{}: {}", what.word(), path_text(path)));
        }
    }
}

/// Walks two trees side by side. With [`Execution::WhatIf`] it only notes what differs.
pub(super) struct Mirror<'a> {
    cx: &'a Context,
    execution: Execution,
    purge: bool,
    /// The path of the target as the instance states it.
    stated: &'a str,
    patience: Patience,
    drift: Drift,
    /// The inode that is copied to: met in the source it would be copied into itself without an end.
    top: Option<(u64, u64)>,
}

impl<'a> Mirror<'a> {
    pub(super) fn new(cx: &'a Context, execution: Execution, purge: bool, stated: &'a str) -> Self {
        let (patience, drift) = (cx.patience(), Drift::default());
        Self { cx, execution, purge, stated, patience, drift, top: None }
    }

    /// Compares or copies. Where there is no target yet, everything is missing.
    pub(super) fn run(mut self, source: &SystemPath, target: Option<&Handle>, path: &Path) -> Result<Drift, Failure> {
        let source_fd = open_source(source)?;
        if let Some(target) = target {
            self.top = Some(status(target, path)?.identity.inode());
        }
        self.check_recursion(&status(&source_fd, source)?)?;
        let (below, writes) = (Path::new(""), &self.cx.writes);
        let at = Pair { source: &source_fd, target, source_path: source, target_path: path, below, writes };
        self.directory(&at)?;
        Ok(self.drift)
    }

    /// Removes, or in what-if notes, what is in a directory besides the names that belong there.
    pub(super) fn purge(mut self, belonging: &BTreeSet<&str>, target: &Handle, path: &Path) -> Result<Drift, Failure> {
        for (name, kind) in fs::entries(target, path)? {
            self.patience.check()?;
            if name.to_str().is_some_and(|name| belonging.contains(name)) {
                continue;
            }
            self.drift.note(Difference::Extra, Path::new(&name));
            let place = Place::within(target, &name, path.join(&name), &self.cx.writes)?;
            self.remove(&place, kind, Path::new(&name))?;
        }
        Ok(self.drift)
    }

    fn check_recursion(&self, source: &Status) -> Result<(), Failure> {
        if self.top == Some(source.identity.inode()) {
            return Err(impossible(Properties::SOURCE, "the directory is part of its own source"));
        }
        Ok(())
    }

    /// Compares or copies what is in a directory. Returns whether there is anything in the source.
    fn directory(&mut self, at: &Pair<'_>) -> Result<bool, Failure> {
        let wanted = fs::entries(at.source, at.source_path)?;
        for (name, kind) in &wanted {
            self.patience.check()?;
            let entry = at.entry(name)?;
            match kind {
                FileKind::Directory => self.subdirectory(at, &entry)?,
                FileKind::File => self.file(at, &entry)?,
                FileKind::Symlink => self.link(at, &entry)?,
                FileKind::Special => self.skip(&entry),
            }
        }
        if let Some(target) = at.target.filter(|_| self.purge) {
            for (name, kind) in fs::entries(target, at.target_path)? {
                if !wanted.contains_key(&name) {
                    self.extra(&at.entry(&name)?, kind)?;
                }
            }
        }
        Ok(wanted.values().any(|kind| *kind != FileKind::Special))
    }

    fn skip(&self, entry: &Entry) {
        let message = format!("'{}' is a {}; it is left out", entry.below.display(), FileKind::Special.word());
        self.cx.say(TraceLevel::Warn, &message);
    }

    fn extra(&mut self, entry: &Entry, kind: FileKind) -> Result<(), Failure> {
        self.drift.note(Difference::Extra, &entry.below);
        entry.place.as_ref().map_or(Ok(()), |place| self.remove(place, kind, &entry.below))
    }

    /// Removes what is at a place, or in what-if notes that it would be.
    fn remove(&mut self, place: &Place, kind: FileKind, below: &Path) -> Result<(), Failure> {
        self.lose(place, below)?;
        match (self.execution, kind) {
            (Execution::WhatIf, FileKind::Directory) => fs::check_unmounted(place)?,
            (Execution::WhatIf, _) => {}
            (Execution::Actual, FileKind::Directory) => _ = fs::remove_tree(place, &self.patience)?,
            (Execution::Actual, _) => _ = place.remove()?,
        }
        Ok(())
    }

    /// Notes that what is at a place is lost.
    fn lose(&mut self, place: &Place, below: &Path) -> Result<(), Failure> {
        let lost = removal::item(place, removal::shown(self.stated, below), &self.patience)?;
        self.drift.effects.destroys.extend(lost);
        Ok(())
    }

    fn creates(&mut self, below: &Path, kind: ItemKind) {
        self.drift.effects.creates.push(Item { path: removal::shown(self.stated, below), kind });
    }

    /// Refuses to let a directory make way for something else unless the document says so.
    fn check_way(&self, entry: &Entry, found: Option<Status>) -> Result<(), Failure> {
        if self.purge || found.is_none_or(|found| found.kind != FileKind::Directory) {
            return Ok(());
        }
        let hint = "Add '_purge: true' to remove it with everything in it";
        Err(blocked(Properties::SOURCE, format!("'{}' is a directory here only. {hint}", entry.target_path.display())))
    }

    fn subdirectory(&mut self, at: &Pair<'_>, entry: &Entry) -> Result<(), Failure> {
        let Some(source) = fs::open_below(at.source, &entry.name, &entry.source_path)? else { return Ok(()) };
        let wanted = status(&source, &entry.source_path)?;
        self.check_recursion(&wanted)?;
        let found = entry.found()?;
        let existing = match (&entry.place, found.map(|found| found.kind)) {
            (Some(place), Some(FileKind::Directory)) => fs::open_below(&place.directory(), place.name(), place.path())?,
            _ => None,
        };
        let existed = existing.is_some();
        let target = match existing {
            Some(existing) => Some(existing),
            None => self.new_directory(entry, found)?,
        };
        let below = Pair {
            source: &source,
            target: target.as_ref(),
            source_path: &entry.source_path,
            target_path: &entry.target_path,
            below: &entry.below,
            writes: at.writes,
        };
        let is_empty = !self.directory(&below)?;
        if is_empty && !existed {
            self.creates(&entry.below, ItemKind::Directory(Entries::default()));
        }
        target.map_or(Ok(()), |target| self.permissions(&target, &wanted, entry, existed))
    }

    fn note(&mut self, entry: &Entry, found: Option<Status>) {
        let what = if found.is_some() { Difference::Different } else { Difference::Missing };
        self.drift.note(what, &entry.below);
    }

    /// Creates a directory, in place of something else if there is any; `None` in what-if.
    fn new_directory(&mut self, entry: &Entry, found: Option<Status>) -> Result<Option<Handle>, Failure> {
        self.note(entry, found);
        let Some(place) = &entry.place else { return Ok(None) };
        if let Some(found) = found {
            self.remove(place, found.kind, &entry.below)?;
        }
        match self.execution {
            Execution::Actual => Ok(Some(place.make_directory()?)),
            Execution::WhatIf => Ok(None),
        }
    }

    fn permissions(&mut self, target: &Handle, wanted: &Status, entry: &Entry, existed: bool) -> Result<(), Failure> {
        let found = status(target, &entry.target_path)?;
        let ownership = inherited_ownership(wanted).beyond(&found);
        if found.mode == wanted.mode && ownership.is_none() {
            return Ok(());
        }
        if existed {
            self.drift.note(Difference::Different, &entry.below);
        }
        if self.execution == Execution::WhatIf {
            return Ok(());
        }
        Ok(self.cx.writes.change(target, &entry.target_path, ownership, Some(wanted.mode))?)
    }

    fn file(&mut self, at: &Pair<'_>, entry: &Entry) -> Result<(), Failure> {
        let source = Place::within(at.source, &entry.name, entry.source_path.clone(), &Writes::unrecorded())?;
        let Some(source) = source.open(How::Read)? else { return Ok(()) };
        let wanted = status(&source, &entry.source_path)?;
        if wanted.kind != FileKind::File {
            return Ok(());
        }
        let source = File::from(source);
        let found = entry.found()?;
        if let (Some(found), Some(place)) = (&found, &entry.place)
            && is_same_file(&source, &wanted, found, place)?
        {
            return Ok(());
        }
        self.check_way(entry, found)?;
        self.note(entry, found);
        self.replaces_content(entry, found, &source, &wanted)?;
        let Some(place) = self.make_way(entry, found)? else { return Ok(()) };
        let replacement = Replacement::begin(place, Former::Any)?;
        content::copy(&source, &replacement)?;
        replacement.finish(wanted.mode, inherited_ownership(&wanted))?;
        Ok(())
    }

    /// Removes a directory that is where something else should be. Returns the place, unless in what-if.
    fn make_way<'e>(&mut self, entry: &'e Entry, found: Option<Status>) -> Result<Option<&'e Place>, Failure> {
        let Some(place) = &entry.place else { return Ok(None) };
        if found.is_some_and(|found| found.kind == FileKind::Directory) {
            self.remove(place, FileKind::Directory, &entry.below)?;
        }
        Ok((self.execution == Execution::Actual).then_some(place))
    }

    /// Notes what a file is created with, and what is lost where it is put.
    fn replaces_content(
        &mut self,
        entry: &Entry,
        found: Option<Status>,
        source: &File,
        wanted: &Status,
    ) -> Result<(), Failure> {
        match (found, &entry.place) {
            (Some(found), Some(place)) if found.kind == FileKind::File => {
                if !has_content_of(source, wanted, &found, place)? {
                    let (path, content) =
                        (removal::shown(self.stated, &entry.below), |size| ItemKind::Content { size, sha256: None });
                    self.drift.effects.destroys.push(Item { path: path.clone(), kind: content(found.size) });
                    self.drift.effects.creates.push(Item { path, kind: content(wanted.size) });
                }
            }
            (Some(found), Some(place)) => {
                if found.kind != FileKind::Directory {
                    self.lose(place, &entry.below)?;
                }
                self.creates(&entry.below, ItemKind::File { size: wanted.size });
            }
            _ => self.creates(&entry.below, ItemKind::File { size: wanted.size }),
        }
        Ok(())
    }

    fn link(&mut self, at: &Pair<'_>, entry: &Entry) -> Result<(), Failure> {
        let source = Place::within(at.source, &entry.name, entry.source_path.clone(), &Writes::unrecorded())?;
        let Some(wanted) = source.status()?.filter(|wanted| wanted.kind == FileKind::Symlink) else { return Ok(()) };
        let target = source.read_link()?;
        let ownership = inherited_ownership(&wanted);
        let found = entry.found()?;
        if let (Some(found), Some(place)) = (&found, &entry.place)
            && found.kind == FileKind::Symlink
            && ownership.beyond(found).is_none()
            && place.read_link()? == target
        {
            return Ok(());
        }
        self.check_way(entry, found)?;
        self.note(entry, found);
        if let (Some(Status { kind: FileKind::File | FileKind::Symlink | FileKind::Special, .. }), Some(place)) =
            (found, &entry.place)
        {
            self.lose(place, &entry.below)?;
        }
        self.creates(&entry.below, ItemKind::Symlink { target: bytes_text(&target).into_owned() });
        let Some(place) = self.make_way(entry, found)? else { return Ok(()) };
        place.replace_by_link(fs::os_text(&target), ownership)?;
        Ok(())
    }
}

/// A directory of the source and what it is copied to.
struct Pair<'a> {
    source: &'a Handle,
    target: Option<&'a Handle>,
    source_path: &'a Path,
    target_path: &'a Path,
    /// Relative to both tops.
    below: &'a Path,
    writes: &'a Writes,
}

impl Pair<'_> {
    fn entry(&self, name: &OsStr) -> Result<Entry, Failure> {
        let target_path = self.target_path.join(name);
        let place =
            self.target.map(|target| Place::within(target, name, target_path.clone(), self.writes)).transpose()?;
        let (source_path, below) = (self.source_path.join(name), self.below.join(name));
        Ok(Entry { name: name.into(), place, source_path, target_path, below })
    }
}

/// A name in both.
struct Entry {
    name: Arc<OsStr>,
    place: Option<Place>,
    source_path: std::path::PathBuf,
    target_path: std::path::PathBuf,
    below: std::path::PathBuf,
}

impl Entry {
    fn found(&self) -> Result<Option<Status>, Failure> {
        Ok(self.place.as_ref().map(Place::status).transpose()?.flatten())
    }
}

/// The owner that a copy gets: that of the original, if this process may give it away.
pub(super) fn inherited_ownership(original: &Status) -> Ownership {
    let root = stead_system::user::is_root();
    if root { Ownership { uid: Some(original.uid), gid: Some(original.gid) } } else { Ownership::default() }
}

/// The status of the source itself.
pub(super) fn source_status(source: &SystemPath) -> Result<Status, Failure> {
    status(&open_source(source)?, source)
}

fn open_source(source: &SystemPath) -> Result<Handle, Failure> {
    let about_source = |failure: Failure| Failure { property: Some("/source".to_owned()), ..failure };
    match fs::open(source, How::Directory) {
        Ok(Some(fd)) => Ok(fd),
        Ok(None) => Err(blocked(Properties::SOURCE, format!("there is no directory '{}'", source.display()))),
        Err(FsError::System { source: error, .. }) if error.kind() == ErrorKind::NotADirectory => {
            Err(blocked(Properties::SOURCE, format!("'{}' is not a directory", source.display())))
        }
        Err(error) => Err(about_source(error.into())),
    }
}

fn status(fd: &Handle, path: &Path) -> Result<Status, Failure> {
    Ok(fs::status_of(fd, path)?)
}

fn is_same_file(source: &File, wanted: &Status, found: &Status, place: &Place) -> Result<bool, Failure> {
    let alike = found.kind == FileKind::File && found.mode == wanted.mode;
    let same_owner = inherited_ownership(wanted).beyond(found).is_none();
    Ok(alike && same_owner && has_content_of(source, wanted, found, place)?)
}

/// Returns whether the file at a place has the content of the source.
fn has_content_of(mut source: &File, wanted: &Status, found: &Status, place: &Place) -> Result<bool, Failure> {
    if found.size != wanted.size {
        return Ok(false);
    }
    let Some(target) = place.open(How::Read)? else { return Ok(false) };
    if status(&target, place.path())?.kind != FileKind::File {
        return Ok(false);
    }
    let rewound = source.seek(SeekFrom::Start(0));
    let same = rewound.and_then(|_| content::same(source, &File::from(target)));
    same.map_err(|error| cannot("compare", place.path(), error))
}
