//! The law of calls that are carried out together: each comes to what it comes to alone, and a method is asked of all that wait for it.
//!
//! `STEAD_TOGETHER=20000` is how many groups are drawn.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value as Json, json};
use stead_core::call::{Call, Execution, Failure, FailureKind, Operation, Pending, Tested, Wanted};
use stead_core::id::{NodeId, ResourceId, TypeName};
use stead_core::instance_path::InstancePath;
use stead_core::manifest::{Capabilities, Implementation, Manifest, Version};
use stead_core::planner::Method;
use stead_core::value::Value;
use stead_host::operate::{Called, carry_out, carry_out_together};
use stead_host::provider::{Asked, Context, MethodAnswer, Plain, Provider, SetReply, State, TestReply, Together};
use stead_host::vault::MemoryVault;
use stead_testkit::times;

/// A number below another, the same for the same things.
fn drawn(of: impl Hash, below: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish() % below
}

/// Answers by the name of an instance and the method alone, and notes what is asked together.
#[derive(Default)]
struct Scripted(Mutex<Vec<(Method, usize)>>);

fn state(name: &str, method: &str) -> Json {
    json!({"a": drawn((name, method, "a"), 2), "b": drawn((name, "b"), 2)})
}

fn fails(name: &str, method: &str) -> Result<(), Failure> {
    match drawn((name, method, "fails"), 8) {
        0 => Err(Failure::new(FailureKind::Exit(3), format!("{method} of {name} fails"))),
        1 if method == "test" => Err(Failure::new(FailureKind::Deadline, "it takes too long")),
        _ => Ok(()),
    }
}

fn still_working(name: &str, method: &str) -> Option<Pending> {
    let pending = || Pending { message: format!("{method} of {name} goes on"), data: None, after: None };
    (drawn((name, method, "pending"), 8) == 0).then(pending)
}

impl Provider for Scripted {
    fn together(&self) -> Option<&dyn Together> {
        Some(self)
    }

    fn get(&self, cx: &Context, _input: &Plain) -> Result<State, Failure> {
        fails(&cx.name, "get")?;
        Ok(Plain::new(state(&cx.name, "get")))
    }

    fn test(&self, cx: &Context, _input: &Plain) -> Result<TestReply, Failure> {
        fails(&cx.name, "test")?;
        assert!(drawn((&cx.name, "panics"), 16) > 0, "a panic that the test wants");
        let actual = (drawn((&cx.name, "reports"), 3) > 0).then(|| Plain::new(state(&cx.name, "get")));
        let in_desired_state =
            [None, Some(true), Some(false)][usize::try_from(drawn((&cx.name, "verdict"), 3)).unwrap()];
        Ok(TestReply { actual, in_desired_state, pending: still_working(&cx.name, "test"), ..TestReply::default() })
    }

    fn set(&self, cx: &Context, _input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        assert_eq!(cx.changes, execution == Execution::Actual);
        fails(&cx.name, "set")?;
        let after = (drawn((&cx.name, "after"), 2) == 0).then(|| Plain::new(state(&cx.name, "set")));
        let pending = still_working(&cx.name, "set").filter(|_| execution == Execution::Actual);
        Ok(SetReply { after, pending, ..SetReply::default() })
    }

    fn delete(&self, cx: &Context, _input: &Plain, _execution: Execution) -> Result<Vec<String>, Failure> {
        fails(&cx.name, "delete")?;
        Ok(vec!["it goes".to_owned()])
    }
}

