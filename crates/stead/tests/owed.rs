//! An apply is killed before any system call by which it changes something: what acts on the change that it made is run by
//! the next one, and what it made is known to it.
//!
//! `STEAD_KILLS=1000` tries that many of the system calls, in place of 24 that are spread over all.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

use std::fs;
use std::process::{Command, Stdio};

use stead_testkit::{skip, times};
use tempfile::TempDir;

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
    fn new(document: &str) -> Self {
        let place = Self(TempDir::new().unwrap());
        place.deliver(document);
        place
    }

    fn deliver(&self, document: &str) {
        fs::write(self.0.path().join("main.yaml"), document).unwrap();
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
fn calls(document: &str) -> usize {
    let place = Place::new(document);
    assert!(place.trace(None), "{}", place.read("trace"));
    let trace = place.read("trace");
    let threads: std::collections::BTreeSet<&str> = trace.lines().filter_map(|line| line.split(' ').next()).collect();
    let of = |thread: &&str| trace.lines().filter(|line| line.split(' ').next() == Some(thread)).count();
    threads.iter().map(of).max().unwrap_or(0)
}

/// Has an apply of the document killed before calls that are spread over all; returns how often it was.
fn kill(test: &str, document: &str, mut killed: impl FnMut(&Place, usize)) -> Option<usize> {
    if Command::new("strace").arg("-V").output().is_err() {
        skip(test, "there is no strace");
        return None;
    }
    let (calls, tries) = (calls(document), times("STEAD_KILLS", 24));
    let mut kills = 0;
    for at in (1..=calls).rev().step_by((calls / tries).max(1)) {
        let place = Place::new(document);
        if !place.trace(Some(at)) {
            kills += 1;
            killed(&place, at);
        }
    }
    assert!(kills > 0, "nothing was killed");
    Some(kills)
}

#[test]
fn a_kill_at_any_point_loses_no_notification() {
    let mut between = 0;
    let kills = kill("a_kill_at_any_point_loses_no_notification", DOCUMENT, |place, at| {
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
    });
    let Some(kills) = kills else { return };
    println!("{kills} kills, {between} of them between a change and what acts on it");
    assert!(between > 0, "nothing was killed when it matters");
}

/// What it has made is removed once it is not in the document any more, but for the one file that was being made.
#[test]
fn a_kill_at_any_point_loses_nothing_that_was_created() {
    let file =
        |name: usize| format!("- {{name: f{name}, type: Stead/File, properties: {{path: f{name}, content: x}}}}\n");
    let document = format!("resources:\n{}", (0..40).map(file).collect::<String>());
    let mut between = 0;
    let kills = kill("a_kill_at_any_point_loses_nothing_that_was_created", &document, |place, at| {
        let there = || (0..40).filter(|name| place.0.path().join(format!("f{name}")).exists()).count();
        between += usize::from((2..40).contains(&there()));
        place.deliver("directives: {removed: remove}\nresources: []\n");
        assert_eq!(place.apply(), Some(0), "killed before call {at}");
        assert!(there() <= 1, "killed before call {at}: {} files stay", there());
    });
    let Some(kills) = kills else { return };
    println!("{kills} kills, {between} of them after some of the files");
    assert!(between > 0, "nothing was killed when it matters");
}
