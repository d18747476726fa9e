//! Why things that a document does not have any more stay, in words.

use std::collections::BTreeMap;

use stead_core::diag::{Diagnostic, Severity};
use stead_core::graph::codes;
use stead_core::text::Span;
use stead_host::store::StoreError;
use stead_host::store::kept::StayReason;

use crate::messages::error_chain;

/// Why a thing stays.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Why {
    /// The document does not say that it is to be removed.
    NotStated,
    /// No run is known to have created it.
    NotCreated,
    /// It is not known how it would be removed, or what that would take along.
    NotRemovable,
    /// Another document manages it.
    Elsewhere,
    /// Something of the document or of another one lies in it, or uses it.
    Used,
    /// Something that nobody manages lies in it.
    Occupied,
    /// It cannot be removed as it is now: the message of its resource.
    Blocked(String),
    /// The document cannot be resolved with its removal: the first error.
    Unresolved(String),
    /// An instance of the document manages something that only the run knows.
    Open(String),
    /// The record of another document cannot be read.
    Unreadable(String),
}

impl Why {
    /// The reason behind "since", and what users can do.
    fn texts(&self) -> (String, &'static str) {
        match self {
            Self::NotStated => (
                "the document does not say 'removed: remove'".to_owned(),
                "add 'directives: {removed: remove}' to remove it, or '{removed: keep}' to hide this warning",
            ),
            Self::NotCreated => (
                "no earlier run is known to have created it".to_owned(),
                "to remove it, state it with '_exist: false'; the next 'stead apply' no longer reports it",
            ),
            Self::NotRemovable => (
                "its resource does not say how to remove it alone".to_owned(),
                "to remove it, state it with '_exist: false'; the next 'stead apply' no longer reports it",
            ),
            Self::Elsewhere => (
                "another document manages it".to_owned(),
                "there is nothing to do: the next 'stead apply' no longer reports it",
            ),
            Self::Used | Self::Occupied => (
                "something that stays lies in it or uses it".to_owned(),
                "take out what is in it or uses it, and the next 'stead apply' removes it",
            ),
            Self::Blocked(message) => (
                format!("it cannot be removed as it is now: {message}"),
                "once nothing is in the way, the next 'stead apply' removes it",
            ),
            Self::Unresolved(message) => (
                format!("the document cannot be resolved with its removal: {message}"),
                "to remove it, state it with '_exist: false'",
            ),
            Self::Open(instance) => (
                format!("only the run knows what {instance} manages"),
                "write out there what identifies the thing, such as its path; or state what is to go with '_exist: false'",
            ),
            Self::Unreadable(error) => (
                format!("it is not known what other documents manage: {error}"),
                "to remove it nevertheless, state it with '_exist: false'",
            ),
        }
    }

    /// The reason that a record has.
    pub(crate) fn of(reason: StayReason) -> Self {
        match reason {
            StayReason::NotStated => Self::NotStated,
            StayReason::Used => Self::Used,
        }
    }

    /// The reason as a record has it; `None` where it must be found again each time.
    pub(crate) fn reason(&self) -> Option<StayReason> {
        match self {
            Self::NotStated => Some(StayReason::NotStated),
            Self::Used => Some(StayReason::Used),
            _ => None,
        }
    }

    /// Returns whether a run of the same document will find the same reason.
    fn lasts(&self) -> bool {
        matches!(self, Self::NotStated | Self::NotRemovable | Self::Elsewhere | Self::Used)
    }

    /// The warning about so many things that stay for this reason, given the first of them.
    pub(crate) fn finding(&self, things: &[String], count: usize) -> Diagnostic {
        let (since, help) = self.texts();
        let message = format!("no longer in the document; kept, since {since}: {}", listed(things, count));
        Diagnostic { help: Some(help.to_owned()), ..warning(message) }
    }
}

/// The things that a delivery does not take back although it restores a former one, and why.
#[derive(Clone, Default, Debug)]
pub(crate) struct NotRestored {
    things: BTreeMap<Why, Vec<String>>,
    /// Why it is not known which things there are, if it is not.
    unknown: Option<String>,
}

impl NotRestored {
    pub(crate) fn of_error(error: &StoreError) -> Self {
        Self { unknown: Some(error_chain(error)), ..Self::default() }
    }

    pub(crate) fn insert(&mut self, why: &Why, thing: String) {
        self.things.entry(why.clone()).or_default().push(thing);
    }

    /// Warnings about them.
    pub(crate) fn findings(&self) -> Vec<Diagnostic> {
        self.things.iter().map(|(why, things)| why.finding(things, things.len())).collect()
    }

    /// Those that a later run may remove, each with the reason.
    pub(crate) fn yet(&self) -> impl Iterator<Item = (&str, String)> {
        let unknown = |error: &String| ("the record", format!("it is not known what newer deliveries made: {error}"));
        let yet = self.things.iter().filter(|(why, _)| !why.lasts()).flat_map(|(why, things)| {
            let said = format!("a newer delivery made it; kept, since {}", why.texts().0);
            things.iter().map(move |thing| (thing.as_str(), said.clone()))
        });
        self.unknown.iter().map(unknown).chain(yet)
    }
}

/// The warning about things that are removed.
pub(crate) fn to_be_removed(things: &[String]) -> Diagnostic {
    warning(format!("no longer in the document; to be removed: {}", listed(things, things.len())))
}

/// The warning where the record cannot be read.
pub(crate) fn unknown(error: &StoreError) -> Diagnostic {
    warning(format!(
        "what is no longer in the document is kept, since the record cannot be read: {}",
        error_chain(error)
    ))
}

fn warning(message: String) -> Diagnostic {
    let at_no_place = Diagnostic::warning(&codes::GONE, Span::default(), message);
    Diagnostic { severity: Severity::Warning, span: None, ..at_no_place }
}

/// The first of some things in words, and how many there are besides.
pub(crate) fn listed(things: &[String], count: usize) -> String {
    const MOST: usize = 8;
    let first = things.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    match count.saturating_sub(MOST) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
