//! Properties that do not fit the schema of their resource, as far as that can be told without a look at the machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use stead_core::call::INVALID;
use stead_core::diag::Diagnostic;
use stead_core::document::Instance;
use stead_core::graph::Role;
use stead_core::manifest::Manifest;
use stead_core::schema::{Mismatch, Schema};
use stead_core::text::{Kind, Node, Span};

use crate::dsc::validate::is_open;
use crate::session::{Prepared, Session};

/// A finding for each of them. What is still to be computed fits.
pub(super) fn misfits(session: &Session, prepared: &Prepared) -> Vec<Diagnostic> {
    let mut schemas = BTreeMap::new();
    let mut found: Vec<Diagnostic> = Vec::new();
    for (id, node) in prepared.graph.iter().filter(|(_, node)| node.role == Role::Instance) {
        let instance = prepared.graph.declaration(id);
        let schema = schemas
            .entry(node.manifest.type_name.to_string())
            .or_insert_with(|| schema(session, &node.manifest, &node.name));
        if let (Some(schema), Some(properties)) = (schema, &instance.properties) {
            found.extend(of(instance, properties, schema));
        }
    }
    found
}

fn schema(session: &Session, manifest: &Arc<Manifest>, name: &str) -> Option<Arc<Schema>> {
    if let Ok(Some(schema)) = session.provider(manifest).schema(&session.context(name)) {
        return Some(schema);
    }
    let built_in = session.built_in.get(&manifest.type_name)?;
    Schema::compile(built_in.schema.clone()).ok().map(Arc::new)
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
