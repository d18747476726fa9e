//! Completions, as bash, zsh and fish insert them when the tab key is pressed in a terminal.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::terminal::AtTerminal;

const DOCUMENT: &str = "
parameters:
  port: {type: int}
resources:
- name: web page
  type: Stead/File
  metadata: {tags: [www]}
  properties: {path: a, content: b}
- name: $(touch executed)
  type: Stead/File
  properties: {path: b, content: b}
- name: outer
  type: Microsoft.DSC/Group
  properties:
    resources:
    - {name: site, type: Stead/Directory, properties: {path: c}}
";

/// The words that are typed, and the completions of a tab.
const CASES: &[(&str, &str)] = &[
    ("stead comp", "stead completer "),
    ("stead agent inst", "stead agent install "),
    ("stead dsc conf", "stead dsc config "),
    ("stead plan --system-r", "stead plan --system-root "),
    ("stead plan --output y", "stead plan --output yaml "),
    ("stead plan --output=y", "stead plan --output=yaml "),
    // Types, functions and codes.
    ("stead get Stead/Fi", "stead get Stead/File "),
    ("stead resource get -r Stead/Dow", "stead resource get -r Stead/Download "),
    ("stead invoke Stead/Dow", "stead invoke Stead/Download "),
    ("stead explain Stead/Dow", "stead explain Stead/Download "),
    ("stead explain stead.regexG", "stead explain stead.regexGroups "),
    ("stead explain W064", "stead explain W0644 "),
    // Properties of a type.
    ("stead set Stead/Line cre", "stead set Stead/Line create="),
    ("stead get file path=do", "stead get file path=doc.yaml "),
    ("stead invoke Stead/Line --property mat", "stead invoke Stead/Line --property match="),
    // Files and directories, also with letters that a shell would take for its own.
    ("stead plan do", "stead plan doc.yaml "),
    ("stead plan --output=yaml do", "stead plan --output=yaml doc.yaml "),
    ("stead plan fol", "stead plan folder/"),
    ("stead plan ~/do", "stead plan ~/doc.yaml "),
    ("stead plan ~/fol", "stead plan ~/folder/"),
    ("stead plan sp", r"stead plan sp\ a\;ce.yaml "),
    ("stead plan 'sp", "stead plan 'sp a;ce.yaml' "),
    // What the document has.
    ("stead plan doc.yaml --only si", "stead plan doc.yaml --only site "),
    ("stead plan doc.yaml --only=si", "stead plan doc.yaml --only=site "),
    ("stead plan doc.yaml --only ww", "stead plan doc.yaml --only www "),
    ("stead plan doc.yaml --skip site,ou", "stead plan doc.yaml --skip site,outer "),
    ("stead plan ~/doc.yaml --skip Stead/Di", "stead plan ~/doc.yaml --skip Stead/Directory "),
    ("stead graph -f doc.yaml --why we", r"stead graph -f doc.yaml --why web\ page "),
    (r"stead graph doc.yaml --why \$", r"stead graph doc.yaml --why \$\(touch\ executed\) "),
    ("stead apply doc.yaml --set po", "stead apply doc.yaml --set port="),
];

#[test]
fn bash_completes() {
    completes(
        "bash",
        &["--norc", "--noprofile", "-i"],
        r#"source <(stead completer bash); bind -x '"\C-o": printf "<<<%s>>>" "$READLINE_LINE"'; bind 'set bell-style none'; PS1=$(printf 'rea%s> ' dy)"#,
    );
}

const ZSH: &str = r#"show() { print -rn -- "<<<$BUFFER>>>" }; zle -N show; bindkey '^O' show; bindkey '^U' kill-whole-line; PS1=$(printf 'rea%s> ' dy)"#;

#[test]
fn zsh_completes() {
    completes(
        "zsh",
        &["-f", "-i"],
        &format!("autoload -Uz compinit; compinit -D -u; source <(stead completer zsh); {ZSH}"),
    );
}

