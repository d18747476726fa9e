//! Lists for operators, in pages: each names what the next one begins behind.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many lines a page has, and how many at most.
pub const USUAL_LINES: usize = 200;
/// How many lines a page has at most.
pub const MOST_LINES: usize = 1000;

/// A part of a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PageOf{T}")]
pub struct ListPage<T> {
    /// The lines.
    pub items: Vec<T>,
    /// What the next part is behind; nothing at the end of the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// How a machine is: what is said first here is said of a machine of which several are true.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum MachineState {
    /// It is refused for ever.
    Retired,
    /// It waits for an operator.
    Waiting,
    /// It was not heard before its deadline.
    Silent,
    /// Two machines have its key.
    Cloned,
    /// Something failed.
    Failed,
    /// Something is not in its desired state.
    Drifted,
    /// It stays as it is, although there is a newer release.
    Held,
    /// It is on its way to a newer release.
    Pending,
    /// It has not said yet how it is, or no release is for it.
    Unknown,
    /// All is in the desired state.
    Converged,
}

impl MachineState {
    /// All states.
    pub const ALL: [Self; 10] = [
        Self::Retired,
        Self::Waiting,
        Self::Silent,
        Self::Cloned,
        Self::Failed,
        Self::Drifted,
        Self::Held,
        Self::Pending,
        Self::Unknown,
        Self::Converged,
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Retired => "retired",
            Self::Waiting => "waiting",
            Self::Silent => "silent",
            Self::Cloned => "cloned",
            Self::Failed => "failed",
            Self::Drifted => "drifted",
            Self::Held => "held",
            Self::Pending => "pending",
            Self::Unknown => "unknown",
            Self::Converged => "converged",
        }
    }
}

/// A machine, as operators see it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MachineShown {
    /// Its name.
    pub name: String,
    /// How it is.
    pub state: MachineState,
    /// Its key, as in a file `.pub`.
    pub key: String,
    /// `waiting`, `admitted` or `retired`.
    pub standing: String,
    /// The labels that operators signed.
    pub labels: BTreeMap<String, String>,
    /// The labels that it asked for.
    pub asked: BTreeMap<String, String>,
    /// True if the roster has it with this key.
    #[serde(rename = "inRoster")]
    pub is_in_roster: bool,
    /// The release that it should come to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired: Option<(String, u64)>,
    /// The release that it says it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<(String, u64)>,
    /// Until when it stays as it is, in milliseconds, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<(u64, String)>,
    /// When it was heard last, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heard: Option<u64>,
    /// When it is silent unless it is heard, in milliseconds.
    pub deadline: u64,
    /// The number of the report or request that showed that two machines have its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked: Option<u64>,
    /// The newest report that this controller refused: when, in milliseconds, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<(u64, String)>,
    /// The number of its newest report that was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<u64>,
    /// Its condition at that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<serde_json::Value>,
}

/// A machine that was asked to check at once.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CheckShown {
    /// Its name.
    pub machine: String,
    /// How it is.
    pub state: MachineState,
    /// True if it has checked since.
    pub checked: bool,
}

/// A fleet in numbers, each of which is the length of a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FleetStatus {
    /// How many machines are in each state; states of none as well.
    pub machines: BTreeMap<String, u64>,
    /// The channels.
    pub channels: Vec<ChannelShown>,
    /// The number of the roster.
    pub roster: u64,
    /// Which history of the store this is.
    pub epoch: u64,
    /// When this controller began, in milliseconds.
    pub started: u64,
    /// The version of this controller.
    pub version: String,
}

/// A channel, with its newest release.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChannelShown {
    /// Its name.
    pub channel: String,
    /// The number of the release.
    pub number: u64,
    /// How many machines should come to it.
    pub machines: u64,
    /// How many say that they have it.
    pub applied: u64,
    /// True if the roster names the channel: otherwise machines do not know it.
    #[serde(rename = "inRoster", default)]
    pub is_in_roster: bool,
}

/// An instance of a machine that is not in its desired state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DriftShown {
    /// The machine.
    pub machine: String,
    /// The number of its report.
    pub report: u64,
    /// The instances.
    pub instances: Vec<InstanceShown>,
}

/// An instance of which a report says something.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct InstanceShown {
    /// Its name.
    pub name: String,
    /// The type of its resource.
    #[serde(rename = "type")]
    pub kind: String,
    /// The difference, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<String>,
}

/// A failure with one cause, of one or many machines.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CauseShown {
    /// The type of the resource; nothing for what concerns a whole document.
    #[serde(rename = "type")]
    pub kind: String,
    /// The code, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The message, with `…` for what differs from machine to machine.
    pub message: String,
    /// How many machines.
    pub machines: u64,
    /// The first of them by their names.
    pub names: Vec<String>,
}

/// A report, as operators see it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReportShown {
    /// Its number.
    pub number: u64,
    /// When it came, in milliseconds.
    pub received: u64,
    /// The report.
    pub report: serde_json::Value,
}

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "camelCase")]
pub enum EventShown {
    /// A machine is in another state.
    State {
        /// When that was seen, in milliseconds.
        at: u64,
        /// The machine.
        machine: String,
        /// Its former state; nothing for a machine that is new.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<MachineState>,
        /// Its state.
        to: MachineState,
    },
    /// An operator did something.
    Act {
        /// When, in milliseconds.
        at: u64,
        /// The number of the act.
        number: u64,
        /// Who.
        by: String,
        /// What.
        did: String,
    },
    /// Events before this one are not known any more to this controller.
    Missed,
}
