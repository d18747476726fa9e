//! Taking values out of a tree, with findings where they are of another kind.

use std::fmt;

use super::foreign::{ForeignWords, Site};
use super::handlers::Neighbour;
use super::other_types::{id_of_reference, type_of_module};
use super::{codes, foreign};
use crate::diag::{Diagnostic, Findings, Meant};
use crate::id::TypeName;
use crate::text::{self, Entry, Kind, Never, Node, Span, Spanned, shown};

/// The owner of keys or directives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Document,
    Instance,
    /// A part of a document, in words, such as `a parameter`.
    Part(&'static str),
}

/// The part of a document that declares a parameter, as the subject of a message.
pub(super) const PARAMETER: &str = "a parameter";
/// The part of an instance that is a loop, as the subject of a message.
pub(super) const LOOP: &str = "'copy'";

/// The kinds of DSC that hold other instances.
const KINDS: [&str; 3] = ["Group", "Include", "Assertion"];

impl Owner {
    /// The owner, as the subject of a message.
    fn as_str(self) -> &'static str {
        match self {
            Self::Document => "a document",
            Self::Instance => "an instance",
            Self::Part(words) => words,
        }
    }

    /// The words of other tools for its keys.
    fn foreign_words(self) -> &'static [ForeignWords] {
        match self {
            Self::Document => foreign::AT_DOCUMENTS,
            Self::Instance => foreign::AT_INSTANCES,
            Self::Part(PARAMETER) => foreign::AT_PARAMETERS,
            Self::Part(LOOP) => foreign::AT_LOOPS,
            Self::Part(_) => &[],
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Collects findings while a document is taken apart.
pub(super) struct Reader<'t> {
    /// The text, while its strings are yet to be compiled.
    pub(super) text: Option<&'t str>,
    pub(super) findings: Findings,
    /// The type of the instance before: most are of the same.
    pub(super) last_type: Option<TypeName>,
    /// What the loops around call their items.
    pub(super) items: Vec<Box<str>>,
    /// True if a text of the instance that is read can be, or can have been meant as, an expression.
    pub(super) may_compute: bool,
    /// The instances of the document, where one has a key that nothing reads.
    pub(super) neighbours: Vec<Neighbour>,
}

impl<'t> Reader<'t> {
    /// A reader that keeps so many findings.
    pub(super) fn new(text: Option<&'t str>, findings: usize) -> Self {
        let findings = Findings::new(&text::codes::TOO_MANY, findings);
        let (items, neighbours) = (Vec::new(), Vec::new());
        Self { text, findings, last_type: None, items, may_compute: false, neighbours }
    }
}

