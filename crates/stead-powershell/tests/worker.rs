//! The pool of workers, with a program that stands in for PowerShell: this very program.
//!
//! The recorded calls lie outside of the repository. The functions whose names end in `_on_real_powershell` call PowerShell
//! itself, where it is.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![expect(clippy::print_stderr, reason = "the counts are seen when the test passes, too")]

#[path = "support/declared.rs"]
mod declared;
#[path = "support/kept.rs"]
mod kept;
#[path = "support/real.rs"]
mod real;
#[path = "support/stand_in.rs"]
mod stand_in;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed as TestFailed, Trial};
use serde_json::{Value as Json, json};
use stand_in::{failure_of, leaves_early};
use stead_core::call::{Execution, FailureKind, restarts};
use stead_host::provider::{Context, Plain, Provider};
use stead_powershell::convert::Wire;
use stead_powershell::provider::{PowerShellProvider, Source};
use stead_powershell::worker::{
    Call, Deadline, Failed, Limits, Method, MethodReply, Module, Pool, Records, Settings, Stream, StreamRecord,
    WorkerError,
};
use stead_powershell_reader::resource::{DefinitionKind, Methods, Resource};
use stead_powershell_reader::text::LineColumn;
use stead_powershell_reader::types::Property;
use stead_system::Cancel;
use stead_system::process::{Environment, Exit};

const SOON: Duration = Duration::from_mins(1);

fn main() -> ExitCode {
    if stand_in::is_asked_for() {
        stand_in::main();
        return ExitCode::SUCCESS;
    }
    let tests: [(&str, fn()); 22] = [
        ("every_call_ends_once_with_its_own_answer", every_call_ends_once_with_its_own_answer),
        ("a_worker_is_kept_and_replaced", a_worker_is_kept_and_replaced),
        ("a_changed_module_gets_a_new_process", a_changed_module_gets_a_new_process),
        ("a_deadline_ends_the_process", a_deadline_ends_the_process),
        ("a_dead_worker_fails_its_call_alone", a_dead_worker_fails_its_call_alone),
        ("a_flood_on_standard_error_is_read", a_flood_on_standard_error_is_read),
        ("a_child_that_holds_the_pipes_holds_up_nobody", a_child_that_holds_the_pipes_holds_up_nobody),
        ("what_is_printed_belongs_to_the_call", what_is_printed_belongs_to_the_call),
        ("a_line_that_is_not_understood_ends_the_worker", a_line_that_is_not_understood_ends_the_worker),
        ("cancelling_ends_the_call", cancelling_ends_the_call),
        ("an_idle_worker_is_ended", an_idle_worker_is_ended),
        ("a_worker_has_the_variables_that_its_calls_name", a_worker_has_the_variables_that_its_calls_name),
        ("no_more_workers_than_the_width", no_more_workers_than_the_width),
        ("secrets_go_over_the_socket_alone", secrets_go_over_the_socket_alone),
        ("a_deadline_is_spent_once", a_deadline_is_spent_once),
        ("what_if_shows_no_secret", what_if_shows_no_secret),
        ("instances_of_classes_are_exported_and_deleted", instances_of_classes_are_exported_and_deleted),
        ("root_loads_no_modules_that_others_can_change", root_loads_no_modules_that_others_can_change),
        (
            "root_uses_no_powershell_whose_own_modules_others_can_change",
            root_uses_no_powershell_whose_own_modules_others_can_change,
        ),
        ("a_restart_is_part_of_the_state", a_restart_is_part_of_the_state),
        ("recorded_failures_are_failures", recorded_failures_are_failures),
        ("recorded_invocations_fail_as_recorded", recorded_invocations_fail_as_recorded),
    ];
    let trial = |(name, test): (&str, fn())| Trial::test(name, move || catch(test));
    let mut trials: Vec<Trial> = tests.into_iter().map(trial).collect();
    trials.push(trial((
        "root_runs_no_powershell_that_others_can_change",
        root_runs_no_powershell_that_others_can_change,
    )));
    trials.push(trial(("recorded_calls_on_real_powershell", real::recorded_calls_on_real_powershell)));
    trials.push(trial(("values_out_on_real_powershell", real::values_out_on_real_powershell)));
    trials.push(trial((
        "what_a_module_started_counts_as_memory_on_real_powershell",
        real::what_a_module_started_counts_as_memory_on_real_powershell,
    )));
    trials.push(trial((
        "an_answer_that_cannot_be_sent_fails_its_call_on_real_powershell",
        real::an_answer_that_cannot_be_sent_fails_its_call_on_real_powershell,
    )));
    trials.push(trial(("figures_on_real_powershell", real::figures_on_real_powershell)));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn catch(test: fn()) -> Result<(), TestFailed> {
    std::panic::catch_unwind(test).map_err(|_| TestFailed::without_message())
}

fn settings() -> Settings {
    let environment = Environment::of_this_process(&[]);
    Settings::new(std::env::current_exe().unwrap(), environment, 1)
}

fn limits(cancel: &Cancel) -> Limits<'_> {
    Limits { deadline: Deadline::after(SOON), output: 16 << 20, cancel, inherited: &[], to_come: 0 }
}

