//! Calls of PowerShell itself, where it is.

use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use stead_powershell::convert::Wire;
use stead_powershell::worker::{Call, Deadline, Failed, Limits, Method, Module, Pool, Settings};
use stead_powershell_reader::resource::DefinitionKind;
use stead_system::Cancel;
use stead_system::process::Environment;

use super::kept::kept;
use super::stand_in::{failure_of, leaves_early};
use super::{SOON, call, carry_out, method, recorded, state};

/// The recorded calls of classes and scripts, on PowerShell itself: what failed there fails. How many ids of errors are those
/// that were recorded is printed: where a function around the call is part of one, it differs.
pub(crate) fn recorded_calls_on_real_powershell() {
    let test = "recorded_calls_on_real_powershell";
    let Some(executable) = stead_testkit::powershell(test) else { return };
    let environment = Environment::of_this_process(&[]);
    let Some(cases) = recorded("behaviour", test) else { return };
    let pool = Pool::new(kept(Settings::new(executable, environment, 1)));
    let modules = stead_testkit::repository().join("../shared/corpus/powershell/behaviour/modules");
    let (mut failures, mut successes, mut wrong) = (0, 0, Vec::new());
    let (mut same_ids, mut other_ids) = (0, Vec::new());
    let is_plain = |case: &&Json| {
        case["via"] == "api" && case["method"].is_string() && case["preferences"].is_null() && case["stop"].is_null()
    };
    for case in cases.iter().filter(is_plain) {
        let (name, ty) = (case["name"].as_str().unwrap(), case["type"].as_str().unwrap());
        let is_class = case["kind"] == "class";
        let class = modules.join(ty).join(format!("{ty}.psd1"));
        let script = modules.join("Scripted/DscResources").join(ty).join(format!("{ty}.psm1"));
        let (kind, path) = if is_class { (DefinitionKind::Class, class) } else { (DefinitionKind::Script, script) };
        // Each takes a minute until the stack is full.
        let is_endless = name.contains("deep") && stead_testkit::asked("STEAD_DOSE").is_none();
        if !path.is_file() || HANDLED_BEFORE.contains(&name) || is_endless {
            continue;
        }
        let stated = case["properties"].as_object().into_iter().flatten();
        let properties: Vec<(String, Wire)> = stated.map(|(name, value)| (name.clone(), wire(value))).collect();
        let module = Module { path: &path, stamp: "1" };
        let call = Call { kind, module, method: method(&case["method"]), ..call(ty, &properties) };
        let cancel = Cancel::default();
        let limits = Limits {
            deadline: Deadline::after(5 * SOON),
            output: 256 << 20,
            cancel: &cancel,
            inherited: &[],
            to_come: 0,
        };
        let reply = pool.call(&call, &limits, &mut |_| {});
        let failed = case["noAnswer"] == true
            || case["state"] != "Completed"
            || failure_of(case).is_some()
            || leaves_early(case);
        if let (Some(recorded), Err(found)) = (failure_of(case), &reply) {
            let (recorded, found) = (recorded["id"].as_str().unwrap(), found.error_id().unwrap_or_default());
            if recorded == found { same_ids += 1 } else { other_ids.push(format!("{name}: {recorded} | {found}")) }
        }
        match reply {
            Ok(_) if failed => wrong.push(format!("{name}: a failure that was recorded is none")),
            Ok(_) => successes += 1,
            Err(_) if failed => failures += 1,
            Err(other) => wrong.push(format!("{name}: {other}")),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    eprintln!("{failures} recorded failures are failures on PowerShell itself, {successes} calls succeed");
    eprintln!("{same_ids} ids of errors are those recorded, {} differ: {other_ids:#?}", other_ids.len());
}

/// Measures a Test in a warm worker, and in a process of its own.
pub(crate) fn figures_on_real_powershell() {
    let test = "figures_on_real_powershell";
    let Some(executable) = stead_testkit::powershell(test) else { return };
    let environment = Environment::of_this_process(&[]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("Figures.psm1");
    let class = "[DscResource()] class Figures { [DscProperty(Key)] [string] $Name\n [Figures] Get() { return $this }\n \
                 [bool] Test() { return Test-Path -LiteralPath $this.Name }\n [void] Set() { } }\n";
    std::fs::write(&path, class).unwrap();
    let properties = [("Name".to_owned(), Wire::String("/".to_owned()))];
    let module = Module { path: &path, stamp: "1" };
    let warm = kept(Settings::new(executable, environment, 1));
    for (settings, times, name) in
        [(warm.clone(), 501, "in a warm worker"), (warm.isolated(), 4, "in a process of its own")]
    {
        let pool = Pool::new(settings.clone());
        let timed = |_| {
            let begun = Instant::now();
            let (reply, _) = carry_out(&pool, &Call { module, method: Method::Test, ..call("Figures", &properties) });
            assert!(reply.unwrap().verdict().unwrap());
            begun.elapsed()
        };
        let first = timed(0);
        let mut others: Vec<Duration> = (1..times).map(timed).collect();
        others.sort();
        eprintln!(
            "a Test {name}: the first {first:?}, the median of {} more {:?}",
            others.len(),
            others[others.len() / 2]
        );
    }
}

/// Its Get starts a program for the instance `child` that takes 400 MiB, and says which process it is itself.
const EATS: &str = "[DscResource()] class Eats { [DscProperty(Key)] [string] $Name\n[DscProperty()] [int] $Pid_\n[Eats] Get() {\n\
    if ($this.Name -eq 'child') {\n\
    $text = '(head -c 400M /dev/zero; sleep 300) | tail -n 1'\n\
    $shell = Start-Process -PassThru -FilePath sh -ArgumentList '-c', \"`\"$text`\"\"\n\
    $eater = $null\n\
    do { Start-Sleep -Milliseconds 50\n\
    $eater = Get-Process tail -ErrorAction Ignore | Where-Object { $_.Parent.Id -eq $shell.Id }\n\
    } until ($eater.WorkingSet64 -ge 400MB -or $shell.HasExited) }\n\
    $this.Pid_ = [Environment]::ProcessId\nreturn $this }\n[bool] Test() { return $true }\n[void] Set() { } }\n";

pub(crate) fn what_a_module_started_counts_as_memory_on_real_powershell() {
    let Some(executable) = stead_testkit::powershell("what_a_module_started_counts_as_memory_on_real_powershell")
    else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("Eats.psm1");
    std::fs::write(&path, EATS).unwrap();
    let module = Module { path: &path, stamp: "1" };
    let settings = kept(Settings::new(executable, Environment::of_this_process(&[]), 1));
    let pool = Pool::new(Settings { most_memory: 450 << 20, ..settings });
    let processes = ["small", "child", "small", "small"].map(|name| {
        let properties = [("Name".to_owned(), Wire::String(name.to_owned()))];
        state(&pool, &Call { module, ..call("Eats", &properties) })["Pid_"].clone()
    });
    let [first, with_child, after, last] = &processes;
    assert_eq!((first, after), (with_child, last), "{processes:?}");
    assert_ne!(first, after, "it is replaced with what it started");
}

/// Its Test puts out something that has no text: for `late`, while it goes on.
const UNSENT: &str = "class Textless { [string] ToString() { throw 'no text' } }\n\
    [DscResource()] class Unsent { [DscProperty(Key)] [string] $Name\n[Unsent] Get() { return $this }\n[void] Set() { }\n\
    [bool] Test() {\n\
    if ($this.Name -ne 'good') { Write-Information ([Textless]::new()) }\n\
    if ($this.Name -eq 'late') { Start-Sleep -Milliseconds 300 }\n\
    return $true } }\n";

/// Each call has an answer, whatever stood against that of the one before it: none waits for its deadline.
pub(crate) fn an_answer_that_cannot_be_sent_fails_its_call_on_real_powershell() {
    let test = "an_answer_that_cannot_be_sent_fails_its_call_on_real_powershell";
    let Some(executable) = stead_testkit::powershell(test) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("Unsent.psm1");
    std::fs::write(&path, UNSENT).unwrap();
    let module = Module { path: &path, stamp: "1" };
    let pool = Pool::new(kept(Settings::new(executable, Environment::of_this_process(&[]), 1)));
    for name in ["good", "good", "bad", "good", "late", "good", "good", "bad", "late"] {
        let properties = [("Name".to_owned(), Wire::String(name.to_owned()))];
        let (reply, _) = carry_out(&pool, &Call { module, method: Method::Test, ..call("Unsent", &properties) });
        match (name, reply) {
            ("good", reply) => assert!(reply.unwrap().verdict().unwrap()),
            (_, Err(failed @ Failed::Call(_))) => {
                assert!(failed.to_string().contains("Cannot convert value to type System.String"), "{name}: {failed}");
            }
            (_, other) => panic!("{name}: {other:?}"),
        }
    }
}

/// Properties that never come to the worker so: names are those of the declaration, and Get is given what it declares.
const HANDLED_BEFORE: [&str; 2] = ["bind prefix of a name", "bind get too many"];

/// Compares the JSON of PowerShell's values.
pub(crate) fn values_out_on_real_powershell() {
    let test = "values_out_on_real_powershell";
    let Some(executable) = stead_testkit::powershell(test) else { return };
    let mut environment = Environment::of_this_process(&[]);
    let Ok(lines) =
        std::fs::read_to_string(stead_testkit::repository().join("../shared/corpus/powershell/values/out.jsonl"))
    else {
        return stead_testkit::skip(test, "the recorded values are not there");
    };
    let cases: Vec<Json> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("Out.psm1");
    let values: Vec<String> =
        cases.iter().map(|case| format!("{{ {} }}", case["expression"].as_str().unwrap())).collect();
    let values = values.join("\n");
    let get = "function Get-TargetResource { param([int] $Index) $v = & $cases[$Index]; @{ V = $v } }";
    std::fs::write(&path, format!("{OUT_TYPES}\n$cases = @(\n{values}\n)\n{get}\n")).unwrap();
    // The zone of the record.
    environment.set("TZ", "Asia/Kolkata");
    let pool = Pool::new(kept(Settings::new(executable, environment, 1)));
    let mut wrong = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        let properties = [("Index".to_owned(), Wire::Integer(index.to_string()))];
        let module = Module { path: &path, stamp: "1" };
        let (reply, _) = carry_out(&pool, &Call { kind: DefinitionKind::Script, module, ..call("Out", &properties) });
        let found = reply.map_err(|failed| failed.to_string()).and_then(|reply| {
            let state = reply.state().map_err(|error| error.to_string())?;
            Ok(state.map(|state| serde_json::from_str::<Json>(state.get()).unwrap()).unwrap_or_default())
        });
        let expected = match (&case["proposed"], &case["proposed"]["error"]) {
            // The instant is kept; the zone of the machine is nothing of the value.
            _ if case["name"] == "DateTime Local" => Ok(json!({ "V": "2026-01-01T21:34:05Z" })),
            (Json::String(json), _) => Ok(json!({ "V": serde_json::from_str::<Json>(json).unwrap() })),
            // One level more is around it here.
            (_, Json::String(error)) if !error.contains("levels") => {
                Err(format!("the state has no JSON form: {}", error.replacen('$', "$.V", 1)))
            }
            _ => continue,
        };
        if found != expected {
            wrong.push(format!("{}: expected {expected:?}, found {found:?}", case["expression"]));
        }
    }
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), cases.len());
    eprintln!("{} values as proposed on PowerShell itself", cases.len());
}

/// The types that the recorded expressions use.
const OUT_TYPES: &str = "enum Color { Red; Green; Blue }
[Flags()] enum Perm { None = 0; Read = 1; Write = 2; Execute = 4 }
class Plain { [string] $Name; [int] $Count; hidden [string] $Quiet = 'q'; static [int] $Shared = 9 }
class Derived : Plain { [Plain] $Child; [Color] $Color }
class Node { [string] $Name; [Node] $Next }";

/// A value of a recorded call as the worker is given it.
fn wire(value: &Json) -> Wire {
    match value {
        Json::Null => Wire::Null,
        Json::Bool(truth) => Wire::Bool(*truth),
        Json::Number(number) if number.is_f64() => Wire::Double(number.to_string()),
        Json::Number(number) => Wire::Integer(number.to_string()),
        Json::String(text) => Wire::String(text.clone()),
        Json::Array(items) => Wire::Array(items.iter().map(wire).collect()),
        Json::Object(members) => {
            Wire::Hashtable(members.iter().map(|(name, value)| (name.clone(), wire(value))).collect())
        }
    }
}
