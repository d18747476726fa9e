//! Running what was prepared.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stead_core::call::Execution;
use stead_core::event::{Event, Mode};
use stead_core::id::NodeId;
use stead_core::run::policy::{Policy, SinglePass};
use stead_core::run::{Exceptions, Privilege, ReplayError, Retention, Run, Setup};
use stead_host::executor::{CallWatch, Calls, ExecuteError, Follower, Inline, Limits, Stop, execute};
use stead_host::journal::{Journal, NoJournal};
use stead_host::provider::TraceLevel;
use stead_host::store::StoreError;
use stead_host::store::images::{Images, Scene};
use stead_system::lock::{Lock, LockError, Locks, Owner, Wait, describe};
use stead_system::process::is_ancestor;

use crate::calls::SessionCalls;
use crate::memory::{Ledger, Recalled};
use crate::planned::Planned;
use crate::prepared::Prepared;
use crate::second_look::SecondLook;
use crate::session::Session;
use crate::shared_files::FileForecasts;
use crate::uncertain::WayOut;

/// Sees the events of a run.
pub type Consumer<'a> = Box<dyn FnMut(&Run, &Event) + 'a>;

/// Called with the run that this one waits for, and with `None` when it waits no longer.
pub type Waits<'a> = Box<dyn FnMut(Option<&str>) + 'a>;

/// How a prepared document is run.
pub struct RunOptions<'a> {
    /// The mode of the run.
    pub mode: Mode,
    /// How many calls are carried out at once.
    pub width: NonZeroUsize,
    /// The rule by which an instance is tried again.
    pub policy: Arc<dyn Policy>,
    /// Where events are recorded before they count.
    pub journal: Box<dyn Journal + 'a>,
    /// Sees every event once it is recorded and applied.
    pub consumer: Consumer<'a>,
    /// The instances that something else is done with.
    pub exceptions: Exceptions,
    /// The answers of resources that are kept.
    pub retention: Retention,
    /// By what somebody else sees that the run hangs. Without it a run sees that itself, with another thread for its calls of
    /// microseconds.
    pub watch: Option<Arc<RunWatch>>,
    /// Asked each time before something may be changed. Once it says no, the run is suspended.
    pub permit: Box<dyn FnMut() -> bool + 'a>,
    /// Called when the run waits for another, and when it continues.
    pub waits: Waits<'a>,
    /// The plan that it is to do, if there is one.
    pub planned: Planned,
    /// Keeps what it changes, so that it can be taken back.
    pub images: Option<Images>,
    /// The instances, by their paths, of which a set left a program running when the agent applied them last: none of them is taken
    /// to be in its desired state.
    pub uncertain: BTreeSet<String>,
}

/// A run as somebody else sees it.
#[derive(Default)]
pub struct RunWatch {
    calls: Arc<CallWatch>,
    lock: Mutex<Option<Lock>>,
}

impl RunWatch {
    /// Returns whether a call hangs that should have taken microseconds.
    pub fn hangs(&self) -> bool {
        self.calls.exceeds(Inline::DEADLINE)
    }

    /// Releases the lock of the machine, if the run has it, so that others need not wait for one that hangs or rests.
    pub fn release(&self) {
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn keep(&self, lock: Option<Lock>) {
        *self.lock.lock().unwrap_or_else(PoisonError::into_inner) = lock;
    }

    /// Keeps the lock until what is returned is dropped.
    fn hold(&self, lock: Option<Lock>) -> impl Drop + '_ {
        self.keep(lock);
        Held(self)
    }
}

struct Held<'a>(&'a RunWatch);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl<'a> RunOptions<'a> {
    /// One pass, recorded nowhere, seen by nobody.
    pub fn new(mode: Mode, width: NonZeroUsize) -> Self {
        Self {
            mode,
            width,
            policy: Arc::new(SinglePass),
            journal: Box::new(NoJournal),
            consumer: Box::new(|_, _| {}),
            exceptions: Exceptions::default(),
            retention: Retention::default(),
            watch: None,
            permit: Box::new(|| true),
            waits: Box::new(|_| {}),
            planned: Planned::default(),
            images: None,
            uncertain: BTreeSet::new(),
        }
    }

