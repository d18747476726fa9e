//! What an archive puts where: its entries by their paths, checked before any of them is unpacked.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use sha2::{Digest, Sha256};
use stead_core::call::Failure;
use stead_host::fs::Patience;

use super::format::{self, RawEntry, RawKind, unreadable};
use crate::input::{invalid, refused};

/// How many entries are unpacked.
const MAX_ENTRIES: usize = 250_000;

/// The deepest path that is unpacked, in names.
const MAX_DEPTH: usize = 256;

/// The mode of a directory that the archive implies.
const DIRECTORY_MODE: u32 = 0o755;

/// Set-user-id, set-group-id and sticky bits are not taken from an archive.
const MODE_BITS: u32 = 0o777;

/// Which entries are unpacked, and under which names.
#[derive(Clone, PartialEq, Eq, Default)]
pub(super) struct Selection<'a> {
    /// How many names at the begin of each path are dropped.
    pub(super) strip: usize,
    /// Patterns of which an entry must match one; all entries where there are none.
    pub(super) include: Vec<&'a str>,
    /// Patterns of which it must match none.
    pub(super) exclude: Vec<&'a str>,
}

impl Selection<'_> {
    /// Refuses what is not a pattern.
    pub(super) fn check(&self) -> Result<(), Failure> {
        Filter::compile(self).map(|_| ())
    }
}

/// What an archive puts where.
///
/// Invariant: the parent of every path but the top is a directory of the listing; no path leads out of the top.
pub(super) struct Listing {
    entries: BTreeMap<PathBuf, Entry>,
}

/// What is at a path.
#[derive(Clone)]
pub(super) enum Entry {
    Directory { mode: u32 },
    File(Content),
    Link { target: OsString },
}

/// A file of an archive.
#[derive(Clone)]
pub(super) struct Content {
    pub(super) mode: u32,
    pub(super) size: u64,
    pub(super) sha256: [u8; 32],
    /// The number of the entry that has its bytes.
    pub(super) number: usize,
}

impl Listing {
    /// Reads the whole archive.
    pub(super) fn read(archive: &File, selection: &Selection<'_>, patience: &Patience) -> Result<Self, Failure> {
        let filter = Filter::compile(selection)?;
        let mut listing = Self { entries: BTreeMap::new() };
        format::for_each(archive, &mut |number, raw, content| {
            patience.check()?;
            listing.add(&filter, number, raw, content)
        })?;
        listing.complete()?;
        Ok(listing)
    }

    /// Every entry, a directory before what is in it.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Path, &Entry)> {
        self.entries.iter().map(|(path, entry)| (path.as_path(), entry))
    }

    pub(super) fn get(&self, path: &Path) -> Option<&Entry> {
        self.entries.get(path)
    }

    /// Whether nothing of the archive is below a directory of it.
    pub(super) fn is_empty_directory(&self, path: &Path) -> bool {
        let after = (std::ops::Bound::Excluded(path), std::ops::Bound::Unbounded);
        let next = self.entries.range::<Path, _>(after).next();
        !next.is_some_and(|(next, _)| next.starts_with(path))
    }

    fn add(&mut self, filter: &Filter, number: usize, raw: RawEntry, content: &mut dyn Read) -> Result<(), Failure> {
        let Some(path) = filter.path(&raw.name)? else { return Ok(()) };
        if !filter.matches(&path) {
            return Ok(());
        }
        if self.entries.len() >= MAX_ENTRIES {
            return Err(refused("source", format!("the archive has more than {MAX_ENTRIES} entries")));
        }
        let entry = match raw.kind {
            RawKind::Directory => Entry::Directory { mode: raw.mode.map_or(DIRECTORY_MODE, |mode| mode & MODE_BITS) },
            RawKind::File => {
                let (size, sha256) = digest(content)?;
                let mode = raw.mode.map_or(0o644, |mode| mode & MODE_BITS);
                Entry::File(Content { mode, size, sha256, number })
            }
            RawKind::Symlink(target) => Entry::Link { target: inner_target(&path, target)? },
            RawKind::HardLink(target) => self.linked(filter, &path, &target)?,
            RawKind::Special => return Err(about(&path, "is a device, a FIFO or another thing that is not unpacked")),
        };
        self.entries.insert(path, entry);
        Ok(())
    }

    /// The file that another name is given to, which comes before it.
    fn linked(&self, filter: &Filter, path: &Path, target: &[u8]) -> Result<Entry, Failure> {
        let target = filter.path(target)?.and_then(|target| self.entries.get(&target));
        match target {
            Some(file @ Entry::File(_)) => Ok(file.clone()),
            _ => Err(about(path, "is another name of a file that is not unpacked")),
        }
    }

    /// Adds the directories that are implied, and refuses a path below what is not a directory.
    fn complete(&mut self) -> Result<(), Failure> {
        let above = self.entries.keys().flat_map(|path| path.ancestors().skip(1));
        let above: BTreeSet<PathBuf> = above.filter(|path| !path.as_os_str().is_empty()).map(Path::to_owned).collect();
        for path in above {
            match self.entries.get(&path) {
                None => _ = self.entries.insert(path, Entry::Directory { mode: DIRECTORY_MODE }),
                Some(Entry::Directory { .. }) => {}
                Some(_) => return Err(about(&path, "is not a directory, and other entries are below it")),
            }
        }
        Ok(())
    }
}

