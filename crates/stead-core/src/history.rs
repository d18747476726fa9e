//! The history of a recorded run, attempt by attempt: a fold over its events, without the graph.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::call::{Changed, Execution, Failure, Operation, Outcome, Pending, Response, Verification};
use crate::event::{Event, EventKind, Status};
use crate::id::NodeId;
use crate::instance_path::InstancePath;
use crate::report::{Record, Report, Totals};

/// A recorded run: its report, and every attempt at each instance.
///
/// Assumptions: the events are those of one journal, in order; the last ones may be missing.
///
/// # Examples
/// ```
/// use stead_core::event::{Event, EventKind, Header, Mode, VERSION};
/// use stead_core::history::{History, RunEnd};
///
/// let header = Header {
///     version: VERSION,
///     origin: "main.yaml".into(),
///     graph: "".into(),
///     instances: 1,
///     mode: Mode::APPLY,
///     selected: None,
/// };
/// let began = Event { sequence: 0, at: "2026-01-02T03:04:05Z".parse()?, kind: EventKind::Began(header.into()) };
/// // The power went off before anything was done.
/// let history = History::of([&began]);
/// assert_eq!(history.end(), RunEnd::Interrupted);
/// assert_eq!(history.unsettled(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct History {
    /// How each instance ended, and what the run is about.
    pub report: Report,
    trails: BTreeMap<NodeId, Trail>,
    /// Every instance that others are nested in.
    containers: BTreeSet<NodeId>,
    settled: usize,
}

/// The attempts at one instance.
#[derive(Clone, PartialEq, Debug, Default)]
struct Trail {
    attempts: Vec<AttemptRecord>,
    /// The retry that is due, if one is.
    retry: Option<Retry>,
}

/// An attempt that is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Retry {
    /// Since when it is waited for.
    since: Timestamp,
    woken: bool,
}

/// One run of an instance: the calls from its test to its outcome.
#[derive(Clone, PartialEq, Debug)]
pub struct AttemptRecord {
    /// When its first call was started.
    pub began: Timestamp,
    /// How long the instance had waited since the attempt before; `None` for the first one.
    pub waited: Option<Duration>,
    /// True if it began early, since the event that the instance was pending for may have happened.
    pub woken: bool,
    /// Its calls, in order.
    pub calls: Vec<CallRecord>,
    /// When its last response was recorded.
    ended: Option<Timestamp>,
    /// The last response.
    response: Option<Arc<Response>>,
}

/// One call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallRecord {
    /// The operation that the provider was asked for.
    pub operation: Operation,
    /// Real or what-if.
    pub execution: Execution,
    /// When it was started.
    pub began: Timestamp,
    /// How long it took; `None` if the run was interrupted before it ended.
    pub elapsed: Option<Duration>,
}

