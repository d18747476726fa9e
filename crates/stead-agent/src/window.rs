//! Maintenance windows: when the machine may be changed, and when it may be restarted.

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};
use serde::{Deserialize, Serialize};

/// A time of day on some days of the week, as the clock on the wall shows it in the time zone of the machine. One that does
/// not end after it begins ends on the next day.
///
/// Where clocks are put forward, a window that lies within the hour left out does not open on that day; where they are put
/// back, one that lies within the hour repeated opens twice.
///
/// # Examples
/// ```
/// use jiff::Timestamp;
/// use jiff::civil::time;
/// use jiff::tz::TimeZone;
/// use stead_agent::{Intent, Opening, Purpose, Window, opening};
///
/// // From Saturday at 22:00 to Sunday at 04:00.
/// let window = Window { days: vec![6], from: time(22, 0, 0, 0), to: time(4, 0, 0, 0), purpose: Purpose::Set };
/// let at = |now: &str, intent| {
///     let now: Timestamp = now.parse()?;
///     Ok::<_, jiff::Error>(opening(std::slice::from_ref(&window), intent, now, &TimeZone::UTC))
/// };
/// assert_eq!(at("2026-01-04T03:00:00Z", Intent::Set)?, Opening::Open);
/// assert_eq!(at("2026-01-04T05:00:00Z", Intent::Set)?, Opening::Opens(Some("2026-01-10T22:00:00Z".parse()?)));
/// // No window is for restarts, so they may happen at any time.
/// assert_eq!(at("2026-01-04T05:00:00Z", Intent::Restart)?, Opening::Open);
/// # Ok::<(), jiff::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Window {
    /// The days on which it begins, Monday being 1; every day if there is none.
    pub days: Vec<i8>,
    /// When it begins.
    pub from: Time,
    /// When it ends.
    pub to: Time,
    /// The purpose.
    pub purpose: Purpose,
}

/// The purpose of a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Purpose {
    /// Changing the machine and restarting it.
    Any,
    /// Changing it.
    Set,
    /// Restarting it.
    Restart,
}

/// An action that somebody wants to take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Intent {
    /// Change the machine.
    Set,
    /// Restart it.
    Restart,
}

/// The permission of windows for an action at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opening {
    /// Now.
    Open,
    /// Not before this instant; never if there is none.
    Opens(Option<Timestamp>),
}

/// Returns whether `intent` may be carried out at `now`. Where no window is for it, it may be at any time.
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

    /// Returns whether the clock on the wall shows a time of this window.
    fn contains(&self, shown: DateTime) -> bool {
        let (day, time) = (shown.date(), shown.time());
        let begun_today = self.is_on(day.weekday()) && self.from <= time;
        let begun_before = self.is_on(day.weekday().previous()) && time < self.to;
        if self.from < self.to { begun_today && time < self.to } else { begun_today || begun_before }
    }

    fn opening(&self, now: Timestamp, zone: &TimeZone) -> Opening {
        let is_open = |at: &Timestamp| self.contains(zone.to_datetime(*at));
        if is_open(&now) {
            return Opening::Open;
        }
        // It opens when the clock shows its beginning, or is put into it.
        let horizon = now.saturating_add(HORIZON).unwrap_or(Timestamp::MAX);
        let jumps = zone.following(now).map(|transition| transition.timestamp()).take_while(|at| *at <= horizon);
        let begins = self.begins(zone.to_datetime(now).date(), zone);
        Opening::Opens(begins.into_iter().chain(jumps).filter(|at| *at > now).filter(is_open).min())
    }

    /// Returns when the clock shows the beginning, in the days after that one. Where it does so twice in a day, both.
    fn begins(&self, today: Date, zone: &TimeZone) -> Vec<Timestamp> {
        let days = (0..=HORIZON.as_secs() / (24 * 60 * 60)).filter_map(|ahead| today.checked_add(ahead.days()).ok());
        let shown = days.map(|day| zone.to_ambiguous_timestamp(day.to_datetime(self.from)));
        shown.flat_map(|each| [each.earlier(), each.later()]).flatten().collect()
    }
}

