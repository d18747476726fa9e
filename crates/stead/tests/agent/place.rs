//! Loss of the agent's own files while it runs, its folder, socket, log and program; and signals.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;

use rustix::process::Signal;
use serde_json::{Value as Json, json};
use stead_testkit::until;

use crate::gated;
use crate::machine::Machine;

fn file(machine: &Machine, name: &str) -> Json {
    json!({"name": name, "type": "Stead/File", "properties": {"path": machine.path(name), "content": "right\n"}})
}

fn complaint(machine: &Machine, arguments: &[&str]) -> String {
    String::from_utf8(machine.run(arguments).stderr).unwrap()
}

/// Another agent could begin in a new folder, so this one ends, and says why.
#[test]
fn an_agent_whose_folder_is_gone_ends() {
    for replaced in [false, true] {
        let mut machine = Machine::new();
        machine.start();
        std::fs::rename(machine.path("state"), machine.path("elsewhere")).unwrap();
        if replaced {
            std::fs::create_dir(machine.path("state")).unwrap();
        }
        machine.signal(Signal::USR1);
        assert_eq!(machine.ended().code(), Some(1));
        let log = machine.read("agent.log").unwrap();
        assert!(log.contains("was removed or replaced while it ran"), "{log}");
        machine.start();
        machine.stop();
    }
}

/// An agent that cannot be reached is not said to be none, and can be reached again.
#[test]
fn a_socket_that_was_removed_is_made_again() {
    let mut machine = Machine::new();
    machine.start();
    std::fs::remove_file(machine.path("state/control.sock")).unwrap();
    let said = complaint(&machine, &["status"]);
    assert!(said.contains("an agent is running in ") && said.contains("its socket is gone"), "{said}");
    machine.signal(Signal::USR1);
    until(|| machine.run(&["history"]).status.success().then_some(()));
    machine.stop();
    let said = complaint(&machine, &["status"]);
    assert!(said.contains("no agent is running in "), "{said}");
}

/// A log that was moved away is started anew.
#[test]
fn a_log_that_was_taken_away_is_begun_anew() {
    let mut machine = Machine::new();
    machine.start();
    std::fs::rename(machine.path("state/log.jsonl"), machine.path("state/log.jsonl.1")).unwrap();
    machine.deliver("one", &json!([file(&machine, "f")]));
    machine.wait(0);
    assert!(machine.ok(&["logs"]).contains("documentStaged"));
    machine.stop();
}

/// A document that would remove the agent's own files is refused, and changes nothing.
#[test]
fn a_document_does_not_manage_the_agent_that_applies_it() {
    let mut machine = Machine::new();
    machine.start();
    let state = machine.path("state");
    let purged = json!({"path": state, "entries": [], "_purge": true});
    let cases = [
        ("Stead/Directory", purged),
        ("Stead/Directory", json!({"path": state, "mode": "0755"})),
        ("Stead/File", json!({"path": state.join("key"), "mode": "0644"})),
        ("Stead/Directory", json!({"path": machine.path(""), "_exist": false, "recurse": true})),
    ];
    for (kind, properties) in cases {
        let each = json!([{"name": "own", "type": kind, "properties": properties}]);
        let refused = machine.try_deliver("own", &json!({}), &each);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(
            refused.status.code() == Some(3) && said.contains("manages what belongs to the agent"),
            "{kind}: {said}"
        );
    }
    machine.deliver("one", &json!([file(&machine, "beside")]));
    machine.wait(0);
    machine.stop();
}

/// Idle connections do not keep the agent from answering others.
#[test]
fn connections_that_say_nothing_keep_nobody_waiting() {
    let mut machine = Machine::new();
    machine.start();
    let idle: Vec<UnixStream> =
        (0..200).map(|_| UnixStream::connect(machine.path("state/control.sock")).unwrap()).collect();
    assert_eq!(machine.status()["LCMState"], "Idle");
    drop(idle);
    machine.stop();
}

/// Signals that have other agents look at everything have this one do so, and none of them ends a set.
#[test]
fn signals_of_other_agents_are_heeded() {
    let mut machine = Machine::new();
    machine.fifo("slow.gate");
    machine.start();
    machine.deliver("one", &json!([gated(&machine, "slow")]));
    until(|| machine.read("slow.began"));
    let all = [Signal::USR1, Signal::USR2, Signal::ALARM, Signal::HUP, Signal::HUP, Signal::TERM, Signal::TERM];
    for signal in all {
        machine.signal(signal);
    }
    machine.write("slow.gate", "go\n");
    assert!(machine.ended().success());
    assert_eq!(machine.read("slow.done").as_deref(), Some("done\n"), "the set was made");
    machine.start();
    machine.wait(0);
    assert_eq!(machine.read("slow.began").unwrap().lines().count(), 1, "once");
    // What nobody watches is found.
    std::fs::remove_file(machine.path("slow.done")).unwrap();
    machine.signal(Signal::USR1);
    until(|| (machine.status()["Health"] == "drifted").then_some(()));
    machine.stop();
}