fn call<'a>(resource: &'a str, properties: &'a [(String, Wire)]) -> Call<'a> {
    Call {
        kind: DefinitionKind::Class,
        module: Module { path: Path::new("/m/M.psd1"), stamp: "1" },
        resource,
        method: Method::Get,
        properties,
        records: Records::Debug,
        progress: None,
        directory: Path::new("/"),
        root: Path::new("/"),
    }
}

fn carry_out(pool: &Pool, call: &Call<'_>) -> (Result<MethodReply, Failed>, Vec<StreamRecord>) {
    let mut records = Vec::new();
    let reply = pool.call(call, &limits(&Cancel::default()), &mut |record| records.push(record));
    (reply, records)
}

fn state(pool: &Pool, call: &Call<'_>) -> Json {
    serde_json::from_str(carry_out(pool, call).0.unwrap().state().unwrap().unwrap().get()).unwrap()
}

fn is_alive(pid: &Json) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

fn until_ended(pid: &Json) {
    stead_testkit::until(|| (!is_alive(pid)).then_some(()));
}

fn a_worker_is_kept_and_replaced() {
    let pool = Pool::new(settings());
    let first = state(&pool, &call("Pid", &[]));
    let second = state(&pool, &call("Pid", &[]));
    assert_eq!((&first["pid"], &second["calls"]), (&second["pid"], &json!(2)));
    drop(pool);
    until_ended(&first["pid"]);
    let by_calls = Pool::new(Settings { most_calls: 2, ..settings() });
    let calls: Vec<Json> = (0..4).map(|_| state(&by_calls, &call("Pid", &[]))["calls"].clone()).collect();
    assert_eq!(calls, [1, 2, 1, 2]);
    for replaced in [settings().isolated(), Settings { most_memory: 1, ..settings() }] {
        let pool = Pool::new(replaced);
        let calls: Vec<Json> = (0..2).map(|_| state(&pool, &call("Pid", &[]))["calls"].clone()).collect();
        assert_eq!(calls, [1, 1]);
        assert_eq!(pool.workers(), 0);
    }
}

fn a_changed_module_gets_a_new_process() {
    let pool = Pool::new(settings());
    let first = state(&pool, &call("Pid", &[]));
    let other = Module { path: Path::new("/m/Other.psd1"), stamp: "9" };
    assert_eq!(state(&pool, &Call { module: other, ..call("Pid", &[]) })["pid"], first["pid"]);
    let changed = Module { path: Path::new("/m/M.psd1"), stamp: "2" };
    let second = state(&pool, &Call { module: changed, ..call("Pid", &[]) });
    assert_ne!(first["pid"], second["pid"]);
    assert!(!is_alive(&first["pid"]));
}

