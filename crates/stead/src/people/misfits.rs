//! Properties that do not fit the schema of their resource, as far as that can be told without a look at the machine.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value as Json;
use stead_core::call::INVALID;
use stead_core::diag::Diagnostic;
use stead_core::document::Instance;
use stead_core::graph::Role;
use stead_core::manifest::Manifest;
use stead_core::schema::{Mismatch, Schema};
use stead_core::text::{Entry, Kind, Node, Span};

use crate::dsc::validate::is_open;
use crate::session::{Prepared, Session};

/// How closely is looked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// At the names and kinds of the properties of what is built in: takes no time, and finds what is wrong most often.
    Glance,
    /// At everything, for which programs may have to be asked for their schemas.
    Close,
}

/// A finding for each of them. What is still to be computed fits.
pub(super) fn misfits(session: &Session, prepared: &Prepared, look: Look) -> Vec<Diagnostic> {
    let (mut schemas, mut outlines) = (HashMap::new(), HashMap::new());
    let mut found: Vec<Diagnostic> = Vec::new();
    for (id, node) in prepared.graph.iter().filter(|(_, node)| node.role == Role::Instance) {
        let instance = prepared.graph.declaration(id);
        let Some(properties) = &instance.properties else { continue };
        // The catalog keeps every manifest alive, so that an address stands for one of them.
        let address = Arc::as_ptr(&node.manifest);
        let built_in = || session.built_in.get(&node.manifest.type_name);
        let outline =
            outlines.entry(address).or_insert_with(|| built_in().and_then(|found| Outline::of(&found.schema)));
        if look == Look::Glance && outline.as_ref().is_none_or(|outline| outline.takes(properties)) {
            continue;
        }
        let schema = schemas.entry(address).or_insert_with(|| schema(session, &node.manifest));
        found.extend(schema.iter().flat_map(|schema| of(instance, properties, schema)));
    }
    found
}

fn schema(session: &Session, manifest: &Arc<Manifest>) -> Option<Arc<Schema>> {
    match session.built_in.get(&manifest.type_name) {
        Some(built_in) => Schema::compile(built_in.schema.clone()).ok().map(Arc::new),
        None => session.provider(manifest).schema(&session.context(manifest.type_name.as_str())).ok().flatten(),
    }
}

/// What a schema says of names and kinds of properties, at hand for every instance.
struct Outline<'s> {
    /// Each property and the kind that it has to be of, if it says so.
    known: Vec<(&'s str, Option<&'s str>)>,
    required: Vec<&'s str>,
    /// Whether there are no others.
    closed: bool,
}

impl<'s> Outline<'s> {
    /// `None` if the schema names no properties.
    fn of(schema: &'s Json) -> Option<Self> {
        let known = schema.get("properties")?.as_object()?.iter();
        let required = schema.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
        Some(Self {
            known: known.map(|(name, property)| (name.as_str(), property.get("type").and_then(Json::as_str))).collect(),
            required: required.collect(),
            closed: schema.get("additionalProperties") == Some(&Json::Bool(false)),
        })
    }

    /// Whether all properties are known and of the kind that they have to be, and none is missing.
    fn takes(&self, properties: &Node) -> bool {
        let Some(entries) = properties.entries() else { return true };
        let fits = |entry: &Entry| match self.known.iter().find(|(name, _)| *name == &*entry.key) {
            Some((_, kind)) => has_kind(&entry.value, *kind),
            None => !self.closed,
        };
        entries.iter().all(fits) && self.required.iter().all(|name| properties.get(name).is_some())
    }
}

fn has_kind(value: &Node, wanted: Option<&str>) -> bool {
    match (&value.kind, wanted) {
        (Kind::Bool(_), Some(wanted)) => wanted == "boolean",
        (Kind::Number(_), Some(wanted)) => matches!(wanted, "number" | "integer"),
        (Kind::String(_), Some(wanted)) => wanted == "string",
        (Kind::Array(_), Some(wanted)) => wanted == "array",
        // An object may be a secret, and what an expression gives is not known.
        _ => true,
    }
}

fn of(instance: &Instance, properties: &Node, schema: &Schema) -> Vec<Diagnostic> {
    let written = properties.literal().to_redacted_json();
    let mismatches = schema.validate(&written);
    let certain = mismatches.into_iter().filter(|mismatch| !is_open(&written, &mismatch.pointer));
    let finding = |Mismatch { pointer, message }: Mismatch| {
        let name = pointer.trim_start_matches('/').replace('/', ".");
        let named = name.is_empty() || message.contains(&format!("'{name}'"));
        let message = if named { message } else { format!("'{name}': {message}") };
        let span = place(properties, &pointer).unwrap_or(instance.name.span);
        let description = schema.property(&name).and_then(|property| property.get("description")?.as_str());
        let finding = Diagnostic::error(&INVALID, span, message);
        match description {
            Some(description) => finding.with_help(description),
            None => finding,
        }
    };
    certain.map(finding).collect()
}

/// Where a pointer leads; `None` for the whole, and for what is in no text.
fn place(properties: &Node, pointer: &str) -> Option<Span> {
    let mut at = (properties, None);
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        at = match &at.0.kind {
            Kind::Object(entries) => {
                let entry = entries.iter().find(|entry| *entry.key == *step)?;
                (&entry.value, Some(entry.key_span))
            }
            Kind::Array(items) => items.get(step.parse::<usize>().ok()?).map(|item| (item, Some(item.span)))?,
            _ => return at.1,
        };
    }
    at.1
}
