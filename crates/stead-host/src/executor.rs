//! Carries a run out: does what the run decides, and records the outcome.
//!
//! ```text
//! Run::next ──▶ events, calls ──▶ Journal::append ──▶ Run::apply ──▶ calls are made ──▶ responses ──▶ Journal::append …
//! ```

mod lanes;
mod waking;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use stead_core::call::{Call, Execution, Failure, FailureKind, Operation, Response};
use stead_core::event::{Event, EventKind, ObservedFact, Problem, Status};
use stead_core::expr::FactKey;
use stead_core::footprint::Footprint;
use stead_core::id::NodeId;
use stead_core::instance_path::InstancePath;
use stead_core::manifest::BatchKey;
use stead_core::run::{KnownInstance, ReplayError, Room, Run};
use stead_core::value::Value;

use crate::journal::{Journal, JournalError};
use crate::provider::{Cost, Review};
use crate::worker_pool::WorkerPool;
use lanes::{Finished, Lanes};
use stead_system::Cancel;
use waking::Waking;

/// The calls that an executor makes to the machine.
pub trait Calls: Send + Sync {
    /// Carries out a call. Blocks; called from several threads at once.
    fn carry_out(&self, call: &Call) -> Response;

    /// What a call has in common with others that it is carried out with; `None` where it is one by itself.
    fn batch(&self, _call: &Call) -> Option<CallBatch> {
        None
    }

    /// Carries out calls of one batch, in whose order the responses are. Blocks, as [`Self::carry_out`] does.
    fn carry_out_together(&self, calls: &[Arc<Call>]) -> Vec<Response> {
        calls.iter().map(|call| self.carry_out(call)).collect()
    }

    /// In what-if: what the instance of an answered call reads and writes, if it has an effect on nothing else; with
    /// absolute paths.
    fn footprint(&self, call: &Call, response: &Response) -> Option<Footprint>;

    /// In what-if: an instance has ended, and nothing is made that it was predicted to change, unless it is to be changed.
    fn settled(&self, _instance: NodeId, _status: &Status) {}

    /// The instances of which something was changed after they were answered, each with those that can have done so.
    fn disturbed(&self) -> BTreeMap<NodeId, Vec<InstancePath>> {
        BTreeMap::new()
    }

    /// Reviews at the end of a run whether what an instance came to has lasted, given what can have changed it since.
    fn review(&self, _instance: &KnownInstance, _after: &[InstancePath]) -> Review {
        Review::Lasted
    }

    /// Puts back, at the end of a run, what brought down something that ran before it, and brings that up again. It gets what failed,
    /// with why, and returns the instances that failed by it, with what is to be said of each.
    fn take_back(&self, _failed: &[(KnownInstance, String)]) -> Vec<(InstancePath, Failure)> {
        Vec::new()
    }

    /// How long a review takes, in order of magnitude.
    fn review_cost(&self, _instance: &KnownInstance) -> Cost {
        Cost::Process
    }

    /// How long a call takes, in order of magnitude.
    fn cost(&self, call: &Call) -> Cost;

    /// Supplies a fact.
    fn fact(&self, key: &FactKey) -> Result<Value, String>;

    /// Returns the watch over pending instances, where anything can be watched.
    fn watch(&self) -> Option<Box<dyn Watch>> {
        None
    }

    /// Returns once a power cut cannot lose what calls have written, as far as the durability policy asks for it.
    fn flush(&self) -> std::io::Result<()>;
}

/// What calls have in common that are ready at the same time and are carried out together, as one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallBatch {
    /// The adapter and the author of their resources.
    pub resources: BatchKey,
    /// The instance that theirs are nested in.
    pub container: Option<InstancePath>,
    /// What is done.
    pub operation: Operation,
    /// Real or what-if.
    pub execution: Execution,
}

/// Tells when what an instance is pending for may have happened.
pub trait Watch {
    /// Watches what an instance reads and manages; whether any of it was not watched before, so that something may have
    /// happened to it.
    fn watch(&mut self, instance: &KnownInstance) -> bool;

