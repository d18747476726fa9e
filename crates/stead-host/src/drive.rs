//! The loop that drives a run: it does what the run decides, and tells the run what came of it.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use std::sync::Arc;
use stead_core::call::{Call, Execution, Failure, FailureKind, Response};
use stead_core::event::{Event, Fact};
use stead_core::expr::FactKey;
use stead_core::run::Run;
use stead_core::value::Value;

use crate::provider::{Cancel, Cost};

/// What the loop needs of the world outside the core.
pub trait World: Sync {
    /// Carries out a call. Blocks; called from several threads at once.
    fn answer(&self, call: &Call) -> Response;

    /// In what-if: the paths that the instance of a call reads or writes, if that is all it can have an effect on.
    fn touches(&self, call: &Call) -> Option<Vec<PathBuf>>;

    /// How long a call takes, in order of magnitude.
    fn cost(&self, call: &Call) -> Cost;

    /// Supplies a fact.
    fn learn(&self, key: &FactKey) -> Result<Value, String>;
}

/// How many calls of microseconds are made before the run is looked at again.
const BATCH: usize = 64;

/// How often a run that waits looks whether it was cancelled.
const GLANCE: Duration = Duration::from_millis(50);

/// Drives a run to its end. Every event is given to `consumer` once it is applied.
///
/// Guarantees: at most `width` calls are under way on other threads, and as many wait for one; calls of microseconds are made on this one, and with a
/// width of 1 all are, one after the other in the order of the graph. Once `cancel` is set nothing more is begun, and it returns when what is under
/// way has ended. A call that panics has failed.
pub fn drive(
    run: &mut Run,
    world: &dyn World,
    width: NonZeroUsize,
    cancel: &Cancel,
    consumer: &mut dyn FnMut(&Run, &Event),
) {
    let mut driver = Driver { run, world, cancel, consumer };
    driver.note(Fact::Began);
    if width.get() == 1 {
        driver.alone();
    } else {
        driver.with_crew(width.get());
    }
    driver.learn_for_outputs();
}

struct Driver<'a> {
    run: &'a mut Run,
    world: &'a dyn World,
    cancel: &'a Cancel,
    consumer: &'a mut dyn FnMut(&Run, &Event),
}

