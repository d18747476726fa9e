//! The question that `apply` asks on a terminal before it removes something. Nobody else is asked.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "support/terminal.rs"]
mod terminal;

use std::fs;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use terminal::AtTerminal;

const REMOVES: &str = "resources:
- {name: gone, type: Stead/File, properties: {path: gone.txt, _exist: false}}
- {name: new, type: Stead/File, properties: {path: new.txt, content: x}}
";

const CREATES: &str = "resources:
- {name: new, type: Stead/File, properties: {path: new.txt, content: x}}
";

/// A removal whose path is known once the command has run.
const MAY_REMOVE: &str = "resources:
- {name: new, type: Stead/Command, properties: {set: touch new.txt, creates: new.txt, get: test -e new.txt && echo gone.txt}}
- name: gone
  type: Stead/File
  properties: {path: \"[reference(resourceId('Stead/Command', 'new')).output]\", _exist: false}
";

const QUESTION: &str = "[y/N] ";

/// A folder with a document and a file that it may remove.
fn folder(document: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("d.yaml"), document).unwrap();
    fs::write(folder.path().join("gone.txt"), "kept?").unwrap();
    folder
}

/// `stead apply` at a terminal.
fn apply(folder: &TempDir, options: &[&str]) -> AtTerminal {
    AtTerminal::run(command(folder, "apply", &[&["d.yaml"], options].concat()))
}

fn command(folder: &TempDir, name: &str, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stead"));
    command
        .arg(name)
        .args(words)
        .current_dir(folder.path())
        .env("HOME", folder.path())
        .env("STEAD_RECONCILE", "none")
        .env("STEAD_STATE", folder.path().join("state"))
        .env("NO_COLOR", "1");
    command
}

fn is_there(folder: &TempDir, name: &str) -> bool {
    folder.path().join(name).exists()
}

#[test]
fn what_would_be_removed_is_shown_and_nothing_is_done_without_a_yes() {
    for answer in ["n\n", "\n", "nyes\n", "\x04"] {
        let folder = folder(REMOVES);
        let (screen, code) = apply(&folder, &[]).types(answer).ends();
        assert!(screen.contains("- Stead/File 'gone' (gone.txt)  to be removed"), "{screen}");
        assert!(screen.contains("1 instance. [y/N]") && screen.contains("nothing was changed"), "{screen}");
        assert_eq!(code, Some(6), "{answer:?}: {screen}");
        assert!(is_there(&folder, "gone.txt") && !is_there(&folder, "new.txt"));
    }
}

#[test]
fn after_a_yes_all_of_it_is_done() {
    for answer in ["y\n", "Yes\n"] {
        let folder = folder(REMOVES);
        let (screen, code) = apply(&folder, &["-q"]).types(answer).ends();
        assert!(screen.contains(QUESTION), "{screen}");
        assert_eq!(code, Some(0), "{screen}");
        assert!(!is_there(&folder, "gone.txt") && is_there(&folder, "new.txt"));
    }
}

#[test]
fn ctrl_c_at_the_question_changes_nothing() {
    let folder = folder(REMOVES);
    let mut at = apply(&folder, &[]);
    at.until(QUESTION);
    kill_process(Pid::from_child(&at.program), Signal::INT).unwrap();
    assert_eq!(at.ends().1, Some(6));
    assert!(is_there(&folder, "gone.txt") && !is_there(&folder, "new.txt"));
}

#[test]
fn a_difference_is_coloured_on_a_terminal() {
    let folder =
        folder("resources: [{name: a, type: Stead/File, properties: {path: gone.txt, content: \"a\\nnew\\n\"}}]\n");
    fs::write(folder.path().join("gone.txt"), "a\nold\n").unwrap();
    let mut command = command(&folder, "apply", &["d.yaml"]);
    command.env_remove("NO_COLOR").env("TERM", "xterm");
    let (screen, code) = AtTerminal::run(command).ends();
    assert!(screen.contains("\x1b[31m- old") && screen.contains("\x1b[32m+ new"), "{screen:?}");
    assert_eq!(code, Some(0), "{screen}");
}

/// Somebody who is asked all the same says no.
#[test]
fn nothing_is_asked_where_nothing_is_removed_or_it_was_agreed_to() {
    for (document, options) in [(CREATES, &[][..]), (REMOVES, &["--yes"]), (REMOVES, &["-y", "-o", "json"])] {
        let folder = folder(document);
        let (screen, code) = apply(&folder, options).types("n\n").ends();
        assert!(!screen.contains(QUESTION), "{screen}");
        assert_eq!(code, Some(0), "{screen}");
        assert!(is_there(&folder, "new.txt"));
    }
}

