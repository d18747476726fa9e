//! Properties that do not fit the schema of their resource, as far as that can be told without a look at the machine.

use std::cell::LazyCell;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json};
use stead_core::call::{Failure, INVALID, code};
use stead_core::diag::Diagnostic;
use stead_core::document::Instance;
use stead_core::expr::Template;
use stead_core::graph::{Node as GraphNode, Role, is_written_out};
use stead_core::id::NodeId;
use stead_core::manifest::{Implementation, Manifest};
use stead_core::schema::{Mismatch, Schema};
use stead_core::text::{Kind, Span};
use stead_core::value::Value;
use stead_host::provider::{Context, Plain, Provider};
use stead_resources::BuiltIn;

use crate::literal::members;
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
        let cx = self.context(Arc::<str>::default());
        let instances = prepared.graph.iter().filter(|(_, node)| node.role == Role::Instance);
        let check = |(id, node): (NodeId, &GraphNode)| {
            let instance = prepared.graph.declaration(id);
            let properties = instance.properties.as_ref()?;
            // The graph keeps every manifest alive meanwhile, so that an address stands for one of them.
            let (known, provider) = types
                .entry(Arc::as_ptr(&node.manifest))
                .or_insert_with(|| (Known::of(self, &node.manifest, depth), self.provider(&node.manifest)));
            let checked =
                Checked { instance, properties, stated: node.stated.as_ref(), provider: Arc::clone(provider), cx: &cx };
            Some(match known {
                Known::Unchecked => Vec::new(),
                Known::BuiltIn(outline) => checked.by_built_in(outline),
                Known::Program(schema) => checked.by_program(schema.as_deref()),
            })
        };
        instances.filter_map(check).flatten().collect()
    }
}

/// What is known of the properties of a type.
enum Known {
    /// Nothing is checked at this depth.
    Unchecked,
    /// It says itself what is wrong.
    BuiltIn(LazyOutline),
    /// It is a program, or a kind that the engine carries out; its schema says most of it.
    Program(Option<Arc<Schema>>),
}

impl Known {
    fn of(session: &Session, manifest: &Arc<Manifest>, depth: Depth) -> Self {
        let built_in = session.built_in(&manifest.type_name);
        match (built_in, &manifest.implementation) {
            (Some(built_in), Implementation::BuiltIn) => Self::BuiltIn(lazy_outline(built_in)),
            (Some(built_in), _) => Self::Program(Schema::compile(built_in.schema().clone()).ok().map(Arc::new)),
            (None, _) if depth == Depth::Full => {
                let cx = session.context(manifest.type_name.as_str());
                Self::Program(session.provider(manifest).schema(&cx).ok().flatten())
            }
            (None, _) => Self::Unchecked,
        }
    }
}

/// Texts up to this size are checked, whatever they are: a regular expression is short, the content of a file may not be.
const SHORT: usize = 4096;

/// Made for the first instance that needs it: what is written out and valid needs none.
type LazyOutline = LazyCell<Outline, Box<dyn FnOnce() -> Outline>>;

fn lazy_outline(built_in: &BuiltIn) -> LazyOutline {
    let built_in = built_in.clone();
    LazyCell::new(Box::new(move || Outline::of(built_in.schema())))
}

/// What the schema of a built-in says of its properties, at hand for every instance.
struct Outline {
    required: Vec<String>,
    /// Texts that the schema does not constrain: long ones are content, and not copied to be checked.
    free: Vec<String>,
    descriptions: HashMap<String, String>,
}

impl Outline {
    fn of(schema: &Json) -> Self {
        let properties = || schema.get("properties").and_then(Json::as_object).into_iter().flatten();
        let required = schema.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
        let description = |(name, property): (&String, &Json)| {
            Some((name.clone(), property.get("description")?.as_str()?.to_owned()))
        };
        Self {
            required: required.map(str::to_owned).collect(),
            free: properties().filter(|(_, property)| is_free_text(property)).map(|(name, _)| name.clone()).collect(),
            descriptions: properties().filter_map(description).collect(),
        }
    }
}

fn is_free_text(property: &Json) -> bool {
    let annotations = ["type", "title", "description", "default"];
    let plain = |members: &Map<String, Json>| members.keys().all(|key| annotations.contains(&key.as_str()));
    property.get("type").is_some_and(|kind| kind == "string") && property.as_object().is_some_and(plain)
}

/// An instance that is checked.
struct Checked<'a> {
    instance: &'a Instance,
    properties: &'a Template,
    stated: Option<&'a Arc<Value>>,
    provider: Arc<dyn Provider>,
    cx: &'a Context,
}

impl Checked<'_> {
    /// What a built-in says: it names one property at a time, which is then left out.
    fn by_built_in(&self, outline: &LazyOutline) -> Vec<Diagnostic> {
        if let Some(stated) = self.stated
            && self.provider.validate(self.cx, &Plain::shared(Arc::clone(stated))).is_ok()
        {
            return Vec::new();
        }
        let mut found = Vec::new();
        let mut is_complete = is_written_out(self.properties);
        let is_free = |name: &str| outline.free.iter().any(|free| free == name);
        let mut rest = members(self.properties, |name, text| text.len() <= SHORT || !is_free(name));
        loop {
            let input = Plain::new(rest);
            let Err(failure) = self.provider.validate(self.cx, &input) else { return found };
            let Value::Object(left) = input.into_exposed() else { return found };
            rest = left;
            let name = failure.property.as_deref().map(property_of);
            let stated = name.as_deref().and_then(|name| self.properties.get(name));
            let Some((name, value)) = name.as_deref().zip(stated) else {
                // Something is missing; where something else was left out, that may be why.
                let is_certain = is_complete || name.is_some_and(|name| outline.required.contains(&name));
                found.extend(is_certain.then(|| self.refused(failure)));
                return found;
            };
            if rest.remove(name).is_none() {
                return found;
            }
            if is_written_out(value) {
                let description = outline.descriptions.get(name);
                let finding = self.refused(failure);
                found.push(match description {
                    Some(description) => finding.with_help(description),
                    None => finding,
                });
            }
            is_complete = false;
        }
    }

    fn by_program(&self, schema: Option<&Schema>) -> Vec<Diagnostic> {
        let mismatches = schema.map(|schema| of(self.instance, self.properties, schema)).unwrap_or_default();
        if !mismatches.is_empty() || !is_written_out(self.properties) {
            return mismatches;
        }
        let written = Plain::new(self.properties.literal());
        self.provider.validate(self.cx, &written).err().map(|failure| self.refused(failure)).into_iter().collect()
    }

    fn refused(&self, failure: Failure) -> Diagnostic {
        let span = failure.property.as_deref().and_then(|pointer| place(self.properties, pointer));
        Diagnostic::error(code(&failure.kind), span.unwrap_or(self.instance.name.span), failure.message)
    }
}

/// The name of the property that a pointer leads to or into.
fn property_of(pointer: &str) -> String {
    let name = pointer.trim_start_matches('/').split('/').next().unwrap_or_default();
    name.replace("~1", "/").replace("~0", "~")
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

fn of(instance: &Instance, properties: &Template, schema: &Schema) -> Vec<Diagnostic> {
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
fn place(properties: &Template, pointer: &str) -> Option<Span> {
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
