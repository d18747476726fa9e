//! How the state changes. Nothing else changes it.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use super::{BootId, Ended, Generation, Held, Job, JobResult, LastJob, Progress, RestartDue, Stage, State, Work};
use crate::settings::{ActionAfterReboot, Backoff, NewDocument};

/// A document that is to be accepted.
#[derive(Clone, PartialEq, Debug)]
pub struct Submission {
    /// The document.
    pub generation: Generation,
    /// Whether it takes the place of a pending one whatever the settings say.
    pub force: bool,
    /// Whether it waits until somebody asks for it.
    pub publish: bool,
}

/// Why something was refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// The settings say that a pending document is not replaced.
    #[error("generation {pending} is still pending, and the setting NewDocument is Refuse; '--force' replaces it")]
    StillPending {
        /// The pending document.
        pending: u64,
    },
    /// There is no such stage.
    #[error("there is no {} document", .0.as_str())]
    Nothing(Stage),
    /// There is no such generation, or it is not kept any more.
    #[error("there is no generation {0}; 'stead agent history' lists those that are kept")]
    NoGeneration(u64),
}

/// How a job ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobOutcome {
    /// Its outcome.
    pub result: JobResult,
    /// The instances that asked for a restart of the machine, by their paths.
    pub restart: BTreeSet<String>,
    /// The instances that are owed a notification, by their paths.
    pub owed: BTreeSet<String>,
    /// How many instances are not in their desired state.
    pub not_in_state: u64,
    /// How many instances there are.
    pub instances: u64,
}

/// How long is waited after crashes of the agent. The first three restarts follow at once.
const CRASH_BACKOFF: Backoff = Backoff { base: Duration::from_secs(10), cap: Duration::from_mins(10) };

/// So many crashes in a row are answered by starting again at once.
const QUICK_RESTARTS: u32 = 3;

/// How much later than its time a check may be.
pub(crate) const MAX_CRASH_WAIT: Duration = CRASH_BACKOFF.cap;

impl Stage {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Current => "current",
            Self::Previous => "previous",
        }
    }
}

impl State {
    /// Makes a document pending, and returns its number. The one that was pending is not worked on any more.
    pub fn submit(&mut self, submission: Submission) -> Result<u64, Refusal> {
        if let Some(pending) = self.pending
            && self.settings.new_document == NewDocument::Refuse
            && !submission.force
        {
            return Err(Refusal::StillPending { pending });
        }
        self.end_pending(Ended::Superseded);
        self.newest += 1;
        self.generations.insert(self.newest, submission.generation);
        self.pending = Some(self.newest);
        self.progress = Progress { held: submission.publish.then_some(Held::Published), ..Progress::default() };
        self.crashes.by_instance.clear();
        self.prune();
        Ok(self.newest)
    }

    /// Takes the document of a stage away; nothing becomes of it any more.
    pub fn remove(&mut self, stage: Stage) -> Result<u64, Refusal> {
        let (number, _) = self.staged(stage).ok_or(Refusal::Nothing(stage))?;
        match stage {
            Stage::Pending => self.end_pending(Ended::Removed),
            Stage::Current => (self.current, self.next_check) = (None, None),
            Stage::Previous => self.previous = None,
        }
        self.prune();
        Ok(number)
    }

    fn end_pending(&mut self, how: Ended) {
        if let Some(number) = self.pending.take()
            && let Some(generation) = self.generations.get_mut(&number)
        {
            generation.ended = Some(how);
        }
        self.progress = Progress::default();
    }

    /// A kept generation, to be accepted once more: that with this number, or the previous document.
    pub fn to_restore(&self, number: Option<u64>) -> Result<Generation, Refusal> {
        let number = number.or(self.previous).ok_or(Refusal::Nothing(Stage::Previous))?;
        let former = self.generations.get(&number).ok_or(Refusal::NoGeneration(number))?;
        Ok(Generation { converged: None, ended: None, ..former.clone() })
    }

    /// Has what is staged worked on at once: the pending document, also one that waits to be asked for, else the current one.
    pub fn use_existing(&mut self) -> Result<u64, Refusal> {
        let number = self.pending.or(self.current).ok_or(Refusal::Nothing(Stage::Pending))?;
        if self.pending.is_some() {
            self.progress = Progress::default();
        }
        self.next_check = None;
        self.crashes = super::Crashes::default();
        Ok(number)
    }

    /// Notes that a job begins, or goes on.
    pub fn begin(&mut self, job: Job) {
        self.job = Some(job);
    }

