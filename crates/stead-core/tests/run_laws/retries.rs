//! Retries and reconcilers: how often and when something is tried again.

use std::collections::{BTreeMap, BTreeSet};

use std::sync::Arc;
use std::time::Duration;

use stead_core::call::{Call, Operation, Outcome, Response, Verification};
use stead_core::event::{Event, EventKind, Mode, SkipReason, Status};
use stead_core::id::NodeId;
use stead_core::instance_path::InstancePath;
use stead_core::run::policy::{Pace, Policy, SinglePass};
use stead_core::run::reconcile::{Reconciler, WhileProgress};
use stead_core::wait::{Curve, Wait};

use crate::random::Numbers;
use crate::scenes::{Luck, Scene, scenes, some_scenes};
use crate::simulation::Job;

const WAITS: [Wait; 2] = [
    Wait { curve: Curve::Static(Duration::from_secs(5)), cap: Duration::MAX, jitter: 0.0 },
    Wait {
        curve: Curve::Exponential { wait: Duration::from_secs(1), multiplier: 2.0 },
        cap: Duration::from_secs(10),
        jitter: 0.0,
    },
];

/// A reconciler that gives up after so many runs; which wait and which pace it has depends on the number of the scene.
pub(crate) fn reconciler(number: u64, max_unchanged: u32, max_re_runs: u32) -> Reconciler {
    let made =
        if number.is_multiple_of(3) { Reconciler::basic(max_unchanged) } else { Reconciler::continuous(max_unchanged) };
    let rule = Arc::new(WhileProgress { max_unchanged, patient: false });
    let wait = Some(WAITS[usize::from(number.is_multiple_of(2))]);
    Reconciler { rule, wait, max_re_runs, ..made }
}

#[test]
fn retries_keep_to_their_policy() {
    let mut scheduled = 0;
    for mut scene in scenes(13, Luck::Mixed) {
        let (max_repeats, max_retries) = (1 + (scene.number % 3) as u32, 1 + (scene.number % 4) as u32);
        let reconciler = reconciler(scene.number, max_repeats, max_retries);
        let policy: Arc<dyn Policy> =
            if scene.number.is_multiple_of(5) { Arc::new(SinglePass) } else { Arc::new(reconciler.clone()) };
        scene.setup.policy = policy;
        let (_, _, log) = scene.ended(Mode::APPLY);
        let mut retries: BTreeMap<NodeId, (u32, jiff::Timestamp)> = BTreeMap::new();
        let mut realised = BTreeSet::new();
        for event in &log.events {
            let Some(id) = event.kind.instance().map(InstancePath::node) else { continue };
            match &event.kind {
                EventKind::RetryScheduled { until, .. } => {
                    scheduled += 1;
                    let entry = retries.entry(id).or_default();
                    let wait = reconciler.wait.unwrap().after(entry.0, || 0.0);
                    let expected = event.at + jiff::SignedDuration::try_from(wait).unwrap();
                    if reconciler.pace == Pace::Each {
                        assert_eq!(*until, expected, "{}\n{}", scene.number, scene.text);
                    }
                    *entry = (entry.0 + 1, *until);
                    assert!(entry.0 <= max_retries, "{}: tried too often\n{}", scene.number, scene.text);
                    assert!(!scene.number.is_multiple_of(5), "{}: a single pass tries again", scene.number);
                }
                EventKind::CallStarted { .. } => {
                    assert!(
                        retries.get(&id).is_none_or(|(_, until)| event.at >= *until),
                        "{}: too early",
                        scene.number
                    );
                    assert!(!realised.contains(&id), "{}: called again after it succeeded", scene.number);
                }
                EventKind::CallEnded { response, .. } => {
                    if let Outcome::Changed(changed) = &response.outcome
                        && changed.verified == Verification::InState
                    {
                        realised.insert(id);
                    }
                }
                _ => {}
            }
        }
    }
    assert!(scheduled > 0, "something is tried again");
}

