//! A machine that is simulated: things with a state that can be tested and set, and what goes wrong with them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use stead_core::call::{
    Call, Changed, Execution, Exported, Failure, FailureKind, Operation, Outcome, Pending, Prediction, Presumed,
    Response, Restart, Tested, Verification,
};
use stead_core::claims::{Claim, Claims, Extent};
use stead_core::destruction::Effects;
use stead_core::diff::{Rules, differing, overlaid};
use stead_core::event::{Event, EventKind, ObservedFact};
use stead_core::expr::FactKey;
use stead_core::footprint::Footprint;
use stead_core::run::{Room, Run};
use stead_core::value::{Object, Value};

/// The behaviour of a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Set {
    /// It reaches the desired state.
    Works,
    /// It says why it cannot, and changes nothing.
    Fails,
    /// It claims success, and changes nothing.
    Nothing,
    /// It sets all properties but the last.
    Partly,
}

/// Something on the machine, managed by the instance of its name.
#[derive(Clone, Debug)]
pub(crate) struct Thing {
    /// Its state; `None` is whatever is desired.
    pub(crate) actual: Option<Value>,
    pub(crate) set: Set,
    /// How many calls fail before one succeeds.
    pub(crate) failures: u32,
    /// How many calls, behind those, find that something is missing.
    pub(crate) lacking: u32,
    /// The restarts that a set asks for.
    pub(crate) restarts: Vec<Restart>,
    /// The paths that all of it has an effect on; `None` for anything.
    pub(crate) touches: Option<Vec<PathBuf>>,
    /// How much of what is there.
    pub(crate) extent: Extent,
    /// True if neither a test nor a what-if can say whether anything is to be changed.
    pub(crate) is_silent: bool,
    /// The path that must exist for a set to succeed, as a what-if says.
    pub(crate) presumes: Option<PathBuf>,
    /// The path on whose change it acts, though it is in its desired state.
    pub(crate) once: Option<PathBuf>,
    /// The other instances that are not in their desired state any more once this was set.
    pub(crate) corrupts: Vec<String>,
    /// The work that its sets start, if it takes longer than a call.
    pub(crate) job: Option<Job>,
    /// How many sets changed it, or tried to.
    pub(crate) sets: u32,
}

/// Work that a set starts and that goes on behind the call. A set that hands back its number asks how far it is; one that
/// does not starts another.
#[derive(Clone, Debug, Default)]
pub(crate) struct Job {
    /// How many sets find it unfinished.
    pub(crate) length: u32,
    /// True if the value that it hands back says how much is left.
    counts: bool,
    /// True if it reaches the desired state by itself, at the last set that finds it unfinished.
    pub(crate) is_detached: bool,
    number: u32,
    left: u32,
}

impl Job {
    pub(crate) fn new(length: u32, is_detached: bool) -> Self {
        Self { length, is_detached, ..Self::default() }
    }

    /// Returns the same job, handing back how much is left as well.
    pub(crate) fn counting(self, counts: bool) -> Self {
        Self { counts, ..self }
    }

    /// How many sets began it anew.
    #[allow(dead_code, reason = "one of the tests that share this counts them")]
    pub(crate) fn started(&self) -> u32 {
        self.number
    }

    /// How a set finds the job; `None` once it is done.
    fn poll(&mut self, handed_back: Option<&Value>) -> Option<Pending> {
        let number = handed_back.map(|data| data.as_array().and_then(<[Value]>::first).unwrap_or(data));
        if number.and_then(Value::as_i64) != Some(i64::from(self.number)) {
            self.number += 1;
            self.left = self.length;
        }
        self.left = self.left.checked_sub(1)?;
        let message = format!("job {} is at work", self.number);
        let number = Value::from(i64::from(self.number));
        let data = if self.counts { Value::Array(vec![number, i64::from(self.left).into()]) } else { number };
        Some(Pending { message, data: Some(data), after: None })
    }
}

