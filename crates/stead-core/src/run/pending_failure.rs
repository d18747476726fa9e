//! In what-if: what cannot be done as things are, and may be once other changes are made.

use std::path::PathBuf;

use crate::call::{Failure, Outcome, Presumed};

/// A failure that is predicted unless a change in front of the instance creates what is missing.
pub(super) struct PendingFailure {
    pub(super) failure: Failure,
    /// Where it is missing.
    pub(super) paths: Vec<PathBuf>,
    pub(super) otherwise: Otherwise,
}

/// What comes of an instance that another change makes possible.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Otherwise {
    /// It changes as predicted, if that change is about this very path.
    Changed,
    /// Nobody knows.
    Unknown,
}

impl PendingFailure {
    /// What is undecided after a response; `None` when nothing is. What makes no sense now never will.
    pub(super) fn of(outcome: &Outcome, touches: Option<&[PathBuf]>) -> Option<Self> {
        match outcome {
            Outcome::Changed(changed) => {
                let Presumed { failure, path } = changed.presumed.clone()?;
                Some(Self { failure, paths: path.into_iter().collect(), otherwise: Otherwise::Changed })
            }
            Outcome::Failed(failure) if failure.can_heal() => Some(Self {
                failure: failure.clone(),
                paths: touches.unwrap_or_default().to_vec(),
                otherwise: Otherwise::Unknown,
            }),
            _ => None,
        }
    }
}
