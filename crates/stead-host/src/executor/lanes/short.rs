//! Calls of microseconds: one thread at a time, in order, watched from outside.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use stead_core::call::Call;

use super::super::{CallWatch, Inline};
use super::{Context, Finished, Signal, carry_out, no_thread};

/// How many calls end before the executor is woken, which costs more than a call.
const SIGNAL_AFTER: usize = 128;

/// How long a call that has ended waits at most until the executor is woken.
const SIGNAL_WITHIN: Duration = Duration::from_millis(5);

/// The lane of short calls.
pub(super) struct ShortLane {
    capacity: usize,
    inline: Inline,
    /// How many calls were handed out and have not come back.
    given: usize,
    queue: Arc<Queue>,
}

impl ShortLane {
    pub(super) fn new(capacity: usize, inline: Inline) -> Self {
        Self { capacity, inline, given: 0, queue: Arc::default() }
    }

    pub(super) fn given(&self) -> usize {
        self.given
    }

    /// How long a call may take, where the executor sees to it.
    pub(super) fn deadline(&self) -> Option<Duration> {
        match self.inline {
            Inline::Beside(deadline) => Some(deadline),
            Inline::Here(_) => None,
        }
    }

    pub(super) fn room(&self) -> usize {
        self.capacity.saturating_sub(self.given)
    }

    pub(super) fn start(&mut self, calls: impl Iterator<Item = Arc<Call>>, context: &Context) {
        if let Inline::Here(watch) = &self.inline {
            self.given += carry_out_here(calls, watch, &self.queue, context);
            return;
        }
        let mut state = self.queue.lock();
        let before = state.waiting.len();
        state.waiting.extend(calls);
        self.given += state.waiting.len() - before;
        let has_worker = std::mem::replace(&mut state.has_worker, true);
        drop(state);
        if !has_worker {
            self.start_worker(context);
        }
    }

    fn start_worker(&self, context: &Context) {
        let (queue, own) = (Arc::clone(&self.queue), context.clone());
        if let Err(error) = context.pool.submit(move || work(&own, &queue)) {
            let mut state = self.queue.lock();
            state.has_worker = false;
            let failed: Vec<_> = state.waiting.drain(..).map(|call| no_thread(call, &error)).collect();
            state.finished.extend(failed);
            // Nobody is gone while the executor has the receiver.
            let _ = context.sender.send(Signal::Short);
        }
    }

    /// Takes what has ended. A call that takes too long has failed: its thread is left alone, and another goes on with the
    /// rest.
    pub(super) fn take_finished(&mut self, context: &Context, into: &mut Vec<Finished>) {
        let mut state = self.queue.lock();
        self.given -= state.finished.len();
        into.append(&mut state.finished);
        let Inline::Beside(deadline) = self.inline else { return };
        let Some((call, began)) = state.current.take_if(|(_, began)| began.elapsed() >= deadline) else { return };
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        context.permits.release();
        let response = Inline::failure(deadline).into();
        into.push(Finished { call, response, elapsed: began.elapsed(), footprint: None });
        (self.queue, self.given) = (Arc::default(), 0);
        if !waiting.is_empty() {
            self.start(waiting.into_iter(), context);
        }
    }

    /// Hands out nothing more.
    pub(super) fn close(&mut self) {
        let mut state = self.queue.lock();
        self.given -= std::mem::take(&mut state.waiting).len().min(self.given);
    }
}

/// Carries out calls on this thread; how many.
fn carry_out_here(
    calls: impl Iterator<Item = Arc<Call>>,
    watch: &CallWatch,
    queue: &Queue,
    context: &Context,
) -> usize {
    let mut count = 0;
    for call in calls {
        context.permits.acquire();
        let began = Instant::now();
        *watch.began() = Some(began);
        let finished = carry_out(&*context.calls, call, began);
        *watch.began() = None;
        context.permits.release();
        queue.lock().finished.push(finished);
        count += 1;
    }
    // The executor has the receiver: it is this thread.
    let _ = context.sender.send(Signal::Short);
    count
}

/// Carries out calls until none waits, or another thread has taken over.
fn work(context: &Context, queue: &Queue) {
    // Before a call begins: while it waits for a permit its deadline does not run.
    context.permits.acquire();
    let mut signalled = Instant::now();
    let mut next = queue.lock().begin(signalled);
    while let Some((call, began)) = next {
        let finished = carry_out(&*context.calls, call, began);
        let now = began + finished.elapsed;
        match queue.exchange((finished, now), &mut signalled, context) {
            Following::Call(call, began) => next = Some((call, began)),
            Following::Nothing => next = None,
            // Whoever answered the call released the permit.
            Following::TakenOver => return,
        }
    }
    context.permits.release();
}

#[derive(Default)]
struct Queue(Mutex<State>);

#[derive(Default)]
struct State {
    waiting: VecDeque<Arc<Call>>,
    /// The call that is under way, and since when. Whoever takes it out answers it.
    current: Option<(Arc<Call>, Instant)>,
    finished: Vec<Finished>,
    /// True if a thread works on the calls that wait, or is about to.
    has_worker: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands in what has ended at an instant, and takes the next call if one waits.
    fn exchange(&self, (finished, now): (Finished, Instant), signalled: &mut Instant, context: &Context) -> Following {
        let mut state = self.lock();
        if state.current.take().is_none() {
            return Following::TakenOver;
        }
        state.finished.push(finished);
        let next = state.begin(now);
        let many = state.finished.len() >= SIGNAL_AFTER || next.is_none();
        drop(state);
        if many || now.duration_since(*signalled) >= SIGNAL_WITHIN {
            *signalled = now;
            // The executor may have gone; then nobody is interested.
            let _ = context.sender.send(Signal::Short);
        }
        next.map_or(Following::Nothing, |(call, began)| Following::Call(call, began))
    }
}

/// The action of a worker after a call.
enum Following {
    /// This call, which begins at this instant.
    Call(Arc<Call>, Instant),
    /// It ends: nothing waits.
    Nothing,
    /// It ends: its last call took too long and was answered by somebody else.
    TakenOver,
}

impl State {
    /// The next call; the worker ends where there is none.
    fn begin(&mut self, now: Instant) -> Option<(Arc<Call>, Instant)> {
        let next = self.waiting.pop_front();
        self.has_worker = next.is_some();
        let call = next?;
        self.current = Some((Arc::clone(&call), now));
        Some((call, now))
    }
}