fn about(path: &Path, problem: &str) -> Failure {
    refused("source", format!("'{}' in the archive {problem}", path.display()))
}

fn digest(content: &mut dyn Read) -> Result<(u64, [u8; 32]), Failure> {
    let (mut size, mut hasher, mut chunk) = (0, Sha256::new(), vec![0; 64 << 10]);
    loop {
        match content.read(&mut chunk).map_err(unreadable)? {
            0 => return Ok((size, hasher.finalize().into())),
            read => {
                size += read as u64;
                hasher.update(chunk.get(..read).unwrap_or_default());
            }
        }
    }
}

/// The target of a link that stays below the top wherever it is followed.
///
/// `..` may only come first: behind a name it would depend on where a link of that name leads.
fn inner_target(path: &Path, target: Vec<u8>) -> Result<OsString, Failure> {
    let target = OsString::from_vec(target);
    let depth = path.components().count().saturating_sub(1);
    let (mut up, mut named) = (0, false);
    let leaves = || about(path, "is a link that leads out of 'path'");
    for component in Path::new(&target).components() {
        match component {
            std::path::Component::ParentDir if named => return Err(leaves()),
            std::path::Component::ParentDir => up += 1,
            std::path::Component::Normal(_) => named = true,
            std::path::Component::CurDir => {}
            std::path::Component::RootDir | std::path::Component::Prefix(_) => return Err(leaves()),
        }
    }
    if up > depth || target.is_empty() || target.as_bytes().contains(&0) {
        return Err(leaves());
    }
    Ok(target)
}

/// A [`Selection`], compiled.
struct Filter {
    strip: usize,
    include: Option<GlobSet>,
    exclude: GlobSet,
}

impl Filter {
    fn compile(selection: &Selection<'_>) -> Result<Self, Failure> {
        let include = patterns("include", &selection.include)?;
        Ok(Self {
            strip: selection.strip,
            include: (!selection.include.is_empty()).then_some(include),
            exclude: patterns("exclude", &selection.exclude)?,
        })
    }

    /// Where an entry of that name goes; `None` where nothing is left of it.
    fn path(&self, name: &[u8]) -> Result<Option<PathBuf>, Failure> {
        let unsafe_name = |problem: &str| about(Path::new(OsStr::from_bytes(name)), problem);
        if name.starts_with(b"/") {
            return Err(unsafe_name("has an absolute path"));
        }
        let names = name.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
        let names: Vec<&[u8]> = names.collect();
        if names.contains(&b"..".as_slice()) || name.contains(&0) {
            return Err(unsafe_name("leads out of 'path'"));
        }
        if names.len() > MAX_DEPTH {
            return Err(unsafe_name("is too deep"));
        }
        let left = names.get(self.strip..).unwrap_or_default();
        Ok((!left.is_empty()).then(|| left.iter().map(|name| OsStr::from_bytes(name)).collect()))
    }

    /// Whether an entry, or a directory above it, is selected.
    fn matches(&self, path: &Path) -> bool {
        let within = |set: &GlobSet| path.ancestors().any(|path| !path.as_os_str().is_empty() && set.is_match(path));
        self.include.as_ref().is_none_or(within) && !within(&self.exclude)
    }
}

fn patterns(property: &str, patterns: &[&str]) -> Result<GlobSet, Failure> {
    let not_valid = || invalid(property, format!("'{property}' must be a list of patterns such as \"doc/*.txt\""));
    let glob = |pattern: &&str| -> Result<Glob, Failure> {
        GlobBuilder::new(pattern).literal_separator(true).build().map_err(|_| not_valid())
    };
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(glob(pattern)?);
    }
    set.build().map_err(|_| not_valid())
}
