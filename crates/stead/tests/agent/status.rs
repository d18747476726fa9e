//! The status of the agent: for users, and for monitoring by exit codes.

use serde_json::{Value as Json, json};
use stead_testkit::until;

use crate::machine::Machine;

fn file(machine: &Machine, name: &str) -> Json {
    json!({"name": name, "type": "Stead/File", "properties": {"path": machine.path(name), "content": "right\n"}})
}

fn failing(message: &str) -> Json {
    let set = format!("echo '{message}' >&2; exit 1");
    json!({"name": "fails", "type": "Stead/Command", "properties": {"test": "false", "set": set}})
}

fn text(machine: &Machine) -> (String, Option<i32>) {
    let output = machine.run(&["status"]);
    (String::from_utf8(output.stdout).unwrap(), output.status.code())
}

#[test]
fn the_exit_code_says_how_the_machine_is() {
    let mut machine = Machine::new();
    machine.start();
    assert_eq!(text(&machine).1, Some(6), "there is no document");
    machine.ok(&["settings", "set", "ResourceRetryCount=0", "PendingRetrySecs=600", "SplaySecs=0"]);
    machine.deliver("good", &json!([file(&machine, "f")]));
    machine.wait(0);
    assert_eq!(text(&machine).1, Some(0));
    machine.write("f", "wrong\n");
    until(|| (text(&machine).1 == Some(2)).then_some(()));
    let (shown, _) = text(&machine);
    assert!(shown.contains("drifted Stead/File:f: ") && shown.contains("content"), "{shown}");
    machine.deliver("bad", &json!([failing("no such share")]));
    until(|| (text(&machine).1 == Some(4)).then_some(()));
    let (shown, _) = text(&machine);
    assert!(shown.contains("Pending      generation 2 from ") && shown.contains("(by "), "{shown}");
    assert!(shown.contains("failed Stead/Command:fails: ") && shown.contains("no such share (since "), "{shown}");
    machine.ok(&["stop"]);
    assert_eq!(text(&machine).1, Some(6), "it is held");
    machine.stop();
}

/// A current document of which something fails is shown as the Local Configuration Manager shows it, and is tried again before
/// its next check.
#[test]
fn a_current_document_that_fails_is_not_idle() {
    let mut machine = Machine::new();
    machine.start();
    machine.ok(&["settings", "set", "ResourceRetryCount=0", "PendingRetrySecs=1", "PendingRetryMaxSecs=1"]);
    let (allowed, done) = (machine.path("allowed").display().to_string(), machine.path("done").display().to_string());
    machine.write("allowed", "");
    let set = format!("test -e {allowed} && touch {done}");
    let each =
        json!({"name": "c", "type": "Stead/Command", "properties": {"test": format!("test -e {done}"), "set": set}});
    machine.deliver_with("one", &json!({"configurationMode": "ApplyAndAutoCorrect"}), &json!([each]));
    machine.wait(0);
    std::fs::remove_file(machine.path("allowed")).unwrap();
    std::fs::remove_file(machine.path("done")).unwrap();
    // Everything is looked at by new settings.
    machine.ok(&["settings", "set", "SplaySecs=1"]);
    until(|| (machine.status()["LCMState"] == "PendingConfiguration").then_some(()));
    let (found, code) = machine.status_and_code();
    assert_eq!((found["Pending"].as_u64(), code), (None, Some(4)), "{found}");
    assert!(machine.troubles("current").concat().starts_with("failed Stead/Command:c "), "{found}");
    // The interval is a quarter of an hour.
    machine.write("allowed", "");
    until(|| machine.read("done"));
    until(|| (machine.status_and_code().1 == Some(0)).then_some(()));
    machine.stop();
}

