//! The declarations of a schema, as written.

use crate::types::Type;

/// A class.
#[derive(Clone, PartialEq, Debug)]
pub struct ClassDeclaration {
    /// Its name.
    pub name: String,
    /// The class that it derives from.
    pub base: Option<String>,
    /// Its qualifiers.
    pub qualifiers: Qualifiers,
    /// Its properties; methods are not kept.
    pub properties: Vec<PropertyDeclaration>,
    /// The offset of its name.
    pub offset: usize,
}

/// A property of a class.
#[derive(Clone, PartialEq, Debug)]
pub struct PropertyDeclaration {
    /// Its name.
    pub name: String,
    /// The type as written, of an element where it is an array.
    pub written: String,
    /// The type of an element.
    pub element: Type,
    /// The shape: one value, or an array.
    pub shape: Shape,
    /// Its qualifiers.
    pub qualifiers: Qualifiers,
    /// Its default: the value and the text.
    pub default: Option<(Value, String)>,
    /// The offset of its name.
    pub offset: usize,
}

/// The shape of a property: one value, or an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// It is one value.
    Single,
    /// `[]`
    Array,
    /// `[3]`
    Fixed(u64),
}

/// The qualifiers of a declaration.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Qualifiers(pub Vec<Qualifier>);

/// A qualifier.
#[derive(Clone, PartialEq, Debug)]
pub struct Qualifier {
    /// Its name.
    pub name: String,
    /// Its value; a boolean one is true without.
    pub value: Option<Value>,
    /// How many flavors follow.
    pub flavors: usize,
    /// The offset of its name.
    pub offset: usize,
}

/// A constant.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// `NULL`.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A whole number.
    Integer(i128),
    /// A number with a point.
    Real(f64),
    /// `"text"`.
    Text(String),
    /// `'c'`.
    Character(char),
    /// `{a, b}`.
    Array(Vec<Value>),
}

impl Qualifiers {
    /// The qualifier of that name, whatever its case.
    pub fn get(&self, name: &str) -> Option<&Qualifier> {
        self.0.iter().find(|qualifier| qualifier.name.eq_ignore_ascii_case(name))
    }

    /// Returns whether a boolean qualifier is there and not false.
    pub fn is(&self, name: &str) -> bool {
        self.get(name).is_some_and(|qualifier| qualifier.value != Some(Value::Boolean(false)))
    }

    /// The text that a qualifier holds.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)?.value.as_ref()? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The texts that a qualifier holds.
    pub fn texts(&self, name: &str) -> Option<Vec<String>> {
        let text = |value: &Value| if let Value::Text(text) = value { Some(text.clone()) } else { None };
        match self.get(name)?.value.as_ref()? {
            Value::Array(values) => values.iter().map(text).collect(),
            value => text(value).map(|text| vec![text]),
        }
    }
}
