//! Reviews at the end of a run: beside each other, and watched from outside as calls are.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use stead_core::instance_path::InstancePath;
use stead_core::run::KnownInstance;

use super::super::{Calls, Inline};
use super::panicked;
use crate::provider::{Cost, Review};
use crate::worker_pool::WorkerPool;

/// An instance to review, and what can have changed it since.
pub(in super::super) type Look = (KnownInstance, Vec<InstancePath>);

/// The reviews of a run that are not done yet.
struct Reviews {
    calls: Arc<dyn Calls>,
    waiting: Mutex<VecDeque<(usize, Look)>>,
}

/// The progress of a review, as its thread reports it.
enum Notice {
    Began(usize),
    Ended(usize, Review),
}

impl Reviews {
    /// Reviews what waits, one after the other.
    fn work(&self, sender: &Sender<Notice>) {
        let next = || self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        while let Some((at, (known, after))) = next() {
            // Nobody listens any more where the executor has ended.
            let _ = sender.send(Notice::Began(at));
            let review = catch_unwind(AssertUnwindSafe(|| self.calls.review(&known, &after)));
            let _ = sender.send(Notice::Ended(at, review.unwrap_or_else(|_| Review::Failed(panicked()))));
        }
    }
}

/// Reviews instances, as many at once as that; in their order. One that takes microseconds and longer than the deadline has failed:
/// its thread is left alone, and another goes on with the rest.
pub(super) fn review(
    looks: Vec<Look>,
    calls: &Arc<dyn Calls>,
    pool: &WorkerPool,
    width: usize,
    deadline: Option<Duration>,
) -> Vec<(KnownInstance, Review)> {
    let known: Vec<KnownInstance> = looks.iter().map(|(known, _)| known.clone()).collect();
    let is_short = |known: &KnownInstance| calls.review_cost(known) == Cost::Inline;
    let deadlines = known.iter().map(|known| deadline.filter(|_| is_short(known))).collect();
    let reviews =
        Arc::new(Reviews { calls: Arc::clone(calls), waiting: Mutex::new(looks.into_iter().enumerate().collect()) });
    let (sender, received) = channel();
    let start = || {
        let (reviews, sender) = (Arc::clone(&reviews), sender.clone());
        pool.submit(move || reviews.work(&sender)).is_ok()
    };
    let threads = width.min(known.len());
    let threads = if deadline.is_some() { (0..threads).take_while(|_| start()).count() } else { 0 };
    if threads == 0 {
        // The system gives no thread, or whoever started the run watches this one.
        reviews.work(&sender);
    }
    let watched = Watched { deadlines, received, under_way: BTreeMap::new(), ended: BTreeMap::new() };
    let ended = watched.end(threads, start, || reviews.work(&sender));
    known.into_iter().zip(ended.into_values()).collect()
}

/// Reviews under way, and those that have ended, by their places.
struct Watched {
    deadlines: Vec<Option<Duration>>,
    received: Receiver<Notice>,
    under_way: BTreeMap<usize, Instant>,
    ended: BTreeMap<usize, Review>,
}

impl Watched {
    /// Waits until all have ended. For each thread that is given up another is started; where all hang and the system gives no
    /// other, what waits is done `here`.
    fn end(mut self, mut threads: usize, start: impl Fn() -> bool, here: impl Fn()) -> BTreeMap<usize, Review> {
        while self.ended.len() < self.deadlines.len() {
            let lost = (0..self.wait()).filter(|_| !start()).count();
            threads = threads.saturating_sub(lost);
            if lost > 0 && threads == 0 {
                here();
            }
        }
        self.ended
    }

    /// Waits for what is received, or for a deadline. Returns how many reviews have exceeded theirs.
    fn wait(&mut self) -> usize {
        let ends = self.under_way.iter().filter_map(|(at, began)| began.checked_add(self.deadline_of(*at)?));
        let longest = ends.min().map_or(Inline::DEADLINE, |end| end.saturating_duration_since(Instant::now()));
        match self.received.recv_timeout(longest) {
            Ok(Notice::Began(at)) => _ = self.under_way.insert(at, Instant::now()),
            Ok(Notice::Ended(at, review)) => {
                self.under_way.remove(&at);
                self.ended.entry(at).or_insert(review);
            }
            Err(_) => return self.give_up(),
        }
        0
    }

    fn give_up(&mut self) -> usize {
        let late = |(at, began): (&usize, &Instant)| {
            let deadline = self.deadline_of(*at).filter(|deadline| began.elapsed() >= *deadline)?;
            Some((*at, deadline))
        };
        let late: Vec<_> = self.under_way.iter().filter_map(late).collect();
        for (at, deadline) in &late {
            self.under_way.remove(at);
            self.ended.insert(*at, Review::Failed(Inline::failure(*deadline)));
        }
        late.len()
    }

    fn deadline_of(&self, at: usize) -> Option<Duration> {
        self.deadlines.get(at).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_all_threads_hang_and_no_other_can_be_started_the_rest_is_reviewed_here() {
        let (sender, received) = channel();
        let deadlines = vec![Some(Duration::ZERO), None];
        let watched = Watched { deadlines, received, under_way: BTreeMap::new(), ended: BTreeMap::new() };
        sender.send(Notice::Began(0)).unwrap();
        let here = || sender.send(Notice::Ended(1, Review::Lasted)).unwrap();
        let ended: Vec<Review> = watched.end(1, || false, here).into_values().collect();
        assert!(matches!(*ended, [Review::Failed(_), Review::Lasted]));
    }
}
