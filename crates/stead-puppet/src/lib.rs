//! Writes modules of Puppet for resources: schemas in, files out.
//!
//! [`generate`] decides what a module contains and writes nothing to the disk. The same input gives the same bytes; nothing of
//! the text of others is ever code in a file. What the types do when Puppet runs is in the support module `steadlib`.

use std::collections::BTreeMap;

mod data_type;
mod documents;
mod example;
mod generate;
mod input;
mod members;
mod name;
mod pattern;
mod reference;
mod resource_type;
mod ruby;
mod stale;
mod text;
mod translate;
mod type_file;
mod version;

pub use data_type::LetterCase;
pub use generate::{Error, Module, Warning, generate};
pub use input::{Dialect, Example, ListingWay, ModuleOptions, ResourceToGenerate};
pub use stale::{StaleFile, Staleness, TYPE_FOLDERS, stale_files};
pub use translate::{PlainSecrets, Timestamps};
pub use version::ModuleVersion;

/// The files of a module: their paths, with `/`, and their content.
pub type GeneratedFiles = BTreeMap<String, Vec<u8>>;