/// Flaky, slow and never-ending things, under reconcilers of every pace and patience.
fn pending_scenes() -> impl Iterator<Item = (Scene, Reconciler, WhileProgress)> {
    some_scenes(21, Luck::Mixed, 3000).map(|mut scene| {
        let mut numbers = Numbers::of(21, scene.number);
        for thing in scene.world.0.values_mut() {
            thing.failures = if numbers.below(2) == 0 { u32::try_from(numbers.below(9)).unwrap() } else { 0 };
            let length = [1, 2, 5, 9, u32::MAX][numbers.below(5)];
            let counts = numbers.below(2) == 0;
            thing.job = (numbers.below(3) == 0).then(|| Job::new(length, numbers.below(2) == 0).counting(counts));
            thing.lacking = if numbers.below(3) == 0 { u32::try_from(numbers.below(6)).unwrap() } else { 0 };
        }
        let rule =
            WhileProgress { max_unchanged: u32::try_from(numbers.below(5)).unwrap(), patient: numbers.below(2) == 0 };
        let max_re_runs = [0, 1, 3, 7, 40][numbers.below(5)];
        let made = if numbers.below(2) == 0 { Reconciler::basic(0) } else { Reconciler::continuous(0) };
        let wait = (numbers.below(2) == 0).then(|| WAITS[numbers.below(2)]);
        let reconciler = Reconciler { rule: Arc::new(rule), wait, max_re_runs, ..made };
        scene.setup.policy = Arc::new(reconciler.clone());
        scene.wakes = true;
        (scene, reconciler, rule)
    })
}

/// The events of one instance, by the definitions of progress and of a re-run.
#[derive(Default)]
pub(crate) struct Pending {
    last: Option<Arc<Response>>,
    unchanged: u32,
    re_runs: u32,
    until: Option<jiff::Timestamp>,
    /// When it was to be run again, if it was woken before.
    due: Option<jiff::Timestamp>,
    woken: Option<Arc<Response>>,
    /// How many calls of others had changed something when it was last tried.
    changes_before: u32,
    /// It is tried because something has changed: that takes none of its other tries.
    is_extra: bool,
    was_set: bool,
}

impl Pending {
    fn tried(&mut self, response: &Arc<Response>) {
        if self.due.is_some() {
            self.woken = Some(Arc::clone(response));
            return;
        }
        let is_same = self.last.as_ref().is_some_and(|last| match (&last.outcome, &response.outcome) {
            (Outcome::Failed(_), Outcome::Failed(_)) => true,
            (Outcome::Changed(one), Outcome::Changed(other)) => {
                (&one.changed, &one.after) == (&other.changed, &other.after)
            }
            (Outcome::Pending(one), Outcome::Pending(other)) => one.data == other.data,
            _ => false,
        });
        let is_counted = !std::mem::take(&mut self.is_extra);
        self.unchanged = if is_same { self.unchanged + u32::from(is_counted) } else { 0 };
        self.last = Some(Arc::clone(response));
    }
}

impl Pending {
    /// Returns whether something is missing or in the way.
    fn is_blocked(&self) -> bool {
        self.last.as_ref().is_some_and(|last| matches!(&last.outcome, Outcome::Failed(failure) if failure.is_blocked()))
    }

    /// A run that was woken and ended only when it was due counts as the one that was due.
    fn overdue(&mut self, now: jiff::Timestamp) {
        if let Some(due) = self.due.take() {
            assert!(now >= due, "what was due at {due} is forgotten at {now}");
            let response = self.woken.take().expect("it was tried");
            self.tried(&response);
        }
    }
}

/// Returns whether a test found a difference, so that a set follows.
fn differs(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Tested(tested) if !tested.in_desired_state)
}

/// What is known of a run of a scene from its events so far.
struct Watch<'s> {
    scene: &'s Scene,
    reconciler: &'s Reconciler,
    rule: WhileProgress,
    known: BTreeMap<NodeId, Pending>,
    batches: BTreeSet<jiff::Timestamp>,
    started: u32,
    changes: u32,
    is_stirred: bool,
}

/// How often each thing was seen.
#[derive(Default)]
struct Seen {
    again: u32,
    extra: u32,
    given_up: u32,
    at_once: u32,
    hopeless: u32,
}

