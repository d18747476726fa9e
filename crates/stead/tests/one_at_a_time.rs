//! Agents and runs over one machine, killed at any moment: one of them at a time sets something.
//!
//! `STEAD_ROUNDS=1000 cargo test -p stead --test one_at_a_time` kills so many.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

use std::hash::{BuildHasher, RandomState};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use stead_testkit::until;
use tempfile::TempDir;

/// How many processes are killed where nothing is asked for.
const ROUNDS: usize = 12;

/// Says whether another set is under way and of which process, and that it is itself: a folder that only one of them can
/// make. What was killed leaves its folder, and must not leave its program.
const SET: &str = r#"
runs() { grep -qs '^State:[[:space:]]*[A-WY]' "/proc/$1/status"; }
if ! mkdir under-way 2>/dev/null && runs "$(cat under-way/pid)"; then
  echo "beside $(cat under-way/stead)" >> trace
fi
mkdir -p under-way; echo $PPID > under-way/stead; echo $$ > under-way/pid; echo set >> trace
sleep 0.02
rm -r under-way
"#;

/// A program that takes part.
#[derive(Clone, Copy)]
enum Part {
    /// An agent with a state directory of that name.
    Agent(&'static str),
    /// A run from a command line.
    Run,
}

/// Two agents have one directory: the second ends at once, and has it when the first is killed.
const PARTS: [Part; 6] =
    [Part::Agent("one"), Part::Agent("one"), Part::Agent("other"), Part::Run, Part::Run, Part::Run];

struct Machine {
    folder: TempDir,
}

impl Machine {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o700)).unwrap();
        let machine = Self { folder };
        let always = json!({"name": "always", "type": "Stead/Command",
            "properties": {"set": SET, "workingDirectory": machine.path("")}});
        let never = json!({"name": "never", "type": "Stead/Command", "properties": {"test": "false", "set": "exit 1"}});
        let document = json!({ "resources": [always, never] });
        std::fs::write(machine.path("document.json"), document.to_string()).unwrap();
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stead"));
        command
            .env("HOME", self.folder.path())
            .env("STEAD_STATE", self.folder.path().join("state"))
            .env_remove("INVOCATION_ID")
            .env_remove("NOTIFY_SOCKET")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    fn agent(&self, state: &str, arguments: &[&str]) -> Command {
        let mut command = self.command();
        command.args(["agent", "--state"]).arg(self.path(state)).args(arguments);
        command
    }

    fn start(&self, part: Part) -> Child {
        match part {
            Part::Agent(state) => self.agent(state, &["run"]).spawn().unwrap(),
            Part::Run => self.command().arg("apply").arg(self.path("document.json")).spawn().unwrap(),
        }
    }

    /// Has the agent of a directory work on the document again and again.
    fn deliver(&self, state: &str) {
        let document = self.path("document.json").display().to_string();
        let settings = ["PendingRetrySecs=1", "PendingRetryMaxSecs=1", "ResourceRetryCount=0"];
        until(|| (self.agent(state, &["history"]).status().unwrap().success()).then_some(()));
        for arguments in [&[&["settings", "set"][..], &settings].concat()[..], &["apply", &document]] {
            assert!(self.agent(state, arguments).status().unwrap().success());
        }
    }

    fn trace(&self) -> String {
        std::fs::read_to_string(self.path("trace")).unwrap_or_default()
    }

    fn sets(&self) -> usize {
        self.trace().lines().filter(|line| *line == "set").count()
    }

    /// The processes beside whose program another one was started.
    fn beside(&self) -> Vec<u32> {
        self.trace().lines().filter_map(|line| line.strip_prefix("beside ")?.parse().ok()).collect()
    }
}

fn random(below: usize) -> usize {
    let random = RandomState::new().hash_one(0_u8) % u64::try_from(below).unwrap();
    usize::try_from(random).unwrap()
}

#[test]
fn whoever_is_killed_makes_way_and_no_two_set_at_once() {
    let machine = Machine::new();
    let mut running: Vec<(Part, Child)> = PARTS.map(|part| (part, machine.start(part))).into();
    for state in ["one", "other"] {
        machine.deliver(state);
    }
    let rounds = stead_testkit::times("STEAD_ROUNDS", ROUNDS);
    let mut longest = Duration::ZERO;
    for _ in 0..rounds {
        std::thread::sleep(Duration::from_millis(u64::try_from(random(60)).unwrap()));
        let killed = random(running.len());
        let (_, child) = &mut running[killed];
        child.kill().unwrap();
        child.wait().unwrap();
        let (sets, begun) = (machine.sets(), Instant::now());
        for (part, child) in &mut running {
            if child.try_wait().unwrap().is_some() {
                *child = machine.start(*part);
            }
        }
        until(|| (machine.sets() > sets).then_some(()));
        longest = longest.max(begun.elapsed());
    }
    for (_, mut child) in running {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let (sets, beside) = (machine.sets(), machine.beside());
    println!("{rounds} kills, {sets} sets; at most {longest:?} from a kill to the next set");
    assert!(beside.is_empty(), "something was set beside programs of {beside:?}");
    assert!(Path::new(&machine.path("one/lock")).exists(), "there is a lock, and no file with a process id");
}

/// The supervisor ends what a killed run leaves, but takes a moment. Here it never comes to it.
#[test]
fn what_a_killed_run_left_running_is_ended_before_the_next_begins() {
    let machine = Machine::new();
    let document = |name: &str, set: &str| {
        let instance = json!({"name": name, "type": "Stead/Command",
            "properties": {"set": set, "workingDirectory": machine.path("")}});
        let path = machine.path(&format!("{name}.json"));
        std::fs::write(&path, json!({ "resources": [instance] }).to_string()).unwrap();
        path
    };
    let first = document("first", "echo $$ > pid.new; mv pid.new pid; while :; do sleep 3600; done");
    let mut killed = machine.command().arg("apply").arg(first).spawn().unwrap();
    until(|| (machine.path("pid").exists()).then_some(()));
    let threads = std::fs::read_dir(format!("/proc/{}/task", killed.id())).unwrap();
    let children = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("children")).unwrap();
    let children = threads.map(|thread| children(thread.unwrap())).collect::<Vec<_>>().join(" ");
    let is_supervisor = |pid: &&str| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.contains("__supervise")
    };
    let supervisor = children.split_whitespace().find(is_supervisor).unwrap();
    let supervisor = Pid::from_raw(supervisor.parse().unwrap()).unwrap();
    kill_process(supervisor, Signal::STOP).unwrap();
    killed.kill().unwrap();
    killed.wait().unwrap();
    let second = document("second", "grep -s '^State:[[:space:]]*[A-WY]' /proc/$(cat pid)/status; echo $? > found");
    assert!(machine.command().arg("apply").arg(second).status().unwrap().success());
    kill_process(supervisor, Signal::KILL).unwrap();
    let found = std::fs::read_to_string(machine.path("found")).unwrap();
    assert_ne!(found.trim(), "0", "the program of the killed run was still running");
}