/// An instance that has failed and was to be tried again has failed, also when a restart of the machine comes before that; and
/// what asked for the restart was set.
#[test]
fn a_failure_before_a_restart_is_not_lost() {
    let mut machine = Machine::new();
    machine.start();
    machine.ok(&[
        "settings",
        "set",
        "ResourceRetryCount=3",
        "ResourceRetryMaxSecs=600",
        "ResourceRetrySecs=600",
        "PendingRetrySecs=600",
        "Width=1",
    ]);
    let asks = json!({"name": "r", "type": "Test/Restart", "properties": {"path": machine.path("r")}});
    machine.deliver("one", &json!([failing("out of paper"), asks]));
    until(|| (machine.status()["LCMState"] == "PendingReboot").then_some(()));
    let (found, _) = machine.status_and_code();
    assert_eq!((&found["Job"]["Status"], &found["Job"]["NumberNotInDesiredState"]), (&json!("Failure"), &json!(2)));
    let troubles = machine.troubles("pending");
    assert!(
        troubles[0].starts_with("failed Stead/Command:fails ") && troubles[0].contains("out of paper"),
        "{troubles:?}"
    );
    assert_eq!(troubles[1], "restart Test/Restart:r it was set, and asks for a restart of the machine");
    let reports = machine.json(&["report"]);
    let instances = reports["reports"][0]["report"]["instances"].as_array().unwrap().clone();
    let said = |at: usize| (instances[at]["name"].clone(), instances[at]["status"].clone());
    assert_eq!([said(0), said(1)], [(json!("fails"), json!("failed")), (json!("r"), json!("changed"))]);
    machine.stop();
}

/// A report is found by any part of its id that no other has, and is shown as text or as JSON.
#[test]
fn a_report_is_found_and_read() {
    let mut machine = Machine::new();
    machine.start();
    machine.ok(&["settings", "set", "ResourceRetryCount=0", "PendingRetrySecs=600"]);
    machine.deliver("one", &json!([file(&machine, "f"), failing("nothing there")]));
    until(|| (text(&machine).1 == Some(4)).then_some(()));
    let listed = machine.ok(&["report"]);
    assert!(
        listed.contains("Generation") && listed.contains("failed") && listed.contains("1 changed, 1 failed"),
        "{listed}"
    );
    let id = machine.json(&["report"])["reports"][0]["job"].as_str().unwrap().to_owned();
    let tail = &id[id.len() - 6..];
    let shown = machine.ok(&["report", tail]);
    assert!(shown.contains("Result       failed") && shown.contains("nothing there"), "{shown}");
    assert_eq!(machine.json(&["report", tail])["job"]["id"], json!(id));
    machine.stop();
}

/// Whoever collects reports asks from where the last answer ended, and gets each once.
#[test]
fn reports_are_read_behind_a_cursor() {
    let mut machine = Machine::new();
    machine.start();
    let behind = |machine: &Machine, cursor: &Json| {
        let answer = machine.json(&["report", "--after", &cursor.to_string()]);
        let jobs = answer["reports"].as_array().unwrap().iter().map(|each| each["job"].as_str().unwrap().to_owned());
        (jobs.collect::<Vec<_>>(), answer["next"].clone())
    };
    machine.ok(&["settings", "set", "ConfigurationMode=ApplyOnly"]);
    assert_eq!(behind(&machine, &json!(0)), (vec![], json!(0)));
    machine.deliver("one", &json!([file(&machine, "f")]));
    machine.wait(0);
    let (first, next) = behind(&machine, &json!(0));
    assert_eq!((first.len(), behind(&machine, &next)), (1, (vec![], next.clone())));
    machine.deliver("two", &json!([file(&machine, "g")]));
    machine.wait(0);
    let (second, _) = behind(&machine, &next);
    assert!(second.len() == 1 && second != first, "{first:?} {second:?}");
    machine.stop();
}

/// A job over a part says what it looks at.
#[test]
fn a_job_over_a_part_is_shown_as_one() {
    let mut machine = Machine::new();
    machine.fifo("gate");
    machine.start();
    let [held, gate] = ["held", "gate"].map(|name| machine.path(name).display().to_string());
    machine.write("guard.sh", &format!("if test -e {held}; then read line < {gate}; fi\n"));
    let mut guarded = file(&machine, "f");
    guarded["properties"]["validate"] = json!(format!("sh {} %s", machine.path("guard.sh").display()));
    machine.deliver_with("one", &json!({"configurationMode": "ApplyAndAutoCorrect"}), &json!([guarded]));
    machine.wait(0);
    until(|| (machine.jobs() >= 2).then_some(()));
    machine.write("held", "");
    machine.write("f", "wrong\n");
    until(|| (machine.status()["LCMState"] == "Busy").then_some(()));
    let (shown, _) = text(&machine);
    assert!(shown.contains("State        Busy: looking at 1 instance of generation 1 that has changed\n"), "{shown}");
    assert!(!shown.contains("Next ") && !shown.contains("0 of 0"), "{shown}");
    machine.write("gate", "go\n");
    until(|| machine.read("f").filter(|text| text == "right\n"));
    machine.stop();
}

