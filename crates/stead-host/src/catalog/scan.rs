//! Looks through directories for manifests and reads them; what has not changed comes from the index.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::OFlags;
use serde_json::Value as Json;
use stead_core::diag::Diagnostic;
use stead_core::manifest::{self, Declared, Form};
use stead_core::text::{Limits, Source, SourceId, read};

use super::index::{Content, Directory, Entry, Index};
use super::stamp::Stamp;
use super::trust::{self, User};
use super::{Problem, Reason, Search};

/// The manifests that were found, in the order of the search and of names.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) declared: Vec<(PathBuf, Declared)>,
    pub(super) problems: Vec<Problem>,
}

/// Larger files are no manifests; the largest known has 60 kB.
const LARGEST: u64 = 4 << 20;

/// Looks through every directory of a search. `now` is the present time.
pub(super) fn scan(search: &Search, now: SystemTime) -> Scan {
    let older = search.cache.as_deref().map(|cache| Index::load(cache, search.user)).unwrap_or_default();
    let mut scanner = Scanner { search, now, older: &older, newer: Index::default(), scan: Scan::default() };
    let mut seen = BTreeSet::new();
    for directory in &search.directories {
        tracing::debug!("Searching for manifests in {}", directory.display());
        scanner.directory(directory, &mut seen);
    }
    let Scanner { mut newer, scan, .. } = scanner;
    if let Some(cache) = &search.cache {
        newer.keep_others(&older);
        if newer != older {
            newer.store(cache);
        }
    }
    scan
}

/// Reads one manifest file that something other than a search named.
pub(super) fn single(path: &Path, form: Form, user: User) -> Scan {
    let mut scan = Scan::default();
    // Its directory has not been looked at before, unlike those of a search.
    match trust::behind_link(user, path).map_err(Reason::Untrusted).and_then(|()| open(path, user)) {
        Ok((text, _)) => drop(scan.note(path, form, &text)),
        Err(reason) => scan.problems.push(Problem::new(path, reason)),
    }
    scan
}

struct Scanner<'a> {
    search: &'a Search,
    now: SystemTime,
    older: &'a Index,
    newer: Index,
    scan: Scan,
}

impl Scanner<'_> {
    fn directory(&mut self, path: &Path, seen: &mut BTreeSet<(u64, u64)>) {
        let metadata = match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => metadata,
            // Search paths name directories of software that is not installed.
            Ok(_) => return,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return,
            Err(error) => return self.scan.problems.push(Problem::new(path, Reason::Unreadable(error.kind()))),
        };
        let stamp = Stamp::of(&metadata);
        if !seen.insert(stamp.identity()) {
            return;
        }
        let known = path.to_str().and_then(|path| self.older.directories.get(path));
        let known = known.filter(|directory| directory.stamp == stamp);
        let names = match known {
            Some(directory) => directory.files.iter().map(|(name, entry)| (name.clone(), entry.link)).collect(),
            None => match list(path) {
                Ok(names) => names,
                Err(error) => return self.scan.problems.push(Problem::new(path, Reason::Unreadable(error.kind()))),
            },
        };
        self.manifests(path, &metadata, stamp, names);
    }

    fn manifests(&mut self, path: &Path, metadata: &Metadata, stamp: Stamp, names: BTreeMap<String, bool>) {
        let trusted = trust::directory(self.search.user, metadata);
        if let (Err(untrusted), false) = (trusted, names.is_empty()) {
            self.scan.problems.push(Problem::new(path, Reason::Untrusted(untrusted)));
        }
        let mut files = BTreeMap::new();
        for (name, link) in names {
            let file = path.join(&name);
            let content = if trusted.is_ok() { self.file(path, &name, &file, link) } else { None };
            files.insert(name, Entry { link, content });
        }
        // What was listed while the times could not tell the next change apart is listed again next time.
        if let (true, Some(path)) = (stamp.settled(self.now), path.to_str()) {
            self.newer.directories.insert(path.to_owned(), Directory { stamp, files });
        }
    }

    /// Reads one file; returns what the index may keep of it.
    fn file(&mut self, directory: &Path, name: &str, path: &Path, link: bool) -> Option<Content> {
        let form = Form::of(name)?;
        if let Err(untrusted) = if link { trust::behind_link(self.search.user, path) } else { Ok(()) } {
            self.scan.problems.push(Problem::new(path, Reason::Untrusted(untrusted)));
            return None;
        }
        if let Some(kept) = self.kept(directory, name, path)
            && self.scan.note_kept(path, form, &kept.json)
        {
            return Some(kept);
        }
        match open(path, self.search.user) {
            Ok((text, stamp)) => {
                let json = self.scan.note(path, form, &text)?;
                stamp.settled(self.now).then_some(Content { stamp, json })
            }
            Err(reason) => {
                self.scan.problems.push(Problem::new(path, reason));
                None
            }
        }
    }

    /// What the index knows of a file, if that is what the file holds, and it is still trusted.
    fn kept(&self, directory: &Path, name: &str, path: &Path) -> Option<Content> {
        let entry = self.older.directories.get(directory.to_str()?)?.files.get(name)?;
        let content = entry.content.as_ref()?;
        let metadata = fs::metadata(path).ok()?;
        let same = Stamp::of(&metadata) == content.stamp && trust::file(self.search.user, &metadata).is_ok();
        same.then(|| content.clone())
    }
}

