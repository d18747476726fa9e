//! The machine that converges a graph: decide, observe, apply.
//!
//! [`Run::next`] decides from state alone what should happen, [`Run::apply`] is the only mutation, and what lies between is
//! done by an executor. A single pass, retries, resuming after a crash and resuming after a restart are the same code: a run
//! is resumed by applying the events of its journal to a new one.
//!
//! ```text
//!                 ┌────────────── BackingOff ◀── RetryScheduled ──┐
//!                 ▼                                               │
//! Waiting ──▶ (ready) ── CallStarted ──▶ InFlight ── CallEnded ──▶ decided ── Settled ──▶ Settled
//! ```

pub use crate::diag::codes::run as codes;
mod decide;
mod few;
mod forecast;
mod held;
mod outputs;
mod owed;
mod pending_failure;
pub mod policy;
mod queue;
mod readiness;
pub mod reconcile;
mod replay;
mod setup;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use hashbrown::HashMap;
use jiff::Timestamp;

use crate::call::{Call, Execution, Operation, Outcome, Response};
use crate::event::{Event, EventKind, Header, Mode, SkipReason, Status, VERSION};
use crate::expr::FactKey;
use crate::footprint::Footprint;
use crate::graph::{Facts, Graph, Role};
use crate::id::NodeId;
use crate::instance_path::InstancePath;
use crate::manifest::{Lane, Manifest};
use crate::report::{Phase, Report, Totals};
use crate::text::Sources;
use crate::value::{Seal, Value};

use decide::{Decision, Others};
use few::FewNodes;
use forecast::{Certainty, Forecast};
pub use owed::{Acting, Owed};
use pending_failure::PendingFailure;
use policy::{Pace, Policy, Verdict};
use readiness::Readiness;
pub use replay::ReplayError;
pub use setup::{Exceptions, Privilege, Retention, Setup};

/// How many more calls can be started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Room {
    /// In all.
    pub total: usize,
    /// In a lane; one that is not listed has room for all.
    pub lanes: BTreeMap<Lane, usize>,
}

impl Room {
    /// Room for so many calls, whatever their lanes.
    pub fn of(total: usize) -> Self {
        Self { total, lanes: BTreeMap::new() }
    }
}

/// The next calls, events and time to wait for.
#[derive(Debug, Default)]
pub struct Next {
    /// To be recorded and applied at once: they need nothing from outside.
    pub events: Vec<EventKind>,
    /// Asked of the machine; what depends on them waits.
    pub wants: BTreeSet<FactKey>,
    /// Handed to providers once [`Call::started`] of all of them is recorded and applied; in the order of the graph.
    pub calls: Vec<Arc<Call>>,
    /// When nothing else happens until then, the run is to be asked again at this instant.
    pub wake: Option<Timestamp>,
}

impl Next {
    /// Returns whether nothing is to be done but wait.
    pub fn is_idle(&self) -> bool {
        self.events.is_empty() && self.wants.is_empty() && self.calls.is_empty()
    }
}

/// An instance whose desired state is known.
#[derive(Clone, Debug)]
pub struct KnownInstance {
    /// The instance.
    pub instance: InstancePath,
    /// The resource that it is an instance of.
    pub manifest: Arc<Manifest>,
    /// The desired state of its last try.
    pub desired: Arc<Value>,
}

