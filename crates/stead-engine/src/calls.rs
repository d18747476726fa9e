//! Carrying out the calls of a run with the resources of a session.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use stead_core::call::{Call, Execution, Operation, Response, Wanted};
use stead_core::claims::{Claim, Claims, Extent, Ties};
use stead_core::diff::exists;
use stead_core::expr::FactKey;
use stead_core::footprint::Footprint;
use stead_core::graph::{Graph, Node, Scope};
use stead_core::id::NodeId;
use stead_core::manifest::{CommandResource, Implementation, Manifest, SchemaSource, SecretPlaces};
use stead_core::run::KnownInstance;
use stead_core::statements::Statement;
use stead_core::value::Value;
use stead_host::bundle::FilesWithin;
use stead_host::command::{CommandProvider, Settings};
use stead_host::executor::{Calls, Watch};
use stead_host::facts::Machine;
use stead_host::operate::carry_out;
use stead_host::provider::{Context, Cost, Plain, Provider, Review, TraceLevel};
use stead_host::vault::MemoryVault;
use stead_resources::builtin_of;
use stead_system::Cancel;
use stead_system::fs::SystemPath;

use crate::execution::Planned;
use crate::host::Host;
use crate::late::LateSearch;
use crate::watch::FileWatch;

/// What carries out each resource; made once for each.
pub(crate) struct Providers {
    host: Host,
    settings: Arc<Settings>,
    /// Few, so that a search is faster than hashing a name for each call. Each holds its manifest: the same allocation is the
    /// same resource.
    made: RwLock<Vec<Made>>,
    /// Manifests, and the same with the marks of a schema that is elsewhere.
    marked: Mutex<Vec<(Arc<Manifest>, Arc<Manifest>)>>,
}

/// Returns whether the schema of a resource can be obtained only from a program that carries the resource out.
fn has_schema_elsewhere(manifest: &Manifest) -> bool {
    let printed = |resource: &CommandResource| matches!(resource.schema, Some(SchemaSource::Command { .. }));
    manifest.secret_places.is_none()
        && match &manifest.implementation {
            Implementation::Command(resource) => printed(resource),
            Implementation::Adapted { adapter, resource } => {
                resource.schema.is_none() && matches!(adapter.implementation, Implementation::Command(_))
            }
            Implementation::BuiltIn | Implementation::Engine | Implementation::Late(_) => false,
        }
}

/// A resource and what carries it out.
type Made = (Arc<Manifest>, Arc<dyn Provider>);

impl Providers {
    pub(crate) fn new(host: &Host, settings: Arc<Settings>) -> Self {
        Self { host: host.clone(), settings, made: RwLock::default(), marked: Mutex::default() }
    }

    pub(crate) fn of(&self, manifest: &Arc<Manifest>) -> Arc<dyn Provider> {
        let find = |made: &[Made]| {
            made.iter().find(|(known, _)| Arc::ptr_eq(known, manifest)).map(|(_, provider)| Arc::clone(provider))
        };
        let known = find(&self.made.read().unwrap_or_else(PoisonError::into_inner));
        known.unwrap_or_else(|| {
            let mut all = self.made.write().unwrap_or_else(PoisonError::into_inner);
            // Another thread may have been faster.
            find(&all).unwrap_or_else(|| {
                let provider = self.make(manifest);
                all.push((Arc::clone(manifest), Arc::clone(&provider)));
                provider
            })
        })
    }

    /// The manifest with the marks of secrets of a schema that is not in it, but printed by a program or that of the adapter. Where
    /// that schema cannot be obtained, every property is secret.
    pub(crate) fn marked(&self, manifest: &Arc<Manifest>, cx: &Context) -> Arc<Manifest> {
        if !has_schema_elsewhere(manifest) {
            return Arc::clone(manifest);
        }
        let known = |marked: &[(Arc<Manifest>, Arc<Manifest>)]| {
            let mut all =
                marked.iter().filter(|(plain, marked)| [plain, marked].iter().any(|one| Arc::ptr_eq(one, manifest)));
            all.next().map(|(_, marked)| Arc::clone(marked))
        };
        // One thread asks the program, the others wait for its answer.
        let mut all = self.marked.lock().unwrap_or_else(PoisonError::into_inner);
        known(&all).unwrap_or_else(|| {
            let provider = self.of(manifest);
            let places = match provider.schema(cx) {
                Ok(schema) => schema.and_then(|schema| SecretPlaces::of_schema(schema.json())),
                Err(_) => Some(SecretPlaces::everywhere()),
            };
            let marked = match places {
                Some(places) => {
                    Arc::new(Manifest { secret_places: Some(Arc::new(places)), ..Manifest::clone(manifest) })
                }
                None => Arc::clone(manifest),
            };
            if !Arc::ptr_eq(&marked, manifest) {
                self.made.write().unwrap_or_else(PoisonError::into_inner).push((Arc::clone(&marked), provider));
            }
            all.push((Arc::clone(manifest), Arc::clone(&marked)));
            marked
        })
    }

