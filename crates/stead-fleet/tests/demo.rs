//! `stead-fleet demo`, as a newcomer runs it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use stead_testkit::{skip, until};

#[test]
fn the_demo_shows_a_release_a_repair_and_a_refusal_and_leaves_nothing_running() {
    let program = Path::new(env!("CARGO_BIN_EXE_stead-fleet"));
    if !program.with_file_name("stead").exists() {
        skip("the demo", "'stead' was not built beside 'stead-fleet'");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("demo");
    let run = || Command::new(program).args(["demo", "--once", "--folder"]).arg(&folder).output().unwrap();
    let shown = run();
    let (text, errors) = (String::from_utf8_lossy(&shown.stdout), String::from_utf8_lossy(&shown.stderr));
    assert!(shown.status.success(), "{text}{errors}");
    let has = |line: &str| assert!(text.contains(line), "{line}: {text}");
    for machine in ["m1", "m2", "m3"] {
        assert_eq!(fs::read_to_string(folder.join(machine).join("page")).unwrap(), "hello");
        has(&format!("--name {machine} --token-file join.token"));
        has(&format!("\n{machine}    converged  web/1 "));
    }
    has("all three have it after ");
    has("m2/page is 'hello' again after ");
    has("it has 1 of 2 signatures");
    assert_eq!(works_in(&folder), 0);
    // What is there is not touched.
    let again = run();
    assert!(!again.status.success());
    let refused = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(refused.contains("cannot create") && refused.contains("another folder with '--folder'"), "{refused}");
    // Ended while it goes on, it takes with it what it began.
    let ended = place.path().join("ended");
    let mut demo = Command::new(program).args(["demo", "--folder"]).arg(&ended).stdout(Stdio::null()).spawn().unwrap();
    until(|| ended.join("m1/state").exists().then_some(()));
    assert!(works_in(&ended) >= 2, "a controller and an agent");
    let id = rustix::process::Pid::from_child(&demo);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    demo.wait().unwrap();
    assert_eq!(works_in(&ended), 0);
}

/// How many processes have a folder, or one below it, as theirs.
fn works_in(folder: &Path) -> usize {
    let is_there = |process: &fs::DirEntry| {
        fs::read_link(process.path().join("cwd")).is_ok_and(|folder_of_it| folder_of_it.starts_with(folder))
    };
    fs::read_dir("/proc").expect("the system shows its processes").flatten().filter(is_there).count()
}
