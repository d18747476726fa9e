//! Calls that start a process, or wait: beside each other.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use stead_core::call::Call;

use super::{Context, Signal, carry_out, carry_out_together, no_thread};

/// The lane of long calls.
pub(super) struct LongLane {
    width: usize,
    workers: usize,
    /// How many jobs were handed out and have not come back; each is a call, or several that are carried out together.
    given: usize,
    queue: Arc<Queue>,
}

impl LongLane {
    pub(super) fn new(width: usize) -> Self {
        Self { width, workers: 0, given: 0, queue: Arc::default() }
    }

    pub(super) fn given(&self) -> usize {
        self.given
    }

    /// One more for each worker waits already, so that none idles until it was decided what comes next.
    pub(super) fn room(&self) -> usize {
        let ahead = if self.width == 1 { 1 } else { self.width * 2 };
        ahead.saturating_sub(self.given)
    }

    pub(super) fn start(&mut self, job: Vec<Arc<Call>>, context: &Context) {
        if self.workers <= self.given && self.workers < self.width {
            let (queue, own) = (Arc::clone(&self.queue), context.clone());
            match context.pool.submit(move || work(&own, &queue)) {
                Ok(()) => self.workers += 1,
                Err(error) if self.workers == 0 => {
                    self.given += 1;
                    // Nobody is gone while the executor has the receiver.
                    let _ = context
                        .sender
                        .send(Signal::Long(job.into_iter().map(|call| no_thread(call, &error)).collect()));
                    return;
                }
                // The others get to it.
                Err(_) => {}
            }
        }
        self.given += 1;
        self.queue.push(job);
    }

    pub(super) fn ended(&mut self) {
        self.given = self.given.saturating_sub(1);
    }

    /// Hands out nothing more.
    pub(super) fn close(&mut self) {
        self.given -= self.queue.close().min(self.given);
    }
}

fn work(context: &Context, queue: &Queue) {
    while queue.wait() {
        // Before it takes a call, so that one that waits for a permit can still be left undone.
        context.permits.acquire();
        let finished = queue.take().map(|job| match <[_; 1]>::try_from(job) {
            Ok([call]) => vec![carry_out(&*context.calls, call, Instant::now())],
            Err(several) => carry_out_together(&*context.calls, several, Instant::now()),
        });
        context.permits.release();
        if let Some(finished) = finished
            && context.sender.send(Signal::Long(finished)).is_err()
        {
            return;
        }
    }
}

/// Jobs that wait for a worker.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Vec<Arc<Call>>>,
    closed: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, job: Vec<Arc<Call>>) {
        self.lock().waiting.push_back(job);
        self.changed.notify_one();
    }

    /// Waits for a job; `false` once the queue is closed.
    fn wait(&self) -> bool {
        let idle = |state: &mut State| !state.closed && state.waiting.is_empty();
        let state = self.changed.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
        !state.closed
    }

    fn take(&self) -> Option<Vec<Arc<Call>>> {
        self.lock().waiting.pop_front()
    }

    /// Returns how many jobs waited.
    fn close(&self) -> usize {
        let mut state = self.lock();
        state.closed = true;
        self.changed.notify_all();
        std::mem::take(&mut state.waiting).len()
    }
}
