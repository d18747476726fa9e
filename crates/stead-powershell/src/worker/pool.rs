//! Workers of one PowerShell executable, kept between calls.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use stead_system::Cancel;
use stead_system::process::Environment;

use super::compiled::KeptWorker;
use super::own::Earlier;
use super::worth::Costs;
use super::{Call, Deadline, Failed, Limits, MethodReply, Module, StreamRecord, Worker, start};

/// How often the flag that cancels is looked at while all workers are busy.
const CANCEL_POLL: Duration = Duration::from_millis(100);

/// How long a worker may take to start that no call waits for alone.
const AHEAD: Duration = Duration::from_mins(1);

/// How many workers that do nothing are kept beyond the width, for modules that want one for themselves.
const SPARE: usize = 2;

/// The settings of the workers: which program they are, how many there are, and how long each is kept.
#[derive(Clone)]
pub struct Settings {
    /// The executable of PowerShell, absolute.
    pub executable: PathBuf,
    /// The environment that workers are given.
    pub environment: Environment,
    /// The directories of modules. Root's workers see those alone that nobody else can change.
    pub module_path: Vec<PathBuf>,
    /// Where the worker is kept that PowerShell compiled; `None` for nowhere, so that each process compiles its own.
    pub compiled: Option<KeptWorker>,
    /// How many may carry out calls at a time.
    pub width: usize,
    /// How long one that is not needed is kept.
    pub idle: Duration,
    /// After how many calls one is replaced; 1 is a process for every call.
    pub most_calls: u32,
    /// Beyond how much memory one is replaced, in bytes.
    pub most_memory: u64,
}

impl Settings {
    /// For that executable, as is usual.
    pub fn new(executable: PathBuf, environment: Environment, width: usize) -> Self {
        Self {
            executable,
            environment,
            module_path: Vec::new(),
            compiled: None,
            width,
            idle: Duration::from_mins(5),
            // Modules leak some memory with each call; what has run so often has paid for its start.
            most_calls: 10_000,
            // Three times what one takes with a large module.
            most_memory: 768 << 20,
        }
    }

    /// Returns the same settings with a process for every call.
    #[must_use]
    pub fn isolated(self) -> Self {
        Self { most_calls: 1, ..self }
    }
}

/// Whose code a call runs, and so in which workers it can.
///
/// All code of a process sees the same types and the same memory: what one module puts there, the next one finds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The name of the module.
    pub module: String,
    /// Where this version of it lies.
    pub folder: PathBuf,
    /// The scripts besides, that a document states.
    pub scripts: StatedScripts,
    /// True if no other code may run in the process, before or afterwards: since it has types that all code of a process shares,
    /// or since the call is given secrets.
    pub alone: bool,
}

/// The scripts of a document that a call runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum StatedScripts {
    /// None: the code is that of the module.
    None,
    /// Any, with no secrets.
    Any,
    /// Those of a call that is given secrets, by a number that no call with another input has.
    Of(u64),
}

impl Origin {
    /// That of a file of which nothing else is known.
    pub fn of_file(file: &Path) -> Self {
        Self {
            module: file.to_string_lossy().into_owned(),
            folder: file.to_owned(),
            scripts: StatedScripts::None,
            alone: false,
        }
    }

    fn key(&self) -> (String, PathBuf, StatedScripts) {
        (self.module.to_lowercase(), self.folder.clone(), self.scripts)
    }
}

/// The needs of a call: the module, whose code it is, and the variables.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    module: Module<'a>,
    origin: &'a Origin,
    inherited: &'a [String],
}

/// The code that has run in a worker.
#[derive(Clone, Default)]
struct Past {
    /// The names of the variables that it was given besides those that all are.
    inherited: Vec<String>,
    /// The files that it loaded, and at which state.
    stamps: BTreeMap<String, String>,
    /// The versions of modules: their names as they are compared, their folders, and the scripts that each ran.
    origins: BTreeSet<(String, PathBuf, StatedScripts)>,
    /// True if that must remain all.
    alone: bool,
}

impl Past {
    fn of(inherited: &[String]) -> Self {
        Self { inherited: inherited.to_vec(), ..Self::default() }
    }

    /// Returns whether nothing that has run keeps this call from running after it, with the variables that it wants.
    fn fits(&self, wanted: &Wanted<'_>) -> bool {
        let own = wanted.origin.key();
        let is_other_version =
            |(name, folder, _): &(String, PathBuf, StatedScripts)| *name == own.0 && *folder != own.1;
        let company = if self.alone || wanted.origin.alone {
            self.origins.iter().all(|known| *known == own)
        } else {
            !self.origins.iter().any(is_other_version)
        };
        company && self.inherited == wanted.inherited && !self.is_outdated(wanted.module)
    }