/// A run over a graph.
///
/// # Examples
/// ```
/// # use std::sync::Arc;
/// # use std::time::Duration;
/// # use jiff::Timestamp;
/// # use serde_json::json;
/// use stead_core::call::{Outcome, Tested};
/// use stead_core::event::{Mode, Status};
/// use stead_core::graph::Graph;
/// use stead_core::id::{NodeId, SecretName, TypeName};
/// use stead_core::manifest::{Implementation, Manifest, Version};
/// use stead_core::run::{Room, Run, Setup};
/// use stead_core::text::Sources;
/// use stead_core::value::{Seal, Value};
///
/// # struct NoSecrets;
/// # impl Seal for NoSecrets {
/// #     fn seal(&self, _: Value) -> SecretName {
/// #         SecretName("none".into())
/// #     }
/// # }
/// let mut manifest = Manifest::new(TypeName::parse("Shop/Till")?, Version::parse("1.0.0")?, Implementation::Engine);
/// manifest.capabilities.get = true;
/// let graph = Graph::of_instance(Arc::new(manifest), "front", json!({ "open": true }).into());
/// let setup = Setup::new(Arc::new(graph), Arc::new(Sources::default()), Arc::new(NoSecrets), Mode::TEST);
/// let mut run = Run::new(setup.clone());
/// let mut journal = Vec::new();
/// while !run.is_finished() {
///     let next = run.next(Timestamp::UNIX_EPOCH, &Room::of(1));
///     let started = next.calls.iter().map(|call| call.started());
///     // A call is recorded before it is made.
///     let mut events = run.stamp(Timestamp::UNIX_EPOCH, next.events.into_iter().chain(started).collect());
///     for event in events.drain(..) {
///         run.apply(&event)?;
///         journal.push(event);
///     }
///     for call in &next.calls {
///         let actual = Arc::clone(&call.desired);
///         let tested = serde_json::from_value::<Tested>(json!({
///             "actual": actual, "inDesiredState": true, "differing": [], "predicted": null,
///         }))?;
///         let ended = run.observe(call, stead_core::call::Response::of(Outcome::Tested(tested.into())), Duration::ZERO, None);
///         for event in run.stamp(Timestamp::UNIX_EPOCH, vec![ended]) {
///             run.apply(&event)?;
///             journal.push(event);
///         }
///     }
/// }
/// assert_eq!(run.report().status(NodeId(0)), Some(&Status::InState));
/// // Resuming is replaying: another process that has the events knows as much.
/// let resumed = Run::resume(setup, &journal)?;
/// assert_eq!(resumed.report().status(NodeId(0)), Some(&Status::InState));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Run {
    graph: Arc<Graph>,
    sources: Arc<Sources>,
    mode: Mode,
    privilege: Privilege,
    policy: Arc<dyn Policy>,
    origin: Arc<str>,
    digest: Arc<str>,
    exceptions: Exceptions,
    facts: Facts,
    seal: Arc<dyn Seal>,
    report: Report,
    /// The bytes of values that the report keeps.
    held: u64,
    /// By [`NodeId`]: whose answers are dropped if it is found in its desired state. Empty where all are kept.
    dispensable: Vec<bool>,
    readiness: Readiness,
    /// Nodes with a response that nothing was decided about.
    undecided: FewNodes,
    /// Those that another run can help, with what was answered about it: a policy is asked once.
    unrealized: BTreeMap<NodeId, OnceLock<Verdict>>,
    /// Those that wait for a change by others: nothing is decided about them while anything is under way.
    blocked: BTreeMap<NodeId, OnceLock<Verdict>>,
    in_flight: FewNodes,
    unsettled: usize,
    /// How many calls have changed something.
    changes: u64,
    /// By [`NodeId`]: how many had when an instance was last tried; [`u64::MAX`] of one that was not.
    changes_before: Vec<u64>,
    /// True once something was set that may go on changing what nobody claims.
    is_stirred: bool,
    /// How many of the latest tries of an instance that is blocked were made because something had changed.
    extra_tries: BTreeMap<NodeId, u32>,
    /// True if events of a former process were applied, and it was not recorded that another took over.
    taken_over: bool,
    forecast: Forecast,
    /// In what-if: the paths that each instance is limited to which is not settled.
    footprints: HashMap<NodeId, Arc<Footprint>>,
    /// In what-if: what was answered and is not settled, by rank, and the failures that another change may prevent.
    predictions: BTreeMap<(u32, NodeId), Option<Box<PendingFailure>>>,
    /// See [`Setup::turns`].
    turns: BTreeMap<NodeId, Vec<NodeId>>,
    /// How many in the order are settled before the first instance that is not.
    settled_prefix: usize,
}

impl Run {
    /// A run of which nothing has happened yet.
    pub fn new(setup: Setup) -> Self {
        let Setup { graph, sources, facts, seal, mode, privilege, policy, .. } = setup;
        let Setup { origin, digest, exceptions, retention, turns, .. } = setup;
        let selected = exceptions.selected.as_ref().map_or(graph.nodes.len(), |selected| selected.len());
        Self {
            readiness: Readiness::new(&graph),
            dispensable: held::dispensable(&graph, retention),
            report: Report::default(),
            held: 0,
            unsettled: selected,
            undecided: FewNodes::default(),
            unrealized: BTreeMap::new(),
            blocked: BTreeMap::new(),
            in_flight: FewNodes::default(),
            changes: 0,
            changes_before: vec![u64::MAX; graph.nodes.len()],
            is_stirred: false,
            extra_tries: BTreeMap::new(),
            taken_over: false,
            forecast: Forecast::default(),
            footprints: HashMap::new(),
            predictions: BTreeMap::new(),
            turns,
            settled_prefix: 0,
            graph,
            sources,
            mode,
            privilege,
            policy,
            origin,
            digest,
            exceptions,
            facts,
            seal,
        }
    }

