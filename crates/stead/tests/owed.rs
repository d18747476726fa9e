//! An apply or an undo is killed before any system call by which it changes something: what acts on the change that it made is run by
//! the next one, what it made is known to it, and an undo goes on, also where a program that it started was killed.
//!
//! `STEAD_KILLS=1000` tries that many of the system calls, in place of 24 that are spread over all.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "support/points.rs"]
mod points;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value as Json;
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

/// System calls that change files, flush them or start programs. Those that open files are none: a kill before one is a kill behind the
/// last change, and there are so many that few kills would be left for the rest.
const CALLS: &str = "write,pwrite64,linkat,symlinkat,unlinkat,renameat,renameat2,rename,mkdirat,fchmod,fchown,fchownat,ftruncate,fsync,\
                     fdatasync,syncfs,clone,clone3,vfork";

/// Those that a shell makes for the program that acts on a change.
const FORKS: [&str; 3] = ["clone", "clone3", "vfork"];

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

    fn run(&self, arguments: &[&str]) -> Option<i32> {
        self.command(env!("CARGO_BIN_EXE_stead"), arguments).status().unwrap().code()
    }

    fn apply(&self) -> Option<i32> {
        self.run(&["apply", "main.yaml"])
    }

    /// Runs stead under strace. With the name of a call and a number, the process is killed before that one of a thread.
    fn trace(&self, run: &[&str], kill: Option<&(String, usize)>) -> bool {
        let inject = kill.map(|(name, at)| format!("inject={name}:signal=KILL:when={at}"));
        let filter = format!("trace={CALLS}");
        let mut arguments = vec!["-f", "-qq", "-o", "trace", "-e", &filter];
        arguments.extend(inject.iter().flat_map(|inject| ["-e", inject.as_str()]));
        arguments.push(env!("CARGO_BIN_EXE_stead"));
        arguments.extend(run);
        self.command("strace", &arguments).status().unwrap().success()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).unwrap_or_default()
    }
}

/// A run that is killed.
struct Victim<'v> {
    begin: &'v dyn Fn() -> Place,
    run: &'v [&'v str],
    /// True if every first fork is tried: one of them is that of a program which acts on a change, and kills that alone.
    forks: bool,
}

impl Victim<'_> {
    fn points(&self) -> Vec<(String, usize)> {
        let place = (self.begin)();
        assert!(place.trace(self.run, None), "{}", place.read("trace"));
        points::points(&place.0.path().join("trace")).into_iter().collect()
    }

    /// Has it killed before calls that are spread over all; returns how often it was.
    fn kill(&self, test: &str, mut killed: impl FnMut(&Place, &str)) -> Option<usize> {
        if Command::new("strace").arg("-V").output().is_err() {
            skip(test, "there is no strace");
            return None;
        }
        let (points, tries) = (self.points(), times("STEAD_KILLS", 24));
        let mut kills = 0;
        let is_fork = |(name, at): &(String, usize)| self.forks && *at == 1 && FORKS.contains(&name.as_str());
        let step = (points.len() / tries).max(1);
        for (_, point) in points.iter().enumerate().filter(|(at, point)| at % step == 0 || is_fork(point)) {
            let place = (self.begin)();
            if !place.trace(self.run, Some(point)) {
                kills += 1;
                killed(&place, &format!("{} {}", point.0, point.1));
            }
        }
        assert!(kills > 0, "nothing was killed");
        Some(kills)
    }
}

/// Has an apply of the document killed.
fn kill(test: &str, document: &str, killed: impl FnMut(&Place, &str)) -> Option<usize> {
    Victim { begin: &|| Place::new(document), run: &["apply", "--width", "1", "main.yaml"], forks: false }
        .kill(test, killed)
}

#[test]
fn a_kill_at_any_point_loses_no_notification() {
    let mut between = 0;
    let kills = kill("a_kill_at_any_point_loses_no_notification", DOCUMENT, |place, at| {
        let (conf, log) = (place.read("conf"), place.read("log"));
        between += usize::from(conf == "new" && !(log.contains("one") && log.contains("three")));
        // What was killed may hold the lock for a moment, which is waited for.
        assert_eq!(place.apply(), Some(0), "killed before {at}");
        let log = place.read("log");
        for each in ["one", "two", "three"] {
            assert!(log.contains(each), "killed before {at}: {each} was not run: {log}");
        }
        assert_eq!(place.apply(), Some(0));
        assert_eq!(place.read("log"), log, "killed before {at}: nothing is owed any more");
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
        assert_eq!(place.apply(), Some(0), "killed before {at}");
        assert!(there() <= 1, "killed before {at}: {} files stay", there());
    });
    let Some(kills) = kills else { return };
    println!("{kills} kills, {between} of them after some of the files");
    assert!(between > 0, "nothing was killed when it matters");
}

