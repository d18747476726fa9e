//! One call under way: its input, its states, and the operations that only read.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value as Json;
use stead_core::call::{Answered, Call, Failure, FailureKind, Outcome, Tested, invalid_restarts, restarts};
use stead_core::diff::{Rules, differing};
use stead_core::manifest::{Capabilities, Implementation, Kind};
use stead_core::schema::{Mismatch, Schema};
use stead_core::value::{Object, Value};

use super::reseal::Resealer;
use crate::provider::{Context, Plain, Provider, TraceLevel};

/// A call with everything that its methods need.
pub(super) struct Attempt<'a> {
    pub(super) call: &'a Call,
    pub(super) provider: &'a dyn Provider,
    pub(super) schema: Option<Arc<Schema>>,
    /// The desired state, sealed.
    pub(super) desired: Arc<Value>,
    /// The desired state as the resource gets it.
    pub(super) input: Plain,
    pub(super) resealer: Resealer<'a>,
    /// The context of the call; what is traced through it is scrubbed.
    pub(super) cx: Cow<'a, Context>,
}

/// A state that a resource reported.
pub(super) struct Reading {
    /// The state, sealed, without `_metadata`.
    pub(super) state: Value,
    /// `_metadata`, if any is left that is not reserved.
    pub(super) metadata: Option<Value>,
}

/// An answer, with the restarts that its state asks for.
pub(super) fn answered(outcome: Outcome, metadata: Option<Value>) -> Answered {
    let restarts = match &outcome {
        Outcome::Got(state) => restarts(state),
        Outcome::Tested(tested) => restarts(&tested.actual),
        Outcome::Changed(changed) => restarts(&changed.after),
        Outcome::Exported(_) | Outcome::Failed(_) => Vec::new(),
    };
    Answered { outcome, metadata, restarts }
}

/// Whether a key of metadata belongs to the engine.
pub(super) fn is_reserved(name: &str) -> bool {
    name.starts_with("Microsoft.DSC")
}

