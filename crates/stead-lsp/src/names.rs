//! The names that a document declares, and where it uses them.

use std::collections::BTreeSet;

use stead_core::document::{Relation, items_of};
use stead_core::expr::{Expression, is_expression};
use stead_core::id::ResourceId;
use stead_core::text::{Kind, Node, Source, Sources, Span, locate};

/// A thing with a name in a document.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum DocumentName {
    Parameter(String),
    Variable(String),
    /// An instance; types are compared without regard to case, so this one is in lower case.
    Instance {
        type_name: String,
        name: String,
    },
}

impl DocumentName {
    fn instance(type_name: &str, name: &str) -> Self {
        Self::Instance { type_name: type_name.to_lowercase(), name: name.to_owned() }
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Parameter(name) | Self::Variable(name) | Self::Instance { name, .. } => name,
        }
    }
}

/// One place where a name stands.
#[derive(Clone, Debug)]
pub(crate) struct Mention {
    pub(crate) named: DocumentName,
    pub(crate) span: Span,
    pub(crate) form: NameForm,
}

/// How a name is written at a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NameForm {
    /// As the key or the value that declares it.
    Declaration,
    /// As text in single quotes in an expression.
    Quoted,
    /// As `TYPE:NAME`, a resource id, in an expression or by itself.
    Id,
}

/// An instance, unless an expression computes its name.
#[derive(Clone, Debug)]
pub(crate) struct NamedInstance {
    /// As it is written.
    pub(crate) type_name: String,
    pub(crate) name: String,
    /// Where it stands.
    pub(crate) span: Span,
}

/// Everything that a document declares and uses, in the order written.
#[derive(Default)]
pub(crate) struct DocumentNames {
    pub(crate) mentions: Vec<Mention>,
    pub(crate) instances: Vec<NamedInstance>,
    /// The name of each loop, and where its instance stands.
    pub(crate) loops: Vec<(String, Span)>,
    /// What its loops call their items.
    pub(crate) items: BTreeSet<String>,
}

impl DocumentNames {
    pub(crate) fn of(text: &str, root: &Node) -> Self {
        let mut sources = Sources::default();
        sources.add(Source::new("", text));
        let mut names = Self::default();
        names.document(root);
        names.uses(root, &sources);
        names.mentions.sort_by_key(|mention| mention.span);
        names
    }

    /// Returns the mention at a byte.
    pub(crate) fn at(&self, offset: usize) -> Option<&Mention> {
        let holds = |span: Span| span.start as usize <= offset && offset <= span.end as usize;
        self.mentions.iter().find(|mention| holds(mention.span))
    }

    /// Every place where that is mentioned.
    pub(crate) fn of_named<'n>(&'n self, named: &'n DocumentName) -> impl Iterator<Item = &'n Mention> {
        self.mentions.iter().filter(move |mention| mention.named == *named)
    }

    /// The declarations, in the order written.
    pub(crate) fn declared(&self) -> impl Iterator<Item = &Mention> {
        self.mentions.iter().filter(|mention| mention.form == NameForm::Declaration)
    }

    fn declare(&mut self, named: DocumentName, span: Span) {
        self.mentions.push(Mention { named, span, form: NameForm::Declaration });
    }

    /// Notes the names that a document, or the properties of a group, declares.
    fn document(&mut self, node: &Node) {
        for (section, named) in [
            ("parameters", DocumentName::Parameter as fn(String) -> DocumentName),
            ("variables", DocumentName::Variable),
        ] {
            for entry in node.get(section).and_then(Node::entries).into_iter().flatten() {
                self.declare(named(entry.key.to_string()), entry.key_span);
            }
        }
        for instance in node.get("resources").and_then(Node::items).into_iter().flatten() {
            let type_name = instance.get("type").and_then(Node::as_str);
            let name = instance.get("name").and_then(Node::spanned_str);
            if let (Some(type_name), Some(name)) = (type_name, name)
                && !is_expression(name.value)
            {
                self.declare(DocumentName::instance(type_name, name.value), name.span);
                let (type_name, name) = (type_name.to_owned(), name.value.to_owned());
                self.instances.push(NamedInstance { type_name, name, span: instance.span });
            }
            if let Some(copy) = instance.get("copy") {
                let names = copy.items().unwrap_or(std::slice::from_ref(copy)).iter();
                let names = names.filter_map(|each| each.get("name").and_then(Node::as_str));
                self.loops.extend(names.map(|name| (name.to_owned(), instance.span)));
            }
            if let Some(properties) =
                instance.get("properties").filter(|properties| properties.get("resources").is_some())
            {
                self.document(properties);
            }
        }
    }

