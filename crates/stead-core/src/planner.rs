//! Which methods of a resource an operation is made of: the one place that decides it.
//!
//! ```text
//! Planner::step ──▶ Invoke(method) ──▶ the host calls it ──▶ Planner::observe(reply) ──▶ … ──▶ Done(response)
//! ```
//!
//! Resources differ in what they have: a test may be a get and a comparison, a set may need a get behind it, a what-if may
//! be a test. [`opening`] says with which operation a run begins an instance, a [`Planner`] what one operation is made of.
//! Both decide from values alone; secrets are sealed in all of them.

mod change;
mod export;
mod prediction;

use std::sync::Arc;

use crate::call::{
    Call, Changed, Execution, Exported, Failure, FailureKind, Operation, Outcome, Pending, Prediction, Presumed,
    Response, Tested, Verification, Wanted, invalid_restarts, restarts,
};
use crate::destruction::Effects;
use crate::diff::{Rules, differing, exists};
use crate::event::{Approach, Mode};
use crate::manifest::{Capabilities, Implementation, Manifest};
use crate::value::{Object, Value};

/// Returns the operation that an instance is asked first. A set is preceded by a test, unless the resource tests for
/// itself or can say what it would do: a program is then called once instead of twice.
pub fn opening(mode: Mode, manifest: &Manifest, desired: &Value) -> Operation {
    let capabilities = &manifest.capabilities;
    let tests_first = manifest.promises.cheap_test && capabilities.test;
    let says_itself = match mode.execution {
        _ if mode.approach != Approach::Converge => true,
        _ if tests_first => false,
        Execution::Actual => capabilities.implements_pretest,
        Execution::WhatIf if deletes(capabilities, desired) => capabilities.delete_what_if,
        Execution::WhatIf => capabilities.set_what_if,
    };
    match mode.operation {
        Operation::Set if !says_itself => Operation::Test,
        operation => operation,
    }
}

/// Returns whether a set with this desired state removes the instance by `delete`.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use stead_core::manifest::Capabilities;
/// use stead_core::planner::deletes;
///
/// let absent = json!({ "_exist": false }).into();
/// let deleter = Capabilities { set: true, delete: true, ..Capabilities::default() };
/// assert!(deletes(&deleter, &absent));
/// assert!(!deletes(&deleter, &json!({}).into()));
/// // A set that removes instances itself comes before a delete.
/// assert!(!deletes(&Capabilities { set_handles_exist: true, ..deleter }, &absent));
/// ```
pub fn deletes(capabilities: &Capabilities, desired: &Value) -> bool {
    let wanted = desired.as_object().is_none_or(exists);
    !wanted && capabilities.delete && !(capabilities.set && capabilities.set_handles_exist)
}

/// A method of a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// Read the actual state.
    Get,
    /// Compare it with the desired one.
    Test,
    /// Reach the desired state, or say what that would do.
    Set(Execution),
    /// Remove the instance, or say what that would do.
    Delete(Execution),
}

/// A state that a resource reported, sealed.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Reading {
    /// The state without `_metadata`.
    pub state: Arc<Value>,
    /// `_metadata`, if any is left that is not reserved to the engine.
    pub metadata: Option<Value>,
}

/// An answer to a method.
#[derive(Clone, Debug)]
pub enum Reply {
    /// To `Get`.
    State(Reading),
    /// To `Test`.
    Test {
        /// The actual state, unless `get` is needed to learn it.
        actual: Option<Reading>,
        /// The verdict of the resource, if it gave one.
        in_desired_state: Option<bool>,
        /// The properties that it says differ.
        differing: Option<Vec<String>>,
        /// Why it has no verdict, if it says so.
        unknown: Option<Arc<str>>,
        /// The result that a set would have, where the desired state does not tell.
        predicted: Option<Box<Prediction>>,
    },
    /// To `Set`.
    Set(Box<SetReply>),
    /// To `Delete`: what was done, or would be, in words.
    Deleted(Vec<String>),
    /// To [`PlannerStep::Export`].
    Exported(Vec<Exported>),
    /// To `Set` and `Delete`: it is still at work.
    Pending(Pending),
}

/// An answer to a set.
#[derive(Clone, Debug, Default)]
pub struct SetReply {
    /// The state before it, of a resource that reports it.
    pub before: Option<Reading>,
    /// The state after it, unless `get` is needed to learn it.
    pub after: Option<Reading>,
    /// The reason why the state after it cannot be read, if it cannot: `after` has only what the resource reported besides.
    pub unread: Option<Failure>,
    /// The properties that it says it changed.
    pub changed: Option<Vec<String>>,
    /// In what-if: what it would do, in words.
    pub what_if: Vec<String>,
    /// In what-if: why it cannot tell whether it would change anything.
    pub unknown: Option<Arc<str>>,
    /// In what-if: what is not there yet without which it would fail.
    pub presumed: Option<Presumed>,
    /// The things that are created and destroyed besides what the states show.
    pub effects: Effects,
}

