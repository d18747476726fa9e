//! The host, which lives as long as the process.

use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::available_parallelism;
use std::time::Duration;

use stead_core::manifest::{Catalog, Manifest};
use stead_core::value::Sensitive;
use stead_host::catalog::{Search, SearchEnvironment};
use stead_host::command::{ResidentPool, Residents};
use stead_host::provider::Provider;
use stead_host::settings::{Layers, Stated, TraceLevel, resolve};
use stead_host::worker_pool::WorkerPool;
use stead_powershell::adapter::{PowerShell, PowerShellOptions};
use stead_resources::builtins;
use stead_system::Cancel;
use stead_system::fs::User;

use crate::embedded::EmbeddedResource;

/// The version of DSC that documents and results are compatible with.
pub const DSC_VERSION: &str = "3.4.0-preview.1";

/// The version that `directives.version` is held against. A dsc of [`DSC_VERSION`] takes that of its engine, which is
/// counted by itself, and a document that it takes is taken here.
pub const ENGINE_VERSION: &str = "3.2.0";

/// The decisions of an administrator, the environment and the command line.
#[derive(Clone)]
pub struct HostOptions {
    /// Where resources are looked for.
    pub search: Search,
    /// True if the process may do everything.
    pub elevated: bool,
    /// How much programs of resources should report.
    pub trace_level: TraceLevel,
    /// Variables of the environment that programs are given besides those that all are.
    pub environment: Vec<String>,
    /// How long one program of a resource may take; `None` for the usual time.
    pub deadline: Option<Duration>,
    /// Finds PowerShell; called once, when something is asked for that may be a resource of it. `None` for no such resources.
    pub powershell: Option<Arc<PowerShellSearch>>,
    /// Opens secrets in place of the extensions of this machine.
    pub secrets: Option<Arc<SecretSource>>,
    /// Resources of the program that embeds this library. Of two of the same type and version the first counts.
    pub resources: Vec<EmbeddedResource>,
}

/// Where PowerShell and its modules are; `None` where there is none.
pub type PowerShellSearch = dyn Fn() -> Option<PowerShellOptions> + Send + Sync;

/// Opens the secret of a name, in one vault where that is stated, until it is cancelled. An error is the reason why not, and
/// holds no secret.
pub type SecretSource = dyn Fn(&str, Option<&str>, &Cancel) -> Result<Sensitive<String>, String> + Send + Sync;

impl Default for HostOptions {
    /// Built-in resources alone, by an ordinary user.
    fn default() -> Self {
        let settings = resolve(&Layers::default(), &Stated::default());
        let search = Search::new(&SearchEnvironment::default(), &settings.resource_path, User::current());
        Self {
            search,
            elevated: false,
            trace_level: settings.trace_level,
            environment: Vec::new(),
            deadline: None,
            powershell: None,
            secrets: None,
            resources: Vec::new(),
        }
    }
}

/// Options and threads that all sessions of a process share. Clones share them as well.
#[derive(Clone)]
pub struct Host {
    pub(crate) options: Arc<HostOptions>,
    pub(crate) pool: Arc<WorkerPool>,
    catalog: Arc<Catalog>,
    powershell: Arc<OnceLock<Option<Arc<PowerShell>>>>,
    /// The processes of all hosts that were made of one another.
    processes: Arc<Mutex<Processes>>,
}

/// The processes that are kept for calls.
#[derive(Default)]
struct Processes {
    powershell: Vec<Weak<PowerShell>>,
    /// Those of each session. They are held so that whoever ends them waits for those that another thread is ending.
    residents: Vec<Arc<ResidentPool>>,
}

impl Host {
    /// A host with these options.
    pub fn new(options: HostOptions) -> Self {
        let mut catalog = built_in_catalog();
        for resource in &options.resources {
            Arc::make_mut(&mut catalog).add(Arc::clone(resource.manifest()));
        }
        Self {
            catalog,
            powershell: Arc::default(),
            processes: Arc::default(),
            options: Arc::new(options),
            pool: Arc::default(),
        }
    }

