//! The machine that converges a graph: decide, observe, apply.
//!
//! [`Run::next`] decides from state alone what should happen, [`Run::apply`] is the only mutation, and what lies
//! between is done by the host. Live running, resuming after a crash and resuming after a restart are therefore the
//! same code: a run is resumed by applying the events of its journal to a new one.

pub mod codes;
mod doubt;
mod foresight;
mod report;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use crate::call::{Answered, Call, Execution, Operation, Outcome};
use crate::diag::Diagnostic;
use crate::document::{DataType, Output};
use crate::event::{Because, Event, Fact};
use crate::expr::{FactKey, Stop};
use crate::graph::{Facts, Graph, Halt, Place, Purpose, Role, ScopeId, evaluate};
use crate::id::NodeId;
use crate::manifest::{Capabilities, Implementation, Kind};
use crate::text::Sources;
use crate::value::{Seal, Value, sealing_wrapped};

use doubt::{Doubt, Enabled};
use foresight::Foresight;
pub use report::{Record, Report, Status, Totals};
use view::View;

/// What a run is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mode {
    /// What is done with every instance.
    pub operation: Operation,
    /// Whether anything may change. What-if with `Set` makes a plan.
    pub execution: Execution,
    /// What it means when a set leaves a property as it was.
    pub verification: Verify,
}

/// What it means when the state after a set is not the desired one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verify {
    /// The instance has failed.
    Strict,
    /// It is reported, and the run goes on, as DSC v3 does.
    Lenient,
}

impl Mode {
    /// Read every instance.
    pub const GET: Self = Self::reading(Operation::Get);
    /// Compare every instance.
    pub const TEST: Self = Self::reading(Operation::Test);
    /// List what is there.
    pub const EXPORT: Self = Self::reading(Operation::Export);
    /// Say what would be done.
    pub const PLAN: Self =
        Self { operation: Operation::Set, execution: Execution::WhatIf, verification: Verify::Strict };
    /// Do it.
    pub const APPLY: Self =
        Self { operation: Operation::Set, execution: Execution::Actual, verification: Verify::Strict };

    const fn reading(operation: Operation) -> Self {
        Self { operation, execution: Execution::Actual, verification: Verify::Strict }
    }
}

/// What should happen next.
#[derive(Debug, Default)]
pub struct Next {
    /// Recorded at once: nobody outside has to do anything for them.
    pub facts: Vec<Fact>,
    /// Asked of the machine; what depends on them waits.
    pub wants: BTreeSet<FactKey>,
    /// Handed to providers, at most as many as there was room for; in the order of the graph.
    pub calls: Vec<Call>,
}

impl Next {
    /// Whether nothing is to be done but wait for answers, or nothing at all.
    pub fn is_idle(&self) -> bool {
        self.facts.is_empty() && self.wants.is_empty() && self.calls.is_empty()
    }
}

/// A run over a graph.
pub struct Run {
    graph: Arc<Graph>,
    sources: Arc<Sources>,
    mode: Mode,
    facts: Facts,
    seal: Arc<dyn Seal>,
    report: Report,
    /// The place of each node in the order.
    rank: Vec<u32>,
    /// What waits for each node.
    needed_by: Vec<Vec<NodeId>>,
    /// How many needs of each node are not settled; a nested one needs its holder to be opened besides.
    open_needs: Vec<u32>,
    /// How many members of each scope are not settled.
    open_members: Vec<u32>,
    /// Nodes that something can be decided about, by rank.
    ready: BTreeSet<(u32, NodeId)>,
    /// Nodes of which a provider is working on a call, and what it was asked.
    asked: BTreeMap<NodeId, Operation>,
    /// Nodes that were found to differ, and of which the set that followed was cut off.
    cut_off: BTreeSet<NodeId>,
    unsettled: usize,
    foresight: Foresight,
    /// In what-if: instances of which it is open whether they are possible, by rank.
    doubts: BTreeMap<(u32, NodeId), Doubt>,
    /// How many in the order are settled before the first that is not; holders do not count.
    behind: usize,
}

