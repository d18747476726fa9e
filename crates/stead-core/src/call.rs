//! The values that cross between the core and the providers of resources: calls out, outcomes in.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::destruction::Effects;
use crate::diag::Code;
pub use crate::diag::codes::call::*;
use crate::export::ExportFilter;
use crate::id::ResourceId;
use crate::instance_path::InstancePath;
use crate::manifest::Manifest;
use crate::schema::Reason;
use crate::value::{Object, Value};

/// The operation that is carried out on an instance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Operation {
    /// Read the actual state.
    Get,
    /// Compare the actual state with the desired one.
    Test,
    /// Bring the actual state to the desired one.
    Set,
    /// Remove the instance, whatever its properties say of `_exist`.
    Delete,
    /// List what is there.
    Export,
}

impl Operation {
    /// Returns whether it may change the machine.
    pub fn may_change(self) -> bool {
        matches!(self, Self::Set | Self::Delete)
    }

    /// Returns whether it may change the machine where it is carried out like this.
    pub fn changes_in(self, execution: Execution) -> bool {
        self.may_change() && execution == Execution::Actual
    }
}

/// The choice between changing the machine and predicting the change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Execution {
    /// It is done.
    Actual,
    /// It is only said what would be done; nothing changes.
    WhatIf,
}

/// A request to the provider of one instance.
#[derive(Clone, Debug)]
pub struct Call {
    /// The instance.
    pub instance: InstancePath,
    /// The resource that it is an instance of.
    pub manifest: Arc<Manifest>,
    /// The operation that is requested.
    pub operation: Operation,
    /// Real or what-if; in what-if the provider must change nothing.
    pub execution: Execution,
    /// The desired state: an object, or null when the instance has no properties. May hold sealed values.
    pub desired: Arc<Value>,
    /// For `Set`: what the test that led to it found, so that nothing is read twice.
    pub tested: Option<Arc<Tested>>,
    /// The value that the last try handed back when it was still [`Outcome::Pending`].
    pub pending: Option<Arc<Value>>,
    /// `metadata` of the instance, passed on as `_metadata` where the schema of the resource has that property.
    pub metadata: Option<Arc<Value>>,
    /// For `Export`: which of the instances that are there are kept, each as a whole.
    pub export_filter: Option<Arc<ExportFilter>>,
    /// How much of the state is read by anybody.
    pub wanted: Wanted,
}

/// How much of the state of an instance is read by anybody.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Wanted {
    /// Nothing but the answer of the method that was asked for: no state is read besides.
    Answer,
    /// Nothing, where a test finds it in its desired state: a resource need not report it.
    Verdict,
    /// The state as the operation reports it.
    #[default]
    Reported,
    /// The complete state: an expression may refer to it.
    All,
}

impl Call {
    /// The name of the instance.
    pub fn name(&self) -> &Arc<str> {
        self.instance.name()
    }

    /// Returns whether it may change the machine.
    pub fn changes(&self) -> bool {
        self.operation.changes_in(self.execution)
    }
}

/// The result of a test: the states that were compared, and how they differ.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tested {
    /// The actual state.
    pub actual: Arc<Value>,
    /// True if it is the desired one. The word of a resource that judges by itself counts more than `differing`.
    pub in_desired_state: bool,
    /// The top-level properties that differ.
    pub differing: Vec<String>,
    /// Why the resource cannot tell whether it is the desired one, if it cannot: it then counts as one that is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Arc<str>>,
    /// The state and effects that a set would have, where the desired state does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<Box<Prediction>>,
    /// `_metadata` that the resource was given with the desired state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Box<Value>>,
}

/// The result that a set would have, as a test predicts it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prediction {
    /// The state after it.
    pub after: Arc<Value>,
    /// The things it would create and destroy besides what the states show.
    pub effects: Effects,
    /// Descriptions of those effects that no state shows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// The absolute paths of which one must be changed first; empty where a set would come to it as things are. With paths it
    /// is what becomes of an instance that is in its desired state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub once: Vec<PathBuf>,
}

