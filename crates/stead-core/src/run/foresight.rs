//! In what-if: what the changes that are foreseen can have an effect on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;

use crate::graph::{Graph, Role};
use crate::id::NodeId;

/// Changes that are foreseen, and what they touch.
///
/// An instance that is in state now may not be once the changes before it are made. Which changes come before one is
/// looked up only where paths overlap: to keep for every instance all that can reach it would take a square of space.
#[derive(Default)]
pub(super) struct Foresight {
    /// For each node one of the changes before it, itself included.
    after: BTreeMap<NodeId, NodeId>,
    /// The same of changes that may touch anything.
    after_anything: BTreeMap<NodeId, NodeId>,
    /// What may change a path.
    by_path: BTreeMap<PathBuf, Vec<NodeId>>,
}

impl Foresight {
    /// Notes that an instance will or may change, and the paths that this is limited to.
    pub(super) fn changes(&mut self, id: NodeId, touches: Option<&[PathBuf]>) {
        self.after.insert(id, id);
        match touches {
            None => {
                self.after_anything.insert(id, id);
            }
            Some(paths) => {
                for path in paths {
                    self.by_path.entry(path.clone()).or_default().push(id);
                }
            }
        }
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
        let changers: BTreeSet<NodeId> =
            paths.iter().filter_map(|path| self.by_path.get(path)).flatten().copied().collect();
        if changers.is_empty() { None } else { self.nearest(graph, id, &changers) }
    }

    /// The nearest of these nodes among all that come before one.
    fn nearest(&self, graph: &Graph, id: NodeId, wanted: &BTreeSet<NodeId>) -> Option<NodeId> {
        let mut waiting: VecDeque<NodeId> = before(graph, id).collect();
        let mut seen = BTreeSet::new();
        while let Some(next) = waiting.pop_front() {
            if wanted.contains(&next) {
                return Some(next);
            }
            if self.after.contains_key(&next) && seen.insert(next) {
                waiting.extend(&graph.node(next).needs);
                waiting.extend(members(graph, next));
            }
        }
        None
    }
}

/// What comes directly before a node: what it needs, and what those need that hold it.
fn before(graph: &Graph, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
    let outward = std::iter::successors(Some(id), |id| graph.holder(*id));
    outward.flat_map(|id| graph.node(id).needs.iter().copied())
}

fn members(graph: &Graph, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
    let members = match graph.node(id).role {
        Role::Holder { inner, .. } => graph.scope(inner).members.as_slice(),
        Role::Instance => &[],
    };
    members.iter().copied()
}
