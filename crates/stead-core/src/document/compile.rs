//! Strings that are expressions: from the tree of a text to templates, and back.

use super::advice::has_any_form;
use super::codes::NO_EXPRESSION;
use super::fields::{Expected, Reader};
use super::loops::items_of;
use crate::diag::{Diagnostic, Meant};
use crate::expr::{self, Expression, Fault, Help, Template, codes};
use crate::text::{Entry, Kind, Node, Span, locate_in};

/// The place of a string, which decides the meaning of text that begins with a bracket and cannot be read as an
/// expression.
#[derive(Clone, Copy)]
enum Strictness {
    /// It is an error.
    Strict,
    /// It stays text, with a warning.
    Lenient,
}

impl Reader<'_> {
    /// The value with every string in it compiled: `[…]` is an expression, `[[…` is text that starts with one bracket.
    /// Keys are never expressions.
    pub(super) fn value(&mut self, node: Node) -> Template {
        self.compile(node, Strictness::Strict)
    }

    /// The value of a variable. What is nested in it and cannot be read as an expression is text, for dsc computes
    /// nothing there.
    pub(super) fn variable(&mut self, node: Node) -> Template {
        let is_nested = matches!(node.kind, Kind::Array(_) | Kind::Object(_));
        self.compile(node, if is_nested { Strictness::Lenient } else { Strictness::Strict })
    }

    /// The value of a key that takes text, which may be an expression.
    pub(super) fn text_value(&mut self, node: Node, what: &str) -> Option<Template> {
        if matches!(node.kind, Kind::String(_)) {
            return Some(self.value(node));
        }
        // What needs only quotes is read as if it had them: another instance could seem to have the same name.
        let is_scalar = matches!(node.kind, Kind::Bool(_) | Kind::Number(_));
        let Some(written) = self.written(node.span).filter(|_| is_scalar) else {
            self.wrong_kind(&node, what, Expected::Text);
            return None;
        };
        let meant = Template { span: node.span, kind: Kind::String(written.into()) };
        self.not_text(&node, what);
        Some(meant)
    }

    fn compile(&mut self, node: Node, place: Strictness) -> Template {
        let span = node.span;
        let kind = match node.kind {
            Kind::Null => Kind::Null,
            Kind::Bool(truth) => Kind::Bool(truth),
            Kind::Number(number) => Kind::Number(number),
            Kind::String(text) => {
                self.may_compute |= has_any_form(&text);
                if text.starts_with('[') { self.compiled(text, span, place) } else { Kind::String(text) }
            }
            Kind::Array(items) => Kind::Array(items.into_iter().map(|item| self.compile(item, place)).collect()),
            Kind::Object(entries) => {
                let outer = self.items.len();
                self.items.extend(items_of(&entries));
                let entry = |Entry { key, key_span, value }| Entry { key, key_span, value: self.compile(value, place) };
                let compiled = entries.into_iter().map(entry).collect();
                self.items.truncate(outer);
                Kind::Object(compiled)
            }
        };
        Template { span, kind }
    }

    /// Returns what a string that starts with a bracket stands for.
    fn compiled(&mut self, string: Box<str>, span: Span, place: Strictness) -> Kind<Box<Expression>> {
        if !expr::is_expression(&string) {
            return Kind::String(string.get(1..).unwrap_or_default().into());
        }
        // What is read once more was compiled before, where the loops around were known.
        let is_item = |word: &str| self.text.is_none() || self.items.iter().any(|item| **item == *word);
        match Expression::parse_in_loops(&string, &is_item) {
            Ok(expression) => return Kind::Compiled(Box::new(expression)),
            Err(mut fault) => {
                if let Some(meant) = self.item_meant(&string, &fault) {
                    fault.help = Some(meant);
                }
                let at = self.text.map_or(span, |text| locate_in(text, span, fault.at.clone()));
                self.report(match place {
                    Strictness::Strict => {
                        let written = self.text.and_then(|text| text.get(at.start as usize..at.end as usize));
                        fault.finding(at, written)
                    }
                    Strictness::Lenient => no_expression(at, &fault.message),
                });
            }
        }
        Kind::String(string)
    }
}

impl Reader<'_> {
    /// The item of a loop around that was meant by a word that is not a function, or by what Terraform calls it.
    fn item_meant(&self, text: &str, fault: &Fault) -> Option<Help> {
        let word = text.get(fault.at.clone())?;
        if let (true, Some(item)) = (["each", "each.value", "item"].contains(&word), self.items.last()) {
            return Some(Help::Item { wrong: word.to_owned(), called: format!("{item}()") });
        }
        let word = Some(word).filter(|_| *fault.code == codes::UNKNOWN_FUNCTION)?;
        let meant = Meant::word(word, self.items.iter().map(|item| &**item))?;
        Some(Help::Meant { wrong: word.to_owned(), meant })
    }
}

fn no_expression(at: Span, why: &str) -> Diagnostic {
    let message = format!("this stays text, since it cannot be read as an expression: {why}");
    Diagnostic::warning(&NO_EXPRESSION, at, message).with_help("write '[[' for text that begins with '['")
}

/// The value before its strings were compiled: compiling it again gives the same.
pub(super) fn written(template: Template) -> Node {
    let kind = match template.kind {
        Kind::Null => Kind::Null,
        Kind::Bool(truth) => Kind::Bool(truth),
        Kind::Number(number) => Kind::Number(number),
        Kind::String(text) if text.starts_with('[') => Kind::String(format!("[{text}").into()),
        Kind::String(text) => Kind::String(text),
        Kind::Compiled(expression) => Kind::String((*expression.text).into()),
        Kind::Array(items) => Kind::Array(items.into_iter().map(written).collect()),
        Kind::Object(entries) => {
            let entry = |Entry { key, key_span, value }| Entry { key, key_span, value: written(value) };
            Kind::Object(entries.into_iter().map(entry).collect())
        }
    };
    Node { span: template.span, kind }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Limits, SourceId};

    #[test]
    fn an_instance_that_may_compute_is_known_by_its_own_texts() {
        let texts = ["plain", "[add(1, 2)]", "$home", "add(1, 2)", "[[x", "a, b", "{{ port }}", "<%= port %>"];
        let instance = |text| format!("- {{name: n, type: A/B, properties: {{nested: [{{key: '{text}'}}]}}}}\n");
        let text = format!("resources:\n{}", texts.map(instance).concat());
        let (document, _) = crate::document::parse(SourceId::default(), &text, &Limits::default());
        let may = document.resources.iter().map(|instance| instance.may_compute);
        assert_eq!(may.collect::<Vec<_>>(), [false, true, true, true, true, false, true, true]);
    }

    #[test]
    fn what_was_compiled_is_written_as_it_was() {
        for text in ["plain", "[add(1, 2)]", "[[add(1, 2)]", "[[", "[[[a]"] {
            let node = Node { span: Span::default(), kind: Kind::String(text.into()) };
            let mut reader = Reader::new(None, 1);
            assert_eq!(written(reader.value(node.clone())), node);
            assert!(!reader.findings.any_error());
        }
    }
}
