//! Calls that are carried out together.

use std::sync::Arc;

use stead_core::event::{Mode, Status};

use crate::fake::{Fake, WIDTHS, driven, mixed, run_of, started, status, statuses};

fn together(fake: &Fake) -> Vec<String> {
    fake.together.lock().unwrap().iter().map(|names| names.join(" ")).collect()
}

#[test]
fn those_that_are_ready_are_one_and_others_come_later() {
    let lines = "pba1\n i1\n pba2\n p1\n pbz1\n pba3 pba1\n pba4\n pba5 p1\n pbz2\n";
    for width in [2, 8] {
        let fake = Arc::new(Fake::default());
        let (run, _) = driven(run_of(lines, Mode::TEST), &fake, width);
        assert_eq!(run.totals().unchanged, 9);
        let mut together = together(&fake);
        together.sort();
        assert_eq!(together.first().map(String::as_str), Some("pba1 pba2 pba4"), "width {width}: {together:?}");
        assert_eq!(together.last().map(String::as_str), Some("pbz1 pbz2"), "width {width}: {together:?}");
    }
}

#[test]
fn one_at_a_time_only_neighbours_are_one() {
    let fake = Arc::new(Fake::default());
    let lines = "pba1\n pba2\n i1\n pba3\n pbz1\n pba4\n p1\n pba5\n pba6 pba5\n pba7\n";
    let (run, _) = driven(run_of(lines, Mode::TEST), &fake, 1);
    assert_eq!(run.totals().unchanged, 10);
    assert_eq!(together(&fake), ["pba1 pba2", "pba6 pba7"]);
    let order = run.graph().order.iter().map(|id| run.graph().node(*id).path.name().to_string());
    assert_eq!(fake.called(), order.collect::<Vec<_>>());
    assert_eq!(fake.count.lock().unwrap().most, 1);
}

#[test]
fn many_are_as_few_as_can_be_whatever_goes_before() {
    for ahead in [0, 1, 7] {
        let processes = (0..ahead).map(|at| format!("p{at}\n"));
        let lines: String = processes.chain((0..600).map(|at| format!("pba{at}\n"))).collect();
        let fake = Arc::new(Fake { drifted: true, ..Fake::default() });
        let (run, _) = driven(run_of(&lines, Mode::APPLY), &fake, 2);
        assert_eq!(run.totals().changed, 600 + ahead);
        let sizes: Vec<usize> = fake.together.lock().unwrap().iter().map(Vec::len).collect();
        assert!(sizes.iter().all(|size| *size <= 256), "{sizes:?}");
        let alone = 1200 - sizes.iter().sum::<usize>();
        assert!(sizes.len() + alone <= 10, "{ahead} ahead: {sizes:?} and {alone} alone");
    }
}

#[test]
fn every_width_comes_to_the_same_with_batches() {
    let expected = statuses(&driven(run_of(&mixed(), Mode::TEST), &Arc::default(), 1).0).into_values();
    let expected: Vec<_> = expected.collect();
    let lines = mixed().replace(" p", " pba").replace("\np", "\npba");
    let lines = lines.strip_prefix('p').map_or(lines.clone(), |rest| format!("pba{rest}"));
    for width in WIDTHS {
        let fake = Arc::new(Fake::default());
        let (run, events) = driven(run_of(&lines, Mode::TEST), &fake, width);
        let (mut announced, mut called) = (started(&events), fake.called());
        announced.sort();
        called.sort();
        assert_eq!(announced, called, "what is announced is called, each once");
        let mut found: Vec<_> = statuses(&run).into_values().collect();
        let mut expected = expected.clone();
        for all in [&mut found, &mut expected] {
            all.sort_by_key(|status| format!("{status:?}"));
        }
        assert_eq!(found, expected);
        assert_eq!(together(&fake).is_empty(), width == 1, "{:?}", together(&fake));
    }
}

#[test]
fn a_panic_in_one_call_fails_all_that_it_had() {
    let fake = Arc::new(Fake::default());
    let (run, _) = driven(run_of("pba1\n pba2-panics\n pbz1\n p1\n", Mode::TEST), &fake, 8);
    assert_eq!(["pba1", "pba2-panics"].map(|name| status(&run, name)), [Status::Failed, Status::Failed]);
    assert_eq!(["pbz1", "p1"].map(|name| status(&run, name)), [Status::InState, Status::InState]);
}
