//! The outcome of one instance.

use super::between;
use crate::call::{Changed, Execution, Failure, Operation, Outcome, Response, Tested, Verification};
use crate::destruction::{Effect, Effects};
use crate::diag::Diagnostic;
use crate::event::{Event, EventKind, Problem, SkipReason, Status};
use crate::instance_path::InstancePath;
use crate::value::Value;
use jiff::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// The outcome of one instance, as far as it is known.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Record {
    /// Its name; `None` before its first event.
    pub instance: Option<InstancePath>,
    /// How far it has come.
    pub phase: Phase,
    /// How many of its calls were started for the present try.
    pub calls: u32,
    /// How many tries came before the present one.
    pub retries: u32,
    /// How many calls that may change something were started, over all tries.
    pub sets: u32,
    /// The value that its provider handed back when it was last pending; for its next set.
    pub pending: Option<Arc<Value>>,
    /// The desired state as evaluated.
    pub desired: Option<Arc<Value>>,
    /// The result of a test in the present try.
    pub tested: Option<Arc<Tested>>,
    /// The last response of its provider.
    pub response: Option<Arc<Response>>,
    /// Why it failed, where that is not in the response.
    pub problem: Option<Arc<Problem>>,
    /// The time that its calls took together; for a container, from opening to settling.
    pub elapsed: Duration,
    /// When it was first worked on.
    pub began: Option<Timestamp>,
    /// The tries before the present one, if there were any.
    pub(super) earlier: Option<Box<EarlierTries>>,
}

/// A summary of the tries before the present one.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct EarlierTries {
    /// The first answer that reported the state before it.
    first: Option<Before>,
    /// The outcome of the last one.
    last: Arc<Response>,
    /// How many tries in a row up to that one came to the same.
    repeats: u32,
    /// When the present try was to begin, if it was woken before.
    due: Option<Timestamp>,
}

/// An answer that tells of the state before it.
#[derive(Clone, PartialEq, Debug)]
enum Before {
    Test(Arc<Tested>),
    Set(Arc<Response>),
}

impl Before {
    /// The effect on the instance that was stated for the set.
    fn effect(&self) -> Option<Effect> {
        match self {
            Self::Test(tested) => tested.predicted.as_ref()?.effects.effect,
            Self::Set(response) => match &response.outcome {
                Outcome::Changed(changed) => changed.effects.effect,
                _ => None,
            },
        }
    }

    fn state(&self) -> Option<&Value> {
        match self {
            Self::Test(tested) => Some(&tested.actual),
            Self::Set(response) => match &response.outcome {
                Outcome::Changed(changed) => Some(&changed.before),
                _ => None,
            },
        }
    }
}

/// Something that a provider answered.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum KeptAnswer<'a> {
    /// As a whole.
    Response(&'a Response),
    /// A state, or what is handed back with the next call.
    Value(&'a Value),
}

/// How far an instance has come.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Phase {
    /// It waits for its needs, for room, or for a decision.
    #[default]
    Waiting,
    /// Its nested instances are worked on.
    Open,
    /// Its provider is working on a call.
    InFlight(Operation, Execution),
    /// It is tried again, not before this instant.
    BackingOff(Timestamp),
    /// It has ended.
    Settled(Status),
}

/// Returns whether two tries had the same result, so that there was no progress between them.
fn same_result(one: &Response, other: &Response) -> bool {
    match (&one.outcome, &other.outcome) {
        (Outcome::Changed(one), Outcome::Changed(other)) => one.changed == other.changed && one.after == other.after,
        (Outcome::Tested(one), Outcome::Tested(other)) => one == other,
        (Outcome::Pending(one), Outcome::Pending(other)) => one.data == other.data,
        // A message may hold a time or a number of a request.
        (Outcome::Failed(_), Outcome::Failed(_)) => true,
        _ => false,
    }
}