impl Reader<'_> {
    pub(super) fn report(&mut self, finding: Diagnostic) {
        self.findings.push(finding);
    }

    /// `what` is the subject of the message, such as `'properties'`.
    pub(super) fn wrong_kind(&mut self, node: &Node, what: &str, expected: Expected) {
        let message = format!("{what} must be {}, found {}", expected.as_str(), described(node));
        let finding = Diagnostic::error(&codes::WRONG_KIND, node.span, message);
        self.report(match node.as_str().and_then(missing_space) {
            Some((key, value)) if expected != Expected::List => {
                finding.with_help(format!("put a space after the colon: '{key}: {}'", shown(value)))
            }
            _ if expected == Expected::Object && node.as_str().is_some_and(|text| text.contains("=>")) => {
                finding.with_help("write 'key: value' in place of 'key => value'")
            }
            _ => match expected.form(&node.kind) {
                Some(help) => finding.with_help(help),
                None => finding,
            },
        });
    }

    /// Returns whether the text is JSON: what is put into it must be as well.
    pub(super) fn is_json(&self) -> bool {
        self.text.is_some_and(|text| text.trim_start().starts_with('{'))
    }

    pub(super) fn written(&self, span: Span) -> Option<&str> {
        self.text?.get(span.start as usize..span.end as usize)
    }

    /// A value that YAML takes for something else than text, unless it is in quotes.
    pub(super) fn not_text(&mut self, node: &Node, what: &str) {
        let message = format!("{what} must be a string, found {}", described(node));
        let finding = Diagnostic::error(&codes::WRONG_KIND, node.span, message);
        let scalar = matches!(node.kind, Kind::Bool(_) | Kind::Number(_));
        self.report(match self.written(node.span).filter(|_| scalar) {
            Some(written) => {
                let quoted = format!("\"{written}\"");
                finding.with_help("put it in quotes").with_fix(node.span, quoted)
            }
            None => finding,
        });
    }

    pub(super) fn object(&mut self, node: Node, what: &str) -> Option<(Span, Box<[Entry]>)> {
        if let Kind::Object(entries) = node.kind {
            return Some((node.span, entries));
        }
        self.wrong_kind(&node, what, Expected::Object);
        None
    }

    /// The members of an object that has a form of its own.
    pub(super) fn object_like(&mut self, node: Node, what: &str, form: &str) -> Option<Box<[Entry]>> {
        if let Kind::Object(entries) = node.kind {
            return Some(entries);
        }
        if node.as_str().and_then(missing_space).is_some() {
            self.wrong_kind(&node, what, Expected::Object);
            return None;
        }
        let message = format!("{what} must be an object, found {}", described(&node));
        self.report(Diagnostic::error(&codes::WRONG_KIND, node.span, message).with_help(format!("write `{form}`")));
        None
    }

    /// The members of an object that may be left out.
    pub(super) fn entries(&mut self, node: Node, what: &str) -> Box<[Entry]> {
        if node.kind == Kind::Null {
            return Box::default();
        }
        self.object(node, what).map(|(_, entries)| entries).unwrap_or_default()
    }

    pub(super) fn array(&mut self, node: Node, what: &str) -> Box<[Node]> {
        if let Kind::Array(items) = node.kind {
            return items;
        }
        self.wrong_kind(&node, what, Expected::List);
        Box::default()
    }

    /// Text that is taken as it is.
    pub(super) fn string(&mut self, node: Node, what: &str) -> Option<Spanned<String>> {
        let span = node.span;
        if let Kind::String(text) = node.kind {
            return Some(Spanned::new(text.into(), span));
        }
        self.not_text(&node, what);
        None
    }

    /// Text that is taken as it is, or nothing.
    pub(super) fn optional(&mut self, node: Node, what: &str) -> Option<Spanned<String>> {
        if node.kind == Kind::Null { None } else { self.string(node, what) }
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(&mut self, node: Node, what: &str, words: &[(&str, T)]) -> Option<Spanned<T>> {
        let text = self.string(node, what)?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text.value) {
            return Some(Spanned::new(*value, text.span));
        }
        let list: Vec<String> = words.iter().map(|(word, _)| format!("'{word}'")).collect();
        let message = format!("{what} cannot be '{}'", shown(&text.value));
        let meant = Meant::word(&text.value, words.iter().map(|(word, _)| *word));
        let finding = Diagnostic::error(&codes::WORD, text.span, message);
        self.report(match meant {
            Some(meant) => finding.with_meant(&text.value, &meant, self.written(text.span)),
            None => finding.with_help(format!("it is one of {}", list.join(", "))),
        });
        None
    }

    pub(super) fn type_name(&mut self, node: Node, what: &str) -> Option<Spanned<TypeName>> {
        if let Some(known) = self.last_type.as_ref().filter(|known| node.as_str() == Some(known.as_str())) {
            return Some(Spanned::new(known.clone(), node.span));
        }
        let text = self.string(node, what)?;
        match TypeName::parse(&text.value) {
            Ok(name) => {
                self.last_type = Some(name.clone());
                Some(Spanned::new(name, text.span))
            }
            Err(error) => {
                let finding = Diagnostic::error(&codes::TYPE_NAME, text.span, error.to_string());
                let kind = KINDS.iter().find(|kind| kind.eq_ignore_ascii_case(&text.value));
                self.report(match kind {
                    _ if text.value.starts_with('[') => finding.with_help("a type cannot be an expression"),
                    Some(kind) => finding.with_help(format!("write 'Microsoft.DSC/{kind}'")),
                    None => finding.with_help(
                        "types look like 'Stead/File'; a resource of a module of PowerShell is 'MODULE/NAME'. `stead resource list` shows them",
                    ),
                });
                None
            }
        }
    }

    pub(super) fn integer(&mut self, node: &Node, what: &str) -> Option<Spanned<i64>> {
        let number = if let Kind::Number(number) = &node.kind { number.as_i64() } else { None };
        if number.is_none() {
            self.wrong_kind(node, what, Expected::Integer);
        }
        number.map(|number| Spanned::new(number, node.span))
    }

    pub(super) fn boolean(&mut self, node: &Node, what: &str) -> Option<Spanned<bool>> {
        let Kind::Bool(truth) = node.kind else {
            self.wrong_kind(node, what, Expected::Boolean);
            return None;
        };
        Some(Spanned::new(truth, node.span))
    }

    pub(super) fn size(&mut self, node: &Node, what: &str) -> Option<Spanned<u64>> {
        let number = if let Kind::Number(number) = &node.kind { number.as_u64() } else { None };
        if number.is_none() {
            self.wrong_kind(node, what, Expected::Size);
        }
        number.map(|number| Spanned::new(number, node.span))
    }

    /// A key that nothing reads. `owner` is the part of the document that has it, such as `a parameter`.
    pub(super) fn unknown_key(&mut self, key: &str, span: Span, owner: &'static str, known: &[&str]) {
        self.unknown_key_at(key, span, (Owner::Part(owner), known), Site { value: None, type_name: None });
    }

    /// A key that nothing reads, of which this is known besides.
    pub(super) fn unknown_key_at(&mut self, key: &str, span: Span, (owner, known): (Owner, &[&str]), site: Site<'_>) {
        let message = format!("{owner} has no key '{}'", shown(key));
        let finding = Diagnostic::error(&codes::UNKNOWN_KEY, span, message);
        // The name alone is not a dependency: the same value below the other key would be refused as well.
        let named = site.value.and_then(Node::as_str).filter(|name| !name.contains(['/', ':', '[', '\'']));
        let (value, is_typed) = (site.value, site.type_name.is_some());
        let meaning = foreign::meaning(owner.foreign_words(), key, site);
        let reference = value.and_then(Node::as_str).and_then(id_of_reference);
        self.report(match Meant::word(key, known.iter().copied()) {
            _ if let (Some(foreign::Meaning::Key("dependsOn")), Some(id)) = (meaning, reference) => {
                let written = format!("dependsOn: [\"{id}\"]");
                let place = value.map_or(span, |value| span.to(value.span));
                let finding = finding.with_help(format!("write `{}`", shown(&written)));
                if self.written(place).is_some_and(|text| text.contains('\n') || text.starts_with('"')) {
                    finding
                } else {
                    finding.with_fix(place, written)
                }
            }
            _ if let (Some(foreign::Meaning::Key("dependsOn")), Some(name)) = (meaning, named) => {
                finding.with_help(format!(
                    "write `dependsOn: [\"[resourceId('TYPE', '{}')]\"]` with the type of that instance",
                    shown(name)
                ))
            }
            _ if owner == Owner::Instance && foreign::is_loop(key) => {
                finding.with_help(loop_advice(value.and_then(|value| self.written(value.span))))
            }
            _ if owner == Owner::Instance
                && let Some(condition) = foreign::condition(key, value) =>
            {
                finding.with_help(format!("write `condition: \"{condition}\"`"))
            }
            _ if let Some(meaning) = meaning => meaning.explain(finding, key, self.written(span)),
            Some(meant) => finding.with_meant(key, &meant, self.written(span)),
            None if owner == Owner::Instance && !is_typed && type_of_module(key).is_some() => {
                finding.with_help(module_advice(key, value))
            }
            None => finding.with_help(match key {
                _ if key.starts_with("//") || key.starts_with("/*") => "a comment begins with '#'".to_owned(),
                _ if owner == Owner::Instance && TypeName::parse(key).is_ok() => {
                    format!("'{key}' is a type: write `type: {key}`, and its properties below `properties:`")
                }
                _ if owner == Owner::Instance => {
                    format!(
                        "properties of the resource go below 'properties'; the keys of {owner} are {}",
                        known.join(", ")
                    )
                }
                "type" | "properties" | "dependsOn" | "condition" | "copy" | "requireVersion"
                    if owner == Owner::Document =>
                {
                    format!("'{key}' belongs to an instance: write it below 'resources', indented like its 'name'")
                }
                _ => format!("its keys are {}", known.join(", ")),
            }),
        });
    }

    /// Returns the key of a document that a key which nothing reads was meant to be, if only one can be.
    pub(super) fn meant_key(owner: Owner, key: &str, known: &[&str], site: Site<'_>) -> Option<String> {
        match foreign::meaning(owner.foreign_words(), key, site) {
            Some(foreign::Meaning::Key(meant)) => Some(meant.to_owned()),
            Some(_) => None,
            None => Meant::word(key, known.iter().copied())?.certain().map(str::to_owned),
        }
    }

    pub(super) fn missing(&mut self, span: Span, owner: &str, key: &str, help: &str) {
        let message = format!("{owner} needs the key '{key}'");
        // The start is enough: marking all of an object hides what else is wrong in it.
        let place = Span::new(span.source, span.start, span.start);
        self.report(Diagnostic::error(&codes::MISSING_KEY, place, message).with_help(help));
    }
}

