//! What is logged of requests: acts, and refusals, of which anybody can cause as many as there is room for.

use std::sync::Mutex;
use std::sync::PoisonError;

use stead_protocol::Route;

/// How many refusals are logged in a second.
const MOST_IN_A_SECOND: u64 = 20;
/// How much of a reason is logged.
const LONGEST_REASON: usize = 200;

/// The log of refusals.
#[derive(Default)]
pub(super) struct Refusals(Mutex<Second>);

#[derive(Default)]
struct Second {
    second: u64,
    count: u64,
}

impl Second {
    /// Returns whether one more is logged at a time in milliseconds, and how many were left out in the second before that.
    fn take(&mut self, now: u64) -> (bool, u64) {
        let mut left_out = 0;
        if self.second != now / 1000 {
            left_out = self.count.saturating_sub(MOST_IN_A_SECOND);
            *self = Self { second: now / 1000, count: 0 };
        }
        self.count += 1;
        (self.count <= MOST_IN_A_SECOND, left_out)
    }
}

impl Refusals {
    /// Logs that somebody was refused something at a time in milliseconds.
    pub(super) fn log(&self, now: u64, route: &Route, who: &str, status: u16, why: &[u8]) {
        let (is_logged, left_out) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take(now);
        if left_out > 0 {
            tracing::warn!(count = left_out, "more refusals than are logged");
        }
        if is_logged {
            let why = String::from_utf8_lossy(why.get(..why.len().min(LONGEST_REASON)).unwrap_or_default());
            let why = why.trim_end().escape_debug().to_string();
            tracing::warn!(who, status, method = route.method, path = route.path, why, "refused");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_fill_no_log_and_are_counted() {
        let mut second = Second::default();
        let logged = (0..100).filter(|_| second.take(5_000).0).count();
        assert_eq!(logged, 20);
        assert_eq!(second.take(6_000), (true, 80));
        assert_eq!(second.take(6_001), (true, 0));
    }
}