impl Record {
    pub(super) fn take(&mut self, event: &Event) {
        match &event.kind {
            EventKind::ContainerOpened { .. } => {
                self.phase = Phase::Open;
                self.began.get_or_insert(event.at);
            }
            EventKind::CallStarted { operation, execution, desired, .. } => {
                self.phase = Phase::InFlight(*operation, *execution);
                self.calls += 1;
                self.sets += u32::from(operation.changes_in(*execution));
                self.began.get_or_insert(event.at);
                // Of a resource that is searched for at each call, what it said before holds on.
                if !desired.is_null() || self.desired.is_none() {
                    self.desired = Some(Arc::clone(desired));
                }
            }
            EventKind::CallEnded { response, elapsed, .. } => self.respond(response, *elapsed),
            EventKind::RetryScheduled { until, .. } => self.retry(*until),
            EventKind::Woken { .. } => self.wake(event.at),
            EventKind::Settled { status, problem, .. } => {
                if self.phase == Phase::Open {
                    let began = self.began.unwrap_or(event.at);
                    self.elapsed = Duration::try_from(event.at - began).unwrap_or_default();
                }
                self.problem.clone_from(problem);
                self.phase = Phase::Settled(status.clone());
            }
            EventKind::Refuted { problem, .. } => {
                self.problem = Some(Arc::clone(problem));
                self.phase = Phase::Settled(Status::Failed);
            }
            _ => {}
        }
    }

    fn respond(&mut self, response: &Arc<Response>, elapsed: Duration) {
        let is_set = matches!(self.phase, Phase::InFlight(operation, _) if operation.may_change());
        self.phase = Phase::Waiting;
        self.elapsed += elapsed;
        match &response.outcome {
            Outcome::Pending(pending) => self.pending = pending.data.clone().map(Arc::new),
            _ if is_set => self.pending = None,
            _ => {}
        }
        if let Outcome::Tested(tested) = &response.outcome {
            self.tested = Some(Arc::clone(tested));
        }
        if response.desired.is_some() {
            self.desired.clone_from(&response.desired);
        }
        self.response = Some(Arc::clone(response));
    }

    /// Returns when the present try was to begin, if it was woken before. It is an extra one: if it does not succeed
    /// either, the instance backs off until then, and neither its tries nor their progress are counted anew.
    pub fn due(&self) -> Option<Timestamp> {
        self.earlier.as_ref()?.due
    }

    fn wake(&mut self, at: Timestamp) {
        if let (Some(earlier), Phase::BackingOff(until)) = (&mut self.earlier, &self.phase) {
            earlier.due = earlier.due.or(Some(*until));
        }
        self.phase = Phase::BackingOff(at);
    }

    /// The next try begins from the start.
    fn retry(&mut self, until: Timestamp) {
        let is_extra = self.due() == Some(until);
        if let Some(earlier) = self.earlier.as_mut().filter(|_| is_extra) {
            earlier.due = None;
        } else if let Some(last) = self.response.clone() {
            let (first, repeats) = (self.first_state(&last), self.repeats());
            self.earlier = Some(Box::new(EarlierTries { first, last, repeats, due: None }));
            self.retries += 1;
        }
        self.phase = Phase::BackingOff(until);
        self.calls = 0;
        self.tested = None;
    }

    /// The first answer of all tries that reported the state before it; `last` is that of the present one.
    fn first_state(&self, last: &Arc<Response>) -> Option<Before> {
        let earlier = self.earlier.as_ref().and_then(|earlier| earlier.first.clone());
        let tested = || self.tested.clone().map(Before::Test);
        let set = || matches!(last.outcome, Outcome::Changed(_)).then(|| Before::Set(Arc::clone(last)));
        earlier.or_else(tested).or_else(set)
    }

    /// After a crash: nobody knows how far a call came that was started and not ended. It is made again from the start.
    ///
    /// So is a test that a set was to follow: what it found may be long ago, and secrets in the desired state have handles
    /// that died with the process.
    pub(super) fn resume(&mut self, sets: bool) {
        let found = self.response.as_ref().map(|response| &response.outcome);
        let awaits_set = sets && matches!(found, Some(Outcome::Tested(tested)) if !tested.in_desired_state);
        if matches!(self.phase, Phase::InFlight(..)) || (self.phase == Phase::Waiting && awaits_set) {
            self.phase = Phase::Waiting;
            self.calls = 0;
            (self.tested, self.desired, self.response) = (None, None, None);
        }
    }

