//! What is left of a run that is ended early: no program of a resource.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use stead_testkit::until;
use tempfile::TempDir;

/// A program that ends for nobody, once its process id is known.
const STUBBORN: &str = r#"trap "" TERM INT HUP; echo $$ > pid.new; mv pid.new pid; while :; do sleep 3600; done"#;

/// A run with a program, and the process id that it writes.
fn run(folder: &TempDir, script: &str) -> (Child, i32) {
    let document = serde_json::json!({"resources": [{
        "name": "stubborn",
        "type": "Stead/Command",
        "properties": {"test": "false", "set": format!("cd {}; {script}", folder.path().display())},
    }]});
    let path = folder.path().join("stubborn.dsc.json");
    std::fs::write(&path, document.to_string()).unwrap();
    let stead = Command::new(env!("CARGO_BIN_EXE_stead"))
        .args(["apply"])
        .arg(&path)
        .env("HOME", folder.path())
        .env("STEAD_RECONCILE", "none")
        .env("STEAD_STATE", folder.path().join("state"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = until(|| std::fs::read_to_string(folder.path().join("pid")).ok());
    (stead, pid.trim().parse().unwrap())
}

fn is_gone(pid: i32) -> Option<()> {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with(['Z', 'X'])).then_some(())
}

#[test]
fn a_second_signal_ends_programs_that_ignore_the_first() {
    let folder = TempDir::new().unwrap();
    let (mut stead, pid) = run(&folder, STUBBORN);
    // Two that are sent at once can arrive as one.
    until(|| {
        kill_process(Pid::from_child(&stead), Signal::TERM).unwrap();
        stead.try_wait().unwrap()
    });
    until(|| is_gone(pid));
}

#[test]
fn a_kill_ends_programs_too() {
    let folder = TempDir::new().unwrap();
    let (mut stead, pid) = run(&folder, STUBBORN);
    stead.kill().unwrap();
    stead.wait().unwrap();
    until(|| is_gone(pid));
}

/// Detached in every way that a shell knows, so that neither its parents nor its environment tell where it comes from.
#[test]
fn a_kill_ends_what_detached_itself() {
    const NAME: &str = "a_kill_ends_what_detached_itself";
    if !stead_testkit::is_root(NAME) {
        return;
    }
    if !std::fs::read_to_string("/proc/mounts").unwrap().contains(" cgroup2 rw") {
        return stead_testkit::skip(NAME, "no control groups of version 2 can be written");
    }
    stead_testkit::let_programs_be_interrupted();
    for signal in [Signal::KILL, Signal::QUIT] {
        let folder = TempDir::new().unwrap();
        let detached = format!("(setsid env -i sh -c '{STUBBORN}' &); sleep 3600");
        let (mut stead, pid) = run(&folder, &detached);
        kill_process(Pid::from_child(&stead), signal).unwrap();
        stead.wait().unwrap();
        until(|| is_gone(pid));
    }
}