    /// Returns whether the module was loaded at another state.
    fn is_outdated(&self, module: Module<'_>) -> bool {
        self.stamps.get(&*module.path.to_string_lossy()).is_some_and(|stamp| stamp != module.stamp)
    }

    fn has_loaded(&self, module: Module<'_>) -> bool {
        self.stamps.get(&*module.path.to_string_lossy()).is_some_and(|stamp| stamp == module.stamp)
    }

    fn take_in(&mut self, wanted: &Wanted<'_>) {
        let Wanted { module, origin, .. } = wanted;
        self.stamps.insert(module.path.to_string_lossy().into_owned(), module.stamp.to_owned());
        self.origins.insert(origin.key());
        self.alone |= origin.alone;
    }
}

/// A worker, and what has run in it.
struct Kept {
    worker: Worker,
    past: Past,
}

/// A pool of workers. Clones share it; whoever drops the last one ends the workers, and what they started.
///
/// Guarantees: a worker carries out one call at a time; no more than `width` do so at once; a call that fails ends no other. Two
/// versions of a module never run in one worker, nor anything beside what must be alone.
#[derive(Clone)]
pub struct Pool(Arc<Owner>);

/// Ends the workers when it is dropped: nothing else does, so that they are not left to a thread that ends too late.
struct Owner {
    shared: Arc<Shared>,
}

struct Shared {
    settings: Settings,
    earlier: Earlier,
    state: Mutex<PoolState>,
    /// A worker became free.
    changed: Condvar,
    /// The pool ends.
    closing: Condvar,
    closed: Cancel,
}

#[derive(Default)]
struct PoolState {
    /// Those that do nothing, since when, the longest first.
    idle: Vec<(Kept, Instant)>,
    /// The code that runs in those that are leased, by lease.
    leased: BTreeMap<u64, Past>,
    leases: u64,
    /// For which variables workers are being started ahead of calls.
    starting: Vec<Vec<String>>,
    /// The times that workers have taken, which decide about further ones.
    costs: Costs,
    has_reaper: bool,
    is_closed: bool,
    threads: Vec<JoinHandle<()>>,
}

impl PoolState {
    /// A worker that does nothing and fits; one that has the module loaded, if there is one.
    fn take(&mut self, wanted: &Wanted<'_>) -> Option<Kept> {
        let fits = |kept: &Kept| kept.past.fits(wanted);
        let loaded = self.idle.iter().position(|(kept, _)| fits(kept) && kept.past.has_loaded(wanted.module));
        let any = || self.idle.iter().position(|(kept, _)| fits(kept));
        loaded.or_else(any).map(|index| self.idle.remove(index).0)
    }

    /// Returns whether a worker is busy, or will be there, that fits.
    fn may_get_one(&self, wanted: &Wanted<'_>) -> bool {
        let will_be = self.starting.iter().any(|inherited| *inherited == wanted.inherited);
        will_be || self.leased.values().any(|past| past.fits(wanted))
    }

    fn enter(&mut self, wanted: &Wanted<'_>, kept: Option<&Kept>) -> u64 {
        let mut past = kept.map_or_else(|| Past::of(wanted.inherited), |kept| kept.past.clone());
        past.take_in(wanted);
        self.leases += 1;
        self.leased.insert(self.leases, past);
        self.leases
    }

    /// Starts a thread that the end of the pool waits for.
    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> bool {
        self.threads.retain(|thread| !thread.is_finished());
        let thread = thread::Builder::new().name(name.to_owned()).spawn(work);
        thread.map(|thread| self.threads.push(thread)).is_ok()
    }

    /// Those that nobody needs any more, the ones that did nothing for the longest time.
    fn surplus(&mut self, width: usize) -> Vec<(Kept, Instant)> {
        let most = (width + SPARE).saturating_sub(self.leased.len());
        self.idle.drain(..self.idle.len().saturating_sub(most)).collect()
    }
}

/// A worker for calls one after the other, until this is dropped.
pub struct Lease<'a> {
    shared: &'a Arc<Shared>,
    id: u64,
    origin: Origin,
    kept: Option<Kept>,
}

