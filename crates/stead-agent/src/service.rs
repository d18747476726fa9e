//! The agent at work: one thread decides, one carries out the job under way, and one answers each caller.
//!
//! Whatever changes the state is saved before it counts; what has happened and cannot be saved counts, and nothing is begun
//! until it is. No lock is held while a job runs, so that status is answered meanwhile.

mod answers;
mod controller;
mod controller_files;
mod deliveries;
mod difference;
mod feed;
mod following;
mod jobs;
mod machine_reports;
mod releases;
mod reporting;
mod running;
mod upkeep;

use std::collections::BTreeSet;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::json;
use stead_engine::{Host, error_chain};
use stead_system::Cancel;

use crate::boot::{SCHEDULED, boot_id, scheduled_shutdown};
use crate::control::Listener;
use crate::decide::{Moment, Next};
use crate::job::{Ended, JobHost, JournalProblem, JournalSummary, SuspendReason, journal_summary};
use crate::log::Log;
use crate::rate_limit::{MOST_CORRECTIONS, MOST_WAKEUPS, RateLimit};
use crate::reports::Reports;
use crate::sink::Sink;
use crate::source::Source;
use crate::state::{AgentState, BootId, Interrupted, Job, Work};
use crate::store::{Damage, Store, StoreError};
use crate::touched::Touched;
use crate::window::{Intent, Opening, opening};
use deliveries::LastLook;
use feed::Feed;
use reporting::Reporting;
use running::Running;
use stead_system::socket::Messages;
use stead_system::watch::Watcher;
use stead_system::zone::LocalZone;
use upkeep::{Program, Upkeep, WallClock, Why};

/// How an agent is run.
pub struct Options {
    /// Where it keeps everything.
    pub directory: PathBuf,
    /// The file that tells one boot of the machine from another.
    pub boot_id: PathBuf,
    /// The host that resources are carried out with.
    pub host: Host,
    /// Ends it, as a signal does.
    pub stop: Cancel,
    /// Has it look at everything at once, as a signal does; taken back when it has noticed.
    pub look: Arc<AtomicBool>,
    /// How long a job may take to end after a request to stop, before killing it counts as a crash of the instances
    /// under way.
    pub stop_grace: Duration,
    /// Where reports go besides the database and the log.
    pub sinks: Vec<Arc<dyn Sink>>,
    /// The source that is followed, in place of the folder that the settings name.
    pub source: Option<Arc<dyn Source>>,
}

/// Less than the time after which a unit of systemd is killed ([`crate::unit`]).
pub const STOP_GRACE: Duration = Duration::from_secs(100);

/// Why an agent cannot run.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Its state cannot be used.
    #[error("cannot use the state of the agent in '{}'", path.display())]
    Store {
        /// Its directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: StoreError,
    },
    /// Nobody could reach it.
    #[error("cannot listen in '{}'", path.display())]
    Listen {
        /// Its directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Its directory was removed or replaced, so that callers could not reach it and another agent could start beside
    /// it.
    #[error("the directory of the agent, '{}', was removed or replaced while it ran", .0.display())]
    Gone(PathBuf),
}

/// Returns whether systemd started this process itself. What it set for another one is inherited by shells and tables of cron.
pub fn is_service() -> bool {
    // Before version 248 it does not say for which process its variables are.
    let is_own = |pid: String| pid == std::process::id().to_string();
    std::env::var_os("INVOCATION_ID").is_some() && std::env::var("SYSTEMD_EXEC_PID").map_or(true, is_own)
}

/// The longest time without a look at the clock, which may have jumped.
const CLOCK_INTERVAL: Duration = Duration::from_mins(1);

/// After this time it is tried again to save what cannot be saved.
const SAVE_RETRY: Duration = Duration::from_secs(2);

/// How long the end of what callers asked for is waited for.
const INSPECTION_GRACE: Duration = Duration::from_secs(20);

/// So often it is looked whether a signal came.
const SIGNAL_POLL: Duration = Duration::from_millis(200);

pub(crate) struct Agent {
    job_host: JobHost,
    watcher: Option<Watcher>,
    directory: PathBuf,
    boot: BootId,
    zone: LocalZone,
    /// True if systemd started the agent, and starts it again.
    is_service: bool,
    program: Option<Program>,
    listener: Mutex<Option<Arc<Listener>>>,
    log: Log,
    reports: Reports,
    sinks: Vec<Arc<dyn Sink>>,
    source: Option<Arc<dyn Source>>,
    /// Ends what callers ask to be tested or read, when the agent ends.
    inspections: Cancel,
    /// How many of those are under way.
    inspecting: AtomicUsize,
    /// True if documents that the record does not name are no longer wanted.
    knows_documents: bool,
    inner: Mutex<Inner>,
    changed: Condvar,
}

