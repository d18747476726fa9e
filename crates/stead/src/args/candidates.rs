//! The words that a command line may go on with. Nothing is run for it: a document that the words name is parsed, and that is all
//! that is read of the machine.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;

use clap::builder::PossibleValue;
use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use serde_json::Value as Json;
use stead_core::manifest::Manifest;
use stead_core::text::{self, Limits, Node, SourceId};
use stead_resources::BuiltIn;

use crate::codes;
use crate::input;

/// The words of the command line that is completed.
pub(crate) fn words() -> Option<Vec<OsString>> {
    let mut all = env::args_os().skip(1);
    (all.next()? == "--").then(|| all.collect())
}

/// A word as a shell reads it, without a substitution of anything.
pub(crate) fn unquoted(word: &str) -> String {
    let (mut text, mut letters, mut within) = (String::new(), word.chars(), None);
    while let Some(letter) = letters.next() {
        match (letter, within) {
            ('\'' | '"', None) => within = Some(letter),
            (_, Some(quote)) if letter == quote => within = None,
            ('\\', None | Some('"')) => text.extend(letters.next()),
            _ => text.push(letter),
        }
    }
    text
}

/// The types that are known without looking for resources.
pub(crate) fn types() -> Vec<PossibleValue> {
    let built_in = stead_resources::builtins().iter().map(|built_in| &built_in.manifest);
    let described = |manifest: &Arc<Manifest>| {
        let value = PossibleValue::new(manifest.type_name.to_string());
        value.help(manifest.description.clone().unwrap_or_default())
    };
    built_in.map(described).collect()
}

/// Those of them that a word begins, in small letters or not, with the owner or without.
pub(crate) fn types_like(current: &OsStr) -> Vec<CompletionCandidate> {
    begun(types(), current)
}

/// The topics of `explain` that a word begins, as far as they are known without looking for resources.
pub(crate) fn subjects(current: &OsStr) -> Vec<CompletionCandidate> {
    begun(all_subjects(), current)
}

fn begun(values: Vec<PossibleValue>, current: &OsStr) -> Vec<CompletionCandidate> {
    let word = current.to_string_lossy().to_lowercase();
    let is_begun = |name: &str| {
        let name = name.to_lowercase();
        name.starts_with(&word) || name.split_once('/').is_some_and(|(_, short)| short.starts_with(&word))
    };
    let fitting = values.into_iter().filter(|value| is_begun(value.get_name()));
    fitting.map(|value| CompletionCandidate::new(value.get_name()).help(value.get_help().cloned())).collect()
}

fn all_subjects() -> Vec<PossibleValue> {
    let functions = stead_core::expr::functions().iter();
    let functions = functions.map(|function| PossibleValue::new(function.name).help(function.description));
    let codes = codes::all().into_iter().map(|code| PossibleValue::new(code.id).help(code.title));
    let keys = stead_engine::DocumentKey::all().iter();
    let keys = keys.map(|key| PossibleValue::new(key.path()).help(key.summary()));
    let mut all: Vec<PossibleValue> = codes.chain(functions).chain(types()).chain(keys).collect();
    let mut seen = std::collections::HashSet::new();
    all.retain(|value| seen.insert(value.get_name().to_owned()));
    all
}

/// The instances that `--only` and `--skip` can name in the document of the command line.
pub(crate) fn parts() -> Vec<CompletionCandidate> {
    let instances = instances();
    let words = instances.iter().flat_map(|(name, instance)| {
        let type_name = instance.get("type").and_then(Node::as_str).unwrap_or_default();
        let tags = instance.get("metadata").and_then(|metadata| metadata.get("tags"));
        let tags = tags.into_iter().flat_map(|tags| tags.items().unwrap_or(std::slice::from_ref(tags)));
        let tags = tags.filter_map(Node::as_str).map(|tag| candidate(tag, "tag"));
        [candidate(name, type_name), candidate(type_name, "type")].into_iter().chain(tags)
    });
    let mut parts: Vec<CompletionCandidate> = words.collect();
    parts.sort();
    parts.dedup();
    parts
}

/// `NAME=` for each property of the built-in resource that the command line names, and paths.
pub(crate) fn properties(current: &OsStr) -> Vec<CompletionCandidate> {
    let text = current.to_string_lossy();
    if let Some((name, path)) = text.split_once('=') {
        let paths = PathCompleter::any().complete(OsStr::new(path));
        return paths.into_iter().map(|path| path.add_prefix(format!("{name}="))).collect();
    }
    let words = words().unwrap_or_default();
    let is_named = |built_in: &&BuiltIn| {
        let type_name = &built_in.manifest.type_name;
        let names = [type_name.as_str(), type_name.short()];
        words.iter().skip(2).any(|word| names.iter().any(|name| word.eq_ignore_ascii_case(name)))
    };
    let resource = stead_resources::builtins().iter().find(is_named);
    let schema = resource.map(BuiltIn::schema).and_then(|schema| schema["properties"].as_object());
    let properties = schema.into_iter().flatten().filter(|(name, _)| name.starts_with(&*text));
    let described = |(name, schema): (&String, &Json)| {
        candidate(&format!("{name}="), schema["description"].as_str().unwrap_or_default())
    };
    properties.map(described).chain(PathCompleter::any().complete(current)).collect()
}

/// The names of the instances of the document of the command line.
pub(crate) fn names() -> Vec<CompletionCandidate> {
    let type_of = |instance: &Node| instance.get("type").and_then(Node::as_str).unwrap_or_default().to_owned();
    instances().iter().map(|(name, instance)| candidate(name, &type_of(instance))).collect()
}

/// `NAME=` for each parameter of the document of the command line.
pub(crate) fn parameters() -> Vec<CompletionCandidate> {
    let Some(document) = document() else { return Vec::new() };
    let parameters = document.get("parameters").and_then(Node::entries).unwrap_or_default();
    let described = |parameter: &Node| {
        let text = parameter.get("metadata").and_then(|metadata| metadata.get("description"));
        text.and_then(Node::as_str).unwrap_or_default().to_owned()
    };
    parameters.iter().map(|each| candidate(&format!("{}=", each.key), &described(&each.value))).collect()
}

fn candidate(value: &str, help: &str) -> CompletionCandidate {
    CompletionCandidate::new(value).help((!help.is_empty()).then(|| help.to_owned().into()))
}

/// The first document that the command line names.
fn document() -> Option<Node> {
    let home = env::var_os("HOME").map(PathBuf::from);
    words()?.iter().skip(1).find_map(|word| {
        let word = unquoted(word.to_str()?);
        let path = match (word.strip_prefix("~/"), &home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(word),
        };
        // Whoever completes still types, and nothing ends standard input.
        let is_file = path.as_os_str() != "-" && path.is_file();
        let text = is_file.then(|| input::read(&path).ok()).flatten()?.text;
        text::read(SourceId::default(), &text, &Limits::default()).0.filter(|root| root.get("resources").is_some())
    })
}

/// Instances with their names, also nested ones, as far as no expression decides about the name.
fn instances() -> Vec<(String, Node)> {
    let (mut found, mut open) = (Vec::new(), Vec::from_iter(document()));
    while let Some(node) = open.pop() {
        for instance in node.get("resources").and_then(Node::items).unwrap_or_default() {
            let name = instance.get("name").and_then(Node::as_str).filter(|name| !name.starts_with('['));
            found.extend(name.map(|name| (name.to_owned(), instance.clone())));
            open.extend([Some(instance), instance.get("properties")].into_iter().flatten().cloned());
        }
    }
    found
}