/// A job that came over no instance says why, and counts none.
#[test]
fn a_job_that_came_over_nothing_says_why() {
    let mut machine = Machine::new();
    let get = json!({"executable": "sh", "args": ["-c", "echo '{}'"]});
    let manifest = json!({"$schema": "https://aka.ms/dsc/schemas/v3/bundled/resource/manifest.json", "type": "Test/Thing",
        "version": "1.0.0", "get": get, "schema": {"embedded": {"type": "object"}}});
    machine.write("thing.dsc.resource.json", &manifest.to_string());
    machine.start();
    machine.deliver("one", &json!([{"name": "t", "type": "Test/Thing", "properties": {}}]));
    machine.wait(0);
    std::fs::remove_file(machine.path("thing.dsc.resource.json")).unwrap();
    // Everything is looked at by new settings.
    machine.ok(&["settings", "set", "SplaySecs=1"]);
    until(|| (machine.status()["Job"]["Status"] == "Failure").then_some(()));
    let (shown, code) = text(&machine);
    assert!(code == Some(4) && shown.contains("Resource not found: Test/Thing"), "{code:?} {shown}");
    assert!(shown.contains("Last job     Failure (") && !shown.contains("0 of 0"), "{shown}");
    machine.stop();
}

#[test]
fn what_cannot_be_known_is_shown_by_a_check_and_is_no_success() {
    let mut machine = Machine::new();
    let says = |text: &str| json!({"executable": "sh", "args": ["-c", format!("echo '{text}'")]});
    let unknown = r#"{"_inDesiredState": false, "_metadata": {"stead": {"unknown": "nobody hears it"}}}"#;
    let manifest = json!({"$schema": "https://aka.ms/dsc/schemas/v3/bundled/resource/manifest.json", "type": "Test/Bell",
        "version": "1.0.0", "get": says("{}"), "test": says(unknown), "set": says("{}"),
        "schema": {"embedded": {"type": "object"}}});
    machine.write("bell.dsc.resource.json", &manifest.to_string());
    machine.start();
    machine.deliver("one", &json!([{"name": "bell", "type": "Test/Bell", "properties": {}}]));
    machine.wait(0);
    let checked = machine.run(&["check"]);
    let shown = String::from_utf8(checked.stdout).unwrap();
    let expected = "  unknown: Test/Bell bell: nobody hears it\ncurrent (generation 1): 1 unknown\n";
    assert_eq!((shown.as_str(), checked.status.code()), (expected, Some(2)));
    machine.stop();
}

#[test]
fn settings_are_data_where_data_is_asked_for() {
    let mut machine = Machine::new();
    machine.start();
    let window = r#"MaintenanceWindows=[{Days: [Sat], From: "22:00", To: "04:00", For: Any}]"#;
    machine.ok(&["settings", "set", window]);
    let settings = machine.json(&["settings", "get"]);
    assert_eq!(settings["ConfigurationModeFrequencyMins"], 15);
    assert_eq!(
        settings["MaintenanceWindows"],
        json!([{"Days": ["Sat"], "From": "22:00", "To": "04:00", "For": "Any"}])
    );
    assert_eq!(settings["RestartCommand"], json!(["systemctl", "reboot"]));
    machine.stop();
}

/// Damage that was found at a start is shown until somebody has taken note of it.
#[test]
fn damage_is_shown_until_it_is_acknowledged() {
    let mut machine = Machine::new();
    machine.start();
    machine.deliver("one", &json!([file(&machine, "f")]));
    machine.wait(0);
    machine.kill();
    for name in ["state/state.json", "state/state.former.json"] {
        machine.write(name, "garbage");
    }
    machine.start();
    let (shown, code) = text(&machine);
    assert!(code == Some(6) && shown.contains("Damage       ") && shown.contains("deliver the document"), "{shown}");
    machine.deliver("one", &json!([file(&machine, "f")]));
    machine.wait(0);
    assert_eq!(text(&machine).1, Some(4), "nobody has taken note of it");
    machine.ok(&["acknowledge"]);
    let (shown, code) = text(&machine);
    assert!(code == Some(0) && !shown.contains("Damage"), "{shown}");
    machine.stop();
}

