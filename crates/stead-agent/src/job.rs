//! A job: one pass over a document, carried out so that it survives the end of the process.

mod announced;
mod explain;
mod suspension;

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use stead_core::call::{Outcome, Restart};
use stead_core::claims::Claims;
use stead_core::diag::{count_errors, render_all};
use stead_core::document::ConfigurationMode;
use stead_core::event::{Event, EventKind, Mode, SkipReason, Status};
use stead_core::graph::{Graph, Node, Role};
use stead_core::id::NodeId;
use stead_core::instance_path::InstancePath;
use stead_core::report::{Phase, Report};
use stead_core::run::policy::SinglePass;
use stead_core::run::{Exceptions, Owed, Run};
use stead_core::value::{Object, Value};
use stead_core::wait::{Curve, Wait};
use stead_engine::{
    Execution, Host, Prepared, ReconcileOptions, ResumeError, Session, Summary, Unusable, error_chain, finding_line,
    json as printed,
};
use stead_host::journal::{FileJournal, Journal, OpenJournalError, read};
use stead_host::process::own_unit;
use stead_host::provider::Cancel;
use stead_host::watch::Watched;

use crate::decide::HeldBack;
use crate::mode::{Standing, Treatment, treatment};
use crate::settings::Settings;
use crate::state::{Generation, Job, JobOutcome, JobResult, LeftOver, State, Work};
use crate::store::Delivered;
use crate::store::StoreError;
use crate::touched::Touched;
use announced::Announced;
use explain::has_failed_so_far;
pub(crate) use suspension::{SuspendReason, Suspension};

/// What a job works on, and how.
pub(crate) struct JobSpec {
    pub(crate) job: Job,
    pub(crate) rules: Rules,
    pub(crate) settings: Settings,
    /// Instances that are owed a notification.
    pub(crate) owed: Owed,
    /// Instances that are left out.
    pub(crate) quarantined: BTreeSet<String>,
    /// Whether the job was begun before, by another process in the same boot of the machine.
    pub(crate) resumed: bool,
    /// How many instances are worked on at once; 0 for as many as there are processors.
    pub(crate) width: u32,
    /// Why it only tests what its document allows to be corrected.
    pub(crate) held_back: Option<HeldBack>,
    /// The claims of the pending document: instances that overlap with them are tested, not corrected.
    pub(crate) touched: Option<Touched>,
    pub(crate) suspension: Suspension,
}

/// What is done with which instances.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rules {
    /// The mode of instances that do not state one.
    pub(crate) mode: ConfigurationMode,
    /// Where the document stands.
    pub(crate) standing: Standing,
}

impl Rules {
    pub(crate) fn of(state: &State, number: u64, generation: &Generation) -> Self {
        Self { mode: state.mode_of(generation), standing: state.standing(number) }
    }
}

/// What is seen of a job while it goes on.
pub(crate) trait Observer: Send + Sync {
    /// Something happened; `settled` of `all` instances have ended.
    fn event(&self, event: &Event, settled: usize, all: usize);

    /// Something is about to be set by a job over a part. Returns once it survives a power failure that the job is under
    /// way.
    fn announce(&self) -> io::Result<()>;

    /// Returns whether the machine may be changed at this moment.
    fn may_change(&self) -> bool;

    /// Reports the run that the job waits for; `None` when it continues.
    fn waits(&self, whom: Option<&str>);
}

/// How a job ended.
pub(crate) struct Ended {
    pub(crate) outcome: JobOutcome,
    /// The report, without secrets.
    pub(crate) report: Json,
    /// What the instances that are looked after manage.
    pub(crate) watched: Vec<Watched>,
    /// The instances that were changed, by their paths.
    pub(crate) changed: Vec<String>,
    /// True if a resource asks for a restart of the agent's own service.
    pub(crate) restarts_itself: bool,
    /// The claims of all its instances, if the job covered all of a document that is applied.
    pub(crate) claims: Option<Vec<Claims>>,
}

/// A document that is ready to run, kept so that a job over a part of it need not read it again.
pub(crate) struct ReadyDocument {
    generation: u64,
    session: Session,
    prepared: Prepared,
    index: OnceCell<Index>,
}

