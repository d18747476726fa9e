//! Real things that are pending: a file that another process creates, a port that opens, a mount that appears.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::io::{BufRead, BufReader, Lines};
use std::net::TcpListener;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};

use serde_json::Value as Json;
use tempfile::TempDir;

/// An apply under way, and the events that it prints.
struct Apply {
    child: Child,
    events: Lines<BufReader<ChildStderr>>,
    seen: Vec<Json>,
}

impl Apply {
    fn start(folder: &TempDir, document: &str, arguments: &[&str]) -> Self {
        Self::start_with(Command::new(env!("CARGO_BIN_EXE_stead")), folder, document, arguments)
    }

    fn start_with(mut program: Command, folder: &TempDir, document: &str, arguments: &[&str]) -> Self {
        std::fs::write(folder.path().join("main.yaml"), document).unwrap();
        program.args(["apply", "main.yaml", "--events"]).args(arguments).current_dir(folder.path());
        program.env("HOME", folder.path()).env("STEAD_STATE", folder.path().join("state"));
        let mut child = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let events = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, events, seen: Vec::new() }
    }

    /// The next event of that name.
    fn await_event(&mut self, name: &str) -> Json {
        for line in &mut self.events {
            let Ok(event) = serde_json::from_str::<Json>(&line.unwrap()) else { continue };
            self.seen.push(event.clone());
            if event["event"] == name {
                return event;
            }
        }
        panic!("it ended before '{name}': {:?}", self.seen);
    }

    fn end(mut self) -> (ExitStatus, String, Vec<Json>) {
        let stdout = self.child.stdout.take().unwrap();
        let text = std::thread::spawn(move || std::io::read_to_string(stdout).unwrap());
        for line in self.events {
            self.seen.extend(serde_json::from_str::<Json>(&line.unwrap()));
        }
        (self.child.wait().unwrap(), text.join().unwrap(), self.seen)
    }
}

fn count(events: &[Json], name: &str) -> usize {
    events.iter().filter(|event| event["event"] == name).count()
}

const COPY: &str = "resources:\n- {name: copy, type: Stead/File, properties: {path: copy, source: below/source}}\n";

/// It waits for an hour unless it is woken.
#[test]
fn a_file_that_appears_is_copied_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut apply = Apply::start(&folder, COPY, &["--wait", "3600"]);
    // It is pending, and was looked at once more since it is watched.
    apply.await_event("woken");
    apply.await_event("retryScheduled");
    let below = folder.path().join("below");
    std::fs::create_dir(&below).unwrap();
    apply.await_event("woken");
    apply.await_event("retryScheduled");
    // Whole from the start, as whoever has it copied should see to.
    std::fs::write(folder.path().join("whole"), "content\n").unwrap();
    std::fs::rename(folder.path().join("whole"), below.join("source")).unwrap();
    let (exit, text, events) = apply.end();
    assert!(exit.success(), "{text}");
    assert!(text.contains("Applied: 1 created") && text.contains("no instance requires a re-run"), "{text}");
    assert_eq!(std::fs::read_to_string(folder.path().join("copy")).unwrap(), "content\n");
    assert_eq!(count(&events, "settled"), 1);
}

