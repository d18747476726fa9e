//! The order that follows from what instances create and use.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use stead_core::claims::{Claims, Provision, Stake, Ties};
use stead_core::graph::{Graph, Implied};
use stead_core::id::NodeId;

/// What is known of an instance before anything runs.
pub(crate) struct Known {
    pub(crate) id: NodeId,
    pub(crate) claims: Option<Claims>,
    /// Most have none.
    pub(crate) ties: Option<Box<Ties>>,
}

impl Known {
    /// `None` of an instance that nothing is known of.
    pub(crate) fn of(id: NodeId, claims: Option<Claims>, ties: Ties) -> Option<Self> {
        let ties = (!ties.is_empty()).then(|| Box::new(ties));
        (claims.is_some() || ties.is_some()).then_some(Self { id, claims, ties })
    }
}

/// What two instances have in common that the order of them follows from.
pub(crate) enum Cause<'k> {
    /// A path that one lies in or uses, and the other creates or removes.
    Path(&'k Path),
    /// What one uses and the other brings.
    Provision(&'k Provision),
}

impl fmt::Display for Cause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "'{}'", path.display()),
            Self::Provision(Provision::Path(path)) => write!(f, "'{}'", path.display()),
            Self::Provision(Provision::Package(name)) => write!(f, "the package '{name}'"),
            Self::Provision(Provision::PackageSource) => f.write_str("the sources of packages"),
        }
    }
}

/// Which instances need which others because of what they lie in or use: the one that creates it, or that removes it
/// last. Where several create the same, it needs all of them.
pub(crate) fn implied(graph: &Graph, all: &[Known]) -> BTreeSet<Implied> {
    let mut found = BTreeSet::new();
    each(graph, all, |implied, _| _ = found.insert(implied));
    let adjacent = |each: Implied| self::adjacent(graph, each);
    found.into_iter().filter_map(adjacent).collect()
}

/// The same, each with why it is so.
pub(crate) fn causes(graph: &Graph, all: &[Known]) -> BTreeMap<Implied, String> {
    let mut found = BTreeMap::new();
    each(graph, all, |implied, cause| {
        if let Some(implied) = adjacent(graph, implied) {
            found.entry(implied).or_insert_with(|| cause.to_string());
        }
    });
    found
}

/// Between instances of one scope: those, or what they are nested in.
fn adjacent(graph: &Graph, each: Implied) -> Option<Implied> {
    let (instance, needed) = graph.adjacent(each.instance, each.needed)?;
    Some(Implied { instance, needed })
}

fn each<'k>(graph: &Graph, all: &'k [Known], mut found: impl FnMut(Implied, Cause<'k>)) {
    // What is within an assertion creates nothing.
    let index = Index::of(all.iter().filter(|known| !graph.is_asserted(known.id)));
    for known in all {
        for (path, stake) in known.claims.iter().flat_map(Claims::stakes) {
            match stake {
                // What is removed empties the directories around it.
                Stake::Removes => {
                    let outer = around(path, &index.removed).iter();
                    outer.for_each(|outer| found(Implied { instance: *outer, needed: known.id }, Cause::Path(path)));
                }
                Stake::Holds | Stake::Creates => {
                    let outer = around(path, &index.folders).iter();
                    outer.for_each(|outer| found(Implied { instance: known.id, needed: *outer }, Cause::Path(path)));
                }
                Stake::Uses => {
                    let creators = index.creators(path);
                    creators.for_each(|other| found(Implied { instance: known.id, needed: other }, Cause::Path(path)));
                }
            }
        }
        for provision in known.ties.iter().flat_map(|ties| &ties.uses) {
            let mut needs = |other| found(Implied { instance: known.id, needed: other }, Cause::Provision(provision));
            match provision {
                Provision::Path(path) => index.creators(path).for_each(&mut needs),
                other => index.providers.get(other).into_iter().flatten().copied().for_each(&mut needs),
            }
        }
    }
}

/// Instances by path. The keys are not paths, which take as long to hash as to take apart.
type ByPath<'a> = HashMap<&'a OsStr, Vec<NodeId>>;

/// Who creates what.
#[derive(Default)]
struct Index<'a> {
    /// What others can lie in: few, so that most paths are not taken apart at all.
    folders: ByPath<'a>,
    files: ByPath<'a>,
    removed: ByPath<'a>,
    providers: HashMap<&'a Provision, Vec<NodeId>>,
}

impl<'a> Index<'a> {
    fn of(all: impl Iterator<Item = &'a Known> + Clone) -> Self {
        let mut index = Self::default();
        // Files matter to those who use them alone.
        let uses = |known: &'a Known| {
            let is_used = |(_, stake)| stake == Stake::Uses;
            known.ties.as_ref().is_some_and(|ties| !ties.uses.is_empty())
                || known.claims.iter().flat_map(Claims::stakes).any(is_used)
        };
        let with_files = all.clone().any(uses);
        for known in all {
            for (path, stake) in known.claims.iter().flat_map(Claims::stakes) {
                let places = match stake {
                    Stake::Holds => &mut index.folders,
                    Stake::Creates if with_files => &mut index.files,
                    Stake::Removes => &mut index.removed,
                    Stake::Creates | Stake::Uses => continue,
                };
                places.entry(path.as_os_str()).or_default().push(known.id);
            }
            for provision in known.ties.iter().flat_map(|ties| &ties.provides) {
                match provision {
                    Provision::Path(path) => index.files.entry(path.as_os_str()).or_default().push(known.id),
                    other => index.providers.entry(other).or_default().push(known.id),
                }
            }
        }
        index
    }

    /// Who creates what is at a path or, if nobody does, the nearest directory around it.
    fn creators(&self, path: &Path) -> impl Iterator<Item = NodeId> {
        let at = self.files.get(path.as_os_str()).or_else(|| self.folders.get(path.as_os_str()));
        let found = at.map_or_else(|| around(path, &self.folders), Vec::as_slice);
        found.iter().copied()
    }
}

/// The instances whose path is the nearest one around a path.
fn around<'i>(path: &Path, instances: &'i ByPath<'_>) -> &'i [NodeId] {
    if instances.is_empty() {
        return &[];
    }
    path.ancestors().skip(1).find_map(|ancestor| instances.get(ancestor.as_os_str())).map_or(&[], Vec::as_slice)
}
