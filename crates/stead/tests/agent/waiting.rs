//! Waits: of the agent before it continues, and of callers.

use std::os::unix::fs::OpenOptionsExt;

use serde_json::{Value as Json, json};
use stead_testkit::until;

use crate::machine::Machine;

fn file(machine: &Machine, name: &str) -> Json {
    json!({"name": name, "type": "Stead/File", "properties": {"path": machine.path(name), "content": "right\n"}})
}

fn never() -> Json {
    json!({"name": "never", "type": "Stead/Command",
        "properties": {"test": "false", "set": "echo 'no such share' >&2; exit 1"}})
}

fn auto() -> Json {
    json!({"configurationMode": "ApplyAndAutoCorrect"})
}

/// Whatever a pending document failed for may be over when the agent starts.
#[test]
fn a_start_tries_what_is_pending_at_once() {
    let mut machine = Machine::new();
    machine.start();
    machine.ok(&["settings", "set", "ResourceRetryCount=0", "PendingRetryMaxSecs=6000", "PendingRetrySecs=6000"]);
    let copy = json!({"name": "copy", "type": "Stead/File",
        "properties": {"path": machine.path("copy"), "source": machine.path("source")}});
    machine.deliver("one", &json!([copy]));
    until(|| (machine.status()["Failures"] == 1).then_some(()));
    machine.write("source", "from the source\n");
    machine.kill();
    machine.start();
    machine.wait(0);
    assert_eq!(machine.read("copy").as_deref(), Some("from the source\n"));
    machine.stop();
}

/// A caller that waits sees failures, and does not wait for a problem that somebody must fix.
#[test]
fn a_failed_attempt_is_shown_and_returned_from() {
    let mut machine = Machine::new();
    machine.start();
    machine.ok(&["settings", "set", "ResourceRetryCount=0", "PendingRetryMaxSecs=6000", "PendingRetrySecs=6000"]);
    machine.write("never.json", &json!({ "resources": [never()] }).to_string());
    let path = machine.path("never.json").display().to_string();
    let said = |output: std::process::Output| (output.status.code(), String::from_utf8(output.stdout).unwrap());
    let (code, shown) = said(machine.run(&["apply", &path, "--wait"]));
    assert_eq!(code, Some(1), "{shown}");
    let expected =
        ["generation 1 is staged as pending", "failed Stead/Command:never: ", "no such share", "not converged: "];
    assert!(expected.iter().all(|text| shown.contains(text)), "{shown}");
    let (code, shown) = said(machine.run(&["wait"]));
    assert!(code == Some(1) && shown.starts_with("not converged: 1 attempt failed; next attempt "), "{shown}");
    let (code, shown) = said(machine.run(&["wait", "--until-converged", "--timeout", "1"]));
    assert_eq!((code, shown.as_str()), (Some(2), "still running\n"));
    machine.stop();
}

/// A restart that waits for its window is reported, and not waited for.
#[test]
fn a_restart_that_waits_for_its_window_is_returned_from() {
    let mut machine = Machine::new();
    machine.start();
    let day = (jiff::Zoned::now() + jiff::ToSpan::days(2)).strftime("%a").to_string();
    let window = format!("MaintenanceWindows=[{{Days: [{day}], From: \"00:00\", To: \"01:00\", For: Restart}}]");
    machine.ok(&["settings", "set", "RebootNodeIfNeeded=true", &window]);
    let asks = json!({"name": "r", "type": "Test/Restart", "properties": {"path": machine.path("r")}});
    machine.write("asks.json", &json!({ "resources": [asks] }).to_string());
    let output = machine.run(&["apply", &machine.path("asks.json").display().to_string(), "--wait"]);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(shown.contains("not converged: waiting for a maintenance window; next attempt "), "{shown}");
    machine.stop();
}

/// While a pending document waits to be tried again, the current one is looked after, but for what both manage.
#[test]
fn a_document_that_never_converges_does_no_harm_to_the_current_one() {
    let mut machine = Machine::new();
    machine.start();
    machine.ok(&["settings", "set", "ResourceRetryCount=0", "PendingRetryMaxSecs=6000", "PendingRetrySecs=6000"]);
    machine.deliver_with("good", &auto(), &json!([file(&machine, "own"), file(&machine, "shared")]));
    machine.wait(0);
    let mut shared = file(&machine, "shared");
    shared["properties"]["content"] = json!("new\n");
    machine.deliver("never", &json!([shared, never()]));
    until(|| (machine.status()["Failures"] == 1).then_some(()));
    assert_eq!(machine.read("shared").as_deref(), Some("new\n"));
    machine.write("own", "defaced\n");
    until(|| machine.read("own").filter(|text| text == "right\n"));
    machine.write("shared", "new again\n");
    until(|| {
        let troubles = machine.troubles("current").concat();
        (troubles.contains("Stead/File:shared") && troubles.contains("the pending document may change it"))
            .then_some(())
    });
    assert_eq!(machine.read("shared").as_deref(), Some("new again\n"));
    assert_eq!((machine.stage("current"), machine.stage("pending")), (Some(1), Some(2)));
    machine.stop();
}

