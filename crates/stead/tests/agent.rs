//! The agent as a process: documents that are delivered, kills, restarts of the machine, drift.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "agent/bundles.rs"]
mod bundles;
#[path = "agent/defects.rs"]
mod defects;
#[path = "agent/kills.rs"]
mod kills;
#[path = "agent/machine.rs"]
mod machine;
#[path = "agent/place.rs"]
mod place;
#[path = "support/points.rs"]
mod points;
#[path = "agent/posting.rs"]
mod posting;
#[path = "agent/releases.rs"]
mod releases;
#[path = "agent/reports.rs"]
mod reports;
#[path = "agent/restores.rs"]
mod restores;
#[path = "agent/sealed.rs"]
mod sealed;
#[path = "agent/soak.rs"]
mod soak;
#[path = "agent/sources.rs"]
mod sources;
#[path = "agent/status.rs"]
mod status;
#[path = "agent/waiting.rs"]
mod waiting;
#[path = "agent/watching.rs"]
mod watching;
#[path = "agent/web.rs"]
mod web;
#[path = "agent/wrong_hands.rs"]
mod wrong_hands;

use machine::Machine;
use serde_json::json;
use stead_testkit::until;

/// A file that exists once its set was let through: it says that it has begun, and waits for a line.
fn gated(machine: &Machine, name: &str) -> serde_json::Value {
    let path = |ending: &str| machine.path(&format!("{name}.{ending}")).display().to_string();
    let set = format!("echo x >> {0}; read line < {1}; echo done > {2}", path("began"), path("gate"), path("done"));
    json!({
        "name": name,
        "type": "Stead/Command",
        "properties": {"test": format!("test -e {}", path("done")), "set": set},
    })
}