impl Default for Thing {
    fn default() -> Self {
        Self {
            actual: None,
            set: Set::Works,
            failures: 0,
            lacking: 0,
            restarts: Vec::new(),
            touches: Some(Vec::new()),
            extent: Extent::Directory,
            is_silent: false,
            presumes: None,
            once: None,
            corrupts: Vec::new(),
            job: None,
            sets: 0,
        }
    }
}

/// All things by name; what is not listed is in its desired state.
#[derive(Clone, Default, Debug)]
pub(crate) struct World(pub(crate) BTreeMap<String, Thing>);

impl World {
    /// Carries out a call.
    pub(crate) fn answer(&mut self, call: &Call) -> Response {
        let thing = self.0.entry(call.name().to_string()).or_default();
        if thing.failures > 0 {
            thing.failures -= 1;
            return Failure::new(FailureKind::Exit(1), "it is out of order").into();
        }
        if thing.lacking > 0 {
            thing.lacking -= 1;
            return Failure::new(FailureKind::Blocked, "something is missing").into();
        }
        let desired = match &*call.desired {
            Value::Null => Value::Object(Object::new()),
            desired => desired.clone(),
        };
        let actual = thing.actual.clone().unwrap_or_else(|| desired.clone());
        let outcome = match call.operation {
            Operation::Get => Outcome::Got(actual.into()),
            Operation::Export => Outcome::Exported(vec![exported(actual)]),
            Operation::Test => Outcome::Tested(std::sync::Arc::new(thing.tested(&desired, actual))),
            Operation::Delete => Outcome::Deleted(Vec::new()),
            Operation::Set => {
                let answer = thing.answer_set(call, &desired, actual);
                if call.execution == Execution::Actual && has_changed(&answer) {
                    self.corrupt(call.name());
                }
                return answer;
            }
        };
        Response::of(outcome)
    }

    fn corrupt(&mut self, by: &str) {
        let corrupted = self.0.get(by).map(|thing| thing.corrupts.clone()).unwrap_or_default();
        for name in corrupted {
            let state = Object::from_iter([("x".to_owned(), "corrupted".into())]);
            self.0.entry(name).or_default().actual = Some(Value::Object(state));
        }
    }

    /// Returns the paths that the instance of a call reads and writes: directories, with no effect on what is below
    /// them.
    pub(crate) fn footprint(&self, call: &Call, response: &Response) -> Option<Footprint> {
        let thing = self.0.get(&**call.name()).cloned().unwrap_or_default();
        let claim = |path: PathBuf| Claim::Path { path: path.into(), extent: thing.extent.clone() };
        let claims = Claims(thing.touches?.into_iter().map(claim).collect());
        Some(Footprint::new(claims, &response.outcome, |path| path.into()))
    }
}

fn has_changed(answer: &Response) -> bool {
    match &answer.outcome {
        Outcome::Changed(changed) => changed.changed.as_ref().is_some_and(|names| !names.is_empty()),
        _ => false,
    }
}

fn exported(properties: Value) -> Exported {
    Exported { type_name: None, name: None, properties, metadata: None, depends_on: Vec::new() }
}

impl Thing {
    fn tested(&self, desired: &Value, actual: Value) -> Tested {
        let actual: std::sync::Arc<Value> = actual.into();
        if let Some(why) = self.silence() {
            let (differing, unknown) = (Vec::new(), Some(why));
            return Tested { actual, in_desired_state: false, differing, unknown, predicted: None, metadata: None };
        }
        let differing = differing(desired, &actual, &Rules::default());
        let predicted = self.once.clone().filter(|_| differing.is_empty()).map(|path| {
            let (after, words) = (std::sync::Arc::clone(&actual), vec!["act".to_owned()]);
            Box::new(Prediction { after, effects: Effects::default(), words, once: vec![path] })
        });
        Tested { in_desired_state: differing.is_empty(), actual, differing, unknown: None, predicted, metadata: None }
    }

    fn silence(&self) -> Option<std::sync::Arc<str>> {
        self.is_silent.then(|| "it cannot tell".into())
    }

