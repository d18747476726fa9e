//! The keys of documents, for `stead explain`, for editors and for `docs/reference`: their types and defaults are those of the schemas.

use std::fmt::Write as _;
use std::sync::LazyLock;

use serde_json::{Map, Value as Json};
use stead_core::document::{Part, TOPICS, Topic};

use crate::reference::kind;

const DOCUMENT: &str = include_str!("../../../schemas/configuration.json");
const INSTANCE: &str = include_str!("../../../schemas/resource.json");
const DEFINITIONS: &str = include_str!("../../../schemas/definitions.json");

/// The version that has each key of which its schema says nothing else.
const FIRST: &str = "0.1.0";

/// Where the keys of a part are: their schema, the definition in it, and the key that they stand below.
const OBJECTS: [(Part, &str, &str, &str); 9] = [
    (Part::Document, DOCUMENT, "", ""),
    (Part::Metadata, DEFINITIONS, "documentMetadata", "metadata"),
    (Part::Parameter, DEFINITIONS, "parameter", "parameters"),
    (Part::Function, DEFINITIONS, "functionNamespace", "functions"),
    (Part::Output, DEFINITIONS, "outputDefinition", "outputs"),
    (Part::Instance, INSTANCE, "", "resources"),
    (Part::Loop, DEFINITIONS, "copy", "copy"),
    (Part::Directive, DEFINITIONS, "instanceDirectives", "directives"),
    (Part::DocumentDirective, DEFINITIONS, "documentDirectives", "directives"),
];

/// A key that can be written in a document.
#[derive(Clone, PartialEq, Debug)]
pub struct DocumentKey {
    /// The part of a document that it is a key of.
    pub part: Part,
    /// The key that it stands below, such as `directives`; empty for a key of the document.
    pub below: &'static str,
    /// Its name; one within another has the names of both, as in `reconcile.wait`.
    pub name: String,
    /// Which values it takes, such as `array of string`.
    pub kind: String,
    /// `required`, `default ..`, `since ..`, `not in DSC v3`, in this order.
    pub marks: Vec<String>,
    /// The values of which it takes one, if these are all.
    pub values: Vec<String>,
    /// Its meaning, in Markdown.
    pub description: String,
    /// How it is written, in YAML; empty where nothing is to be seen of that.
    pub example: &'static str,
}

impl DocumentKey {
    /// Every key, part by part, each followed by those within it.
    pub fn all() -> &'static [Self] {
        static ALL: LazyLock<Vec<DocumentKey>> = LazyLock::new(|| {
            let definitions = parsed(DEFINITIONS);
            let mut all = Vec::new();
            for (part, text, definition, below) in OBJECTS {
                let schema = parsed(text);
                let schema = if definition.is_empty() { &schema } else { &schema["$defs"][definition] };
                collect(&mut all, (part, below), &inlined(schema, &definitions), "");
            }
            all
        });
        &ALL
    }

    /// The keys of a part, without those within others.
    pub fn of(part: Part) -> impl Iterator<Item = &'static Self> {
        Self::all().iter().filter(move |key| key.part == part && !key.name.contains('.'))
    }

    /// The keys that a name or a path means: `dependsOn`, `directives.onChanges`, `resources.copy.each`.
    pub fn named(path: &str) -> Vec<&'static Self> {
        let path = path.strip_prefix("resources.").unwrap_or(path);
        let all = || Self::all().iter();
        let by_path: Vec<&Self> = all().filter(|key| key.path().eq_ignore_ascii_case(path)).collect();
        if !by_path.is_empty() {
            return by_path;
        }
        let is_last = |key: &&Self| key.path().rsplit('.').next().is_some_and(|name| name.eq_ignore_ascii_case(path));
        all().filter(is_last).collect()
    }

    /// Its path from the document, or from the instance that it is a key of.
    pub fn path(&self) -> String {
        match self.below {
            "" | "resources" => self.name.clone(),
            below => format!("{below}.{}", self.name),
        }
    }

    /// The keys within it, those of its own first: of `directives` those of an instance and of a document.
    pub fn within(&self) -> impl Iterator<Item = &'static Self> {
        let is_of_part = ["", "resources"].contains(&self.below);
        let path = self.path();
        // One that takes nothing but null is there for documents of others.
        Self::all().iter().filter(|key| key.kind != "null").filter(move |key| {
            let below = if is_of_part && key.below == path { Some(&*key.name) } else { None };
            let name = below.or_else(|| key.path_within(self.part, &self.name));
            name.is_some_and(|name| !name.contains('.'))
        })
    }

    /// The rest of its name, where it is within a key of a part.
    fn path_within(&self, part: Part, name: &str) -> Option<&str> {
        self.name.strip_prefix(name).filter(|_| self.part == part)?.strip_prefix('.')
    }

    /// Its type and its marks, in one line.
    pub fn summary(&self) -> String {
        std::iter::once(&self.kind).chain(&self.marks).map(String::as_str).collect::<Vec<_>>().join(", ")
    }

    /// For a terminal.
    pub fn to_text(&self) -> String {
        let title = self.part.title().to_lowercase();
        let mut text = format!("{} ({title})\n\n{}\n\n{}\n", self.path(), self.summary(), self.description);
        if !self.example.is_empty() {
            let _ = write!(text, "\n  {}\n", self.example.replace('\n', "\n  "));
        }
        text + &self.contents()
    }

    /// The keys within it, a line each behind the part that they belong to.
    fn contents(&self) -> String {
        let (mut text, mut part) = (String::new(), None);
        let width = self.within().map(|key| key.path().len()).max().unwrap_or_default();
        for key in self.within() {
            if part.replace(key.part) != Some(key.part) {
                let _ = write!(text, "\n{}:\n", key.part.title());
            }
            let about = key.description.split_inclusive(". ").next().unwrap_or_default().trim_end_matches(['.', ' ']);
            let _ = writeln!(text, "  {:width$}  {about}", key.path());
        }
        text
    }

    /// Markdown: what it is, and how it is written.
    pub fn to_markdown(&self) -> String {
        let mut text = format!("*{}*\n\n{}\n", self.summary(), self.description);
        if !self.example.is_empty() {
            let _ = write!(text, "\n```yaml\n{}\n```\n", self.example);
        }
        text
    }
}

