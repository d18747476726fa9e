//! The form of texts that are not documents: objects with known members, lists, words.

use super::{Entry, Node, Span, Spanned};
use crate::diag::{Code, Diagnostic, did_you_mean, nearest};

/// The kind of a value, as messages have it.
fn found(node: &Node) -> String {
    match node.kind_name() {
        "array" => "a list".to_owned(),
        kind @ "object" => format!("an {kind}"),
        kind @ "null" => kind.to_owned(),
        kind => format!("a {kind}"),
    }
}

/// Takes a tree apart that is to have a form, and collects what is wrong with it under one code.
///
/// # Examples
/// ```
/// use stead_core::diag::codes::hosts::LAYERS;
/// use stead_core::text::{Form, Limits, Source, Sources, read};
///
/// let mut sources = Sources::default();
/// let source = sources.add(Source::new("site.yaml", "wehre: role=web"));
/// let tree = read(source, "wehre: role=web", &Limits::default()).0.unwrap();
/// let mut form = Form::new(&LAYERS);
/// form.check_members(&tree, &["parameters", "where"], "a layer");
/// assert_eq!(form.findings[0].message, "a layer has no 'wehre'");
/// ```
#[derive(Debug)]
pub struct Form {
    /// The code of every mistake.
    pub code: Code,
    /// The mistakes so far.
    pub findings: Vec<Diagnostic>,
}

impl Form {
    /// A form in which nothing is wrong yet.
    pub fn new(code: Code) -> Self {
        Self { code, findings: Vec::new() }
    }

    /// Adds a mistake.
    pub fn wrong(&mut self, span: Span, message: impl Into<String>, help: &str) {
        self.findings.push(Diagnostic::error(self.code, span, message).with_help(help));
    }

    /// Returns the members of what must be an object; none where it is not stated.
    pub fn members<'n>(&mut self, node: Option<&'n Node>, what: &str) -> &'n [Entry] {
        let Some(node) = node else { return &[] };
        if node.entries().is_none() {
            let message = format!("{what} must be an object, found {}", found(node));
            self.wrong(node.span, message, "write its members as `NAME: VALUE`, each in a line of its own");
        }
        node.entries().unwrap_or_default()
    }

    /// Adds a mistake for each member that is not among the known ones.
    pub fn check_members(&mut self, node: &Node, known: &[&str], what: &str) {
        for entry in self.members(Some(node), what) {
            if !known.contains(&&*entry.key) {
                let near = nearest(&entry.key, known.iter().copied()).map(did_you_mean);
                let help = near.unwrap_or_else(|| format!("{what} has {}", known.join(", ")));
                self.wrong(entry.key_span, format!("{what} has no '{}'", entry.key.escape_debug()), &help);
            }
        }
    }

    /// Returns the items of what must be a list.
    pub fn items<'n>(&mut self, node: &'n Node, what: &str) -> &'n [Node] {
        if node.items().is_none() {
            let message = format!("{what} must be a list, found {}", found(node));
            self.wrong(node.span, message, "write each item behind a '-'");
        }
        node.items().unwrap_or_default()
    }

    /// Returns what must be a string.
    pub fn text(&mut self, node: &Node, what: &str) -> Option<Spanned<String>> {
        let text = node.spanned_str().map(|text| Spanned::new(text.value.to_owned(), text.span));
        if text.is_none() {
            let message = format!("{what} must be a string, found {}", found(node));
            self.wrong(node.span, message, "write text, in quotes where it looks like something else");
        }
        text
    }
}