    /// Watches an instance no longer.
    fn forget(&mut self, instance: NodeId);

    /// Returns whether anything is watched.
    fn is_watching(&self) -> bool;

    /// Those of which something has changed, waiting at most so long.
    fn changed(&mut self, longest: Duration) -> Vec<NodeId>;
}

/// Follows a run, and can delay it.
pub trait Follower {
    /// Sees an event once it is recorded and applied.
    fn event(&mut self, run: &Run, event: &Event);

    /// Asked each time before calls are made, whether they may be; `changes` says that one of them may change something.
    /// May wait. If they may not be, the run is suspended.
    fn may_begin(&mut self, _changes: bool) -> bool {
        true
    }

    /// Nothing is under way, and nothing is due for this long. Others may go on once the journal is settled.
    fn rests(&mut self, _run: &Run, _journal: &mut dyn Journal, _longest: Duration) {}
}

impl<F: FnMut(&Run, &Event)> Follower for F {
    fn event(&mut self, run: &Run, event: &Event) {
        self(run, event);
    }
}

/// How a run is carried out.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How many calls are carried out at once.
    pub width: NonZeroUsize,
    /// Where calls are carried out that are expected to take microseconds.
    pub inline: Inline,
}

impl Limits {
    /// So many calls at once, and the usual deadline.
    pub fn of(width: NonZeroUsize) -> Self {
        Self { width, inline: Inline::Beside(Inline::DEADLINE) }
    }
}

/// Where calls are carried out that are expected to take microseconds.
#[derive(Clone, Debug)]
pub enum Inline {
    /// On a thread beside the one that decides. A call that takes longer than this has failed, and the run goes on without
    /// waiting for it: a file system that hangs does not hang the run.
    Beside(Duration),
    /// On the thread that decides, so that a single call wakes no other. Whoever started the run watches it, and answers for it
    /// when it hangs.
    Here(Arc<CallWatch>),
}

impl Inline {
    /// How long such a call usually may take.
    pub const DEADLINE: Duration = Duration::from_mins(1);

    /// Returns the failure of a call that took longer.
    pub fn failure(deadline: Duration) -> Failure {
        let message = format!("no answer within {} s: the file system may hang", deadline.as_secs());
        Failure::new(FailureKind::Deadline, message)
    }
}

/// Since when the thread that decides carries out a call.
#[derive(Default, Debug)]
pub struct CallWatch(Mutex<Option<Instant>>);

impl CallWatch {
    /// Returns whether a call has been under way for so long.
    pub fn exceeds(&self, deadline: Duration) -> bool {
        self.began().is_some_and(|began| began.elapsed() >= deadline)
    }

