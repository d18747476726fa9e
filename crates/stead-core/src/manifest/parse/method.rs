//! Programs and how they are called, and schemas, which a program may print.

use super::Parser;
use crate::diag::Diagnostic;
use crate::manifest::read::{Unknown, plain, present};
use crate::manifest::{Argument, Input, ProgramCall, Returns, SchemaSource, codes};
use crate::text::{Entry, Kind, Node, Span};

const INPUTS: [(&str, Input); 2] = [("stdin", Input::Stdin), ("env", Input::Environment)];
const RETURNS: [(&str, Returns); 2] = [("state", Returns::State), ("stateAndDiff", Returns::StateAndDiff)];

/// The arguments that an operation takes besides literals.
pub(super) const CALL_ARGUMENTS: [&str; 5] =
    ["jsonInputArg", "adaptedContentArg", "resourceTypeArg", "resourceVersionArg", "resourcePathArg"];
pub(super) const CHANGE_ARGUMENTS: [&str; 6] =
    ["jsonInputArg", "adaptedContentArg", "resourceTypeArg", "resourceVersionArg", "resourcePathArg", "whatIfArg"];
pub(super) const SCHEMA_ARGUMENTS: [&str; 2] = ["resourceTypeArg", "resourceVersionArg"];

impl Parser<'_> {
    pub(super) fn method(
        &mut self,
        node: &Node,
        key: &str,
        keys: &[&str],
        arguments: &[&'static str],
    ) -> Option<ProgramCall> {
        let value = present(node, key)?;
        let what = format!("'{key}'");
        self.reader.members(value, &what, keys, Unknown::Ignored)?;
        let executable = self.executable(value, &what);
        let arguments = self.arguments(value, &what, arguments);
        let input = self.reader.optional_word(value, "input", &INPUTS).unwrap_or_default();
        Some(ProgramCall {
            executable: executable?,
            arguments,
            input,
            returns: self.reader.optional_word(value, "return", &RETURNS),
            what_if_returns: self.reader.optional_word(value, "whatIfReturns", &RETURNS),
        })
    }

    pub(super) fn executable(&mut self, node: &Node, what: &str) -> Option<String> {
        let value = self.reader.required(node, "executable", what)?;
        self.reader.text(value, "'executable'")
    }

    pub(super) fn arguments(&mut self, node: &Node, what: &str, allowed: &[&'static str]) -> Vec<Argument> {
        let elements = self.reader.elements(node, "args").iter();
        elements.filter_map(|element| self.argument(element, what, allowed)).collect()
    }

    fn argument(&mut self, node: &Node, what: &str, allowed: &[&'static str]) -> Option<Argument> {
        let (key, text) = match self.argument_form(node, what, allowed)? {
            (None, text) => return Some(Argument::Literal(text)),
            (Some(key), text) => (key, text),
        };
        Some(match key {
            "jsonInputArg" => {
                Argument::Json { name: text, mandatory: self.reader.truth(node, "mandatory").unwrap_or(false) }
            }
            "adaptedContentArg" => Argument::AdaptedContent(text),
            "resourceTypeArg" => Argument::ResourceType(text),
            "resourceVersionArg" => Argument::ResourceVersion(text),
            "resourcePathArg" => Argument::ResourcePath { name: text, quoted: self.quoted(node) },
            _ => Argument::WhatIf(text),
        })
    }

    pub(super) fn quoted(&mut self, node: &Node) -> bool {
        self.reader.truth(node, "includeQuotes").unwrap_or(false)
    }

    /// The key that says what an argument stands for, or none for a literal; and the text.
    pub(super) fn argument_form(
        &mut self,
        node: &Node,
        what: &str,
        allowed: &[&'static str],
    ) -> Option<(Option<&'static str>, String)> {
        if let Some(text) = node.as_str() {
            return Some((None, text.to_owned()));
        }
        let named: Vec<_> = allowed.iter().filter(|key| present(node, key).is_some()).collect();
        let [key] = *named else {
            let forms = if allowed.is_empty() { String::new() } else { format!(", or one of {}", allowed.join(", ")) };
            let message = format!("this is not an argument of {what}");
            let finding = Diagnostic::error(&codes::ARGUMENT, node.span, message);
            self.reader.note(finding.with_help(format!("an argument of {what} is a string{forms}")));
            return None;
        };
        let keys = [*key, "mandatory", "includeQuotes"];
        let extra = match *key {
            "jsonInputArg" => &keys[..2],
            "resourcePathArg" | "extensionsArg" => &[*key, "includeQuotes"],
            _ => &keys[..1],
        };
        self.reader.members(node, "an argument", extra, Unknown::Ignored)?;
        let text = node.get(key).and_then(|value| self.reader.text(value, &format!("'{key}'")))?;
        Some((Some(*key), text))
    }

    pub(super) fn schema(&mut self, node: &Node) -> Option<SchemaSource> {
        let command = present(node, "command");
        match (command, node.get("embedded")) {
            (Some(command), None) => {
                self.reader.members(node, "'schema'", &["command", "embedded"], Unknown::Ignored)?;
                self.reader.members(command, "'command'", &["executable", "args"], Unknown::Ignored)?;
                let arguments = self.arguments(command, "'command'", &SCHEMA_ARGUMENTS);
                Some(SchemaSource::Command { executable: self.executable(command, "'command'")?, arguments })
            }
            (None, Some(embedded)) => {
                self.reader.members(node, "'schema'", &["command", "embedded"], Unknown::Ignored)?;
                if let Some(span) = empty_reference(embedded) {
                    let finding = Diagnostic::error(&codes::SCHEMA, span, "'$ref' refers to nothing");
                    self.reader
                        .note(finding.with_help("in YAML '#' begins a comment; put what it refers to in quotes"));
                }
                Some(SchemaSource::Embedded(plain(embedded)))
            }
            _ => {
                let message = "a schema is an object with either 'embedded' or 'command'";
                self.reader.note(Diagnostic::error(&codes::SCHEMA, node.span, message));
                None
            }
        }
    }
}

/// Returns where a schema has a `$ref` without a value.
fn empty_reference(node: &Node) -> Option<Span> {
    let within = |entry: &Entry| match &*entry.key {
        "$ref" if matches!(entry.value.kind, Kind::Null) => Some(entry.key_span),
        _ => empty_reference(&entry.value),
    };
    let in_members = node.entries().into_iter().flatten().find_map(within);
    in_members.or_else(|| node.items().into_iter().flatten().find_map(empty_reference))
}
