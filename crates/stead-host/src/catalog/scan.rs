//! Looks through directories for manifests and reads them; what has not changed comes from the index.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::Value as Json;
use stead_core::diag::Diagnostic;
use stead_core::manifest::{self, Declared, ManifestForm};
use stead_core::text::{Limits, Source, SourceId, read};

use super::index::{Content, Directory, Entry, Index};
use super::{CatalogProblem, ProblemReason, Search};
use stead_system::fs::{Identity, OpenError, Trust, TrustedDirectory, TrustedFile, User};

/// The manifests that were found, in the order of the search and of names.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) declared: Vec<(PathBuf, Declared)>,
    pub(super) problems: Vec<CatalogProblem>,
}

/// Larger files are not manifests; the largest known has 60 kB.
const LARGEST: u64 = 4 << 20;

/// Looks through every directory of a search. `now` is the present time.
pub(super) fn scan(search: &Search, now: SystemTime) -> Scan {
    scan_with(search, now, |scanner| {
        let mut seen = BTreeSet::new();
        scanner.scan.problems.extend(search.relative.iter().filter_map(|path| CatalogProblem::relative(path)));
        for directory in &search.directories {
            tracing::debug!("Searching for manifests in {}", directory.display());
            scanner.directory(directory, &mut seen);
        }
    })
}

/// Looks through folders and all folders below them; links are not followed. Judged and remembered as those of a search.
pub(super) fn below(folders: &[PathBuf], search: &Search, now: SystemTime) -> Scan {
    if folders.is_empty() {
        return Scan::default();
    }
    scan_with(search, now, |scanner| {
        let (mut seen, mut left) = (BTreeSet::new(), MOST_FOLDERS);
        for folder in folders {
            tracing::debug!("Searching for manifests below {}", folder.display());
            let opened = TrustedDirectory::open(folder, search.user.trust());
            scanner.tree((folder, opened), &mut seen, (DEEPEST, &mut left));
        }
    })
}

/// Limits of the depth and number of folders that are searched.
const DEEPEST: usize = 16;
const MOST_FOLDERS: usize = 20_000;

fn scan_with(search: &Search, now: SystemTime, look: impl FnOnce(&mut Scanner<'_>)) -> Scan {
    let older = search.cache.as_deref().map(|cache| Index::load(cache, search.user)).unwrap_or_default();
    let mut scanner = Scanner { search, now, older: &older, newer: Index::default(), scan: Scan::default() };
    look(&mut scanner);
    let Scanner { mut newer, scan, .. } = scanner;
    if let Some(cache) = &search.cache {
        newer.keep_others(&older);
        if newer != older {
            newer.store(cache, search.user);
        }
    }
    scan
}

/// Reads one manifest file that something other than a search named.
pub(super) fn single(path: &Path, form: ManifestForm, user: User) -> Scan {
    let mut scan = Scan::default();
    match TrustedFile::open(path, user.trust()).map_err(ProblemReason::from).and_then(|file| text(&file)) {
        Ok(text) => drop(scan.note(path, form, &text)),
        Err(reason) => scan.problems.push(CatalogProblem::new(path, reason)),
    }
    scan
}

impl From<OpenError> for ProblemReason {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Untrusted(untrusted) => Self::Untrusted(untrusted),
            OpenError::System { source, .. } if source.kind() == io::ErrorKind::IsADirectory => Self::NoFile,
            OpenError::System { source, .. } => Self::Unreadable(source.kind()),
        }
    }
}

struct Scanner<'a> {
    search: &'a Search,
    now: SystemTime,
    older: &'a Index,
    newer: Index,
    scan: Scan,
}

impl<'a> Scanner<'a> {
    fn directory(&mut self, path: &Path, seen: &mut BTreeSet<(u64, u64)>) {
        self.opened(path, TrustedDirectory::open(path, self.search.user.trust()), seen);
    }

