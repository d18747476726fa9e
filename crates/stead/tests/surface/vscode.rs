//! The extension for VS Code: its files fit together, and the server that it starts is answered by.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value as Json;
use stead_testkit::{repository, skip};

use super::Place;

fn folder() -> PathBuf {
    repository().join("editors/vscode")
}

fn read(name: &str) -> Json {
    let text = fs::read_to_string(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Every file that a manifest names, but the schema, which is added when the extension is packed.
fn each_path(json: &Json, see: &mut dyn FnMut(&str)) {
    match json {
        Json::String(text) if text.starts_with("./") && text != "./schema.json" => see(text),
        Json::Array(items) => items.iter().for_each(|item| each_path(item, see)),
        Json::Object(members) => members.values().for_each(|value| each_path(value, see)),
        _ => {}
    }
}

#[test]
fn an_extension_has_what_its_manifest_names() {
    let manifest = read("package.json");
    let mut named = 0;
    each_path(&manifest, &mut |path| {
        assert!(folder().join(path).is_file(), "{path}");
        named += 1;
    });
    assert!(named >= 4, "{manifest}");
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
}

/// A snippet as it is inserted: each place has its usual text.
fn inserted(body: &Json) -> String {
    let lines: Vec<&str> = body.as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    let text = lines.join("\n") + "\n";
    let mut parts = text.split("${");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let (usual, rest) = part.split_once('}').unwrap();
        text + usual.split_once(':').unwrap().1 + rest
    })
}

#[test]
fn snippets_of_an_extension_are_documents_without_mistakes() {
    let place = Place::new();
    for (name, snippet) in read("snippets.json").as_object().unwrap() {
        let text = inserted(&snippet["body"]);
        let head = if text.starts_with("- ") { "resources:\n" } else { "" };
        let tail = if text.contains("resources:") || !head.is_empty() { "" } else { "resources: []\n" };
        place.write(&format!("{name}.yaml"), &format!("{head}{text}{tail}"));
        let answer = place.run(&["lint", &format!("{name}.yaml")]);
        assert_eq!(answer.exit, 0, "{name}: {}{}", answer.stdout, answer.stderr);
    }
}

#[test]
fn an_extension_starts_the_server() {
    let mut node = Command::new("node");
    node.arg(folder().join("test/handshake.js")).arg(env!("CARGO_BIN_EXE_stead")).stdin(Stdio::null());
    let Ok(output) = node.output() else { return skip("an_extension_starts_the_server", "there is no node") };
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(printed.starts_with(&format!("{} E05", env!("CARGO_PKG_VERSION"))), "{printed}");
}
