//! YAML, edited by the places of its values.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

use stead_core::diag::Severity;
use stead_core::text::{Entry, Kind, Limits, Node, SourceId, Span, read};
use stead_core::value::{Object, Value};

use super::index;
use crate::part::lines::{ending, replaced};

pub(super) struct Format;

impl super::Format for Format {
    const PROFILE: super::Profile = super::YAML;
    const NAME: &'static str = "YAML";
    const NULL_IS_EMPTY: bool = true;

    fn check(value: &Value) -> Result<(), &'static str> {
        if has_long_name(value) {
            Err("must not have names of more than 1,000 bytes, which YAML cannot hold")
        } else {
            Ok(())
        }
    }

    fn parse(text: &str) -> Result<Value, String> {
        if is_blank(text) { Ok(Object::new().into()) } else { Ok(tree(text)?.literal()) }
    }

    fn put(text: &str, steps: &[Cow<'_, str>], value: &Value) -> Option<String> {
        if is_blank(text) {
            let glue = if text.is_empty() || text.ends_with('\n') { "" } else { ending(text) };
            return Some([text, glue, &nested("", steps, value, ending(text))?, ending(text)].concat());
        }
        let root = tree(text).ok()?;
        let (found, rest) = descend(&root, steps);
        match rest {
            [] => found.replace(text, &flow(value)),
            [step, rest @ ..] => found.insert(text, step, rest, value),
        }
    }

    fn remove(text: &str, steps: &[Cow<'_, str>]) -> Option<String> {
        let root = tree(text).ok()?;
        let (last, above) = steps.split_last()?;
        let (found, []) = descend(&root, above) else { return None };
        let parts = found.parts();
        let at = match &found.node.kind {
            Kind::Object(entries) => entries.iter().position(|entry| *entry.key == **last)?,
            _ => index(last)?,
        };
        let part = parts.get(at)?;
        match (parts.get(at + 1), at.checked_sub(1).and_then(|at| parts.get(at)), found.is_flow(text)) {
            (None, None, true) => Some(replaced(text, part, "")),
            (None, None, false) if found.slot.is_none() => Some(replaced(text, &whole_lines(text, part)?, "")),
            (None, None, false) => found.replace(text, found.empty()),
            (Some(next), _, true) => Some(replaced(text, &(part.start..next.start), "")),
            (None, Some(former), true) => Some(replaced(text, &(former.end..part.end), "")),
            (next, _, false) => found.without_line(text, part, next),
        }
    }
}

/// Returns whether nothing is in a text but comments: one in which nothing is set yet.
fn is_blank(text: &str) -> bool {
    text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
}

/// The tree of a text, if nothing in it is wrong.
fn tree(text: &str) -> Result<Node, String> {
    let (tree, findings) = read(SourceId::default(), text, &Limits::default());
    match findings.into_iter().find(|finding| finding.severity == Severity::Error) {
        // Its message may quote the file, and any value may be a secret.
        Some(finding) => Err(match finding.span {
            Some(span) => {
                let before = text.as_bytes().iter().take(span.start as usize);
                format!("line {}: {}", before.filter(|byte| **byte == b'\n').count() + 1, finding.code.title)
            }
            None => finding.code.title.to_owned(),
        }),
        None => tree.ok_or_else(|| "it has no value".to_owned()),
    }
}

/// A value in a tree, and what it is the value of.
struct Found<'t> {
    node: &'t Node,
    /// The end of what leads to it: of its key, or `None` of the root and of elements.
    slot: Option<Slot>,
}

#[derive(Clone, Copy)]
enum Slot {
    Member { key_end: usize },
    Element,
}

/// As far as the steps lead, and those that are left.
fn descend<'t, 's>(root: &'t Node, steps: &'s [Cow<'s, str>]) -> (Found<'t>, &'s [Cow<'s, str>]) {
    let (mut found, mut rest) = (Found { node: root, slot: None }, steps);
    while let [step, others @ ..] = rest {
        let Some(child) = found.child(step) else { break };
        (found, rest) = (child, others);
    }
    (found, rest)
}

fn bytes(span: Span) -> Range<usize> {
    span.start as usize..span.end as usize
}

