//! The tree that documents are read into: JSON values with places.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Span, Spanned};
use crate::value::{Number, Value};

/// A value that may stand in a tree in place of text, such as an expression that was compiled.
pub trait Leaf {
    /// The text that it was written as.
    fn written(&self) -> &str;
}

/// The tree of a text has no leaves but its own.
#[derive(Clone, PartialEq, Debug)]
pub enum Never {}

impl Leaf for Never {
    fn written(&self) -> &str {
        match *self {}
    }
}

/// A value of a document and where it stands; `L` is what text may have been compiled to.
#[derive(Clone, PartialEq, Debug)]
pub struct Node<L = Never> {
    /// Where it was written.
    pub span: Span,
    /// The content, as it was written.
    pub kind: Kind<L>,
}

/// The content of a [`Node`].
#[derive(Clone, PartialEq, Debug)]
pub enum Kind<L = Never> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number
    Number(Number),
    /// Text that is taken as it is
    String(Box<str>),
    /// Text that was compiled
    Compiled(L),
    /// A sequence
    Array(Box<[Node<L>]>),
    /// Named values in the order written; no key occurs twice
    Object(Box<[Entry<L>]>),
}

/// A member of an object.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry<L = Never> {
    /// The name, which entries of other objects may share.
    pub key: Arc<str>,
    /// Where the name stands.
    pub key_span: Span,
    /// The value.
    pub value: Node<L>,
}

impl<L: Leaf> Node<L> {
    /// A value that stands in no text and has no expressions. Sealed parts are covered: nothing opens them here.
    pub fn of_value(value: Value) -> Self {
        let kind = match value {
            Value::Null => Kind::Null,
            Value::Bool(truth) => Kind::Bool(truth),
            Value::Number(number) => Kind::Number(number),
            Value::String(text) => Kind::String(text.into()),
            Value::Array(items) => Kind::Array(items.into_iter().map(Self::of_value).collect()),
            Value::Object(members) => {
                let entry = |(key, value): (String, Value)| Entry {
                    key: key.into(),
                    key_span: Span::default(),
                    value: Self::of_value(value),
                };
                Kind::Object(members.into_iter().map(entry).collect())
            }
            Value::Sealed(_) => Kind::String(crate::value::REDACTED.into()),
        };
        Self { span: Span::default(), kind }
    }

    /// The word that messages use for this kind of value.
    pub fn kind_name(&self) -> &'static str {
        match &self.kind {
            Kind::Null => "null",
            Kind::Bool(_) => "boolean",
            Kind::Number(_) => "number",
            Kind::String(_) => "string",
            Kind::Compiled(_) => "expression",
            Kind::Array(_) => "array",
            Kind::Object(_) => "object",
        }
    }

    /// The text, if it is plain text.
    pub fn as_str(&self) -> Option<&str> {
        if let Kind::String(text) = &self.kind { Some(text) } else { None }
    }

    /// The members, if it is an object.
    pub fn entries(&self) -> Option<&[Entry<L>]> {
        if let Kind::Object(entries) = &self.kind { Some(entries) } else { None }
    }

    /// The elements, if it is an array.
    pub fn items(&self) -> Option<&[Self]> {
        if let Kind::Array(items) = &self.kind { Some(items) } else { None }
    }

    /// The member of that name, if it is an object that has one.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entries()?.iter().find(|entry| &*entry.key == key).map(|entry| &entry.value)
    }

    /// Returns the places of the values that aliases repeat: each stands more than once in the tree, and once in the text.
    pub fn repeated(&self) -> Vec<Span> {
        let (mut seen, mut repeated) = (HashSet::new(), Vec::new());
        let mut nodes = vec![self];
        while let Some(node) = nodes.pop() {
            if node.span.start < node.span.end && !seen.insert(node.span) {
                repeated.push(node.span);
                continue;
            }
            nodes.extend(node.items().into_iter().flatten());
            nodes.extend(node.entries().into_iter().flatten().map(|entry| &entry.value));
        }
        repeated
    }

    /// The text with its place, if it is plain text.
    pub fn spanned_str(&self) -> Option<Spanned<&str>> {
        self.as_str().map(|text| Spanned::new(text, self.span))
    }

    /// The value as it was written: expressions stay text.
    pub fn literal(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(truth) => Value::Bool(*truth),
            Kind::Number(number) => Value::Number(number.clone()),
            Kind::String(text) => Value::String(text.as_ref().to_owned()),
            Kind::Compiled(leaf) => Value::String(leaf.written().to_owned()),
            Kind::Array(items) => Value::Array(items.iter().map(Self::literal).collect()),
            Kind::Object(entries) => Value::Object(
                entries.iter().map(|entry| (entry.key.as_ref().to_owned(), entry.value.literal())).collect(),
            ),
        }
    }
}

/// Returns whether no key occurs twice.
pub(super) fn are_distinct(members: &[Entry]) -> bool {
    // Comparing all pairs is faster than hashing up to about this many.
    const FEW: usize = 12;
    if members.len() <= FEW {
        let mut rest = members;
        while let Some((first, others)) = rest.split_first() {
            if others.iter().any(|other| other.key == first.key) {
                return false;
            }
            rest = others;
        }
        return true;
    }
    let mut seen = HashSet::with_capacity(members.len());
    members.iter().all(|member| seen.insert(&*member.key))
}
