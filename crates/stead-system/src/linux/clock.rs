//! The clock that files are stamped by.

use rustix::time::{ClockId, clock_gettime};

/// Seconds since 1970 and nanoseconds, as [`crate::fs::Identity::is_fresh`] takes them.
pub fn now() -> (i64, i64) {
    let now = clock_gettime(ClockId::Realtime);
    (now.tv_sec, now.tv_nsec)
}
