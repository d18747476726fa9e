//! Adapters: what they list must be something that they can carry out.

use std::sync::Arc;

use serde_json::Value as Json;
use stead_core::diag::Diagnostic;
use stead_core::manifest::{Capabilities, Implementation, Manifest, parse_listed};

use super::{CheckedResource, Checker, codes, examine};
use crate::command::{CommandProvider, CommandSettings, list_adapted};
use crate::provider::{Context, Provider};

/// Has an adapter list what it carries out, twice, and says in what the list cannot be relied on. What is right with it
/// comes back as well: the resources, to be checked themselves.
///
/// Guarantees: nothing is called that is meant to change anything.
pub fn check_list(
    adapter: &Arc<Manifest>,
    provider: &dyn Provider,
    cx: &Context,
    settings: &CommandSettings,
) -> (Vec<Arc<Manifest>>, Vec<Diagnostic>) {
    let mut resources = Vec::new();
    let subject = CheckedResource { manifest: adapter, provider, schema: None };
    let found = examine(subject, cx, &[], |checker| {
        if lists(adapter) {
            resources = checker.lists(adapter, settings);
        }
    });
    (resources, found)
}

/// Adapters without a list have manifests for what they carry out.
fn lists(adapter: &Manifest) -> bool {
    let Implementation::Command(command) = &adapter.implementation else { return false };
    command.adapter.as_ref().is_some_and(|adapter| adapter.list.is_some())
}

impl Checker<'_> {
    fn lists(&mut self, adapter: &Arc<Manifest>, settings: &CommandSettings) -> Vec<Arc<Manifest>> {
        let Some(first) = self.listed("list", settings) else { return Vec::new() };
        if self.listed("the second list", settings).is_some_and(|second| second != first) {
            self.error(&codes::UNSTABLE, "the second list is another one", "");
        }
        let mut known: Vec<Arc<Manifest>> = Vec::new();
        for (at, object) in first.iter().enumerate() {
            let Some(manifest) = self.entry(at, object, adapter) else { continue };
            if known.iter().any(|each| each.type_name == manifest.type_name && each.version == manifest.version) {
                self.error(&codes::CAPABILITY, format!("'{}' is listed twice", manifest.type_name), "");
                continue;
            }
            self.has_schema(&manifest, settings);
            known.push(manifest);
        }
        known
    }

    fn listed(&mut self, operation: &str, settings: &CommandSettings) -> Option<Vec<Json>> {
        let listed = list_adapted(self.subject.manifest, settings, &self.cx);
        listed.map_err(|failure| self.failed(operation, &failure)).ok()
    }

    fn entry(&mut self, at: usize, object: &Json, adapter: &Arc<Manifest>) -> Option<Arc<Manifest>> {
        let manifest = match parse_listed(object.clone()) {
            Ok(manifest) => manifest,
            Err(findings) => {
                for finding in findings {
                    let message = format!("object {} of the list: {}", at + 1, finding.message);
                    self.error(&codes::CAPABILITY, message, &finding.help.unwrap_or_default());
                }
                return None;
            }
        };
        let (name, required) = (&manifest.type_name, &manifest.implementation.require_adapter);
        if *required != adapter.type_name {
            let message = format!("'{name}' is listed, but needs the adapter '{required}'");
            self.error(&codes::CAPABILITY, message, "say in 'requireAdapter' who lists it");
            return None;
        }
        for ability in beyond(manifest.capabilities, adapter.capabilities) {
            let message = format!("'{name}' is listed with '{ability}', which the adapter has no program for");
            self.error(&codes::CAPABILITY, message, "");
        }
        Some(Arc::new(manifest.into_manifest(Arc::clone(adapter))))
    }

    fn has_schema(&mut self, adapted: &Arc<Manifest>, settings: &CommandSettings) {
        let Some(provider) = CommandProvider::new(adapted, settings.clone()) else { return };
        if let Err(failure) = provider.schema(&self.cx) {
            let message = format!("'{}': {}", adapted.type_name, failure.message.trim_end());
            self.error(&codes::SCHEMA, message, "");
        }
    }
}

/// Returns the capabilities that the one has and the other has not.
fn beyond(one: Capabilities, other: Capabilities) -> Vec<&'static str> {
    let all = [
        ("get", one.get, other.get),
        ("set", one.set, other.set),
        ("test", one.test, other.test),
        ("delete", one.delete, other.delete),
        ("export", one.export, other.export),
        ("setWhatIf", one.set_what_if, other.set_what_if),
        ("deleteWhatIf", one.delete_what_if, other.delete_what_if),
    ];
    all.into_iter().filter(|(_, able, possible)| *able && !possible).map(|(name, ..)| name).collect()
}
