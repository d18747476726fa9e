//! A check of resources against what is expected of them, for those who write one.
//!
//! The resource is called as it would be for an instance, and what it says is compared with itself and with what
//! comes of it. It goes below [`crate::operate`], which makes up for a good deal of what is looked for here.

mod adapter;
pub mod codes;
mod export;
mod former;
mod importer;
mod operations;
mod state;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value as Json;
use stead_core::call::{Failure, FailureKind};
use stead_core::diag::{Code, Diagnostic, Severity};
use stead_core::manifest::{Implementation, Manifest, ResourceKind};
use stead_core::schema::Schema;
use stead_core::value::REDACTED;

use crate::provider::{Context, Plain, Provider, State, Trace};
use state::{bare, collect_secrets, holds, unanswered};

pub use adapter::check_list;
pub use export::{ExportTypes, Listed, Question, check_export};
pub use importer::check_resolve;

/// The choice between a check that only reads and one that may change the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Depth {
    /// Only `get`, `test` and what-if are called.
    Look,
    /// `set` or `delete` are called as well.
    Set,
}

/// A resource to be checked.
#[derive(Clone, Copy)]
pub struct CheckedResource<'a> {
    /// The manifest of the resource.
    pub manifest: &'a Manifest,
    /// The provider of the resource.
    pub provider: &'a dyn Provider,
    /// Its schema, for a provider that checks by itself and hands out none.
    pub schema: Option<&'a Json>,
}

/// Calls a resource, an adapted one or a group with a desired state, and says in what it does not keep to what is
/// expected.
///
/// Guarantees: with [`Depth::Look`] nothing is called that is meant to change anything. No finding quotes a value of the
/// state: it may be secret.
pub fn check(subject: CheckedResource<'_>, cx: &Context, desired: &Json, depth: Depth) -> Vec<Diagnostic> {
    examine(subject, cx, &[desired], |checker| {
        checker.desired = Plain::new(desired.clone());
        if checker.schema_usable() && checker.allows_desired() {
            checker.operations(depth);
        }
    })
}

