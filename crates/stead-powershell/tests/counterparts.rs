//! `Script` of Windows PowerShell, as its counterpart here carries it out: with a program that stands in for PowerShell, which
//! is this very program, and on PowerShell itself, where it is.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

#[path = "support/request.rs"]
mod request;

use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use libtest_mimic::{Arguments, Failed, Trial};
use request::request;
use serde_json::{Value as Json, json};
use stead_core::call::{Execution, FailureKind};
use stead_core::id::TypeName;
use stead_core::manifest::AdaptedResource;
use stead_host::provider::{Context, Plain, Provider};
use stead_powershell::adapter::{ADAPTERS, PowerShell, PowerShellOptions};
use stead_system::fs::User;
use stead_system::process::Environment;

fn main() -> ExitCode {
    if std::env::args().any(|argument| argument == "-Command") {
        stand_in();
        return ExitCode::SUCCESS;
    }
    let tests: [(&str, fn()); 4] = [
        ("a_worker_is_given_the_three_scripts", a_worker_is_given_the_three_scripts),
        ("without_powershell_a_script_is_checked", without_powershell_a_script_is_checked),
        ("a_log_writes_its_message_once", a_log_writes_its_message_once),
        ("scripts_on_real_powershell", scripts_on_real_powershell),
    ];
    let catch = |test: fn()| std::panic::catch_unwind(test).map_err(|_| Failed::without_message());
    let trial = |(name, test): (&str, fn())| Trial::test(name, move || catch(test));
    libtest_mimic::run(&Arguments::from_args(), tests.into_iter().map(trial).collect()).exit_code()
}

/// Answers a get with what it was asked, and a test with what the text of the script says.
fn stand_in() {
    let mut socket = UnixStream::connect(std::env::var_os("STEAD_POWERSHELL_ENDPOINT").unwrap()).unwrap();
    let mut lines = BufReader::new(socket.try_clone().unwrap()).lines();
    let mut send = |message: &Json| writeln!(socket, "{message}").unwrap();
    send(&json!({ "id": "0", "hello": { "protocol": 1, "version": "7.6.5", "edition": "Core", "home": "/nowhere" } }));
    // The scripts.
    let Some(Ok(_)) = lines.next() else { return };
    while let Some(Ok(line)) = lines.next() {
        let request = request(&line);
        let (id, properties) = (&request["id"], &request["properties"]);
        let output = match request["method"].as_str().unwrap() {
            "Get" => Some(("Hashtable", json!({ "Result": properties, "Module": request["module"] }))),
            "Test" => Some(("System.Boolean", json!(properties["TestScript"] == "$true"))),
            _ => None,
        };
        if let Some((ty, output)) = output {
            send(&json!({ "id": id, "type": ty, "output": output }));
        }
        send(&json!({ "id": id, "done": { "ended": true, "reboot": false } }));
    }
}

fn powershell(executable: Option<PathBuf>) -> PowerShell {
    PowerShell::new(PowerShellOptions {
        executable,
        module_path: Vec::new(),
        cache: None,
        environment: Environment::of_this_process(&[]),
        user: User::current(),
        width: 1,
        isolated: false,
    })
}

fn provider(powershell: &PowerShell, name: &str) -> Arc<dyn Provider> {
    let adapter = TypeName::parse(ADAPTERS[0]).unwrap();
    let type_name = TypeName::parse(&format!("PSDesiredStateConfiguration/{name}")).unwrap();
    let listed = powershell.list(&mut powershell.search(), &adapter);
    let listing = listed.iter().find(|each| each["type"] == type_name.as_str()).unwrap();
    let resource = AdaptedResource {
        require_adapter: adapter,
        path: listing["path"].as_str().map(PathBuf::from),
        content: None,
        schema: None,
        manifest_path: None,
        manifest: listing.clone(),
    };
    powershell.provider(&type_name, &resource).unwrap()
}

fn scripts(test: &str) -> Plain {
    Plain::new(json!({ "getscript": "@{ Result = 1 }", "TestScript": test, "SetScript": "$global:set = $true" }))
}

fn a_worker_is_given_the_three_scripts() {
    let powershell = powershell(Some(std::env::current_exe().unwrap()));
    let (script, cx) = (provider(&powershell, "Script"), Context::new(Path::new("/")));
    let state = script.get(&cx, &scripts("$false")).ok().unwrap().to_json();
    assert_eq!(state["Result"]["GetScript"], "@{ Result = 1 }");
    let module = state["Module"].as_str().unwrap();
    assert!(module.starts_with("text:") && module.contains("function Test-TargetResource"), "{module}");
    let verdict = |test| script.test(&cx, &scripts(test)).ok().unwrap().in_desired_state;
    assert_eq!((verdict("$false"), verdict("$true")), (Some(false), Some(true)));
    assert!(script.set(&cx, &scripts("$false"), Execution::Actual).is_ok());
}

fn without_powershell_a_script_is_checked() {
    let powershell = powershell(None);
    let (script, cx) = (provider(&powershell, "Script"), Context::new(Path::new("/")));
    assert!(script.validate(&cx, &scripts("$true")).is_ok());
    let wrong = script.validate(&cx, &Plain::new(json!({ "GetScript": "", "TestScript": 1.5 }))).unwrap_err();
    assert_eq!(wrong.kind, FailureKind::Invalid);
    assert!(wrong.message.contains("properties.SetScript"), "{}", wrong.message);
    assert!(matches!(script.test(&cx, &scripts("$true")), Err(failure) if failure.kind == FailureKind::Start));
}

fn a_log_writes_its_message_once() {
    let log = provider(&powershell(None), "Log");
    let written = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&written);
    let trace = Arc::new(move |_, text: &str| seen.lock().unwrap().push(text.to_owned()));
    let cx = Context { trace, ..Context::new(Path::new("/")) };
    let input = Plain::new(json!({ "message": "here" }));
    assert_eq!(log.test(&cx, &input).ok().unwrap().in_desired_state, Some(true));
    assert_eq!(log.get(&cx, &input).ok().unwrap().to_json(), json!({ "Message": "here" }));
    assert!(log.set(&cx, &input, Execution::WhatIf).is_ok());
    assert_eq!(*written.lock().unwrap(), ["here"]);
}

fn scripts_on_real_powershell() {
    let Some(pwsh) = stead_testkit::powershell("scripts_on_real_powershell") else { return };
    let powershell = powershell(Some(pwsh));
    let (script, cx) = (provider(&powershell, "Script"), Context::new(Path::new("/")));
    let verdict = |test| script.test(&cx, &scripts(test)).map(|reply| reply.in_desired_state);
    assert_eq!(verdict("'noise'; $false").ok().flatten(), Some(false));
    assert_eq!(verdict("$true").ok().flatten(), Some(true));
    assert!(verdict("'true'").is_err(), "a text is not a verdict");
    assert!(verdict("throw 'no'").is_err());
    assert_eq!(script.get(&cx, &scripts("$true")).ok().unwrap().to_json()["Result"], json!(1));
    assert!(script.set(&cx, &scripts("$true"), Execution::Actual).is_ok());
}