    fn began(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a run early.
#[derive(Clone, Default, Debug)]
pub struct Stop {
    /// Calls under way are asked to end; instances that were not begun are skipped.
    pub cancel: Cancel,
    /// Calls under way end by themselves; the rest is left for whoever resumes the run.
    pub suspend: Cancel,
}

/// Why a run could not be carried out to its end.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    /// An action could not be recorded, so that it was not taken.
    #[error("cannot record the run in its journal")]
    Journal(#[from] JournalError),
    /// A change may not survive a power cut.
    #[error("cannot flush what was written to disk")]
    Flush(#[source] std::io::Error),
    /// The run refused its own event.
    #[error("internal error: the run refused an event of its own")]
    Internal(#[from] ReplayError),
}

/// How long it takes at most until a run that waits notices that it is to stop.
const CANCEL_POLL: Duration = Duration::from_millis(50);

/// How many calls of microseconds are handed out ahead.
const BATCH: usize = 256;

/// Carries out a run until it is finished or stopped. Every event is given to `consumer` once it is recorded and applied.
///
/// Guarantees: a call is made only after the journal holds its announcement. At most [`Limits::width`] calls are under way;
/// with a width of 1 they are made one after the other in the order of the graph, and calls of microseconds are made in that
/// order with every width. Calls of one [`CallBatch`] that are ready at the same time are one of them, up to 256; with a width of 1 those
/// that follow each other. Once it is to stop nothing more is begun, and it returns when what is under way has ended. A call
/// that panics has failed. After an error no call is under way, but for one that exceeded the deadline of
/// [`Inline::Beside`].
pub fn execute(
    run: &mut Run,
    calls: &Arc<dyn Calls>,
    pool: &Arc<WorkerPool>,
    journal: &mut dyn Journal,
    limits: Limits,
    stop: &Stop,
    follower: &mut dyn Follower,
) -> Result<(), ExecuteError> {
    let lanes = Lanes::new(calls, pool, limits);
    let clock = Clock::new();
    let waking = Waking::new(calls.watch());
    let mut executor =
        Executor { run, calls: &**calls, journal, stop, follower, lanes, clock, waking, unflushed: false };
    let ended = executor.carry_out();
    executor.lanes.drain();
    ended
}

/// Wall time that only goes forward while the process lasts.
struct Clock {
    wall: Timestamp,
    monotonic: Instant,
}

impl Clock {
    fn new() -> Self {
        Self { wall: Timestamp::now(), monotonic: Instant::now() }
    }

    fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.monotonic.elapsed()).unwrap_or_default();
        self.wall.checked_add(passed).unwrap_or(Timestamp::MAX)
    }
}

/// A call that is handed out.
struct Chosen {
    /// Those of a number are carried out together; `None` where it takes microseconds.
    job: Option<usize>,
    call: Arc<Call>,
}

struct Executor<'a> {
    run: &'a mut Run,
    calls: &'a dyn Calls,
    journal: &'a mut dyn Journal,
    stop: &'a Stop,
    follower: &'a mut dyn Follower,
    lanes: Lanes,
    clock: Clock,
    waking: Waking,
    /// True if something was changed that the last flush did not cover.
    unflushed: bool,
}

impl Executor<'_> {
    fn carry_out(&mut self) -> Result<(), ExecuteError> {
        let mut room = BATCH;
        loop {
            let wake = self.decide(&mut room)?;
            if self.run.in_flight() == 0 && wake.is_none() && (self.run.is_finished() || self.run.report().suspended) {
                break;
            }
            self.wait(wake)?;
        }
        if self.run.is_finished() {
            self.review()?;
            self.take_back()?;
            self.observe_for_outputs()?;
        }
        self.flush()
    }

    /// Returns whether the run brings instances into their desired states.
    fn is_for_real(&self) -> bool {
        self.run.mode().operation == Operation::Set && self.run.mode().execution == Execution::Actual
    }

    /// Looks once more at what was changed, by an instance itself or by others after it, all of it together: the longest time that
    /// anything must last is waited for once.
    ///
    /// Those that others can have changed are tested at the first look, and not again after the wait. Once the run is to stop,
    /// nothing is waited for.
    fn review(&mut self) -> Result<(), ExecuteError> {
        if !self.is_for_real() {
            return Ok(());
        }
        let mut after = self.calls.disturbed();
        let mut open = self.run.to_review(|id| after.contains_key(&id));
        while !open.is_empty() {
            let (mut refuted, mut longest) = (Vec::new(), None);
            let looks = open.drain(..).map(|known| {
                let after = after.remove(&known.instance.node()).unwrap_or_default();
                (known, after)
            });
            for (known, review) in self.lanes.review(looks.collect()) {
                match review {
                    Review::Lasted => {}
                    Review::TooEarly(wait) => {
                        longest = longest.max(Some(wait));
                        open.push(known);
                    }
                    Review::Failed(failure) => {
                        let problem = Arc::new(Problem::Failure(failure));
                        refuted.push(EventKind::Refuted { instance: known.instance, problem });
                    }
                }
            }
            self.record(refuted)?;
            let until = longest.and_then(|wait| Instant::now().checked_add(wait));
            while until.is_some_and(|until| Instant::now() < until) {
                if self.stop.cancel.is_cancelled() || self.stop.suspend.is_cancelled() {
                    return Ok(());
                }
                std::thread::sleep(CANCEL_POLL);
            }
        }
        Ok(())
    }