#[test]
fn fish_completes() {
    completes(
        "fish",
        &["--no-config", "-i"],
        r#"stead completer fish | source; bind \co 'printf "<<<%s>>>" (commandline)'; bind \cu 'commandline ""'; function fish_prompt; printf 'rea%s> ' dy; end"#,
    );
}

/// The completer is called as the shell calls it, with words that it has taken apart.
#[test]
fn nushell_completes() {
    let nu = std::env::var("STEAD_TEST_NU").unwrap_or("nu".to_owned());
    if Command::new(&nu).arg("--version").output().is_err() {
        return stead_testkit::skip("nushell_completes", "there is no nu");
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("doc.yaml"), DOCUMENT).unwrap();
    let stead = env!("CARGO_BIN_EXE_stead");
    let script = Command::new(stead).args(["completer", "nushell"]).output().unwrap();
    fs::write(folder.path().join("stead.nu"), script.stdout).unwrap();
    let calls = r#"
$env.config.completions.external.completer = {|spans| [{value: former, description: ""}]}
source stead.nu
for words in [[stead comp] [stead plan doc.yaml --only we] [stead graph doc.yaml --why "$"] [stead plan --output y] [git do]] {
    print (do $env.config.completions.external.completer $words | get value | str join " ")
}"#;
    fs::write(folder.path().join("calls.nu"), calls).unwrap();
    let beside = Path::new(stead).parent().unwrap();
    let mut command = Command::new(nu);
    command.arg("calls.nu").current_dir(folder.path()).env("HOME", folder.path());
    command.env("PATH", format!("{}:{}", beside.display(), std::env::var("PATH").unwrap()));
    let answered = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert_eq!(answered, "completer\n\"web page\"\n\"$(touch executed)\"\nyaml\nformer\n");
}

/// A file of a directory of completions is loaded at the first tab, which it already answers.
#[test]
fn zsh_completes_at_the_first_tab() {
    let folder = tempfile::tempdir().unwrap();
    let script = Command::new(env!("CARGO_BIN_EXE_stead")).args(["completer", "zsh"]).output().unwrap();
    fs::write(folder.path().join("_stead"), script.stdout).unwrap();
    let folder = folder.path().display();
    completes("zsh", &["-f", "-i"], &format!("fpath=({folder} $fpath); autoload -Uz compinit; compinit -D -u; {ZSH}"));
}

/// In a shell that is prepared by these commands, and has the prompt `ready>` then, Ctrl-O prints the line.
fn completes(shell: &str, options: &[&str], prepare: &str) {
    if Command::new(shell).args(["-c", ":"]).status().is_err() {
        return stead_testkit::skip(&format!("{shell}_completes"), &format!("there is no {shell}"));
    }
    let folder = tempfile::tempdir().unwrap();
    for name in ["doc.yaml", "sp a;ce.yaml"] {
        fs::write(folder.path().join(name), DOCUMENT).unwrap();
    }
    fs::create_dir(folder.path().join("folder")).unwrap();
    let beside = Path::new(env!("CARGO_BIN_EXE_stead")).parent().unwrap();
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait", shell]).args(options).current_dir(folder.path());
    command.env_clear().envs([("TERM", "xterm"), ("LANG", "C.UTF-8")]).env("HOME", folder.path());
    command.env("PATH", format!("{}:{}", beside.display(), std::env::var("PATH").unwrap()));
    let mut at = AtTerminal::run(command);
    at.types(&format!("{prepare}\n")).until("ready>");
    for (typed, expected) in CASES {
        at.types(&format!("{typed}\t\x0f\x15")).until("<<<");
        let shown = at.until(">>>");
        assert_eq!(shown.trim_end_matches(">>>"), *expected, "{shell}: {typed}");
    }
    at.types("exit\n").ends();
    assert!(!folder.path().join("executed").exists(), "{shell} executed a name");
}
