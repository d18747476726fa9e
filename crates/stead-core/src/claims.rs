//! The paths and names that instances manage, and which of them contradict each other.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::mem::discriminant;
use std::path::{Component, MAIN_SEPARATOR, Path, PathBuf};
use std::sync::Arc;

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use crate::id::NodeId;

/// Everything that an instance reads or manages.
///
/// Guarantees: an instance with claims has an effect on nothing else.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Claims(pub Vec<Claim>);

impl<P: AsRef<Path>> FromIterator<(P, Extent)> for Claims {
    fn from_iter<I: IntoIterator<Item = (P, Extent)>>(claims: I) -> Self {
        let claims = claims.into_iter();
        Self(claims.map(|(path, extent)| Claim::Path { path: path.as_ref().into(), extent }).collect())
    }
}

/// One thing that an instance reads or manages.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Claim {
    /// A node of the file system, by its path.
    Path {
        /// Where. [`conflicts`] takes absolute paths without `.` and repeated slashes; [`Claims::resolved`] makes them.
        path: Arc<Path>,
        /// How much of it.
        extent: Extent,
    },
}

/// The things that an instance creates for others, and uses of others, that are not at one of the paths of its
/// claims.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ties {
    /// The things that exist once it was set.
    pub provides: Vec<Provision>,
    /// The things that it needs if another instance creates them.
    pub uses: Vec<Provision>,
}

impl Ties {
    /// Returns whether it creates nothing and uses nothing.
    pub fn is_empty(&self) -> bool {
        self.provides.is_empty() && self.uses.is_empty()
    }

    /// Adds that the instance uses what these packages bring, whichever of them exist.
    #[must_use]
    pub fn and_packages<'p>(mut self, names: impl IntoIterator<Item = &'p str>) -> Self {
        self.uses.extend(names.into_iter().map(|name| Provision::Package(name.to_owned())));
        self
    }

    /// Returns them with every path replaced by the one that is meant.
    #[must_use]
    pub fn resolved(mut self, resolve: impl Fn(&Path) -> Arc<Path>) -> Self {
        for provision in self.provides.iter_mut().chain(&mut self.uses) {
            if let Provision::Path(path) | Provision::Removals(path) = provision {
                *path = resolve(path);
            }
        }
        self
    }
}

/// Something that one instance creates and another uses.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Provision {
    /// An absolute path. Accounts have the paths of their records, such as `/etc/passwd/NAME`.
    Path(Arc<Path>),
    /// That what is removed from a folder is gone.
    Removals(Arc<Path>),
    /// A package by its name.
    Package(String),
    /// A source that packages come from.
    PackageSource,
}

/// How much of what is at a path an instance manages.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Extent {
    /// Nothing: it is only read.
    Read,
    /// Nothing of its own: former content is kept there. With a name that is not known, the part that is.
    Backup,
    /// The mode of what is there.
    Mode(u32),
    /// That a file is there, with its mode and owner.
    Attributes,
    /// That a directory is there, with its mode and owner.
    Directory,
    /// That something is there: a directory is created where nothing is.
    Presence,
    /// A part of its content.
    Part {
        /// The line of text that it is about, where it depends on no other.
        line: Option<String>,
        /// The key or other mark that distinguishes the part from others of the same file; `None` where nothing does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    /// All of its content.
    Whole,
    /// Where a symbolic link leads. A directory may make way for it.
    Link {
        /// The target of the link; where that is relative, from the directory of the link. [`Claims::resolved`] makes
        /// it absolute. `None` where it is not known.
        target: Option<Arc<Path>>,
    },
    /// Which names are in a directory: others are removed.
    Entries {
        /// The names that are left alone.
        kept: BTreeSet<String>,
    },
    /// Everything below a directory, as in another one.
    Tree {
        /// True if everything is removed that the other one does not have.
        purge: bool,
    },
    /// That nothing is there.
    Absent,
}

/// The meaning of a claim on a path for the order of instances.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stake {
    /// It creates a directory, or a link that may lead to one: others can lie in it.
    Holds,
    /// It creates a file.
    Creates,
    /// It uses what is there.
    Uses,
    /// It removes what is there.
    Removes,
}