impl Pool {
    /// A pool without workers; they are started when they are needed.
    pub fn new(settings: Settings) -> Self {
        let (earlier, state) = (Earlier::default(), Mutex::default());
        let (changed, closing) = (Condvar::new(), Condvar::new());
        let shared = Shared { settings, earlier, state, changed, closing, closed: Cancel::default() };
        Self(Arc::new(Owner { shared: Arc::new(shared) }))
    }

    /// The directories of modules that workers are given.
    pub fn module_path(&self) -> &[PathBuf] {
        &self.0.shared.settings.module_path
    }

    /// A single call.
    pub fn call(
        &self,
        call: &Call<'_>,
        limits: &Limits<'_>,
        forward: &mut dyn FnMut(StreamRecord),
    ) -> Result<MethodReply, Failed> {
        self.lease(call.module, Origin::of_file(call.module.path), limits)?.call(call, limits, forward)
    }

    /// Waits for a worker: one that has the module loaded, if there is one. Whether there is a process is seen at the first
    /// call.
    pub fn lease(&self, module: Module<'_>, origin: Origin, limits: &Limits<'_>) -> Result<Lease<'_>, Failed> {
        let shared = &self.0.shared;
        // They would only fail their next call. Ending a process takes time: outside of the lock.
        let outdated: Vec<_> = shared.lock().idle.extract_if(.., |(kept, _)| kept.past.is_outdated(module)).collect();
        drop(outdated);
        let wanted = Wanted { module, origin: &origin, inherited: limits.inherited };
        let (kept, id, surplus) = shared.wait(&wanted, limits)?;
        drop(surplus);
        Ok(Lease { shared, id, origin, kept })
    }

    /// Returns those of the names, which a resource reads, that this process has as variables and workers are not given: each once as
    /// long as there is the pool.
    pub fn newly_withheld(&self, resource: &str, names: &BTreeSet<String>, inherited: &[String]) -> Vec<String> {
        let Shared { settings, earlier, .. } = &*self.0.shared;
        let mut environment = settings.environment.clone();
        environment.add_of_this_process(inherited);
        let is_withheld = |name: &&String| !start::is_set(name) && environment.withholds(name);
        let withheld = names.iter().filter(is_withheld);
        withheld.filter(|name| earlier.is_first_of(resource, name)).cloned().collect()
    }

    /// Ends the workers, and what they started, before it returns; one that carries out a call ends after it. There are no others
    /// afterwards than for single calls. Whoever leaves the pool to the end of the process calls this.
    pub fn end(&self) {
        self.0.shared.end();
    }

    /// Returns the number of processes.
    pub fn workers(&self) -> usize {
        let state = self.0.shared.lock();
        state.idle.len() + state.leased.len()
    }
}

type Surplus = Vec<(Kept, Instant)>;

impl Shared {
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room, and for a worker that fits as long as that is quicker than to start one.
    fn wait(
        self: &Arc<Self>,
        wanted: &Wanted<'_>,
        limits: &Limits<'_>,
    ) -> Result<(Option<Kept>, u64, Surplus), Failed> {
        let width = self.settings.width.max(1);
        let (mut state, since) = (self.lock(), Instant::now());
        loop {
            if state.leased.len() < width {
                let kept = state.take(wanted);
                if kept.is_some() || self.settings.most_calls == 1 || !state.may_get_one(wanted) {
                    let id = state.enter(wanted, kept.as_ref());
                    let surplus = state.surplus(width);
                    return Ok((kept, id, surplus));
                }
                self.start_ahead(&mut state, limits, since.elapsed());
            }
            if limits.cancel.is_cancelled() {
                return Err(Failed::Cancelled);
            }
            let left = limits.deadline.left();
            if left.is_zero() {
                return Err(Failed::Busy(limits.deadline.allowed));
            }
            let begun = Instant::now();
            let woken = self.changed.wait_timeout(state, left.min(CANCEL_POLL));
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
            state.costs.waited(begun.elapsed());
        }
    }

    /// Starts another worker without a call that waits for it alone, once it is worth its start.
    fn start_ahead(self: &Arc<Self>, state: &mut PoolState, limits: &Limits<'_>, age: Duration) {
        let there = state.idle.len() + state.leased.len() + state.starting.len();
        let is_worth = || state.costs.are_worth_another(there, age, limits.to_come);
        if there >= self.settings.width || state.is_closed || !is_worth() {
            return;
        }
        state.costs.begins();
        let (shared, inherited, output) = (Arc::clone(self), limits.inherited.to_vec(), limits.output);
        state.starting.push(inherited.clone());
        if !state.spawn("powershell start", move || shared.add(&inherited, output)) {
            // Calls would wait for it.
            state.starting.pop();
        }
    }

