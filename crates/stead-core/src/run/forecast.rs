//! In what-if: what the changes that are predicted can have an effect on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::footprint::{Footprint, Writes};
use crate::graph::{Graph, Implied, Need, NeedKind};
use crate::id::NodeId;

/// Changes that are predicted, and what they alter.
///
/// An instance that is in state now may not be once the changes before it are made. Changes are added in the order of the
/// graph, and an instance is compared with those in front of it. For paths, no dependency needs to be declared: unless
/// something prevents it, instances begin in that order.
///
/// Guarantees: what it does not report as reached is not reached.
#[derive(Default)]
pub(super) struct Forecast {
    /// For each node one of the changes that it depends on, itself included.
    after: BTreeMap<NodeId, NodeId>,
    /// For each node one of the changes that may have an effect on anything and that it depends on.
    after_anything: BTreeMap<NodeId, NodeId>,
    /// The changes that will be made.
    certain: BTreeSet<NodeId>,
    /// For each node an unknown one without which it would be skipped, itself included.
    unknown: BTreeMap<NodeId, NodeId>,
    writes: Writes,
}

/// How sure a change is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Certainty {
    /// It is made as predicted.
    Predicted,
    /// It may be made, or another one.
    Possible,
}

impl Forecast {
    /// Notes that an instance will or may change.
    pub(super) fn changes(&mut self, id: NodeId, certainty: Certainty, footprint: Option<&Footprint>) {
        self.after.insert(id, id);
        let Some(footprint) = footprint else {
            self.after_anything.insert(id, id);
            return;
        };
        self.writes.add_links(footprint);
        match certainty {
            Certainty::Predicted => {
                self.certain.insert(id);
                self.writes.add(id, footprint.writes(), footprint.left());
            }
            Certainty::Possible => self.writes.add(id, footprint.possible_writes(), &BTreeSet::new()),
        }
    }

    /// Notes that an instance will fail, and may have altered something until then.
    pub(super) fn fails(&mut self, id: NodeId, footprint: &Footprint) {
        self.writes.add(id, footprint.writes_of_failure(), &BTreeSet::new());
    }

    /// Notes that it is unknown what becomes of a node.
    pub(super) fn unknown(&mut self, id: NodeId) {
        self.unknown.insert(id, id);
    }

    /// Of an instance that is for failures of others: what is unknown, and would have one of those skipped if it failed.
    pub(super) fn may_fail(&self, graph: &Graph, id: NodeId) -> Option<NodeId> {
        let needs = graph.node(id).needs.iter().filter(|need| need.kind == NeedKind::OnFailure);
        needs.map(|need| need.node).find_map(|other| self.unknown.get(&other).copied())
    }

    /// Notes that a node is settled: what depends on it depends on what it depended on.
    pub(super) fn settled(&mut self, graph: &Graph, id: NodeId) {
        if !self.unknown.is_empty() && !self.unknown.contains_key(&id) {
            let needs = needs(graph, id).map(|(_, need)| need);
            let mut needs = needs.filter(|need| !matches!(need.kind, NeedKind::OnFailure | NeedKind::Order));
            if let Some(unknown) = needs.find_map(|need| self.unknown.get(&need.node).copied()) {
                self.unknown.insert(id, unknown);
            }
        }
        if self.after.is_empty() {
            return;
        }
        let sources = || before(graph, id).chain(graph.members(id).iter().copied());
        for changes in [&mut self.after, &mut self.after_anything] {
            if !changes.contains_key(&id)
                && let Some(change) = sources().find_map(|source| changes.get(&source).copied())
            {
                changes.insert(id, change);
            }
        }
    }

    /// The change in front of an instance that may have an effect on it.
    pub(super) fn reaches(&self, graph: &Graph, id: NodeId, footprint: Option<&Footprint>) -> Option<NodeId> {
        self.reached_from(before(graph, id), footprint)
    }

    fn reached_from(&self, mut sources: impl Iterator<Item = NodeId>, footprint: Option<&Footprint>) -> Option<NodeId> {
        let known = if footprint.is_none() { &self.after } else { &self.after_anything };
        sources.find_map(|source| known.get(&source).copied()).or_else(|| self.alters(footprint))
    }

    /// The change in front of an instance that alters what its prediction depends on.
    pub(super) fn alters(&self, footprint: Option<&Footprint>) -> Option<NodeId> {
        self.writes.reach(footprint?)
    }

    /// Returns whether a change in front of an instance is certain to alter what is at a path.
    pub(super) fn is_changed(&self, path: &Path) -> bool {
        self.writes.reach_path(path).is_some_and(|change| self.certain.contains(&change))
    }

    /// Returns whether a directory that is missing as things are will be created in front of an instance.
    pub(super) fn creates(&self, path: &Path) -> bool {
        self.writes.creator(path).is_some_and(|change| self.certain.contains(&change))
    }

    /// The change that may make possible what is not yet: one that the instance depends on and that may have an effect on
    /// anything, or, where all that is missing is altered by those in front of it, the one that alters the first of it.
    pub(super) fn enables(
        &self,
        graph: &Graph,
        id: NodeId,
        missing: &[PathBuf],
        footprint: Option<&Footprint>,
    ) -> Option<NodeId> {
        let at_path = || {
            let reached: Option<Vec<NodeId>> = missing.iter().map(|path| self.writes.reach_path(path)).collect();
            reached?.first().copied()
        };
        let sources = needs(graph, id).map(|(_, need)| need.node);
        self.reached_from(sources, footprint).or_else(at_path)
    }

    /// The change in front of an instance that is to something which it uses without the document saying so.
    pub(super) fn alters_what_is_used(&self, graph: &Graph, id: NodeId) -> Option<NodeId> {
        let is_used = |instance: NodeId, need: &Need| {
            need.kind != NeedKind::Order && graph.implied.contains(&Implied { instance, needed: need.node })
        };
        let mut used = needs(graph, id).filter(|(instance, need)| is_used(*instance, need));
        used.find_map(|(_, need)| self.after.get(&need.node).copied())
    }
}

/// The nodes directly before a node that may have an effect on it: those that it needs, and those that its containers need. A
/// need that only makes sure that something exists, in case it is used, is left out.
fn before(graph: &Graph, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
    let is_loose = |instance: NodeId, need: &Need| {
        need.kind == NeedKind::Order && graph.implied.contains(&Implied { instance, needed: need.node })
    };
    needs(graph, id).filter(move |(instance, need)| !is_loose(*instance, need)).map(|(_, need)| need.node)
}

/// The needs of a node and of its containers, each with the node that has it.
fn needs(graph: &Graph, id: NodeId) -> impl Iterator<Item = (NodeId, &Need)> + '_ {
    let containers = std::iter::successors(Some(id), |id| graph.container(*id));
    containers.flat_map(|id| graph.node(id).needs.iter().map(move |need| (id, need)))
}
