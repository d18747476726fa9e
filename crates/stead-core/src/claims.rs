//! What instances manage, and which of them contradict each other.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::mem::discriminant;
use std::path::{Component, MAIN_SEPARATOR, Path, PathBuf};

use hashbrown::HashMap;

use crate::call::TREE;
use crate::id::NodeId;

/// Everything that an instance reads or manages.
///
/// Guarantees: an instance with claims has an effect on nothing else.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Claims(pub Vec<Claim>);

/// One thing that an instance reads or manages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Claim {
    /// What is at a path of the file system.
    Path {
        /// Where. [`conflicts`] takes absolute paths without `.` and repeated slashes; [`Claims::resolved`] makes them.
        path: PathBuf,
        /// How much of it.
        extent: Extent,
    },
}

/// How much of what is at a path an instance manages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Extent {
    /// Nothing: it is only read.
    Read,
    /// That it is there, with its mode and owner.
    Attributes,
    /// A part of its content.
    Part,
    /// All of its content.
    Whole,
    /// Which names are in a directory: others are removed.
    Entries {
        /// The names that are left alone.
        kept: BTreeSet<String>,
    },
    /// Everything below a directory, as in another one.
    Tree {
        /// Whether what the other one does not have is removed.
        purge: bool,
    },
    /// That nothing is there.
    Absent,
}

impl Claims {
    /// Of one path.
    pub fn path(path: impl Into<PathBuf>, extent: Extent) -> Self {
        Self(vec![Claim::Path { path: path.into(), extent }])
    }

    /// With another path that is read.
    #[must_use]
    pub fn and_reads(mut self, path: impl Into<PathBuf>) -> Self {
        self.0.push(Claim::Path { path: path.into(), extent: Extent::Read });
        self
    }

    /// The same with the paths that are meant, which `resolve` says, all written in one way.
    #[must_use]
    pub fn resolved(self, resolve: impl Fn(&Path) -> PathBuf) -> Self {
        let resolve = |Claim::Path { path, extent }: Claim| {
            let path = resolve(&path);
            let plain = || path.components().filter(|component| !matches!(component, Component::CurDir)).collect();
            let path = if is_plain(&path) { path } else { plain() };
            Claim::Path { path, extent }
        };
        Self(self.0.into_iter().map(resolve).collect())
    }

    /// The paths that it is limited to; one that ends in [`TREE`] stands for all below.
    ///
    /// What becomes a file or a link decides what is below it, too; and a tree that is copied is read as a whole.
    pub fn touches(&self) -> Vec<PathBuf> {
        let copies = self.0.iter().any(|Claim::Path { extent, .. }| matches!(extent, Extent::Tree { .. }));
        let is_limited = |extent: &Extent| match extent {
            Extent::Read => !copies,
            // What `entries` removes should not exist; whoever creates it all the same is reported as a conflict.
            Extent::Attributes | Extent::Part | Extent::Entries { .. } => true,
            Extent::Whole | Extent::Tree { .. } | Extent::Absent => false,
        };
        let touched = |Claim::Path { path, extent }: &Claim| {
            let tree = (!is_limited(extent)).then(|| path.join(TREE));
            [path.clone()].into_iter().chain(tree)
        };
        self.0.iter().flat_map(touched).collect()
    }
}

/// Whether a path is written in one way already, as nearly all are; taking it apart takes longer than all else about a claim.
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
    /// What they contradict each other in.
    pub about: Contradiction,
    /// Where.
    pub path: PathBuf,
}

/// In what two instances contradict each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Contradiction {
    /// Both manage the same content.
    Same,
    /// One says that it is there, the other that it is not.
    Existence,
    /// One removes what the other one creates, because its directory is to hold other names only.
    Purged,
}