impl Extent {
    /// Separates, in a key, the name of a part from that of a part within it. An instance that manages the outer part
    /// manages the inner one too.
    pub const WITHIN: char = '\u{1f}';

    fn stake(&self) -> Option<Stake> {
        match self {
            Self::Directory | Self::Presence | Self::Link { .. } | Self::Entries { .. } | Self::Tree { .. } => {
                Some(Stake::Holds)
            }
            Self::Attributes | Self::Whole => Some(Stake::Creates),
            Self::Read | Self::Part { .. } => Some(Stake::Uses),
            Self::Absent => Some(Stake::Removes),
            Self::Mode(_) | Self::Backup => None,
        }
    }
}

impl Claims {
    /// Returns the paths that exist once the instance was set, and those that it needs where another instance creates
    /// them: the directories around its paths, and what it reads or changes a part of.
    pub fn stakes(&self) -> impl Iterator<Item = (&Arc<Path>, Stake)> {
        self.0.iter().filter_map(|Claim::Path { path, extent }| Some((path, extent.stake()?)))
    }

    /// Of one path.
    pub fn path(path: impl AsRef<Path>, extent: Extent) -> Self {
        // Most have a mode as well.
        let mut claims = Vec::with_capacity(2);
        claims.push(Claim::Path { path: path.as_ref().into(), extent });
        Self(claims)
    }

    /// With another path that is read.
    #[must_use]
    pub fn and_reads(mut self, path: impl AsRef<Path>) -> Self {
        self.0.push(Claim::Path { path: path.as_ref().into(), extent: Extent::Read });
        self
    }

    /// With the mode of its first path.
    #[must_use]
    pub fn and_mode(mut self, mode: u32) -> Self {
        let claim = self
            .0
            .first()
            .map(|Claim::Path { path, .. }| Claim::Path { path: Arc::clone(path), extent: Extent::Mode(mode) });
        self.0.extend(claim);
        self
    }

    /// With copies of former content beside its first path, whose names begin with its name and this suffix.
    #[must_use]
    pub fn and_backup(mut self, suffix: &str) -> Self {
        let beside = self.0.first().map(|Claim::Path { path, .. }| {
            let mut path = path.as_os_str().to_owned();
            path.push(suffix);
            Claim::Path { path: PathBuf::from(path).into(), extent: Extent::Backup }
        });
        self.0.extend(beside);
        self
    }

    /// Returns them with all names of the paths: `others` says which ones a path has besides, if links lead to it.
    #[must_use]
    pub fn with_other_paths<O: IntoIterator<Item = PathBuf>>(mut self, others: impl Fn(&Path) -> O) -> Self {
        let (mut found, mut lonely): (Vec<Claim>, Option<&Arc<Path>>) = (Vec::new(), None);
        // Most claims of an instance are on its one path, and most paths have one name.
        for Claim::Path { path, extent } in &self.0 {
            if lonely.is_none_or(|last| !Arc::ptr_eq(last, path)) {
                let before = found.len();
                found.extend(
                    others(path).into_iter().map(|other| Claim::Path { path: other.into(), extent: extent.clone() }),
                );
                lonely = Some(path).filter(|_| found.len() == before);
            }
        }
        self.0.extend(found);
        self
    }

    /// Returns whether what others manage below its paths is removed.
    pub fn remove_below(&self) -> bool {
        self.0.iter().any(|Claim::Path { extent, .. }| extent.removes_below())
    }

    /// Returns whether the instance creates a link.
    pub fn has_links(&self) -> bool {
        self.0.iter().any(|Claim::Path { extent, .. }| matches!(extent, Extent::Link { .. }))
    }