    /// Returns the plan with every event given to `consumer` once it is recorded and applied.
    #[must_use]
    pub fn consumer(self, consumer: impl FnMut(&Run, &Event) + 'a) -> Self {
        Self { consumer: Box::new(consumer), ..self }
    }
}

impl Session {
    /// Runs a document to its end, or until the session is cancelled.
    pub fn run<'a>(&self, prepared: &'a Prepared, execution: RunOptions<'a>) -> Result<Run, RunError> {
        let mut execution = execution;
        let lock = self.lock(execution.mode, &mut *execution.waits)?;
        let recalled = match &prepared.memory {
            Some(memory) => memory.recall(&prepared.graph, execution.mode, &prepared.removed)?,
            None => None,
        };
        let Some(recalled) = recalled else {
            let run = Run::new(self.setup(prepared, &execution));
            return self.drive(prepared, run, execution, lock, BTreeSet::new());
        };
        execution.exceptions.owed.extend(&recalled.owed);
        execution.exceptions.tested.extend(self.no_longer_removed(prepared, &recalled.things));
        let uncertain = uncertain(prepared, &recalled.uncertain, execution.mode);
        let run = Run::new(self.setup(prepared, &execution));
        let execution = self.with_ledger(prepared, execution, recalled, &[])?;
        self.drive(prepared, run, execution, lock, uncertain)
    }

    /// Has what the run comes to owe and to manage recorded, if it changes anything.
    fn with_ledger<'a>(
        &self,
        prepared: &'a Prepared,
        execution: RunOptions<'a>,
        mut recalled: Recalled<'a>,
        journal_so_far: &[Event],
    ) -> Result<RunOptions<'a>, StoreError> {
        if !execution.mode.changes() {
            return Ok(execution);
        }
        let things = std::mem::take(&mut recalled.things);
        let mut managing = recalled.keeps_things.then(|| self.managing(prepared, things));
        // What it has made so far is in the journal at least.
        if let Some(managing) = &mut managing {
            managing.note(journal_so_far)?;
        }
        let RunOptions { journal, .. } = execution;
        let ledger = Ledger::new(recalled, &prepared.graph, managing, journal);
        Ok(RunOptions { journal: Box::new(ledger), ..execution })
    }

    /// Goes on with a run that another process began, from the events of its journal.
    ///
    /// Assumptions: the document was prepared from the same text and parameters; otherwise it is refused.
    pub fn resume<'a>(
        &self,
        prepared: &'a Prepared,
        journal: &[Event],
        execution: RunOptions<'a>,
    ) -> Result<Run, ResumeError> {
        let setup = Setup { digest: prepared.digest().into(), ..self.setup(prepared, &execution) };
        let run = Run::resume(setup, journal)?;
        let mut execution = execution;
        let lock = self.lock(run.mode(), &mut *execution.waits).map_err(ResumeError::from)?;
        // What is owed is known by whoever has the journal.
        let memory = prepared.memory.as_ref().filter(|memory| memory.is_of_things());
        let recalled = memory.map(|memory| memory.recall(&prepared.graph, run.mode(), &prepared.removed)).transpose();
        if let Some(recalled) = recalled.map_err(RunError::from)?.flatten() {
            execution = self.with_ledger(prepared, execution, recalled, journal).map_err(RunError::from)?;
        }
        Ok(self.drive(prepared, run, execution, lock, BTreeSet::new())?)
    }

    /// What a run of a document is about, for whoever takes it back.
    pub fn scene(&self, prepared: &Prepared) -> Scene {
        let graph = &prepared.graph;
        let path = |id| graph.node(id).path.to_string();
        let mut handlers: BTreeMap<NodeId, Vec<String>> = BTreeMap::new();
        for (source, acting) in graph.acting() {
            for handler in acting {
                handlers.entry(handler).or_default().push(path(source));
            }
        }
        Scene {
            root: self.system_root().map(Path::to_owned),
            origin: prepared.origin.to_string(),
            folder: self.root().to_owned(),
            handlers: handlers.into_iter().map(|(handler, sources)| (path(handler), sources)).collect(),
            undoes: None,
        }
    }

    fn setup(&self, prepared: &Prepared, execution: &RunOptions<'_>) -> Setup {
        let privilege = if self.machine.elevated { Privilege::Elevated } else { Privilege::Restricted };
        let selected = execution.exceptions.selected.clone().or_else(|| prepared.selected.clone());
        Setup {
            turns: prepared.shared.turns(&prepared.graph, selected.as_deref()),
            facts: prepared.facts.clone(),
            privilege,
            policy: Arc::clone(&execution.policy),
            origin: Arc::clone(&prepared.origin),
            digest: if execution.journal.is_durable() { prepared.digest().into() } else { "".into() },
            exceptions: Exceptions { selected, ..execution.exceptions.clone() },
            retention: execution.retention,
            ..Setup::new(Arc::clone(&prepared.graph), Arc::clone(&prepared.sources), self.vault.clone(), execution.mode)
        }
    }

    /// Carries a run out, with the lock of the machine if it needs that.
    fn drive(
        &self,
        prepared: &Prepared,
        mut run: Run,
        execution: RunOptions<'_>,
        (lock, turn): Locked,
        uncertain: BTreeSet<NodeId>,
    ) -> Result<Run, RunError> {
        let RunOptions { width, policy, mut journal, consumer, watch, permit, waits, planned, images, .. } = execution;
        let by_agent = run.graph().known(&execution.uncertain).into_iter().map(|id| (id, WayOut::Agent));
        let uncertain = uncertain.into_iter().map(|id| (id, WayOut::Apply)).chain(by_agent).collect();
        let mut limits = Limits::of(width);
        if let Some(watch) = &watch {
            limits.inline = Inline::Here(Arc::clone(&watch.calls));
        }
        let watch = watch.unwrap_or_default();
        let _held = watch.hold(lock);
        let second_look = if run.mode().changes() { SecondLook::begin() } else { SecondLook::default() };
        let forecasts = match run.mode().execution {
            Execution::WhatIf => prepared.shared.forecasts(),
            Execution::Actual => FileForecasts::default(),
        };
        if let Some(images) = images.as_ref().filter(|images| images.takes_back()) {
            images.know(self.states_before(prepared));
        }
        let record = images.clone();
        let kept = self.calls_keeping(run.graph(), images);
        let calls = SessionCalls { planned, second_look, forecasts, uncertain, ..kept };
        let calls: Arc<dyn Calls> = Arc::new(calls);
        let stop = Stop { cancel: self.options.cancel.clone(), suspend: self.options.suspend.clone() };
        let (mode, watch) = (run.mode(), &*watch);
        let mut follower = Follow { session: self, mode, consumer, watch, permit, waits, turn, failed: None };
        let executed = execute(&mut run, &calls, &self.shared.host.pool, &mut *journal, limits, &stop, &mut follower);
        policy.end();
        executed?;
        let (failed, turn) = (follower.failed, follower.turn);
        // One that has released the lock has settled before that.
        if turn != Turn::Needed {
            journal.settle(&run);
        }
        record.filter(|_| failed.is_none()).iter().for_each(Images::end);
        failed.map_or(Ok(run), Err)
    }
}

