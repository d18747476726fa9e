//! One piece of work: the texts it read, the resources it knows, its secrets, and the machine it works on.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use stead_core::expr::FactKey;
use stead_core::identity::DocumentIdentity;
use stead_core::manifest::{Implementation, Manifest};
use stead_core::text::Sources;
use stead_host::bundle::{BundleFiles, FilesWithin};
use stead_host::catalog::Discovery;
use stead_host::command::CommandSettings;
use stead_host::extensions::Extensions;
use stead_host::facts::Machine;
use stead_host::provider::{Context, SystemSide};
use stead_host::vault::MemoryVault;
use stead_powershell::declared::ResourceDeclaration;
use stead_powershell::transitional;
use stead_system::Cancel;
use stead_system::fs::{FsError, SystemRoot, Writes};
use stead_system::lock::Locks;

use crate::delivery::Delivery;
use crate::host::Host;
use crate::late::LateSearch;
use crate::memory::Memory;
use crate::opened::OpenedFiles;
use crate::options::SessionOptions;
use crate::shared::Shared;

/// One piece of work. What it holds of secrets is wiped when it is dropped.
pub struct Session {
    /// Every text that findings can point into.
    pub sources: Sources,
    pub(crate) options: SessionOptions,
    pub(crate) shared: Arc<Shared>,
    pub(crate) machine: Arc<Machine>,
    pub(crate) vault: Arc<MemoryVault>,
    pub(crate) late: Arc<LateSearch>,
    /// The files that its documents came with.
    pub(crate) files: Option<Arc<BundleFiles>>,
    /// Removes them with this session, if it opened them.
    pub(crate) opened: Option<OpenedFiles>,
    /// The root of [`SessionOptions::system_root`], absolute.
    system_root: Option<Arc<Path>>,
    writes: Writes,
}

impl Host {
    /// A piece of work whose relative paths start from `root`.
    pub fn session(&self, root: impl Into<PathBuf>) -> Session {
        self.session_with(root, SessionOptions::default())
    }

    /// Begins a piece of work with these options.
    pub fn session_with(&self, root: impl Into<PathBuf>, options: SessionOptions) -> Session {
        let mut machine = Machine::of_this_process(root.into());
        machine.elevated = self.options.elevated;
        let shared = Arc::new(Shared::new(self, &machine.root, &machine, &options.cancel));
        Session::of(shared, machine, options)
    }
}

impl Session {
    fn of(shared: Arc<Shared>, mut machine: Machine, options: SessionOptions) -> Self {
        let vault = Arc::<MemoryVault>::default();
        let system_root = managed(&mut machine, &options);
        let writes = Writes::default();
        let writes = if options.private_root { writes } else { writes.with_locks(Locks::of_this_user()) };
        Self {
            sources: Sources::default(),
            machine: shared.with_secrets(machine, &vault, &options.cancel),
            vault,
            late: Arc::new(LateSearch::new(Arc::clone(&shared.discovery))),
            shared,
            options,
            files: None,
            opened: None,
            system_root,
            writes,
        }
    }

    /// Another piece of work with secrets of its own, for which resources are not looked for again.
    #[must_use]
    pub fn beside(&self, cancel: Cancel) -> Self {
        let (suspend, end_reads) = (Cancel::default(), Cancel::default());
        let options = SessionOptions { cancel, suspend, end_reads, ..self.options.clone() };
        Self { files: self.files.clone(), ..Self::of(Arc::clone(&self.shared), self.machine.beside(), options) }
    }

    /// Returns a session for many small runs: their changes are flushed by [`Session::flush`] of this session, not at
    /// the end of each.
    #[must_use]
    pub fn beside_unflushed(&self, cancel: Cancel) -> Self {
        Self { writes: self.writes.flushed_elsewhere(), ..self.beside(cancel) }
    }

    /// Another piece of work whose relative paths start from `root`, on the resources that a host has there now. What it changes is
    /// flushed with this session.
    #[must_use]
    pub fn elsewhere(&self, host: &Host, root: impl Into<PathBuf>) -> Self {
        Self { writes: self.writes.clone(), ..host.session_with(root, self.options.clone()) }
    }