impl Together for Scripted {
    fn validate_all(&self, all: &[Asked<'_>]) -> Vec<Result<(), Failure>> {
        all.iter().map(|_| Ok(())).collect()
    }

    fn answer_all(&self, method: Method, all: &[Asked<'_>]) -> Vec<Result<MethodAnswer, Failure>> {
        self.0.lock().unwrap().push((method, all.len()));
        let answer = |asked: &Asked<'_>| match method {
            Method::Get => self.get(asked.cx, asked.input).map(MethodAnswer::State),
            Method::Test => self.test(asked.cx, asked.input).map(MethodAnswer::Test),
            Method::Set(execution) => self.set(asked.cx, asked.input, execution).map(MethodAnswer::Set),
            Method::Delete(execution) => self.delete(asked.cx, asked.input, execution).map(MethodAnswer::Deleted),
        };
        all.iter().map(answer).collect()
    }
}

fn call(name: &str, seed: u64) -> Call {
    let can = |what: &str, of: u64| drawn((name, "can", what), of) > 0;
    let capabilities = Capabilities {
        get: true,
        test: can("test", 2),
        set: true,
        set_what_if: can("whatIf", 2),
        delete: can("delete", 2),
        delete_what_if: can("deleteWhatIf", 2),
        ..Capabilities::default()
    };
    let (type_name, version) = (TypeName::parse("Test/Scripted").unwrap(), Version::parse("1.0.0").unwrap());
    let manifest = Manifest { capabilities, ..Manifest::new(type_name.clone(), version, Implementation::Engine) };
    // Those that are carried out together do the same.
    let (operation, execution) = [
        (Operation::Get, Execution::Actual),
        (Operation::Test, Execution::Actual),
        (Operation::Set, Execution::Actual),
        (Operation::Set, Execution::WhatIf),
        (Operation::Delete, Execution::Actual),
    ][usize::try_from(seed % 5).unwrap()];
    let tested = Tested {
        unknown: None,
        actual: Arc::new(Value::from(state(name, "get"))),
        in_desired_state: drawn((name, "tested"), 4) == 0,
        differing: vec!["a".to_owned()],
        predicted: None,
        metadata: None,
    };
    let exists = drawn((name, "exist"), 4) > 0;
    let desired = if exists { json!({"a": 1, "b": 1}) } else { json!({"a": 1, "_exist": false}) };
    Call {
        instance: InstancePath::new(None, ResourceId { type_name, name: name.into() }, NodeId(0)),
        manifest: Arc::new(manifest),
        operation,
        execution,
        desired: Arc::new(Value::from(desired)),
        tested: (operation == Operation::Set && drawn((name, "was tested"), 2) == 0).then(|| Arc::new(tested)),
        pending: None,
        metadata: None,
        export_filter: None,
        wanted: [Wanted::Answer, Wanted::Verdict, Wanted::Reported, Wanted::All]
            [usize::try_from(drawn((name, "wanted"), 4)).unwrap()],
    }
}

#[test]
fn what_is_carried_out_together_comes_to_what_it_comes_to_alone() {
    let (vault, mut batched) = (MemoryVault::default(), 0);
    for seed in 0..u64::try_from(times("STEAD_TOGETHER", 400)).unwrap() {
        let names: Vec<String> = (0..=drawn((seed, "count"), 8)).map(|at| format!("{seed}-{at}")).collect();
        let may_panic = |name: &String| drawn((name, "panics"), 16) == 0;
        // A panic is one of the call, and so of all that it has.
        let names: Vec<&String> = names.iter().filter(|name| !may_panic(name)).collect();
        let calls: Vec<Call> = names.iter().map(|name| call(name, seed)).collect();
        let contexts: Vec<Context> =
            names.iter().map(|name| Context { name: name.as_str().into(), ..Context::new(Path::new("/")) }).collect();
        let provider = Scripted::default();
        let of = |(call, cx)| Called { call, provider: &provider, cx };
        let called: Vec<Called<'_>> = calls.iter().zip(&contexts).map(of).collect();
        let together = carry_out_together(&called, &vault);
        let asked = provider.0.lock().unwrap().clone();
        batched += asked.iter().filter(|(_, count)| *count > 1).count();
        let alone: Vec<_> =
            called.iter().map(|called| carry_out(called.call, called.provider, &vault, called.cx)).collect();
        assert_eq!(format!("{together:#?}"), format!("{alone:#?}"), "seed {seed}");
        let count = |is: fn(&Method) -> bool| asked.iter().filter(|(method, _)| is(method)).count();
        assert!(count(|method| matches!(method, Method::Set(_))) <= 1, "seed {seed}: {asked:?}");
        assert!(count(|method| matches!(method, Method::Delete(_))) <= 1, "seed {seed}: {asked:?}");
        assert!(count(|method| *method == Method::Get) <= 3, "seed {seed}: {asked:?}");
        assert!(count(|method| *method == Method::Test) <= 2, "seed {seed}: {asked:?}");
    }
    assert!(batched > 0, "nothing was asked together");
}

/// What panics for one of several has failed for all of them, and nothing else has.
#[test]
fn a_panic_is_one_of_the_call() {
    let vault = MemoryVault::default();
    let name = |panics: bool| {
        let is_right = |name: &String| {
            (drawn((name, "panics"), 16) == 0) == panics
                && fails(name, "test").is_ok()
                && drawn((name, "can", "test"), 2) > 0
        };
        (0..10_000).map(|at| format!("p{at}")).find(is_right).unwrap()
    };
    let names = [name(true), name(false)];
    let calls = names.each_ref().map(|name| call(name, 1));
    let contexts = names.each_ref().map(|name| Context { name: name.as_str().into(), ..Context::new(Path::new("/")) });
    let provider = Scripted::default();
    let called: Vec<Called<'_>> =
        calls.iter().zip(&contexts).map(|(call, cx)| Called { call, provider: &provider, cx }).collect();
    let shown = format!("{:?}", carry_out_together(&called, &vault));
    assert_eq!(shown.matches("internal error in the resource").count(), 2, "{shown}");
}
