//! The record of the agent, which outlives it: stages, generations, the job under way, restarts and crashes. All of
//! it is one record that is replaced as a whole, so that every change of it happens or does not.
//!
//! ```text
//!             accept                    a job leaves everything in its desired state, no restart is due
//!  (nothing) ───────▶ pending ─────────────────────────────────────────────────────────────▶ current
//!                      │  ▲                                                                     │ the former one
//!                      │  └── tried again: after failures, restarts, crashes                    ▼
//!                      └─────── remove ──▶ (nothing)              accept ◀──── restore ──── previous
//! ```

mod debts;
mod following;
mod last_job;
mod transitions;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use stead_core::document::ConfigurationMode;
use stead_core::identity::DocumentIdentity;

use crate::mode::{Standing, Treatment, treatment};
use crate::settings::Settings;
pub use debts::{Debts, Settled};
pub use following::{Followed, Following, Joining, StagedRelease};
pub use transitions::{JobOutcome, LeftOver, Refusal, Spread, Submission};
pub(crate) use transitions::{MAX_CRASH_WAIT, QUICK_RESTARTS, after, before, still_ahead};

/// The record of the agent, which outlives it.
///
/// # Examples
/// ```
/// # use std::collections::BTreeSet;
/// use jiff::tz::TimeZone;
/// use stead_agent::{AgentState, BootId, Generation, Job, JobKind, Moment, Next, Stage, Submission, Waiting, Work};
///
/// let moment = Moment {
///     now: "2026-01-02T03:04:05Z".parse()?,
///     boot: BootId("first".to_owned()),
///     zone: TimeZone::UTC,
///     shutdown: None,
/// };
/// let mut state = AgentState::default();
/// assert_eq!(state.next(&moment), Next::Wait { until: None, because: Waiting::Document });
///
/// // What is accepted is pending, and is worked on at once.
/// let generation = Generation {
///     content: "5f0c".to_owned(),
///     origin: "web.yaml".to_owned(),
///     identity: None,
///     accepted: moment.now,
///     user: 0,
///     mode: None,
///     instance_modes: BTreeSet::new(),
///     converged: None,
///     ended: None,
///     restores: None,
/// };
/// let number = state.submit(Submission { generation, force: false, publish: false })?;
/// assert_eq!(state.staged(Stage::Pending).map(|(number, _)| number), Some(number));
/// let Next::Begin { generation, kind: JobKind::Initial, work: Work::Apply } = state.next(&moment) else {
///     return Err("it begins a job".into());
/// };
/// assert_eq!(generation, number);
///
/// // A process that is killed in the middle finds the job in the record, and goes on with it.
/// let job = Job {
///     id: "a".to_owned(),
///     generation,
///     kind: JobKind::Initial,
///     work: Work::Apply,
///     began: moment.now,
///     boot: moment.boot.clone(),
///     only: BTreeSet::new(),
/// };
/// state.begin(job);
/// assert_eq!(state.next(&moment), Next::Resume);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
// A record of an older version lacks what was added since.
#[serde(rename_all = "camelCase", default)]
pub struct AgentState {
    /// The settings that count: the last ones that were valid.
    pub settings: Settings,
    /// The number of the newest generation, also if it is gone.
    pub newest: u64,
    /// The document that is applied until it has converged.
    pub pending: Option<u64>,
    /// The document that the machine was brought to last.
    pub current: Option<u64>,
    /// The one before it.
    pub previous: Option<u64>,
    /// Every document that is kept, by its number.
    pub generations: BTreeMap<u64, Generation>,
    /// How far the pending document has come.
    pub progress: Progress,
    /// The job that is under way or was interrupted.
    pub job: Option<Job>,
    /// True if the agent was asked to end while the job was under way. If it is killed then, that does not count as a
    /// crash.
    pub stopping: bool,
    /// The restart of the machine that is due.
    pub restart: Option<RestartDue>,
    /// The restarts of the machine so far.
    pub restarts: Restarts,
    /// The job that may have looked already at what was to be looked at again while it was under way.
    pub overtaken: Option<Overtaken>,
    /// When the current document is checked next.
    pub next_check: Option<Timestamp>,
    /// True if an operator asked for the current document to be applied, whatever its mode.
    pub apply_requested: bool,
    /// True if the current document was only tested last, and was not in its desired state.
    pub drift_found: bool,
    /// The notifications that are owed.
    pub owed: Debts,
    /// Crashes of the agent.
    pub crashes: Crashes,
    /// The instances that left a program running, by generation: what they find afterwards is not to be relied on.
    pub withheld: BTreeMap<u64, BTreeSet<String>>,
    /// The instances that left a program running, whatever was delivered since: they are not in their desired state until a set of
    /// them runs through.
    pub uncertain: BTreeSet<String>,
    /// How the last job over the pending or the current document ended.
    pub last: Option<LastJob>,
    /// The result for the current document: of the last job over all of it, updated by jobs over parts since.
    pub checked: Option<LastJob>,
    /// How many corrections of the current document have failed in a row.
    pub failed_corrections: u32,
    /// Damage that was found, until an operator acknowledges it.
    pub damage: Vec<DamageNote>,
    /// The digest of what was taken last from the source that is followed.
    pub taken: Option<String>,
    /// The source of releases that is followed.
    pub following: Option<Following>,
}

