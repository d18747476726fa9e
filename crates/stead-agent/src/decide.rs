//! The next action of the agent, decided from its state, the time and the boot of the machine alone.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use stead_core::document::ConfigurationMode;

use crate::mode::{Standing, Treatment};
use crate::state::{
    AgentState, BootId, Generation, HoldReason, Job, JobKind, MAX_CRASH_WAIT, QUICK_RESTARTS, Stage, Work, after,
    still_ahead,
};
use crate::window::{Intent, Opening, opening};

/// The next action of the agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Next {
    /// It begins a job.
    Begin {
        /// The document.
        generation: u64,
        /// Why.
        kind: JobKind,
        /// The work: a test, or one that changes the machine.
        work: Work,
    },
    /// It goes on with the job that was interrupted.
    Resume,
    /// It gives up on the job that was interrupted, by [`AgentState::abandon_job`], and asks again.
    Abandon,
    /// It restarts the machine.
    Restart,
    /// It waits.
    Wait {
        /// Until this instant, or until something else happens.
        until: Option<Timestamp>,
        /// The reason to wait.
        because: Waiting,
    },
}

/// The event that the agent waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waiting {
    /// A document.
    Document,
    /// The next check.
    Check,
    /// The next try of the pending document.
    Retry,
    /// A maintenance window.
    Window,
    /// Somebody who restarts the machine, or its end.
    Restart,
    /// Somebody who restarts the machine: it was restarted too often for this document.
    TooManyRestarts,
    /// Somebody who asks for the pending document.
    Held(HoldReason),
    /// It crashed repeatedly, and starts again later.
    Crashes,
}

/// Why a document whose mode allows corrections is only tested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HeldBack {
    /// A restart of the machine is due.
    Restart,
    /// The machine is on its way to another document, which may change the same thing.
    Pending,
    /// No maintenance window is open.
    Window,
}

impl HeldBack {
    /// Returns why drift is not corrected now.
    pub(crate) fn clause(self) -> &'static str {
        match self {
            Self::Restart => "a restart of the machine is due",
            Self::Pending => "the pending document may change it, and comes first",
            Self::Window => "no maintenance window is open",
        }
    }
}

/// The knowledge at one moment besides the state.
#[derive(Clone, Debug)]
pub struct Moment {
    /// The time. It may be wrong, and change in any direction.
    pub now: Timestamp,
    /// The boot of the machine.
    pub boot: BootId,
    /// The time zone of the windows.
    pub zone: TimeZone,
    /// When a scheduled shutdown or restart of the machine is due.
    pub shutdown: Option<Timestamp>,
}

impl Moment {
    fn opening(&self, state: &AgentState, intent: Intent) -> Opening {
        opening(&state.settings.windows, intent, self.now, &self.zone)
    }
}

/// A restart of the machine that was ordered and did not happen is ordered again after this time.
const RESTART_TIMEOUT: Duration = Duration::from_mins(10);

/// A shutdown that is scheduled for later than this is not waited for.
const LONGEST_SCHEDULE: Duration = Duration::from_hours(24);

/// There is nothing to do.
const NOTHING: Next = Next::Wait { until: None, because: Waiting::Document };

impl Next {
    /// Combines this step with a later one: while one thing is waited for, another may be done.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Wait { until, because }, Self::Wait { until: later, because: then }) => {
                let because = if because == Waiting::Document { then } else { because };
                Self::Wait { until: earliest(until, later), because }
            }
            (Self::Wait { .. }, begin @ Self::Begin { .. }) => begin,
            (first, _) => first,
        }
    }
}

impl AgentState {
    /// Returns the next action of the agent, when no job is under way.
    ///
    /// Guarantees: it depends on its arguments alone. After whatever jump of the clock, nothing that is due waits for longer
    /// than it would have from now on.
    pub fn next(&self, moment: &Moment) -> Next {
        if let Some(until) = self.crashes.not_before.and_then(|at| still_ahead(at, moment.now, MAX_CRASH_WAIT)) {
            return Next::Wait { until: Some(until), because: Waiting::Crashes };
        }
        let wanted = self.wanted(moment);
        match &self.job {
            None => wanted,
            Some(job) if self.resumes(job, &wanted, moment) => Next::Resume,
            Some(_) => Next::Abandon,
        }
    }