    /// Another host with the same options and threads, whose modules of PowerShell are looked for by `search`.
    #[must_use]
    pub fn with_powershell(&self, search: Arc<PowerShellSearch>) -> Self {
        let options = HostOptions { powershell: Some(search), ..(*self.options).clone() };
        Self { options: Arc::new(options), powershell: Arc::default(), ..self.clone() }
    }

    /// Another host with the same options and threads, whose secrets are opened by `source`.
    #[must_use]
    pub fn with_secrets(&self, source: Arc<SecretSource>) -> Self {
        let options = HostOptions { secrets: Some(source), ..(*self.options).clone() };
        Self { options: Arc::new(options), ..self.clone() }
    }

    /// Another host with the same options and threads that has one more resource.
    #[must_use]
    pub(crate) fn with_resource(&self, resource: EmbeddedResource) -> Self {
        let mut this = self.clone();
        Arc::make_mut(&mut this.catalog).add(Arc::clone(resource.manifest()));
        let mut options = (*this.options).clone();
        options.resources.push(resource);
        Self { options: Arc::new(options), ..this }
    }

    /// The resources that need no search: those that are built in, and those of the program that embeds this library.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog)
    }

    /// The provider of a resource of the program that embeds this library.
    pub(crate) fn embedded(&self, manifest: &Manifest) -> Option<&Arc<dyn Provider>> {
        self.options.resources.iter().find(|own| own.carries_out(manifest)).map(EmbeddedResource::provider)
    }

    /// The resources of PowerShell, and the processes that they are called in.
    pub(crate) fn powershell(&self) -> Option<&Arc<PowerShell>> {
        let search = || {
            let found = self.options.powershell.as_ref()?().map(PowerShell::new).map(Arc::new)?;
            let powershell = &mut self.processes().powershell;
            powershell.retain(|known| known.strong_count() > 0);
            powershell.push(Arc::downgrade(&found));
            Some(found)
        };
        self.powershell.get_or_init(search).as_ref()
    }

    /// The programs that stay for a session.
    pub(crate) fn residents(&self) -> Residents {
        let found = Residents::default();
        let residents = &mut self.processes().residents;
        residents.retain(|known| Arc::strong_count(known) > 1);
        residents.push(Arc::clone(found.processes()));
        found
    }

    fn processes(&self) -> MutexGuard<'_, Processes> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folders that modules of PowerShell are looked for in, quoted, and why one does not count; none without PowerShell.
    pub fn module_folders(&self) -> Vec<(String, String)> {
        self.powershell().map(|powershell| powershell.module_folders()).unwrap_or_default()
    }

    /// Ends the processes that are kept for calls, before it returns, also those of hosts that were made of this one. For the end of a
    /// program that does not wait until everything that shares them is dropped.
    pub fn end(&self) {
        let Processes { powershell, residents } = std::mem::take(&mut *self.processes());
        powershell.iter().filter_map(Weak::upgrade).for_each(|powershell| powershell.end());
        for pool in &residents {
            pool.end();
        }
    }

    /// Does some work on a thread of this host; see [`WorkerPool::submit`].
    pub fn submit(&self, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        self.pool.submit(work)
    }

    /// How many calls are carried out at once unless somebody says otherwise: as many as there are processors.
    ///
    /// The system is asked once for a process: with its limits for groups of processes that takes as long as a small call.
    pub fn width(&self) -> NonZeroUsize {
        static WIDTH: OnceLock<NonZeroUsize> = OnceLock::new();
        *WIDTH.get_or_init(|| available_parallelism().unwrap_or(NonZeroUsize::MIN))
    }
}

/// The manifests of the built-in resources, made once per process.
fn built_in_catalog() -> Arc<Catalog> {
    static CATALOG: LazyLock<Arc<Catalog>> = LazyLock::new(|| {
        let mut catalog = Catalog::default();
        for each in builtins() {
            catalog.add(Arc::clone(&each.manifest));
        }
        Arc::new(catalog)
    });
    Arc::clone(&CATALOG)
}