impl Run {
    /// A run of which nothing has happened yet. The facts are those that the graph was resolved with.
    ///
    /// Secrets that are stated or made while it goes on are put into `seal`.
    pub fn new(graph: Arc<Graph>, sources: Arc<Sources>, mode: Mode, facts: Facts, seal: Arc<dyn Seal>) -> Self {
        let nodes = graph.nodes.len();
        let mut rank = vec![0; nodes];
        for (place, id) in (0..).zip(&graph.order) {
            rank[id.index()] = place;
        }
        let mut needed_by = vec![Vec::new(); nodes];
        let mut open_needs = vec![0; nodes];
        let mut open_members = vec![0; graph.scopes.len()];
        for (id, node) in graph.iter() {
            let held = u32::from(graph.holder(id).is_some());
            open_needs[id.index()] = held + u32::try_from(node.needs.len()).unwrap_or(u32::MAX);
            open_members[node.scope.index()] += 1;
            node.needs.iter().for_each(|need| needed_by[need.index()].push(id));
        }
        let mut run = Self {
            report: Report::new(nodes),
            unsettled: nodes,
            asked: BTreeMap::new(),
            cut_off: BTreeSet::new(),
            ready: BTreeSet::new(),
            foresight: Foresight::default(),
            doubts: BTreeMap::new(),
            behind: 0,
            graph,
            sources,
            mode,
            facts,
            seal,
            rank,
            needed_by,
            open_needs,
            open_members,
        };
        for (id, _) in Arc::clone(&run.graph).iter() {
            run.wake(id);
        }
        run
    }

    /// A run as its journal left it. A call that was announced but not answered is made again.
    pub fn resume(
        graph: Arc<Graph>,
        sources: Arc<Sources>,
        mode: Mode,
        facts: Facts,
        seal: Arc<dyn Seal>,
        journal: &[Event],
    ) -> Self {
        let mut run = Self::new(graph, sources, mode, facts, seal);
        for event in journal {
            run.apply(event);
        }
        run.ask_again();
        run
    }

    /// What it works on.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// What it is for.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What is known so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// How many instances ended how; holders are not counted, what is nested in them is.
    pub fn totals(&self) -> Totals {
        let instances = self.graph.iter().filter(|(_, node)| node.role == Role::Instance);
        self.report.totals(instances.map(|(id, _)| id))
    }

    /// Whether every instance is settled.
    pub fn is_finished(&self) -> bool {
        self.unsettled == 0
    }

    /// How many calls are under way.
    pub fn asked(&self) -> usize {
        self.asked.len()
    }

    /// Decides what should happen, with room for so many calls more: either one fact or want, or calls.
    ///
    /// Guarantees: it depends on nothing but the events applied so far. When it is idle and no call is under way, the
    /// run is finished. With room for one call, everything is decided in the order of the graph: what is recorded or
    /// learned of an instance can let others go first, so that nothing behind it is looked at in the same step.
    pub fn next(&self, room: usize) -> Next {
        let mut next = Next::default();
        for (_, id) in &self.ready {
            if next.calls.len() >= room {
                break;
            }
            match self.decide(*id) {
                Decision::Ask(call) => {
                    next.calls.push(call);
                    continue;
                }
                // It comes again when these calls are handed out.
                _ if !next.calls.is_empty() => {}
                Decision::Note(fact) => next.facts.push(fact),
                Decision::Want(key) => {
                    next.wants.insert(key);
                }
            }
            break;
        }
        next
    }

    fn decide(&self, id: NodeId) -> Decision {
        let node = self.graph.node(id);
        // What was opened is closed whatever became of the rest.
        if let Role::Holder { inner, .. } = node.role
            && self.report.record(id).began.is_some()
        {
            debug_assert_eq!(
                self.open_members[inner.index()],
                0,
                "a holder is woken again when its members are settled"
            );
            return Decision::Note(Fact::Closed { node: id });
        }
        if let Some(fact) = self.left_out(id) {
            return Decision::Note(fact);
        }
        let decided = match self.condition(id) {
            Ok(true) => match node.role {
                Role::Holder { .. } => Ok(Decision::Note(Fact::Opened { node: id })),
                Role::Instance => self.desired(id).map(|desired| Decision::Ask(self.call(id, desired))),
            },
            Ok(false) => Ok(Decision::Note(Fact::Skipped { node: id, because: Because::Condition })),
            Err(halt) => Err(halt),
        };
        decided.unwrap_or_else(|trouble| self.halted(id, *trouble))
    }

