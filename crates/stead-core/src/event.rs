//! The events of a run, as data: the vocabulary of journals, consumers and reports.
//!
//! An event can be stored, sent late and sent twice. It names instances by their [`InstancePath`], secrets by handles
//! into the vault, and findings by their codes; [`EventKind::Began`] says what all the others are about.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::call::{Call, Execution, Failure, Operation, Response};
use crate::diag::Diagnostic;
use crate::expr::FactKey;
use crate::footprint::Footprint;
use crate::id::NodeId;
use crate::instance_path::InstancePath;
use crate::manifest::Implementation;
use crate::value::Value;

/// The version of this vocabulary. A journal of another version is not resumed.
pub const VERSION: u32 = 4;

/// Something that happened in a run.
///
/// # Examples
/// ```
/// use stead_core::event::{Event, EventKind};
///
/// // A line of a journal.
/// let event = Event { sequence: 7, at: "2026-01-02T03:04:05Z".parse()?, kind: EventKind::Resumed };
/// let line = serde_json::to_string(&event)?;
/// assert!(!line.contains('\n'));
/// assert_eq!(Event::from_json(&line)?, event);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Event {
    /// How many events of the run came before it.
    pub sequence: u64,
    /// When it was recorded.
    pub at: Timestamp,
    /// The event itself.
    #[serde(flatten)]
    pub kind: EventKind,
}

impl Call {
    /// The event that announces the call.
    pub fn started(&self) -> EventKind {
        let (operation, execution) = (self.operation, self.execution);
        // What of it is secret is known once the resource is found: the response says it.
        let is_known = !matches!(self.manifest.implementation, Implementation::Late(_));
        let desired = if is_known { Arc::clone(&self.desired) } else { Arc::default() };
        EventKind::CallStarted { instance: self.instance.clone(), operation, execution, desired }
    }
}

/// How deep the JSON of an event may be nested: twice as deep as the values that expressions compute. Reading recurses, and
/// this much fits into the two megabytes of a thread even without optimization.
const MAX_DEPTH: usize = 512;

impl Event {
    /// Reads an event from the JSON that it was written as.
    ///
    /// Guarantees: numbers are exact, and values of 256 levels are read. Nothing makes it exhaust the stack.
    /// Caveats: a computation over secrets takes several levels of JSON for one of its own; beyond 512 it is refused.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        if depth(text) > MAX_DEPTH {
            return Err(serde::de::Error::custom(format_args!("nested more than {MAX_DEPTH} levels deep")));
        }
        let mut deserializer = serde_json::Deserializer::from_str(text);
        deserializer.disable_recursion_limit();
        let event = Self::deserialize(&mut deserializer)?;
        deserializer.end().map(|()| event)
    }
}

/// Returns how deep the brackets of a JSON text are nested.
fn depth(json: &str) -> usize {
    let (mut open, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                open += 1;
                deepest = deepest.max(open);
            }
            b']' | b'}' if !in_string => open = open.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// An event of a run. The state of a run is the fold of these, and nothing else.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum EventKind {
    /// The run began. Always the first event, and never a later one.
    Began(Arc<Header>),
    /// Another process took over, after a crash, a restart or a suspension. Calls that had been started and not ended
    /// were interrupted.
    Resumed,
    /// The machine supplied a value, or the reason why it cannot.
    FactObserved(Box<ObservedFact>),
    /// The nested instances of a container can begin.
    ContainerOpened {
        /// The container.
        instance: InstancePath,
    },
    /// A provider is about to be called. Recorded before it is: what is not in the journal was not called.
    CallStarted {
        /// The instance.
        instance: InstancePath,
        /// The operation that the provider is asked for.
        operation: Operation,
        /// Real or what-if.
        execution: Execution,
        /// The desired state as evaluated; null where [`Response::desired`] is to say it.
        desired: Arc<Value>,
    },
    /// A provider answered.
    CallEnded {
        /// The instance.
        instance: InstancePath,
        /// The answer.
        response: Arc<Response>,
        /// How long the call took.
        elapsed: Duration,
        /// In what-if: the paths that the instance reads and writes, if it has an effect on nothing else.
        footprint: Option<Arc<Footprint>>,
    },
    /// An instance is not in its desired state yet and will be tried again.
    RetryScheduled {
        /// The instance.
        instance: InstancePath,
        /// Not before this instant.
        until: Timestamp,
    },
    /// The event that an instance is pending for may have happened: it is run again at once.
    Woken {
        /// The instance.
        instance: InstancePath,
    },
    /// How an instance ended. There is one for each instance of a run that came to its end.
    Settled {
        /// The instance.
        instance: InstancePath,
        /// How it ended.
        status: Status,
        /// Why it failed, where the last response does not say.
        problem: Option<Arc<Problem>>,
    },
    /// The result of an instance did not last until the end of the run, or was put back, so that it failed after all. Instances that
    /// require it have run by then. Of one that failed before, there is more to say.
    Refuted {
        /// The instance.
        instance: InstancePath,
        /// Why it did not last.
        problem: Arc<Problem>,
    },
    /// The run stops here and is to be resumed. No call is started until then.
    Suspended,
    /// The run is to end early: what was not begun is skipped.
    Cancelled,
}

