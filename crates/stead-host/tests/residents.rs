//! Laws of residents: whatever they do, every call ends once, nothing is sent twice, and no process of theirs is left.
//!
//! `STEAD_RESIDENTS=10000` is how many of them are drawn.

#![expect(clippy::unwrap_used, reason = "a test fails where something that it relies on does")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use stead_core::call::{Execution, Failure, FailureKind};
use stead_core::manifest::{Declaration, Manifest, ManifestForm, parse, unplaced};
use stead_host::command::{CommandProvider, CommandSettings, Residents};
use stead_host::provider::{Context, Plain, Provider};
use stead_system::fs::User;
use stead_system::process::Environment;

/// A resident that does to each call what its properties say.
const HOSTILE: &str = r#"
import json, os, subprocess, sys, time
held, ordered, width = [], [], int(sys.argv[1])
def say(id, **answer):
    os.write(1, (json.dumps({"jsonrpc": "2.0", "id": id, **answer}) + "\n").encode())
def answer(id):
    say(id, result={"after": {"call": id}})
for line in sys.stdin:
    request = json.loads(line)
    id, method = request.get("id"), request["method"]
    if method == "initialize":
        say(id, result={"protocol": 1, "sideBySide": width})
        continue
    if method == "$/cancel":
        id = request["params"]["id"]
        if id in held + ordered:
            (held if id in held else ordered).remove(id)
            say(id, error={"code": -32002, "message": "cancelled"})
        continue
    properties = request["params"]["properties"]
    with open("sets", "a") as sets:
        sets.write(properties["name"] + "\n")
    how = properties["how"]
    if how == "die":
        os._exit(7)
    elif how == "half":
        os.write(1, b'{"jsonrpc": "2.0", "id"')
        os._exit(0)
    elif how == "hang":
        time.sleep(60)
    elif how == "stall":
        held.append(id)
    elif how == "late":
        time.sleep(0.02)
        answer(id)
    elif how == "twice":
        answer(id)
        answer(id)
    elif how == "foreign":
        say(id + 100, result={"after": {}})
    elif how == "nonsense":
        os.write(1, b"\xff\x00nonsense\n")
    elif how == "huge":
        say(id, result={"after": {"call": "x" * (int(sys.argv[2]) + 1)}})
    elif how == "deaf":
        os.close(0)
        time.sleep(60)
    elif how == "mute":
        os.close(1)
        time.sleep(60)
    elif how == "child":
        subprocess.Popen(["sleep", "1000"], start_new_session=True)
        answer(id)
    elif how == "order":
        ordered.append(id)
        if len(ordered) >= min(width, 2):
            while ordered:
                answer(ordered.pop())
    else:
        answer(id)
"#;

const WAYS: [&str; 15] = [
    "well", "well", "die", "half", "hang", "stall", "late", "twice", "foreign", "nonsense", "huge", "deaf", "mute",
    "child", "order",
];

/// The longest line that is taken of them.
const LIMIT: usize = 1 << 20;

/// Numbers that look drawn, the same for a seed.
struct Drawn(u64);

impl Drawn {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        usize::try_from((mixed ^ (mixed >> 27)) >> 33).unwrap() % end
    }
}

fn manifest(folder: &Path, type_name: &str, args: &[&str]) -> Arc<Manifest> {
    let json = json!({
        "$schema": "https://aka.ms/dsc/schemas/v3/bundled/resource/manifest.json",
        "type": type_name, "version": "1.0.0",
        "metadata": {"stead": {"resident": {"executable": "python3", "args": args}}},
        "get": {"executable": "false", "input": "stdin"},
        "set": {"executable": "false", "input": "stdin"},
    });
    let (declared, findings) = parse(ManifestForm::Resource, &unplaced(&json), &folder.join("a.dsc.resource.json"));
    match declared.into_iter().next().map(|declared| declared.declaration) {
        Some(Declaration::Resource(manifest)) => Arc::new(*manifest),
        _ => panic!("{findings:?}"),
    }
}

fn settings(mark: &str) -> CommandSettings {
    let variables = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("RESIDENTS_OF", mark)];
    let environment = Environment::of(variables.map(|(name, value)| (name.into(), value.into())), &["RESIDENTS_OF"]);
    let environment = environment.trusting(User::current().trust());
    let grace = Duration::from_millis(100);
    CommandSettings { environment, grace, settle: grace, elevated: true }
}

/// The processes whose environment has a mark.
fn marked(mark: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let has_mark = |path: &std::path::PathBuf| {
        fs::read(path.join("environ")).is_ok_and(|environ| String::from_utf8_lossy(&environ).contains(mark))
    };
    let shown = |path: std::path::PathBuf| {
        let words = fs::read(path.join("cmdline")).unwrap_or_default();
        let stat = fs::read_to_string(path.join("stat")).unwrap_or_default();
        format!("{}: {stat}: {}", path.display(), String::from_utf8_lossy(&words))
    };
    processes.filter(has_mark).map(shown).collect()
}

