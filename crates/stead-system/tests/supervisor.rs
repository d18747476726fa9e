//! Programs end with the process that runs them, also when that is killed.
//!
//! The processes that are killed and their supervisor are this very program, distinguished by its first argument.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]
#![expect(clippy::print_stdout, reason = "it says what was tested, as tests do")]

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use stead_system::Cancel;
use stead_system::lock::{Lock, Locks, Wait};
use stead_system::process::{self, Environment, Executable, Limits, Program};

/// How long the supervisor may take on a busy machine.
const SOON: Duration = Duration::from_secs(20);

fn shell() -> Executable {
    Executable::open("/bin/sh".into(), &Environment::default()).expect("a shell")
}

fn main() {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    match arguments.get(1).and_then(|first| first.to_str()) {
        Some("supervise") => process::supervise(&arguments[2]).unwrap(),
        Some("run") => run_forever(arguments[2].to_str().unwrap()),
        Some("run-locked") => run_locked(arguments[2].as_ref(), arguments[3].to_str().unwrap()),
        Some("lock") => drop(lock(arguments[2].as_ref())),
        Some("--list") => {}
        _ => tests(),
    }
}

fn tests() {
    stead_testkit::let_programs_be_interrupted();
    for signal in [Signal::KILL, Signal::QUIT, Signal::ABORT] {
        programs_end_after(signal, PROGRAM, 3);
    }
    println!("test programs_end_with_a_process_that_is_killed ... ok");
    for signal in [Signal::KILL, Signal::QUIT, Signal::ABORT] {
        detached_programs_end_after(signal);
    }
    println!("test detached_programs_end_after ... ok");
    a_kill_of_both_is_made_up_for_by_the_next_run();
    println!("test a_kill_of_both_is_made_up_for_by_the_next_run ... ok");
    no_control_group_is_left();
    a_supervisor_that_cannot_be_started_leaves_no_control_group();
    println!("test no_control_group_is_left ... ok");
    an_orderly_end_leaves_no_supervisor();
    println!("test an_orderly_end_leaves_no_supervisor ... ok");
    a_core_file_cannot_be_written();
    println!("test a_core_file_cannot_be_written ... ok");
}

/// Programs that ignore every polite signal: in the group, out of it, and one in it with an empty environment.
const PROGRAM: &str = r#"trap '' TERM INT HUP QUIT
echo "$$" >&2
setsid sh -c 'trap "" TERM; echo "$$" >&2; exec sleep 3600' &
env -i sh -c 'trap "" TERM; echo "$$" >&2; exec sleep 3600' &
while :; do sleep 3600; done"#;

fn run(body: &str) {
    let program = Program {
        executable: &shell(),
        arguments: &["-c".into(), body.into()],
        directory: Path::new("/"),
        environment: &Environment::of_this_process(&[]),
        variables: &[],
        input: None,
    };
    let mut out = std::io::stdout();
    let finished = process::run(&program, &Limits::default(), &Cancel::default(), &mut |errors| {
        out.write_all(errors).and_then(|()| out.flush()).unwrap();
    });
    assert!(finished.is_ok());
}

fn run_forever(program: &str) {
    let _supervision = process::start_supervision(Path::new("/proc/self/exe"), &["supervise"]);
    run(program);
}

fn runner(program: &str) -> (Child, BufReader<ChildStdout>) {
    let mut command = Command::new("/proc/self/exe");
    let mut child = command.args(["run", program]).stdout(Stdio::piped()).spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    (child, out)
}

/// Programs that carry no mark and have no parent: forked twice, without an environment, deaf, in a session of their own, and
/// one of them in a control group of its own besides.
const DETACHED: &str = r#"trap '' TERM INT HUP QUIT
echo "$$" >&2
group=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)$(sed -n 's/^0:://p' /proc/self/cgroup)
mkdir "$group/own" "$group/own/deeper" "$group/empty"
(setsid env -i sh -c 'trap "" TERM HUP; echo "$$" >&2; exec sleep 3600' &)
(setsid env -i sh -c 'echo "$$" > "$0/own/deeper/cgroup.procs"; trap "" TERM; echo "$$" >&2; exec sleep 3600' "$group" &)
while :; do sleep 3600; done"#;

