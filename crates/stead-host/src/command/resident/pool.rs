//! The processes that there are, and the room for more.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use stead_core::call::{Failure, FailureKind};

use super::process::{Fitness, GRACE, Limits, Process};

/// How many processes a session keeps at most, with those that start or end.
const MOST_PROCESSES: usize = 16;

/// How often one is started at most within [`STARTS_WITHIN`]: once, and five times again.
const MOST_STARTS: usize = 6;

/// The time in which starts are counted.
const STARTS_WITHIN: Duration = Duration::from_mins(10);

/// How often who waits for room looks whether there is some.
const TICK: Duration = Duration::from_millis(20);

/// Which calls go to the same process: those of the same program of the same author.
///
/// A secret of a call can be seen by all code of the process, so types whose owner is another one get another process.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) folder: PathBuf,
    pub(super) executable: String,
    pub(super) arguments: Vec<String>,
    pub(super) owner: String,
}

/// The processes of a session. It outlives the session until all of them have ended.
#[derive(Default)]
pub struct ResidentPool {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    kept: BTreeMap<Key, Kept>,
    /// How many processes there are, with those that start or end.
    living: usize,
    is_closed: bool,
}

/// The process of a key, if there is one, and when it was started.
#[derive(Default)]
struct Kept {
    slot: Slot,
    starts: VecDeque<Instant>,
    /// The reason why the last one ended.
    last: Option<String>,
}

#[derive(Default)]
enum Slot {
    #[default]
    Empty,
    Starting,
    Running(Arc<Process>),
}

/// The next step towards a process that can be asked.
enum Next {
    /// It may be asked.
    Look(Arc<Process>),
    /// There is room to start it.
    Start,
    /// There is room once this one has ended, which nobody uses.
    End(Arc<Process>),
    /// There is none until something changes, which is this.
    Wait(String),
}

/// The room of a process, from before it starts until it has ended.
pub(super) struct Room(Arc<ResidentPool>);

impl Drop for Room {
    fn drop(&mut self) {
        self.0.lock().living -= 1;
        self.0.changed.notify_all();
    }
}

impl ResidentPool {
    /// The process of a key that can be asked, or else room to start one, whose start must end with [`Self::started`].
    ///
    /// Guarantees: one is started for a key at a time. Whoever waits for room waits for processes that have calls, never for others
    /// who wait, and no longer than its call may take.
    pub(super) fn enter(
        self: &Arc<Self>,
        key: &Key,
        limits: &Limits<'_>,
        fitness: impl Fn(&Process) -> Fitness,
    ) -> Result<Result<Arc<Process>, Room>, Failure> {
        let mut state = self.lock();
        loop {
            match state.next(key)? {
                Next::Look(process) => {
                    drop(state);
                    match fitness(&process) {
                        Fitness::Fit => return Ok(Ok(process)),
                        unfit => self.retire(key, &process, unfit),
                    }
                    drop(process);
                    state = self.lock();
                }
                Next::Start => return Ok(Err(Room(Arc::clone(self)))),
                Next::End(idle) => {
                    drop(state);
                    drop(idle);
                    state = self.lock();
                }
                Next::Wait(what) => {
                    if let Some(kind) = limits.ends() {
                        return Err(limits.failure(kind, &what));
                    }
                    let waited = self.changed.wait_timeout(state, TICK.min(limits.left()));
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }

    /// The start of the process of a key is over.
    pub(super) fn started(&self, key: &Key, started: &Result<Arc<Process>, Failure>) {
        let mut state = self.lock();
        let is_closed = state.is_closed;
        let kept = state.kept.entry(key.clone()).or_default();
        kept.slot = Slot::Empty;
        match started {
            Ok(process) if !is_closed => kept.slot = Slot::Running(Arc::clone(process)),
            Ok(_) => {}
            Err(failure) => kept.last = Some(failure.message.clone()),
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Another is to take the place of a process, unless one has done so.
    fn retire(&self, key: &Key, process: &Arc<Process>, why: Fitness) {
        let mut state = self.lock();
        let Some(kept) = state.kept.get_mut(key) else { return };
        if matches!(&kept.slot, Slot::Running(running) if Arc::ptr_eq(running, process)) {
            kept.slot = Slot::Empty;
            match why {
                Fitness::Over(why) => kept.last = Some(why),
                // It has not failed, and that another takes its place does not count.
                _ => drop(kept.starts.pop_back()),
            }
        }
    }

    /// Ends all processes, before it returns; one that has calls ends after them. None is started any more.
    pub fn end(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let running: Vec<Arc<Process>> = state.kept.values_mut().filter_map(Kept::take).collect();
        drop(state);
        self.changed.notify_all();
        // All at once: each may take a moment.
        for process in &running {
            process.ask_to_end();
        }
        drop(running);
        // Those that other threads end, or have calls of.
        let (begun, mut state) = (Instant::now(), self.lock());
        while state.living > 0
            && let Some(left) = (2 * GRACE).checked_sub(begun.elapsed())
        {
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn next(&mut self, key: &Key) -> Result<Next, Failure> {
        if self.is_closed {
            return Err(Failure::new(FailureKind::Cancelled, "the session has ended"));
        }
        let has_room = self.living < MOST_PROCESSES;
        let kept = self.kept.entry(key.clone()).or_default();
        match &kept.slot {
            Slot::Running(process) => Ok(Next::Look(Arc::clone(process))),
            Slot::Starting => Ok(Next::Wait(format!("'{}' did not start", key.executable))),
            Slot::Empty if has_room => {
                kept.start(&key.executable)?;
                self.living += 1;
                Ok(Next::Start)
            }
            Slot::Empty => Ok(self.take_longest_idle().map_or_else(
                || Next::Wait(format!("none of the {MOST_PROCESSES} programs that may stay became free")),
                Next::End,
            )),
        }
    }

    /// Takes out the process that has had nothing to do for the longest time. Whoever has a call of one has taken it from here.
    fn take_longest_idle(&mut self) -> Option<Arc<Process>> {
        let idle_since = |kept: &Kept| match &kept.slot {
            Slot::Running(process) if Arc::strong_count(process) == 1 => Some(process.last_used()),
            _ => None,
        };
        let idle = self.kept.values_mut().filter_map(|kept| Some((idle_since(kept)?, kept)));
        idle.min_by_key(|(since, _)| *since)?.1.take()
    }
}

impl Kept {
    fn take(&mut self) -> Option<Arc<Process>> {
        match std::mem::take(&mut self.slot) {
            Slot::Running(process) => Some(process),
            other => {
                self.slot = other;
                None
            }
        }
    }

    /// Notes that it is started, unless that was so often that it makes no sense.
    fn start(&mut self, program: &str) -> Result<(), Failure> {
        self.starts.retain(|start| start.elapsed() < STARTS_WITHIN);
        if self.starts.len() >= MOST_STARTS {
            let minutes = STARTS_WITHIN.as_secs() / 60;
            let last = self.last.as_ref().map(|last| format!(". The last time {last}")).unwrap_or_default();
            let message = format!(
                "'{program}' was started {MOST_STARTS} times within {minutes} minutes and ended each time; it is not started \
                 again{last}"
            );
            return Err(Failure::new(FailureKind::Protocol, message));
        }
        self.starts.push_back(Instant::now());
        self.slot = Slot::Starting;
        Ok(())
    }
}