/// A decision of the planner: the next method to call, or the outcome.
#[derive(Debug)]
pub enum PlannerStep {
    /// The method is called, and its reply passed to [`Planner::observe`].
    Invoke(Method),
    /// The instances that fit the desired state are listed, by a resource that filters or by the host, and passed to
    /// [`Planner::observe`].
    Export,
    /// The operation has ended.
    Done(Box<Response>),
}

/// One operation on its way: what was answered so far, and from that what comes next.
///
/// Guarantees: in [`Execution::WhatIf`] no method is invoked that may change anything; a method is invoked only if the
/// capabilities of the manifest name it.
///
/// # Examples
/// ```
/// # use std::sync::Arc;
/// # use serde_json::json;
/// use stead_core::call::{Call, Execution, Operation, Outcome, Wanted};
/// use stead_core::diff::Rules;
/// # use stead_core::id::{NodeId, ResourceId, TypeName};
/// # use stead_core::instance_path::InstancePath;
/// use stead_core::manifest::{Implementation, Manifest, Version};
/// use stead_core::planner::{Method, Planner, PlannerStep, Reading, Reply};
/// use stead_core::value::Value;
///
/// // The resource can only be read, so a test is a get and a comparison.
/// let mut manifest = Manifest::new(TypeName::parse("Shop/Till")?, Version::parse("1.0.0")?, Implementation::Engine);
/// manifest.capabilities.get = true;
/// let desired = Value::from(json!({ "open": true }));
/// let call = Call {
///     instance: InstancePath::new(None, ResourceId::parse("Shop/Till:front")?, NodeId(0)),
///     manifest: Arc::new(manifest),
///     operation: Operation::Test,
///     execution: Execution::Actual,
///     desired: Arc::new(desired.clone()),
///     tested: None,
///     pending: None,
///     metadata: None,
///     export_filter: None,
///     wanted: Wanted::Reported,
/// };
/// let mut planner = Planner::new(&call, &desired, Rules::default());
/// let Ok(PlannerStep::Invoke(Method::Get)) = planner.step() else { return Err("it asks for the state".into()) };
/// let state = Arc::new(Value::from(json!({ "open": false })));
/// drop(planner.observe(Ok(Reply::State(Reading { state, metadata: None }))));
/// let Ok(PlannerStep::Done(response)) = planner.step() else { return Err("it knows enough".into()) };
/// let Outcome::Tested(tested) = response.outcome else { return Err("it was a test".into()) };
/// assert!(!tested.in_desired_state);
/// assert_eq!(tested.differing, ["open"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Planner<'a> {
    call: &'a Call,
    desired: &'a Value,
    rules: Rules<'a>,
    /// True if a what-if is requested by the deprecated `whatIf` of the manifest.
    has_what_if: bool,
    stage: Stage,
    before: Option<Reading>,
    test: Option<TestReply>,
    set: Option<SetReply>,
    after: Option<Reading>,
    /// True if the set reported the state after it.
    reported: bool,
    /// Of a change that was made: what cannot be found out about it.
    unknown: Option<Unknown>,
    deleted: Option<Vec<String>>,
    exported: Option<Vec<Exported>>,
    pending: Option<Pending>,
}

/// An answer to a test.
#[derive(Default)]
struct TestReply {
    actual: Option<Reading>,
    in_desired_state: Option<bool>,
    differing: Option<Vec<String>>,
    unknown: Option<Arc<str>>,
    predicted: Option<Box<Prediction>>,
}

/// The unknown part of a change that was made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unknown {
    /// The state after it.
    State,
    /// The verdict of the resource on that state.
    Verdict,
}

/// The purpose for which a state is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Before,
    Test,
    After,
    Verify,
}

type Planned = Result<PlannerStep, Failure>;

impl<'a> Planner<'a> {
    /// A call of which nothing was done yet; `desired` is its desired state as the resource gets it.
    pub fn new(call: &'a Call, desired: &'a Value, rules: Rules<'a>) -> Self {
        let deprecated = match &call.manifest.implementation {
            Implementation::Command(command) => command.what_if.is_some(),
            _ => false,
        };
        let has_what_if = call.manifest.capabilities.set_what_if || deprecated;
        let before =
            call.tested.as_ref().map(|tested| Reading { state: without_verdict(&tested.actual), metadata: None });
        let stage = if before.is_some() { Stage::After } else { Stage::Before };
        let (test, set, after, deleted, exported, pending) = (None, None, None, None, None, None);
        Self {
            call,
            desired,
            rules,
            has_what_if,
            stage,
            before,
            test,
            set,
            after,
            reported: false,
            unknown: None,
            deleted,
            exported,
            pending,
        }
    }

