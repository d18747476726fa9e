//! How a run is carried out, with calls that only keep count.
//!
//! `STEAD_WIDTHS=150` compares the results of different widths so often.

#![expect(clippy::unwrap_used, reason = "a test may fail this way")]

#[path = "../../stead-core/tests/support/catalog.rs"]
mod catalog;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use stead_core::call::{Call, Changed, Failure, FailureKind, Operation, Outcome, Response, Tested, Verification};
use stead_core::destruction::Effects;
use stead_core::document;
use stead_core::event::{Event, EventKind, Mode, Status};
use stead_core::expr::FactKey;
use stead_core::footprint::Footprint;
use stead_core::graph::{Facts, Graph, Inputs, Names, Resolution, Values, resolve};
use stead_core::id::NodeId;
use stead_core::instance_path::InstancePath;
use stead_core::parameters::Supplied;
use stead_core::run::reconcile::Reconciler;
use stead_core::run::{KnownInstance, Run, Setup};
use stead_core::text::{Limits as TextLimits, Source, Sources};
use stead_core::value::Value;
use stead_core::wait::Wait;
use stead_host::executor::{CallWatch, Calls, ExecuteError, Inline, Limits, Stop, execute};
use stead_host::journal::{Journal, JournalError};
use stead_host::provider::{Cost, Review};
use stead_host::vault::MemoryVault;
use stead_host::worker_pool::WorkerPool;
use stead_testkit::times;

/// Far longer than any of this takes: only a run that hangs is ended by it.
const FOR_EVER: Duration = Duration::from_mins(2);

#[derive(Default)]
struct Count {
    under_way: usize,
    most: usize,
    calls: Vec<String>,
    gate_is_open: bool,
}

/// Instances whose name begins with `p` are processes. What a call does is given by the end of the name.
#[derive(Default)]
struct Fake {
    count: Mutex<Count>,
    changed: Condvar,
    stop: Stop,
    /// How many calls whose name ends in `meet` must be under way before one of them is answered.
    meeting: usize,
    /// True if tests find that something needs to be set.
    drifted: bool,
    /// The events: calls, flushes, and what journals record.
    log: Mutex<Vec<String>>,
    /// The instances that end in `undone` and `touched`, with the first one that was called.
    undone: Mutex<BTreeMap<NodeId, Vec<InstancePath>>>,
    first: Mutex<Option<InstancePath>>,
}

impl Calls for Fake {
    fn carry_out(&self, call: &Call) -> Response {
        let earlier = self.begin(call);
        let first = self.first.lock().unwrap().get_or_insert_with(|| call.instance.clone()).clone();
        if call.name().ends_with("undone") || call.name().ends_with("touched") {
            self.undone.lock().unwrap().insert(call.instance.node(), vec![first]);
        }
        match call.name().rsplit('-').next() {
            Some("meet") => self.meet(|name| name.ends_with("meet")),
            Some("cancel") => self.stop.cancel.cancel(),
            Some("suspend") => self.stop.suspend.cancel(),
            Some("hang") => self.wait_for_gate(),
            Some("panic") => {
                self.count.lock().unwrap().under_way -= 1;
                panic!("a panic that the test wants");
            }
            _ => {}
        }
        self.count.lock().unwrap().under_way -= 1;
        if call.name().ends_with("flaky") && earlier < 2 {
            return Failure::new(FailureKind::Exit(1), "not yet").into();
        }
        self.response(call)
    }

    /// Those that end in `undone` and `touched`, by the first instance that was called.
    fn disturbed(&self) -> BTreeMap<NodeId, Vec<InstancePath>> {
        self.undone.lock().unwrap().clone()
    }