impl Tested {
    /// Returns whether the state is found to be another than the desired one.
    pub fn differs(&self) -> bool {
        !self.in_desired_state && self.unknown.is_none()
    }

    /// The states in it: the actual one, and what a set would make of it where that is known.
    pub fn states(&self) -> impl Iterator<Item = &Value> {
        std::iter::once(&*self.actual).chain(self.predicted.as_deref().map(|predicted| &*predicted.after))
    }
}

/// The `result` of each nested instance, where a program that holds others reports theirs as its state.
pub fn nested_results(state: &Value) -> Option<Vec<&Value>> {
    let Value::Array(items) = state else { return None };
    let is_result = |item: &Value| {
        item.as_object().is_some_and(|item| ["name", "type", "result"].iter().all(|key| item.contains_key(key)))
    };
    items.iter().all(is_result).then(|| items.iter().filter_map(|item| item.as_object()?.get("result")).collect())
}

/// The result of a set, or in what-if the predicted one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Changed {
    /// The state before.
    pub before: Arc<Value>,
    /// The state after; in what-if the predicted one.
    pub after: Arc<Value>,
    /// The top-level properties that changed; `None` where nothing had to be set.
    pub changed: Option<Vec<String>>,
    /// The messages of the resource about a what-if.
    pub what_if: Vec<String>,
    /// In what-if: why the resource cannot tell whether anything would change, if it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Arc<str>>,
    /// In what-if: what is not there yet without which it would fail.
    pub presumed: Option<Presumed>,
    /// The things that are created and destroyed, as far as the resource says so; the same in what-if.
    #[serde(default, skip_serializing_if = "Effects::is_empty")]
    pub effects: Effects,
    /// The comparison of the state after it with the desired one. Its meaning for the run is not decided here.
    pub verified: Verification,
}

/// Something that must exist before a set, or the set fails.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Presumed {
    /// With what it fails.
    pub failure: Failure,
    /// Where something is missing, as absolute paths: it succeeds once all of them are there. Empty where no path would help.
    pub paths: Box<[PathBuf]>,
    /// What must exist besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub besides: Option<Box<Self>>,
}

impl Presumed {
    /// A set that fails for one reason.
    pub fn of(failure: Failure, paths: Vec<PathBuf>) -> Self {
        Self { failure, paths: paths.into(), besides: None }
    }

    /// Returns what a set fails for that may fail for several reasons, in the order given. One that no path can resolve comes first.
    pub fn all(reasons: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        let mut reasons: Vec<Self> = reasons.into_iter().flatten().flat_map(Self::apart).collect();
        reasons.sort_by_key(|reason| !reason.paths.is_empty());
        reasons.into_iter().rev().fold(None, |besides, reason| Some(Self { besides: besides.map(Box::new), ..reason }))
    }

    /// Each reason by itself.
    pub fn apart(mut self) -> Vec<Self> {
        let besides = self.besides.take();
        std::iter::once(self).chain(besides.into_iter().flat_map(|besides| besides.apart())).collect()
    }

    /// Changes each of the failures.
    #[must_use]
    pub fn with_failures(self, change: &dyn Fn(Failure) -> Failure) -> Self {
        let besides = self.besides.map(|besides| Box::new(besides.with_failures(change)));
        Self { failure: change(self.failure), paths: self.paths, besides }
    }
}

/// The result of comparing the state after a set with the desired one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verification {
    /// It did.
    InState,
    /// It did not: these top-level properties still differ.
    Differs(Vec<String>),
    /// Nobody can tell: nothing was done, or the resource does not say in what state things are.
    NotVerifiable,
}

/// A thing that must be restarted before the state of a resource has effect, as the resource reports it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Restart {
    /// The machine of that name.
    System(String),
    /// A service.
    Service(String),
    /// A process.
    Process {
        /// Its name.
        name: String,
        /// Its number.
        id: u32,
    },
}

