//! Sets and deletions: what is read before and after them, and how their outcome is verified.

use std::sync::Arc;

use super::{
    Method, Planned, Planner, PlannerStep, Reading, SetReply, Stage, Unknown, changes_between, done, unchanged,
    unsupported,
};
use crate::call::{Changed, Execution, Failure, Outcome, Tested, Verification, Wanted};
use crate::destruction::{Effect, Effects};
use crate::diff::{differing, exists, overlaid};
use crate::value::Value;

impl Planner<'_> {
    /// Reaches the desired state, or says what that would do.
    pub(super) fn change(&mut self) -> Planned {
        let deletes = self.changes_by_delete()?;
        let capabilities = *self.capabilities();
        match (self.call.execution, deletes) {
            (Execution::Actual, _) if self.found_in_state() => Ok(self.nothing_to_do()),
            (Execution::Actual, false) => self.really_set(),
            (Execution::Actual, true) => self.really_delete(),
            (Execution::WhatIf, false) if self.has_what_if => self.ask_what_if(),
            (Execution::WhatIf, true) if capabilities.delete_what_if => self.ask_what_if_of_delete(),
            (Execution::WhatIf, false) if capabilities.implements_pretest => Err(unsupported(
                "cannot process what-if execution type, as resource implements pre-test and does not support what-if",
            )),
            (Execution::WhatIf, _) => self.predict(),
        }
    }

    fn changes_by_delete(&self) -> Result<bool, Failure> {
        let capabilities = self.capabilities();
        let wanted = self.desired.as_object().is_none_or(exists);
        match () {
            () if (wanted || capabilities.set_handles_exist) && capabilities.set => Ok(false),
            () if wanted => Err(unsupported(&format!("{}the resource does not support 'set'", self.what_differs()))),
            () if capabilities.delete => Ok(true),
            () => Err(unsupported("the resource can neither delete nor set '_exist' to false")),
        }
    }

    /// Describes up to three properties that the test found to differ, as the beginning of a sentence; empty if none are known.
    fn what_differs(&self) -> String {
        const MOST: usize = 3;
        let Some(tested) = &self.call.tested else { return String::new() };
        let differs = |name: &String| {
            let wanted = self.call.desired.get(name)?.to_redacted_json();
            let is =
                tested.actual.get(name).map_or_else(|| "not there".to_owned(), |is| is.to_redacted_json().to_string());
            Some(format!("'{name}' is {is}, not {wanted}; "))
        };
        tested.differing.iter().filter_map(differs).take(MOST).collect()
    }

    fn found_in_state(&self) -> bool {
        self.call.tested.as_ref().is_some_and(|tested| tested.in_desired_state)
    }

    fn nothing_to_do(&mut self) -> PlannerStep {
        let Reading { state, metadata } = self.before.take().unwrap_or_default();
        let changed =
            Changed { changed: None, verified: Verification::InState, ..unchanged(Arc::clone(&state), state) };
        done(Outcome::Changed(Box::new(changed)), metadata)
    }

    fn really_set(&mut self) -> Planned {
        if self.lacks_before_set() {
            return self.read(Stage::Before);
        }
        let Some(reply) = &mut self.set else { return Ok(PlannerStep::Invoke(Method::Set(Execution::Actual))) };
        if self.unknown == Some(Unknown::State) || self.call.wanted == Wanted::Answer {
            return Ok(self.blindly_set());
        }
        if let Some(after) = reply.after.take() {
            self.reported = true;
            self.after = Some(after);
        }
        let Some(after) = self.after.take() else {
            return if self.capabilities().get { self.read(Stage::After) } else { Ok(self.blindly_set()) };
        };
        let verified = match self.verify(&after.state, self.reported)? {
            Ok(verified) => verified,
            Err(step) => {
                self.after = Some(after);
                return Ok(step);
            }
        };
        let before = self.take_before();
        let SetReply { changed, what_if, effects, .. } = self.set.take().unwrap_or_default();
        let changed = Some(changed.unwrap_or_else(|| changes_between(&before, &after.state)));
        let changed = Changed { changed, what_if, effects, verified, ..unchanged(before, after.state) };
        Ok(done(Outcome::Changed(Box::new(changed)), after.metadata))
    }

    /// Nobody says what the state is now: the desired one is all that can be reported.
    fn blindly_set(&mut self) -> PlannerStep {
        let before = self.take_before();
        let mut after = overlaid(&before, self.desired, &self.rules);
        let removed = || SetReply { effects: Effects::of(Effect::Remove), ..SetReply::default() };
        let SetReply { changed, effects, after: reported, .. } = self.set.take().unwrap_or_else(removed);
        if let (Value::Object(after), Some(Value::Object(reported))) =
            (&mut after, reported.as_ref().map(|it| &*it.state))
        {
            after.extend(reported.clone());
        }
        let changed = Some(changed.unwrap_or_else(|| changes_between(&before, &after)));
        let changed = Changed { changed, effects, ..unchanged(before, after.into()) };
        done(Outcome::Changed(Box::new(changed)), None)
    }

    /// Compares the state after a set with the desired one. A state that a set only reported is read again before it
    /// counts against the resource; a resource that tests for itself decides.
    fn verify(&mut self, after: &Value, reported: bool) -> Result<Result<Verification, PlannerStep>, Failure> {
        let (Value::Object(_), Value::Object(_)) = (self.desired, after) else {
            return Ok(Ok(Verification::NotVerifiable));
        };
        let compared = differing(self.desired, after, &self.rules);
        let again = self.capabilities().test || (reported && self.capabilities().get);
        if compared.is_empty() || !again || self.unknown == Some(Unknown::Verdict) {
            return Ok(Ok(verification(compared)));
        }
        Ok(self.tested(Stage::Verify)?.map(|(tested, _)| match tested {
            Tested { in_desired_state: true, .. } => Verification::InState,
            Tested { unknown: Some(_), .. } => Verification::NotVerifiable,
            Tested { differing, .. } => Verification::Differs(differing),
        }))
    }

    fn really_delete(&mut self) -> Planned {
        if self.lacks_before() {
            return self.read(Stage::Before);
        }
        if let Some(before) = self.before.take_if(|before| !before.state.as_object().is_none_or(exists)) {
            let changed = Changed {
                changed: Some(Vec::new()),
                verified: Verification::InState,
                ..unchanged(Arc::clone(&before.state), before.state)
            };
            return Ok(done(Outcome::Changed(Box::new(changed)), None));
        }
        if self.deleted.is_none() {
            return Ok(PlannerStep::Invoke(Method::Delete(Execution::Actual)));
        }
        if !self.reads_states() || self.unknown == Some(Unknown::State) {
            return Ok(self.blindly_set());
        }
        let Some(after) = self.after.take() else { return self.read(Stage::After) };
        let gone = !after.state.as_object().is_none_or(exists);
        let verified = if gone { Verification::InState } else { Verification::Differs(vec!["_exist".to_owned()]) };
        let before = self.take_before();
        let (changed, effects) = (Some(changes_between(&before, &after.state)), Effects::of(Effect::Remove));
        let changed = Changed { changed, effects, verified, ..unchanged(before, after.state) };
        Ok(done(Outcome::Changed(Box::new(changed)), after.metadata))
    }

    /// Removes the instance without a look. In what-if a resource that cannot say what it would do is not called at all.
    pub(super) fn remove(&mut self) -> Planned {
        let capabilities = self.capabilities();
        if !capabilities.delete {
            return Err(unsupported("the resource does not support 'delete'"));
        }
        let silent = self.call.execution == Execution::WhatIf && !capabilities.delete_what_if;
        if silent {
            self.deleted = Some(Vec::new());
        }
        match self.deleted.take() {
            Some(words) => Ok(done(Outcome::Deleted(words), None)),
            None => Ok(PlannerStep::Invoke(Method::Delete(self.call.execution))),
        }
    }
}

fn verification(differing: Vec<String>) -> Verification {
    if differing.is_empty() { Verification::InState } else { Verification::Differs(differing) }
}