/// What is looked up in a document by a job over a part of it.
struct Index {
    by_path: HashMap<String, NodeId>,
    /// What acts on the changes of an instance.
    acting: HashMap<NodeId, Vec<NodeId>>,
}

/// What the document of a job is made ready from.
pub(crate) enum Source {
    /// It is ready.
    Kept(Box<ReadyDocument>),
    /// It is read.
    Delivered(Delivered),
}

/// What jobs of an agent have in common.
pub(crate) struct JobHost {
    pub(crate) host: Host,
    pub(crate) ready: Mutex<Option<ReadyDocument>>,
}

/// Why a job came to no end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JobError {
    /// Its journal cannot be used. What it owed is not known: all that may be owed a notification is named.
    #[error("cannot resume the job; another one begins")]
    Journal {
        owed: Owed,
        #[source]
        source: JournalProblem,
    },
}

/// What is wrong with a journal.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalProblem {
    #[error(transparent)]
    Open(#[from] OpenJournalError),
    #[error(transparent)]
    Resume(#[from] ResumeError),
}

/// What the journal of an interrupted job tells without its document.
#[derive(Default)]
pub(crate) struct JournalSummary {
    /// The instances that were being worked on, by their paths.
    pub(crate) in_flight: Vec<String>,
    /// The instances that had asked for a restart of the machine, by their paths.
    pub(crate) restart: BTreeSet<String>,
    /// Whether anything was set.
    has_set: bool,
}

/// Reads the journal of an interrupted job. One that cannot be read tells nothing.
pub(crate) fn journal_summary(journal: &Path) -> JournalSummary {
    let Some(events) = std::fs::read(journal).ok().and_then(|bytes| read(&bytes).ok()) else {
        return JournalSummary::default();
    };
    let report = Report::of(&events);
    let in_flight = report.records().iter().filter(|record| matches!(record.phase, Phase::InFlight(..)));
    JournalSummary {
        in_flight: in_flight.filter_map(|record| record.instance.as_ref()).map(ToString::to_string).collect(),
        restart: asked_for_restart(&report).collect(),
        has_set: report.records().iter().any(|record| record.sets > 0),
    }
}

/// What a job leaves to be done that is given up: what it owes by its journal, or where that cannot be read, everything that
/// it may owe.
pub(crate) fn left_over(job_host: &JobHost, spec: &JobSpec, source: Source, journal: &Path) -> LeftOver {
    let restart = journal_summary(journal).restart;
    let Ok(ready) = job_host.make_ready(spec, source) else { return LeftOver { owed: spec.owed.clone(), restart } };
    let events = FileJournal::resume(journal).map(|(_, events)| events);
    // Nothing is begun: what the journal says is all that is wanted.
    ready.session.suspend.cancel();
    let none: &dyn Observer = &NoObserver;
    let run = events.ok().and_then(|events| {
        let execution = spec.execution(&ready, Mode::APPLY, none);
        ready.session.resume(&ready.prepared, &events, execution).ok()
    });
    let owed = run.map_or_else(|| spec.may_be_owed(&ready), |run| spec.still_owed(&run));
    LeftOver { owed, restart }
}

/// Looks at nothing.
struct NoObserver;

impl Observer for NoObserver {
    fn event(&self, _: &Event, _: usize, _: usize) {}

    fn announce(&self) -> io::Result<()> {
        Ok(())
    }

    fn may_change(&self) -> bool {
        true
    }

    fn waits(&self, _: Option<&str>) {}
}

/// Carries out a job. `cancel` ends it; its suspension stops it so that it can be resumed.
pub(crate) fn carry_out(
    job_host: &JobHost,
    spec: &JobSpec,
    source: Source,
    journal: &Path,
    cancel: Cancel,
    observer: &dyn Observer,
) -> Result<Ended, JobError> {
    let mut ready = match job_host.make_ready(spec, source) {
        Ok(ready) => ready,
        Err(lines) => return Ok(unusable(spec, &lines)),
    };
    (ready.session.cancel, ready.session.suspend) = (cancel, spec.suspension.cancel.clone());
    ready.session.deadline = spec.settings.resource_timeout;
    let ended = spec.run(&ready, journal, observer);
    job_host.put_back(ready);
    ended
}

impl JobHost {
    /// The document of a job: for a job over all of it made ready anew, since what it asks of the machine may have changed.
    pub(crate) fn source(
        &self,
        job: &Job,
        read: impl FnOnce() -> Result<Delivered, StoreError>,
    ) -> Result<Source, StoreError> {
        match self.lock().take().filter(|ready| ready.generation == job.generation && !job.only.is_empty()) {
            Some(ready) => Ok(Source::Kept(Box::new(ready))),
            None => read().map(Source::Delivered),
        }
    }

    fn make_ready(&self, spec: &JobSpec, source: Source) -> Result<ReadyDocument, Vec<String>> {
        let delivered = match source {
            Source::Kept(ready) => return Ok(*ready),
            Source::Delivered(delivered) => delivered,
        };
        let generation = spec.job.generation;
        let mut session = self.host.session(&delivered.root);
        match prepare(&mut session, &delivered) {
            Ok(prepared) => Ok(ReadyDocument { generation, session, prepared, index: OnceCell::new() }),
            Err(NotReady::Bundle(message)) => Err(vec![message]),
            Err(NotReady::Document(unusable)) => {
                Err(unusable.findings.iter().map(|finding| finding_line(finding, &session.sources)).collect())
            }
        }
    }

    fn put_back(&self, ready: ReadyDocument) {
        *self.lock() = Some(ready);
    }

    fn lock(&self) -> MutexGuard<'_, Option<ReadyDocument>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum ApplyError {
    Journal(JournalProblem),
    Run(String),
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

/// A job over a document that was valid when it was delivered and is not any more.
fn unusable(spec: &JobSpec, findings: &[String]) -> Ended {
    let JobSpec { job, owed, .. } = spec;
    let outcome = JobOutcome::unusable(owed.clone(), findings.first().cloned().unwrap_or_default());
    let report = json!({ "job": job, "result": outcome.result, "errors": findings });
    Ended { outcome, report, watched: Vec::new(), changed: Vec::new(), restarts_itself: false, claims: None }
}

/// The instances that asked for a restart of the machine.
fn asked_for_restart(report: &Report) -> impl Iterator<Item = String> {
    let asked = report.records().iter().filter(|record| {
        record.response.as_deref().is_some_and(|response| {
            matches!(response.outcome, Outcome::Changed(_)) && response.restarts.iter().any(is_system)
        })
    });
    asked.filter_map(|record| record.instance.as_ref()).map(ToString::to_string)
}

fn asks_for_own_restart(report: &Report) -> bool {
    let services = report.restarts.iter().filter_map(|restart| match restart {
        Restart::Service(name) => Some(name),
        Restart::System(_) | Restart::Process { .. } => None,
    });
    let mut services = services.peekable();
    services.peek().is_some() && own_unit().is_some_and(|own| services.any(|name| *name == own))
}

fn is_system(restart: &Restart) -> bool {
    matches!(restart, Restart::System(_))
}

impl JobSpec {
    fn run(&self, ready: &ReadyDocument, journal: &Path, observer: &dyn Observer) -> Result<Ended, JobError> {
        let (began, session) = (Instant::now(), &ready.session);
        if self.job.work == Work::Test {
            let run = session.run(&ready.prepared, self.execution(ready, Mode::TEST, observer));
            return Ok(match run {
                Ok(run) => self.ended(session, &run, began.elapsed()),
                Err(error) => unusable(self, &[error_chain(&error)]),
            });
        }
        match self.apply(ready, journal, observer) {
            Ok(run) => Ok(self.ended(session, &run, began.elapsed())),
            Err(ApplyError::Journal(source)) => Err(JobError::Journal { owed: self.may_be_owed(ready), source }),
            Err(ApplyError::Run(message)) => Ok(self.broken_off(ready, journal, message)),
        }
    }

    /// A job that could not go on, because its journal could not be written or the machine not locked. What it had done by
    /// then still asks for a restart, and may be owed notifications.
    fn broken_off(&self, ready: &ReadyDocument, journal: &Path, message: String) -> Ended {
        let JournalSummary { restart, has_set, .. } = journal_summary(journal);
        let mut ended = unusable(self, &[message]);
        ended.outcome.restart = restart;
        if has_set {
            ended.outcome.owed = self.may_be_owed(ready);
        }
        ended
    }

    fn apply(&self, ready: &ReadyDocument, path: &Path, observer: &dyn Observer) -> Result<Run, ApplyError> {
        let ReadyDocument { session, prepared, .. } = ready;
        let failed = |error: OpenJournalError| ApplyError::Journal(error.into());
        let execution = self.execution(ready, Mode::APPLY, observer);
        // The process may have ended before it created the journal; then nothing was begun.
        if self.resumed && path.exists() {
            let (journal, events) = FileJournal::resume(path).map_err(failed)?;
            let execution = Execution { journal: Box::new(journal), ..execution };
            // Nothing more is begun before the machine was restarted.
            if asked_for_restart(&Report::of(&events)).next().is_some() {
                self.suspension.suspend(SuspendReason::Restart);
            }
            return match session.resume(prepared, &events, execution) {
                Ok(run) => Ok(run),
                Err(ResumeError::Execute(error)) => Err(ApplyError::Run(error_chain(&error))),
                Err(error @ ResumeError::Journal(_)) => Err(ApplyError::Journal(error.into())),
            };
        }
        let journal: Box<dyn Journal> = if self.job.only.is_empty() {
            Box::new(FileJournal::create(path).map_err(failed)?)
        } else {
            Box::new(Announced::new(observer, path))
        };
        let execution = Execution { journal, ..execution };
        session.run(prepared, execution).map_err(|error| ApplyError::Run(error_chain(&error)))
    }

    fn execution<'a>(&self, ready: &ReadyDocument, mode: Mode, observer: &'a dyn Observer) -> Execution<'a> {
        let session = &ready.session;
        let width = usize::try_from(self.width).ok().and_then(NonZeroUsize::new).unwrap_or(session.host().width());
        let wait = self.settings.resource_backoff;
        let curve = Curve::Exponential { wait: wait.base, multiplier: 2.0 };
        let stated = &ready.prepared.reconcile;
        // What the document says is about this document; the settings are about all.
        let usual = ReconcileOptions {
            wait: stated.wait.is_none().then(|| Wait { cap: wait.cap, ..Wait::of(curve) }),
            max_pending_reruns: stated.max_pending_reruns.is_none().then_some(self.settings.resource_retries),
            max_unchanged_reruns: stated.max_unchanged_reruns.is_none().then_some(u32::MAX),
            ..ReconcileOptions::default()
        };
        // Preparing the document has refused what does not exist.
        let policy = session.policy(&usual, stated).unwrap_or_else(|_| Arc::new(SinglePass));
        let suspension = self.suspension.clone();
        let mut settled = 0;
        let exceptions = self.exceptions(ready);
        let all = exceptions.selected.as_ref().map_or(ready.prepared.graph.nodes.len(), |selected| selected.len());
        let windows = suspension.clone();
        Execution {
            policy,
            exceptions,
            permit: Box::new(move || {
                let may_change = observer.may_change();
                if !may_change {
                    windows.suspend(SuspendReason::Window);
                }
                may_change
            }),
            waits: Box::new(|whom| observer.waits(whom)),
            ..Execution::new(mode, width).consumer(move |_, event| {
                match &event.kind {
                    EventKind::Settled { .. } => settled += 1,
                    // Nothing more is begun before the machine was restarted.
                    EventKind::CallEnded { response, .. }
                        if matches!(response.outcome, Outcome::Changed(_))
                            && response.restarts.iter().any(is_system) =>
                    {
                        suspension.suspend(SuspendReason::Restart);
                    }
                    _ => {}
                }
                observer.event(event, settled, all);
            })
        }
    }

    fn exceptions(&self, ready: &ReadyDocument) -> Exceptions {
        let graph = &ready.prepared.graph;
        let mut exceptions = Exceptions {
            selected: self.selected(ready).map(Arc::new),
            owed: ready.known(&self.owed).into_iter().collect(),
            ..Exceptions::default()
        };
        let all: Vec<NodeId> = match &exceptions.selected {
            Some(selected) => selected.iter().copied().collect(),
            None => graph.iter().map(|(id, _)| id).collect(),
        };
        for id in all.into_iter().filter(|id| graph.node(*id).role == Role::Instance) {
            match treatment(self.rules.standing, mode_of(graph, id).unwrap_or(self.rules.mode)) {
                Treatment::Set => {}
                Treatment::Test => drop(exceptions.tested.insert(id)),
                Treatment::Skip => drop(exceptions.skipped.insert(id, SkipReason::LeftAlone)),
            }
        }
        exceptions.tested.extend(self.left_alone(ready, &exceptions));
        let quarantined = ready.known(&self.quarantined);
        exceptions.skipped.extend(quarantined.into_iter().map(|id| (id, SkipReason::Quarantined)));
        exceptions
    }

    /// Returns the instances that are only tested, because the pending document may change them.
    fn left_alone(&self, ready: &ReadyDocument, exceptions: &Exceptions) -> Vec<NodeId> {
        let Some(touched) = self.touched.as_ref().filter(|_| self.job.work == Work::Apply) else { return Vec::new() };
        let graph = &ready.prepared.graph;
        let is_set = |id: &NodeId| {
            let is_selected = exceptions.selected.as_ref().is_none_or(|selected| selected.contains(id));
            is_selected && graph.node(*id).role == Role::Instance && !exceptions.tested.contains(id)
        };
        let set: Vec<NodeId> = graph.order.iter().copied().filter(is_set).collect();
        let claims: HashMap<NodeId, Claims> =
            ready.session.stated_claims(graph, set.iter().copied()).into_iter().collect();
        let may_change = |id: &NodeId| touched.may_change(&graph.node(*id).path.to_string(), claims.get(id));
        set.into_iter().filter(may_change).collect()
    }

    /// What a job over a part is about.
    fn selected(&self, ready: &ReadyDocument) -> Option<BTreeSet<NodeId>> {
        (!self.job.only.is_empty()).then(|| ready.selection(ready.known(&self.job.only)))
    }

    /// Every instance of the job that waits for changes of others, and what was owed before.
    fn may_be_owed(&self, ready: &ReadyDocument) -> Owed {
        let selected = self.selected(ready);
        let is_selected = |id: &NodeId| selected.as_ref().is_none_or(|selected| selected.contains(id));
        let graph = &ready.prepared.graph;
        let all = graph.notified().filter(is_selected).map(|id| graph.node(id).path.to_string());
        all.chain(self.owed.iter().cloned()).collect()
    }

    /// What is owed a notification afterwards: by this job, or by an earlier one to what this one left out.
    fn still_owed(&self, run: &Run) -> Owed {
        let graph = run.graph();
        let mut owed: Owed = run.owed().iter().map(ToString::to_string).collect();
        if self.job.work == Work::Test {
            // An instance that is no longer in the document is owed nothing.
            owed.extend(graph.known(&self.owed).iter().map(|id| graph.node(*id).path.to_string()));
        }
        owed
    }

    /// What the instances manage that are looked after once the document is current. A job over a part knows too little.
    fn watched(&self, session: &Session, run: &Run) -> Vec<Watched> {
        if !self.job.only.is_empty() {
            return Vec::new();
        }
        let graph = run.graph();
        let is_looked_after = |id: NodeId| {
            let mode = mode_of(graph, id).unwrap_or(self.rules.mode);
            let is_wanted = run.report().status(id) != Some(&Status::Skipped(SkipReason::Condition));
            is_wanted && treatment(Standing::Current, mode) != Treatment::Skip
        };
        let mut claims: HashMap<NodeId, Claims> = session.claims(run).into_iter().collect();
        let instances = graph.iter().filter(|(id, node)| node.role == Role::Instance && is_looked_after(*id));
        // What has no claims cannot be watched, which is said.
        let watched = |(id, node): (NodeId, &Node)| Watched {
            instance: node.path.to_string(),
            claims: claims.remove(&id).unwrap_or_default(),
        };
        instances.map(watched).collect()
    }

    fn ended(&self, session: &Session, run: &Run, elapsed: Duration) -> Ended {
        let report = run.report();
        let (mut failed, mut drifted, mut instances) = (false, false, 0);
        for (id, node) in run.graph().iter().filter(|(id, _)| report.is_selected(*id)) {
            let status = report.status(id);
            failed |= status.is_some_and(Status::blocks) && node.role == Role::Instance;
            failed |= failed_container(run, id) || node.role == Role::Instance && has_failed_so_far(run, id);
            drifted |= status == Some(&Status::Drifted);
            instances += u64::from(node.role == Role::Instance);
        }
        let restart: BTreeSet<String> = asked_for_restart(report).collect();
        let owed = self.still_owed(run);
        let is_current = self.rules.standing == Standing::Current;
        let result = match () {
            () if report.cancelled || report.suspended && restart.is_empty() => JobResult::Aborted,
            () if failed => JobResult::Failed,
            // What asked for a restart is in its desired state when a test after that says so.
            () if !restart.is_empty() || !owed.is_empty() => JobResult::NotInState,
            () if drifted && (self.job.work == Work::Test || is_current) => JobResult::NotInState,
            () => JobResult::Converged,
        };
        let mut printed = printed::report(run, &Summary::of(run), elapsed);
        let troubles = self.explain(run, &restart, &mut printed);
        if let Some(members) = printed.as_object_mut() {
            members.insert("job".to_owned(), json!(self.job));
            members.insert("result".to_owned(), json!(result));
            // What is changed in a current document was changed by somebody else before.
            members.insert("corrective".to_owned(), json!(is_current));
        }
        let not_in_state = troubles.len() as u64;
        let outcome = JobOutcome { result, restart, owed, not_in_state, instances, troubles, error: None };
        let changed = run.graph().iter().filter(|(id, _)| report.status(*id) == Some(&Status::Changed));
        let is_whole = self.job.only.is_empty() && self.job.work == Work::Apply;
        Ended {
            outcome,
            report: printed,
            watched: self.watched(session, run),
            changed: changed.map(|(_, node)| node.path.to_string()).collect(),
            restarts_itself: asks_for_own_restart(report),
            claims: is_whole.then(|| session.claims(run).into_iter().map(|(_, claims)| claims).collect()),
        }
    }
}

