//! What is recorded, and when.

use std::sync::{Arc, Mutex};

use stead_core::event::{Event, EventKind, Mode};
use stead_core::run::Run;
use stead_host::executor::ExecuteError;
use stead_host::journal::{Journal, JournalError};

use crate::fake::{Fake, WIDTHS, driven, executed, limits, run_of, setup, started, statuses};

#[test]
fn calls_that_are_announced_together_are_recorded_together() {
    let batches = Arc::new(Mutex::new(Vec::new()));
    let lines = (0..64).map(|at| format!("i{at}\n")).collect::<Vec<_>>().concat();
    let fake = Arc::new(Fake::default());
    let journal = Batches(Arc::clone(&batches));
    executed(run_of(&lines, Mode::TEST), &fake, limits(2), journal).2.unwrap();
    let batches = batches.lock().unwrap();
    let announcing: Vec<usize> =
        batches.iter().map(|batch: &Vec<Event>| started(batch).len()).filter(|count| *count > 0).collect();
    assert_eq!(announcing, [64], "one append for all calls that can be made");
}

/// Keeps what was appended together.
struct Batches(Arc<Mutex<Vec<Vec<Event>>>>);

impl Journal for Batches {
    fn append(&mut self, events: &[Event]) -> Result<(), JournalError> {
        self.0.lock().unwrap().push(events.to_vec());
        Ok(())
    }
}

/// Survives power failures, so it says, and writes to the log of a fake.
struct Durable(Arc<Fake>);

impl Journal for Durable {
    fn append(&mut self, events: &[Event]) -> Result<(), JournalError> {
        for event in events {
            if let EventKind::CallEnded { instance, .. } = &event.kind {
                self.0.log(format!("recorded {}", instance.name()));
            }
        }
        Ok(())
    }

    fn is_durable(&self) -> bool {
        true
    }
}

#[test]
fn a_durable_journal_says_that_a_set_ended_once_what_it_wrote_is_flushed() {
    for width in WIDTHS {
        let fake = Arc::new(Fake { drifted: true, ..Fake::default() });
        let lines = (0..20).map(|at| format!("{}{at}\n", ['i', 'p'][at % 2])).collect::<Vec<_>>().concat();
        executed(run_of(&lines, Mode::APPLY), &fake, limits(width), Durable(Arc::clone(&fake))).2.unwrap();
        let log = fake.log.lock().unwrap();
        for name in log.iter().filter_map(|entry| entry.strip_prefix("Set ")) {
            let set = log.iter().position(|entry| *entry == format!("Set {name}")).unwrap();
            let recorded = log.iter().rposition(|entry| *entry == format!("recorded {name}")).unwrap();
            assert!(log[set..recorded].contains(&"flush".to_owned()), "{name}: {log:?}");
        }
    }
}

/// Fails at its last append, and notices when it is used after that.
struct Failing {
    kept: Arc<Mutex<Vec<Event>>>,
    left: usize,
    failed: bool,
}

impl Journal for Failing {
    fn append(&mut self, events: &[Event]) -> Result<(), JournalError> {
        assert!(!self.failed, "nothing is appended after an append that failed");
        self.failed = self.left == 0;
        if self.failed {
            let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
            return Err(JournalError { path: "journal".into(), source });
        }
        self.left -= 1;
        self.kept.lock().unwrap().extend_from_slice(events);
        Ok(())
    }
}

#[test]
fn nothing_is_called_that_the_journal_could_not_record() {
    let lines = "i1\n p2 i1\n i3 $HOME\n p4\n i5 p4 ?\n i6 p2 p4\n p7 i6\n";
    for width in WIDTHS {
        let mut failures = 0;
        loop {
            let fake = Arc::new(Fake { drifted: true, ..Fake::default() });
            let kept = Arc::<Mutex<Vec<Event>>>::default();
            let journal = Failing { kept: Arc::clone(&kept), left: failures, failed: false };
            let (run, events, result) = executed(run_of(lines, Mode::APPLY), &fake, limits(width), journal);
            let kept = kept.lock().unwrap();
            assert_eq!(events.len(), kept.len(), "what was not recorded does not count");
            let (mut announced, mut called) = (started(&kept), fake.called());
            announced.sort();
            called.sort();
            assert!(called.iter().all(|name| announced.contains(name)), "{called:?} beside {announced:?}");
            assert!(called.len() <= announced.len());
            assert_eq!(fake.count.lock().unwrap().under_way, 0, "nothing is under way any more");
            match result {
                Ok(()) => break assert!(run.is_finished() && called == announced),
                Err(error) => assert!(matches!(error, ExecuteError::Journal(_)), "{error}"),
            }
            failures += 1;
        }
        assert!(failures > 5, "{failures}");
    }
}

#[test]
fn a_run_that_is_resumed_asks_again_what_was_not_answered() {
    let lines = "i1\n p2 i1\n i3 p2\n";
    let (whole, events) = driven(run_of(lines, Mode::TEST), &Arc::new(Fake::default()), 1);
    for at in 0..=events.len() {
        let resumed = Run::resume(setup(lines, Mode::TEST), &events[..at]).unwrap();
        let fake = Arc::new(Fake::default());
        let (run, _) = driven(resumed, &fake, 2);
        let ended = |event: &&Event| matches!(event.kind, EventKind::CallEnded { .. });
        assert_eq!(fake.called().len(), 3 - events[..at].iter().filter(ended).count());
        assert_eq!(statuses(&run), statuses(&whole));
    }
}
