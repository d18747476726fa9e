//! Examples for other services are run: their files are read, and their commands carried out.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use stead_core::text::{self, Kind, Limits, Node, SourceId};
use stead_testkit::repository;

const DOCUMENT: &str = "resources:\n- {name: a, type: Stead/File, properties: {path: /a, content: x}}\n";

fn parsed(path: &str) -> Node {
    let text = fs::read_to_string(repository().join(path)).unwrap();
    let (root, findings) = text::read(SourceId(0), &text, &Limits::default());
    assert!(findings.is_empty(), "{path}: {findings:?}");
    root.unwrap()
}

/// The texts below a key, wherever it is.
fn texts(node: &Node, key: &str, found: &mut Vec<String>) {
    match &node.kind {
        Kind::Array(items) => items.iter().for_each(|item| texts(item, key, found)),
        Kind::Object(entries) => {
            for entry in entries {
                if *entry.key == *key {
                    found.extend(entry.value.as_str().map(str::to_owned));
                    found.extend(entry.value.items().into_iter().flatten().filter_map(Node::as_str).map(str::to_owned));
                }
                texts(&entry.value, key, found);
            }
        }
        _ => {}
    }
}

fn shell(folder: &Path, words: &[&str]) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_stead")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.args(words).current_dir(folder).env("PATH", path).env("HOME", folder).env("STEAD_STATE", folder);
    command.output().unwrap()
}

#[test]
fn commands_of_services_do_what_is_said() {
    for (path, key) in [("examples/ci/github.yaml", "run"), ("examples/ci/gitlab.yaml", "script")] {
        let mut commands = Vec::new();
        texts(&parsed(path), key, &mut commands);
        commands.retain(|command| !command.contains("tar -xzf"));
        let text = commands.join("\n");
        for word in ["stead fmt --check", "stead lint", "stead plan", "--report"] {
            assert!(text.contains(word), "{path}: {text}");
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("main.stead.yaml"), DOCUMENT).unwrap();
        let output = shell(folder.path(), &["-ec", &text]);
        assert!(output.status.success(), "{path}: {output:?}");
        assert!(folder.path().join("plan.html").exists());
        fs::write(folder.path().join("main.stead.yaml"), DOCUMENT.replace("Stead/File", "Stead/Fil")).unwrap();
        assert!(!shell(folder.path(), &["-ec", &text]).status.success(), "{path}");
        // Pages show the file as it is, from behind the comment that names its place.
        let file = fs::read_to_string(repository().join(path)).unwrap();
        let page = fs::read_to_string(repository().join("docs/ci.md")).unwrap();
        assert!(page.contains(file.split_once('\n').unwrap().1.trim_end()), "{path} is not what docs/ci.md shows");
    }
}

#[test]
fn hooks_find_mistakes_and_format() {
    let hooks = parsed(".pre-commit-hooks.yaml");
    let hook = |id: &str| {
        let found =
            hooks.items().unwrap().iter().find(|hook| hook.get("id").and_then(Node::as_str) == Some(id)).unwrap();
        found.get("entry").and_then(Node::as_str).unwrap().to_owned()
    };
    let mut shown = Vec::new();
    texts(&parsed("examples/ci/pre-commit.yaml"), "id", &mut shown);
    assert_eq!(shown, ["stead-lint", "stead-fmt"]);
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("good", DOCUMENT.to_owned()), ("bad", DOCUMENT.replace("Stead/File", "Stead/Fil"))] {
        fs::write(folder.path().join(format!("{name}.stead.yaml")), text).unwrap();
    }
    let run = |id: &str, files: &str| shell(folder.path(), &["-c", &format!("{} {files}", hook(id))]);
    assert!(run("stead-lint", "good.stead.yaml good.stead.yaml").status.success());
    let failed = run("stead-lint", "bad.stead.yaml good.stead.yaml");
    assert_eq!(failed.status.code(), Some(3), "{failed:?}");
    fs::write(folder.path().join("wide.stead.yaml"), DOCUMENT.replace(": /a", ":   /a")).unwrap();
    assert!(run("stead-fmt", "wide.stead.yaml good.stead.yaml").status.success());
    assert_eq!(fs::read_to_string(folder.path().join("wide.stead.yaml")).unwrap(), DOCUMENT);
}
