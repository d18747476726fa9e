//! Whether a resource keeps to what is expected of resources: a check for those who write one.
//!
//! The resource is called as it would be for an instance, and what it says is compared with itself and with what comes
//! of it. It goes below [`crate::operate`], which makes up for a good deal of what is looked for here.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value as Json};
use stead_core::call::{Execution, Failure, FailureKind};
use stead_core::diag::{Code, Diagnostic, Severity};
use stead_core::diff::{Rules, differing, exists};
use stead_core::manifest::{Implementation, Manifest};
use stead_core::schema::Schema;
use stead_core::value::{REDACTED, Value};

use crate::provider::{Context, Plain, Provider, State, TestReply, Trace};

/// Codes of findings about resources.
pub mod codes {
    stead_core::codes! {
        SCHEMA = "E0901", "the resource has no usable schema", "\
Every resource describes its properties with a JSON Schema, embedded in the manifest or printed by a command. Editors
complete by it, mistakes are found before anything runs, and it says which properties are secret or can only be read.";

        OPERATION = "E0902", "an operation of the resource failed", "\
The check called the resource with a desired state that its schema allows, so that every operation it names has to
work. The message says what the program said.";

        WHAT_IF = "E0903", "what-if changes something", "\
A program that takes a `whatIfArg` has to do nothing but say what it would do. `get` answered otherwise afterwards. People
run what-if on machines that must not change: leave the argument out of the manifest rather than ignore it.";

        NOT_SET = "E0904", "set does not bring about the desired state", "\
After `set` ended well, `get` or `test` say that the state is not the desired one. A `set` that cannot reach it has to
fail, with a text on standard error and an exit code that is not 0.";

        NOT_IDEMPOTENT = "E0905", "set changes something the second time", "\
`set` was called twice with the same desired state. The second call found it in place, and all the same changed the
state, or said that it changed something. A document is applied again and again; only what differs may be touched.";

        DISAGREE = "E0906", "operations of the resource contradict each other", "\
`get`, `test` and `set` report one state, and a `test` that judges by itself has to judge that state. What differs
between them looks like drift that is none, or hides drift that is.";

        SECRET = "E0907", "a secret comes back", "\
What comes as `{\"secureString\": ..}` or `{\"secureObject\": ..}` is not to be printed again, neither in a state nor in a
message. stead covers what it recognizes, but other engines, logs and lists of processes do not.";

        EXIT_CODE = "E0908", "an exit code is not declared", "\
`exitCodes` of the manifest says what each exit code means, so that whoever reads a message need not read the program.
0 is success; declare every other code that a program of the resource can end with.";

        STATE = "E0909", "the state does not fit the schema", "\
What a resource reports is checked by the schema as what it is handed: a property that is not declared, or of another
type, ends the run of the instance. Mark what can only be read as `readOnly` and declare it all the same.";
    }
}

/// Whether the check may change the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Depth {
    /// Only `get`, `test` and what-if are called.
    Look,
    /// `set` or `delete` are called as well.
    Set,
}

/// A resource to be checked.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// What it says of itself.
    pub manifest: &'a Manifest,
    /// What carries it out.
    pub provider: &'a dyn Provider,
    /// Its schema, for a provider that checks by itself and hands out none.
    pub schema: Option<&'a Json>,
}

/// Calls a resource with a desired state, and says in what it does not keep to what is expected.
///
/// Guarantees: with [`Depth::Look`] nothing is called that is meant to change anything. No finding quotes a value of the
/// state: it may be secret.
pub fn check(subject: Subject<'_>, cx: &Context, desired: &Json, depth: Depth) -> Vec<Diagnostic> {
    let heard = Arc::<Mutex<Vec<String>>>::default();
    let mut checker = Checker {
        subject,
        cx: Context { trace: listening(cx, &heard), ..cx.clone() },
        desired: Plain::new(desired.clone()),
        schema: None,
        secrets: Vec::new(),
        found: Vec::new(),
    };
    collect_secrets(desired, &mut checker.secrets);
    checker.exit_codes_declared();
    if checker.schema_usable() {
        checker.operations(depth);
    }
    let heard = heard.lock().unwrap_or_else(PoisonError::into_inner).clone();
    checker.listen(&heard);
    checker.found
}