    /// Notes how the job ended: what is pending becomes current, or is tried again.
    pub fn end(&mut self, outcome: JobOutcome, now: Timestamp, splay: Duration) {
        let Some(job) = self.job.take() else { return };
        self.crashes.in_a_row = 0;
        self.crashes.not_before = None;
        self.last = Some(LastJob {
            id: job.id.clone(),
            generation: job.generation,
            kind: job.kind,
            work: job.work,
            began: job.began,
            ended: now,
            result: outcome.result,
            not_in_state: outcome.not_in_state,
            instances: outcome.instances,
        });
        if job.work == Work::Apply {
            self.owed = outcome.owed;
        }
        if !outcome.restart.is_empty() {
            self.restart_is_due(&job, outcome.restart, now);
        }
        let waits = matches!(outcome.result, JobResult::RestartDue | JobResult::FailedRestartDue);
        if waits && self.staged_generation(job.generation) {
            self.job = Some(Job { suspended: true, ..job });
        } else if self.pending == Some(job.generation) {
            self.end_of_pending(&job, outcome.result, now);
        }
        self.next_check = Some(after(now, self.settings.check_every + splay));
        self.prune();
    }

    fn staged_generation(&self, number: u64) -> bool {
        self.pending == Some(number) || self.current == Some(number)
    }

    fn restart_is_due(&mut self, job: &Job, by: BTreeSet<String>, now: Timestamp) {
        let due = self.restart.get_or_insert_with(|| RestartDue {
            boot: job.boot.clone(),
            since: now,
            by: BTreeSet::new(),
            ordered: None,
        });
        due.by.extend(by);
    }

    fn end_of_pending(&mut self, job: &Job, result: JobResult, now: Timestamp) {
        match result {
            JobResult::Converged if job.work == Work::Apply && self.restart.is_none() => self.promote(now),
            // A document that is only monitored never becomes current; it is looked at again at the next check.
            JobResult::Aborted | JobResult::Converged | JobResult::NotInState if job.work == Work::Test => {}
            JobResult::Aborted => {}
            _ => {
                let failures = self.progress.failures.saturating_add(1);
                let most = self.settings.max_pending_retries;
                let wait = self.settings.pending_backoff.after(failures);
                self.progress.failures = failures;
                self.progress.not_before = Some(after(now, wait));
                if most > 0 && failures > most {
                    self.progress.held = Some(Held::TooManyFailures);
                }
            }
        }
    }

    fn promote(&mut self, now: Timestamp) {
        let Some(number) = self.pending.take() else { return };
        self.previous = self.current.replace(number);
        if let Some(generation) = self.generations.get_mut(&number) {
            generation.converged = Some(now);
        }
        self.progress = Progress::default();
    }

    /// Notes that the agent starts, in this boot of the machine: whether it crashed, and whether a restart that was due has
    /// happened. `in_flight` are the instances that the interrupted job was working on, by their paths.
    pub fn started(&mut self, boot: &BootId, in_flight: &[String], now: Timestamp) {
        let interrupted = self.job.as_ref().filter(|job| !job.suspended);
        if interrupted.is_some_and(|job| job.boot == *boot) {
            self.crashed(in_flight, now);
        }
        let restarted = self.restart.as_ref().is_some_and(|due| due.boot != *boot);
        if restarted {
            self.restart = None;
            self.progress.restarts = self.progress.restarts.saturating_add(u32::from(self.pending.is_some()));
            self.progress.not_before = None;
            if self.settings.action_after_reboot == ActionAfterReboot::StopConfiguration && self.pending.is_some() {
                self.progress.held = Some(Held::StoppedAfterRestart);
                self.job = None;
            }
        }
    }

    fn crashed(&mut self, in_flight: &[String], now: Timestamp) {
        self.crashes.in_a_row = self.crashes.in_a_row.saturating_add(1);
        for path in in_flight {
            *self.crashes.by_instance.entry(path.clone()).or_default() += 1;
        }
        let late = self.crashes.in_a_row.saturating_sub(QUICK_RESTARTS);
        self.crashes.not_before = (late > 0).then(|| after(now, CRASH_BACKOFF.after(late)));
    }

    /// Notes that a restart of the machine was ordered.
    pub fn ordered_restart(&mut self, now: Timestamp) {
        if let Some(due) = &mut self.restart {
            due.ordered = Some(now);
        }
    }

    /// Gives up on the job that was interrupted or suspended: its journal cannot be read, or its document is gone. What it
    /// owed is not known, so `owed` names all that might be.
    pub fn abandon_job(&mut self, owed: BTreeSet<String>) {
        self.job = None;
        self.owed.extend(owed);
    }

    /// Has the pending document wait until somebody asks for it.
    pub fn hold(&mut self, why: Held) {
        if self.pending.is_some() {
            self.progress.held = Some(why);
        }
    }

    /// Forgets the oldest generations that nothing refers to.
    fn prune(&mut self) {
        let staged = [self.pending, self.current, self.previous, self.job.as_ref().map(|job| job.generation)];
        let mut spare: Vec<u64> =
            self.generations.keys().copied().filter(|number| !staged.contains(&Some(*number))).collect();
        let most = usize::try_from(self.settings.generations).unwrap_or(usize::MAX);
        spare.truncate(spare.len().saturating_sub(most));
        self.generations.retain(|number, _| !spare.contains(number));
    }
}

/// So much later; the end of time if that is before.
pub(crate) fn after(now: Timestamp, wait: Duration) -> Timestamp {
    now.saturating_add(wait).unwrap_or(Timestamp::MAX)
}
