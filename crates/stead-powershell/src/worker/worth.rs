//! When another worker is worth its start, by what those before it have cost in the same run.

use std::time::Duration;

/// How many calls the cost of the last ones is the mean of, about: code that runs for the first time is slow, and becomes quick.
const RECENT: u32 = 8;

/// The time of a call is known once calls have waited as long as so many starts.
const KNOWN: f64 = 2.0;

/// A worker beside the others must save half as much again as it costs, since it occupies a processor that they could use.
const AT_LEAST: f64 = 1.5;

/// Where it is not known what is to come or what it takes, as long as so many starts is waited for: what is lost by one for nothing is
/// a twentieth of that.
const BLINDLY: f64 = 20.0;

/// The times that the workers of a pool have taken, and what they decide.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Costs {
    /// The last start, in seconds, as all of them.
    start: Option<f64>,
    /// The last call that was the first one of its worker, which has the module loaded and compiled.
    first: Option<f64>,
    /// The others: how many, all together, and a mean in which the last ones count.
    calls: u32,
    total: f64,
    recent: f64,
    /// How long calls have waited for a worker since the last start, and the first call after it.
    waited: f64,
}

impl Costs {
    /// A worker was started.
    pub(super) fn started(&mut self, took: Duration) {
        self.start = Some(took.as_secs_f64());
        self.begins();
    }

    /// A start begins, or its first call has ended: what was waited until now was waited for it.
    pub(super) fn begins(&mut self) {
        self.waited = 0.0;
    }

    /// A call has ended, which was the first one of its worker, or not.
    pub(super) fn called(&mut self, took: Duration, is_first: bool) {
        let took = took.as_secs_f64();
        if is_first {
            self.first = Some(took);
            self.begins();
            return;
        }
        self.calls = self.calls.saturating_add(1);
        self.total += took;
        self.recent += (took - self.recent) / f64::from(self.calls.min(RECENT));
    }

    /// A call has waited for a worker.
    pub(super) fn waited(&mut self, took: Duration) {
        self.waited += took.as_secs_f64();
    }

    /// Returns whether one more beside `workers` is worth its start, for a call that has waited so long and `to_come` others behind it.
    ///
    /// Guarantees: where costs vary around a mean, and what a start takes from the others is a fourth of it, calls are at no time ended
    /// later by more than a twentieth than with a single worker.
    pub(super) fn are_worth_another(&self, workers: usize, age: Duration, to_come: usize) -> bool {
        let (Some(start), age) = (self.start, age.as_secs_f64()) else { return false };
        // The first call may be loading a module, which another worker would have to load as well.
        let Some(first) = self.first.filter(|_| self.calls > 0) else { return age >= start * BLINDLY };
        // Costs that become less are known by the last ones, those that vary by all of them.
        let mean = self.recent.min(self.total / f64::from(self.calls));
        let cost = start + (first - mean).max(0.0);
        #[expect(clippy::cast_precision_loss, reason = "a number of calls that can be made")]
        let (calls, workers) = (to_come as f64 + 1.0, workers as f64);
        // One that is under way takes at least as long as the next one waits for it.
        let saved = calls * mean.max(age) / (workers * (workers + 1.0));
        self.waited >= cost * BLINDLY || self.waited >= cost * KNOWN && saved >= cost * AT_LEAST
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A run in virtual time: two callers, and the calls of one after the other.
    struct Run<'a> {
        calls: &'a [f64],
        start: f64,
        first: f64,
        /// How much slower calls are while the code around them has not been compiled.
        cold: f64,
        is_known: bool,
    }

    /// One of the workers: until when it is busy, and how many calls it has carried out.
    #[derive(Clone, Copy)]
    struct Busy {
        until: f64,
        calls: i32,
    }

    impl Run<'_> {
        fn cost(&self, index: usize, worker: Busy) -> f64 {
            let first = if worker.calls == 0 { self.first } else { 0.0 };
            self.calls[index] + first + self.cold * (-f64::from(worker.calls) / 40.0).exp()
        }