impl Attempt<'_> {
    pub(super) fn capabilities(&self) -> Capabilities {
        self.call.manifest.capabilities
    }

    pub(super) fn rules(&self) -> Rules<'_> {
        self.schema.as_deref().map_or_else(Rules::default, |schema| Rules::of_schema(schema.json()))
    }

    /// Reads the actual state.
    pub(super) fn get(&self) -> Result<Answered, Failure> {
        let reading = self.read()?;
        Ok(answered(Outcome::Got(reading.state), reading.metadata))
    }

    /// Compares, by the resource's own test or by a get.
    pub(super) fn tested(&self) -> Result<(Tested, Option<Value>), Failure> {
        if !self.capabilities().test {
            let of = &self.call.manifest.type_name;
            tracing::info!("Resource '{of}' does not implement test, performing synthetic test");
            let reading = self.read()?;
            return Ok((self.compared(reading.state), reading.metadata));
        }
        self.proceed()?;
        let reply = self.provider.test(&self.cx, &self.input)?;
        let verdict = reply.verdict();
        let reading = match reply.actual {
            Some(actual) => self.reading(actual)?,
            None => self.read()?,
        };
        let own = verdict.or_else(|| member(&reading.state, "_inDesiredState")?.as_bool());
        let differing = match reply.differing {
            Some(names) => self.scrubbed_names(names),
            None => differing(&self.desired, &reading.state, &self.rules()),
        };
        let in_desired_state = own.unwrap_or(differing.is_empty());
        Ok((Tested { actual: reading.state, in_desired_state, differing }, reading.metadata))
    }

    /// Asks for the actual state.
    pub(super) fn read(&self) -> Result<Reading, Failure> {
        self.proceed()?;
        if !self.capabilities().get {
            return Err(Failure::new(FailureKind::Unsupported, "the resource does not support 'get'"));
        }
        self.reading(self.provider.get(&self.cx, &self.input)?)
    }

    /// Takes in a state that the resource reported.
    pub(super) fn reading(&self, state: Plain) -> Result<Reading, Failure> {
        self.check_output(state.expose())?;
        let mut state = self.resealer.state(state.into_exposed());
        if invalid_restarts(&state) {
            let found = member(&state, "_restartRequired").map(Value::to_redacted_json).unwrap_or_default();
            let message = "the resource returned '_restartRequired' with an item that is not understood";
            self.note(TraceLevel::Warn, &format!("{message}: {found}"));
        }
        let metadata = match &mut state {
            // As in dsc, the last property takes its place.
            Value::Object(members) => members.swap_remove("_metadata").and_then(|found| self.metadata(found)),
            _ => None,
        };
        Ok(Reading { state, metadata })
    }

    /// Takes in a state of an instance of another type, which no schema is at hand for.
    pub(super) fn reading_of_other(&self, state: &Plain) -> Reading {
        Reading { state: self.resealer.state(state.expose().clone()), metadata: None }
    }

    /// The metadata that a resource may state.
    pub(super) fn metadata(&self, found: Value) -> Option<Value> {
        let Value::Object(mut members) = found else { return None };
        members.retain(|name, _| {
            let reserved = is_reserved(name);
            if reserved {
                self.note(
                    TraceLevel::Warn,
                    &format!("Resource returned '_metadata' property '{name}' which is ignored"),
                );
            }
            !reserved
        });
        (!members.is_empty()).then_some(Value::Object(members))
    }

    pub(super) fn compared(&self, actual: Value) -> Tested {
        let differing = differing(&self.desired, &actual, &self.rules());
        Tested { in_desired_state: differing.is_empty(), actual, differing }
    }

    /// Refuses the next method once the run was cancelled.
    pub(super) fn proceed(&self) -> Result<(), Failure> {
        if self.cx.cancel.is_cancelled() {
            return Err(Failure::new(FailureKind::Cancelled, "the run was cancelled"));
        }
        Ok(())
    }

    pub(super) fn note(&self, level: TraceLevel, text: &str) {
        (self.cx.trace)(level, text);
    }

    pub(super) fn scrubbed(&self, failure: Failure) -> Failure {
        let property = failure.property.map(|property| self.resealer.text(&property));
        Failure { message: self.resealer.text(&failure.message), property, ..failure }
    }

    pub(super) fn scrubbed_names(&self, names: Vec<String>) -> Vec<String> {
        let known = |name: &String| member(&self.desired, name).is_some();
        names.into_iter().map(|name| if known(&name) { name } else { self.resealer.text(&name) }).collect()
    }

    /// Takes the form of the secrets that fits the resource, and checks that the whole does.
    pub(super) fn choose_input(&mut self, wrapped: Option<Plain>) -> Result<(), Failure> {
        let Some(wrapped) = wrapped else { return self.check_input() };
        let Some(schema) = &self.schema else {
            if self.provider.wants_wrapped_secrets() {
                self.input = wrapped;
            }
            return Ok(());
        };
        if schema.validate(wrapped.expose()).is_empty() {
            self.input = wrapped;
            return Ok(());
        }
        self.check_input()
    }

    fn check_input(&self) -> Result<(), Failure> {
        let Some(schema) = self.schema.as_deref().filter(|_| !self.input.expose().is_null() && self.checks_input())
        else {
            return Ok(());
        };
        failed(schema, self.input.expose(), FailureKind::Invalid, "").map_err(|failure| self.scrubbed(failure))
    }

    fn check_output(&self, state: &Json) -> Result<(), Failure> {
        // What is adapted answers by its adapter, which may add to what the properties can be.
        let adapted = matches!(self.call.manifest.implementation, Implementation::Adapted { .. });
        match self.schema.as_deref().filter(|_| self.call.manifest.kind == Kind::Resource && !adapted) {
            Some(schema) => failed(
                schema,
                state,
                FailureKind::Protocol,
                "the state that the resource reported does not fit its schema: ",
            ),
            None => Ok(()),
        }
    }
}

fn failed(schema: &Schema, value: &Json, kind: FailureKind, prefix: &str) -> Result<(), Failure> {
    let mismatches = schema.validate(value);
    let Some(first) = mismatches.first() else { return Ok(()) };
    let say = |mismatch: &Mismatch| match mismatch.pointer.as_str() {
        "" => mismatch.message.clone(),
        pointer => format!("{pointer}: {}", mismatch.message),
    };
    let message = format!("{prefix}{}", mismatches.iter().map(say).collect::<Vec<_>>().join("; "));
    Err(Failure { kind, message, property: Some(first.pointer.clone()).filter(|pointer| !pointer.is_empty()) })
}

pub(super) fn member<'v>(state: &'v Value, name: &str) -> Option<&'v Value> {
    state.as_object().and_then(|members: &Object| members.get(name))
}
