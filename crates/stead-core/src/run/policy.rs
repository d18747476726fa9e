//! The rules by which an instance that is not in its desired state yet is run again, and when.

use std::time::Duration;

use crate::call::{Outcome, Response};
use crate::instance_path::InstancePath;
use crate::wait::Wait;

/// Decides what follows from a run of an instance that did not reach the desired state.
///
/// It is asked only where another run can help: the operation may change the machine, is carried out for real, and what
/// failed can heal. Its answer is recorded, so that a run that is resumed needs no policy to know what was decided.
///
/// Assumptions: the answer depends on the arguments alone, or on a seed that the policy was made with.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use stead_core::run::policy::{Attempt, Policy, Verdict};
///
/// /// Tries everything again once, after ten seconds.
/// struct Once;
///
/// impl Policy for Once {
///     fn after(&self, attempt: &Attempt<'_>) -> Verdict {
///         match attempt.retries {
///             0 => Verdict::RetryAfter(Duration::from_secs(10)),
///             _ => Verdict::GiveUp,
///         }
///     }
/// }
///
/// assert!(Once.reconciles());
/// ```
pub trait Policy: Send + Sync {
    /// Returns what follows.
    fn after(&self, attempt: &Attempt<'_>) -> Verdict;

    /// Returns whether anything may be run again at all.
    fn reconciles(&self) -> bool {
        true
    }

    /// Returns whether instances are run again one by one or all together.
    ///
    /// Assumptions: the answer is the same throughout a run.
    fn pace(&self) -> Pace {
        Pace::Each
    }

    /// Returns whether it gives up an instance that is [blocked](crate::call::Failure::is_blocked) once nothing else of the run can
    /// change that, without being asked. It is not asked either where something has changed since the last try: that is tried at
    /// once, unless the instance [was run as often as it may be](Self::is_exhausted).
    ///
    /// Assumptions: the answer is the same throughout a run.
    fn gives_up_blocked(&self) -> bool {
        false
    }

    /// Returns whether an instance was run again as often as it may be, whatever changes.
    fn is_exhausted(&self, _: &Attempt<'_>) -> bool {
        false
    }

    /// A run that it decided for is over. What it keeps for the next questions can be released.
    fn end(&self) {}
}

/// Which instances are run again at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// Each has a timer of its own.
    Each,
    /// All that are pending, once nothing else can be done; the longest of their waits is that of all.
    Together,
}

/// A run of an instance that did not reach the desired state.
pub struct Attempt<'a> {
    /// The instance.
    pub instance: &'a InstancePath,
    /// How often it was run again before.
    pub retries: u32,
    /// How many runs in a row, up to this one, came to the same result with the same changes.
    pub repeats: u32,
    /// How often anything was run again: what was run again at the same time counts once.
    pub re_runs: u32,
    /// Its outcome.
    pub response: &'a Response,
    /// The wait that its directives state.
    pub stated_wait: Option<Wait>,
    /// The wait that its resource states.
    pub usual_wait: Option<Wait>,
    /// The pending rule that its directives name.
    pub stated_rule: Option<&'a str>,
    /// The pending rule that its resource names.
    pub usual_rule: Option<&'a str>,
}

impl Attempt<'_> {
    /// Returns whether its provider says that it is still at work.
    pub fn is_working(&self) -> bool {
        matches!(self.response.outcome, Outcome::Pending(_))
    }

    /// Returns how long its provider asks to be left alone, if it does.
    pub fn asked_wait(&self) -> Option<Duration> {
        let Outcome::Pending(pending) = &self.response.outcome else { return None };
        // What is not a time was refused where it was read.
        pending.after.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    }

    /// Returns why it is not in its desired state, without secrets; empty if nothing was said.
    pub fn reason(&self) -> String {
        self.response.outcome.why_not_reached().unwrap_or_default()
    }
}

/// The consequence of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The instance ends as it is.
    GiveUp,
    /// It is run again after this time.
    RetryAfter(Duration),
}

/// One pass: nothing is run again.
#[derive(Clone, Copy, Debug, Default)]
pub struct SinglePass;

impl Policy for SinglePass {
    fn after(&self, _: &Attempt<'_>) -> Verdict {
        Verdict::GiveUp
    }

    fn reconciles(&self) -> bool {
        false
    }
}
