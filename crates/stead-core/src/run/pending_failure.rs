//! In what-if: what cannot be done as things are, and may be once other changes are made.

use std::path::PathBuf;

use crate::call::{Failure, Outcome, Presumed};

/// A failure that is predicted unless a change in front of the instance creates what is missing.
pub(super) struct PendingFailure {
    pub(super) failure: Failure,
    /// Where something is missing, as far as that is known.
    pub(super) missing: Vec<PathBuf>,
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
                let Presumed { failure, paths: missing } = changed.presumed.clone()?;
                Some(Self { failure, missing, otherwise: Otherwise::Changed })
            }
            Outcome::Failed(failure) if failure.is_of_machine() => {
                Some(Self { failure: (**failure).clone(), missing: Vec::new(), otherwise: Otherwise::Unknown })
            }
            _ => None,
        }
    }
}
