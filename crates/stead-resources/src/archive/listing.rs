//! What an archive puts where: its entries by their paths, checked before any of them is unpacked.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use sha2::Sha256;
use stead_core::call::Failure;
use stead_system::fs::{Patience, os_string, os_text};

use super::Properties;
use super::format::{self, MAX_ENTRIES, RawEntry, RawKind, Source, not_unpacked, too_many};
use super::reading::unreadable;
use crate::checksum::digest;
use crate::input::{impossible, invalid};

/// How many bytes of names and targets a listing has: it is in memory, and kept for a while.
const MAX_NAMES: usize = 64 << 20;

/// The longest name that file systems take, in bytes.
const MAX_NAME: usize = 255;

/// The longest target of a link that Linux takes, in bytes.
const MAX_TARGET: usize = 4095;

/// The deepest path that is unpacked, in names.
const MAX_DEPTH: usize = 256;

/// The mode of a directory that the archive implies, or has no mode of.
const DIRECTORY_MODE: u32 = 0o755;

/// The mode of a file that the archive has no mode of.
const FILE_MODE: u32 = 0o644;

/// Set-user-id, set-group-id and sticky bits are not taken from an archive.
const MODE_BITS: u32 = 0o777;

/// Which entries are unpacked, and under which names.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Selection {
    /// How many names at the beginning of each path are dropped.
    pub(super) strip: usize,
    /// Patterns of which an entry must match one; all entries where there are none.
    pub(super) include: Vec<String>,
    /// Patterns of which it must match none.
    pub(super) exclude: Vec<String>,
}

impl Selection {
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
    /// How many bytes of names and targets there are.
    names: usize,
    /// Whether something is not unpacked.
    leaves_out: bool,
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
    pub(super) fn read(archive: &mut dyn Source, selection: &Selection, patience: &Patience) -> Result<Self, Failure> {
        let filter = Filter::compile(selection)?;
        let mut listing = Self { entries: BTreeMap::new(), names: 0, leaves_out: false };
        format::for_each(archive, patience, &mut |number, raw, content| listing.add(&filter, number, raw, content))?;
        listing.check()?;
        Ok(listing)
    }

    /// Every entry, a directory before what is in it.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Path, &Entry)> {
        self.entries.iter().map(|(path, entry)| (path.as_path(), entry))
    }

    pub(super) fn get(&self, path: &Path) -> Option<&Entry> {
        self.entries.get(path)
    }

    /// Returns whether nothing of the archive is below a directory of it.
    pub(super) fn is_empty_directory(&self, path: &Path) -> bool {
        let after = (std::ops::Bound::Excluded(path), std::ops::Bound::Unbounded);
        let next = self.entries.range::<Path, _>(after).next();
        !next.is_some_and(|(next, _)| next.starts_with(path))
    }

    fn add(&mut self, filter: &Filter, number: usize, raw: RawEntry, content: &mut dyn Read) -> Result<(), Failure> {
        let Some(path) = filter.path(&raw.name)?.filter(|path| filter.matches(path)) else {
            self.leaves_out |= raw.name.iter().any(|byte| !matches!(byte, b'.' | b'/'));
            return Ok(());
        };
        if has_control(path.as_os_str().as_encoded_bytes()) {
            return Err(about(&path, "has a control character in its name"));
        }
        let entry = match raw.kind {
            RawKind::Directory => Entry::Directory { mode: raw.mode.map_or(DIRECTORY_MODE, |mode| mode & MODE_BITS) },
            RawKind::File => {
                let mut size = 0;
                let count = |chunk: &[u8]| {
                    size += chunk.len() as u64;
                    Ok(())
                };
                let sha256 = digest::<Sha256, Failure>(content, unreadable, count)?.into();
                let mode = raw.mode.map_or(FILE_MODE, |mode| mode & MODE_BITS);
                Entry::File(Content { mode, size, sha256, number })
            }
            RawKind::Symlink(target) => Entry::Link { target: inner_target(&path, target)? },
            RawKind::HardLink(target) => self.linked(filter, &path, &target)?,
            RawKind::Special => {
                return Err(about(&path, "is a device, a FIFO or of another kind that is not unpacked"));
            }
        };
        self.insert(path, entry)
    }

    /// Adds an entry and the directories that it implies.
    fn insert(&mut self, path: PathBuf, entry: Entry) -> Result<(), Failure> {
        for above in path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
            if self.entries.contains_key(above) {
                break;
            }
            self.names += above.as_os_str().len();
            self.entries.insert(above.to_owned(), Entry::Directory { mode: DIRECTORY_MODE });
        }
        self.names += path.as_os_str().len();
        self.names += if let Entry::Link { target } = &entry { target.len() } else { 0 };
        self.entries.insert(path, entry);
        if self.entries.len() > MAX_ENTRIES {
            return Err(too_many());
        }
        if self.names > MAX_NAMES {
            return Err(impossible(
                Properties::SOURCE,
                format!("the archive has more than {} MiB of names", MAX_NAMES >> 20),
            ));
        }
        Ok(())
    }

    /// The file that another name is given to, which comes before it.
    fn linked(&self, filter: &Filter, path: &Path, target: &[u8]) -> Result<Entry, Failure> {
        let target = filter.path(target)?.and_then(|target| self.entries.get(&target));
        match target {
            Some(file @ Entry::File(_)) => Ok(file.clone()),
            _ => Err(about(path, "is a hard link to a file that is not unpacked")),
        }
    }

    /// Refuses a path below what is not a directory (of a path that is there twice the last one counts), and a selection of
    /// nothing.
    fn check(&self) -> Result<(), Failure> {
        if self.entries.is_empty() && self.leaves_out {
            let hint = "Check 'stripComponents', 'include' and 'exclude'";
            return Err(impossible(Properties::SOURCE, format!("nothing of the archive would be unpacked. {hint}")));
        }
        for above in self.entries.keys().filter_map(|path| path.parent()) {
            if self.entries.get(above).is_some_and(|entry| !matches!(entry, Entry::Directory { .. })) {
                return Err(about(above, "is not a directory, and other entries are below it"));
            }
        }
        Ok(())
    }
}

