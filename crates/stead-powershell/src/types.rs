//! The types of properties, as far as values are converted by them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The declared type of a property.
///
/// Names are resolved as PowerShell does: accelerators and .NET names without regard to case, classes and enumerations of
/// the same file and of modules that are named by `using module`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Type {
    /// `object`, and a property without a type.
    Object,
    /// `string`.
    String,
    /// `char`.
    Char,
    /// `bool`.
    Boolean,
    /// `switch`.
    Switch,
    /// An integer, by its width in bits.
    Integer {
        /// 8, 16, 32 or 64.
        bits: u8,
        /// Whether it can be negative.
        signed: bool,
    },
    /// `bigint`.
    BigInteger,
    /// `float`.
    Single,
    /// `double`.
    Double,
    /// `decimal`.
    Decimal,
    /// `datetime`.
    DateTime,
    /// `DateTimeOffset`.
    DateTimeOffset,
    /// `timespan`.
    TimeSpan,
    /// `guid`.
    Guid,
    /// `uri`.
    Uri,
    /// `version`.
    Version,
    /// `hashtable`, `IDictionary`; of a script resource, `MSFT_KeyValuePair[]`.
    Hashtable,
    /// `OrderedDictionary`.
    OrderedDictionary,
    /// `psobject`, `pscustomobject`.
    PsObject,
    /// `pscredential`; of a script resource, `MSFT_Credential`.
    Credential,
    /// `securestring`.
    SecureString,
    /// `scriptblock`.
    ScriptBlock,
    /// `ciminstance` of a class that the schema names; of a script resource, an embedded instance.
    CimInstance(Arc<Class>),
    /// An enumeration.
    Enumeration(Arc<Enumeration>),
    /// A class that the module declares.
    Class(Arc<Class>),
    /// `T[]`.
    Array(Box<Type>),
    /// `Nullable[T]`.
    Nullable(Box<Type>),
    /// Any other type of .NET, by the name as written.
    Other(String),
}

/// An enumeration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Enumeration {
    /// Its name.
    pub name: String,
    /// Whether values can be combined.
    pub flags: bool,
    /// The names of its members and their values, in the order written.
    pub members: Vec<(String, i128)>,
}

/// How many classes may lie within each other. What lies deeper has no properties: it would be read, written and dropped by
/// recursion. Modules in the field have less than five.
pub(crate) const DEEPEST_CLASS: usize = 16;

/// A class whose instances are values of properties.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Its properties, those of base classes first. Empty for a class within itself or too deep within others.
    pub properties: Vec<crate::resource::Property>,
}
