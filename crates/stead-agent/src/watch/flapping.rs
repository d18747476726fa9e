//! What happens to one instance again and again within a short time: changes that come back at once, since somebody else
//! manages the same thing, and changes that need no correction.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// How often something happened to each instance lately.
pub(crate) struct Flapping {
    corrections: HashMap<String, VecDeque<Instant>>,
    most: usize,
}

/// So many corrections within [`LATELY`] are too many: the instance is left to the interval.
pub(crate) const MOST_CORRECTIONS: usize = 5;

/// So many looks at an instance within [`LATELY`] are too many, whatever they find.
pub(crate) const MOST_LOOKS: usize = 20;

const LATELY: Duration = Duration::from_mins(1);

impl Flapping {
    /// So many times within a minute are too many.
    pub(crate) fn new(most: usize) -> Self {
        Self { corrections: HashMap::new(), most }
    }

    /// Notes that an instance was corrected; `true` when it begins to flap by that.
    pub(crate) fn corrected(&mut self, instance: &str, now: Instant) -> bool {
        let most = self.most;
        let corrections = self.corrections.entry(instance.to_owned()).or_default();
        forget(corrections, most, now);
        let flapped = corrections.len() >= most;
        corrections.push_back(now);
        forget(corrections, most, now);
        corrections.len() >= most && !flapped
    }

    /// Whether an instance was corrected too often to be worked on at once.
    pub(crate) fn flaps(&mut self, instance: &str, now: Instant) -> bool {
        let Some(corrections) = self.corrections.get_mut(instance) else { return false };
        forget(corrections, self.most, now);
        let flaps = corrections.len() >= self.most;
        if corrections.is_empty() {
            self.corrections.remove(instance);
        }
        flaps
    }

    /// The instances that flap.
    pub(crate) fn all(&mut self, now: Instant) -> Vec<String> {
        let mut names: Vec<String> = self.corrections.keys().cloned().collect();
        names.retain(|name| self.flaps(name, now));
        names.sort();
        names
    }
}

/// Forgets what was long ago, and what is more than enough.
fn forget(corrections: &mut VecDeque<Instant>, most: usize, now: Instant) {
    while corrections.front().is_some_and(|at| now.duration_since(*at) > LATELY) || corrections.len() > most {
        corrections.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_at_once_flaps_until_it_was_quiet() {
        let (mut flapping, begin) = (Flapping::new(5), Instant::now());
        let at = |seconds| begin + Duration::from_secs(seconds);
        for second in 0..4 {
            assert!(!flapping.corrected("f", at(second)));
            assert!(!flapping.flaps("f", at(second)));
        }
        assert!(flapping.corrected("f", at(4)), "it is reported once");
        assert!(!flapping.corrected("f", at(5)));
        assert_eq!(flapping.all(at(5)), ["f"]);
        assert!(!flapping.flaps("g", at(5)));
        assert!(!flapping.flaps("f", at(70)));
        assert!(flapping.all(at(70)).is_empty());
    }
}
