//! A machine in memory.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use stead_hosts::Filter;
use stead_protocol::{Life, MachineShown, MachineState};
use stead_release::{Name, RosterMachine};
use tokio::sync::Notify;

use super::lives::Lives;
use super::outcomes::Outcome;
use super::said::Said;
use crate::store::{Heartbeat, LastHeard, MachineId, MachineRow, Standing};

/// How long a machine is asked to check at once, in milliseconds: one that is away for longer checks when it is due.
const CHECKABLE: u64 = 3_600_000;
/// How many requests of a machine wait at once. It has one of its own; those whose connections are gone stay for a while.
const MOST_WAITS: usize = 16;

/// A machine, as far as requests need it.
pub(super) struct Machine {
    pub(super) row: RwLock<MachineRow>,
    /// Wakes the requests that wait for something newer.
    pub(super) changed: Notify,
    /// How many requests wait.
    waits: AtomicUsize,
    heard: Mutex<Heard>,
    /// When it was heard last, in milliseconds.
    at: AtomicU64,
    /// What the roster has for it and its key, if it has it.
    signed: RwLock<Option<Arc<RosterMachine>>>,
    /// The number of the newest report that is stored, and what the newest says that was read.
    reported: AtomicU64,
    outcome: RwLock<Option<Arc<Outcome>>>,
    /// The number of the report or request that showed two machines; 0 if there is none.
    forked: AtomicU64,
    /// The newest report that was refused: when, and why.
    refused: Mutex<Option<(u64, String)>>,
    /// The last request to check that it was answered at once for.
    answered: AtomicU64,
    /// The state that was said of it last, in the list of events.
    said_last: Mutex<Option<MachineState>>,
}

#[derive(Default)]
struct Heard {
    window: Window,
    said: String,
    understood: Said,
    lives: Lives,
    /// True if there is more than what was written.
    is_unsaid: bool,
}

/// The news in a request of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Hearing {
    /// True if its number is one that was not taken before.
    pub(super) is_new: bool,
    /// True if it shows two machines with the key, of which nothing was known.
    pub(super) are_two: bool,
    /// The life that it comes from.
    pub(super) life: Life,
}

