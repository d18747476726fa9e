//! Laws of every operation on every resource, whatever methods it has and whatever they answer.

#![expect(clippy::unwrap_used, reason = "a test may fail this way")]

use std::sync::Arc;

use stead_core::call::{Call, Execution, Failure, FailureKind, Operation, Outcome, Pending, Tested, Wanted};
use stead_core::diff::Rules;
use stead_core::id::{NodeId, ResourceId, TypeName};
use stead_core::instance_path::InstancePath;
use stead_core::manifest::{Capabilities, Implementation, Manifest, Version};
use stead_core::planner::{Method, Planner, PlannerStep, Reading, Reply, SetReply};
use stead_core::value::Value;

/// More methods than one operation is ever made of.
const MOST: usize = 6;

const OPERATIONS: [Operation; 5] =
    [Operation::Get, Operation::Test, Operation::Set, Operation::Delete, Operation::Export];

#[test]
fn every_operation_ends_and_calls_only_what_it_may() {
    let mut invoked = 0;
    for bits in 0..1 << 11 {
        let manifest = Arc::new(manifest(bits));
        for call in OPERATIONS.into_iter().flat_map(|operation| calls(&manifest, operation)) {
            for answers in [Answers::Full, Answers::Terse, Answers::Pending] {
                invoked += assert_ends(&call, answers);
            }
        }
    }
    assert!(invoked > 100_000, "methods are invoked");
}

fn manifest(bits: u32) -> Manifest {
    let has = |bit: u32| bits & (1 << bit) != 0;
    let mut capabilities = Capabilities::default();
    let abilities = [
        &mut capabilities.get,
        &mut capabilities.set,
        &mut capabilities.set_handles_exist,
        &mut capabilities.set_what_if,
        &mut capabilities.implements_pretest,
        &mut capabilities.test,
        &mut capabilities.delete,
        &mut capabilities.delete_what_if,
        &mut capabilities.export,
        &mut capabilities.export_filters,
        &mut capabilities.reports_before,
    ];
    (0..).zip(abilities).for_each(|(bit, ability)| *ability = has(bit));
    let type_name = TypeName::parse("Test/Any").unwrap();
    let manifest = Manifest::new(type_name, Version::parse("1.0.0").unwrap(), Implementation::InProcess);
    Manifest { capabilities, ..manifest }
}

