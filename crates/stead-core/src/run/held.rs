//! What a run holds in memory: desired states, and what resources answered.

use super::Run;
use crate::budget::{Budget, Exceeded, size};
use crate::call::{Outcome, Response};
use crate::diag::Diagnostic;
use crate::event::{Event, EventKind};
use crate::expr;
use crate::id::NodeId;
use crate::text::Span;
use crate::value::Value;

impl Run {
    /// What an event replaces, or what it brought.
    pub(super) fn held_of(&self, event: &Event) -> u64 {
        match &event.kind {
            EventKind::CallStarted { instance, .. } | EventKind::CallEnded { instance, .. } => {
                let record = self.report.record(instance.node());
                let response = record.response.as_deref().map_or(0, weight);
                // What is written out is held by the graph, whether it runs or not.
                let is_stated = self.graph.node(instance.node()).stated.is_some();
                response + record.desired.as_deref().filter(|_| !is_stated).map_or(0, Value::weight)
            }
            _ => 0,
        }
    }

    /// Whether there is room for a desired state besides all that is held.
    ///
    /// What was held of an instance before is not subtracted: there are both until the new one is recorded.
    pub(super) fn check_room(&self, id: NodeId, desired: &Value, span: Span) -> Result<(), Box<Diagnostic>> {
        let wanted = desired.weight();
        let limit = Budget::RUN.bytes;
        if self.held.saturating_add(wanted) <= limit {
            return Ok(());
        }
        let exceeded = Exceeded::Bytes { limit };
        let (label, wanted, held) = (self.graph.label(id), size(wanted), size(self.held));
        let message =
            format!("the run holds {exceeded}: the properties of {label} take {wanted}, and {held} are held already");
        let finding = Diagnostic::error(&expr::codes::LIMIT, span, message);
        Err(Box::new(finding.with_help("apply the document in parts, or have resources answer less")))
    }
}

/// About how many bytes of memory a response takes.
fn weight(response: &Response) -> u64 {
    let of = |value: &Option<Value>| value.as_ref().map_or(0, Value::weight);
    let outcome = match &response.outcome {
        Outcome::Got(state) => state.weight(),
        Outcome::Tested(tested) => tested.actual.weight(),
        Outcome::Changed(changed) => changed.before.weight() + changed.after.weight(),
        Outcome::Exported(found) => found.iter().map(|each| each.properties.weight() + of(&each.metadata)).sum(),
        Outcome::Pending(pending) => of(&pending.data),
        Outcome::Deleted(_) | Outcome::Failed(_) => 0,
    };
    outcome + of(&response.metadata)
}
