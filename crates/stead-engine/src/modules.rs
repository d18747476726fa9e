//! The part of the search for resources that this program carries out, and the modules of PowerShell.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value as Json;
use stead_core::call::Failure;
use stead_core::expr::FactKey;
use stead_core::id::TypeName;
use stead_core::manifest::{Extension, Form, Manifest};
use stead_core::value::Value;
use stead_host::catalog::Programs;
use stead_host::command::{Settings, extension, list_adapted};
use stead_host::facts::Machine;
use stead_host::provider::Context;
use stead_powershell::adapter::{PowerShell, adapters};
use stead_powershell::index::Inventory;
use stead_powershell::transitional;

use crate::host::Host;

/// The part of discovery that this program does itself.
pub(crate) struct OnMachine {
    /// Without secrets: extensions that open them are what is being discovered.
    pub(crate) machine: Machine,
    pub(crate) settings: Arc<Settings>,
    pub(crate) context: Context,
    pub(crate) modules: Arc<Modules>,
}

impl OnMachine {
    fn context(&self, name: &TypeName) -> Context {
        Context { name: name.as_str().into(), ..self.context.clone() }
    }

    /// Returns the answer of an adapter of this program by the modules of PowerShell.
    fn in_modules<T>(&self, adapter: &Manifest, of: impl FnOnce(&PowerShell, &mut Inventory) -> T) -> Option<T> {
        adapter.is_in_process().then(|| self.modules.with(of)).flatten()
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

    fn find_adapted(&self, adapter: &Manifest, wanted: &TypeName) -> Option<Vec<Json>> {
        self.in_modules(adapter, |powershell, found| powershell.find(found, &adapter.type_name, wanted))
    }

    fn discover(&self, extension: &Extension) -> Result<Vec<Json>, Failure> {
        extension::discover(extension, &Form::ENDINGS, &self.settings, &self.context(&extension.type_name))
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
    inventory: Mutex<Option<Inventory>>,
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
    pub(crate) fn with<T>(&self, of: impl FnOnce(&PowerShell, &mut Inventory) -> T) -> Option<T> {
        let powershell = self.host.powershell()?;
        let mut inventory = self.inventory.lock().unwrap_or_else(PoisonError::into_inner);
        Some(of(powershell, inventory.get_or_insert_with(|| powershell.search())))
    }
}
