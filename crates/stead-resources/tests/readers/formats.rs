//! Files that are read by the rules of their format.

use super::{
    accepted, has, has_namespace, has_python, in_namespace, output_of, path, printed, python, run, text, values,
    written,
};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

/// Values of all types, numbers with and without points among them.
fn value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        3 => text().prop_map(Json::from),
        1 => any::<bool>().prop_map(Json::from),
        1 => any::<i64>().prop_map(Json::from),
        1 => prop_oneof![any::<f64>(), (-9.0..9.0_f64).prop_map(f64::round)].prop_filter_map("a number", |number| serde_json::Number::from_f64(number).map(Json::Number)),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Json::Array),
            proptest::collection::btree_map(text(), inner, 0..3)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

/// Values of structured files: of what is accepted, how much Python reads as it was meant.
fn structured(type_name: &str, given: &str, script: &str) {
    let mut files = Vec::new();
    let mut worlds = Vec::new();
    let tried = values((text(), value()), 40);
    let count = tried.len();
    for (name, value) in tried {
        let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        let desired = json!({"path": "f", "pointer": pointer, "value": value, "create": true});
        let Some(world) = written(given, type_name, &desired) else { continue };
        let mut meant = json!({"kept": [1, "x"]});
        meant[name] = value;
        files.push((world.root.path().join("f"), meant));
        worlds.push(world);
    }
    python(script, &files);
    accepted(type_name, files.len(), count, 50);
}

#[test]
fn json_is_read_as_it_was_meant() {
    if has_python("json", "json") {
        let script = "def read(path): return json.load(open(path, encoding='utf-8'))";
        structured("Stead/Json", "file f 0644 \"{\\\"kept\\\": [1, \\\"x\\\"]}\\n\"", script);
    }
}

#[test]
fn toml_is_read_as_it_was_meant() {
    if has_python("toml", "tomllib") {
        let script = "import tomllib\ndef read(path): return tomllib.load(open(path, 'rb'))";
        structured("Stead/Toml", "file f 0644 \"kept = [1, \\\"x\\\"]\\n\"", script);
    }
}

#[test]
fn yaml_is_read_as_it_was_meant() {
    if has_python("yaml", "yaml") {
        let script = "import yaml\ndef read(path): return yaml.safe_load(open(path, encoding='utf-8'))";
        structured("Stead/Yaml", "file f 0644 \"kept: [1, x]\\n\"", script);
    }
}

#[test]
fn ini_is_read_as_it_was_meant() {
    if !has_python("ini", "configparser") {
        return;
    }
    let (mut files, mut worlds) = (Vec::new(), Vec::new());
    // A colon in a key is a sign behind one for this reader, and for no other.
    let tried = values((text(), text().prop_filter("no colon", |key| !key.contains(':')), text()), 60);
    let count = tried.len();
    for (section, key, value) in tried {
        let desired = json!({"path": "f", "section": section, "key": key, "value": value});
        let given = "file f 0644 \"[kept]\\nk = 1,\\n  2\\nother = x\\n\"";
        let Some(world) = written(given, "Stead/Ini", &desired) else { continue };
        let mut meant = json!({"kept": {"k": "1,\n2", "other": "x"}});
        let trimmed = value.trim();
        meant[section][key] = json!(trimmed);
        files.push((world.root.path().join("f"), meant));
        worlds.push(world);
    }
    let script = "import configparser\ndef read(path):\n    parser = configparser.RawConfigParser(default_section='no such section')\n    parser.optionxform = str\n    parser.read_file(open(path, encoding='utf-8', newline='\\n'))\n    return {s: dict(parser[s]) for s in parser.sections()}";
    python(script, &files);
    accepted("Stead/Ini", files.len(), count, 15);
}

/// Names of blocks are in comments of the file, whatever it is.
#[test]
fn blocks_are_read_without_their_marks() {
    let (sshd, logrotate) = (has("sshd", "sshd") && has_namespace("sshd"), has("logrotate", "logrotate"));
    let keys = tempfile::tempdir().unwrap();
    let key = keys.path().join("key");
    if sshd {
        printed("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", key.to_str().unwrap()], &"a key");
    }
    let mut read = 0;
    let tried = values(text(), 20);
    let count = tried.len();
    for name in tried {
        let block = |content: &str| {
            let desired = json!({"path": "f", "name": name, "content": content});
            written("file f 0644 \"# kept\\n\"", "Stead/Block", &desired)
        };
        let (Some(server), Some(logs)) =
            (block("Port 2222\nBanner /x"), block("/no-such-*.log {\n  rotate 7\n  missingok\n}"))
        else {
            continue;
        };
        read += 1;
        if sshd {
            let script = "mkdir -p /run/sshd; exec \"$(command -v sshd)\" -T -f \"$1\" -h \"$2\"";
            let shown = output_of(in_namespace(script).arg(server.root.path().join("f")).arg(&key), &name);
            assert!(shown.lines().any(|line| line == "port 2222") && shown.lines().any(|line| line == "banner /x"));
        }
        if logrotate {
            let output = run("logrotate", &["-d", "-s", "/dev/null", &path(&logs, "f")]);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(
                output.status.success() && said.contains("/no-such-*.log") && said.contains("(7 rotations)"),
                "{name}: {said}"
            );
        }
    }
    accepted("Stead/Block", read, count, 30);
}