/// A request that waits, until it is dropped.
pub(super) struct Waiting<'m>(&'m Machine);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waits.fetch_sub(1, Ordering::Relaxed);
    }
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
        let (at, understood) = (heard.at.into(), Said::read(&heard.said));
        let lives = Lives::of(understood.life);
        let heard = Mutex::new(Heard { window, said: heard.said, understood, lives, is_unsaid: false });
        Self {
            row: RwLock::new(row),
            changed: Notify::new(),
            waits: AtomicUsize::default(),
            heard,
            at,
            signed: RwLock::default(),
            reported: AtomicU64::default(),
            outcome: RwLock::default(),
            forked: AtomicU64::default(),
            refused: Mutex::default(),
            answered: AtomicU64::default(),
            said_last: Mutex::default(),
        }
    }

    /// A request of it waits, if not too many do: whoever has its key does not have the room of all others.
    pub(super) fn waits(&self) -> Option<Waiting<'_>> {
        let is_many = self.waits.fetch_add(1, Ordering::Relaxed) >= MOST_WAITS;
        let waiting = Waiting(self);
        (!is_many).then_some(waiting)
    }

    /// Takes the number of a request, and what was said with it. What it says of its life counts also if the number was taken: two machines
    /// with one state have the same numbers.
    pub(super) fn hear(&self, number: u64, said: Option<&str>, now: u64) -> Hearing {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let is_highest = number > heard.window.highest;
        let is_new = heard.window.take(number);
        let life = match said {
            Some(said) if is_new => heard.understand(said).life,
            Some(said) => Said::read(said).life,
            None => Life::default(),
        };
        let are_two = heard.lives.hear(life) && !self.is_forked();
        if is_new {
            heard.is_unsaid = true;
            self.at.store(now, Ordering::Relaxed);
        }
        if is_highest && heard.lives.goes_on(life) {
            // Whoever waits in another life learns of this one.
            self.changed.notify_waiters();
        }
        Hearing { is_new, are_two, life }
    }

    /// Takes in that another controller heard it, if that was later. Returns the number of the request if it shows two machines.
    pub(super) fn was_heard(&self, last: &LastHeard) -> Option<u64> {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let mut are_two = false;
        if last.number > heard.window.highest {
            heard.window.take(last.number);
            let life = Said::read(&last.said).life;
            are_two = heard.lives.hear(life) && !self.is_forked();
            if heard.lives.goes_on(life) {
                self.changed.notify_waiters();
            }
        }
        if last.at > self.at.load(Ordering::Relaxed) {
            heard.understand(&last.said);
            self.at.store(last.at, Ordering::Relaxed);
        }
        are_two.then_some(last.number)
    }

    /// The life that was heard last; 0 if none is known.
    pub(super) fn life(&self) -> u64 {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).lives.current()
    }

    /// The number of the last request to check that it says it did.
    pub(super) fn checked(&self) -> u64 {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).understood.checked
    }

    /// The number of the request to check that it has not done, and that is not too old.
    pub(super) fn unchecked(&self, now: u64) -> Option<u64> {
        Some(self.row().asked).filter(|asked| *asked > self.checked() && asked.saturating_add(CHECKABLE) > now)
    }

    /// Takes the request to check for whoever waits. Returns whether there is one that was not taken before.
    pub(super) fn take_check_request(&self, now: u64) -> bool {
        self.unchecked(now).is_some_and(|asked| self.answered.swap(asked, Ordering::Relaxed) != asked)
    }

    /// What is to be written of it, once.
    pub(super) fn unsaid(&self) -> Option<Heartbeat> {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let is_unsaid = std::mem::take(&mut heard.is_unsaid);
        let (number, said) = (heard.window.highest, heard.said.clone());
        is_unsaid.then(|| Heartbeat { machine: self.id(), number, at: self.at.load(Ordering::Relaxed), said })
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

    /// The release that it should come to, unless it says that it has a newer one of that channel: a store that is an older copy of itself
    /// takes none back. And how often secrets were sealed to it.
    pub(super) fn newer(&self) -> Option<(Name, u64, u64)> {
        let sealed = self.row().sealed;
        let (channel, number) = self.desired()?;
        let is_behind = self.applied().is_some_and(|(at, has)| at == channel.to_string() && has > number);
        (!is_behind).then_some((channel, number, sealed))
    }

    /// Takes in what the roster has for it.
    pub(super) fn sign(&self, signed: Option<Arc<RosterMachine>>) {
        *self.signed.write().unwrap_or_else(PoisonError::into_inner) = signed;
    }

    fn signed(&self) -> Option<Arc<RosterMachine>> {
        self.signed.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes in that a report of this number is stored.
    pub(super) fn has_reported(&self, number: u64) {
        self.reported.fetch_max(number, Ordering::Relaxed);
    }

    /// The number of the newest report, if it was not read yet.
    pub(super) fn unread(&self) -> Option<u64> {
        let reported = self.reported.load(Ordering::Relaxed);
        let read = self.outcome.read().unwrap_or_else(PoisonError::into_inner).as_ref().map_or(0, |read| read.number);
        (reported > read).then_some(reported)
    }

    /// Takes in what its newest report says.
    pub(super) fn learn(&self, outcome: Outcome) {
        *self.outcome.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(outcome));
    }

    /// Its newest report of those that were read.
    pub(super) fn outcome(&self) -> Option<Arc<Outcome>> {
        self.outcome.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes in that a report of it was refused.
    pub(super) fn refuse(&self, at: u64, why: String) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some((at, why));
    }

    /// Takes in the number of the report or request that showed two machines; 0 if an operator has decided on them.
    pub(super) fn fork(&self, number: u64) {
        if self.forked.swap(number, Ordering::Relaxed) > 0 && number == 0 {
            self.heard.lock().unwrap_or_else(PoisonError::into_inner).lives.settle();
        }
    }

    /// Returns whether two machines have its key: none of them is given anything newer.
    pub(super) fn is_forked(&self) -> bool {
        self.forked.load(Ordering::Relaxed) > 0
    }

    /// When it is silent unless it is heard, at a time. Whoever began to listen at a time knows nothing of the time before. A time that
    /// is still to come was said by a clock that was put back since: whatever was heard then was heard by now.
    fn deadline(&self, now: u64, since: u64) -> u64 {
        let patience = self.heard.lock().unwrap_or_else(PoisonError::into_inner).understood.patience();
        let at = self.at.fetch_min(now, Ordering::Relaxed).min(now);
        let others = [since, self.row().joined].into_iter().filter(|at| *at <= now);
        others.fold(at, u64::max).saturating_add(patience)
    }

    /// The release that it says it has.
    pub(super) fn applied(&self) -> Option<(String, u64)> {
        let applied = self.heard.lock().unwrap_or_else(PoisonError::into_inner).understood.applied.clone();
        let (channel, number) = applied.filter(|(_, number)| *number > 0)?;
        Some((channel.or_else(|| self.desired().map(|(channel, _)| channel.to_string()))?, number))
    }

    /// Until when it is held, in milliseconds, and why: by an operator or by the roster, whichever is longer.
    pub(super) fn held(&self, now: u64) -> Option<(u64, String)> {
        let stated = self.signed().and_then(|signed| {
            let hold = signed.hold.as_ref()?;
            Some((u64::try_from(hold.until().as_millisecond()).ok()?, hold.why().to_owned()))
        });
        let held = [self.row().held.clone(), stated].into_iter().flatten();
        held.filter(|(until, _)| *until > now).max_by_key(|(until, _)| *until)
    }

    /// How it is at a time, to a controller that began to listen at another.
    pub(super) fn state(&self, now: u64, since: u64) -> MachineState {
        let (standing, is_held) = {
            let row = self.row();
            (row.standing, self.held(now).is_some())
        };
        match standing {
            Standing::Retired => return MachineState::Retired,
            Standing::Waiting => return MachineState::Waiting,
            Standing::Admitted if self.deadline(now, since) < now => return MachineState::Silent,
            Standing::Admitted if self.is_forked() => return MachineState::Cloned,
            Standing::Admitted => {}
        }
        let said = self.heard.lock().unwrap_or_else(PoisonError::into_inner).understood.state;
        // What it says with a request is newer than its last report: nothing is reported of a run that changed nothing.
        let state = said.or_else(|| self.outcome().map(|outcome| outcome.state));
        let desired = self.desired().map(|(channel, number)| (channel.to_string(), number));
        match state {
            Some(MachineState::Failed) => MachineState::Failed,
            Some(MachineState::Drifted) => MachineState::Drifted,
            _ if is_held => MachineState::Held,
            _ if desired.is_some() && self.applied() != desired => MachineState::Pending,
            Some(MachineState::Converged) if desired.is_none() => MachineState::Unknown,
            Some(state) => state,
            None => MachineState::Unknown,
        }
    }

    /// Takes in which state is said of it now, and returns the former one.
    pub(super) fn say(&self, state: MachineState) -> Option<MachineState> {
        self.said_last.lock().unwrap_or_else(PoisonError::into_inner).replace(state)
    }

    /// Returns whether a filter means it: labels that operators signed come before those that it asked for, and what it is to the fleet
    /// before both.
    pub(super) fn is_meant(&self, filter: &Filter, state: MachineState) -> bool {
        let (row, signed) = (self.row(), self.signed());
        let channel = row.desired.as_ref().map(|(channel, _)| channel.to_string());
        filter.matches(&|label: &str| match label {
            "name" => Some(row.name.as_str()),
            "state" => Some(state.as_str()),
            "standing" => Some(row.standing.as_str()),
            "channel" => channel.as_deref(),
            label => signed
                .as_ref()
                .and_then(|signed| signed.labels.get(label))
                .or_else(|| row.labels.get(label))
                .map(String::as_str),
        })
    }

    /// The machine as operators see it.
    pub(super) fn shown(&self, now: u64, since: u64) -> MachineShown {
        let (at, state, deadline, applied) =
            (self.at.load(Ordering::Relaxed), self.state(now, since), self.deadline(now, since), self.applied());
        let said = self.heard.lock().unwrap_or_else(PoisonError::into_inner).said.clone();
        let (row, signed) = (self.row(), self.signed());
        MachineShown {
            name: row.name.to_string(),
            state,
            key: row.key.to_string(),
            standing: row.standing.as_str().to_owned(),
            is_in_roster: signed.is_some(),
            labels: signed.map(|signed| signed.labels.clone()).unwrap_or_default(),
            asked: row.labels.clone(),
            desired: row.desired.as_ref().map(|(channel, number)| (channel.to_string(), *number)),
            applied,
            held: self.held(now),
            heard: Some(at).filter(|at| *at > 0),
            deadline,
            forked: Some(self.forked.load(Ordering::Relaxed)).filter(|number| *number > 0),
            refused: self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            report: self.outcome().map(|outcome| outcome.number),
            said: serde_json::from_str(&said).ok(),
        }
    }
}