    /// Goes on with this piece of work under other options.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut SessionOptions)) -> Self {
        let former = (self.options.system_root.clone(), self.options.labels.clone());
        change(&mut self.options);
        if (&self.options.system_root, &self.options.labels) != (&former.0, &former.1) {
            self.change_machine(|_| {});
        }
        self
    }

    /// Works on a machine that differs from the one so far, and is asked everything anew.
    pub(crate) fn change_machine(&mut self, change: impl FnOnce(&mut Machine)) {
        let mut machine = self.machine.beside();
        change(&mut machine);
        self.system_root = managed(&mut machine, &self.options);
        self.machine = self.shared.with_secrets(machine, &self.vault, &self.options.cancel);
    }

    /// Has what was changed by [`Session::beside_unflushed`] until now written to the disk.
    ///
    /// # Errors
    /// When a file system cannot be flushed; that is reported once.
    pub fn flush(&self) -> Result<(), FsError> {
        self.writes.flush()
    }

    /// The options that it works under.
    pub fn options(&self) -> &SessionOptions {
        &self.options
    }

    /// How long one program of a resource may take.
    pub fn deadline(&self) -> Duration {
        self.options.deadline.or(self.shared.host.options.deadline).unwrap_or(Context::DEADLINE)
    }

    /// The machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Returns whether listings have a resource: scripts of PowerShell only where PowerShell is.
    pub fn lists(&self, manifest: &Manifest) -> bool {
        let powershell = || self.machine.fact(&FactKey::Executable("pwsh".to_owned()));
        !transitional::carries_out(manifest) || powershell().is_ok_and(|found| !found.is_null())
    }

    /// The declaration of a resource of PowerShell in its module; `None` of any other resource.
    pub fn declaration(&self, manifest: &Manifest) -> Option<ResourceDeclaration> {
        let Implementation::Adapted { resource, .. } = &manifest.implementation else { return None };
        self.host().powershell()?.declaration(&manifest.type_name, resource)
    }

    /// The secrets.
    pub fn vault(&self) -> &Arc<MemoryVault> {
        &self.vault
    }

    /// The resources that there are.
    pub fn discovery(&self) -> &Discovery {
        &self.shared.discovery
    }

    /// The extensions that there are, at work.
    pub fn extensions(&self) -> &Extensions {
        &self.shared.extensions
    }

    /// The settings that programs of resources are given.
    pub fn settings(&self) -> &CommandSettings {
        &self.shared.settings
    }

    /// Ends everything early.
    pub fn cancel(&self) -> &Cancel {
        &self.options.cancel
    }

    /// Returns the host that it shares with other sessions.
    pub fn host(&self) -> &Host {
        &self.shared.host
    }

    /// Where relative paths start from.
    pub fn root(&self) -> &Path {
        &self.shared.root
    }

    /// The root of the operating system, if it is not the one that runs.
    pub fn system_root(&self) -> Option<&Path> {
        self.system_root.as_deref()
    }

    /// Returns the memory of a document on the root that this session works on.
    pub fn memory(&self, document: &DocumentIdentity) -> Memory {
        Memory::of(self.system_root().unwrap_or(Path::new("/")), document)
    }

    /// Returns the memory of the things that a document manages on that root, in this store of deliveries. What it owes is kept
    /// elsewhere.
    pub fn memory_of_things(&self, store: &Path, document: &DocumentIdentity, delivery: Delivery) -> Memory {
        Memory::of_things(store, self.system_root().unwrap_or(Path::new("/")), document, delivery)
    }

    /// Returns the context that a call is carried out with.
    pub fn context(&self, name: impl Into<Arc<str>>) -> Context {
        Context {
            name: name.into(),
            deadline: self.deadline(),
            cancel: self.options.cancel.clone(),
            writes: self.writes.clone(),
            trace: Arc::clone(&self.options.trace),
            shown: self.options.shown,
            progress: self.options.progress.clone(),
            system_root: self.system_root.as_deref().map_or_else(SystemRoot::running, SystemRoot::below),
            side: if self.options.private_root { SystemSide::Files } else { SystemSide::Whole },
            inherited: Arc::clone(&self.shared.inherited),
            files: self.files.clone().map(|files| Arc::new(FilesWithin { files, folder: Arc::default() })),
            ..Context::new(Arc::clone(&self.shared.root))
        }
    }
}

/// Has a machine be the one that options say, and returns the root of its operating system if it is not the one that runs.
fn managed(machine: &mut Machine, options: &SessionOptions) -> Option<Arc<Path>> {
    machine.labels = options.labels.clone();
    machine.system_root = options.system_root.clone().unwrap_or_else(|| PathBuf::from("/"));
    // `resolve` only adds to it.
    let root = options.system_root.as_ref()?;
    Some(std::path::absolute(root).unwrap_or_else(|_| root.clone()).into())
}

/// The folder of a document, which relative paths start from.
pub fn folder_of(file: &Path) -> PathBuf {
    let folder = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::HostOptions;

    #[test]
    fn an_option_that_changes_later_holds_for_all_that_follows() {
        let session = Host::new(HostOptions::default()).session("/");
        // What a run that is under way has.
        let machine = Arc::clone(&session.machine);
        let session = session.with(|options| options.system_root = Some("/srv/image".into()));
        assert_eq!(machine.system_root, Path::new("/"));
        for session in [session.beside(Cancel::default()), session] {
            assert_eq!(session.machine().system_root, Path::new("/srv/image"));
            assert_eq!(session.system_root(), Some(Path::new("/srv/image")));
            assert!(!session.context("").manages_running_system());
            let session = session.with(|options| options.system_root = None);
            assert_eq!((session.machine().system_root.as_path(), session.system_root()), (Path::new("/"), None));
        }
    }
}
