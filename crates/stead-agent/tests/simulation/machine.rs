//! The machine that the agent works on, and what documents make of it.

use std::collections::{BTreeMap, BTreeSet};

use stead_agent::{BootId, Job, JobOutcome, JobResult, State, Work};

use crate::random::Numbers;

/// The instance that crashes the agent.
pub(crate) const CULPRIT: &str = "culprit";

/// Instances that are in flight with it.
pub(crate) const BYSTANDERS: [&str; 2] = ["beside", "below"];

/// How a document behaves when it is applied.
#[derive(Clone, Debug)]
pub(crate) enum Fate {
    Good,
    /// So many times; then it is good.
    Fails(u32),
    NeverConverges,
    /// Asks for so many restarts.
    Asks(u32),
    AlwaysAsks,
    /// Fails and asks for so many restarts.
    FailsAndAsks(u32),
    /// Converges, and asks for a restart whenever it is corrected.
    AsksWhenCorrected,
    /// One of its instances crashes the agent.
    Crashes,
    /// It crashes the agent before any instance is in flight.
    CrashesAtOnce,
}

impl Fate {
    pub(crate) fn drawn(numbers: &mut Numbers) -> Self {
        let times = u32::try_from(1 + numbers.below(4)).unwrap();
        match numbers.below(10) {
            0 | 1 => Self::Good,
            2 => Self::Fails(times),
            3 => Self::NeverConverges,
            4 => Self::Asks(times),
            5 => Self::AlwaysAsks,
            6 => Self::FailsAndAsks(times),
            7 => Self::AsksWhenCorrected,
            8 => Self::Crashes,
            _ => Self::CrashesAtOnce,
        }
    }
}

/// What outlives the agent beside its record: the machine, and the journal of the job.
#[derive(Default)]
pub(crate) struct Machine {
    pub(crate) boot: u64,
    /// How documents behave, by content.
    pub(crate) fates: BTreeMap<String, Fate>,
    /// The document that it was brought to, if all of it was.
    pub(crate) applied: Option<String>,
    /// Whether it has drifted since.
    pub(crate) drifted: bool,
    /// Whether something needs a restart.
    pub(crate) needs_restart: bool,
    /// Notifications that were not delivered.
    pub(crate) owed: BTreeSet<String>,
    pub(crate) journal: Journal,
    notifications: u32,
}

/// What is recorded of a job.
#[derive(Clone, Default)]
pub(crate) struct Journal {
    pub(crate) owed: BTreeSet<String>,
    pub(crate) in_flight: Vec<String>,
    pub(crate) outcome: Option<JobOutcome>,
}

impl Journal {
    /// It was not flushed, and the power failed. What may be owed is known without it.
    pub(crate) fn is_lost(&mut self) {
        *self = Self { owed: std::mem::take(&mut self.owed), ..Self::default() };
    }
}

/// How work on a job ended.
pub(crate) enum Worked {
    Ended(JobOutcome),
    Crashed,
}

impl Machine {
    pub(crate) fn boot_id(&self) -> BootId {
        BootId(self.boot.to_string())
    }

    pub(crate) fn restarted(&mut self) {
        self.boot += 1;
        self.needs_restart = false;
    }

    /// Everything behaves from now on.
    pub(crate) fn become_fair(&mut self) {
        self.fates.values_mut().for_each(|fate| *fate = Fate::Good);
    }

    /// Works on a job to its end, unless the agent crashes. A job that had come to its end before a crash ends as before.
    pub(crate) fn work(&mut self, state: &State, (job, content): (&Job, &str), numbers: &mut Numbers) -> Worked {
        if let Some(outcome) = self.journal.outcome.clone() {
            return Worked::Ended(outcome);
        }
        let quarantined = state.crashes.quarantined().any(|path| path == CULPRIT);
        let outcome = match job.work {
            Work::Test => self.test(state, content),
            Work::Apply if !job.only.is_empty() && state.job.is_none() => self.test(state, content),
            Work::Apply => {
                let is_current = state.current == Some(job.generation);
                let fate = self.fates.get_mut(content).unwrap();
                match fate {
                    Fate::Crashes if !quarantined => {
                        self.journal.in_flight = in_flight(state.width());
                        return Worked::Crashed;
                    }
                    Fate::CrashesAtOnce => return Worked::Crashed,
                    _ => {}
                }
                let (result, asks) = apply(fate, is_current);
                if !job.only.is_empty() {
                    let outcome = self.part(state, content, (result, asks), numbers);
                    self.journal.outcome = Some(outcome.clone());
                    return Worked::Ended(outcome);
                }
                // What is left out is not in its desired state.
                let result = if state.crashes.quarantined().next().is_some() { JobResult::Failed } else { result };
                self.applied(state, content, result, asks, numbers)
            }
        };
        self.journal.outcome = Some(outcome.clone());
        Worked::Ended(outcome)
    }

