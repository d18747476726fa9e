//! `copy`: the loops of an instance.

use std::sync::Arc;

use super::fields::{Expected, LOOP, Owner, Reader};
use super::foreign::Site;
use super::{Copy, Over, codes};
use crate::diag::Diagnostic;
use crate::expr::{Template, functions};
use crate::text::{Entry, Kind, Node, Span, Spanned, shown};

/// The keys of a loop that are supported.
pub const LOOP_KEYS: &[&str] = &["name", "count", "each", "as"];
/// The keys of a loop.
const KEYS: &[&str] = &["name", "count", "each", "as", "mode", "batchSize"];

/// The keys of a loop that were read so far.
#[derive(Default)]
struct LoopParts {
    name: Option<Spanned<String>>,
    count: Option<Template>,
    each: Option<Template>,
    called: Option<Spanned<String>>,
    /// Where the keys stand that were stated, whatever their values are.
    stated: Vec<(Arc<str>, Span)>,
}

impl LoopParts {
    fn place(&self, key: &str) -> Option<Span> {
        self.stated.iter().find(|(stated, _)| **stated == *key).map(|(_, span)| *span)
    }
}

impl Reader<'_> {
    /// One loop, or a list of loops within each other; from here on the names of their items are known.
    pub(super) fn loops(&mut self, node: Node) -> Box<[Copy]> {
        match node.kind {
            Kind::Array(loops) => loops.into_iter().filter_map(|each| self.one_loop(each)).collect(),
            _ => self.one_loop(node).into_iter().collect(),
        }
    }

    fn one_loop(&mut self, node: Node) -> Option<Copy> {
        let form = match &node.kind {
            Kind::Number(count) => format!("copy: {{name: items, count: {count}}}"),
            _ => "copy: {name: items, each: [a, b]}".to_owned(),
        };
        let span = node.span;
        let entries = self.object_like(node, "'copy'", &form)?;
        let mut parts = LoopParts::default();
        for Entry { key: written, key_span, value } in entries {
            let key = self.loop_key(&written, key_span, &value);
            if value.kind != Kind::Null {
                parts.stated.push((Arc::clone(&key), key_span));
            }
            match &*key {
                "count" | "each" | "as" | "mode" | "batchSize" if value.kind == Kind::Null => {}
                "name" => parts.name = self.string(value, "'name'"),
                "count" => parts.count = self.loop_count(value),
                "each" => parts.each = self.each(value),
                "as" => parts.called = self.string(value, "'as'"),
                "mode" => self.copy_mode(value),
                "batchSize" => {
                    let message = "Copy batch size is not supported";
                    self.report(Diagnostic::error(&codes::COPY_MODE, key_span, message).with_help("remove it"));
                }
                _ => {}
            }
        }
        Some(self.finish_loop(parts, span))
    }

    /// The key of a loop that a key is read as: itself, or the one that was meant, which is reported.
    fn loop_key(&mut self, written: &Arc<str>, span: Span, value: &Node) -> Arc<str> {
        if KEYS.contains(&&**written) {
            return Arc::clone(written);
        }
        let site = || Site { value: Some(value), type_name: None };
        self.unknown_key_at(written, span, (Owner::Part(LOOP), KEYS), site());
        match Self::meant_key(Owner::Part(LOOP), written, KEYS, site()) {
            Some(meant) => meant.into(),
            None => Arc::clone(written),
        }
    }

    /// The loop that a key of another tool is, which is reported as such: what is wrong behind it is not its consequence.
    pub(super) fn loop_of_others(&mut self, entry: &Entry) -> Copy {
        let span = entry.value.span;
        let is_read = match &entry.value.kind {
            Kind::Array(_) | Kind::Object(_) => true,
            Kind::String(text) => text.starts_with('['),
            _ => false,
        };
        let items = if is_read {
            self.value(entry.value.clone())
        } else {
            let open = Template { span, kind: Kind::String("item".into()) };
            Template { span, kind: Kind::Array(Box::new([open])) }
        };
        let called = Spanned::new(Over::ITEM.into(), span);
        self.items.push(Over::ITEM.into());
        Copy { name: Spanned::new("items".to_owned(), span), over: Over::Each { items, called } }
    }

    fn finish_loop(&mut self, parts: LoopParts, span: Span) -> Copy {
        self.check_loop(&parts, span);
        // What is wrong is reported; the instance is in a loop all the same, or copyIndex() would be reported, too.
        let once = || Template { span, kind: Kind::Number(1.into()) };
        let name = parts.name.unwrap_or_else(|| Spanned::new(String::new(), span));
        let over = match parts.each {
            Some(items) => {
                let called: Spanned<Arc<str>> = match parts.called {
                    Some(called) => Spanned::new(called.value.into(), called.span),
                    None => Spanned::new(Over::ITEM.into(), span),
                };
                self.items.push((*called.value).into());
                Over::Each { items, called }
            }
            None => Over::Count(parts.count.unwrap_or_else(once)),
        };
        Copy { name, over }
    }

    /// Reports what a loop lacks, and what it says twice.
    fn check_loop(&mut self, parts: &LoopParts, span: Span) {
        let is_loop = parts.stated.iter().all(|(key, _)| KEYS.contains(&&**key));
        if parts.place("name").is_none() && is_loop {
            self.loop_without_name(span);
        }
        let refused = |place, message: &str, help: &str| {
            Diagnostic::error(&codes::LOOP, place, message.to_owned()).with_help(help.to_owned())
        };
        match (parts.place("count"), parts.place("each"), parts.place("as")) {
            (Some(count), Some(each), _) => {
                let finding = refused(each, "a loop has either 'count' or 'each'", "remove one of them");
                self.report(finding.with_label(count, "the other one"));
            }
            // What belongs to something else says what the loop is.
            (None, None, _) if parts.stated.iter().any(|(key, _)| !KEYS.contains(&&**key)) => {}
            (None, None, _) => {
                let help = "set 'count' to a number of instances, or 'each' to a list of items";
                self.missing(span, "'copy'", "count", help);
            }
            (Some(_), None, Some(called)) => {
                let help = "a loop with 'count' has no items; its index is copyIndex()";
                self.report(refused(called, "'as' can only be used with 'each'", help));
            }
            _ => {}
        }
        match (&parts.called, &parts.each) {
            (Some(called), _) => self.check_called(called),
            (None, Some(_)) if parts.place("as").is_none() => {
                self.check_called(&Spanned::new(Over::ITEM.to_owned(), span));
            }
            _ => {}
        }
    }

    fn check_called(&mut self, called: &Spanned<String>) {
        let word = called.value.as_str();
        let is_word = word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let (message, help) = if !is_word {
            let message = format!("an item cannot be called '{}'", shown(word));
            (message, "a name consists of letters, digits and underscores, and starts with no digit".to_owned())
        } else if functions().iter().any(|function| function.name == word) {
            (format!("'{word}' is a function of the language"), "choose another name with 'as'".to_owned())
        } else if self.items.iter().any(|item| **item == *word) {
            (format!("an enclosing loop already uses the name '{word}'"), "choose another name with 'as'".to_owned())
        } else {
            return;
        };
        self.report(Diagnostic::error(&codes::LOOP, called.span, message).with_help(help));
    }

    /// Reports a loop that has no name, with the change that gives it one.
    fn loop_without_name(&mut self, span: Span) {
        let start = Span { end: span.start, ..span };
        let finding = Diagnostic::error(&codes::MISSING_KEY, start, "'copy' needs the key 'name'")
            .with_help("add a name, such as 'name: items': copyIndex() and 'dependsOn' find the loop by it");
        let before = self.text.and_then(|text| text.get(..span.start as usize)).unwrap_or_default();
        let column = before.rsplit('\n').next().unwrap_or_default();
        let is_first = column.bytes().all(|byte| byte == b' ');
        self.report(match self.written(span) {
            Some(written) if written.starts_with('{') => {
                let inside = Span { start: span.start + 1, end: span.start + 1, ..span };
                let members = written.trim_start_matches('{');
                let is_json = members.trim_start().starts_with('"') || self.is_json();
                finding.with_fix(
                    inside,
                    match (is_json, members.starts_with(char::is_whitespace)) {
                        (true, true) => "\"name\": \"items\",",
                        (true, false) => "\"name\": \"items\", ",
                        (false, _) => "name: items, ",
                    },
                )
            }
            Some(_) if is_first => {
                let end = if self.text.is_some_and(|text| text.contains("\r\n")) { "\r\n" } else { "\n" };
                finding.with_fix(start, format!("name: items{end}{column}"))
            }
            _ => finding,
        });
    }

    fn loop_count(&mut self, node: Node) -> Option<Template> {
        if let Some(count) = node.as_str().and_then(|text| text.parse::<u64>().ok()) {
            let message = "'count' must be a number of instances or an expression, found text";
            let finding = Diagnostic::error(&codes::WRONG_KIND, node.span, message);
            let finding = finding.with_help("write it without quotes").with_fix(node.span, count.to_string());
            self.report(finding);
            return Some(Template { span: node.span, kind: Kind::Number(count.into()) });
        }
        if matches!(node.kind, Kind::String(_)) {
            return Some(self.value(node));
        }
        let fits = matches!(&node.kind, Kind::Number(number) if number.as_u64().is_some());
        if !fits {
            self.wrong_kind(&node, "'count'", Expected::Count);
        }
        fits.then(|| self.value(node))
    }

    fn each(&mut self, node: Node) -> Option<Template> {
        let fits = matches!(node.kind, Kind::Array(_) | Kind::Object(_) | Kind::String(_));
        if !fits {
            self.wrong_kind(&node, "'each'", Expected::Items);
        }
        fits.then(|| self.value(node))
    }

    fn copy_mode(&mut self, node: Node) {
        if node.kind == Kind::Null {
            return;
        }
        let span = node.span;
        if let Some(mode) = self.word(node, "'mode'", &[("serial", "serial"), ("parallel", "parallel")]) {
            let message = format!("Copy mode is not supported, this one is '{}'", mode.value);
            self.report(Diagnostic::error(&codes::COPY_MODE, span, message).with_help("remove it"));
        }
    }
}

/// What the loops of an instance call their items, as far as it can be read; nothing of what is not an instance.
pub fn items_of(entries: &[Entry]) -> impl Iterator<Item = Box<str>> {
    let value = |key: &str| entries.iter().find(|entry| &*entry.key == key).map(|entry| &entry.value);
    let copy = value("copy").filter(|_| value("type").is_some());
    let loops = copy.map_or(&[][..], |copy| match &copy.kind {
        Kind::Array(loops) => loops,
        _ => std::slice::from_ref(copy),
    });
    let over_items = loops.iter().filter(|each| each.get("each").is_some());
    let called: Vec<Box<str>> =
        over_items.map(|each| each.get("as").and_then(Node::as_str).unwrap_or(Over::ITEM).into()).collect();
    called.into_iter()
}
