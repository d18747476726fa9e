//! Why a value is refused, and where it is.

use std::fmt;

use stead_core::diag::Code;
use stead_core::diag::codes::powershell::call as codes;
use stead_core::value::pointer;

use super::Json;

/// Why a value was not accepted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{place}' {message}")]
pub struct ValueRefusal {
    /// The kind of finding.
    pub code: Code,
    /// The path of the value, as in `properties.Sizes[2]`.
    pub place: String,
    /// The place as a JSON pointer into the properties: `/Sizes/2`.
    pub pointer: String,
    /// Why, for those who tell refusals apart.
    pub mismatch: Mismatch,
    /// The form that is expected. No value is quoted: it may be a secret.
    pub message: String,
}

/// The ways in which a value does not fit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Mismatch {
    /// JSON of another kind.
    Kind,
    /// Null where there is none.
    Null,
    /// A number that the type cannot hold, or not with all digits.
    Number,
    /// A text in another form than the one that is read as meant.
    Form,
    /// A name that is not a member of an enumeration.
    Member,
    /// A property that does not exist.
    Unknown,
    /// Two names that differ in case only.
    Duplicate,
    /// A credential without user name or password.
    Credential,
    /// Nothing is converted to this type.
    Unsupported,
    /// A rule of the property.
    Rule,
    /// A property that is part of the identity, or mandatory, is missing.
    Missing,
}

/// The place of a value, built only when something is refused.
#[derive(Clone, Copy)]
pub struct Path<'a> {
    outer: Option<&'a Path<'a>>,
    step: PathStep<'a>,
}

#[derive(Clone, Copy)]
enum PathStep<'a> {
    Name(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    /// Where properties begin.
    pub const PROPERTIES: Path<'static> = Path { outer: None, step: PathStep::Name("properties") };

    /// A member of what is here.
    #[must_use]
    pub fn member(&'a self, name: &'a str) -> Path<'a> {
        Path { outer: Some(self), step: PathStep::Name(name) }
    }

    pub(super) fn item(&'a self, index: usize) -> Path<'a> {
        Path { outer: Some(self), step: PathStep::Index(index) }
    }

    pub(super) fn refuse(&self, mismatch: Mismatch, message: impl Into<String>) -> ValueRefusal {
        let code = match mismatch {
            Mismatch::Unknown => &codes::UNKNOWN_PROPERTY,
            Mismatch::Missing => &codes::MISSING_PROPERTY,
            Mismatch::Rule => &codes::RULE,
            Mismatch::Unsupported => &codes::UNSUPPORTED_TYPE,
            _ => &codes::VALUE,
        };
        ValueRefusal { code, place: self.to_string(), pointer: self.pointer(), mismatch, message: message.into() }
    }

    fn pointer(&self) -> String {
        let Some(outer) = self.outer else { return String::new() };
        match self.step {
            PathStep::Name(name) => pointer::within(&outer.pointer(), name),
            PathStep::Index(index) => pointer::within(&outer.pointer(), &index.to_string()),
        }
    }

    /// A value of another kind than expected.
    pub(super) fn kind(&self, expected: &str, found: &Json) -> ValueRefusal {
        self.refuse(Mismatch::Kind, format!("must be {expected}, not {}", found.described()))
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.outer.map_or(Ok(()), |outer| outer.fmt(f))?;
        match self.step {
            PathStep::Name(name) if self.outer.is_some() => write!(f, ".{name}"),
            PathStep::Name(name) => f.write_str(name),
            PathStep::Index(index) => write!(f, "[{index}]"),
        }
    }
}