    /// Has the changes put back that brought something down: whoever made them has failed as well. Who let these be made need not be
    /// asked again. Once the run is to stop, nothing more is changed.
    fn take_back(&mut self) -> Result<(), ExecuteError> {
        let failed = if self.is_for_real() { self.run.failed() } else { Vec::new() };
        let is_to_stop = self.stop.cancel.is_cancelled() || self.stop.suspend.is_cancelled();
        if failed.is_empty() || is_to_stop {
            return Ok(());
        }
        let refuted = |(instance, failure)| {
            let problem = Arc::new(Problem::Failure(failure));
            EventKind::Refuted { instance, problem }
        };
        let taken_back = self.calls.take_back(&failed);
        self.record(taken_back.into_iter().map(refuted).collect())
    }

    /// Records and hands out what can be, until there is nothing more; returns when to look again at the latest.
    fn decide(&mut self, room: &mut usize) -> Result<Option<Timestamp>, ExecuteError> {
        loop {
            self.record_stop()?;
            let open = self.lanes.room();
            let (now, room_for) = (self.clock.now(), open.min(*room));
            let mut next = self.run.next(now, &Room::of(room_for));
            if room_for < BATCH && next.calls.iter().any(|call| self.calls.batch(call).is_some()) {
                // More may be ready that go with it.
                next = self.run.next(now, &Room::of(BATCH));
                if self.lanes.is_serial() {
                    self.keep_neighbours(&mut next.calls);
                }
            }
            if next.is_idle() {
                return Ok(next.wake);
            }
            let mut kinds = next.events;
            kinds.extend(next.wants.into_iter().map(|key| self.observed(key)));
            let calls = self.chosen(next.calls, room);
            if !calls.is_empty() && !self.follower.may_begin(calls.iter().any(|chosen| chosen.call.changes())) {
                if !self.stop.cancel.is_cancelled() {
                    self.stop.suspend.cancel();
                }
                continue;
            }
            kinds.extend(calls.iter().map(|chosen| chosen.call.started()));
            if kinds.is_empty() {
                return Ok(next.wake);
            }
            self.record(kinds)?;
            self.lanes.start(calls);
        }
    }

    /// Leaves the first call and those that follow it in the order of the graph, with nothing left to do between them.
    fn keep_neighbours(&self, calls: &mut Vec<Arc<Call>>) {
        let first = calls.first().map(|call| call.instance.node());
        let order = self.run.graph().order.iter().skip_while(|id| Some(**id) != first);
        let open = order.filter(|id| self.run.report().status(**id).is_none());
        let count = calls.iter().zip(open).take_while(|(call, id)| call.instance.node() == **id).count();
        calls.truncate(count);
    }

    /// The calls that there is room for now. The others are decided again; so as few as possible are decided for nothing.
    fn chosen(&self, calls: Vec<Arc<Call>>, room: &mut usize) -> Vec<Chosen> {
        let (mut short, mut long) = (self.lanes.room_for(Cost::Inline), self.lanes.room_for(Cost::Process));
        let mut chosen = Vec::with_capacity(calls.len());
        let (mut batches, mut jobs, is_serial) = (Vec::new(), 0, self.lanes.is_serial());
        for call in calls {
            let cost = self.calls.cost(&call);
            let batch = if cost == Cost::Process { self.calls.batch(&call) } else { None };
            if let Some((_, job)) = batches.iter().find(|(known, _)| batch.as_ref() == Some(known)) {
                chosen.push(Chosen { job: Some(*job), call });
                continue;
            }
            let left = if cost == Cost::Inline { &mut short } else { &mut long };
            if *left == 0 || (is_serial && !chosen.is_empty()) {
                if is_serial || batches.is_empty() {
                    break;
                }
                // What is behind it can still go with what goes before it.
                continue;
            }
            *left -= 1;
            let job = (cost == Cost::Process).then_some(jobs);
            jobs += usize::from(job.is_some());
            batches.extend(batch.zip(job));
            chosen.push(Chosen { job, call });
        }
        *room = match chosen.last() {
            Some(Chosen { job: Some(_), .. }) if batches.is_empty() => long.max(1),
            _ => BATCH,
        };
        chosen
    }