/// Damage that was found at a start.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DamageNote {
    /// When it was found.
    pub at: Timestamp,
    /// Describes the damage, and the state with which the agent continues.
    pub message: String,
}

/// A job that another one follows at once.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Overtaken {
    /// Its id.
    pub job: String,
    /// True if an operator asked, so that what is pending does not wait for its next try either.
    pub by_operator: bool,
}

/// A document that was accepted.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Generation {
    /// The name that it is stored under: a keyed digest of what was delivered, in hexadecimal.
    pub content: String,
    /// Where it came from.
    pub origin: String,
    /// Which document it is, whatever its content; `None` if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<DocumentIdentity>,
    /// When it was accepted.
    pub accepted: Timestamp,
    /// The user who delivered it.
    pub user: u32,
    /// The mode that it states itself, if it does.
    pub mode: Option<ConfigurationMode>,
    /// The modes that some of its instances state themselves.
    pub instance_modes: BTreeSet<ConfigurationMode>,
    /// When the machine was brought to it, first.
    pub converged: Option<Timestamp>,
    /// Why it is not worked on any more, if it never converged.
    pub ended: Option<Ended>,
    /// The number of the former generation that it is, if somebody restored that: what newer ones made goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restores: Option<u64>,
}

/// Why a document is not worked on any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ended {
    /// A newer one took its place.
    Superseded,
    /// Somebody removed it.
    Removed,
}

/// How far the pending document has come.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Progress {
    /// How many jobs over it came to their end.
    pub jobs: u32,
    /// How many of them failed.
    pub failures: u32,
    /// How often in a row the agent crashed while it read the document.
    pub unread: u32,
    /// Not before this instant is it tried or tested again.
    pub not_before: Option<Timestamp>,
    /// Why it is held until an operator asks for it, if it is.
    pub held: Option<HoldReason>,
    /// How the last job over it ended.
    pub last: Option<LastJob>,
}

/// Why a pending document is held until an operator asks for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HoldReason {
    /// It was only published.
    Published,
    /// It failed too often.
    TooManyFailures,
    /// The settings say to stop after a restart.
    StoppedAfterRestart,
    /// Somebody stopped it.
    Stopped,
    /// The agent crashed too often while it read it.
    Unreadable,
}

/// A job: one pass over a document.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// The identifier, which no other has.
    pub id: String,
    /// The document.
    pub generation: u64,
    /// Why it was begun.
    pub kind: JobKind,
    /// The work: a test, or one that changes the machine.
    pub work: Work,
    /// When it was begun.
    pub began: Timestamp,
    /// The boot of the machine in which it was last worked on.
    pub boot: BootId,
    /// The instances that it is about, by their paths; all if there is none.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub only: BTreeSet<String>,
}

/// Why a job is begun. The names are those that the Local Configuration Manager reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum JobKind {
    /// The first time that a document is worked on.
    Initial,
    /// The document is worked on or checked again.
    Consistency,
    /// The machine was restarted because a resource asked for it.
    Reboot,
}

/// The work of a job: to test, or to change the machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Work {
    /// It brings every instance into its desired state.
    Apply,
    /// It only tests.
    Test,
}

/// The identifier of one boot of the machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BootId(pub String);

/// A restart of the machine that is due.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RestartDue {
    /// The boot in which it was asked for.
    pub boot: BootId,
    /// When it was asked for.
    pub since: Timestamp,
    /// The instances that asked for it, by their paths.
    pub by: BTreeSet<String>,
    /// When the restart was ordered last, if it was.
    pub ordered: Option<Timestamp>,
    /// How often it was ordered.
    #[serde(default)]
    pub orders: u32,
    /// Why the last order failed, if it did.
    #[serde(default)]
    pub failure: Option<String>,
}

/// Restarts of the machine that resources asked for. They are counted by document, over its promotion.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Restarts {
    /// How many there were for the newest document since it was accepted or an operator asked for it. Those for the current
    /// document are forgiven when there was none for a day.
    pub count: u32,
    /// When the last one was.
    pub last: Option<Timestamp>,
    /// True if no job has begun since.
    pub just_now: bool,
}

/// Crashes of the agent.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Crashes {
    /// How many there were since every job that was interrupted came to its end.
    pub in_a_row: u32,
    /// The documents and the work of the jobs that did not since.
    pub interrupted_jobs: BTreeSet<(u64, Work)>,
    /// Not before this instant is a job begun.
    pub not_before: Option<Timestamp>,
    /// True if the interrupted instances were counted, and no job has gone on with them since.
    pub is_counted: bool,
    /// How often in a row it crashed while an instance was worked on, by path.
    pub by_instance: BTreeMap<String, u32>,
}

