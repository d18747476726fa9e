//! The expressions of a document, with their places.

use super::{Expression, Template};
use crate::text::{Kind, Span};

/// An expression of a document and where the string stands that holds it.
pub struct Placed<'a> {
    /// The expression.
    pub expression: &'a Expression,
    /// The string.
    pub span: Span,
}

/// Every expression in a value, in the order written.
pub fn expressions(node: &Template) -> Vec<Placed<'_>> {
    let mut found = Vec::new();
    collect(node, &mut found);
    found
}

fn collect<'a>(node: &'a Template, found: &mut Vec<Placed<'a>>) {
    match &node.kind {
        Kind::Compiled(expression) => found.push(Placed { expression, span: node.span }),
        Kind::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Kind::Object(entries) => entries.iter().for_each(|entry| collect(&entry.value, found)),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::String(_) => {}
    }
}
