//! What a later part of a run has undone of what an instance was answered.

use std::path::Path;
use std::sync::Arc;

use stead_core::call::{Call, Execution, Failure, FailureKind, Operation, Outcome, Wanted};
use stead_core::claims::{Claim, Extent};
use stead_core::id::NodeId;
use stead_core::instance_path::InstancePath;
use stead_core::run::KnownInstance;

use stead_host::provider::Plain;
use stead_system::fs::SystemPath;

use super::{Answered, SessionCalls};
use crate::implied::account_of;
use crate::second_look::Traces;
use stead_host::executor::Calls as _;

impl SessionCalls {
    /// The paths of what an instance creates or changes, at which something shows when it is changed. Accounts are in one file.
    fn written_by(&self, id: NodeId, Answered { manifest, desired }: &Answered) -> Vec<SystemPath> {
        let claims = self.claims_of(id, manifest, &Plain::covered(desired)).unwrap_or_default();
        let written = |Claim::Path { path, extent }: &Claim| {
            let file = account_of(path, self.real_paths.root()).and_then(Path::parent).unwrap_or(path);
            let is_written = !matches!(extent, Extent::Read | Extent::Backup | Extent::Mode(_) | Extent::Presence);
            is_written.then(|| SystemPath::here(file))
        };
        claims.0.iter().filter_map(written).collect()
    }

    /// What is to be seen of an instance once it was answered.
    pub(super) fn traces_of(&self, id: NodeId, answered: &Answered) -> Traces {
        let desired = Plain::covered(&answered.desired);
        let provider = self.providers.of(&answered.manifest);
        let elsewhere = provider.has_state_elsewhere(self.contexts.of(id), &desired);
        Traces { paths: self.written_by(id, answered), elsewhere }
    }

    /// Tests again an instance of which something was changed after it was answered, and says why it is not in its desired state
    /// any more.
    pub(super) fn undone(
        &self,
        KnownInstance { instance, manifest, desired }: &KnownInstance,
        after: &[InstancePath],
    ) -> Option<Failure> {
        let (first, others) = after.split_at(after.len().min(3));
        if first.is_empty() {
            return None;
        }
        let call = Call {
            instance: instance.clone(),
            manifest: Arc::clone(manifest),
            operation: Operation::Test,
            execution: Execution::Actual,
            desired: Arc::clone(desired),
            tested: None,
            pending: None,
            metadata: None,
            export_filter: None,
            wanted: Wanted::Verdict,
        };
        let why = match self.carry_out(&call).outcome {
            Outcome::Tested(tested) if tested.differs() => {
                let names: Vec<String> = tested.differing.iter().map(|name| format!("'{name}'")).collect();
                if names.is_empty() { "it differs".to_owned() } else { format!("{} differs", names.join(", ")) }
            }
            Outcome::Failed(failure) if failure.kind != FailureKind::Cancelled => failure.message,
            _ => return None,
        };
        let mut labels: Vec<String> = first.iter().map(InstancePath::label).collect();
        labels.extend((!others.is_empty()).then(|| format!("{} more", others.len())));
        let message = format!(
            "it was in its desired state and is not at the end of the run: {why}. After it ran: {}. {}",
            labels.join(", "),
            self.providers.of(manifest).way_out()
        );
        Some(Failure::new(FailureKind::NotConverged, message))
    }

    /// Notes what an instance was answered, for the look at the end of the run.
    pub(super) fn note(&self, call: &Call, outcome: &Outcome, changes: bool, was_loose: bool) {
        let id = call.instance.node();
        if !matches!(outcome, Outcome::Tested(_) | Outcome::Changed(_)) {
            if changes {
                self.second_look.forget(id);
            }
            return;
        }
        let answered = Answered { manifest: Arc::clone(&call.manifest), desired: Arc::clone(&call.desired) };
        if changes && !was_loose && matches!(outcome, Outcome::Changed(_)) {
            self.second_look.changed_openly(id, || self.written_by(id, &answered));
        }
        self.second_look.answered(id, answered, |id, of| self.traces_of(id, &of));
    }
}