impl ReadyDocument {
    fn index(&self) -> &Index {
        self.index.get_or_init(|| {
            let graph = &self.prepared.graph;
            let mut acting: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
            for (id, _) in graph.iter() {
                for source in graph.notified_by(id) {
                    acting.entry(source).or_default().push(id);
                }
            }
            Index { by_path: graph.iter().map(|(id, node)| (node.path.to_string(), id)).collect(), acting }
        })
    }

    /// The instances of these paths, as far as the document has them.
    fn known(&self, paths: &BTreeSet<String>) -> Vec<NodeId> {
        if paths.is_empty() {
            return Vec::new();
        }
        let by_path = &self.index().by_path;
        paths.iter().filter_map(|path| by_path.get(path).copied()).collect()
    }

    /// These instances, what acts on their changes, what either needs, and the containers around them.
    fn selection(&self, wanted: Vec<NodeId>) -> BTreeSet<NodeId> {
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

/// The mode that an instance states, or a container around it.
fn mode_of(graph: &Graph, id: NodeId) -> Option<ConfigurationMode> {
    let stated = |id: NodeId| graph.declaration(id).directives().configuration_mode.as_ref().map(|mode| mode.value);
    graph.node(id).path.outward().find_map(|path| stated(path.node()))
}

/// Every mode that an instance of a document states.
pub(crate) fn modes_of(graph: &Graph) -> BTreeSet<ConfigurationMode> {
    graph.iter().filter_map(|(id, _)| mode_of(graph, id)).collect()
}

fn failed_container(run: &Run, id: NodeId) -> bool {
    run.graph().node(id).role != Role::Instance && run.report().status(id) == Some(&Status::Failed)
}
