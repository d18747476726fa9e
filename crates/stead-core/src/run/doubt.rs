//! In what-if: what cannot be done as things are, and may be once other changes are made.

use std::path::PathBuf;

use crate::call::{Failure, FailureKind, Outcome, Presumed};

/// An instance that fails unless a change in front of it brings about what is missing.
pub(super) struct Doubt {
    pub(super) failure: Failure,
    /// Where it is missing.
    pub(super) paths: Vec<PathBuf>,
    pub(super) enabled: Enabled,
    /// What the instance itself touches.
    pub(super) touches: Option<Vec<PathBuf>>,
}

/// What comes of an instance that is made possible.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Enabled {
    /// It is changed as it said.
    Changes,
    /// Nobody knows.
    Unforeseen,
}

impl Doubt {
    /// What is open after an answer; `None` when nothing is. What makes no sense now never will.
    pub(super) fn about(outcome: &Outcome, touches: Option<&[PathBuf]>) -> Option<Self> {
        let touches = touches.map(<[PathBuf]>::to_vec);
        match outcome {
            Outcome::Changed(changed) => {
                let Presumed { failure, path } = changed.presumed.clone()?;
                Some(Self { failure, paths: path.into_iter().collect(), enabled: Enabled::Changes, touches })
            }
            Outcome::Failed(failure) if !is_final(&failure.kind) => Some(Self {
                failure: failure.clone(),
                paths: touches.clone().unwrap_or_default(),
                enabled: Enabled::Unforeseen,
                touches,
            }),
            _ => None,
        }
    }
}

fn is_final(kind: &FailureKind) -> bool {
    matches!(kind, FailureKind::Invalid | FailureKind::Unsupported | FailureKind::Cancelled)
}
