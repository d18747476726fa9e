//! How the state changes. Nothing else changes it.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use stead_core::document::ConfigurationMode;

use super::{
    AgentState, BootId, Crashes, DamageNote, Ended, Generation, HoldReason, Interrupted, Job, JobResult, LastJob,
    Overtaken, Progress, RestartDue, Restarts, Settled, Stage, Trouble, TroubleKind, Work,
};
use crate::settings::{ActionAfterReboot, Backoff, NewDocument, Settings};

/// A document that is to be accepted.
#[derive(Clone, PartialEq, Debug)]
pub struct Submission {
    /// The document.
    pub generation: Generation,
    /// True if it takes the place of a pending one whatever the settings say.
    pub force: bool,
    /// True if it is held until an operator asks for it.
    pub publish: bool,
}

/// Why something was refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// The settings say that a pending document is not replaced.
    #[error("generation {pending} is still pending, and the setting NewDocument is Refuse")]
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
///
/// # Examples
/// ```
/// # use std::collections::BTreeSet;
/// # use stead_agent::{AgentState, BootId, Generation, Job, JobKind, Submission, Work};
/// use stead_agent::{JobOutcome, JobResult, Spread, Stage};
///
/// # let now = "2026-01-02T03:04:05Z".parse()?;
/// # let mut state = AgentState::default();
/// # let (content, origin, instance_modes) = ("5f0c".to_owned(), "web.yaml".to_owned(), BTreeSet::new());
/// # let (identity, mode, converged, ended, restores) = (None, None, None, None, None);
/// # let (accepted, user) = (now, 0);
/// # let generation = Generation { content, origin, identity, accepted, user, mode, instance_modes, converged, ended, restores };
/// # let generation = state.submit(Submission { generation, force: false, publish: false })?;
/// # let (id, boot, only) = ("a".to_owned(), BootId("first".to_owned()), BTreeSet::new());
/// # let job = Job { id, generation, kind: JobKind::Initial, work: Work::Apply, began: now, boot, only };
/// state.begin(job.clone());
/// state.end(JobOutcome::unusable("the document cannot be read".to_owned()), now, Spread::NONE);
/// // A failure leaves the document pending, to be tried again later.
/// assert!(state.staged(Stage::Pending).is_some());
/// assert_eq!((state.progress.failures, state.progress.not_before > Some(now)), (1, true));
///
/// state.begin(job);
/// let converged = JobOutcome { result: JobResult::Converged, ..JobOutcome::unusable(String::new()) };
/// state.end(JobOutcome { error: None, ..converged }, now, Spread::NONE);
/// // Success makes it the current one.
/// assert_eq!((state.pending, state.current), (None, Some(generation)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobOutcome {
    /// Its outcome.
    pub result: JobResult,
    /// The instances that asked for a restart of the machine, by their paths.
    pub restart: BTreeSet<String>,
    /// The notifications that it delivered, and those that it still owes; `None` if that is not known, so that what was
    /// recorded before counts.
    pub settled: Option<Settled>,
    /// How many instances are not in their desired state.
    pub not_in_state: u64,
    /// How many instances there are.
    pub instances: u64,
    /// The instances that are not in their desired state, the first of them.
    pub troubles: Vec<Trouble>,
    /// Why it came over no instance, if it did not.
    pub error: Option<String>,
}

impl JobOutcome {
    /// The instances that left a program running.
    pub(crate) fn left_running(&self) -> BTreeSet<String> {
        let left = self.troubles.iter().filter(|trouble| trouble.kind == TroubleKind::Withheld);
        left.map(|trouble| trouble.instance.clone()).collect()
    }

    /// The outcome of a job that reached no instance, and why.
    pub fn unusable(error: String) -> Self {
        Self {
            result: JobResult::Failed,
            restart: BTreeSet::new(),
            settled: None,
            not_in_state: 0,
            instances: 0,
            troubles: Vec::new(),
            error: Some(error),
        }
    }
}

/// The work that a job leaves to be done when it is given up.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LeftOver {
    /// As in [`JobOutcome::settled`].
    pub settled: Option<Settled>,
    /// The instances that asked for a restart of the machine, by their paths.
    pub restart: BTreeSet<String>,
}

