//! The modules that `using module` names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::find::{module_in, module_path};
use super::read::{has_extension, locate};
use super::{Modules, Version, manifest};
use crate::class::{self, File};
use crate::manifest::{Context, Value, same};
use crate::text::Text;

/// The modules that come with PowerShell, besides those whose names begin with `Microsoft.`.
const PARTS: [&str; 7] = [
    "CimCmdlets",
    "PackageManagement",
    "PowerShellGet",
    "PSDesiredStateConfiguration",
    "PSDiagnostics",
    "PSReadLine",
    "ThreadJob",
];

impl class::Modules for Modules<'_> {
    fn using(&self, from: &Path, name: &str) -> Option<Arc<File>> {
        let wanted = WantedModule::parse(name);
        let path = wanted.name.contains(['/', '\\']) || wanted.name.to_ascii_lowercase().ends_with(".psm1");
        let file = if path { locate(self.files, from.parent()?, &wanted.name) } else { self.installed(&wanted) };
        let file = self.script(file?)?;
        let (bytes, _) = self.files.read(&file).ok()?;
        Some(Arc::new(File::read(Arc::new(file), &bytes)))
    }
}

impl Modules<'_> {
    /// The file of the first module of that name, the highest version that is wanted.
    fn installed(&self, wanted: &WantedModule) -> Option<PathBuf> {
        let folders = self.directories.iter().map(|directory| directory.join(&wanted.name));
        let mut found = folders.flat_map(|folder| module_in(&folder, self.files));
        let version = |file: &Path| self.manifest(file).and_then(|manifest| manifest.version);
        found.find(|found| wanted.fits(version(&found.file).as_ref())).map(|found| found.file)
    }

    /// Returns in words a module that is required, by its name or a table with versions, if it is nowhere where PowerShell looks.
    ///
    /// Caveats: what comes with PowerShell is taken to be there, and so is what is named by a path.
    pub(super) fn missing(&self, required: &Value) -> Option<String> {
        let wanted = WantedModule::of(required);
        let is_part = |name: &str| same(name, &wanted.name);
        if wanted.name.contains(['/', '\\'])
            || wanted.name.starts_with("Microsoft.")
            || PARTS.iter().any(|name| is_part(name))
        {
            return None;
        }
        // What is set comes before what PowerShell adds to it.
        let unset = |name: &str| (name != "PSModulePath").then(|| (self.environment)(name)).flatten();
        let added = module_path(&unset, None);
        let everywhere: Vec<PathBuf> = self.directories.iter().chain(&added).cloned().collect();
        let modules = Modules { files: self.files, environment: self.environment, directories: &everywhere };
        modules.installed(&wanted).is_none().then(|| wanted.in_words())
    }

    /// The script of a module: itself, or what its manifest names as the root.
    fn script(&self, file: PathBuf) -> Option<PathBuf> {
        if !has_extension(&file, "psd1") {
            return Some(file);
        }
        let root = self.manifest(&file)?.root?;
        locate(self.files, file.parent()?, &root).filter(|root| has_extension(root, "psm1"))
    }

    fn manifest(&self, file: &Path) -> Option<super::Manifest> {
        let text = Text::decode(&self.files.read(file).ok()?.0);
        manifest::read(text.as_str(), file.parent()?, self.environment).ok()
    }
}

/// A module that a script names, with the versions that it wants.
struct WantedModule {
    name: String,
    least: Option<Version>,
    most: Option<Version>,
    exact: Option<Version>,
}

impl WantedModule {
    /// A name, or the text of a table with the specification of a module.
    fn parse(text: &str) -> Self {
        let context = Context { folder: "", environment: &|_| None, variables: None };
        let table = crate::manifest::read(text, &context).unwrap_or(Value::Null);
        if table.get("ModuleName").is_some() { Self::of(&table) } else { Self::of(&Value::Text(text.to_owned())) }
    }

    fn of(value: &Value) -> Self {
        let version = |key: &str| value.get(key).and_then(|value| Version::parse(&value.to_text()));
        Self {
            name: value.get("ModuleName").map_or_else(|| value.to_text(), Value::to_text),
            least: version("ModuleVersion"),
            most: version("MaximumVersion"),
            exact: version("RequiredVersion"),
        }
    }

    fn in_words(&self) -> String {
        let versions = [("", &self.exact), ("at least ", &self.least), ("at most ", &self.most)];
        let stated =
            versions.into_iter().filter_map(|(how, version)| Some(format!(" in version {how}{}", version.as_ref()?)));
        format!("'{}'{}", self.name, stated.collect::<Vec<_>>().join(" and"))
    }

    fn fits(&self, version: Option<&Version>) -> bool {
        let none = Version::none();
        let version = version.unwrap_or(&none);
        self.least.as_ref().is_none_or(|least| version >= least)
            && self.most.as_ref().is_none_or(|most| version <= most)
            && self.exact.as_ref().is_none_or(|exact| version == exact)
    }
}
