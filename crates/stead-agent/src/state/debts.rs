//! The notifications that documents owe to their instances.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use stead_core::run::Owed;

use super::State;

/// What is owed, by the generation whose instances it is owed to: a document is the only one that can deliver it.
///
/// What a document owed that is not worked on any more is owed by the one that is: the pending one, or else the current one.
/// On its way to becoming current, the pending one owes what the current one does, too, whose place it takes.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Recorded")]
pub struct Debts(BTreeMap<u64, Owed>);

/// What is owed, as records have it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Recorded {
    ByGeneration(BTreeMap<String, Owed>),
    /// Of an older version: by no generation.
    Together(Owed),
}

impl From<Recorded> for Debts {
    fn from(recorded: Recorded) -> Self {
        Self(match recorded {
            Recorded::ByGeneration(owed) => {
                owed.into_iter().map(|(number, owed)| (number.parse().unwrap_or_default(), owed)).collect()
            }
            Recorded::Together(owed) if owed.is_empty() => BTreeMap::new(),
            Recorded::Together(owed) => BTreeMap::from([(0, owed)]),
        })
    }
}

impl Debts {
    /// All of it, by the paths of instances.
    pub fn all(&self) -> Owed {
        self.0.values().flatten().cloned().collect()
    }

    fn of(&self, number: Option<u64>) -> impl Iterator<Item = &String> {
        number.and_then(|number| self.0.get(&number)).into_iter().flatten()
    }

    fn settle(&mut self, number: u64, settled: Settled) {
        let owed = self.0.entry(number).or_default();
        owed.retain(|path| !settled.known.contains(path));
        owed.extend(settled.owed);
    }
}

/// What a job came to in the notifications of its document. What its document came to owe meanwhile is not among them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Settled {
    /// What the job began with, and what it recorded itself.
    pub known: Owed,
    /// What of that is still owed.
    pub owed: Owed,
}

impl State {
    /// What a job over a document must deliver, besides what it owes itself.
    pub fn owed_by(&self, number: u64) -> Owed {
        let replaced = self.current.filter(|_| self.pending == Some(number));
        self.owed.of(Some(number)).chain(self.owed.of(replaced)).cloned().collect()
    }

    /// Records what a document owes if the change that is about to be made is one.
    pub fn owes(&mut self, number: u64, owed: &Owed) {
        self.owed.0.entry(number).or_default().extend(owed.iter().cloned());
        self.hand_over();
    }

    /// Records what a job over a document came to; `None` if that is not known.
    pub(super) fn settle(&mut self, number: u64, settled: Option<Settled>) {
        if let Some(settled) = settled {
            self.owed.settle(number, settled);
        }
        self.hand_over();
    }

    /// Forgets what the current document owed, since the one that takes its place has delivered it.
    pub(super) fn is_delivered_by_the_next(&mut self) {
        if let Some(current) = self.current {
            self.owed.0.remove(&current);
        }
    }

    /// Has the document that is worked on owe what those owed that are not any more. Where there is none, the next one will.
    pub(super) fn hand_over(&mut self) {
        let worked_on: BTreeSet<u64> = self.pending.into_iter().chain(self.current).collect();
        if let Some(heir) = self.pending.or(self.current) {
            let left = self.owed.0.extract_if(.., |number, _| !worked_on.contains(number));
            let left: Vec<String> = left.flat_map(|(_, owed)| owed).collect();
            self.owed.0.entry(heir).or_default().extend(left);
        }
        self.owed.0.retain(|_, owed| !owed.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owed(paths: &[&str]) -> Owed {
        paths.iter().map(|path| (*path).to_owned()).collect()
    }

    #[test]
    fn what_an_older_version_recorded_is_owed_by_the_document_that_is_worked_on() {
        let mut state: State = serde_json::from_str(r#"{"current": 7, "owed": ["a", "b"]}"#).unwrap();
        state.hand_over();
        assert_eq!(state.owed_by(7), owed(&["a", "b"]));
        let again: State = serde_json::from_str(&serde_json::to_string(&state).unwrap()).unwrap();
        assert_eq!(again, state);
    }

    #[test]
    fn each_document_delivers_its_own() {
        let mut state = State { current: Some(1), pending: Some(2), ..State::default() };
        state.owes(2, &owed(&["new", "both"]));
        state.owes(1, &owed(&["old"]));
        assert_eq!(state.owed_by(2), owed(&["both", "new", "old"]), "it takes the place of the other");
        state.settle(1, Some(Settled { known: owed(&["old"]), owed: owed(&[]) }));
        assert_eq!(state.owed_by(2), owed(&["both", "new"]), "a correction of the current one delivers nothing of it");
        state.pending = None;
        state.hand_over();
        assert_eq!(state.owed_by(1), owed(&["both", "new"]), "it was removed, and what it changed is still so");
        state.settle(1, Some(Settled { known: owed(&["both"]), owed: owed(&[]) }));
        assert_eq!(state.owed_by(1), owed(&["new"]), "a job that began before that did not know of it");
    }
}