    /// A run as its journal left it. A call that had been started and not ended is made again, from its test on.
    pub fn resume(setup: Setup, journal: &[Event]) -> Result<Self, ReplayError> {
        let mut run = Self::new(setup);
        for event in journal {
            run.apply(event)?;
        }
        run.taken_over = !journal.is_empty() && !run.is_finished();
        Ok(run)
    }

    /// Returns what it works on.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// The texts that its findings point into.
    pub fn sources(&self) -> &Arc<Sources> {
        &self.sources
    }

    /// Returns what it is for.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns what is known so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Returns how many instances ended how. Nested instances are counted instead of their container, but for a
    /// container that failed though nothing nested in it did.
    pub fn totals(&self) -> Totals {
        let counted = self.graph.iter().filter(|(id, _)| self.report.is_selected(*id));
        let counted = counted.filter(|(id, node)| node.role == Role::Instance || self.failed_by_itself(*id));
        self.report.totals(counted.map(|(id, _)| id))
    }

    /// Returns whether a container failed though nothing nested in it did: an assertion, or one that could not be opened.
    fn failed_by_itself(&self, id: NodeId) -> bool {
        let Role::Container { inner, .. } = self.graph.node(id).role else { return false };
        let failed = |id: NodeId| self.report.status(id) == Some(&Status::Failed);
        failed(id) && !self.graph.scope(inner).members.iter().any(|member| failed(*member))
    }

    /// Returns whether every instance is settled.
    pub fn is_finished(&self) -> bool {
        self.unsettled == 0
    }

    /// An instance that can be woken before its time: one that backs off, unless it is run again together with others.
    pub fn backing_off(&self, id: NodeId) -> Option<KnownInstance> {
        let record = self.report.record(id);
        if !matches!(record.phase, Phase::BackingOff(_)) || self.policy.pace() == Pace::Together {
            return None;
        }
        self.known(id)
    }

    /// The instances to look at once more at the end of a run, in the order of the graph: those that were changed, and those in
    /// their desired state, unless they are only tested, that others can have changed since.
    pub fn to_review(&self, is_disturbed: impl Fn(NodeId) -> bool) -> Vec<KnownInstance> {
        let is_of_interest = |id: &&NodeId| match self.report.status(**id) {
            Some(Status::Changed) => true,
            Some(Status::InState) => is_disturbed(**id) && self.mode_of(**id).operation == Operation::Set,
            _ => false,
        };
        let calls = |id: &&NodeId| self.graph.node(**id).role == Role::Instance;
        self.graph.order.iter().filter(calls).filter(is_of_interest).filter_map(|id| self.known(*id)).collect()
    }

    /// The instances that failed after they were called, in the order of the graph, each with why.
    pub fn failed(&self) -> Vec<(KnownInstance, String)> {
        let has_failed = |id: &&NodeId| {
            self.report.status(**id) == Some(&Status::Failed) && self.graph.node(**id).role == Role::Instance
        };
        let why = |id: NodeId| self.report.record(id).why_failed().unwrap_or_default();
        let failed = self.graph.order.iter().filter(has_failed);
        failed.filter_map(|id| Some((self.known(*id)?, why(*id)))).collect()
    }

    fn known(&self, id: NodeId) -> Option<KnownInstance> {
        let (node, desired) = (self.graph.node(id), self.report.record(id).desired.clone()?);
        Some(KnownInstance { instance: node.path.clone(), manifest: Arc::clone(&node.manifest), desired })
    }

    /// Returns the number of calls under way.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Decides what should happen, with room for so many calls more: events, one want, or calls.
    ///
    /// Guarantees: it depends on nothing but the events applied so far and its arguments. When it is idle, no call is
    /// under way and nothing is to be woken, the run is finished or suspended. With room for one call, everything is
    /// decided in the order of the graph.
    pub fn next(&self, now: Timestamp, room: &Room) -> Next {
        let mut next = Next::default();
        if self.report.header.is_none() {
            next.events.push(EventKind::Began(Arc::new(self.header())));
        } else if self.taken_over {
            next.events.push(EventKind::Resumed);
        } else {
            next.events.extend(self.undecided.iter().filter_map(|id| self.judge(id, now, Others::MayChange)));
            next.events.extend(self.predicted(now));
            // A policy is asked when something is pending, and not before.
            let is_pending = !self.unrealized.is_empty() || !self.blocked.is_empty();
            let together = is_pending && self.policy.pace() == Pace::Together && !self.report.cancelled;
            if is_pending && !together {
                next.events.extend(self.judge_each(now));
            }
            if next.is_idle() && !self.report.suspended {
                self.begin(now, room, &mut next);
            }
            if together && next.is_idle() && self.in_flight.is_empty() {
                next.events.extend(self.judge_together(now));
            }
        }
        next
    }