    /// Looks into a directory as it was opened, and returns it if it is trusted.
    fn opened(
        &mut self,
        path: &Path,
        opened: Result<TrustedDirectory, OpenError>,
        seen: &mut BTreeSet<(u64, u64)>,
    ) -> Option<TrustedDirectory> {
        let looked = match opened {
            Ok(directory) => self.manifests(path, &directory, seen).map(|()| Some(directory)),
            Err(OpenError::Untrusted(untrusted)) => {
                // Only what it would have been searched for makes it a problem: others have reason to be as they are.
                TrustedDirectory::open(path, Trust::Everyone).and_then(|directory| {
                    if seen.insert(Identity::of(directory.metadata()).inode()) && !list(&directory)?.is_empty() {
                        self.scan.problems.push(CatalogProblem::new(path, ProblemReason::Untrusted(untrusted)));
                    }
                    Ok(None)
                })
            }
            Err(error) => Err(error),
        };
        looked.unwrap_or_else(|error| {
            // Search paths name directories of software that is not installed.
            if !error.is_not_found() {
                self.scan.problems.push(CatalogProblem::new(path, error.into()));
            }
            None
        })
    }

    /// Looks into a directory and those below it. Each is opened by the one above: there may be thousands.
    fn tree(
        &mut self,
        (path, opened): (&Path, Result<TrustedDirectory, OpenError>),
        seen: &mut BTreeSet<(u64, u64)>,
        (depth, left): (usize, &mut usize),
    ) {
        let Some(rest) = left.checked_sub(1) else { return };
        *left = rest;
        let trusted = self.opened(path, opened, seen);
        if depth == 0 {
            return;
        }
        // What is found in one of others is judged by itself.
        let names = match &trusted {
            Some(folder) => self.folders(path, folder),
            None => {
                TrustedDirectory::open(path, Trust::Everyone).map_or_else(|_| Ok(BTreeSet::new()), |it| it.folders())
            }
        };
        for name in names.unwrap_or_default() {
            let below = path.join(&name);
            let opened = match &trusted {
                Some(folder) => folder.directory(&name),
                None => TrustedDirectory::open(&below, self.search.user.trust()),
            };
            self.tree((&below, opened), seen, (depth - 1, left));
        }
    }

    fn manifests(
        &mut self,
        path: &Path,
        directory: &TrustedDirectory,
        seen: &mut BTreeSet<(u64, u64)>,
    ) -> Result<(), OpenError> {
        let stamp = Identity::of(directory.metadata());
        if !seen.insert(stamp.inode()) {
            return Ok(());
        }
        let older = self.known(path, stamp);
        let names = match older {
            Some(older) => older.files.keys().cloned().collect(),
            None => list(directory)?,
        };
        let mut files = BTreeMap::new();
        for name in names {
            let content = self.file(path, directory, &name);
            files.insert(name, Entry { content });
        }
        // What was listed while the times could not tell the next change apart is listed again next time.
        if let (true, Some(path)) = (stamp.settled(self.now), path.to_str()) {
            let folders = older.and_then(|older| older.folders.clone());
            self.newer.directories.insert(path.to_owned(), Directory { stamp, files, folders });
        }
        Ok(())
    }

