//! The PowerShell of a machine, as adapters that this program carries out itself.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;

use serde_json::{Value as Json, json};
use stead_core::diag::codes::powershell::module as codes;
use stead_core::diag::{Diagnostic, Severity};
use stead_core::graph::{Expansion, ExpansionFinding};
use stead_core::id::TypeName;
use stead_core::manifest::{self, AdaptedResource, DiscoverMethod, Extension, Implementation, Manifest, Version};
use stead_core::text::{Sources, Span};
use stead_core::value::Object;
use stead_host::provider::Provider;
use stead_powershell_reader::class::{self, File};
use stead_powershell_reader::finding::ModuleFinding;
use stead_powershell_reader::manifest::same;
use stead_powershell_reader::module::{Disk, Files as _, FoundModule, Module, Modules};
use stead_powershell_reader::resource::{DefinitionKind, Resource};
use stead_powershell_reader::schema::secrets_schema;
use stead_powershell_reader::text::Text;
use stead_powershell_reader::types::Property;
use stead_system::fs::{OpenError, Trust, TrustedDirectory, User};
use stead_system::process::Environment;

use crate::counterparts;
use crate::declared::ResourceDeclaration;
use crate::expansion::{self, Installed};
use crate::index::{Index, ModuleInventory};
use crate::loaded::Loaded;
use crate::provider::{Code, PowerShellProvider, Source};
use crate::transitional::Scripts;
use crate::words::Words;
use crate::worker::{KeptWorker, Origin, Pool, Settings, StatedScripts};

/// The types of the adapters, which those of DSC v3 have as well: its documents need no change.
pub const ADAPTERS: [&str; 2] = ["Microsoft.Adapter/PowerShell", "Microsoft.DSC/PowerShell"];

/// The adapters, as resources that are built in.
pub fn adapters() -> Vec<Manifest> {
    let adapter = |name| {
        let version = Version::parse("1.0.0").ok()?;
        let description =
            "Carries out DSC resources of PowerShell, classes and scripts, in PowerShell processes that are kept";
        let tags = ["powershell", "linux"].map(str::to_owned).to_vec();
        let nothing_else = Manifest::in_process(TypeName::parse(name).ok()?, version);
        Some(Manifest {
            kind: manifest::ResourceKind::Adapter,
            description: Some(description.to_owned()),
            tags,
            ..nothing_else
        })
    };
    ADAPTERS.into_iter().filter_map(adapter).collect()
}

/// The extension that the search for manifests within modules is, for listings: it is carried out without a program.
pub fn module_search() -> Option<Extension> {
    const DESCRIPTION: &str = "Finds manifests of resources within PowerShell modules";
    Some(Extension {
        type_name: TypeName::parse("Microsoft.PowerShell/Discover").ok()?,
        version: semver::Version::new(0, 1, 0),
        description: Some(DESCRIPTION.to_owned()),
        deprecation: None,
        tags: Vec::new(),
        discover: Some(DiscoverMethod { executable: String::new(), arguments: Vec::new() }),
        import: None,
        secret: None,
        exit_codes: BTreeMap::new(),
        manifest_path: PathBuf::new(),
        manifest: Json::Null,
    })
}

/// Where PowerShell and its modules are, and how it is called.
#[derive(Clone)]
pub struct PowerShellOptions {
    /// The executable, absolute; `None` when there is none. Resources are known all the same, and can be checked.
    pub executable: Option<PathBuf>,
    /// The directories of modules, the first first.
    pub module_path: Vec<PathBuf>,
    /// Where the index of modules and the compiled worker are kept.
    pub cache: Option<PathBuf>,
    /// The environment that workers are given and that manifests may name.
    pub environment: Environment,
    /// Who reads modules: root reads only what nobody else can change.
    pub user: User,
    /// How many workers there may be at a time.
    pub width: usize,
    /// True if each call has a process of its own.
    pub isolated: bool,
}

/// The resources of PowerShell modules, and the workers that they are called in. Lives as long as the process.
pub struct PowerShell {
    options: PowerShellOptions,
    pool: Option<Pool>,
    known: RwLock<KnownModules>,
}

/// The modules of which resources were listed, by their files.
type KnownModules = HashMap<Arc<PathBuf>, Arc<Listed>>;

struct Listed {
    module: Arc<Module>,
    /// The scripts that were read again to expand what they declare.
    scripts: Mutex<BTreeMap<Arc<PathBuf>, Arc<File>>>,
}

impl Listed {
    fn new(module: &Arc<Module>) -> Self {
        Self { module: Arc::clone(module), scripts: Mutex::default() }
    }