    fn record_stop(&mut self) -> Result<(), ExecuteError> {
        let begun = self.run.report().header.is_some();
        if begun && self.stop.cancel.is_cancelled() && !self.run.report().cancelled {
            self.record(vec![EventKind::Cancelled])?;
        }
        if begun && self.stop.suspend.is_cancelled() && !self.run.report().suspended {
            self.record(vec![EventKind::Suspended])?;
        }
        Ok(())
    }

    fn observed(&self, key: FactKey) -> EventKind {
        let value = self.calls.fact(&key);
        EventKind::FactObserved(ObservedFact { key, value }.into())
    }

    /// Outputs may ask for facts that nothing else needed; one may lead to the next.
    fn observe_for_outputs(&mut self) -> Result<(), ExecuteError> {
        loop {
            let wants = self.run.output_wants();
            if wants.is_empty() {
                return Ok(());
            }
            let kinds = wants.into_iter().map(|key| self.observed(key)).collect();
            self.record(kinds)?;
        }
    }

    /// Waits for a response, for the next try, or until it is time to look whether the run is to stop.
    fn wait(&mut self, wake: Option<Timestamp>) -> Result<(), ExecuteError> {
        let until_wake = wake.map(|wake| Duration::try_from(wake - self.clock.now()).unwrap_or_default());
        let mut longest = until_wake.map_or(CANCEL_POLL, |wait| wait.min(CANCEL_POLL));
        if let Some(rest) = until_wake.filter(|_| self.run.in_flight() == 0) {
            self.follower.rests(self.run, self.journal, rest);
        }
        if until_wake.is_some() && self.waking.is_watching() {
            let is_under_way = self.run.in_flight() > 0;
            let woken = self.waking.woken(self.run, if is_under_way { Duration::ZERO } else { longest });
            if !woken.is_empty() || !is_under_way {
                return self.record(woken);
            }
            longest = longest.min(waking::POLL);
        }
        match self.lanes.finished(longest) {
            Ok(finished) => self.record_finished(finished),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(()),
        }
    }

    fn record_finished(&mut self, finished: Vec<Finished>) -> Result<(), ExecuteError> {
        if finished.iter().any(|done| done.call.changes()) {
            self.unflushed = true;
            // What a durable journal says was done must be on the disk before the journal says so.
            if self.journal.is_durable() {
                self.flush()?;
            }
        }
        let ended = |done: Finished| self.run.observe(&done.call, done.response, done.elapsed, done.footprint);
        let kinds = finished.into_iter().map(ended).collect();
        self.record(kinds)
    }

    fn flush(&mut self) -> Result<(), ExecuteError> {
        if std::mem::take(&mut self.unflushed) {
            self.calls.flush().map_err(ExecuteError::Flush)?;
        }
        Ok(())
    }

    fn record(&mut self, kinds: Vec<EventKind>) -> Result<(), ExecuteError> {
        let events = self.run.stamp(self.clock.now(), kinds);
        self.journal.append(&events)?;
        for event in &events {
            self.run.apply(event)?;
            if let EventKind::Settled { instance, status, .. } = &event.kind {
                self.calls.settled(instance.node(), status);
            }
            self.waking.note(self.run, event);
            self.follower.event(self.run, event);
        }
        self.journal.counted(events);
        Ok(())
    }
}
