//! Strings that are expressions, read in place.

use super::codes::NO_EXPRESSION;
use super::fields::Reader;
use crate::diag::Diagnostic;
use crate::expr::{self, Expression};
use crate::text::{Kind, Node, Span, locate_in};

/// What becomes of text that begins with a bracket and cannot be read as an expression.
#[derive(Clone, Copy)]
enum Place {
    /// It is an error.
    Strict,
    /// It stays text, with a warning.
    Lenient,
}

impl Reader<'_> {
    /// The value with every string in it compiled: `[…]` is an expression, `[[…` is text that starts with one bracket.
    /// Keys are never expressions.
    pub(super) fn value(&mut self, node: Node) -> Node {
        self.value_at(node, Place::Strict)
    }

    /// The value of a variable. What is nested in it and cannot be read as an expression is text, for dsc computes
    /// nothing there.
    pub(super) fn variable(&mut self, node: Node) -> Node {
        let is_nested = matches!(node.kind, Kind::Array(_) | Kind::Object(_));
        self.value_at(node, if is_nested { Place::Lenient } else { Place::Strict })
    }

    fn value_at(&mut self, mut node: Node, place: Place) -> Node {
        if let Some(text) = self.text {
            self.compile(&mut node, text, place);
        }
        node
    }

    /// The value of a key that takes text, which may be an expression.
    pub(super) fn text_value(&mut self, node: Node, what: &str) -> Option<Node> {
        if matches!(node.kind, Kind::String(_) | Kind::Expression(_)) {
            return Some(self.value(node));
        }
        self.wrong_kind(&node, what, "text or an expression");
        None
    }

    fn compile(&mut self, node: &mut Node, text: &str, place: Place) {
        match &mut node.kind {
            Kind::Array(items) => items.iter_mut().for_each(|item| self.compile(item, text, place)),
            Kind::Object(entries) => entries.iter_mut().for_each(|entry| self.compile(&mut entry.value, text, place)),
            Kind::String(string) if string.starts_with('[') => {
                if let Some(kind) = self.compiled(string, node.span, text, place) {
                    node.kind = kind;
                }
            }
            _ => {}
        }
    }

    /// What a string that starts with a bracket stands for; nothing if for itself.
    fn compiled(&mut self, string: &str, span: Span, text: &str, place: Place) -> Option<Kind> {
        if let Some(escaped) = string.strip_prefix("[[") {
            return Some(Kind::String(format!("[{escaped}").into()));
        }
        if !expr::is_expression(string) {
            return None;
        }
        match Expression::parse(string) {
            Ok(expression) => Some(Kind::Expression(Box::new(expression))),
            Err(fault) => {
                let at = locate_in(text, span, fault.at);
                self.report(match place {
                    Place::Strict => {
                        Diagnostic { help: fault.help, ..Diagnostic::error(fault.code, at, fault.message) }
                    }
                    Place::Lenient => no_expression(at, &fault.message),
                });
                None
            }
        }
    }
}

fn no_expression(at: Span, why: &str) -> Diagnostic {
    let message = format!("this stays text, since it cannot be read as an expression: {why}");
    Diagnostic::warning(&NO_EXPRESSION, at, message).with_help("write '[[' for text that begins with '['")
}

/// The value as it was written, before its strings were compiled.
///
/// Caveats: whether text that starts with one bracket and ends with none was written with two is not known any more.
pub(super) fn written(mut node: Node) -> Node {
    restore(&mut node);
    node
}

fn restore(node: &mut Node) {
    match &mut node.kind {
        Kind::Array(items) => items.iter_mut().for_each(restore),
        Kind::Object(entries) => entries.iter_mut().for_each(|entry| restore(&mut entry.value)),
        Kind::Expression(expression) => node.kind = Kind::String((*expression.text).into()),
        Kind::String(text) if expr::is_expression(text) => *text = format!("[{text}").into(),
        _ => {}
    }
}