    /// The last resource of that name.
    fn resource(&self, name: &str) -> Option<&Arc<Resource>> {
        let mut resources = self.module.resources.iter().rev();
        resources.find(|resource| same(&resource.name, name) && self.module.exports(resource))
    }

    fn script(&self, file: &Arc<PathBuf>, trust: Trust) -> Result<Arc<File>, OpenError> {
        let mut scripts = self.scripts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = scripts.get(file) {
            return Ok(Arc::clone(known));
        }
        let read = Arc::new(File::read(Arc::clone(file), &Disk::new(trust).read(file)?.0));
        scripts.insert(Arc::clone(file), Arc::clone(&read));
        Ok(read)
    }
}

impl PowerShell {
    /// With no module read and no worker started.
    pub fn new(options: PowerShellOptions) -> Self {
        let settings = |executable: &PathBuf| {
            let settings = Settings::new(executable.clone(), options.environment.clone(), options.width);
            let compiled = options.cache.clone().map(|folder| KeptWorker { folder, user: options.user });
            let settings = Settings { module_path: options.module_path.clone(), compiled, ..settings };
            if options.isolated { settings.isolated() } else { settings }
        };
        let pool = options.executable.as_ref().map(settings).map(Pool::new);
        Self { options, pool, known: RwLock::default() }
    }

    /// Ends the processes that are kept for calls; see [`Pool::end`].
    pub fn end(&self) {
        self.pool.iter().for_each(Pool::end);
    }

    /// The directories of modules, the first first.
    pub fn module_path(&self) -> &[PathBuf] {
        &self.options.module_path
    }

    /// Returns why there is no resource of a type whose module is there, and the advice about it: the manifest exports what the
    /// module does not have, or PowerShell refuses the manifest.
    pub fn missing_resource(&self, inventory: &mut ModuleInventory, wanted: &TypeName) -> Option<(String, String)> {
        let (name, _) = wanted.as_str().split_once('/')?;
        let quoted = format!("'{}'", wanted.short()).to_lowercase();
        let modules = self.modules_of(inventory, Some(name));
        let mut findings = modules.iter().flat_map(|module| &module.findings);
        let is_it = |finding: &&ModuleFinding| {
            finding.code == &codes::EXPORT && finding.message.to_lowercase().contains(&quoted)
        };
        if let Some(found) = findings.find(is_it) {
            let help = "only classes in the root module and in nested modules are found, and script resources";
            let (file, name) = (found.file.display(), wanted.short());
            return Some((format!("{file} exports '{name}', which is not a resource of the module"), help.to_owned()));
        }
        let unusable = modules.iter().filter(|module| module.manifest.is_none());
        let mut mistakes = unusable.flat_map(|module| &module.findings).filter(|it| it.severity == Severity::Error);
        let help = "PowerShell uses no resource of a module with such a manifest".to_owned();
        mistakes.next().map(|mistake| (in_words(mistake), help))
    }

    /// Returns what keeps PowerShell from loading a resource that was listed, as far as files show it, each with the text of its file.
    pub fn obstacles(&self, type_name: &TypeName, adapted: &AdaptedResource) -> Vec<(Arc<Text>, ModuleFinding)> {
        let Some(listed) = self.listed_in(adapted) else { return Vec::new() };
        let Some(resource) = listed.resource(type_name.short()) else { return Vec::new() };
        let disk = Disk::new(self.options.user.trust());
        let mut findings = listed.module.findings.clone();
        // Of script resources the schema alone was read.
        if resource.kind == DefinitionKind::Script
            && resource.implementation.extension().is_some_and(|extension| same(&extension.to_string_lossy(), "psm1"))
            && let Ok(file) = listed.script(&resource.implementation, self.options.user.trust())
        {
            findings.extend(self.with_modules(|_, modules| class::declared(&file, modules).findings));
        }
        let folders = listed.module.folder().join("DscResources");
        let own = resource.implementation.parent().unwrap_or(&folders);
        let keeps = |finding: &ModuleFinding| {
            let counts =
                finding.severity == Severity::Error || [&codes::MODULE_FILE, &codes::REQUIRED].contains(&finding.code);
            let is_of_class = resource.kind == DefinitionKind::Class && !finding.file.starts_with(&folders);
            counts && (is_of_class || resource.kind != DefinitionKind::Class && finding.file.starts_with(own))
        };
        findings.retain(keeps);
        // What cannot be read any more shows no line.
        let text = |file: &Path| Arc::new(Text::decode(&disk.read(file).map_or(Vec::new(), |(bytes, _)| bytes)));
        let mut texts = HashMap::new();
        let with_text = |finding: ModuleFinding| {
            let text = texts.entry(finding.file.clone()).or_insert_with_key(|file| text(file));
            (Arc::clone(text), finding)
        };
        findings.into_iter().map(with_text).collect()
    }