/// Containers that a condition leaves out, with all that they hold and what would act on them, are not failures: nothing is
/// retried.
#[test]
fn containers_that_are_left_out_are_no_failure() {
    let mut machine = Machine::new();
    machine.start();
    machine.ok(&["settings", "set", "ResourceRetryCount=0", "PendingRetrySecs=600", "SplaySecs=0"]);
    let group = json!({"name": "g", "type": "Microsoft.DSC/Group", "condition": "[equals(1, 2)]",
        "properties": {"resources": [file(&machine, "inner")]}});
    let assertion = json!({"name": "a", "type": "Microsoft.DSC/Assertion", "condition": "[equals(1, 2)]",
        "properties": {"resources": [file(&machine, "asserted")]}});
    let acts = json!({"name": "acts", "type": "Microsoft.DSC/Group", "directives": {"onChanges": ["Microsoft.DSC/Group:g"]},
        "properties": {"resources": [file(&machine, "acted")]}});
    machine.deliver_with(
        "left-out",
        &json!({"configurationMode": "ApplyAndAutoCorrect"}),
        &json!([group, assertion, acts, file(&machine, "f")]),
    );
    machine.wait(0);
    assert_eq!((machine.stage("current"), machine.stage("pending")), (Some(1), None));
    machine.ok(&["apply", "--use-existing", "--wait"]);
    let (found, code) = machine.status_and_code();
    assert_eq!((&found["LCMState"], &found["Owed"], code), (&json!("Idle"), &json!([]), Some(0)), "{found}");
    assert!(["inner", "asserted", "acted"].iter().all(|name| machine.read(name).is_none()));
    machine.stop();
}

/// No document is not a converged one.
#[test]
fn a_wait_without_a_document_says_so() {
    let mut machine = Machine::new();
    machine.start();
    for arguments in [&["wait"][..], &["wait", "--timeout", "1"], &["wait", "--until-converged", "--timeout", "3"]] {
        let output = machine.run(arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!output.status.success() && text.contains("no document was delivered"), "{arguments:?}: {text}");
    }
    machine.stop();
}

/// A document that is current for a while pays nobody else's debts, and does not make them forgotten.
#[test]
fn what_a_document_owes_outlives_another_one() {
    let mut machine = Machine::new();
    machine.start();
    machine.ok(&["settings", "set", "ResourceRetryCount=0", "PendingRetrySecs=600", "SplaySecs=0"]);
    let (fine, done) = (machine.path("fine").display().to_string(), machine.path("done").display().to_string());
    let set = format!("test -e {fine} && touch {done}");
    let handler = json!({"name": "h", "type": "Stead/Command", "properties": {"set": set},
        "directives": {"onChanges": ["Stead/File:f"]}});
    let web = json!([file(&machine, "f"), handler]);
    machine.deliver("web", &web);
    until(|| (machine.count("jobEnded", "") >= 1).then_some(()));
    machine.deliver("other", &json!([file(&machine, "g")]));
    machine.wait(0);
    machine.write("fine", "");
    machine.deliver("web", &web);
    machine.wait(0);
    assert!(machine.read("done").is_some(), "{}", machine.status());
    machine.stop();
}

/// A set that failed may leave behind what looks like the desired state: the next attempt does not take it for that.
#[test]
fn what_left_a_program_running_is_not_in_state_by_the_mark_it_made() {
    let mut machine = Machine::new();
    machine.start();
    machine.ok(&[
        "settings",
        "set",
        "ResourceRetryCount=0",
        "PendingRetrySecs=1",
        "PendingRetryMaxSecs=1",
        "SplaySecs=0",
    ]);
    let mark = machine.path("mark").display().to_string();
    let command = |set: String| json!([{"name": "c", "type": "Stead/Command", "properties": {"test": format!("test -e {mark}"), "set": set}}]);
    machine.deliver("leaves", &command(format!("touch {mark}; sleep 3600 > /dev/null 2>&1 &")));
    until(|| (machine.jobs() >= 3).then_some(()));
    let (found, code) = machine.status_and_code();
    assert_eq!((machine.stage("current"), machine.stage("pending"), code), (None, Some(1), Some(4)), "{found}");
    let (text, _) = text(&machine);
    assert!(text.contains("start that program as a service"), "{text}");
    // Another delivery does not believe the mark either, nor does one after another process.
    machine.kill();
    machine.start();
    machine.deliver("ends", &command(format!("touch {mark}")));
    until(|| machine.troubles("pending").concat().contains("it seems to be in its desired state").then_some(()));
    let (found, code) = machine.status_and_code();
    assert_eq!((machine.stage("current"), machine.stage("pending"), code), (None, Some(2), Some(4)), "{found}");
    assert!(machine.troubles("pending").concat().contains("deliver the document again"), "{found}");
    std::fs::remove_file(&mark).unwrap();
    machine.deliver("ends", &command(format!("touch {mark}")));
    machine.wait(0);
    assert_eq!((machine.stage("current"), machine.stage("pending")), (Some(3), None));
    machine.deliver("ends", &command(format!("touch {mark}; true")));
    machine.wait(0);
    assert_eq!(machine.stage("current"), Some(4), "a set of it ran through");
    machine.stop();
}