    /// Reviews `lasts`, `dies` and `touched` twice, once too early; `forever` is always too early. Those that end in `gather` wait
    /// for each other.
    fn review(&self, known: &KnownInstance, after: &[InstancePath]) -> Review {
        let name = known.instance.name().to_string();
        if let Some(other) = after.first().filter(|_| name.ends_with("undone")) {
            return Review::Failed(Failure::new(FailureKind::NotConverged, format!("undone by {}", other.name())));
        }
        self.log(format!("Review {name}"));
        let before = self.log.lock().unwrap().iter().filter(|entry| **entry == format!("Review {name}")).count();
        match name.rsplit('-').next() {
            Some("lasts" | "dies") if before == 1 => Review::TooEarly(Duration::from_millis(100)),
            Some("touched") if before == 1 && !after.is_empty() => Review::TooEarly(Duration::from_millis(1)),
            Some("touched") if !after.is_empty() => {
                Review::Failed(Failure::new(FailureKind::System, "it was tested twice"))
            }
            Some("gather") => {
                self.count.lock().unwrap().calls.push(format!("Review {name}"));
                self.changed.notify_all();
                self.meet(|called| called.starts_with("Review"));
                Review::Lasted
            }
            Some("broken") => panic!("a panic that the test wants"),
            Some("stuck") => {
                self.wait_for_gate();
                Review::Lasted
            }
            Some("dies") => Review::Failed(Failure::new(FailureKind::System, "it ended")),
            Some("forever") => Review::TooEarly(FOR_EVER),
            _ => Review::Lasted,
        }
    }

    fn footprint(&self, call: &Call, _response: &Response) -> Option<Footprint> {
        assert!(!call.name().ends_with("untouchable"), "a panic that the test wants");
        Some(Footprint::default())
    }

    fn review_cost(&self, known: &KnownInstance) -> Cost {
        if known.instance.name().starts_with('p') { Cost::Process } else { Cost::Inline }
    }

    fn cost(&self, call: &Call) -> Cost {
        assert!(!call.name().ends_with("priceless"), "a panic that the test wants");
        if call.name().starts_with('p') { Cost::Process } else { Cost::Inline }
    }

    fn fact(&self, key: &FactKey) -> Result<Value, String> {
        assert_ne!(key, &FactKey::EnvironmentVariable("PANIC".to_owned()), "a panic that the test wants");
        Ok("observed".into())
    }

    fn flush(&self) -> std::io::Result<()> {
        self.log("flush".to_owned());
        Ok(())
    }
}

impl Fake {
    /// Returns how many calls of the instance came before.
    fn begin(&self, call: &Call) -> usize {
        let name = call.name().to_string();
        self.log(format!("{:?} {name}", call.operation));
        let mut count = self.count.lock().unwrap();
        count.under_way += 1;
        count.most = count.most.max(count.under_way);
        let earlier = count.calls.iter().filter(|earlier| **earlier == name).count();
        count.calls.push(name);
        self.changed.notify_all();
        earlier
    }

    fn response(&self, call: &Call) -> Response {
        let actual = Arc::new((*call.desired).clone());
        let outcome = if self.drifted && call.operation == Operation::Set {
            Outcome::Changed(Box::new(Changed {
                before: Arc::default(),
                after: actual,
                changed: Some(vec!["x".to_owned()]),
                what_if: Vec::new(),
                presumed: None,
                effects: Effects::default(),
                verified: Verification::InState,
            }))
        } else {
            Outcome::Tested(Arc::new(Tested {
                actual,
                in_desired_state: !self.drifted,
                differing: Vec::new(),
                predicted: None,
                metadata: None,
            }))
        };
        Response::of(outcome)
    }

    /// Waits until enough are here.
    fn meet(&self, is_one: fn(&str) -> bool) {
        let count = self.count.lock().unwrap();
        let alone = |count: &mut Count| count.calls.iter().filter(|name| is_one(name)).count() < self.meeting;
        let waited = self.changed.wait_timeout_while(count, FOR_EVER, alone).unwrap().1;
        assert!(!waited.timed_out(), "the others are not called at the same time");
    }

    fn wait_for_gate(&self) {
        let count = self.count.lock().unwrap();
        drop(self.changed.wait_timeout_while(count, FOR_EVER, |count| !count.gate_is_open).unwrap());
    }

    fn open_gate(&self) {
        self.count.lock().unwrap().gate_is_open = true;
        self.changed.notify_all();
    }

    fn log(&self, entry: String) {
        self.log.lock().unwrap().push(entry);
    }

    fn called(&self) -> Vec<String> {
        self.count.lock().unwrap().calls.clone()
    }
}

