//! The functions that DSC v3 does not have, in the namespace `stead`.

use std::cmp::Ordering;

use regex::{Captures, Regex, RegexBuilder};
use serde_json::Value as Json;

use super::super::builtin::{Arguments, BuiltinResult, Wrong};
use super::array::distinct as each_once;
use super::logic::compare;
use super::text::MAX_TEXT;
use crate::digest;
use crate::source::SourceId;
use crate::template;
use crate::text::{self, Limits};
use crate::value::{Object, Value};

/// How large a compiled regular expression may be, in bytes.
const MAX_REGEX: usize = 1 << 20;

/// How deep objects are merged; a document is at most as deep.
const MAX_DEPTH: usize = 128;

pub(super) fn replace(mut arguments: Arguments) -> BuiltinResult {
    let (text, from, to) = (arguments.text()?, arguments.text()?, arguments.text()?);
    if from.is_empty() {
        return Err(Wrong::value(1, "the text to replace must not be empty"));
    }
    let found = text.matches(&from).count();
    within_limit(text.len().saturating_add(found.saturating_mul(to.len())))?;
    Ok(text.replace(&from, &to).into())
}

pub(super) fn split(mut arguments: Arguments) -> BuiltinResult {
    let (text, delimiter) = (arguments.text()?, arguments.text()?);
    if delimiter.is_empty() {
        return Err(Wrong::value(1, "the delimiter must not be empty"));
    }
    Ok(Value::Array(text.split(&delimiter).map(Value::from).collect()))
}

pub(super) fn lines(mut arguments: Arguments) -> BuiltinResult {
    Ok(Value::Array(arguments.text()?.lines().map(Value::from).collect()))
}

pub(super) fn indent(mut arguments: Arguments) -> BuiltinResult {
    let (text, count) = (arguments.text()?, arguments.integer()?);
    let count = usize::try_from(count).ok().filter(|count| *count <= 1000);
    let count = count.ok_or_else(|| Wrong::value(1, "the number of spaces must be from 0 to 1000"))?;
    within_limit(text.len().saturating_add(text.lines().count().saturating_mul(count)))?;
    let spaces = " ".repeat(count);
    let lines = text.split_inclusive('\n');
    let indented = lines.flat_map(|line| [if line.trim().is_empty() { "" } else { &spaces }, line]);
    Ok(indented.collect::<String>().into())
}

pub(super) fn regex_match(mut arguments: Arguments) -> BuiltinResult {
    let text = arguments.text()?;
    Ok(pattern(&mut arguments)?.is_match(&text).into())
}

pub(super) fn regex_replace(mut arguments: Arguments) -> BuiltinResult {
    let text = arguments.text()?;
    let (pattern, to) = (pattern(&mut arguments)?, arguments.text()?);
    // What a match becomes may be much longer than the match: the result is made piece by piece, up to the limit.
    let (mut replaced, mut end) = (String::new(), 0);
    for captures in pattern.captures_iter(&text) {
        let Some(whole) = captures.get(0) else { continue };
        replaced.push_str(text.get(end..whole.start()).unwrap_or_default());
        captures.expand(&to, &mut replaced);
        within_limit(replaced.len())?;
        end = whole.end();
    }
    replaced.push_str(text.get(end..).unwrap_or_default());
    Ok(replaced.into())
}

pub(super) fn regex_groups(mut arguments: Arguments) -> BuiltinResult {
    let text = arguments.text()?;
    let pattern = pattern(&mut arguments)?;
    let groups = |captures: Captures<'_>| {
        let group = |found: Option<regex::Match<'_>>| found.map_or(Value::Null, |found| found.as_str().into());
        Value::Array(captures.iter().map(group).collect())
    };
    Ok(pattern.captures(&text).map_or(Value::Null, groups))
}

/// The second argument as a regular expression.
fn pattern(arguments: &mut Arguments) -> Result<Regex, Wrong> {
    let pattern = arguments.text()?;
    RegexBuilder::new(&pattern).size_limit(MAX_REGEX).build().map_err(|error| {
        // The error is drawn in several lines, of which the last says what is wrong.
        let error = error.to_string();
        let reason = error.lines().next_back().unwrap_or_default();
        Wrong::value(1, format!("invalid regular expression: {}", reason.trim_start_matches("error: ")))
    })
}

pub(super) fn shell_quote(mut arguments: Arguments) -> BuiltinResult {
    Ok(format!("'{}'", arguments.text()?.replace('\'', r"'\''")).into())
}

pub(super) fn base_name(mut arguments: Arguments) -> BuiltinResult {
    let path = arguments.text()?;
    let path = without_end(&path);
    Ok(path.rsplit_once('/').map_or(path, |(_, name)| name).into())
}

