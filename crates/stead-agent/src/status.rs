//! The status that the agent reports. Names and values are those of the DSC Local Configuration Manager, where it has
//! them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::decide::{Moment, Next, Waiting};
use crate::state::{
    AgentState, DamageNote, HoldReason, Job, JobKind, JobResult, LastJob, Stage, Trouble, TroubleKind, Work,
};

/// The state of the agent, of its stages and of its last job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Status {
    /// The activity, in one word.
    #[serde(rename = "LCMState")]
    pub lcm_state: LcmState,
    /// The activity or the event that it waits for, in one sentence without full stop.
    #[serde(rename = "LCMStateDetail")]
    pub lcm_state_detail: String,
    /// How the machine is, in one word.
    pub health: Health,
    /// When it goes on by itself, if it waits for a time.
    pub next_attempt: Option<Timestamp>,
    /// True if a restart of the machine is due.
    pub reboot_requested: bool,
    /// The instances that asked for it, by their paths.
    pub reboot_requested_by: Vec<String>,
    /// The pending document.
    pub pending: Option<u64>,
    /// The current document.
    pub current: Option<u64>,
    /// The previous document.
    pub previous: Option<u64>,
    /// How many jobs over the pending document failed.
    pub failures: u32,
    /// How often the machine was restarted for the newest document.
    pub restarts: u32,
    /// Instances that are left out because the agent crashed over them, by their paths.
    pub quarantined: Vec<String>,
    /// Instances that are owed a notification, by their paths.
    pub owed: Vec<String>,
    /// Damage that was found and that no operator has taken note of.
    pub damage: Vec<DamageNote>,
    /// The job that is under way, else the last one that ended.
    pub job: Option<JobStatus>,
    /// The documents that are staged: pending, current, previous.
    pub stages: Vec<StageStatus>,
}

/// The health of a machine, for monitoring; if several apply, the later variant counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// It is in the state of its document.
    Converged,
    /// It is not, and nothing has failed: drift is only reported, or a document is being applied.
    Drifted,
    /// Something fails, or was damaged.
    Failing,
    /// Nothing happens until an operator does something: there is no document, it is held, or a restart is due.
    Held,
}

/// A document that is staged.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct StageStatus {
    /// Its stage.
    pub stage: Stage,
    /// Its number.
    pub generation: u64,
    /// Where it came from.
    pub origin: String,
    /// When it was accepted.
    pub accepted: Timestamp,
    /// The user who delivered it.
    pub delivered_by: u32,
    /// When the machine was brought to it, first.
    pub converged: Option<Timestamp>,
    /// The last job over it that was not ended early, with what jobs over parts found since.
    pub last_job: Option<JobStatus>,
    /// Its known problems.
    pub troubles: Vec<Trouble>,
    /// Why the last job came over no instance, if it did not.
    pub error: Option<String>,
}

/// The activity of the agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum LcmState {
    /// Nothing.
    Idle,
    /// A job.
    Busy,
    /// It waits for a restart of the machine.
    PendingReboot,
    /// A document has not converged.
    PendingConfiguration,
}

/// A job and its outcome.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct JobStatus {
    /// Its id.
    #[serde(rename = "JobID")]
    pub id: String,
    /// The document.
    pub generation: u64,
    /// Why it was begun.
    #[serde(rename = "Type")]
    pub kind: JobKind,
    /// Its outcome.
    pub status: Outcome,
    /// When it was begun.
    pub start_date: Timestamp,
    /// When it ended.
    pub end_date: Option<Timestamp>,
    /// How many instances there are.
    pub number_of_resources: u64,
    /// How many of them are not in their desired state.
    pub number_not_in_desired_state: u64,
}

/// The outcome of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Outcome {
    /// Nothing failed.
    Success,
    /// Something failed, or did not converge.
    Failure,
    /// It was ended early.
    Aborted,
    /// It is under way.
    InProgress,
}

/// A job that is under way in this process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Activity {
    /// The job.
    pub job: Job,
    /// How many instances have ended.
    pub settled: usize,
    /// How many there are.
    pub instances: usize,
    /// Failures so far, including those of instances that will be tried again.
    pub troubles: Vec<Trouble>,
    /// The thing that the job itself waits for, such as another run.
    pub waits_for: Option<String>,
}

impl Activity {
    /// A job that has only begun.
    pub fn of(job: Job) -> Self {
        Self { job, settled: 0, instances: 0, troubles: Vec::new(), waits_for: None }
    }

    fn detail(&self) -> String {
        let waits = self.waits_for.iter().map(|whom| format!(", waiting for {whom}"));
        std::iter::once(doing(&self.job)).chain(waits).collect()
    }
}

