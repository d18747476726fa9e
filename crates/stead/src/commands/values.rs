//! How values and their differences are shown to people.

use std::borrow::Cow;
use std::fmt::Write;

use similar::{ChangeTag, TextDiff};
use stead_core::diff::{Alteration, Change};
use stead_core::value::{REDACTED, Value};

/// How long a value may be before its rest is left out.
const WIDTH: usize = 100;

/// How many lines of a text are shown: what follows is not about to be read to its end. All of it is in the JSON.
const LINES: usize = 60;

/// The lines that show a change, indented.
pub(super) fn change(change: &Change, indent: &str) -> String {
    let path = plain(change.path.trim_start_matches('/'));
    match &change.what {
        Alteration::Added(Value::String(new)) if has_lines(new) => {
            format!("{indent}+ {path}:\n{}", text("", new, indent))
        }
        Alteration::Added(new) => format!("{indent}+ {path}: {}\n", value(new)),
        Alteration::Removed(old) => format!("{indent}- {path}: {}\n", value(old)),
        Alteration::Replaced { old: Value::String(old), new: Value::String(new) }
            if has_lines(old) || has_lines(new) =>
        {
            format!("{indent}~ {path}:\n{}", text(old, new, indent))
        }
        Alteration::Replaced { old, new } => format!("{indent}~ {path}: {} -> {}\n", value(old), value(new)),
    }
}

/// Text without what a terminal would take for a command.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    let escaped = |character: char| {
        let quiet = !character.is_control() || character == '\t';
        if quiet { character.to_string() } else { character.escape_default().to_string() }
    };
    if text.chars().any(|character| character.is_control() && character != '\t') {
        Cow::Owned(text.chars().map(escaped).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// Whether it is easier to read line by line: what ends in its only line break is as well told in one.
fn has_lines(text: &str) -> bool {
    text.trim_end_matches('\n').contains('\n')
}

/// A value in one line; never a secret.
fn value(value: &Value) -> String {
    let text = match value {
        Value::Sealed(_) => REDACTED.to_owned(),
        other => other.to_redacted_json().to_string(),
    };
    shortened(&text)
}

fn shortened(text: &str) -> String {
    let length = text.chars().count();
    if length <= WIDTH {
        return plain(text).into_owned();
    }
    let head: String = text.chars().take(WIDTH).collect();
    format!("{}… ({length} characters)", plain(&head))
}

/// The lines that differ, with what stands around them.
fn text(old: &str, new: &str, indent: &str) -> String {
    let diff = TextDiff::from_lines(old, new);
    let groups = diff.grouped_ops(2);
    let lines = groups.iter().flatten().flat_map(|operation| diff.iter_changes(operation));
    let mut shown = String::new();
    let mut left_out = 0_usize;
    for (number, line) in lines.enumerate() {
        if number >= LINES {
            left_out += 1;
            continue;
        }
        let sign = match line.tag() {
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
            ChangeTag::Equal => ' ',
        };
        let end = if line.missing_newline() { " (no line break at the end)" } else { "" };
        let text = shortened(line.value().trim_end_matches('\n'));
        // Writing to a string cannot fail.
        let _ = writeln!(shown, "{indent}    {sign} {text}{end}");
    }
    if left_out > 0 {
        let _ = writeln!(shown, "{indent}    … and {left_out} more lines");
    }
    shown
}