/// A document that is delivered, killed in the middle, resumed, waits for a source, restarts the machine, converges, drifts
/// and is repaired; a bad one is refused, the former one restored, and a pending one removed.
#[test]
#[expect(clippy::too_many_lines, reason = "one story, in the order in which it happens")]
fn a_machine_is_kept_as_stated_through_everything() {
    let mut machine = Machine::new();
    machine.start();
    machine.set("PendingRetrySecs=1", "PendingRetryMaxSecs=1");
    machine.set("ResourceRetryCount=0", "SplaySecs=0");

    // Killed in the middle of a set.
    machine.fifo("slow.gate");
    let first = json!({"name": "first", "type": "Stead/File",
        "properties": {"path": machine.path("first"), "content": "1\n"}});
    let mut slow = gated(&machine, "slow");
    slow["dependsOn"] = json!(["Stead/File:first"]);
    let last = json!({"name": "last", "type": "Stead/File", "dependsOn": ["Stead/Command:slow"],
        "properties": {"path": machine.path("last"), "content": "2\n"}});
    machine.deliver("one", &json!([first, slow, last]));
    until(|| machine.read("slow.began"));
    machine.kill();
    assert!(machine.read("last").is_none());
    machine.start();
    until(|| machine.read("slow.began").filter(|began| began.lines().count() == 2));
    assert_eq!(machine.stage("pending"), Some(1), "what was accepted is not lost");
    machine.write("slow.gate", "go\n");
    machine.wait(0);
    assert_eq!((machine.stage("current"), machine.stage("pending")), (Some(1), None));
    assert_eq!(machine.read("last").as_deref(), Some("2\n"));
    assert_eq!(machine.count("callStarted", "Stead/File:first"), 1, "what is in its desired state is not set again");

    // A source that appears later.
    let copied = json!({"name": "copy", "type": "Stead/File",
        "properties": {"path": machine.path("copy"), "source": machine.path("source")}});
    machine.deliver("two", &json!([first, copied]));
    until(|| (machine.count("jobEnded", "") >= 3).then_some(()));
    assert_eq!((machine.stage("current"), machine.stage("pending")), (Some(1), Some(2)));
    machine.write("source", "from the source\n");
    machine.wait(0);
    assert_eq!((machine.stage("current"), machine.stage("previous")), (Some(2), Some(1)));
    assert_eq!(machine.read("copy").as_deref(), Some("from the source\n"));

    // Drift that is reported, and repaired on request.
    machine.write("first", "drifted\n");
    assert_eq!(machine.run(&["check"]).status.code(), Some(2));
    machine.ok(&["apply", "--use-existing", "--wait"]);
    assert_eq!(machine.read("first").as_deref(), Some("1\n"));

    // A resource that asks for a restart of the machine, and one that waits for it.
    let restarting = json!({"name": "kernel", "type": "Test/Restart", "properties": {"path": machine.path("kernel")}});
    let after = json!({"name": "after", "type": "Stead/File", "dependsOn": ["Test/Restart:kernel"],
        "properties": {"path": machine.path("after"), "content": "3\n"}});
    let auto = json!({"configurationMode": "ApplyAndAutoCorrect"});
    machine.deliver_with("three", &auto, &json!([restarting, after, first]));
    machine.wait(1);
    // A check of the current document may be under way.
    until(|| (machine.status()["LCMState"] == "PendingReboot").then_some(()));
    assert!(machine.read("after").is_none(), "nothing is begun before the restart");
    assert_eq!(machine.stage("current"), Some(2));
    // A new process in the same boot changes nothing about it.
    machine.kill();
    machine.start();
    machine.wait(1);
    // A check of the current document may be under way.
    until(|| (machine.status()["LCMState"] == "PendingReboot").then_some(()));
    machine.kill();
    machine.reboot();
    machine.start();
    machine.wait(0);
    assert_eq!(
        (machine.stage("current"), machine.stage("previous"), machine.stage("pending")),
        (Some(3), Some(2), None)
    );
    assert_eq!(machine.read("after").as_deref(), Some("3\n"));

    // Drift, and its repair by the agent itself.
    machine.write("first", "drifted\n");
    until(|| machine.read("first").filter(|text| text == "1\n"));
    // A resource that is a program is not watched; somebody must ask.
    std::fs::remove_file(machine.path("kernel")).unwrap();
    assert_eq!(machine.run(&["check"]).status.code(), Some(2));
    until(|| (machine.status()["LCMState"] == "Idle").then_some(()));
    machine.wait(0);

    // A bad document changes nothing.
    let before = machine.ok(&["history", "--output", "json"]);
    let misspelled = json!({"name": "first", "type": "Stead/File", "properties": {"path": "/x", "contnt": ""}});
    let refused = machine.try_deliver("bad", &json!({}), &json!([misspelled]));
    assert_eq!(refused.status.code(), Some(3));
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(text.contains("did you mean 'content'?") && text.contains("nothing was staged"), "{text}");
    assert_eq!(machine.ok(&["history", "--output", "json"]), before);

    // The former document once more, without what only the newer one made.
    machine.ok(&["restore", "--wait"]);
    assert!(machine.read("after").is_none());
    assert_eq!((machine.stage("current"), machine.stage("previous")), (Some(4), Some(3)));

    // One that never converges is removed.
    let never = json!({"name": "never", "type": "Stead/Command", "properties": {"test": "false", "set": "exit 1"}});
    machine.deliver("never", &json!([never]));
    until(|| (machine.status()["Job"]["Status"] == "Failure").then_some(()));
    machine.ok(&["remove", "--stage", "pending", "--force"]);
    assert_eq!((machine.stage("pending"), machine.stage("current")), (None, Some(4)));
    machine.stop();
}

/// A handler that acts on a change and fails is given its notification by a later job, when the change is long made.
#[test]
fn a_notification_is_delivered_by_a_later_job() {
    let mut machine = Machine::new();
    machine.start();
    machine.set("PendingRetrySecs=1", "PendingRetryMaxSecs=1");
    machine.set("ResourceRetryCount=0", "ResourceRetrySecs=1");
    let config = json!({"name": "config", "type": "Stead/File",
        "properties": {"path": machine.path("config"), "content": "1\n"}});
    let allowed = machine.path("allowed").display().to_string();
    let restarted = machine.path("restarted").display().to_string();
    let service = json!({"name": "service", "type": "Stead/Command",
        "directives": {"onChanges": ["Stead/File:config"]},
        "properties": {"test": format!("test -e {restarted}"), "set": format!("test -e {allowed} && touch {restarted}")}});
    machine.deliver("one", &json!([config, service]));
    until(|| (machine.count("jobEnded", "") >= 2).then_some(()));
    assert!(machine.read("restarted").is_none());
    machine.kill();
    machine.write("allowed", "");
    machine.start();
    machine.wait(0);
    assert!(machine.read("restarted").is_some(), "the restart that was owed was made");
    assert_eq!(machine.count("callStarted", "Stead/File:config"), 1);
    machine.stop();
}