pub(super) fn dir_name(mut arguments: Arguments) -> BuiltinResult {
    let path = arguments.text()?;
    Ok(match without_end(&path).rsplit_once('/') {
        Some((folder, _)) if without_end(folder).is_empty() => "/",
        Some((folder, _)) => without_end(folder),
        None if path.starts_with('/') => "/",
        None => ".",
    }
    .into())
}

fn without_end(path: &str) -> &str {
    path.trim_end_matches('/')
}

pub(super) fn sha256(mut arguments: Arguments) -> BuiltinResult {
    Ok(digest::sha256(arguments.text()?).into())
}

pub(super) fn sort(mut arguments: Arguments) -> BuiltinResult {
    let mut items = arguments.array()?;
    let are_text = items.iter().all(|item| matches!(item, Value::String(_)));
    if !are_text && !items.iter().all(|item| matches!(item, Value::Number(_))) {
        return Err(Wrong::kind(0, "All elements must be strings, or all numbers"));
    }
    items.sort_by(|left, right| match (left, right) {
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Number(left), Value::Number(right)) => compare(left, right).unwrap_or(Ordering::Equal),
        _ => Ordering::Equal,
    });
    Ok(Value::Array(items))
}

pub(super) fn reverse(mut arguments: Arguments) -> BuiltinResult {
    let mut items = arguments.array()?;
    items.reverse();
    Ok(Value::Array(items))
}

pub(super) fn distinct(mut arguments: Arguments) -> BuiltinResult {
    Ok(Value::Array(each_once(arguments.array()?.into_iter())))
}

pub(super) fn flatten(mut arguments: Arguments) -> BuiltinResult {
    let mut flat = Vec::new();
    for item in arguments.array()? {
        match item {
            Value::Array(items) => flat.extend(items),
            item => flat.push(item),
        }
    }
    Ok(Value::Array(flat))
}

pub(super) fn merge(mut arguments: Arguments) -> BuiltinResult {
    let mut merged = arguments.object()?;
    while arguments.left() > 0 {
        merge_into(&mut merged, arguments.object()?, MAX_DEPTH);
    }
    Ok(Value::Object(merged))
}

fn merge_into(merged: &mut Object, with: Object, depth: usize) {
    for (key, value) in with {
        match (merged.get_mut(&key), value) {
            (Some(Value::Object(ours)), Value::Object(theirs)) if depth > 0 => merge_into(ours, theirs, depth - 1),
            (Some(ours), value) => *ours = value,
            (None, value) => _ = merged.insert(key, value),
        }
    }
}

pub(super) fn template(mut arguments: Arguments) -> BuiltinResult {
    let (text, variables) = (arguments.text()?, arguments.any());
    if variables.has_sealed() {
        return Err(Wrong::kind(1, "a secret cannot be made into text here"));
    }
    // Nothing is left that the redaction could replace.
    let rendered = template::render(&text, &variables.to_redacted_json()).map_err(|error| {
        let line = error.line.map(|line| format!("line {line} of the template: ")).unwrap_or_default();
        let wrong = Wrong::value(0, format!("{line}{}", error.message(true)));
        if error.is_undefined { wrong.with_help("add it to the variables, the second argument") } else { wrong }
    })?;
    Ok(rendered.into())
}

pub(super) fn to_json(mut arguments: Arguments) -> BuiltinResult {
    text_of(&arguments.any(), |json| serde_json::to_string_pretty(json).ok().map(|text| text + "\n"))
}

pub(super) fn to_yaml(mut arguments: Arguments) -> BuiltinResult {
    // Text stays in one line however long it is.
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    text_of(&arguments.any(), |json| {
        let text = serde_saphyr::to_string_with_options(json, options).ok()?;
        Some(if text.ends_with('\n') { text } else { text + "\n" })
    })
}

fn text_of(value: &Value, write: impl FnOnce(&Json) -> Option<String>) -> BuiltinResult {
    if value.has_sealed() {
        return Err(Wrong::kind(0, "a secret cannot be made into text here"));
    }
    // Nothing is left that the redaction could replace.
    let text = write(&value.to_redacted_json()).ok_or_else(Wrong::limit)?;
    within_limit(text.len())?;
    Ok(text.into())
}

pub(super) fn from_yaml(mut arguments: Arguments) -> BuiltinResult {
    let (root, findings) = text::read(SourceId::default(), &arguments.text()?, &Limits::default());
    match (findings.into_iter().next(), root) {
        (Some(finding), _) => Err(Wrong::value(0, format!("Invalid YAML: {}", finding.message))),
        (None, Some(root)) => Ok(root.literal()),
        (None, None) => Err(Wrong::value(0, "Invalid YAML")),
    }
}

fn within_limit(bytes: usize) -> Result<(), Wrong> {
    if bytes > MAX_TEXT { Err(Wrong::limit()) } else { Ok(()) }
}
