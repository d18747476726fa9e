//! Answers of an agent, one form for each question.

use crate::state::{Ended, Job, JobKind, JobResult, LastJob, Stage, StagedRelease, Trouble, Work};
use crate::status::Status;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use stead_core::report::Totals;
use stead_host::facts::{Labels, MachineIdentity};
use stead_protocol::LeftOut;
use stead_system::fs::{SystemRoot, User};

use super::Document;

/// A document that was staged.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Staged {
    /// Its number.
    pub generation: u64,
    /// The warnings about it, as they are shown to users.
    pub warnings: String,
}

/// The generation that something was done with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Affected {
    /// Its number.
    pub generation: u64,
}

/// The result of a test or a get of the staged documents.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Inspected {
    /// Each document.
    pub documents: Vec<InspectedDocument>,
}

/// The result of a test or a get of one document.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InspectedDocument {
    /// Its stage.
    pub stage: Stage,
    /// Its number.
    pub generation: u64,
    /// The report, as `stead check` prints it.
    pub report: Document<RunReport>,
}

/// The report of a run, as far as it is read here.
#[derive(Clone, Debug, Deserialize)]
pub struct RunReport {
    /// How many instances ended how.
    pub totals: Totals,
    /// The instances.
    pub instances: Vec<InstanceReport>,
}

/// The outcome of an instance, as far as it is read here.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InstanceReport {
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its name.
    pub name: String,
    /// In a word, as `stead check` prints it.
    pub status: String,
    /// Why.
    #[serde(default)]
    pub message: Option<String>,
    /// Why drift was not corrected.
    #[serde(default)]
    pub not_corrected: Option<String>,
}

/// The report of a job, as far as it is read here.
#[derive(Clone, Debug, Deserialize)]
pub struct JobReport {
    /// The job.
    pub job: Job,
    /// The machine.
    #[serde(default)]
    pub machine: MachineStatus,
    /// How it ended.
    pub result: JobResult,
    /// How many instances ended how; none where it came over no instance.
    #[serde(default)]
    pub totals: Totals,
    /// The instances that were not in their desired state.
    #[serde(default)]
    pub instances: Vec<InstanceReport>,
    /// Why it came over no instance.
    #[serde(default)]
    pub errors: Vec<String>,
}

/// The status, and what the process of the agent adds to what the record says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct AgentStatus {
    /// The status of the record.
    #[serde(flatten)]
    pub status: Status,
    /// The machine.
    #[serde(default)]
    pub machine: MachineStatus,
    /// How far the job under way has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<JobProgress>,
    /// The failures of the job under way so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub troubles: Option<Vec<Trouble>>,
    /// Instances that are corrected again and again, by their paths.
    pub flapping: Vec<String>,
    /// Instances that changed too often and are looked at within a minute.
    pub postponed: Vec<String>,
    /// How many instances are watched.
    pub watched: WatchedCounts,
    /// Instances that cannot be watched.
    pub not_watched: Vec<String>,
    /// Why the record cannot be saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_saved: Option<String>,
    /// The source that is followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceStatus>,
    /// Where reports are sent, and how that goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reporting: Option<ReportingStatus>,
    /// The version of the program.
    pub version: String,
    /// True if its file was replaced since it was started.
    pub program_replaced: bool,
}

/// The machine that the agent keeps, as its status and each of its reports name it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineStatus {
    /// Its id and name.
    #[serde(flatten)]
    pub identity: MachineIdentity,
    /// Its labels, and who gave them.
    #[serde(default)]
    pub labels: Labels,
    /// Why the file with its labels cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl MachineStatus {
    /// This machine as it is now, with these labels besides those of its file.
    pub(crate) fn now(labels: &Labels) -> Self {
        let root = SystemRoot::running();
        let (of_file, failure) = match Labels::of_system(&root, User::current()) {
            Ok(labels) => (labels, None),
            Err(unusable) => (Labels::default(), Some(unusable.to_string())),
        };
        Self { identity: MachineIdentity::of(&root), labels: of_file.with(labels), failure }
    }
}

/// The source that is followed, and how that goes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct SourceStatus {
    /// Its name, such as the path of a folder.
    pub place: String,
    /// The digest of what was taken last.
    pub taken: Option<String>,
    /// Why nothing was taken when it was asked last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The code of that, which `stead explain` explains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The mistakes in a document, as they are shown to users.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub findings: String,
    /// The releases, where those of a fleet are followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub releases: Option<ReleaseStatus>,
}

/// The source of releases that is not followed any more.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unfollowed {
    /// Where it is.
    pub source: String,
}

/// Releases that are followed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ReleaseStatus {
    /// The name of the fleet, once its root statement was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<String>,
    /// The digest of its root statement.
    pub root: String,
    /// The name of this machine in its roster.
    pub machine: String,
    /// The release that was staged last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staged: Option<StagedRelease>,
    /// True if that release is over and nothing newer came: the source may be kept as it was.
    pub frozen: bool,
    /// Since when the source cannot be asked, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offline: Option<Offline>,
    /// The controller, where one is followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<ControllerStatus>,
    /// The file with the secrets of the newest release, which are not sealed to this machine yet: what was staged is kept meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<String>,
    /// Until when the roster holds the machine at the release that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_until: Option<Timestamp>,
    /// The reason that the signers of the roster gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_because: Option<String>,
}

/// Reports that are sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ReportingStatus {
    /// The address that they are sent to.
    pub to: String,
    /// Since when they are not taken, and why. They are kept meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub away: Option<Offline>,
    /// The reports that the server does not take, although it takes others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOutReports>,
}

