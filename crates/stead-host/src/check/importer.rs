//! Importers: what is resolved must be a document.

use serde_json::Value as Json;
use stead_core::diag::{Diagnostic, Severity};
use stead_core::document;
use stead_core::text::{Limits, Source, Sources};

use super::state::holds;
use super::{CheckedResource, Checker, codes, examine};
use crate::command::{CommandSettings, resolve};
use crate::provider::{Context, Plain};

/// Has an importer resolve its properties twice, and says in what that is not a document.
///
/// Guarantees: nothing is called that is meant to change anything.
pub fn check_resolve(
    subject: CheckedResource<'_>,
    cx: &Context,
    desired: &Json,
    settings: &CommandSettings,
) -> Vec<Diagnostic> {
    examine(subject, cx, &[desired], |checker| {
        checker.desired = Plain::new(desired.clone());
        if checker.schema_usable() && checker.allows_desired() {
            checker.resolves(settings);
        }
    })
}

impl Checker<'_> {
    fn resolves(&mut self, settings: &CommandSettings) {
        let Some(first) = self.resolve("resolve", settings) else { return };
        self.is_document(&first);
        if self.secrets.iter().any(|secret| holds(&first, secret)) {
            self.error(&codes::SECRET, "resolve prints a secret that it was handed", "refer to a parameter instead");
        }
        if self.resolve("the second resolve", settings).is_some_and(|second| second != first) {
            self.error(&codes::UNSTABLE, "the second resolve gives another document", "");
        }
    }

    fn resolve(&mut self, operation: &str, settings: &CommandSettings) -> Option<Json> {
        let resolved = resolve(self.subject.manifest, &self.desired, settings, &self.cx);
        resolved.map_err(|failure| self.failed(operation, &failure)).ok()
    }

    fn is_document(&mut self, resolved: &Json) {
        let parameters = resolved.get("parameters").unwrap_or(&Json::Null);
        if !parameters.is_object() && !parameters.is_null() {
            self.error(&codes::RESOLVED, "'parameters' of what resolve prints is not an object", "");
        }
        let Some(configuration) = resolved.get("configuration") else {
            return self.error(&codes::RESOLVED, "what resolve gives has no 'configuration'", "");
        };
        let text = configuration.to_string();
        let mut sources = Sources::default();
        let source = sources.add(Source::new("configuration", text.as_str()));
        let (_, findings) = document::parse(source, &text, &Limits::default());
        for finding in findings.into_iter().filter(|finding| finding.severity == Severity::Error) {
            let message = format!("what resolve prints is not a document: {} [{}]", finding.message, finding.code);
            self.error(&codes::RESOLVED, message, &finding.help.unwrap_or_default());
        }
    }
}