    /// Returns what can be begun, or recorded about what is ready.
    fn begin(&self, now: Timestamp, room: &Room, next: &mut Next) {
        let queues = &self.readiness.queues;
        next.wake = queues.wake(now);
        let until = if self.report.cancelled { Timestamp::MAX } else { now };
        let mut due = queues.due(until, room, &self.in_flight);
        while let Some(id) = due.next() {
            match self.decide(id) {
                Decision::Call(call) => {
                    next.calls.push(call);
                    due.take_room();
                    continue;
                }
                // It comes again when these calls are handed out.
                _ if !next.calls.is_empty() => {}
                Decision::Record(kind) => next.events.push(kind),
                Decision::Want(key) => {
                    next.wants.insert(key);
                }
            }
            break;
        }
    }

    fn header(&self) -> Header {
        Header {
            version: VERSION,
            origin: Arc::clone(&self.origin),
            graph: Arc::clone(&self.digest),
            instances: u32::try_from(self.graph.nodes.len()).unwrap_or(u32::MAX),
            mode: self.mode,
            selected: self.exceptions.selected.clone(),
        }
    }

    fn path(&self, id: NodeId) -> InstancePath {
        self.graph.node(id).path.clone()
    }

    /// The event that says that a provider answered. Only a plan keeps what the instance reads and writes.
    pub fn observe(
        &self,
        call: &Call,
        response: Response,
        elapsed: std::time::Duration,
        footprint: Option<Footprint>,
    ) -> EventKind {
        let footprint = footprint.map(Arc::new);
        EventKind::CallEnded { instance: call.instance.clone(), response: Arc::new(response), elapsed, footprint }
    }

    /// Gives what is to be recorded its number and time.
    pub fn stamp(&self, at: Timestamp, kinds: Vec<EventKind>) -> Vec<Event> {
        let events = (self.report.next_sequence()..).zip(kinds);
        events.map(|(sequence, kind)| Event { sequence, at, kind }).collect()
    }

    /// Takes in what happened. The only mutation.
    ///
    /// Guarantees: after an error nothing has changed. An event that this run recorded never is an error.
    pub fn apply(&mut self, event: &Event) -> Result<(), ReplayError> {
        self.check(event)?;
        if let Some(id) = event.kind.instance().map(InstancePath::node)
            && let Phase::BackingOff(until) = self.report.record(id).phase
        {
            self.readiness.queues.remove_backing_off(id, until);
        }
        if let EventKind::RetryScheduled { instance, .. } = &event.kind {
            self.note_extra_try(instance.node());
        }
        let replaced = self.held_of(event);
        self.report.apply(event);
        self.held = self.held.saturating_sub(replaced).saturating_add(self.held_of(event));
        match &event.kind {
            EventKind::Began(_) => self.began(),
            EventKind::Resumed => {
                self.held = self.held_by_all();
                self.resumed();
            }
            EventKind::FactObserved(fact) => _ = self.facts.insert(fact.key.clone(), fact.value.clone()),
            EventKind::ContainerOpened { instance } => self.opened(instance.node()),
            EventKind::CallStarted { instance, .. } => self.started(instance.node()),
            EventKind::CallEnded { instance, response, footprint, .. } => {
                self.ended(instance.node(), response, footprint.as_ref());
            }
            EventKind::RetryScheduled { instance, until } => {
                self.decided(instance.node());
                self.readiness.queues.back_off(instance.node(), *until);
                if !self.turns.is_empty() {
                    self.release(instance.node());
                }
            }
            EventKind::Woken { instance } => self.readiness.queues.back_off(instance.node(), event.at),
            EventKind::Settled { instance, status, .. } => self.settled(instance.node(), status),
            // What required it has run, or is not part of the run.
            EventKind::Refuted { .. } | EventKind::Suspended | EventKind::Cancelled => {}
        }
        Ok(())
    }

    fn began(&mut self) {
        self.settled_prefix = self.prefix_from(self.settled_prefix);
        let graph = Arc::clone(&self.graph);
        let (selected, left_out): (Vec<NodeId>, Vec<NodeId>) =
            graph.iter().map(|(id, _)| id).partition(|id| self.report.is_selected(*id));
        if self.mode.execution == Execution::WhatIf {
            for id in left_out {
                self.forecast.settled(&graph, id);
            }
        }
        for id in selected {
            self.make_ready(id);
        }
    }

