//! The memory that a run holds: desired states, and answers of resources.

use super::{Retention, Run};
use crate::budget::{Budget, Exceeded, size};
use crate::call::Outcome;
use crate::diag::Diagnostic;
use crate::event::{Event, EventKind};
use crate::expr;
use crate::graph::{Graph, NeedKind, Role};
use crate::id::NodeId;
use crate::report::KeptAnswer;
use crate::value::Value;

/// By [`NodeId`], the instances whose states nobody asks for: those of the outermost document that nothing waits for, if it has
/// no outputs. What is nested is part of the state of its container, and what acts on the changes of others may be set though
/// it is in its desired state.
pub(super) fn dispensable(graph: &Graph, retention: Retention) -> Vec<bool> {
    let outermost = graph.scopes.first().filter(|scope| scope.document.outputs.is_empty());
    let Some(outermost) = outermost.filter(|_| retention == Retention::Changes) else { return Vec::new() };
    let mut dispensable = vec![false; graph.nodes.len()];
    for member in outermost.members.iter().filter(|member| graph.node(**member).role == Role::Instance) {
        dispensable[member.index()] = true;
    }
    for (id, need) in graph.iter().flat_map(|(id, node)| node.needs.iter().map(move |need| (id, need))) {
        dispensable[need.node.index()] = false;
        dispensable[id.index()] &= need.kind != NeedKind::OnChanges;
    }
    dispensable
}

impl Run {
    /// Returns whether the answer of a resource is dropped if the instance is found in its desired state.
    pub(super) fn is_dispensable(&self, id: NodeId) -> bool {
        self.dispensable.get(id.index()) == Some(&true)
    }

    /// Returns what is held of the instance that an event is about, if it is one that can change that.
    pub(super) fn held_of(&self, event: &Event) -> u64 {
        match &event.kind {
            EventKind::CallStarted { instance, .. } if self.is_stated(instance.node()) => 0,
            EventKind::CallStarted { instance, .. }
            | EventKind::CallEnded { instance, .. }
            | EventKind::RetryScheduled { instance, .. } => self.held_by(instance.node()),
            _ => 0,
        }
    }

    /// Returns what is held of all instances.
    pub(super) fn held_by_all(&self) -> u64 {
        self.graph.iter().map(|(id, _)| self.held_by(id)).sum()
    }

    pub(super) fn held_by(&self, id: NodeId) -> u64 {
        let record = self.report.record(id);
        if self.is_stated(id) && !record.has_answers() {
            return 0;
        }
        let desired = record.desired.as_deref().filter(|_| !self.is_stated(id)).map_or(0, Value::weight);
        desired + record.answers().map(weight).sum::<u64>()
    }

    /// A desired state that is written out is held by the graph, whether it runs or not.
    fn is_stated(&self, id: NodeId) -> bool {
        self.graph.node(id).stated.is_some()
    }

    /// Returns whether there is room for a call: its desired state besides all that is held.
    ///
    /// The former values of an instance are not subtracted: both exist until the new one is recorded.
    pub(super) fn check_room(&self, id: NodeId, desired: &Value) -> Result<(), Box<Diagnostic>> {
        let wanted = if self.is_stated(id) { 0 } else { desired.weight() };
        let limit = Budget::RUN.bytes;
        if self.held.saturating_add(wanted) <= limit {
            return Ok(());
        }
        let exceeded = Exceeded::Bytes { limit };
        let (label, wanted, held) = (self.graph.label(id), size(wanted), size(self.held));
        let message =
            format!("the run holds {exceeded}: the properties of {label} take {wanted}, and {held} are held already");
        let finding = Diagnostic::error(&expr::codes::LIMIT, self.graph.declaration(id).name.span, message);
        Err(Box::new(finding.with_help("apply the document in parts, or have resources answer less")))
    }
}

/// About how many bytes of memory an answer takes.
fn weight(answer: KeptAnswer<'_>) -> u64 {
    let response = match answer {
        KeptAnswer::Response(response) => response,
        KeptAnswer::Value(value) => return value.weight(),
    };
    let of = |value: Option<&Value>| value.map_or(0, Value::weight);
    let outcome = match &response.outcome {
        Outcome::Got(state) => state.weight(),
        Outcome::Tested(tested) => tested.states().map(Value::weight).sum(),
        Outcome::Changed(changed) => changed.before.weight() + changed.after.weight(),
        Outcome::Exported(found) => {
            found.iter().map(|each| each.properties.weight() + of(each.metadata.as_ref())).sum()
        }
        Outcome::Pending(pending) => of(pending.data.as_ref()),
        Outcome::Deleted(_) | Outcome::Failed(_) => 0,
    };
    outcome + of(response.metadata.as_deref()) + of(response.complete.as_deref())
}
