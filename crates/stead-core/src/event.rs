//! The journal's vocabulary: what happened in a run, in the order in which it happened.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::call::{Answered, Execution, Operation};
use crate::diag::Diagnostic;
use crate::expr::FactKey;
use crate::id::NodeId;
use crate::value::Value;

/// Something that happened, and when.
#[derive(Clone, Debug)]
pub struct Event {
    /// When the host learned of it.
    pub at: Timestamp,
    /// What.
    pub fact: Fact,
}

/// What can happen in a run. The state of a run is the fold of these, and nothing else.
#[derive(Clone, Debug)]
pub enum Fact {
    /// The run began.
    Began,
    /// The machine supplied a value, or could not.
    Learned {
        /// What was asked.
        key: FactKey,
        /// The value, or why there is none.
        value: Result<Value, String>,
    },
    /// A provider is about to be called. Recorded before it is, so that a set is never made unannounced.
    Asked {
        /// The instance.
        node: NodeId,
        /// What for.
        operation: Operation,
        /// Whether anything may change.
        execution: Execution,
        /// The desired state as evaluated.
        desired: Arc<Value>,
    },
    /// A provider answered.
    Answered {
        /// The instance.
        node: NodeId,
        /// What it had been asked.
        operation: Operation,
        /// The answer.
        answer: Arc<Answered>,
        /// How long it took.
        elapsed: Duration,
        /// In what-if: the paths that the instance reads or writes, if that is all it can have an effect on.
        touches: Option<Vec<PathBuf>>,
    },
    /// A holder's turn has come: its nested instances can begin.
    Opened {
        /// The holder.
        node: NodeId,
    },
    /// All that is nested in a holder is settled.
    Closed {
        /// The holder.
        node: NodeId,
    },
    /// An instance is left out.
    Skipped {
        /// The instance.
        node: NodeId,
        /// The reason.
        because: Because,
    },
    /// The condition or the properties of an instance cannot be evaluated.
    Refused {
        /// The instance.
        node: NodeId,
        /// What is wrong, and where.
        finding: Box<Diagnostic>,
    },
    /// In what-if: what happens to an instance depends on what another will have become.
    Unforeseen {
        /// The instance.
        node: NodeId,
        /// The other one.
        because: NodeId,
    },
    /// The run was told to end early; nothing more is begun.
    Cancelled,
}

/// Why an instance is left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Because {
    /// Its condition is false.
    Condition,
    /// What it needs failed or was left out for such a reason itself.
    Need(NodeId),
    /// The instance that holds it failed or was left out.
    Holder(NodeId),
    /// The run was cancelled.
    Cancelled,
}