fn calls(manifest: &Arc<Manifest>, operation: Operation) -> Vec<Call> {
    let id = ResourceId { type_name: manifest.type_name.clone(), name: "a".into() };
    let instance = InstancePath::new(None, id, NodeId(0));
    let mut calls = Vec::new();
    for execution in [Execution::Actual, Execution::WhatIf] {
        for desired in [Value::Null, json(r#"{"x": 1}"#), json(r#"{"_exist": false}"#)] {
            for (tested, wanted) in [
                (None, Wanted::Reported),
                (None, Wanted::Verdict),
                (None, Wanted::Answer),
                (Some(true), Wanted::Reported),
                (Some(false), Wanted::All),
            ] {
                let found = |in_desired_state| Tested {
                    unknown: None,
                    actual: json(r#"{"x": 2}"#).into(),
                    in_desired_state,
                    differing: vec![],
                    predicted: None,
                    metadata: None,
                };
                calls.push(Call {
                    instance: instance.clone(),
                    manifest: Arc::clone(manifest),
                    operation,
                    execution,
                    desired: Arc::new(desired.clone()),
                    tested: tested.map(|in_state| Arc::new(found(in_state))),
                    pending: None,
                    export_filter: None,
                    metadata: None,
                    wanted,
                });
            }
        }
    }
    calls
}

fn json(text: &str) -> Value {
    serde_json::from_str::<serde_json::Value>(text).unwrap().into()
}

/// How much a resource says.
#[derive(Clone, Copy, PartialEq)]
enum Answers {
    /// States and verdicts.
    Full,
    /// As little as is allowed.
    Terse,
    /// Where it can, that it is still at work.
    Pending,
}

#[test]
fn a_change_that_was_made_is_reported_whatever_fails_afterwards() {
    let (mut lost, mut made) = (Vec::new(), 0);
    for bits in 0..1 << 11 {
        let manifest = Arc::new(manifest(bits));
        let changes = [Operation::Set, Operation::Delete].into_iter().flat_map(|operation| calls(&manifest, operation));
        for call in changes.filter(|call| call.execution == Execution::Actual) {
            let mut planner = Planner::new(&call, &call.desired, Rules::default());
            let mut has_acted = false;
            let ended = loop {
                match planner.step() {
                    Ok(PlannerStep::Invoke(method)) => {
                        let answered = if has_acted { Err(unreadable()) } else { Ok(answer(method, Answers::Terse)) };
                        has_acted |= matches!(method, Method::Set(_) | Method::Delete(_));
                        if let Err(failure) = planner.observe(answered) {
                            break Err(failure);
                        }
                    }
                    Ok(PlannerStep::Export) => panic!("it changes nothing"),
                    Ok(PlannerStep::Done(response)) => break Ok(response.outcome),
                    Err(failure) => break Err(failure),
                }
            };
            made += usize::from(has_acted);
            if has_acted && !matches!(ended, Ok(Outcome::Changed(_) | Outcome::Deleted(_))) {
                lost.push(call.manifest.capabilities);
            }
        }
    }
    assert!(made > 1000, "{made} changes were made");
    assert!(lost.is_empty(), "{} changes are lost, the first with {:?}", lost.len(), lost.first());
}

/// A look that fails takes nothing away from a set, nor from a verdict.
#[test]
fn a_state_that_cannot_be_read_is_unknown() {
    let mut unread = 0;
    for bits in 0..1 << 11 {
        let manifest = Arc::new(manifest(bits));
        for call in [Operation::Test, Operation::Set].into_iter().flat_map(|operation| calls(&manifest, operation)) {
            let ended = |can_read: bool| {
                let mut planner = Planner::new(&call, &call.desired, Rules::default());
                let mut methods = Vec::new();
                loop {
                    match planner.step() {
                        Ok(PlannerStep::Invoke(method)) => {
                            let fails = method == Method::Get && !can_read;
                            methods.extend((!matches!(method, Method::Get | Method::Test)).then_some(method));
                            let answered = if fails { Err(unreadable()) } else { Ok(decided(method)) };
                            if planner.observe(answered).is_err() {
                                return (methods, false);
                            }
                        }
                        Ok(PlannerStep::Export) => panic!("nobody asked for it"),
                        Ok(PlannerStep::Done(_)) => return (methods, true),
                        Err(_) => return (methods, false),
                    }
                }
            };
            let ((methods, worked), (blind_methods, blind_worked)) = (ended(true), ended(false));
            let judges = manifest.capabilities.test || call.operation == Operation::Set && !methods.is_empty();
            if worked && judges {
                unread += 1;
                assert!(blind_worked && methods.iter().all(|method| blind_methods.contains(method)), "{call:?}");
            }
        }
    }
    assert!(unread > 1000, "{unread} operations answered without a state");
}

/// An answer with a verdict and no state.
fn decided(method: Method) -> Reply {
    match method {
        Method::Test => {
            Reply::Test { in_desired_state: Some(false), actual: None, differing: None, unknown: None, predicted: None }
        }
        _ => answer(method, Answers::Terse),
    }
}

fn unreadable() -> Failure {
    Failure::new(FailureKind::Protocol, "it is not JSON")
}

/// Carries out a call; how many methods were invoked.
fn assert_ends(call: &Call, answers: Answers) -> usize {
    let mut planner = Planner::new(call, &call.desired, Rules::default());
    let mut has_read = false;
    for invoked in 0..=MOST {
        match planner.step() {
            Ok(PlannerStep::Invoke(method)) => {
                assert_allowed(call, method);
                let is_set = matches!(method, Method::Set(_)) && call.manifest.capabilities.reports_before;
                assert!(!(is_set && has_read), "the answer to the set has the state before it");
                has_read |= method == Method::Get;
                planner.observe(Ok(answer(method, answers))).unwrap();
            }
            Ok(PlannerStep::Export) => {
                assert!(call.manifest.capabilities.export);
                planner.observe(Ok(Reply::Exported(Vec::new()))).unwrap();
            }
            Ok(PlannerStep::Done(_)) | Err(_) => return invoked,
        }
    }
    panic!("{:?} {:?} of {:?} does not end", call.operation, call.execution, call.manifest.capabilities);
}

fn assert_allowed(call: &Call, method: Method) {
    let has = &call.manifest.capabilities;
    let named = match method {
        Method::Get => has.get,
        Method::Test => has.test,
        Method::Set(Execution::Actual) => has.set,
        Method::Set(Execution::WhatIf) => has.set && has.set_what_if,
        Method::Delete(Execution::Actual) => has.delete,
        Method::Delete(Execution::WhatIf) => has.delete && has.delete_what_if,
    };
    assert!(named, "{method:?} is not in {has:?}");
    let sets = call.operation == Operation::Set && call.execution == Execution::Actual;
    assert!(!sets || method != Method::Get || call.wanted != Wanted::Answer, "nobody asks for a state");
    let acts = matches!(method, Method::Set(Execution::Actual) | Method::Delete(Execution::Actual));
    assert!(!acts || call.changes(), "{method:?} in {:?} {:?}", call.operation, call.execution);
}

fn answer(method: Method, answers: Answers) -> Reply {
    let reading = || Reading { state: json(r#"{"x": 2}"#).into(), metadata: None };
    let full = (answers == Answers::Full).then(reading);
    match method {
        Method::Set(_) | Method::Delete(_) if answers == Answers::Pending => {
            Reply::Pending(Pending { message: "at work".to_owned(), data: None, after: None })
        }
        Method::Get => Reply::State(reading()),
        Method::Test => {
            let in_desired_state = full.as_ref().map(|_| false);
            Reply::Test { in_desired_state, actual: full, differing: None, unknown: None, predicted: None }
        }
        Method::Set(_) => Reply::Set(SetReply { before: full.clone(), after: full, ..SetReply::default() }.into()),
        Method::Delete(_) => Reply::Deleted(Vec::new()),
    }
}
