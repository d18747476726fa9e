//! Escapes: text of a document never reaches a terminal as a command, whichever command of stead prints it in
//! whichever form.

use std::path::Path;
use std::process::{Command, Stdio};

use stead_testkit::until;

use super::manual::every_command;
use super::terminal::AtTerminal;
use super::{Place, answer};

/// Sequences that a terminal obeys or that change the direction of text. The style is one that this program prints as
/// well.
const HOSTILE: &str = r"\u001b]0;pwn\u0007\u001b[2J\u001b[3;35mx\u001b[8m\u009b31m\u202e\u2066\u200f\u061c\u007f";

/// The parts of them that must not reach the screen.
const OBEYED: [&str; 10] =
    ["\x1b]", "\x07", "\x1b[2J", "\x1b[3;35m", "\x1b[8m", "\u{9b}", "\u{202e}", "\u{2066}", "\u{200f}", "\u{61c}"];

/// Each line is called in a folder with such texts in everything that it has. `E` in a word stands for them.
const COMMANDS: &[&str] = &[
    "lint d.yaml",
    "lint d.yaml -o json",
    "lint d.yaml --format sarif",
    "lint d.yaml --format github",
    "lint noE.yaml",
    "lint w.yaml",
    "lint -o json w.yaml",
    "lint --format sarif w.yaml",
    "plan w.yaml",
    "config get -f w.yaml",
    "test d.test.yaml",
    "test d.test.yaml --format tap",
    "test d.test.yaml --format junit",
    "test d.test.yaml -o json",
    "test w.test.yaml",
    "test noE",
    "new test d.yaml -",
    "new test noE.yaml -",
    "plan d.yaml",
    "plan -v d.yaml",
    "plan -o json d.yaml",
    "plan -o yaml d.yaml",
    "plan --events d.yaml",
    "plan --brief d.yaml",
    "plan --out p d.yaml",
    "plan --set pE=vE d.yaml",
    "show p",
    "graph d.yaml",
    "graph --format mermaid d.yaml",
    "graph --format svg d.yaml",
    "graph -o json d.yaml",
    "graph -o yaml d.yaml",
    "graph --why cE d.yaml",
    "check d.yaml",
    "check -o json d.yaml",
    "apply -y -v --timings --record d.yaml",
    "history",
    "history show last",
    "history show last --html",
    "history show -o json last",
    "history show -o yaml last",
    "history show noE",
    "history diff last noE",
    "undo noE",
    "release root --name fE --signer noE -o r",
    "release signers --signer noE --fleet noE",
    "release roster add mE --key noE --fleet noE",
    "release roster remove mE --fleet noE",
    "release roster hold mE --for 3d --why wE --fleet noE",
    "release roster unhold mE --fleet noE",
    "release make noE --fleet noE --channel web --where all --expires 1d",
    "release seal noE --fleet noE --secrets noE",
    "release sign noE --sign noE",
    "release verify noE --fleet noE",
    "release show noE",
    "hosts noE",
    "hosts --where E -",
    "artifacts noE",
    "fleet E",
    "apply -y d.yaml",
    "fmt d.yaml",
    "fmt noE",
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
    "resource get -r Test/X",
    "resource set -r Test/X -i {\"E\":1}",
    "resource test -r Test/X -i {\"E\":1}",
    "resource delete -r Test/E",
    "resource export -r Test/X",
    "resource describe -r Test/X",
    "resource schema -r Test/X",
    "resource check Test/X --input {}",
    "get Test/X",
    "set Test/X pE=vE",
    "export Test/X",
    "invoke Test/X --method get --property pE=vE",
    "explain Test/X",
    "explain E",
    "eval E",
    "eval json('\"\\u001b[3;35m\\u202e\"')",
    "facts E",
    "function list E*",
    "extension list E*",
    "schema --type E",
    "puppetize --module ex Test/E",
    "sls convert d.sls",
    "new document noE/d.yaml",
    "new resource E",
    "completer E",
    "doctor",
    "doctor -o json",
];

/// Of these, those that print nothing of the text.
const SILENT: &[&str] = &[
    "lint d.yaml",
    "lint d.yaml -o json",
    "lint d.yaml --format sarif",
    "lint d.yaml --format github",
    "history",
    "fleet E",
    "fmt d.yaml",
    "config resolve -f d.yaml",
    "bundle -o b d.yaml",
    "function list E*",
];

