//! Instances uncertain: a set of them left a program running, which was ended. What it did besides is there, such as the file that a
//! command creates, and so they seem to be in their desired state. They are not taken to be, until a set of them runs through, or
//! an administrator names them in `--only`.

use std::collections::BTreeSet;

use stead_core::call::{Call, Failure, FailureKind, Outcome};
use stead_core::event::{Event, EventKind, Status};
use stead_core::graph::Graph;
use stead_core::id::NodeId;
use stead_core::run::Run;

/// The instances uncertain, as the record has them.
pub(crate) struct Uncertain {
    recorded: BTreeSet<String>,
    /// Those that the document does not have any more.
    obsolete: BTreeSet<String>,
    /// The instances of which a set is under way.
    being_set: BTreeSet<NodeId>,
}

impl Uncertain {
    pub(crate) fn of(recorded: BTreeSet<String>, graph: &Graph, is_shared: bool) -> Self {
        let known: BTreeSet<String> =
            graph.known(&recorded).iter().map(|id| graph.node(*id).path.to_string()).collect();
        let obsolete = recorded.difference(&known).filter(|_| !is_shared).cloned().collect();
        Self { recorded, obsolete, being_set: BTreeSet::new() }
    }

    /// The instances that come to be uncertain: a set of them ended, and with it what it had left running.
    pub(crate) fn arise(&mut self, events: &[Event]) -> BTreeSet<String> {
        let mut new = BTreeSet::new();
        for event in events {
            match &event.kind {
                EventKind::CallStarted { instance, operation, execution, .. } if operation.changes_in(*execution) => {
                    self.being_set.insert(instance.node());
                }
                EventKind::CallEnded { instance, response, .. } if self.being_set.remove(&instance.node()) => {
                    let left = matches!(&response.outcome, Outcome::Failed(failure) if failure.kind == FailureKind::LeftBehind);
                    new.extend(left.then(|| instance.to_string()).filter(|path| !self.recorded.contains(path)));
                }
                _ => {}
            }
        }
        self.recorded.extend(new.iter().cloned());
        new
    }

    /// Those that are no longer uncertain: a set of them ran through, or an administrator said that they are all right.
    pub(crate) fn cleared(&mut self, run: &Run) -> BTreeSet<String> {
        let mut cleared = std::mem::take(&mut self.obsolete);
        let graph = run.graph();
        let succeeded = |id: &NodeId| matches!(run.report().status(*id), Some(Status::Changed | Status::InState));
        let known = graph.known(&self.recorded).into_iter().filter(succeeded);
        cleared.extend(known.map(|id| graph.node(id).path.to_string()));
        self.recorded.retain(|path| !cleared.contains(path));
        cleared
    }
}

/// How an administrator has an instance uncertain set again, or says that it is all right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WayOut {
    /// By a run of `apply`.
    Apply,
    /// By the agent, which keeps the document.
    Agent,
}

impl WayOut {
    fn of(self, call: &Call) -> String {
        match self {
            Self::Apply => format!("apply again; or apply with --only '{}' if all is well", call.name()),
            Self::Agent => {
                "deliver the document again; or 'stead agent apply --use-existing' if all is well".to_owned()
            }
        }
    }
}

/// The failure of an instance uncertain that was found in its desired state.
pub(crate) fn refused_as_uncertain(call: &Call, outcome: &Outcome, way_out: WayOut) -> Option<Failure> {
    let is_in_state = match outcome {
        Outcome::Tested(tested) => tested.in_desired_state,
        Outcome::Changed(changed) => {
            let differed = call.tested.as_ref().is_some_and(|tested| tested.differs());
            !differed && changed.changed.as_ref().is_none_or(Vec::is_empty)
        }
        _ => false,
    };
    let message = || {
        format!(
            "it seems to be in its desired state, but its last set left a program running, which was ended. Have that program started \
             as a service, remove what the test finds, and {}",
            way_out.of(call)
        )
    };
    is_in_state.then(|| Failure::new(FailureKind::LeftBehind, message()))
}
