//! Setting and deleting, for real and in what-if.

use stead_core::call::{Answered, Changed, Execution, Failure, FailureKind, Outcome, Tested, Verification};
use stead_core::destruction::{Effect, Effects};
use stead_core::diff::{Rules, absence, differing, exists, overlaid};
use stead_core::manifest::Implementation;
use stead_core::value::{Object, Value};

use super::attempt::{Attempt, Reading, answered};
use crate::provider::SetReply;

/// How the desired state is brought about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Set,
    Delete,
}

impl Attempt<'_> {
    /// Brings about the desired state, or says what that would do.
    pub(super) fn set(&self) -> Result<Answered, Failure> {
        let way = self.way()?;
        match (self.call.execution, way) {
            (Execution::Actual, _) if self.found_in_state() => self.nothing_to_do(),
            (Execution::Actual, Way::Set) => self.really_set(),
            (Execution::Actual, Way::Delete) => self.really_delete(),
            (Execution::WhatIf, Way::Set) if self.has_own_what_if() => self.ask_what_if(),
            (Execution::WhatIf, Way::Delete) if self.capabilities().delete_what_if => self.ask_what_if_of_delete(),
            (Execution::WhatIf, Way::Set) if self.capabilities().implements_pretest => Err(Failure::new(
                FailureKind::Unsupported,
                "cannot process what-if execution type, as resource implements pre-test and does not support what-if",
            )),
            (Execution::WhatIf, _) => self.predict(),
        }
    }

    fn way(&self) -> Result<Way, Failure> {
        let capabilities = self.capabilities();
        let wanted = self.desired.as_object().is_none_or(exists);
        let unsupported = |message: &str| Err(Failure::new(FailureKind::Unsupported, message));
        match () {
            () if (wanted || capabilities.set_handles_exist) && capabilities.set => Ok(Way::Set),
            () if wanted => unsupported("the resource does not support 'set'"),
            () if capabilities.delete => Ok(Way::Delete),
            () => unsupported("the resource can neither delete nor set '_exist' to false"),
        }
    }

    fn found_in_state(&self) -> bool {
        self.call.tested.as_ref().is_some_and(|tested| tested.in_desired_state)
    }

    fn has_own_what_if(&self) -> bool {
        let deprecated = match &self.call.manifest.implementation {
            Implementation::Command(command) => command.what_if.is_some(),
            _ => false,
        };
        self.capabilities().set_what_if || deprecated
    }

    fn nothing_to_do(&self) -> Result<Answered, Failure> {
        let actual = self.before()?;
        Ok(answered_with(
            Changed {
                before: actual.state.clone(),
                after: actual.state,
                changed: None,
                what_if: Vec::new(),
                presumed: None,
                effects: Effects::default(),
                verified: Verification::InState,
            },
            actual.metadata,
        ))
    }

    /// The state before: what the test found, or what a get finds; null when the resource cannot tell.
    fn before(&self) -> Result<Reading, Failure> {
        match &self.call.tested {
            Some(tested) => Ok(Reading { state: tested.actual.clone(), metadata: None }),
            None if self.capabilities().get => self.read(),
            None => Ok(Reading { state: Value::Null, metadata: None }),
        }
    }

    fn really_set(&self) -> Result<Answered, Failure> {
        let before = self.before()?.state;
        self.proceed()?;
        let SetReply { after, changed, what_if, effects, .. } =
            self.provider.set(&self.cx, &self.input, Execution::Actual)?;
        let told = after.is_some();
        let after = match after {
            Some(after) => Some(self.reading(after)?),
            None if self.capabilities().get => Some(self.read()?),
            None => None,
        };
        let effects = effects.map_text(|text| self.resealer.text(text));
        let Some(after) = after else { return Ok(self.blindly_set(before, changed, effects)) };
        let changed =
            changed.map_or_else(|| changes_between(&before, &after.state), |names| self.scrubbed_names(names));
        let verified = self.verify(&after.state, told)?;
        let what_if = what_if.iter().map(|text| self.resealer.text(text)).collect();
        let (after, metadata) = (after.state, after.metadata);
        let changed = Changed { before, after, changed: Some(changed), what_if, presumed: None, effects, verified };
        Ok(answered_with(changed, metadata))
    }

    /// Nobody says what the state is now: the desired one is all that can be reported.
    fn blindly_set(&self, before: Value, changed: Option<Vec<String>>, effects: Effects) -> Answered {
        let after = overlaid(&before, &self.desired, &self.rules());
        let changed = changed.map_or_else(|| changes_between(&before, &after), |names| self.scrubbed_names(names));
        let verified = Verification::NotVerifiable;
        answered_with(
            Changed { before, after, changed: Some(changed), what_if: Vec::new(), presumed: None, effects, verified },
            None,
        )
    }

    /// Whether the desired state was reached. A state that a set only told is looked at again before it is held against
    /// the resource; a resource that judges by itself has the last word.
    fn verify(&self, after: &Value, told: bool) -> Result<Verification, Failure> {
        let (Value::Object(_), Value::Object(_)) = (&*self.desired, after) else {
            return Ok(Verification::NotVerifiable);
        };
        let compared = differing(&self.desired, after, &self.rules());
        let again = self.capabilities().test || (told && self.capabilities().get);
        if compared.is_empty() || !again {
            return Ok(verification(compared));
        }
        let Tested { in_desired_state, differing, .. } = self.tested()?.0;
        Ok(if in_desired_state { Verification::InState } else { Verification::Differs(differing) })
    }

    fn really_delete(&self) -> Result<Answered, Failure> {
        let before = self.before()?.state;
        if !before.as_object().is_none_or(exists) {
            let changed = Changed {
                after: before.clone(),
                before,
                changed: Some(Vec::new()),
                what_if: Vec::new(),
                presumed: None,
                effects: Effects::default(),
                verified: Verification::InState,
            };
            return Ok(answered_with(changed, None));
        }
        self.proceed()?;
        self.provider.delete(&self.cx, &self.input, Execution::Actual)?;
        if !self.capabilities().get {
            return Ok(self.blindly_set(before, None, Effects::of(Effect::Remove)));
        }
        let after = self.read()?;
        let gone = !after.state.as_object().is_none_or(exists);
        let verified = if gone { Verification::InState } else { Verification::Differs(vec!["_exist".to_owned()]) };
        let changed = Some(changes_between(&before, &after.state));
        let (what_if, presumed, effects) = (Vec::new(), None, Effects::of(Effect::Remove));
        let metadata = after.metadata;
        Ok(answered_with(
            Changed { before, after: after.state, changed, what_if, presumed, effects, verified },
            metadata,
        ))
    }

    fn ask_what_if(&self) -> Result<Answered, Failure> {
        let before = self.before()?.state;
        self.proceed()?;
        let reply = self.provider.set(&self.cx, &self.input, Execution::WhatIf)?;
        let after = match reply.after {
            Some(after) => self.reading(after)?,
            None => Reading { state: overlaid(&before, &self.desired, &self.rules()), metadata: None },
        };
        let (words, metadata) = what_if_words(after.metadata);
        let changed =
            reply.changed.map_or_else(|| changes_between(&before, &after.state), |names| self.scrubbed_names(names));
        let mut what_if: Vec<String> = reply.what_if.iter().map(|text| self.resealer.text(text)).collect();
        // The provider may have read them in the state already.
        what_if.extend(words.into_iter().filter(|word| !reply.what_if.contains(word)));
        let verified = Verification::NotVerifiable;
        let (presumed, effects) = (reply.presumed, reply.effects.map_text(|text| self.resealer.text(text)));
        let changed =
            Changed { before, after: after.state, changed: Some(changed), what_if, presumed, effects, verified };
        Ok(answered_with(changed, metadata))
    }

    fn ask_what_if_of_delete(&self) -> Result<Answered, Failure> {
        let before = self.before()?.state;
        self.proceed()?;
        let words = self.provider.delete(&self.cx, &self.input, Execution::WhatIf)?;
        let after = overlaid(&before, &self.desired, &self.rules());
        let changed = Some(changes_between(&before, &after));
        let what_if = words.iter().map(|text| self.resealer.text(text)).collect();
        let verified = Verification::NotVerifiable;
        let effects = if words.is_empty() { Effects::default() } else { Effects::of(Effect::Remove) };
        Ok(answered_with(Changed { before, after, changed, what_if, presumed: None, effects, verified }, None))
    }

    /// What a resource would do that cannot say so itself: what its test finds to differ.
    fn predict(&self) -> Result<Answered, Failure> {
        let of = &self.call.manifest.type_name;
        tracing::info!("'{of}' does not natively support what-if, engine will generate synthetic what-if");
        let (tested, metadata) = match &self.call.tested {
            Some(tested) => ((**tested).clone(), None),
            None => self.tested()?,
        };
        let before = tested.actual;
        let after = match absence(&self.desired) {
            Some(after) => after,
            None if tested.in_desired_state => before.clone(),
            None => overlaid(&before, &self.desired, &self.rules()),
        };
        let changed = (!tested.in_desired_state).then_some(tested.differing);
        let verified = Verification::NotVerifiable;
        let (what_if, presumed, effects) = (Vec::new(), None, Effects::default());
        Ok(answered_with(Changed { before, after, changed, what_if, presumed, effects, verified }, metadata))
    }
}

fn answered_with(changed: Changed, metadata: Option<Value>) -> Answered {
    answered(Outcome::Changed(Box::new(changed)), metadata)
}

fn verification(differing: Vec<String>) -> Verification {
    if differing.is_empty() { Verification::InState } else { Verification::Differs(differing) }
}

/// The properties of the later state that are not as before. Where nobody knows what was before, all may have changed.
fn changes_between(before: &Value, after: &Value) -> Vec<String> {
    let nothing = Value::Object(Object::new());
    let before = if *before == Value::Null { &nothing } else { before };
    differing(after, before, &Rules::default())
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
