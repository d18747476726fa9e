//! Values: what expressions compute, what resources are given and what they answer.

mod data_type;
mod object;
pub mod pointer;
mod sealed;
mod serial;

use std::fmt;

use zeroize::Zeroize;

pub use self::data_type::DataType;
pub use self::object::{Iter, Object};
pub use self::sealed::{
    Closure, Computed, Function, Key, Recipe, Seal, Sealed, SealedStep, redacting_wrapped, sealing_wrapped,
};

/// A JSON number; integers are kept exactly over the whole range of 64 bits.
pub type Number = serde_json::Number;

/// A JSON value in which any part may be sealed.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use stead_core::id::SecretName;
/// use stead_core::value::{Object, Value};
///
/// let password = Value::secret(SecretName("vault-1".into()));
/// let user = Value::from(Object::from([("name".to_owned(), "ann".into()), ("password".to_owned(), password)]));
/// assert!(user.has_sealed());
/// assert_eq!(user.to_redacted_json(), json!({ "name": "ann", "password": "<secureValue>" }));
/// assert_eq!(user.get("name").and_then(Value::as_str), Some("ann"));
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Value {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An integer or a floating-point number
    Number(Number),
    /// Text
    String(String),
    /// A sequence
    Array(Vec<Value>),
    /// Named values in order
    Object(Object),
    /// A value that the core cannot read: a secret, or what is computed from one
    Sealed(Sealed),
}

impl Value {
    /// The word that messages use for this kind of value.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Number(_) => "number",
            Self::String(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
            Self::Sealed(_) => "secure value",
        }
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
            Self::Sealed(_) => "a secret",
        }
    }

    /// The text, if it is text.
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// The truth value, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(truth) = self { Some(*truth) } else { None }
    }

    /// The integer, if it is a number without a fraction that fits.
    pub fn as_i64(&self) -> Option<i64> {
        if let Self::Number(number) = self { number.as_i64() } else { None }
    }

    /// The elements, if it is an array.
    pub fn as_array(&self) -> Option<&[Value]> {
        if let Self::Array(items) = self { Some(items) } else { None }
    }

    /// The members, if it is an object.
    pub fn as_object(&self) -> Option<&Object> {
        if let Self::Object(members) = self { Some(members) } else { None }
    }

    /// The member of that name, if it is an object that has one.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.as_object()?.get(name)
    }

    /// Returns whether it is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Returns whether any part of it is sealed.
    pub fn has_sealed(&self) -> bool {
        match self {
            Self::Sealed(_) => true,
            Self::Array(items) => items.iter().any(Self::has_sealed),
            Self::Object(members) => members.values().any(Self::has_sealed),
            _ => false,
        }
    }

    /// About how many bytes of memory it takes. What sealed values share is not counted.
    pub fn weight(&self) -> u64 {
        let own = size_of::<Self>() as u64;
        own + match self {
            Self::String(text) => text.len() as u64,
            Self::Array(items) => items.iter().map(Self::weight).sum(),
            Self::Object(members) => {
                let member =
                    |(name, value): (&String, &Self)| (size_of::<String>() + name.len()) as u64 + value.weight();
                members.iter().map(member).sum()
            }
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Sealed(_) => 0,
        }
    }

    /// The value as JSON, every sealed part replaced by [`REDACTED`].
    pub fn to_redacted_json(&self) -> serde_json::Value {
        self.to_json_with(&|| serde_json::Value::String(REDACTED.to_owned()))
    }

    /// The value as JSON, every sealed part replaced by what `covered` gives.
    pub fn to_json_with(&self, covered: &dyn Fn() -> serde_json::Value) -> serde_json::Value {
        use serde_json::Value as Json;
        match self {
            Self::Null => Json::Null,
            Self::Bool(truth) => Json::Bool(*truth),
            Self::Number(number) => Json::Number(number.clone()),
            Self::String(text) => Json::String(text.clone()),
            Self::Array(items) => Json::Array(items.iter().map(|item| item.to_json_with(covered)).collect()),
            Self::Object(members) => {
                let members = members.iter().map(|(key, value)| (key.clone(), value.to_json_with(covered)));
                Json::Object(members.collect())
            }
            Self::Sealed(_) => covered(),
        }
    }
}

/// The text that is printed in place of a sealed value; the same as DSC v3 prints.
pub const REDACTED: &str = "<secureValue>";

impl From<serde_json::Value> for Value {
    fn from(json: serde_json::Value) -> Self {
        use serde_json::Value as Json;
        match json {
            Json::Null => Self::Null,
            Json::Bool(truth) => Self::Bool(truth),
            Json::Number(number) => Self::Number(number),
            Json::String(text) => Self::String(text),
            Json::Array(items) => Self::Array(items.into_iter().map(Self::from).collect()),
            Json::Object(members) => {
                Self::Object(members.into_iter().map(|(key, value)| (key, Self::from(value))).collect())
            }
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}
impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}
impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}
impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(number.into())
    }
}
impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number.into())
    }
}
impl From<i32> for Value {
    fn from(number: i32) -> Self {
        Self::Number(number.into())
    }
}
impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}
impl From<Object> for Value {
    fn from(members: Object) -> Self {
        Self::Object(members)
    }
}
impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(items: Vec<T>) -> Self {
        Self::Array(items.into_iter().map(Into::into).collect())
    }
}

/// Plaintext that must not be printed: no `Display`, no `Serialize`, and a `Debug` that says nothing.
///
/// It is wiped from memory when dropped, as far as its type can be.
///
/// # Examples
/// ```
/// use stead_core::value::Sensitive;
///
/// let password = Sensitive::new("hunter2".to_owned());
/// assert!(!format!("{password:?}").contains("hunter2"));
/// assert_eq!(password.expose(), "hunter2");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Sensitive<T: Zeroize>(T);

impl<T: Zeroize> Sensitive<T> {
    /// Marks plaintext as such.
    pub fn new(plaintext: T) -> Self {
        Self(plaintext)
    }

    /// The plaintext. The one way to it; every use is a place to review.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T: Zeroize> Drop for Sensitive<T> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl<T: Zeroize> fmt::Debug for Sensitive<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(sensitive)")
    }
}

impl Zeroize for Value {
    fn zeroize(&mut self) {
        match self {
            Self::String(text) => text.zeroize(),
            Self::Array(items) => items.iter_mut().for_each(Zeroize::zeroize),
            Self::Object(members) => members.values_mut().for_each(Zeroize::zeroize),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Sealed(_) => {}
        }
        *self = Self::Null;
    }
}