fn check(seed: u64) {
    let mut drawn = Drawn(seed);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("script"), HOSTILE).unwrap();
    let mark = format!("residents-{}-{seed}-", std::process::id());
    let width = 1 + drawn.below(4);
    let (width_text, limit_text) = (width.to_string(), LIMIT.to_string());
    let manifest = manifest(folder.path(), "Test/Hostile", &["script", &width_text, &limit_text]);
    let provider = Arc::new(CommandProvider::new(&manifest, settings(&mark)).unwrap());
    let callers: Vec<_> = (0..=drawn.below(4))
        .map(|caller| {
            let ways: Vec<&'static str> = (0..=drawn.below(3)).map(|_| WAYS[drawn.below(WAYS.len())]).collect();
            let (provider, root) = (Arc::clone(&provider), folder.path().to_owned());
            thread::spawn(move || {
                let deadline = Duration::from_millis(400);
                let cx = Context { deadline, output_limit: LIMIT, changes: true, ..Context::new(root) };
                let call = |(at, way): (usize, &&'static str)| {
                    let input = Plain::new(json!({"how": way, "name": format!("{caller}-{at}")}));
                    let begun = Instant::now();
                    let reply = provider.set(&cx, &input, Execution::Actual);
                    assert!(begun.elapsed() < Duration::from_secs(20), "seed {seed}: {way} took {:?}", begun.elapsed());
                    (*way, reply.map(|reply| reply.after.is_some()))
                };
                ways.iter().enumerate().map(call).collect::<Vec<_>>()
            })
        })
        .collect();
    let ended: Vec<(&'static str, Result<bool, Failure>)> =
        callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect();
    for (way, answer) in &ended {
        let cannot = ["die", "half", "hang", "stall", "foreign", "nonsense", "huge", "deaf", "mute"].contains(way);
        assert!(!(cannot && *answer == Ok(true)), "seed {seed}: {way} was answered");
    }
    let is_harmless = ended.iter().all(|(way, _)| ["well", "late", "child"].contains(way));
    // Under load even the start of a process can take too long, and one that is silent for too long is ended with all calls that it has.
    let is_late = |failure: &Failure| failure.kind == FailureKind::Deadline;
    let anybody_late = ended.iter().any(|(_, answer)| answer.as_ref().is_err_and(is_late));
    let is_excused =
        |failure: &Failure| is_late(failure) || anybody_late && failure.message.contains("did not end another call");
    let is_answered = ended.iter().all(|(_, answer)| answer.as_ref().map_or_else(is_excused, |is_right| *is_right));
    assert!(!is_harmless || is_answered, "seed {seed}: {ended:?}");
    drop(provider);
    let mut sent = BTreeMap::<String, usize>::new();
    for name in fs::read_to_string(folder.path().join("sets")).unwrap_or_default().lines() {
        *sent.entry(name.to_owned()).or_default() += 1;
    }
    assert!(sent.values().all(|times| *times == 1), "seed {seed}: {sent:?}");
    assert_eq!(marked(&mark), Vec::<String>::new(), "seed {seed}");
}

#[test]
fn whatever_a_resident_does_every_call_ends_once_and_nothing_is_left() {
    let seeds = u64::try_from(stead_testkit::times("STEAD_RESIDENTS", 40)).unwrap();
    thread::scope(|scope| {
        for part in 0..4 {
            scope.spawn(move || (0..seeds).filter(|seed| seed % 4 == part).for_each(check));
        }
    });
}

/// A resident that says which process it is, and what it was started with.
const POLITE: &str = r#"
import json, os, sys
for line in sys.stdin:
    request = json.loads(line)
    result = {"protocol": 1} if request["method"] == "initialize" else {"actual": {
        "pid": os.getpid(), "isolated": sys.flags.isolated, "userSite": sys.flags.no_user_site,
        "pythonPath": os.environ.get("PYTHONPATH")}}
    os.write(1, (json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}) + "\n").encode())
"#;

#[test]
fn types_of_one_owner_share_a_process_and_those_of_others_have_their_own() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("script"), POLITE).unwrap();
    let (settings, residents) = (settings("residents-shared-"), Residents::default());
    let ask = |type_name: &str, secret: bool| {
        let manifest = manifest(folder.path(), type_name, &["script"]);
        let provider = CommandProvider::new(&manifest, settings.clone()).unwrap().with_residents(&residents);
        let input = if secret { json!({"a": {"secureString": "hunter2!"}}) } else { json!({}) };
        provider.get(&Context::new(folder.path()), &Plain::new(input)).unwrap().to_json()
    };
    let one = ask("Test/One", false);
    assert_eq!(ask("Test/Two", false)["pid"], one["pid"]);
    assert_eq!(ask("Test/Two", true)["pid"], one["pid"]);
    assert_ne!(ask("Other/One", true)["pid"], one["pid"]);
    let is_root = i32::from(stead_system::user::is_root());
    assert_eq!((&one["isolated"], &one["pythonPath"]), (&json!(is_root), &json!(null)));
}