/// The commands of an agent that keeps the machine in the state of such a document, in a folder of such a name.
const OF_AN_AGENT: &[&str] = &[
    "agent run",
    "agent publish aE.yaml",
    "agent publish a.yaml",
    "agent remove --stage pending",
    "agent apply a.yaml --wait --timeout 60",
    "agent apply b.yaml --set pE=vE",
    "agent apply b.yaml --set p=vE --wait --timeout 60",
    "agent apply noE.yaml",
    "agent apply --use-existing --wait --timeout 60",
    "agent status",
    "agent status -o json",
    "agent status -o yaml",
    "agent history",
    "agent history -o json",
    "agent history -o yaml",
    "agent diff 2 3",
    "agent diff 2 3 -o json",
    "agent report",
    "agent report -o json",
    "agent report -o yaml",
    "agent report JOB",
    "agent report JOB -o json",
    "agent report JOB -o yaml",
    "agent report noE",
    "agent logs",
    "agent logs -o json",
    "agent check",
    "agent check -o json",
    "agent get",
    "agent get -o yaml",
    "agent wait --timeout 1",
    "agent wait --timeout 1 -o json",
    "agent settings",
    "agent settings get",
    "agent settings set E=E",
    "agent settings load sE.yaml",
    "agent restore 2",
    "agent acknowledge",
    "agent stop",
    "agent follow sE --root sha256-0000000000000000000000000000000000000000000000000000000000000000",
    "agent join https://localhost:1 --root sha256-0000000000000000000000000000000000000000000000000000000000000000 --token-file noE",
    "agent unfollow",
    "agent install --print",
    "agent identity",
    "agent identity --state E -o json",
    "agent identity --new --yes",
];

/// Of these, those that print nothing of the text.
const SILENT_OF_AN_AGENT: &[&str] = &[
    "agent publish a.yaml",
    "agent remove --stage pending",
    "agent status -o yaml",
    "agent history",
    "agent history -o json",
    "agent history -o yaml",
    "agent report",
    "agent get",
    "agent wait --timeout 1",
    "agent settings",
    "agent settings get",
    "agent restore 2",
    "agent acknowledge",
    "agent stop",
    "agent identity",
    "agent identity --state E -o json",
    "agent identity --new --yes",
];

/// Commands that talk to programs, which terminals do not read.
const PROTOCOLS: [&str; 3] = ["lsp", "serve", "server"];

/// The hostile text itself.
fn hostile() -> String {
    serde_json::from_str(&format!("\"{HOSTILE}\"")).unwrap()
}