/// Asks what `questions` asks, with an ear on what is said meanwhile. `handed` is all that may hold secrets.
fn examine(
    subject: CheckedResource<'_>,
    cx: &Context,
    handed: &[&Json],
    questions: impl FnOnce(&mut Checker<'_>),
) -> Vec<Diagnostic> {
    let heard = Arc::<Mutex<Vec<String>>>::default();
    let mut checker = Checker::of(subject, &Context { trace: listening(cx, &heard), ..cx.clone() });
    for json in handed {
        collect_secrets(json, &mut checker.secrets);
    }
    checker.exit_codes_declared();
    questions(&mut checker);
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

/// Describes how the default of a property is not valid for it; `None` if it is.
fn default_mismatch(schema: &Json, name: &str, property: &Json, default: &Json) -> Option<String> {
    let mut own = property.clone();
    for key in ["$defs", "definitions"] {
        if let (Some(members), Some(shared)) = (own.as_object_mut(), schema.get(key)) {
            members.insert(key.to_owned(), shared.clone());
        }
    }
    let mismatch = Schema::compile(own).ok()?.validate(default).into_iter().next()?;
    Some(format!("the default of '{name}' is none of its values: {}", mismatch.line()))
}

struct Checker<'a> {
    subject: CheckedResource<'a>,
    cx: Context,
    desired: Plain,
    schema: Option<Arc<Schema>>,
    /// The texts that are not to come back.
    secrets: Vec<String>,
    found: Vec<Diagnostic>,
}

impl<'a> Checker<'a> {
    fn of(subject: CheckedResource<'a>, cx: &Context) -> Self {
        let (schema, secrets, found) = (None, Vec::new(), Vec::new());
        Self { subject, cx: cx.clone(), desired: Plain::default(), schema, secrets, found }
    }
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

    /// The exit codes that the programs may end with; `None` where there are no programs.
    fn exit_codes(&self) -> Option<&BTreeMap<i32, String>> {
        let programs = match &self.subject.manifest.implementation {
            Implementation::Adapted { adapter, .. } => &adapter.implementation,
            own => own,
        };
        match programs {
            Implementation::Command(command) => Some(&command.exit_codes),
            _ => None,
        }
    }

    fn exit_codes_declared(&mut self) {
        if self.exit_codes().is_some_and(|codes| codes.keys().all(|code| *code == 0)) {
            let message = "the manifest declares no exit codes of failures".to_owned();
            self.find(&codes::EXIT_CODE, Severity::Warning, message, "add 'exitCodes': {\"1\": \"what 1 means\"}");
        }
    }

    /// Checks that there is a schema: without one, what follows would prove nothing.
    fn schema_usable(&mut self) -> bool {
        let own = self.subject.schema.map(|schema| Schema::compile(schema.clone()).map(Arc::new));
        let own = own.transpose().map_err(|error| Failure::new(FailureKind::Protocol, error.to_string()));
        match own.and_then(|own| Ok(own.or(self.subject.provider.schema(&self.cx)?))) {
            Ok(Some(schema)) => {
                self.defaults_fit(schema.json());
                self.schema = Some(schema);
            }
            Ok(None) => self.error(&codes::SCHEMA, "there is no schema", "add 'schema' to the manifest"),
            Err(failure) => self.error(&codes::SCHEMA, failure.message.trim_end(), ""),
        }
        self.schema.is_some()
    }

    /// Checks that the default of each property is valid for it: desired states are compared with it where a property
    /// is not reported.
    fn defaults_fit(&mut self, schema: &Json) {
        let properties = schema.get("properties").and_then(Json::as_object).into_iter().flatten();
        let stated = properties.filter_map(|(name, property)| Some((name, property, property.get("default")?)));
        let wrong: Vec<String> =
            stated.filter_map(|(name, property, default)| default_mismatch(schema, name, property, default)).collect();
        for message in wrong {
            self.error(&codes::SCHEMA, message, "correct the default; in JSON false and \"false\" differ");
        }
    }

    /// Checks that the schema allows the desired state.
    fn allows_desired(&mut self) -> bool {
        let mismatches =
            self.schema.as_ref().map(|schema| schema.validate(&self.desired.to_json())).unwrap_or_default();
        for each in &mismatches {
            let message = format!("the schema does not allow the desired state of the check: {}", each.line());
            self.error(&codes::SCHEMA, message, "correct the schema, or check with another state (--input)");
        }
        mismatches.is_empty()
    }

    fn failed(&mut self, operation: &str, failure: &Failure) {
        match failure.kind {
            FailureKind::Exit(code) if self.exit_codes().is_some_and(|codes| !codes.contains_key(&code)) => {
                let message = format!("{operation} ended with the exit code {code}, which is not declared");
                self.error(&codes::EXIT_CODE, message, "say in 'exitCodes' what it means");
            }
            _ => {}
        }
        if self.tells(&failure.message) {
            self.error(&codes::SECRET, format!("{operation} fails with a secret in its message"), "leave it out");
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

    /// Checks what holds for every state that is reported, whoever reports it.
    fn reported(&mut self, operation: &str, state: &State) {
        let state = bare(state);
        match self.subject.manifest.kind {
            // What groups answer are results, which the schema of their properties does not describe.
            ResourceKind::Group | ResourceKind::Importer => self.answers_for_all(operation, &state),
            _ => self.fits(&format!("the state that {operation} reports"), &state),
        }
        self.keeps_secrets(operation, &state);
    }

    /// Checks that a state fits the schema.
    fn fits(&mut self, what: &str, state: &Json) {
        let mismatches = self.schema.as_ref().map(|schema| schema.validate(state)).unwrap_or_default();
        for each in mismatches {
            self.error(&codes::STATE, format!("{what} does not fit the schema: {}", each.line()), "");
        }
    }

    fn keeps_secrets(&mut self, operation: &str, state: &Json) {
        if self.secrets.iter().any(|secret| holds(state, secret)) {
            self.error(&codes::SECRET, format!("{operation} reports a secret that it was handed"), "leave it out");
        }
        let Some(schema) = &self.schema else { return };
        let members = state.as_object().into_iter().flatten();
        let write_only = members.filter(|(name, value)| !value.is_null() && schema.write_only(name));
        for name in write_only.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            let message = format!("{operation} reports '{name}', which the schema says is writeOnly");
            self.error(&codes::SECRET, message, "leave it out");
        }
    }

    /// Checks that a group that answers with results has one for each nested instance.
    fn answers_for_all(&mut self, operation: &str, state: &Json) {
        let missing = unanswered(&self.desired.to_json(), state);
        if missing > 0 {
            let message = format!("{operation} leaves out {missing} of the nested instances");
            self.error(&codes::NESTED, message, "answer with the 'name' and 'type' of each, as they were handed in");
        }
    }

    /// Checks that no message held a secret. A secret that is recognized has been covered by now, which is as
    /// telling.
    fn listen(&mut self, heard: &[String]) {
        if heard.iter().any(|text| self.tells(text)) {
            self.error(&codes::SECRET, "a message holds a secret that the resource was handed", "leave it out");
        }
    }

    fn tells(&self, text: &str) -> bool {
        let shown = text.contains(REDACTED) || self.secrets.iter().any(|secret| text.contains(secret));
        !self.secrets.is_empty() && shown
    }
}