/// Requests of the controller to check, by their numbers.
#[derive(Default)]
struct CheckRequests {
    /// The one that is to be done.
    pending: Option<u64>,
    /// The last one that was; 0 where there was none.
    done: u64,
}

struct Inner {
    state: AgentState,
    store: Store,
    running: Option<Running>,
    /// The job that came to its end, to be recorded.
    ended: Option<(Job, Result<Ended, JournalProblem>)>,
    stopping: bool,
    /// Why the state could not be saved since something happened that has no way back. Nothing is begun until it is.
    unsaved: Option<String>,
    upkeep: Upkeep,
    wall_clock: WallClock,
    /// How many jobs have ended since the agent began.
    jobs: u64,
    /// Recent events, for callers that wait.
    feed: Feed,
    following: LastLook,
    reporting: Reporting,
    check: CheckRequests,
    /// Instances whose things changed, by their paths. Those that are looked at too often are kept until they may be.
    drifted: BTreeSet<String>,
    /// Instances that are left to the interval.
    unwatched: BTreeSet<String>,
    /// How many instances are looked after.
    looked_after: usize,
    /// The resources that the pending document may have changed.
    touched: Touched,
    flapping: RateLimit,
    /// How often instances were looked at because something changed.
    wakeups: RateLimit,
}

/// Runs an agent until it is stopped.
pub fn run(options: Options) -> Result<(), AgentError> {
    let store_error = |source| AgentError::Store { path: options.directory.clone(), source };
    let (store, state, repairs) = Store::open(&options.directory).map_err(store_error)?;
    let listen_error = |source| AgentError::Listen { path: options.directory.clone(), source };
    let listener = Listener::bind(&options.directory).map_err(listen_error)?;
    let by_systemd = is_service();
    let log = Log::open(&options.directory, by_systemd).map_err(listen_error)?;
    // Without a record nobody knows which documents are still wanted.
    let knows_documents = !repairs.iter().any(|repair| repair.damage == Damage::AllRecords);
    let (reports, repair) = Reports::open(&store);
    let repairs: Vec<String> = repairs.iter().chain(&repair).map(ToString::to_string).collect();
    for repair in &repairs {
        log.write("repaired", json!({ "failure": repair }));
    }
    let agent = Arc::new(Agent {
        job_host: JobHost::new(options.host, store.documents()),
        watcher: Watcher::new().ok(),
        boot: boot_id(&options.boot_id),
        zone: LocalZone::default(),
        is_service: by_systemd,
        program: Program::of_this_process(),
        listener: Mutex::new(Some(Arc::new(listener))),
        log,
        reports,
        sinks: options.sinks,
        source: options.source,
        inspections: Cancel::default(),
        inspecting: AtomicUsize::new(0),
        knows_documents,
        inner: Mutex::new(Inner::new(state, store)),
        changed: Condvar::new(),
        directory: options.directory,
    });
    agent.started(&repairs);
    agent.answer_callers();
    let (watching, signals) = (Arc::clone(&agent), (options.stop, options.look, options.stop_grace));
    thread::spawn(move || watching.heed(&signals.0, &signals.1, signals.2));
    if let Some(watcher) = agent.watcher.clone() {
        let noticing = Arc::clone(&agent);
        thread::spawn(move || watcher.run(|what| noticing.notice(what)));
    }
    let works: [fn(&Arc<Agent>); 2] = [|agent| agent.follow(), |agent| agent.post_reports()];
    for work in works {
        let agent = Arc::clone(&agent);
        // A defect here is a crash of the agent, as in a job: nothing else would show that nothing is followed any more.
        thread::spawn(move || {
            catch_unwind(AssertUnwindSafe(|| work(&agent))).unwrap_or_else(|_| std::process::abort());
        });
    }
    Messages::notify_service_manager("READY=1");
    let worked = agent.work();
    Messages::notify_service_manager("STOPPING=1");
    agent.await_inspections();
    // The threads that answer end with the process.
    if let Some(listener) = agent.lock_listener().take() {
        listener.end();
    }
    worked
}

