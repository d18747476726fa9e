//! Programs that misbehave: each fails alone, in time, within its memory, and nothing of it stays.
//!
//! `STEAD_HANGS=1000` plays each program that hangs or leaves something behind so often, in place of once;
//! `STEAD_PIPES=1000` so many combinations of what goes in and out and how it is read, in place of 12.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use stead_core::call::FailureKind;
use stead_system::Cancel;
use stead_system::process::{self, Environment, Executable, Exit, Finished, Limits, ProcessError, Program};
use stead_testkit::times;

/// Far more than anything here needs, and far less than a hang.
const SOON: Duration = Duration::from_secs(25);

/// A variable that every process of one test inherits, whatever the runner does.
const OURS: &str = "HOSTILE_TEST";

/// The output of a program on standard error once it has come to where the test wants it.
const READY: &[u8] = b"ready\n";

struct Stage {
    folder: tempfile::TempDir,
    mark: String,
    limits: Limits,
    /// The action when a program says that it is ready.
    on_ready: fn(&Cancel),
}

struct Played {
    result: Result<Finished, ProcessError>,
    errors: Vec<u8>,
    took: Duration,
}

impl Stage {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let mark = format!("{}-{};", std::process::id(), COUNT.fetch_add(1, Ordering::SeqCst));
        let limits = Limits {
            deadline: Duration::from_secs(10),
            output: 1 << 20,
            grace: Duration::from_millis(300),
            settle: Duration::from_millis(200),
            changes: true,
        };
        Self { folder: tempfile::tempdir().expect("a folder"), mark, limits, on_ready: |_| {} }
    }

    fn with(change: impl FnOnce(&mut Limits)) -> Self {
        let mut stage = Self::new();
        change(&mut stage.limits);
        stage
    }

    fn script(&self, body: &str) -> PathBuf {
        let path = self.folder.path().join("script");
        std::fs::write(&path, format!("{body}\n")).expect("a script");
        path
    }

    fn play(&self, body: &str) -> Played {
        self.play_with(body, None, &Cancel::default())
    }

    fn play_with(&self, body: &str, input: Option<&[u8]>, cancel: &Cancel) -> Played {
        let path = self.script(body);
        let begun = Instant::now();
        let mut errors = Vec::new();
        let environment = Environment::of_this_process(&[]);
        let variables = [(OsString::from(OURS), OsString::from(&self.mark))];
        let program = Program {
            executable: &shell(),
            arguments: &[path.into()],
            directory: self.folder.path(),
            environment: &environment,
            variables: &variables,
            input,
        };
        let result = process::run(&program, &self.limits, cancel, &mut |bytes| {
            if errors.len() < 1 << 20 {
                errors.extend_from_slice(bytes);
            }
            if bytes.ends_with(READY) {
                (self.on_ready)(cancel);
            }
        });
        let played = Played { result, errors, took: begun.elapsed() };
        assert!(played.took < SOON, "took {:?}", played.took);
        let left = living(&self.mark);
        assert!(left.is_empty(), "still running: {left:?}");
        played
    }
}

impl Played {
    fn kind(&self) -> FailureKind {
        match &self.result {
            Ok(finished) => panic!("ended well with {} bytes", finished.stdout.len()),
            Err(error) => error.kind(),
        }
    }

    fn finished(self) -> Finished {
        self.result.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.errors)))
    }
}

/// The processes that carry the mark of a test in their environment and are not just waiting to be forgotten.
fn shell() -> Executable {
    Executable::open("/bin/sh".into(), &Environment::default()).expect("a shell")
}

fn living(mark: &str) -> Vec<String> {
    let entry = format!("{OURS}={mark}");
    let marked = |folder: &Path| {
        let environment = std::fs::read(folder.join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).split('\0').any(|each| each == entry)
    };
    let folders = std::fs::read_dir("/proc").expect("processes").flatten().map(|entry| entry.path());
    folders.filter(|folder| marked(folder)).map(|folder| folder.display().to_string()).collect()
}

