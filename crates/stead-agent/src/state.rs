//! What the agent knows that outlives it: stages, generations, the job under way, restarts and crashes. All of it is one
//! record that is replaced as a whole, so that every change of it happens or does not.
//!
//! ```text
//!             accept                    a job leaves everything in its desired state, no restart is due
//!  (nothing) ───────▶ pending ─────────────────────────────────────────────────────────────▶ current
//!                      │  ▲                                                                     │ the former one
//!                      │  └── tried again: after failures, restarts, crashes                    ▼
//!                      └─────── remove ──▶ (nothing)              accept ◀──── restore ──── previous
//! ```

mod transitions;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use stead_core::document::ConfigurationMode;

use crate::settings::Settings;
pub use transitions::{JobOutcome, Refusal, Submission};
pub(crate) use transitions::{MAX_CRASH_WAIT, after};

/// What the agent knows that outlives it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    /// The settings that count: the last ones that were valid.
    pub settings: Settings,
    /// The number of the newest generation, also if it is gone.
    pub newest: u64,
    /// The document that is worked on until the machine is as it says.
    pub pending: Option<u64>,
    /// The document that the machine was brought to last.
    pub current: Option<u64>,
    /// The one before it.
    pub previous: Option<u64>,
    /// Every document that is kept, by its number.
    pub generations: BTreeMap<u64, Generation>,
    /// How far the pending document has come.
    pub progress: Progress,
    /// The job that is under way, was interrupted, or waits for a restart of the machine.
    pub job: Option<Job>,
    /// The restart of the machine that is due.
    pub restart: Option<RestartDue>,
    /// When the current document is looked at next.
    pub next_check: Option<Timestamp>,
    /// Instances that are owed a notification, by their paths.
    pub owed: BTreeSet<String>,
    /// Crashes of the agent.
    pub crashes: Crashes,
    /// How the last job over the pending or the current document ended.
    pub last: Option<LastJob>,
}

/// A document that was accepted.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Generation {
    /// What it is stored under: the SHA-256 of what was delivered, in hexadecimal.
    pub content: String,
    /// Where it came from.
    pub origin: String,
    /// When it was accepted.
    pub accepted: Timestamp,
    /// The user who delivered it.
    pub user: u32,
    /// What is done with it, if it says so itself.
    pub mode: Option<ConfigurationMode>,
    /// What is done with some of its instances, if they say so themselves.
    pub instance_modes: BTreeSet<ConfigurationMode>,
    /// When the machine was brought to it, first.
    pub converged: Option<Timestamp>,
    /// Why it is not worked on any more, if it never converged.
    pub ended: Option<Ended>,
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
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// How many jobs ended without convergence.
    pub failures: u32,
    /// Not before this instant is it tried again.
    pub not_before: Option<Timestamp>,
    /// How often the machine was restarted for it.
    pub restarts: u32,
    /// It waits until somebody asks for it: there were too many failures or restarts, it was only published, or it was
    /// stopped after a restart.
    pub held: Option<Held>,
}

/// Why a pending document waits until somebody asks for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Held {
    /// It was only published.
    Published,
    /// It failed too often.
    TooManyFailures,
    /// It asked for too many restarts.
    TooManyRestarts,
    /// The settings say to stop after a restart.
    StoppedAfterRestart,
    /// Somebody stopped it.
    Stopped,
}

/// A job: one pass over a document.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// What tells it from all others.
    pub id: String,
    /// The document.
    pub generation: u64,
    /// Why it was begun.
    pub kind: JobKind,
    /// Whether it changes the machine.
    pub work: Work,
    /// When it was begun.
    pub began: Timestamp,
    /// The boot of the machine in which it was last worked on.
    pub boot: BootId,
    /// Whether it waits for a restart of the machine, and is gone on with after it.
    pub suspended: bool,
}

/// Why a job is begun. The names are those that the Local Configuration Manager reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum JobKind {
    /// The first time that a document is worked on.
    Initial,
    /// The document is looked at again.
    Consistency,
    /// A document is gone on with after a restart of the machine.
    Reboot,
}

/// Whether a job changes the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Work {
    /// It brings every instance into its desired state.
    Apply,
    /// It only tests.
    Test,
}

/// What tells one boot of the machine from another.
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
    /// When the restart was ordered, if it was.
    pub ordered: Option<Timestamp>,
}

/// Crashes of the agent.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Crashes {
    /// How many there were since a job last came to its end.
    pub in_a_row: u32,
    /// Not before this instant is a job begun.
    pub not_before: Option<Timestamp>,
    /// How often it crashed while an instance was worked on, by path.
    pub by_instance: BTreeMap<String, u32>,
}

impl Crashes {
    /// So often may the agent crash over an instance before that is left out.
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
    /// Whether it changed the machine.
    pub work: Work,
    /// When it was begun.
    pub began: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
    /// Its outcome.
    pub result: JobResult,
    /// How many instances are not in their desired state.
    pub not_in_state: u64,
    /// How many instances there are.
    pub instances: u64,
}

/// The outcome of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum JobResult {
    /// Every instance is in its desired state.
    Converged,
    /// Nothing failed, and something is not in its desired state.
    NotInState,
    /// Something failed.
    Failed,
    /// It waits for a restart of the machine, and nothing failed.
    RestartDue,
    /// It waits for a restart of the machine, and something failed.
    FailedRestartDue,
    /// It was ended early.
    Aborted,
}

/// The stages of documents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Worked on until the machine is as it says.
    Pending,
    /// What the machine was brought to last.
    Current,
    /// The one before.
    Previous,
}

impl State {
    /// The document of a stage.
    pub fn staged(&self, stage: Stage) -> Option<(u64, &Generation)> {
        let number = match stage {
            Stage::Pending => self.pending,
            Stage::Current => self.current,
            Stage::Previous => self.previous,
        }?;
        Some((number, self.generations.get(&number)?))
    }

    /// What is done with a document.
    pub fn mode_of(&self, generation: &Generation) -> ConfigurationMode {
        generation.mode.unwrap_or(self.settings.configuration_mode)
    }

    /// Whether one of the modes is that of the document or of one of its instances.
    pub fn has_mode(&self, generation: &Generation, modes: &[ConfigurationMode]) -> bool {
        let own = self.mode_of(generation);
        modes.iter().any(|mode| *mode == own || generation.instance_modes.contains(mode))
    }
}