    fn answer_set(&mut self, call: &Call, desired: &Value, before: Value) -> Response {
        let acts = call.execution == Execution::Actual && !differing(desired, &before, &Rules::default()).is_empty();
        self.sets += u32::from(acts);
        if acts && let Some(pending) = self.job.as_mut().and_then(|job| job.poll(call.pending.as_deref())) {
            if self.job.as_ref().is_some_and(|job| job.is_detached && job.left == 0) {
                self.actual = Some(overlaid(&before, desired, &Rules::default()));
            }
            return Response::of(Outcome::Pending(Box::new(pending)));
        }
        self.set(call.execution, desired, before)
    }

    fn set(&mut self, execution: Execution, desired: &Value, before: Value) -> Response {
        let mut wanted = differing(desired, &before, &Rules::default());
        let (after, verified) = match (execution, self.set) {
            (Execution::WhatIf, _) => (overlaid(&before, desired, &Rules::default()), Verification::NotVerifiable),
            (Execution::Actual, _) if wanted.is_empty() => (before.clone(), Verification::InState),
            (Execution::Actual, Set::Works) => (overlaid(&before, desired, &Rules::default()), Verification::InState),
            (Execution::Actual, Set::Fails) => return Failure::new(FailureKind::Exit(2), "it cannot be set").into(),
            (Execution::Actual, Set::Nothing) => (before.clone(), Verification::Differs(std::mem::take(&mut wanted))),
            (Execution::Actual, Set::Partly) => {
                let left: Vec<String> = wanted.pop().into_iter().collect();
                let mut part = desired.as_object().cloned().unwrap_or_default();
                part.retain(|name, _| !left.iter().any(|left| left == name));
                (overlaid(&before, &Value::Object(part), &Rules::default()), Verification::Differs(left))
            }
        };
        if execution == Execution::Actual {
            self.actual = Some(after.clone());
        }
        let did = execution == Execution::Actual && !wanted.is_empty();
        let restarts = if did { self.restarts.clone() } else { Vec::new() };
        let missing = |path: &PathBuf| {
            let failure = Failure::new(FailureKind::System, format!("there is no {}", path.display()));
            Presumed::of(failure, vec![path.clone()])
        };
        let presumed = self.presumes.as_ref().filter(|_| execution == Execution::WhatIf).map(missing);
        let (what_if, effects) = (Vec::new(), stead_core::destruction::Effects::default());
        let (before, after) = (before.into(), after.into());
        let unknown = self.silence().filter(|_| execution == Execution::WhatIf);
        let changed = Some(wanted);
        let changed = Changed { before, after, changed, what_if, unknown, presumed, effects, verified };
        Response { restarts, ..Response::of(Outcome::Changed(Box::new(changed))) }
    }
}

/// Sees an event that was applied: the run, the machine, and what is under way.
pub(crate) type Observer<'a> = dyn FnMut(&Run, &World, &[Arc<Call>], &Event) + 'a;

/// How a run is executed: without threads, so that every order of answers can be tried.
pub(crate) struct Driver<'a> {
    /// How many calls may be under way, in all and by lane.
    pub(crate) room: Room,
    /// Which of so many calls under way is answered next.
    pub(crate) pick: &'a mut dyn FnMut(usize) -> usize,
    /// Supplies a fact.
    pub(crate) learn: &'a dyn Fn(&FactKey) -> Result<Value, String>,
    /// The event that is recorded besides, once there are so many.
    pub(crate) signal: Option<(usize, EventKind)>,
    /// Which of so many instances that back off is woken while there is nothing else to do.
    pub(crate) wake: &'a mut dyn FnMut(usize) -> Option<usize>,
    /// Sees every event once it is applied, with the world as it is then and what is under way.
    pub(crate) observe: &'a mut Observer<'a>,
}