    /// Why an instance is not even looked at.
    fn left_out(&self, node: NodeId) -> Option<Fact> {
        let skipped = |because| Some(Fact::Skipped { node, because });
        if self.report.cancelled {
            return skipped(Because::Cancelled);
        }
        if let Some(holder) = self.graph.holder(node)
            && let Some(status) = self.report.status(holder)
        {
            return match status {
                Status::Unforeseen(_) => Some(Fact::Unforeseen { node, because: holder }),
                _ => skipped(Because::Holder(holder)),
            };
        }
        let blocks = |need: &NodeId| self.report.status(*need).is_some_and(Status::blocks);
        self.graph.node(node).needs.iter().copied().find(blocks).and_then(|need| skipped(Because::Need(need)))
    }

    fn view(&self, id: NodeId) -> View<'_> {
        let node = self.graph.node(id);
        View {
            place: Place {
                scopes: &self.graph.scopes,
                scope: node.scope,
                turn: node.turn.as_ref(),
                facts: &self.facts,
                seal: &*self.seal,
            },
            run: self,
        }
    }

    fn condition(&self, id: NodeId) -> Result<bool, Box<Trouble>> {
        // It was true when the instance was tested; what it said then holds for the set that follows.
        if self.report.record(id).tested.is_some() {
            return Ok(true);
        }
        let Some(condition) = &self.graph.declaration(id).condition else { return Ok(true) };
        let value = evaluate(condition, &self.view(id)).map_err(|halt| Box::new(Trouble::Halt(halt)))?;
        let finding = match value {
            Value::Bool(truth) => return Ok(truth),
            Value::Sealed(_) => {
                let message = format!("the condition of {} depends on a secret", self.graph.label(id));
                Diagnostic::error(&codes::SECRET_CONDITION, condition.span, message)
            }
            other => {
                let message = format!("the condition of {} is {}", self.graph.label(id), other.described());
                Diagnostic::error(&codes::BAD_CONDITION, condition.span, message)
            }
        };
        Err(Box::new(Trouble::Finding(finding)))
    }

    fn desired(&self, id: NodeId) -> Result<Arc<Value>, Box<Trouble>> {
        if let (Some(desired), Some(_)) = (&self.report.record(id).desired, &self.report.record(id).tested) {
            return Ok(Arc::clone(desired));
        }
        let Some(properties) = &self.graph.declaration(id).properties else { return Ok(Arc::new(Value::Null)) };
        // A group that is a program gets its nested instances as they were written: they are its own to evaluate.
        if self.graph.node(id).manifest.kind == Kind::Group {
            return Ok(Arc::new(properties.literal()));
        }
        let desired = evaluate(properties, &self.view(id)).map(|value| sealing_wrapped(value, &*self.seal));
        desired.map(Arc::new).map_err(|halt| Box::new(Trouble::Halt(halt)))
    }

    fn halted(&self, id: NodeId, trouble: Trouble) -> Decision {
        let halt = match trouble {
            Trouble::Finding(finding) => return Decision::Note(Fact::Refused { node: id, finding: Box::new(finding) }),
            Trouble::Halt(halt) => halt,
        };
        let finding = match &halt.stop {
            Stop::Missing(key) => match self.facts.get(key) {
                Some(Err(reason)) => Diagnostic::error(&codes::NO_FACT, halt.span, reason.clone()),
                _ => return Decision::Want(key.clone()),
            },
            Stop::Unknown(other) => match self.graph.scope(self.graph.node(id).scope).ids.get(other) {
                Some(because) if self.report.status(*because).is_some() => {
                    return Decision::Note(Fact::Unforeseen { node: id, because: *because });
                }
                _ => Diagnostic::error(&codes::NOT_RUN_YET, halt.span, format!("'{other}' has not run yet"))
                    .with_help("name it in 'dependsOn'"),
            },
            Stop::Fault(_) => match halt.diagnostic(&self.sources) {
                Some(finding) => finding,
                None => Diagnostic::error(&codes::NOT_RUN_YET, halt.span, "the expression cannot be evaluated"),
            },
        };
        Decision::Note(Fact::Refused { node: id, finding: Box::new(finding) })
    }

    fn call(&self, id: NodeId, desired: Arc<Value>) -> Call {
        let node = self.graph.node(id);
        let tested = self.report.record(id).tested.clone();
        let operation = match tested {
            Some(_) => Operation::Set,
            None => self.first_operation(id, &desired),
        };
        Call {
            node: id,
            name: node.name.clone(),
            manifest: Arc::clone(&node.manifest),
            operation,
            execution: self.mode.execution,
            desired,
            tested,
            metadata: self.graph.declaration(id).metadata.as_ref().map(|node| Arc::new(node.literal())),
        }
    }

    /// What an instance is asked first: a set is preceded by a test, unless the resource tests for itself or can say
    /// what it would do.
    fn first_operation(&self, id: NodeId, desired: &Value) -> Operation {
        if self.only_tested(self.graph.node(id).scope) && self.mode.operation != Operation::Export {
            return Operation::Test;
        }
        let manifest = &self.graph.node(id).manifest;
        let capabilities = manifest.capabilities;
        // A program that tests for itself is called once instead of twice. What is built in costs nothing to ask, and
        // a test tells more of the state than a set that found nothing to do.
        let built_in = matches!(manifest.implementation, Implementation::BuiltIn);
        let says_itself = !built_in
            && match self.mode.execution {
                Execution::Actual => capabilities.implements_pretest,
                Execution::WhatIf if deletes(&capabilities, desired) => capabilities.delete_what_if,
                Execution::WhatIf => capabilities.set_what_if,
            };
        match self.mode.operation {
            Operation::Set if !says_itself => Operation::Test,
            operation => operation,
        }
    }

    /// Whether a scope is nested in an assertion.
    fn only_tested(&self, scope: ScopeId) -> bool {
        let holder = |scope: ScopeId| self.graph.scope(scope).holder;
        let holders = std::iter::successors(holder(scope), |id| holder(self.graph.node(*id).scope));
        holders
            .into_iter()
            .any(|id| matches!(self.graph.node(id).role, Role::Holder { purpose: Purpose::Assertion, .. }))
    }

    /// Takes in what happened. The only mutation.
    pub fn apply(&mut self, event: &Event) {
        self.report.apply(event);
        match &event.fact {
            Fact::Began => self.ask_again(),
            Fact::Cancelled => {}
            Fact::Learned { key, value } => {
                self.facts.insert(key.clone(), value.clone());
            }
            Fact::Asked { node, operation, .. } => {
                self.sleep(*node);
                self.asked.insert(*node, *operation);
            }
            Fact::Answered { node, answer, touches, .. } => {
                self.asked.remove(node);
                self.answered(*node, answer, touches.as_deref());
            }
            Fact::Opened { node } => self.opened(*node),
            Fact::Closed { node } => {
                let status = self.summary(*node);
                self.settle(*node, status);
            }
            Fact::Unforeseen { node, .. } => {
                self.foresight.changes(*node, self.rank[node.index()], None);
                self.settled(*node);
            }
            Fact::Skipped { node, .. } | Fact::Refused { node, .. } => self.settled(*node),
        }
        self.decide_doubts();
    }

    fn answered(&mut self, id: NodeId, answer: &Answered, touches: Option<&[PathBuf]>) {
        if self.mode.execution == Execution::WhatIf
            && let Some(doubt) = Doubt::about(&answer.outcome, touches)
        {
            self.doubts.insert((self.rank[id.index()], id), doubt);
            return;
        }
        let found_to_differ = self.report.record(id).tested.as_ref().is_some_and(|tested| !tested.in_desired_state);
        let status = match &answer.outcome {
            Outcome::Got(_) | Outcome::Exported(_) => Status::Read,
            Outcome::Failed(_) => Status::Failed,
            // The set that was cut off had come to its end.
            Outcome::Tested(tested) if tested.in_desired_state && self.cut_off.contains(&id) => Status::Changed,
            Outcome::Tested(tested) if tested.in_desired_state => self.unless_reached(id, touches, Status::InState),
            Outcome::Tested(_) if self.sets(id) => {
                self.ready.insert((self.rank[id.index()], id));
                return;
            }
            Outcome::Tested(_) => self.unless_reached(id, touches, Status::Drifted),
            // Even where it claims to have changed nothing: that is a resource that does not do what it should.
            Outcome::Changed(_) if self.must_not_differ(id) => Status::Failed,
            Outcome::Changed(changed) if changed.changed.as_ref().is_none_or(Vec::is_empty) && !found_to_differ => {
                self.unless_reached(id, touches, Status::InState)
            }
            Outcome::Changed(_) => self.unless_exchanged(id, touches),
        };
        self.foresee(id, status, touches);
    }

    /// Settles an instance; in what-if, what it may change is noted.
    fn foresee(&mut self, id: NodeId, status: Status, touches: Option<&[PathBuf]>) {
        let may_change = matches!(status, Status::Changed | Status::Unforeseen(_));
        if self.mode.execution == Execution::WhatIf && may_change {
            self.foresight.changes(id, self.rank[id.index()], touches);
        }
        self.settle(id, status);
    }

    /// Whether an instance was set, still differs, and that is a failure.
    fn must_not_differ(&self, id: NodeId) -> bool {
        self.mode.verification == Verify::Strict && self.report.record(id).not_converged().is_some()
    }

    /// Whether a drifted instance is set next.
    fn sets(&self, id: NodeId) -> bool {
        self.mode.operation == Operation::Set && !self.only_tested(self.graph.node(id).scope)
    }

    /// In what-if, what a test finds now may be otherwise once the changes before it are made.
    fn unless_reached(&self, id: NodeId, touches: Option<&[PathBuf]>, status: Status) -> Status {
        match self.mode.execution {
            Execution::Actual => status,
            Execution::WhatIf => self.foresight.reaches(&self.graph, id, touches).map_or(status, Status::Unforeseen),
        }
    }

    /// Settles the instances of which it was open whether a change in front of them makes them possible, as soon as
    /// all in front of them are settled: what comes of them must not depend on who answered first.
    fn decide_doubts(&mut self) {
        while let Some((&(rank, id), _)) = self.doubts.first_key_value() {
            let is_behind =
                |id: &NodeId| self.report.status(*id).is_some() || self.graph.node(*id).role != Role::Instance;
            let open = self.graph.order.iter().skip(self.behind).take_while(|id| is_behind(id));
            self.behind += open.count();
            if self.behind < rank as usize {
                return;
            }
            let Some(Doubt { failure, paths, enabled, touches }) = self.doubts.remove(&(rank, id)) else { return };
            let change = match (&touches, enabled) {
                // What may look at anything may have missed anything.
                (None, Enabled::Unforeseen) => self.foresight.reaches(&self.graph, id, None),
                _ => self.foresight.enables(&self.graph, id, rank, &paths),
            };
            let status = match change {
                Some(_) if enabled == Enabled::Changes => self.unless_exchanged(id, touches.as_deref()),
                Some(change) => Status::Unforeseen(change),
                None => {
                    self.report.fail(id, failure);
                    Status::Failed
                }
            };
            self.foresee(id, status, touches.as_deref());
        }
    }

    /// In what-if, what is found to be changed may come as it should be with a tree that is changed before it.
    fn unless_exchanged(&self, id: NodeId, touches: Option<&[PathBuf]>) -> Status {
        match self.mode.execution {
            Execution::Actual => Status::Changed,
            Execution::WhatIf => {
                self.foresight.exchanges(&self.graph, id, touches).map_or(Status::Changed, Status::Unforeseen)
            }
        }
    }

    fn opened(&mut self, id: NodeId) {
        self.sleep(id);
        let Role::Holder { inner, .. } = self.graph.node(id).role else { return };
        let graph = Arc::clone(&self.graph);
        for member in &graph.scope(inner).members {
            self.satisfied(*member);
        }
        if graph.scope(inner).members.is_empty() {
            self.wake(id);
        }
    }

    /// How a holder ended, from how its members did.
    fn summary(&self, id: NodeId) -> Status {
        let Role::Holder { inner, purpose } = self.graph.node(id).role else { return Status::Failed };
        let members = &self.graph.scope(inner).members;
        let any = |wanted: fn(&Status) -> bool| {
            members.iter().find(|member| self.report.status(**member).is_some_and(wanted)).copied()
        };
        let drifted = any(|s| *s == Status::Drifted).is_some();
        if any(|s| *s == Status::Failed).is_some() || (purpose == Purpose::Assertion && drifted) {
            return Status::Failed;
        }
        // Without a failure beside it, what blocks can only have been left out because the run was cancelled.
        if any(Status::blocks).is_some() {
            return Status::Skipped(Because::Cancelled);
        }
        if let Some(member) = any(|status| matches!(status, Status::Unforeseen(_))) {
            return Status::Unforeseen(member);
        }
        match self.mode.operation {
            // Not only in a test: what is within an assertion is tested, whatever is done with the rest.
            _ if drifted => Status::Drifted,
            Operation::Get | Operation::Export => Status::Read,
            Operation::Set if any(|s| *s == Status::Changed).is_some() => Status::Changed,
            Operation::Test | Operation::Set => Status::InState,
        }
    }

    fn settle(&mut self, id: NodeId, status: Status) {
        self.report.settle(id, status);
        self.settled(id);
    }

    /// Lets go on what waited for a node that is settled now.
    fn settled(&mut self, id: NodeId) {
        self.sleep(id);
        self.unsettled -= 1;
        if self.mode.execution == Execution::WhatIf {
            self.foresight.settled(&self.graph, id);
        }
        for waiting in std::mem::take(&mut self.needed_by[id.index()]) {
            self.satisfied(waiting);
        }
        let graph = Arc::clone(&self.graph);
        // A holder that is left out never opens; its members follow it.
        if let Role::Holder { inner, .. } = graph.node(id).role
            && self.open_members[inner.index()] > 0
        {
            graph.scope(inner).members.iter().for_each(|member| self.satisfied(*member));
        }
        let open = &mut self.open_members[graph.node(id).scope.index()];
        *open -= 1;
        if let (0, Some(holder)) = (*open, graph.holder(id)) {
            self.wake(holder);
        }
    }

    fn satisfied(&mut self, id: NodeId) {
        let open = &mut self.open_needs[id.index()];
        *open = open.saturating_sub(1);
        self.wake(id);
    }

    /// Makes a node ready if nothing is missing and it is not settled.
    fn wake(&mut self, id: NodeId) {
        if self.open_needs[id.index()] == 0 && self.report.status(id).is_none() {
            self.ready.insert((self.rank[id.index()], id));
        }
    }

    fn sleep(&mut self, id: NodeId) {
        self.ready.remove(&(self.rank[id.index()], id));
    }

    /// After a crash: what was asked and not answered is asked again, from the test on, since nobody knows how far a
    /// set came. If the test finds the desired state then, that set was the change.
    fn ask_again(&mut self) {
        for (id, operation) in std::mem::take(&mut self.asked) {
            let was_set = operation == Operation::Set && self.report.record(id).tested.is_some();
            if was_set && self.mode.execution == Execution::Actual {
                self.cut_off.insert(id);
            }
            self.report.forget(id);
            self.wake(id);
        }
    }

    /// The values of the outputs of the outermost document, in the order declared, or what is wrong with them.
    ///
    /// Left out are those whose condition is false, those of secure type, and in what-if all: they tell of what was done.
    pub fn outputs(&self) -> Vec<(String, Result<Value, Diagnostic>)> {
        let Some(scope) = self.graph.scopes.first().filter(|_| self.mode.execution == Execution::Actual) else {
            return Vec::new();
        };
        let place =
            Place { scopes: &self.graph.scopes, scope: ScopeId(0), turn: None, facts: &self.facts, seal: &*self.seal };
        let view = View { place, run: self };
        let shown = scope.document.outputs.iter().filter(|output| !output.data_type.value.is_secure());
        shown.filter_map(|output| Some((output.name.value.clone(), self.output(output, &view)?))).collect()
    }

    fn output(&self, output: &Output, view: &View<'_>) -> Option<Result<Value, Diagnostic>> {
        let wanted = output.condition.as_ref().map(|condition| evaluate(condition, view));
        match wanted {
            None | Some(Ok(Value::Bool(true))) => {}
            Some(Ok(_)) => return None,
            Some(Err(halt)) => return Some(Err(self.halted_output(&halt))),
        }
        Some(match evaluate(&output.value, view) {
            Ok(value) if fits(output.data_type.value, &value) => Ok(sealing_wrapped(value, &*self.seal)),
            Ok(value) => {
                let (name, wanted) = (&output.name.value, output.data_type.value.as_str());
                let message = format!("Output '{name}' is {}, but is declared as '{wanted}'", value.described());
                Err(Diagnostic::error(&codes::WRONG_OUTPUT, output.value.span, message))
            }
            Err(halt) => Err(self.halted_output(&halt)),
        })
    }

    fn halted_output(&self, halt: &Halt) -> Diagnostic {
        halt.diagnostic(&self.sources).unwrap_or_else(|| {
            let message = match &halt.stop {
                Stop::Missing(key) => match self.facts.get(key) {
                    Some(Err(reason)) => reason.clone(),
                    _ => "the machine was not asked for a value that this needs".to_owned(),
                },
                _ => "it depends on what is not known".to_owned(),
            };
            Diagnostic::error(&codes::NO_FACT, halt.span, message)
        })
    }

    /// What the outputs ask of the machine, to be learned before they are computed.
    pub fn output_wants(&self) -> BTreeSet<FactKey> {
        let Some(scope) = self.graph.scopes.first() else { return BTreeSet::new() };
        let place =
            Place { scopes: &self.graph.scopes, scope: ScopeId(0), turn: None, facts: &self.facts, seal: &*self.seal };
        let view = View { place, run: self };
        let nodes = scope.document.outputs.iter().flat_map(|output| output.condition.iter().chain([&output.value]));
        let wanted = nodes.filter_map(|node| match evaluate(node, &view).err()?.stop {
            Stop::Missing(key) if !self.facts.contains_key(&key) => Some(key),
            _ => None,
        });
        wanted.collect()
    }
}

fn fits(wanted: DataType, value: &Value) -> bool {
    match wanted {
        DataType::String | DataType::SecureString => matches!(value, Value::String(_) | Value::Sealed(_)),
        DataType::Int => value.as_i64().is_some() || matches!(value, Value::Sealed(_)),
        DataType::Bool => matches!(value, Value::Bool(_) | Value::Sealed(_)),
        DataType::Object | DataType::SecureObject => matches!(value, Value::Object(_) | Value::Sealed(_)),
        DataType::Array => matches!(value, Value::Array(_) | Value::Sealed(_)),
    }
}

/// Whether a set with this desired state removes the instance by `delete`.
pub(crate) fn deletes(capabilities: &Capabilities, desired: &Value) -> bool {
    let absent = desired.as_object().and_then(|object| object.get("_exist")).and_then(Value::as_bool) == Some(false);
    absent && capabilities.delete && !capabilities.set_handles_exist
}

/// What is decided about one node.
enum Decision {
    Note(Fact),
    Want(FactKey),
    Ask(Call),
}

/// What keeps a condition or properties from being evaluated.
enum Trouble {
    Halt(Halt),
    Finding(Diagnostic),
}
