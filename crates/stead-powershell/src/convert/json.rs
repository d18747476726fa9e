//! JSON with all digits of its numbers and all members of its objects.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use stead_core::value::Value;

/// More levels than any property has; PowerShell's own limits begin at 100.
pub(super) const MOST_LEVELS: usize = 64;

/// A JSON value as written: numbers are texts, and members that differ in case only are both there.
///
/// # Examples
/// ```
/// use stead_powershell::convert::Json;
///
/// // All digits of numbers, and all members of objects, are there to be judged.
/// assert_eq!(Json::parse("0.10")?, Json::Number("0.10".to_owned()));
/// let Json::Object(members) = Json::parse(r#"{"a": 1, "A": 2}"#)? else { return Ok(()) };
/// assert_eq!(members.len(), 2);
/// # Ok::<(), stead_powershell::convert::JsonError>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, as written.
    Number(String),
    /// A string.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object, its members in order.
    Object(Vec<(String, Json)>),
}

/// Why a text is not a value that can be converted.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// It is not JSON.
    #[error("not valid JSON")]
    Syntax(#[from] serde_json::Error),
    /// It nests too deep.
    #[error("more than {MOST_LEVELS} levels")]
    Depth,
}

impl Json {
    /// Reads a text.
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        Self::read(serde_json::from_str(text)?, 0)
    }

    fn read(raw: &RawValue, level: usize) -> Result<Self, JsonError> {
        if level > MOST_LEVELS {
            return Err(JsonError::Depth);
        }
        let text = raw.get();
        Ok(match text.as_bytes().first() {
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(text)?;
                Self::Array(items.into_iter().map(|item| Self::read(item, level + 1)).collect::<Result<_, _>>()?)
            }
            Some(b'{') => {
                let Members(members) = serde_json::from_str(text)?;
                let member = |(name, value): (String, &RawValue)| Ok((name, Self::read(value, level + 1)?));
                Self::Object(members.into_iter().map(member).collect::<Result<_, JsonError>>()?)
            }
            Some(b'"') => Self::String(serde_json::from_str(text)?),
            Some(b'n') => Self::Null,
            Some(b't') => Self::Bool(true),
            Some(b'f') => Self::Bool(false),
            _ => Self::Number(text.to_owned()),
        })
    }

    /// Returns the kind of value with an article, for messages.
    pub fn described(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

impl From<&Value> for Json {
    /// A sealed part becomes its placeholder.
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(truth) => Self::Bool(*truth),
            Value::Number(number) => Self::Number(number.to_string()),
            Value::String(text) => Self::String(text.clone()),
            Value::Array(items) => Self::Array(items.iter().map(Self::from).collect()),
            Value::Object(members) => {
                Self::Object(members.iter().map(|(name, value)| (name.clone(), Self::from(value))).collect())
            }
            Value::Sealed(_) => Self::String(stead_core::value::REDACTED.to_owned()),
        }
    }
}

/// The members of an object, those with the same name too.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}