/// Plays a program that says that it is ready and then hangs. On a busy machine it may not come so far within the first
/// deadline; then it gets twice the time.
fn hang(body: &str, grace: Duration) -> (Stage, Played) {
    let mut deadline = Duration::from_millis(300);
    loop {
        let stage = Stage::with(|limits| (limits.deadline, limits.grace) = (deadline, grace));
        let played = stage.play(body);
        assert_eq!(played.result.as_ref().err().map(ProcessError::kind), Some(FailureKind::Deadline));
        if played.errors == READY {
            return (stage, played);
        }
        deadline *= 2;
    }
}

const GRACE: Duration = Duration::from_millis(300);

/// Once, or as often as is asked for.
fn again(play: impl Fn()) {
    (0..times("STEAD_HANGS", 1)).for_each(|_| play());
}

#[test]
fn the_control_sees_what_is_left() {
    // Without this the assertion that nothing is left could never fail.
    let mut command = std::process::Command::new("/bin/cat");
    let mut child = command.env(OURS, "control;").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // Before it answers there may be no environment to read yet.
    child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let seen = living("control;").len();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(seen, 1);
}

#[test]
fn a_gigabyte_of_output_is_cut_off() {
    assert_eq!(Stage::new().play("head -c 1073741824 /dev/zero").kind(), FailureKind::OutputLimit);
}

#[test]
fn endless_output_is_cut_off() {
    assert_eq!(Stage::new().play("yes").kind(), FailureKind::OutputLimit);
}

#[test]
fn an_endless_line_is_cut_off() {
    assert_eq!(Stage::new().play("yes | tr -d '\\n'").kind(), FailureKind::OutputLimit);
}

#[test]
fn endless_errors_are_cut_off() {
    assert_eq!(Stage::new().play("yes >&2").kind(), FailureKind::OutputLimit);
}

#[test]
fn a_flood_that_ignores_its_end_is_ended() {
    let stage = Stage::with(|limits| limits.grace = Duration::from_hours(1));
    assert_eq!(stage.play("trap '' TERM PIPE; while :; do cat /dev/zero; done").kind(), FailureKind::OutputLimit);
}

#[test]
fn a_hang_ends_at_the_deadline() {
    again(|| {
        let (_, played) = hang("echo ready >&2; exec sleep 3600", GRACE);
        let error = played.result.err().unwrap().to_string();
        assert!(error.contains("sleep (") || error.contains("sh ("), "the processes are named: {error}");
    });
}

#[test]
fn whoever_ignores_the_signal_is_forced() {
    again(|| {
        let (_, played) = hang("trap '' TERM INT HUP; echo ready >&2; while :; do sleep 1; done", GRACE);
        assert!(played.took >= GRACE * 2, "the grace was given");
    });
}

#[test]
fn whoever_tidies_up_is_given_the_time() {
    let body = "trap 'echo tidied > done; exit 0' TERM; echo ready >&2; while :; do sleep 0.05; done";
    let (stage, _) = hang(body, Duration::from_secs(10));
    assert!(stage.folder.path().join("done").exists());
}

#[test]
fn a_cancelled_run_ends_early() {
    let stage = Stage { on_ready: Cancel::cancel, ..Stage::new() };
    let cancel = Cancel::default();
    let played = stage.play_with("echo ready >&2; sleep 3600", None, &cancel);
    assert_eq!(played.kind(), FailureKind::Cancelled);
    let played = stage.play_with("touch ran", None, &cancel);
    assert_eq!(played.kind(), FailureKind::Cancelled);
    assert!(!stage.folder.path().join("ran").exists(), "nothing starts after it");
}

#[test]
fn a_daemon_that_holds_the_pipes_is_ended() {
    again(|| {
        let played = Stage::new().play("setsid sh -c 'sleep 3600 & sleep 3600' & echo '{}'");
        assert_eq!(played.kind(), FailureKind::LeftBehind);
        assert!(played.result.err().unwrap().to_string().contains("sleep ("));
    });
}