    /// An interrupted job is resumed if it would be begun now. Not in another boot: what was tested before says nothing
    /// about the machine after it. Nor one over a part, which costs little, nor after many crashes, which its journal may be
    /// the reason of.
    fn resumes(&self, job: &Job, wanted: &Next, moment: &Moment) -> bool {
        let same = matches!(wanted, Next::Begin { generation, work, .. }
            if (*generation, *work) == (job.generation, job.work));
        same && job.only.is_empty() && job.boot == moment.boot && self.crashes.in_a_row <= QUICK_RESTARTS
    }

    fn wanted(&self, moment: &Moment) -> Next {
        if let Some(until) = self.ordered_until(moment) {
            return Next::Wait { until: Some(until), because: Waiting::Restart };
        }
        self.restart(moment).unwrap_or(NOTHING).or(self.pending(moment)).or(self.check(moment))
    }

    /// Returns what is waited for in the first place, and until when: not what else is done meanwhile.
    pub(crate) fn waits_for(&self, moment: &Moment) -> Option<(Option<Timestamp>, Waiting)> {
        let steps = [self.restart(moment), Some(self.pending(moment)), Some(self.check(moment))];
        steps.into_iter().flatten().find_map(|step| match step {
            Next::Wait { until, because } if because != Waiting::Document => Some((until, because)),
            _ => None,
        })
    }

    /// Returns the wait of the pending document, or of a restart that comes before it, and when it ends; `None` where
    /// the document is worked on or there is none.
    pub fn pending_waits_for(&self, moment: &Moment) -> Option<(Option<Timestamp>, Waiting)> {
        if let Some(until) = self.crashes.not_before.and_then(|at| still_ahead(at, moment.now, MAX_CRASH_WAIT)) {
            return Some((Some(until), Waiting::Crashes));
        }
        let ordered =
            self.ordered_until(moment).map(|until| Next::Wait { until: Some(until), because: Waiting::Restart });
        match ordered.or_else(|| self.restart(moment)).unwrap_or_else(|| self.pending(moment)) {
            Next::Wait { until, because } if because != Waiting::Document => Some((until, because)),
            _ => None,
        }
    }

    /// Until when a restart that was ordered is waited for.
    fn ordered_until(&self, moment: &Moment) -> Option<Timestamp> {
        let ordered = self.restart.as_ref()?.ordered?;
        still_ahead(after(ordered, RESTART_TIMEOUT), moment.now, RESTART_TIMEOUT)
    }

    /// Returns the action for a restart that is due. Until it has happened nothing is changed, and tests go on.
    fn restart(&self, moment: &Moment) -> Option<Next> {
        self.restart.as_ref()?;
        let wait = |until, because| Some(Next::Wait { until, because });
        if !self.settings.reboot_node_if_needed {
            return wait(None, Waiting::Restart);
        }
        if self.restarts.count >= self.settings.max_restarts {
            return wait(None, Waiting::TooManyRestarts);
        }
        // Another order would replace the present one and postpone the restart.
        if let Some(at) = moment.shutdown.and_then(|at| still_ahead(at, moment.now, LONGEST_SCHEDULE)) {
            return wait(Some(at), Waiting::Restart);
        }
        match moment.opening(self, Intent::Restart) {
            Opening::Open => Some(Next::Restart),
            Opening::Opens(until) => wait(until, Waiting::Window),
        }
    }

    fn pending(&self, moment: &Moment) -> Next {
        let Some((number, generation)) = self.staged(Stage::Pending) else { return NOTHING };
        let wait = |until, because| Next::Wait { until, because };
        if let Some(held) = self.progress.held {
            return wait(None, Waiting::Held(held));
        }
        let first = if self.progress.jobs == 0 { JobKind::Initial } else { JobKind::Consistency };
        let begin = |work| Next::Begin { generation: number, kind: self.kind(first), work };
        if self.mode_of(generation) == ConfigurationMode::MonitorOnly {
            let ahead = self.progress.not_before.and_then(|at| still_ahead(at, moment.now, self.longest_interval()));
            return ahead.map_or(begin(Work::Test), |until| wait(Some(until), Waiting::Check));
        }
        if self.restart.is_some() {
            return NOTHING;
        }
        if let Opening::Opens(until) = moment.opening(self, Intent::Set) {
            return wait(until, Waiting::Window);
        }
        let longest = self.settings.pending_backoff.cap;
        let ahead = self.progress.not_before.and_then(|at| still_ahead(at, moment.now, longest));
        ahead.map_or(begin(Work::Apply), |until| wait(Some(until), Waiting::Retry))
    }

