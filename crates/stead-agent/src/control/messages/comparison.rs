//! Two deliveries, and in what they differ.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// Two deliveries, and in what they differ.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// The first.
    pub from: Compared,
    /// The second.
    pub to: Compared,
    /// The parameters that differ.
    pub parameters: Vec<ChangedParameter>,
    /// The files that differ.
    pub files: Vec<ChangedFile>,
}

/// One of two deliveries.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Compared {
    /// Its number.
    pub generation: u64,
    /// The name that messages call it by.
    pub name: String,
    /// The name of its bundle.
    pub bundle: Option<String>,
    /// The text of the document.
    pub text: String,
}

/// The change of something between two deliveries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Changed {
    /// The second one alone has it.
    Added,
    /// The first one alone has it.
    Removed,
    /// They have it with other content.
    Changed,
    /// They have it alike.
    Unchanged,
}

/// A parameter that differs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChangedParameter {
    /// Its name.
    pub name: String,
    /// True if its values are not shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secret: bool,
    /// The change of it.
    pub change: Changed,
    /// Its values, unless they are secret.
    #[serde(flatten)]
    pub values: Option<ValuePair>,
}

/// The values of a parameter in two deliveries.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ValuePair {
    /// In the first one.
    pub from: Option<Json>,
    /// In the second one.
    pub to: Option<Json>,
}

/// A file that differs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChangedFile {
    /// Its path in the bundle.
    pub path: String,
    /// The change of it.
    pub change: Changed,
    /// As the first delivery has it.
    pub from: Option<ComparedFile>,
    /// As the second one has it.
    pub to: Option<ComparedFile>,
}

/// A file or a folder of a delivery.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ComparedFile {
    /// Its mode, in octal digits.
    pub mode: String,
    /// Its content, if it is a file.
    #[serde(flatten)]
    pub content: Option<ComparedContent>,
}

/// The content of a file of a delivery.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ComparedContent {
    /// The digest, in hexadecimal digits.
    pub sha256: String,
    /// The text of a small one that everybody can read.
    pub text: Option<String>,
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
        })
    }
}
