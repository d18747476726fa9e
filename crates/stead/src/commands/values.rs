//! How values and their differences are shown to users.

use anstyle::AnsiColor;
use serde_json::Value as Json;
use similar::{ChangeTag, DiffOp, TextDiff};
use stead_core::diag::counted;
use stead_core::diff::{Alteration, Change};
use stead_core::value::{REDACTED, Value};
use stead_resources::BuiltIn;

use crate::terminal::{json, painted, plain};

/// How long a value may be before its rest is left out.
const WIDTH: usize = 100;

/// How many lines of a text are shown: what follows is not about to be read to its end. All of it is in the JSON.
const LINES: usize = 60;

/// How far lines below the heading of an instance are indented.
const INDENT: &str = "    ";

/// How far the lines of a text are indented.
const DEEPER: &str = "        ";

/// The lines that show a change of a property. The schema of a built-in resource tells which texts are encoded bytes.
pub(super) fn change(change: &Change, built_in: Option<&BuiltIn>) -> String {
    let schema = built_in.map(BuiltIn::schema);
    let path = plain(change.path.trim_start_matches('/'));
    let one = |value: &Value| {
        let encoded = is_base64(schema, &change.path).then(|| size_of_base64(value)).flatten();
        encoded.unwrap_or_else(|| self::value(value))
    };
    match &change.what {
        Alteration::Added(Value::String(new)) if has_lines(new) && !is_binary(new) => {
            line(INDENT, '+', &format!("{path}:")) + &text("", new)
        }
        Alteration::Added(new) => line(INDENT, '+', &format!("{path}: {}", one(new))),
        Alteration::Removed(old) => line(INDENT, '-', &format!("{path}: {}", one(old))),
        Alteration::Replaced { old: Value::String(old), new: Value::String(new) }
            if !is_binary(old) && !is_binary(new) && (has_lines(old) || has_lines(new)) =>
        {
            line(INDENT, '~', &format!("{path}:")) + &text(old, new)
        }
        Alteration::Replaced { old, new } => line(INDENT, '~', &format!("{path}: {} -> {}", one(old), one(new))),
    }
}

/// What a command printed, line by line.
pub(super) fn output(printed: &Value) -> String {
    let text = match printed {
        Value::String(text) => text,
        other => &value(other),
    };
    let mut excerpt = Excerpt::default();
    text.lines().for_each(|each| excerpt.push(|| format!("{INDENT}| {}\n", shortened(each))));
    excerpt.finish()
}

/// One line below a heading, in the colour of its sign.
pub(super) fn detail(sign: char, text: &str) -> String {
    line(INDENT, sign, &plain(text))
}

/// One line below such a line.
pub(super) fn deeper_detail(sign: char, text: &str) -> String {
    line(DEEPER, sign, &plain(text))
}

fn line(indent: &str, sign: char, text: &str) -> String {
    let signed = format!("{sign} {text}");
    let shown = match sign {
        '+' => painted(AnsiColor::Green, &signed),
        '-' => painted(AnsiColor::Red, &signed),
        '~' => painted(AnsiColor::Yellow, &signed),
        _ => signed,
    };
    format!("{indent}{shown}\n")
}

/// Whether it is easier to read line by line: what ends in its only line break is as readable in one.
fn has_lines(text: &str) -> bool {
    text.trim_end_matches('\n').contains('\n')
}

/// Whether it is binary: it holds a NUL, though every byte of it is a character.
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
fn text(old: &str, new: &str) -> String {
    let diff = TextDiff::from_lines(old, new);
    let mut excerpt = Excerpt::default();
    let mut end = None;
    for group in diff.grouped_ops(2) {
        let start = group.first().map_or(0, |operation| operation.old_range().start);
        if let Some(between) = end.map(|end| start.saturating_sub(end)).filter(|between| *between > 0) {
            excerpt.push(|| line(DEEPER, ' ', &format!("({} unchanged)", counted(between, "line"))));
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
    text: String,
    lines: usize,
}

impl Excerpt {
    fn push(&mut self, line: impl FnOnce() -> String) {
        self.lines += 1;
        if self.lines <= LINES {
            self.text.push_str(&line());
        }
    }

    fn finish(self) -> String {
        match self.lines.saturating_sub(LINES) {
            0 => self.text,
            more => format!("{}{DEEPER}… and {}\n", self.text, counted(more, "more line")),
        }
    }
}

fn diff_line(change: &similar::Change<&str>) -> String {
    let sign = match change.tag() {
        ChangeTag::Delete => '-',
        ChangeTag::Insert => '+',
        ChangeTag::Equal => ' ',
    };
    let end = if change.missing_newline() { " (no line break at the end)" } else { "" };
    line(DEEPER, sign, &format!("{}{end}", shortened(change.value().trim_end_matches('\n'))))
}