/// Lines of an answer in any order, each of which may be lost, doubled, forged or late, in pieces of any size: the call ends once,
/// with what is in the lines of its own, and no later one with another's answer.
fn every_call_ends_once_with_its_own_answer() {
    let lines = [
        r#"{"id":"ID","type":"System.Boolean","output":true}"#,
        r#"{"id":"ID","stream":"verbose","message":"mé😀"}"#,
        r#"{"id":"ID","done":{"ended":true,"reboot":false}}"#,
    ];
    let forged = |id: &str, at: usize| lines[at].replace("ID", id);
    let mut answers: Vec<(Vec<String>, &str)> = vec![(lines.map(str::to_owned).to_vec(), "true")];
    // What comes behind the end is late.
    for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let has_verdict = order.iter().take_while(|line| **line != 2).any(|line| *line == 0);
        let lines = order.iter().map(|line| lines[*line].to_owned()).collect();
        answers.push((lines, if has_verdict { "true" } else { "verdict" }));
    }
    for at in 0..lines.len() {
        let whole: Vec<String> = lines.map(str::to_owned).to_vec();
        let altered = |alter: &dyn Fn(&mut Vec<String>)| {
            let mut lines = whole.clone();
            alter(&mut lines);
            lines
        };
        answers.push((altered(&|lines| drop(lines.remove(at))), ["verdict", "true", "deadline"][at]));
        answers.push((altered(&|lines| lines.insert(at, lines[at].clone())), "true"));
        answers.push((altered(&|lines| lines.insert(at, "garbage".to_owned())), "protocol"));
        answers.push((altered(&|lines| lines.extend((0..3).map(|line| forged("2", line)))), "true"));
        answers.push((altered(&|lines| lines.push(lines[at].clone())), "true"));
        for id in ["1", "2", "0000000000000002"] {
            answers.push((altered(&|lines| lines.insert(at, forged(id, at))), "protocol"));
        }
    }
    let pool = Pool::new(settings());
    for (lines, expected) in answers {
        let sent = lines.iter().map(|line| line.clone() + "\n").collect::<String>();
        let splits: &[usize] = if expected == "deadline" { &[64] } else { &[1, 2, 7, 64, 1000] };
        for split in splits {
            let properties = [("lines", sent.clone()), ("split", split.to_string())];
            let properties = properties.map(|(name, value)| (name.to_owned(), Wire::String(value)));
            let cancel = Cancel::default();
            let allowed = if expected == "deadline" { Duration::from_millis(200) } else { SOON };
            let limits = Limits { deadline: Deadline::after(allowed), ..limits(&cancel) };
            let call_of = |resource, properties| Call { method: Method::Test, ..call(resource, properties) };
            let reply = pool.call(&call_of("Raw", &properties), &limits, &mut |_| {});
            let found = match reply.and_then(|reply| Ok(reply.verdict()?)) {
                Ok(verdict) => verdict.to_string(),
                Err(Failed::Call(WorkerError::Verdict(_))) => "verdict".to_owned(),
                Err(failed) => format!("{:?}", failed.kind()).to_lowercase(),
            };
            assert_eq!(found, expected, "{sent} in pieces of {split}");
            // What comes while the next call is carried out may fail it, and nothing after it.
            let next = || carry_out(&pool, &call_of("Other", &[])).0;
            let next = next().or_else(|failed| if let Failed::Protocol(_) = failed { next() } else { Err(failed) });
            assert!(!next.unwrap().verdict().unwrap(), "another call's answer, after {sent} in pieces of {split}");
        }
    }
}

