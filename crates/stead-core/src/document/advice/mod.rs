//! Warnings about a document that can be run, and in which something was hardly meant as it is written.

mod arguments;
mod calls;
mod constants;
mod encrypted;
mod lines;
mod literal;
mod schema;
mod secrets;
mod tags;

use super::{Document, codes};
use crate::diag::Diagnostic;
use crate::expr::Template;
use crate::text::{Kind, Leaf as _, Sources};

pub(super) use literal::has_any_form;
pub use schema::is_schema_of_documents;

impl Document {
    /// Warnings about secrets that others can read, about what is not read as it was meant, and about a `$schema` that does not exist,
    /// in the order written.
    ///
    /// Guarantees: no message has a part of a secret. A long text costs as much as a search of it.
    pub fn advice(&self, sources: &Sources) -> Vec<Diagnostic> {
        let mut found: Vec<Diagnostic> = schema::unknown(self).into_iter().collect();
        let secrets = secrets::in_clear(self, sources);
        found.extend(literal::expressions_as_text(self, sources, &secrets));
        found.extend(secrets);
        found.extend(self.without_effect(sources));
        found.extend(arguments::secrets(self, sources));
        found.sort_by_key(|finding| finding.span);
        found
    }

    /// Those about what is not read as it was meant, which a run gives as well: expressions and placeholders that stay text, comparisons
    /// that are always false, values that a format leaves out, tags with a comma, lines that YAML joins, and texts that
    /// are encrypted.
    pub fn misreadings(&self, sources: &Sources) -> Vec<Diagnostic> {
        let mut found = literal::expressions_as_text(self, sources, &[]);
        if !found.is_empty() {
            found = literal::expressions_as_text(self, sources, &secrets::in_clear(self, sources));
        }
        found.extend(self.without_effect(sources));
        found
    }

    fn without_effect(&self, sources: &Sources) -> impl Iterator<Item = Diagnostic> {
        let texts = tags::with_commas(self, sources).into_iter().chain(lines::joined(self, sources));
        let texts = texts.chain(encrypted::by_ansible_vault(self, sources));
        calls::without_effect(self, sources).into_iter().chain(texts)
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
