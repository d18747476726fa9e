//! A job: one pass over a document, carried out so that it survives the end of the process.

mod announced;
mod explain;
mod interrupted;
mod owing;
mod ready;
mod suspension;

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use stead_core::call::{Outcome, Response, Restart};
use stead_core::claims::Claims;
use stead_core::document::ConfigurationMode;
use stead_core::event::{Event, EventKind, Mode, SkipReason, Status};
use stead_core::graph::{Graph, Node, Role};
use stead_core::id::NodeId;
use stead_core::identity::DocumentIdentity;
use stead_core::report::Report;
use stead_core::run::policy::SinglePass;
use stead_core::run::{Exceptions, Owed, Run};
use stead_core::wait::{Curve, Wait};
use stead_engine::{Delivery, ReconcileOptions, ResumeError, RunOptions, Session, error_chain};
use stead_host::journal::{FileJournal, Journal, OpenJournalError};
use stead_system::Cancel;
use stead_system::process::own_unit;
use stead_system::watch::Watched;

use crate::control::MachineStatus;
use crate::decide::HeldBack;
use crate::mode::{Standing, Treatment, treatment};
use crate::settings::Settings;
use crate::state::{AgentState, Generation, Job, JobOutcome, JobResult, Settled, Work};
use crate::touched::Touched;
use announced::Announced;
use explain::has_failed_so_far;
use interrupted::asked_for_restart;
pub(crate) use interrupted::{JournalSummary, journal_summary};
use owing::Owing;
pub(crate) use ready::{JobHost, ReadyDocument, Source, prepare_or_explain};
pub(crate) use suspension::{SuspendReason, Suspension};

/// The subject of a job, and how it is carried out.
pub(crate) struct JobSpec {
    pub(crate) job: Job,
    /// The identity of its document, by which is kept what it manages.
    pub(crate) document: Option<DocumentIdentity>,
    /// Its number, and that of the former one which it restores.
    pub(crate) delivery: Delivery,
    pub(crate) rules: Rules,
    pub(crate) settings: Settings,
    /// Instances that are owed a notification in this document.
    pub(crate) owed: Owed,
    /// Those that the job has recorded itself as owed one.
    pub(crate) intended: Mutex<Owed>,
    /// Instances that are left out.
    pub(crate) quarantined: BTreeSet<String>,
    /// Those that left a program running, and are left out as well.
    pub(crate) withheld: BTreeSet<String>,
    /// Those that left one running in an earlier delivery: what they find is not to be relied on.
    pub(crate) uncertain: BTreeSet<String>,
    /// True if the job was begun before, by another process in the same boot of the machine.
    pub(crate) resumed: bool,
    /// How many instances are worked on at once; 0 for as many as there are processors.
    pub(crate) width: u32,
    /// Why it only tests what its document allows to be corrected.
    pub(crate) held_back: Option<HeldBack>,
    /// The claims of the pending document: instances that overlap with them are tested, not corrected.
    pub(crate) touched: Option<Touched>,
    pub(crate) suspension: Suspension,
}

/// The treatment of the instances of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rules {
    /// The mode of instances that do not state one.
    pub(crate) mode: ConfigurationMode,
    /// Where the document stands.
    pub(crate) standing: Standing,
}

impl Rules {
    pub(crate) fn of(state: &AgentState, number: u64, generation: &Generation) -> Self {
        Self { mode: state.mode_of(generation), standing: state.standing(number) }
    }
}

/// The receiver of the events of a job while it goes on.
pub(crate) trait Observer: Send + Sync {
    /// Something happened; `settled` of `all` instances have ended.
    fn event(&self, event: &Event, settled: usize, all: usize);

