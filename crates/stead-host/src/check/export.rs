//! Exports: what is listed must exist.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value as Json;
use stead_core::call::{Exported, Failure, FailureKind};
use stead_core::diag::Diagnostic;
use stead_core::id::TypeName;
use stead_core::manifest::Manifest;

use super::state::{holds_wrapped, listed};
use super::{CheckedResource, Checker, codes, examine};
use crate::provider::{Context, Plain, Provider};

/// A resource of which an exporter lists instances.
pub struct Listed {
    /// The manifest of the resource.
    pub manifest: Arc<Manifest>,
    /// The provider of the resource.
    pub provider: Arc<dyn Provider>,
    /// Its schema, for a provider that hands out none.
    pub schema: Option<Json>,
}

/// The resources that there are, by type.
pub type ExportTypes<'a> = &'a dyn Fn(&TypeName) -> Option<Listed>;

/// So many instances are asked for one by one, a program each; the others are only held against the schema. A resource
/// that lists thousands has them all from the same code.
const ASKED: usize = 16;

/// A question to an export, and what is known when it answers.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// Which instances to list; null for all.
    pub filter: &'a Json,
    /// The states with which the resource was called before: their secrets may not be listed.
    pub handed: &'a [&'a Json],
    /// The resources that there are.
    pub types: ExportTypes<'a>,
}

/// Exports twice, and says in what the instances are not those that there are.
///
/// Guarantees: nothing is called that is meant to change anything.
pub fn check_export(subject: CheckedResource<'_>, cx: &Context, question: &Question<'_>) -> Vec<Diagnostic> {
    examine(subject, cx, question.handed, |checker| {
        // Without an export of its own, the engine asks `get`.
        if subject.manifest.capabilities.export && checker.schema_usable() {
            checker.export(question);
        }
    })
}

impl Checker<'_> {
    fn export(&mut self, question: &Question<'_>) {
        let filter = Plain::new(question.filter.clone());
        let found = self.subject.provider.export(&self.cx, &filter);
        // A resource may refuse to list everything.
        if question.filter.is_null() && found.as_ref().is_err_and(|failure| failure.kind == FailureKind::Invalid) {
            return;
        }
        let Some(first) = self.found("export", found) else { return };
        let again = self.subject.provider.export(&self.cx, &filter);
        let Some(second) = self.found("the second export", again) else { return };
        if first != second {
            let message = format!("the first export has {} instances, the second {}", first.len(), second.len());
            let same_number = "the second export lists other instances, or in another order".to_owned();
            let message = if first.len() == second.len() { same_number } else { message };
            self.error(&codes::UNSTABLE, message, "");
        }
        self.check_identities(&first);
        for (at, each) in first.iter().enumerate() {
            self.exported(each, at < ASKED, question.types);
        }
    }

    fn found(&mut self, operation: &str, found: Result<Vec<Exported>, Failure>) -> Option<Vec<Exported>> {
        found.map_err(|failure| self.failed(operation, &failure)).ok()
    }

    /// A document cannot hold two instances of the same type and name.
    fn check_identities(&mut self, found: &[Exported]) {
        let mut known = BTreeSet::new();
        let mut named = found.iter().filter_map(|each| Some((each.type_name.as_ref(), each.name.as_ref()?)));
        if named.any(|each| !known.insert(each)) {
            self.error(&codes::EXPORTED, "two of the exported instances have the same type and name", "");
        }
    }

    fn exported(&mut self, instance: &Exported, asked: bool, types: ExportTypes<'_>) {
        // What comes from a resource is in the clear.
        let state = Plain::new(instance.properties.clone());
        self.keeps_secrets("export", &state.to_json());
        if holds_wrapped(&state.to_json()) {
            self.error(&codes::SECRET, "export lists a secret in its wrapping", "leave it out");
        }
        let Some(type_name) = &instance.type_name else { return self.stands(&state, asked) };
        let Some(other) = types(type_name) else {
            let message = format!("export lists instances of '{type_name}', which no resource is known for");
            return self.error(&codes::EXPORTED, message, "");
        };
        let subject =
            CheckedResource { manifest: &other.manifest, provider: &*other.provider, schema: other.schema.as_ref() };
        let mut checker = Checker::of(subject, &self.cx);
        if checker.schema_usable() {
            checker.stands(&state, asked);
        }
        for finding in checker.found {
            let message = format!("'{type_name}': {}", finding.message);
            self.find(finding.code, finding.severity, message, &finding.help.unwrap_or_default());
        }
    }

    /// Checks that an instance is allowed, and is as it was listed.
    fn stands(&mut self, instance: &Plain, asked: bool) {
        let mut state = instance.to_json();
        if let Json::Object(members) = &mut state {
            members.remove("_securityContext");
        }
        self.fits("an exported instance", &state);
        self.desired = Plain::new(state);
        if !asked {
            return;
        }
        if self.subject.manifest.capabilities.test {
            return self.tests();
        }
        let Some(actual) = self.get("get of an exported instance") else { return };
        let differ = self.differing(&actual);
        if !differ.is_empty() {
            let message = format!("get reports different values than export for {}", listed(&differ));
            self.error(&codes::EXPORTED, message, "");
        }
    }

    fn tests(&mut self) {
        match self.subject.provider.test(&self.cx, &self.desired) {
            Ok(reply) => {
                let differ = reply.actual.as_ref().map(|actual| self.differing(actual)).unwrap_or_default();
                if reply.in_desired_state == Some(false) || !differ.is_empty() {
                    let message = "test says that an exported instance is not in its desired state";
                    self.error(&codes::EXPORTED, message, "list each as 'get' reports it");
                }
            }
            Err(failure) => self.failed("test of an exported instance", &failure),
        }
    }
}
