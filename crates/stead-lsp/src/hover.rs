//! The text about the word under the cursor.

use stead_core::document::{Over, items_of};
use stead_core::expr::{fact_at, functions};
use stead_core::text::{Kind, Node};
use stead_engine::{DocumentKey, ResourceCall};

use crate::file::File;
use crate::place::{CursorContext, TreeStep, at, classified, path_at};

/// Markdown about what stands at a byte, and the bytes that it is about.
pub(crate) fn hover(file: &File, offset: usize) -> Option<(String, (usize, usize))> {
    if let Some(found) = function(&file.text, offset) {
        return Some(found);
    }
    let (text, root) = file.last_read().filter(|(text, _)| *text == file.text)?;
    let word = word_at(text, offset)?;
    let page = match at(text, offset).0 {
        CursorContext::Function => loop_item(root, text.get(word.0..word.1)?)?,
        CursorContext::Parameter => parameter(root, text.get(word.0..word.1)?)?,
        CursorContext::Fact => fact(file, text.get(word.0..word.1)?)?,
        _ => match path_at(root, u32::try_from(offset).ok()?)? {
            path if declares_parameter(&path) => parameter(root, text.get(word.0..word.1)?)?,
            path => in_tree(file, path, text.get(word.0..word.1)?)?,
        },
    };
    Some((page, word))
}

/// The reference of a key or a type.
fn in_tree(file: &File, mut path: Vec<TreeStep>, word: &str) -> Option<String> {
    // A key is looked for in what it is in.
    let key = match path.as_slice() {
        [.., TreeStep::Member { name, .. }, TreeStep::Key { .. }] => Some(name.clone()),
        _ => None,
    };
    if key.is_some() {
        path.remove(path.len() - 2);
    }
    let named = |path: Vec<String>| path.into_iter().chain(key.clone()).collect::<Vec<_>>().join(".");
    match classified(&path) {
        CursorContext::Type => Some(resource(file, word)?.reference().to_markdown()),
        CursorContext::Property { type_name, path } if key.is_some() => {
            let (call, name) = (resource(file, &type_name)?, named(path));
            let reference = call.reference();
            let property = reference.properties().into_iter().find(|property| property.name == name)?;
            let kind: Vec<&str> =
                std::iter::once(property.kind.as_str()).chain(property.marks.iter().map(String::as_str)).collect();
            Some(format!("**{}** ({})\n\n{}", property.name, kind.join(", "), property.description))
        }
        CursorContext::Key { part, path } if key.is_some() => {
            let name = named(path);
            let found = DocumentKey::all().iter().find(|each| each.part == part && each.name == name)?;
            Some(format!("**{}** ({})\n\n{}", found.path(), found.part.title().to_lowercase(), found.to_markdown()))
        }
        _ => None,
    }
}

/// Returns whether a path leads to the name of a parameter where it is declared.
fn declares_parameter(path: &[TreeStep]) -> bool {
    matches!(path, [TreeStep::Member { name, .. }, TreeStep::Member { .. }, TreeStep::Key { .. }] if name == "parameters")
}

/// The declaration of a parameter: what it is for, its default and the values that it may have. Those of a secret are not shown.
fn parameter(root: &Node, name: &str) -> Option<String> {
    let declared = root.get("parameters")?.get(name)?;
    let stated = |key: &str| declared.get(key).and_then(Node::as_str).unwrap_or_default();
    let is_secret = stated("type").to_lowercase().starts_with("secure");
    let values = [("defaultValue", "Default"), ("allowedValues", "Allowed")].into_iter().filter(|_| !is_secret);
    let values = values
        .filter_map(|(key, title)| Some(format!("{title}: `{}`", declared.get(key)?.literal().to_redacted_json())));
    let paragraphs = [format!("**{name}** (parameter: {})", stated("type")), stated("description").to_owned()];
    let paragraphs = paragraphs.into_iter().chain(values).filter(|paragraph| !paragraph.is_empty());
    Some(paragraphs.collect::<Vec<_>>().join("\n\n"))
}

/// The loop that calls its items by this name: its own name, and what it goes over.
fn loop_item(node: &Node, name: &str) -> Option<String> {
    match &node.kind {
        Kind::Array(items) => items.iter().find_map(|item| loop_item(item, name)),
        Kind::Object(entries) if items_of(entries).any(|item| *item == *name) => {
            let copy = node.get("copy")?;
            let is_meant = |each: &&Node| {
                each.get("each").is_some() && each.get("as").and_then(Node::as_str).unwrap_or(Over::ITEM) == name
            };
            let found = copy.items().unwrap_or(std::slice::from_ref(copy)).iter().find(is_meant)?;
            let over = found.get("each")?.literal().to_redacted_json();
            let called = found.get("name").and_then(Node::as_str).unwrap_or_default();
            Some(format!("**{name}()** (the item of the loop '{called}')\n\nOf: `{over}`"))
        }
        Kind::Object(entries) => entries.iter().find_map(|entry| loop_item(&entry.value, name)),
        _ => None,
    }
}

/// The value of a fact on the machine of the editor.
fn fact(file: &File, path: &str) -> Option<String> {
    let session = file.beside();
    let value = fact_at(session.machine().facts().ok()?, path).ok()?;
    Some(format!("**{path}** (fact)\n\nOn this machine:\n\n```json\n{}\n```", value.to_redacted_json()))
}

/// A resource of that type, looked for where those of the document are.
pub(crate) fn resource(file: &File, type_name: &str) -> Option<ResourceCall> {
    ResourceCall::find(file.beside(), type_name, None).ok()
}

/// A function that is called at a byte within an expression.
fn function(text: &str, offset: usize) -> Option<(String, (usize, usize))> {
    let (start, end) = word_at(text, offset)?;
    if !text.get(end..)?.starts_with('(') {
        return None;
    }
    let line = text.get(..start)?.rsplit('\n').next()?;
    let name = text.get(start..end)?;
    let function = functions().iter().find(|function| function.name == name).filter(|_| line.contains('['))?;
    let constraints = function.constraints.map(|text| format!("\n\n{text}")).unwrap_or_default();
    Some((format!("```text\n{}\n```\n\n{}{constraints}", function.syntax, function.description), (start, end)))
}

/// The word around a byte.
pub(crate) fn word_at(text: &str, offset: usize) -> Option<(usize, usize)> {
    let is_of_word = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '/' | '$');
    let (before, behind) = (text.get(..offset)?, text.get(offset..)?);
    let start = before
        .rfind(|letter| !is_of_word(letter))
        .map_or(0, |at| at + before.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8));
    let end = offset + behind.find(|letter| !is_of_word(letter)).unwrap_or(behind.len());
    (start < end).then_some((start, end))
}
