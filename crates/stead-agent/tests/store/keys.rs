//! A process that makes the keys of its machine is killed before each of its system calls.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use stead_agent::{KeysOrigin, KeysWanted, OwnKeys};
use stead_testkit::times;

use crate::victim::{CHANGES, fast_directory, has_strace, store_in, warm_up};

/// Where the process that will be killed works, in its environment.
const VICTIM: &str = "STEAD_TEST_KEYS";

/// Whose keys are there before: nobody's, those of the machine, which wants others, or those that it was copied from.
const BEFORE: [Option<&str>; 3] = [None, Some("own"), Some("other")];

fn keys(directory: &Path, id: &str, wanted: KeysWanted) -> (String, KeysOrigin) {
    let OwnKeys { keys, origin } = OwnKeys::of_machine(directory, Some(id), wanted).unwrap();
    (keys.identity().to_text(), origin)
}

fn names(directory: &Path) -> BTreeSet<String> {
    let names = std::fs::read_dir(directory).unwrap();
    names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Makes new keys, in the process that was started for it.
#[test]
fn process_that_makes_keys() {
    let Some(directory) = std::env::var_os(VICTIM) else { return };
    warm_up();
    keys(Path::new(&directory), "own", KeysWanted::New);
}

#[test]
fn a_kill_while_keys_are_made_leaves_whole_ones_and_no_file_beside_them() {
    if !has_strace("a_kill_while_keys_are_made_leaves_whole_ones_and_no_file_beside_them") {
        return;
    }
    let home = fast_directory();
    let directory = store_in(&home);
    let points = points(&directory);
    let wanted = times("STEAD_AGENT_KEY_KILLS", 12).min(points.len());
    let (mut kept, mut made) = (0, 0);
    for (before, name, when) in points.iter().step_by(points.len() / wanted) {
        let former = prepare(&directory, *before);
        assert!(!run(&directory, &[&format!("inject={name}:signal=KILL:when={when}")]), "{name} {when}: not reached");
        let (found, origin) = keys(&directory, "own", KeysWanted::Present);
        let context = format!("{before:?}, {name} {when}: {origin:?}");
        match (before, &origin) {
            (None, KeysOrigin::First) | (Some("other"), KeysOrigin::Copied) => made += 1,
            (_, KeysOrigin::Kept) => kept += 1,
            _ => panic!("{context}"),
        }
        assert!(*before != Some("other") || former.as_ref() != Some(&found), "{context}: those of the other machine");
        assert_eq!(keys(&directory, "own", KeysWanted::Present), (found, KeysOrigin::Kept), "{context}");
        keys(&directory, "own", KeysWanted::New);
        assert_eq!(names(&directory), BTreeSet::from(["machine.key", "machine.lock"].map(str::to_owned)), "{context}");
    }
    println!("{} kills: {kept} times there were keys, {made} times they were made by the next process", kept + made);
}

/// The keys that are there before.
fn prepare(directory: &Path, before: Option<&str>) -> Option<String> {
    let _ = std::fs::remove_dir_all(directory);
    std::fs::create_dir_all(directory.parent().unwrap()).unwrap();
    before.map(|id| keys(directory, id, KeysWanted::Present).0)
}

/// Every system call that changes something, of a process that makes keys where others were: its name, and how often it was made.
fn points(directory: &Path) -> Vec<(Option<&'static str>, String, usize)> {
    let log = directory.with_extension("log").display().to_string();
    let mut points = Vec::new();
    for before in BEFORE {
        prepare(directory, before);
        assert!(run(directory, &["-o", &log]));
        let log = std::fs::read_to_string(&log).unwrap();
        let own = log.lines().find(|line| line.contains("machine.lock")).unwrap().split(' ').next().unwrap().to_owned();
        let lines: Vec<&str> = log.lines().filter_map(|line| line.strip_prefix(&own)).map(str::trim_start).collect();
        let begun = lines.iter().rposition(|line| line.contains("/dev/null")).unwrap();
        for (place, line) in lines.iter().enumerate().skip(begun + 1) {
            let Some((name, _)) = line.split_once('(') else { continue };
            let is_same = |line: &&&str| line.split_once('(').is_some_and(|(other, _)| other == name);
            points.push((before, name.to_owned(), lines[..=place].iter().filter(is_same).count()));
        }
    }
    points
}

/// Runs the process under strace; whether it came to its end.
fn run(directory: &Path, options: &[&str]) -> bool {
    let options =
        options.iter().flat_map(|option| if option.starts_with("inject") { vec!["-e", option] } else { vec![*option] });
    let output = Command::new("strace")
        .args(["-f", "-qq", "-e", &format!("trace={}", CHANGES.join(",")), "-e", "signal=none"])
        .args(options)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "keys::process_that_makes_keys", "--nocapture", "--test-threads=1"])
        .env(VICTIM, directory)
        .env_remove("LD_LIBRARY_PATH")
        .output();
    output.unwrap().status.success()
}
