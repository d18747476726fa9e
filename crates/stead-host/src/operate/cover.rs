//! The cover over the secrets of a call in everything that is said of it.

use std::borrow::Cow;
use std::sync::{Arc, PoisonError, RwLock};

use crate::redactor::Redactor;

/// The secrets that the call was given, and those of all other instances.
#[derive(Clone)]
pub(super) struct Cover {
    /// `None` without any: most calls have none.
    own: Option<Arc<Redactor>>,
    session: Arc<RwLock<Redactor>>,
}

impl Cover {
    pub(super) fn new(own: Redactor, session: Arc<RwLock<Redactor>>) -> Self {
        Self { own: (!own.is_empty()).then(|| Arc::new(own)), session }
    }

    /// Returns whether there is nothing to cover, so far.
    pub(super) fn is_empty(&self) -> bool {
        self.own.is_none() && self.of_session(Redactor::is_empty)
    }

    /// Returns whether a number, as text, is a secret of the call or holds one of another instance.
    pub(super) fn has(&self, number: &str) -> bool {
        self.own.as_ref().is_some_and(|own| own.has(number))
            || self.of_session(|session| session.scrub(number) != number)
    }

    /// The text with every secret in it covered.
    pub(super) fn scrub<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let own = self.scrub_own(text);
        let covered = self.of_session(|session| changed(session.scrub(&own)));
        covered.map_or(own, Cow::Owned)
    }

    /// The text of a state: what the document states of this instance in the clear is not a secret of another.
    pub(super) fn scrub_state(&self, text: String, is_stated: impl Fn(&str) -> bool) -> String {
        match changed(self.scrub(&text)) {
            Some(_) if is_stated(&text) => changed(self.scrub_own(&text)).unwrap_or(text),
            Some(covered) => covered,
            None => text,
        }
    }

    fn scrub_own<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.own.as_ref().map_or(Cow::Borrowed(text), |own| own.scrub(text))
    }

    fn of_session<T>(&self, ask: impl FnOnce(&Redactor) -> T) -> T {
        ask(&self.session.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the covered text, if it was changed.
fn changed(text: Cow<'_, str>) -> Option<String> {
    match text {
        Cow::Borrowed(_) => None,
        Cow::Owned(text) => Some(text),
    }
}
