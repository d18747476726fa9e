//! The completions at a position.

use serde_json::Value as Json;
use stead_core::document::Part;
use stead_core::expr::functions;
use stead_core::text::Span;
use stead_core::value::Value;
use stead_engine::{DocumentKey, ResourceCall};
use stead_resources::builtins;

use crate::file::File;
use crate::hover::resource;
use crate::names::{DocumentName, DocumentNames, NamedInstance};
use crate::place::{CursorContext, at};
use crate::protocol::{CompletionItem, CompletionItemKind, InsertTextFormat, MarkupContent, TextEdit};

/// Something that can be written.
struct Suggestion {
    label: String,
    kind: CompletionItemKind,
    detail: Option<String>,
    documentation: Option<MarkupContent>,
    /// The text, where it is not the label.
    text: Option<String>,
    format: Option<InsertTextFormat>,
}

/// Everything that can be written at a byte; the editor chooses by what was typed.
pub(crate) fn completion(file: &File, offset: usize) -> Vec<CompletionItem> {
    let (place, start) = at(&file.text, offset);
    let range = file.lines.range(&file.text, (start, offset));
    let names = file.last_read().map(|(text, root)| DocumentNames::of(text, root));
    let items = match &place {
        CursorContext::Key { part, path } => keys(*part, path),
        CursorContext::KeyValue { part, path } => key_values(*part, &path.join(".")),
        CursorContext::Fact => facts(file),
        CursorContext::Type => types(),
        CursorContext::IdType => of_document(names.as_ref(), |names| {
            names.instances.iter().map(|instance| instance.type_name.clone()).collect()
        }),
        CursorContext::IdName { type_name } => of_document(names.as_ref(), |names| {
            let is_meant = |each: &&NamedInstance| each.type_name.eq_ignore_ascii_case(type_name);
            names.instances.iter().filter(is_meant).map(|instance| instance.name.clone()).collect()
        }),
        CursorContext::Instances { list } => {
            names.as_ref().map(|names| other_instances(names, list, offset)).unwrap_or_default()
        }
        CursorContext::Parameter => {
            of_document(names.as_ref(), |names| declared(names, |named| matches!(named, DocumentName::Parameter(_))))
        }
        CursorContext::Variable => {
            of_document(names.as_ref(), |names| declared(names, |named| matches!(named, DocumentName::Variable(_))))
        }
        CursorContext::Function => loop_items(names.as_ref()).into_iter().chain(calls()).collect(),
        CursorContext::Property { type_name, path } => {
            resource(file, type_name).map(|call| properties(&call, path)).unwrap_or_default()
        }
        CursorContext::Value { type_name, path } => {
            resource(file, type_name).map(|call| values(&call, path)).unwrap_or_default()
        }
        CursorContext::Nothing => Vec::new(),
    };
    // The colon of a key that is there already stays.
    let has_colon = file.text.get(offset..).is_some_and(|rest| rest.starts_with(':'));
    let with_place = |suggestion: Suggestion| {
        let Suggestion { label, kind, detail, documentation, text, format: insert_text_format } = suggestion;
        let text = text.unwrap_or_else(|| label.clone());
        let new_text = if has_colon { text.trim_end_matches(": ").to_owned() } else { text };
        let text_edit = TextEdit { range, new_text };
        CompletionItem { label, kind, detail, documentation, insert_text_format, text_edit }
    };
    items.into_iter().map(with_place).collect()
}

fn item(label: impl Into<String>, kind: CompletionItemKind) -> Suggestion {
    Suggestion { label: label.into(), kind, detail: None, documentation: None, text: None, format: None }
}

fn about(text: impl Into<String>) -> Option<MarkupContent> {
    let value = text.into();
    (!value.is_empty()).then(|| MarkupContent::markdown(value))
}

/// The keys of a part of a document, or of an object in it.
fn keys(part: Part, within: &[String]) -> Vec<Suggestion> {
    let prefix: String = within.iter().flat_map(|name| [name.as_str(), "."]).collect();
    let all = DocumentKey::all().iter().filter(|key| key.part == part && key.kind != "null");
    let direct = all.filter_map(|key| {
        let name = key.name.strip_prefix(&prefix).filter(|name| !name.contains('.'))?.to_owned();
        Some((name, key))
    });
    let shown = |(name, key): (String, &DocumentKey)| Suggestion {
        detail: Some(key.summary()),
        documentation: about(&*key.description),
        text: Some(format!("{name}: ")),
        ..item(name, CompletionItemKind::KEYWORD)
    };
    direct.map(shown).collect()
}

fn key_values(part: Part, name: &str) -> Vec<Suggestion> {
    let key = DocumentKey::all().iter().find(|key| key.part == part && key.name == name);
    key.map(|key| key.values.iter().map(|value| item(value.clone(), CompletionItemKind::VALUE)).collect())
        .unwrap_or_default()
}

/// The facts of the machine that the editor runs on; others have the same ones with few exceptions.
fn facts(file: &File) -> Vec<Suggestion> {
    let mut found = Vec::new();
    if let Ok(all) = file.beside().machine().facts() {
        each_fact(all, "", &mut found);
    }
    found
}

fn each_fact(value: &Value, path: &str, found: &mut Vec<Suggestion>) {
    let Value::Object(members) = value else { return };
    for (name, value) in members {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let here = (!matches!(value, Value::Object(_) | Value::Array(_))).then(|| value.to_redacted_json().to_string());
        let detail = here.map(|here| format!("{here} on this machine"));
        found.push(Suggestion { detail, ..item(path.clone(), CompletionItemKind::CONSTANT) });
        each_fact(value, &path, found);
    }
}

