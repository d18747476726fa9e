//! What came of a run, instance by instance: a fold over its events.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::call::{Answered, Changed, Failure, Outcome, Restart, Tested, Verification};
use crate::diag::Diagnostic;
use crate::event::{Because, Event, Fact};
use crate::id::NodeId;
use crate::value::Value;

/// What is known of every instance of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// By [`NodeId`].
    pub records: Vec<Record>,
    /// The first event.
    pub began: Option<Timestamp>,
    /// The last event.
    pub ended: Option<Timestamp>,
    /// What has to be restarted, in the order in which it was asked for, each once.
    pub restarts: Vec<Restart>,
    /// Whether the run was told to end early.
    pub cancelled: bool,
}

/// What is known of one instance.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// How it ended; `None` while it has not.
    pub status: Option<Status>,
    /// The desired state as evaluated.
    pub desired: Option<Arc<Value>>,
    /// What a test found.
    pub tested: Option<Arc<Tested>>,
    /// The last answer of its provider.
    pub answer: Option<Arc<Answered>>,
    /// What is wrong with its declaration, if that kept it from being called.
    pub finding: Option<Box<Diagnostic>>,
    /// Why it failed, if its provider did.
    pub failure: Option<Failure>,
    /// The time that its calls took together; for a holder, from opening to closing.
    pub elapsed: Duration,
    /// When it was first worked on.
    pub began: Option<Timestamp>,
}

/// How an instance ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Status {
    /// Its state was read.
    Read,
    /// It was in the desired state; nothing had to be done.
    InState,
    /// It is not in the desired state, and was only to be tested.
    Drifted,
    /// It was brought to the desired state; in what-if, it would be.
    Changed,
    /// It could not be done.
    Failed,
    /// It was left out.
    Skipped(Because),
    /// In what-if: it depends on what this instance will have become.
    Unforeseen(NodeId),
}

impl Status {
    /// Whether what needs this instance cannot go on.
    pub fn blocks(&self) -> bool {
        match self {
            Self::Failed => true,
            Self::Skipped(because) => *because != Because::Condition,
            _ => false,
        }
    }
}

/// How many instances ended how. Holders are not counted: what is nested in them is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Read or in the desired state.
    pub unchanged: usize,
    /// Changed, or in what-if to be changed.
    pub changed: usize,
    /// Not in the desired state.
    pub drifted: usize,
    /// Failed.
    pub failed: usize,
    /// Left out.
    pub skipped: usize,
    /// Not to be foreseen.
    pub unforeseen: usize,
}

impl Report {
    /// A report of that many instances, of which nothing is known yet.
    pub fn new(nodes: usize) -> Self {
        Self { records: vec![Record::default(); nodes], ..Self::default() }
    }

    /// What is known of an instance.
    ///
    /// Assumptions: the id is of the graph that the report is of.
    pub fn record(&self, node: NodeId) -> &Record {
        &self.records[node.index()]
    }

    /// How an instance ended, if it has.
    pub fn status(&self, node: NodeId) -> Option<&Status> {
        self.record(node).status.as_ref()
    }

    /// Takes an event in. The one way in which a report changes, but for [`Report::settle`] by the run.
    pub fn apply(&mut self, event: &Event) {
        self.began.get_or_insert(event.at);
        self.ended = Some(event.at);
        match &event.fact {
            Fact::Began | Fact::Learned { .. } => {}
            Fact::Cancelled => self.cancelled = true,
            Fact::Asked { node, desired, .. } => {
                let record = self.begin(*node, event.at);
                record.desired = Some(Arc::clone(desired));
            }
            Fact::Answered { node, answer, elapsed, .. } => self.answered(*node, answer, *elapsed),
            Fact::Opened { node } => {
                self.begin(*node, event.at);
            }
            Fact::Closed { node } => {
                let record = &mut self.records[node.index()];
                let began = record.began.unwrap_or(event.at);
                record.elapsed = Duration::try_from(event.at - began).unwrap_or_default();
            }
            Fact::Skipped { node, because } => self.settle(*node, Status::Skipped(*because)),
            Fact::Refused { node, finding } => {
                self.records[node.index()].finding = Some(finding.clone());
                self.settle(*node, Status::Failed);
            }
            Fact::Unforeseen { node, because } => self.settle(*node, Status::Unforeseen(*because)),
        }
    }

    fn begin(&mut self, node: NodeId, at: Timestamp) -> &mut Record {
        let record = &mut self.records[node.index()];
        record.began.get_or_insert(at);
        record
    }

    fn answered(&mut self, node: NodeId, answer: &Arc<Answered>, elapsed: Duration) {
        for restart in &answer.restarts {
            if !self.restarts.contains(restart) {
                self.restarts.push(restart.clone());
            }
        }
        let record = &mut self.records[node.index()];
        record.elapsed += elapsed;
        match &answer.outcome {
            Outcome::Tested(tested) => record.tested = Some(Arc::clone(tested)),
            Outcome::Failed(failure) => record.failure = Some(failure.clone()),
            Outcome::Got(_) | Outcome::Changed(_) | Outcome::Exported(_) => {}
        }
        record.answer = Some(Arc::clone(answer));
    }

    /// Records how an instance ended. The run decides that, from the events alone.
    pub(super) fn settle(&mut self, node: NodeId, status: Status) {
        self.records[node.index()].status = Some(status);
    }

    /// Records that an instance failed, and why.
    pub(super) fn fail(&mut self, node: NodeId, failure: Failure) {
        self.records[node.index()].failure = Some(failure);
    }

    /// Forgets what was found of an instance whose last call was cut off.
    pub(super) fn forget(&mut self, node: NodeId) {
        let record = &mut self.records[node.index()];
        (record.tested, record.desired, record.answer) = (None, None, None);
    }

    /// The counts over those of `nodes` that are not holders.
    pub fn totals(&self, nodes: impl Iterator<Item = NodeId>) -> Totals {
        nodes.filter_map(|node| self.status(node)).fold(Totals::default(), |mut totals, status| {
            match status {
                Status::Read | Status::InState => totals.unchanged += 1,
                Status::Changed => totals.changed += 1,
                Status::Drifted => totals.drifted += 1,
                Status::Failed => totals.failed += 1,
                Status::Skipped(_) => totals.skipped += 1,
                Status::Unforeseen(_) => totals.unforeseen += 1,
            }
            totals
        })
    }
}

impl Record {
    /// What a set did, if there was one.
    pub fn changed(&self) -> Option<&Changed> {
        match &self.answer.as_ref()?.outcome {
            Outcome::Changed(changed) => Some(changed),
            _ => None,
        }
    }

    /// The state that the last answer tells of: actual, or after a set.
    pub fn state(&self) -> Option<&Value> {
        match &self.answer.as_ref()?.outcome {
            Outcome::Got(actual) => Some(actual),
            Outcome::Tested(tested) => Some(&tested.actual),
            Outcome::Changed(changed) => Some(&changed.after),
            Outcome::Exported(_) | Outcome::Failed(_) => None,
        }
    }

    /// The properties that still differ after a set, if it was verified and they do.
    pub fn not_converged(&self) -> Option<&[String]> {
        match &self.changed()?.verified {
            Verification::Differs(properties) => Some(properties),
            Verification::InState | Verification::NotVerifiable => None,
        }
    }
}
