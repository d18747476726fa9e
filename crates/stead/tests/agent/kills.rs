//! An agent, and the git that it calls, are killed before each system call of a look at a source: fetch, check and stage.
//!
//! `STEAD_FOLLOW_KILLS=500` kills so often for each kind of source, in place of 5 times.

#![expect(clippy::print_stdout, reason = "it says what it did, as tests do")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;
use stead_testkit::{times, until};

use crate::points::points;
use crate::releases::{BOTH, FOR_WEB, Shop};

/// The system calls by which anything changes.
const CHANGES: &str = "openat2,mkdirat,mkdir,linkat,link,renameat,renameat2,rename,unlinkat,unlink,write,pwrite64,ftruncate,\
                       fallocate,fsync,fdatasync,fchmod,chmod,flock";

/// strace, attached to an agent.
struct Tracer(Child);

impl Tracer {
    /// Traces every thread of the agent, and what it starts.
    fn attach(shop: &Shop, log: &Path, options: &[String]) -> Self {
        let agent = shop.machine.process();
        let mut command = Command::new("strace");
        command.args(["-f", "-e", "signal=none", "-p", &agent.to_string(), "-o"]).arg(log).args(options);
        let tracer = Self(command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        until(|| {
            let mut threads = fs::read_dir(format!("/proc/{agent}/task")).unwrap();
            let is_traced = |thread: std::io::Result<fs::DirEntry>| {
                let status = fs::read_to_string(thread.unwrap().path().join("status")).unwrap_or_default();
                !status.contains("TracerPid:\t0\n")
            };
            threads.all(is_traced).then_some(())
        });
        tracer
    }

    /// Ends it: by a signal that has it write all that it saw, or by one after which it holds no thread of a killed process.
    fn end(mut self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
        self.0.wait().unwrap();
    }
}

/// How a look ends.
#[derive(PartialEq, Eq, Debug)]
enum Outcome {
    /// The agent was killed.
    Killed,
    /// What it calls was.
    Offline,
    /// The machine has the second release: the call was not made in this run, or not by then.
    Staged,
}

/// A machine that has a release, and a source that can be given another one.
struct Scene {
    shop: Shop,
    /// True if the source is a repository.
    is_repository: bool,
}

impl Scene {
    fn new(is_repository: bool) -> Self {
        let mut shop = Shop::new();
        shop.publish("one", FOR_WEB);
        shop.enrol(BOTH);
        if is_repository {
            shop.repository();
            shop.follow(&format!("git+file://{}#main", shop.machine.path("shared.git").display()));
        } else {
            shop.follow(&shop.folder());
        }
        shop.until_kept("one");
        // Looked at when the test says so.
        shop.machine.set("RefreshFrequencyMins=60", "ConfigurationModeFrequencyMins=60");
        shop.machine.stop();
        shop.publish("two", FOR_WEB);
        let scene = Self { shop, is_repository };
        scene.copy("state", "state.before");
        scene.copy("fleet", "fleet.after");
        if is_repository {
            scene.copy("shared.git", "shared.before");
            scene.shop.push();
            scene.copy("shared.git", "shared.after");
        }
        fs::remove_file(scene.shop.machine.path("fleet/web/2.release")).unwrap();
        scene.copy("fleet", "fleet.before");
        scene
    }

    fn copy(&self, from: &str, to: &str) {
        let _ = fs::remove_dir_all(self.shop.machine.path(to));
        let paths = [from, to].map(|name| self.shop.machine.path(name));
        assert!(Command::new("cp").arg("-a").args(paths).status().unwrap().success());
    }

    /// The folder that has what is followed.
    fn source(&self) -> &'static str {
        if self.is_repository { "shared" } else { "fleet" }
    }

    fn replace_source(&self, state: &str) {
        let name = if self.is_repository { "shared.git" } else { "fleet" };
        self.copy(&format!("{}.{state}", self.source()), name);
    }

    /// The machine as it was before the second release, with an agent that has looked at the source.
    fn begin(&mut self) {
        self.replace_source("before");
        self.copy("state.before", "state");
        self.shop.machine.write("kept", "one\n");
        self.shop.machine.start();
        until(|| (self.shop.machine.status()["Source"]["Releases"]["Fleet"] == "shop").then_some(()));
        self.shop.machine.wait(0);
    }

    /// The agent looks at the second release.
    fn looks(&self) -> Outcome {
        self.replace_source("after");
        self.shop.machine.signal(Signal::USR1);
        until(|| {
            if self.shop.machine.has_ended() {
                return Some(Outcome::Killed);
            }
            let is_done = self.shop.machine.read("kept").as_deref() == Some("two\n") && self.is_at_rest();
            if is_done { Some(Outcome::Staged) } else { self.is_offline().then_some(Outcome::Offline) }
        })
    }

