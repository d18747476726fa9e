//! The outcome of a run, instance by instance: a fold over its events, without the graph.

mod record;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::call::{Changed, Operation, Response, Restart};
use crate::destruction::Effect;
use crate::diff::exists;
use crate::event::{Event, EventKind, Header, SkipReason, Status};
use crate::id::NodeId;
use crate::value::Value;
pub use record::{KeptAnswer, Phase, Record};

/// The outcome of a run and of each of its instances, as far as it is known.
///
/// Guarantees: events may be handed in late, twice and in any order; the report is that of those that are there without a
/// gap, and equal reports come of equal events.
///
/// # Examples
/// ```
/// use stead_core::event::{Event, EventKind};
/// use stead_core::report::Report;
///
/// let event = |sequence, kind| Ok::<_, jiff::Error>(Event { sequence, at: "2026-01-02T03:04:05Z".parse()?, kind });
/// let (first, second) = (event(0, EventKind::Suspended)?, event(1, EventKind::Resumed)?);
/// let report = Report::of([&first, &second]);
/// assert!(!report.suspended);
/// // Late, twice, and in another order.
/// assert_eq!(Report::of([&second, &first, &second]), report);
/// // An event that others precede waits for them.
/// assert_eq!(Report::of([&second]).next_sequence(), 0);
/// # Ok::<(), jiff::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report {
    /// The subject of the run; `None` before its first event.
    pub header: Option<Arc<Header>>,
    /// By [`NodeId`].
    records: Vec<Record>,
    /// When the first event was recorded.
    pub began: Option<Timestamp>,
    /// When the last event was recorded.
    pub ended: Option<Timestamp>,
    /// Required restarts, in the order in which they were requested, each once.
    pub restarts: Vec<Restart>,
    /// True if the run was cancelled.
    pub cancelled: bool,
    /// True if the run was suspended and not resumed.
    pub suspended: bool,
    /// How often anything pending was run again: what was run again at the same time counts once.
    pub re_runs: u32,
    /// Since when what was run again last was due.
    re_run_at: Option<Timestamp>,
    /// How many events it holds: the number of the next one.
    next: u64,
    /// Events that came before others that precede them.
    early: BTreeMap<u64, Event>,
    unknown: Record,
}

/// How many instances ended how. Of containers only those are counted that failed by themselves: what is nested in the
/// others is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Changed in any way, or in what-if to be changed.
    pub changed: usize,
    /// Those of the changed ones that were created.
    pub created: usize,
    /// Those of the changed ones that were removed.
    pub removed: usize,
    /// Those of the changed ones that took the place of something else.
    pub replaced: usize,
    /// Read or in the desired state.
    pub unchanged: usize,
    /// Not in the desired state.
    pub drifted: usize,
    /// Unknown until something else has changed, or to their resources.
    pub unknown: usize,
    /// Failed.
    pub failed: usize,
    /// Still pending when the run gave up waiting.
    pub pending: usize,
    /// Skipped.
    pub skipped: usize,
}

/// An instance that a run is not about.
static LEFT_OUT: LazyLock<Record> =
    LazyLock::new(|| Record { phase: Phase::Settled(Status::Skipped(SkipReason::NotSelected)), ..Record::default() });