/// The conflicts among instances, each instance at most twice for one path: with one that has a claim on the same path,
/// and with one that removes what is there from above. In the order of the later of the two.
///
/// Guarantees: where two instances conflict, some conflict is found; takes time in proportion to the claims and the depth
/// of their paths. Two instances that want the very same thing conflict too: whether their desired states are equal is
/// for the caller to see.
pub fn conflicts(instances: &[(NodeId, &Claims)]) -> Vec<Conflict> {
    let claims = || {
        let each = instances.iter().flat_map(|(node, claims)| claims.0.iter().map(move |claim| (*node, claim)));
        each.map(|(node, Claim::Path { path, extent })| Held { node, path, extent })
    };
    let mut seen = Seen::default();
    let mut found: Vec<Conflict> = Vec::new();
    for held in claims() {
        found.extend(seen.at(held.path).find_map(|earlier| earlier.conflict_at(&held)));
        seen.add(held);
    }
    // What removes others may come before or after them. Most documents have none of it, and no path is taken apart.
    let removes = claims().any(|held| held.extent.removes_below());
    if !removes && found.is_empty() {
        return found;
    }
    let order: BTreeMap<NodeId, usize> = instances.iter().enumerate().map(|(at, (node, _))| (*node, at)).collect();
    for held in claims().filter(|_| removes) {
        let mut above = held.path.ancestors().skip(1).flat_map(|path| seen.at(path));
        found.extend(above.find_map(|other| other.conflict_below(&held, &order)));
    }
    found.sort_by_key(|conflict| (order.get(&conflict.second), order.get(&conflict.first)));
    found.dedup();
    found
}

impl Extent {
    /// Whether it removes what is below its path.
    fn removes_below(&self) -> bool {
        matches!(self, Self::Absent | Self::Tree { purge: true } | Self::Entries { .. })
    }
}

/// A claim and whose it is.
#[derive(Clone, Copy)]
struct Held<'c> {
    node: NodeId,
    path: &'c Path,
    extent: &'c Extent,
}

impl Held<'_> {
    /// Whether a later claim on the same path contradicts this one.
    fn conflict_at(&self, later: &Held<'_>) -> Option<Conflict> {
        let about = (self.node != later.node).then(|| contradiction(self.extent, later.extent)).flatten()?;
        Some(Conflict { first: self.node, second: later.node, about, path: later.path.to_owned() })
    }

    /// Whether this one removes what a claim on a path below it creates.
    fn conflict_below(&self, below: &Held<'_>, order: &BTreeMap<NodeId, usize>) -> Option<Conflict> {
        if self.node == below.node || matches!(below.extent, Extent::Read | Extent::Absent) {
            return None;
        }
        let about = match self.extent {
            Extent::Absent => Contradiction::Existence,
            Extent::Tree { purge: true } => Contradiction::Purged,
            Extent::Entries { kept } if !is_kept(kept, self.path, below.path) => Contradiction::Purged,
            _ => return None,
        };
        let (mut first, mut second) = (self.node, below.node);
        if order.get(&first) > order.get(&second) {
            std::mem::swap(&mut first, &mut second);
        }
        Some(Conflict { first, second, about, path: below.path.to_owned() })
    }
}

/// Whether the name through which a path leads into a directory is one of those.
fn is_kept(kept: &BTreeSet<String>, directory: &Path, path: &Path) -> bool {
    let inside = path.strip_prefix(directory).ok();
    let name = inside.and_then(|inside| inside.components().next()?.as_os_str().to_str());
    name.is_some_and(|name| kept.contains(name))
}

/// In what two claims on the same path contradict each other.
fn contradiction(one: &Extent, other: &Extent) -> Option<Contradiction> {
    use Extent::{Absent, Attributes, Entries, Part, Read, Whole};
    match (one, other) {
        (Read, _) | (_, Read) | (Absent, Absent) => None,
        (Absent, _) | (_, Absent) => Some(Contradiction::Existence),
        (Entries { kept }, Entries { kept: others }) => (kept != others).then_some(Contradiction::Purged),
        _ if [one, other].contains(&&Attributes) => None,
        _ if [one, other].contains(&&Part) && ![one, other].contains(&&Whole) => None,
        _ => Some(Contradiction::Same),
    }
}

/// The claims that others are compared with: of each path the first two of each kind, of different instances.
///
/// More of one kind contradict what these contradict; and of different names in one directory, already two contradict
/// each other and any third.
#[derive(Default)]
struct Seen<'c> {
    // By the bytes of the path: comparing paths takes them apart, and these are written in one way.
    first: HashMap<&'c OsStr, Vec<Held<'c>>>,
}

impl<'c> Seen<'c> {
    fn at(&self, path: &Path) -> impl Iterator<Item = &Held<'c>> {
        self.first.get(path.as_os_str()).into_iter().flatten()
    }

    fn add(&mut self, held: Held<'c>) {
        let known = self.first.entry(held.path.as_os_str()).or_default();
        let equal = known.iter().filter(|other| other.extent == held.extent).count();
        let alike = known.iter().filter(|other| discriminant(other.extent) == discriminant(held.extent)).count();
        if equal < 2 && alike < 4 {
            known.push(held);
        }
    }
}