    /// Returns why there is no resource of a type that only a module can have: no folder has one of that name. It says which were
    /// looked through.
    pub fn missing_module(&self, inventory: &mut ModuleInventory, wanted: &TypeName) -> Option<String> {
        let (name, _) = wanted.as_str().split_once('/').filter(|(name, _)| !name.contains('.'))?;
        let is_missing = self.modules_of(inventory, Some(name)).is_empty();
        let folders: Vec<String> = self.module_folders().into_iter().map(|(folder, why)| folder + &why).collect();
        is_missing.then(|| format!("no PowerShell module '{name}' is in {}", folders.join(", ")))
    }

    /// The folders that modules are looked for in, quoted, and why one does not count.
    pub fn module_folders(&self) -> Vec<(String, String)> {
        let why = |folder: &Path| match TrustedDirectory::open(folder, self.options.user.trust()) {
            Err(OpenError::Untrusted(untrusted)) => format!(" (left out: {untrusted})"),
            Err(error) if error.is_not_found() => " (not there)".to_owned(),
            _ => String::new(),
        };
        let quoted = |folder: &PathBuf| (format!("'{}'", folder.display()), why(folder));
        self.options.module_path.iter().map(quoted).collect()
    }

    /// The modules as they are now, for one piece of work; none is read yet.
    pub fn search(&self) -> ModuleInventory {
        self.with_modules(|index, modules| {
            let inventory = index.search(modules);
            for error in &inventory.errors {
                tracing::warn!("PowerShell modules are left out: {error}");
            }
            inventory
        })
    }

    /// The resources of all modules, in the form in which adapters list them; what is wrong with modules goes to the log.
    pub fn list(&self, inventory: &mut ModuleInventory, adapter: &TypeName) -> Vec<Json> {
        self.listed(&self.modules_of(inventory, None), adapter, |_| true)
    }

    /// Returns the listed resources of one type: only modules of its name are read.
    pub fn find(&self, inventory: &mut ModuleInventory, adapter: &TypeName, wanted: &TypeName) -> Vec<Json> {
        let name = wanted.as_str().split_once('/').map_or(wanted.as_str(), |(module, _)| module);
        self.listed(&self.modules_of(inventory, Some(name)), adapter, |resource| same(&resource.name, wanted.short()))
    }

    /// The modules, or those of a name; first the one that is a part of this program.
    fn modules_of(&self, inventory: &mut ModuleInventory, name: Option<&str>) -> Vec<Arc<Module>> {
        let own = Some(counterparts::module()).filter(|own| name.is_none_or(|name| same(&own.name, name)));
        let found = self.with_modules(|index, modules| inventory.modules(index, modules, name));
        own.map(Arc::new).into_iter().chain(found).collect()
    }

    fn listed(&self, modules: &[Arc<Module>], adapter: &TypeName, wanted: impl Fn(&Resource) -> bool) -> Vec<Json> {
        let mut listed = Vec::new();
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        for module in modules {
            trace_findings(module);
            let before = listed.len();
            let shown = module.resources.iter().filter(|resource| module.exports(resource) && wanted(resource));
            listed.extend(shown.map(|resource| listing(adapter, module, resource)));
            if listed.len() > before {
                known.insert(Arc::clone(&module.file), Arc::new(Listed::new(module)));
            }
        }
        listed
    }

    fn with_modules<T>(&self, of: impl FnOnce(&Index<'_>, &Modules<'_>) -> T) -> T {
        let options = &self.options;
        let disk = Disk::below(&options.module_path, options.user.trust());
        let environment = |name: &str| Some(options.environment.get(name)?.to_str()?.to_owned());
        let modules = Modules { directories: &options.module_path, files: &disk, environment: &environment };
        of(&Index { cache: options.cache.as_deref(), user: options.user, now: SystemTime::now() }, &modules)
    }

