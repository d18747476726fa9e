//! The input that is generated from: resources and their schemas, and the options of the module.

use std::collections::BTreeSet;

use semver::Version;
use serde_json::{Map, Value as Json};

use crate::data_type::LetterCase;
use crate::translate::{PlainSecrets, Timestamps};
use crate::version::ModuleVersion;

/// A resource for which a type is written.
#[derive(Clone, Debug)]
pub struct ResourceToGenerate {
    /// The name of its type, such as `Stead/File`.
    pub type_name: String,
    /// Its version.
    pub version: Version,
    /// The JSON Schema of its properties.
    pub schema: Json,
    /// The description of what it manages. Without one, the description of the schema.
    pub description: Option<String>,
    /// The properties that together identify an instance. Empty where that is not known: instances then have a name that says
    /// nothing to the engine.
    pub keys: Vec<String>,
    /// The rule by which texts of its enums are the same in upper and lower case.
    pub case: LetterCase,
    /// Where values are secret although the schema does not say so: `/credential/password`, `*` for every element.
    pub secrets: BTreeSet<String>,
    /// The way its instances are listed, if they can be.
    pub listing: ListingWay,
    /// Instances for the documentation. Without one, an example is made up from the schema.
    pub examples: Vec<Example>,
}

impl ResourceToGenerate {
    /// A resource of which nothing is known but its schema.
    pub fn new(type_name: impl Into<String>, version: Version, schema: Json) -> Self {
        Self {
            type_name: type_name.into(),
            version,
            schema,
            description: None,
            keys: Vec::new(),
            case: LetterCase::default(),
            secrets: BTreeSet::new(),
            listing: ListingWay::default(),
            examples: Vec::new(),
        }
    }
}

/// The way instances of a resource are listed, if they can be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListingWay {
    /// `puppet resource` and purging need the title of an instance.
    #[default]
    Unsupported,
    /// `puppet resource TYPE` lists all of them.
    Supported,
}

/// An instance for the documentation.
#[derive(Clone, Debug)]
pub struct Example {
    /// The title of the instance.
    pub title: String,
    /// Its properties, by their names in the schema.
    pub properties: Map<String, Json>,
}

/// The options of a module.
#[derive(Clone, Debug)]
pub struct ModuleOptions {
    /// Its name without the author: lower case letters, digits and `_`.
    pub name: String,
    /// The account that publishes it.
    pub author: String,
    /// Its version.
    pub version: ModuleVersion,
    /// One line on what it is for. Without one, the types of its resources.
    pub summary: Option<String>,
    /// Where its source is.
    pub source: Option<String>,
    /// Where it is described.
    pub project_page: Option<String>,
    /// Where its issues are.
    pub issues_url: Option<String>,
    /// The tags beside `stead`.
    pub tags: Vec<String>,
    /// The text of its change log. Without one, a line for this version.
    pub changelog: Option<String>,
    /// The version of the engine that described the resources.
    pub engine: Version,
    /// The version of the support module that its providers are written for.
    pub support: Version,
    /// The prefix of all names of types, such as `stead_`.
    pub prefix: String,
    /// How attributes are named.
    pub dialect: Dialect,
    /// The form of points in time in manifests.
    pub timestamps: Timestamps,
    /// The rule by which secrets can be given as plain strings.
    pub plain_secrets: PlainSecrets,
}

impl ModuleOptions {
    /// A module by stead with types of Puppet's kind.
    pub fn new(name: impl Into<String>, version: ModuleVersion, engine: Version, support: Version) -> Self {
        Self {
            name: name.into(),
            author: "stead".to_owned(),
            version,
            summary: None,
            source: None,
            project_page: None,
            issues_url: None,
            tags: Vec::new(),
            changelog: None,
            engine,
            support,
            prefix: "stead_".to_owned(),
            dialect: Dialect::default(),
            timestamps: Timestamps::default(),
            plain_secrets: PlainSecrets::default(),
        }
    }

    /// The module for manifests that were written for modules of Puppet.Dsc.
    #[must_use]
    pub fn dsc_compatible(self) -> Self {
        Self { prefix: "dsc_".to_owned(), dialect: Dialect::DscCompatible, timestamps: Timestamps::Timestamp, ..self }
    }
}

/// How the attributes of types are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// As types of Puppet are: `content_base64`, `ensure`.
    #[default]
    Native,
    /// As in modules of Puppet.Dsc, so that their manifests are taken unchanged: `dsc_contentbase64`, `dsc_ensure`.
    DscCompatible,
}
