//! Values as the worker builds them.

use std::fmt;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// A value on its way to the worker.
///
/// Scalars are themselves. What JSON has no form for, and every array and object, is an object of one member whose name
/// says what is built: `{"decimal": "1.10"}`, `{"array": [..]}`, `{"hashtable": {name: value, ..}}`.
///
/// Its `Debug` shows no value, as it may hold secrets.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use stead_powershell::convert::Wire;
///
/// let password = Wire::SecureString("hunter2".to_owned());
/// assert!(!format!("{password:?}").contains("hunter2"));
/// let price = Wire::Array(vec![Wire::Decimal("1.10".to_owned()), Wire::Null]);
/// assert_eq!(serde_json::to_value(price)?, json!({ "array": [{ "decimal": "1.10" }, null] }));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq)]
pub enum Wire {
    /// `$null`
    Null,
    /// `[bool]`
    Bool(bool),
    /// `[string]`
    String(String),
    /// Decimal digits: the smallest of `[int]`, `[long]`, `[ulong]`, `[decimal]` that holds it, else `[bigint]`.
    Integer(String),
    /// `[double]`
    Double(String),
    /// `[decimal]`
    Decimal(String),
    /// `[object[]]`
    Array(Vec<Wire>),
    /// `@{}`: names do not depend on case.
    Hashtable(Vec<(String, Wire)>),
    /// `[ordered]@{}`
    Ordered(Vec<(String, Wire)>),
    /// `[pscustomobject]`
    Object(Vec<(String, Wire)>),
    /// `[pscredential]`
    Credential(String, String),
    /// `[securestring]`
    SecureString(String),
    /// An instance of a CIM class that is on the client only.
    CimInstance(String, Vec<(String, Wire)>),
}

impl Wire {
    /// A text that is not more than a text.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }
}

impl Serialize for Wire {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(truth) => serializer.serialize_bool(*truth),
            Self::String(text) => serializer.serialize_str(text),
            Self::Integer(text) => tagged(serializer, "integer", text),
            Self::Double(text) => tagged(serializer, "double", text),
            Self::Decimal(text) => tagged(serializer, "decimal", text),
            Self::Array(items) => tagged(serializer, "array", items),
            Self::Hashtable(members) => tagged(serializer, "hashtable", &Members(members)),
            Self::Ordered(members) => tagged(serializer, "ordered", &Members(members)),
            Self::Object(members) => tagged(serializer, "object", &Members(members)),
            Self::Credential(name, password) => {
                tagged(serializer, "credential", &Credential { username: name, password })
            }
            Self::SecureString(text) => tagged(serializer, "secureString", text),
            Self::CimInstance(class, members) => tagged(
                serializer,
                "cimInstance",
                &Instance { class, properties: Hashtable { hashtable: Members(members) } },
            ),
        }
    }
}

/// The members of an object, in order.
pub(crate) struct Members<'a>(pub(crate) &'a [(String, Wire)]);

impl Serialize for Members<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

#[derive(Serialize)]
struct Credential<'a> {
    username: &'a str,
    password: &'a str,
}

#[derive(Serialize)]
struct Instance<'a> {
    class: &'a str,
    properties: Hashtable<'a>,
}

#[derive(Serialize)]
struct Hashtable<'a> {
    hashtable: Members<'a>,
}

fn tagged<S: Serializer>(serializer: S, tag: &str, value: &(impl Serialize + ?Sized)) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry(tag, value)?;
    map.end()
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wire")
    }
}
