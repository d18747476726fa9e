//! A resource as its module declares it.

use std::ops::Not;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::text::Place;
use crate::types::Type;

/// What a resource is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// A class with the attribute `DscResource`.
    Class,
    /// A MOF schema and a module with `Get-`, `Set-` and `Test-TargetResource`.
    Script,
    /// A `Configuration` whose parameters are the properties.
    Composite,
}

/// A resource.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Resource {
    /// Its name: of the class, or the friendly name of a script resource.
    pub name: String,
    /// The class of a script resource, where it differs from the name; see `FriendlyName`.
    pub class_name: Option<String>,
    /// What it is made of.
    pub kind: Kind,
    /// The version that a script resource states for itself.
    pub version: Option<String>,
    /// The file that declares it.
    pub file: Arc<PathBuf>,
    /// The file that implements it: the script itself, or the `.psm1`, `.psd1`, `.dll` or `.cdxml` beside the schema.
    pub implementation: Arc<PathBuf>,
    /// Where it is declared.
    pub place: Place,
    /// What it says about itself.
    pub description: Option<String>,
    /// Its properties, those of base classes first.
    pub properties: Vec<Property>,
    /// What can be called besides get, test and set.
    pub methods: Methods,
}

/// Methods that a class may have besides get, test and set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each says whether a method is there")]
pub struct Methods {
    /// `Delete()`.
    pub delete: bool,
    /// `static Export()`, without a filter or with one.
    pub export: bool,
    /// `WhatIf()`.
    pub what_if: bool,
    /// `SetHandlesExist()`: its set removes an instance of which `_exist` is false.
    pub set_handles_exist: bool,
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
    /// Whether it is part of the identity of an instance.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub key: bool,
    /// Whether it must be stated. A key is as well, without this.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub mandatory: bool,
    /// Whether it can only be read.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub read_only: bool,
    /// What else is asked of its values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// What it says about itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The text of its default, as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// The class that declares it, where that is a base class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared_in: Option<String>,
    /// Where it is declared.
    pub place: Place,
}

/// What is asked of the values of a property.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Rule {
    /// One of these, whatever its case: `ValidateSet`, `Values` of a schema.
    OneOf(Vec<String>),
    /// What `ValueMap` of a schema maps the values to, in the order of [`Rule::OneOf`].
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
