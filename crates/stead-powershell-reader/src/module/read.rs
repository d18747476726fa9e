//! The parts of a module.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stead_core::diag::codes::powershell::module as codes;
use stead_core::diag::{Code, Severity};

use super::find::holds;
use super::{Files, FoundModule, Manifest, Module, Modules, Role, Script, Version, manifest};
use crate::class::{self, File};
use crate::composite;
use crate::finding::ModuleFinding;
use crate::manifest::same;
use crate::mof;
use crate::resource::Resource;
use crate::text::{LineColumn, Text};

/// Reads a module; `None` when PowerShell does not see it, because its folder is named by another version.
pub(super) fn read(modules: &Modules<'_>, found: &FoundModule) -> Option<Module> {
    let file = Arc::new(found.file.clone());
    let mut reader = Reader {
        modules,
        folder: found.file.parent().unwrap_or(Path::new("/")).to_owned(),
        scripts: Vec::new(),
        resources: Vec::new(),
        findings: Vec::new(),
        has_type_twice: false,
    };
    let manifest = if has_extension(&file, "psd1") { reader.manifest(&file) } else { None };
    let manifest = manifest.filter(|manifest| reader.has_specified(manifest, &file));
    let version = manifest.as_ref().and_then(|manifest| manifest.version.clone()).unwrap_or_else(Version::none);
    if found.folder_version.as_ref().is_some_and(|folder| *folder != version) {
        return None;
    }
    match &manifest {
        Some(manifest) => {
            reader.required(manifest, &file);
            reader.members(manifest, &file, 0);
        }
        None if has_extension(&file, "psm1") => reader.script(&found.file, Role::Root),
        None => {}
    }
    if manifest.is_some() {
        reader.resource_folders();
    }
    // PowerShell gives up the whole module while it looks for what the manifest exports.
    let manifest = manifest.filter(|_| !reader.has_type_twice);
    let mut module = Module {
        name: found.name.clone(),
        version: if manifest.is_some() { version } else { Version::none() },
        file,
        manifest,
        scripts: reader.scripts,
        resources: reader.resources,
        findings: reader.findings,
    };
    check_exports(&mut module);
    module.findings.sort_by(|left, right| (&left.file, left.place).cmp(&(&right.file, right.place)));
    Some(module)
}

/// How deep manifests nest.
const DEEPEST: usize = 8;

pub(super) fn has_extension(file: &Path, extension: &str) -> bool {
    file.extension().is_some_and(|own| own.eq_ignore_ascii_case(extension))
}

const START: LineColumn = LineColumn { line: 1, column: 1 };

struct Reader<'a> {
    modules: &'a Modules<'a>,
    folder: PathBuf,
    scripts: Vec<Script>,
    resources: Vec<Arc<Resource>>,
    findings: Vec<ModuleFinding>,
    /// True if the root script defines two types of one name.
    has_type_twice: bool,
}