const UNDONE: &str = r#"
resources:
- {name: conf, type: Stead/File, properties: {path: at/conf, content: "new\n", mode: '0600'}}
- {name: made, type: Stead/File, properties: {path: at/a/b/made, content: x, parents: true}}
- {name: line, type: Stead/Line, properties: {path: at/lines, line: second}}
- {name: gone, type: Stead/Directory, properties: {path: at/gone, _exist: false, recurse: true}}
- {name: link, type: Stead/Symlink, properties: {path: at/link, target: made}}
- {name: handler, type: Stead/Command, properties: {set: "cat at/conf >> log; true"}, directives: {onChanges: ['Stead/File:conf']}}
"#;

/// All that is at a path, times apart.
fn tree(path: &Path, found: &mut BTreeMap<PathBuf, (u32, Vec<u8>)>) {
    let mode = fs::symlink_metadata(path).unwrap().permissions().mode();
    let content = match fs::read_link(path) {
        Ok(target) => target.into_os_string().into_encoded_bytes(),
        Err(_) if path.is_dir() => Vec::new(),
        Err(_) => fs::read(path).unwrap(),
    };
    found.insert(path.to_owned(), (mode, content));
    if path.is_dir() && !path.is_symlink() {
        for entry in fs::read_dir(path).unwrap() {
            tree(&entry.unwrap().path(), found);
        }
    }
}

impl Place {
    /// One with a recorded run that can be taken back.
    fn recorded() -> Self {
        let place = Self::new(UNDONE);
        let at = |name: &str| place.0.path().join("at").join(name);
        fs::create_dir_all(at("gone/in")).unwrap();
        for (name, content) in [("conf", "old\n"), ("lines", "first\n"), ("gone/in/f", "f"), ("gone/g", "g")] {
            fs::write(at(name), content).unwrap();
        }
        fs::set_permissions(at("gone/in"), fs::Permissions::from_mode(0o750)).unwrap();
        std::os::unix::fs::symlink("nowhere", at("link")).unwrap();
        place
    }

    fn at(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let mut found = BTreeMap::new();
        tree(&self.0.path().join("at"), &mut found);
        let start = self.0.path().to_owned();
        found.into_iter().map(|(path, it)| (path.strip_prefix(&start).unwrap().to_owned(), it)).collect()
    }

    /// Returns the number of failures of an undo that is recorded as finished.
    fn undone(&self) -> Option<u64> {
        let mut history = self.command(env!("CARGO_BIN_EXE_stead"), &["history", "--output", "json"]);
        let runs: Json = serde_json::from_slice(&history.stdout(Stdio::piped()).output().unwrap().stdout).unwrap();
        let is_undo = |run: &&Json| run["document"].as_str().is_some_and(|document| document.starts_with("undo of "));
        let finished = |run: &Json| (run["state"] == "finished").then(|| run["totals"]["failed"].as_u64().unwrap());
        runs["runs"].as_array().unwrap().iter().filter(is_undo).find_map(finished)
    }
}

/// An undo that was killed, or of which a program was, goes on with the same command: everything is as it was before the run, and what
/// acts on that has acted. One that is recorded as finished without a failure has done all of that. What was undone in parts is taken
/// back as one.
#[test]
fn an_undo_that_is_killed_at_any_point_goes_on() {
    let before = Place::recorded().at();
    let begin = || {
        let place = Place::recorded();
        assert_eq!(place.run(&["apply", "--record", "main.yaml"]), Some(0));
        place
    };
    let after = begin().at();
    let undo = ["undo", "--yes", "--keep-runs", "1"];
    let victim = Victim { begin: &begin, run: &undo, forks: true };
    let (mut between, mut ended, mut failed) = (0, 0, 0);
    let kills = victim.kill("an_undo_that_is_killed_at_any_point_goes_on", |place, at| {
        let then = place.at();
        between += usize::from(then != before && then != after);
        let undone = place.undone();
        if undone == Some(0) {
            ended += 1;
        } else {
            failed += usize::from(undone.is_some());
            assert_eq!(place.run(&undo), Some(0), "killed before {at}");
        }
        let log = place.read("log");
        assert!(place.at() == before, "killed before {at}: {:?}", place.at());
        assert!(log.starts_with("new\nold\n"), "killed before {at}: the handler did not act: {log}");
        assert_eq!(place.run(&undo), Some(0), "killed before {at}: the undo is not taken back");
        assert!(place.at() == after, "killed before {at}: the undo is taken back in part: {:?}", place.at());
    });
    let Some(kills) = kills else { return };
    println!(
        "{kills} kills, {between} of them after a part was taken back, {ended} of one that had ended, {failed} of a program"
    );
    assert!(between * 4 > kills, "nothing was killed when it matters");
    assert!(failed > 0, "no program was killed");
}
