//! Carrying out the calls of a run with the resources of a session.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use stead_core::call::{Call, Execution, Failure, FailureKind, Operation, Outcome, Response, Wanted};
use stead_core::claims::{Claim, Claims, Extent, Ties};
use stead_core::diff::exists;
use stead_core::expr::FactKey;
use stead_core::footprint::Footprint;
use stead_core::graph::{Graph, Node, Scope};
use stead_core::id::NodeId;
use stead_core::instance_path::InstancePath;
use stead_core::manifest::{CommandResource, Implementation, Manifest, SchemaSource, SecretPlaces};
use stead_core::run::KnownInstance;
use stead_core::statements::Statement;
use stead_core::value::Value;
use stead_host::bundle::FilesWithin;
use stead_host::command::{CommandProvider, Settings};
use stead_host::executor::{Calls, Watch};
use stead_host::facts::Machine;
use stead_host::operate::carry_out;
use stead_host::provider::{Context, Cost, LineTest, Plain, Provider, Review, TraceLevel};
use stead_host::vault::MemoryVault;
use stead_resources::builtin_of;
use stead_system::Cancel;
use stead_system::fs::{SystemPath, SystemRoot};

use crate::execution::Planned;
use crate::host::Host;
use crate::late::LateSearch;
use crate::second_look::SecondLook;
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
            _ => false,
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
        if let Some(provider) = self.host.embedded(manifest) {
            return Arc::clone(provider);
        }
        if let Implementation::Adapted { resource, .. } = &manifest.implementation
            && manifest.is_powershell()
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
        Some(resolved(self.of(manifest).claims(desired)?, manifest, cx))
    }

    /// Returns all that an instance with this desired state manages, creates, uses and states.
    fn managed_by(&self, manifest: &Arc<Manifest>, desired: &Plain, cx: &Context) -> Managed {
        let provider = self.of(manifest);
        let resolve = |path: &Path| cx.meant(path).into_owned().into();
        Managed {
            claims: provider.claims(desired).map(|claims| resolved(claims, manifest, cx)),
            ties: provider.ties(desired).resolved(resolve),
            states: provider.states(cx, desired),
            removed_lines: provider.removed_lines(desired),
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
    /// See [`Provider::removed_lines`].
    pub(crate) removed_lines: Option<LineTest>,
}

/// Claims with absolute paths. What is read of a bundle does not change, and nobody else creates it. Programs know of no root
/// but that of the system that runs.
fn resolved(mut claims: Claims, manifest: &Manifest, cx: &Context) -> Claims {
    if matches!(manifest.implementation, Implementation::Command(_)) {
        return claims.resolved(|path| path.into());
    }
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

/// The desired state of an instance that was answered.
pub(crate) struct Answered {
    manifest: Arc<Manifest>,
    desired: Arc<Value>,
}

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
    /// What the run can have undone of its own.
    pub(crate) second_look: SecondLook<Answered>,
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
    pub(crate) fn states_of(&self, id: NodeId, manifest: &Arc<Manifest>, desired: &Plain) -> Vec<Statement> {
        self.providers.of(manifest).states(self.contexts.of(id), desired)
    }

    /// Returns the lines that an instance with this desired state adds to its file.
    pub(crate) fn added_lines(&self, manifest: &Arc<Manifest>, desired: &Plain) -> Vec<String> {
        self.providers.of(manifest).added_lines(desired)
    }

    /// Returns all that an instance with this desired state manages, creates, uses and states.
    pub(crate) fn managed_by(&self, id: NodeId, manifest: &Arc<Manifest>, desired: &Plain) -> Managed {
        self.providers.managed_by(manifest, desired, self.contexts.of(id))
    }
}

impl SessionCalls {
    /// The paths of what an instance creates or changes, at which something shows when it is changed. Accounts are in one file.
    fn written_by(&self, id: NodeId, Answered { manifest, desired }: &Answered) -> Vec<SystemPath> {
        let claims = self.claims_of(id, manifest, &Plain::covered(desired)).unwrap_or_default();
        let written = |Claim::Path { path, extent }: &Claim| {
            let is_account = stead_resources::account_at(path).is_some();
            let database = path.ancestors().find(|above| above.parent() == Some(Path::new("/etc")));
            let file = database.filter(|_| is_account).unwrap_or(path);
            let is_written = !matches!(extent, Extent::Read | Extent::Backup | Extent::Mode(_));
            is_written.then(|| SystemPath::here(file))
        };
        claims.0.iter().filter_map(written).collect()
    }

    /// Why a set would read something else than the plan did that the run is to do.
    fn stale(&self, call: &Call) -> Option<Failure> {
        let id = call.instance.node();
        let is_other = |path: &SystemPath| {
            let planned = self.planned.digest_of(id, &path.display().to_string());
            planned.is_some_and(|planned| stead_system::fs::digest(path).ok().flatten() != *planned)
        };
        let paths = if self.planned.has_reads() {
            self.read_by(id, &call.manifest, &Plain::covered(&call.desired))
        } else {
            Vec::new()
        };
        let path = paths.into_iter().find(is_other)?;
        let message = format!("'{}' has changed since the plan was shown", path.display());
        Some(Failure::new(FailureKind::Refused, message))
    }

    /// Tests again an instance of which something was changed after it was answered, and says why it is not in its desired state
    /// any more.
    fn undone(
        &self,
        KnownInstance { instance, manifest, desired }: &KnownInstance,
        after: &[InstancePath],
    ) -> Option<Failure> {
        let (first, others) = after.split_at(after.len().min(3));
        if first.is_empty() {
            return None;
        }
        let call = Call {
            instance: instance.clone(),
            manifest: Arc::clone(manifest),
            operation: Operation::Test,
            execution: Execution::Actual,
            desired: Arc::clone(desired),
            tested: None,
            pending: None,
            metadata: None,
            wanted: Wanted::Verdict,
        };
        let why = match self.carry_out(&call).outcome {
            Outcome::Tested(tested) if !tested.in_desired_state => {
                let names: Vec<String> = tested.differing.iter().map(|name| format!("'{name}'")).collect();
                if names.is_empty() { "it differs".to_owned() } else { format!("{} differs", names.join(", ")) }
            }
            Outcome::Failed(failure) if failure.kind != FailureKind::Cancelled => failure.message,
            _ => return None,
        };
        let mut labels: Vec<String> = first.iter().map(InstancePath::label).collect();
        labels.extend((!others.is_empty()).then(|| format!("{} more", others.len())));
        let message = format!(
            "it was in its desired state and is not at the end of the run: {why}. After it ran: {}. Let it depend on what \
             changes it",
            labels.join(", ")
        );
        Some(Failure::new(FailureKind::NotConverged, message))
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
        if changes && let Some(stale) = self.stale(call) {
            return stale.into();
        }
        let provider = self.providers.of(&call.manifest);
        let is_loose = || provider.claims(&Plain::covered(&call.desired)).is_none();
        let disturbance = (changes && is_loose())
            .then(|| self.second_look.disturb(&call.instance, |id, of| self.written_by(id, &of)));
        let response = carry_out(call, &*provider, &*self.vault, &cx);
        if disturbance.is_none() && matches!(response.outcome, Outcome::Tested(_) | Outcome::Changed(_)) {
            let answered = Answered { manifest: Arc::clone(&call.manifest), desired: Arc::clone(&call.desired) };
            let written = |id, of| self.written_by(id, &of);
            self.second_look.answered(call.instance.node(), answered, written);
        }
        response
    }

    fn disturbed(&self) -> BTreeMap<NodeId, Vec<InstancePath>> {
        self.second_look.disturbed()
    }

    fn review(&self, instance: &KnownInstance, after: &[InstancePath]) -> Review {
        if let Some(undone) = self.undone(instance, after) {
            return Review::Failed(undone);
        }
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
pub(crate) struct RealPaths {
    /// The root of the system, which no link leads out of.
    root: PathBuf,
    folders: Mutex<Folders>,
}

#[derive(Default)]
struct Folders {
    known: HashMap<PathBuf, Option<PathBuf>>,
    /// The last one that was asked for, since one folder has many files, and taking a path apart takes longer than all else.
    last: Option<(Vec<u8>, Option<PathBuf>)>,
}

impl RealPaths {
    /// Those of the system with this root.
    pub(crate) fn below(root: &Path) -> Self {
        Self { root: root.to_owned(), folders: Mutex::default() }
    }

    /// The path that is meant by a path, if links lead elsewhere.
    pub(crate) fn of(&self, path: &Path) -> Option<PathBuf> {
        let bytes = path.as_os_str().as_encoded_bytes();
        let folder = bytes.get(..bytes.iter().rposition(|byte| *byte == b'/')?).filter(|_| !bytes.ends_with(b"/"))?;
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        if folders.last.as_ref().is_none_or(|(last, _)| last != folder) {
            let real = self.folder(&mut folders.known, path.parent()?);
            folders.last = Some((folder.to_owned(), real));
        }
        let (_, real) = folders.last.as_ref()?;
        Some(real.as_ref()?.join(path.file_name()?))
    }

    /// Where a folder is that links lead to; `None` where it is what it is called. The folders above it are looked at first.
    fn folder(&self, known: &mut HashMap<PathBuf, Option<PathBuf>>, folder: &Path) -> Option<PathBuf> {
        if let Some(real) = known.get(folder) {
            return real.clone();
        }
        let (above, name) = (folder.parent()?, folder.file_name()?);
        let here = self.folder(known, above).map(|above| above.join(name));
        let path = here.as_deref().unwrap_or(folder);
        let real = if path.is_symlink() { self.behind(path).or(here) } else { here };
        known.insert(folder.to_owned(), real.clone());
        real
    }

    /// Where a link below the root leads.
    fn behind(&self, link: &Path) -> Option<PathBuf> {
        if self.root == Path::new("/") {
            return link.canonicalize().ok();
        }
        let within = link.strip_prefix(&self.root).ok()?;
        SystemRoot::below(&self.root).at(within).real_directory().ok()?
    }
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
