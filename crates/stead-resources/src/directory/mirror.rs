//! Comparing one tree with another, and making it the same.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{OFlags, fstat};
use rustix::io::Errno;
use stead_core::call::{Execution, Failure};
use stead_host::fs::{self, Former, FsError, Kind, Ownership, Patience, Place, Replacement, Status, Writes};
use stead_host::provider::{Context, TraceLevel};

use crate::file::{content, set_mode};
use crate::input::{cannot, invalid, refused};

/// What one tree has differently from another.
#[derive(Default)]
pub(super) struct Drift {
    lines: Vec<String>,
    more: usize,
    differs: bool,
    extra: bool,
}

impl Drift {
    /// Enough for a person to see what is going on; a tree may have millions of files.
    const SHOWN: usize = 100;

    /// The properties that it is about.
    pub(super) fn properties(&self) -> Vec<&'static str> {
        [("source", self.differs), ("_purge", self.extra)]
            .into_iter()
            .filter_map(|(name, is)| is.then_some(name))
            .collect()
    }

    /// One line for each difference, up to a limit.
    pub(super) fn lines(&self) -> Vec<String> {
        let more = (self.more > 0).then(|| format!("and {} more", self.more));
        self.lines.iter().cloned().chain(more).collect()
    }

    fn note(&mut self, what: &str, path: &Path) {
        if what == "extra" {
            self.extra = true;
        } else {
            self.differs = true;
        }
        if self.lines.len() < Self::SHOWN {
            self.lines.push(format!("{what}: {}", path.display()));
        } else {
            self.more += 1;
        }
    }
}

/// Walks two trees side by side. With [`Execution::WhatIf`] it only notes what differs.
pub(super) struct Mirror<'a> {
    cx: &'a Context,
    execution: Execution,
    purge: bool,
    patience: Patience,
    drift: Drift,
    /// The inode that is copied to: met in the source it would be copied into itself without an end.
    top: Option<(u64, u64)>,
}

impl<'a> Mirror<'a> {
    pub(super) fn new(cx: &'a Context, execution: Execution, purge: bool) -> Self {
        let drift = Drift::default();
        Self { cx, execution, purge, patience: Patience::of(cx), drift, top: None }
    }

