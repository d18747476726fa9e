//! The result of a job over all or a part of a document, beside that of the job before it.

use jiff::Timestamp;

use super::transitions::JobOutcome;
use super::{Job, JobResult, LastJob, Trouble};

impl LastJob {
    pub(super) fn of(job: &Job, outcome: &JobOutcome, ended: Timestamp) -> Self {
        Self {
            id: job.id.clone(),
            generation: job.generation,
            kind: job.kind,
            work: job.work,
            began: job.began,
            ended,
            result: outcome.result,
            reboot_requested: !outcome.restart.is_empty(),
            not_in_state: outcome.not_in_state,
            instances: outcome.instances,
            troubles: outcome.troubles.iter().take(Trouble::MOST).cloned().collect(),
            error: outcome.error.clone(),
        }
    }

    /// Takes over from an earlier job since when each instance has had its problem.
    pub(super) fn follows(mut self, former: Option<&Self>) -> Self {
        for trouble in &mut self.troubles {
            let earlier = former.iter().flat_map(|former| &former.troubles);
            let same = earlier.filter(|each| (&each.instance, each.kind) == (&trouble.instance, trouble.kind));
            trouble.since = same.map(|each| each.since).fold(trouble.since, Timestamp::min);
        }
        self
    }

    /// Merges the result of a job over all or a part of a document into the former one. A job that was ended early
    /// changes nothing.
    pub(super) fn merged(former: Option<Self>, last: Self, job: &Job) -> Option<Self> {
        if last.result == JobResult::Aborted {
            return former;
        }
        let last = last.follows(former.as_ref());
        let Some(former) = former.filter(|_| !job.only.is_empty()) else { return Some(last) };
        let is_over = |trouble: &Trouble| {
            job.only.contains(&trouble.instance) || last.troubles.iter().any(|each| each.instance == trouble.instance)
        };
        let was_known = u64::try_from(former.troubles.len()).is_ok_and(|count| count >= former.not_in_state);
        let kept = former.troubles.iter().filter(|trouble| !is_over(trouble));
        let mut troubles: Vec<Trouble> = kept.chain(&last.troubles).cloned().collect();
        troubles.truncate(Trouble::MOST);
        let not_in_state = if was_known { troubles.len() as u64 } else { former.not_in_state };
        // That a part is in the desired state does not make the whole so; the check that follows does.
        let result = if last.result == JobResult::Converged { former.result } else { last.result };
        Some(Self { troubles, not_in_state, result, error: last.error, ended: last.ended, ..former })
    }
}