    /// Something is about to be set whose change these instances act on. Returns once it survives a power failure that they
    /// are owed a notification.
    fn owes(&self, instances: &Owed) -> io::Result<()>;

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
    /// The claims of the instances that are watched from now on.
    pub(crate) watched: Vec<Watched>,
    /// The instances that were changed, by their paths.
    pub(crate) changed: Vec<String>,
    /// True if a resource asks for a restart of the agent's own service.
    pub(crate) restarts_itself: bool,
    /// The claims of all its instances, if the job covered all of a document that is applied.
    pub(crate) claims: Option<Vec<Claims>>,
}

impl Ended {
    /// Adds to the report whose it is.
    fn by_this_machine(mut self, settings: &Settings) -> Self {
        if let Some(members) = self.report.as_object_mut() {
            members.insert("machine".to_owned(), json!(MachineStatus::now(&settings.labels)));
        }
        self
    }
}

/// The mistake in a journal.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalProblem {
    #[error(transparent)]
    Open(#[from] OpenJournalError),
    #[error(transparent)]
    Resume(#[from] ResumeError),
}

/// Carries out a job. `cancel` ends it; its suspension stops it so that it can be resumed.
pub(crate) fn carry_out(
    job_host: &JobHost,
    spec: &JobSpec,
    source: Source,
    journal: &Path,
    cancel: Cancel,
    observer: &dyn Observer,
) -> Result<Ended, JournalProblem> {
    let ready = match job_host.make_ready(spec, source) {
        Ok(ready) => ready,
        Err(lines) => return Ok(unusable(spec, &lines).by_this_machine(&spec.settings)),
    };
    let ready = ready.with(|options| {
        (options.cancel, options.suspend) = (cancel, spec.suspension.cancel.clone());
        options.end_reads = spec.suspension.end_reads.clone();
        options.deadline = Some(spec.settings.resource_timeout);
    });
    let ended = spec.run(&ready, journal, observer);
    job_host.put_back(ready);
    ended.map(|ended| ended.by_this_machine(&spec.settings))
}

enum ApplyError {
    Journal(JournalProblem),
    Run(String),
}

/// A job over a document that was valid when it was delivered and is not any more.
fn unusable(spec: &JobSpec, findings: &[String]) -> Ended {
    let outcome = JobOutcome::unusable(findings.first().cloned().unwrap_or_default());
    let report = json!({ "job": spec.job, "result": outcome.result, "errors": findings });
    Ended { outcome, report, watched: Vec::new(), changed: Vec::new(), restarts_itself: false, claims: None }
}

fn asks_for_own_restart(report: &Report) -> bool {
    let services = report.restarts.iter().filter_map(|restart| match restart {
        Restart::Service(name) => Some(name),
        Restart::System(_) | Restart::Process { .. } => None,
    });
    let mut services = services.peekable();
    services.peek().is_some() && own_unit().is_some_and(|own| services.any(|name| *name == own))
}

/// A set that asked for it and failed then asked for it all the same.
fn asks_for_restart(response: &Response) -> bool {
    matches!(response.outcome, Outcome::Changed(_) | Outcome::Failed(_)) && response.restarts.iter().any(is_system)
}

fn is_system(restart: &Restart) -> bool {
    matches!(restart, Restart::System(_))
}

impl JobSpec {
    fn run(&self, ready: &ReadyDocument, journal: &Path, observer: &dyn Observer) -> Result<Ended, JournalProblem> {
        let (began, session) = (Instant::now(), &ready.session);
        if self.job.work == Work::Test {
            let run = session.run(&ready.prepared, self.execution(ready, Mode::TEST, observer));
            return Ok(match run {
                Ok(run) => self.ended(ready, &run, began.elapsed()),
                Err(error) => unusable(self, &[error_chain(&error)]),
            });
        }
        match self.apply(ready, journal, observer) {
            Ok(run) => Ok(self.ended(ready, &run, began.elapsed())),
            Err(ApplyError::Journal(problem)) => Err(problem),
            Err(ApplyError::Run(message)) => Ok(self.broken_off(journal, message)),
        }
    }

    /// A job that could not go on, because its journal could not be written or the machine not locked. What it had done by
    /// then still asks for a restart, and what it owes is recorded.
    fn broken_off(&self, journal: &Path, message: String) -> Ended {
        let mut ended = unusable(self, &[message]);
        ended.outcome.restart = journal_summary(journal).restart;
        ended
    }

    fn apply(&self, ready: &ReadyDocument, path: &Path, observer: &dyn Observer) -> Result<Run, ApplyError> {
        let ReadyDocument { session, prepared, .. } = ready;
        let failed = |error: OpenJournalError| ApplyError::Journal(error.into());
        let execution = self.execution(ready, Mode::APPLY, observer);
        // The process may have ended before it created the journal; then nothing was begun.
        if self.resumed && path.exists() {
            let (journal, events) = FileJournal::resume(path).map_err(failed)?;
            let journal = Box::new(Owing::new(self, ready, observer, path, Box::new(journal)));
            let execution = RunOptions { journal, ..execution };
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
        let journal = Box::new(Owing::new(self, ready, observer, path, journal));
        let execution = RunOptions { journal, ..execution };
        session.run(prepared, execution).map_err(|error| ApplyError::Run(error_chain(&error)))
    }

    fn execution<'a>(&self, ready: &ReadyDocument, mode: Mode, observer: &'a dyn Observer) -> RunOptions<'a> {
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
        RunOptions {
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
            uncertain: self.uncertain.clone(),
            ..RunOptions::new(mode, width).consumer(move |_, event| {
                match &event.kind {
                    EventKind::Settled { .. } => settled += 1,
                    // Nothing more is begun before the machine was restarted.
                    EventKind::CallEnded { response, .. } if asks_for_restart(response) => {
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
        let withheld = ready.known(&self.withheld);
        exceptions.skipped.extend(withheld.into_iter().map(|id| (id, SkipReason::Withheld)));
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

    /// Returns the instances that a job over a part is about.
    fn selected(&self, ready: &ReadyDocument) -> Option<BTreeSet<NodeId>> {
        (!self.job.only.is_empty()).then(|| ready.selection(ready.known(&self.job.only)))
    }

    /// Returns the paths of the instances of this document that are still owed a notification after the job.
    fn still_owed(&self, run: &Run) -> Owed {
        let graph = run.graph();
        match self.job.work {
            Work::Test => graph.known(&self.owed).iter().map(|id| graph.node(*id).path.to_string()).collect(),
            Work::Apply => run.owed().iter().map(ToString::to_string).collect(),
        }
    }

    /// Returns the notifications that the job settles: those that it knew of, and which of them are still owed. A test delivers
    /// none: it settles only those whose instances the document does not have.
    fn settled(&self, owed: Owed) -> Settled {
        let mut known = self.owed.clone();
        match self.job.work {
            Work::Test => Settled { known: &known - &owed, owed: Owed::new() },
            Work::Apply => {
                known.extend(self.intended.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned());
                Settled { known, owed }
            }
        }
    }

    /// Returns the paths to watch once the document is current. A job over a part knows too little.
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

    fn ended(&self, ready: &ReadyDocument, run: &Run, elapsed: Duration) -> Ended {
        let (report, session) = (run.report(), &ready.session);
        let (mut failed, mut drifted, mut instances) = (false, false, 0);
        for (id, node) in run.graph().iter().filter(|(id, _)| report.is_selected(*id)) {
            let status = report.status(id);
            failed |= status.is_some_and(Status::blocks) && node.role == Role::Instance;
            failed |= failed_container(run, id) || node.role == Role::Instance && has_failed_so_far(run, id);
            drifted |= matches!(status, Some(Status::Drifted | Status::Undetermined));
            instances += u64::from(node.role == Role::Instance);
        }
        let restart: BTreeSet<String> = asked_for_restart(report).collect();
        let owed = self.still_owed(run);
        let is_owed = !owed.is_empty();
        let is_current = self.rules.standing == Standing::Current;
        let not_restored = self.not_restored(ready);
        let result = match () {
            () if report.cancelled || report.suspended && restart.is_empty() => JobResult::Aborted,
            () if failed => JobResult::Failed,
            // What asked for a restart is in its desired state when a test after that says so.
            () if !restart.is_empty() || is_owed || !not_restored.is_empty() => JobResult::NotInState,
            () if drifted && (self.job.work == Work::Test || is_current) => JobResult::NotInState,
            () => JobResult::Converged,
        };
        let (mut printed, mut troubles) = self.explained(run, &restart, elapsed);
        troubles.extend(not_restored);
        if let Some(members) = printed.as_object_mut() {
            members.insert("job".to_owned(), json!(self.job));
            members.insert("result".to_owned(), json!(result));
            // What is changed in a current document was changed by somebody else before.
            members.insert("corrective".to_owned(), json!(is_current));
        }
        let not_in_state = troubles.len() as u64;
        let outcome = JobOutcome {
            result,
            restart,
            settled: Some(self.settled(owed)),
            not_in_state,
            instances,
            troubles,
            error: None,
        };
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use stead_core::value::Object;
    use stead_engine::{Host, HostOptions};

    use super::*;
    use crate::state::{BootId, JobKind};

    /// An agent whose window closes after one set, and that nobody wakes.
    #[derive(Default)]
    struct OneSet(AtomicUsize);

    impl Observer for OneSet {
        fn event(&self, _: &Event, _: usize, _: usize) {}

        fn owes(&self, _: &Owed) -> io::Result<()> {
            Ok(())
        }

        fn announce(&self) -> io::Result<()> {
            Ok(())
        }

        fn may_change(&self) -> bool {
            self.0.fetch_add(1, Ordering::Relaxed) == 0
        }

        fn waits(&self, _: Option<&str>) {}
    }

    fn spec() -> JobSpec {
        let job = Job {
            id: "job".to_owned(),
            generation: 1,
            kind: JobKind::Initial,
            work: Work::Apply,
            began: jiff::Timestamp::UNIX_EPOCH,
            boot: BootId("boot".to_owned()),
            only: BTreeSet::new(),
        };
        JobSpec {
            job,
            document: None,
            delivery: Delivery::default(),
            rules: Rules { mode: ConfigurationMode::ApplyAndMonitor, standing: Standing::Pending },
            settings: Settings::default(),
            owed: Owed::new(),
            intended: Mutex::default(),
            quarantined: BTreeSet::new(),
            withheld: BTreeSet::new(),
            uncertain: BTreeSet::new(),
            resumed: false,
            width: 1,
            held_back: None,
            touched: None,
            suspension: Suspension::default(),
        }
    }

    #[test]
    fn each_set_is_asked_for_and_a_closed_window_suspends_the_job() {
        const TEXT: &str = "resources:
- {name: a, type: Stead/File, properties: {path: /a, content: x}}
- {name: b, type: Stead/File, properties: {path: /b, content: x}, dependsOn: ['Stead/File:a']}
";
        let folder = tempfile::tempdir().expect("a folder");
        let session = Host::new(HostOptions::default()).session(folder.path());
        let mut session = session.with(|options| options.system_root = Some(folder.path().to_owned()));
        let prepared = session.prepare("main.yaml", TEXT, Object::new()).unwrap_or_else(|_| unreachable!("valid"));
        let (spec, ready) = (spec(), ReadyDocument::new(1, session, prepared));
        let ended = spec.run(&ready, &folder.path().join("journal"), &OneSet::default());
        assert!(ended.is_ok());
        let made = ["a", "b"].map(|name| folder.path().join(name).exists());
        assert_eq!((made, spec.suspension.because()), ([true, false], Some(SuspendReason::Window)));
    }
}
