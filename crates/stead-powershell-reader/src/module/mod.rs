//! Modules: where they lie, what their manifests say, and the resources in them.

mod files;
mod find;
mod manifest;
mod read;
mod using;
mod version;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use stead_system::fs::OpenError;

pub use files::{Disk, Entry, Files, Names, Stamped};
pub use find::{FoundModule, find, module_path};
pub use manifest::{Exports, Manifest, StatedUndo};
pub use version::Version;

use crate::finding::ModuleFinding;
use crate::manifest::same;
use crate::resource::{DefinitionKind, Resource};

/// The variables of the environment.
pub type Environment<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// A module and what is in it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Module {
    /// Its name.
    pub name: String,
    /// Its version; 0.0 without a valid manifest.
    pub version: Version,
    /// Its manifest, or its script where it has none.
    pub file: Arc<PathBuf>,
    /// The manifest; `None` without a valid one.
    pub manifest: Option<Manifest>,
    /// The scripts that are loaded with it, and why.
    pub scripts: Vec<Script>,
    /// All resources in it, those that are not exported included.
    pub resources: Vec<Arc<Resource>>,
    /// The mistakes, by file and place.
    pub findings: Vec<ModuleFinding>,
}

/// A script of a module.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Script {
    /// The file.
    pub file: Arc<PathBuf>,
    /// Why it is loaded.
    pub role: Role,
}

/// Why a script is loaded with its module.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// `RootModule`, or the module itself.
    Root,
    /// `NestedModules`, of nested manifests as well.
    Nested,
    /// `ScriptsToProcess`.
    Process,
}

impl Module {
    /// Returns whether users can name a resource of it: a class must be exported, a resource with a folder of its own
    /// needs to be only where there is a list.
    pub fn exports(&self, resource: &Resource) -> bool {
        match self.manifest.as_ref().map(|manifest| &manifest.exports) {
            None => false,
            Some(Exports::All) => true,
            Some(Exports::Unstated) => resource.kind != DefinitionKind::Class,
            Some(Exports::Named(names)) => names.iter().any(|name| same(name, &resource.name)),
        }
    }

    /// The folder that it lies in.
    pub fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new("/"))
    }
}

/// Reads the modules below directories.
pub struct Modules<'a> {
    /// The access to directories and files.
    pub files: &'a dyn Files,
    /// The variables of the environment, which manifests may name.
    pub environment: &'a Environment<'a>,
    /// The directories of `PSModulePath`.
    pub directories: &'a [PathBuf],
}

impl Modules<'_> {
    /// All modules below the directories, in the order of these and of paths; of one name the highest version first. Besides them
    /// the directories that cannot be read, or are not trusted.
    ///
    /// Guarantees: nothing of a module is run, and one that is broken hides no other: what is wrong with it is among its
    /// findings. Only a folder whose version is not the one of its manifest is left out, as PowerShell does.
    pub fn read(&self) -> (Vec<Module>, Vec<OpenError>) {
        let (mut modules, mut errors) = (Vec::new(), Vec::new());
        for directory in self.directories {
            let (found, unreadable) = find(directory, self.files);
            modules.extend(found.iter().filter_map(|found| self.module(found)));
            errors.extend(unreadable);
        }
        (modules, errors)
    }

    /// The module that was found there; `None` when PowerShell does not see it, because its folder is named by another version.
    pub fn module(&self, found: &FoundModule) -> Option<Module> {
        read::read(self, found)
    }
}