impl Watch<'_> {
    fn is_together(&self) -> bool {
        self.reconciler.pace == Pace::Together
    }

    fn instance(&mut self, id: NodeId) -> &mut Pending {
        self.known.entry(id).or_default()
    }

    fn is_exhausted(&self, id: NodeId) -> bool {
        let re_runs = if self.is_together() { self.started } else { self.known[&id].re_runs };
        re_runs >= self.reconciler.max_re_runs
    }

    fn is_over(&self, id: NodeId) -> bool {
        let one = &self.known[&id];
        let is_working = matches!(one.last.as_ref().map(|last| &last.outcome), Some(Outcome::Pending(_)));
        self.is_exhausted(id) || one.unchanged >= self.rule.max_unchanged && !(self.rule.patient && is_working)
    }

    fn waits_for_others(&self, one: &Pending) -> bool {
        self.reconciler.gives_up_blocked() && one.is_blocked()
    }

    /// Returns whether nothing of the run can bring what it lacks.
    fn is_hopeless(&self, id: NodeId, in_flight: &[Arc<Call>]) -> bool {
        let is_run_again = |other: &Pending| other.until.is_some() && !self.waits_for_others(other);
        let is_busy = !in_flight.is_empty() || self.is_stirred || self.known.values().any(is_run_again);
        self.waits_for_others(&self.known[&id]) && !is_busy
    }

    fn ended(&mut self, id: NodeId, response: &Arc<Response>) {
        self.changes += u32::from(matches!(response.outcome, Outcome::Changed(_)));
        let is_blocked = matches!(&response.outcome, Outcome::Failed(failure) if failure.is_blocked());
        self.is_stirred |= self.known[&id].was_set && !is_blocked;
        self.instance(id).tried(response);
    }

    fn scheduled(
        &mut self,
        id: NodeId,
        until: jiff::Timestamp,
        event: &Event,
        in_flight: &[Arc<Call>],
        seen: &mut Seen,
    ) {
        let name = format!("{}: {}\n{}", self.scene.number, self.scene.graph.node(id).name, self.scene.text);
        seen.again += 1;
        self.instance(id).overdue(event.at);
        let is_extra = self.waits_for_others(&self.known[&id]) && self.known[&id].changes_before < self.changes;
        if is_extra {
            seen.at_once += 1;
            assert!(until == event.at && !self.is_exhausted(id), "{name} is tried at once");
        } else {
            assert!(!self.is_over(id), "{name} is run again");
        }
        let instance = self.instance(id);
        (instance.is_extra, instance.until) = (is_extra, Some(until));
        instance.re_runs += 1;
        if self.is_together() {
            assert!(in_flight.is_empty(), "{name}: something is under way");
            let mut others = self.known.values().filter_map(|other| other.until);
            assert!(others.all(|other| other == until), "{name}: another batch waits");
        }
    }

    fn started(&mut self, id: NodeId, operation: Operation) {
        let changes = self.changes;
        let instance = self.instance(id);
        instance.changes_before = changes;
        instance.was_set |= operation == Operation::Set;
        if let Some(until) = instance.until.take() {
            self.started += u32::from(self.batches.insert(until));
        }
    }

    fn failed(&mut self, id: NodeId, event: &Event, in_flight: &[Arc<Call>], seen: &mut Seen) {
        self.instance(id).overdue(event.at);
        // What fails here exits with a code or lacks something, which can heal.
        let heals = self.known[&id].last.is_some() && !self.scene.is_asserted(id);
        let is_hopeless = self.is_hopeless(id, in_flight);
        seen.given_up += u32::from(heals);
        seen.hopeless += u32::from(is_hopeless);
        let name = &self.scene.graph.node(id).name;
        let is_right = !heals || self.is_over(id) || is_hopeless;
        assert!(is_right, "{}: {name}\n{} is given up too early", self.scene.number, self.scene.text);
    }
}

#[test]
fn a_reconciler_ends_exactly_when_it_says() {
    let mut seen = Seen::default();
    for (scene, reconciler, rule) in pending_scenes() {
        let (run, _, log) = scene.ended(Mode::APPLY);
        let (known, batches) = (BTreeMap::new(), BTreeSet::new());
        let (scene, reconciler) = (&scene, &reconciler);
        let mut watch = Watch { scene, reconciler, rule, known, batches, started: 0, changes: 0, is_stirred: false };
        for (event, (_, in_flight)) in log.events.iter().zip(&log.snapshots) {
            let Some(id) = event.kind.instance().map(InstancePath::node) else { continue };
            let instance = watch.instance(id);
            match &event.kind {
                EventKind::CallEnded { response, .. } if !differs(&response.outcome) => watch.ended(id, response),
                EventKind::Woken { .. } => instance.due = instance.due.or(instance.until),
                // A run before its time is an extra one: what was to happen, happens.
                EventKind::RetryScheduled { until, .. } if instance.due == Some(*until) => {
                    seen.extra += 1;
                    (instance.due, instance.until) = (None, Some(*until));
                }
                EventKind::RetryScheduled { until, .. } => watch.scheduled(id, *until, event, in_flight, &mut seen),
                EventKind::CallStarted { operation, .. } => watch.started(id, *operation),
                EventKind::Settled { status: Status::Failed | Status::Pending, problem: None, .. } => {
                    watch.failed(id, event, in_flight, &mut seen);
                }
                EventKind::Settled { status: Status::Skipped(SkipReason::Need(need)), .. } => {
                    let blocks = run.report().status(need.node()).is_some_and(Status::blocks);
                    assert!(blocks || scene.has_no_alternative(&run, id), "{}: {id:?} starves", scene.number);
                }
                _ => {}
            }
        }
    }
    let Seen { again, extra, given_up, at_once, hopeless } = seen;
    assert!([again, extra, given_up, at_once, hopeless].iter().all(|times| *times > 0));
}