/// Reports that were left out when they are sent. They are kept on the machine as all others.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct LeftOutReports {
    /// How many there are.
    pub count: u64,
    /// The number of the last of them.
    pub number: u64,
    /// Why it was not taken.
    pub reason: String,
}

impl From<LeftOut> for LeftOutReports {
    fn from(LeftOut { count, number, why }: LeftOut) -> Self {
        Self { count, number, reason: why }
    }
}

/// The machine as its controller sees it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ControllerStatus {
    /// Its standing there.
    pub standing: ControllerStanding,
    /// Until when it stays as it is, because an operator said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_until: Option<Timestamp>,
    /// Why it is held, as that operator said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_because: Option<String>,
    /// The reports that it does not take, although it takes others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOutReports>,
}

/// The standing of a machine with its controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ControllerStanding {
    /// The controller was not asked yet, or has not answered.
    Joining,
    /// It waits until an operator admits it.
    Waiting,
    /// It is admitted.
    Admitted,
    /// It is refused; the failure of the source says why.
    Refused,
}

/// A source that cannot be asked: what was staged is kept, and the source is asked again.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Offline {
    /// Since when.
    pub since: Timestamp,
    /// Why.
    pub reason: String,
}

/// How far a job has come.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct JobProgress {
    /// How many instances have ended.
    pub settled: usize,
    /// How many there are.
    pub instances: usize,
}

/// How many instances are watched.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct WatchedCounts {
    /// How many there are.
    pub instances: usize,
    /// How many of them are.
    pub watched: usize,
}

/// How what was waited for ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WaitOutcome {
    /// As desired.
    Converged,
    /// The job that was waited for failed.
    Failed,
    /// It waits for something that may take long.
    Waiting,
    /// Another document took its place.
    Superseded,
    /// Somebody removed it.
    Removed,
    /// There is no document.
    None,
}

/// The answer to whoever waits.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Waited {
    /// True if the goal was waited for to its end.
    pub done: bool,
    /// True if it has ended as desired.
    pub converged: bool,
    /// How it has ended.
    pub outcome: Option<WaitOutcome>,
    /// The reason why the pending document waits, in words.
    pub waiting_for: Option<String>,
    /// How many attempts failed, if it waits for the next one.
    pub failures: Option<u32>,
    /// When the next attempt is.
    pub next_attempt: Option<Timestamp>,
    /// The job that ended last.
    pub last: Option<LastJob>,
    /// How many jobs have ended since the agent was started.
    pub jobs: u64,
    /// The events that the caller has not seen.
    pub events: Vec<Happened>,
    /// How many entries the caller has seen now.
    pub seen: u64,
}

/// An event in the work on documents.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Happened {
    /// A job ended.
    JobEnded {
        /// Its id.
        job: String,
        /// The document.
        generation: u64,
        /// Why it was begun.
        #[serde(rename = "type")]
        kind: JobKind,
        /// The work: a test, or one that changed the machine.
        work: Work,
        /// How it ended.
        result: JobResult,
        /// How many instances there are.
        instances: u64,
        /// How many of them are not in their desired state.
        not_in_desired_state: u64,
        /// Those.
        troubles: Vec<Trouble>,
        /// Why it came over no instance.
        error: Option<String>,
    },
    /// A job waits.
    Waiting {
        /// Its id.
        job: String,
        /// The document.
        generation: u64,
        /// For whom.
        #[serde(rename = "for")]
        whom: String,
    },
}

/// The answer to a request to stop the work on a document.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stopping {
    /// The job that was under way; between two tries there is none.
    pub job: Option<String>,
    /// The document, which is not tried again.
    pub generation: u64,
}

/// The generations that are kept, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct History {
    /// Each of them.
    pub generations: Vec<KeptGeneration>,
}

/// A generation that is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeptGeneration {
    /// Its number.
    pub generation: u64,
    /// Its stage, if it is staged.
    pub stage: Option<Stage>,
    /// Where it came from.
    pub origin: String,
    /// The user who delivered it.
    pub user: u32,
    /// The name of its content.
    pub content: String,
    /// When it was accepted.
    pub accepted: Timestamp,
    /// When the machine was brought to it, first.
    pub converged: Option<Timestamp>,
    /// Why it is not worked on any more.
    pub ended: Option<Ended>,
}

/// The answer to an acknowledgement of damage.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Acknowledged {
    /// How many notes of damage.
    pub forgotten: usize,
}

/// The settings.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SettingsNow {
    /// As a file, YAML.
    pub settings: String,
    /// Each with its value.
    pub values: Map<String, Json>,
    /// The warnings about a file of settings, as they are shown to users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warnings: Option<String>,
}

/// Reports of jobs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Listing {
    /// Each of them.
    pub reports: Vec<ListedReport>,
    /// The cursor behind the newest of them; where there are none that of the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// Signed reports.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SignedReports {
    /// Each of them. Those of jobs that followed no fleet are left out.
    pub reports: Vec<SignedReport>,
    /// The cursor behind them; where there are none that of the question.
    pub next: u64,
}

/// A report as the machine signs it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SignedReport {
    /// Its number.
    #[serde(default)]
    pub number: u64,
    /// The name of its file: the same for the same report.
    pub name: String,
    /// The text of the file, which `stead release verify` checks.
    pub text: String,
}

/// The report of a job, in a list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListedReport {
    /// When the job ended.
    pub at: Timestamp,
    /// Its id.
    pub job: String,
    /// The report.
    pub report: Document<JobReport>,
}

/// Lines of the log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LogLines {
    /// Each a JSON object.
    pub lines: Vec<String>,
}