    /// Returns the next step, from the answers so far.
    pub fn step(&mut self) -> Planned {
        if let Some(pending) = self.pending.take() {
            return Ok(done(Outcome::Pending(Box::new(pending)), None));
        }
        let step = match self.call.operation {
            Operation::Get => self.get(),
            Operation::Test => self.test(),
            Operation::Set => self.change(),
            Operation::Delete => self.remove(),
            Operation::Export => self.export(),
        };
        step.map(|step| self.with_effect(step))
    }

    /// Takes in the outcome of a method, and returns what is to be warned of. A failure is that of the operation, but where
    /// something was changed before: that is reported, with what is not known of it. A state that cannot be read is unknown
    /// where something else is asked for, and takes nothing away from that.
    pub fn observe(&mut self, answer: Result<Reply, Failure>) -> Result<Option<String>, Failure> {
        let failure = match answer {
            Ok(Reply::Set(mut reply)) => {
                self.before = self.before.take().or(reply.before.take());
                let unread = reply.unread.take();
                self.set = Some(*reply);
                let Some(failure) = unread else { return Ok(None) };
                self.stage = Stage::After;
                failure
            }
            Ok(reply) => {
                self.take(reply);
                return Ok(None);
            }
            Err(failure) => failure,
        };
        if failure.leaves_state_unknown() && self.goes_on_unread() {
            return Ok(Some(format!("the state is unknown: {}", failure.message)));
        }
        let made = match (&self.set, &self.deleted) {
            _ if self.call.execution == Execution::WhatIf => return Err(failure),
            (Some(_), _) => "the set was made",
            (None, Some(_)) => "the instance was deleted",
            (None, None) => return Err(failure),
        };
        let (unknown, words) = match self.stage {
            Stage::Verify => (Unknown::Verdict, "the resource cannot judge the state after it"),
            Stage::Before | Stage::Test | Stage::After => (Unknown::State, "the state after it is unknown"),
        };
        self.unknown = Some(unknown);
        Ok(Some(format!("{made}, but {words}: {}", failure.message)))
    }

    /// Goes on without the state that was to be read, and returns whether that can be done: before a change, also one that is
    /// only predicted, and where the resource has given its verdict.
    fn goes_on_unread(&mut self) -> bool {
        let is_before_change = self.call.operation == Operation::Set
            && self.lacks_before()
            && (self.set.is_none() || self.call.execution == Execution::WhatIf);
        match (self.stage, &mut self.test) {
            (Stage::Before, _) if is_before_change => self.before = Some(Reading::default()),
            (Stage::Test, Some(TestReply { actual: unread @ None, in_desired_state: Some(_), .. })) => {
                *unread = Some(Reading::default());
            }
            _ => return false,
        }
        true
    }

    fn take(&mut self, reply: Reply) {
        match reply {
            Reply::State(reading) => match self.stage {
                Stage::Before => self.before = Some(reading),
                Stage::Test | Stage::Verify => {
                    let test = self.test.take().unwrap_or_default();
                    self.test = Some(TestReply { actual: Some(reading), ..test });
                }
                Stage::After => self.after = Some(reading),
            },
            Reply::Test { actual, in_desired_state, differing, unknown, predicted } => {
                self.test = Some(TestReply { actual, in_desired_state, differing, unknown, predicted });
            }
            Reply::Set(reply) => self.set = Some(*reply),
            Reply::Deleted(words) => self.deleted = Some(words),
            Reply::Exported(found) => self.exported = Some(found),
            Reply::Pending(pending) => self.pending = Some(pending),
        }
    }

    fn capabilities(&self) -> &Capabilities {
        &self.call.manifest.capabilities
    }

    fn read(&mut self, stage: Stage) -> Planned {
        self.stage = stage;
        if !self.capabilities().get {
            return Err(unsupported("the resource does not support 'get'"));
        }
        Ok(PlannerStep::Invoke(Method::Get))
    }

    fn get(&mut self) -> Planned {
        match self.before.take() {
            Some(Reading { state, metadata }) => Ok(done(Outcome::Got(state), metadata)),
            None => self.read(Stage::Before),
        }
    }

    fn test(&mut self) -> Planned {
        match self.tested(Stage::Test)? {
            Ok((tested, metadata)) => Ok(done(Outcome::Tested(Arc::new(tested)), metadata)),
            Err(step) => Ok(step),
        }
    }