impl Heard {
    fn understand(&mut self, said: &str) -> &Said {
        if self.said != said {
            said.clone_into(&mut self.said);
            self.understood = Said::read(said);
        }
        &self.understood
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_put_back_keeps_no_machine_from_being_silent() {
        let (now, ahead) = (1_800_000_000_000, 1_900_000_000_000);
        let row = |joined| MachineRow {
            id: MachineId(1),
            name: stead_hosts::MachineName::parse("m1").unwrap(),
            key: stead_release::MachineKeys::of(&stead_release::MachineSecret::of(&[7; 64])).key().clone(),
            standing: Standing::Admitted,
            labels: std::collections::BTreeMap::new(),
            joined,
            desired: None,
            held: None,
            asked: 0,
            sealed: 0,
        };
        let heard = |at| Some(LastHeard { number: 1, at, said: String::new() });
        for (joined, at, since) in [(ahead, ahead, ahead), (0, ahead, 0), (ahead, 0, now), (0, 0, now), (0, now, ahead)]
        {
            let machine = Machine::new(row(joined), heard(at));
            let silent = (0..200).find(|second| machine.state(now + second * 1000, since) == MachineState::Silent);
            assert!(silent.is_some_and(|second| (60..=131).contains(&second)), "{joined} {at} {since}: {silent:?}");
        }
    }

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