/// The restarts that a state asks for in `_restartRequired`, in the order given, each once.
///
/// Items of another form are left out; [`invalid_restarts`] tells whether there are any.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use stead_core::call::{Restart, invalid_restarts, restarts};
///
/// let state = json!({ "_restartRequired": [{ "service": "ssh" }, { "service": "ssh" }, { "planet": "earth" }] }).into();
/// assert_eq!(restarts(&state), [Restart::Service("ssh".to_owned())]);
/// assert!(invalid_restarts(&state));
/// ```
pub fn restarts(state: &Value) -> Vec<Restart> {
    let mut found = Vec::new();
    for restart in restart_items(state).iter().filter_map(restart) {
        if !found.contains(&restart) {
            found.push(restart);
        }
    }
    found
}

/// Returns whether `_restartRequired` of a state holds anything that is not understood.
pub fn invalid_restarts(state: &Value) -> bool {
    let property = state.as_object().and_then(|members| members.get("_restartRequired"));
    let is_list = matches!(property, None | Some(Value::Null | Value::Array(_)));
    !is_list || restart_items(state).iter().any(|item| restart(item).is_none())
}

fn restart_items(state: &Value) -> &[Value] {
    let property = state.as_object().and_then(|members| members.get("_restartRequired"));
    property.and_then(Value::as_array).unwrap_or_default()
}

fn restart(item: &Value) -> Option<Restart> {
    let members = item.as_object().filter(|members| members.len() == 1)?;
    match members.first()? {
        (key, Value::String(name)) if key == "system" => Some(Restart::System(name.clone())),
        (key, Value::String(name)) if key == "service" => Some(Restart::Service(name.clone())),
        (key, Value::Object(process)) if key == "process" => Some(Restart::Process {
            name: process.get("name")?.as_str()?.to_owned(),
            id: process.get("id")?.as_i64()?.try_into().ok()?,
        }),
        _ => None,
    }
}

/// The answer to a [`Call`], and what the resource said besides.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Response {
    /// Its outcome.
    pub outcome: Outcome,
    /// `_metadata` that came with the last state, without what is reserved to the engine.
    pub metadata: Option<Box<Value>>,
    /// The restarts that are due before the state has effect.
    pub restarts: Vec<Restart>,
    /// The complete state, if [`Wanted::All`] was asked for and the outcome holds less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete: Option<Arc<Value>>,
    /// The desired state of an instance whose resource was found when it was called, with its secrets sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<Arc<Value>>,
    /// The state that could not be read, or the part of a change that was made that is not known, and why, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

impl Response {
    /// A response of an outcome alone.
    pub fn of(outcome: Outcome) -> Self {
        Self { outcome, metadata: None, restarts: Vec::new(), complete: None, desired: None, unknown: None }
    }
}

impl From<Failure> for Response {
    fn from(failure: Failure) -> Self {
        Self {
            restarts: failure.restart.iter().map(|restart| (**restart).clone()).collect(),
            ..Self::of(Outcome::Failed(Box::new(failure)))
        }
    }
}

/// The answer to a [`Call`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// To `Get`: the actual state.
    Got(Arc<Value>),
    /// To `Test`; shared, since the run keeps it for the set that may follow.
    Tested(Arc<Tested>),
    /// To `Set`.
    Changed(Box<Changed>),
    /// To `Delete`: what was done, or in what-if would be, in words.
    Deleted(Vec<String>),
    /// To `Export`: the instances that are there.
    Exported(Vec<Exported>),
    /// To `Set` and `Delete`: the resource is still working on it and is to be asked again.
    Pending(Box<Pending>),
    /// To any: it could not be done.
    Failed(Box<Failure>),
}

