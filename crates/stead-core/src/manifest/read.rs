//! Reading a tree into the types of a manifest: small steps that note what is wrong and go on.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::codes;
use crate::diag::{Diagnostic, Severity, did_you_mean, nearest};
use crate::expr::{Expression, is_expression};
use crate::id::TypeName;
use crate::text::{Entry, Kind, Node, Span};

/// The findings of reading so far; every method notes what is wrong and answers `None`.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) found: Vec<Diagnostic>,
}

/// The treatment of a key that is not known.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unknown {
    Refused,
    Ignored,
}

impl Reader {
    pub(super) fn errors(&self) -> usize {
        self.found.iter().filter(|finding| finding.severity == Severity::Error).count()
    }

    pub(super) fn note(&mut self, finding: Diagnostic) {
        self.found.push(finding);
    }

    fn wrong_kind(&mut self, node: &Node, what: &str, expected: &str) {
        let message = format!("{what} must be {expected}, not {}", with_article(node.kind_name()));
        self.note(Diagnostic::error(&codes::WRONG_KIND, node.span, message));
    }

    /// The members of an object, of which the names are checked.
    pub(super) fn members<'a>(
        &mut self,
        node: &'a Node,
        what: &str,
        keys: &[&str],
        unknown: Unknown,
    ) -> Option<&'a [Entry]> {
        let Some(entries) = node.entries() else {
            self.wrong_kind(node, what, "an object");
            return None;
        };
        entries.iter().filter(|entry| !keys.contains(&&*entry.key)).for_each(|entry| {
            self.unknown_key(entry, what, keys, unknown);
        });
        Some(entries)
    }

    fn unknown_key(&mut self, entry: &Entry, what: &str, keys: &[&str], unknown: Unknown) {
        let finding = match unknown {
            Unknown::Refused => {
                let message = format!("unknown key '{}' in {what}", entry.key);
                Diagnostic::error(&codes::UNKNOWN_KEY, entry.key_span, message)
            }
            Unknown::Ignored => {
                let message = format!("unknown key '{}' in {what}; ignored", entry.key);
                Diagnostic::warning(&codes::IGNORED_KEY, entry.key_span, message)
            }
        };
        self.note(match nearest(&entry.key, keys.iter().copied()) {
            Some(near) => finding.with_help(did_you_mean(near)),
            None => finding.with_help(format!("the keys are {}", keys.join(", "))),
        });
    }

    /// The member of that name; one that is null counts as absent.
    pub(super) fn required<'a>(&mut self, node: &'a Node, key: &str, what: &str) -> Option<&'a Node> {
        let found = present(node, key);
        if found.is_none() {
            let message = format!("{what} requires '{key}'");
            self.note(Diagnostic::error(&codes::MISSING_KEY, head(node), message));
        }
        found
    }

    pub(super) fn text(&mut self, node: &Node, what: &str) -> Option<String> {
        let text = node.as_str();
        if text.is_none() {
            self.wrong_kind(node, what, "a string");
        }
        text.map(str::to_owned)
    }

    pub(super) fn optional_text(&mut self, node: &Node, key: &str) -> Option<String> {
        present(node, key).and_then(|value| self.text(value, &format!("'{key}'")))
    }

    pub(super) fn truth(&mut self, node: &Node, key: &str) -> Option<bool> {
        let value = present(node, key)?;
        if let Kind::Bool(truth) = value.kind {
            return Some(truth);
        }
        self.wrong_kind(value, &format!("'{key}'"), "a boolean");
        None
    }

    /// The elements; none when the key is absent.
    pub(super) fn elements<'a>(&mut self, node: &'a Node, key: &str) -> &'a [Node] {
        let Some(value) = present(node, key) else { return &[] };
        value.items().unwrap_or_else(|| {
            self.wrong_kind(value, &format!("'{key}'"), "an array");
            &[]
        })
    }

    pub(super) fn texts(&mut self, node: &Node, key: &str) -> Vec<String> {
        let what = format!("an element of '{key}'");
        self.elements(node, key).iter().filter_map(|element| self.text(element, &what)).collect()
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(&mut self, node: &Node, what: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(node, what)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        if found.is_none() {
            let names = words.iter().map(|(word, _)| *word);
            let message = format!("{what} cannot be '{text}'");
            let help = match nearest(&text, names.clone()) {
                Some(near) => did_you_mean(near),
                None => format!("write one of {}", names.collect::<Vec<_>>().join(", ")),
            };
            self.note(Diagnostic::error(&codes::WORD, node.span, message).with_help(help));
        }
        found
    }

    pub(super) fn optional_word<T: Copy>(&mut self, node: &Node, key: &str, words: &[(&'static str, T)]) -> Option<T> {
        present(node, key).and_then(|value| self.word(value, &format!("'{key}'"), words))
    }

    pub(super) fn type_name(&mut self, node: &Node, key: &str, what: &str) -> Option<TypeName> {
        let value = self.required(node, key, what)?;
        let text = self.text(value, &format!("'{key}'"))?;
        let parsed = TypeName::parse(&text);
        let noted = |error: crate::id::InvalidTypeName| {
            self.note(Diagnostic::error(&codes::TYPE_NAME, value.span, error.to_string()));
        };
        parsed.map_err(noted).ok()
    }

    /// An expression.
    pub(super) fn expression(&mut self, node: &Node, key: &str) -> Option<Expression> {
        let value = present(node, key)?;
        let text = self.text(value, &format!("'{key}'"))?;
        if !is_expression(&text) {
            let message = format!("'{key}' must be an expression");
            let finding = Diagnostic::error(&codes::EXPRESSION, value.span, message);
            self.note(finding.with_help("an expression is written in brackets, such as '[equals(1, 1)]'"));
            return None;
        }
        match Expression::parse(&text) {
            Ok(expression) => Some(expression),
            Err(fault) => {
                let message = format!("'{key}' is not an expression: {}", fault.message);
                let finding = Diagnostic::error(&codes::EXPRESSION, value.span, message);
                self.note(Diagnostic { help: fault.help.map(|help| help.to_string()), ..finding });
                None
            }
        }
    }

    pub(super) fn tags(&mut self, node: &Node) -> Vec<String> {
        let mut tags: Vec<String> = Vec::new();
        for element in self.elements(node, "tags") {
            let Some(tag) = self.text(element, "a tag") else { continue };
            let is_word = !tag.is_empty() && tag.chars().all(|c| c.is_alphanumeric() || c == '_');
            if !is_word {
                let message = format!("'{tag}' is not a tag: letters, digits and '_' are allowed");
                self.note(Diagnostic::error(&codes::TAG, element.span, message));
            } else if tags.contains(&tag) {
                let message = format!("the tag '{tag}' is given twice");
                self.note(Diagnostic::error(&codes::TAG, element.span, message));
            } else {
                tags.push(tag);
            }
        }
        tags
    }

    pub(super) fn exit_codes(&mut self, node: &Node) -> BTreeMap<i32, String> {
        let Some(value) = present(node, "exitCodes") else { return BTreeMap::new() };
        let Some(entries) = value.entries() else {
            self.wrong_kind(value, "'exitCodes'", "an object");
            return BTreeMap::new();
        };
        let mut codes_found = BTreeMap::new();
        for entry in entries {
            let text = self.text(&entry.value, "the meaning of an exit code");
            match (entry.key.parse::<i32>(), text) {
                (Ok(code), Some(text)) => drop(codes_found.insert(code, text)),
                (Ok(_), None) => {}
                (Err(_), _) => {
                    let message = format!("'{}' is not an exit code", entry.key);
                    let finding = Diagnostic::error(&codes::EXIT_CODE, entry.key_span, message);
                    self.note(finding.with_help("an exit code is an integer in quotes, such as \"2\""));
                }
            }
        }
        codes_found
    }

    /// An object as JSON.
    pub(super) fn object(&mut self, node: &Node, key: &str) -> Option<Json> {
        let value = present(node, key)?;
        if value.entries().is_none() {
            self.wrong_kind(value, &format!("'{key}'"), "an object");
            return None;
        }
        Some(plain(value))
    }
}

/// The member of that name, unless it is null.
pub(super) fn present<'a>(node: &'a Node, key: &str) -> Option<&'a Node> {
    node.get(key).filter(|value| value.kind != Kind::Null)
}

