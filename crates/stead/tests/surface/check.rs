//! `resource check` finds what is wrong with each resource below `corpus/check`, and nothing else.

use std::fs;
use std::path::Path;

use super::Place;

/// Checks one resource in a folder of its own, and compares with `expected.txt` beside it.
fn check(folder: &Path) -> Result<(), String> {
    let place = Place::new();
    for file in fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()) {
        fs::copy(&file, place.path().join(file.file_name().unwrap())).unwrap();
    }
    let listed = place.run(&["resource", "list", "Check/*"]).stdout;
    let manifest: serde_json::Value = serde_json::from_str(&listed).map_err(|error| format!("{error}: {listed}"))?;
    let type_name = manifest["type"].as_str().unwrap();
    let arguments = fs::read_to_string(folder.join("arguments.txt")).unwrap_or_default();
    let mut words = vec!["resource", "check", type_name, "--set"];
    words.extend(arguments.split_whitespace());
    words.extend(if folder.join("input.json").exists() { ["-f", "input.json"].as_slice() } else { &[] });
    let answer = place.run(&words);
    let found =
        format!("exit {}\n{}", answer.exit, answer.stdout).replace(&*place.path().to_string_lossy(), "<folder>");
    let sound = folder.file_name().unwrap().to_string_lossy().starts_with("good");
    if sound != answer.stdout.contains("no mistakes found") {
        return Err(format!("found:\n{found}\n{}", answer.stderr));
    }
    let expected = folder.join("expected.txt");
    if std::env::var_os("STEAD_BLESS").is_some() {
        fs::write(&expected, &found).unwrap();
    }
    let expected = fs::read_to_string(&expected).unwrap_or_default();
    if found == expected { Ok(()) } else { Err(format!("found:\n{found}\nexpected:\n{expected}\n{}", answer.stderr)) }
}

#[test]
fn broken_resources_are_found_out() {
    let root = stead_testkit::repository().join("corpus/check");
    let entries = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<_> = entries.filter(|entry| entry.is_dir()).collect();
    folders.sort();
    let wrong: Vec<_> = folders
        .iter()
        .filter_map(|folder| check(folder).err().map(|error| format!("== {}\n{error}", folder.display())))
        .collect();
    assert!(folders.len() > 10 && wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_is_set_unasked() {
    let place = Place::new();
    let folder = stead_testkit::repository().join("corpus/check/good");
    for file in ["resource.dsc.resource.json", "resource.sh"] {
        fs::copy(folder.join(file), place.path().join(file)).unwrap();
    }
    let made = place.path().join("made");
    let state = serde_json::json!({ "path": made, "text": "hello" }).to_string();
    let looked = place.run(&["resource", "check", "Check/Good", "-i", &state]);
    assert!(looked.exit == 0 && looked.stdout.contains("set was not called") && !made.exists(), "{}", looked.stdout);
    assert_eq!(place.run(&["resource", "check", "Check/Good", "-i", &state, "--set"]).exit, 0);
    assert!(made.exists());
}

#[test]
fn built_in_resources_keep_to_it() {
    let place = Place::new();
    let file = place.path().join("file");
    for (type_name, state) in [
        ("Microsoft.DSC.Debug/Echo", serde_json::json!({ "output": "hi" })),
        ("Stead/File", serde_json::json!({ "path": file, "content": "text" })),
        ("Stead/Directory", serde_json::json!({ "path": place.path().join("directory") })),
        ("Stead/Line", serde_json::json!({ "path": file, "line": "text" })),
        ("Stead/Symlink", serde_json::json!({ "path": place.path().join("link"), "target": "file" })),
    ] {
        // Whole trees are not listed unasked.
        let filter = serde_json::json!({ "path": place.path().join("directory") }).to_string();
        let filter = if type_name == "Stead/Directory" { &["--filter", &filter] } else { [].as_slice() };
        let state = state.to_string();
        let answer = place.run(&[&["resource", "check", type_name, "-i", &state, "--set"], filter].concat());
        assert_eq!(answer.exit, 0, "{type_name}: {}{}", answer.stdout, answer.stderr);
    }
}