impl AgentState {
    /// Returns the status of the agent at this moment, and of the job under way.
    pub fn status(&self, moment: &Moment, activity: Option<&Activity>) -> Status {
        let next = self.next(moment);
        Status {
            lcm_state: self.lcm_state(activity),
            lcm_state_detail: activity.map_or_else(|| self.detail(&next), Activity::detail),
            health: self.health(moment),
            next_attempt: self.next_attempt(&next, moment).filter(|_| activity.is_none()),
            reboot_requested: self.restart.is_some(),
            reboot_requested_by: self.restart.iter().flat_map(|due| due.by.iter().cloned()).collect(),
            pending: self.pending,
            current: self.current,
            previous: self.previous,
            failures: self.progress.failures,
            restarts: self.restarts.count,
            quarantined: self.crashes.quarantined().map(str::to_owned).collect(),
            owed: self.owed.all().into_iter().collect(),
            damage: self.damage.clone(),
            job: activity.map(JobStatus::running).or_else(|| self.last.as_ref().map(JobStatus::ended)),
            stages: [Stage::Pending, Stage::Current, Stage::Previous]
                .into_iter()
                .filter_map(|stage| self.stage_status(stage))
                .collect(),
        }
    }

    fn stage_status(&self, stage: Stage) -> Option<StageStatus> {
        let (number, generation) = self.staged(stage)?;
        let last = self.last_over(stage);
        Some(StageStatus {
            stage,
            generation: number,
            origin: generation.origin.clone(),
            accepted: generation.accepted,
            delivered_by: generation.user,
            converged: generation.converged,
            last_job: last.map(JobStatus::ended),
            troubles: last.map(|last| last.troubles.clone()).unwrap_or_default(),
            error: last.and_then(|last| last.error.clone()),
        })
    }

    fn last_over(&self, stage: Stage) -> Option<&LastJob> {
        match stage {
            Stage::Pending => self.progress.last.as_ref(),
            Stage::Current => self.checked.as_ref(),
            Stage::Previous => None,
        }
    }

    /// The health of the machine. A problem that needs an operator comes before a failure, and a failure before a
    /// state that is only not reached yet.
    pub fn health(&self, moment: &Moment) -> Health {
        let worked_on = [Stage::Pending, Stage::Current].into_iter().filter(|stage| self.staged(*stage).is_some());
        let mut last = worked_on.clone().filter_map(|stage| self.last_over(stage)).map(Outcome::of_health);
        match () {
            () if worked_on.clone().next().is_none() || self.needs_operator(moment) => Health::Held,
            () if last.clone().any(|health| health == Health::Failing) => Health::Failing,
            () if !self.damage.is_empty() || self.crashes.quarantined().next().is_some() => Health::Failing,
            () if last.any(|health| health == Health::Drifted) || self.restart.is_some() => Health::Drifted,
            () if self.pending.is_some() && self.progress.last.is_none() => Health::Drifted,
            () => Health::Converged,
        }
    }

    /// Returns whether the pending document, or a machine that needs a restart, makes no progress without an operator.
    fn needs_operator(&self, moment: &Moment) -> bool {
        self.pending_waits_for(moment).is_some_and(|(until, because)| match because {
            Waiting::Held(_) | Waiting::TooManyRestarts => true,
            Waiting::Window => until.is_none(),
            Waiting::Restart => !self.settings.reboot_node_if_needed,
            Waiting::Document | Waiting::Check | Waiting::Retry | Waiting::Crashes => false,
        })
    }

    /// The wait of `next` ends where anything is due; this is when what it waits for is.
    fn next_attempt(&self, next: &Next, moment: &Moment) -> Option<Timestamp> {
        let Next::Wait { until, because } = next else { return None };
        match self.waits_for(moment) {
            Some((until, first)) if first == *because => until,
            _ => *until,
        }
    }

    /// The table of the Local Configuration Manager: a restart that is due comes first, then a document that is not applied as
    /// a whole, be it new or the current one, of which something has failed.
    fn lcm_state(&self, activity: Option<&Activity>) -> LcmState {
        let fails = || self.checked.as_ref().is_some_and(|last| Outcome::of(last) == Outcome::Failure);
        match activity {
            Some(_) => LcmState::Busy,
            None if self.restart.is_some() => LcmState::PendingReboot,
            None if self.pending.is_some() || fails() => LcmState::PendingConfiguration,
            None => LcmState::Idle,
        }
    }

    fn detail(&self, next: &Next) -> String {
        match next {
            Next::Begin { generation, kind, work } => doing_what(*generation, *kind, *work),
            Next::Resume => match &self.job {
                Some(Job { generation, .. }) => format!("resuming the interrupted job over generation {generation}"),
                None => "resuming the interrupted job".to_owned(),
            },
            Next::Abandon => "giving up the interrupted job".to_owned(),
            Next::Restart => "restarting the machine".to_owned(),
            Next::Wait { until, because } => self.waiting(*because, until.is_some()),
        }
    }

    /// Describes the wait of the pending document, or of a restart that comes before it, and returns when it ends.
    pub(crate) fn waiting_for(&self, moment: &Moment) -> Option<(String, Option<Timestamp>)> {
        let (until, because) = self.pending_waits_for(moment)?;
        Some((self.waiting(because, until.is_some()), until))
    }