    /// Returns them with the links to all names of their targets. Of a target that is a link itself, that is where it
    /// leads.
    #[must_use]
    pub(crate) fn with_other_targets(mut self, other: impl Fn(&Path) -> Option<PathBuf>) -> Self {
        let again = |Claim::Path { path, extent }: &Claim| {
            let Extent::Link { target: Some(target) } = extent else { return None };
            let inside = other(&target.join("inside"))?;
            Some(Claim::Path { path: Arc::clone(path), extent: Extent::Link { target: Some(inside.parent()?.into()) } })
        };
        let others: Vec<Claim> = self.0.iter().filter_map(again).collect();
        self.0.extend(others);
        self
    }

    /// Returns them with the paths that are meant, which `resolve` says, all written in one way.
    #[must_use]
    pub fn resolved(mut self, resolve: impl for<'p> Fn(&'p Path) -> Cow<'p, Path>) -> Self {
        // Most claims of an instance are on its one path.
        let mut last: Option<(Arc<Path>, Arc<Path>)> = None;
        for Claim::Path { path, extent } in &mut self.0 {
            if let Extent::Link { target: Some(target) } = extent {
                *target = without_detours(&resolve(&path.parent().unwrap_or(path).join(&target))).into();
            }
            let known = last.take().filter(|(stated, _)| Arc::ptr_eq(stated, path));
            let (stated, meant) = known.unwrap_or_else(|| (Arc::clone(path), plain(path, &resolve)));
            *path = Arc::clone(&meant);
            last = Some((stated, meant));
        }
        self
    }
}

/// Where the links lead that instances create.
///
/// A path that goes through one of them means another path, and what is done at one of the two is done at both.
///
/// # Examples
/// ```
/// use std::path::{Path, PathBuf};
///
/// use stead_core::claims::{Claims, Extent, Links};
///
/// let target = Some(Path::new("/srv/www").into());
/// let link = Claims::path("/var/www", Extent::Link { target });
/// let links = Links::of([&link]);
/// assert_eq!(links.others(Path::new("/var/www/index.html")), [PathBuf::from("/srv/www/index.html")]);
/// assert!(links.others(Path::new("/var/log")).is_empty());
/// ```
#[derive(Debug, Default)]
pub struct Links(HashMap<PathBuf, Vec<Arc<Path>>>);

impl Links {
    /// As many as are followed in one path, as in Linux.
    const LIMIT: usize = 40;

    /// Those of instances with these claims, with absolute paths.
    pub fn of<'c>(claims: impl IntoIterator<Item = &'c Claims>) -> Self {
        let mut links = Self::default();
        claims.into_iter().for_each(|claims| links.add(claims));
        links
    }

    /// Adds those of an instance.
    pub fn add(&mut self, claims: &Claims) {
        for Claim::Path { path, extent } in &claims.0 {
            let Extent::Link { target: Some(target) } = extent else { continue };
            for path in self.others(path).into_iter().chain([path.to_path_buf()]) {
                let targets = self.0.entry(path).or_default();
                if targets.len() < Self::LIMIT && !targets.contains(target) {
                    targets.push(Arc::clone(target));
                }
            }
        }
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the other meanings of a path that leads through any of them, behind each link.
    pub fn others(&self, path: &Path) -> Vec<PathBuf> {
        let mut found = self.step(path);
        let mut at = 0;
        while let Some(next) = found.get(at).filter(|_| found.len() < Self::LIMIT) {
            for other in self.step(next) {
                if other != path && !found.contains(&other) {
                    found.push(other);
                }
            }
            at += 1;
        }
        found
    }

    /// Returns the same path behind the first link that it leads through.
    fn step(&self, path: &Path) -> Vec<PathBuf> {
        if self.is_empty() {
            return Vec::new();
        }
        let first = path.ancestors().skip(1).filter_map(|above| Some((above, self.0.get(above)?))).last();
        let behind = first.and_then(|(link, targets)| Some((path.strip_prefix(link).ok()?, targets)));
        behind.map_or_else(Vec::new, |(below, targets)| targets.iter().map(|target| target.join(below)).collect())
    }
}

/// An absolute path without `.` and `..`, each of which takes back the name in front of it.
fn without_detours(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = plain.pop(),
            part => plain.push(part),
        }
    }
    plain
}