/// A correction of the current document delivers nothing of what the pending one owes.
#[test]
fn each_document_delivers_what_it_owes() {
    let mut machine = Machine::new();
    machine.start();
    machine.ok(&["settings", "set", "ResourceRetryCount=0", "PendingRetryMaxSecs=6000", "PendingRetrySecs=6000"]);
    let file = |name: &str, content: &str| json!({"name": name, "type": "Stead/File", "properties": {"path": machine.path(name), "content": content}});
    let auto = json!({"configurationMode": "ApplyAndAutoCorrect"});
    machine.deliver_with("one", &auto, &json!([file("own", "right\n")]));
    machine.wait(0);
    let (allowed, restarted) = (machine.path("allowed"), machine.path("restarted"));
    let set = format!("test -e {} && touch {}", allowed.display(), restarted.display());
    let service = json!({"name": "service", "type": "Stead/Command", "properties": {"set": set},
        "directives": {"onChanges": ["Stead/File:config"]}});
    machine.deliver("two", &json!([file("config", "1\n"), service]));
    until(|| (machine.status()["Failures"] == 1).then_some(()));
    machine.write("own", "defaced\n");
    until(|| machine.read("own").filter(|text| text == "right\n"));
    until(|| (machine.status()["LCMState"] != "Busy").then_some(()));
    assert_eq!(machine.status()["Owed"], json!(["Stead/Command:service"]));
    let by_hand = machine.program(&["check", &machine.path("two.dsc.json").display().to_string()]).stdout;
    let by_hand = String::from_utf8(by_hand).unwrap();
    assert!(by_hand.contains("1 skipped") && !by_hand.contains("due"), "a run by hand delivers its own: {by_hand}");
    machine.write("allowed", "");
    machine.ok(&["apply", "--use-existing", "--wait"]);
    assert_eq!(machine.stage("current"), Some(2));
    assert!(machine.read("restarted").is_some(), "it converged without the restart");
    machine.stop();
}

/// What a delivery does not have any more goes, and with a restore what only the newer one had.
#[test]
fn what_is_no_longer_delivered_is_removed() {
    let mut machine = Machine::new();
    machine.start();
    machine.write("mine", "mine\n");
    let file = |name: &str| json!({"name": name, "type": "Stead/File", "properties": {"path": machine.path(name), "content": "x\n"}});
    let remove = json!({"removed": "remove"});
    machine.deliver_with("one", &remove, &json!([file("first"), file("second"), file("mine")]));
    machine.wait(0);
    machine.deliver_with("one", &remove, &json!([file("second"), file("third")]));
    machine.wait(0);
    let there = || ["first", "second", "third", "mine"].map(|name| machine.read(name).is_some());
    assert_eq!(there(), [false, true, true, true]);
    machine.ok(&["restore"]);
    machine.wait(0);
    assert_eq!(there(), [true, true, false, true]);
    machine.deliver_with("one", &remove, &json!([file("first"), file("second")]));
    machine.wait(0);
    machine.ok(&["check"]);
    machine.stop();
    let log = machine.read("agent.log").unwrap();
    let warned = log.lines().filter(|line| line.contains("'mine' (Stead/File)") && line.contains("W0533"));
    assert_eq!(warned.count(), 2, "once for each delivery that does not have it any more: {log}");
}