impl Changed {
    /// Returns what a what-if says: the words of the resource, and each thing that would be removed. Empty where nothing was
    /// predicted.
    pub fn what_if_messages(&self) -> Vec<String> {
        let removals = if self.what_if.is_empty() { Vec::new() } else { self.effects.removals() };
        self.what_if.iter().cloned().chain(removals).collect()
    }

    /// Returns why the desired state was not reached; `None` where it was, or where nobody can tell.
    pub fn why_not_reached(&self) -> Option<String> {
        let Verification::Differs(properties) = &self.verified else { return None };
        let properties = properties.join(", ");
        Some(format!("still not in the desired state after set; these properties differ: {properties}"))
    }
}

impl Outcome {
    /// Returns why the resource cannot tell whether anything is to be changed, if it cannot.
    pub fn unknown(&self) -> Option<&str> {
        match self {
            Self::Tested(tested) => tested.unknown.as_deref(),
            Self::Changed(changed) => changed.unknown.as_deref(),
            Self::Got(_) | Self::Deleted(_) | Self::Exported(_) | Self::Pending(_) | Self::Failed(_) => None,
        }
    }

    /// Returns why the desired state was not reached, where that is known of a call: without secrets, in one or more
    /// sentences.
    pub fn why_not_reached(&self) -> Option<String> {
        match self {
            Self::Failed(failure) => Some(failure.message.clone()),
            Self::Pending(pending) => Some(pending.message.clone()),
            Self::Changed(changed) => changed.why_not_reached(),
            Self::Got(_) | Self::Tested(_) | Self::Deleted(_) | Self::Exported(_) => None,
        }
    }
}

/// The answer of a resource that is still working.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pending {
    /// The event or condition that it waits for, in one sentence.
    pub message: String,
    /// Handed back to it with the next try.
    pub data: Option<Value>,
    /// How long it asks to be left alone, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<f64>,
}

/// One instance that an export found.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Exported {
    /// The type when it is not that of the resource asked (exporters).
    pub type_name: Option<crate::id::TypeName>,
    /// The name that the resource suggests.
    pub name: Option<String>,
    /// The actual state.
    pub properties: Value,
    /// Other instances of the same export that must be created first.
    pub depends_on: Vec<ResourceId>,
    /// `_metadata` that came with it.
    pub metadata: Option<Value>,
}

impl Exported {
    /// One of the type that was asked, which needs no other.
    pub fn named(name: impl Into<String>, properties: Object) -> Self {
        let properties = Value::Object(properties);
        Self { type_name: None, name: Some(name.into()), properties, depends_on: Vec::new(), metadata: None }
    }
}

/// Why a call could not be carried out.
///
/// Guarantees: no secret of the call's desired state is in it.
///
/// # Examples
/// ```
/// use stead_core::call::{Failure, FailureKind};
///
/// // A file system may have space later; a document that is wrong stays wrong.
/// assert!(Failure::new(FailureKind::System, "no space is left on the device").can_heal());
/// assert!(!Failure::new(FailureKind::Invalid, "'mode' must be a string").can_heal());
/// // Another instance may install the program.
/// assert!(Failure::new(FailureKind::Start, "cannot find 'nginx'").is_blocked());
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The kind of failure; it decides the code.
    pub kind: FailureKind,
    /// One or more sentences, without the name of the instance.
    pub message: String,
    /// The property it is about, as a JSON pointer such as `/mode`.
    pub property: Option<String>,
    /// The identifier that the resource itself gives it: of a PowerShell resource the `FullyQualifiedErrorId`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_id: Option<Box<str>>,
    /// What the resource says of the error besides; not recorded, since it is for who asked.
    #[serde(skip)]
    pub raised: Option<Box<Raised>>,
    /// The restart that the resource had asked for when it failed: it is due all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<Box<Restart>>,
    /// The mismatch of that property, while it is checked before a run; `None` in answers to calls.
    #[serde(skip)]
    pub reason: Option<Box<Reason>>,
}