/// Which part of a time is added to a wait or taken from it, so that machines with the same settings do not all do the same
/// thing at once.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spread(f64);

impl Spread {
    /// No part.
    pub const NONE: Self = Self(0.0);

    /// This part, from 0 to 1.
    pub fn new(part: f64) -> Self {
        Self(part.clamp(0.0, 1.0))
    }

    fn of(self, time: Duration) -> Duration {
        time.mul_f64(self.0)
    }
}

/// How long is waited after crashes of the agent. The first three restarts follow at once.
const CRASH_BACKOFF: Backoff = Backoff { base: Duration::from_secs(10), cap: Duration::from_mins(10) };

/// So many crashes in a row are answered by starting again at once, and by going on with the job.
pub(crate) const QUICK_RESTARTS: u32 = 3;

/// How many notes about damage are kept.
const MOST_NOTES: usize = 20;

/// Restarts of the machine for the current document are forgiven when there was none for so long.
const FORGIVEN_AFTER: Duration = Duration::from_hours(24);

/// The longest wait after a crash.
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

impl AgentState {
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
        self.progress.held = submission.publish.then_some(HoldReason::Published);
        self.start_anew();
        self.prune();
        Ok(self.newest)
    }

    /// Forgets crashes and restarts: an operator wants what is staged to be worked on.
    fn start_anew(&mut self) {
        self.crashes = Crashes::default();
        self.restarts = Restarts::default();
        self.apply_requested = false;
    }

    /// What a source has under this digest was accepted: only what has another one is newer.
    pub fn took(&mut self, digest: String) {
        self.taken = Some(digest);
    }

    /// Changes the settings. What is staged is worked on or checked at once, by the new ones.
    pub fn configure(&mut self, settings: Settings) {
        if self.settings.source_folder != settings.source_folder {
            self.taken = None;
        }
        self.settings = settings;
        self.progress.not_before = None;
        self.overtake(true);
    }

    /// Has what is current checked at once, because changes may have been missed. What is pending waits for its next try as
    /// before.
    pub fn check_at_once(&mut self) {
        self.overtake(false);
    }

    /// A job that is under way may have looked already at what is to be checked: another one follows it.
    fn overtake(&mut self, by_operator: bool) {
        self.next_check = None;
        let Some(job) = &self.job else { return };
        let was_asked = self.overtaken.take().is_some_and(|former| former.job == job.id && former.by_operator);
        self.overtaken = Some(Overtaken { job: job.id.clone(), by_operator: by_operator || was_asked });
    }

    /// Takes the document of a stage away; nothing becomes of it any more.
    pub fn remove(&mut self, stage: Stage) -> Result<u64, Refusal> {
        let (number, _) = self.staged(stage).ok_or(Refusal::Nothing(stage))?;
        match stage {
            Stage::Pending => self.end_pending(Ended::Removed),
            Stage::Current => {
                (self.current, self.next_check) = (None, None);
                (self.apply_requested, self.drift_found) = (false, false);
                (self.checked, self.failed_corrections) = (None, 0);
            }
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
        let restores = former.restores.or(Some(number));
        Ok(Generation { converged: None, ended: None, restores, ..former.clone() })
    }

    /// Has what is staged applied at once: the pending document, also one that waits to be asked for, else the current one,
    /// whatever its mode. Windows and a restart that is due are still waited for.
    pub fn use_existing(&mut self) -> Result<u64, Refusal> {
        let number = self.pending.or(self.current).ok_or(Refusal::Nothing(Stage::Pending))?;
        self.start_anew();
        // They are all right: the operator says so.
        let all_right = self.withheld.remove(&number).unwrap_or_default();
        self.uncertain.retain(|instance| !all_right.contains(instance));
        self.progress = Progress::default();
        self.overtake(true);
        self.apply_requested = self.pending.is_none();
        Ok(number)
    }

    /// Notes that a job begins, or goes on.
    pub fn begin(&mut self, job: Job) {
        self.restarts.just_now = false;
        self.crashes.is_counted = false;
        self.job = Some(job);
    }

    /// Notes how the job ended: what is pending becomes current, or is tried again. With `spread`, the next check is later
    /// by a part of the splay, and the next try of what is pending earlier by a part of half its wait.
    pub fn end(&mut self, outcome: JobOutcome, now: Timestamp, spread: Spread) {
        let Some(job) = self.job.take() else { return };
        let is_whole = job.only.is_empty();
        let overtaken = self.overtaken.take().filter(|overtaken| overtaken.job == job.id);
        let was_asked = overtaken.as_ref().is_some_and(|overtaken| overtaken.by_operator);
        let had_converged = self.last.as_ref().is_none_or(|last| last.result == JobResult::Converged);
        // A job over a part says nothing about the instance that the agent crashed over.
        if is_whole && outcome.result != JobResult::Aborted {
            let staged = [self.pending, self.current];
            self.crashes.ended((job.generation, job.work), |number| staged.contains(&Some(number)));
        }
        self.withhold(job.generation, outcome.left_running());
        let last = LastJob::of(&job, &outcome, now);
        // That a part is in its desired state says nothing about the rest.
        if is_whole || outcome.result != JobResult::Converged {
            self.last = Some(last.clone());
        }
        self.settle(job.generation, outcome.settled);
        if !outcome.restart.is_empty() {
            self.restart_is_due(&job, outcome.restart, now);
        }
        let next_check = after(now, self.settings.check_every + spread.of(self.settings.splay));
        if self.pending == Some(job.generation) {
            self.end_of_pending(last, (now, spread), next_check);
        } else if self.current == Some(job.generation) {
            if is_whole {
                self.next_check = Some(next_check);
                self.apply_requested &= job.work == Work::Test || was_asked;
                self.drift_found = job.work == Work::Test && outcome.result != JobResult::Converged;
            }
            self.end_of_correction(&job, outcome.result, (now, spread));
            self.checked = LastJob::merged(self.checked.take(), last, &job);
        }
        if overtaken.is_some() {
            self.next_check = None;
        }
        if was_asked {
            self.progress.not_before = None;
        }
        if !is_whole && outcome.result == JobResult::Converged && !had_converged {
            // What was wrong may be right again; only a look at everything tells.
            self.next_check = None;
        }
        self.prune();
    }

    /// Leaves out what left a program running, until another document is delivered, which does not rely on what it finds of them.
    pub(crate) fn withhold(&mut self, generation: u64, instances: BTreeSet<String>) {
        if !instances.is_empty() {
            self.uncertain.extend(instances.iter().cloned());
            self.withheld.entry(generation).or_default().extend(instances);
        }
    }

    /// Notes that sets of these instances ran through.
    pub(crate) fn has_set(&mut self, instances: &[String]) {
        self.uncertain.retain(|instance| !instances.contains(instance));
    }

    fn restart_is_due(&mut self, job: &Job, by: BTreeSet<String>, now: Timestamp) {
        let due = self.restart.get_or_insert_with(|| RestartDue {
            boot: job.boot.clone(),
            since: now,
            by: BTreeSet::new(),
            ordered: None,
            orders: 0,
            failure: None,
        });
        due.by.extend(by);
    }

    fn end_of_pending(&mut self, last: LastJob, (now, spread): (Timestamp, Spread), next_check: Timestamp) {
        let (work, result) = (last.work, last.result);
        self.progress.jobs = self.progress.jobs.saturating_add(1);
        self.progress.unread = 0;
        self.progress.last = match result {
            JobResult::Aborted => self.progress.last.take(),
            _ => Some(last.follows(self.progress.last.as_ref())),
        };
        match (work, result) {
            (Work::Test, _) => self.progress.not_before = Some(next_check),
            (Work::Apply, JobResult::Aborted) => {
                self.progress.not_before = Some(after(now, self.settings.pending_backoff.after(1)));
            }
            // After the restart everything is tested, also what asked for it.
            (Work::Apply, JobResult::Converged | JobResult::NotInState) if self.restart.is_some() => {}
            (Work::Apply, JobResult::Converged) => self.promote(now, next_check),
            (Work::Apply, JobResult::NotInState | JobResult::Failed) => self.failed(now, spread),
        }
    }

    /// A correction that failed is tried again like a pending document, if that is before the next check.
    fn end_of_correction(&mut self, job: &Job, result: JobResult, (now, spread): (Timestamp, Spread)) {
        match (job.work, result) {
            (Work::Apply, JobResult::Failed) => {
                self.failed_corrections = self.failed_corrections.saturating_add(1);
                let wait = self.settings.pending_backoff.after(self.failed_corrections);
                let retry = after(now, wait.saturating_sub(spread.of(wait / 2)));
                self.next_check = self.next_check.map(|at| at.min(retry));
            }
            (Work::Apply, JobResult::Converged | JobResult::NotInState) if job.only.is_empty() => {
                self.failed_corrections = 0;
            }
            _ => {}
        }
    }

    fn failed(&mut self, now: Timestamp, spread: Spread) {
        let failures = self.progress.failures.saturating_add(1);
        let most = self.settings.max_pending_retries;
        let wait = self.settings.pending_backoff.after(failures);
        self.progress.failures = failures;
        self.progress.not_before = Some(after(now, wait.saturating_sub(spread.of(wait / 2))));
        if most > 0 && failures > most {
            self.progress.held = Some(HoldReason::TooManyFailures);
        }
    }

    /// A document that is only monitored never becomes current, also if its mode was changed during the job.
    fn promote(&mut self, now: Timestamp, next_check: Timestamp) {
        let Some((number, generation)) = self.staged(Stage::Pending) else { return };
        if self.mode_of(generation) == ConfigurationMode::MonitorOnly {
            return;
        }
        self.is_delivered_by_the_next();
        // A set of each that this document has ran through.
        self.uncertain.clear();
        self.previous = self.current.replace(number).or(self.previous);
        (self.drift_found, self.failed_corrections) = (false, 0);
        self.checked = self.progress.last.take();
        self.pending = None;
        self.hand_over();
        if let Some(generation) = self.generations.get_mut(&number) {
            generation.converged = Some(now);
        }
        self.next_check = Some(next_check);
        self.progress = Progress::default();
    }

    /// Notes that the agent starts, in this boot of the machine: whether it crashed, and whether a restart that was due has
    /// happened.
    ///
    /// Guarantees: what was under way is counted once, however often the agent crashes before it goes on with the job.
    /// An instance in flight when the machine itself ended, by a power failure or a restart, is not blamed for that.
    /// The current document is checked at once, since nobody watched it meanwhile, and a pending one is tried at once,
    /// since whatever it failed for may be over; nothing but crashes makes either of them wait.
    pub fn started(&mut self, boot: &BootId, interrupted: Interrupted<'_>, now: Timestamp) {
        self.hand_over();
        let was_stopped = std::mem::take(&mut self.stopping);
        if let Some(job) = self.job.as_ref().filter(|job| job.boot == *boot && !was_stopped) {
            let number = job.generation;
            self.crashes.interrupted_jobs.insert((number, job.work));
            self.crashed(number, interrupted, now);
        }
        if self.restart.take_if(|due| due.boot != *boot).is_some() {
            self.restarted(now);
        }
        (self.next_check, self.progress.not_before) = (None, None);
    }

    fn restarted(&mut self, now: Timestamp) {
        let recent = |at| still_ahead(after(at, FORGIVEN_AFTER), now, FORGIVEN_AFTER).is_some();
        let counts = self.pending.is_some() || self.restarts.last.is_some_and(recent);
        let before = if counts { self.restarts.count } else { 0 };
        self.restarts = Restarts { count: before.saturating_add(1), last: Some(now), just_now: true };
        match self.settings.action_after_reboot {
            ActionAfterReboot::StopConfiguration if self.progress.jobs > 0 => {
                self.progress.held.get_or_insert(HoldReason::StoppedAfterRestart);
            }
            ActionAfterReboot::StopConfiguration | ActionAfterReboot::ContinueConfiguration => {}
        }
    }

    /// A document that the agent crashes over while it reads it has no instance to blame: it is held. What is current is not, since
    /// the machine would be left to itself.
    fn crashed(&mut self, number: u64, interrupted: Interrupted<'_>, now: Timestamp) {
        self.crashes.in_a_row = self.crashes.in_a_row.saturating_add(1);
        let is_counted = std::mem::replace(&mut self.crashes.is_counted, true);
        match interrupted {
            _ if is_counted => {}
            Interrupted::Working(in_flight) => {
                self.progress.unread = 0;
                for path in in_flight {
                    *self.crashes.by_instance.entry(path.clone()).or_default() += 1;
                }
            }
            Interrupted::Reading if self.pending == Some(number) => {
                self.progress.unread = self.progress.unread.saturating_add(1);
                if self.progress.unread >= Crashes::LIMIT {
                    self.progress.held.get_or_insert(HoldReason::Unreadable);
                }
            }
            Interrupted::Reading => {}
        }
        let late = self.crashes.in_a_row.saturating_sub(QUICK_RESTARTS);
        self.crashes.not_before = (late > 0).then(|| after(now, CRASH_BACKOFF.after(late)));
    }

    /// Notes that a restart of the machine was ordered.
    pub fn ordered_restart(&mut self, now: Timestamp) {
        if let Some(due) = &mut self.restart {
            due.ordered = Some(now);
            due.orders = due.orders.saturating_add(1);
            due.failure = None;
        }
    }

    /// Notes why the restart that was ordered does not follow.
    pub fn restart_failed(&mut self, why: String) {
        if let Some(due) = &mut self.restart {
            due.failure = Some(why);
        }
    }

    /// Records damage for an operator.
    pub fn damaged(&mut self, at: Timestamp, messages: impl IntoIterator<Item = String>) {
        self.damage.extend(messages.into_iter().map(|message| DamageNote { at, message }));
        // An operator who never looks needs only the newest.
        let spare = self.damage.len().saturating_sub(MOST_NOTES);
        self.damage.drain(..spare);
    }

    /// Forgets damage that an operator has taken note of; how much that was.
    pub fn acknowledge(&mut self) -> usize {
        std::mem::take(&mut self.damage).len()
    }

    /// Gives up on the job that was interrupted. What is known of it is in its journal.
    pub fn abandon_job(&mut self, left: LeftOver, boot: &BootId, now: Timestamp) {
        let Some(job) = self.job.take() else { return };
        self.overtaken = None;
        self.settle(job.generation, left.settled);
        if !left.restart.is_empty() && job.boot == *boot {
            self.restart_is_due(&job, left.restart, now);
        }
    }

    /// Holds the pending document until an operator asks for it.
    pub fn hold(&mut self, why: HoldReason) {
        if self.pending.is_some() {
            self.progress.held = Some(why);
        }
    }

    /// Forgets the oldest generations that nothing refers to.
    fn prune(&mut self) {
        self.hand_over();
        let staged = [self.pending, self.current, self.previous, self.job.as_ref().map(|job| job.generation)];
        let mut spare: Vec<u64> =
            self.generations.keys().copied().filter(|number| !staged.contains(&Some(*number))).collect();
        let most = usize::try_from(self.settings.generations).unwrap_or(usize::MAX);
        spare.truncate(spare.len().saturating_sub(most));
        self.generations.retain(|number, _| !spare.contains(number));
        self.withheld.retain(|number, _| self.generations.contains_key(number));
    }
}