    fn check(&self, moment: &Moment) -> Next {
        let Some((number, generation)) = self.staged(Stage::Current) else { return NOTHING };
        let begin = |work| Next::Begin { generation: number, kind: self.kind(JobKind::Consistency), work };
        let ahead = self.next_check.and_then(|at| still_ahead(at, moment.now, self.longest_interval()));
        let tests = self.is_tested(generation);
        let opens = match moment.opening(self, Intent::Set) {
            _ if !self.is_corrected((number, generation)) => None,
            Opening::Open if ahead.is_none() || self.waits_for_correction() => return begin(Work::Apply),
            Opening::Open => None,
            Opening::Opens(at) => at.filter(|_| self.waits_for_correction()),
        };
        match ahead {
            None if tests => begin(Work::Test),
            _ if !tests && opens.is_none() => NOTHING,
            _ => Next::Wait {
                until: earliest(ahead.filter(|_| tests), opens),
                because: if tests { Waiting::Check } else { Waiting::Window },
            },
        }
    }

    fn kind(&self, otherwise: JobKind) -> JobKind {
        if self.restarts.just_now { JobKind::Reboot } else { otherwise }
    }

    /// Returns whether the current document is still to be checked, as far as it is checked at all.
    pub(crate) fn is_check_due(&self) -> bool {
        let current = self.staged(Stage::Current);
        self.next_check.is_none() && current.is_some_and(|(_, generation)| self.is_tested(generation))
    }

    /// Returns whether the current document, or a part of it, is tested now and then.
    fn is_tested(&self, generation: &Generation) -> bool {
        self.treatments(Standing::Current, generation).any(|treatment| treatment != Treatment::Skip)
    }

    /// Returns the work that a job over the changed part of the current document may do, if one may begin. After a
    /// crash, none may.
    pub fn partial_work(&self, moment: &Moment) -> Option<(u64, Work)> {
        let Next::Wait { because, .. } = self.next(moment) else { return None };
        if because == Waiting::Crashes {
            return None;
        }
        let (number, generation) = self.staged(Stage::Current).filter(|(_, generation)| self.is_tested(generation))?;
        let corrects = self.is_corrected((number, generation)) && moment.opening(self, Intent::Set) == Opening::Open;
        Some((number, if corrects { Work::Apply } else { Work::Test }))
    }

    /// Returns whether the current document may change the machine: not while a restart is due. On the way to another
    /// document it may change what that one does not ([`HeldBack::Pending`]).
    fn is_corrected(&self, (number, generation): (u64, &Generation)) -> bool {
        let wanted = self.treatments(self.standing(number), generation).any(|treatment| treatment == Treatment::Set);
        wanted && self.restart.is_none()
    }

    /// Returns whether the pending document has changed the machine, or is about to.
    pub(crate) fn is_under_way_to_pending(&self) -> bool {
        self.staged(Stage::Pending).is_some_and(|(_, generation)| {
            self.progress.held != Some(HoldReason::Published)
                && self.mode_of(generation) != ConfigurationMode::MonitorOnly
        })
    }

    /// Returns whether the current document is to be applied as soon as it may be: an operator asked for it, or it
    /// was only tested last, because of a window, and was not in its desired state.
    fn waits_for_correction(&self) -> bool {
        self.apply_requested || self.drift_found
    }

    /// Returns why a document that may be corrected is only tested at this moment.
    pub(crate) fn held_back(&self, moment: &Moment) -> Option<HeldBack> {
        match () {
            () if self.restart.is_some() => Some(HeldBack::Restart),
            () if self.is_under_way_to_pending() => Some(HeldBack::Pending),
            () if moment.opening(self, Intent::Set) != Opening::Open => Some(HeldBack::Window),
            () => None,
        }
    }

    fn longest_interval(&self) -> Duration {
        self.settings.check_every + self.settings.splay
    }
}

fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}
