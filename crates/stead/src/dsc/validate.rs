//! `config validate`: whether a document could be run, as far as that can be told without a look at the machine.

use std::sync::Arc;

use serde_json::Value as Json;
use stead_core::document::{Document, Instance};
use stead_core::graph::Node;
use stead_core::text::Sources;

use stead_host::provider::Plain;

use stead_engine::{Prepared, Session};

/// What is wrong with a document beside what keeps it from running, one line each.
pub(super) fn faults(session: &Session, prepared: &Prepared) -> Vec<String> {
    let Some(scope) = prepared.graph.scopes.first() else { return Vec::new() };
    let mut all: Vec<String> = schema_fault(&scope.document, &prepared.sources).into_iter().collect();
    for id in &scope.members {
        let instance = prepared.graph.declaration(*id);
        for fault in property_faults(session, prepared.graph.node(*id), instance) {
            all.push(format!("{}: {}: {fault}", prepared.sources.place(instance.span), prepared.graph.label(*id)));
        }
    }
    // The iterations of a loop have one declaration.
    all.dedup();
    all
}

fn schema_fault(document: &Document, sources: &Sources) -> Option<String> {
    match &document.schema {
        None => Some("'$schema' is missing".to_owned()),
        Some(schema) if is_known(&schema.value) => None,
        Some(schema) => {
            let place = sources.place(schema.span);
            Some(format!("{place}: '{}' is not the schema of a configuration document", schema.value))
        }
    }
}

/// Where the schemas of documents are published.
const PUBLISHED: [&str; 2] =
    ["https://aka.ms/dsc/schemas/", "https://raw.githubusercontent.com/PowerShell/DSC/main/schemas/"];

/// The forms in which they are.
const FORMS: [&str; 3] =
    ["bundled/config/document.json", "bundled/config/document.vscode.json", "config/document.json"];

/// Whether an address is one of the schema of documents: of `vNext`, or of a version such as `v3.1`.
fn is_known(address: &str) -> bool {
    let rest = PUBLISHED.iter().find_map(|start| address.strip_prefix(start));
    rest.and_then(|rest| rest.split_once('/'))
        .is_some_and(|(version, form)| is_version(version) && FORMS.contains(&form))
}

fn is_version(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text == "vNext"
        || text.strip_prefix('v').is_some_and(|rest| rest.split('.').count() <= 3 && rest.split('.').all(is_number))
}

/// How the properties of an instance do not fit the schema of its resource. What is still to be computed fits.
fn property_faults(session: &Session, node: &Node, instance: &Instance) -> Vec<String> {
    let cx = session.context(Arc::clone(&node.name));
    let Some(properties) = &instance.properties else { return Vec::new() };
    let provider = session.provider(&node.manifest);
    let written = properties.literal().to_redacted_json();
    let mismatches = provider.schema(&cx).ok().flatten().map(|schema| schema.validate(&written)).unwrap_or_default();
    let certain = mismatches.iter().filter(|mismatch| !is_open(&written, &mismatch.pointer));
    let mut faults: Vec<String> =
        certain.map(|mismatch| format!("{}: {}", place(&mismatch.pointer), mismatch.message)).collect();
    if faults.is_empty()
        && is_settled(&written)
        && let Err(failure) = provider.validate(&cx, &Plain::new(written))
    {
        faults.push(failure.message);
    }
    faults
}

/// Whether nothing in properties is still to be computed or opened, so that the resource can be asked about them.
fn is_settled(written: &Json) -> bool {
    match written {
        Json::String(text) => !text.starts_with('['),
        Json::Array(items) => items.iter().all(is_settled),
        Json::Object(members) => {
            members.iter().all(|(key, value)| key != "secureString" && key != "secureObject" && is_settled(value))
        }
        _ => true,
    }
}

fn place(pointer: &str) -> String {
    format!("properties{}", pointer.replace('/', "."))
}

/// Whether a place is, or is below, an expression or a secret: what resources get there is not what is written.
pub(crate) fn is_open(written: &Json, pointer: &str) -> bool {
    let ends = pointer.match_indices('/').map(|(at, _)| at).skip(1).chain([pointer.len()]);
    let mut values = ends.filter_map(|end| written.pointer(pointer.get(..end)?));
    values.any(|value| match value {
        Json::String(text) => text.starts_with('['),
        Json::Object(members) => members.keys().any(|key| key == "secureString" || key == "secureObject"),
        _ => false,
    })
}
