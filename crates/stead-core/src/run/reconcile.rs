//! Reconciliation: what is pending is run again until it is realized or no progress is made.
//!
//! A reconciler is a [`Policy`] made of a pace, a pending rule and waits. [`Reconciler::basic`] is that of Idem: everything
//! pending is run again together, at the longest wait. [`Reconciler::continuous`] gives each instance a timer of its own.

use std::sync::Arc;
use std::time::Duration;

use super::policy::{Attempt, Pace, Policy, Verdict};
use crate::wait::Wait;

/// Decides whether an instance that is not in its desired state is still pending. If not, it ends as it is.
///
/// Assumptions: the answer depends on the attempt alone.
pub trait PendingRule: Send + Sync {
    /// Returns whether it is to be run again, which would be after `wait`.
    fn is_pending(&self, attempt: &Attempt<'_>, wait: Duration) -> bool;

    /// A run that it decided for is over. What it keeps for the next questions can be released.
    fn end(&self) {}
}

/// The rule that is used unless another is named: pending while there is progress.
///
/// Progress is another result, other changes, or other data handed back by a provider that is still at work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WhileProgress {
    /// How many runs in a row may come to the same; one more ends it.
    pub max_unchanged: u32,
    /// True if a provider that is still at work makes progress by saying so.
    pub patient: bool,
}

impl WhileProgress {
    /// As many runs without progress as Idem allows.
    pub const MAX_UNCHANGED: u32 = 3;
}

impl PendingRule for WhileProgress {
    fn is_pending(&self, attempt: &Attempt<'_>, _: Duration) -> bool {
        attempt.repeats < self.max_unchanged || (self.patient && attempt.is_working())
    }
}

/// Runs again what is pending.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use stead_core::call::{Failure, FailureKind};
/// use stead_core::id::{NodeId, ResourceId};
/// use stead_core::instance_path::InstancePath;
/// use stead_core::run::policy::{Attempt, Policy, Verdict};
/// use stead_core::run::reconcile::Reconciler;
///
/// let instance = InstancePath::new(None, ResourceId::parse("Stead/Service:web")?, NodeId(0));
/// let response = Failure::new(FailureKind::System, "the port is in use").into();
/// let attempt = |repeats| Attempt {
///     instance: &instance,
///     retries: repeats,
///     repeats,
///     re_runs: repeats,
///     response: &response,
///     stated_wait: Some("exponential:1,2".parse().unwrap_or_default()),
///     usual_wait: None,
///     stated_rule: None,
///     usual_rule: None,
/// };
/// let policy = Reconciler::continuous(3);
/// assert_eq!(policy.after(&attempt(1)), Verdict::RetryAfter(Duration::from_secs(2)));
/// // Three runs in a row came to the same: there is no progress.
/// assert_eq!(policy.after(&attempt(3)), Verdict::GiveUp);
/// # Ok::<(), stead_core::id::InvalidResourceId>(())
/// ```
#[derive(Clone)]
pub struct Reconciler {
    /// The pace: instances are run again one by one or all together.
    pub pace: Pace,
    /// The rule that says which outcomes are pending.
    pub rule: Arc<dyn PendingRule>,
    /// How often anything is run again at most: an instance, or where all are run together, all of them.
    pub max_re_runs: u32,
    /// The wait of instances whose directives state none, instead of that of their resource.
    pub wait: Option<Wait>,
    /// The shortest wait.
    pub min_wait: Duration,
    /// The seed of the random part of waits.
    pub seed: u64,
}

impl Reconciler {
    /// How often Idem runs anything again at most.
    pub const MAX_RE_RUNS: u32 = 600;

    /// As Idem's `basic`: all together, and never after less than 3 seconds.
    pub fn basic(max_unchanged: u32) -> Self {
        let rule = WhileProgress { max_unchanged, patient: false };
        Self { pace: Pace::Together, min_wait: Duration::from_secs(3), ..Self::of(rule) }
    }

    /// Each instance by itself. A provider that is still at work is waited for as long as it says so.
    pub fn continuous(max_unchanged: u32) -> Self {
        Self::of(WhileProgress { max_unchanged, patient: true })
    }

    fn of(rule: WhileProgress) -> Self {
        let (pace, wait, min_wait) = (Pace::Each, None, Duration::ZERO);
        Self { pace, rule: Arc::new(rule), max_re_runs: Self::MAX_RE_RUNS, wait, min_wait, seed: 0 }
    }

    /// Returns how long an instance waits before it is run again.
    pub fn wait(&self, attempt: &Attempt<'_>) -> Duration {
        let stated = attempt.stated_wait.or(self.wait);
        if let Some(asked) = attempt.asked_wait().filter(|_| stated.is_none()) {
            return asked.max(self.min_wait);
        }
        let wait = stated.or(attempt.usual_wait).unwrap_or_default();
        let re_runs = self.re_runs(attempt);
        let mut draws = Draws::of(self.seed, &attempt.instance.to_string(), re_runs);
        wait.after(re_runs, || draws.next()).max(self.min_wait)
    }

    fn re_runs(&self, attempt: &Attempt<'_>) -> u32 {
        match self.pace {
            Pace::Each => attempt.retries,
            Pace::Together => attempt.re_runs,
        }
    }
}

impl Policy for Reconciler {
    fn after(&self, attempt: &Attempt<'_>) -> Verdict {
        if self.is_exhausted(attempt) {
            return Verdict::GiveUp;
        }
        let wait = self.wait(attempt);
        if self.rule.is_pending(attempt, wait) { Verdict::RetryAfter(wait) } else { Verdict::GiveUp }
    }

    fn pace(&self) -> Pace {
        self.pace
    }

    fn is_exhausted(&self, attempt: &Attempt<'_>) -> bool {
        self.re_runs(attempt) >= self.max_re_runs
    }

    /// A wait that is stated is a wish to wait for others.
    fn gives_up_blocked(&self) -> bool {
        self.pace == Pace::Each && self.wait.is_none()
    }

    fn end(&self) {
        self.rule.end();
    }
}

/// Numbers from 0 up to 1 that depend on a seed alone, so that a run can be repeated exactly.
struct Draws(u64);

impl Draws {
    fn of(seed: u64, instance: &str, re_runs: u32) -> Self {
        let mixed = |state: u64, byte: u8| mix(state ^ u64::from(byte));
        Self(mix(instance.bytes().fold(mix(seed), mixed) ^ u64::from(re_runs)))
    }

    fn next(&mut self) -> f64 {
        self.0 = mix(self.0);
        let [one, two, three, four, ..] = self.0.to_le_bytes();
        f64::from(u32::from_le_bytes([one, two, three, four])) / f64::from(1_u32 << 16) / f64::from(1_u32 << 16)
    }
}

/// A step of `SplitMix64`.
fn mix(state: u64) -> u64 {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}
