//! From manifests to what is usable on this machine: conditions hold, adapters are there, extensions have been asked.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::Value as Json;
use stead_core::expr::{Environment, Expression, FactKey, Stop};
use stead_core::id::TypeName;
use stead_core::manifest::{
    self, AdaptedManifest, Catalog, Declaration, Declared, Extension, Implementation, Manifest, ManifestForm,
    ResourceKind,
};
use stead_core::value::Value;

use super::scan::{Scan, below, scan, single};
use super::{CatalogProblem, Discovered, ProblemReason, Programs, Search, is_reserved};
use stead_system::fs::{OpenError, TrustedFile, User};

/// The declarations in the manifest files of the search, as far as its conditions hold.
pub(super) struct Files {
    resources: Vec<Arc<Manifest>>,
    adapted: Vec<(PathBuf, AdaptedManifest)>,
    pub(super) extensions: BTreeMap<TypeName, Arc<Extension>>,
    pub(super) problems: Vec<CatalogProblem>,
}

impl Files {
    /// Returns whether there is a manifest of that type.
    pub(super) fn declares(&self, type_name: &TypeName) -> bool {
        let adapted = self.adapted.iter().map(|(_, adapted)| &adapted.type_name);
        self.resources.iter().map(|resource| &resource.type_name).chain(adapted).any(|name| name == type_name)
    }

    /// Returns whether extensions may discover more manifests.
    pub(super) fn has_discoverers(&self) -> bool {
        self.extensions.values().any(|extension| extension.discover.is_some())
    }
}

/// Searches the directories. Runs no program.
pub(super) fn files(search: &Search, now: SystemTime, programs: &dyn Programs) -> Files {
    tracing::info!("Discovering 'Extension' using filter: *");
    let directories = search.relative.iter().chain(&search.directories).map(|directory| directory.to_string_lossy());
    tracing::debug!("Using Resource Path: {}", directories.collect::<Vec<_>>().join(":"));
    let mut sorter = Sorter::new(programs);
    sorter.take(scan(search, now));
    let Files { resources, adapted, extensions, problems } = &sorter.files;
    let (found, others) = (resources.len() + adapted.len(), extensions.len());
    tracing::debug!("found {found} resources and {others} extensions, with {} problems", problems.len());
    sorter.files
}

/// Asks the extensions for more, and finds the adapter of each adapted resource. What is known before is added to; what is
/// built in is reserved also where it is not known.
pub(super) fn assemble(
    files: &Files,
    (known, built_in): (&Catalog, &Catalog),
    search: &Search,
    (programs, now): (&dyn Programs, SystemTime),
) -> Discovered {
    tracing::info!("Discovering 'Resource' using filter: *");
    let mut more = Sorter::new(programs);
    let folders = if search.is_alone { Vec::new() } else { programs.module_folders() };
    let mut in_modules = below(&folders, search, now);
    // What those find would need another search.
    in_modules.declared.retain(|(_, each)| !matches!(each.declaration, Declaration::Extension(_)));
    more.take(in_modules);
    for extension in files.extensions.values().filter(|extension| extension.discover.is_some()) {
        discover(extension, search, &mut more);
    }
    let Sorter { files: mut more, .. } = more;
    let mut discovered = Discovered {
        catalog: known.clone(),
        extensions: files.extensions.clone(),
        problems: files.problems.iter().cloned().chain(more.problems).collect(),
    };
    for each in files.resources.iter().cloned().chain(std::mem::take(&mut more.resources)) {
        match reserved(&each.type_name, built_in) {
            Some(reason) => discovered.problems.push(CatalogProblem { path: manifest_path(&each), reason }),
            None => discovered.catalog.add(each),
        }
    }
    for (path, adapted) in files.adapted.iter().cloned().chain(more.adapted) {
        if let Some(reason) = reserved(&adapted.type_name, built_in) {
            discovered.problems.push(CatalogProblem { path, reason });
            continue;
        }
        match with_adapter(adapted, &discovered.catalog, search.user) {
            Ok(manifest) => discovered.catalog.add(Arc::new(manifest)),
            Err(reason) => discovered.problems.push(CatalogProblem { path, reason }),
        }
    }
    discovered
}

/// Returns the reason against a manifest of a type that is reserved for this program.
fn reserved(type_name: &TypeName, built_in: &Catalog) -> Option<ProblemReason> {
    let is_taken = is_reserved(type_name) && !built_in.versions(type_name).is_empty();
    is_taken.then(|| ProblemReason::Reserved(type_name.clone()))
}

fn manifest_path(manifest: &Manifest) -> PathBuf {
    match &manifest.implementation {
        Implementation::Command(command) => command.manifest_path.clone(),
        _ => PathBuf::new(),
    }
}

fn with_adapter(adapted: AdaptedManifest, catalog: &Catalog, user: User) -> Result<Manifest, ProblemReason> {
    let resource = &adapted.implementation;
    if let Some(path) = resource.path.as_ref().filter(|path| !path.exists()) {
        return Err(ProblemReason::Implementation(adapted.type_name, path.clone()));
    }
    // The adapter runs it.
    if let Some(Err(OpenError::Untrusted(untrusted))) =
        resource.path.as_ref().map(|path| TrustedFile::open(path, user.trust()))
    {
        return Err(ProblemReason::Untrusted(untrusted));
    }
    match catalog.find(&resource.require_adapter, None) {
        Ok(found) if found.kind == ResourceKind::Adapter => Ok(adapted.into_manifest(found.clone())),
        _ => Err(ProblemReason::Adapter(adapted.type_name, adapted.implementation.require_adapter)),
    }
}