/// How far ahead an opening is looked for: two weeks and a day, as the one of next week may fall into an hour left out.
const HORIZON: SignedDuration = SignedDuration::from_hours(15 * 24);

#[cfg(test)]
mod tests {
    use super::*;

    /// Clocks are put forward on the last Sunday of March at 02:00, and back on that of October at 03:00.
    fn berlin() -> TimeZone {
        TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
    }

    fn window(days: &[i8], from: (i8, i8), to: (i8, i8), purpose: Purpose) -> Window {
        let time = |(hour, minute)| Time::constant(hour, minute, 0, 0);
        Window { days: days.to_vec(), from: time(from), to: time(to), purpose }
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// Returns whether a minute is within a window that began so many minutes before it.
    fn is_open_at(window: &Window, now: Timestamp, zone: &TimeZone) -> bool {
        let minutes = |time: Time| i32::from(time.hour()) * 60 + i32::from(time.minute());
        let length = match (minutes(window.to) - minutes(window.from)).rem_euclid(24 * 60) {
            0 => 24 * 60,
            length => length,
        };
        let shown = zone.to_datetime(now);
        let since = minutes(shown.time()) - minutes(window.from);
        let today = i32::from(shown.date().weekday().to_monday_zero_offset());
        [(since, today), (since + 24 * 60, today - 1)].into_iter().any(|(since, day)| {
            let day = i8::try_from(day.rem_euclid(7) + 1).unwrap();
            (0..length).contains(&since) && (window.days.is_empty() || window.days.contains(&day))
        })
    }

    #[test]
    fn every_minute_around_a_change_of_clocks_is_judged_as_it_is_shown() {
        let zone = berlin();
        let windows = [
            window(&[], (22, 0), (4, 0), Purpose::Any),
            window(&[7], (2, 15), (2, 45), Purpose::Any),
            window(&[7], (2, 30), (3, 30), Purpose::Any),
            window(&[6], (23, 59), (2, 30), Purpose::Any),
            window(&[1, 3], (0, 0), (0, 0), Purpose::Any),
            window(&[5], (18, 0), (6, 0), Purpose::Any),
        ];
        for start in ["2026-03-27T12:00:00Z", "2026-10-23T12:00:00Z"] {
            let minutes: Vec<Timestamp> = (0..20 * 24 * 60).map(|minute| at(start) + minute.minutes()).collect();
            for window in &windows {
                let open: Vec<bool> = minutes.iter().map(|now| is_open_at(window, *now, &zone)).collect();
                let mut opens = None;
                // The last days are only there for what is ahead of the first.
                for (index, now) in minutes.iter().enumerate().rev() {
                    opens = if open[index] { Some(*now) } else { opens };
                    // Between two changes every answer is the same; some are asked for.
                    let changes =
                        index == 0 || open[index - 1] != open[index] || open.get(index + 1) != Some(&open[index]);
                    if index < 5 * 24 * 60 && (changes || index % 61 == 0) {
                        let expected = if open[index] { Opening::Open } else { Opening::Opens(opens) };
                        assert_eq!(window.opening(*now, &zone), expected, "{window:?} at {now}");
                    }
                }
            }
        }
    }

    #[test]
    fn where_no_window_is_for_it_it_may_be_at_any_time() {
        let now = at("2026-06-01T12:00:00Z");
        let sets = [window(&[], (1, 0), (2, 0), Purpose::Set), window(&[], (3, 0), (4, 0), Purpose::Set)];
        assert_eq!(opening(&[], Intent::Set, now, &TimeZone::UTC), Opening::Open);
        assert_eq!(opening(&sets, Intent::Restart, now, &TimeZone::UTC), Opening::Open);
        let tomorrow = Opening::Opens(Some(at("2026-06-02T01:00:00Z")));
        assert_eq!(opening(&sets, Intent::Set, now, &TimeZone::UTC), tomorrow);
        let never = [window(&[8], (1, 0), (2, 0), Purpose::Any)];
        assert_eq!(opening(&never, Intent::Restart, now, &TimeZone::UTC), Opening::Opens(None));
        assert!(matches!(opening(&sets, Intent::Set, Timestamp::MAX, &TimeZone::UTC), Opening::Opens(None)));
    }
}