    fn is_at_rest(&self) -> bool {
        self.shop.machine.run(&["wait", "--timeout", "60", "--until-converged"]).status.success()
    }

    fn is_offline(&self) -> bool {
        let output = self.shop.machine.run(&["status", "--output", "json"]);
        let status: Result<Json, _> = serde_json::from_slice(&output.stdout);
        status.is_ok_and(|status| status["Source"]["Releases"]["Offline"].is_object())
    }

    /// The number of the newest release that the record knows.
    fn floor(&self) -> u64 {
        let record = self.shop.machine.read("state/state.json").unwrap();
        let record: Json = serde_json::from_str(record.lines().next().unwrap()).unwrap();
        record["following"]["memory"]["channels"]["web"]["number"].as_u64().unwrap()
    }

    /// The names of all that the agent keeps, without those that differ from run to run.
    fn names(&self) -> BTreeSet<String> {
        let state = self.shop.machine.path("state");
        let all = self.shop.machine.everything("state").into_iter();
        let names = all.map(|path| path.strip_prefix(&state).unwrap().display().to_string());
        names.filter(|name| !name.starts_with("jobs/") && !name.contains("/objects/")).collect()
    }

    /// Objects of git that no name leads to, because writing them did not come to its end.
    fn torn(&self) -> Vec<String> {
        let all = self.shop.machine.everything("state/following").into_iter();
        all.map(|path| path.display().to_string()).filter(|path| path.contains("/tmp_")).collect()
    }

    /// What follows after a kill: the machine has the second release, once, and nothing else is left.
    fn converges(&mut self, context: &str) -> BTreeSet<String> {
        assert!(self.floor() >= 1, "{context}");
        // One that was killed may be there for another moment, and answers no more.
        let answers = || self.shop.machine.run(&["history"]).status.success();
        if until(|| if self.shop.machine.has_ended() { Some(true) } else { answers().then_some(false) }) {
            self.shop.machine.ended();
            self.shop.machine.start();
        }
        self.shop.machine.signal(Signal::USR1);
        until(|| self.shop.machine.read("kept").filter(|kept| kept == "two\n"));
        self.shop.machine.wait(0);
        assert_eq!((self.floor(), self.torn()), (2, Vec::new()), "{context}");
        let history = self.shop.machine.json(&["history"]);
        let stages: Vec<&Json> = history["generations"].as_array().unwrap().iter().map(|each| &each["stage"]).collect();
        assert_eq!(stages.len(), 2, "{context}: staged twice: {history}");
        self.shop.machine.stop();
        assert_eq!(self.shop.machine.count("repaired", ""), 0, "{context}");
        self.names()
    }
}

fn is_killed_anywhere(test: &str, is_repository: bool) {
    if !Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).status().is_ok_and(|ended| ended.success()) {
        return stead_testkit::skip(test, "strace is not installed, or may not trace");
    }
    let mut scene = Scene::new(is_repository);
    let log = scene.shop.machine.path("calls");
    scene.begin();
    let tracer = Tracer::attach(&scene.shop, &log, &["-e".to_owned(), format!("trace={CHANGES}")]);
    assert_eq!(scene.looks(), Outcome::Staged);
    tracer.end(Signal::TERM);
    let expected = scene.converges("without a kill");
    let points: Vec<(String, usize)> = points(&log).into_iter().collect();
    assert!(points.iter().any(|(name, _)| name.starts_with("rename")), "{points:?}");
    let wanted = times("STEAD_FOLLOW_KILLS", 5).min(points.len());
    let mut counts = [0; 3];
    for (name, when) in points.iter().step_by(points.len().div_ceil(wanted)) {
        let context = format!("{name} {when}");
        scene.begin();
        let options = [
            "-e".to_owned(),
            format!("trace={name}"),
            "-e".to_owned(),
            format!("inject={name}:signal=KILL:when={when}"),
        ];
        let tracer = Tracer::attach(&scene.shop, Path::new("/dev/null"), &options);
        counts[scene.looks() as usize] += 1;
        tracer.end(Signal::KILL);
        assert_eq!(scene.converges(&context), expected, "{context}");
    }
    let [agents, programs, missed] = counts;
    println!("{agents} kills of the agent, {programs} of what it calls, {missed} calls missed, of {}", points.len());
    assert!(missed * 2 < agents + programs, "most are to be reached");
}

#[test]
fn a_kill_at_any_call_of_a_look_at_a_folder_leaves_nothing_half_staged() {
    is_killed_anywhere("a_kill_at_any_call_of_a_look_at_a_folder_leaves_nothing_half_staged", false);
}

#[test]
fn a_kill_at_any_call_of_a_look_at_a_repository_leaves_nothing_half_staged() {
    is_killed_anywhere("a_kill_at_any_call_of_a_look_at_a_repository_leaves_nothing_half_staged", true);
}
