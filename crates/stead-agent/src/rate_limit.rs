//! A limit on events of one instance that come too often within a minute: corrections, when something else manages
//! the same thing, and changes that need none.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// Counts, by instance, what happened within the last minute.
pub(crate) struct RateLimit {
    most: usize,
    happened: HashMap<String, VecDeque<Instant>>,
}

/// An instance that is corrected this often within a minute is left to the interval.
pub(crate) const MOST_CORRECTIONS: usize = 5;

/// An instance that changes this often within a minute is left to the interval, even if no change needs a correction.
pub(crate) const MOST_WAKEUPS: usize = 20;

const WINDOW: Duration = Duration::from_mins(1);

impl RateLimit {
    /// A limit that is reached when something happens `most` times within a minute.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, happened: HashMap::new() }
    }

    /// Counts one more; `true` if the limit is reached by that.
    pub(crate) fn note(&mut self, instance: &str, now: Instant) -> bool {
        let was_reached = self.is_reached(instance, now);
        let instants = self.happened.entry(instance.to_owned()).or_default();
        instants.push_back(now);
        // More than the limit tells nothing.
        if instants.len() > self.most {
            instants.pop_front();
        }
        !was_reached && self.is_reached(instance, now)
    }

    /// Returns whether the limit is reached.
    pub(crate) fn is_reached(&mut self, instance: &str, now: Instant) -> bool {
        let Some(instants) = self.happened.get_mut(instance) else { return false };
        while instants.front().is_some_and(|at| now.duration_since(*at) >= WINDOW) {
            instants.pop_front();
        }
        if instants.is_empty() {
            self.happened.remove(instance);
            return false;
        }
        instants.len() >= self.most
    }

    /// Returns when the limit is not reached any more, if it is.
    pub(crate) fn ends(&mut self, instance: &str, now: Instant) -> Option<Instant> {
        if !self.is_reached(instance, now) {
            return None;
        }
        Some(*self.happened.get(instance)?.front()? + WINDOW)
    }

    /// The instances for which it is reached.
    pub(crate) fn reached(&mut self, now: Instant) -> Vec<String> {
        let mut names: Vec<String> = self.happened.keys().cloned().collect();
        names.retain(|name| self.is_reached(name, now));
        names.sort();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_reached_once_and_until_it_was_quiet() {
        let (mut limit, begin) = (RateLimit::new(5), Instant::now());
        let at = |seconds| begin + Duration::from_secs(seconds);
        for second in 0..4 {
            assert!(!limit.note("f", at(second)) && !limit.is_reached("f", at(second)));
        }
        assert!(limit.note("f", at(4)), "it is reported once");
        assert!(!limit.note("f", at(5)));
        assert_eq!(limit.reached(at(5)), ["f"]);
        let ends = limit.ends("f", at(5)).unwrap();
        assert!(limit.is_reached("f", at(60)) && ends == at(61) && !limit.is_reached("f", ends));
        assert!(!limit.is_reached("g", at(5)));
        assert!(!limit.is_reached("f", at(70)));
        assert!(limit.reached(at(70)).is_empty());
    }
}
