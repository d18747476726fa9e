//! A test that needs this process for itself: hence one test, in a binary of its own.
//!
//! `STEAD_FLOODS=100` has each flood of output so often, in place of once.

#![expect(clippy::print_stdout, reason = "it says how much memory was taken")]

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use stead_core::call::FailureKind;
use stead_system::Cancel;
use stead_system::process::{self, Environment, Executable, Finished, Limits, ProcessError, Program};
use stead_testkit::{skip, times};

/// How long a flood takes that is cut off, on a busy machine. By itself it takes a fraction of a second.
const SOON: Duration = Duration::from_secs(10);

fn shell() -> Executable {
    Executable::open("/bin/sh".into(), &Environment::default()).expect("a shell")
}

fn play(body: &str) -> Result<Finished, ProcessError> {
    let program = Program {
        executable: &shell(),
        arguments: &[OsString::from("-c"), OsString::from(body)],
        directory: Path::new("/"),
        environment: &Environment::of_this_process(&[]),
        variables: &[],
        input: None,
    };
    let limits = Limits {
        deadline: Duration::from_mins(1),
        grace: Duration::from_millis(300),
        settle: Duration::from_millis(200),
        ..Limits::default()
    };
    process::run(&program, &limits, &Cancel::default(), &mut |_| {})
}

/// The most memory that this process ever had, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find(|line| line.starts_with("VmHWM")).expect("a peak");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("descriptors").count()
}

/// Processes that this one was given and has not forgotten, ended or not.
fn children() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("threads").flatten();
    tasks.flat_map(|task| read_words(&task.path().join("children"))).collect()
}

fn read_words(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).expect("children").split_whitespace().map(str::to_owned).collect()
}

/// Set for the run of this test in a namespace.
const INSIDE: &str = "STEAD_TEST_INSIDE";

#[test]
fn alone() {
    floods_cost_little_memory();
    daemons_without_a_mark_are_ended();
    nothing_adds_up();
    if std::env::var_os(INSIDE).is_none() {
        it_is_the_same_in_a_container();
    }
}

/// In a namespace of processes whose session and group are led from outside, as `docker exec` makes it.
fn it_is_the_same_in_a_container() {
    let test = std::env::current_exe().expect("this test");
    let unshare = |command: &str| {
        std::process::Command::new("unshare")
            .args(["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "sh", "-c", command])
            .arg(&test)
            .env(INSIDE, "1")
            .output()
    };
    let name = "it_is_the_same_in_a_container";
    // A shell around it: the first process of a namespace gets orphans of everybody.
    match unshare("true") {
        Ok(tried) if tried.status.success() => {
            let ran = unshare("\"$0\"; exit $?").expect("a run");
            assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
        }
        Ok(tried) => skip(name, &format!("no namespaces here: {}", String::from_utf8_lossy(&tried.stderr))),
        Err(error) => skip(name, &format!("no unshare here: {error}")),
    }
}

fn floods_cost_little_memory() {
    let before = peak();
    let gigabytes = ["exec head -c 1073741824 /dev/zero", "exec head -c 1073741824 /dev/zero >&2"];
    let endless = ["exec yes", "exec yes >&2", "yes | tr -d '\\n'"];
    let all: Vec<_> =
        gigabytes.iter().chain(&endless).flat_map(|flood| [flood].repeat(times("STEAD_FLOODS", 1))).collect();
    let mut longest = Duration::ZERO;
    for flood in &all {
        let begun = Instant::now();
        assert_eq!(play(flood).err().expect("a failure").kind(), FailureKind::OutputLimit);
        longest = longest.max(begun.elapsed());
        assert!(longest < SOON, "{flood} went on for {longest:?}");
    }
    println!("{} floods: memory grew by {} KiB, the longest took {longest:?}", all.len(), peak() - before);
    assert!(peak() - before < 64 << 10, "memory grew by {} KiB", peak() - before);
}

/// It left its group, lost its parents and emptied its environment: it is known by having been given to this process.
fn daemons_without_a_mark_are_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let pid = folder.path().join("pid");
    let daemon = format!("echo $$ > {}; echo; exec /bin/sleep 3600 >/dev/null", pid.display());
    let body = format!("(setsid env -i /bin/sh -c '{daemon}' &) </dev/null 2>/dev/null | read ready");
    assert_eq!(play(&body).err().expect("a failure").kind(), FailureKind::LeftBehind);
    let pid = std::fs::read_to_string(pid).expect("a pid");
    assert!(!Path::new("/proc").join(pid.trim()).exists());
}

/// Neither descriptors nor ended processes that nobody waited for.
fn nothing_adds_up() {
    let before = open_descriptors();
    for _ in 0..50 {
        assert!(play("(true &) ; (setsid true &) ; true").is_ok());
        assert!(play("setsid sleep 0.01 >/dev/null 2>&1 &").is_ok());
    }
    // The last ones may still be ending; a call that follows forgets them.
    let begun = Instant::now();
    while !children().is_empty() {
        assert!(begun.elapsed() < SOON, "still there: {:?}", children());
        assert!(play("true").is_ok());
    }
    assert_eq!(open_descriptors(), before);
}
