//! What must last until the end of the run.

use std::sync::Arc;
use std::time::Duration;

use stead_core::event::{Mode, Status};
use stead_core::run::Run;

use crate::fake::{Fake, driven, run_of, setup, status, statuses};

#[test]
fn what_does_not_last_until_the_end_has_failed() {
    let fake = Arc::new(Fake { drifted: true, ..Fake::default() });
    let (run, events) = driven(run_of("p-lasts\np-dies\ni-other p-dies\n", Mode::APPLY), &fake, 4);
    assert_eq!(
        ["p-lasts", "p-dies", "i-other"].map(|name| status(&run, name)),
        [Status::Changed, Status::Failed, Status::Changed]
    );
    assert_eq!((run.totals().changed, run.totals().failed), (2, 1));
    let (id, _) = run.graph().iter().find(|(_, node)| &**node.path.name() == "p-dies").unwrap();
    assert_eq!(run.report().record(id).why_failed().as_deref(), Some("it ended"));
    // All is done before anything is looked at again, and a journal tells the same.
    let log = fake.log.lock().unwrap();
    let first = log.iter().position(|entry| entry.starts_with("Review")).unwrap();
    assert!(!log.iter().skip(first).any(|entry| entry.starts_with("Set")), "{log:?}");
    let again = Run::resume(setup("p-lasts\np-dies\ni-other p-dies\n", Mode::APPLY), &events).unwrap();
    assert_eq!(statuses(&again), statuses(&run));
}

#[test]
fn what_brought_something_down_is_taken_back_once_all_was_looked_at() {
    let lines = "i-cause\np-dies i-cause\np-lasts i-cause\n";
    let fake = Arc::new(Fake { drifted: true, ..Fake::default() });
    let (run, events) = driven(run_of(lines, Mode::APPLY), &fake, 4);
    let of = |name: &str| {
        let (id, _) = run.graph().iter().find(|(_, node)| &**node.path.name() == name).unwrap();
        run.report().record(id).why_failed().unwrap_or_default()
    };
    assert_eq!(["i-cause", "p-dies", "p-lasts"].map(of), ["taken back", "it ended, and is up", ""]);
    assert_eq!((run.totals().changed, run.totals().failed), (1, 2));
    let log = fake.log.lock().unwrap().clone();
    let at = log.iter().position(|entry| entry == "Take back").unwrap();
    assert!(!log.iter().skip(at).any(|entry| entry.starts_with("Review")), "{log:?}");
    let again = Run::resume(setup(lines, Mode::APPLY), &events).unwrap();
    assert_eq!(statuses(&again), statuses(&run));
    // Where nothing failed, or nothing was set for real, nobody is asked.
    for (lines, mode) in [("i-cause\n", Mode::APPLY), ("i-cause\np-dies i-cause\n", Mode::PLAN)] {
        let fake = Arc::new(Fake { drifted: true, ..Fake::default() });
        driven(run_of(lines, mode), &fake, 4);
        assert!(!fake.log.lock().unwrap().iter().any(|entry| entry == "Take back"), "{lines}");
    }
}

#[test]
fn what_others_undo_has_failed_whether_it_was_changed_or_not() {
    let lines = "i-first\ni-undone i-first\ni-other i-undone\n";
    for (drifted, rest) in [(true, Status::Changed), (false, Status::InState)] {
        let fake = Arc::new(Fake { drifted, ..Fake::default() });
        let (run, events) = driven(run_of(lines, Mode::APPLY), &fake, 4);
        assert_eq!(
            ["i-first", "i-undone", "i-other"].map(|name| status(&run, name)),
            [rest.clone(), Status::Failed, rest]
        );
        let (id, _) = run.graph().iter().find(|(_, node)| &**node.path.name() == "i-undone").unwrap();
        assert_eq!(run.report().record(id).why_failed().as_deref(), Some("undone by i-first"));
        let again = Run::resume(setup(lines, Mode::APPLY), &events).unwrap();
        assert_eq!(statuses(&again), statuses(&run));
    }
}

#[test]
fn what_others_can_have_changed_is_tested_once_and_beside_the_others() {
    let fake = Arc::new(Fake { drifted: true, meeting: 4, ..Fake::default() });
    let lines = "i0-gather\ni1-gather\np2-gather\ni3-gather\ni-first\ni-touched i-first\ni-broken\n";
    let (run, events) = driven(run_of(lines, Mode::APPLY), &fake, 4);
    assert_eq!((run.totals().changed, run.totals().failed), (6, 1));
    assert_eq!(status(&run, "i-broken"), Status::Failed);
    let again = Run::resume(setup(lines, Mode::APPLY), &events).unwrap();
    assert_eq!(statuses(&again), statuses(&run));
}

#[test]
fn what_must_last_is_waited_for_together() {
    let fake = Arc::new(Fake { drifted: true, ..Fake::default() });
    let lines = (0..200).map(|at| format!("i{at}-lasts\n")).collect::<Vec<_>>().concat();
    let began = std::time::Instant::now();
    let (run, _) = driven(run_of(&lines, Mode::APPLY), &fake, 4);
    assert_eq!(run.totals().changed, 200);
    // One after the other they would take twenty seconds.
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[test]
fn what_must_last_is_not_waited_for_once_the_run_is_to_stop() {
    let fake = Arc::new(Fake { drifted: true, ..Fake::default() });
    let (run, _) = driven(run_of("i-forever\ni-cancel i-forever\n", Mode::APPLY), &fake, 4);
    assert_eq!(status(&run, "i-forever"), Status::Changed);
    // Nothing is looked at where nothing was set for real.
    let fake = Arc::new(Fake { drifted: true, ..Fake::default() });
    driven(run_of("i-forever\n", Mode::PLAN), &fake, 4);
    assert!(!fake.log.lock().unwrap().iter().any(|entry| entry.starts_with("Review")));
}
