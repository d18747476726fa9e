//! Answers of programs: what the operation expects is read in their output.

use std::time::Duration;

use serde_json::Value as Json;
use stead_core::call::{Execution, Exported, Failure, Pending};
use stead_core::manifest::{ProgramCall, ResourceKind, Returns};
use stead_core::value::Value;

use super::invoke::{Printed, UNKNOWN};
use super::output::Expected;
use super::{CommandProvider, shape};

/// One operation.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) operation: &'static str,
    pub(super) method: &'a ProgramCall,
    pub(super) execution: Execution,
    /// `None` when the output means nothing.
    pub(super) expected: Option<Expected>,
}

/// The answer of a program.
#[derive(Default)]
pub(super) struct Answer {
    pub(super) state: Option<Json>,
    /// `_inDesiredState`, which an adapter that takes documents may state beside the instances.
    pub(super) verdict: Option<Json>,
    pub(super) differing: Option<Vec<String>>,
    pub(super) exported: Vec<Exported>,
}

impl<'a> Request<'a> {
    pub(super) fn new(operation: &'static str, method: &'a ProgramCall, execution: Execution) -> Self {
        let returns = match execution {
            Execution::WhatIf => method.what_if_returns.or(method.returns),
            Execution::Actual => method.returns,
        };
        let expected = returns.map(|returns| match returns {
            Returns::State => Expected::Values(1),
            Returns::StateAndDiff => Expected::Values(2),
        });
        Self { operation, method, execution, expected }
    }

    pub(super) fn expecting(self, expected: Expected) -> Self {
        Self { expected: Some(expected), ..self }
    }

    pub(super) fn understand(&self, provider: &CommandProvider, printed: &Printed) -> Result<Answer, Failure> {
        let Some(expected) = printed.holds(self.expected) else { return Ok(Answer::default()) };
        let values = printed.read(expected)?;
        if expected == Expected::Lines {
            let whole = provider.manifest.kind == ResourceKind::Exporter;
            let exported = shape::exported(provider.shape, whole, values);
            let exported = exported.map_err(|what| printed.unexpected(what))?;
            return Ok(Answer { exported, ..Answer::default() });
        }
        let mut values = values.into_iter();
        let Some(state) = values.next() else { return Ok(Answer::default()) };
        let beside = verdict(&state);
        let state = provider.shape.unwrap(state).map_err(|what| printed.unexpected(what))?;
        let nested = provider.manifest.kind != ResourceKind::Resource && state.is_array();
        if !state.is_object() && !nested {
            return Err(printed.unexpected("the state must be an object"));
        }
        let differing = values.next().map(|names| strings(&names));
        if differing == Some(None) {
            return Err(printed.unexpected("the second line must be an array of names"));
        }
        let verdict = beside.or_else(|| verdict(&state));
        Ok(Answer { state: Some(state), verdict, differing: differing.flatten(), ..Answer::default() })
    }

    /// Reads the answer of a program to a test.
    ///
    /// Without `return` the output is what the documentation of DSC says is the default, `state`, where it has a
    /// verdict; anything else that it prints means nothing. Its exit code counts in any case.
    pub(super) fn understand_test(self, provider: &CommandProvider, printed: &Printed) -> Result<Answer, Failure> {
        let reports = printed.holds(self.expected).is_some();
        let request = if reports { self } else { self.expecting(Expected::Values(1)) };
        let answer = match request.understand(provider, printed) {
            Err(_) if !reports => Answer::default(),
            answer => answer?,
        };
        match &answer {
            Answer { verdict: Some(verdict), .. } if !verdict.is_boolean() => {
                Err(printed.unexpected("'_inDesiredState' must be true or false"))
            }
            Answer { verdict: None, state: Some(state), .. } => match misspelt_verdict(state) {
                Some(name) => Err(printed.unexpected(&format!("'{name}' must be named '_inDesiredState'"))),
                // The results of a group contain their own verdicts.
                None if reports || state.is_array() => Ok(answer),
                None => Ok(Answer::default()),
            },
            _ => Ok(answer),
        }
    }
}

/// The name of a property that is evidently meant as the verdict of a test.
fn misspelt_verdict(state: &Json) -> Option<&str> {
    let is_verdict = |name: &str| name.replace('_', "").eq_ignore_ascii_case("inDesiredState");
    let (name, _) = state.as_object()?.iter().find(|(name, value)| value.is_boolean() && is_verdict(name))?;
    Some(name)
}

fn verdict(state: &Json) -> Option<Json> {
    state.get("_inDesiredState").cloned()
}

fn strings(json: &Json) -> Option<Vec<String>> {
    json.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

/// `_metadata.whatIf` of an answer: what would be done, in words.
pub(super) fn what_if_words(state: Option<&Json>) -> Vec<String> {
    let words = state.and_then(|state| state.pointer("/_metadata/whatIf"));
    match words {
        Some(Json::String(word)) => vec![word.clone()],
        Some(words) => strings(words).unwrap_or_default(),
        None => Vec::new(),
    }
}

/// Takes the reason for which the resource cannot tell out of a state, as `_metadata.stead.unknown` says it.
pub(super) fn take_unknown(state: &mut Json) -> Result<Option<String>, &'static str> {
    match take(state, UNKNOWN) {
        Some(Json::String(why)) if !why.trim().is_empty() => Ok(Some(why)),
        None | Some(Json::Null) => Ok(None),
        Some(_) => Err("'unknown' must say why, in a text"),
    }
}

/// Takes a member of `_metadata.stead` out of a state; of what is empty then nothing stays.
pub(super) fn take(state: &mut Json, pointer: &str) -> Option<Json> {
    let (place, name) = pointer.rsplit_once('/')?;
    let members = state.pointer_mut(place)?.as_object_mut()?;
    let taken = members.remove(name)?;
    if members.is_empty() {
        let metadata = state.get_mut("_metadata")?.as_object_mut()?;
        metadata.remove("stead");
        if metadata.is_empty() {
            state.as_object_mut()?.remove("_metadata");
        }
    }
    Some(taken)
}

/// An answer that is still working, as `_metadata.stead.pending` says it.
pub(super) fn pending(stated: &Json) -> Result<Pending, &'static str> {
    let message = stated.get("message").and_then(Json::as_str).ok_or("'pending' requires 'message', a text")?;
    let after = stated.get("after").filter(|after| !after.is_null());
    let seconds = after.and_then(Json::as_f64).filter(|seconds| Duration::try_from_secs_f64(*seconds).is_ok());
    if after.is_some() && seconds.is_none() {
        return Err("'after' of 'pending' must be a time in seconds");
    }
    let data = stated.get("data").filter(|data| !data.is_null()).cloned().map(Value::from);
    Ok(Pending { message: message.to_owned(), data, after: seconds })
}
