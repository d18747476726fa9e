//! A machine that is simulated: things with a state that can be tested and set, and what goes wrong with them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use stead_core::call::{
    Call, Changed, Execution, Exported, Failure, FailureKind, Operation, Outcome, Presumed, Response, Restart, Tested,
    Verification,
};
use stead_core::diff::{Rules, differing, overlaid};
use stead_core::event::{Event, Fact};
use stead_core::expr::FactKey;
use stead_core::run::Run;
use stead_core::value::{Object, Value};

/// What a set does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Set {
    /// It brings about the desired state.
    Works,
    /// It says why it cannot, and changes nothing.
    Fails,
    /// It claims success, and changes nothing.
    Nothing,
    /// It brings about all properties but the last.
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
    /// What a set asks to be restarted.
    pub(crate) restarts: Vec<Restart>,
    /// The paths that all of it has an effect on; `None` for anything.
    pub(crate) touches: Option<Vec<PathBuf>>,
    /// What has to be there for a set to succeed, as a what-if says.
    pub(crate) presumes: Option<PathBuf>,
    /// What else is not in its desired state any more once this was set.
    pub(crate) spoils: Vec<String>,
}

impl Default for Thing {
    fn default() -> Self {
        Self {
            actual: None,
            set: Set::Works,
            failures: 0,
            restarts: Vec::new(),
            touches: Some(Vec::new()),
            presumes: None,
            spoils: Vec::new(),
        }
    }
}

/// All things by name; what is not listed is in its desired state.
#[derive(Clone, Default, Debug)]
pub(crate) struct World(pub(crate) BTreeMap<String, Thing>);

impl World {
    /// Carries out a call.
    pub(crate) fn answer(&mut self, call: &Call) -> Response {
        let thing = self.0.entry(call.name.to_string()).or_default();
        if thing.failures > 0 {
            thing.failures -= 1;
            return Failure::new(FailureKind::Exit(1), "it is out of order").into();
        }
        let desired = match &*call.desired {
            Value::Null => Value::Object(Object::new()),
            desired => desired.clone(),
        };
        let actual = thing.actual.clone().unwrap_or_else(|| desired.clone());
        let outcome = match call.operation {
            Operation::Get => Outcome::Got(actual),
            Operation::Export => Outcome::Exported(vec![exported(actual)]),
            Operation::Test => Outcome::Tested(std::sync::Arc::new(tested(&desired, actual))),
            Operation::Set => {
                let answer = thing.set(call.execution, &desired, actual);
                if call.execution == Execution::Actual && has_changed(&answer) {
                    self.spoil(&call.name);
                }
                return answer;
            }
        };
        Response { outcome, metadata: None, restarts: Vec::new() }
    }

    fn spoil(&mut self, by: &str) {
        let spoiled = self.0.get(by).map(|thing| thing.spoils.clone()).unwrap_or_default();
        for name in spoiled {
            let state = Object::from_iter([("x".to_owned(), "spoiled".into())]);
            self.0.entry(name).or_default().actual = Some(Value::Object(state));
        }
    }

    /// What the instance of a call has an effect on.
    pub(crate) fn touches(&self, call: &Call) -> Option<Vec<PathBuf>> {
        self.0.get(&*call.name).map_or(Some(Vec::new()), |thing| thing.touches.clone())
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

fn tested(desired: &Value, actual: Value) -> Tested {
    let differing = differing(desired, &actual, &Rules::default());
    Tested { in_desired_state: differing.is_empty(), actual, differing }
}

impl Thing {
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
            Presumed { failure, path: Some(path.clone()) }
        };
        let presumed = self.presumes.as_ref().filter(|_| execution == Execution::WhatIf).map(missing);
        let (what_if, effects) = (Vec::new(), stead_core::destruction::Effects::default());
        let changed = Changed { before, after, changed: Some(wanted), what_if, presumed, effects, verified };
        Response { outcome: Outcome::Changed(Box::new(changed)), metadata: None, restarts }
    }
}

/// Sees an event that was applied: the run, the machine, and what is under way.
pub(crate) type Observer<'a> = dyn FnMut(&Run, &World, &[Call], &Event) + 'a;

/// How a run is driven: without threads, so that every order of answers can be tried.
pub(crate) struct Driver<'a> {
    pub(crate) width: usize,
    /// Which of so many calls under way is answered next.
    pub(crate) pick: &'a mut dyn FnMut(usize) -> usize,
    /// Supplies a fact.
    pub(crate) learn: &'a dyn Fn(&FactKey) -> Result<Value, String>,
    /// After how many events the run is cancelled.
    pub(crate) cancel_after: Option<usize>,
    /// Sees every event once it is applied, with the world as it is then and what is under way.
    pub(crate) observe: &'a mut Observer<'a>,
}

/// A run that is being driven.
struct Driving<'a, 'b> {
    run: &'a mut Run,
    world: &'a mut World,
    driver: &'a mut Driver<'b>,
    under_way: Vec<Call>,
    events: usize,
}

/// Drives a run to its end.
pub(crate) fn drive(run: &mut Run, world: &mut World, driver: &mut Driver<'_>) {
    let mut driving = Driving { run, world, driver, under_way: Vec::new(), events: 0 };
    driving.note(Fact::Began);
    while driving.step() {}
    driving.learn_for_outputs();
    assert!(driving.run.is_finished(), "it is idle, nothing is under way, and yet it has not ended");
    assert_eq!(driving.run.asked(), 0);
}

impl Driving<'_, '_> {
    fn note(&mut self, fact: Fact) {
        let second = i64::try_from(self.events).expect("few events");
        self.events += 1;
        let event = Event { at: Timestamp::from_second(second).expect("a time"), fact };
        self.run.apply(&event);
        (self.driver.observe)(self.run, self.world, &self.under_way, &event);
    }

    fn learn_for_outputs(&mut self) {
        while let Some(key) = self.run.output_wants().pop_first() {
            let value = (self.driver.learn)(&key);
            self.note(Fact::Learned { key, value });
        }
    }

    /// One round of deciding and noting, then at most one answer; whether anything happened.
    fn step(&mut self) -> bool {
        if self.driver.cancel_after.is_some_and(|after| self.events >= after) && !self.run.report().cancelled {
            self.note(Fact::Cancelled);
        }
        let next = self.run.next(self.driver.width - self.under_way.len());
        if !next.is_idle() {
            next.facts.into_iter().for_each(|fact| self.note(fact));
            for key in next.wants {
                let value = (self.driver.learn)(&key);
                self.note(Fact::Learned { key, value });
            }
            for call in next.calls {
                let (node, operation, execution) = (call.node, call.operation, call.execution);
                let desired = Arc::clone(&call.desired);
                self.under_way.push(call);
                assert!(self.under_way.len() <= self.driver.width, "more is under way than there is room for");
                self.note(Fact::Asked { node, operation, execution, desired });
            }
            return true;
        }
        if self.under_way.is_empty() {
            return false;
        }
        let chosen = (self.driver.pick)(self.under_way.len());
        let call = self.under_way.remove(chosen);
        let answer = Arc::new(self.world.answer(&call));
        let touches = if call.execution == Execution::WhatIf { self.world.touches(&call) } else { None };
        let (node, operation) = (call.node, call.operation);
        self.note(Fact::Response { node, operation, answer, elapsed: Duration::from_secs(1), touches });
        true
    }
}