/// The path that is meant by another, without what makes no difference to it.
fn plain(path: &Arc<Path>, resolve: &impl for<'p> Fn(&'p Path) -> Cow<'p, Path>) -> Arc<Path> {
    match resolve(path) {
        Cow::Borrowed(meant) if meant.as_os_str() == path.as_os_str() && is_plain(meant) => Arc::clone(path),
        meant if is_plain(&meant) => meant.into(),
        meant => meant.components().filter(|part| !matches!(part, Component::CurDir)).collect::<PathBuf>().into(),
    }
}

/// Returns whether a path is normalized already, as nearly all are; taking it apart takes longer than all else about
/// a claim.
fn is_plain(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    let mut names = bytes.split(|byte| *byte == b'/');
    MAIN_SEPARATOR == '/' && names.next() == Some(b"") && names.all(|name| !matches!(name, b"" | b"."))
}

/// Two instances that undo each other's work.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Conflict {
    /// The one that comes first in the order given.
    pub first: NodeId,
    /// The one that comes later.
    pub second: NodeId,
    /// The contradiction between them.
    pub about: Contradiction,
    /// Where.
    pub path: PathBuf,
}

/// In what two instances contradict each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Contradiction {
    /// Both manage the same content.
    Same,
    /// Both manage the same part of a file.
    SamePart,
    /// One says that it is there, the other that it is not.
    Existence,
    /// One removes what the other one creates, because its directory is to hold other names only.
    Purged,
    /// One puts a link where the directory is that the other one, which comes first, is in.
    Replaced,
    /// One is for instance a file, the other a directory.
    Kind,
    /// They require different modes.
    Mode,
}

/// The conflicts among instances, each instance at most twice for one path: with one that has a claim on the same path,
/// and with one that removes what is there from above. In the order of the later of the two.
///
/// Guarantees: where two instances conflict, some conflict is found; takes time in proportion to the claims and the depth
/// of their paths. Two instances that want the very same thing conflict too: whether their desired states are equal is
/// for the caller to see.
///
/// # Examples
/// ```
/// use stead_core::claims::{Claims, Contradiction, Extent, conflicts};
/// use stead_core::id::NodeId;
///
/// let file = Claims::path("/etc/motd", Extent::Whole);
/// let no_file = Claims::path("/etc/motd", Extent::Absent);
/// let other_file = Claims::path("/etc/issue", Extent::Whole);
/// let instances = [(NodeId(0), &file), (NodeId(1), &other_file), (NodeId(2), &no_file)];
/// let found = conflicts(&instances);
/// assert_eq!((found[0].first, found[0].second), (NodeId(0), NodeId(2)));
/// assert_eq!(found[0].about, Contradiction::Existence);
/// assert_eq!(found.len(), 1);
/// ```
pub fn conflicts(instances: &[(NodeId, &Claims)]) -> Vec<Conflict> {
    let claims = || {
        let each = instances.iter().flat_map(|(node, claims)| claims.0.iter().map(move |claim| (*node, claim)));
        each.map(|(node, Claim::Path { path, extent })| NodeClaim { node, path, extent })
    };
    let mut seen = Seen::with_capacity(instances.len(), claims().count());
    let mut found: Vec<Conflict> = Vec::new();
    let mut parts: HashMap<(&OsStr, &str), NodeId> = HashMap::new();
    for held in claims() {
        found.extend(seen.at(held.path).find_map(|earlier| earlier.conflict_at(&held)));
        if let Extent::Part { key: Some(key), .. } = held.extent {
            let (path, second) = (held.path.to_owned(), held.node);
            let first = *parts.entry((held.path.as_os_str(), key)).or_insert(second);
            let about = Contradiction::SamePart;
            found.extend((first != second).then_some(Conflict { first, second, about, path }));
        }
        seen.add(held);
    }
    let within: Vec<_> = claims().flat_map(|held| held.within(&parts)).collect();
    // What removes others may come before or after them. Most documents have none of it, and no path is taken apart.
    let removes = claims().any(|held| held.extent.removes_below());
    if !removes && found.is_empty() && within.is_empty() {
        return found;
    }
    let order: BTreeMap<NodeId, usize> = instances.iter().enumerate().map(|(at, (node, _))| (*node, at)).collect();
    found.extend(within.into_iter().map(|(outer, held)| {
        let in_order = order.get(&outer) < order.get(&held.node);
        let (first, second) = if in_order { (outer, held.node) } else { (held.node, outer) };
        Conflict { first, second, about: Contradiction::SamePart, path: held.path.to_owned() }
    }));
    for held in claims().filter(|_| removes) {
        let mut above = held.path.ancestors().skip(1).flat_map(|path| seen.at(path));
        found.extend(above.find_map(|other| other.conflict_below(&held, &order)));
    }
    found.sort_by_key(|conflict| (order.get(&conflict.second), order.get(&conflict.first)));
    found.dedup();
    found
}