fn detached_programs_end_after(signal: Signal) {
    if has_control_groups("detached_programs_end_after") {
        let pid = programs_end_after(signal, DETACHED, 3);
        stead_testkit::until(|| groups_of(pid).is_empty().then_some(()));
    }
}

/// Runs as two sessions of a machine do: each in a control group of its own.
const IN_A_GROUP: &str = r#"group=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)$(sed -n 's/^0:://p' /proc/self/cgroup)/$1
shift; mkdir -p "$group"; echo $$ > "$group/cgroup.procs"; exec "$@""#;

fn in_a_group(name: &str, arguments: &[&str]) -> Command {
    let own = std::env::current_exe().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", IN_A_GROUP, "sh", name]).arg(own).args(arguments);
    command
}

fn lock(folder: &Path) -> Lock {
    let wait = Wait { cancel: &Cancel::default(), deadline: SOON, on_wait: &mut |_| ControlFlow::Continue(()) };
    Locks::in_directory(&folder.join("locks"))
        .lock_root(folder, "stead apply", wait)
        .unwrap_or_else(|error| panic!("{error}"))
}

fn run_locked(folder: &Path, program: &str) {
    let _lock = lock(folder);
    run_forever(program);
}

/// Nobody is left that could end what is detached, until another run takes the lock: from elsewhere.
fn a_kill_of_both_is_made_up_for_by_the_next_run() {
    if !has_control_groups("a_kill_of_both_is_made_up_for_by_the_next_run") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let (one, other) = (format!("one-{}", std::process::id()), format!("other-{}", std::process::id()));
    let mut command = in_a_group(&one, &["run-locked", path, DETACHED]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let pids: Vec<i32> = out.lines().take(3).map(|line| line.unwrap().parse().unwrap()).collect();
    // What lost its parents is a child of it as well.
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap();
    let supervises =
        |pid: &&str| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap().contains("supervise\0");
    let supervisor: i32 = children.split_whitespace().find(supervises).unwrap().parse().unwrap();
    kill_process(Pid::from_raw(supervisor).unwrap(), Signal::KILL).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(pids.iter().all(|pid| is_running(*pid)), "nobody ended them: {pids:?}");
    assert!(in_a_group(&other, &["lock", path]).status().unwrap().success());
    assert!(!pids.iter().any(|pid| is_running(*pid)), "still running: {pids:?}");
    // Of what was made for this test nothing is left but its two groups.
    let script = r#"cd "$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)$(sed -n 's/^0:://p' /proc/self/cgroup)"; rmdir "$@""#;
    assert!(Command::new("sh").args(["-c", script, "sh", &one, &other]).status().unwrap().success());
}

fn a_supervisor_that_cannot_be_started_leaves_no_control_group() {
    if has_control_groups("a_supervisor_that_cannot_be_started_leaves_no_control_group") {
        let supervision = process::start_supervision(Path::new("/nothing/of/this/name"), &["supervise"]);
        run("exit 0");
        assert_eq!(groups_of(std::process::id()), Vec::<String>::new());
        drop(supervision);
    }
}

fn no_control_group_is_left() {
    if has_control_groups("no_control_group_is_left") {
        let supervision = process::start_supervision(Path::new("/proc/self/exe"), &["supervise"]);
        run("grep -q '^0::.*/stead-' /proc/self/cgroup || exit 1");
        assert_eq!(groups_of(std::process::id()).len(), 1, "the program was in a group");
        drop(supervision);
        assert_eq!(groups_of(std::process::id()), Vec::<String>::new());
        let supervision = process::start_supervision(Path::new("/nowhere/supervisor"), &[]);
        run("true");
        assert_eq!(groups_of(std::process::id()), Vec::<String>::new(), "no supervisor could be started");
        drop(supervision);
    }
}

fn has_control_groups(test: &str) -> bool {
    if !stead_testkit::is_root(test) {
        return false;
    }
    let is_there = std::fs::read_to_string("/proc/mounts").unwrap().lines().any(|mount| mount.contains(" cgroup2 rw"));
    if !is_there {
        stead_testkit::skip(test, "no control groups of version 2 can be written");
    }
    is_there
}

/// The control groups that a process made for its programs, next to the one that this process is in.
fn groups_of(pid: u32) -> Vec<String> {
    let script = r#"own=$(sed -n 's/^0:://p' /proc/self/cgroup)
ls "$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)${own%/stead-"$0"-*}""#;
    let listed = Command::new("sh").args(["-c", script, &pid.to_string()]).output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let listed = String::from_utf8(listed.stdout).unwrap();
    listed.lines().filter(|name| name.starts_with(&format!("stead-{pid}-"))).map(str::to_owned).collect()
}

/// Ends a process by a signal, and waits until its programs are gone, so many of which print their numbers.
fn programs_end_after(signal: Signal, program: &str, count: usize) -> u32 {
    let (mut child, out) = runner(program);
    let pids: Vec<i32> = out.lines().take(count).map(|line| line.unwrap().parse().unwrap()).collect();
    assert!(pids.iter().all(|pid| is_running(*pid)), "{pids:?}");
    kill_process(Pid::from_child(&child), signal).unwrap();
    child.wait().unwrap();
    let begun = Instant::now();
    while pids.iter().any(|pid| is_running(*pid)) {
        assert!(begun.elapsed() < SOON, "still running after {signal:?}: {pids:?}");
        std::thread::yield_now();
    }
    child.id()
}

fn is_running(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with(['Z', 'X']))
}