impl Agent {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_listener(&self) -> MutexGuard<'_, Option<Arc<Listener>>> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn moment(&self) -> Moment {
        Moment {
            now: Timestamp::now(),
            boot: self.boot.clone(),
            zone: self.zone.now(),
            shutdown: scheduled_shutdown(Path::new(SCHEDULED)),
        }
    }

    /// Takes in what happened while nobody was there.
    fn started(&self, repairs: &[String]) {
        let mut inner = self.lock();
        let job = inner.state.job.as_ref();
        let summary = job.map(|job| journal_summary(&inner.store.journal(&job.id))).unwrap_or_default();
        let JournalSummary { is_begun, in_flight, .. } = summary;
        let interrupted = if is_begun { Interrupted::Working(&in_flight) } else { Interrupted::Reading };
        self.log.write("agentStarted", json!({ "boot": self.boot.0, "interrupted": in_flight }));
        self.save_or_retry(&mut inner, |state| {
            state.started(&self.boot, interrupted, Timestamp::now());
            state.damaged(Timestamp::now(), repairs.iter().cloned());
        });
    }

    /// Waits for signals until the agent is to end.
    fn heed(&self, stop: &Cancel, look: &AtomicBool, grace: Duration) {
        while !stop.is_cancelled() {
            thread::sleep(SIGNAL_POLL);
            if look.swap(false, Ordering::AcqRel) {
                self.log.write("askedToLook", json!({}));
                let mut inner = self.lock();
                inner.state.check_at_once();
                inner.upkeep.look_again();
                (inner.following.look, inner.reporting.look) = (true, true);
                drop(inner);
                self.changed.notify_all();
            }
        }
        self.inspections.cancel();
        let mut inner = self.lock();
        inner.stopping = true;
        if let Some(running) = &inner.running {
            running.suspension.suspend(SuspendReason::End);
            // If it is killed before it has ended, that does not count as a crash.
            self.save(&mut inner, |state| state.stopping = true);
        }
        self.changed.notify_all();
        let is_running = |inner: &mut Inner| inner.running.is_some();
        let waited = self.changed.wait_timeout_while(inner, grace, is_running);
        let (mut inner, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() {
            // The instances that do not end are to blame if the process is killed.
            self.log.write("stopOverdue", json!({}));
            self.save(&mut inner, |state| state.stopping = false);
        }
    }

    /// Suspends a job that changes the machine once its maintenance window has closed.
    fn suspend_outside_of_windows(&self, inner: &Inner) {
        let changes = |running: &&Running| running.job().work == Work::Apply;
        if let Some(running) = inner.running.as_ref().filter(changes)
            && !self.is_window_open(inner)
        {
            running.suspension.suspend(SuspendReason::Window);
        }
    }

    fn is_window_open(&self, inner: &Inner) -> bool {
        let moment = self.moment();
        opening(&inner.state.settings.windows, Intent::Set, moment.now, &moment.zone) == Opening::Open
    }

    /// Decides what to do, and does it, until the agent is to end.
    fn work(self: &Arc<Self>) -> Result<(), AgentError> {
        let mut inner = self.lock();
        loop {
            self.look_after_itself(&mut inner);
            if let Some((job, ended)) = inner.ended.take() {
                self.record(&mut inner, &job, ended);
                continue;
            }
            if inner.stopping && inner.running.is_none() {
                self.log.write("agentStopped", json!({}));
                let is_gone = inner.upkeep.ends == Some(Why::FolderGone);
                return if is_gone { Err(AgentError::Gone(self.directory.clone())) } else { Ok(()) };
            }
            if inner.running.is_some() || inner.stopping {
                self.suspend_outside_of_windows(&inner);
                inner = self.wait(inner, CLOCK_INTERVAL);
                continue;
            }
            if inner.unsaved.is_some() && !self.save(&mut inner, |_| {}) {
                inner = self.wait(inner, SAVE_RETRY);
                continue;
            }
            let moment = self.moment();
            match inner.state.next(&moment) {
                Next::Begin { generation, kind, work } => {
                    let job = self.new_job(moment.now, generation, kind, work);
                    if !self.begin(&mut inner, &job, false) {
                        inner = self.wait(inner, SAVE_RETRY);
                    }
                }
                Next::Resume => {
                    if let Some(job) = inner.state.job.clone()
                        && !self.begin(&mut inner, &job, true)
                    {
                        inner = self.wait(inner, SAVE_RETRY);
                    }
                }
                Next::Abandon => self.abandon(&mut inner),
                Next::Restart => {
                    self.save_or_retry(&mut inner, |state| state.ordered_restart(moment.now));
                    let command = inner.state.settings.restart_command.clone();
                    drop(inner);
                    self.restart(&command);
                    inner = self.lock();
                }
                Next::Wait { .. } if self.begin_partial(&mut inner, &moment) => {}
                Next::Wait { until, .. } => {
                    self.has_checked(&mut inner);
                    let ahead = until.map_or(CLOCK_INTERVAL, |until| {
                        Duration::try_from(until.duration_since(moment.now)).unwrap_or_default().min(CLOCK_INTERVAL)
                    });
                    let postponed = inner.postponed_for().unwrap_or(ahead);
                    inner = self.wait(inner, ahead.min(postponed));
                }
            }
        }
    }

    /// Has the current document checked at once, because the controller asks for it.
    fn check_now(&self, number: u64) {
        self.log.write("askedToCheck", json!({}));
        let mut inner = self.lock();
        inner.state.check_at_once();
        inner.check.pending = Some(number);
        drop(inner);
        self.changed.notify_all();
    }

    /// Notes that what the controller asked for is done, once nothing of it is left.
    fn has_checked(&self, inner: &mut Inner) {
        if let Some(number) = inner.check.pending.filter(|_| !inner.state.is_check_due()) {
            inner.check = CheckRequests { pending: None, done: number };
            self.changed.notify_all();
        }
    }

    /// Waits until no program of a resource is under way for a caller. They were asked to end.
    fn await_inspections(&self) {
        let asked = Instant::now();
        while self.inspecting.load(Ordering::Acquire) > 0 && asked.elapsed() < INSPECTION_GRACE {
            thread::sleep(SIGNAL_POLL);
        }
    }

    fn wait<'a>(&self, inner: MutexGuard<'a, Inner>, at_most: Duration) -> MutexGuard<'a, Inner> {
        // An instant that is nearly there would make this spin.
        let at_most = at_most.max(Duration::from_millis(1));
        self.changed.wait_timeout(inner, at_most).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Changes the state, if that can be saved.
    fn save(&self, inner: &mut Inner, change: impl FnOnce(&mut AgentState)) -> bool {
        let mut changed = inner.state.clone();
        change(&mut changed);
        match inner.store.save(&changed) {
            Ok(()) => (inner.state, inner.unsaved) = (changed, None),
            Err(error) => {
                let failure = error_chain(&error);
                self.log.write("notSaved", json!({ "failure": failure }));
                inner.unsaved = inner.unsaved.is_some().then_some(failure);
                return false;
            }
        }
        true
    }

    /// Changes the state by what has happened already, which has no way back: it is saved as soon as that is possible, and
    /// until then nothing is begun.
    fn save_or_retry(&self, inner: &mut Inner, change: impl Fn(&mut AgentState)) {
        if !self.save(inner, &change) {
            change(&mut inner.state);
            inner.unsaved = Some("the state cannot be saved".to_owned());
        }
    }

    fn restart(&self, command: &[String]) {
        self.log.write("restarting", json!({ "command": command.join(" ") }));
        if let Err(failure) = stead_system::process::run_command(command) {
            self.log.write("restartFailed", json!({ "failure": failure }));
            self.save_or_retry(&mut self.lock(), |state| state.restart_failed(failure.clone()));
        }
    }
}

