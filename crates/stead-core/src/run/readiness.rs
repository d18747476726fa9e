//! The readiness of an instance, computed from how those that it needs ended.

use std::collections::{BTreeMap, BTreeSet};

use super::Run;
use super::queue::Queues;
use crate::call::Execution;
use crate::event::{SkipReason, Status};
use crate::graph::{Graph, Need, NeedKind, Role};
use crate::id::NodeId;
use crate::report::Phase;

/// Which nodes something can be decided about, and what the others wait for.
///
/// A node waits for one unsettled need at a time, and looks for the next when that is settled: needs that are settled stay
/// so, and none is looked at twice. Only where one of several needs must succeed does a node wait for all of them; it may
/// begin while it is still listed as waiting for the rest.
pub(super) struct Readiness {
    /// Nodes that something can be decided about, and those that back off.
    pub(super) queues: Queues,
    /// Nodes that wait for a node to be settled, or for a container to be opened.
    waiting: BTreeMap<NodeId, BTreeSet<NodeId>>,
    /// For each node how many of its needs, or of an open container its members, are known to be settled.
    pub(super) settled: Vec<u32>,
}

/// An entry of a list of nodes: `None` behind its end.
type NextNeed = fn(&Run, NodeId, usize) -> Option<Option<NodeId>>;

impl Readiness {
    pub(super) fn new(graph: &Graph) -> Self {
        Self { queues: Queues::new(graph), waiting: BTreeMap::new(), settled: vec![0; graph.nodes.len()] }
    }
}

/// The consequence for an instance once everything that it needs has ended.
pub(super) enum Gate {
    /// It begins.
    Begin,
    /// It is skipped.
    Skip(SkipReason),
    /// In what-if: nobody knows, because of this one.
    Unknown(NodeId),
}

impl Run {
    /// Makes a node ready, or has it wait for what is missing. One that was begun already goes its way.
    pub(super) fn make_ready(&mut self, id: NodeId) {
        let record = self.report.record(id);
        let has_begun = record.phase == Phase::Waiting && (record.calls > 0 || record.retries > 0);
        if has_begun || !matches!(record.phase, Phase::Waiting | Phase::Open) {
            return;
        }
        let missing = self.missing(id);
        if missing.is_empty() {
            self.readiness.queues.ready(id);
        }
        for other in missing {
            self.readiness.waiting.entry(other).or_default().insert(id);
        }
    }

    /// Lets go on what waited for a node.
    pub(super) fn release(&mut self, id: NodeId) {
        for waiting in self.readiness.waiting.remove(&id).unwrap_or_default() {
            self.make_ready(waiting);
        }
    }

    /// The nodes that it must wait for: none when something can be decided about it.
    fn missing(&mut self, id: NodeId) -> Vec<NodeId> {
        if self.report.record(id).phase == Phase::Open {
            return self.next_unsettled(id, |run, id, at| match run.graph.node(id).role {
                Role::Container { inner, .. } => run.graph.scope(inner).members.get(at).map(|member| Some(*member)),
                Role::Instance => None,
            });
        }
        if let Some(container) = self.graph.container(id)
            && self.report.record(container).phase != Phase::Open
            && self.report.status(container).is_none()
        {
            return vec![container];
        }
        let mut in_front = self.turns.get(&id).into_iter().flatten();
        if let Some(other) = in_front.find(|other| self.has_the_turn(**other)) {
            return vec![*other];
        }
        let missing = self.next_unsettled(id, |run, id, at| {
            let need = run.graph.node(id).needs.get(at)?;
            Some(Some(need.node).filter(|_| need.kind != NeedKind::RequireAny))
        });
        if missing.is_empty() { self.unsettled_alternatives(id) } else { missing }
    }

    /// Returns whether those behind a node on its files wait for it: one that is tried again waits for nothing that they could do.
    fn has_the_turn(&self, id: NodeId) -> bool {
        self.report.status(id).is_none() && self.report.record(id).retries == 0
    }