fn write_document(place: &Place, name: &str, content: &str) {
    let file = format!("{{path: \"f{HOSTILE}\", content: \"{content}{HOSTILE}\\n{HOSTILE}\\r\\n\"}}");
    let document = format!(
        "$schema: https://aka.ms/dsc/schemas/v3/bundled/config/document.json
parameters:
  p: {{type: string, defaultValue: \"v{HOSTILE}\"}}
  \"q{HOSTILE}\": {{type: string, defaultValue: \"{content}{HOSTILE}\"}}
resources:
- {{name: \"a{HOSTILE}\", type: Stead/File, properties: {file}}}
- name: \"b{HOSTILE}\"
  type: Stead/Command
  properties: {{test: \"false\", set: \"[concat('printf ', parameters('p'), ' >&2; exit 3')]\"}}
  dependsOn: [\"[resourceId('Stead/File', 'a{HOSTILE}')]\"]
- name: \"c{HOSTILE}\"
  type: Microsoft.DSC.Debug/Echo
  properties: {{output: \"[parameters('p')]\"}}
  dependsOn: [\"[resourceId('Stead/Command', 'b{HOSTILE}')]\"]
outputs:
  \"o{HOSTILE}\": {{type: string, value: \"[parameters('p')]\"}}
"
    );
    place.write(name, &document);
}

fn write_resource(place: &Place) {
    let schema = format!(
        r#"{{"embedded": {{"type": "object", "title": "{HOSTILE}", "properties": {{"p": {{"description": "{HOSTILE}"}}}}}}}}"#
    );
    let get = format!(r#"{{"executable": "sh", "args": ["-c", "printf '%s' '{HOSTILE}' >&2; exit 3"]}}"#);
    place.write("x.dsc.resource.json", &format!(r#"{{"$schema": "https://aka.ms/dsc/schemas/v3/bundled/resource/manifest.json", "type": "Test/X", "version": "1.0.0", "description": "{HOSTILE}", "get": {get}, "set": {get}, "export": {get}, "schema": {schema}}}"#));
    place.write(&format!("y{}.dsc.resource.json", hostile()), &format!(r#"{{"type": "Test/{HOSTILE}"}}"#));
}

/// Calls each line at a terminal. Returns those that print nothing of the text, which is shown in visible signs.
fn silent(place: &Place, state: &Path, lines: &[&str], word: impl Fn(&str) -> String) -> Vec<String> {
    let (mut silent, mut wrong) = (Vec::new(), Vec::new());
    for line in lines {
        let mut command = Command::new(place.program());
        command.args(line.split(' ').map(&word)).current_dir(place.path()).env_clear();
        command.env("PATH", format!("/usr/bin:/bin:/no{}", hostile()));
        command.env("HOME", place.path()).env("STEAD_STATE", state).env("STEAD_RECONCILE", "none");
        command.env("DSC_RESOURCE_PATH", place.path()).env("TERM", "xterm-256color");
        let (screen, code) = AtTerminal::run(command).ends();
        assert!(code.is_some_and(|code| code < 7), "{line}: {code:?} {screen}");
        let found: Vec<&str> = OBEYED.into_iter().filter(|obeyed| screen.contains(obeyed)).collect();
        if !found.is_empty() {
            wrong.push(format!("{line}: {found:?} in {screen:?}"));
        }
        if !["u{1b}", "u001b", "x1b"].iter().any(|visible| screen.contains(visible)) {
            silent.push((*line).to_owned());
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?} {silent:#?}");
    silent
}

#[test]
fn nothing_that_a_terminal_obeys_reaches_it() {
    let place = Place::new();
    write_document(&place, "d.yaml", "x");
    write_resource(&place);
    let wrong =
        format!("{{name: \"a{HOSTILE}\", type: Stead/File, properties: {{path: x, \"o{HOSTILE}\": \"{HOSTILE}\"}}}}");
    place.write("w.yaml", &format!("resources:\n- {wrong}\n- {wrong}\n- {{name: a, type: \"Test/{HOSTILE}\"}}\n"));
    let expected = format!("files: {{\"/a{HOSTILE}\": \"{HOSTILE}\", /b: null}}, plan: {{\"c{HOSTILE}\": create}}");
    place.write("d.test.yaml", &format!("tests: [{{name: \"t{HOSTILE}\", expect: {{{expected}}}}}]"));
    place.write(
        "w.test.yaml",
        &format!(
            "tests: [{{name: a, \"o{HOSTILE}\": 1, document: \"{HOSTILE}\", expect: {{findings: [\"{HOSTILE}\"]}}}}]"
        ),
    );
    place.write("d.sls", &format!("\"a{HOSTILE}\":\n  no.such:\n  - \"{HOSTILE}\": 1\n"));
    let silent = silent(&place, place.path(), COMMANDS, |word| word.replace('E', &hostile()));
    assert_eq!(silent, SILENT);
}

#[test]
fn nothing_that_a_terminal_obeys_reaches_it_from_an_agent() {
    let place = Place::new();
    let state = place.path().join(format!("state{}", hostile()));
    write_document(&place, &format!("a{}.yaml", hostile()), "x");
    write_document(&place, "a.yaml", "x");
    write_document(&place, "b.yaml", "y");
    place.write(&format!("s{}.yaml", hostile()), &format!("\"{HOSTILE}\": \"{HOSTILE}\"\n"));
    let called = |words: &[&str]| {
        let mut command = place.command(words);
        command.env("STEAD_STATE", &state);
        command
    };
    let mut agent = called(&["agent", "run"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until(|| called(&["agent", "history"]).output().unwrap().status.success().then_some(()));
    assert!(called(&["agent", "settings", "set", "ResourceRetryCount=0"]).output().unwrap().status.success());
    let job = || {
        let reports = answer(&mut called(&["agent", "report", "-o", "json"])).stdout;
        let reports: serde_json::Value = serde_json::from_str(&reports).unwrap();
        reports["reports"][0]["job"].as_str().unwrap_or_default().to_owned()
    };
    let word = |word: &str| if word == "JOB" { job() } else { word.replace('E', &hostile()) };
    let silent = silent(&place, &state, OF_AN_AGENT, word);
    agent.kill().unwrap();
    agent.wait().unwrap();
    assert_eq!(silent, SILENT_OF_AN_AGENT);
}

/// A command that is new is tried as well.
#[test]
fn every_command_is_tried() {
    let tried = |command: &String| {
        let is_it = |line: &&str| format!(" {line} ").contains(&format!(" {command} "));
        COMMANDS.iter().chain(OF_AN_AGENT).any(is_it) || PROTOCOLS.contains(&command.as_str())
    };
    let left_out: Vec<String> =
        every_command(&["agent settings", "history"]).into_iter().filter(|command| !tried(command)).collect();
    assert_eq!(left_out, [""; 0]);
}
