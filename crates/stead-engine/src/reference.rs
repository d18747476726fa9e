//! The reference of a resource: what it is, its properties and an example, out of what it says of itself.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json};
use stead_core::manifest::{Capabilities, Manifest};
use stead_resources::builtin_of;

use crate::resource::{CallRefusal, ResourceCall};

/// Everything that is known of a resource without calling it for an instance.
pub struct Reference<'a> {
    /// The manifest of the resource.
    pub manifest: &'a Manifest,
    /// The JSON Schema of its properties; null where it has none.
    pub schema: Json,
    /// The properties that tell one instance from another.
    pub keys: Vec<String>,
    /// A document, YAML, with an instance of it.
    pub example: Option<&'static str>,
}

/// A property, or one of a nested object, whose name then begins with those of the objects that it is in.
#[derive(Debug)]
pub struct PropertyReference<'a> {
    /// `sshKeys.type` is the member `type` of the property `sshKeys`.
    pub name: String,
    /// Which values it takes, such as `array of string` or `soft | hard`.
    pub kind: String,
    /// `required`, `key`, `default ..`, `read-only`, `not compared`, in this order.
    pub marks: Vec<String>,
    /// The meaning of the property.
    pub description: &'a str,
}

impl ResourceCall {
    /// The reference of the resource. One without a schema has none of its properties in it.
    pub fn reference(&self) -> Reference<'_> {
        let schema = self.schema().or_else(|refusal| match refusal {
            CallRefusal::Failed(_) => Ok::<_, CallRefusal>(Json::Null),
            other => Err(other),
        });
        let built_in = builtin_of(&self.manifest);
        Reference {
            manifest: &self.manifest,
            schema: schema.unwrap_or_default(),
            keys: self.keys(),
            example: built_in.map(|built_in| built_in.example),
        }
    }
}

impl Reference<'_> {
    /// The properties in the order of the schema, each followed by its members.
    pub fn properties(&self) -> Vec<PropertyReference<'_>> {
        let mut all = Vec::new();
        collect(&self.schema, "", &self.keys, &mut all);
        all
    }

    /// Returns the description in its schema, which says more than that of the manifest.
    pub fn description(&self) -> &str {
        let of_schema = self.schema.get("description").and_then(Json::as_str);
        of_schema.or(self.manifest.description.as_deref()).unwrap_or_default()
    }

    /// For a terminal.
    pub fn to_text(&self) -> String {
        let mut text = format!("{} {}\n\n", self.manifest.type_name, self.manifest.version);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}\n\nOperations: {}", self.description(), operations(&self.manifest.capabilities));
        let properties = self.properties();
        if !properties.is_empty() {
            text.push_str("\nProperties:\n");
        }
        for property in properties {
            text.push_str(&property.to_text());
        }
        for line in self.example.map(|example| format!("\nExample:\n{example}")).iter().flat_map(|text| text.lines()) {
            let indent = if line.is_empty() || line == "Example:" { "" } else { "  " };
            let _ = writeln!(text, "{indent}{line}");
        }
        text
    }

    /// A page of Markdown.
    pub fn to_markdown(&self) -> String {
        let mut text = format!("# {}\n\n{}\n\n", self.manifest.type_name, self.description());
        let _ = writeln!(text, "Operations: {}.", operations(&self.manifest.capabilities));
        if let Some(example) = self.example {
            let _ = write!(text, "\n```yaml\n{example}```\n");
        }
        let properties = self.properties();
        if !properties.is_empty() {
            text.push_str("\n## Properties\n\n");
        }
        for property in properties {
            let marks = property.marks.iter().map(|mark| quoted_default(mark));
            let kind: Vec<String> = std::iter::once(quoted_words(&property.kind)).chain(marks).collect();
            let _ = writeln!(text, "- `{}` ({})", property.name, kind.join(", "));
            if !property.description.is_empty() {
                let _ = writeln!(text, "  : {}", property.description);
            }
        }
        text
    }
}