/// The instances of these paths that are uncertain in a run of this mode: not those that an administrator names to be set.
fn uncertain(prepared: &Prepared, paths: &BTreeSet<String>, mode: Mode) -> BTreeSet<NodeId> {
    let graph = &prepared.graph;
    let is_named = |id: &NodeId| graph.node(*id).path.outward().any(|path| prepared.named.contains(&path.node()));
    let mut uncertain = graph.known(paths);
    uncertain.retain(|id| !(mode.changes() && is_named(id)));
    uncertain
}

/// A run that others are kept from changing the machine beside, while anything is done in it.
struct Follow<'a, 's> {
    session: &'s Session,
    mode: Mode,
    consumer: Consumer<'a>,
    watch: &'s RunWatch,
    permit: Box<dyn FnMut() -> bool + 'a>,
    waits: Waits<'a>,
    turn: Turn,
    /// Why it could not go on.
    failed: Option<RunError>,
}

/// The lock of the machine, if a run has it, and whether it may go on.
type Locked = (Option<Lock>, Turn);

/// The standing of a run towards other runs on the machine.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// It waits for nobody: it changes nothing, or is within the run that has the lock, or there are no locks.
    Free,
    /// It has the lock.
    Held,
    /// It must lock the machine first.
    Needed,
}

/// A run that waits for less than this keeps the lock: others could do little meanwhile.
const SHORT_REST: Duration = Duration::from_millis(250);