/// The directory and everything in it is for its owner alone, and secrets are in none of it.
#[test]
fn what_is_kept_is_private() {
    use std::os::unix::fs::PermissionsExt;

    let mut machine = Machine::new();
    machine.start();
    let document = json!({
        "parameters": {"password": {"type": "secureString"}},
        "resources": [{"name": "f", "type": "Stead/File",
            "properties": {"path": machine.path("secret"), "content": "[parameters('password')]"}}],
    });
    machine.write("document.json", &document.to_string());
    let path = machine.path("document.json").display().to_string();
    machine.ok(&["apply", &path, "--set", "password=canary-5f2c", "--wait"]);
    assert_eq!(machine.read("secret").as_deref(), Some("canary-5f2c"));
    machine.ok(&["report"]);
    for entry in machine.everything("state") {
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert!(mode == 0o700 || mode == 0o600, "{}: {mode:o}", entry.display());
        if entry.is_file() {
            let bytes = std::fs::read(&entry).unwrap();
            let found = bytes.windows(11).any(|window| window == b"canary-5f2c");
            assert!(!found, "{} holds the secret", entry.display());
        }
    }
    machine.stop();
}

/// Nothing that the agent says holds a secret, also where a program prints it and where it is what has drifted.
#[test]
fn no_answer_shows_a_secret() {
    const SECRET: &str = "canary-8d1e";
    let mut machine = Machine::new();
    machine.start();
    machine.set("ResourceRetryCount=0", "PendingRetrySecs=1800");
    let (kept, blurted) = (machine.path("kept"), "echo \"$secret\"; echo \"$secret\" >&2; exit 3");
    let document = json!({
        "parameters": {"password": {"type": "secureString"}},
        "resources": [
            {"name": "kept", "type": "Stead/File", "properties": {"path": kept, "content": "[parameters('password')]"}},
            {"name": "blurts", "type": "Stead/Command", "properties": {
                "test": "false", "set": blurted, "environment": {"secret": "[parameters('password')]"}}},
        ],
    });
    machine.write("document.json", &document.to_string());
    let path = machine.path("document.json").display().to_string();
    for password in ["password=first", &format!("password={SECRET}")] {
        machine.run(&["apply", &path, "--set", password, "--force"]);
        until(|| (machine.status()["Failures"].as_u64() >= Some(1)).then_some(()));
    }
    machine.write("kept", "something else");
    let id = machine.json(&["report"])["reports"][0]["job"].as_str().unwrap().to_owned();
    let report = machine.ok(&["report", &id]);
    assert!(report.contains("<secureValue>"), "the program printed it, and it is covered: {report}");
    let help = String::from_utf8(machine.run(&["--help"]).stdout).unwrap();
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let mut commands: Vec<Vec<&str>> =
        commands.filter_map(|line| Some(vec![line.split_whitespace().next()?])).collect();
    // Those that ask nothing of this agent, or would end what the others are about.
    commands
        .retain(|command| !["run", "install", "help", "remove", "stop", "restore", "publish"].contains(&command[0]));
    assert!(commands.len() >= 9, "{help}");
    for command in &mut commands {
        match command[0] {
            "apply" => command.extend(["--use-existing", "--wait", "--timeout", "1"]),
            "wait" => command.extend(["--timeout", "1"]),
            _ => {}
        }
    }
    commands.push(vec!["report", &id]);
    let encoded = base64(SECRET);
    let mut said = 0;
    for command in &commands {
        for form in ["text", "json", "yaml"] {
            let answer = machine.run(&[command, &["--output", form][..]].concat());
            for bytes in [answer.stdout, answer.stderr] {
                let text = String::from_utf8(bytes).unwrap();
                said += text.len();
                assert!(!text.contains(SECRET) && !text.contains(&encoded), "{command:?} as {form}: {text}");
            }
        }
    }
    assert!(said > 10_000, "{said} bytes: the search is blind");
    machine.stop();
}

/// A text in base64, as a program may print it.
fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

/// One agent at a time has a directory, and whoever is not there is said not to be.
#[test]
fn there_is_one_agent_and_a_clear_word_where_there_is_none() {
    let mut machine = Machine::new();
    let asked = machine.run(&["status"]);
    assert!(String::from_utf8(asked.stderr).unwrap().contains("no agent is running"));
    machine.start();
    let second = machine.run(&["run"]);
    assert_eq!(second.status.code(), Some(1));
    assert!(String::from_utf8(second.stderr).unwrap().contains("another agent is using"));
    machine.stop();
}