impl PropertyReference<'_> {
    /// For a terminal: its name and kind, and what it means below.
    pub fn to_text(&self) -> String {
        let kind: Vec<&str> = std::iter::once(&self.kind).chain(&self.marks).map(String::as_str).collect();
        let description =
            if self.description.is_empty() { String::new() } else { format!("      {}\n", self.description) };
        format!("  {} ({})\n{description}", self.name, kind.join(", "))
    }
}

fn collect<'a>(schema: &'a Json, prefix: &str, keys: &[String], all: &mut Vec<PropertyReference<'a>>) {
    let required = schema.get("required").and_then(Json::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|each| each == name));
    for (name, property) in schema.get("properties").and_then(Json::as_object).into_iter().flatten() {
        let is_key = prefix.is_empty() && keys.iter().any(|key| key == name);
        let mut marks = Vec::new();
        marks.extend(is_required(name).then(|| "required".to_owned()));
        marks.extend(is_key.then(|| "key".to_owned()));
        marks.extend(property.get("default").map(|default| format!("default {default}")));
        marks.extend(is_true(property, "readOnly").then(|| "read-only".to_owned()));
        marks.extend(is_true(property, "writeOnly").then(|| "not compared".to_owned()));
        let description = property.get("description").and_then(Json::as_str).unwrap_or_default();
        let name = format!("{prefix}{name}");
        let members = format!("{name}.");
        all.push(PropertyReference { name, kind: kind(property), marks, description });
        collect(property, &members, keys, all);
        if let Some(items) = property.get("items") {
            collect(items, &members, keys, all);
        }
    }
}

fn is_true(schema: &Json, keyword: &str) -> bool {
    schema.get(keyword) == Some(&Json::Bool(true))
}

/// Which values a schema allows, in a few words.
pub(crate) fn kind(schema: &Json) -> String {
    let Some(schema) = schema.as_object() else { return "any".to_owned() };
    let of_forms = |forms: &Json| forms.as_array().map(|forms| joined(forms.iter().map(kind)));
    if let Some(value) = schema.get("const") {
        return plain(value);
    }
    if let Some(Json::Array(values)) = schema.get("enum") {
        return joined(values.iter().map(plain));
    }
    match schema.get("type") {
        Some(Json::String(name)) => kind_of_type(name, schema),
        Some(Json::Array(names)) => {
            joined(names.iter().filter_map(Json::as_str).map(|name| kind_of_type(name, schema)))
        }
        _ => {
            ["oneOf", "anyOf"].iter().find_map(|word| of_forms(schema.get(*word)?)).unwrap_or_else(|| "any".to_owned())
        }
    }
}

fn kind_of_type(name: &str, schema: &Map<String, Json>) -> String {
    match (name, schema.get("items"), schema.get("additionalProperties")) {
        ("array", Some(items), _) => format!("array of {}", kind(items)),
        ("object", _, Some(values @ Json::Object(_))) => format!("object of {}", kind(values)),
        _ => name.to_owned(),
    }
}

/// Without quotes, as it is written in YAML.
fn plain(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn joined(words: impl Iterator<Item = String>) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for word in words {
        if !distinct.contains(&word) {
            distinct.push(word);
        }
    }
    distinct.join(" | ")
}

fn quoted_default(mark: &str) -> String {
    mark.strip_prefix("default ").map_or_else(|| mark.to_owned(), |value| format!("default `{value}`"))
}

/// Words that are values are set as code.
fn quoted_words(kind: &str) -> String {
    if kind.contains(" | ") { format!("`{kind}`") } else { kind.to_owned() }
}

fn operations(can: &Capabilities) -> String {
    let all = [
        ("get", can.get),
        ("test", can.test),
        ("set", can.set),
        ("delete", can.delete),
        ("export", can.export),
        ("what-if", can.set_what_if),
    ];
    all.iter().filter(|(_, has)| *has).map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}