/// The activity of the agent in a job when it ended, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interrupted<'i> {
    /// It read the document, and had begun nothing of it.
    Reading,
    /// It worked on these instances, by their paths.
    Working(&'i [String]),
}

impl Crashes {
    /// So often may the agent crash over an instance before that is left out, and over reading a document before that is held.
    pub const LIMIT: u32 = 3;

    /// The instances that are left out.
    pub fn quarantined(&self) -> impl Iterator<Item = &str> {
        self.by_instance.iter().filter(|(_, count)| **count >= Self::LIMIT).map(|(path, _)| path.as_str())
    }
}

/// How a job ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastJob {
    /// Its id.
    pub id: String,
    /// The document.
    pub generation: u64,
    /// Why it was begun.
    pub kind: JobKind,
    /// The work: a test, or one that changed the machine.
    pub work: Work,
    /// When it was begun.
    pub began: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
    /// Its outcome.
    pub result: JobResult,
    /// True if an instance asked for a restart of the machine.
    pub reboot_requested: bool,
    /// How many instances are not in their desired state.
    pub not_in_state: u64,
    /// How many instances there are.
    pub instances: u64,
    /// The instances that are not in their desired state, the first of them, in the order of the document.
    #[serde(default)]
    pub troubles: Vec<Trouble>,
    /// Why it came over no instance, if it did not.
    #[serde(default)]
    pub error: Option<String>,
}

/// An instance that is not in its desired state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trouble {
    /// The instance, by its path.
    pub instance: String,
    /// The kind of problem.
    pub kind: TroubleKind,
    /// Why, in one line without secrets; empty if nothing is known of it.
    pub message: String,
    /// When a job found it so first.
    pub since: Timestamp,
}

/// The kind of problem of an instance that is not in its desired state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TroubleKind {
    /// It failed.
    Failed,
    /// It was only tested, and has drifted.
    Drifted,
    /// Its resource is still at work.
    Pending,
    /// It was set, and needs a restart of the machine.
    Restart,
    /// It is left out, because the agent crashed over it.
    Quarantined,
    /// It left a program running, which was ended, and is left out until the document is delivered again.
    Withheld,
}

impl TroubleKind {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Drifted => "drifted",
            Self::Pending => "pending",
            Self::Restart => "restart",
            Self::Quarantined => "quarantined",
            Self::Withheld => "withheld",
        }
    }
}

impl Trouble {
    /// How many problems of a job are kept.
    pub const MOST: usize = 50;

    /// The approximate limit of a message, in bytes.
    const LONGEST: usize = 400;

    /// An instance that is not in its desired state. Of the message the first line is kept.
    pub fn new(instance: String, kind: TroubleKind, message: &str, since: Timestamp) -> Self {
        let line = message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let kept = line.floor_char_boundary(Self::LONGEST);
        let message = line.get(..kept).unwrap_or_default().to_owned() + if kept < line.len() { " …" } else { "" };
        Self { instance, kind, message, since }
    }
}

/// The outcome of a job. Whether a restart of the machine is due is apart from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum JobResult {
    /// Every instance is in its desired state, but for those that are only monitored, and none is owed a notification.
    Converged,
    /// Nothing failed, and something is not in its desired state.
    NotInState,
    /// Something failed.
    Failed,
    /// It was ended early.
    Aborted,
}

/// The stages of documents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Applied until it has converged.
    Pending,
    /// The document that the machine was brought to last.
    Current,
    /// The one before.
    Previous,
}

impl AgentState {
    /// The document of a stage.
    pub fn staged(&self, stage: Stage) -> Option<(u64, &Generation)> {
        let number = match stage {
            Stage::Pending => self.pending,
            Stage::Current => self.current,
            Stage::Previous => self.previous,
        }?;
        Some((number, self.generations.get(&number)?))
    }

    /// Returns the mode of a document.
    pub fn mode_of(&self, generation: &Generation) -> ConfigurationMode {
        generation.mode.unwrap_or(self.settings.configuration_mode)
    }

    /// Returns the number of instances that are worked on at once.
    ///
    /// After a crash one at a time, until every interrupted job has ended; so the next crash can be blamed on one instance.
    pub fn width(&self) -> u32 {
        if self.crashes.in_a_row > 0 { 1 } else { self.settings.width }
    }

    /// Returns where a document stands.
    pub(crate) fn standing(&self, number: u64) -> Standing {
        match self.current == Some(number) {
            false => Standing::Pending,
            true if self.apply_requested => Standing::Requested,
            true => Standing::Current,
        }
    }

    /// Returns the treatments of the instances of a document: the one of its mode, and those that some of them state.
    pub(crate) fn treatments(&self, standing: Standing, generation: &Generation) -> impl Iterator<Item = Treatment> {
        let modes = std::iter::once(self.mode_of(generation)).chain(generation.instance_modes.iter().copied());
        modes.map(move |mode| treatment(standing, mode))
    }
}
