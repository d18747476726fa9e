//! The loop that drives a run, with a world that only keeps count.

#![expect(clippy::unwrap_used, reason = "a test may fail this way")]

#[path = "../../stead-core/tests/support/catalog.rs"]
mod catalog;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

use stead_core::call::{Call, Operation, Outcome, Response, Tested};
use stead_core::document;
use stead_core::event::{Event, Fact};
use stead_core::expr::FactKey;
use stead_core::graph::{Facts, Graph, Inputs, Names, Resolution, resolve};
use stead_core::run::{Mode, Run, Status};
use stead_core::text::{Limits, Source, Sources};
use stead_core::value::{Object, Value};
use stead_host::drive::{World, drive};
use stead_host::provider::{Cancel, Cost};
use stead_host::vault::MemoryVault;

/// Far longer than any of this takes: only a run that hangs is ended by it.
const FOR_EVER: Duration = Duration::from_mins(2);

#[derive(Default)]
struct Count {
    under_way: usize,
    most: usize,
    calls: Vec<String>,
    threads: Vec<ThreadId>,
}

/// Instances whose name begins with `p` are processes. What a call does is told by the end of the name.
#[derive(Default)]
struct Fake {
    count: Mutex<Count>,
    changed: Condvar,
    cancel: Cancel,
    /// How many calls whose name ends in `meet` have to be under way before one of them is answered.
    meeting: usize,
}

impl World for Fake {
    fn answer(&self, call: &Call) -> Response {
        self.begin(call);
        match call.name.rsplit('-').next() {
            Some("meet") => self.meet(),
            Some("cancel") => self.cancel.cancel(),
            Some("panic") => {
                self.count.lock().unwrap().under_way -= 1;
                panic!("a defect that the test wants");
            }
            _ => {}
        }
        self.count.lock().unwrap().under_way -= 1;
        let tested = Tested { actual: (*call.desired).clone(), in_desired_state: true, differing: Vec::new() };
        Response { outcome: Outcome::Tested(Arc::new(tested)), metadata: None, restarts: Vec::new() }
    }

    fn touches(&self, call: &Call) -> Option<Vec<PathBuf>> {
        assert!(!call.name.ends_with("untouchable"), "a defect that the test wants");
        Some(Vec::new())
    }

    fn cost(&self, call: &Call) -> Cost {
        assert!(!call.name.ends_with("priceless"), "a defect that the test wants");
        if call.name.starts_with('p') { Cost::Process } else { Cost::Inline }
    }

    fn learn(&self, key: &FactKey) -> Result<Value, String> {
        assert_ne!(key, &FactKey::EnvironmentVariable("PANIC".to_owned()), "a defect that the test wants");
        Ok("learned".into())
    }
}

impl Fake {
    fn begin(&self, call: &Call) {
        let mut count = self.count.lock().unwrap();
        count.under_way += 1;
        count.most = count.most.max(count.under_way);
        count.calls.push(call.name.to_string());
        count.threads.push(thread::current().id());
        self.changed.notify_all();
    }

    /// Waits until enough are here.
    fn meet(&self) {
        let count = self.count.lock().unwrap();
        let alone = |count: &mut Count| count.calls.iter().filter(|name| name.ends_with("meet")).count() < self.meeting;
        let waited = self.changed.wait_timeout_while(count, FOR_EVER, alone).unwrap().1;
        assert!(!waited.timed_out(), "the others are not called at the same time");
    }
}

/// Instances, one a line: a name, then the names of what it needs; `?` for a condition that is false, `$NAME` for a
/// property that asks for an environment variable.
fn run_of(lines: &str, mode: Mode) -> Run {
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
    Run::new(Arc::new(graph), Arc::new(sources), mode, Facts::new(), Arc::new(MemoryVault::default()))
}

