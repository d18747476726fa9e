//! In what-if: what the changes that are predicted can have an effect on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::path::{Path, PathBuf};

use crate::call::TREE;
use crate::graph::{Graph, Role};
use crate::id::NodeId;

/// Changes that are predicted, and what they touch.
///
/// An instance that is in state now may not be once the changes before it are made. Which changes come before one is
/// looked up only where paths overlap: to keep for every instance all that can reach it would take a square of space.
///
/// Guarantees: what it does not report as reached is not reached. What it reports may be more than is reached where it
/// would need to look at more than [`FAR`] instances.
#[derive(Default)]
pub(super) struct Forecast {
    /// For each node one of the changes before it, itself included.
    after: BTreeMap<NodeId, NodeId>,
    /// The same of changes that may touch anything.
    after_anything: BTreeMap<NodeId, NodeId>,
    /// The changes that will be made, and do not remove.
    certain: BTreeSet<NodeId>,
    /// The paths that each change is limited to.
    touches: BTreeMap<NodeId, Vec<PathBuf>>,
    /// All of these together, and the changes that touch each, by their places in the order.
    touched: BTreeMap<PathBuf, BTreeSet<(u32, NodeId)>>,
}

/// How many instances are looked at between a change and what it may reach; more could take the square of all.
const FAR: usize = 1000;

impl Forecast {
    /// Notes that an instance will or may change, and the paths that this is limited to. What is certain to change leaves
    /// what it is about in place.
    pub(super) fn changes(&mut self, id: NodeId, rank: u32, is_certain: bool, touches: Option<&[PathBuf]>) {
        self.after.insert(id, id);
        self.certain.extend(is_certain.then_some(id));
        match touches {
            None => {
                self.after_anything.insert(id, id);
            }
            Some(paths) => {
                for path in paths {
                    self.touched.entry(path.clone()).or_default().insert((rank, id));
                }
                self.touches.insert(id, paths.to_vec());
            }
        }
    }

    /// Whether a change before that place in the order is about one of these paths itself. What that makes possible is
    /// known; what a change around them makes possible, such as a copied tree, or one that may touch anything, is not.
    pub(super) fn supplies(&self, rank: u32, paths: &[PathBuf]) -> bool {
        let is_before = |changes: &BTreeSet<(u32, NodeId)>| {
            changes.range(..(rank, NodeId(0))).any(|(_, change)| self.certain.contains(change))
        };
        paths.iter().any(|path| self.touched.get(path).is_some_and(is_before))
    }

    /// Notes that a node is settled: what comes after it comes after what it came after.
    pub(super) fn settled(&mut self, graph: &Graph, id: NodeId) {
        let sources = || before(graph, id).chain(members(graph, id));
        for changes in [&mut self.after, &mut self.after_anything] {
            if !changes.contains_key(&id)
                && let Some(change) = sources().find_map(|source| changes.get(&source).copied())
            {
                changes.insert(id, change);
            }
        }
    }

    /// The change before an instance that may have an effect on it.
    pub(super) fn reaches(&self, graph: &Graph, id: NodeId, touches: Option<&[PathBuf]>) -> Option<NodeId> {
        if let Some(change) = before(graph, id).find_map(|source| self.after_anything.get(&source)) {
            return Some(*change);
        }
        let change = before(graph, id).find_map(|source| self.after.get(&source))?;
        let Some(paths) = touches else { return Some(*change) };
        let shared: Vec<PathBuf> = paths.iter().flat_map(|path| self.overlapping(path)).cloned().collect();
        let shared = if shared.is_empty() { None } else { self.nearest(graph, id, &shared) };
        shared.or_else(|| self.exchanges(graph, id, touches))
    }

    /// The change before an instance that decides what is at one of its paths: of a whole tree that the path is in.
    pub(super) fn exchanges(&self, graph: &Graph, id: NodeId, touches: Option<&[PathBuf]>) -> Option<NodeId> {
        before(graph, id).find(|source| self.after.contains_key(source))?;
        let above = touches?.iter().flat_map(|path| path.ancestors().skip(1));
        let trees: Vec<PathBuf> =
            above.map(|path| path.join(TREE)).filter(|tree| self.touched.contains_key(tree)).collect();
        if trees.is_empty() { None } else { self.nearest(graph, id, &trees) }
    }

    /// The change that may make possible what is not yet: one that the instance comes after and that may touch
    /// anything, or one in front of that place in the order that touches one of these paths, what leads to it, or what
    /// is below it.
    ///
    /// For paths, no dependency needs to be declared: unless something prevents it, instances begin in the order of the
    /// graph.
    pub(super) fn enables(&self, graph: &Graph, id: NodeId, rank: u32, paths: &[PathBuf]) -> Option<NodeId> {
        let anything = before(graph, id).find_map(|source| self.after_anything.get(&source).copied());
        anything.or_else(|| paths.iter().find_map(|path| self.around(path, rank)))
    }

    /// What changes touch of a path, or of the tree that it stands for.
    fn overlapping<'p>(&'p self, path: &'p Path) -> impl Iterator<Item = &'p PathBuf> {
        let tree = path.parent().filter(|_| path.ends_with(TREE));
        let from = tree.unwrap_or(path);
        let within = move |touched: &Path| if tree.is_some() { touched.starts_with(from) } else { touched == from };
        let from_there = self.touched.range::<Path, _>((Bound::Included(from), Bound::Unbounded));
        from_there.map(|(touched, _)| touched).take_while(move |touched| within(touched))
    }

    fn around(&self, path: &Path, rank: u32) -> Option<NodeId> {
        let first =
            |changes: &BTreeSet<(u32, NodeId)>| changes.first().filter(|first| first.0 < rank).map(|first| first.1);
        let above = path.ancestors().find_map(|above| self.touched.get(above).and_then(first));
        let mut below = self.touched.range(path.to_owned()..).take_while(|(below, _)| below.starts_with(path));
        above.or_else(|| below.find_map(|(_, changes)| first(changes)))
    }

    /// The nearest change among all that come before a node that touches one of these paths.
    fn nearest(&self, graph: &Graph, id: NodeId, paths: &[PathBuf]) -> Option<NodeId> {
        let overlaps =
            |id: &NodeId| self.touches.get(id).is_some_and(|own| own.iter().any(|path| paths.contains(path)));
        let mut waiting: VecDeque<NodeId> = before(graph, id).collect();
        let mut seen = BTreeSet::new();
        while let Some(next) = waiting.pop_front() {
            if overlaps(&next) {
                return Some(next);
            }
            let Some(change) = self.after.get(&next) else { continue };
            if seen.len() >= FAR {
                return Some(*change);
            }
            if seen.insert(next) {
                waiting.extend(graph.node(next).needs.iter().map(|need| need.node));
                waiting.extend(members(graph, next));
            }
        }
        None
    }
}

/// What comes directly before a node: what it needs, and what those need that hold it.
fn before(graph: &Graph, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
    let outward = std::iter::successors(Some(id), |id| graph.container(*id));
    outward.flat_map(|id| graph.node(id).needs.iter().map(|need| need.node))
}

fn members(graph: &Graph, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
    let members = match graph.node(id).role {
        Role::Container { inner, .. } => graph.scope(inner).members.as_slice(),
        Role::Instance => &[],
    };
    members.iter().copied()
}