#[test]
fn a_daemon_that_holds_nothing_is_ended() {
    again(|| {
        let played = Stage::new().play(
            "(setsid sh -c 'echo; exec >/dev/null; sleep 3600 & sleep 3600' &) </dev/null 2>/dev/null | read ready",
        );
        assert_eq!(played.kind(), FailureKind::LeftBehind);
    });
}

#[test]
fn a_daemon_that_forks_twice_is_ended() {
    again(|| {
        let daemon = r#"(trap "" TERM HUP; echo; exec sleep 3600 >/dev/null) &"#;
        let body = &format!("(setsid sh -c '{daemon}' &) </dev/null 2>/dev/null | read ready");
        assert_eq!(Stage::new().play(body).kind(), FailureKind::LeftBehind);
    });
}

#[test]
fn a_daemon_of_a_hanging_program_is_ended() {
    again(|| {
        let daemon = r#"(trap "" TERM; echo; exec >/dev/null; sleep 3600) & exec >/dev/null; sleep 3600"#;
        let ready = "read ready; echo ready >&2";
        hang(&format!("(setsid sh -c '{daemon}' &) </dev/null 2>/dev/null | {{ {ready}; }}; sleep 3600"), GRACE);
    });
}

#[test]
fn stragglers_that_end_by_themselves_are_no_failure() {
    let stage = Stage::with(|limits| limits.settle = Duration::from_secs(10));
    let finished = stage.play("(sleep 0.2; echo late) & (sleep 0.3 >/dev/null 2>&1) & echo early").finished();
    assert_eq!(finished.stdout, b"early\nlate\n");
}

#[test]
fn a_fork_bomb_ends() {
    again(|| {
        let stage = Stage::with(|limits| limits.deadline = Duration::from_millis(500));
        // Bounded by depth: 2^8 processes, which ignore the polite signal and leave the group.
        let body = r#"trap '' TERM
depth=${1:-8}
[ "$depth" -eq 0 ] && exec sleep 3600
setsid sh "$0" $((depth - 1)) & setsid sh "$0" $((depth - 1)) & wait"#;
        assert_eq!(stage.play(body).kind(), FailureKind::Deadline);
    });
}

#[test]
fn bytes_that_are_no_text_come_through() {
    let played = Stage::new().play(r"printf 'a\377b'; printf 'c\377d' >&2");
    assert_eq!(played.errors, b"c\xffd");
    assert_eq!(played.finished().stdout, b"a\xffb");
}

#[test]
fn silence_is_no_failure() {
    let finished = Stage::new().play("exit 3").finished();
    assert_eq!((finished.exit, finished.stdout.len()), (Exit::Code(3), 0));
}

#[test]
fn signals_differ_from_codes() {
    assert_eq!(Stage::new().play("kill -KILL $$").finished().exit, Exit::Signal(9));
}

#[test]
fn input_may_be_left_unread() {
    let input = vec![b'x'; 8 << 20];
    let finished = Stage::new().play_with("exec <&-; echo '{}'", Some(&input), &Cancel::default()).finished();
    assert_eq!(finished.stdout, b"{}\n");
    let finished = Stage::new().play_with("head -c 10", Some(&input), &Cancel::default()).finished();
    assert_eq!(finished.stdout, b"xxxxxxxxxx");
}

#[test]
fn whoever_never_reads_and_never_ends_is_ended() {
    again(|| {
        let stage = Stage::with(|limits| limits.deadline = Duration::from_millis(300));
        let input = vec![b'x'; 8 << 20];
        assert_eq!(stage.play_with("sleep 3600", Some(&input), &Cancel::default()).kind(), FailureKind::Deadline);
    });
}

#[test]
fn closed_outputs_do_not_end_the_call() {
    let stage = Stage::new();
    let finished = stage.play("exec >&- 2>&-; sleep 0.3; touch done").finished();
    assert_eq!(finished.exit, Exit::Code(0));
    assert!(stage.folder.path().join("done").exists(), "it was waited for");
}