    fn listed_in(&self, adapted: &AdaptedResource) -> Option<Arc<Listed>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(adapted.path.as_ref()?).cloned()
    }

    /// The module of a resource that a manifest describes, by the file that the manifest names.
    fn read_at(&self, file: &Path) -> Option<Arc<Listed>> {
        let name = file.file_stem()?.to_str()?.to_owned();
        let found = FoundModule { name, file: file.to_owned(), folder_version: None };
        let disk = Disk::new(self.options.user.trust());
        let environment = |name: &str| Some(self.options.environment.get(name)?.to_str()?.to_owned());
        let modules = Modules { directories: &[], files: &disk, environment: &environment };
        let module = Arc::new(modules.module(&found)?);
        trace_findings(&module);
        Some(Arc::new(Listed::new(&module)))
    }

    /// Returns the provider of a resource that was listed, or whose manifest names the file of its module.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub fn provider(&self, type_name: &TypeName, adapted: &AdaptedResource) -> Result<Arc<dyn Provider>, String> {
        let file = adapted.path.as_deref().unwrap_or(Path::new(""));
        let described = || self.read_at(Some(file).filter(|_| adapted.manifest_path.is_some())?);
        let no_module = || format!("PowerShell sees no module in '{}'", file.display());
        let listed = self.listed_in(adapted).or_else(described).ok_or_else(no_module)?;
        let (module, name) = (&listed.module, type_name.short());
        let no_resource = || match module.findings.iter().find(|finding| finding.severity == Severity::Error) {
            Some(mistake) => in_words(mistake),
            None => format!("the module '{}' has no resource '{name}', or does not export it", file.display()),
        };
        let resource = Arc::clone(listed.resource(name).ok_or_else(no_resource)?);
        if counterparts::is_counterpart(module) {
            return counterparts::provider(&resource, self.pool.clone()).ok_or_else(no_resource);
        }
        let path = match resource.kind {
            DefinitionKind::Class => module.file.to_path_buf(),
            DefinitionKind::Script | DefinitionKind::Composite => resource.implementation.to_path_buf(),
        };
        if is_manifest_by_pattern(&path) {
            let path = path.display();
            return Err(format!(
                "PowerShell would take '{path}' for a pattern and could load files of another folder. Move the module to a \
                 folder without '[', '*' and '?' in its path"
            ));
        }
        let loaded = Arc::new(Loaded {
            folder: module.folder().to_owned(),
            entry: path.clone(),
            files: files_elsewhere(module, &resource),
            directories: self.options.module_path.clone(),
            environment: self.options.environment.clone(),
            trust: self.options.user.trust(),
            known: Mutex::default(),
        });
        let code = code(Arc::clone(module), &resource, Arc::clone(&loaded));
        let source = Source { module: path, stamp: Box::new(move || loaded.stamp()) };
        Ok(Arc::new(PowerShellProvider::new(self.pool.clone(), resource, source).from(code)))
    }

    /// Returns the declaration of a resource that was listed.
    pub fn declaration(&self, type_name: &TypeName, adapted: &AdaptedResource) -> Option<ResourceDeclaration> {
        let listed = self.listed_in(adapted)?;
        let resource = Arc::clone(listed.resource(type_name.short())?);
        Some(ResourceDeclaration { module: Arc::clone(&listed.module), resource })
    }

    /// Returns the provider of scripts in documents.
    pub fn scripts(&self) -> Scripts {
        Scripts::new(self.pool.clone())
    }

    /// Returns the instances that an instance of a composite resource with these properties consists of; see
    /// [`Resources::expand`]. Modules are read once for an inventory, however many instances there are.
    ///
    /// [`Resources::expand`]: stead_core::graph::Resources::expand
    pub fn expand(
        &self,
        inventory: &mut ModuleInventory,
        manifest: &Manifest,
        properties: &Object,
        sources: &mut Sources,
    ) -> Result<Expansion, Vec<ExpansionFinding>> {
        let Implementation::Adapted { resource: adapted, adapter } = &manifest.implementation else {
            return Err(unplaced(format!("'{}' is not a composite resource", manifest.type_name)));
        };
        let listed = self.listed_in(adapted);
        let found = listed.as_ref().and_then(|listed| Some((listed, listed.resource(manifest.type_name.short())?)));
        let Some((listed, resource)) = found else {
            return Err(unplaced(format!("'{}' was not listed by its adapter", manifest.type_name)));
        };
        let file =
            listed.script(&resource.file, self.options.user.trust()).map_err(|error| unplaced(error.to_string()))?;
        // What a composite imports may be in modules that nothing else named.
        let modules = self.modules_of(inventory, None);
        let on_disk = modules.iter().filter(|module| !counterparts::is_counterpart(module));
        let resources = on_disk
            .flat_map(|module| module.resources.iter().map(move |it| (module, &**it)))
            .filter(|(module, resource)| module.exports(resource))
            .collect();
        let installed = Installed { resources, adapter: &adapter.type_name };
        expansion::expand(resource, &file, properties, &installed, sources)
    }
}