    fn add(self: &Arc<Self>, inherited: &[String], output: usize) {
        let limits = Limits { deadline: Deadline::after(AHEAD), output, cancel: &self.closed, inherited, to_come: 0 };
        let started = start::start(&self.settings, &self.earlier, &limits);
        let mut state = self.lock();
        if let Some(index) = state.starting.iter().position(|each| each == inherited) {
            state.starting.swap_remove(index);
        }
        let late = match started {
            Ok(worker) => self.keep(&mut state, Kept { worker, past: Past::of(inherited) }),
            Err(error) => {
                tracing::debug!("no other PowerShell beside the ones that run: {error}");
                None
            }
        };
        drop(state);
        drop(late);
        self.changed.notify_all();
    }

    /// Keeps a worker that does nothing, until it did so for too long; returns it where the pool has ended.
    fn keep(self: &Arc<Self>, state: &mut PoolState, kept: Kept) -> Option<Kept> {
        if state.is_closed {
            return Some(kept);
        }
        state.idle.push((kept, Instant::now()));
        if !mem::replace(&mut state.has_reaper, true) {
            let shared = Arc::clone(self);
            state.has_reaper = state.spawn("powershell idle", move || shared.reap());
        }
        None
    }

    /// Ends all workers that do nothing, and keeps none any more.
    fn end(&self) {
        self.closed.cancel();
        let mut state = self.lock();
        state.is_closed = true;
        let (mut idle, threads) = (mem::take(&mut state.idle), mem::take(&mut state.threads));
        drop(state);
        self.closing.notify_all();
        // All at once: each takes a moment.
        for (kept, _) in &mut idle {
            kept.worker.ask_to_end();
        }
        drop(idle);
        for thread in threads {
            drop(thread.join());
        }
    }

    /// Ends workers that did nothing for too long, until there is none.
    fn reap(&self) {
        let idle = self.settings.idle;
        let mut state = self.lock();
        while !state.is_closed && !state.idle.is_empty() {
            let expired: Vec<_> = state.idle.extract_if(.., |(_, since)| since.elapsed() >= idle).collect();
            if !expired.is_empty() {
                drop(state);
                drop(expired);
                state = self.lock();
                continue;
            }
            let next = state.idle.iter().map(|(_, since)| idle.saturating_sub(since.elapsed())).min();
            let waited = self.closing.wait_timeout(state, next.unwrap_or_default());
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.has_reaper = false;
    }
}

impl Lease<'_> {
    /// Carries out a call. A worker that cannot go on is replaced at the next one.
    pub fn call(
        &mut self,
        call: &Call<'_>,
        limits: &Limits<'_>,
        forward: &mut dyn FnMut(StreamRecord),
    ) -> Result<MethodReply, Failed> {
        let settings = &self.shared.settings;
        let wanted = Wanted { module: call.module, origin: &self.origin, inherited: limits.inherited };
        // Nor one that ended while it was idle.
        let usable = self.kept.take().filter(|kept| kept.past.fits(&wanted));
        let usable = usable.and_then(|kept| Some(Kept { worker: kept.worker.if_ready()?, past: kept.past }));
        let mut kept = match usable {
            Some(kept) => kept,
            None => self.started(limits)?,
        };
        kept.past.take_in(&wanted);
        let (begun, is_first) = (Instant::now(), kept.worker.calls == 0);
        let reply = kept.worker.call(call, limits, forward);
        let took = begun.elapsed();
        self.shared.lock().costs.called(took, is_first);
        let is_large = kept.worker.memory(took).is_some_and(|memory| memory > settings.most_memory);
        let is_worn = kept.worker.calls >= settings.most_calls || is_large;
        self.kept = Some(kept).filter(|kept| kept.worker.session.is_some() && !is_worn);
        reply
    }

    fn started(&self, limits: &Limits<'_>) -> Result<Kept, Failed> {
        let begun = Instant::now();
        let worker = start::start(&self.shared.settings, &self.shared.earlier, limits)?;
        // Whoever waited for it gets it, and not another one for that.
        self.shared.lock().costs.started(begun.elapsed());
        Ok(Kept { worker, past: Past::of(limits.inherited) })
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.leased.remove(&self.id);
        let late = self.kept.take().and_then(|kept| self.shared.keep(&mut state, kept));
        drop(state);
        drop(late);
        self.shared.changed.notify_all();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.end();
    }
}