fn resolved(text: &str) -> (Graph, Sources) {
    let mut sources = Sources::default();
    let id = sources.add(Source::new("main.yaml", text));
    let (document, findings) = document::parse(id, text, &Limits::default());
    assert!(findings.is_empty(), "{findings:?}");
    let (catalog, parameters, facts) = (catalog::Known::with("").unwrap(), Object::new(), Facts::new());
    let inputs = Inputs {
        catalog: &catalog,
        parameters: &parameters,
        facts: &facts,
        version: "3.0.0",
        names: Names::Unique,
        seal: &MemoryVault::default(),
    };
    match resolve(&document.into(), &inputs, &mut sources) {
        Resolution::Graph(graph, _) => (graph, sources),
        other => panic!("{other:?}"),
    }
}

/// Drives a run on a thread of its own, so that one that hangs is a failure.
fn driven(mut run: Run, world: &Arc<Fake>, width: usize) -> (Run, Vec<Event>) {
    let world = Arc::clone(world);
    let (sender, ended) = channel();
    thread::spawn(move || {
        let mut events = Vec::new();
        let width = NonZeroUsize::new(width).unwrap();
        let cancel = world.cancel.clone();
        drive(&mut run, &*world, width, &cancel, &mut |_, event| events.push(event.clone()));
        sender.send((run, events)).unwrap();
    });
    ended.recv_timeout(FOR_EVER).expect("the run ends")
}

fn status(run: &Run, name: &str) -> Status {
    let (id, _) = run.graph().iter().find(|(_, node)| *node.name == *name).unwrap();
    run.report().status(id).unwrap().clone()
}

const WIDTHS: [usize; 3] = [1, 2, 8];

/// Inline calls and processes by iterations, every seventh behind the one before, some left out.
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
    let mut first: Option<Vec<Status>> = None;
    for width in WIDTHS {
        let world = Arc::new(Fake::default());
        let (run, events) = driven(run_of(&mixed(), Mode::TEST), &world, width);
        assert!(run.is_finished());
        let count = world.count.lock().unwrap();
        assert!(count.most <= width, "{} calls at once with a width of {width}", count.most);
        let asked = events.iter().filter(|event| matches!(event.fact, Fact::Asked { .. })).count();
        assert_eq!(count.calls.len(), asked, "what is announced is called, each once");
        let statuses = run.graph().iter().map(|(id, _)| run.report().status(id).unwrap().clone()).collect();
        assert_eq!(*first.get_or_insert_with(|| Vec::clone(&statuses)), statuses);
    }
}

