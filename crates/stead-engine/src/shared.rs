//! The state that sessions which begin beside each other share.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use stead_core::value::{Seal as _, Value};
use stead_host::catalog::Discovery;
use stead_host::command::CommandSettings;
use stead_host::extensions::Extensions;
use stead_host::facts::Machine;
use stead_host::provider::Context;
use stead_host::settings;
use stead_host::vault::MemoryVault;
use stead_system::Cancel;

use crate::contexts::forward;
use crate::host::{Host, HostOptions};
use crate::modules::{Modules, OnMachine, looking_in};
use crate::providers::Providers;

/// The resources that were found, and everything that is called with them.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) host: Host,
    /// The host as it was given, without what a document adds to it.
    given: Host,
    /// The folders of modules that a document names; see [`crate::modules::stated`].
    pub(crate) stated_modules: Vec<String>,
    /// The folder that relative paths start from.
    pub(crate) root: Arc<Path>,
    pub(crate) settings: Arc<CommandSettings>,
    /// The variables of the environment that programs are given besides those that all are.
    pub(crate) inherited: Arc<[String]>,
    pub(crate) discovery: Arc<Discovery>,
    pub(crate) extensions: Arc<Extensions>,
    pub(crate) providers: Arc<Providers>,
    pub(crate) modules: Arc<Modules>,
    /// The messages about resources that were found, of which each is given once.
    pub(crate) traced: Arc<Mutex<BTreeSet<String>>>,
}

impl Shared {
    pub(crate) fn new(host: &Host, root: &Path, machine: &Machine, cancel: &Cancel) -> Self {
        let settings = Arc::new(command_settings(root, &host.options));
        let context = extension_context(root, cancel, &host.options);
        let modules = Arc::new(Modules::new(host));
        let programs = OnMachine {
            machine: machine.beside(),
            settings: Arc::clone(&settings),
            context: context.clone(),
            modules: Arc::clone(&modules),
        };
        let discovery = Arc::new(Discovery::new(host.options.search.clone(), host.catalog(), Arc::new(programs)));
        Self {
            host: host.clone(),
            given: host.clone(),
            stated_modules: Vec::new(),
            root: root.into(),
            inherited: host.options.environment.clone().into(),
            extensions: Arc::new(Extensions::new(Arc::clone(&discovery), (*settings).clone(), context)),
            providers: Arc::new(Providers::new(host, Arc::clone(&settings))),
            discovery,
            settings,
            modules,
            traced: Arc::default(),
        }
    }

    /// Returns the state of somebody who looks for modules of PowerShell in these folders, and has found nothing yet.
    pub(crate) fn with_modules(&self, stated: Vec<String>, machine: &Machine, cancel: &Cancel) -> Self {
        let host = looking_in(&self.given, &stated);
        let given = self.given.clone();
        Self { given, stated_modules: stated, ..Self::new(&host, &self.root, machine, cancel) }
    }

    /// Returns this state for programs that are given these variables of the environment. Resources that were found stay found.
    pub(crate) fn with_environment(&self, inherited: Vec<String>, cancel: &Cancel) -> Self {
        let mut settings = command_settings(&self.root, &self.host.options);
        settings.environment.add_of_this_process(&inherited);
        let settings = Arc::new(settings);
        let context = extension_context(&self.root, cancel, &self.host.options);
        Self {
            extensions: Arc::new(Extensions::new(Arc::clone(&self.discovery), (*settings).clone(), context)),
            providers: Arc::new(Providers::new(&self.host, Arc::clone(&settings))),
            inherited: inherited.into(),
            settings,
            ..self.clone()
        }
    }

    /// A machine whose secrets are those of the host, or else those that extensions open. They are put into `vault`, and go
    /// nowhere else.
    pub(crate) fn with_secrets(&self, mut machine: Machine, vault: &Arc<MemoryVault>, cancel: &Cancel) -> Arc<Machine> {
        let (extensions, vault, cancel) = (Arc::clone(&self.extensions), Arc::clone(vault), cancel.clone());
        let source = self.host.options.secrets.clone();
        machine.find_secret = Arc::new(move |name, from| {
            let plaintext = match &source {
                Some(source) => source(name, from, &cancel),
                None => extensions.open_secret(name, from),
            }?;
            Ok(vault.seal(Value::from(plaintext.expose().as_str())).0.to_string())
        });
        Arc::new(machine)
    }
}

/// Returns the settings of programs of resources: the environment that may be handed on, where the document is, and
/// how much is traced.
fn command_settings(root: &Path, options: &HostOptions) -> CommandSettings {
    let mut settings = CommandSettings { elevated: options.elevated, ..CommandSettings::of_this_process() };
    settings.environment.add_of_this_process(&options.environment);
    settings.environment.set("DSC_CONFIG_ROOT", root);
    let level = options.trace_level;
    if let Some((word, _)) = settings::TraceLevel::ALL.iter().find(|(_, each)| *each == level) {
        settings.environment.set("DSC_TRACE_LEVEL", word.to_lowercase());
    }
    settings
}

/// Returns the context of programs of adapters and extensions while resources, secrets and documents are looked for.
fn extension_context(root: &Path, cancel: &Cancel, options: &HostOptions) -> Context {
    Context {
        deadline: options.deadline.unwrap_or(Duration::from_mins(1)),
        cancel: cancel.clone(),
        trace: Arc::new(forward),
        ..Context::new(root)
    }
}
