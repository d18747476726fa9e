//! The contexts that calls are carried out in.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stead_core::expr::Template;
use stead_core::graph::{Graph, Node, Scope};
use stead_core::id::NodeId;
use stead_core::instance_path::InstancePath;
use stead_core::text::{Kind, Span};
use stead_host::bundle::FilesWithin;
use stead_host::provider::{Context, TraceLevel, undotted};
use tracing::level_filters::LevelFilter;

/// The contexts of the calls of each instance, without the name of the instance.
pub(crate) struct Contexts {
    pub(crate) usual: Context,
    /// For those of documents that lie in other folders than the outermost one; one for each scope.
    within: HashMap<NodeId, Arc<Context>>,
    /// Those of calls that have ended: to make one takes as long as many a call.
    idle: Mutex<Vec<Context>>,
    /// True for instances of a document; false for a single call, whose caller knows what it is about.
    is_document: bool,
}

impl Contexts {
    pub(crate) fn new(usual: Context, graph: &Graph) -> Self {
        let made = if usual.manages_running_system() { Arc::default() } else { made_by(graph) };
        let usual = Context { made, ..usual };
        let is_elsewhere = |scope: &Scope| !scope.folder.is_empty();
        let is_document = graph.iter().any(|(id, _)| graph.declaration(id).span != Span::default());
        if !graph.scopes.iter().any(is_elsewhere) {
            return Self { usual, within: HashMap::new(), idle: Mutex::default(), is_document };
        }
        let context = |scope: &Scope| is_elsewhere(scope).then(|| Arc::new(in_folder(&usual, &scope.folder)));
        let folders: Vec<Option<Arc<Context>>> = graph.scopes.iter().map(context).collect();
        let context = |(id, node): (NodeId, &Node)| Some((id, folders.get(node.scope.index())?.clone()?));
        Self { within: graph.iter().filter_map(context).collect(), usual, idle: Mutex::default(), is_document }
    }

    pub(crate) fn of(&self, id: NodeId) -> &Context {
        self.within.get(&id).map_or(&self.usual, |context| context)
    }

    /// A context for one call of an instance, of which what belongs to the call is still that of another.
    pub(crate) fn lend(&self, id: NodeId) -> Context {
        match self.within.get(&id) {
            Some(context) => Context::clone(context),
            None => self.idle().pop().unwrap_or_else(|| self.usual.clone()),
        }
    }

    /// The call has ended.
    pub(crate) fn take_back(&self, id: NodeId, context: Context) {
        if !self.within.contains_key(&id) {
            self.idle().push(context);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Context>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The instance that warnings and errors of a call name: one of a document.
    pub(crate) fn named(&self, instance: &InstancePath) -> Option<InstancePath> {
        self.is_document.then(|| instance.clone())
    }
}

/// The relative paths at which the instances of a graph create something, but for those that create it of what lies beside the
/// document at that path.
fn made_by(graph: &Graph) -> Arc<[PathBuf]> {
    let relative = |properties: &Template, property| {
        let Kind::String(text) = &properties.get(property)?.kind else { return None };
        Some(undotted(Path::new(&**text))).filter(|path| path.is_relative())
    };
    let made = |id: NodeId| {
        let properties = graph.declaration(id).properties.as_ref()?;
        let path = relative(properties, "path")?;
        let is_its_source = relative(properties, "source").is_some_and(|source| source.starts_with(&path));
        let is_absent = properties.get("_exist").is_some_and(|exist| matches!(exist.kind, Kind::Bool(false)));
        (!is_its_source && !is_absent).then_some(path)
    };
    graph.iter().filter_map(|(id, _)| made(id)).collect()
}

/// Returns the context for a document in a folder below that of the outermost one, given the context of the outermost
/// one.
pub(crate) fn in_folder(cx: &Context, folder: &Arc<str>) -> Context {
    let within = |files: &Arc<FilesWithin>| FilesWithin { files: Arc::clone(&files.files), folder: Arc::clone(folder) };
    let files = cx.files.as_ref().map(within).map(Arc::new);
    Context { root: cx.root.join(&**folder).into(), files, ..cx.clone() }
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

/// How much of what [`forward`] is given is printed by anybody.
pub(crate) fn shown() -> TraceLevel {
    match LevelFilter::current().into_level() {
        None | Some(tracing::Level::ERROR) => TraceLevel::Error,
        Some(tracing::Level::WARN) => TraceLevel::Warn,
        Some(tracing::Level::INFO) => TraceLevel::Info,
        Some(tracing::Level::DEBUG) => TraceLevel::Debug,
        Some(_) => TraceLevel::Trace,
    }
}