/// To a service HUP is a request to reload, at which it looks at everything and does not end.
#[test]
fn a_service_is_not_ended_by_hup() {
    let mut machine = Machine::new();
    machine.start_as_service();
    machine.deliver("one", &json!([file(&machine, "f")]));
    machine.wait(0);
    machine.signal(Signal::HUP);
    machine.signal(Signal::HUP);
    until(|| (machine.count("askedToLook", "") >= 1).then_some(()));
    until(|| (machine.status()["LCMState"] == "Idle").then_some(()));
    assert_eq!(machine.count("agentStopped", ""), 0);
    machine.stop();
}

/// An instance that keeps the agent from ending until it is killed is quarantined in the end, as one that crashes it
/// is.
#[test]
fn what_does_not_let_the_agent_end_is_left_out() {
    let mut machine = Machine::new();
    machine.fifo("slow.gate");
    machine.start_with(&["--stop-grace", "1"]);
    machine.deliver("one", &json!([gated(&machine, "slow"), file(&machine, "f")]));
    for attempt in 1..=3 {
        until(|| machine.read("slow.began").filter(|began| began.lines().count() == attempt));
        machine.signal(Signal::TERM);
        until(|| (machine.count("stopOverdue", "") == attempt).then_some(()));
        until(|| machine.read("state/state.json").filter(|state| state.contains("\"stopping\":false")));
        machine.kill();
        machine.start_with(&["--stop-grace", "1"]);
    }
    until(|| (machine.status()["Quarantined"] == json!(["Stead/Command:slow"])).then_some(()));
    until(|| machine.read("f"));
    machine.stop();
}

/// A replaced program is reported; the service manager may start the new one.
#[test]
fn a_program_that_was_replaced_is_said() {
    let mut machine = Machine::new();
    machine.start_program();
    assert_eq!(machine.status()["ProgramReplaced"], false);
    machine.write("other", "");
    std::fs::rename(machine.path("other"), machine.path("stead")).unwrap();
    machine.signal(Signal::USR1);
    until(|| (machine.status()["ProgramReplaced"] == true).then_some(()));
    assert!(String::from_utf8(machine.run(&["status"]).stdout).unwrap().contains("was replaced; restart the agent"));
    machine.stop();
}

/// systemd learns that the agent is ready, that it does not hang, and that it ends.
#[test]
fn a_service_reports_what_it_does() {
    let mut machine = Machine::new();
    let socket = std::os::unix::net::UnixDatagram::bind(machine.path("notify")).unwrap();
    socket.set_read_timeout(Some(std::time::Duration::from_mins(2))).unwrap();
    machine.start_reporting_to(&machine.path("notify"));
    let is_said = |wanted: &str| {
        let mut text = [0; 100];
        until(|| {
            let length = socket.recv(&mut text).unwrap();
            (text[..length] == *wanted.as_bytes()).then_some(())
        });
    };
    is_said("READY=1");
    is_said("WATCHDOG=1");
    // Whatever it waits for: a job that is under way is not a hang.
    machine.fifo("gate");
    let set = format!("touch {}; read line < {}", machine.path("began").display(), machine.path("gate").display());
    machine.deliver(
        "waits",
        &json!([{"name": "w", "type": "Stead/Command", "properties": {"creates": machine.path("began"), "set": set}}]),
    );
    until(|| machine.read("began"));
    is_said("WATCHDOG=1");
    machine.write("gate", "go\n");
    machine.ask_to_end();
    is_said("STOPPING=1");
    assert!(machine.ended().success());
}

/// A generation names the user who asked for it, and not that of the agent.
#[test]
fn a_generation_is_of_the_user_who_delivered_it() {
    const USER: u32 = 4711;
    if !stead_testkit::is_root("a_generation_is_of_the_user_who_delivered_it") {
        return;
    }
    let mut machine = Machine::new();
    machine.start_as_user(USER);
    let said = |arguments: &[&str]| {
        let output = machine.as_user(USER, arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    for name in ["one", "two"] {
        machine.write("document.json", &json!({"resources": [file(&machine, name)]}).to_string());
        said(&["apply", &machine.path("document.json").display().to_string(), "--wait"]);
    }
    // Root trusts no folder of others, and so its commands do not reach this agent: here is what they would send.
    let mut root = UnixStream::connect(machine.path("state/control.sock")).unwrap();
    root.write_all(b"{\"request\": \"restore\", \"generation\": null, \"force\": false}\n").unwrap();
    let mut answer = String::new();
    BufReader::new(root).read_line(&mut answer).unwrap();
    let history: Json = serde_json::from_str(&said(&["history", "-o", "json"])).unwrap();
    let users = history["generations"].as_array().unwrap().iter().map(|each| each["user"].as_u64().unwrap());
    assert_eq!(users.collect::<Vec<_>>(), [0, USER.into(), USER.into()], "newest first: {answer}");
    // Its exit code says that something is pending, or not.
    let status = machine.as_user(USER, &["status"]).output().unwrap().stdout;
    assert!(String::from_utf8_lossy(&status).contains("(by root)"));
    machine.stop();
}
