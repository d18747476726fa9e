//! Paths in records: text, or a list of bytes where they are not UTF-8.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Form<'p> {
    Text(Cow<'p, str>),
    Bytes(Vec<u8>),
}

impl<'p> From<&'p Path> for Form<'p> {
    fn from(path: &'p Path) -> Self {
        match path.to_str() {
            Some(text) => Self::Text(text.into()),
            None => Self::Bytes(path.as_os_str().as_bytes().to_vec()),
        }
    }
}

impl From<Form<'_>> for PathBuf {
    fn from(form: Form<'_>) -> Self {
        match form {
            Form::Text(text) => Self::from(text.into_owned()),
            Form::Bytes(bytes) => Self::from(OsString::from_vec(bytes)),
        }
    }
}

/// Writes a path.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    Form::from(path).serialize(serializer)
}

/// Reads a path.
///
/// # Errors
/// Those of the deserializer.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    Form::deserialize(deserializer).map(PathBuf::from)
}

/// An optional path.
pub mod option {
    use super::{Deserialize as _, Deserializer, Form, PathBuf, Serialize as _, Serializer};

    /// Serializes it.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
        path.as_deref().map(Form::from).serialize(serializer)
    }

    /// Deserializes it.
    ///
    /// # Errors
    /// Those of the deserializer.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<Form<'_>>::deserialize(deserializer)?.map(PathBuf::from))
    }
}
