//! Whether an instance that is not in its desired state yet is tried again, and when.

use std::time::Duration;

use crate::call::{Outcome, Response};
use crate::instance_path::InstancePath;

/// Decides what follows from a try that did not reach the desired state.
///
/// It is asked only where trying again can help: the operation may change the machine, is carried out for real, and what
/// failed can heal. Its answer is recorded, so that a run that is resumed needs no policy to know what was decided.
///
/// Assumptions: the answer depends on the arguments alone, or on a seed that the policy was made with.
pub trait Policy: Send + Sync {
    /// What follows.
    fn after(&self, attempt: &Attempt<'_>) -> Verdict;
}

/// A try that did not reach the desired state.
pub struct Attempt<'a> {
    /// Whose try it was.
    pub instance: &'a InstancePath,
    /// How many tries came before it.
    pub retries: u32,
    /// How many tries in a row, up to this one, came to the same.
    pub repeats: u32,
    /// Its outcome.
    pub response: &'a Response,
}

impl Attempt<'_> {
    /// Whether its provider says that it is still at work.
    pub fn is_pending(&self) -> bool {
        matches!(self.response.outcome, Outcome::Pending(_))
    }
}

/// What follows from a try.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The instance ends as it is.
    GiveUp,
    /// It is tried again after this time.
    RetryAfter(Duration),
}

/// One pass: nothing is tried again.
#[derive(Clone, Copy, Debug, Default)]
pub struct SinglePass;

impl Policy for SinglePass {
    fn after(&self, _: &Attempt<'_>) -> Verdict {
        Verdict::GiveUp
    }
}

/// Tries again until there is no progress, or too often.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    /// How long is waited before the next try.
    pub wait: Wait,
    /// How many tries in a row may come to the same; one more ends it.
    pub max_repeats: u32,
    /// How many tries there may be after the first.
    pub max_retries: u32,
}

/// How long is waited before a try.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Wait {
    /// Always as long.
    Static(Duration),
    /// `base` times `multiplier` to the power of the number of retries so far, at most `cap`.
    Exponential {
        /// The first wait.
        base: Duration,
        /// What each wait is multiplied by for the next.
        multiplier: f64,
        /// The longest wait.
        cap: Duration,
    },
}

impl Wait {
    /// The wait before the next try, when there have been so many retries.
    pub fn after(self, retries: u32) -> Duration {
        match self {
            Self::Static(wait) => wait,
            Self::Exponential { base, multiplier, cap } => {
                let seconds = base.as_secs_f64() * multiplier.max(0.0).powi(i32::try_from(retries).unwrap_or(i32::MAX));
                Duration::try_from_secs_f64(seconds).map_or(cap, |wait| wait.min(cap))
            }
        }
    }
}

impl Policy for Retry {
    fn after(&self, attempt: &Attempt<'_>) -> Verdict {
        if attempt.retries >= self.max_retries || attempt.repeats >= self.max_repeats {
            return Verdict::GiveUp;
        }
        Verdict::RetryAfter(self.wait.after(attempt.retries))
    }
}