fn a_worker_has_the_variables_that_its_calls_name() {
    let pool = Pool::new(Settings { width: 2, ..settings() });
    let pid_with = |inherited: &[&str]| {
        let (cancel, inherited) =
            (Cancel::default(), inherited.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        let limits = Limits { inherited: &inherited, ..limits(&cancel) };
        let reply = pool.call(&call("Pid", &[]), &limits, &mut |_| {}).unwrap();
        serde_json::from_str::<Json>(reply.state().unwrap().unwrap().get()).unwrap()["pid"].clone()
    };
    let has_variable = |pid: &Json| {
        let variables = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
        variables.split(|byte| *byte == 0).any(|variable| variable.starts_with(b"CARGO_PKG_NAME="))
    };
    let (without, with) = (pid_with(&[]), pid_with(&["CARGO_PKG_NAME"]));
    assert_eq!((has_variable(&without), has_variable(&with)), (false, true));
    assert_eq!((pid_with(&[]), pid_with(&["CARGO_PKG_NAME"])), (without, with), "both are kept");
}

fn a_deadline_ends_the_process() {
    let pool = Pool::new(settings());
    let pid = state(&pool, &call("Pid", &[]))["pid"].clone();
    let cancel = Cancel::default();
    let limits = Limits { deadline: Deadline::after(Duration::from_millis(300)), ..limits(&cancel) };
    let failed = pool.call(&call("Hang", &[]), &limits, &mut |_| {}).unwrap_err();
    assert!(matches!(failed, Failed::Deadline(_)) && failed.kind() == FailureKind::Deadline, "{failed}");
    assert!(!is_alive(&pid));
    assert_eq!(state(&pool, &call("Pid", &[]))["calls"], 1, "the next call has a new process");
}

fn a_dead_worker_fails_its_call_alone() {
    let pool = Pool::new(Settings { width: 2, ..settings() });
    let failed = carry_out(&pool, &call("Exit", &[])).0.unwrap_err();
    assert!(matches!(failed, Failed::Died { exit: Some(Exit::Code(4)), .. }), "{failed}");
    let failed = carry_out(&pool, &call("Abort", &[])).0.unwrap_err();
    assert_eq!(failed.kind(), FailureKind::Signal(6));
    assert!(failed.explain().ends_with("\nStack overflow."), "{failed}");
    let nowhere = Pool::new(Settings { executable: PathBuf::from("/nowhere/pwsh"), ..settings() });
    let failed = carry_out(&nowhere, &call("Pid", &[])).0.unwrap_err();
    assert_eq!(failed.kind(), FailureKind::Start);
    assert!(failed.explain().contains("No such file or directory"), "{}", failed.explain());
    assert_eq!(state(&pool, &call("Pid", &[]))["calls"], 1);
}

fn root_runs_no_powershell_that_others_can_change() {
    if !stead_testkit::is_root("root_runs_no_powershell_that_others_can_change") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("pwsh");
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    for (mode, runs) in [(0o755, true), (0o757, false)] {
        std::fs::set_permissions(&copy, Permissions::from_mode(mode)).unwrap();
        let pool = Pool::new(Settings { executable: copy.clone(), ..settings() });
        let reply = carry_out(&pool, &call("Pid", &[])).0;
        assert_eq!(reply.is_ok(), runs, "{mode:o}");
        if let Err(failed) = reply {
            assert_eq!(failed.kind(), FailureKind::Start);
            assert!(failed.explain().contains("can be written by everyone"), "{}", failed.explain());
        }
    }
}

fn a_flood_on_standard_error_is_read() {
    let pool = Pool::new(settings());
    let (reply, records) = carry_out(&pool, &call("Flood", &[]));
    reply.unwrap();
    let bytes: usize = records.iter().map(|record| record.message.len()).sum();
    assert!((1 << 19..2 << 20).contains(&bytes), "{bytes} bytes are handed on");
    assert!(records.last().unwrap().message.starts_with("output truncated: "));
}

fn a_child_that_holds_the_pipes_holds_up_nobody() {
    let pool = Pool::new(settings());
    let begun = Instant::now();
    let child = state(&pool, &call("Child", &[]))["pid"].clone();
    assert!(is_alive(&child) && begun.elapsed() < SOON);
    drop(pool);
    until_ended(&child);
}

fn what_is_printed_belongs_to_the_call() {
    let pool = Pool::new(settings());
    let texts =
        |name| carry_out(&pool, &call(name, &[])).1.into_iter().map(|record| record.message).collect::<Vec<_>>();
    let mut printed = texts("Noise");
    printed.sort();
    assert_eq!(printed, ["from standard error", "from standard output"]);
    assert!(texts("Pid").is_empty());
}

fn a_line_that_is_not_understood_ends_the_worker() {
    let pool = Pool::new(settings());
    let failed = carry_out(&pool, &call("Garbage", &[])).0.unwrap_err();
    assert_eq!(failed.kind(), FailureKind::Protocol);
    assert_eq!(pool.workers(), 0);
}

fn cancelling_ends_the_call() {
    let pool = Pool::new(settings());
    let cancel = Cancel::default();
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| pool.call(&call("Hang", &[]), &limits(&cancel), &mut |_| {}).unwrap_err());
        stead_testkit::until(|| (pool.workers() == 1).then_some(()));
        // Waits for the only worker.
        let waiting = scope.spawn(|| pool.call(&call("Pid", &[]), &limits(&cancel), &mut |_| {}).unwrap_err());
        cancel.cancel();
        assert!(matches!(calling.join().unwrap().kind(), FailureKind::Cancelled));
        assert!(matches!(waiting.join().unwrap().kind(), FailureKind::Cancelled));
    });
    assert_eq!(pool.workers(), 0);
}

fn an_idle_worker_is_ended() {
    let pool = Pool::new(Settings { idle: Duration::from_millis(50), ..settings() });
    let pid = state(&pool, &call("Pid", &[]))["pid"].clone();
    stead_testkit::until(|| (pool.workers() == 0 && !is_alive(&pid)).then_some(()));
    assert_eq!(state(&pool, &call("Pid", &[]))["calls"], 1);
}

