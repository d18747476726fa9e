//! Idem's results of scripted states, held against those of a run with the reconciler `basic`, in virtual time.
//!
//! The recorded cases lie outside of the repository; `corpus/idem/deviations.json` lists where stead differs, and
//! why.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![expect(clippy::disallowed_methods, reason = "the cases are files; the core itself reads none")]

#[path = "support/catalog.rs"]
mod catalog;
#[path = "support/prepare.rs"]
mod prepare;
#[path = "support/seal.rs"]
mod seal;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value as Json, json};
use stead_core::call::{Call, Changed, Execution, Failure, FailureKind, Outcome, Pending, Response, Verification};
use stead_core::destruction::Effects;
use stead_core::event::{Event, EventKind, Mode, Status};
use stead_core::graph::Graph;
use stead_core::report::Record;
use stead_core::run::policy::{Policy, SinglePass};
use stead_core::run::reconcile::Reconciler;
use stead_core::run::{Room, Run, Setup};
use stead_core::value::Value;
use stead_testkit::Case;

type Members = Map<String, Json>;

#[test]
fn basic_does_what_idem_does() {
    let folder = stead_testkit::repository();
    let Ok(cases) = std::fs::read_to_string(folder.join("../shared/corpus/idem/cases.json")) else {
        return stead_testkit::skip("basic_does_what_idem_does", "the recorded cases are not there");
    };
    let deviations = std::fs::read_to_string(folder.join("corpus/idem/deviations.json")).unwrap();
    let cases: BTreeMap<String, Json> = serde_json::from_str(&cases).unwrap();
    let mut deviations: BTreeMap<String, Json> = serde_json::from_str(&deviations).unwrap();
    let mut wrong = String::new();
    let deviating = deviations.len();
    for (name, case) in &cases {
        let mut expected = expectation(&case["out"]);
        if let Some(deviation) = deviations.remove(name) {
            assert!(deviation["reason"].is_string(), "{name}: a deviation has a reason");
            let same = expected.clone();
            expected.extend(deviation["stead"].as_object().unwrap().clone());
            assert_ne!(Json::from(expected.clone()), Json::from(same), "{name} does not deviate");
        }
        let found = Json::from(found(&case["in"]));
        if found != Json::from(expected.clone()) {
            writeln!(wrong, "{name}:\n  expected {}\n  found    {found}", Json::from(expected)).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(deviations.is_empty(), "there are no such cases: {:?}", deviations.keys());
    eprintln!("{} cases of Idem, {} of them with another answer", cases.len(), deviating);
}

#[test]
fn each_defect_names_tests_that_exist() {
    assert_eq!(stead_testkit::check_table("corpus/idem/README.md"), 12);
}

/// Returns the recording in the form of the findings: comments are not compared.
fn expectation(out: &Json) -> Members {
    let empty = Members::new();
    let states = out["states"].as_object().unwrap_or(&empty).iter().map(|(tag, state)| {
        let name = tag.split("_|-").nth(1).unwrap_or(tag);
        (name.to_owned(), json!({ "result": state["result"], "changes": state["changes"] }))
    });
    let calls = out["calls"].as_array().into_iter().flatten().filter_map(Json::as_str).map(|call| {
        // A state of another module, which has its own words for its first call.
        if let Some((name, _)) = call.split_once(" present ") { format!("{name} call 1") } else { call.to_owned() }
    });
    Members::from_iter([
        ("re_runs_count".to_owned(), out["loop"]["re_runs_count"].as_u64().unwrap_or(0).into()),
        ("waits".to_owned(), out["waits"].clone()),
        ("calls".to_owned(), calls.collect::<Vec<_>>().into()),
        ("states".to_owned(), Json::Object(states.collect())),
    ])
}

/// One state of a case.
struct State<'a> {
    module: &'a str,
    name: &'a str,
    script: Vec<Json>,
    requisites: BTreeMap<&'a str, Vec<&'a str>>,
}

fn states(case: &Json) -> Vec<State<'_>> {
    let stated = case["states"].as_object().unwrap();
    let matching = |pattern: &str| -> Vec<&str> {
        let matches = |name: &&str| pattern.strip_suffix('*').map_or(*name == pattern, |start| name.starts_with(start));
        stated.keys().map(String::as_str).filter(matches).collect()
    };
    let mut found = Vec::new();
    for (name, functions) in stated {
        let (function, arguments) = functions.as_object().unwrap().iter().next().unwrap();
        let arguments = arguments.as_array().unwrap().iter().flat_map(|each| each.as_object().unwrap());
        let mut state = State {
            module: function.split('.').next().unwrap(),
            name,
            script: Vec::new(),
            requisites: BTreeMap::new(),
        };
        for (key, value) in arguments {
            let targets = || {
                value
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|target| target.as_object()?.values().next()?.as_str())
            };
            match key.as_str() {
                "script" => state.script.clone_from(value.as_array().unwrap()),
                _ if value.is_array() => {
                    let names = targets().flat_map(|target| match matching(target) {
                        found if found.is_empty() => vec![target],
                        found => found,
                    });
                    state.requisites.insert(key, names.collect());
                }
                // An argument of a resource that a file stands behind: it is created by its first call.
                _ => state.script = vec![present(name)],
            }
        }
        let bound = serde_json::to_string(&state.script).unwrap();
        if let Some(source) = bound.split("${").nth(1).and_then(|rest| rest.split(':').nth(1)) {
            state.requisites.entry("require").or_default().extend(matching(source));
        }
        found.push(state);
    }
    found
}