#[test]
fn a_port_that_opens_is_found_with_the_waits_that_are_promised() {
    let folder = tempfile::tempdir().unwrap();
    // Nobody else gets the port between being free and being opened again: the kernel gives out others first.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let document = format!(
        "resources:\n\
         - name: port\n  type: Stead/Command\n  directives: {{reconcileWait: {{exponential: {{wait: 0.05, multiplier: 2}}}}}}\n  \
           properties: {{test: \"bash -c '</dev/tcp/127.0.0.1/{port}'\", set: 'true'}}\n\
         - {{name: after, type: Stead/File, dependsOn: ['Stead/Command:port'], properties: {{path: after, content: x}}}}\n"
    );
    let mut apply = Apply::start(&folder, &document, &["--max-unchanged-reruns", "50"]);
    let waits: Vec<f64> = (0..3).map(|_| waited(&apply.await_event("retryScheduled"))).collect();
    for (wait, promised) in waits.iter().zip([0.05, 0.1, 0.2]) {
        // The event is recorded a moment after its instant was decided.
        assert!(*wait > 0.0 && *wait <= promised + 0.001, "{waits:?}");
    }
    let _listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let (exit, text, events) = apply.end();
    assert!(exit.success(), "{text}");
    // The port was open before the third re-run, or it was just missed.
    let re_runs = count(&events, "retryScheduled");
    assert!((3..=4).contains(&re_runs), "{re_runs}: {text}");
    assert!(folder.path().join("after").is_file());
}

/// How long an instance is to wait, from what an event says.
fn waited(event: &Json) -> f64 {
    let instant = |member: &str| event[member].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    (instant("until") - instant("at")).total(jiff::Unit::Second).unwrap()
}

/// In a mount namespace of its own, so that nothing outside is touched.
#[test]
fn a_mount_that_appears_is_used() {
    if !stead_testkit::is_root("a_mount_that_appears_is_used") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("below")).unwrap();
    let script = r#"
        "$0" "$@" &
        until [ -e pending ]; do sleep 0.01; done
        mount -t tmpfs none below
        echo content > below/source
        wait $!"#;
    let mut program = Command::new("unshare");
    program.args(["--mount", "--propagation", "private", "sh", "-c", script, env!("CARGO_BIN_EXE_stead")]);
    let mut apply = Apply::start_with(program, &folder, COPY, &["--wait", "0.1", "--max-unchanged-reruns", "600"]);
    apply.await_event("retryScheduled");
    std::fs::write(folder.path().join("pending"), "").unwrap();
    let (exit, text, _) = apply.end();
    assert!(exit.success(), "{text}");
    assert_eq!(std::fs::read_to_string(folder.path().join("copy")).unwrap(), "content\n");
    assert!(!folder.path().join("below/source").exists(), "the mount was in a namespace of its own");
}

#[test]
fn giving_up_is_not_the_same_as_failing() {
    let folder = tempfile::tempdir().unwrap();
    let run = |document: &str| Apply::start(&folder, document, &["--wait", "0.01"]).end();
    let (exit, text, events) = run(COPY);
    assert_eq!(exit.code(), Some(4), "{text}");
    assert!(text.contains("Re-runs: ") && text.contains("1 instance requires a re-run"), "{text}");
    assert!(count(&events, "retryScheduled") >= 3);
    // What the file is given is known in the run alone, and no other run makes a mode of it.
    let invalid = "resources:\n\
        - {name: a, type: Microsoft.DSC.Debug/Echo, properties: {output: abc}}\n\
        - {name: b, type: Stead/File, dependsOn: ['Microsoft.DSC.Debug/Echo:a'], \
           properties: {path: b, content: x, mode: \"[reference('Microsoft.DSC.Debug/Echo:a').output]\"}}\n";
    let (exit, text, events) = run(invalid);
    assert_eq!(exit.code(), Some(1), "{text}");
    assert_eq!((count(&events, "retryScheduled"), count(&events, "settled")), (0, 2), "{text}");
}

#[test]
fn pending_files_do_not_wake_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let copies =
        (0..50).map(|at| format!("- {{name: c{at}, type: Stead/File, properties: {{path: c{at}, source: s{at}}}}}\n"));
    let document = format!("resources:\n{}", copies.collect::<String>());
    let arguments = ["--wait", "0.3", "--max-unchanged-reruns", "2"];
    let (exit, text, events) = Apply::start(&folder, &document, &arguments).end();
    assert_eq!(exit.code(), Some(4), "{text}");
    // Each once, when it is watched for the first time.
    assert_eq!((count(&events, "woken"), count(&events, "settled")), (50, 50));
}
