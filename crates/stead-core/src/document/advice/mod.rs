//! Warnings about a document that can be run, and in which something was hardly meant as it is written.

mod literal;
mod schema;
mod secrets;

use super::{Document, codes};
use crate::diag::Diagnostic;
use crate::expr::Template;
use crate::text::{Kind, Leaf as _, Sources};

pub use schema::is_schema_of_documents;

impl Document {
    /// Warnings about secrets in clear, about what is not read as it was meant, and about a `$schema` that does not exist, in the order
    /// written.
    ///
    /// Guarantees: no message has a part of a secret. A long text costs as much as a search of it.
    pub fn advice(&self, sources: &Sources) -> Vec<Diagnostic> {
        let mut found: Vec<Diagnostic> = schema::unknown(self).into_iter().collect();
        let secrets = secrets::in_clear(self, sources);
        found.extend(literal::expressions_as_text(self, sources, &secrets));
        found.extend(secrets);
        found.sort_by_key(|finding| finding.span);
        found
    }

    /// Those about what is not read as it was meant, which a run gives as well: expressions and placeholders that stay text.
    pub fn misreadings(&self, sources: &Sources) -> Vec<Diagnostic> {
        let found = literal::expressions_as_text(self, sources, &[]);
        if found.is_empty() {
            found
        } else {
            literal::expressions_as_text(self, sources, &secrets::in_clear(self, sources))
        }
    }
}

/// Calls `visit` with every text in a value, and every expression as it is written.
fn texts<'t>(node: &'t Template, visit: &mut dyn FnMut(&'t Template, &'t str)) {
    match &node.kind {
        Kind::String(text) => visit(node, text),
        Kind::Compiled(expression) => visit(node, expression.written()),
        Kind::Array(items) => items.iter().for_each(|item| texts(item, visit)),
        Kind::Object(entries) => entries.iter().for_each(|entry| texts(&entry.value, visit)),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) => {}
    }
}
