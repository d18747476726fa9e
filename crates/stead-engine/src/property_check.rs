//! Properties that do not fit the schema of their resource, as far as that can be told without a look at the machine.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value as Json;
use stead_core::call::{INVALID, code};
use stead_core::diag::Diagnostic;
use stead_core::document::Instance;
use stead_core::graph::{Node as GraphNode, Role};
use stead_core::manifest::Manifest;
use stead_core::schema::{Mismatch, Schema};
use stead_core::text::{Entry, Kind, Node, Span};

use stead_host::provider::Plain;

use crate::session::{Prepared, Session};

/// How much is checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Depth {
    /// What takes no time: the properties of what is built in.
    Shallow,
    /// Everything, for which programs may have to be asked for their schemas.
    Full,
}

impl Session {
    /// A finding for each property that its resource does not accept. What is still to be computed is accepted.
    pub fn check_properties(&self, prepared: &Prepared, depth: Depth) -> Vec<Diagnostic> {
        let mut types = HashMap::new();
        let mut found: Vec<Diagnostic> = Vec::new();
        for (id, node) in prepared.graph.iter().filter(|(_, node)| node.role == Role::Instance) {
            let instance = prepared.graph.declaration(id);
            let Some(properties) = &instance.properties else { continue };
            let key = (node.manifest.type_name.clone(), node.manifest.version.to_string());
            let known = types.entry(key).or_insert_with(|| Known::of(self, &node.manifest, depth));
            let Some(known) = known else { continue };
            if !known.outline.as_ref().is_some_and(|outline| outline.takes(properties)) {
                let schema = known.schema.get_or_insert_with(|| schema(self, &node.manifest));
                let before = found.len();
                found.extend(schema.iter().flat_map(|schema| of(instance, properties, schema)));
                if found.len() > before {
                    continue;
                }
            }
            found.extend(self.refused(node, instance, properties));
        }
        found
    }

    /// What a resource says itself of properties that are known already.
    fn refused(&self, node: &GraphNode, instance: &Instance, properties: &Node) -> Option<Diagnostic> {
        let written = properties.literal().to_redacted_json();
        if !is_settled(&written) {
            return None;
        }
        let cx = self.context(Arc::clone(&node.name));
        let failure = self.provider(&node.manifest).validate(&cx, &Plain::new(written)).err()?;
        let span = failure.property.as_deref().and_then(|pointer| place(properties, pointer));
        Some(Diagnostic::error(code(&failure.kind), span.unwrap_or(instance.name.span), failure.message))
    }
}

/// What is known of the properties of a type.
struct Known {
    /// For what is built in: enough to accept most properties without a look at the whole schema.
    outline: Option<Outline>,
    /// Compiled when first needed; `None` within when there is none.
    schema: Option<Option<Arc<Schema>>>,
}

impl Known {
    /// `None` for what is not checked at this depth.
    fn of(session: &Session, manifest: &Arc<Manifest>, depth: Depth) -> Option<Self> {
        let built_in = session.built_in(&manifest.type_name);
        let outline = built_in.and_then(|built_in| Outline::of(&built_in.schema));
        (depth == Depth::Full || built_in.is_some()).then_some(Self { outline, schema: None })
    }
}

fn schema(session: &Session, manifest: &Arc<Manifest>) -> Option<Arc<Schema>> {
    match session.built_in(&manifest.type_name) {
        Some(built_in) => Schema::compile(built_in.schema.clone()).ok().map(Arc::new),
        None => session.provider(manifest).schema(&session.context(manifest.type_name.as_str())).ok().flatten(),
    }
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

/// Whether what is wrong with a value may be because it, or what it is in, is still to be computed or opened.
fn is_open(written: &Json, pointer: &str) -> bool {
    let ends = pointer.match_indices('/').map(|(at, _)| at).skip(1).chain([pointer.len()]);
    let mut values = ends.filter_map(|end| written.pointer(pointer.get(..end)?));
    values.any(|value| match value {
        Json::String(text) => text.starts_with('['),
        Json::Object(members) => members.keys().any(|key| key == "secureString" || key == "secureObject"),
        _ => false,
    })
}

/// What a schema says of names and kinds of properties, at hand for every instance.
struct Outline {
    /// Each property and the kind that it has to be of, if it says so.
    known: Vec<(String, Option<String>)>,
    required: Vec<String>,
    /// Whether there are no others.
    closed: bool,
}

impl Outline {
    /// `None` if the schema names no properties.
    fn of(schema: &Json) -> Option<Self> {
        let known = schema.get("properties")?.as_object()?.iter();
        let required = schema.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
        Some(Self {
            known: known.map(|(name, property)| (name.clone(), kind(property))).collect(),
            required: required.map(str::to_owned).collect(),
            closed: schema.get("additionalProperties") == Some(&Json::Bool(false)),
        })
    }

    /// Whether all properties are known and of the kind that they have to be, and none is missing.
    fn takes(&self, properties: &Node) -> bool {
        let Some(entries) = properties.entries() else { return true };
        let fits = |entry: &Entry| match self.known.iter().find(|(name, _)| **name == *entry.key) {
            Some((_, kind)) => has_kind(&entry.value, kind.as_deref()),
            None => !self.closed,
        };
        entries.iter().all(fits) && self.required.iter().all(|name| properties.get(name).is_some())
    }
}

fn kind(property: &Json) -> Option<String> {
    property.get("type").and_then(Json::as_str).map(str::to_owned)
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