/// Returns whether two of these instances have a claim on one path. Of ten thousand files hardly two are one, and this takes less
/// time and memory than to compare their claims.
///
/// # Examples
/// ```
/// use stead_core::claims::{Claims, Extent, share_paths};
/// use stead_core::id::NodeId;
///
/// let (motd, issue) = (Claims::path("/etc/motd", Extent::Whole), Claims::path("/etc/issue", Extent::Whole));
/// assert!(!share_paths([(NodeId(0), &motd), (NodeId(1), &issue)]));
/// assert!(share_paths([(NodeId(0), &motd), (NodeId(1), &issue), (NodeId(2), &motd)]));
/// ```
pub fn share_paths<'c>(instances: impl IntoIterator<Item = (NodeId, &'c Claims)>) -> bool {
    let instances = instances.into_iter();
    let mut first: HashMap<&OsStr, NodeId> = HashMap::with_capacity(instances.size_hint().1.unwrap_or_default());
    let claims = instances.flat_map(|(node, claims)| claims.0.iter().map(move |Claim::Path { path, .. }| (node, path)));
    claims.into_iter().any(|(node, path)| *first.entry(path.as_os_str()).or_insert(node) != node)
}

impl Extent {
    /// Returns whether it removes everything below its path.
    fn removes_below(&self) -> bool {
        matches!(self, Self::Absent | Self::Tree { purge: true } | Self::Entries { .. } | Self::Link { .. })
    }

    /// Returns the kind of node that it creates at a path; `None` if it creates nothing.
    fn kind(&self) -> Option<FileKind> {
        match self {
            Self::Read | Self::Backup | Self::Mode(_) | Self::Absent | Self::Presence => None,
            Self::Attributes | Self::Part { .. } | Self::Whole => Some(FileKind::File),
            Self::Directory | Self::Entries { .. } | Self::Tree { .. } => Some(FileKind::Directory),
            Self::Link { .. } => Some(FileKind::Link),
        }
    }
}

/// The kind of node at a path.
#[derive(PartialEq, Eq)]
enum FileKind {
    File,
    Directory,
    Link,
}

/// A claim and whose it is.
#[derive(Clone, Copy)]
struct NodeClaim<'c> {
    node: NodeId,
    path: &'c Path,
    extent: &'c Extent,
}

