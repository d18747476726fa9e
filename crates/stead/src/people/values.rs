//! How values and their differences are shown to people.

use std::fmt::Write;

use similar::{ChangeTag, TextDiff};
use stead_core::diff::{Alteration, Change};
use stead_core::value::{REDACTED, Value};

/// How long a value may be before its middle is left out.
const WIDTH: usize = 100;

/// The lines that show a change, indented.
pub(super) fn change(change: &Change, indent: &str) -> String {
    let path = change.path.trim_start_matches('/');
    match &change.what {
        Alteration::Added(new) => format!("{indent}+ {path}: {}\n", value(new)),
        Alteration::Removed(old) => format!("{indent}- {path}: {}\n", value(old)),
        Alteration::Replaced { old: Value::String(old), new: Value::String(new) }
            if old.contains('\n') || new.contains('\n') =>
        {
            format!("{indent}~ {path}:\n{}", text(old, new, indent))
        }
        Alteration::Replaced { old, new } => format!("{indent}~ {path}: {} -> {}\n", value(old), value(new)),
    }
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
        return text.to_owned();
    }
    let head: String = text.chars().take(WIDTH).collect();
    format!("{head}… ({length} characters)")
}

/// The lines that differ, with what stands around them.
fn text(old: &str, new: &str, indent: &str) -> String {
    let diff = TextDiff::from_lines(old, new);
    let mut shown = String::new();
    for group in diff.grouped_ops(2) {
        for operation in group {
            for line in diff.iter_changes(&operation) {
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
        }
    }
    shown
}
