//! In what-if: what cannot be done as things are, and may be once other changes are made.

use crate::call::{Outcome, Presumed};

/// A failure that is predicted unless a change in front of the instance creates what is missing.
pub(super) struct PendingFailure {
    /// With what it fails, and where something is missing, as far as that is known: at least one reason.
    pub(super) reasons: Vec<Presumed>,
    pub(super) otherwise: Otherwise,
}

/// The outcome of an instance if another change makes it possible.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Otherwise {
    /// It changes as predicted, if that change creates just what is missing.
    Changed,
    /// Nobody knows.
    Unknown,
}

impl PendingFailure {
    /// Returns what is undecided after an answer; `None` when nothing is. What makes no sense now never will.
    pub(super) fn of(outcome: &Outcome) -> Option<Self> {
        match outcome {
            Outcome::Changed(changed) => {
                Some(Self { reasons: changed.presumed.clone()?.apart(), otherwise: Otherwise::Changed })
            }
            Outcome::Failed(failure) if failure.is_of_machine() => {
                let reasons = vec![Presumed::of((**failure).clone(), Vec::new())];
                Some(Self { reasons, otherwise: Otherwise::Unknown })
            }
            _ => None,
        }
    }
}