/// Adds what an extension finds.
fn discover(extension: &Extension, search: &Search, sorter: &mut Sorter<'_>) {
    let problem = |message: String| {
        CatalogProblem::new(&extension.manifest_path, ProblemReason::Discover(extension.type_name.clone(), message))
    };
    match sorter.programs.discover(extension) {
        Err(failure) => sorter.files.problems.push(problem(failure.message)),
        Ok(found) => {
            for each in found {
                match discovered_manifest(&each, extension, search) {
                    Ok(scan) => sorter.take(without_extensions(scan, extension)),
                    Err(message) => sorter.files.problems.push(problem(message)),
                }
            }
        }
    }
}

/// Reads the manifest that one line of an extension names.
fn discovered_manifest(found: &Json, extension: &Extension, search: &Search) -> Result<Scan, String> {
    if let Some(path) = found.get("manifestPath").and_then(Json::as_str).map(Path::new) {
        if !path.is_absolute() {
            return Err(format!("'{}' is not an absolute path", path.display()));
        }
        let form = path.file_name().and_then(|name| ManifestForm::of(name.to_str()?));
        let form = form.ok_or_else(|| format!("'{}' does not have the name of a manifest", path.display()))?;
        return Ok(single(path, form, search.user));
    }
    let content =
        found.get("manifestContent").ok_or("what it printed has neither 'manifestPath' nor 'manifestContent'")?;
    let node = manifest::unplaced(content);
    let (declared, findings) = manifest::parse(ManifestForm::guess(&node), &node, &extension.manifest_path);
    if stead_core::diag::any_error(&findings) && declared.is_empty() {
        return Err(findings.into_iter().map(|finding| finding.message).collect::<Vec<_>>().join("; "));
    }
    let declared = declared.into_iter().map(|each| (extension.manifest_path.clone(), each)).collect();
    Ok(Scan { declared, problems: Vec::new() })
}

/// Leaves out extensions that an extension found: what those find would need another search.
fn without_extensions(mut scan: Scan, finder: &Extension) -> Scan {
    let (refused, declared) =
        scan.declared.into_iter().partition(|(_, each)| matches!(each.declaration, Declaration::Extension(_)));
    scan.declared = declared;
    for (path, _) in refused as Vec<(PathBuf, Declared)> {
        let message = "it found an extension, but extensions only find resources".to_owned();
        scan.problems.push(CatalogProblem::new(&path, ProblemReason::Discover(finder.type_name.clone(), message)));
    }
    scan
}

/// Sorts manifests by what they declare, and leaves out those whose conditions do not hold.
struct Sorter<'a> {
    programs: &'a dyn Programs,
    facts: Facts<'a>,
    files: Files,
}

impl<'a> Sorter<'a> {
    fn new(programs: &'a dyn Programs) -> Self {
        let files =
            Files { resources: Vec::new(), adapted: Vec::new(), extensions: BTreeMap::new(), problems: Vec::new() };
        Self { programs, facts: Facts { programs, known: RefCell::default() }, files }
    }

    fn take(&mut self, scan: Scan) {
        self.files.problems.extend(scan.problems);
        for (path, declared) in scan.declared {
            match self.facts.hold(declared.condition.as_ref()) {
                Ok(true) => self.sort(path, declared.declaration),
                Ok(false) => {}
                Err(message) => {
                    let name = name(&declared.declaration).clone();
                    self.files.problems.push(CatalogProblem { path, reason: ProblemReason::Condition(name, message) });
                }
            }
        }
    }

    fn sort(&mut self, path: PathBuf, declaration: Declaration) {
        match declaration {
            Declaration::Resource(manifest) => self.files.resources.push(Arc::new(*manifest)),
            Declaration::Adapted(adapted) => self.files.adapted.push((path, *adapted)),
            Declaration::Extension(extension) => {
                let known = self.files.extensions.get(&extension.type_name);
                if known.is_none_or(|known| known.version < extension.version) {
                    self.files.extensions.insert(extension.type_name.clone(), Arc::new(*extension));
                }
            }
        }
    }
}

fn name(declaration: &Declaration) -> &TypeName {
    match declaration {
        Declaration::Resource(manifest) => &manifest.type_name,
        Declaration::Adapted(adapted) => &adapted.type_name,
        Declaration::Extension(extension) => &extension.type_name,
    }
}

/// The facts that conditions can see: those of the machine, each found out once.
struct Facts<'a> {
    programs: &'a dyn Programs,
    known: RefCell<BTreeMap<FactKey, Option<Value>>>,
}

impl Environment for Facts<'_> {
    fn fact(&self, key: &FactKey) -> Option<Value> {
        if let Some(known) = self.known.borrow().get(key) {
            return known.clone();
        }
        let fact = self.programs.fact(key);
        self.known.borrow_mut().insert(key.clone(), fact.clone());
        fact
    }
}

impl Facts<'_> {
    /// Returns whether a condition holds; the absence of one does.
    fn hold(&self, condition: Option<&Expression>) -> Result<bool, String> {
        let Some(expression) = condition else { return Ok(true) };
        match expression.evaluate(self) {
            Ok(Value::Bool(holds)) => Ok(holds),
            Ok(other) => Err(format!("must be true or false, not {}", other.kind())),
            Err(Stop::Fault(fault)) => Err(format!("cannot be evaluated: {}", fault.message)),
            Err(Stop::Missing(_) | Stop::Open(_)) => Err("depends on something that is not known here".to_owned()),
            Err(Stop::Unknown(id)) => Err(format!("depends on the instance {id}")),
        }
    }
}