/// An administrator says that the instance is all right, in the document that is staged.
#[test]
fn what_left_a_program_running_is_all_right_once_an_administrator_says_so() {
    let mut machine = Machine::new();
    machine.start();
    machine.set("ResourceRetryCount=0", "PendingRetrySecs=600");
    let mark = machine.path("mark").display().to_string();
    let properties = json!({"creates": mark, "set": format!("touch {mark}; sleep 3600 > /dev/null 2>&1 &")});
    let leaves = json!([{"name": "c", "type": "Stead/Command", "properties": properties}]);
    for number in [1, 2] {
        machine.deliver("leaves", &leaves);
        until(|| machine.troubles("pending").concat().starts_with("withheld ").then_some(()));
        assert_eq!((machine.stage("current"), machine.stage("pending")), (None, Some(number)));
    }
    machine.ok(&["apply", "--use-existing"]);
    machine.wait(0);
    assert_eq!((machine.stage("current"), machine.stage("pending")), (Some(2), None));
    machine.stop();
}

/// An event that cannot be saved is shown with the reason, and nothing is begun until it can be.
#[test]
fn a_state_that_cannot_be_saved_is_shown_until_it_can_be() {
    let mut machine = Machine::new();
    machine.start();
    machine.ok(&["settings", "set", "ResourceRetryCount=0", "PendingRetrySecs=1", "PendingRetryMaxSecs=1"]);
    machine.fifo("gate");
    let done = machine.path("done").display().to_string();
    let set = format!(
        "touch {0}; read line < {1}; touch {done}",
        machine.path("began").display(),
        machine.path("gate").display()
    );
    let waits =
        json!({"name": "w", "type": "Stead/Command", "properties": {"test": format!("test -e {done}"), "set": set}});
    machine.deliver("one", &json!([waits]));
    until(|| machine.read("began"));
    machine.limit_files(Some(0));
    machine.write("gate", "go\n");
    until(|| machine.read("done"));
    until(|| machine.status()["NotSaved"].is_string().then_some(()));
    let (shown, code) = text(&machine);
    assert!(shown.contains("Not saved") && shown.contains("nothing is begun until it is"), "{shown}");
    assert_eq!(code, Some(4));
    machine.limit_files(None);
    machine.wait(0);
    assert!(machine.status()["NotSaved"].is_null());
    machine.kill();
    machine.start();
    assert_eq!((machine.stage("current"), machine.stage("pending")), (Some(1), None), "it was saved");
    machine.stop();
}

/// What a document of the agent asks for is what its settings say; whoever reads a report or the status sees whose it is.
#[test]
fn labels_of_the_settings_are_facts_and_in_reports() {
    let mut machine = Machine::new();
    machine.start();
    machine.ok(&["settings", "set", "Labels={role: web, site: berlin}"]);
    let content = "[concat(facts('labels.role'), ' in ', facts('labels.site'))]";
    let path = machine.path("who");
    let who = json!({"name": "who", "type": "Stead/File", "properties": {"path": path, "content": content}});
    machine.deliver("one", &json!([who]));
    machine.wait(0);
    assert_eq!(std::fs::read_to_string(machine.path("who")).unwrap(), "web in berlin");
    let label = |value: &str| json!({"value": value, "provenance": "own"});
    let status = machine.json(&["status"]);
    let report = &machine.json(&["report", "-n", "1"])["reports"][0]["report"];
    for shown in [&status["Machine"], &report["machine"]] {
        assert_eq!(shown["labels"]["role"], label("web"), "{shown}");
        assert_eq!(shown["id"], status["Machine"]["id"]);
        assert!(shown["name"].is_string(), "{shown}");
    }
    let (shown, _) = text(&machine);
    assert!(shown.contains("Labels       role=web, site=berlin\n"), "{shown}");
    machine.ok(&["settings", "set", "Labels={}"]);
    let (shown, _) = text(&machine);
    assert!(!shown.contains("Labels"), "{shown}");
    machine.stop();
}
