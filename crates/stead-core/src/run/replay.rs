//! Which events can follow on which: the guard of every journal that is replayed.

use super::Run;
use crate::event::{Event, EventKind, Status, VERSION};
use crate::graph::Role;
use crate::instance_path::InstancePath;
use crate::report::Phase;

/// Why an event is none of this run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReplayError {
    /// The journal was written by another version of stead.
    #[error("the journal has version {found}; this program reads version {VERSION}")]
    Version {
        /// The version that it names.
        found: u32,
    },
    /// The journal is about another document, or the same with other parameters or resources.
    #[error("the journal belongs to another run: its {what} differs")]
    Foreign {
        /// The thing that differs.
        what: &'static str,
    },
    /// An event is missing, or stands twice.
    #[error("event {found} of the journal stands where event {expected} was expected")]
    Sequence {
        /// The number that it has.
        found: u64,
        /// The number that comes next.
        expected: u64,
    },
    /// An event is about an instance that is not in the graph.
    #[error("event {sequence} of the journal is about '{instance}', which the document does not contain")]
    UnknownInstance {
        /// Its number.
        sequence: u64,
        /// The instance.
        instance: String,
    },
    /// An event cannot have happened after those in front of it.
    #[error("event {sequence} of the journal cannot follow on those before it: {why}")]
    Impossible {
        /// Its number.
        sequence: u64,
        /// The mistake in it.
        why: &'static str,
    },
}

impl Run {
    /// Returns whether an event can come next.
    pub(super) fn check(&self, event: &Event) -> Result<(), ReplayError> {
        let (sequence, expected) = (event.sequence, self.report.next_sequence());
        if sequence != expected {
            return Err(ReplayError::Sequence { found: sequence, expected });
        }
        let impossible = |why| Err(ReplayError::Impossible { sequence, why });
        match (&event.kind, self.report.header.is_some()) {
            (EventKind::Began(header), false) => return self.check_header(header),
            (EventKind::Began(_), true) => return impossible("the run has begun before"),
            (_, false) => return impossible("the run has not begun"),
            _ => {}
        }
        let Some(instance) = event.kind.instance() else { return Ok(()) };
        self.check_instance(sequence, instance)?;
        match self.misplaced(instance, &event.kind) {
            Some(why) => impossible(why),
            None => Ok(()),
        }
    }

    fn check_header(&self, header: &crate::event::Header) -> Result<(), ReplayError> {
        if header.version != VERSION {
            return Err(ReplayError::Version { found: header.version });
        }
        let own = self.header();
        match () {
            () if header.graph != own.graph || header.instances != own.instances => {
                Err(ReplayError::Foreign { what: "document" })
            }
            () if header.selected != own.selected => Err(ReplayError::Foreign { what: "selection" }),
            () if header.mode != own.mode => Err(ReplayError::Foreign { what: "operation" }),
            () => Ok(()),
        }
    }

    fn check_instance(&self, sequence: u64, instance: &InstancePath) -> Result<(), ReplayError> {
        let own = self.graph.nodes.get(instance.node().index());
        if own.is_some_and(|node| node.path == *instance) {
            return Ok(());
        }
        Err(ReplayError::UnknownInstance { sequence, instance: instance.to_string() })
    }

    /// Returns why an event cannot be about an instance that has come this far.
    fn misplaced(&self, instance: &InstancePath, kind: &EventKind) -> Option<&'static str> {
        let record = self.report.record(instance.node());
        let is_container = matches!(self.graph.node(instance.node()).role, Role::Container { .. });
        match (kind, &record.phase) {
            (EventKind::Refuted { .. }, Phase::Settled(Status::Changed | Status::InState | Status::Failed)) => None,
            (EventKind::Refuted { .. }, _) => Some("the instance has no result that could be refuted"),
            (_, Phase::Settled(_)) => Some("the instance was settled before"),
            (EventKind::ContainerOpened { .. }, _) if !is_container => Some("the instance contains no others"),
            (EventKind::ContainerOpened { .. }, Phase::Open) => Some("the container was opened before"),
            (EventKind::Woken { .. }, phase) if !matches!(phase, Phase::BackingOff(_)) => {
                Some("the instance does not back off")
            }
            (EventKind::CallStarted { .. } | EventKind::CallEnded { .. } | EventKind::RetryScheduled { .. }, _)
                if is_container =>
            {
                Some("a container is not called")
            }
            (EventKind::CallEnded { .. }, Phase::InFlight(..)) => None,
            (EventKind::CallEnded { .. }, _) => Some("no call of the instance is under way"),
            (_, Phase::InFlight(..)) => Some("a call of the instance is under way"),
            (EventKind::RetryScheduled { .. }, Phase::BackingOff(_)) => Some("the instance backs off already"),
            (EventKind::RetryScheduled { .. }, _) if record.response.is_none() => Some("the instance was not tried"),
            _ => None,
        }
    }
}
