//! Runs that are cancelled or suspended, calls that hang or panic.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use stead_core::call::FailureKind;
use stead_core::event::{Event, EventKind, Mode, Status};
use stead_core::run::Run;
use stead_host::executor::{CallWatch, Calls, Inline, Limits, Stop, execute};
use stead_host::worker_pool::WorkerPool;

use crate::fake::{FOR_EVER, Fake, WIDTHS, driven, executed, is_start, limits, mixed, run_of, setup, status};

/// Until what hangs is given up; what ends at once must take less on a machine that is busy.
const LONG: Duration = Duration::from_millis(500);

#[test]
fn a_cancelled_run_ends_with_what_is_under_way() {
    for width in WIDTHS {
        for canceller in ["p5-cancel", "i5-cancel"] {
            let fake = Arc::new(Fake::default());
            let lines = format!("p0\ni1\n{canceller} p0 i1\np6 {canceller}\ni7 p6\ni8 {canceller}\n");
            let (run, events) = driven(run_of(&lines, Mode::TEST), &fake, width);
            assert!(run.report().cancelled && run.is_finished());
            assert_eq!(status(&run, canceller), Status::InState, "what is under way is ended and counts");
            for name in ["p6", "i7", "i8"] {
                assert!(matches!(status(&run, name), Status::Skipped(_)), "{name}");
                assert!(!fake.called().contains(&name.to_owned()));
            }
            let rest = events.iter().skip_while(|event| !matches!(event.kind, EventKind::Cancelled));
            assert_eq!(rest.filter(|event| is_start(event)).count(), 0);
        }
    }
}

#[test]
fn a_run_that_is_cancelled_before_it_begins_calls_nothing() {
    for width in WIDTHS {
        let fake = Arc::new(Fake::default());
        fake.stop.cancel.cancel();
        let (run, _) = driven(run_of(&mixed(), Mode::TEST), &fake, width);
        assert_eq!((run.totals().skipped, fake.called().len()), (300, 0));
    }
}

#[test]
fn a_suspended_run_is_resumed_and_calls_nothing_twice() {
    let lines = "p0\n i1\n i2-suspend p0 i1\n p3 i2-suspend\n i4 p3\n i5 i2-suspend\n";
    for width in WIDTHS {
        let (first, second) = (Arc::new(Fake::default()), Arc::new(Fake::default()));
        let (suspended, events) = driven(run_of(lines, Mode::TEST), &first, width);
        assert!(suspended.report().suspended && !suspended.is_finished());
        assert!(matches!(events.last().unwrap().kind, EventKind::Settled { .. } | EventKind::Suspended));
        let rest = events.iter().skip_while(|event| !matches!(event.kind, EventKind::Suspended));
        assert_eq!(rest.filter(|event| is_start(event)).count(), 0, "nothing is started any more");
        let (run, _) = driven(Run::resume(setup(lines, Mode::TEST), &events).unwrap(), &second, width);
        assert!(run.is_finished() && !run.report().suspended);
        assert_eq!(run.totals().unchanged, 6);
        assert_eq!(first.called().len(), 3);
        assert_eq!(second.called().into_iter().collect::<BTreeSet<_>>(), ["i4", "i5", "p3"].map(str::to_owned).into());
    }
}

#[test]
fn a_call_that_panics_has_failed_and_the_rest_goes_on() {
    for width in WIDTHS {
        let fake = Arc::new(Fake::default());
        let lines = "i1\n i2-panic\n p3-panic\n i4 i2-panic\n p5 i1\n i6\n i7-untouchable\n";
        let (run, _) = driven(run_of(lines, Mode::PLAN), &fake, width);
        let of = |name: &str| status(&run, name);
        assert_eq!((of("i2-panic"), of("p3-panic")), (Status::Failed, Status::Failed));
        assert!(matches!(of("i4"), Status::Skipped(_)));
        assert_eq!([of("i1"), of("p5"), of("i6"), of("i7-untouchable")], [const { Status::InState }; 4]);
    }
}