impl Follower for Follow<'_, '_> {
    fn event(&mut self, run: &Run, event: &Event) {
        (self.consumer)(run, event);
    }

    fn may_begin(&mut self, changes: bool) -> bool {
        if self.turn == Turn::Needed {
            match self.session.lock(self.mode, &mut *self.waits) {
                Ok((lock, turn)) => {
                    self.watch.keep(lock);
                    self.turn = turn;
                }
                Err(error) => self.failed = Some(error),
            }
        }
        self.turn != Turn::Needed && (!changes || (self.permit)())
    }

    fn rests(&mut self, run: &Run, journal: &mut dyn Journal, longest: Duration) {
        if self.turn == Turn::Held && longest >= SHORT_REST {
            journal.settle(run);
            self.watch.release();
            self.turn = Turn::Needed;
        }
    }
}

impl Session {
    /// Waits until no other run changes the machine. A run that changes nothing waits for nobody, and one that was started
    /// by the run that holds the lock goes on beside it. One that is ended or suspended meanwhile still needs the lock.
    fn lock(&self, mode: Mode, waits: &mut dyn FnMut(Option<&str>)) -> Result<Locked, RunError> {
        if !mode.changes() || self.options.private_root {
            return Ok((None, Turn::Free));
        }
        let (mut within, mut waited) = (false, false);
        let mut on_wait = |owner: Option<&Owner>| {
            within = owner.is_some_and(|owner| is_ancestor(owner.pid));
            if within {
                return ControlFlow::Break(());
            }
            waited = true;
            waits(Some(&describe(owner)));
            // Calls of one process wait for each other in their turn, which is nothing to tell.
            if owner.is_none_or(|owner| owner.pid != std::process::id()) {
                (self.options.trace)(TraceLevel::Warn, &format!("waiting for {}", describe(owner)));
            }
            ControlFlow::Continue(())
        };
        let cancel = self.options.cancel.or(&self.options.suspend);
        let wait = Wait { cancel: &cancel, deadline: LONGEST_WAIT, on_wait: &mut on_wait };
        let locked = Locks::of_this_user().lock_root(&self.machine.system_root, &command_line(), wait);
        if waited {
            waits(None);
        }
        match locked {
            Ok(lock) => Ok((Some(lock), Turn::Held)),
            Err(_) if within => Ok((None, Turn::Free)),
            // Cancelled before it began: the run says so itself.
            Err(LockError::Cancelled) => Ok((None, Turn::Needed)),
            Err(error) if error.is_without_place() => {
                tracing::warn!("other runs may change the machine at the same time: {}", crate::error_chain(&error));
                Ok((None, Turn::Free))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// How long a run waits for another: longer than anybody looks on, shorter than for ever.
const LONGEST_WAIT: Duration = Duration::from_hours(24);

/// Returns the name of this process in messages to others: its program and its command, without values.
fn command_line() -> String {
    let mut words = std::env::args();
    let program = words.next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default().to_owned();
    let plain = words.take(3).take_while(|word| !word.starts_with('-'));
    std::iter::once(name).chain(plain).collect::<Vec<_>>().join(" ")
}

/// Why a run did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The machine is locked, or cannot be.
    #[error("cannot lock the machine against other runs")]
    Lock(#[from] LockError),
    /// The notifications that former runs owe cannot be read.
    #[error("cannot read which handlers are still due from earlier runs")]
    Memory(#[from] StoreError),
    /// It could not be carried out.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
}

/// Why a run could not be gone on with.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// The journal does not fit.
    #[error(transparent)]
    Journal(#[from] ReplayError),
    /// The rest could not be carried out.
    #[error(transparent)]
    Execute(#[from] RunError),
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use stead_core::call::Operation;
    use stead_core::value::{Object, Value};
    use stead_system::Cancel;

    use super::*;
    use crate::host::{Host, HostOptions};
    use crate::resource::ResourceCall;

    const LONG: Duration = Duration::from_mins(2);

    #[test]
    fn whoever_has_the_watch_sees_calls_under_way() {
        let watch = Arc::<RunWatch>::default();
        let (seen, is_seen) = channel::<()>();
        let (ended, has_ended) = channel();
        let watched = Arc::clone(&watch);
        thread::spawn(move || {
            let session = Host::new(HostOptions::default()).session("/");
            let called = ResourceCall::find(session, "Stead/File", None).expect("it is built in");
            let desired = Value::Object(Object::from_iter([("path".to_owned(), Value::from("/"))]));
            // Until one of them was seen, by whoever looks whenever it can.
            while is_seen.try_recv().is_err() {
                let mode = Mode::direct(Operation::Get, Execution::Actual);
                let plan = RunOptions { watch: Some(Arc::clone(&watched)), ..RunOptions::new(mode, NonZeroUsize::MIN) };
                drop(called.attempt(desired.clone(), plan));
            }
            ended.send(()).expect("the test waits");
        });
        while !watch.calls.exceeds(Duration::ZERO) {
            thread::yield_now();
        }
        seen.send(()).expect("the thread waits");
        has_ended.recv_timeout(LONG).expect("it ends");
        assert!(!watch.calls.exceeds(Duration::ZERO), "nothing is under way any more");
        assert!(!watch.hangs());
    }

    #[test]
    fn each_set_is_asked_for() {
        let folder = tempfile::tempdir().expect("a directory");
        let file = |name: &str, more: &str| {
            format!("- {{name: {name}, type: Stead/File, properties: {{path: /{name}, content: x}}{more}}}\n")
        };
        let needs = |name: &str| format!(", dependsOn: ['Stead/File:{name}']");
        let text = format!("resources:\n{}{}{}", file("a", ""), file("b", &needs("a")), file("c", &needs("b")));
        let session = Host::new(HostOptions::default()).session(folder.path());
        let mut session = session.with(|options| options.system_root = Some(folder.path().to_owned()));
        let prepared = session.prepare("main.yaml", text, Object::new()).unwrap_or_else(|_| unreachable!());
        let mut asked = 0;
        let permit = Box::new(|| {
            asked += 1;
            asked < 3
        });
        let run = session.run(&prepared, RunOptions { permit, ..RunOptions::new(Mode::APPLY, NonZeroUsize::MIN) });
        assert!(run.expect("it is suspended").report().suspended);
        let made: Vec<bool> = ["a", "b", "c"].iter().map(|name| folder.path().join(name).exists()).collect();
        assert_eq!((asked, made), (3, vec![true, true, false]));
    }

    #[test]
    fn a_lock_that_is_released_for_a_run_is_free_and_one_that_is_held_is_not() {
        let directory = tempfile::tempdir().expect("a directory");
        let locks = Locks::in_directory(&directory.path().join("locks"));
        let lock = || {
            let (cancel, deadline) = (Cancel::default(), Duration::ZERO);
            let wait = Wait { cancel: &cancel, deadline, on_wait: &mut |_| ControlFlow::Continue(()) };
            locks.lock_root(directory.path(), "stead serve", wait)
        };
        let watch = RunWatch::default();
        let held = watch.hold(lock().ok());
        assert!(lock().is_err());
        watch.release();
        let other = lock();
        assert!(other.is_ok());
        // The run that hung returns; the lock is that of another by now.
        drop(held);
        assert!(lock().is_err());
        drop(other);
        drop(watch.hold(lock().ok()));
        assert!(lock().is_ok());
    }
}