fn no_more_workers_than_the_width() {
    let pool = Pool::new(Settings { width: 2, ..settings() });
    let pids = Mutex::new(std::collections::BTreeSet::new());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| pids.lock().unwrap().insert(state(&pool, &call("Pid", &[]))["pid"].to_string()));
        }
    });
    assert!((1..=2).contains(&pids.lock().unwrap().len()) && pool.workers() <= 2);
}

fn property(name: &str, ty: &str, key: bool) -> Property {
    Property { name: name.to_owned(), key, ..declared::property(ty, Vec::new()) }
}

fn provider(name: &str) -> PowerShellProvider {
    provider_of(name, Methods::default())
}

fn provider_of(name: &str, methods: Methods) -> PowerShellProvider {
    let file = Arc::new(PathBuf::from("/m/M.psm1"));
    let resource = Resource {
        name: name.to_owned(),
        class_name: None,
        kind: DefinitionKind::Class,
        version: None,
        file: Arc::clone(&file),
        implementation: file,
        place: LineColumn { line: 1, column: 1 },
        description: None,
        properties: vec![property("Name", "string", true), property("Password", "string", false)],
        methods,
    };
    let source = Source { module: PathBuf::from("/m/M.psd1"), stamp: Box::new(|| Ok("1".to_owned())) };
    PowerShellProvider::new(Some(Pool::new(settings())), Arc::new(resource), source)
}

/// A secret is in neither the arguments nor the environment nor the script, and not in what is said.
fn secrets_go_over_the_socket_alone() {
    let canary = "canary-7f3a";
    let seen = Arc::new(Mutex::new(String::new()));
    let said = Arc::clone(&seen);
    let context =
        Context { trace: Arc::new(move |_, text| said.lock().unwrap().push_str(text)), ..Context::new(Path::new("/")) };
    let input = Plain::new(json!({ "Name": "n", "Password": { "secureString": canary } }));
    let state = provider("Seen").get(&context, &input).map_err(|failure| failure.message).unwrap().to_json();
    assert!(state["line"].as_u64().unwrap() > 50 && !state.to_string().contains(canary), "{state}");
    let failure = provider("Echo").get(&context, &input).err().unwrap();
    assert_eq!(failure.message, "<secureValue> was refused");
    assert_eq!(failure.error_id.as_deref(), Some("<secureValue> was refused"));
    let seen = seen.lock().unwrap();
    assert!(seen.contains("the password is <secureValue>") && !seen.contains(canary), "{seen}");
}

/// Waiting for a worker counts.
fn a_deadline_is_spent_once() {
    let pool = Pool::new(settings());
    let (cancel, other) = (Cancel::default(), Cancel::default());
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| pool.call(&call("Hang", &[]), &limits(&other), &mut |_| {}).unwrap_err());
        stead_testkit::until(|| (pool.workers() == 1).then_some(()));
        let limits = Limits { deadline: Deadline::after(Duration::from_millis(100)), ..limits(&cancel) };
        let failed = pool.call(&call("Pid", &[]), &limits, &mut |_| {}).unwrap_err();
        assert_eq!(failed.to_string(), "no PowerShell process became free within 100ms");
        assert_eq!(failed.kind(), FailureKind::Deadline);
        other.cancel();
        calling.join().unwrap();
        let failed = pool.call(&call("Pid", &[]), &limits, &mut |_| {}).unwrap_err();
        assert_eq!(failed.kind(), FailureKind::Deadline, "nothing of it is left for another call");
    });
}

fn what_if_shows_no_secret() {
    let context = Context::new(Path::new("/"));
    let input = Plain::new(json!({ "Name": "n", "Password": { "secureString": "canary-7f3a" } }));
    let methods = Methods { what_if: true, ..Methods::default() };
    let reply = provider_of("WouldSet", methods).set(&context, &input, Execution::WhatIf);
    let reply = reply.map_err(|failure| failure.message).unwrap();
    assert_eq!(reply.what_if, ["would set <secureValue>"]);
    let input = Plain::new(json!({ "Name": { "secureString": "canary-7f3a" }, "canary-7f3a": 1 }));
    let refused = provider("Echo").validate(&context, &input).unwrap_err();
    assert!(refused.message.contains("<secureValue>") && !refused.message.contains("canary"), "{}", refused.message);
}