impl Report {
    /// The report of these events.
    pub fn of<'e>(events: impl IntoIterator<Item = &'e Event>) -> Self {
        let mut report = Self::default();
        for event in events {
            report.apply(event);
        }
        report
    }

    /// Returns whether an instance belongs to the run.
    pub fn is_selected(&self, node: NodeId) -> bool {
        let selected = self.header.as_ref().and_then(|header| header.selected.as_ref());
        selected.is_none_or(|selected| selected.contains(&node))
    }

    /// Returns the record of an instance.
    pub fn record(&self, node: NodeId) -> &Record {
        if !self.is_selected(node) {
            return &LEFT_OUT;
        }
        self.records.get(node.index()).unwrap_or(&self.unknown)
    }

    /// Drops what the resource answered of an instance that is in its desired state, and that nobody asks for any more.
    pub(crate) fn drop_answer(&mut self, node: NodeId) {
        if let Some(record) = self.records.get_mut(node.index()).filter(|record| record.earlier.is_none()) {
            (record.tested, record.response) = (None, None);
        }
    }

    /// Returns the records of all instances, in document order.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Returns the status of an instance that has ended.
    pub fn status(&self, node: NodeId) -> Option<&Status> {
        self.record(node).status()
    }

    /// The number of the event that comes next.
    pub fn next_sequence(&self) -> u64 {
        self.next
    }

    /// Takes an event in, and those that waited for it. One that is known already changes nothing.
    pub fn apply(&mut self, event: &Event) {
        if event.sequence > self.next {
            self.early.insert(event.sequence, event.clone());
        } else if event.sequence == self.next {
            self.take(event);
            while let Some(event) = self.early.remove(&self.next) {
                self.take(&event);
            }
        }
    }

    fn take(&mut self, event: &Event) {
        self.next += 1;
        self.began.get_or_insert(event.at);
        self.ended = Some(event.at);
        match &event.kind {
            EventKind::Began(header) => self.begin(header),
            EventKind::Resumed => self.resume(),
            EventKind::Cancelled => self.cancelled = true,
            EventKind::Suspended => self.suspended = true,
            EventKind::CallEnded { response, .. } => self.restarts(response),
            _ => {}
        }
        let Some(instance) = event.kind.instance() else { return };
        self.count_re_run(instance.node(), event);
        let (at, instances) = (instance.node().index(), self.header.as_ref().map_or(0, |header| header.instances));
        if at >= self.records.len() && at < instances as usize {
            self.records.resize_with(at + 1, Record::default);
        }
        if let Some(record) = self.records.get_mut(at) {
            record.instance.get_or_insert_with(|| instance.clone());
            record.take(event);
        }
    }

    /// A run before its time counts if it was the last, or took until the next was due.
    fn count_re_run(&mut self, node: NodeId, event: &Event) {
        let record = self.record(node);
        let counted = match (&event.kind, record.due()) {
            (EventKind::CallStarted { .. }, None) => match record.phase {
                Phase::BackingOff(until) => Some(until),
                _ => None,
            },
            (EventKind::Settled { .. }, due) => due,
            (EventKind::RetryScheduled { until, .. }, due) => due.filter(|due| due != until),
            _ => None,
        };
        if counted.is_some() && self.re_run_at != counted {
            self.re_run_at = counted;
            self.re_runs += 1;
        }
    }

    fn begin(&mut self, header: &Arc<Header>) {
        // What a header says is not worth more memory than its events are.
        self.records.reserve((header.instances as usize).min(1 << 20));
        self.header = Some(Arc::clone(header));
    }

    fn resume(&mut self) {
        self.suspended = false;
        let sets = self.header.as_ref().is_some_and(|header| header.mode.operation == Operation::Set);
        for record in &mut self.records {
            record.resume(sets);
        }
    }

    fn restarts(&mut self, response: &Response) {
        for restart in &response.restarts {
            if !self.restarts.contains(restart) {
                self.restarts.push(restart.clone());
            }
        }
    }

    /// The counts over `nodes`.
    pub fn totals(&self, nodes: impl Iterator<Item = NodeId>) -> Totals {
        let mut totals = Totals::default();
        let settled = nodes.filter_map(|node| Some((self.record(node), self.status(node)?)));
        for (record, status) in settled {
            if *status == Status::Changed {
                totals.count(record.effect());
            }
            let count = match status {
                Status::Read | Status::InState => &mut totals.unchanged,
                Status::Changed => &mut totals.changed,
                Status::Drifted => &mut totals.drifted,
                Status::Failed => &mut totals.failed,
                Status::Pending => &mut totals.pending,
                Status::Skipped(_) => &mut totals.skipped,
                Status::Unknown(_) | Status::Undetermined => &mut totals.unknown,
            };
            *count += 1;
        }
        totals
    }
}

impl Totals {
    fn count(&mut self, effect: Option<Effect>) {
        match effect {
            Some(Effect::Create) => self.created += 1,
            Some(Effect::Remove) => self.removed += 1,
            Some(Effect::Replace) => self.replaced += 1,
            Some(Effect::Change) | None => {}
        }
    }
}

/// Returns the effect on an instance between two states, as far as they tell.
fn between(before: &Value, after: &Value) -> Effect {
    let is_there = |state: &Value| state.as_object().is_none_or(exists);
    match (is_there(before), is_there(after)) {
        (false, true) => Effect::Create,
        (true, false) => Effect::Remove,
        _ => Effect::Change,
    }
}

impl Changed {
    /// Returns the effect of the set on the instance, or in what-if the predicted one: in the words of the resource
    /// or, where it has none, by the states.
    pub fn effect(&self) -> Effect {
        self.effects.effect.unwrap_or_else(|| between(&self.before, &self.after))
    }
}
