//! Lists of ids of other instances.

use super::fields::Reader;
use super::{Template, codes};
use crate::diag::Diagnostic;
use crate::text::{Kind, Node, Span};

/// Returns whether a text identifies an instance in the form of PowerShell: `[Type]name`.
fn is_older_id(text: &str) -> bool {
    let parts = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    parts.is_some_and(|(type_name, name)| {
        let is_name = type_name.chars().all(|c| c.is_alphanumeric() || "_.-/".contains(c));
        is_name && !type_name.is_empty() && name.starts_with(|c: char| c.is_alphanumeric() || c == '_')
    })
}

/// One id that stands alone, as an element of a list in brackets; `None` where it may be several or something else, or where quotes
/// would make it another text.
fn one_id(written: &str) -> Option<String> {
    match written.strip_prefix(['"', '\'']) {
        Some(inner) => (inner.starts_with('[') || !inner.contains(',')).then(|| written.to_owned()),
        None => (!written.contains(['\\', ',', '[', ']', '{', '}', '"', '\''])).then(|| format!("\"{written}\"")),
    }
}

/// The expression for the id of an instance that is written as an object of its type and its name.
fn id_in_parts(node: &Node) -> Option<String> {
    let part = |key: &str| node.get(key).and_then(Node::as_str).filter(|text| !text.contains(['\'', '"', '\\', '\n']));
    Some(format!("[resourceId('{}', '{}')]", part("type")?, part("name")?))
}

impl Reader<'_> {
    /// A list of ids of instances, or of names.
    pub(super) fn ids(&mut self, node: Node, (key, key_span): (&str, Span)) -> Vec<Template> {
        let items = self.id_list(node, (key, key_span));
        let id = |item: Node| match item.as_str().filter(|text| is_older_id(text)) {
            // The id that is meant is suggested later, where the other instances are known.
            Some(text) => Some(Template { span: item.span, kind: Kind::String(text.into()) }),
            None if id_in_parts(&item).is_some() => self.id_of_parts(&item, key),
            None => self.text_value(item, &format!("an element of '{key}'")),
        };
        items.into_iter().filter_map(id).collect()
    }

    /// Reports an id that is written as an object of type and name.
    fn id_of_parts(&mut self, item: &Node, key: &str) -> Option<Template> {
        let call = id_in_parts(item)?;
        let message = format!("an element of '{key}' must be a string or an expression, found an object");
        let finding = Diagnostic::error(&codes::WRONG_KIND, item.span, message).with_help(format!("write \"{call}\""));
        self.report(finding.with_fix(item.span, format!("\"{call}\"")));
        None
    }

    /// The elements of a list of ids. One id that stands alone is read as a list of one.
    fn id_list(&mut self, node: Node, (key, key_span): (&str, Span)) -> Box<[Node]> {
        let written = self.written(node.span).filter(|_| node.as_str().is_some()).map(str::to_owned);
        let Some(written) = written.filter(|written| !written.contains('\n')) else {
            return self.array(node, &format!("'{key}'"));
        };
        let finding = Diagnostic::error(&codes::WRONG_KIND, node.span, format!("'{key}' must be a list, found text"));
        let finding = finding.with_help("write it as a list, in brackets or behind a dash");
        self.report(match one_id(&written).filter(|_| key_span.end <= node.span.start) {
            Some(element) => finding.with_fix(node.span, format!("[{element}]")),
            None => finding,
        });
        Box::new([node])
    }
}
