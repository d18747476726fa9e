//! The protocol of the control socket: one request and one answer, each a line of JSON, over a connection.
//!
//! The socket lies in the directory of the agent, which only its user can enter, has the mode 0600, and every caller is asked
//! of the kernel for its user: only root and the user of the agent are answered.

mod client;
mod listener;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::state::Stage;
use crate::store::Delivered;

pub use client::{CallError, SERVICE_STATE, call};
pub(crate) use listener::{Answer, Listener, serve};

/// What is asked of an agent.
#[derive(Clone, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Request {
    /// Stage a document as pending, after it was validated. The answer names its generation.
    Submit {
        /// The document.
        delivered: Delivered,
        /// Whether it takes the place of a pending one whatever the settings say, and ends the job under way.
        force: bool,
        /// Whether it is only staged, and held until an operator asks for it.
        publish: bool,
    },
    /// Work on what is staged at once: the pending document, else the current one.
    UseExisting,
    /// Test the current document, and the pending one if there is one. Nothing is changed or recorded.
    Check,
    /// Read the state of every instance of the current document, else of the pending one.
    Get,
    /// Where things stand.
    Status,
    /// Answers when something has happened, or after a while. Whoever wants to wait for longer asks again.
    Wait {
        /// What is waited for.
        goal: Goal,
        /// At most so long; the agent may answer earlier.
        milliseconds: u64,
        /// How many entries of the feed the caller has seen; later entries are an answer as well.
        #[serde(default)]
        seen: Option<u64>,
        /// True to keep waiting after a failed attempt, and for maintenance windows.
        #[serde(default)]
        patient: bool,
    },
    /// End the job under way. With `force`, programs of resources are ended at once.
    Stop {
        /// Whether what is under way is ended too.
        force: bool,
    },
    /// Every generation that is kept.
    History,
    /// Stage a former document once more: the previous one, or that of a generation.
    Restore {
        /// The generation.
        generation: Option<u64>,
        /// As for a document that is submitted.
        force: bool,
    },
    /// The texts of two generations; by default of the current and the pending one.
    Texts {
        /// The first.
        from: Option<u64>,
        /// The second.
        to: Option<u64>,
    },
    /// Take the document of a stage away.
    Remove {
        /// The stage.
        stage: Stage,
        /// Whether a job over it is ended first.
        force: bool,
    },
    /// Forget the damage that was found: an operator has taken note of it.
    Acknowledge,
    /// The settings.
    Settings,
    /// Change settings: each `NAME=VALUE`. All of them or none.
    Change {
        /// The changes.
        changes: Vec<(String, String)>,
    },
    /// Make the settings those of a file. What it does not name has its default.
    Load {
        /// What messages call the file.
        name: String,
        /// Its text, YAML or JSON.
        text: String,
    },
    /// The reports of the last jobs, newest first.
    Reports {
        /// At most so many.
        most: usize,
    },
    /// The report of one job.
    Report {
        /// Its id, or a unique part of it.
        job: String,
    },
    /// The last lines of the log.
    Log {
        /// At most so many.
        most: usize,
    },
}

/// What is waited for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "camelCase")]
pub enum Goal {
    /// That nothing more happens to the pending document for now.
    Rest,
    /// That this document has converged, or has failed, or waits for something that may take long.
    Generation {
        /// Its number.
        number: u64,
    },
    /// That a job ends after so many, as an earlier answer counted them.
    Job {
        /// How many.
        after: u64,
    },
}

/// What an agent answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Response {
    /// It is done.
    Done(Json),
    /// It was refused, and nothing has changed.
    Refused {
        /// Why, in one sentence.
        message: String,
        /// What is wrong with a document, as it is shown to users.
        findings: String,
    },
}

impl Response {
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::Refused { message: message.into(), findings: String::new() }
    }
}

/// The name of the socket in the directory of the agent.
pub(crate) const SOCKET: &str = "control.sock";

/// A request has at most so many bytes: a document of the largest size, with its parameters.
pub(crate) const MOST_BYTES: u64 = 128 << 20;
