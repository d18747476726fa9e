//! Where calls are carried out: short ones in order on one thread at a time, long ones beside each other.

mod long;
mod reviews;
mod short;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use stead_core::call::{Call, Execution, Failure, FailureKind, Response};
use stead_core::footprint::Footprint;
use stead_core::run::KnownInstance;

use super::{BATCH, Calls, Chosen, Inline, Limits};
use crate::provider::{Cost, Review};
use crate::worker_pool::WorkerPool;
use long::LongLane;
use short::ShortLane;

/// A call that has ended.
pub(super) struct Finished {
    pub(super) call: Arc<Call>,
    pub(super) response: Response,
    pub(super) elapsed: Duration,
    pub(super) footprint: Option<Footprint>,
}

/// Both lanes, and what comes out of them.
pub(super) struct Lanes {
    width: NonZeroUsize,
    short: ShortLane,
    long: LongLane,
    signals: Receiver<Signal>,
    context: Context,
}

/// The state that the threads of both lanes share.
#[derive(Clone)]
struct Context {
    calls: Arc<dyn Calls>,
    pool: Arc<WorkerPool>,
    permits: Arc<Permits>,
    sender: Sender<Signal>,
}

/// The event that wakes the executor.
enum Signal {
    /// Short calls have ended.
    Short,
    /// Long calls of one job have ended.
    Long(Vec<Finished>),
}

impl Lanes {
    pub(super) fn new(calls: &Arc<dyn Calls>, pool: &Arc<WorkerPool>, limits: Limits) -> Self {
        let (sender, signals) = channel();
        let width = limits.width;
        let permits = Arc::new(Permits::of(width.get()));
        let context = Context { calls: Arc::clone(calls), pool: Arc::clone(pool), permits, sender };
        let capacity = if width.get() == 1 || matches!(limits.inline, Inline::Here(_)) { 1 } else { BATCH };
        let short = ShortLane::new(capacity, limits.inline);
        Self { width, short, long: LongLane::new(width.get()), signals, context }
    }

    /// How many more calls can be handed out, whatever they cost.
    pub(super) fn room(&self) -> usize {
        match self.width.get() {
            // One after the other, whichever lane they take.
            1 => 1_usize.saturating_sub(self.short.given() + self.long.given()),
            _ => self.short.room().max(self.long.room()),
        }
    }

    pub(super) fn room_for(&self, cost: Cost) -> usize {
        match cost {
            Cost::Inline => self.short.room(),
            Cost::Process => self.long.room(),
        }
    }

    /// Returns whether one is made after the other, whichever lane they take.
    pub(super) fn is_serial(&self) -> bool {
        self.width.get() == 1
    }

    /// Hands out calls. Assumptions: there is room for them.
    pub(super) fn start(&mut self, calls: Vec<Chosen>) {
        let (short, long): (Vec<_>, Vec<_>) = calls.into_iter().partition(|chosen| chosen.job.is_none());
        if !short.is_empty() {
            self.short.start(short.into_iter().map(|chosen| chosen.call), &self.context);
        }
        let mut jobs: BTreeMap<Option<usize>, Vec<Arc<Call>>> = BTreeMap::new();
        for Chosen { job, call } in long {
            jobs.entry(job).or_default().push(call);
        }
        for calls in jobs.into_values() {
            self.long.start(calls, &self.context);
        }
    }

    /// Returns the calls that have ended, as soon as one has.
    pub(super) fn finished(&mut self, longest: Duration) -> Result<Vec<Finished>, RecvTimeoutError> {
        let mut finished = Vec::new();
        let first = self.signals.recv_timeout(longest);
        for signal in first.into_iter().chain(self.signals.try_iter()) {
            match signal {
                Signal::Short => {}
                Signal::Long(done) => {
                    self.long.ended();
                    finished.extend(done);
                }
            }
        }
        self.short.take_finished(&self.context, &mut finished);
        if finished.is_empty() { Err(RecvTimeoutError::Timeout) } else { Ok(finished) }
    }

    /// Reviews instances, as many at once as calls are made, each given what can have changed it since; in their order.
    pub(super) fn review(&self, looks: Vec<reviews::Look>) -> Vec<(KnownInstance, Review)> {
        let deadline = self.short.deadline();
        reviews::review(looks, &self.context.calls, &self.context.pool, self.width.get(), deadline)
    }

    /// Waits for what is under way; nothing that waits in a queue is begun any more. What ends now is not recorded.
    pub(super) fn drain(&mut self) {
        self.short.close();
        self.long.close();
        while self.short.given() + self.long.given() > 0 {
            drop(self.finished(Duration::from_millis(50)));
        }
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        self.short.close();
        self.long.close();
    }
}

fn carry_out(calls: &dyn Calls, call: Arc<Call>, began: Instant) -> Finished {
    // A panic in one call must neither end the others nor let the run wait for an answer that never comes.
    let response = catch_unwind(AssertUnwindSafe(|| calls.carry_out(&call))).unwrap_or_else(|_| panicked().into());
    finished(calls, call, response, began.elapsed())
}

fn carry_out_together(calls: &dyn Calls, group: Vec<Arc<Call>>, began: Instant) -> Vec<Finished> {
    let responses = catch_unwind(AssertUnwindSafe(|| calls.carry_out_together(&group))).unwrap_or_default();
    let (elapsed, mut responses) = (began.elapsed(), responses.into_iter());
    let ended = |call| finished(calls, call, responses.next().unwrap_or_else(|| panicked().into()), elapsed);
    group.into_iter().map(ended).collect()
}

fn finished(calls: &dyn Calls, call: Arc<Call>, response: Response, elapsed: Duration) -> Finished {
    let footprint = match call.execution {
        Execution::WhatIf => catch_unwind(AssertUnwindSafe(|| calls.footprint(&call, &response))).unwrap_or_default(),
        Execution::Actual => None,
    };
    Finished { call, response, elapsed, footprint }
}

fn panicked() -> Failure {
    Failure::new(FailureKind::System, "internal error: the call panicked; please report this bug")
}

/// Where the system gives no thread, a call fails; later there may be one.
fn no_thread(call: Arc<Call>, error: &std::io::Error) -> Finished {
    let response = Failure::new(FailureKind::System, format!("cannot start a thread: {error}")).into();
    Finished { call, response, elapsed: Duration::ZERO, footprint: None }
}

/// Limits how many calls are under way, whichever lane they take.
struct Permits {
    free: Mutex<usize>,
    released: Condvar,
}

impl Permits {
    fn of(count: usize) -> Self {
        Self { free: Mutex::new(count), released: Condvar::new() }
    }

    fn acquire(&self) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            free = self.released.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
    }

    fn release(&self) {
        *self.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.released.notify_one();
    }
}
