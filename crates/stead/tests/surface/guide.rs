//! The guide for authors shows the examples whole, and they keep to what it says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use stead_testkit::skip;

use super::{Place, answer};

fn examples() -> PathBuf {
    stead_testkit::repository().join("examples/resources")
}

#[test]
fn the_guide_shows_the_examples() {
    let guide = fs::read_to_string(stead_testkit::repository().join("docs/write-a-resource.md")).unwrap();
    for file in ["shell/flag.dsc.resource.json", "shell/flag.sh", "python/note.py", "rust/mode.rs"] {
        let text = fs::read_to_string(examples().join(file)).unwrap();
        assert!(guide.contains(&format!("\n{text}```")), "docs/write-a-resource.md has another {file}");
        assert!(text.lines().count() < 40, "{file} is not a small example");
    }
}

pub(crate) fn has_python() -> bool {
    ["/usr/local/bin/python3", "/usr/bin/python3"].iter().any(|python| Path::new(python).exists())
}

/// Checks a resource with a desired state, setting it.
fn check(place: &Place, folder: &Path, type_name: &str, state: &serde_json::Value) {
    let mut command = place.command(&["resource", "check", type_name, "--set", "-i", &state.to_string()]);
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", place.path().display());
    let output = answer(command.env("DSC_RESOURCE_PATH", folder).env("PATH", path));
    assert_eq!(output.stdout, format!("{type_name}: no mistakes found\n"), "{state}: {}", output.stderr);
}

#[test]
fn the_example_in_shell_keeps_to_it() {
    let place = Place::new();
    let file = place.path().join("a \"flag\"");
    for on in [true, false] {
        check(&place, &examples().join("shell"), "Example.Shell/Flag", &serde_json::json!({ "path": file, "on": on }));
    }
}

#[test]
fn the_example_in_python_keeps_to_it() {
    let place = Place::new();
    if !has_python() {
        return skip("the_example_in_python_keeps_to_it", "there is no python3");
    }
    let file = place.path().join("note");
    let folder = examples().join("python");
    for state in [
        serde_json::json!({ "path": file, "text": "hello" }),
        serde_json::json!({ "path": file }),
        serde_json::json!({ "path": file, "_exist": false }),
        serde_json::json!({ "path": file, "_exist": false, "text": "gone" }),
    ] {
        check(&place, &folder, "Example.Python/Note", &state);
    }
    assert!(!file.exists());
}

/// The program of the example in Rust.
pub(crate) fn compiled_example() -> PathBuf {
    // It is of another package, which cargo does not build for this test.
    let built = Command::new(env!("CARGO"))
        .args([
            "build",
            "--quiet",
            "--package",
            "stead-test-resources",
            "--example",
            "mode",
            "--message-format",
            "json",
        ])
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let messages = String::from_utf8_lossy(&built.stdout).into_owned();
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).next_back().unwrap()
}

#[test]
fn the_example_in_rust_keeps_to_it() {
    let place = Place::new();
    std::os::unix::fs::symlink(compiled_example(), place.path().join("mode")).unwrap();
    let file = place.write("file", "");
    for mode in ["640", "600", "1644"] {
        check(
            &place,
            &examples().join("rust"),
            "Example.Rust/Mode",
            &serde_json::json!({ "path": file, "mode": mode }),
        );
    }
}
