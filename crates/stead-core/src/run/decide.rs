//! Decisions about one node, from how far it has come.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::outputs::no_fact;
use super::pending_failure::{Otherwise, PendingFailure};
use super::policy::{Attempt, Verdict};
use super::readiness::Gate;
use super::view::View;
use super::{Privilege, Run, codes};
use crate::call::{
    Call, Execution, Failure, FailureKind, Operation, Outcome, Presumed, Response, Tested, Verification, Wanted,
};
use crate::diag::Diagnostic;
use crate::event::{Approach, EventKind, Mode, Problem, SkipReason, Status, Verify};
use crate::expr::{FactKey, Stop, Template};
use crate::footprint::Footprint;
use crate::graph::{Halt, NestingPurpose, Role, ScopeView, evaluate};
use crate::id::NodeId;
use crate::manifest::ResourceKind;
use crate::planner::opening;
use crate::report::{Phase, Record};
use crate::value::{Value, sealing_wrapped};

/// A decision about a node that is ready.
pub(super) enum Decision {
    Record(EventKind),
    Want(FactKey),
    Call(Arc<Call>),
}

/// Whether the rest of a run may bring what an instance lacks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    MayChange,
    Stay,
}

/// The obstacle to evaluating a condition or properties.
enum Trouble {
    Halt(Halt),
    /// A fault in what was read of an instance that an apply may bring into another state.
    Open(NodeId),
    Finding(Diagnostic),
}

impl Run {
    /// Returns what happens to a node that is ready.
    pub(super) fn decide(&self, id: NodeId) -> Decision {
        let record = self.report.record(id);
        if record.phase == Phase::Open {
            return Decision::Record(self.settle(id, self.summary(id)));
        }
        if let Phase::BackingOff(_) = record.phase
            && self.report.cancelled
        {
            return Decision::Record(self.settle(id, given_up(record)));
        }
        match self.gate(id) {
            Gate::Skip(reason) => return Decision::Record(self.settle(id, Status::Skipped(reason))),
            Gate::Unknown(other) => {
                return self
                    .look(id)
                    .unwrap_or_else(|| Decision::Record(self.settle(id, Status::Unknown(self.path(other)))));
            }
            Gate::Begin => {}
        }
        let decided = match self.condition(id) {
            Ok(true) => self.begun(id),
            Ok(false) => Ok(Decision::Record(self.settle(id, Status::Skipped(SkipReason::Condition)))),
            Err(trouble) => Err(trouble),
        };
        decided.unwrap_or_else(|trouble| self.halted(id, *trouble))
    }

    /// The test of an instance of which nobody knows whether it begins, for the paths that it may alter then. Resources that
    /// do not say what they manage are not asked.
    fn look(&self, id: NodeId) -> Option<Decision> {
        let node = self.graph.node(id);
        let is_known = self.footprint(id).is_some() || self.report.record(id).began.is_some();
        let says = node.manifest.promises.claims;
        let refused = self.graph.refusal(id, self.privilege == Privilege::Elevated).is_some();
        let desired = node.stated.as_ref().filter(|_| says && !is_known && !refused)?;
        Some(Decision::Call(Arc::new(self.call(id, Arc::clone(desired)))))
    }

    fn begun(&self, id: NodeId) -> Result<Decision, Box<Trouble>> {
        if let Role::Container { .. } = self.graph.node(id).role {
            return Ok(Decision::Record(EventKind::ContainerOpened { instance: self.path(id) }));
        }
        if let Some(why) = self.graph.refusal(id, self.privilege == Privilege::Elevated) {
            let problem = Problem::Failure(Failure::new(FailureKind::Unsupported, why));
            return Ok(Decision::Record(self.fail(id, problem)));
        }
        let desired = self.desired(id)?;
        self.check_room(id, &desired).map_err(|finding| Box::new(Trouble::Finding(*finding)))?;
        Ok(Decision::Call(Arc::new(self.call(id, desired))))
    }

    fn settle(&self, id: NodeId, status: Status) -> EventKind {
        EventKind::Settled { instance: self.path(id), status, problem: None }
    }

    fn fail(&self, id: NodeId, problem: Problem) -> EventKind {
        EventKind::Settled { instance: self.path(id), status: Status::Failed, problem: Some(Arc::new(problem)) }
    }

