//! A process that replaces files is killed at any moment: no file is ever torn, and what was left is removed.
//!
//! `STEAD_KILLS=1000` kills so often, in place of 40 times.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

use std::fs::read_dir;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use stead_system::fs::{Former, Ownership, Place, Replacement, SystemPath, Writes};
use stead_testkit::times;
use tempfile::TempDir;

/// Where the process that will be killed works, in its environment.
const VICTIM: &str = "STEAD_TEST_VICTIM";

/// Longer than one write of a page, so that a torn file could be seen.
const LENGTH: usize = 50_000;

fn content(round: usize) -> Vec<u8> {
    vec![b"ab"[round % 2]; LENGTH]
}

fn replace(directory: &Path, round: usize, writes: &Writes) {
    let place = |name| Place::find(&SystemPath::here(directory.join(name)), writes).unwrap().unwrap();
    let file = place("file");
    if file.status().unwrap().is_some() {
        assert!(file.keep_as("kept".as_ref()).unwrap());
    }
    let replacement = Replacement::begin(&file, Former::Any).unwrap();
    replacement.write(&content(round)).unwrap();
    replacement.finish(0o640, Ownership::default()).unwrap().unwrap();
    place("link").replace_by_link(["a", "b"][round % 2].as_ref(), Ownership::default()).unwrap();
}

/// Replaces without an end and says so after each round: what the test starts and kills.
#[test]
fn process_that_is_killed() {
    let Ok(directory) = std::env::var(VICTIM) else { return };
    let (writes, mut out) = (Writes::default(), std::io::stdout());
    for round in 0.. {
        replace(Path::new(&directory), round, &writes);
        out.write_all(b".").and_then(|()| out.flush()).expect("standard output");
    }
}

fn left_behind(directory: &Path) -> usize {
    let names = read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().starts_with(".stead-")).count()
}

fn check(directory: &Path) {
    for name in ["file", "kept"] {
        let found = std::fs::read(directory.join(name)).unwrap();
        assert!(found == content(0) || found == content(1), "{name} is torn: {} bytes", found.len());
    }
    let target = std::fs::read_link(directory.join("link")).unwrap();
    assert!([Path::new("a"), Path::new("b")].contains(&target.as_path()));
}

#[test]
fn a_kill_tears_nothing_and_what_it_left_is_removed() {
    let directory = TempDir::new().unwrap();
    let (kills, mut left) = (times("STEAD_KILLS", 40), 0);
    replace(directory.path(), 0, &Writes::default());
    replace(directory.path(), 1, &Writes::default());
    for kill in 0..kills {
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process_that_is_killed", "--nocapture"])
            .env(VICTIM, directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // After so many rounds, and wherever it is by then.
        let mut rounds = vec![0; 40 + kill % 7];
        victim.stdout.take().unwrap().read_exact(&mut rounds).unwrap();
        victim.kill().unwrap();
        victim.wait().unwrap();
        check(directory.path());
        let now = left_behind(directory.path());
        assert!(now <= 1, "the process before this one removed nothing");
        left += now;
    }
    println!("{left} of {kills} kills left a name behind");
    replace(directory.path(), 0, &Writes::default());
    assert_eq!(left_behind(directory.path()), 0);
}