    /// Returns the number of attempts of the pending document that have failed, if it waits for the next one.
    pub(crate) fn failed_attempts(&self, moment: &Moment) -> Option<u32> {
        let waits = matches!(self.pending_waits_for(moment), Some((_, Waiting::Retry)));
        waits.then_some(self.progress.failures)
    }

    fn waiting(&self, because: Waiting, opens: bool) -> String {
        match because {
            Waiting::Document => match self.staged(Stage::Current) {
                Some((number, _)) => format!("generation {number} has converged and is not checked (ApplyOnly)"),
                None => "no document was delivered".to_owned(),
            },
            Waiting::Check => "waiting for the next check".to_owned(),
            Waiting::Retry if self.progress.failures == 0 => "waiting to try the pending document again".to_owned(),
            Waiting::Retry => {
                format!("waiting to try the pending document again (failed attempts: {})", self.progress.failures)
            }
            Waiting::Window if opens => "waiting for a maintenance window".to_owned(),
            Waiting::Window => "waiting for a maintenance window, and none ever opens".to_owned(),
            Waiting::Restart => self.waiting_for_restart(),
            Waiting::TooManyRestarts => format!(
                "waiting for an operator to restart the machine: it was restarted {} times, MaxRestarts is {}",
                self.restarts.count, self.settings.max_restarts
            ),
            Waiting::Held(held) => {
                format!("the pending document is held: {}; 'stead agent apply --use-existing' starts it", reason(held))
            }
            Waiting::Crashes => format!("waiting after {} crashes in a row", self.crashes.in_a_row),
        }
    }

    fn waiting_for_restart(&self) -> String {
        let waiting = "waiting for a restart of the machine";
        match &self.restart {
            Some(due) if let Some(why) = &due.failure => format!("{waiting}, which could not be ordered: {why}"),
            Some(due) if due.orders > 1 => format!("{waiting}, which was ordered {} times without effect", due.orders),
            _ => waiting.to_owned(),
        }
    }
}

fn reason(held: HoldReason) -> &'static str {
    match held {
        HoldReason::Published => "it was only published",
        HoldReason::TooManyFailures => "it failed too often (MaxPendingConfigRetryCount)",
        HoldReason::StoppedAfterRestart => "the machine was restarted (ActionAfterReboot is StopConfiguration)",
        HoldReason::Stopped => "it was stopped",
        HoldReason::Unreadable => "the agent crashed repeatedly while it read it",
    }
}

fn doing(job: &Job) -> String {
    match job.only.len() {
        0 => doing_what(job.generation, job.kind, job.work),
        1 => format!("looking at 1 instance of generation {} that has changed", job.generation),
        count => format!("looking at {count} instances of generation {} that have changed", job.generation),
    }
}

fn doing_what(generation: u64, kind: JobKind, work: Work) -> String {
    match (work, kind) {
        (Work::Test, _) => format!("checking generation {generation}"),
        (Work::Apply, JobKind::Initial) => format!("applying generation {generation}"),
        (Work::Apply, JobKind::Consistency) => format!("applying generation {generation} again"),
        (Work::Apply, JobKind::Reboot) => {
            format!("applying generation {generation} after a restart of the machine")
        }
    }
}

impl JobStatus {
    fn running(activity: &Activity) -> Self {
        let Activity { job, instances, troubles, .. } = activity;
        Self {
            id: job.id.clone(),
            generation: job.generation,
            kind: job.kind,
            status: Outcome::InProgress,
            start_date: job.began,
            end_date: None,
            number_of_resources: *instances as u64,
            number_not_in_desired_state: troubles.len() as u64,
        }
    }

    fn ended(last: &LastJob) -> Self {
        Self {
            id: last.id.clone(),
            generation: last.generation,
            kind: last.kind,
            status: Outcome::of(last),
            start_date: last.began,
            end_date: Some(last.ended),
            number_of_resources: last.instances,
            number_not_in_desired_state: last.not_in_state,
        }
    }
}

impl Outcome {
    /// A job that found drift succeeded, and so did one that stopped for a restart of the machine.
    fn of(last: &LastJob) -> Self {
        let is_drift = |trouble: &Trouble| trouble.kind == TroubleKind::Drifted;
        let only_drift = !last.troubles.is_empty() && last.troubles.iter().all(is_drift);
        match last.result {
            JobResult::Converged => Self::Success,
            JobResult::NotInState if last.work == Work::Test || last.reboot_requested || only_drift => Self::Success,
            JobResult::NotInState | JobResult::Failed => Self::Failure,
            JobResult::Aborted => Self::Aborted,
        }
    }

    fn of_health(last: &LastJob) -> Health {
        match Self::of(last) {
            Self::Failure => Health::Failing,
            Self::Success if last.result == JobResult::Converged && last.troubles.is_empty() => Health::Converged,
            Self::Success | Self::Aborted | Self::InProgress => Health::Drifted,
        }
    }
}