impl EventKind {
    /// The instance that it is about.
    pub fn instance(&self) -> Option<&InstancePath> {
        match self {
            Self::ContainerOpened { instance }
            | Self::CallStarted { instance, .. }
            | Self::CallEnded { instance, .. }
            | Self::RetryScheduled { instance, .. }
            | Self::Woken { instance }
            | Self::Settled { instance, .. }
            | Self::Refuted { instance, .. } => Some(instance),
            Self::Began(_) | Self::Resumed | Self::FactObserved(_) | Self::Suspended | Self::Cancelled => None,
        }
    }
}

/// A value that the machine supplied. It is boxed in an event, since few events have one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ObservedFact {
    /// The key of the fact.
    pub key: FactKey,
    /// The value, or why there is none.
    pub value: Result<Value, String>,
}

/// The subject of the events of a run: its graph, mode and instances.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// [`VERSION`] of whoever recorded it.
    pub version: u32,
    /// Where the document came from: a path, an address, or what its sender calls it.
    pub origin: Arc<str>,
    /// The digest that equal graphs share: see [`crate::graph::Graph::digest`].
    pub graph: Arc<str>,
    /// How many instances there are.
    pub instances: u32,
    /// The mode that they are run in.
    pub mode: Mode,
    /// The instances that it is about, and the containers around them; `None` for all. The others are skipped without an
    /// event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected: Option<Arc<BTreeSet<NodeId>>>,
}

/// The purpose of a run, and its policies.
///
/// # Examples
/// ```
/// use stead_core::call::{Execution, Operation};
/// use stead_core::event::Mode;
///
/// // A plan is the set of an apply, in what-if.
/// assert_eq!(Mode::PLAN, Mode { execution: Execution::WhatIf, ..Mode::APPLY });
/// assert_eq!(Mode::APPLY.operation, Operation::Set);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Mode {
    /// The operation that is carried out on every instance.
    pub operation: Operation,
    /// Real or what-if. What-if with `Set` makes a plan.
    pub execution: Execution,
    /// The consequence of a set that leaves a property as it was.
    pub verification: Verify,
    /// The choice between testing before a set and setting at once.
    pub approach: Approach,
}

/// The consequence of a set after which the state is not the desired one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verify {
    /// The instance has failed.
    Strict,
    /// It is reported, and the run goes on, as DSC v3 does.
    Lenient,
}

/// How an operation goes about an instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Approach {
    /// Instances in their desired state are left alone.
    Converge,
    /// The operation is carried out as asked, as when one resource is called directly. What reads an instance that is not in its
    /// desired state gets its actual state, as in DSC v3.
    Direct,
    /// The operation is the one method of that name, as far as the resource has it: no state is read before or after it.
    Alone,
}

impl Mode {
    /// Returns whether a run may change the machine.
    pub fn changes(self) -> bool {
        self.operation.changes_in(self.execution)
    }

    /// Read every instance.
    pub const GET: Self = Self::of(Operation::Get);
    /// Compare every instance.
    pub const TEST: Self = Self::of(Operation::Test);
    /// List what is there.
    pub const EXPORT: Self = Self::of(Operation::Export);
    /// Say what would be done.
    pub const PLAN: Self = Self { execution: Execution::WhatIf, ..Self::APPLY };
    /// Do it.
    pub const APPLY: Self = Self::of(Operation::Set);

    const fn of(operation: Operation) -> Self {
        let (execution, verification) = (Execution::Actual, Verify::Strict);
        Self { operation, execution, verification, approach: Approach::Converge }
    }

    /// Carry out one operation, as a caller asks who knows what it needs.
    #[must_use]
    pub const fn direct(operation: Operation, execution: Execution) -> Self {
        Self { operation, execution, verification: Verify::Lenient, approach: Approach::Direct }
    }

    /// Call one method, of which the answer is all that is asked for.
    #[must_use]
    pub const fn alone(operation: Operation) -> Self {
        Self { approach: Approach::Alone, ..Self::direct(operation, Execution::Actual) }
    }
}

/// How an instance ended.
///
/// # Examples
/// ```
/// use stead_core::event::{SkipReason, Status};
///
/// // An instance whose condition is false holds nobody up, unlike one that was cancelled.
/// assert!(Status::Skipped(SkipReason::Condition).succeeded());
/// assert!(Status::Skipped(SkipReason::Cancelled).blocks());
/// assert!(Status::Pending.blocks());
/// assert_eq!(SkipReason::Condition.clause(), Some("its condition is false"));
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
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
    /// Its provider was still at work on it when the run gave up waiting.
    Pending,
    /// It was skipped.
    Skipped(SkipReason),
    /// In what-if: it depends on what this instance will have become.
    Unknown(InstancePath),
    /// Its resource cannot tell: a test whether it is in the desired state, a what-if whether anything would change.
    Undetermined,
}