/// A filter needs no keys, an instance does; what is only asked is not done.
fn instances_of_classes_are_exported_and_deleted() {
    let said = Arc::new(Mutex::new(String::new()));
    let seen = Arc::clone(&said);
    let context =
        Context { trace: Arc::new(move |_, text| seen.lock().unwrap().push_str(text)), ..Context::new(Path::new("/")) };
    let kept = provider_of("Kept", Methods { delete: true, export: true, ..Methods::default() });
    let exported = kept.export(&context, &Plain::new(json!({}))).map_err(|failure| failure.message).unwrap();
    let states: Vec<Json> = exported.iter().map(|each| each.properties.to_redacted_json()).collect();
    assert_eq!(states, [json!({ "Name": "a" }), json!({ "Name": "b" })]);
    let refused = kept.delete(&context, &Plain::new(json!({})), Execution::Actual).unwrap_err();
    assert_eq!(refused.message, "'properties.Name' is required [E1163]");
    let input = Plain::new(json!({ "Name": "a" }));
    kept.delete(&context, &input, Execution::WhatIf).map_err(|failure| failure.message).unwrap();
    assert_eq!(*said.lock().unwrap(), "");
    kept.delete(&context, &input, Execution::Actual).map_err(|failure| failure.message).unwrap();
    assert_eq!(*said.lock().unwrap(), "it was removed");
}

/// Only directories that root alone can change are in the path of root's workers.
fn root_loads_no_modules_that_others_can_change() {
    if !stead_testkit::is_root("root_loads_no_modules_that_others_can_change") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [kept, left_out] = ["kept", "left out"].map(|name| folder.path().join(name));
    for (directory, mode) in [(&kept, 0o755), (&left_out, 0o777)] {
        std::fs::create_dir(directory).unwrap();
        std::fs::set_permissions(directory, Permissions::from_mode(mode)).unwrap();
    }
    let pool = Pool::new(Settings { module_path: vec![kept.clone(), left_out], ..settings() });
    let seen = state(&pool, &call("Seen", &[]))["process"][1].to_string();
    assert!(seen.contains(&format!("STEAD_POWERSHELL_MODULES=:{}:", kept.display())), "{seen}");
    assert!(!seen.contains("left out"), "{seen}");
}