#[test]
fn a_panic_beside_the_calls_ends_the_run_and_does_not_hang() {
    let places = ["i1\np2\ni3 $PANIC p2\n", "i1\np2\ni3-priceless p2\n", "i1\np2\ni3-unseen p2\n"];
    for (width, lines) in WIDTHS.into_iter().flat_map(|width| places.map(|lines| (width, lines))) {
        let fake = Arc::new(Fake::default());
        let (sender, ended) = channel();
        thread::spawn(move || {
            let mut run = run_of(lines, Mode::TEST);
            let (calls, pool): (Arc<dyn Calls>, Arc<WorkerPool>) = (fake, Arc::default());
            let mut consumer = |_: &Run, event: &Event| {
                let name = event.kind.instance().map(|instance| instance.name().to_string());
                assert_ne!(name.as_deref(), Some("i3-unseen"), "a panic that the test wants");
            };
            let work =
                || execute(&mut run, &calls, &pool, &mut Vec::new(), limits(width), &Stop::default(), &mut consumer);
            sender.send(catch_unwind(AssertUnwindSafe(work)).is_err()).unwrap();
        });
        assert!(ended.recv_timeout(FOR_EVER).expect("it does not hang"), "the panic is handed on");
    }
}

#[test]
fn a_short_call_that_hangs_has_failed_and_the_rest_goes_on() {
    for width in WIDTHS {
        let fake = Arc::new(Fake::default());
        let limits = Limits { inline: Inline::Beside(LONG), ..limits(width) };
        let lines = "i1\n i2-hang\n i3\n p4\n i5 i2-hang\n";
        let (run, _, result) = executed(run_of(lines, Mode::TEST), &fake, limits, Vec::new());
        result.unwrap();
        assert!(run.is_finished());
        let (hung, _) = run.graph().iter().find(|(_, node)| &**node.path.name() == "i2-hang").unwrap();
        assert_eq!(run.report().record(hung).failure().unwrap().kind, FailureKind::Deadline);
        assert!(matches!(status(&run, "i5"), Status::Skipped(_)));
        // How long they take is up to the machine that the test runs on.
        let called: BTreeSet<String> = fake.called().into_iter().collect();
        assert_eq!(called, ["i1", "i2-hang", "i3", "p4"].map(str::to_owned).into());
        fake.open_gate();
    }
}

#[test]
fn a_review_that_hangs_has_failed_and_the_rest_goes_on() {
    for width in WIDTHS {
        let fake = Arc::new(Fake { drifted: true, ..Fake::default() });
        let limits = Limits { inline: Inline::Beside(LONG), ..limits(width) };
        let lines = "i1-lasts\n i2-stuck\n i3-dies\n i4-stuck\n i5\n p6-lasts\n";
        let (run, _, result) = executed(run_of(lines, Mode::APPLY), &fake, limits, Vec::new());
        result.unwrap();
        let failure = |name| {
            let (id, _) = run.graph().iter().find(|(_, node)| &**node.path.name() == name).unwrap();
            run.report().record(id).failure().map(|failure| failure.kind.clone())
        };
        let failed = ["i1-lasts", "i2-stuck", "i3-dies", "i4-stuck", "i5", "p6-lasts"].map(failure);
        let late = Some(FailureKind::Deadline);
        assert_eq!(failed, [None, late.clone(), Some(FailureKind::System), late, None, None], "width {width}");
        fake.open_gate();
    }
}

#[test]
fn whoever_watches_sees_that_a_call_hangs() {
    let (fake, watch) = (Arc::new(Fake::default()), Arc::<CallWatch>::default());
    let limits = Limits { inline: Inline::Here(Arc::clone(&watch)), ..limits(1) };
    thread::scope(|scope| {
        scope.spawn(|| {
            while !watch.exceeds(Duration::from_millis(1)) {
                thread::yield_now();
            }
            assert!(!watch.exceeds(FOR_EVER));
            fake.open_gate();
        });
        let (run, _, result) = executed(run_of("i1-hang\n", Mode::TEST), &fake, limits, Vec::new());
        result.unwrap();
        assert_eq!(status(&run, "i1-hang"), Status::InState);
    });
}
