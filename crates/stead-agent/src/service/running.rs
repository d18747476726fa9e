//! The job under way, and what is known of it while it goes on.

use std::collections::BTreeMap;

use jiff::Timestamp;
use stead_core::event::{Event, EventKind, Problem, Status};
use stead_system::Cancel;

use crate::job::Suspension;
use crate::state::{Job, Trouble, TroubleKind};
use crate::status::Activity;

/// The job under way.
pub(super) struct Running {
    pub(super) activity: Activity,
    pub(super) cancel: Cancel,
    pub(super) suspension: Suspension,
    /// Why calls of instances that have not ended failed last, by their paths.
    reasons: BTreeMap<String, String>,
}

impl Running {
    /// A job that begins.
    pub(super) fn new(job: Job, cancel: Cancel, suspension: Suspension) -> Self {
        Self { activity: Activity::of(job), cancel, suspension, reasons: BTreeMap::new() }
    }

    pub(super) fn job(&self) -> &Job {
        &self.activity.job
    }

    /// Updates the state by an event. Returns why its instance failed, if it did.
    pub(super) fn note(&mut self, event: &Event) -> Option<String> {
        let instance = || event.kind.instance().map(ToString::to_string);
        match &event.kind {
            EventKind::CallEnded { response, .. } => match response.outcome.why_not_reached() {
                Some(why) => drop(self.reasons.insert(instance()?, why)),
                // Nearly all instances have no reason to be looked for.
                None if self.reasons.is_empty() => {}
                None => drop(self.reasons.remove(&instance()?)),
            },
            EventKind::RetryScheduled { .. } => {
                let why = self.reasons.get(&instance()?)?.clone();
                self.failed(instance()?, &why, event.at);
                return Some(why);
            }
            EventKind::Settled { status, problem, .. } => {
                let has_failed = *status == Status::Failed;
                if self.reasons.is_empty() && self.activity.troubles.is_empty() && !has_failed {
                    return None;
                }
                let known = self.reasons.remove(&instance()?);
                self.activity.troubles.retain(|trouble| Some(&trouble.instance) != instance().as_ref());
                let why = problem.as_deref().map(|problem| match problem {
                    Problem::Finding(finding) => finding.message.clone(),
                    Problem::Failure(failure) => failure.message.clone(),
                });
                let why = why.or(known).filter(|_| has_failed)?;
                self.failed(instance()?, &why, event.at);
                return Some(why);
            }
            _ => {}
        }
        None
    }

    fn failed(&mut self, instance: String, why: &str, at: Timestamp) {
        self.activity.troubles.retain(|trouble| trouble.instance != instance);
        self.activity.troubles.push(Trouble::new(instance, TroubleKind::Failed, why, at));
    }
}
