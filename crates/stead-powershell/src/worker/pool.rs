//! Workers of one PowerShell executable, kept between calls.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use stead_system::process::Environment;

use super::{Call, Failed, Limits, Module, Record, Reply, Worker, start};

/// How often the flag that cancels is looked at while all workers are busy.
const CANCEL_POLL: Duration = Duration::from_millis(100);

/// The settings of the workers: which program they are, how many there are, and how long each is kept.
#[derive(Clone)]
pub struct Settings {
    /// The executable of PowerShell, absolute.
    pub executable: PathBuf,
    /// The environment that workers are given.
    pub environment: Environment,
    /// The directories of modules. Root's workers see those alone that nobody else can change.
    pub module_path: Vec<PathBuf>,
    /// How many there may be at a time.
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

/// A pool of workers. Clones share it; when the last one is gone, so are the workers.
///
/// Guarantees: a worker carries out one call at a time; no more than `width` are there; a call that fails ends no other.
#[derive(Clone)]
pub struct Pool(Arc<Shared>);

struct Shared {
    settings: Settings,
    state: Mutex<PoolState>,
    changed: Condvar,
}

#[derive(Default)]
struct PoolState {
    idle: Vec<(Worker, Instant)>,
    leased: usize,
    has_reaper: bool,
}

impl PoolState {
    /// A worker for calls of a module, if there is one, and those that would be more than the width then.
    fn take(
        &mut self,
        module: Module<'_>,
        inherited: &[String],
        width: usize,
    ) -> (Option<Worker>, Vec<(Worker, Instant)>) {
        let fits = |worker: &Worker| worker.fits(module, inherited);
        let loaded = self.idle.iter().position(|(worker, _)| fits(worker) && worker.has_loaded(module));
        let any = self.idle.iter().position(|(worker, _)| fits(worker));
        let worker = loaded.or(any).map(|index| self.idle.swap_remove(index).0);
        self.leased += 1;
        // Those that are idle count for the width as well.
        let kept = width.saturating_sub(self.leased).min(self.idle.len());
        (worker, self.idle.split_off(kept))
    }
}

/// A worker for calls one after the other, until this is dropped.
pub struct Lease<'a> {
    shared: &'a Arc<Shared>,
    worker: Option<Worker>,
}

impl Pool {
    /// A pool without workers; they are started when they are needed.
    pub fn new(settings: Settings) -> Self {
        Self(Arc::new(Shared { settings, state: Mutex::default(), changed: Condvar::new() }))
    }

    /// A single call.
    pub fn call(&self, call: &Call<'_>, limits: &Limits<'_>, forward: &mut dyn FnMut(Record)) -> Result<Reply, Failed> {
        self.lease(call.module, limits)?.call(call, limits, forward)
    }

    /// Waits for a worker: one that has the module loaded, if there is one. Whether there is a process is seen at the first
    /// call.
    pub fn lease(&self, module: Module<'_>, limits: &Limits<'_>) -> Result<Lease<'_>, Failed> {
        // They would only fail their next call. Ending a process takes time: outside of the lock.
        let outdated: Vec<_> = self.0.lock().idle.extract_if(.., |(worker, _)| worker.is_outdated(module)).collect();
        drop(outdated);
        let width = self.0.settings.width.max(1);
        let mut state = self.0.lock();
        while state.leased >= width {
            if limits.cancel.is_cancelled() {
                return Err(Failed::Cancelled);
            }
            let left = limits.deadline.left();
            if left.is_zero() {
                return Err(Failed::Busy(limits.deadline.allowed));
            }
            let waited = self.0.changed.wait_timeout(state, left.min(CANCEL_POLL));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let (worker, surplus) = state.take(module, limits.inherited, width);
        drop(state);
        drop(surplus);
        Ok(Lease { shared: &self.0, worker })
    }

    /// Returns the number of processes.
    pub fn workers(&self) -> usize {
        let state = self.0.lock();
        state.idle.len() + state.leased
    }
}

impl Lease<'_> {
    /// Carries out a call. A worker that cannot go on is replaced at the next one.
    pub fn call(
        &mut self,
        call: &Call<'_>,
        limits: &Limits<'_>,
        forward: &mut dyn FnMut(Record),
    ) -> Result<Reply, Failed> {
        let settings = &self.shared.settings;
        // Nor one that ended while it was idle.
        let usable = self.worker.take().filter(|worker| worker.fits(call.module, limits.inherited));
        let mut worker = match usable.and_then(Worker::if_running) {
            Some(worker) => worker,
            None => start::start(settings, limits)?,
        };
        let reply = worker.call(call, limits, forward);
        let is_worn = worker.calls >= settings.most_calls || worker.memory() > settings.most_memory;
        self.worker = Some(worker).filter(|worker| worker.session.is_some() && !is_worn);
        reply
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.leased -= 1;
        if let Some(worker) = self.worker.take() {
            state.idle.push((worker, Instant::now()));
            if !std::mem::replace(&mut state.has_reaper, true) {
                let (shared, idle) = (Arc::downgrade(self.shared), self.shared.settings.idle);
                let reaper = std::thread::Builder::new().name("powershell idle".to_owned());
                state.has_reaper = reaper.spawn(move || reap(&shared, idle)).is_ok();
            }
        }
        drop(state);
        self.shared.changed.notify_all();
    }
}

/// Ends workers that were idle for too long, until there is none.
fn reap(shared: &Weak<Shared>, idle: Duration) {
    loop {
        let Some(shared) = shared.upgrade() else { return };
        let mut state = shared.lock();
        let expired: Vec<_> = state.idle.extract_if(.., |(_, since)| since.elapsed() >= idle).collect();
        let next = state.idle.iter().map(|(_, since)| idle.saturating_sub(since.elapsed())).min();
        state.has_reaper = next.is_some();
        drop(state);
        drop((expired, shared));
        let Some(next) = next else { return };
        // In pieces, as the pool may be gone by then.
        std::thread::sleep(next.min(Duration::from_secs(1)));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
