//! Threads that are kept for the next run.

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a thread idles before it ends: until then it keeps memory that the others do not get, and longer than the next part of
/// a run takes to come.
const KEPT: Duration = Duration::from_millis(100);

type Job = Box<dyn FnOnce() + Send>;

/// How much of the stack a thread may use: several times what the deepest template takes in a build without optimization. What is
/// not used takes no memory.
const STACK: usize = 12 << 20;

/// Threads that carry out jobs, each job at once: where none is idle, one more is started.
///
/// Guarantees: a job never waits for another, so that one that hangs holds up nobody. Threads that idle end after a tenth
/// of a second, or when the pool is dropped; those that work are not waited for.
#[derive(Default)]
pub struct WorkerPool {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    idle: usize,
    closed: bool,
}

impl WorkerPool {
    /// Carries out a job. An error says that the system gave no thread; the job is dropped.
    ///
    /// Assumptions: the job does not panic; a thread whose job panics ends.
    pub fn submit(&self, job: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.jobs.push_back(Box::new(job));
        if state.idle >= state.jobs.len() {
            // The thread that wakes up would wait for the lock at once.
            drop(state);
            self.shared.changed.notify_one();
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        match thread::Builder::new().name("stead-worker".to_owned()).stack_size(STACK).spawn(move || shared.work()) {
            Ok(_) => Ok(()),
            Err(error) => {
                state.jobs.pop_back();
                Err(error)
            }
        }
    }

    /// The results of some work on each item, on so many items at once, in any order.
    ///
    /// This thread works as well, so that everything is done even where the system gives no other.
    ///
    /// A panic of the work is one of the caller.
    pub fn map<T, R>(&self, items: Vec<T>, width: NonZeroUsize, work: fn(T) -> R) -> Vec<R>
    where
        T: Send + 'static,
        R: Send + 'static,
    {
        let others = width.get().min(items.len()).saturating_sub(1);
        let items = Arc::new(Mutex::new(items.into_iter()));
        let (results, received) = channel();
        let work_on = move |items: &Mutex<std::vec::IntoIter<T>>, results: &Sender<thread::Result<R>>| {
            let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
            while let Some(item) = next() {
                // Nobody waits for it any more: the other end is gone only when this thread is.
                let _ = results.send(catch_unwind(AssertUnwindSafe(|| work(item))));
            }
        };
        for _ in 0..others {
            let (items, results) = (Arc::clone(&items), results.clone());
            if self.submit(move || work_on(&items, &results)).is_err() {
                break;
            }
        }
        work_on(&items, &results);
        drop(results);
        received.into_iter().map(|result| result.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn work(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                job();
                state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            if state.closed {
                return;
            }
            state.idle += 1;
            let is_idle = |state: &mut State| state.jobs.is_empty() && !state.closed;
            let waited = self.changed.wait_timeout_while(state, KEPT, is_idle);
            let timed_out;
            (state, timed_out) = waited.unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
            if timed_out.timed_out() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn every_item_is_worked_on_once_and_so_many_beside_each_other() {
        let width = NonZeroUsize::MIN.saturating_add(3);
        let together = Arc::new(Barrier::new(width.get()));
        let items: Vec<_> = (0..8).map(|number| (number, Arc::clone(&together))).collect();
        let mut results = WorkerPool::default().map(items, width, |(number, together): (u8, Arc<Barrier>)| {
            // Passed only when four of them are here at once.
            together.wait();
            number
        });
        results.sort_unstable();
        assert_eq!(results, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert!(WorkerPool::default().map(Vec::new(), width, |number: u8| number).is_empty());
    }

    #[test]
    fn a_thread_that_idles_ends_and_gives_back_what_it_kept() {
        struct Kept(Sender<()>);
        impl Drop for Kept {
            fn drop(&mut self) {
                self.0.send(()).unwrap();
            }
        }
        thread_local!(static KEPT: std::cell::RefCell<Option<Kept>> = const { std::cell::RefCell::new(None) });
        let (ended, end) = channel();
        let pool = WorkerPool::default();
        pool.submit(move || KEPT.with(|kept| *kept.borrow_mut() = Some(Kept(ended)))).unwrap();
        // It is due after a tenth of a second.
        end.recv_timeout(Duration::from_mins(1)).unwrap();
        let (again, done) = channel();
        pool.submit(move || again.send(()).unwrap()).unwrap();
        done.recv().unwrap();
    }
}
