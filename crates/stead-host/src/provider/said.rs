//! What resources say while they are at work.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Takes what resources write about what they do: a level and a text.
pub type Trace = Arc<dyn Fn(TraceLevel, &str) + Send + Sync>;

/// Takes how far the activities of a resource are.
pub type ProgressSink = Arc<dyn Fn(&ActivityProgress) + Send + Sync>;

/// How far an activity is, as the resource says: a record of `Write-Progress`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActivityProgress {
    /// Its number: further records of it have the same one.
    pub activity_id: i32,
    /// The number of the activity that it is a part of; negative for none.
    pub parent_id: i32,
    /// What is done.
    pub activity: String,
    /// How it stands.
    pub status: String,
    /// The part of it that is done now.
    pub operation: String,
    /// How much of it is done; negative where that is not known.
    pub percent: i32,
    /// How long it will take; negative where that is not known.
    pub seconds_left: i32,
    /// True where it has ended.
    pub is_over: bool,
}

/// The level of a message, and how much of them is printed: a level and those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TraceLevel {
    /// Something failed.
    Error,
    /// Something is suspicious.
    Warn,
    /// Something happened.
    Info,
    /// For the author of the resource.
    Debug,
    /// For the author of the resource, in detail.
    Trace,
}
