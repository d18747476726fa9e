//! The operations on one instance: get, test, set, delete and what-if.

use serde_json::Value as Json;
use stead_core::call::{Execution, Failure};
use stead_core::claims::{Claim, Extent};
use stead_core::diag::Severity;
use stead_core::diff::{Rules, differing, exists};
use stead_core::manifest::{Lane, ResourceKind};
use stead_core::planner::Method;
use stead_core::schema::Schema;
use stead_core::value::Value;
use stead_system::fs::{Identity, SystemPath};

use super::state::{bare, is_wrapped, listed, unequal};
use super::{CheckedResource, Checker, Depth, codes};
use crate::provider::{Asked, Context, MethodAnswer, State, TestReply};

impl Checker<'_> {
    pub(super) fn operations(&mut self, depth: Depth) {
        let can = self.subject.manifest.capabilities;
        if self.subject.manifest.kind == ResourceKind::Group && !can.test {
            let message = "the group has no 'test', and what 'get' answers cannot be compared with what is desired";
            self.error(&codes::NESTED, message, "add 'test', with \"return\": \"state\"");
        }
        let Some(before) = self.get("get") else { return };
        self.only_reads(&before);
        self.test(&before);
        self.alike(&before);
        self.together(&before);
        let predicted = if can.set_what_if && !self.deletes() { self.what_if(&before) } else { None };
        if can.delete_what_if && self.deletes() {
            self.delete_what_if(&before);
        }
        self.set_again(&before, Depth::Look);
        if depth == Depth::Set && (can.set || self.deletes()) {
            self.set(&before, predicted.as_ref());
            self.set_again(&before, Depth::Set);
        }
    }

    /// Returns whether the desired state is reached by `delete`.
    fn deletes(&self) -> bool {
        let can = self.subject.manifest.capabilities;
        let gone = Value::from(bare(&self.desired)).as_object().is_some_and(|state| !exists(state));
        gone && can.delete && !can.set_handles_exist
    }

    /// Returns whether its answers are results of nested instances, which are not compared with the properties.
    fn holds_others(&self) -> bool {
        matches!(self.subject.manifest.kind, ResourceKind::Group | ResourceKind::Importer)
    }

    fn test(&mut self, actual: &State) {
        if !self.subject.manifest.capabilities.test {
            return;
        }
        match self.subject.provider.test(&self.cx, &self.desired) {
            Ok(reply) => self.judge(&reply, actual),
            Err(failure) => self.failed("test", &failure),
        }
    }

    /// Checks that an adapter which takes several instances in one call answers for each of them what it answers for one.
    fn together(&mut self, alone: &State) {
        let CheckedResource { manifest, provider, .. } = self.subject;
        let Some(together) = manifest.batch().and_then(|_| provider.together()) else { return };
        let contexts = ["one", "another"].map(|name| Context { name: name.into(), ..self.cx.clone() });
        let (can, desired) = (manifest.capabilities, self.desired.clone());
        let asked = contexts.each_ref().map(|cx| Asked { type_name: &manifest.type_name, cx, input: &desired });
        for (method, what) in [(Method::Get, "get"), (Method::Test, "test")] {
            let is_there = if method == Method::Get { can.get } else { can.test };
            let answers = if is_there { together.answer_all(method, &asked) } else { Vec::new() };
            for answer in answers {
                match answer {
                    Ok(MethodAnswer::State(state)) => self.same(&format!("{what} of two instances"), &state, alone),
                    Ok(MethodAnswer::Test(reply)) => self.judge(&reply, alone),
                    Ok(MethodAnswer::Set(_) | MethodAnswer::Deleted(_)) => {}
                    Err(failure) => self.failed(&format!("{what} of two instances"), &failure),
                }
            }
        }
    }

    /// Checks that a second `get` answers the same: one that creates what it looks for does not.
    fn only_reads(&mut self, before: &State) {
        // Errors in its answer itself were reported the first time.
        let Ok(again) = self.subject.provider.get(&self.cx, &self.desired) else { return };
        let names = unequal(&bare(before), &bare(&again));
        if !names.is_empty() {
            let message = format!("a second get reports different values for {}", listed(&names));
            self.error(&codes::UNSTABLE, message, "get must not change anything");
        }
    }

    /// Checks that a program that stays answers as the one does that others call once for each operation.
    fn alike(&mut self, before: &State) {
        let Some(once) = self.subject.provider.called_once() else { return };
        let help = "the program that stays and the one that is called once must answer the same: dsc calls the latter";
        match once.get(&self.cx, &self.desired).map(|state| unequal(&bare(before), &bare(&state))) {
            Ok(names) if names.is_empty() => {}
            Ok(names) => {
                let message = format!("called once, get reports different values for {}", listed(&names));
                self.error(&codes::DISAGREE, message, help);
            }
            Err(failure) => self.failed("get, called once,", &failure),
        }
        if !self.subject.manifest.capabilities.test {
            return;
        }
        // What is wrong with the answer of the one that stays was reported before.
        let Ok(stays) = self.subject.provider.test(&self.cx, &self.desired) else { return };
        match once.test(&self.cx, &self.desired) {
            Ok(reply) if reply.verdict() == stays.verdict() => {}
            Ok(_) => self.error(&codes::DISAGREE, "called once, test has another verdict", help),
            Err(failure) => self.failed("test, called once,", &failure),
        }
    }

    /// Checks that a test states its verdict, in a property that the schema allows.
    fn verdict_stated(&mut self, reply: &TestReply, tested: &State) {
        let is_program = self.subject.manifest.lane() != Lane::InProcess;
        if reply.in_desired_state.is_none() && reply.differing.is_none() && !self.holds_others() && is_program {
            let message = "test reports a state without '_inDesiredState'";
            self.error(&codes::DISAGREE, message, "report \"_inDesiredState\": true or false");
        }
        // As it is when the resource is used: the verdict is a property that the schema must allow.
        let whole = tested.to_json();
        if whole.get("_inDesiredState").is_some() && self.schema.as_ref().is_some_and(|it| !allows_verdict(it)) {
            let message = "test reports '_inDesiredState', which the schema does not allow";
            let help =
                "add to its properties: \"_inDesiredState\": {\"type\": [\"boolean\", \"null\"], \"readOnly\": true}";
            self.error(&codes::STATE, message, help);
        }
    }

    fn judge(&mut self, reply: &TestReply, actual: &State) {
        if let Some(tested) = &reply.actual {
            self.reported("test", tested);
            self.verdict_stated(reply, tested);
            self.same("test", tested, actual);
        }
        if self.holds_others() {
            return;
        }
        let mut differ = self.differing(actual);
        if reply.in_desired_state == Some(true) {
            retain_reported(&mut differ, actual);
        }
        match reply.in_desired_state {
            Some(true) if !differ.is_empty() => {
                let message = format!("test says that the state is as desired, but these differ: {}", listed(&differ));
                self.error(&codes::DISAGREE, message, "");
            }
            Some(false) if differ.is_empty() && reply.unknown.is_none() => {
                let message = "test says that the state is not as desired, but get reports nothing that differs";
                self.error(&codes::DISAGREE, message, "report what it is, as a property");
            }
            _ => {}
        }
    }

    /// Compares two reports. A property that only one of them has is not a contradiction: `get` may look closer than
    /// the others do.
    fn same(&mut self, what: &str, one: &State, other: &State) {
        let (one, other) = (bare(one), bare(other));
        let mut names = unequal(&one, &other);
        names.retain(|name| one.get(name).is_some() && other.get(name).is_some());
        if !names.is_empty() {
            self.error(
                &codes::DISAGREE,
                format!("{what} reports different values than get for {}", listed(&names)),
                "",
            );
        }
    }

    /// The properties in which a state is not the desired one. What is secret is not compared: it need not be reported.
    pub(super) fn differing(&self, actual: &State) -> Vec<String> {
        if self.holds_others() {
            return Vec::new();
        }
        let mut desired = bare(&self.desired);
        if let Json::Object(members) = &mut desired {
            members.retain(|_, value| !is_wrapped(value));
        }
        let rules = Rules { schema: self.schema.as_deref().map(Schema::json), ..Rules::default() };
        differing(&Value::from(desired), &Value::from(bare(actual)), &rules)
    }

    /// Returns the state that a what-if foretells.
    fn what_if(&mut self, before: &State) -> Option<State> {
        let reply = self.subject.provider.set(&self.cx, &self.desired, Execution::WhatIf);
        let reply = reply.map_err(|failure| self.failed("what-if", &failure)).ok();
        let predicted = reply.and_then(|reply| reply.after);
        if let Some(after) = &predicted {
            self.reported("what-if", after);
        }
        self.unchanged("what-if", before);
        predicted
    }

    fn delete_what_if(&mut self, before: &State) {
        if let Err(failure) = self.subject.provider.delete(&self.cx, &self.desired, Execution::WhatIf) {
            self.failed("what-if of delete", &failure);
        }
        self.unchanged("what-if of delete", before);
    }

    fn unchanged(&mut self, operation: &str, before: &State) {
        let Some(after) = self.get(&format!("get after {operation}")) else { return };
        let names = unequal(&bare(before), &bare(&after));
        if !names.is_empty() {
            self.error(&codes::WHAT_IF, format!("{operation} changed {}", listed(&names)), "");
        }
    }

    /// Checks that the prediction of the desired properties is what the set reaches.
    fn comes_about(&mut self, predicted: &State, actual: &State) {
        let (predicted, actual, desired) = (bare(predicted), bare(actual), bare(&self.desired));
        let mut names = unequal(&predicted, &actual);
        // What a resource takes and never reports cannot be compared with what was predicted.
        let reported = |name: &String| actual.get(name).is_some() || !self.subject.manifest.capabilities.test;
        names.retain(|name| predicted.get(name).is_some() && desired.get(name).is_some() && reported(name));
        if !names.is_empty() && !self.holds_others() {
            let message = format!("what-if predicted something else than set reached: {}", listed(&names));
            self.error(&codes::DISAGREE, message, "");
        }
    }

    fn set(&mut self, before: &State, predicted: Option<&State>) {
        let claimed = self.claimed();
        let Some(first) = self.change("set") else { return };
        if !unequal(&bare(before), &bare(&first.state)).is_empty() {
            self.touches(&claimed);
        }
        let can_test = self.subject.manifest.capabilities.test;
        let tested = can_test.then(|| self.subject.provider.test(&self.cx, &self.desired));
        let mut differ = self.differing(&first.state);
        if let Some(Ok(TestReply { in_desired_state: Some(true), .. })) = tested {
            retain_reported(&mut differ, &first.state);
        }
        if !differ.is_empty() {
            self.error(&codes::NOT_SET, format!("after set, these are not as desired: {}", listed(&differ)), "");
            return;
        }
        if let Some(tested) = tested {
            self.tested_after_set(tested, &first.state);
        }
        if let Some(predicted) = predicted {
            self.comes_about(predicted, &first.state);
        }
        let Some(second) = self.change("the second set") else { return };
        let mut names = unequal(&bare(&first.state), &bare(&second.state));
        let reported = bare(&second.state);
        let tests = self.subject.manifest.capabilities.test;
        let said = second.said.into_iter().flatten();
        names.extend(said.filter(|name| !name.is_empty() && (reported.get(name).is_some() || !tests)));
        names.sort();
        names.dedup();
        if !names.is_empty() {
            self.error(&codes::NOT_IDEMPOTENT, format!("the second set changed {}", listed(&names)), "");
        }
    }

    /// The files that a program claims to manage, as they are now.
    fn claimed(&self) -> Vec<(SystemPath, Option<Identity>)> {
        // Records of accounts have paths that are none in a file system.
        let is_program = self.subject.manifest.lane() != Lane::InProcess;
        let claims = self.subject.provider.claims_there(&self.cx, &self.desired).filter(|_| is_program);
        let managed = |Claim::Path { path, extent }: Claim| {
            let at = matches!(extent, Extent::Whole | Extent::Absent).then(|| self.cx.resolve(&*path))?;
            let identity = at.status().map(|status| status.identity);
            Some((at, identity))
        };
        claims.unwrap_or_default().0.into_iter().filter_map(managed).collect()
    }

    /// Checks that a set changed what it claims: a claim keeps other instances from the path, and from beginning beside it.
    fn touches(&mut self, claimed: &[(SystemPath, Option<Identity>)]) {
        for (path, former) in claimed {
            if path.status().map(|status| status.identity) == *former {
                let message = format!("it claims '{}', where set changed nothing", path.display());
                self.error(
                    &codes::CLAIM,
                    message,
                    "claim what set creates, changes or removes, or add \"access\": \"reads\"",
                );
            }
        }
    }

    fn tested_after_set(&mut self, tested: Result<TestReply, Failure>, actual: &State) {
        match tested {
            Ok(reply) if reply.verdict() == Some(false) => {
                self.error(&codes::NOT_SET, "after set, test says that the state is not as desired", "");
            }
            Ok(reply) => self.judge(&reply, actual),
            Err(failure) => self.failed("test after set", &failure),
        }
    }

    /// Sets or deletes, and says what `get` reports afterwards and what was said to be changed.
    pub(super) fn change(&mut self, operation: &str) -> Option<Changed> {
        let reply = if self.deletes() {
            self.subject.provider.delete(&self.cx, &self.desired, Execution::Actual).map(|_| None)
        } else {
            self.subject.provider.set(&self.cx, &self.desired, Execution::Actual).map(Some)
        };
        let reply = reply.map_err(|failure| self.failed(operation, &failure)).ok()?;
        if reply.as_ref().is_some_and(|reply| reply.ignored) {
            let message = "set prints a state, and the manifest does not say so; it is ignored".to_owned();
            let help = "add \"return\": \"state\" to 'set', or print nothing";
            self.find(&codes::DISAGREE, Severity::Warning, message, help);
        }
        let state = self.get(&format!("get after {operation}"))?;
        let Some(reply) = reply else { return Some(Changed { state, said: None }) };
        if let Some(after) = &reply.after {
            self.reported(operation, after);
            self.same(operation, after, &state);
        }
        Some(Changed { state, said: reply.changed })
    }
}

/// Returns whether a schema allows the verdict of a test.
fn allows_verdict(schema: &Schema) -> bool {
    let schema = schema.json();
    let is_declared = schema.pointer("/properties/_inDesiredState").is_some();
    is_declared || !["additionalProperties", "unevaluatedProperties"].iter().any(|key| schema[key] == Json::Bool(false))
}

/// Leaves out what a resource takes and never reports, such as the command that tests: where it says itself that the state
/// is as desired, that is all that can be known of them.
fn retain_reported(differ: &mut Vec<String>, actual: &State) {
    let actual = bare(actual);
    differ.retain(|name| actual.get(name).is_some());
}

/// The outcome of a change.
pub(super) struct Changed {
    pub(super) state: State,
    said: Option<Vec<String>>,
}
