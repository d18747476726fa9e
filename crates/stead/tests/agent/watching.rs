//! How soon drift is repaired, one change at a time and all at once.
//!
//! `STEAD_FILES=10000 STEAD_CHANGES=1000 cargo test --release -p stead --test agent watching -- --nocapture` prints the figures.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;
use stead_testkit::times;

use crate::machine::Machine;
use stead_testkit::until;

/// How many files are managed where nothing is asked for, and how many of them are changed one by one.
const FILES: usize = 300;
const CHANGES: usize = 20;

/// How often all files are changed at once. An instance that is corrected more than four times within a minute is left to the
/// interval.
const STORMS: usize = 3;

/// So much more after the last time than after the first does not count as growth: allocators keep some.
const MORE_MEMORY_KIB: u64 = 8 << 10;

/// The pause before another change, so that each is a change of a machine at rest.
const REST: Duration = Duration::from_millis(50);

/// No change is lost, and memory is what it was.
#[test]
fn every_change_is_repaired() {
    let mut machine = Machine::new();
    machine.start();
    let paths: Vec<PathBuf> = (0..stead_testkit::asked("STEAD_FILES").unwrap_or(FILES))
        .map(|number| machine.path(&format!("file-{number}")))
        .collect();
    let files = paths.iter().enumerate().map(|(number, path)| {
        json!({"name": format!("f{number}"), "type": "Stead/File", "properties": {"path": path, "content": right(number)}})
    });
    let auto = json!({"configurationMode": "ApplyAndAutoCorrect"});
    machine.deliver_with("files", &auto, &files.collect());
    machine.wait(0);
    // The first look after watching began.
    until(|| (machine.jobs() >= 2).then_some(()));
    let changes = times("STEAD_CHANGES", CHANGES);
    let mut latencies: Vec<Duration> =
        (0..changes).map(|change| repaired(&paths, change * 7919 % paths.len())).collect();
    latencies.sort();
    let at = |percent: usize| latencies[(latencies.len() * percent / 100).min(latencies.len() - 1)];
    println!("{} files, {changes} changes: {:?} at the median, {:?} at 99 %", paths.len(), at(50), at(99));
    println!("{} KiB before all are changed at once", machine.usage().resident_kib);
    let mut memory = Vec::new();
    for _ in 0..STORMS {
        let (written, repaired) = storm(&paths);
        memory.push(machine.usage().resident_kib);
        println!("{} changes in {written:?}, repaired after {repaired:?}, {memory:?} KiB", paths.len());
    }
    assert!(memory[STORMS - 1] <= memory[0] + MORE_MEMORY_KIB, "memory grows: {memory:?} KiB");
    machine.stop();
}

/// Changes every file at once, and waits until each is as it was. Returns how long the one and both took.
fn storm(paths: &[PathBuf]) -> (Duration, Duration) {
    let begun = Instant::now();
    for path in paths {
        std::fs::write(path, "wrong\n").unwrap();
    }
    let changed = begun.elapsed();
    for (number, path) in paths.iter().enumerate() {
        until(|| (std::fs::read_to_string(path).is_ok_and(|text| text == right(number))).then_some(()));
    }
    (changed, begun.elapsed())
}

/// Once a document is current, only what is watched from then on is looked at once more.
#[test]
fn a_promotion_does_not_test_everything_again() {
    let mut machine = Machine::new();
    machine.start();
    let (tests, done) = (machine.path("tests").display().to_string(), machine.path("done").display().to_string());
    let counts = json!({"name": "counts", "type": "Stead/Command",
        "properties": {"test": format!("echo x >>{tests}; test -e {done}"), "set": format!("touch {done}")}});
    let file = json!({"name": "f", "type": "Stead/File", "properties": {"path": machine.path("f"), "content": "x"}});
    machine.deliver("one", &json!([counts, file]));
    machine.wait(0);
    let tested = machine.read("tests");
    until(|| (machine.jobs() >= 2).then_some(()));
    assert_eq!(machine.read("tests"), tested);
    machine.stop();
}

/// A path that can be watched is, also where it was not processed because something else failed.
#[test]
fn what_is_behind_a_failure_is_watched() {
    let mut machine = Machine::new();
    machine.start();
    machine.set("ResourceRetryCount=0", "SplaySecs=0");
    machine.write("allowed", "");
    let file = |name: &str| json!({"name": name, "type": "Stead/File", "properties": {"path": machine.path(name), "content": "x"}});
    let allowed = format!("test -e {}", machine.path("allowed").display());
    let fails = json!({"name": "fails", "type": "Stead/Command", "properties": {"test": allowed, "set": "exit 1"}});
    let (mut behind, mut unwanted) = (file("behind"), file("unwanted"));
    behind["dependsOn"] = json!(["Stead/Command:fails"]);
    unwanted["condition"] = json!("[equals(1, 2)]");
    let auto = json!({"configurationMode": "ApplyAndAutoCorrect"});
    machine.deliver_with("one", &auto, &json!([fails, behind, unwanted]));
    machine.wait(0);
    std::fs::remove_file(machine.path("allowed")).unwrap();
    // Everything is looked at by new settings.
    machine.ok(&["settings", "set", "SplaySecs=1"]);
    until(|| (machine.status()["Job"]["Status"] == "Failure").then_some(()));
    assert_eq!(machine.status()["NotWatched"], json!(["Stead/Command:fails"]));
    machine.stop();
}

fn right(number: usize) -> String {
    format!("right {number}\n")
}

/// Changes a file, and waits until it is as it was.
fn repaired(paths: &[PathBuf], number: usize) -> Duration {
    std::thread::sleep(REST);
    std::fs::write(&paths[number], "wrong\n").unwrap();
    let begun = Instant::now();
    while !std::fs::read_to_string(&paths[number]).is_ok_and(|text| text == right(number)) {
        assert!(begun.elapsed() < Duration::from_mins(1), "file {number} is not repaired");
        std::thread::sleep(Duration::from_micros(200));
    }
    begun.elapsed()
}