/// Returns where a finding about something that an object lacks is shown: at its first key, since a whole object
/// would bury it.
pub(super) fn head(node: &Node) -> Span {
    node.entries().and_then(<[Entry]>::first).map_or(node.span, |entry| entry.key_span)
}

fn with_article(kind: &str) -> String {
    match kind {
        "null" => kind.to_owned(),
        "array" | "object" | "expression" => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}

/// The tree as JSON.
pub fn plain(node: &Node) -> Json {
    match &node.kind {
        Kind::Null => Json::Null,
        Kind::Bool(truth) => Json::Bool(*truth),
        Kind::Number(number) => Json::Number(number.clone()),
        Kind::String(text) => Json::String(text.to_string()),
        Kind::Compiled(never) => match *never {},
        Kind::Array(items) => Json::Array(items.iter().map(plain).collect()),
        Kind::Object(entries) => {
            Json::Object(entries.iter().map(|entry| (entry.key.to_string(), plain(&entry.value))).collect())
        }
    }
}

/// JSON that stands in no text, as a tree without places: what programs print.
pub fn unplaced(json: &Json) -> Node {
    let span = Span::default();
    let kind = match json {
        Json::Null => Kind::Null,
        Json::Bool(truth) => Kind::Bool(*truth),
        Json::Number(number) => Kind::Number(number.clone()),
        Json::String(text) => Kind::String(text.as_str().into()),
        Json::Array(items) => Kind::Array(items.iter().map(unplaced).collect()),
        Json::Object(members) => Kind::Object(members.iter().map(|(key, value)| member(key, value)).collect()),
    };
    Node { span, kind }
}

fn member(key: &str, value: &Json) -> Entry {
    Entry { key: key.into(), key_span: Span::default(), value: unplaced(value) }
}
