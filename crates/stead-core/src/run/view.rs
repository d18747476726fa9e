//! The view of expressions while a run goes on: besides what is known before, the answers of instances.

use std::cell::Cell;
use std::sync::Arc;

use crate::call::{Execution, Operation, Outcome, Restart, nested_results};
use crate::document::UserFunction;
use crate::expr::{Answer, Environment, FactKey};
use crate::graph::{Adjacent, Graph, Role, ScopeView};
use crate::id::{NodeId, ResourceId};
use crate::value::{Object, Value};

use super::Run;
use crate::event::{Approach, SkipReason, Status};
use crate::report::Report;

/// The instance is there, but has no state: it was left out, or failed. No name is probably meant instead.
const WITHOUT_STATE: Answer = Answer::Absent { known: Vec::new() };

/// The view from one place of a document on a run.
pub(super) struct View<'a> {
    pub(super) place: ScopeView<'a>,
    pub(super) run: &'a Run,
    /// The instance that is looked from.
    pub(super) of: Option<NodeId>,
    /// The first instance that was read although its state may change: it has drifted in a check, or its test cannot tell.
    pub(super) read_open: Cell<Option<NodeId>>,
}

impl View<'_> {
    /// The adjacent instance of that id.
    fn find(&self, id: &ResourceId) -> Option<NodeId> {
        self.run.graph.scope(self.place.scope).ids.get(id).map(Adjacent::node)
    }

    /// The instance that excuses a fault while nothing is changed: an apply may bring it into another state.
    pub(super) fn left_open(&self) -> Option<NodeId> {
        self.read_open.get().filter(|_| self.run.only_looks())
    }

    /// There is no such instance.
    fn absent(&self) -> Answer {
        let ids = &self.run.graph.scope(self.place.scope).ids;
        Answer::Absent { known: ids.iter().map(|other| other.0.id().to_string()).collect() }
    }
}

impl Environment for View<'_> {
    fn parameter(&self, name: &str) -> Answer {
        self.place.parameter(name)
    }
    fn variable(&self, name: &str) -> Answer {
        self.place.variable(name)
    }
    fn copy_index(&self, loop_name: Option<&str>) -> Answer {
        self.place.copy_index(loop_name)
    }
    fn item(&self, called: &str) -> Answer {
        self.place.item(called)
    }
    fn fact(&self, key: &FactKey) -> Option<Value> {
        self.place.fact(key)
    }
    fn folder(&self) -> Arc<str> {
        self.place.folder()
    }
    fn seal(&self, plaintext: Value) -> Option<Value> {
        self.place.seal(plaintext)
    }
    fn function(&self, name: &str) -> Option<&UserFunction> {
        self.place.function(name)
    }
    fn function_names(&self) -> Vec<String> {
        self.place.function_names()
    }

    fn reference(&self, id: &ResourceId) -> Answer {
        let Some(node) = self.find(id) else { return self.absent() };
        let mode = self.run.mode;
        let what_if = mode.execution == Execution::WhatIf;
        let checks = mode.operation == Operation::Test && mode.approach == Approach::Converge;
        match self.run.report.status(node) {
            None | Some(Status::Skipped(SkipReason::NotSelected) | Status::Unknown(_)) => Answer::Unknown(id.clone()),
            Some(Status::Changed | Status::Undetermined) if what_if => Answer::Unknown(id.clone()),
            // The desired state of its readers follows from the state that an apply brings it into.
            Some(Status::Drifted) if checks && self.of.is_some() => Answer::Unknown(id.clone()),
            Some(
                status @ (Status::Read | Status::InState | Status::Drifted | Status::Undetermined | Status::Changed),
            ) => {
                if *status == Status::Undetermined || *status == Status::Drifted && checks {
                    self.read_open.set(self.read_open.get().or(Some(node)));
                }
                state(&self.run.graph, &self.run.report, node).map_or(WITHOUT_STATE, Answer::Value)
            }
            Some(_) => WITHOUT_STATE,
        }
    }

    fn state_changed(&self, id: &ResourceId) -> Answer {
        let Some(node) = self.find(id) else { return self.absent() };
        // It changed in an earlier run, which is news to this instance.
        if self.of.is_some_and(|of| self.run.exceptions.owed.contains(&of)) {
            return Answer::Value(Value::Bool(true));
        }
        match self.run.report.status(node) {
            None | Some(Status::Unknown(_)) => Answer::Unknown(id.clone()),
            Some(Status::Undetermined) if self.run.mode.execution == Execution::WhatIf => Answer::Unknown(id.clone()),
            Some(status) => Answer::Value(Value::Bool(*status == Status::Changed)),
        }
    }

    fn restart_required(&self, kind: &str, name: Option<&str>) -> Answer {
        let asked = |restart: &Restart| match restart {
            Restart::System(_) => kind == "system",
            Restart::Service(service) => kind == "service" && name == Some(service),
            Restart::Process { name: process, .. } => kind == "process" && name == Some(process),
        };
        Answer::Value(Value::Bool(self.run.report.restarts.iter().any(asked)))
    }
}

/// Returns what `reference()` gives of an instance: its state, or for a container the results of what is nested in it.
fn state(graph: &Graph, report: &Report, node: NodeId) -> Option<Value> {
    if let Role::Container { inner, .. } = graph.node(node).role {
        let results = graph.scope(inner).members.iter().filter_map(|member| nested_result(graph, report, *member));
        return Some(Value::Array(results.collect()));
    }
    match &report.record(node).response.as_ref()?.outcome {
        Outcome::Exported(found) => Some(Value::Array(found.iter().map(|each| each.properties.clone()).collect())),
        _ => report.record(node).complete_state().map(|state| match nested_results(state) {
            Some(results) => Value::Array(results.into_iter().cloned().collect()),
            None => without_verdict(graph, node, state.clone()),
        }),
    }
}

/// The state of a resource that states in it what a test found, without that.
fn without_verdict(graph: &Graph, node: NodeId, mut state: Value) -> Value {
    if let Value::Object(members) = &mut state
        && graph.node(node).manifest.promises.verdict_in_state
    {
        members.remove("_inDesiredState");
    }
    state
}

fn nested_result(graph: &Graph, report: &Report, node: NodeId) -> Option<Value> {
    let key = match report.record(node).response.as_ref().map(|response| &response.outcome) {
        Some(Outcome::Changed(_)) => "afterState",
        _ => "actualState",
    };
    let state = state(graph, report, node)?;
    if matches!(graph.node(node).role, Role::Container { .. }) {
        return Some(state);
    }
    Some(Value::Object(Object::from_iter([(key.to_owned(), state)])))
}