    /// Returns the number of tries in a row, up to the present one, that came to the same: no progress was made
    /// between them.
    pub fn repeats(&self) -> u32 {
        match (&self.earlier, &self.response) {
            (Some(earlier), Some(response)) if same_result(&earlier.last, response) => earlier.repeats + 1,
            _ => 0,
        }
    }

    /// Returns whether a call before the last one may have changed something that no response tells of: it was
    /// interrupted, or it was followed by another try.
    pub fn may_have_changed(&self) -> bool {
        let is_last = matches!(self.response.as_ref().map(|last| &last.outcome), Some(Outcome::Changed(_)));
        self.sets > u32::from(is_last)
    }

    /// Returns whether any answer of a resource is kept.
    pub fn has_answers(&self) -> bool {
        self.response.is_some() || self.tested.is_some() || self.pending.is_some() || self.earlier.is_some()
    }

    /// Every response that is kept, each once: of the last call, of its test, and of the try before.
    pub fn answers(&self) -> impl Iterator<Item = KeptAnswer<'_>> {
        let response = self.response.as_deref();
        let is_in = |tested: &&Arc<Tested>| matches!(response.map(|response| &response.outcome), Some(Outcome::Tested(own)) if Arc::ptr_eq(own, tested));
        let tested = self.tested.as_ref().filter(|tested| !is_in(tested));
        let is_same = |last: &&Arc<Response>| self.response.as_ref().is_some_and(|own| Arc::ptr_eq(own, last));
        let earlier = self.earlier.as_deref();
        let last_try = earlier.map(|earlier| &earlier.last).filter(|last| !is_same(last));
        let responses = response.into_iter().chain(last_try.map(|last| &**last)).map(KeptAnswer::Response);
        let first = earlier.and_then(|earlier| earlier.first.as_ref()?.state());
        let found = tested.into_iter().flat_map(|tested| tested.states());
        let states = found.chain(first).chain(self.pending.as_deref());
        responses.chain(states.map(KeptAnswer::Value))
    }

    /// Returns its status, if it has ended.
    pub fn status(&self) -> Option<&Status> {
        if let Phase::Settled(status) = &self.phase { Some(status) } else { None }
    }

    /// The response of the present try, if there is one and no decision was made about it.
    pub fn undecided(&self) -> Option<&Arc<Response>> {
        self.response.as_ref().filter(|_| self.phase == Phase::Waiting && self.calls > 0)
    }

    /// Returns the mistake in its declaration, if that is why it failed.
    pub fn finding(&self) -> Option<&Diagnostic> {
        match self.problem.as_deref()? {
            Problem::Finding(finding) => Some(finding),
            Problem::Failure(_) => None,
        }
    }

    /// Returns why it could not be carried out.
    pub fn failure(&self) -> Option<&Failure> {
        match (self.problem.as_deref(), self.response.as_ref().map(|response| &response.outcome)) {
            (Some(Problem::Failure(failure)), _) => Some(failure),
            (None, Some(Outcome::Failed(failure))) => Some(failure),
            _ => None,
        }
    }

    /// Returns why it failed, in one or more sentences; `None` where that is said of what is nested in it.
    pub fn why_failed(&self) -> Option<String> {
        let problem = self.failure().map(|failure| &failure.message);
        let problem = problem.or_else(|| self.finding().map(|finding| &finding.message)).cloned();
        problem.or_else(|| self.response.as_ref()?.outcome.why_not_reached())
    }

    /// Returns why it did not reach the desired state, as far as it is known without the graph.
    pub fn why_ended(&self) -> Option<String> {
        match self.status()? {
            Status::Failed => self.why_failed(),
            Status::Pending => self.response.as_ref()?.outcome.why_not_reached(),
            Status::Undetermined => self.undetermined().map(str::to_owned),
            Status::Skipped(SkipReason::Need(other)) => Some(format!("it depends on {}", other.label())),
            Status::Skipped(SkipReason::Container(other)) => Some(format!("it is nested in {}", other.label())),
            Status::Skipped(reason) => reason.clause().map(str::to_owned),
            _ => None,
        }
    }

    /// Returns the result of a set, if there was one.
    pub fn changed(&self) -> Option<&Changed> {
        match &self.response.as_ref()?.outcome {
            Outcome::Changed(changed) => Some(changed),
            _ => None,
        }
    }

    /// Returns why its resource cannot tell whether anything is to be changed, if that is how it ended.
    pub fn undetermined(&self) -> Option<&str> {
        self.response.as_ref()?.outcome.unknown()
    }

    /// Returns what is not known of a change that was made, and why; `None` where all is known.
    pub fn state_unknown(&self) -> Option<&str> {
        self.response.as_ref()?.unknown.as_deref()
    }

    /// Returns the effect of a set on the instance, or in what-if the predicted one: in the words of the resource or,
    /// where it has none, by the states. Of a drifted instance, what a set would do.
    pub fn effect(&self) -> Option<Effect> {
        match (self.status()?, self.changed(), self.tested.as_deref(), &self.desired) {
            (Status::Changed, ..) if let Some((before, after)) = self.net_change() => {
                Some(match between(before, after) {
                    Effect::Change => self.first_effect(),
                    other => other,
                })
            }
            (Status::Changed, Some(changed), ..) => Some(changed.effect()),
            // It acts upon what others change.
            (Status::Changed, None, Some(tested), _) if tested.in_desired_state && self.sets == 0 => {
                Some(Effect::Change)
            }
            (Status::Drifted, _, Some(tested), Some(desired)) => {
                let stated = tested.predicted.as_ref().and_then(|predicted| predicted.effects.effect);
                Some(stated.unwrap_or_else(|| between(&tested.actual, desired)))
            }
            _ => None,
        }
    }

    /// Of what was run again: whether the first run found that it is to be created or removed, in words that its states do not
    /// have.
    fn first_effect(&self) -> Effect {
        let stated = self.earlier.as_ref().and_then(|earlier| earlier.first.as_ref()?.effect());
        let is_other = |effect: &Effect| matches!(effect, Effect::Create | Effect::Remove);
        stated.filter(is_other).unwrap_or(Effect::Change)
    }

    /// Returns whether it changed.
    pub fn is_changed(&self) -> bool {
        self.status() == Some(&Status::Changed)
    }

    /// Of what was run again: the state before the first run, and that after the last. What only the runs in
    /// between reported is not seen.
    pub fn net_change(&self) -> Option<(&Value, &Value)> {
        Some((self.earlier.as_ref()?.first.as_ref()?.state()?, self.state()?))
    }

    /// Returns the things that a set created and destroyed, or would, as far as the resource says so.
    pub fn effects(&self) -> Option<&Effects> {
        let predicted = || self.tested.as_ref()?.predicted.as_ref().filter(|_| self.status() == Some(&Status::Drifted));
        let done = self.changed().map(|changed| &changed.effects);
        done.or_else(|| predicted().map(|predicted| &predicted.effects))
    }

    /// The state that the last response tells of: actual, or after a set.
    pub fn state(&self) -> Option<&Value> {
        match &self.response.as_ref()?.outcome {
            Outcome::Got(actual) => Some(actual),
            Outcome::Tested(tested) => Some(&tested.actual),
            Outcome::Changed(changed) => Some(&changed.after),
            Outcome::Exported(_) | Outcome::Deleted(_) | Outcome::Pending(_) | Outcome::Failed(_) => None,
        }
    }

    /// Like [`Self::state`], but complete where an expression may refer to it.
    pub fn complete_state(&self) -> Option<&Value> {
        let response = self.response.as_deref()?;
        response.complete.as_deref().or_else(|| self.state())
    }

    /// The properties that still differ after a set, if it was verified and they do.
    pub fn not_converged(&self) -> Option<&[String]> {
        match &self.changed()?.verified {
            Verification::Differs(properties) => Some(properties),
            Verification::InState | Verification::NotVerifiable => None,
        }
    }
}
