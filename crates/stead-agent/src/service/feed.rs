//! Events of the work on documents, for callers that wait.

use std::collections::VecDeque;

use crate::control::Happened;
use crate::state::{Job, JobOutcome};

/// The most recent events since the agent started. Each has a number, which grows.
#[derive(Default)]
pub(super) struct Feed {
    count: u64,
    entries: VecDeque<Happened>,
}

/// How many entries are kept: callers that wait ask every few seconds.
const MOST: usize = 200;

impl Feed {
    /// A job ended.
    pub(super) fn ended(&mut self, job: &Job, outcome: &JobOutcome) {
        self.push(Happened::JobEnded {
            job: job.id.clone(),
            generation: job.generation,
            kind: job.kind,
            work: job.work,
            result: outcome.result,
            instances: outcome.instances,
            not_in_desired_state: outcome.not_in_state,
            troubles: outcome.troubles.clone(),
            error: outcome.error.clone(),
        });
    }

    /// Records that a job waits for another run, or no longer waits.
    pub(super) fn waits(&mut self, job: &Job, whom: Option<&str>) {
        if let Some(whom) = whom {
            let (job, generation, whom) = (job.id.clone(), job.generation, whom.to_owned());
            self.push(Happened::Waiting { job, generation, whom });
        }
    }

    fn push(&mut self, entry: Happened) {
        self.count += 1;
        self.entries.push_back(entry);
        if self.entries.len() > MOST {
            self.entries.pop_front();
        }
    }

    /// Returns the number of entries.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The entries after this number, as far as they are kept.
    pub(super) fn after(&self, count: u64) -> Vec<Happened> {
        let new = usize::try_from(self.count.saturating_sub(count)).unwrap_or(usize::MAX);
        self.entries.iter().skip(self.entries.len().saturating_sub(new)).cloned().collect()
    }
}
