//! The types that documents declare of values.

/// The type of a parameter, an output or an argument of a user function.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DataType {
    /// `string`
    String,
    /// `secureString`
    SecureString,
    /// `int`
    Int,
    /// `bool`
    Bool,
    /// `object`
    Object,
    /// `secureObject`
    SecureObject,
    /// `array`
    Array,
}

impl DataType {
    /// Every type with the word that documents use.
    pub const ALL: [(&'static str, Self); 7] = [
        ("string", Self::String),
        ("secureString", Self::SecureString),
        ("int", Self::Int),
        ("bool", Self::Bool),
        ("object", Self::Object),
        ("secureObject", Self::SecureObject),
        ("array", Self::Array),
    ];

    /// The word that documents use.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(_, each)| *each == self).map_or("", |(word, _)| word)
    }

    /// Returns whether values of it are secrets.
    pub fn is_secure(self) -> bool {
        matches!(self, Self::SecureString | Self::SecureObject)
    }
}