#[test]
fn no_more_processes_than_stated_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("script"), POLITE).unwrap();
    let mark = format!("residents-many-{}-", std::process::id());
    let (settings, residents) = (settings(&mark), Residents::default());
    for number in 0..20 {
        let manifest = manifest(folder.path(), &format!("Owner{number}/One"), &["script"]);
        let provider = CommandProvider::new(&manifest, settings.clone()).unwrap().with_residents(&residents);
        provider.get(&Context::new(folder.path()), &Plain::new(json!({}))).unwrap();
        assert!(marked(&mark).len() <= 16, "with the one that is starting");
    }
    assert_eq!(marked(&mark).len(), 16);
    drop(residents);
    assert_eq!(marked(&mark), Vec::<String>::new());
}

#[test]
fn who_waits_for_a_busy_resident_waits_no_longer_than_it_may() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("script"), HOSTILE).unwrap();
    let manifest = manifest(folder.path(), "Test/Busy", &["script", "1", "1000"]);
    let provider = Arc::new(CommandProvider::new(&manifest, settings("residents-busy-")).unwrap());
    let call = |deadline: u64| {
        let (provider, root) = (Arc::clone(&provider), folder.path().to_owned());
        thread::spawn(move || {
            let cx = Context { deadline: Duration::from_millis(deadline), ..Context::new(root) };
            let input = Plain::new(json!({"how": "stall", "name": "a"}));
            provider.set(&cx, &input, Execution::Actual).err().map(|failure| failure.kind)
        })
    };
    let busy = call(3_000);
    stead_testkit::until(|| folder.path().join("sets").exists().then_some(()));
    assert_eq!(call(100).join().unwrap(), Some(FailureKind::Deadline));
    assert_eq!(busy.join().unwrap(), Some(FailureKind::Deadline));
    assert_eq!(fs::read_to_string(folder.path().join("sets")).unwrap().lines().count(), 1, "the second was not sent");
}

/// A resident that ends in its second call.
const FICKLE: &str = r#"
import json, os, sys
asked = 0
for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "initialize":
        result = {"protocol": 1}
    else:
        with open("asked", "a") as file:
            file.write(request["method"] + "\n")
        asked += 1
        if asked == 2:
            os._exit(0)
        result = {"actual": {"pid": os.getpid()}, "after": {"pid": os.getpid()}}
    os.write(1, (json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}) + "\n").encode())
"#;

#[test]
fn what_only_reads_is_asked_of_another_where_one_ends_after_an_answer_and_a_set_is_not() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("script"), FICKLE).unwrap();
    let manifest = manifest(folder.path(), "Test/Fickle", &["script"]);
    let provider = CommandProvider::new(&manifest, settings("residents-fickle-")).unwrap();
    let (cx, input) = (Context::new(folder.path()), Plain::new(json!({})));
    let get = || provider.get(&cx, &input).unwrap().to_json()["pid"].clone();
    let first = get();
    assert_ne!(get(), first, "the second was asked of another process");
    let failed = provider.set(&Context { changes: true, ..cx.clone() }, &input, Execution::Actual).err().unwrap();
    assert!(failed.message.contains("ended without an answer"), "{}", failed.message);
    assert_eq!(fs::read_to_string(folder.path().join("asked")).unwrap(), "get\nget\nget\nset\n");
}

/// A resident that takes memory and keeps it.
const GREEDY: &str = r#"
import json, os, sys
kept = []
for line in sys.stdin:
    request = json.loads(line)
    size = request["params"].get("properties", {}).get("size", 0)
    kept.append(b"x" * size)
    result = {"protocol": 1, "actual": {"pid": os.getpid()}}
    os.write(1, (json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}) + "\n").encode())
"#;

#[test]
fn one_that_takes_too_much_memory_is_replaced_between_calls() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("script"), GREEDY).unwrap();
    let manifest = manifest(folder.path(), "Test/Greedy", &["script"]);
    let mark = format!("residents-greedy-{}-", std::process::id());
    let provider = CommandProvider::new(&manifest, settings(&mark)).unwrap();
    let provider = provider.with_residents(&Residents::bounded(100 << 20));
    let cx = Context::new(folder.path());
    let get = |size: usize| {
        let state = provider.get(&cx, &Plain::new(json!({"size": size}))).unwrap().to_json();
        state["pid"].clone()
    };
    let first = get(0);
    assert_eq!(get(150 << 20), first, "no call is cut off");
    stead_testkit::until(|| (get(0) != first).then_some(()));
    assert_eq!(marked(&mark).len(), 1);
    // More often than it may be started after a fault.
    for _ in 0..8 {
        let (before, _) = (get(0), get(150 << 20));
        stead_testkit::until(|| (get(0) != before).then_some(()));
    }
}

