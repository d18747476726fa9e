//! What happened lately, for whoever follows it. Each controller has its own list: acts are in the chain as well, states are what is.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use stead_protocol::{EventShown, ListPage};

/// How many events are known.
const MOST_KNOWN: usize = 20_000;

/// The last events, by numbers.
pub(super) struct Events {
    /// The word that tells this list from that of another controller.
    list: String,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The number of the next one.
    next: u64,
    events: VecDeque<EventShown>,
}

impl Events {
    pub(super) fn new(list: String) -> Self {
        Self { list, known: Mutex::default() }
    }

    pub(super) fn push(&self, event: EventShown) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.events.len() == MOST_KNOWN {
            known.events.pop_front();
        }
        known.next += 1;
        known.events.push_back(event);
    }

    /// The events behind a place, not more than some. Without a place those that are known, the newest of them.
    pub(super) fn behind(&self, place: Option<&str>, most: usize) -> ListPage<EventShown> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let first = known.next - known.events.len() as u64;
        let stated = place.map(|place| {
            let (list, number) = place.rsplit_once('.').unwrap_or_default();
            let number = number.parse::<u64>().ok().filter(|number| (first..=known.next).contains(number));
            number.filter(|_| list == self.list)
        });
        let from = match stated {
            None => known.next.saturating_sub(most as u64).max(first),
            Some(None) => first,
            Some(Some(number)) => number,
        };
        let skipped = usize::try_from(from - first).unwrap_or(usize::MAX);
        let mut items: Vec<_> = known.events.iter().skip(skipped).take(most).cloned().collect();
        let next = Some(format!("{}.{}", self.list, from + items.len() as u64));
        if stated == Some(None) {
            items.insert(0, EventShown::Missed);
        }
        ListPage { items, next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn act(number: u64) -> EventShown {
        EventShown::Act { at: 0, number, by: "ann".to_owned(), did: String::new() }
    }

    #[test]
    fn events_are_followed_without_a_gap_that_is_not_said() {
        let events = Events::new("one".to_owned());
        let start = events.behind(None, 10);
        assert_eq!((start.items.len(), start.next.as_deref()), (0, Some("one.0")));
        (1..=5).for_each(|number| events.push(act(number)));
        let page = events.behind(Some("one.0"), 3);
        assert_eq!((page.items, page.next.as_deref()), ((1..=3).map(act).collect(), Some("one.3")));
        let page = events.behind(Some("one.3"), 3);
        assert_eq!((page.items, page.next.as_deref()), ((4..=5).map(act).collect(), Some("one.5")));
        assert_eq!(events.behind(Some("one.5"), 3).items, []);
        assert_eq!(events.behind(None, 2).items, [act(4), act(5)]);
        // Of another controller, or of no list at all.
        for place in ["other.3", "one.6", "one", "", "one.x"] {
            assert_eq!(events.behind(Some(place), 1).items, [EventShown::Missed, act(1)], "{place}");
        }
        (6..=MOST_KNOWN as u64 + 2).for_each(|number| events.push(act(number)));
        assert_eq!(events.behind(Some("one.2"), 1).items, [act(3)]);
        assert_eq!(events.behind(Some("one.1"), 1).items, [EventShown::Missed, act(3)]);
    }
}