fn present(name: &str) -> Json {
    let state = json!({ "name": name, "resource_id": name, "size": 1, "color": "red", "secret": null });
    json!({ "result": true, "changes": { "old": {}, "new": state }, "new_state": state, "old_state": null })
}

/// Returns the states as a document. Of `watch` and `listen` only the states themselves are there, not what they call
/// when something changed.
fn document(states: &[State<'_>]) -> String {
    let mut text = "$schema: s\nresources:\n".to_owned();
    for state in states {
        let of = |keys: &[&str]| -> Vec<String> {
            let named = keys.iter().filter_map(|key| state.requisites.get(key)).flatten();
            named.map(|name| format!("Test/Own:{name}")).collect()
        };
        let mut directives = Members::new();
        for (directive, keys) in [
            ("requireAny", &["require_any"][..]),
            ("onChanges", &["onchanges", "onchanges_any"][..]),
            ("onFailure", &["onfail", "onfail_any"][..]),
        ] {
            let ids = of(keys);
            if !ids.is_empty() {
                directives.insert(directive.to_owned(), json!(ids));
            }
        }
        if let Some(targets) = state.requisites.get("prereq") {
            directives.insert("prereq".to_owned(), json!(targets));
        }
        if let Some(wait) = wait(state.module) {
            directives.insert("reconcileWait".to_owned(), wait);
        }
        let instance = json!({
            "type": if state.module == "nope" { "Nope/Run" } else { "Test/Own" },
            "name": state.name,
            "dependsOn": of(&["require", "watch"]),
            "directives": directives,
        });
        writeln!(text, "- {instance}").unwrap();
    }
    text
}

/// The wait that a module of the recorded cases states.
fn wait(module: &str) -> Option<Json> {
    Some(match module {
        "seqs0" => json!({ "static": { "wait_in_seconds": 0 } }),
        "seqs1" => json!({ "static": { "wait_in_seconds": 1 } }),
        "seqs8" => json!({ "static": { "wait_in_seconds": 8 } }),
        "seqx" => json!({ "exponential": { "wait_in_seconds": 2, "multiplier": 10 } }),
        "seqx1" => json!({ "exponential": { "wait_in_seconds": 1, "multiplier": 3 } }),
        "seqr" => json!({ "random": { "min_value": 4, "max_value": 9 } }),
        "sequ" => json!({ "fibonacci": { "wait_in_seconds": 1 } }),
        _ => return None,
    })
}

/// Answers as the scripts say.
struct Scripts<'a> {
    states: &'a [State<'a>],
    called: BTreeMap<String, usize>,
    /// The members that each made so far, where it has no states of its own.
    made: BTreeMap<String, Members>,
    calls: Vec<String>,
}

