//! Notifications that are owed: an instance that acts on changes runs after a change, in this run or else in a later
//! one.

use std::collections::{BTreeMap, BTreeSet};

use super::{Run, SkipReason, Status};
use crate::event::{Event, EventKind};
use crate::graph::{Graph, Need, Role};
use crate::id::NodeId;
use crate::instance_path::InstancePath;

/// Instances that are owed a notification, by their paths, as it is kept between runs.
pub type Owed = BTreeSet<String>;

/// The instances that act on changes, for the record of what is owed: it is made before the change.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Acting(BTreeMap<NodeId, Owed>);

impl Acting {
    /// Those of a document.
    pub fn of(graph: &Graph) -> Self {
        let path = |id: &NodeId| graph.node(*id).path.to_string();
        Self(graph.acting().into_iter().map(|(source, acting)| (source, acting.iter().map(path).collect())).collect())
    }

    /// Those that act on what the calls that begin with these events may change.
    pub fn on(&self, events: &[Event]) -> Owed {
        let acting = |event: &Event| match &event.kind {
            EventKind::CallStarted { instance, operation, execution, .. } if operation.changes_in(*execution) => {
                self.0.get(&instance.node())
            }
            _ => None,
        };
        events.iter().filter_map(acting).flatten().cloned().collect()
    }
}

impl Run {
    /// The instances that are owed a notification: what they wait on for changes has changed, and they did not succeed
    /// since. A later run over the same document takes them as [`super::Exceptions::owed`], so that a failure or a crash in
    /// between does not lose it.
    pub fn owed(&self) -> Vec<InstancePath> {
        let owed = self.graph.iter().filter(|(id, _)| self.is_owed(*id) && !self.is_done(*id));
        owed.map(|(_, node)| node.path.clone()).collect()
    }

    /// The instances that act on changes, or were owed a notification, for which nothing is left to do.
    pub fn delivered(&self) -> Vec<InstancePath> {
        let notified = |id: NodeId| self.exceptions.owed.contains(&id) || self.graph.acts_on(id).next().is_some();
        let delivered = self.graph.iter().filter(|(id, _)| notified(*id) && self.is_done(*id));
        delivered.map(|(_, node)| node.path.clone()).collect()
    }

    /// Returns why an instance is begun though nothing that it waits on changes in this run; `None` where it is not
    /// owed that.
    pub fn due(&self, id: NodeId) -> Option<String> {
        if !self.exceptions.owed.contains(&id) {
            return None;
        }
        let sources: Vec<String> = self.graph.acts_on(id).map(|source| self.graph.label(source)).collect();
        let one_of = if sources.len() > 1 { "one of " } else { "" };
        let sources = sources.join(", ");
        Some(format!("an earlier run changed {one_of}{sources}, and this has not succeeded since"))
    }

    /// Returns whether an earlier run owes a notification to an instance or to anything nested in it.
    pub(super) fn is_called(&self, id: NodeId) -> bool {
        let owed = &self.exceptions.owed;
        let holds = |owed: &NodeId| self.graph.node(*owed).path.outward().any(|path| path.node() == id);
        owed.contains(&id) || self.graph.node(id).role != Role::Instance && owed.iter().any(holds)
    }

    fn is_owed(&self, id: NodeId) -> bool {
        self.exceptions.owed.contains(&id) || self.graph.acts_on(id).any(|other| self.may_have_changed(other))
    }

    /// Returns whether an instance or anything nested in it changed or may have changed. A failed container may hold
    /// instances that did.
    fn may_have_changed(&self, id: NodeId) -> bool {
        self.report.status(id) == Some(&Status::Changed)
            || self.report.record(id).may_have_changed()
            || self.graph.members(id).iter().any(|member| self.may_have_changed(*member))
    }

    /// Returns whether nothing is left to do for an instance. One that was skipped by its condition, or because
    /// nothing failed, is done. One outside the run is not, nor is a container that has such instances.
    fn is_done(&self, id: NodeId) -> bool {
        match self.report.status(id) {
            Some(Status::Skipped(SkipReason::Condition | SkipReason::NoFailure)) => true,
            Some(Status::InState | Status::Changed) => self.is_whole(id),
            _ => false,
        }
    }

    /// Returns whether everything nested in an instance is part of the run.
    fn is_whole(&self, id: NodeId) -> bool {
        self.graph.members(id).iter().all(|member| self.report.is_selected(*member) && self.is_whole(*member))
    }
}

impl Graph {
    /// The instances on whose changes this one acts.
    pub fn acts_on(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        self.node(id).needs.iter().filter(|need| need.kind.notifies()).map(|Need { node, .. }| *node)
    }

    /// The instances that act on changes of others, and so can be owed a notification.
    pub fn notified(&self) -> impl Iterator<Item = NodeId> {
        self.iter().map(|(id, _)| id).filter(|id| self.acts_on(*id).next().is_some())
    }

    /// By instance, those that act on its changes. A change of what is nested is one of the container.
    pub fn acting(&self) -> BTreeMap<NodeId, BTreeSet<NodeId>> {
        let mut acting: BTreeMap<NodeId, BTreeSet<NodeId>> = BTreeMap::new();
        for id in self.notified() {
            let mut open: Vec<NodeId> = self.acts_on(id).collect();
            while let Some(source) = open.pop() {
                if acting.entry(source).or_default().insert(id) {
                    open.extend(self.members(source));
                }
            }
        }
        acting
    }

    /// The instances that have one of these paths.
    pub fn known(&self, owed: &Owed) -> BTreeSet<NodeId> {
        if owed.is_empty() {
            return BTreeSet::new();
        }
        let known = self.iter().filter(|(_, node)| owed.contains(&node.path.to_string()));
        known.map(|(id, _)| id).collect()
    }
}