/// A resident that takes its time to start and to end.
const SLOW: &str = r#"
import json, os, sys, time
open("begun", "w").close()
time.sleep(float(sys.argv[1]))
for line in sys.stdin:
    request = json.loads(line)
    with open("deadlines", "a") as file:
        file.write(str(request["params"].get("deadline", 0)) + "\n")
    os.write(1, (json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {"protocol": 1, "actual": {}}}) + "\n").encode())
time.sleep(0.3)
open("ended", "w").close()
"#;

#[test]
fn a_call_has_one_deadline_for_all_of_its_steps() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("script"), SLOW).unwrap();
    let manifest = manifest(folder.path(), "Test/Slow", &["script", "1"]);
    let provider = CommandProvider::new(&manifest, settings("residents-slow-")).unwrap();
    let cx = Context { deadline: Duration::from_mins(1), ..Context::new(folder.path()) };
    provider.get(&cx, &Plain::new(json!({}))).unwrap();
    let deadlines = fs::read_to_string(folder.path().join("deadlines")).unwrap();
    let left: f64 = deadlines.lines().last().unwrap().parse().unwrap();
    assert!((1.0..=59.0).contains(&left), "the start is a part of the minute: {deadlines}");
}

#[test]
fn who_waits_for_a_start_waits_no_longer_than_it_may() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("script"), SLOW).unwrap();
    let manifest = manifest(folder.path(), "Test/Slow", &["script", "100"]);
    let provider = Arc::new(CommandProvider::new(&manifest, settings("residents-waits-")).unwrap());
    let (starts, cancel) = (Arc::clone(&provider), stead_system::Cancel::default());
    let cx = Context { cancel: cancel.clone(), ..Context::new(folder.path()) };
    let starting = thread::spawn(move || starts.get(&cx, &Plain::new(json!({}))).err().map(|failure| failure.kind));
    stead_testkit::until(|| folder.path().join("begun").exists().then_some(()));
    let cx = Context { deadline: Duration::from_millis(100), ..Context::new(folder.path()) };
    let failed = provider.get(&cx, &Plain::new(json!({}))).err().unwrap();
    assert!(failed.message.contains("'python3' did not start within 100ms"), "{}", failed.message);
    cancel.cancel();
    assert_eq!(starting.join().unwrap(), Some(FailureKind::Cancelled));
}

#[test]
fn whoever_ends_them_waits_for_those_that_another_thread_ends() {
    for _ in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("script"), SLOW).unwrap();
        let manifest = manifest(folder.path(), "Test/Slow", &["script", "0"]);
        let residents = Residents::default();
        let processes = Arc::clone(residents.processes());
        let provider = CommandProvider::new(&manifest, settings("residents-end-")).unwrap().with_residents(&residents);
        provider.get(&Context::new(folder.path()), &Plain::new(json!({}))).unwrap();
        drop(residents);
        let dropping = thread::spawn(move || drop(provider));
        processes.end();
        assert!(folder.path().join("ended").exists());
        dropping.join().unwrap();
    }
}

#[test]
fn those_that_wait_for_room_do_not_wait_for_each_other() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("script"), HOSTILE).unwrap();
    let (settings, residents) = (settings("residents-room-"), Residents::default());
    let cancel = stead_system::Cancel::default();
    let call = |number: usize, how: &'static str| {
        let manifest = manifest(folder.path(), &format!("Owner{number}/One"), &["script", "1", "1000"]);
        let provider = CommandProvider::new(&manifest, settings.clone()).unwrap().with_residents(&residents);
        let cx = Context { cancel: cancel.clone(), ..Context::new(folder.path()) };
        thread::spawn(move || {
            let input = Plain::new(json!({"how": how, "name": number.to_string()}));
            provider.set(&cx, &input, Execution::Actual).err().map(|failure| failure.message)
        })
    };
    let busy: Vec<_> = (0..15).map(|number| call(number, "stall")).collect();
    let sets = || fs::read_to_string(folder.path().join("sets")).unwrap_or_default().lines().count();
    stead_testkit::until(|| (sets() == 15).then_some(()));
    // All of them find the sixteenth place taken by another.
    for round in 0..4 {
        let waiting: Vec<_> = (0..6).map(|number| call(20 + 6 * round + number, "well")).collect();
        for each in waiting {
            assert_eq!(each.join().unwrap(), None);
        }
    }
    cancel.cancel();
    for each in busy {
        assert_eq!(each.join().unwrap(), Some("it was cancelled".to_owned()));
    }
}
