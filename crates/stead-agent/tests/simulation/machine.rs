//! The machine that the agent works on, and what documents make of it.

use std::collections::{BTreeMap, BTreeSet};

use stead_agent::{AgentState, BootId, Job, JobOutcome, JobResult, Settled, Stage, Work};

use crate::random::Numbers;

/// The instance that crashes the agent.
pub(crate) const CULPRIT: &str = "culprit";

/// Instances that are in flight with it.
pub(crate) const BYSTANDERS: [&str; 2] = ["beside", "below"];

/// Instances of documents that act on changes. Each document has some of them.
const HANDLERS: [&str; 4] = ["h0", "h1", "h2", "h3"];

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

/// The world that outlives the agent beside its record: the machine, and the journal of the job.
#[derive(Default)]
pub(crate) struct Machine {
    pub(crate) boot: u64,
    /// How documents behave, by content.
    pub(crate) fates: BTreeMap<String, Fate>,
    /// The document that it was brought to, if all of it was.
    pub(crate) applied: Option<String>,
    /// True if it has drifted since.
    pub(crate) drifted: bool,
    /// True if something needs a restart.
    pub(crate) needs_restart: bool,
    /// The instances that act on changes, by the content of their document.
    handlers: BTreeMap<String, BTreeSet<String>>,
    /// Notifications that were not delivered, by the generation that must deliver them.
    pub(crate) owed: BTreeMap<u64, BTreeSet<String>>,
    /// Those that the job under way knows of.
    pub(crate) known: BTreeSet<String>,
    /// Those that the last job delivered.
    pub(crate) delivered: BTreeSet<String>,
    pub(crate) journal: Journal,
    is_fair: bool,
}

/// The record of a job.
#[derive(Clone, Default)]
pub(crate) struct Journal {
    pub(crate) in_flight: Vec<String>,
    pub(crate) outcome: Option<JobOutcome>,
}

