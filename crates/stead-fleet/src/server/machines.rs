//! A machine in memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use stead_release::Name;
use tokio::sync::Notify;

use crate::store::{Heartbeat, LastHeard, MachineId, MachineRow};

/// A machine, as far as requests need it.
pub(super) struct Machine {
    pub(super) row: RwLock<MachineRow>,
    /// Wakes the requests that wait for something newer.
    pub(super) changed: Notify,
    heard: Mutex<Heard>,
    /// When it was heard last, in milliseconds.
    at: AtomicU64,
}

#[derive(Default)]
struct Heard {
    window: Window,
    said: String,
    /// Whether there is more than what was written.
    is_unsaid: bool,
}

/// The numbers of requests that were taken, so that none is played back. The last 64 may come in any order.
#[derive(Default)]
struct Window {
    highest: u64,
    /// Bit n: the number n below the highest was taken.
    taken: u64,
}

impl Window {
    /// Takes a number. False if it was taken before, or may have been.
    fn take(&mut self, number: u64) -> bool {
        if let Some(above) = number.checked_sub(self.highest).filter(|above| *above > 0) {
            self.taken = self.taken.checked_shl(u32::try_from(above).unwrap_or(u32::MAX)).unwrap_or(0) | 1;
            self.highest = number;
            return true;
        }
        let bit = u32::try_from(self.highest - number).ok().and_then(|below| 1_u64.checked_shl(below)).unwrap_or(0);
        let is_new = bit != 0 && self.taken & bit == 0;
        self.taken |= bit;
        is_new
    }
}

impl Machine {
    /// A machine that was heard last as the store says.
    pub(super) fn new(row: MachineRow, heard: Option<LastHeard>) -> Self {
        let heard = heard.unwrap_or(LastHeard { number: 0, at: 0, said: String::new() });
        // What was below the number may have been taken.
        let window = Window { highest: heard.number, taken: u64::MAX };
        let at = heard.at.into();
        let heard = Mutex::new(Heard { window, said: heard.said, is_unsaid: false });
        Self { row: RwLock::new(row), changed: Notify::new(), heard, at }
    }

    /// Takes the number of a request, and what was said with it. False if the number was taken before.
    pub(super) fn hear(&self, number: u64, said: Option<&str>, now: u64) -> bool {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if !heard.window.take(number) {
            return false;
        }
        if let Some(said) = said {
            said.clone_into(&mut heard.said);
        }
        heard.is_unsaid = true;
        self.at.store(now, Ordering::Relaxed);
        true
    }

    /// What is to be written of it, once.
    pub(super) fn unsaid(&self) -> Option<Heartbeat> {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let is_unsaid = std::mem::take(&mut heard.is_unsaid);
        let (number, said) = (heard.window.highest, heard.said.clone());
        is_unsaid.then(|| Heartbeat { machine: self.id(), number, at: self.at.load(Ordering::Relaxed), said })
    }

    /// When it was heard last, if ever, and what it said.
    pub(super) fn last(&self) -> Option<(u64, String)> {
        let at = self.at.load(Ordering::Relaxed);
        let said = self.heard.lock().unwrap_or_else(PoisonError::into_inner).said.clone();
        (at > 0).then_some((at, said))
    }

    pub(super) fn id(&self) -> MachineId {
        self.row().id
    }

    pub(super) fn row(&self) -> std::sync::RwLockReadGuard<'_, MachineRow> {
        self.row.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The release that it should come to.
    pub(super) fn desired(&self) -> Option<(Name, u64)> {
        self.row().desired.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_taken_once_and_the_last_64_in_any_order() {
        let mut window = Window::default();
        let taken: Vec<bool> =
            [5, 5, 3, 4, 3, 80, 17, 16, 79, 80, u64::MAX, 80].map(|number| window.take(number)).into();
        assert_eq!(taken, [true, false, true, true, false, true, true, false, true, false, true, false]);
        // Against a list of all that were taken, where the order is any.
        let (mut window, mut all, mut state) = (Window::default(), std::collections::BTreeSet::new(), 7_u64);
        for turn in 1..5_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = 1 + turn / 2 + (state >> 33) % 40;
            let highest = all.last().copied().unwrap_or_default();
            assert_eq!(window.take(number), number + 64 > highest && all.insert(number), "{number} behind {highest}");
        }
    }
}
