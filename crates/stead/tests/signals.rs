//! How soon a process ends that is asked to, and what is left of a run that is ended early: no program of a resource.
//!
//! `STEAD_STOPS=20` asks so often.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

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

/// A document with a command that would test for ever.
const WAITS: &str =
    r#"resources: [{name: w, type: Stead/Command, properties: {set: "true", test: "touch began; sleep 3600"}}]"#;

/// A document with a command that is tried again for ever.
const RETRIES: &str =
    r#"resources: [{name: r, type: Stead/Command, properties: {test: "false", set: "touch began; exit 1"}}]"#;

/// So long nobody waits for the end of a process. It takes far less, which is printed.
const SOON: Duration = Duration::from_secs(10);

/// Asks a process to end once it is ready. Returns how it ended, and after how long.
fn ended(
    folder: &TempDir,
    arguments: &[&str],
    is_ready: &dyn Fn(&Child) -> bool,
    signal: Signal,
) -> (Option<i32>, Duration) {
    let mut stead = Command::new(env!("CARGO_BIN_EXE_stead"))
        .args(arguments)
        .current_dir(folder.path())
        .env("HOME", folder.path())
        .env("STEAD_STATE", folder.path().join("state"))
        .env("STEAD_RECONCILE", if arguments.contains(&"retries.yaml") { "continuous" } else { "none" })
        .env_remove("INVOCATION_ID")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until(|| is_ready(&stead).then_some(()));
    let asked = Instant::now();
    kill_process(Pid::from_child(&stead), signal).unwrap();
    let code = until(|| stead.try_wait().unwrap()).code();
    (code, asked.elapsed())
}

/// Returns whether a process has handlers for the signals that ask it to end, SIGTERM and SIGINT.
fn heeds(stead: &Child) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", stead.id())).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    [Signal::TERM, Signal::INT].iter().all(|signal| caught >> (signal.as_raw() - 1) & 1 == 1)
}

#[test]
fn who_is_asked_to_end_ends_soon_and_says_so() {
    stead_testkit::let_programs_be_interrupted();
    let began = |folder: &TempDir| folder.path().join("began").exists();
    let commands: [(&[&str], i32); 7] = [
        (&["apply", "waits.yaml"], 6),
        (&["check", "waits.yaml"], 6),
        (&["plan", "waits.yaml"], 6),
        (&["apply", "retries.yaml"], 6),
        (&["serve", "--stdio"], 6),
        (&["server"], 6),
        (&["agent", "run"], 0),
    ];
    for (arguments, code) in commands {
        let mut longest = Duration::ZERO;
        for at in 0..stead_testkit::times("STEAD_STOPS", 2) {
            let folder = TempDir::new().unwrap();
            std::fs::write(folder.path().join("waits.yaml"), WAITS).unwrap();
            std::fs::write(folder.path().join("retries.yaml"), RETRIES).unwrap();
            let is_run = ["apply", "check", "plan"].contains(&arguments[0]);
            let is_ready = |stead: &Child| if is_run { began(&folder) } else { heeds(stead) };
            let signal = if at % 2 == 0 { Signal::TERM } else { Signal::INT };
            let (found, took) = ended(&folder, arguments, &is_ready, signal);
            assert_eq!(found, Some(code), "{arguments:?}, {signal:?}");
            longest = longest.max(took);
        }
        println!("{}: at most {} ms", arguments.join(" "), longest.as_millis());
        assert!(longest < SOON, "{arguments:?} took {longest:?}");
    }
}