    /// Calls that were cut off are made again.
    fn resumed(&mut self) {
        self.taken_over = false;
        let report = &self.report;
        let is_forgotten = |id: &NodeId| report.record(*id).undecided().is_none();
        let forgotten = self.undecided.extract(|id| is_forgotten(&id)).into_iter();
        let unrealized = self.unrealized.extract_if(.., |id, _| is_forgotten(id));
        let unrealized = unrealized.chain(self.blocked.extract_if(.., |id, _| is_forgotten(id)));
        let forgotten = forgotten.chain(unrealized.map(|(id, _)| id));
        let predictions = &mut self.predictions;
        let unpredicted = predictions.extract_if(.., |(_, id), _| report.record(*id).undecided().is_none());
        let forgotten = forgotten.chain(unpredicted.map(|((_, id), _)| id));
        let again: Vec<NodeId> = std::mem::take(&mut self.in_flight).iter().chain(forgotten).collect();
        for id in again {
            self.readiness.queues.ready(id);
        }
    }

    fn opened(&mut self, id: NodeId) {
        self.readiness.queues.remove(id);
        self.readiness.settled[id.index()] = 0;
        self.release(id);
        self.make_ready(id);
    }

    /// Notes that something was decided about its response.
    fn decided(&mut self, id: NodeId) {
        self.undecided.remove(id);
        self.unrealized.remove(&id);
        self.blocked.remove(&id);
    }

    fn started(&mut self, id: NodeId) {
        self.readiness.queues.remove(id);
        self.decided(id);
        self.in_flight.insert(id);
        self.changes_before[id.index()] = self.changes;
    }

    fn ended(&mut self, id: NodeId, response: &Response, footprint: Option<&Arc<Footprint>>) {
        self.in_flight.remove(id);
        self.changes += u64::from(matches!(response.outcome, Outcome::Changed(_) | Outcome::Deleted(_)));
        self.is_stirred |= self.stirs(id, response);
        if let Some(footprint) = footprint {
            self.footprints.insert(id, Arc::clone(footprint));
        }
        if self.continues(id, &response.outcome) {
            self.readiness.queues.ready(id);
        } else if self.mode.execution == Execution::WhatIf {
            self.predictions.insert(self.ranked(id), PendingFailure::of(&response.outcome).map(Box::new));
        } else if self.is_open(id, response) {
            let waiting = if self.is_blocked(id) { &mut self.blocked } else { &mut self.unrealized };
            waiting.insert(id, OnceLock::new());
        } else {
            self.undecided.insert(id);
        }
    }

    fn settled(&mut self, id: NodeId, status: &Status) {
        self.readiness.queues.remove(id);
        self.decided(id);
        self.predictions.remove(&self.ranked(id));
        self.extra_tries.remove(&id);
        self.unsettled -= 1;
        if *status == Status::InState && self.is_dispensable(id) {
            self.held = self.held.saturating_sub(self.held_by(id));
            self.report.drop_answer(id);
            self.held = self.held.saturating_add(self.held_by(id));
        }
        if self.mode.execution == Execution::WhatIf {
            self.forecast_settled(id, status);
        }
        self.release(id);
    }

    fn forecast_settled(&mut self, id: NodeId, status: &Status) {
        let is_instance = self.graph.node(id).role == Role::Instance;
        let footprint = self.footprints.remove(&id).filter(|_| is_instance);
        let footprint = footprint.as_deref();
        if matches!(status, Status::Unknown(_)) {
            self.forecast.unknown(id);
        }
        match status {
            Status::Changed if is_instance => self.forecast.changes(id, Certainty::Predicted, footprint),
            Status::Unknown(_) | Status::Undetermined if is_instance => {
                self.forecast.changes(id, Certainty::Possible, footprint);
            }
            Status::Failed => footprint.into_iter().for_each(|footprint| self.forecast.fails(id, footprint)),
            _ => {}
        }
        self.forecast.settled(&self.graph, id);
        self.settled_prefix = self.prefix_from(self.settled_prefix);
    }

    /// Returns how many in the order are settled before the first instance that is not, of which so many are known.
    /// Nothing is predicted of containers.
    fn prefix_from(&self, known: usize) -> usize {
        let order = &self.graph.order;
        let passed = |id: &NodeId| self.report.status(*id).is_some() || self.graph.node(*id).role != Role::Instance;
        known + order.iter().skip(known).take_while(|id| passed(id)).count()
    }

    /// A node by its place in the order.
    fn ranked(&self, id: NodeId) -> (u32, NodeId) {
        (self.readiness.queues.rank(id), id)
    }
}
