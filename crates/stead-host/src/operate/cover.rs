//! What a call covers in everything that is said of it.

use std::sync::{Arc, PoisonError, RwLock};

use crate::redactor::Redactor;

/// The secrets that the call was given, and those of all other instances.
pub(super) struct Cover {
    own: Redactor,
    session: Arc<RwLock<Redactor>>,
}

impl Cover {
    pub(super) fn new(own: Redactor, session: Arc<RwLock<Redactor>>) -> Self {
        Self { own, session }
    }

    /// Whether there is nothing to cover, so far.
    pub(super) fn is_empty(&self) -> bool {
        self.own.is_empty() && self.of_session(Redactor::is_empty)
    }

    /// Whether a number, as text, is a secret of the call or holds one of another instance.
    pub(super) fn has(&self, number: &str) -> bool {
        self.own.has(number) || self.of_session(|session| !session.is_empty() && session.scrub(number) != number)
    }

    /// The text with every secret in it covered.
    pub(super) fn scrub(&self, text: &str) -> String {
        let text = self.own.scrub(text);
        self.of_session(|session| if session.is_empty() { None } else { Some(session.scrub(&text)) }).unwrap_or(text)
    }

    /// The text of a state: what the document states of this instance in the clear is not a secret of another.
    pub(super) fn scrub_state(&self, text: &str, is_stated: impl FnOnce(&str) -> bool) -> String {
        let covered = self.scrub(text);
        if covered != text && is_stated(text) { self.own.scrub(text) } else { covered }
    }

    fn of_session<T>(&self, ask: impl FnOnce(&Redactor) -> T) -> T {
        ask(&self.session.read().unwrap_or_else(PoisonError::into_inner))
    }
}