impl Found<'_> {
    fn child(&self, step: &str) -> Option<Self> {
        match &self.node.kind {
            Kind::Object(entries) => {
                let Entry { value, key_span, .. } = entries.iter().find(|entry| *entry.key == *step)?;
                Some(Self { node: value, slot: Some(Slot::Member { key_end: key_span.end as usize }) })
            }
            Kind::Array(items) => Some(Self { node: items.get(index(step)?)?, slot: Some(Slot::Element) }),
            _ => None,
        }
    }

    /// Where its members or elements are: each from the beginning of its key, or of itself, to its end.
    fn parts(&self) -> Vec<Range<usize>> {
        match &self.node.kind {
            Kind::Object(entries) => entries.iter().map(|entry| bytes(entry.key_span.to(entry.value.span))).collect(),
            Kind::Array(items) => items.iter().map(|item| bytes(item.span)).collect(),
            _ => Vec::new(),
        }
    }

    fn is_flow(&self, text: &str) -> bool {
        let begin = text.get(self.node.span.start as usize..).unwrap_or_default();
        begin.starts_with(['{', '['])
    }

    fn empty(&self) -> &'static str {
        if matches!(self.node.kind, Kind::Array(_)) { "[]" } else { "{}" }
    }

    /// The text with another value in its place.
    fn replace(&self, text: &str, value: &str) -> Option<String> {
        let range = bytes(self.node.span);
        let written = text.get(range.clone())?;
        let end = range.start + written.trim_end().len();
        match self.slot {
            Some(Slot::Member { key_end }) => {
                let colon = key_end + text.get(key_end..)?.find(':')? + 1;
                let between = text.get(colon..range.start.max(colon))?;
                // A comment there would be lost; what is not blank belongs to the value.
                let keeps = between.trim().is_empty() || !between.contains(['#', '\n']);
                let lead = if between.trim().is_empty() { " " } else { between };
                keeps.then(|| replaced(text, &(colon..end.max(colon)), &[lead, value].concat()))
            }
            _ => Some(replaced(text, &(range.start..end), value)),
        }
    }

    /// Inserts a member below a key that has no value; returns the new text.
    fn fill(&self, text: &str, steps: &[Cow<'_, str>], value: &Value) -> Option<String> {
        let Some(Slot::Member { key_end }) = self.slot else { return None };
        let start = line_start(text, key_end);
        let line = text.get(start..)?.lines().next()?;
        // It is on the line of its key, where nothing but a comment is behind it.
        let behind = text.get(key_end..start + line.len())?.trim_start().strip_prefix(':')?.trim_start();
        let is_empty = bytes(self.node.span).is_empty() && (behind.is_empty() || behind.starts_with('#'));
        let is_dash = |each: char| matches!(each, ' ' | '-');
        let indent = " ".repeat(line.len() - line.trim_start_matches(is_dash).len() + 2);
        let new = nested(&indent, steps, value, ending(text))?;
        let end = start + line.len();
        is_empty.then(|| replaced(text, &(end..end), &[ending(text), &new].concat()))
    }

    /// The text with a member or an element more.
    fn insert(&self, text: &str, step: &str, rest: &[Cow<'_, str>], value: &Value) -> Option<String> {
        if matches!(self.node.kind, Kind::Null) {
            let steps: Vec<_> = std::iter::once(Cow::from(step)).chain(rest.iter().cloned()).collect();
            return self.fill(text, &steps, value);
        }
        let parts = self.parts();
        let is_object = matches!(self.node.kind, Kind::Object(_));
        if self.is_flow(text) || parts.is_empty() {
            let wrap = |value, step: &Cow<'_, str>| Value::Object([(step.to_string(), value)].into());
            let value = flow(&rest.iter().rev().fold(value.clone(), wrap));
            let new = if is_object { format!("{}: {value}", scalar(step)) } else { value };
            let range = bytes(self.node.span);
            return Some(match parts.last() {
                Some(last) => replaced(text, &(last.end..last.end), &format!(", {new}")),
                None => replaced(text, &(range.start + 1..range.end.saturating_sub(1)), &new),
            });
        }
        let (first, last) = (parts.first()?, parts.last()?);
        let (line, end) = (line_start(text, first.start), end_of_content(text, last)?);
        let before = text.get(line..first.start)?;
        let dash = if is_object { before.len() } else { before.rfind('-')? };
        let indent = " ".repeat(before.get(..dash)?.chars().count());
        let new = if is_object {
            let steps: Vec<_> = std::iter::once(Cow::from(step)).chain(rest.iter().cloned()).collect();
            nested(&indent, &steps, value, ending(text))?
        } else {
            let wrap = |value, step: &Cow<'_, str>| Value::Object([(step.to_string(), value)].into());
            format!("{indent}- {}", flow(&rest.iter().rev().fold(value.clone(), wrap)))
        };
        Some(replaced(text, &(end..end), &[ending(text), &new].concat()))
    }

    /// The text of a block without one of its parts.
    fn without_line(&self, text: &str, part: &Range<usize>, next: Option<&Range<usize>>) -> Option<String> {
        let start = match self.node.kind {
            Kind::Array(_) => {
                line_start(text, part.start) + text.get(line_start(text, part.start)..part.start)?.rfind('-')?
            }
            _ => part.start,
        };
        let is_first_on_line = text.get(line_start(text, start)..start)?.trim().is_empty();
        match next {
            // What is behind a dash, or behind the key of a nested block, goes on with the next one.
            Some(next) if !is_first_on_line => Some(replaced(text, &(part.start..next.start), "")),
            _ if !is_first_on_line => None,
            _ => Some(replaced(text, &whole_lines(text, &(start..part.end))?, "")),
        }
    }
}

/// The lines that something is on.
fn whole_lines(text: &str, part: &Range<usize>) -> Option<Range<usize>> {
    let end = end_of_content(text, part)?;
    let newline = text.get(end..)?.find('\n').map_or(text.len(), |at| end + at + 1);
    Some(line_start(text, part.start)..newline)
}

fn line_start(text: &str, at: usize) -> usize {
    text.get(..at).and_then(|front| front.rfind('\n')).map_or(0, |newline| newline + 1)
}

/// The end of the line that something ends on, without the line ending; blank lines behind it do not count.
fn end_of_content(text: &str, part: &Range<usize>) -> Option<usize> {
    let end = part.start + text.get(part.clone())?.trim_end().len();
    let line = text.get(end..)?.lines().next().unwrap_or_default();
    Some(end + line.len())
}

/// Lines of a block that lead to a value: one for each step.
fn nested(indent: &str, steps: &[Cow<'_, str>], value: &Value, ending: &str) -> Option<String> {
    let (last, above) = steps.split_last()?;
    let line = |(depth, step): (usize, &Cow<'_, str>)| [indent, &"  ".repeat(depth), &scalar(step), ":"].concat();
    let mut lines: Vec<String> = above.iter().enumerate().map(line).collect();
    lines.push(format!("{} {}", line((above.len(), last)), flow(value)));
    Some(lines.join(ending))
}

/// A value on one line.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{}: {}", scalar(name), flow(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Number(number) if number.is_f64() => with_point(&number.to_string()),
        other => other.to_redacted_json().to_string(),
    }
}

/// A text: plain where every reader takes it as text, else in double quotes.
fn scalar(text: &str) -> String {
    let is_plain = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/')
        && text.chars().all(|each| each.is_ascii_alphanumeric() || "_-./".contains(each))
        && !WORDS.contains(&text.to_ascii_lowercase().as_str());
    if is_plain { text.to_owned() } else { escaped(text) }
}

/// A text in double quotes, without characters that YAML does not allow in a file: JSON allows some of them.
fn escaped(text: &str) -> String {
    let is_odd = |each: char| {
        matches!(each, '\u{7f}'..='\u{a0}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
    };
    let mut escaped = String::with_capacity(text.len() + 2);
    for each in serde_json::Value::from(text).to_string().chars() {
        if is_odd(each) {
            let _ = write!(escaped, "\\u{:04x}", u32::from(each));
        } else {
            escaped.push(each);
        }
    }
    escaped
}

/// A number with an exponent as every version of YAML has it: with a point and a sign.
fn with_point(number: &str) -> String {
    let Some((mantissa, exponent)) = number.split_once('e') else { return number.to_owned() };
    let point = if mantissa.contains('.') { "" } else { ".0" };
    let sign = if exponent.starts_with(['-', '+']) { "" } else { "+" };
    format!("{mantissa}{point}e{sign}{exponent}")
}

/// Returns whether any object in a value has a key that takes more than 1000 bytes: too long for a line of YAML.
fn has_long_name(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_long_name),
        Value::Object(members) => members.iter().any(|(name, value)| scalar(name).len() > 1000 || has_long_name(value)),
        _ => false,
    }
}

/// What readers of some version of YAML take as something else than text.
const WORDS: &[&str] = &["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