/// Advice about a loop of another tool, given what it goes over as it is written.
fn loop_advice(written: Option<&str>) -> String {
    const LONGEST: usize = 60;
    let is_list = |text: &&str| {
        let of_words = |c: char| c.is_alphanumeric() || "[], _-./".contains(c);
        text.starts_with("\"[") || (text.starts_with('[') && text.chars().all(of_words))
    };
    let items =
        written.filter(|text| text.len() <= LONGEST && !text.contains('\n')).filter(is_list).unwrap_or("[a, b]");
    format!("write `copy: {{name: items, each: {items}, as: item}}`; expressions read the item as [item()]")
}

/// Returns whether a key of an instance is a type, or what a type is to other tools, and nothing else to them.
pub(super) fn names_type(key: &str) -> bool {
    let is_word =
        || foreign::meaning::<Never>(foreign::AT_INSTANCES, key, Site { value: None, type_name: None }).is_some();
    // 'copy' is a key of instances as well.
    TypeName::parse(key).is_ok() || (key != "copy" && type_of_module(key).is_some() && !is_word())
}

/// Advice about a module of Ansible that is written as a key of an instance.
fn module_advice(key: &str, value: Option<&Node>) -> String {
    const INCLUDE: &str = "Microsoft.DSC/Include";
    let type_name = type_of_module(key).unwrap_or_default();
    if type_name != INCLUDE {
        return format!("a module is a type here: write `type: {type_name}`, and its properties below `properties:`");
    }
    let named = value.and_then(|value| {
        let members = ["file", "name", "tasks_from"].iter().find_map(|key| value.get(key));
        value.as_str().or_else(|| members?.as_str())
    });
    let is_path = |file: &&str| file.chars().all(|c| c.is_alphanumeric() || "_-./".contains(c));
    let file = named.filter(is_path).unwrap_or("more.yaml");
    let ending = if file.contains('.') { "" } else { ".yaml" };
    format!(
        "write `type: {INCLUDE}` and `properties: {{configurationFile: {file}{ending}}}`, and make that file a document"
    )
}