impl Reader<'_> {
    fn report(&mut self, code: Code, severity: Severity, file: &Arc<PathBuf>, place: LineColumn, message: String) {
        self.findings.push(ModuleFinding { code, severity, message, help: None, file: file.clone(), place });
    }

    fn bytes(&mut self, file: &Arc<PathBuf>) -> Option<Vec<u8>> {
        match self.modules.files.read(file) {
            Ok((bytes, _)) => Some(bytes),
            Err(error) => {
                let source = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
                self.report(&codes::UNREADABLE, Severity::Error, file, START, format!("{error}{source}"));
                None
            }
        }
    }

    fn manifest(&mut self, file: &Arc<PathBuf>) -> Option<Manifest> {
        let text = Text::decode(&self.bytes(file)?);
        let folder = file.parent().unwrap_or(Path::new("/"));
        match manifest::read(text.as_str(), folder, self.modules.environment) {
            Ok(manifest) => Some(manifest),
            Err(fault) => {
                self.report(&codes::MANIFEST, Severity::Error, file, text.place(fault.offset), fault.message);
                None
            }
        }
    }

    /// Returns whether the nested modules that are given with a version exist.
    fn has_specified(&mut self, manifest: &Manifest, file: &Arc<PathBuf>) -> bool {
        let missing = manifest.specified.iter().find(|name| locate(self.modules.files, &self.folder, name).is_none());
        if let Some(name) = missing {
            let message = format!("the module lacks the nested module '{name}', which it names with a version");
            self.report(&codes::MANIFEST, Severity::Error, file, START, message);
        }
        missing.is_none()
    }

    /// The scripts that a manifest names.
    fn members(&mut self, manifest: &Manifest, from: &Arc<PathBuf>, depth: usize) {
        for script in &manifest.scripts {
            self.member(from, script, &["ScriptsToProcess"], Role::Process, depth);
        }
        let role = if depth == 0 { Role::Root } else { Role::Nested };
        if let Some(root) = &manifest.root {
            self.member(from, root, &["RootModule", "ModuleToProcess"], role, depth);
        }
        for nested in &manifest.nested {
            self.member(from, nested, &["NestedModules"], Role::Nested, depth);
        }
    }

    /// Reports the modules that the module requires and that are nowhere.
    fn required(&mut self, manifest: &Manifest, file: &Arc<PathBuf>) {
        if manifest.required.is_empty() {
            return;
        }
        let Ok((bytes, _)) = self.modules.files.read(file) else { return };
        let text = Text::decode(&bytes);
        for wanted in manifest::required(text.as_str(), &self.folder, self.modules.environment) {
            if let Some(missing) = self.modules.missing(&wanted) {
                let place = text.place(manifest::member_offset(text.as_str(), &["RequiredModules"]));
                let message = format!("the module requires the module {missing}, which is not installed");
                self.report(&codes::REQUIRED, Severity::Warning, file, place, message);
            }
        }
    }

    fn member(&mut self, from: &Arc<PathBuf>, name: &str, keys: &[&str], role: Role, depth: usize) {
        let folder = &self.folder.clone();
        let Some(file) = locate(self.modules.files, folder, name) else {
            let text = self.modules.files.read(from).map(|(bytes, _)| Text::decode(&bytes));
            let place = text.map_or(START, |text| text.place(manifest::member_offset(text.as_str(), keys)));
            let message = format!("the module has no file '{name}'");
            return self.report(&codes::MODULE_FILE, Severity::Warning, from, place, message);
        };
        if !has_extension(&file, "psd1") {
            return self.script(&file, role);
        }
        let file = Arc::new(file);
        if depth < DEEPEST
            && let Some(manifest) = self.manifest(&file)
        {
            let inner = file.parent().unwrap_or(folder).to_owned();
            let outer = std::mem::replace(&mut self.folder, inner);
            self.members(&manifest, &file, depth + 1);
            self.folder = outer;
        }
    }

    fn script(&mut self, file: &Path, role: Role) {
        let text = has_extension(file, "psm1") || has_extension(file, "ps1");
        if !text || self.scripts.iter().any(|script| *script.file == file) {
            return;
        }
        let file = Arc::new(file.to_owned());
        self.scripts.push(Script { file: file.clone(), role });
        if let Some(bytes) = self.bytes(&file) {
            let file = File::read(file, &bytes);
            let mut names = BTreeSet::new();
            let is_twice = file.script.types.iter().any(|ty| !names.insert(ty.name.to_lowercase()));
            self.has_type_twice |= role == Role::Root && is_twice;
            let declared = class::declared(&file, self.modules);
            self.resources.extend(declared.resources.into_iter().map(Arc::new));
            self.findings.extend(declared.findings);
        }
    }

    /// The resources that have a folder of their own, `DscResources/NAME`.
    fn resource_folders(&mut self) {
        let names = self.modules.files.list(&self.folder).unwrap_or_default().0;
        let Some((name, _)) = names.iter().find(|(name, entry)| entry.may_be_directory() && same(name, "DscResources"))
        else {
            return;
        };
        let folder = self.folder.join(name);
        for (name, entry) in &*self.modules.files.list(&folder).unwrap_or_default().0 {
            if entry.may_be_directory() {
                self.resource_folder(&folder.join(name), name);
            }
        }
    }

    fn resource_folder(&mut self, folder: &Path, name: &str) {
        let names = self.modules.files.list(folder).unwrap_or_default().0;
        let ending = |suffix: &str| -> Vec<&String> {
            let ends = |name: &str| {
                name.len() > suffix.len() && name.get(name.len() - suffix.len()..).is_some_and(|end| same(end, suffix))
            };
            names.iter().filter(|(name, entry)| entry.may_be_file() && ends(name)).map(|(name, _)| name).collect()
        };
        let (schemas, composites) = (ending(".schema.mof"), ending(".schema.psm1"));
        for schema in &schemas {
            self.schema(folder, schema, &names);
        }
        for composite in &composites {
            let file = Arc::new(folder.join(composite));
            if let Some(bytes) = self.bytes(&file) {
                let (resources, findings) = composite::read(&File::read(file, &bytes), self.modules);
                self.resources.extend(resources.into_iter().map(Arc::new));
                self.findings.extend(findings);
            }
        }
        let script = folder.join(format!("{name}.psm1"));
        let loose =
            names.contains_key(&format!("{name}.psm1")) && !self.scripts.iter().any(|known| *known.file == script);
        if schemas.is_empty() && composites.is_empty() && loose {
            let message = format!("resource '{name}' has no schema '{name}.schema.mof'");
            self.report(&codes::RESOURCE_FILE, Severity::Error, &Arc::new(folder.to_owned()), START, message);
        }
    }

    fn schema(&mut self, folder: &Path, name: &str, names: &super::Names) {
        let file = Arc::new(folder.join(name));
        let Some(bytes) = self.bytes(&file) else { return };
        let schema = mof::read(&bytes, &file);
        self.findings.extend(schema.findings);
        let stem = name.get(..name.len() - ".schema.mof".len()).unwrap_or_default();
        let implements = |extension: &&str| names.keys().find(|known| same(known, &format!("{stem}.{extension}")));
        let implementation = ["psd1", "psm1", "dll", "cdxml"].iter().find_map(implements);
        for mut resource in schema.resources {
            if let Some(implementation) = implementation {
                resource.implementation = Arc::new(folder.join(implementation));
                // What cannot be read, or is not trusted, is not run either.
                if self.bytes(&resource.implementation.clone()).is_none() {
                    continue;
                }
            } else {
                let message = format!("resource '{}' has no implementation '{stem}.psm1'", resource.name);
                self.report(&codes::RESOURCE_FILE, Severity::Error, &Arc::new(folder.to_owned()), START, message);
            }
            self.resources.push(Arc::new(resource));
        }
    }
}