/// The topic of a key of a part: its own, or that of a key of the same name elsewhere where it says what holds of both.
fn topic_of(part: Part, name: &str) -> Option<&'static Topic> {
    let is_meant = |topic: &&Topic| match (part, topic.part) {
        (Part::Instance, Part::Document) => ["directives", "metadata", "executionInformation"].contains(&name),
        (Part::DocumentDirective, Part::Directive) => true,
        (part, other) => part == other,
    };
    TOPICS.iter().filter(is_meant).find(|topic| topic.names().any(|each| each == name))
}

fn collect(all: &mut Vec<DocumentKey>, (part, below): (Part, &'static str), schema: &Json, prefix: &str) {
    let required = schema.get("required").and_then(Json::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|each| each == name));
    for (name, key) in schema.get("properties").and_then(Json::as_object).into_iter().flatten() {
        let topic = topic_of(part, name).filter(|_| prefix.is_empty());
        let of_parent = TOPICS.iter().find(|topic| topic.name == below && !below.is_empty());
        let stated = |word: &str| key.get(word).and_then(Json::as_str);
        let mut marks = Vec::new();
        marks.extend(is_required(name).then(|| "required".to_owned()));
        marks.extend(key.get("default").map(|default| format!("default {default}")));
        marks.push(format!("since {}", stated("x-since").unwrap_or(FIRST)));
        marks.extend(key.get("x-own").map(|_| "not in DSC v3".to_owned()));
        let is_within_another = ["copy", "directives", "metadata"].contains(&name.as_str()) || part == Part::Document;
        all.push(DocumentKey {
            part,
            below,
            name: format!("{prefix}{name}"),
            kind: kind(key),
            marks,
            values: values(key),
            description: topic.map(|topic| topic.text).or(stated("description")).unwrap_or_default().to_owned(),
            example: topic.or(of_parent).map_or("", |topic| topic.form),
        });
        if !is_within_another {
            members(key, &mut |inner| collect(all, (part, below), inner, &format!("{prefix}{name}.")));
        }
    }
}

/// The objects that a value may be or have in it.
fn members(schema: &Json, each: &mut dyn FnMut(&Json)) {
    each(schema);
    let within = ["items", "additionalProperties"].into_iter().filter_map(|word| schema.get(word));
    let forms = schema.get("anyOf").and_then(Json::as_array).into_iter().flatten();
    within.chain(forms).for_each(|schema| members(schema, each));
}

fn values(schema: &Json) -> Vec<String> {
    let words = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match (schema.get("enum").and_then(Json::as_array), schema.get("type").and_then(Json::as_str)) {
        (Some(values), _) => values.iter().map(words).collect(),
        (None, Some("boolean")) => vec!["true".to_owned(), "false".to_owned()],
        (None, _) => Vec::new(),
    }
}

/// A schema with the definitions that it refers to in their places, and without null, which stands for nothing.
fn inlined(schema: &Json, definitions: &Json) -> Json {
    let inner = |value: &Json| inlined(value, definitions);
    match schema {
        Json::Array(items) => Json::Array(items.iter().filter(|item| !is_null(item)).map(inner).collect()),
        Json::Object(members) => {
            let mut own: Map<String, Json> = members.iter().map(|(key, value)| (key.clone(), inner(value))).collect();
            let name = own.shift_remove("$ref");
            let found = match name.as_ref().and_then(Json::as_str).map(|name| name.rsplit_once("$defs/")) {
                Some(Some((_, name))) => inner(&definitions["$defs"][name]),
                // Another file of which this tells nothing but that it is an object.
                Some(None) => serde_json::json!({ "type": "object" }),
                None => alone(&mut own),
            };
            if let Json::Object(found) = found {
                for (key, value) in found {
                    own.entry(key).or_insert(value);
                }
            }
            Json::Object(own)
        }
        other => other.clone(),
    }
}

/// The only form or type of a value, taken out of the list of one.
fn alone(schema: &mut Map<String, Json>) -> Json {
    if let Some(Json::Array(names)) = schema.get_mut("type")
        && names.len() == 1
    {
        let name = names.remove(0);
        schema.insert("type".to_owned(), name);
    }
    if schema.get("anyOf").and_then(Json::as_array).is_none_or(|forms| forms.len() != 1) {
        return Json::Null;
    }
    let only = schema.shift_remove("anyOf").and_then(|forms| forms.as_array()?.first().cloned());
    only.unwrap_or_default()
}

fn is_null(schema: &Json) -> bool {
    schema.is_null() || schema == "null" || schema.get("type").is_some_and(|name| name == "null")
}

/// The schemas are JSON: a test looks for keys of every part.
fn parsed(text: &str) -> Json {
    serde_json::from_str(text).unwrap_or_default()
}