impl Driver<'_> {
    fn note(&mut self, fact: Fact) {
        let event = Event { at: Timestamp::now(), fact };
        self.run.apply(&event);
        (self.consumer)(self.run, &event);
    }

    /// What can be handed out, after everything that needs nobody outside has been noted.
    fn decide(&mut self, room: usize) -> Vec<Call> {
        loop {
            if self.cancel.is_cancelled() && !self.run.report().cancelled {
                self.note(Fact::Cancelled);
            }
            let next = self.run.next(room);
            let nothing_to_note = next.facts.is_empty() && next.wants.is_empty();
            for fact in next.facts {
                self.note(fact);
            }
            for key in next.wants {
                let value = self.world.learn(&key);
                self.note(Fact::Learned { key, value });
            }
            if nothing_to_note || !next.calls.is_empty() {
                return next.calls;
            }
        }
    }

    /// Outputs may ask for facts that nothing else needed; one may lead to the next.
    fn learn_for_outputs(&mut self) {
        loop {
            let wants = self.run.output_wants();
            if wants.is_empty() {
                return;
            }
            for key in wants {
                let value = self.world.learn(&key);
                self.note(Fact::Learned { key, value });
            }
        }
    }

    fn announce(&mut self, call: &Call) {
        let (node, operation, execution) = (call.node, call.operation, call.execution);
        self.note(Fact::Asked { node, operation, execution, desired: Arc::clone(&call.desired) });
    }

    fn answered(&mut self, done: Done) {
        let Done { call, answer, elapsed, touches } = done;
        let (node, operation) = (call.node, call.operation);
        self.note(Fact::Response { node, operation, answer: Arc::new(answer), elapsed, touches });
    }

    fn alone(&mut self) {
        while let Some(call) = self.decide(1).pop() {
            self.announce(&call);
            let done = Done::by(self.world, call);
            self.answered(done);
        }
    }

    fn with_crew(&mut self, width: usize) {
        let queue = Queue::default();
        let (sender, answers) = channel();
        let world = self.world;
        thread::scope(|scope| {
            let _close = Closing(&queue);
            let mut hire = || {
                let (queue, sender) = (&queue, sender.clone());
                scope.spawn(move || work(world, queue, &sender));
            };
            let mut crew = Crew { width, hired: 0, given: 0, queue: &queue, hire: &mut hire };
            self.conduct(&mut crew, &answers);
        });
    }

    fn conduct(&mut self, crew: &mut Crew<'_>, answers: &Receiver<Done>) {
        let mut room = BATCH;
        loop {
            // Each time until nothing more comes: what is noted in between can let others go first.
            while crew.has_room() {
                let calls = self.decide(room);
                let Some(last) = calls.last() else { break };
                // Calls that there is no worker for are decided again; so as few as possible are decided for nothing.
                room = match self.world.cost(last) {
                    Cost::Process => crew.room(),
                    Cost::Inline => BATCH,
                };
                self.hand_out(calls, crew);
            }
            if self.run.asked() == 0 && self.run.is_finished() {
                return;
            }
            match answers.recv_timeout(GLANCE) {
                Ok(done) => {
                    crew.given -= 1;
                    self.answered(done);
                }
                // A cancelled run goes on to wait for what is under way; deciding notes the cancellation.
                Err(RecvTimeoutError::Timeout) => {
                    self.decide(0);
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Makes the cheap calls and hands the others to workers, as long as there are free ones. The rest is decided again
    /// later.
    fn hand_out(&mut self, calls: Vec<Call>, crew: &mut Crew<'_>) {
        for call in calls {
            if !crew.has_room() || self.cancel.is_cancelled() {
                return;
            }
            self.announce(&call);
            match self.world.cost(&call) {
                Cost::Process => crew.take(call),
                Cost::Inline => {
                    let done = Done::by(self.world, call);
                    self.answered(done);
                }
            }
        }
    }
}

/// The threads that make calls which take long. They are hired when first needed: most runs need none.
struct Crew<'a> {
    width: usize,
    hired: usize,
    /// The calls that were handed out and not answered.
    given: usize,
    queue: &'a Queue,
    hire: &'a mut dyn FnMut(),
}

impl Crew<'_> {
    /// How many calls more can be handed out: one for each worker waits already while it works on another, so that none
    /// idles until the driver has decided what comes next.
    fn room(&self) -> usize {
        (self.width * 2).saturating_sub(self.given)
    }

    fn has_room(&self) -> bool {
        self.room() > 0
    }

    fn take(&mut self, call: Call) {
        if self.hired == self.given && self.hired < self.width {
            (self.hire)();
            self.hired += 1;
        }
        self.given += 1;
        self.queue.push(call);
    }
}

/// A call that was carried out.
struct Done {
    call: Call,
    answer: Response,
    elapsed: Duration,
    touches: Option<Vec<PathBuf>>,
}

impl Done {
    fn by(world: &dyn World, call: Call) -> Self {
        let began = Instant::now();
        // A defect in one call must neither end the others nor let the run wait for an answer that never comes.
        let answer = catch_unwind(AssertUnwindSafe(|| world.answer(&call))).unwrap_or_else(|_| defect());
        let elapsed = began.elapsed();
        let touches = match call.execution {
            Execution::WhatIf => catch_unwind(AssertUnwindSafe(|| world.touches(&call))).unwrap_or_default(),
            Execution::Actual => None,
        };
        Self { call, answer, elapsed, touches }
    }
}

fn defect() -> Response {
    Failure::new(FailureKind::System, "the call stopped because of a defect in this program").into()
}

fn work(world: &dyn World, queue: &Queue, answers: &Sender<Done>) {
    while let Some(call) = queue.pop() {
        if answers.send(Done::by(world, call)).is_err() {
            return;
        }
    }
}

/// Calls that wait for a worker.
#[derive(Default)]
struct Queue {
    waiting: Mutex<(VecDeque<Call>, bool)>,
    changed: Condvar,
}

/// Closes the queue even when the loop ends by a panic: its workers would wait for ever, and the panic for them.
struct Closing<'a>(&'a Queue);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Queue {
    fn push(&self, call: Call) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).0.push_back(call);
        self.changed.notify_one();
    }

    /// The next call; `None` once the queue is closed.
    fn pop(&self) -> Option<Call> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(call) = waiting.0.pop_front() {
                return Some(call);
            }
            if waiting.1 {
                return None;
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn close(&self) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.changed.notify_all();
    }
}
