//! The order to a machine: a line of JSON, and behind it the bundle of a document.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use stead_core::event::Mode;
use stead_core::identity::DocumentIdentity;
use stead_engine::{ReconcileOptions, VaultEntry};

use crate::request::RecordingRequest;

/// The version of the conversation.
pub(super) const PROTOCOL: u32 = 3;

/// The longest line of an order: parameters are in it.
pub(super) const LONGEST: usize = 64 << 20;

/// What is to be done on a machine. It may hold secrets, and so it is nowhere but in the pipe and in memory.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Order {
    pub(super) protocol: u32,
    /// How many bytes of a bundle follow.
    pub(super) bundle: usize,
    pub(super) work: Work,
}

/// A secret that a run asks its caller for: a line of its standard error.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Question {
    pub(super) secret: VaultEntry,
}

/// The answer to a question: a line of its standard input.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Reply {
    Secret(String),
    /// The reason why not.
    Refused(String),
}

/// One command, as its command line would have it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum Work {
    /// The document is in the bundle.
    Document(Box<DocumentWork>),
    /// A plan that was saved there is done.
    Plan(Box<PlanWork>),
    Get {
        resource: String,
        words: Vec<String>,
    },
    Set {
        resource: String,
        words: Vec<String>,
        what_if: bool,
    },
    Export {
        words: Vec<String>,
    },
    Facts {
        path: Option<String>,
    },
    /// A run, or else the newest ones.
    History {
        runs: Option<PathBuf>,
        run: Option<String>,
        newest: usize,
    },
}

/// `plan`, `apply` or `check`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DocumentWork {
    pub(super) operation: Operation,
    pub(super) identity: DocumentIdentity,
    pub(super) parameters: Json,
    pub(super) only: Vec<String>,
    pub(super) skip: Vec<String>,
    pub(super) width: Option<NonZeroUsize>,
    pub(super) system_root: Option<PathBuf>,
    pub(super) reconcile: Reconcile,
    pub(super) record: Option<Record>,
    /// True if the plan is sent behind the report, to be done later.
    #[serde(default)]
    pub(super) saves: bool,
    /// True if secrets are asked for here, and not found there.
    #[serde(default)]
    pub(super) asks: bool,
}

/// `apply` of a saved plan.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PlanWork {
    pub(super) plan: String,
    /// The parameters that are not in it, as the command line has them.
    pub(super) secrets: BTreeMap<String, String>,
    pub(super) width: Option<NonZeroUsize>,
    pub(super) reconcile: Reconcile,
    pub(super) record: Option<Record>,
    /// As of a document.
    #[serde(default)]
    pub(super) asks: bool,
}

/// Where and how often a run is recorded.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    pub(super) keep: NonZeroUsize,
    pub(super) runs: Option<PathBuf>,
    /// True if it was asked for.
    pub(super) stated: bool,
    /// True if it goes on without its caller.
    #[serde(default)]
    pub(super) detaches: bool,
}

impl From<&RecordingRequest> for Record {
    fn from(request: &RecordingRequest) -> Self {
        let RecordingRequest { keep, runs, stated, detaches } = request;
        Self { keep: *keep, runs: runs.clone(), stated: *stated, detaches: *detaches }
    }
}

impl From<Record> for RecordingRequest {
    fn from(Record { keep, runs, stated, detaches }: Record) -> Self {
        Self { keep, runs, stated, detaches }
    }
}

/// How what is pending is run again.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Reconcile {
    reconciler: Option<String>,
    pending: Option<String>,
    most: Option<u32>,
    most_unchanged: Option<u32>,
}

impl From<&ReconcileOptions> for Reconcile {
    fn from(options: &ReconcileOptions) -> Self {
        Self {
            reconciler: options.reconciler.clone(),
            pending: options.pending.clone(),
            most: options.max_pending_reruns,
            most_unchanged: options.max_unchanged_reruns,
        }
    }
}

impl From<Reconcile> for ReconcileOptions {
    fn from(order: Reconcile) -> Self {
        Self {
            reconciler: order.reconciler,
            pending: order.pending,
            max_pending_reruns: order.most,
            max_unchanged_reruns: order.most_unchanged,
            wait: None,
        }
    }
}

/// The kinds of work on many machines, by their results.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Operation {
    Plan,
    Apply,
    Check,
    /// Something is read.
    Read,
}

impl Operation {
    pub(super) fn mode(self) -> Mode {
        match self {
            Self::Plan => Mode::PLAN,
            Self::Apply => Mode::APPLY,
            Self::Check | Self::Read => Mode::TEST,
        }
    }
}