impl Journal {
    /// It was not flushed, and the power failed.
    pub(crate) fn is_lost(&mut self) {
        *self = Self::default();
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

    /// There is another document.
    pub(crate) fn knows(&mut self, content: &str, numbers: &mut Numbers) {
        self.fates.insert(content.to_owned(), Fate::drawn(numbers));
        let handlers = HANDLERS.iter().filter(|_| numbers.below(2) == 0).map(|handler| (*handler).to_owned());
        self.handlers.insert(content.to_owned(), handlers.collect());
    }

    /// Of a document that is not kept any more there are none.
    fn handlers(&self, state: &AgentState, number: u64) -> BTreeSet<String> {
        let content = state.generations.get(&number).map(|generation| &generation.content);
        content.map(|content| self.handlers[content].clone()).unwrap_or_default()
    }

    /// The notifications that are owed to instances of a document, as far as the job over it knows.
    fn known(&self, state: &AgentState, number: u64) -> BTreeSet<String> {
        &self.known & &self.handlers(state, number)
    }

    /// An instance that acts on something that a job is about to change.
    pub(crate) fn handler(&self, content: &str, numbers: &mut Numbers) -> Option<String> {
        let handlers = &self.handlers[content];
        handlers.iter().nth(numbers.below(handlers.len().max(1))).cloned()
    }

    /// Of a document that is not worked on any more, the one that is must deliver what both know.
    pub(crate) fn staged(&mut self, state: &AgentState) {
        let worked_on = [state.pending, state.current];
        let Some(heir) = state.pending.or(state.current) else { return };
        let left: Vec<u64> = self.owed.keys().copied().filter(|number| !worked_on.contains(&Some(*number))).collect();
        for number in left {
            let owed = &self.owed.remove(&number).unwrap_or_default() & &self.handlers(state, heir);
            self.owed.entry(heir).or_default().extend(owed);
        }
    }

    /// The pending document takes the place of the current one. Returns what nobody delivered.
    pub(crate) fn promoted(&mut self, before: &AgentState, number: u64) -> BTreeSet<String> {
        let former = before.staged(Stage::Current).and_then(|(current, _)| self.owed.remove(&current));
        let former = &former.unwrap_or_default() & &self.handlers(before, number);
        let own = self.owed.get(&number).cloned().unwrap_or_default();
        own.into_iter().chain(&former - &self.delivered).collect()
    }

    /// Everything behaves from now on.
    pub(crate) fn become_fair(&mut self) {
        self.is_fair = true;
        self.fates.values_mut().for_each(|fate| *fate = Fate::Good);
    }

    /// Works on a job to its end, unless the agent crashes. A job that had come to its end before a crash ends as before.
    pub(crate) fn work(&mut self, state: &AgentState, (job, content): (&Job, &str), numbers: &mut Numbers) -> Worked {
        if let Some(outcome) = self.journal.outcome.clone() {
            return Worked::Ended(outcome);
        }
        let quarantined = state.crashes.quarantined().any(|path| path == CULPRIT);
        let outcome = match job.work {
            Work::Test => self.test(state, job, content),
            Work::Apply if !job.only.is_empty() && state.job.is_none() => self.test(state, job, content),
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
                    let outcome = self.part(state, (job, content), (result, asks), numbers);
                    self.journal.outcome = Some(outcome.clone());
                    return Worked::Ended(outcome);
                }
                // What is left out is not in its desired state.
                let result = if state.crashes.quarantined().next().is_some() { JobResult::Failed } else { result };
                self.applied(state, (job, content), (result, asks), numbers)
            }
        };
        self.journal.outcome = Some(outcome.clone());
        Worked::Ended(outcome)
    }

    /// Returns the outcome when somebody ends the job early.
    pub(crate) fn aborted(&self, state: &AgentState, job: &Job) -> JobOutcome {
        let owed = (job.work == Work::Apply && state.generations.contains_key(&job.generation))
            .then(|| self.known(state, job.generation));
        outcome(JobResult::Aborted, BTreeSet::new(), owed.map(|owed| self.settled(owed)))
    }

    /// Something is changed, which an instance must be notified of.
    pub(crate) fn change_something(&mut self, state: &AgentState, (number, handler): (u64, String)) {
        self.known.insert(handler.clone());
        self.owed.entry(number).or_default().insert(handler);
        // The document may have been replaced meanwhile.
        self.staged(state);
    }

    fn settled(&self, owed: BTreeSet<String>) -> Settled {
        Settled { known: self.known.clone(), owed }
    }

    fn test(&self, state: &AgentState, job: &Job, content: &str) -> JobOutcome {
        let is_right = self.is_as_stated(content) && self.known(state, job.generation).is_empty();
        outcome(if is_right { JobResult::Converged } else { JobResult::NotInState }, BTreeSet::new(), None)
    }

    /// Delivers notifications: all of them if that succeeds. Returns what is left, and the result with it.
    fn deliver(
        &mut self,
        state: &AgentState,
        job: &Job,
        result: JobResult,
        numbers: &mut Numbers,
    ) -> (JobResult, BTreeSet<String>) {
        let known = self.known(state, job.generation);
        let succeeds = result == JobResult::Converged && (self.is_fair || numbers.below(4) > 0);
        let owed: BTreeSet<String> = known.iter().filter(|_| !succeeds && numbers.below(2) == 0).cloned().collect();
        self.delivered = &known - &owed;
        let delivered = &self.delivered;
        self.owed.entry(job.generation).or_default().retain(|path| !delivered.contains(path));
        let result = if result == JobResult::Converged && !owed.is_empty() { JobResult::NotInState } else { result };
        (result, owed)
    }

    /// Returns whether a job over the part that has drifted sets something. Elsewhere, it may as well find that the
    /// part is as stated.
    pub(crate) fn sets_in_part(&self, state: &AgentState, job: &Job) -> bool {
        job.work == Work::Apply && !self.is_as_stated(&state.generations[&job.generation].content)
    }

    fn is_as_stated(&self, content: &str) -> bool {
        self.applied.as_deref() == Some(content) && !self.drifted
    }

    /// A job over the part that has drifted corrects that, and says nothing about the rest.
    fn part(
        &mut self,
        state: &AgentState,
        (job, content): (&Job, &str),
        (result, asks): (JobResult, bool),
        numbers: &mut Numbers,
    ) -> JobOutcome {
        let corrected = result == JobResult::Converged && !asks;
        self.drifted &= !(corrected && self.applied.as_deref() == Some(content));
        self.finished(state, job, (result, asks), numbers)
    }

    fn applied(
        &mut self,
        state: &AgentState,
        (job, content): (&Job, &str),
        (result, asks): (JobResult, bool),
        numbers: &mut Numbers,
    ) -> JobOutcome {
        let converged = result == JobResult::Converged && !asks;
        self.applied = converged.then(|| content.to_owned());
        self.drifted &= !converged;
        self.finished(state, job, (result, asks), numbers)
    }

    fn finished(
        &mut self,
        state: &AgentState,
        job: &Job,
        (result, asks): (JobResult, bool),
        numbers: &mut Numbers,
    ) -> JobOutcome {
        self.needs_restart |= asks;
        let (result, owed) = self.deliver(state, job, result, numbers);
        let restart = if asks { BTreeSet::from(["asker".to_owned()]) } else { BTreeSet::new() };
        outcome(result, restart, Some(self.settled(owed)))
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

fn outcome(result: JobResult, restart: BTreeSet<String>, settled: Option<Settled>) -> JobOutcome {
    let not_in_state = u64::from(result != JobResult::Converged);
    JobOutcome { result, restart, settled, not_in_state, instances: 3, troubles: Vec::new(), error: None }
}