    /// Returns the result of the test, or what to ask first: the resource's own test, its state, or both.
    fn tested(&mut self, stage: Stage) -> Result<Result<(Tested, Option<Value>), PlannerStep>, Failure> {
        self.stage = stage;
        let Some(mut reply) = self.test.take() else {
            let own = self.capabilities().test;
            return if own { Ok(Err(PlannerStep::Invoke(Method::Test))) } else { self.read(stage).map(Err) };
        };
        match (self.call.wanted, reply.in_desired_state) {
            (Wanted::Verdict | Wanted::Answer, Some(true)) => {
                let desired = || Reading { state: Arc::clone(&self.call.desired), metadata: None };
                reply.actual.get_or_insert_with(desired);
            }
            (Wanted::Answer, Some(false)) => drop(reply.actual.get_or_insert_default()),
            _ => {}
        }
        let Some(Reading { state, metadata }) = reply.actual.take() else {
            self.test = Some(reply);
            return self.read(stage).map(Err);
        };
        let TestReply { in_desired_state: verdict, differing: names, unknown, predicted, .. } = reply;
        let own = verdict.or_else(|| state.as_object()?.get("_inDesiredState")?.as_bool());
        let differing = names.unwrap_or_else(|| differing(self.desired, &state, &self.rules));
        let in_desired_state = unknown.is_none() && own.unwrap_or(differing.is_empty());
        let passed = self.desired.as_object().and_then(|desired| desired.get("_metadata")).cloned().map(Box::new);
        Ok(Ok((Tested { actual: state, in_desired_state, differing, unknown, predicted, metadata: passed }, metadata)))
    }

    /// Returns whether the state before needs to be read: it is not known, somebody asks for it, and the resource can report it.
    fn lacks_before(&self) -> bool {
        self.before.is_none() && self.reads_states()
    }

    /// Returns whether the state before a set needs to be read: the answer to the set will not have it.
    fn lacks_before_set(&self) -> bool {
        self.lacks_before() && !self.capabilities().reports_before && self.set.is_none()
    }

    /// Returns whether states are read besides what the resource reports by itself.
    fn reads_states(&self) -> bool {
        self.capabilities().get && self.call.wanted != Wanted::Answer
    }

    fn take_before(&mut self) -> Arc<Value> {
        self.before.take().unwrap_or_default().state
    }
}

/// Returns a tested state without its verdict, which `get` does not report.
fn without_verdict(state: &Arc<Value>) -> Arc<Value> {
    match &**state {
        Value::Object(members) if members.contains_key("_inDesiredState") => {
            let mut members = members.clone();
            members.remove("_inDesiredState");
            Arc::new(Value::Object(members))
        }
        _ => Arc::clone(state),
    }
}

fn unsupported(message: &str) -> Failure {
    Failure::new(FailureKind::Unsupported, message)
}

/// Two states, and nothing said of what lies between.
fn unchanged(before: Arc<Value>, after: Arc<Value>) -> Changed {
    let (changed, what_if, unknown, presumed, effects) = (None, Vec::new(), None, None, Effects::default());
    Changed { before, after, changed, what_if, unknown, presumed, effects, verified: Verification::NotVerifiable }
}

fn done(outcome: Outcome, metadata: Option<Value>) -> PlannerStep {
    let restarts = reported_state(&outcome).map(restarts).unwrap_or_default();
    PlannerStep::Done(Box::new(Response { metadata: metadata.map(Box::new), restarts, ..Response::of(outcome) }))
}

fn reported_state(outcome: &Outcome) -> Option<&Value> {
    match outcome {
        Outcome::Got(state) => Some(state),
        Outcome::Tested(tested) => Some(&tested.actual),
        Outcome::Changed(changed) => Some(&changed.after),
        Outcome::Exported(_) | Outcome::Deleted(_) | Outcome::Pending(_) | Outcome::Failed(_) => None,
    }
}

/// Returns what is wrong with the restarts that a state asks for, in one sentence.
pub fn invalid_restart_message(state: &Value) -> Option<String> {
    let found = state.as_object().and_then(|members| members.get("_restartRequired"));
    let found = found.filter(|_| invalid_restarts(state))?.to_redacted_json();
    Some(format!("the resource returned property '_restartRequired' which contains invalid value: {found}"))
}

/// The properties of the later state that are not as before. Where nobody knows what was before, all may have changed.
fn changes_between(before: &Value, after: &Value) -> Vec<String> {
    let nothing = Value::Object(Object::new());
    let before = if *before == Value::Null { &nothing } else { before };
    differing(after, before, &Rules::default())
}
