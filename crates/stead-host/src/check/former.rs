//! Former states of resources that are taken back by them: what `get` reports can be set.

use serde_json::{Value as Json, json};
use stead_core::manifest::UndoWay;

use super::state::{bare, listed, unequal};
use super::{Checker, Depth, codes};
use crate::operate::{can_be_stated, former_properties, settable};
use crate::provider::{Plain, State};

impl Checker<'_> {
    /// Checks that a state which `get` reported can be stated; with [`Depth::Set`] that a set brings it back.
    pub(super) fn set_again(&mut self, before: &State, depth: Depth) {
        // What it does not report is named by the undo, and stays.
        if self.subject.manifest.undo != UndoWay::State || !self.reports_all(before) {
            return;
        }
        let former = Plain::new(self.former(before));
        let desired = std::mem::replace(&mut self.desired, former);
        match depth {
            Depth::Look => self.is_in_state(),
            Depth::Set => self.comes_back(before),
        }
        self.desired = desired;
    }

    /// Checks that the state that is there is the desired one once it is stated.
    fn is_in_state(&mut self) {
        if !self.subject.manifest.capabilities.test {
            return;
        }
        match self.subject.provider.test(&self.cx, &self.desired) {
            Ok(reply) if reply.verdict() == Some(false) => {
                let message = "test says that the state which get reports is not as desired where it is stated";
                self.error(&codes::FORMER, message, "get must report what set takes");
            }
            Ok(_) => {}
            Err(failure) => self.failed("test of the state that get reports", &failure),
        }
    }

    fn comes_back(&mut self, before: &State) {
        let Some(changed) = self.change("set of the former state") else { return };
        let names = unequal(&bare(before), &bare(&changed.state));
        if !names.is_empty() {
            let message = format!("after set of the former state, get reports something else for {}", listed(&names));
            self.error(&codes::FORMER, message, "");
        }
    }

    /// Returns whether a state has all that is stated, or says that there is nothing.
    fn reports_all(&self, state: &State) -> bool {
        let (desired, state) = (bare(&self.desired), bare(state));
        let mut stated = desired.as_object().into_iter().flatten().filter(|(name, _)| !name.starts_with('_'));
        state.get("_exist") == Some(&json!(false)) || stated.all(|(name, _)| state.get(name).is_some())
    }

    /// The properties that an undo sets.
    fn former(&self, before: &State) -> Json {
        let desired = bare(&self.desired);
        let before = settable(bare(before), self.schema.as_deref());
        let (Some(stated), Some(reported)) = (desired.as_object(), before.as_object()) else { return desired };
        Json::Object(former_properties(stated, reported, can_be_stated))
    }
}
