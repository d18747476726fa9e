//! What the agent says of itself. Names and values are those of the DSC Local Configuration Manager, where it has them.

use jiff::Timestamp;
use serde::Serialize;

use crate::decide::{Moment, Next, Waiting};
use crate::state::{Held, Job, JobKind, JobResult, LastJob, Stage, State, Work};

/// The state of the agent, of its stages and of its last job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Status {
    /// What it is doing, in one word.
    #[serde(rename = "LCMState")]
    pub lcm_state: LcmState,
    /// What it is doing or waits for, in one sentence without full stop.
    #[serde(rename = "LCMStateDetail")]
    pub lcm_state_detail: String,
    /// When it goes on by itself, if it waits for a time.
    pub next_attempt: Option<Timestamp>,
    /// Whether a restart of the machine is due.
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
    /// The job that is under way, else the last one that ended.
    pub job: Option<JobStatus>,
}

/// What the agent is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
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
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
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

/// Whether a job is under way in this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Activity {
    /// The agent waits, or decides.
    Idle,
    /// The job of the state is under way.
    Busy,
}

impl State {
    /// What is known of the agent at this moment.
    pub fn status(&self, moment: &Moment, activity: Activity) -> Status {
        let running = self.job.as_ref().filter(|_| activity == Activity::Busy);
        let next = self.next(moment);
        Status {
            lcm_state: self.lcm_state(activity),
            lcm_state_detail: running
                .map_or_else(|| self.detail(&next), |job| doing(job.generation, job.kind, job.work)),
            next_attempt: self.next_attempt(&next, moment).filter(|_| running.is_none()),
            reboot_requested: self.restart.is_some(),
            reboot_requested_by: self.restart.iter().flat_map(|due| due.by.iter().cloned()).collect(),
            pending: self.pending,
            current: self.current,
            previous: self.previous,
            failures: self.progress.failures,
            restarts: self.restarts.count,
            quarantined: self.crashes.quarantined().map(str::to_owned).collect(),
            owed: self.owed.iter().cloned().collect(),
            job: running.map(JobStatus::running).or_else(|| self.last.as_ref().map(JobStatus::ended)),
        }
    }

    /// The wait of `next` ends where anything is due; this is when what it waits for is.
    fn next_attempt(&self, next: &Next, moment: &Moment) -> Option<Timestamp> {
        let Next::Wait { until, because } = next else { return None };
        match self.waits_for(moment) {
            Some((until, first)) if first == *because => until,
            _ => *until,
        }
    }

    fn lcm_state(&self, activity: Activity) -> LcmState {
        match activity {
            Activity::Busy => LcmState::Busy,
            Activity::Idle if self.restart.is_some() => LcmState::PendingReboot,
            Activity::Idle if self.pending.is_some() => LcmState::PendingConfiguration,
            Activity::Idle => LcmState::Idle,
        }
    }

    fn detail(&self, next: &Next) -> String {
        match next {
            Next::Begin { generation, kind, work } => doing(*generation, *kind, *work),
            Next::Resume => match &self.job {
                Some(Job { generation, .. }) => format!("resuming the interrupted job over generation {generation}"),
                None => "resuming the interrupted job".to_owned(),
            },
            Next::Abandon => "giving up the interrupted job".to_owned(),
            Next::Restart => "restarting the machine".to_owned(),
            Next::Wait { until, because } => self.waiting(*because, until.is_some()),
        }
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
            Waiting::Restart => "waiting for a restart of the machine".to_owned(),
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
}

fn reason(held: Held) -> &'static str {
    match held {
        Held::Published => "it was only published",
        Held::TooManyFailures => "it failed too often (MaxPendingConfigRetryCount)",
        Held::StoppedAfterRestart => "the machine was restarted (ActionAfterReboot is StopConfiguration)",
        Held::Stopped => "it was stopped",
    }
}

fn doing(generation: u64, kind: JobKind, work: Work) -> String {
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
    fn running(job: &Job) -> Self {
        Self {
            id: job.id.clone(),
            generation: job.generation,
            kind: job.kind,
            status: Outcome::InProgress,
            start_date: job.began,
            end_date: None,
            number_of_resources: 0,
            number_not_in_desired_state: 0,
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
        match last.result {
            JobResult::Converged => Self::Success,
            JobResult::NotInState if last.work == Work::Test || last.reboot_requested => Self::Success,
            JobResult::NotInState | JobResult::Failed => Self::Failure,
            JobResult::Aborted => Self::Aborted,
        }
    }
}