/// Returns whether PowerShell would load, in place of what a manifest names, whatever is in another folder that its path matches
/// as a pattern; for a script it takes the path as it is.
fn is_manifest_by_pattern(path: &Path) -> bool {
    let is_manifest = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("psd1"));
    is_manifest && path.to_string_lossy().contains(['[', '*', '?'])
}

fn unplaced(message: String) -> Vec<ExpansionFinding> {
    let finding = Diagnostic::error(&codes::UNREADABLE, Span::default(), message);
    vec![Diagnostic { span: None, ..finding }.into()]
}

fn trace_findings(module: &Module) {
    for finding in &module.findings {
        let text = in_words(finding);
        match finding.severity {
            Severity::Error => tracing::info!("{text}"),
            Severity::Warning => tracing::debug!("{text}"),
        }
    }
}

fn in_words(finding: &ModuleFinding) -> String {
    let (file, place) = (finding.file.display(), finding.place);
    format!("{file}:{}:{}: {} [{}]", place.line, place.column, finding.message, finding.code)
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
    let names = |which: fn(&Property) -> bool| -> Vec<_> {
        resource.properties.iter().filter(|each| which(each)).map(|property| &property.name).collect()
    };
    let description = resource.description.as_deref().or_else(|| module.manifest.as_ref()?.description.as_deref());
    let mut content = json!({
        "keys": names(|property| property.key),
        "required": names(|property| (property.key || property.mandatory) && !property.read_only),
        "readOnly": names(|property| property.read_only),
    });
    if let Some(secrets) = secrets_schema(&resource.properties) {
        content["secrets"] = secrets;
    }
    if resource.ensures() {
        content["ensures"] = true.into();
    }
    // A composite one is taken back by what it consists of.
    let is_undone = module.manifest.as_ref().is_some_and(|manifest| manifest.undo.is_by_state(&resource.name));
    let undo =
        (is_undone && resource.kind != DefinitionKind::Composite).then(|| json!({ "stead": { "undo": "state" } }));
    let mut listed = json!({
        "type": format!("{}/{}", module.name, resource.name),
        "kind": if resource.kind == DefinitionKind::Composite { "importer" } else { "resource" },
        "version": module.version.to_string(),
        "capabilities": capabilities,
        "path": &*module.file,
        "directory": module.folder(),
        "implementedAs": match resource.kind {
            DefinitionKind::Class => "ClassBased",
            DefinitionKind::Script => "ScriptBased",
            DefinitionKind::Composite => "Composite",
        },
        "author": module.manifest.as_ref().and_then(|manifest| manifest.author.as_deref()),
        "description": description,
        "properties": names(|_| true),
        "requireAdapter": adapter.as_str(),
        "adaptedContent": content,
    });
    if let Some(metadata) = undo {
        listed["metadata"] = metadata;
    }
    listed
}

/// The files that a worker loads for a resource, as far as they do not lie in the folder of the module. All classes of a
/// module are loaded together.
fn files_elsewhere(module: &Module, resource: &Resource) -> BTreeSet<PathBuf> {
    let scripts = module.scripts.iter().map(|script| script.file.to_path_buf());
    let classes =
        module.resources.iter().filter(|each| each.kind == DefinitionKind::Class).map(|each| each.file.to_path_buf());
    let classes = classes.filter(|_| resource.kind == DefinitionKind::Class);
    let own = [&module.file, &resource.file, &resource.implementation].map(|file| file.to_path_buf());
    scripts.chain(classes).chain(own).filter(|file| !file.starts_with(module.folder())).collect()
}

/// The code that a resource of a module runs. The files are read again whenever one of them changed.
fn code(module: Arc<Module>, resource: &Resource, loaded: Arc<Loaded>) -> Box<dyn Fn(&str) -> Code + Send + Sync> {
    let own = resource.implementation.parent().map(Path::to_owned);
    let known: Mutex<Option<(String, Arc<Words>)>> = Mutex::default();
    Box::new(move |stamp| {
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        let words = match &*known {
            Some((at, words)) if at == stamp => Arc::clone(words),
            _ => {
                let files = &loaded.elsewhere().files;
                Arc::new(Words::of(module.folder(), own.as_deref(), files, loaded.trust))
            }
        };
        *known = Some((stamp.to_owned(), Arc::clone(&words)));
        let (name, folder) = (module.name.clone(), module.folder().to_owned());
        let origin = Origin { module: name, folder, scripts: StatedScripts::None, alone: words.adds_types };
        Code { origin, words }
    })
}