impl Scripts<'_> {
    fn answer(&mut self, call: &Call) -> Response {
        let name = call.name().to_string();
        let state = self.states.iter().find(|state| state.name == name).unwrap();
        let count = self.called.entry(name.clone()).or_default();
        *count += 1;
        let step = state.script.get(*count - 1).or(state.script.last()).cloned().unwrap_or_default();
        // What a rule of its own looks at is not `rerun_data`.
        let data = call.pending.as_ref().filter(|_| state.module != "seqp").map(|data| {
            let data = data.to_redacted_json().to_string().replace('"', "'").replace(':', ": ").replace(',', ", ");
            format!(" rerun_data={data}")
        });
        let test = if call.execution == Execution::WhatIf { " test" } else { "" };
        self.calls.push(format!("{name} call {count}{test}{}", data.unwrap_or_default()));
        let outcome = self.outcome(&name, state.module, &step, *self.called.get(&name).unwrap());
        Response::of(outcome)
    }

    fn outcome(&mut self, name: &str, module: &str, step: &Json, count: usize) -> Outcome {
        let failure = |message: &str| Outcome::Failed(Failure::new(FailureKind::Exit(1), message).into());
        let is_realized = step["result"] == true;
        // Rules of two modules: one is pending until its state has come to 6, the other raises an error.
        let is_pending = is_realized && ((module == "seqp" && count < 6) || !step["rerun_data"].is_null());
        if is_pending {
            let data = if module == "seqp" { &step["new_state"] } else { &step["rerun_data"] };
            let pending = Pending { message: "at work".to_owned(), data: Some(data.clone().into()), after: None };
            return Outcome::Pending(pending.into());
        }
        if module == "seqpr" {
            return failure("is_pending blew up");
        }
        let (before, after) = self.states_of(name, step);
        if !is_realized && before == after {
            return failure(step["comment"].as_str().unwrap_or("no"));
        }
        let changed = after.keys().filter(|key| after.get(*key) != before.get(*key)).cloned().collect();
        let verified = if is_realized { Verification::InState } else { Verification::Differs(vec!["x".to_owned()]) };
        let [before, after] = [before, after].map(|state| Arc::new(Value::from(Json::from(state))));
        let (what_if, presumed, effects) = (Vec::new(), None, Effects::default());
        let changed =
            Changed { before, after, changed: Some(changed), what_if, unknown: None, presumed, effects, verified };
        Outcome::Changed(Box::new(changed))
    }

    /// The state before a call and after it.
    fn states_of(&mut self, name: &str, step: &Json) -> (Members, Members) {
        let members = |json: &Json| json.as_object().cloned();
        if let Some(after) = members(&step["new_state"]) {
            let creates = step["changes"].as_object().is_some_and(|changes| !changes.is_empty());
            let before = members(&step["old_state"]).unwrap_or(if creates { Members::new() } else { after.clone() });
            return (before, after);
        }
        let made = self.made.entry(name.to_owned()).or_default();
        let before = made.clone();
        made.extend(members(&step["changes"]).unwrap_or_default());
        (before, made.clone())
    }
}