/// An executor over a simulated machine. A call takes a second; while there is nothing to do, time passes at once.
struct Executor<'a, 'b> {
    run: &'a mut Run,
    world: &'a mut World,
    driver: &'a mut Driver<'b>,
    in_flight: Vec<Arc<Call>>,
    now: Timestamp,
    events: usize,
    decisions: usize,
}

/// Executes a run until it is finished or suspended. Returns how often it was asked what comes next.
pub(crate) fn drive(run: &mut Run, world: &mut World, driver: &mut Driver<'_>) -> usize {
    let now = run.report().ended.unwrap_or(Timestamp::UNIX_EPOCH);
    let mut executor = Executor { run, world, driver, in_flight: Vec::new(), now, events: 0, decisions: 0 };
    while executor.step() {}
    executor.learn_for_outputs();
    let decisions = executor.decisions;
    assert!(run.is_finished() || run.report().suspended, "it has not ended: {:?}", run.report());
    assert_eq!(run.in_flight(), 0);
    decisions
}

impl Executor<'_, '_> {
    fn record(&mut self, kinds: Vec<EventKind>) {
        for event in self.run.stamp(self.now, kinds) {
            self.run.apply(&event).expect("what the run decided is possible");
            self.events += 1;
            (self.driver.observe)(self.run, self.world, &self.in_flight, &event);
        }
    }

    fn learn_for_outputs(&mut self) {
        while let Some(key) = self.run.output_wants().pop_first() {
            let value = (self.driver.learn)(&key);
            self.record(vec![EventKind::FactObserved(ObservedFact { key, value }.into())]);
        }
    }

    /// Returns the room that is left.
    fn room(&self) -> Room {
        let left =
            |limit: usize, used: usize| limit.checked_sub(used).expect("no more is under way than there is room for");
        let lanes = self.driver.room.lanes.iter().map(|(lane, limit)| {
            let used = self.in_flight.iter().filter(|call| call.manifest.lane() == *lane).count();
            (lane.clone(), left(*limit, used))
        });
        Room { total: left(self.driver.room.total, self.in_flight.len()), lanes: lanes.collect() }
    }

    /// One round of deciding and recording, one answer, or one wait; whether anything happened.
    fn step(&mut self) -> bool {
        let has_begun = self.run.report().header.is_some();
        if let Some((_, kind)) = self.driver.signal.take_if(|(after, _)| has_begun && self.events >= *after) {
            self.record(vec![kind]);
        }
        self.decisions += 1;
        let next = self.run.next(self.now, &self.room());
        if !next.is_idle() {
            self.record(next.events);
            for key in next.wants {
                let value = (self.driver.learn)(&key);
                self.record(vec![EventKind::FactObserved(ObservedFact { key, value }.into())]);
            }
            // All of them are announced before the first is made.
            let announced = next.calls.iter().map(|call| call.started()).collect();
            self.in_flight.extend(next.calls);
            self.record(announced);
            return true;
        }
        if self.in_flight.is_empty() {
            let Some(wake) = next.wake else { return false };
            let nodes: Vec<_> = self.run.graph().iter().map(|(id, _)| id).collect();
            let pending: Vec<_> = nodes.into_iter().filter_map(|id| self.run.backing_off(id)).collect();
            if let Some(chosen) = (self.driver.wake)(pending.len()) {
                self.record(vec![EventKind::Woken { instance: pending[chosen].instance.clone() }]);
                return true;
            }
            assert!(wake > self.now, "time passes");
            self.now = wake;
            return true;
        }
        self.answer();
        true
    }

    fn answer(&mut self) {
        let chosen = (self.driver.pick)(self.in_flight.len());
        let call = self.in_flight.remove(chosen);
        let response = self.world.answer(&call);
        let is_planned = call.execution == Execution::WhatIf;
        let footprint = is_planned.then(|| self.world.footprint(&call, &response)).flatten();
        let elapsed = Duration::from_secs(1);
        self.now += elapsed;
        let ended = self.run.observe(&call, response, elapsed, footprint);
        self.record(vec![ended]);
    }
}