/// A document that is only published waits until somebody asks for it.
#[test]
fn what_is_published_waits_to_be_asked_for() {
    let mut machine = Machine::new();
    machine.start();
    let missing = machine.run(&["publish"]);
    assert!(String::from_utf8(missing.stderr).unwrap().contains("<FILE>"), "a document is required");
    let file = json!({"name": "f", "type": "Stead/File", "properties": {"path": machine.path("f"), "content": "x"}});
    machine.write("document.json", &json!({ "resources": [file] }).to_string());
    machine.ok(&["publish", &machine.path("document.json").display().to_string()]);
    machine.wait(1);
    assert_eq!((machine.stage("pending"), machine.read("f")), (Some(1), None));
    machine.ok(&["apply", "--use-existing", "--wait"]);
    assert_eq!(machine.read("f").as_deref(), Some("x"));
    machine.stop();
}

/// Drift of what is watched is repaired without anybody asking, and what comes back at once is left to the interval.
#[test]
fn drift_is_repaired_the_moment_it_happens() {
    let mut machine = Machine::new();
    machine.start();
    let file =
        json!({"name": "f", "type": "Stead/File", "properties": {"path": machine.path("f"), "content": "right\n"}});
    let once = json!({"name": "once", "type": "Stead/File", "directives": {"configurationMode": "ApplyOnly"},
        "properties": {"path": machine.path("once"), "content": "right\n"}});
    let auto = json!({"configurationMode": "ApplyAndAutoCorrect"});
    machine.deliver_with("one", &auto, &json!([file, once]));
    machine.wait(0);
    machine.write("once", "mine\n");
    // The interval is a quarter of an hour: only watching can be the reason.
    for _ in 0..5 {
        machine.write("f", "wrong\n");
        until(|| machine.read("f").filter(|text| text == "right\n"));
    }
    until(|| (machine.count("flapping", "Stead/File:f") == 1).then_some(()));
    assert_eq!(machine.read("once").as_deref(), Some("mine\n"), "what is only applied once is left alone");
    machine.write("f", "wrong again\n");
    until(|| (machine.status()["Flapping"] == json!(["Stead/File:f"])).then_some(()));
    let (found, code) = machine.status_and_code();
    assert_eq!((&found["Postponed"], code), (&json!(["Stead/File:f"]), Some(2)), "what is wrong is not forgotten");
    // Nobody writes to it any more; it is looked at once more when the minute is over.
    until(|| machine.read("f").filter(|text| text == "right\n"));
    until(|| (machine.status_and_code().1 == Some(0)).then_some(()));
    machine.stop();
}

/// Settings of a file are taken as a whole or not at all, and mistakes in it have their place.
#[test]
fn settings_are_loaded_from_a_file() {
    let mut machine = Machine::new();
    machine.start();
    let file = machine.path("settings.yaml").display().to_string();
    machine.write("settings.yaml", "ConfigurationMode: MonitorOnly\nGeneratons: 3\n");
    let refused = machine.run(&["settings", "load", &file]);
    assert_eq!(refused.status.code(), Some(3));
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(text.contains("settings.yaml:2:1") && text.contains("did you mean 'Generations'?"), "{text}");
    let misspelt = machine.run(&["settings", "set", "Generatons=3"]);
    let text = String::from_utf8(misspelt.stderr).unwrap();
    assert!(text.contains("unknown setting 'Generatons'; did you mean 'Generations'?"), "{text}");
    assert!(machine.ok(&["settings"]).contains("ConfigurationMode: ApplyAndMonitor"));
    machine.write("settings.yaml", "configurationmode: MonitorOnly\n");
    machine.ok(&["settings", "load", &file]);
    assert!(machine.ok(&["settings"]).contains("ConfigurationMode: MonitorOnly"));
    machine.stop();
}