impl Crashes {
    /// Notes that a job came over every instance that is not left out. Crashes are forgotten when none of the jobs that they
    /// interrupted is still to come to its end.
    fn ended(&mut self, job: (u64, Work), is_staged: impl Fn(u64) -> bool) {
        self.interrupted_jobs.retain(|each| *each != job && is_staged(each.0));
        if self.interrupted_jobs.is_empty() {
            let mut crashes = std::mem::take(self);
            crashes.by_instance.retain(|_, count| *count >= Self::LIMIT);
            self.by_instance = crashes.by_instance;
        }
    }
}

/// An instant that was fixed earlier, if it is still to be waited for. One that is further ahead than the longest wait was
/// fixed by another clock, and is over.
pub(crate) fn still_ahead(at: Timestamp, now: Timestamp, longest: Duration) -> Option<Timestamp> {
    (now < at && at <= after(now, longest)).then_some(at)
}

/// So much later; the end of time if that is before.
pub(crate) fn after(now: Timestamp, wait: Duration) -> Timestamp {
    now.saturating_add(wait).unwrap_or(Timestamp::MAX)
}

/// So much earlier; the beginning of time if that is after.
pub(crate) fn before(now: Timestamp, span: Duration) -> Timestamp {
    now.saturating_sub(span).unwrap_or(Timestamp::MIN)
}