/// The children of this process, ended or not.
fn children() -> String {
    std::fs::read_to_string("/proc/thread-self/children").unwrap()
}

fn an_orderly_end_leaves_no_supervisor() {
    let supervision = process::start_supervision(Path::new("/proc/self/exe"), &["supervise"]);
    assert_eq!(children(), "", "nothing is started before it is needed");
    run("exit 0");
    let supervisor = children();
    assert_eq!(supervisor.split_whitespace().count(), 1);
    // A stray is still found, although there is a child that stays.
    let body = "(setsid env -i /bin/sh -c 'echo; exec sleep 3600 >/dev/null' &) </dev/null 2>/dev/null | read ready";
    let program = Program {
        executable: &shell(),
        arguments: &["-c".into(), body.into()],
        directory: Path::new("/"),
        environment: &Environment::of_this_process(&[]),
        variables: &[],
        input: None,
    };
    let limits = Limits { settle: Duration::from_millis(100), ..Limits::default() };
    let left = process::run(&program, &limits, &Cancel::default(), &mut |_| {}).err().unwrap();
    assert_eq!(left.kind(), stead_core::call::FailureKind::LeftBehind, "{left}");
    assert_eq!(children(), supervisor, "the supervisor stays, and nothing else");
    drop(supervision);
    assert_eq!(children(), "");
}

fn a_core_file_cannot_be_written() {
    process::forbid_core_dumps().unwrap();
    let dumpable = rustix::process::dumpable_behavior().unwrap();
    assert_eq!(dumpable, rustix::process::DumpableBehavior::NotDumpable);
    let limit = || Command::new("/bin/sh").args(["-c", "ulimit -c"]).output().unwrap().stdout;
    let own = rustix::process::getrlimit(rustix::process::Resource::Core).current;
    let own = own.map_or("unlimited".to_owned(), |bytes| (bytes / 512).to_string());
    assert_eq!(String::from_utf8(limit()).unwrap().trim_end(), own, "programs keep the limit that they inherit");
    // A process that cannot be dumped is not even owned by its user there.
    let of_child = "stat -c %u /proc/self/environ";
    let owner = Command::new("/bin/sh").args(["-c", of_child]).output().unwrap().stdout;
    let uid = rustix::process::geteuid().as_raw().to_string();
    assert_eq!(String::from_utf8(owner).unwrap().trim_end(), uid, "programs can be dumped as before");
}