/// Waiting ends with the outcome of the document that was delivered, whatever becomes of another.
#[test]
fn waiting_is_for_one_document() {
    let mut machine = Machine::new();
    machine.start();
    machine.set("ResourceRetryCount=0", "PendingRetrySecs=60");
    let never = json!({"resources": [{"name": "n", "type": "Stead/Command", "properties": {"test": "false", "set": "exit 1"}}]});
    machine.write("never.json", &never.to_string());
    let never = machine.path("never.json").display().to_string();
    let mut waiting = machine.spawn(&["apply", &never, "--wait", "--until-converged"]);
    until(|| (machine.status()["Job"]["Status"] == "Failure").then_some(()));
    let file = json!({"name": "f", "type": "Stead/File", "properties": {"path": machine.path("f"), "content": "1\n"}});
    machine.deliver("good", &json!([file]));
    machine.wait(0);
    assert_eq!(waiting.wait().unwrap().code(), Some(1), "another document took its place");

    machine.deliver(
        "never",
        &json!([{"name": "n", "type": "Stead/Command", "properties": {"test": "false", "set": "exit 1"}}]),
    );
    until(|| (machine.status()["Failures"] == 1).then_some(()));
    // Between two tries there is no job, and the tries can be stopped.
    machine.ok(&["stop"]);
    machine.wait(1);
    machine.stop();
}

/// Callers that are gone do not keep others from being answered.
#[test]
fn nobody_who_is_gone_is_waited_for() {
    let mut machine = Machine::new();
    machine.start();
    machine.set("ResourceRetryCount=0", "PendingRetrySecs=60");
    machine.deliver(
        "never",
        &json!([{"name": "n", "type": "Stead/Command", "properties": {"test": "false", "set": "exit 1"}}]),
    );
    let mut gone: Vec<_> = (0..70).map(|_| machine.spawn(&["wait", "--until-converged"])).collect();
    for waiting in &mut gone {
        waiting.kill().unwrap();
        waiting.wait().unwrap();
    }
    assert_eq!(machine.status()["Pending"], 1);
    machine.stop();
}

/// What is still working hands back data, and gets them with its next call, although the agent was killed in between: unless a
/// secret is among them, which only the process knew that was killed.
#[test]
fn what_is_still_working_goes_on_after_a_kill_between_its_sets() {
    const SLOW: &str = r#"
input=$(cat)
path=$(printf '%s' "$input" | sed 's/.*"path":"\([^"]*\)".*/\1/')
case $1 in
get) if test -e "$path"; then exist=true; else exist=false; fi; echo "{\"path\":\"$path\",\"_exist\":$exist}" ;;
set)
    printf '%s\n' "$input" >> "$path.sets"
    if test -e "$path.ready"; then touch "$path"; exit; fi
    case $path in *secret) data='{"id":7,"key":{"secureString":"hunter2!"}}' ;; *) data='{"id":7}' ;; esac
    echo "{\"_metadata\":{\"stead\":{\"pending\":{\"message\":\"it starts\",\"data\":$data,\"after\":1}}}}" ;;
esac
"#;
    for name in ["plain", "secret"] {
        let mut machine = Machine::new();
        machine.write("slow.sh", SLOW);
        let program = machine.path("slow.sh").display().to_string();
        let manifest = machine.read("restart.dsc.resource.json").unwrap();
        let restart = machine.path("restart.sh").display().to_string();
        machine.write(
            "slow.dsc.resource.json",
            &manifest.replace(&restart, &program).replace("Test/Restart", "Test/Slow"),
        );
        machine.start();
        machine.set("PendingRetrySecs=1", "SplaySecs=0");
        let sets = format!("{name}.sets");
        let instance = json!({"name": "slow", "type": "Test/Slow", "properties": {"path": machine.path(name)}});
        machine.deliver("one", &json!([instance]));
        until(|| machine.read(&sets));
        let is_recorded = |path: &std::path::PathBuf| {
            std::fs::read(path).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains("it starts"))
        };
        until(|| machine.everything("state").iter().any(is_recorded).then_some(()));
        machine.kill();
        machine.write(&format!("{name}.ready"), "");
        let before = machine.read(&sets).unwrap().lines().count();
        machine.start();
        machine.wait(0);
        let all = machine.read(&sets).unwrap();
        let after: Vec<&str> = all.lines().skip(before).collect();
        assert_eq!((after.len(), after[0].contains(r#""pending":{"id":7}"#)), (1, name == "plain"), "{all}");
        let log = machine.read("agent.log").unwrap() + &machine.ok(&["logs", "-n", "100"]);
        assert_eq!(log.contains("handed back is lost"), name == "secret", "{log}");
        let tells = |path: &std::path::PathBuf| {
            std::fs::read(path).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains("hunter2!"))
        };
        assert!(!machine.everything("state").iter().any(tells), "the secret is nowhere on the disk");
        machine.stop();
    }
}

