//! An apply is killed before any system call by which it changes something: what acts on the change that it made is run by
//! the next one.
//!
//! `STEAD_KILLS=1000` tries that many of the system calls, in place of 24 that are spread over all.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

use std::fs;
use std::process::{Command, Stdio};

use stead_testkit::{skip, times};
use tempfile::TempDir;

const TEST: &str = "a_kill_at_any_point_loses_no_notification";

const DOCUMENT: &str = r#"
resources:
- {name: conf, type: Stead/File, properties: {path: conf, content: new}}
- {name: group, type: Microsoft.DSC/Group, properties: {resources: [
    {name: inner, type: Stead/File, properties: {path: inner, content: new}}]}}
- {name: one, type: Stead/Command, properties: {set: "echo one >> log"}, directives: {onChanges: ['Stead/File:conf']}}
- {name: two, type: Stead/Command, properties: {set: "echo two >> log"}, directives: {onChanges: ['Microsoft.DSC/Group:group']}}
- {name: three, type: Stead/Command, condition: "[stateChanged('Stead/File:conf')]", properties: {set: "echo three >> log"}}
"#;

/// System calls that change files, flush them or start programs.
const CALLS: &str =
    "openat,write,pwrite64,linkat,unlinkat,renameat2,rename,fsync,fdatasync,ftruncate,fchmod,clone,clone3,vfork";

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("main.yaml"), DOCUMENT).unwrap();
        Self(folder)
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.0.path())
            .env("HOME", self.0.path())
            .env("STEAD_RECONCILE", "none")
            .env("STEAD_STATE", self.0.path().join("state"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    fn apply(&self) -> Option<i32> {
        self.command(env!("CARGO_BIN_EXE_stead"), &["apply", "main.yaml"]).status().unwrap().code()
    }

    /// Applies under strace. With a number, the process is killed before that one of the calls.
    fn trace(&self, kill: Option<usize>) -> bool {
        let inject = kill.map(|at| format!("inject={CALLS}:signal=KILL:when={at}"));
        let filter = format!("trace={CALLS}");
        let mut arguments = vec!["-f", "-qq", "-o", "trace", "-e", &filter];
        arguments.extend(inject.iter().flat_map(|inject| ["-e", inject.as_str()]));
        arguments.extend([env!("CARGO_BIN_EXE_stead"), "apply", "--width", "1", "main.yaml"]);
        self.command("strace", &arguments).status().unwrap().success()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).unwrap_or_default()
    }
}

/// How many of the calls one thread of an apply makes at most: a kill counts them for each thread.
fn calls() -> usize {
    let place = Place::new();
    assert!(place.trace(None), "{}", place.read("trace"));
    let trace = place.read("trace");
    let threads: std::collections::BTreeSet<&str> = trace.lines().filter_map(|line| line.split(' ').next()).collect();
    let of = |thread: &&str| trace.lines().filter(|line| line.split(' ').next() == Some(thread)).count();
    threads.iter().map(of).max().unwrap_or(0)
}

#[test]
fn a_kill_at_any_point_loses_no_notification() {
    if Command::new("strace").arg("-V").output().is_err() {
        return skip(TEST, "there is no strace");
    }
    let (calls, tries) = (calls(), times("STEAD_KILLS", 24));
    let (mut killed, mut between) = (0, 0);
    for at in (1..=calls).rev().step_by((calls / tries).max(1)) {
        let place = Place::new();
        if place.trace(Some(at)) {
            continue;
        }
        killed += 1;
        let (conf, log) = (place.read("conf"), place.read("log"));
        between += usize::from(conf == "new" && !(log.contains("one") && log.contains("three")));
        // What was killed may hold the lock for a moment, which is waited for.
        assert_eq!(place.apply(), Some(0), "killed before call {at}");
        let log = place.read("log");
        for each in ["one", "two", "three"] {
            assert!(log.contains(each), "killed before call {at}: {each} was not run: {log}");
        }
        assert_eq!(place.apply(), Some(0));
        assert_eq!(place.read("log"), log, "killed before call {at}: nothing is owed any more");
    }
    println!("{killed} kills, {between} of them between a change and what acts on it");
    assert!(killed > 0, "nothing was killed");
    assert!(between > 0, "nothing was killed when it matters");
}