#[test]
fn closed_outputs_do_not_lift_the_deadline() {
    again(|| {
        hang("echo ready >&2; exec >&- 2>&-; sleep 3600", GRACE);
    });
}

#[test]
fn large_inputs_come_back() {
    let stage = Stage::with(|limits| limits.output = 80 << 20);
    let input = (0..=250).collect::<Vec<u8>>().repeat((64 << 20) / 251);
    let finished = stage.play_with("exec cat", Some(&input), &Cancel::default()).finished();
    assert!(finished.stdout == input, "{} bytes came back", finished.stdout.len());
    let finished = stage.play_with("sleep 0.3; exec cat", Some(&input), &Cancel::default()).finished();
    assert!(finished.stdout == input, "read late, {} bytes came back", finished.stdout.len());
}

/// Bytes that go in, how they are read, and bytes that come out; the numbers double from step to step.
#[test]
fn pipes_do_not_block_whatever_goes_through_them() {
    let bytes: Vec<u8> = (0..=250).collect::<Vec<u8>>().repeat((64 << 20) / 251 + 1);
    let readers =
        ["cat >/dev/null; OUT", "sleep 0.05; cat >/dev/null; OUT", "OUT; exec cat >/dev/null", "OUT", "exec <&-; OUT"];
    let sizes = [0, 1, 4 << 10, 64 << 10, (64 << 10) + 1, 1 << 20, 8 << 20, 64 << 20];
    for turn in 0..times("STEAD_PIPES", 12) {
        // Steps that have no divisor in common with the lengths reach every combination.
        let (reader, input, output) = (readers[turn % 5], sizes[turn * 3 % 8], sizes[(turn / 8 + turn * 5) % 8]);
        let stage = Stage::with(|limits| limits.output = 80 << 20);
        let body = reader.replace("OUT", &format!("head -c {output} /dev/zero"));
        let finished = stage.play_with(&body, bytes.get(..input), &Cancel::default()).finished();
        assert_eq!(finished.stdout.len(), output, "{input} bytes into: {body}");
    }
}

#[test]
fn no_input_is_an_end_and_not_a_terminal() {
    assert_eq!(Stage::new().play("cat; echo end").finished().stdout, b"end\n");
}

#[test]
fn the_environment_holds_what_is_allowed() {
    // The variables of the test runner itself are proof enough: cargo sets dozens.
    assert!(std::env::vars().any(|(name, _)| name.starts_with("CARGO")));
    let finished = Stage::new().play("env").finished();
    let text = String::from_utf8(finished.stdout).unwrap();
    let names = text.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name);
    // `PWD`, `SHLVL`, `OLDPWD` and `_` are the shell's own.
    let own = [OURS, process::MARKER, "PWD", "OLDPWD", "SHLVL", "_"];
    let listed = |name: &str| {
        process::INHERITED.iter().any(|each| name.starts_with(each.name.trim_end_matches('*'))) || own.contains(&name)
    };
    let strangers: Vec<&str> = names.filter(|name| !listed(name)).collect();
    assert!(strangers.is_empty(), "{strangers:?}");
}

#[test]
fn calls_side_by_side_do_not_end_each_other() {
    std::thread::scope(|scope| {
        for round in 0..8 {
            scope.spawn(move || {
                let stage = Stage::with(|limits| limits.deadline = Duration::from_secs(20));
                if round % 2 == 0 {
                    let body = "setsid sh -c 'sleep 3600 & sleep 3600' </dev/null >/dev/null 2>&1 & sleep 0.1";
                    assert_eq!(stage.play(body).kind(), FailureKind::LeftBehind);
                } else {
                    let body = "(setsid sh -c 'sleep 0.4; echo from afar' &) | cat";
                    assert_eq!(stage.play(body).finished().stdout, b"from afar\n");
                }
            });
        }
    });
}
