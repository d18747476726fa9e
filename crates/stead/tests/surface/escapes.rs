//! Escapes: text of a document never reaches a terminal as a command, whichever command of stead prints it in
//! whichever form.

use std::process::Command;

use super::Place;
use super::terminal::AtTerminal;

/// Sequences that a terminal obeys or that change the direction of text. The style is one that this program prints as
/// well.
const HOSTILE: &str = r"\u001b]0;pwn\u0007\u001b[2J\u001b[3;35mx\u001b[8m\u009b31m\u202e\u2066\u200f\u061c\u007f";

/// The parts of them that must not reach the screen.
const OBEYED: [&str; 10] =
    ["\x1b]", "\x07", "\x1b[2J", "\x1b[3;35m", "\x1b[8m", "\u{9b}", "\u{202e}", "\u{2066}", "\u{200f}", "\u{61c}"];

const COMMANDS: &[&str] = &[
    "lint d.yaml",
    "lint d.yaml --format json",
    "lint d.yaml --format sarif",
    "plan d.yaml",
    "plan -v d.yaml",
    "plan -o json d.yaml",
    "plan -o yaml d.yaml",
    "plan --events d.yaml",
    "plan --brief d.yaml",
    "plan --out p d.yaml",
    "show p",
    "graph d.yaml",
    "graph --format mermaid d.yaml",
    "graph -o json d.yaml",
    "graph -o yaml d.yaml",
    "check d.yaml",
    "check -o json d.yaml",
    "apply -y -v --timings --record d.yaml",
    "history",
    "history show last",
    "history show -o json last",
    "history show -o yaml last",
    "apply -y d.yaml",
    "fmt d.yaml",
    "config get -f d.yaml",
    "config get -f d.yaml -o json",
    "config get -f d.yaml -o pretty-json",
    "config test -f d.yaml -o yaml",
    "config set -f d.yaml",
    "config set -w -f d.yaml",
    "config export -f d.yaml",
    "config resolve -f d.yaml",
    "-l trace -t plaintext config test -f d.yaml",
    "-l trace -t json config test -f d.yaml",
    "-l trace config get -f d.yaml",
    "-p json config test -f d.yaml",
    "bundle -o b d.yaml",
    "plan b",
    "resource list Test/*",
    "resource list -o json Test/*",
    "resource describe -r Test/X",
    "resource schema -r Test/X",
    "resource check Test/X --input {}",
    "explain Test/X",
    "doctor",
];

/// Of these, those that print nothing of the text.
const SILENT: &[&str] = &[
    "lint d.yaml",
    "lint d.yaml --format json",
    "lint d.yaml --format sarif",
    "history",
    "fmt d.yaml",
    "config resolve -f d.yaml",
    "bundle -o b d.yaml",
    "resource describe -r Test/X",
    "doctor",
];

#[test]
fn nothing_that_a_terminal_obeys_reaches_it() {
    let place = Place::new();
    let file = format!("{{path: \"f{HOSTILE}\", content: \"{HOSTILE}\\n{HOSTILE}\\r\\n\"}}");
    let document = format!(
        "$schema: https://aka.ms/dsc/schemas/v3/bundled/config/document.json
parameters:
  p: {{type: string, defaultValue: \"v{HOSTILE}\"}}
resources:
- {{name: \"a{HOSTILE}\", type: Stead/File, properties: {file}}}
- name: \"b{HOSTILE}\"
  type: Stead/Command
  properties: {{test: \"false\", set: \"[concat('exit 3 #', parameters('p'))]\"}}
  dependsOn: [\"[resourceId('Stead/File', 'a{HOSTILE}')]\"]
- name: \"c{HOSTILE}\"
  type: Microsoft.DSC.Debug/Echo
  properties: {{output: \"[parameters('p')]\"}}
  dependsOn: [\"[resourceId('Stead/Command', 'b{HOSTILE}')]\"]
outputs:
  \"o{HOSTILE}\": {{type: string, value: \"[parameters('p')]\"}}
"
    );
    place.write("d.yaml", &document);
    let schema = format!(
        r#"{{"embedded": {{"type": "object", "title": "{HOSTILE}", "properties": {{"p": {{"description": "{HOSTILE}"}}}}}}}}"#
    );
    let get = format!(r#"{{"executable": "sh", "args": ["-c", "printf '%s' '{HOSTILE}' >&2; exit 3"]}}"#);
    place.write("x.dsc.resource.json", &format!(r#"{{"$schema": "https://aka.ms/dsc/schemas/v3/bundled/resource/manifest.json", "type": "Test/X", "version": "1.0.0", "description": "{HOSTILE}", "get": {get}, "schema": {schema}}}"#));
    let c = serde_json::from_str::<String>(&format!("\"c{HOSTILE}\"")).unwrap();
    let why = ["graph", "--why", &c, "d.yaml"].map(str::to_owned).to_vec();
    let lines = COMMANDS.iter().map(|line| line.split(' ').map(str::to_owned).collect()).chain([why]);
    let (mut silent, mut wrong) = (Vec::new(), Vec::new());
    for words in lines {
        let line = words.join(" ");
        let mut command = Command::new(place.program());
        command.args(&words).current_dir(place.path()).env_clear().env("PATH", "/usr/bin:/bin");
        command.env("HOME", place.path()).env("STEAD_STATE", place.path()).env("STEAD_RECONCILE", "none");
        command.env("DSC_RESOURCE_PATH", place.path()).env("TERM", "xterm-256color");
        let (screen, code) = AtTerminal::run(command).ends();
        assert!(code.is_some_and(|code| code < 5), "{line}: {code:?} {screen}");
        let found: Vec<&str> = OBEYED.into_iter().filter(|obeyed| screen.contains(obeyed)).collect();
        if !found.is_empty() {
            wrong.push(format!("{line}: {found:?} in {screen:?}"));
        }
        if !["u{1b}", "u001b", "x1b"].iter().any(|visible| screen.contains(visible)) {
            silent.push(line);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?} {silent:#?}");
    assert_eq!(silent, SILENT);
}