    /// Compares or copies. Where there is no target yet, everything is missing.
    pub(super) fn run(mut self, source: &Path, target: Option<&OwnedFd>, path: &Path) -> Result<Drift, Failure> {
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
    pub(super) fn purge(mut self, belonging: &BTreeSet<&str>, target: &OwnedFd, path: &Path) -> Result<Drift, Failure> {
        for (name, kind) in fs::entries(target, path)? {
            self.patience.check()?;
            if name.to_str().is_some_and(|name| belonging.contains(name)) {
                continue;
            }
            self.drift.note("extra", Path::new(&name));
            if self.execution == Execution::Actual {
                let place = Place::within(target, &name, path.join(&name), &self.cx.writes)?;
                self.remove(&place, kind)?;
            }
        }
        Ok(self.drift)
    }

    fn check_recursion(&self, source: &Status) -> Result<(), Failure> {
        if self.top == Some(source.identity.inode()) {
            return Err(invalid("source", "the directory is part of its own source"));
        }
        Ok(())
    }

    fn directory(&mut self, at: &Pair<'_>) -> Result<(), Failure> {
        let wanted = fs::entries(at.source, at.source_path)?;
        for (name, kind) in &wanted {
            self.patience.check()?;
            let entry = at.entry(name)?;
            match kind {
                Kind::Directory => self.subdirectory(at, &entry)?,
                Kind::File => self.file(at, &entry)?,
                Kind::Symlink => self.link(at, &entry)?,
                Kind::Special => self.skip(&entry),
            }
        }
        let Some(target) = at.target.filter(|_| self.purge) else { return Ok(()) };
        for (name, kind) in fs::entries(target, at.target_path)? {
            if !wanted.contains_key(&name) {
                self.extra(&at.entry(&name)?, kind)?;
            }
        }
        Ok(())
    }

    fn skip(&self, entry: &Entry) {
        let message = format!("'{}' is a {}; it is left out", entry.below.display(), Kind::Special.word());
        (self.cx.trace)(TraceLevel::Warn, &message);
    }

    fn extra(&mut self, entry: &Entry, kind: Kind) -> Result<(), Failure> {
        self.drift.note("extra", &entry.below);
        if let (Some(place), Execution::Actual) = (&entry.place, self.execution) {
            self.remove(place, kind)?;
        }
        Ok(())
    }

    fn remove(&self, place: &Place, kind: Kind) -> Result<(), Failure> {
        match kind {
            Kind::Directory => fs::remove_tree(place, &self.patience)?,
            _ => place.remove()?,
        };
        Ok(())
    }

    /// Refuses to let a directory make way for something else without being told so.
    fn check_way(&self, entry: &Entry, found: Option<Status>) -> Result<(), Failure> {
        if self.purge || found.is_none_or(|found| found.kind != Kind::Directory) {
            return Ok(());
        }
        let hint = "Add '_purge: true' to remove it with everything in it";
        Err(refused("source", format!("'{}' is a directory here only. {hint}", entry.target_path.display())))
    }

    fn subdirectory(&mut self, at: &Pair<'_>, entry: &Entry) -> Result<(), Failure> {
        let Some(source) = fs::open_below(at.source, &entry.name, &entry.source_path)? else { return Ok(()) };
        let wanted = status(&source, &entry.source_path)?;
        self.check_recursion(&wanted)?;
        let found = entry.found()?;
        let existing = match (&entry.place, found.map(|found| found.kind)) {
            (Some(place), Some(Kind::Directory)) => fs::open_below(&place.directory(), place.name(), place.path())?,
            _ => None,
        };
        let target = match existing {
            Some(existing) => existing,
            None => match self.new_directory(entry, found)? {
                Some(created) => created,
                None => return Ok(()),
            },
        };
        let below = Pair {
            source: &source,
            target: Some(&target),
            source_path: &entry.source_path,
            target_path: &entry.target_path,
            below: &entry.below,
            writes: at.writes,
        };
        self.directory(&below)?;
        self.permissions(target, &wanted, entry, found.is_some())
    }

    fn new_directory(&mut self, entry: &Entry, found: Option<Status>) -> Result<Option<OwnedFd>, Failure> {
        self.drift.note(if found.is_some() { "different" } else { "missing" }, &entry.below);
        let (Some(place), Execution::Actual) = (&entry.place, self.execution) else { return Ok(None) };
        if let Some(found) = found {
            self.remove(place, found.kind)?;
        }
        Ok(Some(place.make_directory()?))
    }

    fn permissions(&mut self, target: OwnedFd, wanted: &Status, entry: &Entry, existed: bool) -> Result<(), Failure> {
        let found = status(&target, &entry.target_path)?;
        let ownership = inherited_ownership(wanted).beyond(&found);
        if found.mode == wanted.mode && ownership.is_none() {
            return Ok(());
        }
        if existed {
            self.drift.note("different", &entry.below);
        }
        if self.execution == Execution::WhatIf {
            return Ok(());
        }
        ownership.apply(target.as_fd()).map_err(|errno| cannot("change the owner of", &entry.target_path, errno))?;
        let target = File::from(target);
        set_mode(&target, wanted.mode).map_err(|error| cannot("change the mode of", &entry.target_path, error))?;
        Ok(self.cx.writes.changed(&target, &entry.target_path)?)
    }

    fn file(&mut self, at: &Pair<'_>, entry: &Entry) -> Result<(), Failure> {
        let source = Place::within(at.source, &entry.name, entry.source_path.clone(), &Writes::unrecorded())?;
        let Some(source) = source.open(OFlags::RDONLY | OFlags::NONBLOCK)? else { return Ok(()) };
        let wanted = status(&source, &entry.source_path)?;
        if wanted.kind != Kind::File {
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
        self.drift.note(if found.is_some() { "different" } else { "missing" }, &entry.below);
        let (Some(place), Execution::Actual) = (&entry.place, self.execution) else { return Ok(()) };
        if found.is_some_and(|found| found.kind == Kind::Directory) {
            self.remove(place, Kind::Directory)?;
        }
        let replacement = Replacement::begin(place, Former::Any)?;
        content::copy(&source, &replacement)?;
        replacement.finish(wanted.mode, inherited_ownership(&wanted))?;
        Ok(())
    }

    fn link(&mut self, at: &Pair<'_>, entry: &Entry) -> Result<(), Failure> {
        let source = Place::within(at.source, &entry.name, entry.source_path.clone(), &Writes::unrecorded())?;
        let Some(wanted) = source.status()?.filter(|wanted| wanted.kind == Kind::Symlink) else { return Ok(()) };
        let target = source.read_link()?;
        let ownership = inherited_ownership(&wanted);
        let found = entry.found()?;
        if let (Some(found), Some(place)) = (&found, &entry.place)
            && found.kind == Kind::Symlink
            && ownership.beyond(found).is_none()
            && place.read_link()? == target
        {
            return Ok(());
        }
        self.check_way(entry, found)?;
        self.drift.note(if found.is_some() { "different" } else { "missing" }, &entry.below);
        let (Some(place), Execution::Actual) = (&entry.place, self.execution) else { return Ok(()) };
        if found.is_some_and(|found| found.kind == Kind::Directory) {
            self.remove(place, Kind::Directory)?;
        }
        place.replace_by_link(OsStr::from_bytes(&target), ownership)?;
        Ok(())
    }
}

/// A directory of the source and what it is copied to.
struct Pair<'a> {
    source: &'a OwnedFd,
    target: Option<&'a OwnedFd>,
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
    let root = rustix::process::geteuid().is_root();
    if root { Ownership { uid: Some(original.uid), gid: Some(original.gid) } } else { Ownership::default() }
}

/// The status of the source itself.
pub(super) fn source_status(source: &Path) -> Result<Status, Failure> {
    status(&open_source(source)?, source)
}

fn open_source(source: &Path) -> Result<OwnedFd, Failure> {
    let about_source = |failure: Failure| Failure { property: Some("/source".to_owned()), ..failure };
    match fs::open(source, OFlags::RDONLY | OFlags::DIRECTORY) {
        Ok(Some(fd)) => Ok(fd),
        Ok(None) => Err(refused("source", format!("there is no directory '{}'", source.display()))),
        Err(FsError::System { source: error, .. }) if error.raw_os_error() == Some(Errno::NOTDIR.raw_os_error()) => {
            Err(refused("source", format!("'{}' is not a directory", source.display())))
        }
        Err(error) => Err(about_source(error.into())),
    }
}

fn status(fd: &OwnedFd, path: &Path) -> Result<Status, Failure> {
    fstat(fd).map(Status::from).map_err(|errno| cannot("examine", path, errno))
}

fn is_same_file(source: &File, wanted: &Status, found: &Status, place: &Place) -> Result<bool, Failure> {
    let alike = found.kind == Kind::File && found.size == wanted.size && found.mode == wanted.mode;
    if !alike || !inherited_ownership(wanted).beyond(found).is_none() {
        return Ok(false);
    }
    let Some(target) = place.open(OFlags::RDONLY | OFlags::NONBLOCK)? else { return Ok(false) };
    if status(&target, place.path())?.kind != Kind::File {
        return Ok(false);
    }
    content::same(source, &File::from(target)).map_err(|error| cannot("compare", place.path(), error))
}