impl NodeClaim<'_> {
    /// Others that manage a part of the same file that this one is a part of.
    fn within(self, parts: &HashMap<(&OsStr, &str), NodeId>) -> Vec<(NodeId, Self)> {
        let Extent::Part { key: Some(key), .. } = self.extent else { return Vec::new() };
        let above = key.match_indices(Extent::WITHIN).filter_map(|(at, _)| key.get(..at).filter(|key| !key.is_empty()));
        let outer = above.filter_map(|key| parts.get(&(self.path.as_os_str(), key)).copied());
        outer.filter(|outer| *outer != self.node).map(|outer| (outer, self)).collect()
    }

    /// Returns how a later claim on the same path contradicts this one, if it does.
    fn conflict_at(&self, later: &NodeClaim<'_>) -> Option<Conflict> {
        let about = (self.node != later.node).then(|| contradiction(self.extent, later.extent)).flatten()?;
        Some(Conflict { first: self.node, second: later.node, about, path: later.path.to_owned() })
    }

    /// Returns the conflict with a claim on a path below it, if this one removes what that one creates.
    fn conflict_below(&self, below: &NodeClaim<'_>, order: &BTreeMap<NodeId, usize>) -> Option<Conflict> {
        let concerns = match below.extent {
            Extent::Read | Extent::Mode(_) => false,
            Extent::Absent => matches!(self.extent, Extent::Link { .. }),
            // A copy of former content is removed like anything else that a directory is not to hold.
            Extent::Backup => matches!(self.extent, Extent::Tree { .. } | Extent::Entries { .. }),
            _ => true,
        };
        if self.node == below.node || !concerns {
            return None;
        }
        let about = match self.extent {
            Extent::Absent => Contradiction::Existence,
            Extent::Tree { purge: true } => Contradiction::Purged,
            Extent::Entries { kept } if !is_kept(kept, self.path, below.path) => Contradiction::Purged,
            Extent::Link { .. } if order.get(&below.node) < order.get(&self.node) => Contradiction::Replaced,
            _ => return None,
        };
        let (mut first, mut second) = (self.node, below.node);
        if order.get(&first) > order.get(&second) {
            std::mem::swap(&mut first, &mut second);
        }
        Some(Conflict { first, second, about, path: below.path.to_owned() })
    }
}

/// Returns whether the name through which a path leads into a directory is one of those.
pub(crate) fn is_kept(kept: &BTreeSet<String>, directory: &Path, path: &Path) -> bool {
    let inside = path.strip_prefix(directory).ok();
    let name = inside.and_then(|inside| inside.components().next()?.as_os_str().to_str());
    name.is_some_and(|name| kept.contains(name))
}

/// In what two claims on the same path contradict each other.
fn contradiction(one: &Extent, other: &Extent) -> Option<Contradiction> {
    use Extent::{Absent, Attributes, Directory, Entries, Mode, Part, Presence};
    match (one, other) {
        (Absent, Presence) | (Presence, Absent) => Some(Contradiction::Existence),
        (Mode(one), Mode(other)) => (one != other).then_some(Contradiction::Mode),
        (Absent, other) | (other, Absent) => other.kind().map(|_| Contradiction::Existence),
        (one, other) if one.kind()? != other.kind()? => Some(Contradiction::Kind),
        (Entries { kept }, Entries { kept: others }) => (kept != others).then_some(Contradiction::Purged),
        (Attributes | Directory, _) | (_, Attributes | Directory) | (Part { .. }, Part { .. }) => None,
        _ => Some(Contradiction::Same),
    }
}

/// The claims that others are compared with: of each path the first two of each kind, of different instances.
///
/// More of one kind contradict what these contradict; and of different names in one directory, already two contradict
/// each other and any third.
struct Seen<'c> {
    /// The first claim on each path, by its bytes: comparing paths takes them apart, and these are written in one way.
    first: HashMap<&'c OsStr, usize>,
    /// With the place of the next one on the same path.
    claims: Vec<(NodeClaim<'c>, Option<usize>)>,
}

impl<'c> Seen<'c> {
    fn with_capacity(paths: usize, claims: usize) -> Self {
        Self { first: HashMap::with_capacity(paths), claims: Vec::with_capacity(claims) }
    }

    fn at(&self, path: &Path) -> impl Iterator<Item = &NodeClaim<'c>> {
        let first = self.first.get(path.as_os_str()).and_then(|at| self.claims.get(*at));
        std::iter::successors(first, |(_, next)| self.claims.get((*next)?)).map(|(held, _)| held)
    }

    fn add(&mut self, held: NodeClaim<'c>) {
        let (mut equal, mut alike) = (0, 0);
        let place = self.claims.len();
        let mut at = *self.first.entry(held.path.as_os_str()).or_insert(place);
        while let Some((other, next)) = self.claims.get_mut(at) {
            equal += usize::from(other.extent == held.extent);
            alike += usize::from(discriminant(other.extent) == discriminant(held.extent));
            if equal == 2 || alike == 4 {
                return;
            }
            at = *next.get_or_insert(place);
        }
        self.claims.push((held, None));
    }
}