fn listening(cx: &Context, heard: &Arc<Mutex<Vec<String>>>) -> Trace {
    let (further, heard) = (Arc::clone(&cx.trace), Arc::clone(heard));
    Arc::new(move |level, text: &str| {
        heard.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
        further(level, text);
    })
}

struct Checker<'a> {
    subject: Subject<'a>,
    cx: Context,
    desired: Plain,
    schema: Option<Arc<Schema>>,
    /// The texts that are not to come back.
    secrets: Vec<String>,
    found: Vec<Diagnostic>,
}

impl Checker<'_> {
    fn error(&mut self, code: Code, message: impl Into<String>, help: &str) {
        self.find(code, Severity::Error, message.into(), help);
    }

    fn find(&mut self, code: Code, severity: Severity, message: String, help: &str) {
        let finding = Diagnostic {
            code,
            severity,
            message,
            span: None,
            labels: Vec::new(),
            help: Some(help.to_owned()).filter(|help| !help.is_empty()),
            fix: None,
        };
        if !self.found.contains(&finding) {
            self.found.push(finding);
        }
    }

    fn exit_codes_declared(&mut self) {
        let Implementation::Command(command) = &self.subject.manifest.implementation else { return };
        if command.exit_codes.keys().all(|code| *code == 0) {
            let message = "the manifest declares no exit codes of failures".to_owned();
            self.find(&codes::EXIT_CODE, Severity::Warning, message, "add 'exitCodes': {\"1\": \"what 1 means\"}");
        }
    }

    /// Whether there is a schema, and it allows the desired state: without that, what follows would prove nothing.
    fn schema_usable(&mut self) -> bool {
        let own = self.subject.schema.map(|schema| Schema::compile(schema.clone()).map(Arc::new));
        let own = own.transpose().map_err(|error| Failure::new(FailureKind::Protocol, error.to_string()));
        match own.and_then(|own| Ok(own.or(self.subject.provider.schema(&self.cx)?))) {
            Ok(Some(schema)) => self.schema = Some(schema),
            Ok(None) => self.error(&codes::SCHEMA, "there is no schema", "add 'schema' to the manifest"),
            Err(failure) => self.error(&codes::SCHEMA, failure.message.trim_end(), ""),
        }
        let Some(schema) = self.schema.clone() else { return false };
        let mismatches = schema.validate(self.desired.expose());
        for each in &mismatches {
            let place = if each.pointer.is_empty() { "the whole" } else { &each.pointer };
            let message =
                format!("the schema does not allow the desired state of the check: {place}: {}", each.message);
            self.error(&codes::SCHEMA, message, "mend the schema, or hand in another state with --input");
        }
        mismatches.is_empty()
    }

    fn operations(&mut self, depth: Depth) {
        let Some(before) = self.get("get") else { return };
        self.test(&before);
        if self.subject.manifest.capabilities.set_what_if {
            self.what_if(&before);
        }
        if depth == Depth::Set && self.subject.manifest.capabilities.set {
            self.set();
        }
    }

    fn failed(&mut self, operation: &str, failure: &Failure) {
        let declared = match &self.subject.manifest.implementation {
            Implementation::Command(command) => Some(&command.exit_codes),
            _ => None,
        };
        match failure.kind {
            FailureKind::Exit(code) if declared.is_some_and(|codes| !codes.contains_key(&code)) => {
                let message = format!("{operation} ended with the exit code {code}, which is not declared");
                self.error(&codes::EXIT_CODE, message, "say in 'exitCodes' what it means");
            }
            _ => {}
        }
        let message = format!("{operation} failed: {}", failure.message.trim_end());
        self.error(&codes::OPERATION, message, "");
    }

    fn get(&mut self, operation: &str) -> Option<State> {
        match self.subject.provider.get(&self.cx, &self.desired) {
            Ok(state) => {
                self.reported(operation, &state);
                Some(state)
            }
            Err(failure) => {
                self.failed(operation, &failure);
                None
            }
        }
    }

    /// What holds for every state that is reported, whoever reports it.
    fn reported(&mut self, operation: &str, state: &State) {
        let state = bare(state);
        let mismatches = self.schema.as_ref().map(|schema| schema.validate(&state)).unwrap_or_default();
        for each in mismatches {
            let place = if each.pointer.is_empty() { "the whole" } else { &each.pointer };
            let message =
                format!("the state that {operation} reports does not fit the schema: {place}: {}", each.message);
            self.error(&codes::STATE, message, "");
        }
        if self.secrets.iter().any(|secret| holds(&state, secret)) {
            self.error(&codes::SECRET, format!("{operation} reports a secret that it was handed"), "leave it out");
        }
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

    fn judge(&mut self, reply: &TestReply, actual: &State) {
        if let Some(tested) = &reply.actual {
            self.reported("test", tested);
            self.same("test reports these otherwise than get", tested, actual);
        }
        let differ = self.differing(actual);
        match reply.in_desired_state {
            Some(true) if !differ.is_empty() => {
                let message = format!("test says that the state is as desired, but these differ: {}", listed(&differ));
                self.error(&codes::DISAGREE, message, "");
            }
            Some(false) if differ.is_empty() => {
                let message = "test says that the state is not as desired, but get reports nothing that differs";
                self.error(&codes::DISAGREE, message, "report what it is, as a property");
            }
            _ => {}
        }
    }

    /// What only one of them reports is no contradiction: `get` may look closer than the others need to.
    fn same(&mut self, what: &str, one: &State, other: &State) {
        let (one, other) = (bare(one), bare(other));
        let mut names = unequal(&one, &other);
        names.retain(|name| one.get(name).is_some() && other.get(name).is_some());
        if !names.is_empty() {
            self.error(&codes::DISAGREE, format!("{what}: {}", listed(&names)), "");
        }
    }

    /// The properties in which a state is not the desired one. What is secret is not compared: it need not be reported.
    fn differing(&self, actual: &State) -> Vec<String> {
        let mut desired = bare(&self.desired);
        if let Json::Object(members) = &mut desired {
            members.retain(|_, value| !is_wrapped(value));
        }
        let rules = Rules { schema: self.schema.as_deref().map(Schema::json), ..Rules::default() };
        differing(&Value::from(desired), &Value::from(bare(actual)), &rules)
    }

    fn what_if(&mut self, before: &State) {
        match self.subject.provider.set(&self.cx, &self.desired, Execution::WhatIf) {
            Ok(reply) => {
                if let Some(after) = &reply.after {
                    self.reported("what-if", after);
                }
            }
            Err(failure) => self.failed("what-if", &failure),
        }
        let Some(after) = self.get("get after what-if") else { return };
        let names = unequal(&bare(before), &bare(&after));
        if !names.is_empty() {
            self.error(&codes::WHAT_IF, format!("what-if changed {}", listed(&names)), "");
        }
    }

    fn set(&mut self) {
        let Some(first) = self.change("set") else { return };
        let differ = self.differing(&first.state);
        if !differ.is_empty() {
            self.error(&codes::NOT_SET, format!("after set, these are not as desired: {}", listed(&differ)), "");
            return;
        }
        self.test_after_set(&first.state);
        let Some(second) = self.change("the second set") else { return };
        let mut names = unequal(&bare(&first.state), &bare(&second.state));
        names.extend(second.said.into_iter().flatten().filter(|name| !name.is_empty()));
        names.sort();
        names.dedup();
        if !names.is_empty() {
            self.error(&codes::NOT_IDEMPOTENT, format!("the second set changed {}", listed(&names)), "");
        }
    }

    fn test_after_set(&mut self, actual: &State) {
        if !self.subject.manifest.capabilities.test {
            return;
        }
        match self.subject.provider.test(&self.cx, &self.desired) {
            Ok(TestReply { in_desired_state: Some(false), .. }) => {
                self.error(&codes::NOT_SET, "after set, test says that the state is not as desired", "");
            }
            Ok(reply) => self.judge(&reply, actual),
            Err(failure) => self.failed("test after set", &failure),
        }
    }

    /// Sets or deletes, and says what `get` reports afterwards and what was said to be changed.
    fn change(&mut self, operation: &str) -> Option<Changed> {
        let can = self.subject.manifest.capabilities;
        let gone = Value::from(bare(&self.desired)).as_object().is_some_and(|state| !exists(state));
        let reply = if gone && can.delete && !can.set_handles_exist {
            self.subject.provider.delete(&self.cx, &self.desired, Execution::Actual).map(|_| None)
        } else {
            self.subject.provider.set(&self.cx, &self.desired, Execution::Actual).map(Some)
        };
        let reply = reply.map_err(|failure| self.failed(operation, &failure)).ok()?;
        let state = self.get(&format!("get after {operation}"))?;
        let Some(reply) = reply else { return Some(Changed { state, said: None }) };
        if let Some(after) = &reply.after {
            self.reported(operation, after);
            self.same(&format!("{operation} reports these otherwise than get"), after, &state);
        }
        Some(Changed { state, said: reply.changed })
    }

    /// Whether any message held a secret. What is recognized has been covered by now, which is as telling.
    fn listen(&mut self, heard: &[String]) {
        let told = |text: &String| text.contains(REDACTED) || self.secrets.iter().any(|secret| text.contains(secret));
        if !self.secrets.is_empty() && heard.iter().any(told) {
            self.error(&codes::SECRET, "a message holds a secret that the resource was handed", "leave it out");
        }
    }
}

