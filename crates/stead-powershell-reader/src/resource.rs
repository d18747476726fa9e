//! A resource as its module declares it.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::text::LineColumn;
use crate::types::{Property, Rule, Type};

/// The kind of source that a resource is read from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DefinitionKind {
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
    /// The kind of source that it is read from.
    pub kind: DefinitionKind,
    /// The version that a script resource states for itself.
    pub version: Option<String>,
    /// The file that declares it.
    pub file: Arc<PathBuf>,
    /// The file that implements it: the script itself, or the `.psm1`, `.psd1`, `.dll` or `.cdxml` beside the schema.
    pub implementation: Arc<PathBuf>,
    /// Where it is declared.
    pub place: LineColumn,
    /// The description by its author.
    pub description: Option<String>,
    /// Its properties, those of base classes first.
    pub properties: Vec<Property>,
    /// The methods that can be called besides get, test and set.
    pub methods: Methods,
}

impl Resource {
    /// A script resource that is a part of this program, without a file of its own.
    pub fn built_in(name: &str, properties: Vec<Property>) -> Self {
        let file = Arc::new(PathBuf::new());
        Self {
            name: name.to_owned(),
            class_name: None,
            kind: DefinitionKind::Script,
            version: None,
            file: Arc::clone(&file),
            implementation: file,
            place: LineColumn::START,
            description: None,
            properties,
            methods: Methods::default(),
        }
    }

    /// Returns whether its property `Ensure` says whether an instance exists: it can be `Absent`.
    pub fn ensures(&self) -> bool {
        let is_absent = |word: &String| word.eq_ignore_ascii_case("Absent");
        let mut ensures = self.properties.iter().filter(|property| property.name.eq_ignore_ascii_case("Ensure"));
        ensures.any(|property| match &property.ty {
            Type::Enumeration(enumeration) => enumeration.members.iter().any(|(name, _)| is_absent(name)),
            _ => property.rules.iter().any(|rule| matches!(rule, Rule::OneOf(words) if words.iter().any(is_absent))),
        })
    }
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