    fn make(&self, manifest: &Arc<Manifest>) -> Arc<dyn Provider> {
        if let Some(built_in) = builtin_of(manifest) {
            return Arc::clone(&built_in.provider);
        }
        if let Implementation::Adapted { adapter, resource } = &manifest.implementation
            && matches!(adapter.implementation, Implementation::BuiltIn)
        {
            let found =
                self.host.powershell().and_then(|powershell| powershell.provider(&manifest.type_name, resource));
            return found.unwrap_or_else(|| Arc::new(Incapable));
        }
        match CommandProvider::new(manifest, (*self.settings).clone()) {
            Some(provider) => Arc::new(provider),
            None => Arc::new(Incapable),
        }
    }

    /// What an instance of a resource with this desired state reads and manages, with absolute paths.
    pub(crate) fn claims_of(&self, manifest: &Arc<Manifest>, desired: &Plain, cx: &Context) -> Option<Claims> {
        Some(resolved(self.of(manifest).claims(desired)?, cx))
    }

    /// Returns all that an instance with this desired state manages, creates, uses and states.
    fn managed_by(&self, manifest: &Arc<Manifest>, desired: &Plain, cx: &Context) -> Managed {
        let provider = self.of(manifest);
        let resolve = |path: &Path| cx.meant(path).into_owned().into();
        Managed {
            claims: provider.claims(desired).map(|claims| resolved(claims, cx)),
            ties: provider.ties(desired).resolved(resolve),
            states: provider.states(desired),
        }
    }
}

/// All that is known of what an instance has to do with others.
pub(crate) struct Managed {
    /// See [`Provider::claims`].
    pub(crate) claims: Option<Claims>,
    /// See [`Provider::ties`].
    pub(crate) ties: Ties,
    /// See [`Provider::states`].
    pub(crate) states: Vec<Statement>,
}

/// Claims with absolute paths. What is read of a bundle does not change, and nobody else creates it.
fn resolved(mut claims: Claims, cx: &Context) -> Claims {
    claims.0.retain(|Claim::Path { path, extent }| *extent != Extent::Read || !cx.is_bundled(path));
    claims.resolved(|path| cx.meant(path))
}

/// The contexts of the calls of each instance, without the name of the instance.
pub(crate) struct Contexts {
    usual: Context,
    /// For those of documents that lie in other folders than the outermost one; one for each scope.
    within: HashMap<NodeId, Arc<Context>>,
}

impl Contexts {
    pub(crate) fn new(usual: Context, graph: &Graph) -> Self {
        let is_elsewhere = |scope: &Scope| !scope.folder.is_empty();
        if !graph.scopes.iter().any(is_elsewhere) {
            return Self { usual, within: HashMap::new() };
        }
        let context = |scope: &Scope| is_elsewhere(scope).then(|| Arc::new(in_folder(&usual, &scope.folder)));
        let folders: Vec<Option<Arc<Context>>> = graph.scopes.iter().map(context).collect();
        let context = |(id, node): (NodeId, &Node)| Some((id, folders.get(node.scope.index())?.clone()?));
        Self { within: graph.iter().filter_map(context).collect(), usual }
    }

    pub(crate) fn of(&self, id: NodeId) -> &Context {
        self.within.get(&id).map_or(&self.usual, |context| context)
    }
}

/// Returns the context for a document in a folder below that of the outermost one, given the context of the outermost
/// one.
pub(crate) fn in_folder(cx: &Context, folder: &Arc<str>) -> Context {
    let within = |files: &Arc<FilesWithin>| FilesWithin { files: Arc::clone(&files.files), folder: Arc::clone(folder) };
    let files = cx.files.as_ref().map(within).map(Arc::new);
    Context { root: cx.root.join(&**folder).into(), files, ..cx.clone() }
}

struct Incapable;
impl Provider for Incapable {}

/// Everything that the calls of one run need.
pub(crate) struct SessionCalls {
    pub(crate) providers: Arc<Providers>,
    pub(crate) machine: Arc<Machine>,
    pub(crate) vault: Arc<MemoryVault>,
    pub(crate) contexts: Arc<Contexts>,
    pub(crate) real_paths: RealPaths,
    /// Finds resources that the run installs.
    pub(crate) late: Arc<LateSearch>,
    /// Ends calls that change nothing.
    pub(crate) reads: Cancel,
    /// The plan that the run is to do, if there is one.
    pub(crate) planned: Planned,
}

impl SessionCalls {
    /// What an instance of a resource with this desired state reads and manages, with absolute paths.
    pub(crate) fn claims_of(&self, id: NodeId, manifest: &Arc<Manifest>, desired: &Plain) -> Option<Claims> {
        self.providers.claims_of(manifest, desired, self.contexts.of(id))
    }

    /// Returns the paths on the machine that an instance with this desired state reads from.
    pub(crate) fn read_by(&self, id: NodeId, manifest: &Arc<Manifest>, desired: &Plain) -> Vec<SystemPath> {
        let cx = self.contexts.of(id);
        let on_machine = |path: &String| !cx.is_bundled(Path::new(path));
        let paths = self.providers.of(manifest).reads(desired).into_iter().filter(on_machine);
        paths.filter_map(|path| cx.source(path).ok()).collect()
    }

