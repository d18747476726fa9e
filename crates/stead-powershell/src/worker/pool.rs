//! Workers of one PowerShell executable, kept between calls.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use stead_host::fs::{Trust, User};
use stead_host::process::Environment;
use stead_host::provider::Cancel;

use super::{Call, Failed, Limits, Method, Module, Object, Record, Reply, Worker, start};

/// How often the flag that cancels is looked at while all workers are busy.
const CANCEL_POLL: Duration = Duration::from_millis(100);

/// What the workers are, how many there are, and how long each is kept.
#[derive(Clone)]
pub struct Settings {
    /// The executable of PowerShell, absolute.
    pub executable: PathBuf,
    /// Whose programs are run.
    pub trust: Trust,
    /// What workers are given of the environment.
    pub environment: Environment,
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
            trust: User::current().trust(),
            environment,
            width,
            idle: Duration::from_mins(5),
            // Modules leak some memory with each call; what has run so often has paid for its start.
            most_calls: 10_000,
            // Three times what one takes with a large module.
            most_memory: 768 << 20,
        }
    }

    /// The same with a process for every call.
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
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    idle: Vec<(Worker, Instant)>,
    leased: usize,
    has_reaper: bool,
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
        self.lease(call.module, limits.cancel)?.call(call, limits, forward)
    }

    /// Waits for a worker: one that has the module loaded, if there is one. Whether there is a process is seen at the first
    /// call.
    pub fn lease(&self, module: Module<'_>, cancel: &Cancel) -> Result<Lease<'_>, Failed> {
        let mut state = self.0.lock();
        // It would only fail its next call.
        let outdated: Vec<_> = state.idle.extract_if(.., |(worker, _)| worker.is_outdated(module)).collect();
        while state.leased >= self.0.settings.width.max(1) {
            if cancel.is_cancelled() {
                return Err(Failed::Cancelled);
            }
            state = self.0.changed.wait_timeout(state, CANCEL_POLL).unwrap_or_else(PoisonError::into_inner).0;
        }
        let loaded = state.idle.iter().position(|(worker, _)| worker.has_loaded(module));
        let any = state.idle.iter().position(|(worker, _)| !worker.is_outdated(module));
        let worker = loaded.or(any).map(|index| state.idle.swap_remove(index).0);
        // Those that are idle count for the width as well.
        let room = self.0.settings.width.max(1).saturating_sub(state.leased + 1);
        let surplus: Vec<_> = if state.idle.len() > room { state.idle.drain(room..).collect() } else { Vec::new() };
        state.leased += 1;
        drop(state);
        drop((outdated, surplus));
        Ok(Lease { shared: &self.0, worker })
    }

    /// How many processes there are.
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
        let usable = self.worker.take().filter(|worker| !worker.is_outdated(call.module));
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

/// What [`Lease::converge`] found and did.
#[derive(Debug)]
pub struct Converged {
    /// The state before.
    pub before: Reply,
    /// Whether it was the desired one already.
    pub in_desired_state: bool,
    /// The set and the state after it, where it was needed.
    pub changed: Option<(Reply, Reply)>,
}

impl Lease<'_> {
    /// Get, test, and where that says so set and get again. `call` says for what; its method and object do not count.
    ///
    /// Test and Set are called on one object. Get has an object of its own: many write what they find into its properties,
    /// from where a Set would take it for what is desired.
    pub fn converge(
        &mut self,
        call: &Call<'_>,
        limits: &Limits<'_>,
        forward: &mut dyn FnMut(Record),
    ) -> Result<Converged, Failed> {
        let mut step = |method, object| self.call(&Call { method, object, ..*call }, limits, forward);
        let before = step(Method::Get, Object::New)?;
        let in_desired_state = step(Method::Test, Object::Hold)?.verdict()?;
        let changed = if in_desired_state {
            None
        } else {
            Some((step(Method::Set, Object::Reuse)?, step(Method::Get, Object::New)?))
        };
        Ok(Converged { before, in_desired_state, changed })
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
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