/// Instances, one a line: a name, then the names of what it needs; `?` for a condition that is false, `$NAME` for a
/// property that asks for an environment variable.
fn setup(lines: &str, mode: Mode) -> Setup {
    let mut text = "$schema: s\nresources:\n".to_owned();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut words = line.split(' ');
        writeln!(text, "- type: Test/Echo\n  name: {}", words.next().unwrap()).unwrap();
        let (others, needs): (Vec<&str>, Vec<&str>) = words.partition(|word| word.starts_with(['?', '$']));
        let needs: Vec<String> = needs.iter().map(|need| format!("'Test/Echo:{need}'")).collect();
        writeln!(text, "  dependsOn: [{}]", needs.join(", ")).unwrap();
        for other in others {
            match other.strip_prefix('$') {
                Some(name) => writeln!(text, "  properties: {{x: \"[envvar('{name}')]\"}}").unwrap(),
                None => text.push_str("  condition: '[false()]'\n"),
            }
        }
    }
    let (graph, sources) = resolved(&text);
    Setup::new(Arc::new(graph), Arc::new(sources), Arc::new(MemoryVault::default()), mode)
}

fn resolved(text: &str) -> (Graph, Sources) {
    let mut sources = Sources::default();
    let id = sources.add(Source::new("main.yaml", text));
    let (document, findings) = document::parse(id, text, &TextLimits::default());
    assert!(findings.is_empty(), "{findings:?}");
    let (catalog, parameters, facts) = (catalog::Known::with("").unwrap(), Supplied::default(), Facts::new());
    let inputs = Inputs {
        folder: "",
        catalog: &catalog,
        parameters: &parameters,
        facts: &facts,
        version: "3.0.0",
        names: Names::Unique,
        values: Values::Required,
        seal: &MemoryVault::default(),
    };
    match resolve(&document.into(), &inputs, &mut sources) {
        Resolution::Graph(graph, _) => (graph, sources),
        other => panic!("{other:?}"),
    }
}

fn limits(width: usize) -> Limits {
    Limits::of(NonZeroUsize::new(width).unwrap())
}

/// A run that has ended, its events, and how it ended.
type Ended = (Run, Vec<Event>, Result<(), ExecuteError>);

/// Carries out a run on a thread of its own, so that one that hangs is a failure.
fn executed(mut run: Run, fake: &Arc<Fake>, limits: Limits, mut journal: impl Journal + Send + 'static) -> Ended {
    let fake = Arc::clone(fake);
    let (sender, ended) = channel();
    thread::spawn(move || {
        let (calls, pool): (Arc<dyn Calls>, _) = (fake.clone(), Arc::default());
        let mut events = Vec::new();
        let mut keep = |_: &Run, event: &Event| events.push(event.clone());
        let result = execute(&mut run, &calls, &pool, &mut journal, limits, &fake.stop, &mut keep);
        sender.send((run, events, result)).unwrap();
    });
    ended.recv_timeout(FOR_EVER).expect("the run ends")
}

/// Drives a run without a journal.
fn driven(run: Run, fake: &Arc<Fake>, width: usize) -> (Run, Vec<Event>) {
    let (run, events, result) = executed(run, fake, limits(width), Vec::new());
    result.unwrap();
    (run, events)
}

fn run_of(lines: &str, mode: Mode) -> Run {
    Run::new(setup(lines, mode))
}

fn status(run: &Run, name: &str) -> Status {
    let (id, _) = run.graph().iter().find(|(_, node)| **node.path.name() == *name).unwrap();
    run.report().status(id).unwrap().clone()
}

fn statuses(run: &Run) -> BTreeMap<String, Option<Status>> {
    run.graph().iter().map(|(id, node)| (node.path.name().to_string(), run.report().status(id).cloned())).collect()
}

fn is_start(event: &Event) -> bool {
    matches!(event.kind, EventKind::CallStarted { .. })
}

/// The names of the instances that calls were started of.
fn started(events: &[Event]) -> Vec<String> {
    let started = events.iter().filter(|event| is_start(event));
    started.map(|event| event.kind.instance().unwrap().name().to_string()).collect()
}

const WIDTHS: [usize; 3] = [1, 2, 8];

/// Inline calls and processes by turns, every seventh behind the one before, some left out.
fn mixed() -> String {
    let line = |at: usize| {
        let name = |at: usize| format!("{}{at}", if at.is_multiple_of(3) { 'p' } else { 'i' });
        let need = if at % 7 == 6 { format!(" {}", name(at - 1)) } else { String::new() };
        let rest = match at % 11 {
            5 => " ?",
            8 => " $HOME",
            _ => "",
        };
        format!("{}{need}{rest}\n", name(at))
    };
    (0..300).map(line).collect()
}

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
        let limits = Limits { inline: Inline::Beside(Duration::from_millis(20)), ..limits(width) };
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
        let limits = Limits { inline: Inline::Beside(Duration::from_millis(20)), ..limits(width) };
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