/// An agent that is asked to end and killed before it could has not crashed: what it worked on is not to blame.
#[test]
fn an_end_in_order_that_is_cut_off_is_no_crash() {
    let mut machine = Machine::new();
    machine.start();
    machine.fifo("slow.gate");
    machine.deliver("one", &json!([gated(&machine, "slow")]));
    for attempt in 1..=4 {
        until(|| machine.read("slow.began").filter(|began| began.lines().count() == attempt));
        machine.ask_to_end();
        until(|| machine.read("state/state.json").filter(|state| state.contains("\"stopping\":true")));
        machine.kill();
        machine.start();
    }
    assert_eq!(machine.status()["Quarantined"], json!([]));
    machine.write("slow.gate", "go\n");
    machine.wait(0);
    machine.stop();
}

/// The table of states of the Local Configuration Manager, row by row, through real jobs: `S` succeeds, `F` fails, `r` asks
/// for a restart of the machine. What comes after one that does is not begun, and does not count.
#[test]
fn the_table_of_states_is_that_of_the_local_configuration_manager() {
    let rows = [
        ("S", "Idle", "Success", 0),
        ("F", "PendingConfiguration", "Failure", 1),
        ("SF", "PendingConfiguration", "Failure", 1),
        ("FS", "PendingConfiguration", "Failure", 1),
        ("SFS", "PendingConfiguration", "Failure", 1),
        ("FSF", "PendingConfiguration", "Failure", 2),
        ("Sr", "PendingReboot", "Success", 1),
        ("Fr", "PendingReboot", "Failure", 2),
        ("rS", "PendingReboot", "Success", 1),
        ("rF", "PendingReboot", "Success", 1),
    ];
    let mut machine = Machine::new();
    machine.start();
    for (row, lcm_state, status, not_in_state) in rows {
        machine.ok(&["settings", "set", "ResourceRetryCount=0", "PendingRetrySecs=600", "Width=1"]);
        let instance = |(at, kind): (usize, char)| {
            let path = machine.path(&format!("{row}-{at}"));
            match kind {
                'S' => {
                    json!({"name": format!("s{at}"), "type": "Stead/File", "properties": {"path": path, "content": ""}})
                }
                'F' => json!({"name": format!("f{at}"), "type": "Stead/Command",
                    "properties": {"test": "false", "set": "exit 1"}}),
                _ => json!({"name": format!("r{at}"), "type": "Test/Restart", "properties": {"path": path}}),
            }
        };
        machine.deliver(row, &json!(row.chars().enumerate().map(instance).collect::<Vec<_>>()));
        until(|| (machine.status()["Job"]["EndDate"].is_string()).then_some(()));
        let found = machine.status();
        let reported = (&found["LCMState"], &found["Job"]["Status"], &found["RebootRequested"]);
        assert_eq!(reported, (&json!(lcm_state), &json!(status), &json!(row.contains('r'))), "{row}: {found}");
        assert_eq!(found["Job"]["NumberNotInDesiredState"], json!(not_in_state), "{row}: {found}");
        machine.ok(&["report"]);
        // Every row begins on another machine that nothing is due on.
        machine.kill();
        std::fs::remove_dir_all(machine.path("state")).unwrap();
        machine.reboot();
        machine.start();
    }
    machine.stop();
}