    /// Returns what the index has of a directory that has not changed.
    fn known(&self, path: &Path, stamp: Identity) -> Option<&'a Directory> {
        let older: &'a Index = self.older;
        older.directories.get(path.to_str()?).filter(|older| older.stamp == stamp)
    }

    /// The names of the folders in a directory. Those of a thousand that have not changed are not listed again.
    fn folders(&mut self, path: &Path, directory: &TrustedDirectory) -> io::Result<BTreeSet<OsString>> {
        let stamp = Identity::of(directory.metadata());
        if let Some(folders) = self.known(path, stamp).and_then(|known| known.folders.as_ref()) {
            return Ok(folders.iter().map(OsString::from).collect());
        }
        let found = directory.folders()?;
        let names: Option<BTreeSet<String>> = found.iter().map(|name| name.to_str().map(str::to_owned)).collect();
        if let Some(newer) = path.to_str().and_then(|path| self.newer.directories.get_mut(path)) {
            newer.folders = names;
        }
        Ok(found)
    }

    /// Reads one file; returns what the index may keep of it.
    fn file(&mut self, path: &Path, directory: &TrustedDirectory, name: &str) -> Option<Content> {
        let form = ManifestForm::of(name)?;
        let manifest = path.join(name);
        let read = directory.file(OsStr::new(name)).map_err(ProblemReason::from).and_then(|file| {
            let stamp = Identity::of(file.metadata());
            if let Some(kept) = self.kept(path, name, stamp)
                && self.scan.note_kept(&manifest, form, &kept.json)
            {
                return Ok(Some(kept));
            }
            let text = text(&file)?;
            let json = self.scan.note(&manifest, form, &text);
            Ok(json.filter(|_| stamp.settled(self.now)).map(|json| Content { stamp, json }))
        });
        read.unwrap_or_else(|reason| {
            self.scan.problems.push(CatalogProblem::new(&manifest, reason));
            None
        })
    }

    /// Returns the content of a file in the index, if that is what the file holds.
    fn kept(&self, directory: &Path, name: &str, stamp: Identity) -> Option<Content> {
        let entry = self.older.directories.get(directory.to_str()?)?.files.get(name)?;
        entry.content.as_ref().filter(|content| content.stamp == stamp).cloned()
    }
}

impl Scan {
    /// Takes up the text of a manifest. Returns it as JSON when nothing had to be said about it.
    fn note(&mut self, path: &Path, form: ManifestForm, text: &str) -> Option<Json> {
        tracing::trace!("Found manifest: {}", path.display());
        let source = Source::new(path.to_string_lossy(), text);
        let (node, mut findings) = read(SourceId::default(), &source.text, &Limits::default());
        let mut json = None;
        if let Some(node) = node.filter(|_| !stead_core::diag::any_error(&findings)) {
            findings.extend(self.declare(path, form, &node));
            json = findings.is_empty().then(|| manifest::plain(&node));
        }
        if !findings.is_empty() {
            self.problems.push(CatalogProblem::new(path, ProblemReason::Invalid { source, findings }));
        }
        json
    }

    /// Takes up what the index kept. False when it turns out not to be flawless after all.
    fn note_kept(&mut self, path: &Path, form: ManifestForm, json: &Json) -> bool {
        let (declared, findings) = manifest::parse(form, &manifest::unplaced(json), path);
        let flawless = findings.is_empty();
        if flawless {
            self.declared.extend(declared.into_iter().map(|each| (path.to_owned(), each)));
        }
        flawless
    }

    fn declare(&mut self, path: &Path, form: ManifestForm, node: &stead_core::text::Node) -> Vec<Diagnostic> {
        let (declared, findings) = manifest::parse(form, node, path);
        self.declared.extend(declared.into_iter().map(|each| (path.to_owned(), each)));
        findings
    }
}

/// The names of manifests in a directory. Names that are not UTF-8 are none.
fn list(directory: &TrustedDirectory) -> Result<BTreeSet<String>, OpenError> {
    let failed = |source| OpenError::System { path: directory.path().to_owned(), source };
    let names = directory.names().map_err(failed)?.into_iter().filter_map(|name| name.into_string().ok());
    Ok(names.filter(|name| ManifestForm::of(name).is_some()).collect())
}

/// The text of a manifest.
fn text(file: &TrustedFile) -> Result<String, ProblemReason> {
    if !file.metadata().is_file() {
        return Err(ProblemReason::NoFile);
    }
    contents(file.read()?, file.metadata().len())
}

/// The text of a file that has about `size` bytes; it may be growing.
fn contents(file: File, size: u64) -> Result<String, ProblemReason> {
    let mut bytes = Vec::with_capacity(usize::try_from(size.min(LARGEST)).unwrap_or(0) + 1);
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| ProblemReason::Unreadable(error.kind()))?;
    if bytes.len() as u64 > LARGEST {
        return Err(ProblemReason::TooLarge(LARGEST));
    }
    String::from_utf8(bytes).map_err(|_| ProblemReason::Encoding)
}
