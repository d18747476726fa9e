//! Maintenance windows: when the machine may be changed, and when it may be restarted.

use jiff::civil::{Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde::{Deserialize, Serialize};

/// A time of day on some days of the week, in the time zone of the machine. One that ends before it begins ends on the next
/// day.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Window {
    /// The days on which it begins, Monday being 1; every day if there is none.
    pub days: Vec<i8>,
    /// When it begins.
    pub from: Time,
    /// When it ends.
    pub to: Time,
    /// What it is for.
    pub purpose: Purpose,
}

/// What a window is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Purpose {
    /// Changing the machine and restarting it.
    Any,
    /// Changing it.
    Set,
    /// Restarting it.
    Restart,
}

/// What somebody wants to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Intent {
    /// Change the machine.
    Set,
    /// Restart it.
    Restart,
}

/// Whether something may be done at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opening {
    /// Now.
    Open,
    /// Not before this instant; never if there is none.
    Opens(Option<Timestamp>),
}

/// Whether `intent` may be carried out at `now`. Where no window is for it, it may be at any time.
pub fn opening(windows: &[Window], intent: Intent, now: Timestamp, zone: &TimeZone) -> Opening {
    let mut concerned = windows.iter().filter(|window| window.is_for(intent)).peekable();
    if concerned.peek().is_none() {
        return Opening::Open;
    }
    let mut opens = None;
    for window in concerned {
        match window.opening(now, zone) {
            Opening::Open => return Opening::Open,
            Opening::Opens(at) => opens = earliest(opens, at),
        }
    }
    Opening::Opens(opens)
}

fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

impl Window {
    fn is_for(&self, intent: Intent) -> bool {
        matches!(
            (self.purpose, intent),
            (Purpose::Any, _) | (Purpose::Set, Intent::Set) | (Purpose::Restart, Intent::Restart)
        )
    }

    fn is_on(&self, day: Weekday) -> bool {
        self.days.is_empty() || self.days.contains(&day.to_monday_one_offset())
    }

    /// Looks from yesterday, whose window may still be open, to the same day of the next week.
    fn opening(&self, now: Timestamp, zone: &TimeZone) -> Opening {
        let today = now.to_zoned(zone.clone()).date();
        for ahead in -1..=8 {
            let Ok(day) = today.checked_add(ahead.days()) else { continue };
            if !self.is_on(day.weekday()) {
                continue;
            }
            let last = if self.to <= self.from { day.checked_add(1.day()).unwrap_or(day) } else { day };
            let instant = |day: jiff::civil::Date, time| day.to_datetime(time).to_zoned(zone.clone());
            let (Ok(begin), Ok(end)) = (instant(day, self.from), instant(last, self.to)) else { continue };
            let (begin, end) = (begin.timestamp(), end.timestamp());
            if begin <= now && now < end {
                return Opening::Open;
            }
            if now < begin {
                return Opening::Opens(Some(begin));
            }
        }
        Opening::Opens(None)
    }
}