    /// Returns what an instance with this desired state states of named things.
    pub(crate) fn states_of(&self, manifest: &Arc<Manifest>, desired: &Plain) -> Vec<Statement> {
        self.providers.of(manifest).states(desired)
    }

    /// Returns all that an instance with this desired state manages, creates, uses and states.
    pub(crate) fn managed_by(&self, id: NodeId, manifest: &Arc<Manifest>, desired: &Plain) -> Managed {
        self.providers.managed_by(manifest, desired, self.contexts.of(id))
    }
}

impl SessionCalls {
    /// Carries out a call with a resource that was just found, whose schema says what of the desired state is secret.
    fn carry_out_late(&self, call: &Call, manifest: &Arc<Manifest>) -> Response {
        let manifest = self.providers.marked(manifest, &self.contexts.usual);
        let mut desired = Arc::clone(&call.desired);
        if manifest.states_secrets(&desired) {
            desired = Arc::new(manifest.sealing_secrets(Arc::unwrap_or_clone(desired), &*self.vault));
        }
        let call = Call { manifest, desired: Arc::clone(&desired), ..call.clone() };
        Response { desired: Some(desired), ..self.carry_out(&call) }
    }
}

impl Calls for SessionCalls {
    fn carry_out(&self, call: &Call) -> Response {
        if let Implementation::Late(late) = &call.manifest.implementation {
            return match self.late.find(&call.manifest.type_name, late) {
                Ok(manifest) => self.carry_out_late(call, &manifest),
                Err(failure) => failure.into(),
            };
        }
        let found = call.tested.as_ref().and_then(|tested| tested.actual.as_object());
        let found_absent = found.is_some_and(|found| !exists(found));
        let (name, pending) = (Arc::clone(call.name()), call.pending.clone());
        let verdict_suffices = call.wanted == Wanted::Verdict;
        let usual = self.contexts.of(call.instance.node());
        let changes = call.operation.may_change() && call.execution == Execution::Actual;
        let cancel = if changes { usual.cancel.clone() } else { self.reads.clone() };
        let binding = self.planned.binding_of(call.instance.node());
        let cx = Context { name, found_absent, verdict_suffices, pending, binding, cancel, ..usual.clone() };
        carry_out(call, &*self.providers.of(&call.manifest), &*self.vault, &cx)
    }

    fn review(&self, instance: &KnownInstance) -> Review {
        let cx = Context {
            name: Arc::clone(instance.instance.name()),
            ..self.contexts.of(instance.instance.node()).clone()
        };
        self.providers.of(&instance.manifest).review(&cx, &Plain::covered(&instance.desired))
    }

    fn footprint(&self, call: &Call, response: &Response) -> Option<Footprint> {
        // Paths are not secret: where one is all the same, its placeholder overlaps with nothing.
        let id = call.instance.node();
        let claims = self.claims_of(id, &call.manifest, &Plain::covered(&call.desired))?;
        let footprint = Footprint::new(claims, &response.outcome, |path| self.contexts.of(id).resolve(path).into());
        Some(footprint.with_other_paths(|path| self.real_paths.of(path)))
    }

    fn cost(&self, call: &Call) -> Cost {
        let provider = self.providers.of(&call.manifest);
        if call.operation == Operation::Test { provider.test_cost(&call.desired) } else { provider.cost(&call.desired) }
    }

    fn fact(&self, key: &FactKey) -> Result<Value, String> {
        self.machine.fact(key)
    }

    fn watch(&self) -> Option<Box<dyn Watch>> {
        Some(Box::new(FileWatch::new(Arc::clone(&self.providers), Arc::clone(&self.contexts))))
    }

    fn flush(&self) -> std::io::Result<()> {
        self.contexts.usual.writes.flush().map_err(std::io::Error::other)
    }
}

/// Where paths lead through links of what is above them. Each folder is looked at once: a plan changes nothing.
#[derive(Default)]
pub(crate) struct RealPaths(Mutex<HashMap<PathBuf, Option<PathBuf>>>);

impl RealPaths {
    /// The path that is meant by a path, if links lead elsewhere.
    fn of(&self, path: &Path) -> Option<PathBuf> {
        let (folder, name) = (path.parent()?, path.file_name()?);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.contains_key(folder) {
            known.insert(folder.to_owned(), real_folder(folder));
        }
        known.get(folder)?.as_ref().map(|real| real.join(name))
    }
}

/// Where a folder is that links lead to; `None` where it is what it is called.
fn real_folder(folder: &Path) -> Option<PathBuf> {
    let (above, real) = folder.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)))?;
    if real == above { None } else { folder.strip_prefix(above).ok().map(|below| real.join(below)) }
}

/// Hands on what a resource wrote about what it does.
pub(crate) fn forward(level: TraceLevel, message: &str) {
    match level {
        TraceLevel::Error => tracing::error!("{message}"),
        TraceLevel::Warn => tracing::warn!("{message}"),
        TraceLevel::Info => tracing::info!("{message}"),
        TraceLevel::Debug => tracing::debug!("{message}"),
        TraceLevel::Trace => tracing::trace!("{message}"),
    }
}