    pub(super) fn view(&self, id: NodeId) -> View<'_> {
        let node = self.graph.node(id);
        let iteration = node.iteration.as_deref();
        let place = ScopeView {
            scopes: &self.graph.scopes,
            scope: node.scope,
            iteration,
            facts: &self.facts,
            seal: &*self.seal,
            budget: None,
        };
        View { place, run: self, of: Some(id), read_open: Cell::default() }
    }

    fn condition(&self, id: NodeId) -> Result<bool, Box<Trouble>> {
        let record = self.report.record(id);
        // It was true when the instance was begun; what it said then holds for all that follows, also after a crash.
        if record.began.is_some() {
            return Ok(true);
        }
        let Some(condition) = &self.graph.declaration(id).condition else { return Ok(true) };
        let value = self.evaluated(id, condition)?;
        self.graph.holds(id, condition, &value).map_err(|finding| Box::new(Trouble::Finding(*finding)))
    }

    fn desired(&self, id: NodeId) -> Result<Arc<Value>, Box<Trouble>> {
        let record = self.report.record(id);
        if let (Some(desired), Some(_)) = (record.desired.as_ref().filter(|desired| !desired.is_null()), &record.tested)
        {
            return Ok(Arc::clone(desired));
        }
        if let Some(stated) = &self.graph.node(id).stated {
            return Ok(Arc::clone(stated));
        }
        let Some(properties) = &self.graph.declaration(id).properties else { return Ok(Arc::new(Value::Null)) };
        // A group that is a program gets its nested instances as they were written: they are its own to evaluate.
        if self.graph.node(id).manifest.kind == ResourceKind::Group {
            return Ok(Arc::new(properties.literal()));
        }
        let manifest = &self.graph.node(id).manifest;
        let sealed = |value| manifest.sealing_secrets(sealing_wrapped(value, &*self.seal), &*self.seal);
        self.evaluated(id, properties).map(sealed).map(Arc::new)
    }

    fn halted(&self, id: NodeId, trouble: Trouble) -> Decision {
        let refused = |finding| Decision::Record(self.fail(id, Problem::Finding(finding)));
        let halt = match trouble {
            Trouble::Finding(finding) => return refused(finding),
            Trouble::Open(because) => {
                return Decision::Record(self.settle(id, Status::Unknown(self.path(because))));
            }
            Trouble::Halt(halt) => halt,
        };
        refused(match &halt.stop {
            Stop::Missing(key) => match self.facts.get(key) {
                Some(Err(reason)) => no_fact(key, halt.span, reason),
                _ => return Decision::Want(key.clone()),
            },
            Stop::Unknown(other) => match self.graph.scope(self.graph.node(id).scope).ids.get(other) {
                Some(because) if self.report.status(because.node()).is_some() => {
                    return Decision::Record(self.settle(id, Status::Unknown(because.0.clone())));
                }
                _ => Diagnostic::error(&codes::NOT_RUN_YET, halt.span, format!("'{other}' has not run yet"))
                    .with_help("name it in 'dependsOn'"),
            },
            Stop::Open(_) | Stop::Fault(_) => match halt.diagnostic(&self.sources) {
                Some(finding) => finding,
                None => Diagnostic::error(&codes::NOT_RUN_YET, halt.span, "the expression cannot be evaluated"),
            },
        })
    }

    /// Returns whether nothing is changed.
    pub(super) fn only_looks(&self) -> bool {
        self.mode.execution == Execution::WhatIf || self.mode.operation == Operation::Test
    }

    /// Computes a value for an instance.
    fn evaluated(&self, id: NodeId, node: &Template) -> Result<Value, Box<Trouble>> {
        let view = self.view(id);
        evaluate(node, &view).map_err(|halt| {
            Box::new(match (&halt.stop, view.left_open()) {
                (Stop::Fault(_), Some(because)) => Trouble::Open(because),
                _ => Trouble::Halt(halt),
            })
        })
    }

    fn call(&self, id: NodeId, desired: Arc<Value>) -> Call {
        let (node, record) = (self.graph.node(id), self.report.record(id));
        let mode = self.mode_of(id);
        let operation = match record.tested {
            Some(_) => Operation::Set,
            None => opening(mode, &node.manifest, &desired),
        };
        Call {
            instance: node.path.clone(),
            manifest: Arc::clone(&node.manifest),
            operation,
            execution: mode.execution,
            desired,
            tested: record.tested.clone(),
            pending: record.pending.clone(),
            metadata: self.graph.declaration(id).metadata.as_ref().map(|node| Arc::new(node.literal())),
            export_filter: self.graph.declaration(id).directives().export_filter.clone(),
            wanted: match operation {
                _ if mode.approach == Approach::Alone => Wanted::Answer,
                Operation::Test if mode.execution == Execution::Actual && self.is_dispensable(id) => Wanted::Verdict,
                _ if self.graph.is_referred(id) => Wanted::All,
                _ => Wanted::Reported,
            },
        }
    }

    /// Returns what is done with an instance: that of the run, but what is within an assertion is only tested.
    pub(super) fn mode_of(&self, id: NodeId) -> Mode {
        let asserted = self.graph.node(id).path.outward().skip(1).any(|container| {
            matches!(self.graph.node(container.node()).role, Role::Container { purpose: NestingPurpose::Assertion, .. })
        });
        let tested = asserted || self.exceptions.tested.contains(&id);
        if tested && self.mode.operation != Operation::Export {
            return Mode { operation: Operation::Test, ..self.mode };
        }
        self.mode
    }

    /// Returns whether a response leads to the next call: a test that found a difference, to the set.
    pub(super) fn continues(&self, id: NodeId, outcome: &Outcome) -> bool {
        let mode = self.mode_of(id);
        let converges = mode.operation == Operation::Set && mode.approach == Approach::Converge;
        converges && matches!(outcome, Outcome::Tested(tested) if !tested.in_desired_state)
    }

    /// Returns what follows from a response; `None` while that is open.
    pub(super) fn judge(&self, id: NodeId, now: Timestamp, others: Others) -> Option<EventKind> {
        let response = self.report.record(id).undecided()?;
        Some(match self.verdict(id, response, now, others) {
            Verdict::GiveUp => self.settle(id, self.status_after(id, response)),
            Verdict::RetryAfter(wait) => self.run_again(id, now, wait),
        })
    }

    /// Returns what follows from the responses of those that are run again one by one. Where something has changed for some that are
    /// blocked, they are tried before anything is decided about the others: they may bring what those lack.
    pub(super) fn judge_each(&self, now: Timestamp) -> Vec<EventKind> {
        let mut decidable: Vec<NodeId> = self.unrealized.keys().copied().collect();
        let mut others = Others::MayChange;
        if !self.blocked.is_empty() && !self.is_busy(now) {
            others = self.others();
            let (changed, same): (Vec<NodeId>, Vec<NodeId>) =
                self.blocked.keys().copied().partition(|id| self.is_tried_at_once(*id));
            decidable.extend(if changed.is_empty() || self.report.cancelled {
                [changed, same].concat()
            } else {
                changed
            });
            decidable.sort_unstable();
        }
        decidable.into_iter().filter_map(|id| self.judge(id, now, others)).collect()
    }

    /// Returns what follows from the responses of those that are run again together: nothing is run again while some of them end,
    /// since others may begin then.
    pub(super) fn judge_together(&self, now: Timestamp) -> Vec<EventKind> {
        let mut waits = Vec::new();
        let mut ended = Vec::new();
        let others = self.others();
        for id in self.unrealized.keys().chain(self.blocked.keys()) {
            let Some(response) = self.report.record(*id).undecided() else { continue };
            match self.verdict(*id, response, now, others) {
                Verdict::GiveUp => ended.push(self.settle(*id, self.status_after(*id, response))),
                Verdict::RetryAfter(wait) => waits.push((*id, wait)),
            }
        }
        let Some(longest) = waits.iter().map(|(_, wait)| *wait).max().filter(|_| ended.is_empty()) else {
            return ended;
        };
        waits.into_iter().map(|(id, _)| self.run_again(id, now, longest)).collect()
    }

    fn run_again(&self, id: NodeId, now: Timestamp, wait: Duration) -> EventKind {
        let until = jiff::SignedDuration::try_from(wait).ok().and_then(|wait| now.checked_add(wait).ok());
        EventKind::RetryScheduled { instance: self.path(id), until: until.unwrap_or(Timestamp::MAX) }
    }

    /// Returns whether a response may be followed by another run of its instance.
    pub(super) fn is_open(&self, id: NodeId, response: &Response) -> bool {
        let is_final = !matches!(self.status_after(id, response), Status::Failed | Status::Pending);
        !is_final && !self.report.cancelled && self.can_heal(id, response)
    }

    fn verdict(&self, id: NodeId, response: &Response, now: Timestamp, others: Others) -> Verdict {
        if !self.is_open(id, response) {
            return Verdict::GiveUp;
        }
        let due = self.report.record(id).due().and_then(|due| Duration::try_from(due - now).ok());
        if let Some(left) = due.filter(|left| !left.is_zero()) {
            return Verdict::RetryAfter(left);
        }
        if self.is_tried_at_once(id) {
            return Verdict::RetryAfter(Duration::ZERO);
        }
        if self.is_blocked(id) && others == Others::Stay {
            return Verdict::GiveUp;
        }
        let ask = || self.policy.after(&self.attempt(id, response));
        let asked = self.unrealized.get(&id).or_else(|| self.blocked.get(&id));
        asked.map_or_else(ask, |answered| *answered.get_or_init(ask))
    }

    fn attempt<'a>(&'a self, id: NodeId, response: &'a Response) -> Attempt<'a> {
        let (node, record) = (self.graph.node(id), self.report.record(id));
        let extra_tries = self.extra_tries.get(&id).copied().unwrap_or_default();
        let directives = self.graph.declaration(id).directives();
        Attempt {
            instance: &node.path,
            retries: record.retries,
            repeats: record.repeats().saturating_sub(extra_tries),
            re_runs: self.report.re_runs,
            response,
            stated_wait: directives.reconcile_wait.as_ref().map(|wait| wait.value),
            usual_wait: node.manifest.reconcile_wait,
            stated_rule: directives.reconcile_pending.as_ref().map(|rule| rule.value.as_str()),
            usual_rule: node.manifest.reconcile_pending.as_deref(),
        }
    }

    /// Returns whether what an instance lacks may be there now, and it may be run again.
    fn is_tried_at_once(&self, id: NodeId) -> bool {
        let response = self.report.record(id).response.as_deref();
        let is_exhausted = |response| self.policy.is_exhausted(&self.attempt(id, response));
        self.is_blocked(id) && self.has_changed_since(id) && !response.is_some_and(is_exhausted)
    }

    /// Returns whether an instance waits for a change by others alone, and the policy gives it up if there is none.
    pub(super) fn is_blocked(&self, id: NodeId) -> bool {
        let response = self.report.record(id).response.as_deref();
        let is_blocked = response.is_some_and(|response| match &response.outcome {
            Outcome::Failed(failure) => failure.is_blocked(),
            _ => false,
        });
        let is_wait_stated = || self.graph.declaration(id).directives().reconcile_wait.is_some();
        is_blocked && self.policy.gives_up_blocked() && !is_wait_stated()
    }

    /// Returns whether anything is under way, or can be begun or settled at once: it may change what others lack.
    fn is_busy(&self, now: Timestamp) -> bool {
        let queues = &self.readiness.queues;
        !self.in_flight.is_empty() || !self.undecided.is_empty() || queues.is_any_ready() || queues.is_any_due(now)
    }

    /// Returns whether something was changed since an instance was last tried.
    fn has_changed_since(&self, id: NodeId) -> bool {
        self.changes_before[id.index()] < self.changes
    }

    /// A try that follows a change at once takes none of those that are made after a wait.
    pub(super) fn note_extra_try(&mut self, id: NodeId) {
        let before = self.extra_tries.remove(&id).filter(|_| self.report.record(id).repeats() > 0).unwrap_or_default();
        let tries = before + u32::from(self.is_blocked(id) && self.has_changed_since(id));
        if tries > 0 {
            self.extra_tries.insert(id, tries);
        }
    }

    /// Returns whether a response tells of a set that may go on changing what others lack: nothing began where it is blocked.
    pub(super) fn stirs(&self, id: NodeId, response: &Response) -> bool {
        let was_set = self.mode.execution == Execution::Actual && self.report.record(id).sets > 0;
        let began = !matches!(&response.outcome, Outcome::Failed(failure) if failure.is_blocked());
        was_set && began && !self.graph.node(id).manifest.promises.bounded
    }

    /// Returns whether the rest of the run may bring what instances that are blocked lack, while nothing is under way: what was set
    /// may go on changing it, or something is run again that is not blocked itself.
    fn others(&self) -> Others {
        let is_run_again = || self.readiness.queues.backing_off().any(|other| !self.is_blocked(other));
        let may_change = self.is_stirred || !self.unrealized.is_empty() || is_run_again();
        if may_change { Others::MayChange } else { Others::Stay }
    }

    /// The instances that ended as they were because the policy gave up on them: another run may realize them. One that is blocked
    /// is among them only where what it lacks may be there by now, or may still come; else it failed.
    pub fn given_up(&self) -> impl Iterator<Item = NodeId> {
        let ended = |id: &NodeId| {
            let record = self.report.record(*id);
            let ended = matches!(record.status(), Some(Status::Failed | Status::Pending)) && record.problem.is_none();
            ended && record.response.as_ref().is_some_and(|response| self.can_heal(*id, response))
        };
        let is_open = self.policy.reconciles();
        let ended: Vec<NodeId> = self.graph.iter().map(|(id, _)| id).filter(|id| is_open && ended(id)).collect();
        let is_expectant = |id: &NodeId| !self.is_blocked(*id) || self.has_changed_since(*id);
        let may_change = self.is_stirred || ended.iter().any(is_expectant);
        ended.into_iter().filter(move |_| may_change)
    }

    fn can_heal(&self, id: NodeId, response: &Response) -> bool {
        self.mode_of(id).changes()
            && match &response.outcome {
                Outcome::Failed(failure) => failure.can_heal(),
                _ => true,
            }
    }

    fn status_after(&self, id: NodeId, response: &Response) -> Status {
        let record = self.report.record(id);
        let found_to_differ = record.tested.as_ref().is_some_and(|tested| tested.differs());
        // What is found to be in the desired state may have come into it by a call that did not say so.
        let in_state = if record.may_have_changed() { Status::Changed } else { Status::InState };
        match &response.outcome {
            Outcome::Got(_) | Outcome::Exported(_) => Status::Read,
            // Nothing was begun that changes anything.
            Outcome::Failed(failure) if self.is_left_out(record, failure) => Status::Skipped(SkipReason::Cancelled),
            Outcome::Failed(_) => Status::Failed,
            Outcome::Pending(_) => Status::Pending,
            Outcome::Deleted(_) => Status::Changed,
            Outcome::Tested(tested) if tested.in_desired_state && self.reacts(tested) => Status::Changed,
            Outcome::Tested(tested) if tested.in_desired_state => self.unless_reached(id, in_state),
            Outcome::Tested(tested) if tested.differs() => self.unless_reached(id, Status::Drifted),
            Outcome::Tested(_) => self.unless_reached(id, Status::Undetermined),
            Outcome::Changed(changed) if changed.unknown.is_some() => self.unless_altered(id, Status::Undetermined),
            // Even where it claims to have changed nothing: that is a resource that does not do what it should.
            Outcome::Changed(changed)
                if self.mode.verification == Verify::Strict && matches!(changed.verified, Verification::Differs(_)) =>
            {
                Status::Failed
            }
            Outcome::Changed(changed) if changed.changed.as_ref().is_none_or(Vec::is_empty) && !found_to_differ => {
                self.unless_reached(id, in_state)
            }
            Outcome::Changed(_) => self.unless_altered(id, Status::Changed),
        }
    }

    /// In what-if, whether an instance that is in its desired state acts upon a change in front of it, which is certain.
    fn reacts(&self, tested: &Tested) -> bool {
        let once = tested.predicted.as_deref().map(|predicted| &*predicted.once).unwrap_or_default();
        self.mode == Mode::PLAN && once.iter().any(|path| self.forecast.is_changed(path))
    }

    /// Returns whether a test ended early because the run did, so that its instance is as if it had never been begun.
    fn is_left_out(&self, record: &Record, failure: &Failure) -> bool {
        let tests = matches!(self.mode.operation, Operation::Test | Operation::Set);
        let ends = self.report.cancelled || self.report.suspended;
        tests && ends && record.sets == 0 && failure.kind == FailureKind::Cancelled
    }

    /// In what-if, what a test finds now may be otherwise once the changes before it are made.
    fn unless_reached(&self, id: NodeId, status: Status) -> Status {
        match self.mode.execution {
            Execution::Actual => status,
            Execution::WhatIf => self.unknown_after(self.forecast.reaches(&self.graph, id, self.footprint(id)), status),
        }
    }

    /// In what-if, a change is another one where something in front of it alters what it was predicted from.
    fn unless_altered(&self, id: NodeId, status: Status) -> Status {
        match self.mode.execution {
            Execution::Actual => status,
            Execution::WhatIf => self.unknown_after(self.forecast.alters(self.footprint(id)), status),
        }
    }

    fn unknown_after(&self, change: Option<NodeId>, status: Status) -> Status {
        change.map_or(status, |change| Status::Unknown(self.path(change)))
    }

    fn footprint(&self, id: NodeId) -> Option<&Footprint> {
        self.footprints.get(&id).map(|footprint| &**footprint)
    }

    /// In what-if: settles what was answered, in the order of the graph, up to the first change: what comes of an instance
    /// depends on the changes in front of it, and must not depend on who answered first.
    pub(super) fn predicted(&self, now: Timestamp) -> Vec<EventKind> {
        let mut settled = Vec::new();
        let mut prefix = self.settled_prefix;
        for ((rank, id), pending) in &self.predictions {
            prefix = self.prefix_from(prefix);
            if prefix < *rank as usize {
                break;
            }
            let event = match (self.gate(*id), pending) {
                (Gate::Unknown(other), _) => Some(self.settle(*id, Status::Unknown(self.path(other)))),
                (_, Some(pending)) => Some(self.unless_enabled(*id, pending)),
                (_, None) => self.judge(*id, now, Others::MayChange),
            };
            let Some(event) = event else { break };
            let changes_nothing = matches!(event, EventKind::Settled { status: Status::InState, .. });
            settled.push(event);
            if !changes_nothing {
                break;
            }
            prefix = *rank as usize + 1;
        }
        settled
    }

    /// Returns what comes of an instance that cannot be set as things are.
    fn unless_enabled(&self, id: NodeId, pending: &PendingFailure) -> EventKind {
        let footprint = self.footprint(id);
        let is_met = |reason: &&Presumed| {
            !reason.paths.is_empty() && reason.paths.iter().all(|path| self.forecast.creates(path))
        };
        let unmet: Vec<&Presumed> = pending.reasons.iter().filter(|reason| !is_met(reason)).collect();
        let Some(first) = unmet.first() else {
            return self.settle(id, self.unless_altered(id, Status::Changed));
        };
        let is_open = pending.otherwise == Otherwise::Unknown;
        let used = || is_open.then(|| self.forecast.alters_what_is_used(&self.graph, id)).flatten();
        let enabled = |reason: &&&Presumed| self.forecast.enables(&self.graph, id, &reason.paths, footprint);
        // A reason that no change in front of it resolves goes before one that some change may.
        let shown = unmet.iter().find(|reason| enabled(reason).is_none());
        match shown.map_or_else(|| enabled(&first), |_| None).or_else(used) {
            Some(change) => self.settle(id, Status::Unknown(self.path(change))),
            None => self.fail(id, Problem::Failure(shown.unwrap_or(first).failure.clone())),
        }
    }

    /// Returns how a container ended, from how its members did.
    fn summary(&self, id: NodeId) -> Status {
        let Role::Container { inner, purpose } = self.graph.node(id).role else { return Status::Failed };
        let members = &self.graph.scope(inner).members;
        let any = |wanted: fn(&Status) -> bool| {
            members.iter().find(|member| self.report.status(**member).is_some_and(wanted)).copied()
        };
        let drifted = any(|status| *status == Status::Drifted).is_some();
        let undetermined = any(|status| *status == Status::Undetermined).is_some();
        let is_refuted = purpose == NestingPurpose::Assertion && (drifted || undetermined);
        if any(|status| *status == Status::Failed).is_some() || is_refuted {
            return Status::Failed;
        }
        if any(|status| *status == Status::Pending).is_some() {
            return Status::Pending;
        }
        // Without a failure beside it, what blocks can only have been skipped because the run was cancelled.
        if any(Status::blocks).is_some() {
            return Status::Skipped(SkipReason::Cancelled);
        }
        if let Some(member) = any(|status| matches!(status, Status::Unknown(_))) {
            return Status::Unknown(self.path(member));
        }
        match self.mode.operation {
            // Not only in a test: what is within an assertion is tested, whatever is done with the rest.
            _ if drifted => Status::Drifted,
            _ if undetermined => Status::Undetermined,
            Operation::Get | Operation::Export => Status::Read,
            Operation::Set | Operation::Delete if any(|status| *status == Status::Changed).is_some() => Status::Changed,
            Operation::Test | Operation::Set | Operation::Delete => Status::InState,
        }
    }
}

/// Returns how an instance ends that is not tried again.
fn given_up(record: &Record) -> Status {
    match record.response.as_deref().map(|response| &response.outcome) {
        Some(Outcome::Pending(_)) => Status::Pending,
        Some(_) => Status::Failed,
        None => Status::Skipped(SkipReason::Cancelled),
    }
}
