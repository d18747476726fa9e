//! Documents that jobs work on, made ready to run.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value as Json;
use stead_core::diag::{count_errors, render_all};
use stead_core::event::Mode;
use stead_core::id::NodeId;
use stead_core::instance_path::InstancePath;
use stead_core::value::{Object, Value};
use stead_engine::{Host, Prepared, Session, SessionOptions, Unusable, error_chain, finding_line};

use crate::state::{Job, Work};
use crate::store::{Delivered, Documents};

/// A document that is ready to run, kept so that a job over a part of it need not read it again.
pub(crate) struct ReadyDocument {
    generation: u64,
    pub(super) session: Session,
    pub(super) prepared: Prepared,
    index: OnceCell<Index>,
}

/// Tables over a document, for jobs over a part of it.
struct Index {
    by_path: HashMap<String, NodeId>,
    acting: BTreeMap<NodeId, BTreeSet<NodeId>>,
}

/// The origin of the document of a job, from which it is made ready.
pub(crate) enum Source {
    /// It is ready.
    Kept(Box<ReadyDocument>),
    /// It is stored under this name.
    Stored(String),
}

/// The host, the stored documents and the document that was made ready last, which all jobs of an agent share.
pub(crate) struct JobHost {
    pub(crate) host: Host,
    pub(crate) documents: Arc<Documents>,
    ready: Mutex<Option<ReadyDocument>>,
    /// The warnings of the last job about things that its document does not have any more, and its generation.
    warned: Mutex<(u64, Vec<String>)>,
}

impl JobHost {
    pub(crate) fn new(host: Host, documents: Arc<Documents>) -> Self {
        Self { host, documents, ready: Mutex::default(), warned: Mutex::default() }
    }

    /// The document of a job: for a job over all of it made ready anew, since what it asks of the machine may have changed.
    pub(crate) fn source(&self, job: &Job, content: &str) -> Source {
        let ready = self.lock().take();
        match ready.filter(|ready| ready.generation == job.generation && !job.only.is_empty()) {
            Some(ready) => Source::Kept(Box::new(ready)),
            None => Source::Stored(content.to_owned()),
        }
    }

    pub(super) fn make_ready(&self, spec: &super::JobSpec, source: Source) -> Result<ReadyDocument, Vec<String>> {
        let delivered = match source {
            Source::Kept(ready) => return Ok(*ready),
            Source::Stored(content) => self.documents.get(&content).map_err(|error| vec![error_chain(&error)])?,
        };
        let generation = spec.job.generation;
        let options = SessionOptions { labels: spec.settings.labels.clone(), ..SessionOptions::default() };
        let mut session = self.host.session_with(&delivered.root, options);
        match prepare(&mut session, &delivered) {
            Ok(mut prepared) => {
                if let Some(document) = &spec.document {
                    prepared.memory = Some(session.memory_of_things(self.documents.store(), document, spec.delivery));
                    self.account_for_removed(&spec.job, &mut session, &mut prepared);
                }
                Ok(ReadyDocument::new(generation, session, prepared))
            }
            Err(NotReady::Bundle(message)) => Err(vec![message]),
            Err(NotReady::Document(unusable)) => {
                Err(unusable.findings.iter().map(|finding| finding_line(finding, &session.sources)).collect())
            }
        }
    }

    /// Jobs over a whole document remove what it does not have any more, or say once why that stays.
    fn account_for_removed(&self, job: &Job, session: &mut Session, prepared: &mut Prepared) {
        if !job.only.is_empty() {
            return;
        }
        let known = prepared.warnings.len();
        session.account_for_removed(prepared, if job.work == Work::Test { Mode::TEST } else { Mode::APPLY });
        let new = prepared.warnings.iter().skip(known).map(|finding| finding_line(finding, &session.sources));
        let now = (job.generation, new.collect());
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if *warned != now {
            now.1.iter().for_each(|warning| tracing::warn!("{warning}"));
            *warned = now;
        }
    }

    pub(super) fn put_back(&self, ready: ReadyDocument) {
        *self.lock() = Some(ready);
    }

    fn lock(&self) -> MutexGuard<'_, Option<ReadyDocument>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes a delivered document ready to run, or says what is wrong with it: how many findings, as they are shown to users.
pub(crate) fn prepare_or_explain(session: &mut Session, delivered: &Delivered) -> Result<Prepared, (usize, String)> {
    let unusable = match prepare(session, delivered) {
        Ok(prepared) => return Ok(prepared),
        Err(NotReady::Bundle(message)) => return Err((1, format!("error: {message}\n"))),
        Err(NotReady::Document(unusable)) => *unusable,
    };
    let unusable = session.with_properties(unusable, Mode::PLAN);
    Err((count_errors(&unusable.findings), render_all(&unusable.findings, &session.sources, false)))
}

/// Why a delivered document is not ready to run.
enum NotReady {
    /// Its bundle cannot be used.
    Bundle(String),
    Document(Box<Unusable>),
}

fn prepare(session: &mut Session, delivered: &Delivered) -> Result<Prepared, NotReady> {
    let unusable = |error: &dyn std::error::Error| NotReady::Bundle(error_chain(error));
    let bundle = delivered.bundle().map_err(|error| unusable(&error))?;
    if let Some(bundle) = &bundle {
        session.open_bundle(bundle).map_err(|error| unusable(&error))?;
    }
    let supplied = match Value::from(Json::Object(delivered.parameters.clone())) {
        Value::Object(supplied) => supplied,
        _ => Object::new(),
    };
    let text = bundle.as_ref().map_or(delivered.text.as_str(), |bundle| bundle.document().1);
    session.prepare(&delivered.name, text, supplied).map_err(|unusable| NotReady::Document(Box::new(unusable)))
}

impl ReadyDocument {
    pub(super) fn new(generation: u64, session: Session, prepared: Prepared) -> Self {
        Self { generation, session, prepared, index: OnceCell::new() }
    }

    /// Returns this document for a run with other options.
    pub(super) fn with(self, change: impl FnOnce(&mut SessionOptions)) -> Self {
        Self { session: self.session.with(change), ..self }
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| {
            let graph = &self.prepared.graph;
            Index {
                by_path: graph.iter().map(|(id, node)| (node.path.to_string(), id)).collect(),
                acting: graph.acting(),
            }
        })
    }

    /// The instances of these paths, as far as the document has them.
    pub(super) fn known(&self, paths: &BTreeSet<String>) -> Vec<NodeId> {
        if paths.is_empty() {
            return Vec::new();
        }
        let by_path = &self.index().by_path;
        paths.iter().filter_map(|path| by_path.get(path).copied()).collect()
    }

    /// These instances, what acts on their changes, what either needs, and the containers around them.
    pub(super) fn selection(&self, wanted: Vec<NodeId>) -> BTreeSet<NodeId> {
        let (graph, acting) = (&self.prepared.graph, &self.index().acting);
        let (mut selected, mut open) = (BTreeSet::new(), wanted);
        while let Some(id) = open.pop() {
            if selected.insert(id) {
                open.extend(acting.get(&id).into_iter().flatten());
                open.extend(graph.node(id).needs.iter().map(|need| need.node));
                open.extend(graph.members(id));
            }
        }
        let around: Vec<NodeId> =
            selected.iter().flat_map(|id| graph.node(*id).path.outward().map(InstancePath::node)).collect();
        selected.extend(around);
        selected
    }
}
