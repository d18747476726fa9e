//! Documents that `stead new` writes can be used as they are.

use std::fs;

use serde_json::json;

use super::guide::{compiled_example, has_python};
use super::{Place, answer};

/// A document with each built-in resource is valid and formatted, and says something about each property.
#[test]
fn a_document_can_start_from_every_built_in_resource() {
    let place = Place::new();
    let types: Vec<String> =
        stead_resources::builtins().iter().map(|built_in| built_in.manifest.type_name.to_string()).collect();
    for type_name in &types {
        let file = format!("{}.yaml", type_name.replace('/', "."));
        let made = place.run(&["new", "document", &file, "--from", type_name]);
        assert_eq!(made.exit, 0, "{type_name}: {}", made.stderr);
        let lint = place.run(&["lint", &file]);
        assert_eq!(lint.exit, 0, "{type_name}: {}{}", lint.stdout, lint.stderr);
        let check = place.run(&["fmt", "--check", "--diff", &file]);
        assert_eq!(check.exit, 0, "{type_name}: {}", check.stdout);
    }
    let all = place.run(&["new", "document", "all.yaml", "--from", &types.join(",")]);
    assert_eq!(all.exit, 0, "{}", all.stderr);
    let text = fs::read_to_string(place.path().join("all.yaml")).unwrap();
    for type_name in &types {
        assert!(text.contains(&format!("\n# {type_name}: ")), "{type_name}");
    }
}

/// Writes a resource, and checks it with a desired state, setting it.
fn check_new(place: &Place, language: &str, build: impl FnOnce(), state: &serde_json::Value) {
    let made = place.run(&["new", "resource", "Example.Notes/Note", "note", "--language", language]);
    assert_eq!(made.exit, 0, "{}", made.stderr);
    build();
    let mut command = place.command(&["resource", "check", "Example.Notes/Note", "--set", "-i", &state.to_string()]);
    let checked =
        answer(command.env("DSC_RESOURCE_PATH", place.path().join("note")).env("PATH", "/usr/local/bin:/usr/bin:/bin"));
    assert_eq!(checked.stdout, "Example.Notes/Note: no mistakes found\n", "{}", checked.stderr);
}

#[test]
fn a_new_resource_in_shell_works() {
    let place = Place::new();
    check_new(&place, "sh", || (), &json!({ "path": place.path().join("flag"), "on": true }));
}

#[test]
fn a_new_resource_in_python_works() {
    let place = Place::new();
    if !has_python() {
        return stead_testkit::skip("a_new_resource_in_python_works", "there is no python3");
    }
    check_new(&place, "python", || (), &json!({ "path": place.path().join("text"), "text": "hello" }));
    let tested = std::process::Command::new("python3").arg(place.path().join("note/test_note.py")).output().unwrap();
    assert!(tested.status.success(), "{}", String::from_utf8_lossy(&tested.stderr));
}

/// It is not compiled again: its source is that of the example, which is.
#[test]
fn a_new_resource_in_rust_works() {
    let place = Place::new();
    let file = place.write("file", "");
    let build = || {
        let folder = place.path().join("note");
        let example = fs::read(stead_testkit::repository().join("examples/resources/rust/mode.rs")).unwrap();
        assert_eq!(fs::read(folder.join("note.rs")).unwrap(), example);
        let metadata = std::process::Command::new(env!("CARGO"))
            .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
            .current_dir(&folder)
            .output()
            .unwrap();
        let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout).unwrap();
        let target = &metadata["packages"][0]["targets"][0];
        assert_eq!(target["src_path"], folder.join("note.rs").to_str().unwrap());
        let program = folder.join("target/release").join(target["name"].as_str().unwrap());
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::copy(compiled_example(), program).unwrap();
    };
    check_new(&place, "rust", build, &json!({ "path": file, "mode": "640" }));
}