/// The file that a manifest or a script means: a path with or without extension, or that of the folder of a module.
pub(super) fn locate(files: &dyn Files, folder: &Path, name: &str) -> Option<PathBuf> {
    let name = name.replace('\\', "/");
    let path = folder.join(name.strip_prefix("./").unwrap_or(&name));
    let last = path.file_name()?.to_str()?;
    let within = |folder: &Path, name: &str| holds(files, folder, name).then(|| folder.join(name));
    let parent = path.parent()?;
    within(parent, last).or_else(|| {
        let with = |extension: &&str| format!("{last}.{extension}");
        let beside = ["psd1", "psm1", "cdxml", "dll"].iter().find_map(|extension| within(parent, &with(extension)));
        beside.or_else(|| ["psd1", "psm1"].iter().find_map(|extension| within(&path, &with(extension))))
    })
}

/// Names that are exported and not there.
fn check_exports(module: &mut Module) {
    let Some(super::Exports::Named(names)) = module.manifest.as_ref().map(|manifest| &manifest.exports) else { return };
    let known = |name: &String| module.resources.iter().any(|resource| same(&resource.name, name));
    let missing = names.iter().filter(|name| !known(name));
    let findings: Vec<_> = missing
        .map(|name| ModuleFinding {
            code: &codes::EXPORT,
            severity: Severity::Warning,
            message: format!("'DscResourcesToExport' names '{name}', which the module does not have"),
            help: None,
            file: module.file.clone(),
            place: START,
        })
        .collect();
    module.findings.extend(findings);
}