impl Status {
    /// Returns whether it ended as intended, as far as that can be known.
    pub fn succeeded(&self) -> bool {
        !self.blocks() && !matches!(self, Self::Unknown(_))
    }

    /// Returns whether nobody can tell how it will have ended, or whether anything is to be done.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown(_) | Self::Undetermined)
    }

    /// Returns whether instances that require this one cannot go on.
    pub fn blocks(&self) -> bool {
        match self {
            Self::Failed | Self::Pending => true,
            Self::Skipped(reason) => reason.blocks(),
            _ => false,
        }
    }
}

/// Why an instance was skipped.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SkipReason {
    /// Its condition is false.
    Condition,
    /// None of those it waits on for changes has changed.
    NoChange,
    /// None of those it waits on for failures has failed.
    NoFailure,
    /// An instance that it requires failed or was skipped for such a reason itself.
    Need(InstancePath),
    /// The instance that contains it failed or was skipped.
    Container(InstancePath),
    /// The run was cancelled.
    Cancelled,
    /// It is not part of the run, and what needs it goes on as if it were in its desired state.
    NotSelected,
    /// It is applied once and then left alone, which it was. What needs it goes on.
    LeftAlone,
    /// It was being worked on when the process crashed, several times.
    Quarantined,
    /// It left a program running that was ended, so that what its next test finds is not to be relied on.
    Withheld,
}

impl SkipReason {
    /// The reason as a clause, unless it is about another instance.
    pub fn clause(&self) -> Option<&'static str> {
        match self {
            Self::Condition => Some("its condition is false"),
            Self::NoChange => Some("nothing that it waits on has changed"),
            Self::NoFailure => Some("nothing that it waits on has failed"),
            Self::Cancelled => Some("the run was cancelled"),
            Self::NotSelected => Some("it is not part of this run"),
            Self::LeftAlone => Some("it was applied once, and its mode is ApplyOnly"),
            Self::Quarantined => Some("stead crashed repeatedly while it was being worked on"),
            Self::Withheld => Some(
                "it left a program running, which was ended; start that program as a service, remove what the test finds, then deliver the \
                 document again",
            ),
            Self::Need(_) | Self::Container(_) => None,
        }
    }

    /// Returns whether instances that require one that was skipped so cannot go on.
    pub fn blocks(&self) -> bool {
        !matches!(self, Self::Condition | Self::NoChange | Self::NoFailure | Self::NotSelected | Self::LeftAlone)
    }
}

/// Why an instance failed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Problem {
    /// Something is wrong with its declaration that only the run could find.
    Finding(Diagnostic),
    /// It cannot be carried out.
    Failure(Failure),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(value: Value) -> String {
        let kind = EventKind::FactObserved(ObservedFact { key: FactKey::Now, value: Ok(value) }.into());
        serde_json::to_string(&Event { sequence: 1, at: Timestamp::UNIX_EPOCH, kind }).unwrap()
    }

    fn nested(levels: usize) -> Value {
        (0..levels).fold(Value::from("]}\"\\"), |inner, _| Value::Array(vec![inner]))
    }

    #[test]
    fn the_deepest_value_that_expressions_compute_is_read_again() {
        let written = observed(nested(256));
        assert_eq!(serde_json::to_string(&Event::from_json(&written).unwrap()).unwrap(), written);
        // Up to the limit there is stack enough, even in a small thread of a build without optimization.
        assert!(Event::from_json(&observed(nested(500))).is_ok());
    }

    #[test]
    fn what_is_deeper_or_goes_on_is_refused() {
        let refused = |text: &str| Event::from_json(text).map(drop).unwrap_err().to_string();
        assert_eq!(refused(&"[".repeat(1_000_000)), "nested more than 512 levels deep");
        assert!(refused(&(observed(Value::Null) + "{}")).starts_with("trailing characters"));
    }

    /// A run that may be recorded holds all of them until its first change.
    #[test]
    fn an_event_is_small() {
        assert!(size_of::<Event>() <= 72, "{}", size_of::<Event>());
    }

    #[test]
    fn numbers_are_read_as_what_they_were() {
        for number in [0.1 + 0.2, 1e-7, 5e-324, f64::MAX, 2.225_073_858_507_201e-308, 9.869_604_401_089_358] {
            let written = observed(Value::Number(serde_json::Number::from_f64(number).unwrap()));
            let EventKind::FactObserved(fact) = Event::from_json(&written).unwrap().kind else { panic!("{written}") };
            let Ok(Value::Number(read)) = fact.value else { panic!("{written}") };
            assert_eq!(read.as_f64().map(f64::to_bits), Some(number.to_bits()), "{written}");
        }
    }
}
