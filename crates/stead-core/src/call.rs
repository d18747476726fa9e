//! What crosses between the core and the providers of resources: calls out, outcomes in.

use std::sync::Arc;

use crate::id::NodeId;
use crate::manifest::Manifest;
use crate::value::Value;

/// What is done with an instance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Operation {
    /// Read the actual state.
    Get,
    /// Compare the actual state with the desired one.
    Test,
    /// Bring the actual state to the desired one.
    Set,
    /// List what is there.
    Export,
}

/// Whether anything may change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Execution {
    /// It is done.
    Actual,
    /// It is only said what would be done; nothing changes.
    WhatIf,
}

/// A request to the provider of one instance.
#[derive(Clone, Debug)]
pub struct Call {
    /// The instance, for the answer to be told apart; meaningless to the provider.
    pub node: NodeId,
    /// The name of the instance, for messages.
    pub name: String,
    /// The resource that it is an instance of.
    pub manifest: Arc<Manifest>,
    /// What is asked for.
    pub operation: Operation,
    /// Whether anything may change.
    pub execution: Execution,
    /// The desired state: an object, or null when the instance has no properties. May hold sealed values.
    pub desired: Arc<Value>,
    /// For `Set`: what the test that led to it found, so that nothing is read twice.
    pub tested: Option<Arc<Tested>>,
    /// `metadata` of the instance, passed on as `_metadata` where the schema of the resource has that property.
    pub metadata: Option<Arc<Value>>,
}

/// What a test found.
#[derive(Clone, PartialEq, Debug)]
pub struct Tested {
    /// The actual state.
    pub actual: Value,
    /// Whether it is the desired one.
    pub in_desired_state: bool,
    /// The top-level properties that differ; empty when in the desired state.
    pub differing: Vec<String>,
}

/// What a set did, or in what-if would do.
#[derive(Clone, PartialEq, Debug)]
pub struct Changed {
    /// The state before.
    pub before: Value,
    /// The state after; in what-if the predicted one.
    pub after: Value,
    /// The top-level properties that changed; `None` where nothing had to be set.
    pub changed: Option<Vec<String>>,
    /// What the resource says of a what-if in words.
    pub what_if: Vec<String>,
    /// Whether the state after it is the desired one.
    pub verified: Verification,
}

/// What a look at the state after a set showed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verification {
    /// It is the desired one.
    InState,
    /// These top-level properties still differ.
    Differs(Vec<String>),
    /// The resource does not tell, or nothing was done.
    NotVerifiable,
}

/// What a provider answered, whole.
#[derive(Clone, PartialEq, Debug)]
pub struct Answered {
    /// The answer itself.
    pub outcome: Outcome,
    /// `_metadata` that the resource returned, without the keys that the engine reserves.
    pub metadata: Option<Value>,
    /// What the resource says has to be restarted.
    pub restarts: Vec<Restart>,
    /// In what-if: the paths that the instance reads or writes, if that is all it can have an effect on.
    pub touches: Option<Vec<std::path::PathBuf>>,
}

/// Something that has to be restarted for a change to take effect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Restart {
    /// The machine, by a name that the resource gives it.
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

/// The answer to a [`Call`].
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// To `Get`: the actual state.
    Got(Value),
    /// To `Test`.
    Tested(Tested),
    /// To `Set`.
    Changed(Changed),
    /// To `Export`: the instances that are there.
    Exported(Vec<Exported>),
    /// To any: it could not be done.
    Failed(Failure),
}

/// One instance that an export found.
#[derive(Clone, PartialEq, Debug)]
pub struct Exported {
    /// The type when it is not that of the resource asked (exporters).
    pub type_name: Option<crate::id::TypeName>,
    /// The name that the resource suggests.
    pub name: Option<String>,
    /// The actual state.
    pub properties: Value,
    /// `_metadata` that came with it.
    pub metadata: Option<Value>,
}

/// Why a call could not be carried out.
///
/// Guarantees: no secret of the call's desired state is in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// What kind of failure it is; decides the code.
    pub kind: FailureKind,
    /// One or more sentences, without the name of the instance.
    pub message: String,
    /// The property it is about, as a JSON pointer such as `/mode`.
    pub property: Option<String>,
}

/// The kinds of failure that callers tell apart.
#[derive(Clone, PartialEq, Eq, Debug)]
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
    /// What it wrote is not what the protocol asks for.
    Protocol,
    /// Its process left others behind, which were ended.
    LeftBehind,
    /// The run was cancelled.
    Cancelled,
    /// It did as told, and still the state is not the desired one.
    NotConverged,
    /// The system refused something: a file, a right, space.
    System,
}
