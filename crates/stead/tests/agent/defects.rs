//! Defects of the Local Configuration Manager that only an agent with real files and programs can show; all of them are listed
//! in `corpus/agent/lcm/defects/README.md`.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value as Json, json};
use stead_testkit::until;

use crate::machine::Machine;

fn file(machine: &Machine, name: &str) -> Json {
    json!({"name": name, "type": "Stead/File", "properties": {"path": machine.path(name), "content": "right\n"}})
}

fn auto() -> Json {
    json!({"configurationMode": "ApplyAndAutoCorrect"})
}

/// A program that is gone is a failure of its instances alone.
#[test]
fn a_resource_whose_program_is_missing_stops_nothing_else() {
    let mut machine = Machine::new();
    let program = machine.path("program");
    machine.write("program", "#!/bin/sh\necho '{\"path\": \"p\"}'\n");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o700)).unwrap();
    let call = json!({"executable": program, "args": []});
    let manifest = json!({
        "$schema": "https://aka.ms/dsc/schemas/v3/bundled/resource/manifest.json",
        "type": "Test/Gone", "version": "1.0.0", "get": call,
        "schema": {"embedded": {"type": "object", "properties": {"path": {"type": "string"}}}},
    });
    machine.write("gone.dsc.resource.json", &manifest.to_string());
    machine.start();
    machine.set("ResourceRetryCount=0", "SplaySecs=0");
    let gone = json!({"name": "gone", "type": "Test/Gone", "properties": {"path": "p"}});
    machine.deliver_with("one", &auto(), &json!([gone, file(&machine, "f")]));
    machine.wait(0);
    // No watching: everything is done by one job after the next start.
    machine.kill();
    std::fs::remove_file(&program).unwrap();
    machine.write("f", "wrong\n");
    machine.start();
    until(|| machine.read("f").filter(|text| text == "right\n"));
    until(|| (machine.status()["Job"]["Status"] == "Failure").then_some(()));
    machine.stop();
}

/// A delivered document is kept by the agent: the file that it came from may be gone.
#[test]
fn what_was_delivered_is_all_that_is_needed() {
    let mut machine = Machine::new();
    machine.start();
    machine.deliver_with("one", &auto(), &json!([file(&machine, "f")]));
    machine.wait(0);
    machine.kill();
    std::fs::remove_file(machine.path("one.dsc.json")).unwrap();
    machine.write("f", "wrong\n");
    machine.start();
    until(|| machine.read("f").filter(|text| text == "right\n"));
    machine.stop();
}

/// A refused document leaves nothing behind, not even where it would be found by the next start, and stands in
/// nobody's way.
#[test]
fn a_document_that_is_not_valid_is_never_stored() {
    let mut machine = Machine::new();
    machine.start();
    machine.set("NewDocument=Refuse", "SplaySecs=0");
    let kept = |machine: &Machine| -> Vec<(std::path::PathBuf, Vec<u8>)> {
        let all = machine.everything("state").into_iter();
        let stored = all.filter(|path| path.is_file() && !path.ends_with("log.jsonl"));
        stored.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
    };
    let before = kept(&machine);
    for (name, text) in [("half.dsc.yaml", "resources:\n- name: f\n  type: ["), ("empty.dsc.yaml", "")] {
        machine.write(name, text);
        let refused = machine.run(&["apply", &machine.path(name).display().to_string()]);
        assert_eq!(refused.status.code(), Some(3), "{name}");
    }
    assert!(kept(&machine) == before, "something was stored");
    machine.deliver("good", &json!([file(&machine, "f")]));
    machine.wait(0);
    machine.stop();
}