impl Scan {
    /// Takes up the text of a manifest. Returns it as JSON when nothing had to be said about it.
    fn note(&mut self, path: &Path, form: Form, text: &str) -> Option<Json> {
        let source = Source::new(path.to_string_lossy(), text);
        let (node, mut findings) = read(SourceId::default(), &source.text, &Limits::default());
        let mut json = None;
        if let Some(node) = node.filter(|_| !stead_core::diag::any_error(&findings)) {
            findings.extend(self.declare(path, form, &node));
            json = findings.is_empty().then(|| manifest::plain(&node));
        }
        if !findings.is_empty() {
            self.problems.push(Problem::new(path, Reason::Invalid { source, findings }));
        }
        json
    }

    /// Takes up what the index kept. False when it turns out not to be flawless after all.
    fn note_kept(&mut self, path: &Path, form: Form, json: &Json) -> bool {
        let (declared, findings) = manifest::parse(form, &manifest::unplaced(json), path);
        let flawless = findings.is_empty();
        if flawless {
            self.declared.extend(declared.into_iter().map(|each| (path.to_owned(), each)));
        }
        flawless
    }

    fn declare(&mut self, path: &Path, form: Form, node: &stead_core::text::Node) -> Vec<Diagnostic> {
        let (declared, findings) = manifest::parse(form, node, path);
        self.declared.extend(declared.into_iter().map(|each| (path.to_owned(), each)));
        findings
    }
}

/// The names of manifests in a directory, and which are symbolic links. Names that are not UTF-8 are none.
fn list(directory: &Path) -> io::Result<BTreeMap<String, bool>> {
    let mut names = BTreeMap::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if let Some(name) = name.to_str().filter(|name| Form::of(name).is_some()) {
            names.insert(name.to_owned(), entry.file_type().is_ok_and(|kind| kind.is_symlink()));
        }
    }
    Ok(names)
}

/// Reads a file and tells which state of it was read.
fn open(path: &Path, user: User) -> Result<(String, Stamp), Reason> {
    let unreadable = |error: io::Error| Reason::Unreadable(error.kind());
    // A pipe of that name would never open otherwise.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(Reason::NoFile);
    }
    trust::file(user, &metadata).map_err(Reason::Untrusted)?;
    Ok((contents(file, metadata.len())?, Stamp::of(&metadata)))
}

/// The text of a file that has about `size` bytes; it may be growing.
fn contents(file: File, size: u64) -> Result<String, Reason> {
    let mut bytes = Vec::with_capacity(usize::try_from(size.min(LARGEST)).unwrap_or(0) + 1);
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| Reason::Unreadable(error.kind()))?;
    if bytes.len() as u64 > LARGEST {
        return Err(Reason::TooLarge(LARGEST));
    }
    String::from_utf8(bytes).map_err(|_| Reason::Encoding)
}
