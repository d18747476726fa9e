//! Trees as text.

use stead_core::text::{Kind, Leaf, Node, Source, Sources, Span};

/// A value on one line: JSON, expressions as `=[…]`.
pub(crate) fn line<L: Leaf>(node: &Node<L>) -> String {
    match &node.kind {
        Kind::Null => "null".to_owned(),
        Kind::Bool(truth) => truth.to_string(),
        Kind::Number(number) => number.to_string(),
        Kind::String(text) => quoted(text),
        Kind::Compiled(expression) => format!("={}", expression.written()),
        Kind::Array(items) => format!("[{}]", items.iter().map(line).collect::<Vec<_>>().join(", ")),
        Kind::Object(entries) => {
            let members = entries.iter().map(|entry| format!("{}: {}", quoted(&entry.key), line(&entry.value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The members of an object, or the elements of an array, one a line; anything else as it is.
pub(crate) fn value<L: Leaf>(root: &Node<L>) -> String {
    match &root.kind {
        Kind::Object(entries) => {
            entries.iter().map(|entry| format!("{}: {}\n", entry.key, line(&entry.value))).collect::<Vec<_>>().concat()
        }
        Kind::Array(items) => items.iter().map(|item| format!("- {}\n", line(item))).collect::<Vec<_>>().concat(),
        _ => format!("{}\n", line(root)),
    }
}

/// Every value with its path, parents first.
pub(crate) fn scalars(root: &Node) -> Vec<(String, &Node)> {
    let mut all = vec![(String::new(), root)];
    match &root.kind {
        Kind::Object(entries) => entries.iter().for_each(|entry| {
            all.extend(scalars(&entry.value).into_iter().map(|(path, node)| (format!("/{}{path}", entry.key), node)));
        }),
        Kind::Array(items) => items.iter().enumerate().for_each(|(at, item)| {
            all.extend(scalars(item).into_iter().map(|(path, node)| (format!("/{at}{path}"), node)));
        }),
        _ => {}
    }
    all
}

/// Every value with its path and where it was written.
pub(crate) fn spans(root: &Node, sources: &Sources) -> String {
    let lines = scalars(root).into_iter().map(|(path, node)| format!("{path} {}\n", slice(node.span, sources)));
    lines.collect::<Vec<_>>().concat()
}

/// A place and the text that stands there.
pub(crate) fn slice(span: Span, sources: &Sources) -> String {
    let Some(source) = sources.get(span.source) else { return "nowhere".to_owned() };
    let text = source.text.get(span.start as usize..span.end as usize).unwrap_or("(not on borders of characters)");
    format!("{}-{} {}", place(source, span.start), place(source, span.end), quoted(text))
}

fn place(source: &Source, offset: u32) -> String {
    let (line, column) = source.line_column(offset);
    format!("{line}:{column}")
}
