//! Findings for programs.

use serde_json::{Value, json};

use super::Diagnostic;
use crate::source::{Sources, Span};

/// A finding as JSON: `code`, `severity`, `message`, `file`, `line`, `column`, `endLine`, `endColumn`, `help`,
/// `labels` and `fix`.
///
/// Guarantees: every key is always there, null where it does not apply. Lines and columns count from 1, columns in
/// characters; an end is the place behind the last character.
pub fn to_json(finding: &Diagnostic, sources: &Sources) -> Value {
    let mut object = json!({
        "code": finding.code.id,
        "severity": finding.severity.as_str(),
        "message": finding.message,
    });
    let labels = finding.labels.iter().map(|(span, text)| with(place(Some(*span), sources), "message", text.as_str()));
    let labels = labels.collect::<Vec<Value>>();
    let fix = finding.fix.as_ref();
    let fix = fix.map(|fix| with(place(Some(fix.span), sources), "replacement", fix.replacement.as_str()));
    merge(&mut object, place(finding.span, sources));
    merge(&mut object, json!({ "help": finding.help, "labels": labels, "fix": fix }));
    object
}

fn with(mut object: Value, key: &str, text: &str) -> Value {
    merge(&mut object, json!({ key: text }));
    object
}

fn merge(object: &mut Value, more: Value) {
    if let (Value::Object(object), Value::Object(more)) = (object, more) {
        object.extend(more);
    }
}

fn place(span: Option<Span>, sources: &Sources) -> Value {
    let known = span.and_then(|span| Some((span, sources.get(span.source)?)));
    let Some((span, source)) = known else {
        return json!({ "file": null, "line": null, "column": null, "endLine": null, "endColumn": null });
    };
    let (line, column) = source.line_column(span.start);
    let (end_line, end_column) = source.line_column(span.end);
    json!({ "file": source.name, "line": line, "column": column, "endLine": end_line, "endColumn": end_column })
}