/// Whoever applies a saved plan may not be the one who looked at it.
#[test]
fn a_saved_plan_asks_as_its_document_does() {
    let planned = |document: &str| {
        let folder = folder(document);
        let saved = command(&folder, "plan", &["d.yaml", "--out", "p.plan"]).output().unwrap();
        assert_eq!(saved.status.code(), Some(2), "{}", String::from_utf8_lossy(&saved.stderr));
        folder
    };
    let apply = |folder: &TempDir, options: &[&str]| {
        AtTerminal::run(command(folder, "apply", &[&["p.plan"], options].concat()))
    };
    let folder = planned(REMOVES);
    let (screen, code) = apply(&folder, &[]).types("n\n").ends();
    assert!(screen.contains("- Stead/File 'gone' (gone.txt)  to be removed"), "{screen}");
    assert!(screen.contains("what is there in 1 instance. [y/N]") && code == Some(6), "{screen}");
    assert!(is_there(&folder, "gone.txt") && !is_there(&folder, "new.txt"));
    // What changes while somebody thinks is noticed.
    let mut terminal = apply(&folder, &[]);
    terminal.until(QUESTION);
    fs::write(folder.path().join("new.txt"), "meanwhile").unwrap();
    let (screen, code) = terminal.types("y\n").ends();
    assert!(screen.contains("the saved plan is out of date for 1 instance") && code == Some(3), "{screen}");
    assert!(is_there(&folder, "gone.txt"));
    fs::remove_file(folder.path().join("new.txt")).unwrap();
    let (screen, code) = apply(&folder, &[]).types("y\n").ends();
    assert_eq!((code, is_there(&folder, "gone.txt"), is_there(&folder, "new.txt")), (Some(0), false, true), "{screen}");
    let (screen, code) = apply(&planned(MAY_REMOVE), &[]).types("n\n").ends();
    assert!(screen.contains("may remove or replace") && code == Some(6), "{screen}");
    for (document, options) in [(CREATES, &[][..]), (REMOVES, &["--yes"])] {
        let (screen, code) = apply(&planned(document), options).types("n\n").ends();
        assert!(!screen.contains(QUESTION) && code == Some(0), "{screen}");
    }
    let folder = planned(REMOVES);
    let without = command(&folder, "apply", &["p.plan"]).stdin(Stdio::null()).output().unwrap();
    assert!(without.status.success() && !is_there(&folder, "gone.txt"), "nobody is asked without a terminal");
}

#[test]
fn nothing_is_asked_without_a_terminal() {
    let folder = folder(REMOVES);
    let output = command(&folder, "apply", &["d.yaml"]).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!is_there(&folder, "gone.txt"));
}

/// A resource of PowerShell that keeps a file, and says by `Ensure` whether it is there.
const ENSURES: [(&str, &str); 3] = [
    ("modules/Keep/Keep.psd1", "@{ RootModule = 'Keep.psm1'; ModuleVersion = '1.0'; DscResourcesToExport = 'Keep' }"),
    (
        "modules/Keep/Keep.psm1",
        "enum Ensure { Absent; Present }
[DscResource()] class Keep {
    [DscProperty(Key)] [string] $Path
    [DscProperty()] [Ensure] $Ensure = 'Present'
    [Keep] Get() {
        $is = if (Test-Path $this.Path) { 'Present' } else { 'Absent' }
        return [Keep] @{ Path = $this.Path; Ensure = $is }
    }
    [bool] Test() { return $this.Get().Ensure -eq $this.Ensure }
    [void] Set() { Remove-Item $this.Path }
}",
    ),
    ("d.yaml", "resources: [{name: gone, type: Keep/Keep, properties: {Path: HERE/gone.txt, ensure: absent}}]\n"),
];

#[test]
fn what_powershell_would_remove_is_asked_for() {
    let Some(pwsh) = stead_testkit::powershell("what_powershell_would_remove_is_asked_for") else { return };
    let path = format!("{}:/usr/bin:/bin", pwsh.parent().unwrap().display());
    for (answer, is_kept) in [("n\n", true), ("y\n", false)] {
        let folder = folder("");
        fs::create_dir_all(folder.path().join("modules/Keep")).unwrap();
        for (name, text) in ENSURES {
            let text = text.replace("HERE", &folder.path().display().to_string());
            fs::write(folder.path().join(name), text).unwrap();
        }
        let mut command = command(&folder, "apply", &["d.yaml"]);
        command.env("PSModulePath", folder.path().join("modules")).env("PATH", &path);
        let (screen, _) = AtTerminal::run(command).types(answer).ends();
        assert!(screen.contains("- Keep/Keep 'gone'  to be removed") && screen.contains(QUESTION), "{screen}");
        assert_eq!(is_there(&folder, "gone.txt"), is_kept, "{screen}");
    }
}

#[test]
fn what_may_be_removed_is_asked_for_too() {
    for (answer, is_kept) in [("n\n", true), ("y\n", false)] {
        let folder = folder(MAY_REMOVE);
        let (screen, _) = apply(&folder, &[]).types(answer).ends();
        assert!(
            screen.contains("may remove or replace what is there in 1 instance, unknown until then. [y/N]"),
            "{screen}"
        );
        assert_eq!((is_there(&folder, "gone.txt"), is_there(&folder, "new.txt")), (is_kept, !is_kept), "{screen}");
    }
}

#[test]
fn what_runs_for_long_has_a_line_with_its_time() {
    let document = "resources:
- name: slow
  type: Stead/Command
  properties: {test: test -e done, set: \"until test -e go; do sleep 0.05; done; touch done\"}
";
    let folder = folder(document);
    let mut at = apply(&folder, &[]);
    let seen = at.until("s  Stead/Command 'slow'");
    assert!(seen.contains("0/1"), "{seen}");
    fs::write(folder.path().join("go"), "").unwrap();
    let (screen, exit) = at.ends();
    assert!(screen.contains("Applied: 1 changed"), "{screen}");
    assert_eq!(exit, Some(0));
}