fn of_document(names: Option<&DocumentNames>, choose: impl Fn(&DocumentNames) -> Vec<String>) -> Vec<Suggestion> {
    let mut found = names.map(choose).unwrap_or_default();
    found.sort();
    found.dedup();
    found.into_iter().map(|name| item(name, CompletionItemKind::REFERENCE)).collect()
}

fn declared(names: &DocumentNames, is_meant: impl Fn(&DocumentName) -> bool) -> Vec<String> {
    names.declared().filter(|mention| is_meant(&mention.named)).map(|mention| mention.named.name().to_owned()).collect()
}

/// The instances that another one can be related to, and for `dependsOn` the loops, which stand for all of theirs.
fn other_instances(names: &DocumentNames, list: &str, offset: usize) -> Vec<Suggestion> {
    let is_other = |span: Span| !(span.start as usize <= offset && offset <= span.end as usize);
    let id = |instance: &NamedInstance| {
        let NamedInstance { type_name, name, .. } = instance;
        let quoted = format!("[resourceId('{type_name}', '{}')]", name.replace('\'', "''"));
        Suggestion {
            detail: Some(type_name.clone()),
            text: Some(Json::from(quoted).to_string()),
            ..item(name.clone(), CompletionItemKind::REFERENCE)
        }
    };
    let all = |name: &String| Suggestion {
        detail: Some("all instances of the loop".to_owned()),
        ..item(name.clone(), CompletionItemKind::REFERENCE)
    };
    let instances = names.instances.iter().filter(|instance| is_other(instance.span)).map(id);
    let loops = names.loops.iter().filter(|(_, span)| list == "dependsOn" && is_other(*span));
    instances.chain(loops.map(|(name, _)| all(name))).collect()
}

fn types() -> Vec<Suggestion> {
    let all = builtins().iter().map(|built_in| &built_in.manifest);
    let shown = |manifest: &stead_core::manifest::Manifest| Suggestion {
        documentation: about(manifest.description.as_deref().unwrap_or_default()),
        ..item(manifest.type_name.as_str(), CompletionItemKind::CLASS)
    };
    all.map(|manifest| shown(manifest)).collect()
}

/// What the loops of the document call their items.
fn loop_items(names: Option<&DocumentNames>) -> Vec<Suggestion> {
    let call = |called: &String| Suggestion {
        detail: Some("the item of a loop".to_owned()),
        ..item(format!("{called}()"), CompletionItemKind::VARIABLE)
    };
    names.map(|names| names.items.iter().map(call).collect()).unwrap_or_default()
}

fn calls() -> Vec<Suggestion> {
    let call = |function: &stead_core::expr::Builtin| {
        // The cursor stands between the parentheses where something is to be in them.
        let arguments = if function.max == Some(0) { "()" } else { "($0)" };
        Suggestion {
            detail: Some(function.syntax.to_owned()),
            documentation: about(function.description),
            text: Some(format!("{}{arguments}", function.name)),
            format: Some(InsertTextFormat::SNIPPET),
            ..item(function.name, CompletionItemKind::FUNCTION)
        }
    };
    functions().iter().map(call).collect()
}

fn properties(call: &ResourceCall, path: &[String]) -> Vec<Suggestion> {
    let prefix: String = path.iter().flat_map(|name| [name.as_str(), "."]).collect();
    let reference = call.reference();
    let all = reference.properties();
    let direct = all.iter().filter_map(|property| {
        let name = property.name.strip_prefix(&prefix).filter(|name| !name.contains('.'))?;
        let is_stated = !property.marks.iter().any(|mark| mark == "read-only");
        is_stated.then_some((name, property))
    });
    let shown = |(name, property): (&str, &stead_engine::PropertyReference<'_>)| {
        let kind: Vec<&str> =
            std::iter::once(property.kind.as_str()).chain(property.marks.iter().map(String::as_str)).collect();
        Suggestion {
            detail: Some(kind.join(", ")),
            documentation: about(property.description),
            text: Some(format!("{name}: ")),
            ..item(name, CompletionItemKind::PROPERTY)
        }
    };
    direct.map(shown).collect()
}

/// The values that a schema lists for the property at a path.
fn values(call: &ResourceCall, path: &[String]) -> Vec<Suggestion> {
    let reference = call.reference();
    let mut schema = &reference.schema;
    for name in path {
        let within = schema.get("properties").or_else(|| schema.get("items")?.get("properties"));
        match within.and_then(|properties| properties.get(name)) {
            Some(found) => schema = found,
            None => return Vec::new(),
        }
    }
    let schema = schema.get("items").unwrap_or(schema);
    let mut found = Vec::new();
    listed(schema, &mut found);
    found.into_iter().map(|value| item(value, CompletionItemKind::VALUE)).collect()
}

fn listed(schema: &Json, found: &mut Vec<String>) {
    let text = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let types = schema.get("type");
    let is_boolean = types.is_some_and(|kind| kind == "boolean");
    found.extend(
        schema.get("enum").and_then(Json::as_array).into_iter().flatten().filter(|value| !value.is_null()).map(text),
    );
    found.extend(schema.get("const").map(text));
    if is_boolean {
        found.extend(["true".to_owned(), "false".to_owned()]);
    }
    for keyword in ["oneOf", "anyOf"] {
        schema.get(keyword).and_then(Json::as_array).into_iter().flatten().for_each(|each| listed(each, found));
    }
}