/// An error as the language of a resource has it, for callers that have errors of the same form.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Raised {
    /// Its category: of PowerShell one of `ErrorCategory`.
    pub category: String,
    /// The exception and those within it, the outermost first: the name of the type, and the message.
    pub exceptions: Vec<(String, String)>,
    /// The calls that led to it, one a line.
    pub stack: String,
    /// File and line.
    pub place: String,
}

impl Raised {
    /// The same error with every text in it as `text` makes it.
    #[must_use]
    pub fn with_texts(self, text: impl Fn(&str) -> String) -> Self {
        let exceptions = self.exceptions.iter().map(|(name, message)| (text(name), text(message))).collect();
        Self { category: text(&self.category), exceptions, stack: text(&self.stack), place: text(&self.place) }
    }
}

/// The kinds of failure that callers tell apart.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FailureKind {
    /// The desired state does not fit the schema of the resource, or makes no sense to it.
    Invalid,
    /// The resource cannot do what is asked.
    Unsupported,
    /// The program of the resource ended with this code.
    Exit(i32),
    /// The program of the resource was ended by this signal.
    Signal(i32),
    /// The program could not be started.
    Start,
    /// It took longer than allowed.
    Deadline,
    /// It wrote more than allowed.
    OutputLimit,
    /// The output is not what the protocol asks for.
    Protocol,
    /// Its process left others behind, which were ended.
    LeftBehind,
    /// The run was cancelled.
    Cancelled,
    /// It did as asked, and still the state is not the desired one.
    NotConverged,
    /// The system refused something: a file, a right, space.
    System,
    /// Something is missing or in the way, and stays so until another instance or an administrator changes that.
    Blocked,
    /// The request cannot be met on this machine, and trying again does not change that.
    Refused,
}

impl Failure {
    /// Returns whether trying again, without another document, can come to another result.
    pub fn can_heal(&self) -> bool {
        // A program that left processes behind does so again; and what it did before may hide that from the next test.
        self.is_of_machine() && !matches!(self.kind, FailureKind::Refused | FailureKind::LeftBehind)
    }

    /// Returns whether something is missing or in the way, such as a program that is not there.
    pub fn is_blocked(&self) -> bool {
        matches!(self.kind, FailureKind::Blocked | FailureKind::Start)
    }

    /// Returns whether a look at a state that ends like this leaves it unknown: the resource was asked, and had no state to tell.
    pub fn leaves_state_unknown(&self) -> bool {
        use FailureKind::{Deadline, Exit, OutputLimit, Protocol, Signal, System};
        matches!(self.kind, Exit(_) | Signal(_) | Deadline | OutputLimit | Protocol | System)
    }

    /// Tells failures that can be otherwise once something else was changed.
    pub fn is_of_machine(&self) -> bool {
        !matches!(self.kind, FailureKind::Invalid | FailureKind::Unsupported | FailureKind::Cancelled)
    }

    /// A failure that is not about one property.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            property: None,
            error_id: None,
            raised: None,
            restart: None,
            reason: None,
        }
    }
}

/// The stable code of a kind of failure.
pub fn code(kind: &FailureKind) -> Code {
    match kind {
        FailureKind::Invalid => &INVALID,
        FailureKind::Unsupported => &UNSUPPORTED,
        FailureKind::Exit(_) => &EXIT,
        FailureKind::Signal(_) => &SIGNAL,
        FailureKind::Start => &START,
        FailureKind::Deadline => &DEADLINE,
        FailureKind::OutputLimit => &OUTPUT_LIMIT,
        FailureKind::Protocol => &PROTOCOL,
        FailureKind::LeftBehind => &LEFT_BEHIND,
        FailureKind::Cancelled => &CANCELLED,
        FailureKind::NotConverged => &NOT_CONVERGED,
        FailureKind::System | FailureKind::Blocked => &SYSTEM,
        FailureKind::Refused => &REFUSED,
    }
}
