//! How values and their differences are shown to users.

use anstyle::AnsiColor;
use serde_json::Value as Json;
use similar::{ChangeTag, DiffOp, TextDiff};
use stead_core::diag::counted;
use stead_core::diff::{Alteration, Change};
use stead_core::value::{REDACTED, Value};
use stead_report::{Line, Text};
use stead_resources::BuiltIn;

use crate::terminal::{json, painted, plain};

/// How long a value may be before its rest is left out.
const WIDTH: usize = 100;

/// How many lines of a text are shown: what follows is not about to be read to its end. All of it is in the JSON.
const LINES: usize = 60;

/// Lines below the heading of an instance, as a terminal shows them.
pub(super) fn shown(lines: &[Line]) -> String {
    let shown = lines.iter().map(|Line { sign, is_deeper, text }| {
        let signed = sign.map_or_else(|| text.to_string(), |sign| format!("{sign} {text}"));
        let painted = match sign {
            Some('+') => painted(AnsiColor::Green, &signed),
            Some('-') => painted(AnsiColor::Red, &signed),
            Some('~') => painted(AnsiColor::Yellow, &signed),
            _ => signed,
        };
        format!("{}{painted}\n", if *is_deeper { "        " } else { "    " })
    });
    shown.collect()
}

/// The lines that show a change of a property. The schema of a built-in resource tells which texts are encoded bytes.
pub(super) fn change(change: &Change, built_in: Option<&BuiltIn>) -> Vec<Line> {
    let schema = built_in.map(BuiltIn::schema);
    let path = plain(change.path.trim_start_matches('/'));
    let one = |value: &Value| {
        let encoded = is_base64(schema, &change.path).then(|| size_of_base64(value)).flatten();
        encoded.unwrap_or_else(|| self::value(value))
    };
    match &change.what {
        Alteration::Added(Value::String(new)) if has_lines(new) && !is_binary(new) => {
            headed(detail('+', &format!("{path}:")), text("", new))
        }
        Alteration::Added(new) => vec![detail('+', &format!("{path}: {}", one(new)))],
        Alteration::Removed(old) => vec![detail('-', &format!("{path}: {}", one(old)))],
        Alteration::Replaced { old: Value::String(old), new: Value::String(new) }
            if !is_binary(old) && !is_binary(new) && (has_lines(old) || has_lines(new)) =>
        {
            headed(detail('~', &format!("{path}:")), text(old, new))
        }
        Alteration::Replaced { old, new } => {
            vec![detail('~', &format!("{path}: {} -> {}", one(old), one(new)))]
        }
    }
}

/// What a command printed, line by line.
pub(super) fn output(printed: &Value) -> Vec<Line> {
    let text = match printed {
        Value::String(text) => text,
        other => &value(other),
    };
    let mut excerpt = Excerpt::default();
    text.lines().for_each(|each| excerpt.push(|| detail('|', &shortened(each))));
    excerpt.finish()
}

fn headed(head: Line, below: Vec<Line>) -> Vec<Line> {
    std::iter::once(head).chain(below).collect()
}

/// One line below a heading, in the colour of its sign.
pub(super) fn detail(sign: char, text: &str) -> Line {
    Line { sign: Some(sign), is_deeper: false, text: Text::from(text) }
}

/// One line below such a line.
pub(super) fn deeper_detail(sign: char, text: &str) -> Line {
    Line { is_deeper: true, ..detail(sign, text) }
}

/// One line that only says something.
pub(super) fn said(text: &str) -> Line {
    Line { sign: None, is_deeper: false, text: Text::from(text) }
}

/// Returns whether it is easier to read line by line: what ends in its only line break is as readable in one.
fn has_lines(text: &str) -> bool {
    text.trim_end_matches('\n').contains('\n')
}

/// Returns whether it is binary: it holds a NUL, though every byte of it is a character.
fn is_binary(text: &str) -> bool {
    text.contains('\0')
}

/// A value in one line; never a secret.
fn value(value: &Value) -> String {
    let text = match value {
        Value::String(text) if is_binary(text) => format!("(binary, {})", counted(text.len(), "byte")),
        Value::Sealed(_) => REDACTED.to_owned(),
        // As a saved plan has it.
        Value::String(text) if text == REDACTED => REDACTED.to_owned(),
        other => json(&other.to_redacted_json()),
    };
    shortened(&text)
}

fn is_base64(schema: Option<&Json>, path: &str) -> bool {
    keyword(schema, path, "contentEncoding").is_some_and(|encoding| encoding == "base64")
}

/// What the schema of the properties says of one of them under a keyword.
fn keyword<'s>(schema: Option<&'s Json>, path: &str, keyword: &str) -> Option<&'s Json> {
    schema?.get("properties")?.get(path.trim_start_matches('/'))?.get(keyword)
}

/// What Base64 text stands for: nobody reads it as it is.
fn size_of_base64(value: &Value) -> Option<String> {
    let digits = value
        .as_str()
        .filter(|text| *text != REDACTED)?
        .trim_end_matches('=')
        .chars()
        .filter(|digit| !digit.is_whitespace())
        .count();
    Some(format!("({} bytes)", digits * 3 / 4))
}

fn shortened(text: &str) -> String {
    let length = text.chars().count();
    if length <= WIDTH {
        return plain(text).into_owned();
    }
    let head: String = text.chars().take(WIDTH).collect();
    format!("{}… ({length} characters)", plain(&head))
}

/// The lines that differ, with what stands around them. What is left out between is counted.
pub(super) fn text(old: &str, new: &str) -> Vec<Line> {
    let diff = TextDiff::from_lines(old, new);
    let mut excerpt = Excerpt::default();
    let mut end = None;
    for group in diff.grouped_ops(2) {
        let start = group.first().map_or(0, |operation| operation.old_range().start);
        if let Some(between) = end.map(|end| start.saturating_sub(end)).filter(|between| *between > 0) {
            excerpt.push(|| deeper_detail(' ', &format!("({} unchanged)", counted(between, "line"))));
        }
        for change in group.iter().flat_map(|operation| diff.iter_changes(operation)) {
            excerpt.push(|| diff_line(&change));
        }
        end = group.last().map(|operation: &DiffOp| operation.old_range().end);
    }
    excerpt.finish()
}

/// The first lines of a text that may be long, and how many follow.
#[derive(Default)]
struct Excerpt {
    shown: Vec<Line>,
    lines: usize,
}

impl Excerpt {
    fn push(&mut self, line: impl FnOnce() -> Line) {
        self.lines += 1;
        if self.lines <= LINES {
            self.shown.push(line());
        }
    }

    fn finish(mut self) -> Vec<Line> {
        if let Some(more) = self.lines.checked_sub(LINES).filter(|more| *more > 0) {
            let more = format!("… and {}", counted(more, "more line"));
            self.shown.push(Line { is_deeper: true, ..said(&more) });
        }
        self.shown
    }
}

fn diff_line(change: &similar::Change<&str>) -> Line {
    let sign = match change.tag() {
        ChangeTag::Delete => '-',
        ChangeTag::Insert => '+',
        ChangeTag::Equal => ' ',
    };
    let end = if change.missing_newline() { " (no line break at the end)" } else { "" };
    deeper_detail(sign, &format!("{}{end}", shortened(change.value().trim_end_matches('\n'))))
}
