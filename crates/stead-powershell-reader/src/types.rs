//! Properties and their types, as far as values are converted by them.

use std::ops::Not;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::text::LineColumn;

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
        /// True if it can be negative.
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
    /// True if values can be combined.
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
    pub properties: Vec<Property>,
}

/// A property of a resource or of a class that is the value of one.
///
/// An index holds thousands: what most of them do not have is not written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Property {
    /// Its name.
    pub name: String,
    /// The type as written; `None` for a property without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<String>,
    /// The type.
    pub ty: Type,
    /// True if it is part of the identity of an instance.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub key: bool,
    /// True if it must be stated. A key must be as well, without this.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub mandatory: bool,
    /// True if it can only be read.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub read_only: bool,
    /// The other restrictions on its values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// The description by its author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The text of its default, as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// The class that declares it, where that is a base class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared_in: Option<String>,
    /// Where it is declared.
    pub place: LineColumn,
}

impl Property {
    /// A property of which nothing but name and type is stated, at the start of a file.
    pub fn new(name: &str, ty: Type) -> Self {
        Self {
            name: name.to_owned(),
            written: None,
            ty,
            key: false,
            mandatory: false,
            read_only: false,
            rules: Vec::new(),
            description: None,
            default: None,
            declared_in: None,
            place: LineColumn::START,
        }
    }
}

/// A restriction on the values of a property.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Rule {
    /// One of these, whatever its case: `ValidateSet`, `Values` of a schema.
    OneOf(Vec<String>),
    /// The values that `ValueMap` of a schema maps them to, in the order of [`Rule::OneOf`].
    MappedTo(Vec<String>),
    /// Within these bounds: `ValidateRange`. Bounds are texts of numbers.
    Range(String, String),
    /// Of such a length: `ValidateLength`.
    Length(u64, u64),
    /// So many elements: `ValidateCount`.
    Count(u64, u64),
    /// A pattern of .NET: `ValidatePattern`.
    Pattern(String),
    /// `ValidateNotNull`.
    NotNull,
    /// `ValidateNotNullOrEmpty`.
    NotEmpty,
}

impl Eq for Rule {}
