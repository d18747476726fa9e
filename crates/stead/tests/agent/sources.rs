//! A folder that the agent follows.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::sync::Arc;

use rustix::process::Signal;
use serde_json::{Value as Json, json};
use stead_core::bundle::Bundle;
use stead_testkit::until;

use crate::machine::Machine;

/// Bundles a document that keeps the file `kept` at this content, in a file of the folder that is followed.
fn publish(machine: &Machine, name: &str, content: &str) {
    let kept = json!({"name": "kept", "type": "Stead/File",
        "properties": {"path": machine.path("kept"), "content": content}});
    put(machine, name, &json!({"directives": {"configurationMode": "ApplyAndAutoCorrect"}, "resources": [kept]}));
}

fn put(machine: &Machine, name: &str, document: &Json) {
    machine.write("site.yaml", &document.to_string());
    let [site, made, at] =
        ["site.yaml", "site.bundle", &format!("source/{name}")].map(|name| machine.path(name).display().to_string());
    let bundled = Command::new(env!("CARGO_BIN_EXE_stead")).args(["bundle", &site, "-o", &made]).output().unwrap();
    assert!(bundled.status.success(), "{}", String::from_utf8_lossy(&bundled.stderr));
    fs::rename(made, at).unwrap();
}

/// An agent that follows the folder `source` of the machine, which is empty.
fn following() -> Machine {
    let mut machine = Machine::new();
    fs::create_dir(machine.path("source")).unwrap();
    machine.start();
    machine.set("PendingRetrySecs=1", "SplaySecs=0");
    let folder = format!("SourceFolder={}", machine.path("source").display());
    machine.set(&folder, "RefreshFrequencyMins=0.02");
    machine
}

/// Waits until the agent has looked at what is in the folder: with a second bundle it must say so, and without it no more.
fn looked(machine: &Machine) {
    let mut bundles = fs::read_dir(machine.path("source")).unwrap().map(|entry| entry.unwrap().path());
    let bundle = bundles.find(|path| !path.ends_with(".hidden")).unwrap();
    let failure = || machine.status()["Source"]["Failure"].clone();
    let second = machine.path("source/second.bundle");
    fs::copy(bundle, &second).unwrap();
    machine.signal(Signal::USR1);
    until(|| failure().as_str().filter(|failure| failure.contains("are both bundles")).map(|_| ()));
    fs::remove_file(second).unwrap();
    machine.signal(Signal::USR1);
    until(|| failure().is_null().then_some(()));
}

fn newest(machine: &Machine) -> usize {
    machine.json(&["history"])["generations"].as_array().unwrap().len()
}

#[test]
fn what_lies_in_a_folder_is_delivered_once_and_again_when_it_is_another() {
    let mut machine = following();
    until(|| machine.status()["Source"]["Place"].is_string().then_some(()));
    publish(&machine, "a.bundle", "one\n");
    until(|| machine.read("kept").filter(|text| text == "one\n"));
    machine.wait(0);
    // Killed and started again, it has what it took; drift is repaired from it, also when the folder is empty.
    machine.kill();
    machine.start();
    looked(&machine);
    assert_eq!(newest(&machine), 1, "it is not taken again");
    fs::remove_file(machine.path("source/a.bundle")).unwrap();
    machine.write("kept", "drifted\n");
    until(|| machine.read("kept").filter(|text| text == "one\n"));
    publish(&machine, "b.bundle", "one\n");
    looked(&machine);
    assert_eq!(newest(&machine), 1, "the same bundle is not newer, whatever its name");
    publish(&machine, "b.bundle", "two\n");
    until(|| machine.read("kept").filter(|text| text == "two\n"));
    assert_eq!(newest(&machine), 2);
    // What is delivered by hand counts until the folder has another one; it is no longer followed when nothing is set.
    publish(&machine, ".hidden", "three\n");
    let hidden = machine.path("source/.hidden").display().to_string();
    machine.ok(&["apply", &hidden, "--wait"]);
    looked(&machine);
    assert_eq!((machine.read("kept").as_deref(), newest(&machine)), (Some("three\n"), 3));
    machine.ok(&["settings", "set", "SourceFolder="]);
    until(|| machine.status()["Source"].is_null().then_some(()));
    machine.stop();
}

#[test]
fn what_cannot_be_delivered_is_shown_until_it_can() {
    let mut machine = following();
    publish(&machine, "a.bundle", "one\n");
    until(|| machine.read("kept").filter(|text| text == "one\n"));
    machine.wait(0);
    let failure = |part: &str| {
        until(|| machine.status()["Source"]["Failure"].as_str().filter(|failure| failure.contains(part)).map(|_| ()));
        let (found, code) = machine.status_and_code();
        assert_eq!((found["Health"].as_str(), code), (Some("failing"), Some(4)), "{found}");
    };
    let bundle = machine.path("source/a.bundle");
    let whole = fs::read(&bundle).unwrap();
    fs::write(machine.path("source/b.bundle"), &whole).unwrap();
    failure("are both bundles; a folder that is followed has one");
    fs::remove_file(machine.path("source/b.bundle")).unwrap();
    let wrong = "resources: [{name: x, type: Stead/File, properties: {path: y, contents: z}}]";
    let wrong = Bundle::new(None, ("site.yaml".to_owned(), Arc::from(wrong)), BTreeMap::new()).unwrap().encode();
    fs::write(&bundle, &wrong[..100]).unwrap();
    failure("cannot use");
    fs::write(&bundle, wrong).unwrap();
    failure("found; nothing was staged");
    let findings = machine.status()["Source"]["Findings"].to_string();
    assert!(findings.contains("site.yaml:1:") && findings.contains("there is no property 'contents'"), "{findings}");
    put(
        &machine,
        "a.bundle",
        &json!({"resources": [{"name": "own", "type": "Stead/Directory",
        "properties": {"path": machine.path("state"), "mode": "0755"}}]}),
    );
    failure("manages what belongs to the agent");
    let text = String::from_utf8(machine.run(&["status"]).stdout).unwrap();
    assert!(text.lines().any(|line| line.starts_with("Source ") && line.contains("manages what belongs")), "{text}");
    if rustix::process::geteuid().is_root() {
        fs::set_permissions(machine.path("source"), Permissions::from_mode(0o777)).unwrap();
        failure("can be written by everyone");
        fs::set_permissions(machine.path("source"), Permissions::from_mode(0o700)).unwrap();
    }
    fs::write(&bundle, &whole).unwrap();
    until(|| machine.status()["Source"]["Failure"].is_null().then_some(()));
    assert_eq!((machine.read("kept").as_deref(), newest(&machine)), (Some("one\n"), 1), "nothing of it was staged");
    machine.stop();
}
