//! Why a property is not accepted, as data: the text is made of it, and so is what to do.

use std::fmt::{self, Display};

use crate::diag::Meant;
use crate::value::Value;

/// Why a value is not accepted. The text is a predicate such as "must be a string", or names a member itself.
///
/// Guarantees: no part of the value is quoted but names of members, because it may be secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reason {
    /// It has a member that there is none of.
    Unknown {
        /// The name of the member.
        name: String,
        /// The members that there are.
        known: Vec<String>,
    },
    /// It lacks a member: any of these.
    Missing(Vec<String>),
    /// It has members that cannot be used together.
    Excluded(Vec<String>),
    /// It has members that cannot be used in these circumstances.
    NotHere(Vec<String>),
    /// It is of none of these types.
    Type(Vec<Type>),
    /// It is none of these.
    OneOf {
        /// The allowed values, as JSON.
        allowed: Vec<String>,
        /// The value that was probably meant.
        near: Option<Meant>,
    },
    /// It has none of several forms, each for its own reason.
    Forms(Vec<Self>),
    /// Anything else.
    Other(String),
}

/// The types of JSON Schema.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// `null`.
    Null,
    /// `boolean`.
    Boolean,
    /// `integer`.
    Integer,
    /// `number`.
    Number,
    /// `string`.
    String,
    /// `array`.
    Array,
    /// `object`.
    Object,
}

impl Reason {
    /// Returns whether the text names a member of the value, so that it is a sentence already.
    pub fn names_member(&self) -> bool {
        match self {
            Self::Unknown { .. } | Self::Missing(_) | Self::Excluded(_) | Self::NotHere(_) => true,
            Self::Forms(reasons) => reasons.first().is_some_and(Self::names_member),
            Self::Type(_) | Self::OneOf { .. } | Self::Other(_) => false,
        }
    }

    /// Returns the advice about it, as far as that does not depend on the value.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Unknown { known, .. } => match self.meant() {
                Some(meant) => Some(meant.to_string()),
                None if known.is_empty() => None,
                None => Some(format!("the properties are {}", known.join(", "))),
            },
            Self::OneOf { near, .. } => near.as_ref().map(ToString::to_string),
            _ => None,
        }
    }

    /// The word that was probably meant, where another was written.
    pub fn meant(&self) -> Option<Meant> {
        match self {
            Self::Unknown { name, known } => Meant::word(name, known.iter().map(String::as_str)),
            Self::OneOf { near, .. } => near.clone(),
            _ => None,
        }
    }
}

/// True for a name that no resource knows and that is a key beside `properties`.
pub fn is_key_of_instances(name: &str) -> bool {
    ["dependsOn", "condition", "directives", "requireVersion", "apiVersion"].contains(&name)
}

impl Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, .. } => write!(f, "there is no property '{name}'"),
            Self::Missing(names) => write!(f, "{} is required", listed(names, "or")),
            Self::Excluded(names) => write!(f, "{} cannot be used together", listed(names, "and")),
            Self::NotHere(names) => write!(f, "{} cannot be used here", listed(names, "and")),
            Self::Type(types) => write!(f, "must be {}", joined(types, " or ")),
            Self::OneOf { allowed, .. } => write!(f, "must be {}", alternatives(allowed)),
            Self::Forms(reasons) => f.write_str(&joined(reasons, ", or ")),
            Self::Other(predicate) => f.write_str(predicate),
        }
    }
}

impl Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Boolean => "true or false",
            Self::Integer => "an integer",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "a list",
            Self::Object => "an object",
        })
    }
}

fn joined(parts: &[impl Display], between: &str) -> String {
    parts.iter().map(ToString::to_string).collect::<Vec<_>>().join(between)
}

/// `a`, or `one of a, b`.
pub(super) fn alternatives(allowed: &[String]) -> String {
    match allowed {
        [one] => one.clone(),
        several => format!("one of {}", several.join(", ")),
    }
}

/// `'a'`, `'a' and 'b'`, `'a', 'b' and 'c'`
pub(super) fn listed(names: &[impl AsRef<str>], word: &str) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("'{}'", name.as_ref())).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} {word} {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

/// How a value is written that was meant to be of a type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spelling {
    /// In quotes, so that it is a string.
    Quoted,
    /// Without quotes, so that it is none.
    Unquoted,
    /// As a list.
    List,
}

impl Spelling {
    /// Returns how `found` is written to be of one of the types, if that is all that is wrong with it.
    pub fn of(wanted: &[Type], found: &Value) -> Option<Self> {
        let wants = |each: Type| wanted.contains(&each);
        match found {
            Value::Number(_) | Value::Bool(_) if wants(Type::String) => Some(Self::Quoted),
            Value::String(text) if wants(Type::Boolean) && matches!(text.as_str(), "true" | "false") => {
                Some(Self::Unquoted)
            }
            Value::String(text) if wants(Type::Integer) && text.parse::<i64>().is_ok() => Some(Self::Unquoted),
            Value::String(text) if wants(Type::Number) && text.parse::<f64>().is_ok() => Some(Self::Unquoted),
            Value::String(_) | Value::Number(_) if wants(Type::Array) => Some(Self::List),
            _ => None,
        }
    }

    /// Returns the advice, in words.
    pub fn help(self) -> &'static str {
        match self {
            Self::Quoted => "write it in quotes",
            Self::Unquoted => "write it without quotes",
            Self::List => "write it as a list: [VALUE]",
        }
    }
}
