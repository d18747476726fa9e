//! The PowerShell of a machine, as adapters that this program carries out itself.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use serde_json::{Value as Json, json};
use stead_core::diag::Severity;
use stead_core::id::TypeName;
use stead_core::manifest::{AdaptedResource, Implementation, Kind as ManifestKind, Manifest, Version};
use stead_host::cache::Stamp;
use stead_host::fs::{OpenError, Trust, TrustedFile, User};
use stead_host::process::Environment;
use stead_host::provider::Provider;

use crate::index::Index;
use crate::module::{Disk, Module, Modules};
use crate::provider::{PowerShellProvider, Source};
use crate::resource::{Kind, Resource};
use crate::worker::{Pool, Settings};

/// The types of the adapters, which those of DSC v3 have as well: its documents need no change.
pub const ADAPTERS: [&str; 2] = ["Microsoft.Adapter/PowerShell", "Microsoft.DSC/PowerShell"];

/// The adapters, as resources that are built in.
pub fn adapters() -> Vec<Manifest> {
    let adapter = |name| {
        let version = Version::parse("1.0.0").ok()?;
        let description =
            "Carries out DSC resources of PowerShell, classes and scripts, in PowerShell processes that are kept";
        let tags = ["powershell", "linux"].map(str::to_owned).to_vec();
        let nothing_else = Manifest::new(TypeName::parse(name).ok()?, version, Implementation::BuiltIn);
        Some(Manifest { kind: ManifestKind::Adapter, description: Some(description.to_owned()), tags, ..nothing_else })
    };
    ADAPTERS.into_iter().filter_map(adapter).collect()
}

/// Where PowerShell and its modules are, and how it is called.
#[derive(Clone)]
pub struct Options {
    /// The executable, absolute; `None` when there is none. Resources are known all the same, and can be checked.
    pub executable: Option<PathBuf>,
    /// The directories of modules, the first first.
    pub module_path: Vec<PathBuf>,
    /// Where the index of modules is kept.
    pub cache: Option<PathBuf>,
    /// What workers are given of the environment, and what manifests may name.
    pub environment: Environment,
    /// Who reads modules: root reads only what nobody else can change.
    pub user: User,
    /// How many workers there may be at a time.
    pub width: usize,
    /// Whether each call has a process of its own.
    pub isolated: bool,
}

/// The resources of PowerShell modules, and the workers that they are called in. Lives as long as the process.
pub struct PowerShell {
    options: Options,
    pool: Option<Pool>,
    known: RwLock<Known>,
}

/// What was listed last, by the file of the module and the name of the resource in lower case.
type Known = HashMap<(PathBuf, String), Found>;

#[derive(Clone)]
struct Found {
    module: Arc<Module>,
    resource: Arc<Resource>,
}

impl PowerShell {
    /// With no module read and no worker started.
    pub fn new(options: Options) -> Self {
        let settings = |executable: &PathBuf| {
            let settings = Settings::new(executable.clone(), options.environment.clone(), options.width);
            if options.isolated { settings.isolated() } else { settings }
        };
        let pool = options.executable.as_ref().map(settings).map(Pool::new);
        Self { options, pool, known: RwLock::default() }
    }

    /// The resources of all modules, in the form in which adapters list them; what is wrong with modules goes to the log.
    pub fn list(&self, adapter: &TypeName) -> Vec<Json> {
        let mut known = Known::new();
        let mut listed = Vec::new();
        for module in self.modules() {
            let module = Arc::new(module);
            trace_findings(&module);
            for resource in module.resources.iter().filter(|resource| module.exports(resource)) {
                let key = (module.file.to_path_buf(), resource.name.to_lowercase());
                known.insert(key, Found { module: Arc::clone(&module), resource: Arc::new(resource.clone()) });
                listed.push(listing(adapter, &module, resource));
            }
        }
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = known;
        listed
    }

    fn modules(&self) -> Vec<Module> {
        let disk = Disk::new(self.options.user.trust());
        let environment = |name: &str| Some(self.options.environment.get(name)?.to_str()?.to_owned());
        let modules = Modules { directories: &self.options.module_path, files: &disk, environment: &environment };
        let (found, unreadable) = match &self.options.cache {
            Some(cache) => Index { cache, user: self.options.user, now: SystemTime::now() }.read(&modules),
            None => modules.read(),
        };
        for error in unreadable {
            tracing::warn!("PowerShell modules are left out: {error}");
        }
        found
    }

