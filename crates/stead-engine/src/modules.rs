//! The part of the search for resources that this program carries out, and the modules of PowerShell.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value as Json;
use stead_core::call::Failure;
use stead_core::document::{Document, Template, modules_of};
use stead_core::expr::FactKey;
use stead_core::id::TypeName;
use stead_core::manifest::{Extension, Manifest, ManifestForm};
use stead_core::value::Value;
use stead_host::catalog::Programs;
use stead_host::command::{CommandSettings, extension, find_adapted, list_adapted};
use stead_host::facts::Machine;
use stead_host::provider::Context;
use stead_powershell::adapter::{ADAPTERS, PowerShell, PowerShellOptions, adapters};
use stead_powershell::index::ModuleInventory;
use stead_powershell::transitional;

use crate::host::Host;

/// The variable with the folders of modules.
const MODULE_PATH: &str = "PSModulePath";

/// The part of discovery that this program does itself.
pub(crate) struct OnMachine {
    /// Without secrets: extensions that open them are what is being discovered.
    pub(crate) machine: Machine,
    pub(crate) settings: Arc<CommandSettings>,
    pub(crate) context: Context,
    pub(crate) modules: Arc<Modules>,
}

impl OnMachine {
    fn context(&self, name: &TypeName) -> Context {
        Context { name: name.as_str().into(), ..self.context.clone() }
    }

    /// Returns the answer of an adapter of this program by the modules of PowerShell.
    fn in_modules<T>(&self, adapter: &Manifest, of: impl FnOnce(&PowerShell, &mut ModuleInventory) -> T) -> Option<T> {
        adapter.is_own_adapter().then(|| self.modules.with(of)).flatten()
    }
}

impl Programs for OnMachine {
    fn adapters(&self) -> Vec<Manifest> {
        let adapters = self.modules.host.powershell().map(|_| adapters()).unwrap_or_default();
        // Scripts are there without PowerShell as well, so that a document can assert that it is.
        adapters.into_iter().chain(transitional::manifest()).collect()
    }

    fn module_folders(&self) -> Vec<PathBuf> {
        self.modules.host.powershell().map(|powershell| powershell.module_path().to_vec()).unwrap_or_default()
    }

    fn list_adapted(&self, adapter: &Manifest) -> Result<Vec<Json>, Failure> {
        let listed = self.in_modules(adapter, |powershell, found| powershell.list(found, &adapter.type_name));
        listed.map_or_else(|| list_adapted(adapter, &self.settings, &self.context(&adapter.type_name)), Ok)
    }

    fn find_adapted(&self, adapter: &Manifest, wanted: &TypeName) -> Option<Result<Vec<Json>, Failure>> {
        let found = self.in_modules(adapter, |powershell, found| powershell.find(found, &adapter.type_name, wanted));
        let ask = || find_adapted(adapter, wanted, &self.settings, &self.context(&adapter.type_name));
        found.map(Ok).or_else(ask)
    }

    fn discover(&self, extension: &Extension) -> Result<Vec<Json>, Failure> {
        extension::discover(extension, &ManifestForm::ENDINGS, &self.settings, &self.context(&extension.type_name))
    }

    fn forget(&self) {
        *self.modules.inventory.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn fact(&self, key: &FactKey) -> Option<Value> {
        self.machine.fact(key).ok()
    }
}

/// The modules of PowerShell, which are searched for once.
pub(crate) struct Modules {
    pub(crate) host: Host,
    inventory: Mutex<Option<ModuleInventory>>,
}

impl Modules {
    pub(crate) fn new(host: &Host) -> Self {
        Self { host: host.clone(), inventory: Mutex::default() }
    }

    /// See [`PowerShell::missing_resource`].
    pub(crate) fn missing_resource(&self, type_name: &TypeName) -> Option<(String, String)> {
        self.with(|powershell, inventory| powershell.missing_resource(inventory, type_name))?
    }

    /// Asks PowerShell about them; `None` where there is no PowerShell.
    pub(crate) fn with<T>(&self, of: impl FnOnce(&PowerShell, &mut ModuleInventory) -> T) -> Option<T> {
        let powershell = self.host.powershell()?;
        let mut inventory = self.inventory.lock().unwrap_or_else(PoisonError::into_inner);
        Some(of(powershell, inventory.get_or_insert_with(|| powershell.search())))
    }
}

/// The folders of modules that the adapters of a document name, each text once and as it is written.
pub(crate) fn stated(document: &Document) -> Vec<String> {
    let mut stated = Vec::new();
    for instance in &document.resources {
        if let Some(properties) = &instance.properties {
            take_stated(&instance.type_name.value, properties, &mut stated);
        }
    }
    stated
}

fn take_stated(kind: &TypeName, properties: &Template, stated: &mut Vec<String>) {
    let is_adapter = ADAPTERS.iter().any(|adapter| kind.as_str().eq_ignore_ascii_case(adapter));
    if let Some(path) = modules_of(properties).filter(|path| is_adapter && !stated.iter().any(|known| known == path)) {
        stated.push(path.to_owned());
    }
    for nested in properties.get("resources").and_then(Template::items).into_iter().flatten() {
        let kind = nested.get("type").and_then(|kind| TypeName::parse(kind.literal().as_str()?).ok());
        if let Some((kind, properties)) = kind.zip(nested.get("properties")) {
            take_stated(&kind, properties, stated);
        }
    }
}

/// A host whose processes of PowerShell look for modules in folders as a document names them.
pub(crate) fn looking_in(host: &Host, stated: &[String]) -> Host {
    let Some(search) = host.options.powershell.clone().filter(|_| !stated.is_empty()) else { return host.clone() };
    let stated = stated.to_vec();
    host.with_powershell(Arc::new(move || Some(with_folders(search()?, &stated))))
}

/// PowerShell that looks for modules in these folders, and then in the usual ones. `$env:NAME` is the value of a variable, as PowerShell has it: of
/// `PSModulePath` the folders that are looked through otherwise.
fn with_folders(mut options: PowerShellOptions, stated: &[String]) -> PowerShellOptions {
    let usual = std::env::join_paths(&options.module_path).unwrap_or_default().to_string_lossy().into_owned();
    let value = |name: &str| {
        let own = || options.environment.get(name).map(|value| value.to_string_lossy().into_owned());
        if name.eq_ignore_ascii_case(MODULE_PATH) { usual.clone() } else { own().unwrap_or_default() }
    };
    let of_text = |text: &String| std::env::split_paths(&expanded(text, value)).collect::<Vec<_>>();
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in stated.iter().flat_map(of_text).chain(options.module_path.iter().cloned()) {
        if folder.is_absolute() && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    options.environment.set(MODULE_PATH, std::env::join_paths(&folders).unwrap_or_default());
    PowerShellOptions { module_path: folders, ..options }
}

fn expanded(text: &str, value: impl Fn(&str) -> String) -> String {
    const MARK: &str = "$env:";
    let (mut whole, mut rest) = (String::new(), text);
    while let Some(at) = rest.to_ascii_lowercase().find(MARK) {
        let (before, name) = (rest.get(..at).unwrap_or_default(), rest.get(at + MARK.len()..).unwrap_or_default());
        let end = name.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(name.len());
        let (name, after) = name.split_at(end);
        whole.extend([before, &value(name)]);
        rest = after;
    }
    whole + rest
}
