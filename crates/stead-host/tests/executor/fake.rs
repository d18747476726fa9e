//! Calls that only keep count, and runs that are carried out with them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::num::NonZeroUsize;
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
use stead_core::manifest::BatchKey;
use stead_core::parameters::Supplied;
use stead_core::run::{KnownInstance, Run, Setup};
use stead_core::text::{Limits as TextLimits, Source, Sources};
use stead_core::value::Value;
use stead_host::executor::{CallBatch, Calls, ExecuteError, Limits, Stop, execute};
use stead_host::journal::Journal;
use stead_host::provider::{Cost, Review};
use stead_host::vault::MemoryVault;

/// Far longer than any of this takes: only a run that hangs is ended by it.
pub(crate) const FOR_EVER: Duration = Duration::from_mins(2);

#[derive(Default)]
pub(crate) struct Count {
    pub(crate) under_way: usize,
    pub(crate) most: usize,
    pub(crate) calls: Vec<String>,
    pub(crate) gate_is_open: bool,
}

/// Instances whose name begins with `p` are processes; those that begin with `pb` and the same letter are of a batch. What a call does is given by the end of the name.
#[derive(Default)]
pub(crate) struct Fake {
    pub(crate) count: Mutex<Count>,
    pub(crate) changed: Condvar,
    pub(crate) stop: Stop,
    /// How many calls whose name ends in `meet` must be under way before one of them is answered.
    pub(crate) meeting: usize,
    /// The names of those that were carried out together.
    pub(crate) together: Mutex<Vec<Vec<String>>>,
    /// True if tests find that something needs to be set.
    pub(crate) drifted: bool,
    /// The events: calls, flushes, and what journals record.
    pub(crate) log: Mutex<Vec<String>>,
    /// The instances that end in `undone` and `touched`, with the first one that was called.
    pub(crate) undone: Mutex<BTreeMap<NodeId, Vec<InstancePath>>>,
    pub(crate) first: Mutex<Option<InstancePath>>,
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

    fn batch(&self, call: &Call) -> Option<CallBatch> {
        let resources = BatchKey {
            adapter: call.manifest.type_name.clone(),
            version: call.manifest.version.clone(),
            owner: call.name().strip_prefix("pb")?.get(..1)?.to_owned(),
        };
        Some(CallBatch { resources, container: None, operation: call.operation, execution: call.execution })
    }

    fn carry_out_together(&self, calls: &[Arc<Call>]) -> Vec<Response> {
        let names: Vec<String> = calls.iter().map(|call| call.name().to_string()).collect();
        self.together.lock().unwrap().push(names);
        assert!(calls.iter().all(|call| !call.name().ends_with("panics")), "a panic that the test wants");
        calls.iter().map(|call| self.carry_out(call)).collect()
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

    /// Takes back `cause` where something that ends in `dies` failed, of which there is more to say.
    fn take_back(&self, failed: &[(KnownInstance, String)]) -> Vec<(InstancePath, Failure)> {
        self.log("Take back".to_owned());
        let mut said = Vec::new();
        for (known, why) in failed.iter().filter(|(known, _)| known.instance.name().ends_with("dies")) {
            let first = self.first.lock().unwrap().clone().filter(|first| first.name().ends_with("cause"));
            let Some(cause) = first else { continue };
            said.push((cause, Failure::new(FailureKind::NotConverged, "taken back")));
            said.push((known.instance.clone(), Failure::new(FailureKind::System, format!("{why}, and is up"))));
        }
        said
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
                unknown: None,
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
                unknown: None,
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

    pub(crate) fn open_gate(&self) {
        self.count.lock().unwrap().gate_is_open = true;
        self.changed.notify_all();
    }

    pub(crate) fn log(&self, entry: String) {
        self.log.lock().unwrap().push(entry);
    }

    pub(crate) fn called(&self) -> Vec<String> {
        self.count.lock().unwrap().calls.clone()
    }
}

/// Instances, one a line: a name, then the names of what it needs; `?` for a condition that is false, `$NAME` for a
/// property that asks for an environment variable.
pub(crate) fn setup(lines: &str, mode: Mode) -> Setup {
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
    let (catalog, parameters, facts) = (crate::catalog::Known::with("").unwrap(), Supplied::default(), Facts::new());
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

pub(crate) fn limits(width: usize) -> Limits {
    Limits::of(NonZeroUsize::new(width).unwrap())
}

/// A run that has ended, its events, and how it ended.
type Ended = (Run, Vec<Event>, Result<(), ExecuteError>);

/// Carries out a run on a thread of its own, so that one that hangs is a failure.
pub(crate) fn executed(
    mut run: Run,
    fake: &Arc<Fake>,
    limits: Limits,
    mut journal: impl Journal + Send + 'static,
) -> Ended {
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
pub(crate) fn driven(run: Run, fake: &Arc<Fake>, width: usize) -> (Run, Vec<Event>) {
    let (run, events, result) = executed(run, fake, limits(width), Vec::new());
    result.unwrap();
    (run, events)
}

pub(crate) fn run_of(lines: &str, mode: Mode) -> Run {
    Run::new(setup(lines, mode))
}

pub(crate) fn status(run: &Run, name: &str) -> Status {
    let (id, _) = run.graph().iter().find(|(_, node)| **node.path.name() == *name).unwrap();
    run.report().status(id).unwrap().clone()
}

pub(crate) fn statuses(run: &Run) -> BTreeMap<String, Option<Status>> {
    run.graph().iter().map(|(id, node)| (node.path.name().to_string(), run.report().status(id).cloned())).collect()
}

pub(crate) fn is_start(event: &Event) -> bool {
    matches!(event.kind, EventKind::CallStarted { .. })
}

/// The names of the instances that calls were started of.
pub(crate) fn started(events: &[Event]) -> Vec<String> {
    let started = events.iter().filter(|event| is_start(event));
    started.map(|event| event.kind.instance().unwrap().name().to_string()).collect()
}

pub(crate) const WIDTHS: [usize; 3] = [1, 2, 8];

/// Inline calls and processes by turns, every seventh behind the one before, some left out.
pub(crate) fn mixed() -> String {
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