/// The outcome of an attempt.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum AttemptResult<'a> {
    /// The state was read.
    Read,
    /// A test found the desired state.
    InState,
    /// A test found that the state differs, and no set followed.
    Drifted,
    /// The resource cannot tell, for this reason, and no set followed.
    Undetermined(&'a str),
    /// A set reached the desired state, or nobody can tell.
    Changed(&'a Changed),
    /// After the set these properties still differ.
    NotConverged(&'a Changed, &'a [String]),
    /// It was removed by a delete.
    Deleted,
    /// The provider was still at work.
    Pending(&'a Pending),
    /// It could not be carried out.
    Failed(&'a Failure),
    /// The last call was started and did not end.
    Interrupted,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunEnd {
    /// Every instance has ended.
    Finished,
    /// It was cancelled.
    Cancelled,
    /// It stopped, to be resumed.
    Suspended,
    /// Its events end before it did.
    Interrupted,
}

impl History {
    /// The history of these events.
    pub fn of<'e>(events: impl IntoIterator<Item = &'e Event>) -> Self {
        let mut history = Self::default();
        for event in events {
            history.apply(event);
        }
        history
    }

    /// Takes in the next event.
    pub fn apply(&mut self, event: &Event) {
        self.report.apply(event);
        let Some(instance) = event.kind.instance() else { return };
        self.containers.extend(instance.container().map(InstancePath::node));
        self.settled += usize::from(matches!(event.kind, EventKind::Settled { .. }));
        if matches!(event.kind, EventKind::ContainerOpened { .. }) {
            self.containers.insert(instance.node());
        } else {
            self.trails.entry(instance.node()).or_default().apply(event);
        }
    }

    /// Every instance that an event is about, in document order.
    pub fn instances(&self) -> impl Iterator<Item = (&InstancePath, &Record)> {
        self.report.records().iter().filter_map(|record| Some((record.instance.as_ref()?, record)))
    }

    /// The attempts at an instance, in order; none at one that was skipped, and at a container.
    pub fn attempts(&self, node: NodeId) -> &[AttemptRecord] {
        self.trails.get(&node).map(|trail| trail.attempts.as_slice()).unwrap_or_default()
    }

    /// Returns whether others are nested in an instance.
    pub fn is_container(&self, node: NodeId) -> bool {
        self.containers.contains(&node)
    }

    /// Returns the totals that the run itself reported.
    pub fn totals(&self) -> Totals {
        let counted = |path: &InstancePath| !self.is_container(path.node()) || self.failed_by_itself(path.node());
        self.report.totals(self.instances().map(|(path, _)| path).filter(|path| counted(path)).map(InstancePath::node))
    }

    /// Returns whether a container failed though nothing nested in it did.
    fn failed_by_itself(&self, container: NodeId) -> bool {
        let failed = |node: NodeId| self.report.status(node) == Some(&Status::Failed);
        let is_member = |path: &InstancePath| path.container().map(InstancePath::node) == Some(container);
        failed(container) && !self.instances().any(|(path, _)| is_member(path) && failed(path.node()))
    }

    /// Returns the number of instances that had not ended when the events do.
    pub fn unsettled(&self) -> usize {
        let header = self.report.header.as_ref();
        let all = header.map_or(0, |header| match &header.selected {
            Some(selected) => selected.len(),
            None => header.instances as usize,
        });
        all.saturating_sub(self.settled)
    }

    /// Returns how the run ended.
    pub fn end(&self) -> RunEnd {
        match () {
            () if self.report.suspended => RunEnd::Suspended,
            () if self.report.header.is_none() || self.unsettled() > 0 => RunEnd::Interrupted,
            () if self.report.cancelled => RunEnd::Cancelled,
            () => RunEnd::Finished,
        }
    }

    /// The time from the first event to the last.
    pub fn elapsed(&self) -> Duration {
        let Report { began: Some(began), ended: Some(ended), .. } = self.report else { return Duration::ZERO };
        Duration::try_from(ended - began).unwrap_or_default()
    }
}

impl Trail {
    fn apply(&mut self, event: &Event) {
        match &event.kind {
            EventKind::CallStarted { operation, execution, .. } => {
                self.begin_if_due(event.at);
                if let Some(attempt) = self.attempts.last_mut() {
                    let (operation, execution, began) = (*operation, *execution, event.at);
                    attempt.calls.push(CallRecord { operation, execution, began, elapsed: None });
                }
            }
            EventKind::CallEnded { response, elapsed, .. } => {
                if let Some(attempt) = self.attempts.last_mut() {
                    attempt.end(event.at, response, *elapsed);
                }
            }
            EventKind::RetryScheduled { .. } => {
                let ended = self.attempts.last().and_then(|attempt| attempt.ended);
                self.retry = Some(Retry { since: ended.unwrap_or(event.at), woken: false });
            }
            EventKind::Woken { .. } => {
                if let Some(retry) = &mut self.retry {
                    retry.woken = true;
                }
            }
            _ => {}
        }
    }

    /// Begins an attempt if another one is due.
    fn begin_if_due(&mut self, at: Timestamp) {
        let retry = self.retry.take();
        if retry.is_some() || self.attempts.is_empty() {
            self.attempts.push(AttemptRecord {
                began: at,
                waited: retry.map(|retry| Duration::try_from(at - retry.since).unwrap_or_default()),
                woken: retry.is_some_and(|retry| retry.woken),
                calls: Vec::new(),
                ended: None,
                response: None,
            });
        }
    }
}

impl AttemptRecord {
    fn end(&mut self, at: Timestamp, response: &Arc<Response>, elapsed: Duration) {
        (self.ended, self.response) = (Some(at), Some(Arc::clone(response)));
        if let Some(call) = self.calls.last_mut() {
            call.elapsed = Some(elapsed);
        }
    }

    /// Returns what is not known of a change that was made, and why; `None` where all is known.
    pub fn state_unknown(&self) -> Option<&str> {
        self.response.as_ref()?.unknown.as_deref()
    }

    /// Returns its result.
    pub fn result(&self) -> AttemptResult<'_> {
        let is_over = self.calls.last().is_some_and(|call| call.elapsed.is_some());
        let Some(response) = self.response.as_deref().filter(|_| is_over) else { return AttemptResult::Interrupted };
        if let Some(why) = response.outcome.unknown() {
            return AttemptResult::Undetermined(why);
        }
        match &response.outcome {
            Outcome::Got(_) | Outcome::Exported(_) => AttemptResult::Read,
            Outcome::Tested(tested) if tested.in_desired_state => AttemptResult::InState,
            Outcome::Tested(_) => AttemptResult::Drifted,
            Outcome::Changed(changed) => match &changed.verified {
                Verification::Differs(properties) => AttemptResult::NotConverged(changed, properties),
                Verification::InState | Verification::NotVerifiable => AttemptResult::Changed(changed),
            },
            Outcome::Deleted(_) => AttemptResult::Deleted,
            Outcome::Pending(pending) => AttemptResult::Pending(pending),
            Outcome::Failed(failure) => AttemptResult::Failed(failure),
        }
    }
}

impl<'a> AttemptResult<'a> {
    /// Returns the result of the set, if there was one.
    pub fn changed(self) -> Option<&'a Changed> {
        match self {
            Self::Changed(changed) | Self::NotConverged(changed, _) => Some(changed),
            _ => None,
        }
    }

    /// Returns why the desired state was not reached, where it was not.
    pub fn reason(self) -> Option<String> {
        match self {
            Self::NotConverged(changed, _) => changed.why_not_reached(),
            Self::Pending(pending) => Some(pending.message.clone()),
            Self::Failed(failure) => Some(failure.message.clone()),
            Self::Undetermined(why) => Some(why.to_owned()),
            Self::Read | Self::InState | Self::Drifted | Self::Changed(_) | Self::Deleted | Self::Interrupted => None,
        }
    }
}