        /// When all calls have ended, with this many workers at most; and how many there were.
        fn ends(&self, most: usize) -> (f64, usize) {
            let (mut costs, mut workers) = (Costs::default(), vec![Busy { until: self.start, calls: 0 }]);
            costs.started(Duration::from_secs_f64(self.start));
            // Those under way: when each ends, what it took, and whether it was a first one.
            let mut under_way: Vec<(f64, f64, bool)> = Vec::new();
            let (mut callers, mut slow_until) = ([self.start, self.start], 0.0);
            for index in 0..self.calls.len() {
                callers.sort_by(f64::total_cmp);
                let asked: f64 = callers[0];
                let to_come = if self.is_known { self.calls.len() - index - 1 } else { 0 };
                let mut now = asked;
                loop {
                    under_way.retain(|(end, took, is_first)| {
                        let goes_on = *end > now;
                        if !goes_on {
                            costs.called(Duration::from_secs_f64(*took), *is_first);
                        }
                        goes_on
                    });
                    workers.sort_by(|a, b| a.until.total_cmp(&b.until));
                    if workers[0].until <= now {
                        break;
                    }
                    // It looks again from time to time, as long as none is free.
                    let age = Duration::from_secs_f64(now - asked);
                    if workers.len() < most && costs.are_worth_another(workers.len(), age, to_come) {
                        costs.begins();
                        slow_until = now + self.start + self.first;
                        workers.push(Busy { until: now + self.start, calls: 0 });
                        continue;
                    }
                    let step = 0.1_f64.min(workers[0].until - now);
                    costs.waited(Duration::from_secs_f64(step));
                    now = if step < 0.1 { workers[0].until } else { now + step };
                }
                let cost = self.cost(index, workers[0]);
                // A start takes a fourth from what goes on beside it.
                let slow = (slow_until - now).clamp(0.0, cost);
                let until = now + cost + if workers[0].calls == 0 { 0.0 } else { slow / 4.0 };
                under_way.push((until, until - now, workers[0].calls == 0));
                workers[0] = Busy { until, calls: workers[0].calls + 1 };
                callers[0] = until;
            }
            (workers.iter().map(|worker| worker.until).fold(0.0, f64::max), workers.len())
        }
    }

    /// Costs around a mean between half a millisecond and two seconds: nearly equal ones, or such as differ widely.
    fn calls() -> impl Strategy<Value = Vec<f64>> {
        let shape = (-7.6_f64..0.7, 0.0_f64..1.0, 1_usize..2_000);
        shape.prop_flat_map(|(mean, spread, count)| {
            let each = (1.0 - spread..=1.0 + spread).prop_map(move |factor| mean.exp() * factor);
            proptest::collection::vec(each, count)
        })
    }

    proptest! {
        #[test]
        fn another_worker_costs_a_twentieth_at_most(
            calls in calls(), start in 0.05_f64..1.0, first in 0.02_f64..1.0, cold in 0.0_f64..0.02, is_known: bool
        ) {
            let run = Run { calls: &calls, start, first, cold, is_known };
            let (one, two) = (run.ends(1).0, run.ends(2).0);
            prop_assert!(two <= one * 1.05, "{two} with two, {one} with one");
        }

        #[test]
        fn what_is_worth_another_worker_gets_one(mean in 0.02_f64..2.0, start in 0.05_f64..1.0, first in 0.02_f64..1.0) {
            let count = (4.0 + 12.0 * (start + first) / mean).ceil();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most some thousand")]
            let calls = vec![mean; count as usize];
            let run = Run { calls: &calls, start, first, cold: 0.0, is_known: true };
            let ((one, _), (two, workers)) = (run.ends(1), run.ends(2));
            prop_assert!(workers == 2 && two <= one * 0.9, "{workers} workers: {two} with two, {one} with one");
        }
    }

    #[test]
    fn a_call_does_not_wait_for_a_long_one() {
        let run = Run { calls: &[60.0, 60.0], start: 0.3, first: 0.4, cold: 0.0, is_known: true };
        let (end, workers) = run.ends(2);
        assert!(workers == 2 && end < 70.0, "{end}");
    }
}
