//! What a set would do: asked of the resource, or predicted from what its test finds.

use std::sync::Arc;

use super::{Method, Planned, Planner, PlannerStep, Reading, SetReply, Stage, changes_between, done, unchanged};
use crate::call::{Changed, Execution, Outcome, Prediction};
use crate::destruction::{Effect, Effects};
use crate::diff::{Existence, absence, overlaid};
use crate::value::Value;

impl Planner<'_> {
    pub(super) fn ask_what_if(&mut self) -> Planned {
        if self.lacks_before_set() {
            return self.read(Stage::Before);
        }
        if self.set.is_none() {
            return Ok(PlannerStep::Invoke(Method::Set(Execution::WhatIf)));
        }
        // It changed nothing: what the answer does not say was there still is.
        if self.lacks_before() {
            return self.read(Stage::Before);
        }
        let reply = self.set.take().unwrap_or_default();
        let before = self.take_before();
        let overlaid = || Reading { state: overlaid(&before, self.desired, &self.rules).into(), metadata: None };
        let after = reply.after.unwrap_or_else(overlaid);
        let (words, metadata) = what_if_words(after.metadata);
        let changed = reply.changed.unwrap_or_else(|| changes_between(&before, &after.state));
        let mut what_if = reply.what_if;
        // The provider may have read them in the state already.
        what_if.extend(words.into_iter().filter(|word| !what_if.contains(word)).collect::<Vec<_>>());
        let SetReply { unknown, presumed, effects, .. } = reply;
        let changed = Some(changed);
        let changed = Changed { changed, what_if, unknown, presumed, effects, ..unchanged(before, after.state) };
        Ok(done(Outcome::Changed(Box::new(changed)), metadata))
    }

    pub(super) fn ask_what_if_of_delete(&mut self) -> Planned {
        if self.lacks_before() {
            return self.read(Stage::Before);
        }
        let Some(what_if) = self.deleted.take() else {
            return Ok(PlannerStep::Invoke(Method::Delete(Execution::WhatIf)));
        };
        let before = self.take_before();
        let after = overlaid(&before, self.desired, &self.rules);
        let changed = Some(changes_between(&before, &after));
        let effects = if what_if.is_empty() { Effects::default() } else { Effects::of(Effect::Remove) };
        let changed = Changed { changed, what_if, effects, ..unchanged(before, after.into()) };
        Ok(done(Outcome::Changed(Box::new(changed)), None))
    }

    /// Predicts the set of a resource that cannot do so itself, from the differences that its test finds.
    pub(super) fn predict(&mut self) -> Planned {
        let (tested, metadata) = match &self.call.tested {
            Some(tested) => ((**tested).clone(), None),
            None => match self.tested(Stage::Test)? {
                Ok(found) => found,
                Err(step) => return Ok(step),
            },
        };
        let before = tested.actual;
        let after = match absence(self.desired) {
            Some(after) => after.into(),
            None if tested.in_desired_state => Arc::clone(&before),
            None => overlaid(&before, self.desired, &self.rules).into(),
        };
        // Where the state is unknown, the verdict alone tells that something changes.
        let named = |names: Vec<String>| if names.is_empty() { changes_between(&before, &after) } else { names };
        let changed = (!tested.in_desired_state).then(|| named(tested.differing));
        let changed = Changed { changed, unknown: tested.unknown, ..unchanged(before, after) };
        Ok(done(Outcome::Changed(Box::new(changed)), metadata))
    }

    /// Adds what the states alone do not tell of a resource of PowerShell: whether an instance is created or removed, and the state
    /// that a set comes to, whose names may be written otherwise than those of the desired one.
    pub(super) fn with_effect(&self, mut step: PlannerStep) -> PlannerStep {
        let PlannerStep::Done(response) = &mut step else { return step };
        match &mut response.outcome {
            Outcome::Changed(changed) if changed.effects.effect.is_none() => {
                changed.effects.effect = self.effect(&changed.before, &changed.after);
            }
            Outcome::Tested(tested)
                if !tested.in_desired_state && tested.predicted.is_none() && self.call.manifest.is_powershell() =>
            {
                let after = Arc::new(overlaid(&tested.actual, self.desired, &self.rules));
                let effect = self.effect(&tested.actual, self.desired);
                let effects = Effects { effect, ..Effects::default() };
                let prediction = Prediction { after, effects, words: Vec::new(), once: Vec::new() };
                Arc::make_mut(tested).predicted = Some(Box::new(prediction));
            }
            _ => {}
        }
        step
    }

    fn effect(&self, before: &Value, after: &Value) -> Option<Effect> {
        let existence = self.call.manifest.existence;
        let is_there = |state: &Value| state.as_object().is_none_or(|state| existence.holds(state));
        match (existence, is_there(before), is_there(after)) {
            (Existence::Ensure, false, true) => Some(Effect::Create),
            (Existence::Ensure, true, false) => Some(Effect::Remove),
            (Existence::Exist | Existence::Ensure, ..) => None,
        }
    }
}

/// `whatIf` of the metadata, apart from the rest of it.
fn what_if_words(metadata: Option<Value>) -> (Vec<String>, Option<Value>) {
    let Some(Value::Object(mut members)) = metadata else { return (Vec::new(), metadata) };
    let words = match members.remove("whatIf") {
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::String(word)) => vec![word],
        _ => Vec::new(),
    };
    (words, (!members.is_empty()).then_some(Value::Object(members)))
}
