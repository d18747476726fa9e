//! The notifications that documents owe to their instances.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use stead_core::identity::DocumentIdentity;
use stead_core::run::Owed;

use super::AgentState;

/// Owed notifications, by the generation whose instances they are owed to: only that document can deliver them.
///
/// The debts of a generation that is not worked on any more pass to the one that is, the pending one or else the current one, if
/// it is the same document. On its way to becoming current, the pending one also owes what the current one does, whose place it
/// takes. The debts of another document wait until that is delivered again.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Recorded", rename_all = "camelCase")]
pub struct Debts {
    by_generation: BTreeMap<u64, Owed>,
    waiting: BTreeMap<DocumentIdentity, Owed>,
}

/// The form in which [`Debts`] are recorded.
#[derive(Deserialize)]
#[serde(untagged)]
enum Recorded {
    #[serde(rename_all = "camelCase")]
    ByDocument { by_generation: BTreeMap<String, Owed>, waiting: BTreeMap<DocumentIdentity, Owed> },
    /// Of an older version: without those that wait.
    ByGeneration(BTreeMap<String, Owed>),
    /// Of an older version: by no generation.
    Together(Owed),
}

impl From<Recorded> for Debts {
    fn from(recorded: Recorded) -> Self {
        let numbered = |owed: BTreeMap<String, Owed>| {
            owed.into_iter().map(|(number, owed)| (number.parse().unwrap_or_default(), owed)).collect()
        };
        match recorded {
            Recorded::ByDocument { by_generation, waiting } => Self { by_generation: numbered(by_generation), waiting },
            Recorded::ByGeneration(owed) => Self { by_generation: numbered(owed), ..Self::default() },
            Recorded::Together(owed) if owed.is_empty() => Self::default(),
            Recorded::Together(owed) => Self { by_generation: BTreeMap::from([(0, owed)]), ..Self::default() },
        }
    }
}

impl Debts {
    /// Returns the paths of all instances that the generations being worked on owe notifications.
    pub fn all(&self) -> Owed {
        self.by_generation.values().flatten().cloned().collect()
    }

    fn of(&self, number: Option<u64>) -> impl Iterator<Item = &String> {
        number.and_then(|number| self.by_generation.get(&number)).into_iter().flatten()
    }

    fn settle(&mut self, number: u64, settled: Settled) {
        let owed = self.by_generation.entry(number).or_default();
        owed.retain(|path| !settled.known.contains(path));
        owed.extend(settled.owed);
    }
}

/// The result of a job for the notifications of its document. Those that its document came to owe meanwhile are not included.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Settled {
    /// The notifications that were owed when the job began, and those that it recorded itself.
    pub known: Owed,
    /// Those of them that are still owed.
    pub owed: Owed,
}

impl AgentState {
    /// Returns the notifications from earlier jobs that a job over a generation must deliver: those of the generation and, if it
    /// is pending, those of the current one if that is the same document.
    pub fn owed_by(&self, number: u64) -> Owed {
        let replaced =
            self.current.filter(|current| self.pending == Some(number) && self.are_one_document(*current, number));
        self.owed.of(Some(number)).chain(self.owed.of(replaced)).cloned().collect()
    }

    /// Records what a document owes if the change that is about to be made is one.
    pub fn owes(&mut self, number: u64, owed: &Owed) {
        self.owed.by_generation.entry(number).or_default().extend(owed.iter().cloned());
        self.hand_over();
    }

    /// Records what a job over a document came to; `None` if that is not known.
    pub(super) fn settle(&mut self, number: u64, settled: Option<Settled>) {
        if let Some(settled) = settled {
            self.owed.settle(number, settled);
        }
        self.hand_over();
    }

    /// Forgets what the current generation owed, since the one that takes its place has delivered it: as a newer one of the same
    /// document.
    pub(super) fn is_delivered_by_the_next(&mut self) {
        if let (Some(current), Some(pending)) = (self.current, self.pending)
            && self.are_one_document(current, pending)
        {
            self.owed.by_generation.remove(&current);
        }
    }

    /// Has the generation that is worked on owe what those of its document owed that are not any more. Where there is none, the
    /// next one will.
    pub(super) fn hand_over(&mut self) {
        let worked_on: BTreeSet<u64> = self.pending.into_iter().chain(self.current).collect();
        if let Some(heir) = self.pending.or(self.current) {
            let left: Vec<(u64, Owed)> =
                self.owed.by_generation.extract_if(.., |number, _| !worked_on.contains(number)).collect();
            for (number, owed) in left {
                match self.identity_of(number).cloned() {
                    Some(identity) if !self.are_one_document(number, heir) => {
                        self.owed.waiting.entry(identity).or_default().extend(owed);
                    }
                    _ => self.owed.by_generation.entry(heir).or_default().extend(owed),
                }
            }
            let resumed = self.identity_of(heir).cloned().and_then(|identity| self.owed.waiting.remove(&identity));
            self.owed.by_generation.entry(heir).or_default().extend(resumed.unwrap_or_default());
        }
        self.owed.by_generation.retain(|_, owed| !owed.is_empty());
        self.owed.waiting.retain(|_, owed| !owed.is_empty());
    }

    fn identity_of(&self, number: u64) -> Option<&DocumentIdentity> {
        self.generations.get(&number)?.identity.as_ref()
    }

    /// Returns whether two generations are of one document, as far as that is known.
    fn are_one_document(&self, one: u64, other: u64) -> bool {
        self.identity_of(one).zip(self.identity_of(other)).is_none_or(|(one, other)| one == other)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::state::Generation;

    fn owed(paths: &[&str]) -> Owed {
        paths.iter().map(|path| (*path).to_owned()).collect()
    }

    #[test]
    fn what_an_older_version_recorded_is_owed_by_the_document_that_is_worked_on() {
        let mut state: AgentState = serde_json::from_str(r#"{"current": 7, "owed": ["a", "b"]}"#).unwrap();
        state.hand_over();
        assert_eq!(state.owed_by(7), owed(&["a", "b"]));
        let again: AgentState = serde_json::from_str(&serde_json::to_string(&state).unwrap()).unwrap();
        assert_eq!(again, state);
    }

    fn generation(name: &str) -> Generation {
        Generation {
            content: String::new(),
            origin: String::new(),
            identity: DocumentIdentity::of_name(name),
            accepted: Timestamp::UNIX_EPOCH,
            user: 0,
            mode: None,
            instance_modes: BTreeSet::new(),
            converged: None,
            ended: None,
            restores: None,
        }
    }

    #[test]
    fn what_another_document_owes_waits_until_it_is_delivered_again() {
        let generations = [(1, generation("web")), (2, generation("other")), (3, generation("web"))];
        let mut state =
            AgentState { current: Some(1), pending: Some(2), generations: generations.into(), ..AgentState::default() };
        state.owes(1, &owed(&["reload"]));
        assert_eq!(state.owed_by(2), owed(&[]), "it is not its document");
        state.is_delivered_by_the_next();
        (state.current, state.pending) = (Some(2), None);
        state.hand_over();
        assert_eq!((state.owed_by(2), state.owed.all()), (owed(&[]), owed(&[])));
        let mut state: AgentState = serde_json::from_str(&serde_json::to_string(&state).unwrap()).unwrap();
        state.pending = Some(3);
        state.hand_over();
        assert_eq!(state.owed_by(3), owed(&["reload"]));
    }

    #[test]
    fn each_document_delivers_its_own() {
        let mut state = AgentState { current: Some(1), pending: Some(2), ..AgentState::default() };
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
