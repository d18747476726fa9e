//! Extensions: programs that find resources, read documents of other formats, or open secrets.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::expr::Expression;
use crate::id::TypeName;

/// An extension as the engine knows it.
#[derive(Clone, Debug)]
pub struct Extension {
    /// Its type.
    pub type_name: TypeName,
    /// Its version.
    pub version: semver::Version,
    /// The description by its author.
    pub description: Option<String>,
    /// The replacement, when it is deprecated.
    pub deprecation: Option<String>,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// `discover`: prints manifests, or where they are.
    pub discover: Option<DiscoverMethod>,
    /// `import`: turns a file of another format into a document.
    pub import: Option<ImportMethod>,
    /// `secret`: prints a secret.
    pub secret: Option<SecretMethod>,
    /// `exitCodes`
    pub exit_codes: BTreeMap<i32, String>,
    /// The manifest file; programs run in its directory.
    pub manifest_path: PathBuf,
    /// The manifest as written, for listings.
    pub manifest: serde_json::Value,
}

/// How an extension finds resources: one JSON object a line, `manifestPath` or `manifestContent`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiscoverMethod {
    /// The program.
    pub executable: String,
    /// The arguments that it is called with.
    pub arguments: Vec<DiscoverArgument>,
}

/// One argument of [`DiscoverMethod`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DiscoverArgument {
    /// The text itself.
    Literal(String),
    /// Two arguments: the name, then the endings of manifest files that are looked for, with commas between.
    Endings {
        /// The name.
        name: String,
        /// True if the endings are put in double quotes.
        quoted: bool,
    },
}

/// How an extension turns a file into a document.
#[derive(Clone, PartialEq, Debug)]
pub struct ImportMethod {
    /// The endings of files that it reads, without a dot.
    pub file_extensions: Vec<String>,
    /// The program.
    pub executable: String,
    /// The arguments that it is called with.
    pub arguments: Vec<ImportArgument>,
    /// The document, computed from `stdout()`; what is printed is the document when this is absent.
    pub output: Option<Expression>,
}

/// One argument of [`ImportMethod`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ImportArgument {
    /// The text itself.
    Literal(String),
    /// The name if it is not empty, then the path of the file.
    File(String),
}

/// How an extension opens a secret: one line of plaintext.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SecretMethod {
    /// The program.
    pub executable: String,
    /// The arguments that it is called with.
    pub arguments: Vec<SecretArgument>,
}

/// One argument of [`SecretMethod`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SecretArgument {
    /// The text itself.
    Literal(String),
    /// Two arguments: the name of the argument, then the name of the secret.
    Name(String),
    /// Two arguments: the name of the argument, then the name of the vault. Left out when none was given.
    Vault(String),
}
