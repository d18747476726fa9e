//! The order that follows from what instances create and use.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::path::Path;

use stead_core::claims::{Claims, Provision, Stake, Ties};
use stead_core::graph::{Graph, Implied};
use stead_core::id::NodeId;

/// What is known of an instance before anything runs.
pub(crate) struct Known {
    pub(crate) id: NodeId,
    pub(crate) claims: Option<Claims>,
    pub(crate) ties: Ties,
}

/// Which instances need which others because of what they lie in or use: the one that creates it, or that removes it
/// last. Where several create the same, it needs all of them.
pub(crate) fn implied(graph: &Graph, all: &[Known]) -> BTreeSet<Implied> {
    // What is within an assertion creates nothing.
    let index = Index::of(all.iter().filter(|known| !graph.is_asserted(known.id)));
    let mut found = BTreeSet::new();
    for known in all {
        let needed = |other: NodeId| Implied { instance: known.id, needed: other };
        let needs = |other: NodeId| Implied { instance: other, needed: known.id };
        for (path, stake) in known.claims.iter().flat_map(Claims::stakes) {
            match stake {
                // What is removed empties the directories around it.
                Stake::Removes => found.extend(around(path, &index.removed).iter().copied().map(needs)),
                Stake::Holds | Stake::Creates => found.extend(around(path, &index.holders).iter().copied().map(needed)),
                Stake::Uses => found.extend(index.creators(path).map(needed)),
            }
        }
        for provision in &known.ties.uses {
            match provision {
                Provision::Path(path) => found.extend(index.creators(path).map(needed)),
                other => found.extend(index.providers.get(other).into_iter().flatten().copied().map(needed)),
            }
        }
    }
    let adjacent = |each: Implied| {
        let (instance, needed) = graph.adjacent(each.instance, each.needed)?;
        Some(Implied { instance, needed })
    };
    found.into_iter().filter_map(adjacent).collect()
}

/// Instances by path. The keys are no paths, which take as long to hash as to take apart.
type ByPath<'a> = HashMap<&'a OsStr, Vec<NodeId>>;

/// Who creates what.
#[derive(Default)]
struct Index<'a> {
    /// What others can lie in: few, so that most paths are not taken apart at all.
    holders: ByPath<'a>,
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
            !known.ties.uses.is_empty() || known.claims.iter().flat_map(Claims::stakes).any(is_used)
        };
        let with_files = all.clone().any(uses);
        for known in all {
            for (path, stake) in known.claims.iter().flat_map(Claims::stakes) {
                let places = match stake {
                    Stake::Holds => &mut index.holders,
                    Stake::Creates if with_files => &mut index.files,
                    Stake::Removes => &mut index.removed,
                    Stake::Creates | Stake::Uses => continue,
                };
                places.entry(path.as_os_str()).or_default().push(known.id);
            }
            for provision in &known.ties.provides {
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
        let at = self.files.get(path.as_os_str()).or_else(|| self.holders.get(path.as_os_str()));
        let found = at.map_or_else(|| around(path, &self.holders), Vec::as_slice);
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