    /// What carries out a resource; `None` for one that was not listed.
    pub fn provider(&self, type_name: &TypeName, adapted: &AdaptedResource) -> Option<Arc<dyn Provider>> {
        let key = (adapted.path.clone()?, type_name.short().to_lowercase());
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let Found { module, resource } = known.get(&key)?.clone();
        let path = match resource.kind {
            Kind::Class => module.file.to_path_buf(),
            Kind::Script | Kind::Composite => resource.implementation.to_path_buf(),
        };
        let (files, trust) = (files_of(&module, &resource), self.options.user.trust());
        let source = Source { module: path, stamp: Box::new(move || stamp(&files, trust)) };
        Some(Arc::new(PowerShellProvider::new(self.pool.clone(), resource, source)))
    }
}

fn trace_findings(module: &Module) {
    for finding in &module.findings {
        let (file, place) = (finding.file.display(), finding.place);
        let text = format!("{file}:{}:{}: {} [{}]", place.line, place.column, finding.message, finding.code);
        match finding.severity {
            Severity::Error => tracing::info!("{text}"),
            Severity::Warning => tracing::debug!("{text}"),
        }
    }
}

/// A resource as adapters list it.
fn listing(adapter: &TypeName, module: &Module, resource: &Resource) -> Json {
    let methods = resource.methods;
    let optional = [
        (methods.set_handles_exist, "setHandlesExist"),
        (methods.what_if, "setWhatIf"),
        (methods.delete, "delete"),
        (methods.export, "export"),
    ];
    let capabilities = ["get", "set", "test"].into_iter();
    let capabilities: Vec<_> =
        capabilities.chain(optional.into_iter().filter(|(has, _)| *has).map(|(_, word)| word)).collect();
    let properties: Vec<_> = resource.properties.iter().map(|property| &property.name).collect();
    let keys: Vec<_> = resource.properties.iter().filter(|each| each.key).map(|each| &each.name).collect();
    let description = resource.description.as_deref().or_else(|| module.manifest.as_ref()?.description.as_deref());
    json!({
        "type": format!("{}/{}", module.name, resource.name),
        "kind": "resource",
        "version": module.version.to_string(),
        "capabilities": capabilities,
        "path": &*module.file,
        "directory": module.folder(),
        "implementedAs": match resource.kind {
            Kind::Class => "ClassBased",
            Kind::Script => "ScriptBased",
            Kind::Composite => "Composite",
        },
        "author": module.manifest.as_ref().and_then(|manifest| manifest.author.as_deref()),
        "description": description,
        "properties": properties,
        "requireAdapter": adapter.as_str(),
        "adaptedContent": { "keys": keys },
    })
}

/// The files that a worker loads for a resource. All classes of a module are loaded together.
fn files_of(module: &Module, resource: &Resource) -> BTreeSet<PathBuf> {
    let scripts = module.scripts.iter().map(|script| script.file.to_path_buf());
    let classes = module.resources.iter().filter(|each| each.kind == Kind::Class).map(|each| each.file.to_path_buf());
    let classes = classes.filter(|_| resource.kind == Kind::Class);
    let own = [&module.file, &resource.file, &resource.implementation].map(|file| file.to_path_buf());
    scripts.chain(classes).chain(own).collect()
}

/// Something that changes whenever one of these files does. Fails where one of them is not trusted any more.
fn stamp(files: &BTreeSet<PathBuf>, trust: Trust) -> Result<String, OpenError> {
    let mut text = String::new();
    for file in files {
        // Writing to a string cannot fail.
        let _ = match TrustedFile::open(file, trust) {
            Ok(opened) => write!(text, "{:?};", Stamp::of(opened.metadata())),
            Err(error) if error.is_not_found() => write!(text, "-;"),
            Err(error) => return Err(error),
        };
    }
    Ok(text)
}

/// The PowerShell of that name in the directories of `PATH`.
pub fn executable(path: &std::ffi::OsStr) -> Option<PathBuf> {
    let candidates =
        std::env::split_paths(path).filter(|folder| folder.is_absolute()).map(|folder| folder.join("pwsh"));
    candidates.into_iter().find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok() && file.is_file()
}