impl Inner {
    fn new(state: AgentState, store: Store) -> Self {
        Self {
            state,
            store,
            running: None,
            ended: None,
            stopping: false,
            unsaved: None,
            upkeep: Upkeep::default(),
            wall_clock: WallClock::new(),
            jobs: 0,
            feed: Feed::default(),
            following: LastLook::default(),
            reporting: Reporting::default(),
            check: CheckRequests::default(),
            drifted: BTreeSet::new(),
            unwatched: BTreeSet::new(),
            looked_after: 0,
            touched: Touched::default(),
            flapping: RateLimit::new(MOST_CORRECTIONS),
            wakeups: RateLimit::new(MOST_WAKEUPS),
        }
    }

    /// The instances that are to be looked at now. Those that are looked at too often stay for later.
    fn take_drifted(&mut self) -> BTreeSet<String> {
        let now = Instant::now();
        let drifted = std::mem::take(&mut self.drifted);
        let is_limited =
            |instance: &String| self.flapping.is_reached(instance, now) || self.wakeups.is_reached(instance, now);
        let (postponed, only): (BTreeSet<String>, BTreeSet<String>) = drifted.into_iter().partition(is_limited);
        self.drifted = postponed;
        for instance in &only {
            let _ = self.wakeups.note(instance, now);
        }
        only
    }

    /// Returns how long it takes until an instance may be looked at that was looked at too often.
    fn postponed_for(&mut self) -> Option<Duration> {
        let now = Instant::now();
        let ends = self.drifted.iter().filter_map(|instance| {
            self.flapping.ends(instance, now).into_iter().chain(self.wakeups.ends(instance, now)).max()
        });
        ends.min().map(|end| end.saturating_duration_since(now))
    }
}
