//! Calls that start a process, or wait: beside each other.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use stead_core::call::Call;

use super::{Context, Signal, carry_out, no_thread};

/// The lane of long calls.
pub(super) struct LongLane {
    width: usize,
    workers: usize,
    /// How many calls were handed out and have not come back.
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

    pub(super) fn start(&mut self, call: Arc<Call>, context: &Context) {
        if self.workers == self.given && self.workers < self.width {
            let (queue, own) = (Arc::clone(&self.queue), context.clone());
            match context.pool.submit(move || work(&own, &queue)) {
                Ok(()) => self.workers += 1,
                Err(error) if self.workers == 0 => {
                    self.given += 1;
                    // Nobody is gone while the executor has the receiver.
                    let _ = context.sender.send(Signal::Long(Box::new(no_thread(call, &error))));
                    return;
                }
                // The others get to it.
                Err(_) => {}
            }
        }
        self.given += 1;
        self.queue.push(call);
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
    while let Some(call) = queue.pop() {
        context.permits.acquire();
        let finished = carry_out(&*context.calls, call);
        context.permits.release();
        if context.sender.send(Signal::Long(Box::new(finished))).is_err() {
            return;
        }
    }
}

/// Calls that wait for a worker.
#[derive(Default)]
struct Queue {
    waiting: Mutex<(VecDeque<Arc<Call>>, bool)>,
    changed: Condvar,
}

impl Queue {
    fn push(&self, call: Arc<Call>) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).0.push_back(call);
        self.changed.notify_one();
    }

    /// The next call; `None` once the queue is closed.
    fn pop(&self) -> Option<Arc<Call>> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if waiting.1 {
                return None;
            }
            if let Some(call) = waiting.0.pop_front() {
                return Some(call);
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns how many calls waited.
    fn close(&self) -> usize {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.1 = true;
        self.changed.notify_all();
        std::mem::take(&mut waiting.0).len()
    }
}
