//! What the agent does next, decided from its state, the time and the boot of the machine alone.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use stead_core::document::ConfigurationMode;

use crate::settings::Settings;
use crate::state::{BootId, Generation, Held, JobKind, MAX_CRASH_WAIT, State, Work, after};
use crate::window::{Intent, Opening, opening};

/// What the agent does next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Next {
    /// It begins a job.
    Begin {
        /// The document.
        generation: u64,
        /// Why.
        kind: JobKind,
        /// Whether it changes the machine.
        work: Work,
    },
    /// It goes on with the job that was interrupted.
    Resume,
    /// It restarts the machine.
    Restart,
    /// The pending document asked for too many restarts: it waits until somebody asks for it.
    Hold(Held),
    /// It waits.
    Wait {
        /// Until this instant, or until something else happens.
        until: Option<Timestamp>,
        /// What for.
        because: Waiting,
    },
}

/// What the agent waits for.
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
    /// Somebody who asks for the pending document.
    Held(Held),
    /// It crashed repeatedly, and starts again later.
    Crashes,
}

/// What is known besides the state.
#[derive(Clone, Debug)]
pub struct Moment {
    /// The time. It may be wrong, and change in any direction.
    pub now: Timestamp,
    /// The boot of the machine.
    pub boot: BootId,
    /// The time zone of the windows.
    pub zone: TimeZone,
}

/// A restart of the machine that was ordered and did not happen is ordered again after this time.
const RESTART_PATIENCE: Duration = Duration::from_mins(10);

impl State {
    /// What the agent does next, when no job is under way.
    ///
    /// Guarantees: it depends on its arguments alone. After whatever jump of the clock, nothing that is due waits for longer
    /// than it would have from now on.
    pub fn next(&self, moment: &Moment) -> Next {
        let now = moment.now;
        if let Some(until) = self.crashes.not_before.and_then(|at| still_ahead(at, now, MAX_CRASH_WAIT)) {
            return Next::Wait { until: Some(until), because: Waiting::Crashes };
        }
        if let Some(next) = self.restart(moment) {
            return next;
        }
        if self.job.is_some() {
            return self.resume(moment);
        }
        let pending = self.pending(moment);
        match (pending, self.check(moment)) {
            (begin @ (Next::Begin { .. } | Next::Hold(_)), _) | (_, begin @ Next::Begin { .. }) => begin,
            (Next::Wait { because: Waiting::Document, .. }, check) => check,
            (Next::Wait { until, because }, Next::Wait { until: check, because: Waiting::Check }) => {
                Next::Wait { until: until.into_iter().chain(check).min(), because }
            }
            (pending, _) => pending,
        }
    }

    fn restart(&self, moment: &Moment) -> Option<Next> {
        let due = self.restart.as_ref()?;
        let Settings { reboot_node_if_needed, max_restarts, .. } = &self.settings;
        if let Some(ordered) = due.ordered
            && let Some(until) = still_ahead(after(ordered, RESTART_PATIENCE), moment.now, RESTART_PATIENCE)
        {
            return Some(Next::Wait { until: Some(until), because: Waiting::Restart });
        }
        if !reboot_node_if_needed {
            return Some(Next::Wait { until: None, because: Waiting::Restart });
        }
        if self.progress.restarts >= *max_restarts {
            return Some(match self.progress.held {
                None if self.pending.is_some() => Next::Hold(Held::TooManyRestarts),
                _ => Next::Wait { until: None, because: Waiting::Restart },
            });
        }
        Some(match opening(&self.settings.windows, Intent::Restart, moment.now, &moment.zone) {
            Opening::Open => Next::Restart,
            Opening::Opens(until) => Next::Wait { until, because: Waiting::Window },
        })
    }

    /// What was interrupted is gone on with, if it may change the machine now.
    fn resume(&self, moment: &Moment) -> Next {
        let changes = self.job.as_ref().is_some_and(|job| job.work == Work::Apply);
        match opening(&self.settings.windows, Intent::Set, moment.now, &moment.zone) {
            Opening::Opens(until) if changes => Next::Wait { until, because: Waiting::Window },
            _ => Next::Resume,
        }
    }

    fn pending(&self, moment: &Moment) -> Next {
        let Some((number, generation)) = self.staged(crate::state::Stage::Pending) else {
            return Next::Wait { until: None, because: Waiting::Document };
        };
        if let Some(held) = self.progress.held {
            return Next::Wait { until: None, because: Waiting::Held(held) };
        }
        let kind = if self.progress.restarts > 0 {
            JobKind::Reboot
        } else if self.progress.failures == 0 {
            JobKind::Initial
        } else {
            JobKind::Consistency
        };
        if self.mode_of(generation) == ConfigurationMode::MonitorOnly {
            return match self.next_check_ahead(moment.now) {
                Some(until) if self.was_looked_at(number) => Next::Wait { until: Some(until), because: Waiting::Check },
                _ => Next::Begin { generation: number, kind, work: Work::Test },
            };
        }
        let cap = self.settings.pending_backoff.cap;
        if let Some(until) = self.progress.not_before.and_then(|at| still_ahead(at, moment.now, cap)) {
            return Next::Wait { until: Some(until), because: Waiting::Retry };
        }
        match opening(&self.settings.windows, Intent::Set, moment.now, &moment.zone) {
            Opening::Open => Next::Begin { generation: number, kind, work: Work::Apply },
            Opening::Opens(until) => Next::Wait { until, because: Waiting::Window },
        }
    }

    fn check(&self, moment: &Moment) -> Next {
        use ConfigurationMode::{ApplyAndAutoCorrect, ApplyAndMonitor, MonitorOnly};
        let nothing = Next::Wait { until: None, because: Waiting::Document };
        let Some((number, generation)) = self.staged(crate::state::Stage::Current) else { return nothing };
        if !self.has_mode(generation, &[ApplyAndAutoCorrect, ApplyAndMonitor, MonitorOnly]) {
            return nothing;
        }
        if let Some(until) = self.next_check_ahead(moment.now) {
            return Next::Wait { until: Some(until), because: Waiting::Check };
        }
        Next::Begin { generation: number, kind: JobKind::Consistency, work: self.work(generation, moment) }
    }

    fn work(&self, generation: &Generation, moment: &Moment) -> Work {
        // While another document is pending, the machine is on its way to that one.
        let corrects = self.has_mode(generation, &[ConfigurationMode::ApplyAndAutoCorrect]) && self.pending.is_none();
        match opening(&self.settings.windows, Intent::Set, moment.now, &moment.zone) {
            Opening::Open if corrects => Work::Apply,
            _ => Work::Test,
        }
    }

    fn next_check_ahead(&self, now: Timestamp) -> Option<Timestamp> {
        self.next_check.and_then(|at| still_ahead(at, now, self.settings.check_every + self.settings.splay))
    }

    fn was_looked_at(&self, number: u64) -> bool {
        self.last.as_ref().is_some_and(|last| last.generation == number)
    }
}

/// An instant that was fixed earlier, if it is still to be waited for. One that is further ahead than the longest wait was
/// fixed by another clock, and is over.
fn still_ahead(at: Timestamp, now: Timestamp, longest: Duration) -> Option<Timestamp> {
    (now < at && at <= after(now, longest)).then_some(at)
}