/// What came of a change.
struct Changed {
    state: State,
    said: Option<Vec<String>>,
}

/// What of a state is about the instance, and not for the engine.
fn bare(state: &State) -> Json {
    let mut state = state.expose().clone();
    if let Json::Object(members) = &mut state {
        members.retain(|name, _| !["_inDesiredState", "_metadata", "_restartRequired"].contains(&name.as_str()));
    }
    state
}

/// The names of the members that two states do not share, in order.
fn unequal(one: &Json, other: &Json) -> Vec<String> {
    let none = Map::new();
    let [one, other] = [one, other].map(|state| state.as_object().unwrap_or(&none));
    let mut names: Vec<String> =
        one.keys().chain(other.keys()).filter(|name| one.get(*name) != other.get(*name)).cloned().collect();
    names.sort();
    names.dedup();
    names
}

fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

fn is_wrapped(value: &Json) -> bool {
    let members = value.as_object().filter(|members| members.len() == 1);
    members.is_some_and(|members| members.keys().any(|key| key == "secureString" || key == "secureObject"))
}

/// Shorter texts occur in what is none of the secret.
const SHORTEST: usize = 4;

/// Every text below a wrapping.
fn collect_secrets(json: &Json, secrets: &mut Vec<String>) {
    match json {
        Json::Array(items) => items.iter().for_each(|item| collect_secrets(item, secrets)),
        Json::Object(members) if is_wrapped(json) => members.values().for_each(|value| texts(value, secrets)),
        Json::Object(members) => members.values().for_each(|value| collect_secrets(value, secrets)),
        _ => {}
    }
}

fn texts(json: &Json, found: &mut Vec<String>) {
    match json {
        Json::String(text) if text.len() >= SHORTEST => found.push(text.clone()),
        Json::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Json::Object(members) => members.values().for_each(|value| texts(value, found)),
        _ => {}
    }
}

fn holds(state: &Json, secret: &str) -> bool {
    match state {
        Json::String(text) => text.contains(secret),
        Json::Array(items) => items.iter().any(|item| holds(item, secret)),
        Json::Object(members) => members.values().any(|value| holds(value, secret)),
        _ => false,
    }
}