/// The failure that an entry is not unpacked.
fn about(path: &Path, problem: &str) -> Failure {
    not_unpacked(path.as_os_str().as_encoded_bytes(), problem)
}

/// Returns whether a terminal would do something else with it than show it. NUL is such a character, too.
fn has_control(bytes: &[u8]) -> bool {
    String::from_utf8_lossy(bytes).contains(char::is_control)
}

/// The target of a link that stays below the top wherever it is followed.
///
/// `..` may only come first: behind a name it would depend on where a link of that name leads.
fn inner_target(path: &Path, target: Vec<u8>) -> Result<OsString, Failure> {
    let target = os_string(target);
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
    match target.as_encoded_bytes() {
        b"" => Err(about(path, "is a link without a target")),
        _ if up > depth => Err(leaves()),
        bytes if bytes.len() > MAX_TARGET => Err(about(path, "is a link with too long a target")),
        bytes if has_control(bytes) => Err(about(path, "is a link whose target has a control character")),
        _ => Ok(target),
    }
}

/// A [`Selection`], compiled.
struct Filter {
    strip: usize,
    include: Option<GlobSet>,
    exclude: GlobSet,
}

impl Filter {
    fn compile(selection: &Selection) -> Result<Self, Failure> {
        let include = patterns(Properties::INCLUDE, &selection.include)?;
        Ok(Self {
            strip: selection.strip,
            include: (!selection.include.is_empty()).then_some(include),
            exclude: patterns(Properties::EXCLUDE, &selection.exclude)?,
        })
    }

    /// Where an entry of that name goes; `None` where nothing is left of it.
    fn path(&self, name: &[u8]) -> Result<Option<PathBuf>, Failure> {
        let unsafe_name = |problem: &str| not_unpacked(name, problem);
        if name.starts_with(b"/") {
            return Err(unsafe_name("has an absolute path"));
        }
        let names = name.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
        let names: Vec<&[u8]> = names.collect();
        if names.contains(&b"..".as_slice()) {
            return Err(unsafe_name("leads out of 'path'"));
        }
        if names.len() > MAX_DEPTH {
            return Err(unsafe_name("is too deep"));
        }
        if names.iter().any(|name| name.len() > MAX_NAME) {
            return Err(unsafe_name("has a name that is too long"));
        }
        let left = names.get(self.strip..).unwrap_or_default();
        Ok((!left.is_empty()).then(|| left.iter().map(|name| os_text(name)).collect()))
    }

    /// Returns whether an entry, or a directory above it, is selected.
    fn matches(&self, path: &Path) -> bool {
        let within = |set: &GlobSet| path.ancestors().any(|path| !path.as_os_str().is_empty() && set.is_match(path));
        self.include.as_ref().is_none_or(within) && !within(&self.exclude)
    }
}

fn patterns(property: &str, patterns: &[String]) -> Result<GlobSet, Failure> {
    let not_valid = || invalid(property, format!("'{property}' must be a list of patterns such as \"doc/*.txt\""));
    let glob = |pattern: &String| -> Result<Glob, Failure> {
        GlobBuilder::new(pattern).literal_separator(true).build().map_err(|_| not_valid())
    };
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(glob(pattern)?);
    }
    set.build().map_err(|_| not_valid())
}