fn found(case: &Json) -> Members {
    let states = states(case);
    let prepared = prepare::prepare(&Case::of("main.yaml", &document(&states))).unwrap();
    let Some(graph) = prepared.graph else {
        let codes: Vec<&str> = prepared.findings.iter().map(|finding| finding.code.id).collect();
        return Members::from_iter([
            ("re_runs_count".to_owned(), 0.into()),
            ("waits".to_owned(), json!([])),
            ("calls".to_owned(), json!([])),
            ("states".to_owned(), json!({})),
            ("refused".to_owned(), json!(codes)),
        ]);
    };
    let policy: Arc<dyn Policy> = if case["plugin"] == "none" {
        Arc::new(SinglePass)
    } else {
        let most = case["max"].as_u64().map_or(Reconciler::MAX_RE_RUNS, |most| u32::try_from(most).unwrap());
        Arc::new(Reconciler { max_re_runs: most, ..Reconciler::basic(3) })
    };
    let mode = if case["test"] == true { Mode::PLAN } else { Mode::APPLY };
    let graph = Arc::new(graph);
    let setup =
        Setup { policy, ..Setup::new(Arc::clone(&graph), Arc::new(prepared.sources), Arc::new(seal::Legible), mode) };
    let mut run = Run::new(setup);
    let mut scripts = Scripts { states: &states, called: BTreeMap::new(), made: BTreeMap::new(), calls: Vec::new() };
    let waits = drive(&mut run, &mut scripts);
    Members::from_iter([
        ("re_runs_count".to_owned(), run.report().re_runs.into()),
        ("waits".to_owned(), json!(waits)),
        ("calls".to_owned(), json!(scripts.calls)),
        ("states".to_owned(), Json::Object(results(&graph, &run, &states))),
    ])
}

/// Drives a run in which calls take no time; returns how long it waited each time.
fn drive(run: &mut Run, scripts: &mut Scripts<'_>) -> Vec<i64> {
    let (mut now, mut waits) = (Timestamp::UNIX_EPOCH, Vec::new());
    loop {
        let next = run.next(now, &Room::of(1));
        let mut kinds = next.events;
        kinds.extend(next.calls.iter().map(|call| call.started()));
        if kinds.is_empty() {
            let Some(wake) = next.wake else { return waits };
            waits.push((wake - now).round(jiff::Unit::Second).unwrap().get_seconds());
            now = wake;
            continue;
        }
        record(run, now, kinds);
        for call in next.calls {
            let response = scripts.answer(&call);
            let ended = run.observe(&call, response, std::time::Duration::ZERO, None);
            record(run, now, vec![ended]);
        }
    }
}

fn record(run: &mut Run, now: Timestamp, kinds: Vec<EventKind>) {
    let events: Vec<Event> = run.stamp(now, kinds);
    for event in &events {
        run.apply(event).unwrap();
    }
}

fn results(graph: &Graph, run: &Run, states: &[State<'_>]) -> Members {
    let of = |name: &str| graph.iter().find(|(_, node)| *node.name == *name).unwrap().0;
    let result = |state: &State<'_>| {
        let record = run.report().record(of(state.name));
        let result = match record.status().unwrap() {
            Status::InState | Status::Changed => json!(true),
            Status::Skipped(reason) if reason.clause().is_some() => json!("skipped"),
            _ => json!(false),
        };
        (state.name.to_owned(), json!({ "result": result, "changes": changes(record, state) }))
    };
    states.iter().map(result).collect()
}

/// Returns the changes over all runs of a state, in the form of its scripts.
fn changes(record: &Record, state: &State<'_>) -> Json {
    let single = || record.changed().map(|changed| (&*changed.before, &*changed.after));
    let Some((before, after)) = record.net_change().or_else(single) else { return json!({}) };
    let (before, after) = (before.to_redacted_json(), after.to_redacted_json());
    let only = |one: &Json, other: &Json| -> Members {
        let members = one.as_object().unwrap().iter().filter(|(key, value)| other.get(key.as_str()) != Some(*value));
        members.map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    let (old, new) = (only(&before, &after), only(&after, &before));
    if state.script.iter().all(|step| step["new_state"].is_null()) {
        return Json::Object(new);
    }
    let names_both = state.script.iter().any(|step| step["changes"].get("old").is_some());
    let mut changes = Members::new();
    for (key, members) in [("old", old), ("new", new)] {
        if !members.is_empty() || (names_both && !changes.contains_key(key) && record.is_changed()) {
            changes.insert(key.to_owned(), Json::Object(members));
        }
    }
    Json::Object(changes)
}