    fn uses(&mut self, node: &Node, sources: &Sources) {
        match &node.kind {
            Kind::String(text) if is_expression(text) => self.expression(text, node.span, sources),
            Kind::Array(items) => items.iter().for_each(|item| self.uses(item, sources)),
            Kind::Object(entries) => {
                self.items.extend(items_of(entries).map(String::from));
                for entry in entries {
                    let is_list =
                        *entry.key == *"dependsOn" || Relation::ALL.iter().any(|(word, _)| *entry.key == **word);
                    if is_list {
                        self.ids(&entry.value);
                    }
                    self.uses(&entry.value, sources);
                }
            }
            _ => {}
        }
    }

    /// Ids that are written as they are.
    fn ids(&mut self, node: &Node) {
        for item in node.items().unwrap_or(std::slice::from_ref(node)) {
            if let Some(text) = item.spanned_str().filter(|text| !is_expression(text.value)) {
                self.id(text.value, text.span);
            }
        }
    }

    fn id(&mut self, text: &str, span: Span) {
        if let Ok(id) = ResourceId::parse(text) {
            self.mentions.push(Mention {
                named: DocumentName::instance(id.type_name.as_str(), &id.name),
                span,
                form: NameForm::Id,
            });
        }
    }

    fn expression(&mut self, text: &str, span: Span, sources: &Sources) {
        let Ok(expression) = Expression::parse_in_loops(text, &|_| true) else { return };
        for (function, named) in [
            ("parameters", DocumentName::Parameter as fn(String) -> DocumentName),
            ("variables", DocumentName::Variable),
        ] {
            for argument in expression.calls(function).filter_map(|call| call.arguments().next()) {
                if let Some(name) = argument.text() {
                    let span = locate(sources, span, argument.at());
                    self.mentions.push(Mention { named: named(name.to_owned()), span, form: NameForm::Quoted });
                }
            }
        }
        for call in expression.calls("resourceId") {
            let mut arguments = call.arguments();
            if let (Some(type_name), Some(name)) = (arguments.next(), arguments.next())
                && let (Some(type_name), Some(text)) = (type_name.text(), name.text())
            {
                let named = DocumentName::instance(type_name, text);
                self.mentions.push(Mention { named, span: locate(sources, span, name.at()), form: NameForm::Quoted });
            }
        }
        for function in ["reference", "stateChanged"] {
            for argument in expression.calls(function).filter_map(|call| call.arguments().next()) {
                if let Some(id) = argument.text() {
                    self.id(id, locate(sources, span, argument.at()));
                }
            }
        }
    }
}

impl Mention {
    /// Returns the text to write at its place so that it means another name; `None` where that cannot be written so.
    pub(crate) fn renamed(&self, written: &str, name: &str) -> Option<String> {
        let quote = written.chars().next().filter(|first| matches!(first, '"' | '\''));
        match (self.form, quote) {
            // In quotes of the expression, within which the quotes of the string around it must not occur.
            (NameForm::Quoted, _) => Some(format!("'{name}'")),
            (NameForm::Id, _) => {
                let (type_name, _) = written.split_once(':')?;
                let start = type_name.trim_start_matches(['"', '\'']);
                let id = ResourceId::parse(&format!("{start}:x")).ok()?;
                let id = ResourceId { name: name.into(), ..id }.to_string();
                Some(quote.map_or_else(|| id.clone(), |quote| format!("{quote}{id}{quote}")))
            }
            (NameForm::Declaration, Some(quote)) => Some(format!("{quote}{name}{quote}")),
            (NameForm::Declaration, None) => Some(name.to_owned()),
        }
    }
}

/// Returns whether a name means the same in every way to write it, whatever stands around it.
pub(crate) fn is_plain(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(char::is_alphabetic)
        && letters.all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.'))
        && !["true", "false", "null", "yes", "no", "on", "off"].contains(&name.to_lowercase().as_str())
}