/// They are in its path whatever is set.
fn root_uses_no_powershell_whose_own_modules_others_can_change() {
    if !stead_testkit::is_root("root_uses_no_powershell_whose_own_modules_others_can_change") {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let modules = home.path().join("Modules");
    std::fs::create_dir(&modules).unwrap();
    let mut environment = Environment::of_this_process(&[]);
    environment.set("STEAD_STAND_IN_HOME", home.path().to_str().unwrap());
    for (mode, runs) in [(0o755, true), (0o777, false)] {
        std::fs::set_permissions(&modules, Permissions::from_mode(mode)).unwrap();
        let pool = Pool::new(Settings { environment: environment.clone(), ..settings() });
        let reply = carry_out(&pool, &call("Pid", &[])).0;
        assert_eq!(reply.is_ok(), runs, "{mode:o}");
        if let Err(failed) = reply {
            assert_eq!(failed.kind(), FailureKind::Start);
            assert!(failed.explain().contains("can be written by everyone"), "{}", failed.explain());
        }
    }
}

fn a_restart_is_part_of_the_state() {
    let context = Context::new(Path::new("/"));
    let input = Plain::new(json!({ "Name": "n" }));
    let reply = provider("Reboot").set(&context, &input, Execution::Actual).map_err(|failure| failure.message).unwrap();
    assert_eq!((reply.unread.is_some(), restarts(reply.after.unwrap().expose()).len()), (false, 1));
    let lost = provider("RebootAndFail").set(&context, &input, Execution::Actual);
    let lost = lost.map_err(|failure| failure.message).unwrap();
    assert_eq!((lost.unread.is_some(), restarts(lost.after.unwrap().expose()).len()), (true, 1));
    let refused = provider("Reboot").get(&context, &Plain::new(json!({ "Name": ["a"], "Nope": 1 }))).err().unwrap();
    assert_eq!(refused.property.as_deref(), Some("/Name"));
    assert_eq!(refused.error_id.as_deref(), Some("ExceptionWhenSetting"));
    assert_eq!(
        refused.message,
        "'properties.Name' must be a string, not an array [E1161]; \
         'properties.Nope' is not a property of the resource [E1162]"
    );
}

fn recorded(folder: &str, test: &str) -> Option<Vec<Json>> {
    let file = stead_testkit::repository().join("../shared/corpus/powershell").join(folder).join("cases.jsonl");
    let Ok(cases) = std::fs::read_to_string(file) else {
        stead_testkit::skip(test, "the recorded calls are not there");
        return None;
    };
    Some(cases.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn replay(
    pool: &Pool,
    case: &Json,
    method: Method,
    kind: DefinitionKind,
) -> (Result<MethodReply, Failed>, Vec<StreamRecord>) {
    let properties = [("case".to_owned(), Wire::String(case.to_string()))];
    let mut records = Vec::new();
    let cancel = Cancel::default();
    let deadline = Deadline::after(if case["state"] == "Stopped" { Duration::from_millis(100) } else { SOON });
    let limits = Limits { deadline, ..limits(&cancel) };
    let call = Call { method, kind, ..call("Replay", &properties) };
    (pool.call(&call, &limits, &mut |record| records.push(record)), records)
}

fn method(name: &Json) -> Method {
    match name.as_str().unwrap().to_lowercase().as_str() {
        "test" => Method::Test,
        "set" => Method::Set,
        _ => Method::Get,
    }
}

fn recorded_failures_are_failures() {
    let Some(cases) = recorded("behaviour", "recorded_failures_are_failures") else { return };
    let pool = Pool::new(settings());
    let (mut failures, mut strict, mut successes) = (0, Vec::new(), 0);
    for case in cases.iter().filter(|case| case["via"] == "api" && case["method"].is_string()) {
        let (method, name) = (method(&case["method"]), case["name"].as_str().unwrap());
        let (reply, records) = replay(&pool, case, method, DefinitionKind::Class);
        let judged = reply.and_then(|reply| match method {
            Method::Test => Ok(reply.verdict().map(|_| reply)?),
            Method::Get => Ok(reply.state().map(|_| reply.reboot_required).map(|_| reply)?),
            _ => Ok(reply),
        });
        let failed = case["noAnswer"] == true
            || case["state"] != "Completed"
            || failure_of(case).is_some()
            || leaves_early(case);
        match judged {
            Ok(reply) => {
                assert!(!failed, "{name}: a failure that was recorded is none");
                assert_eq!(reply.reboot_required, case["reboot"]["equalsOne"] == true, "{name}");
                let warnings = case["streams"]["warning"].as_array().map_or(0, Vec::len);
                assert_eq!(
                    records.iter().filter(|record| record.stream == Stream::Warning).count(),
                    warnings,
                    "{name}"
                );
                successes += 1;
            }
            Err(Failed::Call(WorkerError::Verdict(_) | WorkerError::State(_) | WorkerError::States(_))) if !failed => {
                strict.push(name);
            }
            Err(other) => {
                assert!(failed, "{name}: {other}");
                failures += 1;
            }
        }
    }
    let deviations = stead_testkit::repository().join("corpus/powershell/worker/deviations.json");
    let deviations: serde_json::Map<String, Json> =
        serde_json::from_str(&std::fs::read_to_string(deviations).unwrap()).unwrap();
    strict.sort_unstable();
    assert_eq!(strict, deviations.keys().map(String::as_str).collect::<Vec<_>>(), "stricter than PowerShell");
    eprintln!(
        "{failures} recorded failures are failures, {successes} calls succeed, {} are refused as unclear",
        strict.len()
    );
}

fn recorded_invocations_fail_as_recorded() {
    let Some(cases) = recorded("invoke", "recorded_invocations_fail_as_recorded") else { return };
    let pool = Pool::new(settings());
    let (mut failures, mut successes) = (0, 0);
    for case in cases.iter().filter(|case| case["kind"] == "call") {
        let (reply, _) = replay(&pool, case, Method::Set, DefinitionKind::Class);
        let failed = case["state"] != "returned" || failure_of(case).is_some();
        assert_eq!(reply.is_err(), failed, "{}", case["name"]);
        if failed { failures += 1 } else { successes += 1 }
    }
    eprintln!("{failures} recorded failures of Invoke-DscResource are failures, {successes} calls succeed");
}