    /// What is left when somebody ends the job early.
    pub(crate) fn aborted(&self, state: &State) -> JobOutcome {
        outcome(JobResult::Aborted, BTreeSet::new(), &state.owed | &self.journal.owed)
    }

    /// Something is changed, which an instance must be notified of.
    pub(crate) fn change_something(&mut self) {
        self.notifications += 1;
        let path = format!("n{}", self.notifications);
        self.owed.insert(path.clone());
        self.journal.owed.insert(path);
    }

    fn test(&self, state: &State, content: &str) -> JobOutcome {
        let result = if self.is_as_stated(content) { JobResult::Converged } else { JobResult::NotInState };
        outcome(result, BTreeSet::new(), state.owed.clone())
    }

    /// Whether a job over the part that has drifted sets something. Elsewhere, it may as well find that the part is as stated.
    pub(crate) fn sets_in_part(&self, state: &State, job: &Job) -> bool {
        job.work == Work::Apply && !self.is_as_stated(&state.generations[&job.generation].content)
    }

    fn is_as_stated(&self, content: &str) -> bool {
        self.applied.as_deref() == Some(content) && !self.drifted
    }

    /// A job over the part that has drifted corrects that, and says nothing about the rest. It delivers its own notifications.
    fn part(
        &mut self,
        state: &State,
        content: &str,
        (result, asks): (JobResult, bool),
        numbers: &mut Numbers,
    ) -> JobOutcome {
        let corrected = result == JobResult::Converged && !asks;
        self.drifted &= !(corrected && self.applied.as_deref() == Some(content));
        self.needs_restart |= asks;
        let mut own = self.journal.owed.clone();
        own.retain(|_| !corrected && numbers.below(2) == 0);
        let owed = &state.owed | &own;
        self.owed.clone_from(&owed);
        let restart = if asks { BTreeSet::from(["asker".to_owned()]) } else { BTreeSet::new() };
        let result = if result == JobResult::Converged && !owed.is_empty() { JobResult::NotInState } else { result };
        outcome(result, restart, owed)
    }

    fn applied(
        &mut self,
        state: &State,
        content: &str,
        result: JobResult,
        asks: bool,
        numbers: &mut Numbers,
    ) -> JobOutcome {
        let converged = result == JobResult::Converged && !asks;
        self.applied = converged.then(|| content.to_owned());
        self.drifted &= !converged;
        self.needs_restart |= asks;
        // A job that converges has delivered everything.
        let mut owed = &state.owed | &self.journal.owed;
        owed.retain(|_| !converged && numbers.below(2) == 0);
        self.owed.clone_from(&owed);
        let restart = if asks { BTreeSet::from(["asker".to_owned()]) } else { BTreeSet::new() };
        outcome(result, restart, owed)
    }
}

/// One at a time after a crash, so that the culprit is known.
fn in_flight(width: u32) -> Vec<String> {
    let beside = if width == 1 { &[][..] } else { &BYSTANDERS[..] };
    std::iter::once(&CULPRIT).chain(beside).map(|path| (*path).to_owned()).collect()
}

fn apply(fate: &mut Fate, is_current: bool) -> (JobResult, bool) {
    match fate {
        Fate::Fails(times @ 1..) => {
            *times -= 1;
            (JobResult::Failed, false)
        }
        Fate::Asks(times @ 1..) => {
            *times -= 1;
            (JobResult::NotInState, true)
        }
        Fate::FailsAndAsks(times @ 1..) => {
            *times -= 1;
            (JobResult::Failed, true)
        }
        Fate::NeverConverges => (JobResult::NotInState, false),
        // A set that succeeds may ask for a restart.
        Fate::AlwaysAsks => (JobResult::Converged, true),
        Fate::AsksWhenCorrected if is_current => (JobResult::NotInState, true),
        _ => (JobResult::Converged, false),
    }
}

fn outcome(result: JobResult, restart: BTreeSet<String>, owed: BTreeSet<String>) -> JobOutcome {
    let not_in_state = u64::from(result != JobResult::Converged);
    JobOutcome { result, restart, owed, not_in_state, instances: 3, troubles: Vec::new(), error: None }
}
