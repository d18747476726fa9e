//! Recorded runs: their names, how many are kept, and who may read them.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Barrier;
use std::thread;

use jiff::{Timestamp, ToSpan};
use stead_core::event::{Event, EventKind};
use stead_host::journal::{FileJournal, Journal, RecordedRuns, RunId};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_795_362_300 + second).unwrap()
}

fn keep(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

fn begin(runs: &RecordedRuns, second: i64, count: usize) -> (RunId, FileJournal) {
    runs.begin(at(second), None).unwrap().journal(keep(count)).unwrap()
}

fn names(runs: &RecordedRuns) -> Vec<String> {
    runs.ids().unwrap().iter().map(ToString::to_string).collect()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn names_are_in_the_order_of_time() {
    let folder = tempfile::tempdir().unwrap();
    let runs = RecordedRuns::create(&folder.path().join("state/runs")).unwrap();
    for second in [0, 0, 1, 0, 86_400] {
        begin(&runs, second, 100);
    }
    let expected = ["20261122T154500Z-001", "20261122T154500Z-002", "20261122T154500Z-003", "20261122T154501Z-001"];
    assert_eq!(names(&runs)[..4], expected);
    assert_eq!(names(&runs)[4], "20261123T154500Z-001");
}

#[test]
fn only_a_name_is_a_name() {
    for wrong in ["", "20261122T154500Z-01", "20261122T154500Z-0001", "20261122T154500Z_001", "2026112ST154500Z-001"] {
        assert_eq!(RunId::parse(wrong), None, "{wrong}");
    }
    assert_eq!(RunId::parse("20261122T154500Z-001").unwrap().as_str(), "20261122T154500Z-001");
}

#[test]
fn a_record_is_its_owners_alone_and_a_directory_keeps_its_mode() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let runs = RecordedRuns::create(folder.path()).unwrap();
    let (id, _journal) = begin(&runs, 0, 1);
    assert_eq!((mode(folder.path()), mode(&folder.path().join(id.as_str()))), (0o755, 0o600));
    RecordedRuns::create(&folder.path().join("new")).unwrap();
    assert_eq!(mode(&folder.path().join("new")), 0o700);
}

#[test]
fn the_oldest_are_removed_but_none_that_is_being_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let runs = RecordedRuns::create(folder.path()).unwrap();
    // It has written nothing yet, as while it waits for another run.
    let (oldest, journal) = begin(&runs, 0, 2);
    for second in 1..5 {
        begin(&runs, second, 2);
    }
    assert_eq!(names(&runs), [oldest.as_str(), "20261122T154504Z-001"]);
    assert!(runs.read(&oldest).unwrap().is_running);
    drop(journal);
    assert!(!runs.read(&oldest).unwrap().is_running);
    begin(&runs, 5, 1);
    assert_eq!(names(&runs), ["20261122T154505Z-001"]);
}

#[test]
fn events_can_be_read_while_a_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let runs = RecordedRuns::create(folder.path()).unwrap();
    let (id, mut journal) = begin(&runs, 0, 2);
    let run = runs.read(&id).unwrap();
    assert!(run.events.is_empty() && run.is_running);
    let event = Event { sequence: 0, at: at(0).checked_add(1.second()).unwrap(), kind: EventKind::Cancelled };
    journal.append(&[event]).unwrap();
    // It does not begin as a journal does, which is seen while it is written, too.
    assert!(runs.read(&id).is_err());
}

#[test]
fn runs_that_begin_together_have_names_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let runs = RecordedRuns::create(folder.path()).unwrap();
    let together = Barrier::new(8);
    let begin = || {
        together.wait();
        let begun: Vec<RunId> = (0..20).map(|_| begin(&runs, 0, 1000).0).collect();
        for id in &begun {
            assert!(runs.read(id).unwrap().events.is_empty());
        }
        begun
    };
    let all: BTreeSet<RunId> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(begin)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(all.len(), 160);
}

#[test]
fn nothing_is_there_before_the_first() {
    let folder = tempfile::tempdir().unwrap();
    assert!(RecordedRuns::open(&folder.path().join("runs")).unwrap().is_none());
}

#[test]
fn what_runs_changed_takes_a_gibibyte_at_most_and_the_oldest_goes_first() {
    const EACH: u64 = 400 << 20;
    let folder = tempfile::tempdir().unwrap();
    let runs = RecordedRuns::create(folder.path()).unwrap();
    let images = |id: &RunId| folder.path().join(format!(".{id}.images"));
    let undoing = |second, undoes: Option<&RunId>, count| {
        let beginning = runs.begin(at(second), undoes).unwrap();
        // It has no content on the disk, and is as long all the same.
        beginning.images().unwrap().set_len(EACH).unwrap();
        beginning.journal(keep(count)).unwrap()
    };
    let begun = |second| undoing(second, None, 100);
    let (first, running) = begun(0);
    let [second, third, fourth] = [1, 2, 3].map(|second| begun(second).0);
    let kept = || [&first, &second, &third, &fourth].map(|id| images(id).exists());
    assert_eq!(kept(), [true, false, true, true], "the first is being recorded");
    drop(running);
    let (fifth, _) = begun(4);
    assert_eq!(kept(), [false, false, true, true]);
    let (undo, _) = undoing(5, Some(&third), 6);
    assert_eq!(kept(), [false, false, true, false], "the third is being taken back");
    runs.forget(&undo);
    assert_eq!(mode(&images(&fifth)), 0o600);
    assert_eq!(names(&runs).len(), 5, "their events are kept");
    let (undo, _) = undoing(6, Some(&third), 1);
    assert_eq!(names(&runs), [third.as_str(), undo.as_str()], "the third is being taken back");
    std::fs::remove_file(folder.path().join(third.as_str())).unwrap();
    let (last, _) = begun(7);
    assert!(!images(&third).exists(), "nobody finds it without its run");
    begin(&runs, 8, 1);
    assert!(![undo, last, fifth].iter().any(|id| images(id).exists()), "they go with their runs");
}

#[test]
fn events_take_256_mebibytes_at_most_and_the_oldest_run_goes_first() {
    let folder = tempfile::tempdir().unwrap();
    let runs = RecordedRuns::create(folder.path()).unwrap();
    let grow = |id: &RunId, to: u64| {
        let file = std::fs::File::options().write(true).open(folder.path().join(id.as_str())).unwrap();
        file.set_len(to).unwrap();
    };
    let [first, second, third] = [0, 1, 2].map(|second| begin(&runs, second, 100).0);
    for id in [&first, &second, &third] {
        grow(id, 128 << 20);
    }
    let (fourth, running) = begin(&runs, 3, 100);
    assert_eq!(names(&runs), [second.as_str(), third.as_str(), fourth.as_str()]);
    grow(&fourth, 300 << 20);
    let (fifth, _) = begin(&runs, 4, 100);
    assert_eq!(names(&runs), [fourth.as_str(), fifth.as_str()], "the fourth is being recorded");
    drop(running);
    let (sixth, _) = begin(&runs, 5, 100);
    assert_eq!(names(&runs), [fifth.as_str(), sixth.as_str()]);
}
