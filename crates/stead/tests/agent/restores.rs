//! Documents that are restored, and what newer ones made.

use serde_json::json;
use stead_testkit::until;

use crate::machine::Machine;

/// With a restore goes what only newer deliveries made, of whatever document, also where the restored one does not say that it removes
/// anything. It has not converged while something of that stays.
#[test]
fn what_only_newer_deliveries_made_goes_with_a_restore() {
    let mut machine = Machine::new();
    machine.start();
    machine.set("PendingRetrySecs=1", "PendingRetryMaxSecs=1");
    machine.write("mine", "mine\n");
    let file = |name: &str| json!({"name": name, "type": "Stead/File", "properties": {"path": machine.path(name), "content": "x\n"}});
    let folder = json!({"name": "folder", "type": "Stead/Directory", "properties": {"path": machine.path("folder")}});
    machine.deliver("one", &json!([file("first"), file("before")]));
    machine.wait(0);
    machine.deliver("one", &json!([file("first")]));
    machine.wait(0);
    machine.deliver("one", &json!([file("first"), file("second"), file("mine")]));
    machine.wait(0);
    let program = json!({"name": "program", "type": "Test/Restart", "properties": {"path": machine.path("program")}});
    machine.write("program", "there\n");
    machine.deliver("two", &json!([file("third"), folder, program]));
    machine.wait(0);
    machine.write("folder/somebody", "mine\n");
    let there =
        || ["first", "before", "second", "third", "folder", "mine", "program"].map(|name| machine.path(name).exists());
    assert_eq!(there(), [true; 7]);
    let restored = machine.run(&["restore", "2"]);
    let said = String::from_utf8(restored.stderr).unwrap();
    assert!(restored.status.success() && said.contains("'folder' (Stead/Directory)"), "{said}");
    assert!(!said.contains("'program'"), "it was there before: {said}");
    let goes = said.lines().find(|line| line.contains("to be removed")).unwrap_or_default();
    assert!(["'second'", "'third'"].iter().all(|name| goes.contains(name)) && !goes.contains("'before'"), "{said}");
    until(|| (machine.status()["Failures"].as_u64() >= Some(1)).then_some(()));
    assert_eq!(there(), [true, true, false, false, true, true, true], "what the second one did not have is there");
    assert_eq!((machine.stage("pending"), machine.stage("current")), (Some(5), Some(4)));
    let status = machine.status().to_string();
    assert!(status.contains("'folder' (Stead/Directory)") && status.contains("a newer delivery made it"), "{status}");
    std::fs::remove_file(machine.path("folder/somebody")).unwrap();
    machine.wait(0);
    assert_eq!(there(), [true, true, false, false, false, true, true]);
    assert_eq!((machine.stage("pending"), machine.stage("current")), (None, Some(5)));
    machine.stop();
}

/// A restore looks for what newer deliveries made also where the restored document was compared before, and nothing of its own changed.
#[test]
fn a_restored_document_that_was_compared_before_has_not_converged_while_something_stays() {
    let mut machine = Machine::new();
    machine.start();
    machine.set("PendingRetrySecs=1", "PendingRetryMaxSecs=1");
    let file = |name: &str| json!({"name": name, "type": "Stead/File", "properties": {"path": machine.path(name), "content": "x\n"}});
    let folder = json!({"name": "folder", "type": "Stead/Directory", "properties": {"path": machine.path("folder")}});
    machine.deliver("one", &json!([file("first")]));
    machine.wait(0);
    machine.ok(&["apply", "--use-existing", "--wait"]);
    machine.deliver("two", &json!([file("second"), folder]));
    machine.wait(0);
    machine.write("folder/somebody", "mine\n");
    machine.ok(&["restore", "1"]);
    until(|| (machine.status()["Failures"].as_u64() >= Some(2)).then_some(()));
    let there = || ["first", "second", "folder"].map(|name| machine.path(name).exists());
    assert_eq!(there(), [true, false, true]);
    assert_eq!((machine.stage("pending"), machine.stage("current")), (Some(3), Some(2)), "it has not converged");
    std::fs::remove_file(machine.path("folder/somebody")).unwrap();
    machine.wait(0);
    assert_eq!(there(), [true, false, false]);
    assert_eq!((machine.stage("pending"), machine.stage("current")), (None, Some(3)));
    machine.stop();
}

/// A restore leaves what the document has that somebody applied without the agent.
#[test]
fn a_restore_leaves_what_was_applied_without_the_agent() {
    let mut machine = Machine::new();
    machine.start();
    let file = |name: &str, content: &str| json!({"name": name, "type": "Stead/File", "properties": {"path": machine.path(name), "content": content}});
    machine.deliver("one", &json!([file("first", "x\n")]));
    machine.wait(0);
    machine.deliver("two", &json!([file("found", "x\n"), file("made", "x\n"), file("newer", "x\n")]));
    machine.wait(0);
    // It is in three documents: that of the second delivery, of a third one and of somebody.
    machine.deliver("three", &json!([file("newer", "x\n")]));
    machine.wait(0);
    std::fs::remove_file(machine.path("made")).unwrap();
    machine.write("own.yaml", &json!({"resources": [file("found", "x\n"), file("made", "y\n")]}).to_string());
    assert!(machine.program(&["apply", machine.path("own.yaml").to_str().unwrap()]).status.success());
    let restored = machine.run(&["restore", "1"]);
    let said = String::from_utf8(restored.stderr).unwrap();
    machine.wait(0);
    let there = ["first", "found", "made", "newer"].map(|name| machine.path(name).exists());
    assert_eq!(there, [true, true, true, false], "{said}");
    assert!(said.contains("'found' (Stead/File)") && said.contains("another document manages it"), "{said}");
    machine.stop();
}