    /// The first unsettled node of a list, from where the last look ended. An entry without a node is passed over.
    fn next_unsettled(&mut self, id: NodeId, entry: NextNeed) -> Vec<NodeId> {
        loop {
            let at = self.readiness.settled[id.index()];
            match entry(self, id, at as usize) {
                None => return Vec::new(),
                Some(Some(other)) if self.report.status(other).is_none() => return vec![other],
                Some(_) => self.readiness.settled[id.index()] += 1,
            }
        }
    }

    /// Returns the needs that are not settled where one of several must succeed, if none has succeeded.
    ///
    /// In what-if all of them: what is predicted must not depend on which was looked at first.
    fn unsettled_alternatives(&self, id: NodeId) -> Vec<NodeId> {
        let alternatives = || self.needs_of(id, NeedKind::RequireAny);
        let one_succeeded = alternatives().any(|other| self.report.status(other).is_some_and(Status::succeeded));
        if one_succeeded && self.mode.execution == Execution::Actual {
            return Vec::new();
        }
        alternatives().filter(|other| self.report.status(*other).is_none()).collect()
    }

    pub(super) fn needs_of(&self, id: NodeId, kind: NeedKind) -> impl Iterator<Item = NodeId> {
        let needs = self.graph.node(id).needs.iter().filter(move |need| need.kind == kind);
        needs.map(|Need { node, .. }| *node)
    }

    /// Returns what becomes of an instance, from how those that it needs ended.
    pub(super) fn gate(&self, id: NodeId) -> Gate {
        if self.report.cancelled {
            return Gate::Skip(SkipReason::Cancelled);
        }
        if let Some(reason) = self.exceptions.skipped.get(&id) {
            return Gate::Skip(reason.clone());
        }
        if let Some(container) = self.graph.container(id)
            && let Some(status) = self.report.status(container)
        {
            return match status {
                Status::Unknown(_) => Gate::Unknown(container),
                // What is left out is left out with all that it holds, for the same reason.
                Status::Skipped(reason) if !reason.blocks() => Gate::Skip(reason.clone()),
                _ => Gate::Skip(SkipReason::Container(self.path(container))),
            };
        }
        let blocked = |other: &NodeId| self.report.status(*other).is_some_and(Status::blocks);
        let mut required = self.graph.node(id).needs.iter().filter(|need| need.kind.must_succeed());
        if let Some(need) = required.find(|need| blocked(&need.node)) {
            return Gate::Skip(SkipReason::Need(self.path(need.node)));
        }
        let alternatives = match self.needs_of(id, NeedKind::RequireAny).next() {
            Some(first) => self.any_of(id, NeedKind::RequireAny, Status::succeeded, SkipReason::Need(self.path(first))),
            None => Gate::Begin,
        };
        let changes = match alternatives {
            Gate::Begin if self.is_called(id) => Gate::Begin,
            Gate::Begin => {
                self.any_of(id, NeedKind::OnChanges, |status| *status == Status::Changed, SkipReason::NoChange)
            }
            gate => return gate,
        };
        let failures = match changes {
            Gate::Begin => self.any_of(id, NeedKind::OnFailure, Status::blocks, SkipReason::NoFailure),
            gate => return gate,
        };
        match failures {
            Gate::Skip(reason) => match self.forecast.may_fail(&self.graph, id) {
                Some(other) => Gate::Unknown(other),
                None => Gate::Skip(reason),
            },
            gate => gate,
        }
    }

    /// Returns whether one of the needs of a kind ended as wanted.
    fn any_of(&self, id: NodeId, kind: NeedKind, wanted: fn(&Status) -> bool, otherwise: SkipReason) -> Gate {
        let mut any = false;
        let mut unknown = None;
        for other in self.needs_of(id, kind) {
            any = true;
            match self.report.status(other) {
                Some(status) if wanted(status) => return Gate::Begin,
                Some(Status::Unknown(_)) => unknown = unknown.or(Some(other)),
                Some(Status::Undetermined) if self.mode.execution == Execution::WhatIf => {
                    unknown = unknown.or(Some(other));
                }
                _ => {}
            }
        }
        match unknown {
            Some(other) => Gate::Unknown(other),
            None if any => Gate::Skip(otherwise),
            None => Gate::Begin,
        }
    }
}
