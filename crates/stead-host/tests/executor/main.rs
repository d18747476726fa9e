//! How a run is carried out, with calls that only keep count.
//!
//! `STEAD_WIDTHS=150` compares the results of different widths so often.

#![expect(clippy::unwrap_used, reason = "a test may fail this way")]

#[path = "../../../stead-core/tests/support/catalog.rs"]
mod catalog;

mod batches;
mod ending;
mod fake;
mod journals;
mod lasting;
mod together;

use std::collections::BTreeMap;

use std::sync::Arc;

use std::time::Duration;

use stead_core::event::{EventKind, Mode, Status};
use stead_core::run::reconcile::Reconciler;
use stead_core::run::{Run, Setup};
use stead_core::wait::Wait;
use stead_host::executor::{CallWatch, Inline, Limits};
use stead_testkit::times;

use fake::{Fake, WIDTHS, driven, executed, limits, mixed, run_of, setup, started, status, statuses};

#[test]
fn every_width_comes_to_the_same() {
    let lines = mixed();
    let mut first = None;
    for width in WIDTHS.into_iter().cycle().take(times("STEAD_WIDTHS", 4) * WIDTHS.len()) {
        let fake = Arc::new(Fake::default());
        let (run, events) = driven(run_of(&lines, Mode::TEST), &fake, width);
        assert!(run.is_finished());
        let count = fake.count.lock().unwrap();
        assert!(count.most <= width, "{} calls at once with a width of {width}", count.most);
        let (mut announced, mut called) = (started(&events), count.calls.clone());
        announced.sort();
        called.sort();
        assert_eq!(announced, called, "what is announced is called, each once");
        assert_eq!(*first.get_or_insert_with(|| statuses(&run)), statuses(&run));
    }
}

#[test]
fn one_at_a_time_is_in_order_whatever_calls_cost() {
    let fake = Arc::new(Fake::default());
    let (run, _) = driven(run_of(&mixed(), Mode::TEST), &fake, 1);
    let (graph, called) = (run.graph(), fake.called());
    let in_order = graph.order.iter().map(|id| graph.node(*id).path.name().to_string());
    let expected: Vec<String> = in_order.filter(|name| called.contains(name)).collect();
    assert_eq!(called, expected);
}

#[test]
fn short_calls_are_in_order_with_every_width() {
    let fake = Arc::new(Fake::default());
    let lines = (0..300).map(|at| format!("i{at}\n")).collect::<Vec<_>>().concat();
    driven(run_of(&lines, Mode::TEST), &fake, 8);
    assert_eq!(fake.called(), (0..300).map(|at| format!("i{at}")).collect::<Vec<_>>());
}

#[test]
fn processes_run_beside_each_other() {
    // Between them stand what is left out, what waits for a fact, and a call that is not worth a thread.
    let lines = "p1-meet\n a ?\n p2-meet\n i1\n p3-meet $HOME\n i2\n p4-meet i1\n";
    for meeting in [2, 3, 4] {
        let fake = Arc::new(Fake { meeting, ..Fake::default() });
        let (run, _) = driven(run_of(lines, Mode::TEST), &fake, 8);
        assert_eq!(run.totals().unchanged, 6);
        assert!(fake.count.lock().unwrap().most >= meeting);
    }
}

#[test]
fn short_calls_on_the_deciding_thread_come_to_the_same() {
    let expected = statuses(&driven(run_of(&mixed(), Mode::TEST), &Arc::default(), 1).0);
    for width in WIDTHS {
        let (fake, watch) = (Arc::new(Fake::default()), Arc::<CallWatch>::default());
        let limits = Limits { inline: Inline::Here(Arc::clone(&watch)), ..limits(width) };
        let (run, _, result) = executed(run_of(&mixed(), Mode::TEST), &fake, limits, Vec::new());
        result.unwrap();
        assert_eq!(statuses(&run), expected);
        assert!(fake.count.lock().unwrap().most <= width);
        assert!(!watch.exceeds(Duration::ZERO), "nothing is under way any more");
    }
}

#[test]
fn what_failed_is_tried_again_and_not_too_early() {
    for width in WIDTHS {
        let fake = Arc::new(Fake { drifted: true, ..Fake::default() });
        let wait = Some(Wait::fixed(Duration::from_millis(60)));
        let policy = Arc::new(Reconciler { wait, max_re_runs: 10, ..Reconciler::continuous(10) });
        let run = Run::new(Setup { policy, ..setup("i1-flaky\n p2-flaky\n i3 i1-flaky p2-flaky\n", Mode::APPLY) });
        let (run, events) = driven(run, &fake, width);
        assert_eq!(run.totals().changed, 3);
        let mut until = BTreeMap::new();
        for event in &events {
            match &event.kind {
                EventKind::RetryScheduled { instance, until: at } => drop(until.insert(instance.node(), *at)),
                EventKind::CallStarted { instance, .. } => {
                    assert!(until.remove(&instance.node()).is_none_or(|until| event.at >= until), "too early");
                }
                _ => {}
            }
        }
        let scheduled = events.iter().filter(|event| matches!(event.kind, EventKind::RetryScheduled { .. })).count();
        assert_eq!(scheduled, 4, "nothing is recorded for merely waiting");
    }
}

#[test]
fn only_a_plan_asks_for_footprints() {
    let fake = Arc::new(Fake::default());
    let (run, events) = driven(run_of("i1-untouchable\n", Mode::TEST), &fake, 2);
    assert_eq!(status(&run, "i1-untouchable"), Status::InState);
    let footprints: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::CallEnded { footprint, .. } => Some(footprint),
            _ => None,
        })
        .collect();
    assert_eq!(footprints, [&None]);
}
