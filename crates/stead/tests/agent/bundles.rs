//! Delivery of bundles: the agent works from the bundle alone.

use serde_json::{Value as Json, json};
use stead_testkit::until;

use crate::machine::Machine;

const DOCUMENT: &str = r#"
parameters:
  number: {type: int}
  key: {type: secureString, defaultValue: none}
directives: {configurationMode: ApplyAndAutoCorrect}
resources:
- {name: part, type: Microsoft.DSC/Include, properties: {configurationFile: parts/part.yaml}}
- {name: conf, type: Stead/Template, properties: {path: conf, source: conf.j2, variables: {number: "[parameters('number')]"}}}
"#;

const PART: &str = r#"
resources:
- {name: motto, type: Stead/File, properties: {path: ../motto, content: "[stead.file('motto.txt')]"}}
"#;

fn site(machine: &Machine) {
    std::fs::create_dir_all(machine.path("parts")).unwrap();
    for (name, text) in [
        ("site.yaml", DOCUMENT),
        ("parts/part.yaml", PART),
        ("parts/motto.txt", "brief\n"),
        ("conf.j2", "A {{ number }}\n"),
    ] {
        machine.write(name, text);
    }
}

fn deliver(machine: &Machine, parameters: &[&str]) {
    let site = machine.path("site.yaml").display().to_string();
    let set = parameters.iter().flat_map(|parameter| ["--set", parameter]);
    let words: Vec<&str> = ["apply", &site, "--wait"].into_iter().chain(set).collect();
    machine.ok(&words);
}

/// A file that is changed, an included document that is deleted: neither is delivered, and the generation is worked on as it was.
#[test]
fn edits_change_nothing_until_they_are_delivered() {
    let mut machine = Machine::new();
    machine.start();
    machine.set("PendingRetrySecs=1", "SplaySecs=0");
    site(&machine);
    deliver(&machine, &["number=1"]);
    assert_eq!(machine.read("conf").as_deref(), Some("A 1\n"));
    machine.write("conf.j2", "EDITED {{ number }}\n");
    machine.write("parts/motto.txt", "long\n");
    std::fs::remove_file(machine.path("parts/part.yaml")).unwrap();
    assert!(machine.run(&["check"]).status.success(), "nothing drifted");
    machine.kill();
    machine.start();
    machine.write("conf", "drifted\n");
    machine.write("motto", "drifted\n");
    until(|| machine.read("conf").filter(|text| text == "A 1\n"));
    until(|| machine.read("motto").filter(|text| text == "brief\n"));
    // Delivered again, it is what it is now.
    let site = machine.path("site.yaml").display().to_string();
    let refused = machine.run(&["apply", &site, "--set", "number=1"]);
    assert_eq!(refused.status.code(), Some(3));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("E0518"));
    machine.write("parts/part.yaml", PART);
    deliver(&machine, &["number=1"]);
    assert_eq!(
        (machine.read("conf").as_deref(), machine.read("motto").as_deref()),
        (Some("EDITED 1\n"), Some("long\n"))
    );
    machine.stop();
}

/// The files of a generation come back with its parameters, and what differs between two is shown.
#[test]
fn a_generation_is_restored_with_its_files() {
    let mut machine = Machine::new();
    machine.start();
    machine.set("PendingRetrySecs=1", "SplaySecs=0");
    site(&machine);
    deliver(&machine, &["number=1", "key=first"]);
    machine.write("conf.j2", "B {{ number }}\n");
    deliver(&machine, &["number=2", "key=second"]);
    assert_eq!(machine.read("conf").as_deref(), Some("B 2\n"));
    let text = machine.ok(&["diff", "1", "2"]);
    for line in
        ["parameter 'number': 1 -> 2", "parameter 'key': changed, a secret", "-A {{ number }}", "+B {{ number }}"]
    {
        assert!(text.lines().any(|each| each == line), "{line}: {text}");
    }
    assert!(!text.contains("second"), "{text}");
    let answer: Json = serde_json::from_str(&machine.ok(&["diff", "1", "2", "--output", "json"])).unwrap();
    assert_eq!(answer["files"].as_array().unwrap().len(), 1, "{answer}");
    assert_eq!(answer["files"][0]["path"], json!("conf.j2"));
    assert_ne!(answer["from"]["bundle"], answer["to"]["bundle"]);
    machine.ok(&["restore", "--wait"]);
    assert_eq!(machine.read("conf").as_deref(), Some("A 1\n"), "the former parameters with the former template");
    assert!(machine.ok(&["diff", "1", "3"]).contains("are the same"));
    machine.stop();
}

/// A file that is named by an absolute path is delivered as well; one that the document creates is read where it is.
#[test]
fn absolute_paths_are_delivered_but_for_what_the_document_creates() {
    let mut machine = Machine::new();
    machine.start();
    machine.set("PendingRetrySecs=1", "SplaySecs=0");
    machine.write("outside", "one\n");
    let copy = |name: &str, source: &str| {
        json!({"name": name, "type": "Stead/File",
            "properties": {"path": machine.path(name), "source": machine.path(source)}})
    };
    let made = json!({"name": "made", "type": "Stead/File",
        "properties": {"path": machine.path("made"), "content": "made\n"}});
    machine.write("made", "before\n");
    let resources = json!([copy("first", "outside"), made, copy("second", "made")]);
    machine.deliver_with("one", &json!({"configurationMode": "ApplyAndAutoCorrect"}), &resources);
    machine.wait(0);
    assert_eq!(machine.read("second").as_deref(), Some("made\n"));
    machine.write("outside", "two\n");
    machine.write("first", "drifted\n");
    until(|| machine.read("first").filter(|text| text == "one\n"));
    machine.stop();
}

/// A bundle in a file is delivered as it is, wherever it was made.
#[test]
fn a_bundle_is_delivered_without_its_folder() {
    let mut machine = Machine::new();
    machine.start();
    machine.set("PendingRetrySecs=1", "SplaySecs=0");
    site(&machine);
    let [site, bundle] = ["site.yaml", "site.bundle"].map(|name| machine.path(name).display().to_string());
    let made = std::process::Command::new(env!("CARGO_BIN_EXE_stead")).args(["bundle", &site, "-o", &bundle]).status();
    assert!(made.unwrap().success());
    for name in ["site.yaml", "conf.j2", "parts/part.yaml", "parts/motto.txt"] {
        std::fs::remove_file(machine.path(name)).unwrap();
    }
    machine.ok(&["apply", &bundle, "--set", "number=7", "--wait"]);
    std::fs::remove_file(&bundle).unwrap();
    machine.write("conf", "drifted\n");
    until(|| machine.read("conf").filter(|text| text == "A 7\n"));
    machine.stop();
}