/// A run that only waits for its next attempt does not keep other runs from the machine, and continues after them.
#[test]
fn the_machine_is_free_while_a_retry_is_waited_for() {
    let mut machine = Machine::new();
    machine.start();
    machine.ok(&["settings", "set", "ResourceRetryCount=1", "ResourceRetryMaxSecs=6000", "ResourceRetrySecs=6000"]);
    machine.deliver("never", &json!([never()]));
    until(|| {
        let troubles = machine.status()["Troubles"].as_array().is_some_and(|all| !all.is_empty());
        troubles.then_some(())
    });
    machine.write("other.json", &json!({ "resources": [file(&machine, "f")] }).to_string());
    let output = machine.program(&["apply", &machine.path("other.json").display().to_string()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(machine.read("f").as_deref(), Some("right\n"));
    assert_eq!(machine.status()["LCMState"], "Busy", "the job goes on");
    machine.stop();
}

/// A caller that asks for the status learns which run the job waits for.
#[test]
fn a_job_that_waits_for_another_run_says_so() {
    let mut machine = Machine::new();
    machine.fifo("gate");
    machine.start();
    let done = machine.path("done").display().to_string();
    let set = format!("read line <{}; touch {done}", machine.path("gate").display());
    let test = format!("test -e {done}");
    let holds = json!({"name": "h", "type": "Stead/Command", "properties": {"test": test, "set": set}});
    machine.write("holds.json", &json!({ "resources": [holds] }).to_string());
    let path = machine.path("holds.json").display().to_string();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| machine.program(&["apply", &path]));
        let gate =
            until(|| std::fs::OpenOptions::new().write(true).custom_flags(0o4000).open(machine.path("gate")).ok());
        machine.deliver("one", &json!([file(&machine, "f")]));
        let detail = |status: &Json| status["LCMStateDetail"].as_str().unwrap().to_owned();
        until(|| Some(machine.status()).filter(|status| detail(status).contains(", waiting for 'stead apply ")));
        drop(gate);
        other.join().unwrap();
    });
    machine.wait(0);
    machine.stop();
}

/// An agent that is to end does not wait for a call that changes nothing; the next agent tests again.
#[test]
fn an_agent_that_waits_for_a_test_ends_at_once() {
    let mut machine = Machine::new();
    machine.start();
    let began = machine.path("began");
    let test = format!("touch {0}; test -e {1} || sleep 3600", began.display(), machine.path("go").display());
    let waits = json!({"name": "w", "type": "Stead/Command", "properties": {"test": test, "set": "exit 1"}});
    machine.deliver("waits", &json!([waits, file(&machine, "f")]));
    let mut longest = std::time::Duration::ZERO;
    for _ in 0..stead_testkit::times("STEAD_STOPS", 2) {
        until(|| began.exists().then_some(()));
        let asked = std::time::Instant::now();
        machine.stop();
        longest = longest.max(asked.elapsed());
        std::fs::remove_file(&began).unwrap();
        machine.start();
    }
    println!("ended within {} ms", longest.as_millis());
    assert!(longest < std::time::Duration::from_secs(10), "{longest:?}");
    assert_eq!(machine.count("crashed", ""), 0);
    until(|| began.exists().then_some(()));
    machine.stop();
    machine.write("go", "");
    machine.start();
    machine.wait(0);
    machine.stop();
}

/// A window that closes during a set ends that set's job before the next one.
#[test]
fn nothing_more_is_set_after_a_window_has_closed() {
    let mut machine = Machine::new();
    machine.fifo("gate");
    machine.start();
    let done = machine.path("done").display().to_string();
    let set = format!(
        "touch {}; read line < {}; touch {done}",
        machine.path("began").display(),
        machine.path("gate").display()
    );
    let first =
        json!({"name": "w", "type": "Stead/Command", "properties": {"test": format!("test -e {done}"), "set": set}});
    let mut second = file(&machine, "f");
    second["dependsOn"] = json!(["Stead/Command:w"]);
    machine.deliver("two", &json!([first, second]));
    until(|| machine.read("began"));
    let day = (jiff::Zoned::now() + jiff::ToSpan::days(2)).strftime("%a").to_string();
    machine.ok(&[
        "settings",
        "set",
        &format!("MaintenanceWindows=[{{Days: [{day}], From: \"00:00\", To: \"01:00\", For: Set}}]"),
    ]);
    machine.write("gate", "go\n");
    until(|| machine.read("done"));
    until(|| machine.status()["LCMStateDetail"].as_str().filter(|it| it.contains("maintenance window")).map(drop));
    assert!(machine.read("f").is_none());
    let reports = machine.json(&["report"])["reports"].to_string();
    assert!(reports.contains("the maintenance window closed before it was begun"), "{reports}");
    machine.ok(&["settings", "set", "MaintenanceWindows=[]"]);
    machine.wait(0);
    assert_eq!(machine.read("f").as_deref(), Some("right\n"));
    machine.stop();
}