/// The kind of value that a key takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    Object,
    List,
    Boolean,
    Integer,
    /// An integer from 0.
    Size,
    /// A string or an expression.
    Text,
    /// A boolean or an expression.
    Condition,
    /// A number of instances or an expression.
    Count,
    /// What a loop goes over.
    Items,
    /// True or a list of names.
    Exclusive,
}

impl Expected {
    fn as_str(self) -> &'static str {
        match self {
            Self::Object => "an object",
            Self::List => "a list",
            Self::Boolean => "true or false",
            Self::Integer => "an integer",
            Self::Size => "an integer that is not negative",
            Self::Text => "a string or an expression",
            Self::Condition => "an expression or a boolean",
            Self::Count => "a number of instances or an expression",
            Self::Items => "a list, an object or an expression",
            Self::Exclusive => "'true' or a list of names",
        }
    }

    /// Returns how it is written, where something else was found.
    fn form(self, found: &Kind) -> Option<&'static str> {
        match (self, found) {
            (Self::List, Kind::Object(_)) => Some("write each element behind a dash: '- '"),
            (Self::List, _) => Some("write it as a list: [a, b], or each element behind a dash"),
            (Self::Object, Kind::Array(_)) => Some("write 'key: value' without a dash before it"),
            (Self::Object, _) => Some("write it as an object: {key: value}"),
            (Self::Count | Self::Size, _) => Some("write an integer from 0"),
            (Self::Exclusive, Kind::String(_)) => Some("write it as a list: [name]"),
            _ => None,
        }
    }
}

/// A value in words, scalars as they are.
fn described(node: &Node) -> String {
    match &node.kind {
        Kind::Null => "nothing".to_owned(),
        Kind::Bool(truth) => format!("the boolean {truth}"),
        Kind::Number(number) => format!("the number {number}"),
        Kind::String(_) => "text".to_owned(),
        Kind::Compiled(never) => match *never {},
        Kind::Array(_) => "a list".to_owned(),
        Kind::Object(_) => "an object".to_owned(),
    }
}

/// Key and value of `key:value`, which YAML takes for one word.
fn missing_space(text: &str) -> Option<(&str, &str)> {
    let (key, value) = text.split_once(':')?;
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$'));
    (is_key && !value.is_empty() && value.lines().count() == 1 && !value.starts_with(['/', ' ']))
        .then_some((key, value))
}
