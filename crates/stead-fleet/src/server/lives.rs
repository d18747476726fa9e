//! The lives of a machine, by which two machines with one key are known: each was answered since the other one was heard.

use stead_protocol::Life;

/// How many pairs are remembered.
const MOST: usize = 16;

/// The lives that a machine was heard in.
#[derive(Default)]
pub(super) struct Lives {
    /// That of the request with the highest number.
    current: u64,
    /// Lives that go on beside another one, as they said themselves.
    beside: Vec<(u64, u64)>,
}

impl Lives {
    /// Those of a machine of which only the last is known.
    pub(super) fn of(life: Life) -> Self {
        Self { current: life.life, beside: Vec::new() }
    }

    pub(super) fn current(&self) -> u64 {
        self.current
    }

    /// Takes in what a machine says with a request, whether or not its number is new. Returns true if that shows two machines.
    ///
    /// Law: a process that ended says nothing any more, so that one that was started again, or from an older disk, never says of the one
    /// before it what that one says of it. A request that is late or comes twice says what was true.
    pub(super) fn hear(&mut self, Life { life, beside }: Life) -> bool {
        if life == 0 || beside == 0 || life == beside {
            return false;
        }
        if self.beside.contains(&(beside, life)) {
            return true;
        }
        if !self.beside.contains(&(life, beside)) {
            let old = (self.beside.len() + 1).saturating_sub(MOST);
            self.beside.drain(..old);
            self.beside.push((life, beside));
        }
        false
    }

    /// Takes in the life of a request with a higher number than all others. Returns true if it is another one than before.
    pub(super) fn goes_on(&mut self, Life { life, .. }: Life) -> bool {
        life != 0 && std::mem::replace(&mut self.current, life) != life
    }

    /// Forgets who goes on beside another one: an operator has decided on it.
    pub(super) fn settle(&mut self) {
        self.beside.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets processes ask in turns, each written as a letter: it says which one the answer to it named last, and is answered with the
    /// current one at the end of its turn, or with the next turn of another one if it waits (`a-`). Returns the place of the turn that shows two.
    fn shown(turns: &str) -> Option<usize> {
        let (mut lives, mut named) = (Lives::default(), std::collections::BTreeMap::<u64, u64>::new());
        let mut waits: Option<u64> = None;
        for (at, turn) in turns.split_whitespace().enumerate() {
            let life = turn.bytes().next().map_or(0, u64::from);
            let beside = named.get(&life).copied().filter(|named| *named != life).unwrap_or_default();
            let life = Life { life, beside };
            if lives.hear(life) {
                return Some(at);
            }
            lives.goes_on(life);
            if let Some(waiting) = waits.take() {
                named.insert(waiting, lives.current());
            }
            if turn.ends_with('-') {
                waits = Some(life.life);
            } else {
                named.insert(life.life, lives.current());
            }
        }
        None
    }

    #[test]
    fn two_that_wait_in_turns_are_known_at_the_second_request_of_both() {
        assert_eq!(shown("a- b- a- b-"), Some(3));
        assert_eq!(shown("a a- b- b- a- b-"), Some(5));
        // One of them is started again meanwhile.
        assert_eq!(shown("a- b- c- a- c- a-"), Some(5));
    }

    #[test]
    fn one_that_begins_again_is_one() {
        for one in ["a a b b c c", "a- b- b- c- c-", "a- b- c- d-", "a- b a- c a"] {
            assert_eq!(shown(one), None, "{one}");
        }
    }

    #[test]
    fn what_is_said_twice_or_by_former_versions_shows_nothing_and_memory_has_an_end() {
        let mut lives = Lives::default();
        for _ in 0..3 {
            assert!(!lives.hear(Life { life: 1, beside: 2 }));
            assert!(!lives.hear(Life { life: 0, beside: 2 }) && !lives.hear(Life { life: 2, beside: 0 }));
        }
        assert!(lives.hear(Life { life: 2, beside: 1 }));
        lives.settle();
        assert!(!lives.hear(Life { life: 2, beside: 1 }));
        for other in 10..1000 {
            assert!(!lives.hear(Life { life: 5, beside: other }));
        }
        assert_eq!(lives.beside.len(), MOST);
        assert!(!lives.goes_on(Life::default()) && lives.goes_on(Life { life: 9, beside: 0 }));
        assert_eq!((lives.current(), lives.goes_on(Life { life: 9, beside: 3 })), (9, false));
    }
}