#[test]
fn one_at_a_time_is_in_order_and_on_one_thread() {
    let world = Arc::new(Fake::default());
    let (run, _) = driven(run_of(&mixed(), Mode::TEST), &world, 1);
    let count = world.count.lock().unwrap();
    let graph = run.graph();
    let in_order = graph.order.iter().map(|id| graph.node(*id).name.to_string());
    let called: Vec<String> = in_order.filter(|name| count.calls.contains(name)).collect();
    assert_eq!(count.calls, called);
    assert!(count.threads.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn processes_run_beside_each_other() {
    // Between them stand what is left out, what waits for a fact, and a call that is not worth a thread.
    let lines = "p1-meet\n a ?\n p2-meet\n i1\n p3-meet $HOME\n i2\n p4-meet i1\n";
    for meeting in [2, 3, 4] {
        let world = Arc::new(Fake { meeting, ..Fake::default() });
        let (run, _) = driven(run_of(lines, Mode::TEST), &world, 8);
        assert_eq!(run.totals().unchanged, 6);
        assert!(world.count.lock().unwrap().most >= meeting);
    }
}

#[test]
fn a_cancelled_run_ends_with_what_is_under_way() {
    for width in WIDTHS {
        for canceller in ["p5-cancel", "i5-cancel"] {
            let world = Arc::new(Fake::default());
            let lines = format!("p0\ni1\n{canceller} p0 i1\np6 {canceller}\ni7 p6\ni8 {canceller}\n");
            let (run, events) = driven(run_of(&lines, Mode::TEST), &world, width);
            assert!(run.report().cancelled && run.is_finished());
            assert_eq!(status(&run, canceller), Status::InState, "what is under way is ended and counts");
            for name in ["p6", "i7", "i8"] {
                assert!(matches!(status(&run, name), Status::Skipped(_)), "{name}");
                assert!(!world.count.lock().unwrap().calls.contains(&name.to_owned()));
            }
            let begun = |event: &Event| matches!(event.fact, Fact::Asked { .. });
            let rest = events.iter().skip_while(|event| !matches!(event.fact, Fact::Cancelled));
            assert_eq!(rest.filter(|event| begun(event)).count(), 0);
        }
    }
}

#[test]
fn a_run_that_is_cancelled_before_it_begins_calls_nothing() {
    for width in WIDTHS {
        let world = Arc::new(Fake::default());
        world.cancel.cancel();
        let (run, _) = driven(run_of(&mixed(), Mode::TEST), &world, width);
        assert_eq!((run.totals().skipped, world.count.lock().unwrap().calls.len()), (300, 0));
    }
}

#[test]
fn a_call_that_panics_has_failed_and_the_rest_goes_on() {
    for width in WIDTHS {
        let world = Arc::new(Fake::default());
        let lines = "i1\n i2-panic\n p3-panic\n i4 i2-panic\n p5 i1\n i6\n i7-untouchable\n";
        let (run, _) = driven(run_of(lines, Mode::PLAN), &world, width);
        let of = |name: &str| status(&run, name);
        assert_eq!((of("i2-panic"), of("p3-panic")), (Status::Failed, Status::Failed));
        assert!(matches!(of("i4"), Status::Skipped(_)));
        assert_eq!([of("i1"), of("p5"), of("i6"), of("i7-untouchable")], [const { Status::InState }; 4]);
    }
}

#[test]
fn a_panic_beside_the_calls_ends_the_run_and_does_not_hang() {
    for (width, lines) in WIDTHS
        .into_iter()
        .flat_map(|width| [(width, "i1\np2\ni3 $PANIC p2\n"), (width.max(2), "i1\np2\ni3-priceless p2\n")])
    {
        let world = Arc::new(Fake::default());
        let (sender, ended) = channel();
        thread::spawn(move || {
            let mut run = run_of(lines, Mode::TEST);
            let width = NonZeroUsize::new(width).unwrap();
            let work = || drive(&mut run, &*world, width, &Cancel::default(), &mut |_, _| {});
            sender.send(catch_unwind(AssertUnwindSafe(work)).is_err()).unwrap();
        });
        assert!(ended.recv_timeout(FOR_EVER).expect("it does not hang"), "the panic is handed on");
    }
}

#[test]
fn a_run_that_is_resumed_asks_again_what_was_not_answered() {
    let lines = "i1\n p2 i1\n i3 p2\n";
    let (whole, events) = driven(run_of(lines, Mode::TEST), &Arc::new(Fake::default()), 1);
    for at in 0..=events.len() {
        let fresh = run_of(lines, Mode::TEST);
        let (graph, sources) = (Arc::clone(fresh.graph()), Arc::new(Sources::default()));
        let resumed =
            Run::resume(graph, sources, Mode::TEST, Facts::new(), Arc::new(MemoryVault::default()), &events[..at]);
        let world = Arc::new(Fake::default());
        let (run, _) = driven(resumed, &world, 2);
        let answered = events[..at].iter().filter(|event| matches!(event.fact, Fact::Response { .. })).count();
        assert_eq!(world.count.lock().unwrap().calls.len(), 3 - answered);
        let statuses = |run: &Run| -> BTreeMap<String, Option<Status>> {
            run.graph().iter().map(|(id, node)| (node.name.to_string(), run.report().status(id).cloned())).collect()
        };
        assert_eq!(statuses(&run), statuses(&whole));
    }
}

#[test]
fn only_a_plan_asks_what_is_touched() {
    let world = Arc::new(Fake::default());
    let (run, events) = driven(run_of("i1-untouchable\n", Mode::TEST), &world, 2);
    assert_eq!(status(&run, "i1-untouchable"), Status::InState);
    let operations: Vec<Operation> = events
        .iter()
        .filter_map(|event| match &event.fact {
            Fact::Response { operation, touches, .. } => {
                assert_eq!(*touches, None);
                Some(*operation)
            }
            _ => None,
        })
        .collect();
    assert_eq!(operations, [Operation::Test]);
}
