//! Laws of every run: random documents, random machines, random orders of answers.
//!
//! `STEAD_RUNS=10000` tries so many of them, `STEAD_FIRST_RUN=500` leaves out those before. A failure names its
//! number, which alone makes it again.

#![expect(clippy::unwrap_used, reason = "a test may fail this way")]

#[path = "support/catalog.rs"]
mod catalog;
#[path = "support/prepare.rs"]
mod prepare;
#[path = "support/random.rs"]
mod random;
#[path = "support/seal.rs"]
mod seal;
#[path = "support/simulation.rs"]
mod simulation;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use random::Numbers;
use simulation::{Driver, Job, Set, Thing, World, drive};
use stead_core::call::{Call, Execution, Operation, Outcome, Response, Restart, Verification};
use stead_core::document::Exclusive;
use stead_core::event::{Event, EventKind, Header, Mode, Problem, SkipReason, Status};
use stead_core::graph::{Graph, NeedKind, Purpose, Role};
use stead_core::id::NodeId;
use stead_core::instance_path::InstancePath;
use stead_core::manifest::Lane;
use stead_core::report::Report;
use stead_core::run::policy::{Attempt, Pace, Policy, SinglePass, Verdict};
use stead_core::run::reconcile::{Reconciler, WhileProgress};
use stead_core::run::{ReplayError, Retention, Room, Run, Setup};
use stead_core::value::{Object, Value};
use stead_core::wait::{Curve, Wait};
use stead_testkit::Case;

/// A document, a machine, and how many calls may be under way.
struct Scene {
    /// True if instances that back off are woken at times.
    wakes: bool,
    graph: Arc<Graph>,
    setup: Setup,
    world: World,
    room: Room,
    text: String,
    number: u64,
}

/// The chances that a scene is drawn with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Luck {
    /// Everything goes right.
    Good,
    /// Sets fail or do nothing.
    Mixed,
}

fn scenes(seed: u64, luck: Luck) -> impl Iterator<Item = Scene> {
    some_scenes(seed, luck, 250)
}

fn some_scenes(seed: u64, luck: Luck, usual: usize) -> impl Iterator<Item = Scene> {
    let count = stead_testkit::times("STEAD_RUNS", usual);
    let first = stead_testkit::times("STEAD_FIRST_RUN", 0);
    (first as u64..count as u64).map(move |number| scene(seed, number, luck))
}

fn scene(seed: u64, number: u64, luck: Luck) -> Scene {
    let mut numbers = Numbers::of(seed, number);
    let mut writer = Writer { numbers: &mut numbers, text: "$schema: s\n".to_owned(), names: 0, room: 14 };
    writer.resources("", 0);
    let text = writer.text;
    let setup = setup(&text, Mode::APPLY);
    let graph = Arc::clone(&setup.graph);
    let world = world(&graph, &mut numbers, luck);
    let mut room = Room::of(1 + numbers.below(4));
    if numbers.below(2) == 0 {
        room.lanes.insert(Lane::Programs, 1 + numbers.below(2));
    }
    Scene { wakes: false, graph, setup, world, room, text, number }
}

/// A document made ready to run, as a process does that knows nothing of others.
fn setup(text: &str, mode: Mode) -> Setup {
    let prepared = prepare::prepare(&Case::of("main.yaml", text)).unwrap();
    let graph = prepared.graph.unwrap_or_else(|| panic!("{:?}\n{text}", prepared.findings));
    let digest = graph.digest(&prepared.sources).into();
    Setup { digest, ..Setup::new(Arc::new(graph), Arc::new(prepared.sources), Arc::new(seal::Legible), mode) }
}

/// Writes a random document. Needs lead to instances of a lower hidden rank, so that there is no cycle.
struct Writer<'a> {
    numbers: &'a mut Numbers,
    text: String,
    names: usize,
    room: usize,
}

impl Writer<'_> {
    fn resources(&mut self, indent: &str, depth: usize) {
        let count = (1 + self.numbers.below(if depth == 0 { 8 } else { 4 })).min(self.room);
        self.room -= count;
        if count == 0 {
            writeln!(self.text, "{indent}resources: []").unwrap();
            return;
        }
        writeln!(self.text, "{indent}resources:").unwrap();
        let members: Vec<Member> = (0..count).map(|_| self.member(depth)).collect();
        for member in &members {
            self.instance(indent, depth, member, &members);
        }
    }

    fn member(&mut self, depth: usize) -> Member {
        self.names += 1;
        let kinds =
            ["Test/Echo", "Test/Echo", "Test/Own", "Test/Native", "Microsoft.DSC/Group", "Microsoft.DSC/Assertion"];
        let kind = kinds[self.numbers.below(if depth == 2 { 4 } else { 6 })];
        Member {
            id: format!("{kind}:n{}", self.names),
            name: format!("n{}", self.names),
            kind,
            rank: self.numbers.next(),
        }
    }

    fn instance(&mut self, indent: &str, depth: usize, member: &Member, members: &[Member]) {
        let Member { name, kind, .. } = member;
        writeln!(self.text, "{indent}- name: {name}\n{indent}  type: {kind}").unwrap();
        let lower: Vec<&Member> = members.iter().filter(|other| other.rank < member.rank).collect();
        let needs: Vec<&&Member> = lower.iter().filter(|_| self.numbers.below(3) == 0).collect();
        if !needs.is_empty() {
            let ids: Vec<String> = needs.iter().map(|need| format!("'{}'", need.id)).collect();
            writeln!(self.text, "{indent}  dependsOn: [{}]", ids.join(", ")).unwrap();
        }
        self.directives(indent, member, members);
        match (self.numbers.below(10), lower.first()) {
            (0, _) => writeln!(self.text, "{indent}  condition: '[false()]'").unwrap(),
            (1, Some(other)) => {
                writeln!(self.text, "{indent}  condition: \"[stateChanged('{}')]\"", other.id).unwrap();
            }
            _ => {}
        }
        if kind.starts_with("Microsoft") {
            writeln!(self.text, "{indent}  properties:").unwrap();
            self.resources(&format!("{indent}    "), depth + 1);
            return;
        }
        // The results of a group say whether there was a set, and so differ from run to run.
        let other = lower.iter().rfind(|other| other.kind.starts_with("Test"));
        let value = match (self.numbers.below(5), other) {
            (0, Some(other)) => format!("\"[string(reference('{}'))]\"", other.id),
            _ => "new".to_owned(),
        };
        writeln!(self.text, "{indent}  properties: {{x: {value}}}").unwrap();
    }
}

impl Writer<'_> {
    fn directives(&mut self, indent: &str, member: &Member, members: &[Member]) {
        let mut written = Vec::new();
        for relation in ["requireAny", "onChanges", "onFailure", "before"] {
            let is_before = relation == "before";
            let others = members
                .iter()
                .filter(|other| if is_before { other.rank > member.rank } else { other.rank < member.rank });
            let (rare, some) = (self.numbers.below(6) != 0, 1 + self.numbers.below(2));
            let ids: Vec<String> = others
                .filter(|_| self.numbers.below(2) < some && !rare)
                .map(|other| format!("'{}'", other.id))
                .collect();
            if !ids.is_empty() {
                written.push(format!("{relation}: [{}]", ids.join(", ")));
            }
        }
        match self.numbers.below(12) {
            0 => written.push("exclusive: true".to_owned()),
            1 => written.push("exclusive: [disk]".to_owned()),
            2 => written.push("exclusive: [disk, network]".to_owned()),
            _ => {}
        }
        if !written.is_empty() {
            writeln!(self.text, "{indent}  directives: {{{}}}", written.join(", ")).unwrap();
        }
    }
}

struct Member {
    id: String,
    name: String,
    kind: &'static str,
    rank: u64,
}

fn world(graph: &Graph, numbers: &mut Numbers, luck: Luck) -> World {
    let mut things: BTreeMap<String, Thing> = BTreeMap::new();
    for (_, node) in graph.iter().filter(|(_, node)| node.role == Role::Instance) {
        let old = Value::Object(Object::from_iter([("x".to_owned(), "old".into())]));
        let set = match (luck, numbers.below(10)) {
            (Luck::Mixed, 0) => Set::Fails,
            (Luck::Mixed, 1) => Set::Nothing,
            (Luck::Mixed, 2) => Set::Partly,
            _ => Set::Works,
        };
        let paths = (0..numbers.below(3)).map(|_| PathBuf::from(format!("/{}", numbers.below(4)))).collect();
        let thing = Thing {
            actual: (numbers.below(2) == 0).then_some(old),
            set,
            failures: u32::from(luck == Luck::Mixed && numbers.below(12) == 0),
            restarts: if numbers.below(4) == 0 { vec![Restart::Service("web".to_owned())] } else { Vec::new() },
            touches: if numbers.below(8) == 0 { None } else { Some(paths) },
            job: (luck == Luck::Mixed && numbers.below(8) == 0)
                .then(|| Job::new(1 + u32::from(numbers.below(2) == 0), false)),
            ..Thing::default()
        };
        things.insert(node.name.to_string(), thing);
    }
    World(things)
}

/// All that comes before a node, by the definition.
fn ancestors(graph: &Graph, id: NodeId) -> BTreeSet<NodeId> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![id];
    let outward = std::iter::successors(graph.container(id), |id| graph.container(*id));
    waiting.extend(outward);
    while let Some(next) = waiting.pop() {
        for need in graph.node(next).needs.iter().map(|need| need.node) {
            if found.insert(need) {
                waiting.push(need);
                waiting.extend(within(graph, need));
            }
        }
        // What a needed group holds is settled before it.
        if found.contains(&next) {
            found.extend(within(graph, next));
        }
    }
    found
}

fn within(graph: &Graph, id: NodeId) -> Vec<NodeId> {
    match graph.node(id).role {
        Role::Container { inner, .. } => {
            let members = &graph.scope(inner).members;
            members.iter().flat_map(|member| std::iter::once(*member).chain(within(graph, *member))).collect()
        }
        Role::Instance => Vec::new(),
    }
}

/// The events of a run, and the machine and the calls under way behind each of them.
#[derive(Default)]
struct Log {
    events: Vec<Event>,
    snapshots: Vec<(World, Vec<Call>)>,
}

impl Scene {
    fn new_run(&self, mode: Mode) -> Run {
        Run::new(Setup { mode, ..self.setup.clone() })
    }

    /// Drives a run until it is finished or suspended, in a random order of answers.
    fn drive(&self, run: &mut Run, world: &mut World, log: &mut Log, room: &Room, signal: Option<(usize, EventKind)>) {
        let mut numbers = Numbers::of(self.number, 77);
        let mut chances = Numbers::of(self.number, 78);
        let mut driver = Driver {
            wake: &mut |count| (self.wakes && count > 0 && chances.below(3) == 0).then(|| chances.below(count)),
            room: room.clone(),
            pick: &mut |count| numbers.below(count),
            learn: &|key| panic!("nothing is asked of the machine: {key:?}"),
            signal,
            observe: &mut |_, world, in_flight, event| {
                log.events.push(event.clone());
                log.snapshots.push((world.clone(), in_flight.to_vec()));
            },
        };
        drive(run, world, &mut driver);
    }

    fn ended(&self, mode: Mode) -> (Run, World, Log) {
        let (mut run, mut world, mut log) = (self.new_run(mode), self.world.clone(), Log::default());
        self.drive(&mut run, &mut world, &mut log, &self.room, None);
        (run, world, log)
    }

    fn statuses(&self, run: &Run) -> Vec<(String, Option<Status>)> {
        self.graph.iter().map(|(id, node)| (node.name.to_string(), run.report().status(id).cloned())).collect()
    }

    /// Returns whether a need that must succeed did not.
    fn blocked(&self, run: &Run, id: NodeId) -> bool {
        let has_to = NeedKind::must_succeed;
        let mut needs = self.graph.node(id).needs.iter().filter(|need| has_to(need.kind));
        needs.any(|need| run.report().status(need.node).is_some_and(Status::blocks)) || self.has_no_alternative(run, id)
    }

    /// Returns whether one of several needs must succeed, and none can any more.
    fn has_no_alternative(&self, run: &Run, id: NodeId) -> bool {
        let needs = self.graph.node(id).needs.iter().filter(|need| need.kind == NeedKind::RequireAny);
        let ends: Vec<_> = needs.map(|need| run.report().status(need.node)).collect();
        !ends.is_empty() && ends.iter().all(|status| status.is_some_and(Status::blocks))
    }

    /// Returns whether all is known that an instance must know of its needs before it begins.
    fn can_begin(&self, run: &Run, id: NodeId) -> bool {
        let needs = &self.graph.node(id).needs;
        let status = |node| run.report().status(node);
        let settled = needs.iter().all(|need| need.kind == NeedKind::RequireAny || status(need.node).is_some());
        let mut any =
            needs.iter().filter(|need| need.kind == NeedKind::RequireAny).map(|need| status(need.node)).peekable();
        let one = any.peek().is_none() || any.any(|status| status.is_some_and(Status::succeeded));
        settled && one && !self.blocked(run, id)
    }

    /// Returns whether one of two instances excludes the other, by the text of their directives and of those around
    /// them.
    fn exclude(&self, one: NodeId, other: NodeId) -> bool {
        let stated = |id: NodeId| -> Vec<Option<String>> {
            let outward = std::iter::successors(Some(id), |id| self.graph.container(*id));
            let all = outward.filter_map(|id| self.graph.declaration(id).directives().exclusive.as_ref());
            let each = all.flat_map(|exclusive| match exclusive {
                Exclusive::All => vec![None],
                Exclusive::Names(names) => names.iter().map(|name| Some(format!("{:?}", name.literal()))).collect(),
            });
            each.collect()
        };
        let (ours, theirs) = (stated(one), stated(other));
        ours.contains(&None) || theirs.contains(&None) || ours.iter().any(|name| theirs.contains(name))
    }

    fn is_asserted(&self, id: NodeId) -> bool {
        let outward = std::iter::successors(self.graph.container(id), |id| self.graph.container(*id));
        let purposes = outward.map(|id| self.graph.node(id).role);
        purposes.into_iter().any(|role| matches!(role, Role::Container { purpose: Purpose::Assertion, .. }))
    }
}

const MODES: [Mode; 4] = [Mode::APPLY, Mode::PLAN, Mode::TEST, Mode::GET];

#[test]
fn every_instance_ends_once_and_only_in_order() {
    for scene in scenes(1, Luck::Mixed) {
        for mode in MODES {
            let (run, _, log) = scene.ended(mode);
            assert_order(&scene, mode, &log);
            assert_reasons(&scene, &run, &log);
        }
    }
}

/// Replays the events, looking at each what had to be the case before.
fn assert_order(scene: &Scene, mode: Mode, log: &Log) {
    let Scene { graph, text, number, .. } = scene;
    let mut run = scene.new_run(mode);
    let mut open = BTreeSet::new();
    for event in &log.events {
        let before = scene.statuses(&run);
        if let EventKind::CallStarted { instance, .. } | EventKind::ContainerOpened { instance } = &event.kind {
            assert!(scene.can_begin(&run, instance.node()), "{number}: {instance} begun too early\n{text}");
            let held = graph.container(instance.node()).is_none_or(|container| open.contains(&container));
            assert!(held, "{number}: begun before what contains it was opened\n{text}");
        }
        match &event.kind {
            EventKind::CallStarted { instance, operation: Operation::Set, .. } => {
                assert_eq!(mode.operation, Operation::Set, "{number}: a set where none is wanted");
                assert!(!scene.is_asserted(instance.node()), "{number}: a set within an assertion\n{text}");
            }
            EventKind::ContainerOpened { instance } => assert!(open.insert(instance.node()), "{number}: opened twice"),
            EventKind::Settled { instance, .. } => drop(open.remove(&instance.node())),
            _ => {}
        }
        run.apply(event).unwrap();
        for ((name, before), (_, after)) in before.iter().zip(scene.statuses(&run)) {
            assert!(before.is_none() || *before == after, "{number}: {name} was settled twice\n{text}");
        }
    }
    assert!(open.is_empty(), "{number}: what was opened is settled");
}

/// Asserts that every skipped instance has a reason that holds, and that everything else was begun.
fn assert_reasons(scene: &Scene, run: &Run, log: &Log) {
    let Scene { graph, text, number, .. } = scene;
    let begun = log.events.iter().filter_map(|event| match &event.kind {
        EventKind::CallStarted { instance, .. } | EventKind::ContainerOpened { instance } => Some(instance.node()),
        _ => None,
    });
    let begun: BTreeSet<NodeId> = begun.collect();
    let status = |id: NodeId| run.report().status(id).unwrap();
    for (id, node) in graph.iter() {
        let is_any = |kind, wanted: fn(&Status) -> bool| {
            node.needs.iter().any(|need| need.kind == kind && wanted(status(need.node)))
        };
        let holds = match status(id) {
            Status::Skipped(SkipReason::Need(need)) => {
                node.needs.iter().any(|each| each.node == need.node())
                    && status(need.node()).blocks()
                    && scene.blocked(run, id)
            }
            Status::Skipped(SkipReason::Container(container)) => {
                let ended = status(container.node());
                graph.container(id) == Some(container.node())
                    && matches!(ended, Status::Skipped(_) | Status::Failed | Status::Unknown(_))
            }
            left_out @ Status::Skipped(reason)
                if !reason.blocks() && graph.container(id).is_some_and(|container| status(container) == left_out) =>
            {
                true
            }
            Status::Skipped(SkipReason::Condition) => graph.declaration(id).condition.is_some(),
            Status::Skipped(SkipReason::NoChange) => !is_any(NeedKind::OnChanges, |status| *status == Status::Changed),
            Status::Skipped(SkipReason::NoFailure) => !is_any(NeedKind::OnFailure, Status::blocks),
            Status::Skipped(SkipReason::Cancelled) => false,
            Status::Unknown(_) => !scene.blocked(run, id),
            _ if is_finding(run, id) => !scene.blocked(run, id),
            _ => begun.contains(&id) && !scene.blocked(run, id),
        };
        assert!(holds, "{number}: {} is {:?} without a reason\n{text}", node.name, status(id));
    }
}

#[test]
fn what_excludes_each_other_is_never_under_way_together() {
    for scene in scenes(1, Luck::Mixed) {
        for mode in MODES {
            let (_, _, log) = scene.ended(mode);
            for (_, in_flight) in &log.snapshots {
                let ids: Vec<NodeId> = in_flight.iter().map(|call| call.instance.node()).collect();
                for (at, id) in ids.iter().enumerate() {
                    let others = ids.iter().enumerate().filter(|(other, _)| *other != at);
                    let conflict = others.map(|(_, other)| *other).find(|other| scene.exclude(*id, *other));
                    assert_eq!(conflict, None, "{}: beside {id:?}\n{}", scene.number, scene.text);
                }
            }
        }
    }
}

fn is_finding(run: &Run, id: NodeId) -> bool {
    matches!(run.report().record(id).problem.as_deref(), Some(Problem::Finding(_)))
}

#[test]
fn one_at_a_time_goes_in_the_order_of_the_graph() {
    for scene in scenes(2, Luck::Mixed) {
        for mode in MODES {
            let (mut run, mut world, mut log) = (scene.new_run(mode), scene.world.clone(), Log::default());
            scene.drive(&mut run, &mut world, &mut log, &Room::of(1), None);
            let mut asked: Vec<NodeId> = log
                .events
                .iter()
                .filter_map(|event| match &event.kind {
                    EventKind::CallStarted { instance, .. } => Some(instance.node()),
                    _ => None,
                })
                .collect();
            asked.dedup();
            let rank = |id: &NodeId| scene.graph.order.iter().position(|other| other == id);
            assert!(asked.windows(2).all(|pair| rank(&pair[0]) < rank(&pair[1])), "{}\n{}", scene.number, scene.text);
            // However many at a time, it comes to the same.
            assert_eq!(scene.statuses(&run), scene.statuses(&scene.ended(mode).0), "{}\n{}", scene.number, scene.text);
        }
    }
}

/// A scene in which what fails once does so at every break, and with a policy that outlasts what heals.
fn durable(mut scene: Scene) -> Scene {
    if scene.number.is_multiple_of(2) {
        scene.setup.policy = Arc::new(reconciler(scene.number / 2, 6, 6));
        let is_detached = scene.number.is_multiple_of(3);
        // What is asserted is tested once: what fails once only would not fail again behind a break.
        let asserted = scene.graph.iter().filter(|(id, _)| scene.is_asserted(*id));
        let asserted: Vec<String> = asserted.map(|(_, node)| node.name.to_string()).collect();
        let asserted = scene.world.0.iter_mut().filter(|(name, _)| asserted.contains(*name));
        asserted.for_each(|(_, thing)| thing.failures = 0);
        let jobs = scene.world.0.values_mut().filter_map(|thing| thing.job.as_mut());
        jobs.for_each(|job| *job = Job::new(job.length, is_detached));
    } else {
        // A machine that fails once only would fail at another place.
        scene.world.0.values_mut().for_each(|thing| thing.failures = if thing.failures > 0 { u32::MAX } else { 0 });
    }
    scene
}

const WAITS: [Wait; 2] = [
    Wait { curve: Curve::Static(Duration::from_secs(5)), cap: Duration::MAX, jitter: 0.0 },
    Wait {
        curve: Curve::Exponential { wait: Duration::from_secs(1), multiplier: 2.0 },
        cap: Duration::from_secs(10),
        jitter: 0.0,
    },
];

/// A reconciler that gives up after so many runs; which wait and which pace it has depends on the number of the scene.
fn reconciler(number: u64, max_unchanged: u32, max_re_runs: u32) -> Reconciler {
    let made =
        if number.is_multiple_of(3) { Reconciler::basic(max_unchanged) } else { Reconciler::continuous(max_unchanged) };
    let rule = Arc::new(WhileProgress { max_unchanged, patient: false });
    let wait = Some(WAITS[usize::from(number.is_multiple_of(2))]);
    Reconciler { rule, wait, max_re_runs, ..made }
}

/// Returns the events that another process reads of a journal.
fn stored(journal: &[Event]) -> Vec<Event> {
    let lines: Vec<String> = journal.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
    let read: Vec<Event> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(read, journal, "what is read is what was written");
    read
}

#[test]
fn a_power_cut_after_any_event_changes_nothing() {
    for scene in some_scenes(3, Luck::Mixed, 30).map(durable) {
        let (whole, end, log) = scene.ended(Mode::APPLY);
        let anew = Setup { policy: Arc::clone(&scene.setup.policy), ..setup(&scene.text, Mode::APPLY) };
        assert_eq!(anew.digest, scene.setup.digest);
        for at in 0..=log.events.len() {
            for effect in [Effect::Lost, Effect::Done] {
                let (journal, world) = cut(&log, &scene.world, at, effect);
                let (again, world, rest) = resumed(&scene, &anew, &journal, world);
                let mut interrupted = interrupted(&journal);
                assert_same(&scene, (&whole, &end), (&again, &world), &interrupted, at);
                // And cut once more, somewhere behind.
                let second = (rest.events.len() * (at + 1) / (at + 2)).max(1);
                if rest.events.is_empty() {
                    continue;
                }
                let (rest, world) = cut(&rest, &World::default(), second, effect);
                let journal = [journal, rest].concat();
                interrupted.extend(self::interrupted(&journal));
                let (again, world, _) = resumed(&scene, &anew, &journal, world);
                assert_same(&scene, (&whole, &end), (&again, &world), &interrupted, at);
            }
        }
    }
}

/// The effect of the calls that were under way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// They had not begun.
    Lost,
    /// They had come to their end; only the answer was lost.
    Done,
}

/// Journal and machine as a power cut leaves them after so many events.
fn cut(log: &Log, before: &World, at: usize, effect: Effect) -> (Vec<Event>, World) {
    let journal = log.events[..at].to_vec();
    let Some((world, in_flight)) = at.checked_sub(1).map(|last| &log.snapshots[last]) else {
        return (journal, before.clone());
    };
    let mut world = world.clone();
    // What is under way and not announced yet was not called.
    let announced = interrupted(&journal);
    for call in in_flight.iter().filter(|call| effect == Effect::Done && announced.contains(&call.instance.node())) {
        world.answer(call);
    }
    (journal, world)
}

/// The instances whose calls had been started and not ended.
fn interrupted(journal: &[Event]) -> BTreeSet<NodeId> {
    let mut open = BTreeSet::new();
    for event in journal {
        match &event.kind {
            EventKind::CallStarted { instance, .. } => drop(open.insert(instance.node())),
            EventKind::CallEnded { instance, .. } => drop(open.remove(&instance.node())),
            _ => {}
        }
    }
    open
}

fn resumed(scene: &Scene, anew: &Setup, journal: &[Event], mut world: World) -> (Run, World, Log) {
    let mut run = Run::resume(anew.clone(), &stored(journal)).unwrap();
    let mut log = Log::default();
    scene.drive(&mut run, &mut world, &mut log, &scene.room, None);
    assert_tested_again(scene, journal, &log);
    (run, world, log)
}

/// Nobody knows how far a call came that was cut off: whatever it was, the instance is looked at again before it is set.
fn assert_tested_again(scene: &Scene, journal: &[Event], log: &Log) {
    let mut open = interrupted(journal);
    for event in &log.events {
        if let EventKind::CallStarted { instance, operation, .. } = &event.kind
            && open.remove(&instance.node())
        {
            let by_itself = scene.graph.node(instance.node()).manifest.capabilities.implements_pretest;
            assert!(by_itself || *operation == Operation::Test, "{}\n{}", scene.number, scene.text);
        }
    }
    assert!(open.is_empty(), "{}: what was cut off is not called again\n{}", scene.number, scene.text);
}

/// A run with a break has the same outcome as one without. Of a resource that only tests for itself nobody knows whether an
/// interrupted set changed anything: it counts as changed, and so may be visible to what waits for its changes. What failed in
/// the call that was interrupted, and fails no more, succeeds, and so does work that came to its end in it.
fn assert_same(scene: &Scene, whole: (&Run, &World), again: (&Run, &World), interrupted: &BTreeSet<NodeId>, at: usize) {
    // A set that fails after work that outlasts a call begins that work anew: whether the last try finds it unfinished or
    // failed depends on how many there were.
    let fails_late = |id: NodeId| {
        within(&scene.graph, id).into_iter().chain([id]).any(|id| {
            let thing = scene.world.0.get(&*scene.graph.node(id).name);
            thing.is_some_and(|thing| thing.job.is_some() && thing.set != Set::Works)
        })
    };
    let status = |run: &Run, id: NodeId| match run.report().status(id) {
        Some(Status::Pending) if fails_late(id) => Some(Status::Failed),
        status => status.cloned(),
    };
    let changes_unseen = |id: &NodeId| {
        scene.graph.node(*id).manifest.capabilities.implements_pretest
            && status(whole.0, *id) == Some(Status::InState)
            && status(again.0, *id) == Some(Status::Changed)
    };
    // A failure that passes does so as well if its answer is lost, and work goes on.
    let passed_unseen = |id: &NodeId| {
        let thing = scene.world.0.get(&*scene.graph.node(*id).name);
        let passes = thing.is_some_and(|thing| match status(whole.0, *id) {
            Some(Status::Failed) => thing.failures > 0,
            Some(Status::Pending) => thing.job.is_some(),
            _ => false,
        });
        passes && status(again.0, *id) != status(whole.0, *id)
    };
    let is_unclear = |id: &NodeId| changes_unseen(id) || passed_unseen(id);
    let unclear: BTreeSet<NodeId> = interrupted.iter().copied().filter(is_unclear).collect();
    let affected = affected(&scene.graph, unclear);
    for (id, node) in scene.graph.iter().filter(|(id, _)| !affected.contains(id)) {
        let context = || format!("{}: {} after {at} events\n{}", scene.number, node.name, scene.text);
        assert_eq!(status(again.0, id), status(whole.0, id), "{}", context());
        let state = |world: &World| world.0.get(&*node.name).and_then(|thing| thing.actual.clone());
        let (expected, found) = (state(whole.1), state(again.1));
        assert!(
            expected == found || scene.world.0.get(&*node.name).is_none_or(|thing| thing.actual.is_none()),
            "{}",
            context()
        );
    }
    assert_truthful(scene, again.0, again.1);
}

/// Asserts that an instance reported to be in its desired state was not changed: no notification is lost.
fn assert_truthful(scene: &Scene, run: &Run, world: &World) {
    for (id, node) in scene.graph.iter() {
        let before = scene.world.0.get(&*node.name).and_then(|thing| thing.actual.as_ref());
        let after = world.0.get(&*node.name).and_then(|thing| thing.actual.as_ref());
        if let (Some(before), Some(Status::InState)) = (before, run.report().status(id)) {
            assert_eq!(Some(before), after, "{}: {} has changed\n{}", scene.number, node.name, scene.text);
        }
    }
}

/// Returns the instances that depend on one of these in any way, and these themselves.
fn affected(graph: &Graph, mut found: BTreeSet<NodeId>) -> BTreeSet<NodeId> {
    loop {
        let before = found.len();
        for (id, node) in graph.iter() {
            let needs = node.needs.iter().any(|need| found.contains(&need.node));
            let container = graph.container(id).is_some_and(|container| found.contains(&container));
            if needs || container || within(graph, id).iter().any(|member| found.contains(member)) {
                found.insert(id);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

#[test]
fn a_suspended_run_resumed_equals_one_that_was_not() {
    for scene in some_scenes(9, Luck::Mixed, 30).map(durable) {
        let (whole, end, log) = scene.ended(Mode::APPLY);
        for after in 0..log.events.len() {
            let (mut run, mut world, mut log) = (scene.new_run(Mode::APPLY), scene.world.clone(), Log::default());
            let signal = Some((after, EventKind::Suspended));
            scene.drive(&mut run, &mut world, &mut log, &scene.room, signal);
            let from = log.events.iter().position(|event| matches!(event.kind, EventKind::Suspended));
            let begun = log.events[from.unwrap_or(log.events.len())..].iter();
            let begun = begun.filter(|event| matches!(event.kind, EventKind::CallStarted { .. })).count();
            assert_eq!(begun, 0, "{}: begun after it was suspended\n{}", scene.number, scene.text);
            let (again, world, _) = resumed(&scene, &setup_of(&scene), &log.events, world);
            assert_same(&scene, (&whole, &end), (&again, &world), &BTreeSet::new(), after);
        }
    }
}

/// A value that a pending set handed back is passed to the next one, also after a break: work that goes on by itself
/// is not begun twice.
#[test]
fn work_that_outlasts_a_call_is_started_once() {
    let mut started = 0;
    for scene in some_scenes(14, Luck::Mixed, 60).map(durable).filter(|scene| scene.number.is_multiple_of(2)) {
        let (_, whole, log) = scene.ended(Mode::APPLY);
        let (mut run, mut world) = (scene.new_run(Mode::APPLY), scene.world.clone());
        let mut first = Log::default();
        let signal = Some((log.events.len() / 2, EventKind::Suspended));
        scene.drive(&mut run, &mut world, &mut first, &scene.room, signal);
        let (_, resumed, _) = resumed(&scene, &setup_of(&scene), &first.events, world);
        for world in [whole, resumed] {
            // A set that failed begins anew, and rightly.
            let jobs = world.0.iter().filter(|(_, thing)| thing.set == Set::Works);
            for (name, job) in jobs.filter_map(|(name, thing)| Some((name, thing.job.as_ref()?))) {
                assert!(job.started() <= 1, "{}: {name} {} times\n{}", scene.number, job.started(), scene.text);
                started += job.started();
            }
        }
    }
    assert!(started > 0, "something takes longer than a call");
}

/// Returns the setup of the same document, read by another process.
fn setup_of(scene: &Scene) -> Setup {
    scene.setup.clone()
}

#[test]
fn a_report_does_not_depend_on_the_order_of_delivery() {
    for scene in scenes(10, Luck::Mixed).map(durable) {
        let (run, _, log) = scene.ended(Mode::APPLY);
        let mut numbers = Numbers::of(scene.number, 5);
        let mut delivered: Vec<Event> = stored(&log.events);
        for _ in 0..log.events.len() {
            delivered.push(log.events[numbers.below(log.events.len())].clone());
        }
        for at in (1..delivered.len()).rev() {
            delivered.swap(at, numbers.below(at + 1));
        }
        assert!(Report::of(&delivered) == *run.report(), "{}\n{}", scene.number, scene.text);
    }
}

/// Answers that nobody asks for any more can be dropped: all that happens is the same, and all that is known of what
/// changed.
#[test]
fn dropped_answers_change_nothing() {
    let mut dropped = 0;
    for scene in scenes(26, Luck::Mixed).map(durable) {
        for mode in [Mode::APPLY, Mode::PLAN, Mode::TEST] {
            let (whole, _, log) = scene.ended(mode);
            let setup = Setup { mode, retention: Retention::Changes, ..scene.setup.clone() };
            let (mut run, mut world, mut events) = (Run::new(setup), scene.world.clone(), Log::default());
            scene.drive(&mut run, &mut world, &mut events, &scene.room, None);
            assert_eq!(log.events, events.events, "{}\n{}", scene.number, scene.text);
            assert_eq!((whole.totals(), whole.outputs()), (run.totals(), run.outputs()));
            for (id, _) in scene.graph.iter() {
                let (kept, left) = (whole.report().record(id), run.report().record(id));
                let is_dropped = kept.response.is_some() && left.response.is_none();
                assert!(!is_dropped || kept.status() == Some(&Status::InState), "{}\n{}", scene.number, scene.text);
                assert!(is_dropped || kept == left, "{}\n{}", scene.number, scene.text);
                dropped += usize::from(is_dropped);
            }
        }
    }
    assert!(dropped > 0, "something is dropped");
}

#[test]
fn a_journal_that_is_not_whole_is_refused() {
    for scene in scenes(11, Luck::Mixed).map(durable) {
        let (_, _, log) = scene.ended(Mode::APPLY);
        let resume = |journal: &[Event]| Run::resume(setup_of(&scene), &stored(journal)).map(|_| ());
        for at in 0..log.events.len() {
            assert_eq!(resume(&log.events[..at]), Ok(()), "what a crash leaves is resumed");
            let mut doubled = log.events.clone();
            doubled.insert(at, doubled[at].clone());
            assert!(matches!(resume(&doubled), Err(ReplayError::Sequence { .. })), "{}, doubled {at}", scene.number);
            if at + 1 < log.events.len() {
                let mut dropped = log.events.clone();
                dropped.remove(at);
                assert!(
                    matches!(resume(&dropped), Err(ReplayError::Sequence { .. })),
                    "{}, dropped {at}",
                    scene.number
                );
                let mut swapped = log.events.clone();
                swapped.swap(at, at + 1);
                assert!(
                    matches!(resume(&swapped), Err(ReplayError::Sequence { .. })),
                    "{}, swapped {at}",
                    scene.number
                );
                for journal in [dropped, swapped, doubled] {
                    // Whoever numbers them anew gets an error or a run that goes on, but no panic.
                    let _ = resume(&numbered(journal));
                }
            }
        }
    }
}

fn numbered(journal: Vec<Event>) -> Vec<Event> {
    (0..).zip(journal).map(|(sequence, event)| Event { sequence, ..event }).collect()
}

#[test]
fn a_journal_of_something_else_is_refused() {
    for scene in scenes(12, Luck::Mixed) {
        let (_, _, log) = scene.ended(Mode::APPLY);
        let resume = |setup: Setup, journal: &[Event]| Run::resume(setup, journal).map(|_| ());
        let other = setup(&format!("{}# other\n", scene.text), Mode::APPLY);
        assert_eq!(resume(other, &log.events), Err(ReplayError::Foreign { what: "document" }));
        let planned = Setup { mode: Mode::PLAN, ..setup_of(&scene) };
        assert_eq!(resume(planned, &log.events), Err(ReplayError::Foreign { what: "operation" }));
        let mut newer = log.events.clone();
        if let EventKind::Began(header) = &newer[0].kind {
            newer[0].kind = EventKind::Began(Arc::new(Header { version: header.version + 1, ..(**header).clone() }));
        }
        assert!(matches!(resume(setup_of(&scene), &newer), Err(ReplayError::Version { .. })));
    }
}

#[test]
fn retries_keep_to_their_policy() {
    let mut scheduled = 0;
    for mut scene in scenes(13, Luck::Mixed) {
        let (max_repeats, max_retries) = (1 + (scene.number % 3) as u32, 1 + (scene.number % 4) as u32);
        let reconciler = reconciler(scene.number, max_repeats, max_retries);
        let policy: Arc<dyn Policy> =
            if scene.number.is_multiple_of(5) { Arc::new(SinglePass) } else { Arc::new(reconciler.clone()) };
        scene.setup.policy = policy;
        let (_, _, log) = scene.ended(Mode::APPLY);
        let mut retries: BTreeMap<NodeId, (u32, jiff::Timestamp)> = BTreeMap::new();
        let mut realised = BTreeSet::new();
        for event in &log.events {
            let Some(id) = event.kind.instance().map(InstancePath::node) else { continue };
            match &event.kind {
                EventKind::RetryScheduled { until, .. } => {
                    scheduled += 1;
                    let entry = retries.entry(id).or_default();
                    let wait = reconciler.wait.unwrap().after(entry.0, || 0.0);
                    let expected = event.at + jiff::SignedDuration::try_from(wait).unwrap();
                    if reconciler.pace == Pace::Each {
                        assert_eq!(*until, expected, "{}\n{}", scene.number, scene.text);
                    }
                    *entry = (entry.0 + 1, *until);
                    assert!(entry.0 <= max_retries, "{}: tried too often\n{}", scene.number, scene.text);
                    assert!(!scene.number.is_multiple_of(5), "{}: a single pass tries again", scene.number);
                }
                EventKind::CallStarted { .. } => {
                    assert!(
                        retries.get(&id).is_none_or(|(_, until)| event.at >= *until),
                        "{}: too early",
                        scene.number
                    );
                    assert!(!realised.contains(&id), "{}: called again after it succeeded", scene.number);
                }
                EventKind::CallEnded { response, .. } => {
                    if let Outcome::Changed(changed) = &response.outcome
                        && changed.verified == Verification::InState
                    {
                        realised.insert(id);
                    }
                }
                _ => {}
            }
        }
    }
    assert!(scheduled > 0, "something is tried again");
}

/// Flaky, slow and never-ending things, under reconcilers of every pace and patience.
fn pending_scenes() -> impl Iterator<Item = (Scene, Reconciler, WhileProgress)> {
    some_scenes(21, Luck::Mixed, 3000).map(|mut scene| {
        let mut numbers = Numbers::of(21, scene.number);
        for thing in scene.world.0.values_mut() {
            thing.failures = if numbers.below(2) == 0 { u32::try_from(numbers.below(9)).unwrap() } else { 0 };
            let length = [1, 2, 5, 9, u32::MAX][numbers.below(5)];
            let counts = numbers.below(2) == 0;
            thing.job = (numbers.below(3) == 0).then(|| Job::new(length, numbers.below(2) == 0).counting(counts));
            thing.lacking = if numbers.below(3) == 0 { u32::try_from(numbers.below(6)).unwrap() } else { 0 };
        }
        let rule =
            WhileProgress { max_unchanged: u32::try_from(numbers.below(5)).unwrap(), patient: numbers.below(2) == 0 };
        let max_re_runs = [0, 1, 3, 7, 40][numbers.below(5)];
        let made = if numbers.below(2) == 0 { Reconciler::basic(0) } else { Reconciler::continuous(0) };
        let wait = (numbers.below(2) == 0).then(|| WAITS[numbers.below(2)]);
        let reconciler = Reconciler { rule: Arc::new(rule), wait, max_re_runs, ..made };
        scene.setup.policy = Arc::new(reconciler.clone());
        scene.wakes = true;
        (scene, reconciler, rule)
    })
}

/// The events of one instance, by the definitions of progress and of a re-run.
#[derive(Default)]
struct Pending {
    last: Option<Arc<Response>>,
    unchanged: u32,
    re_runs: u32,
    until: Option<jiff::Timestamp>,
    /// When it was to be run again, if it was woken before.
    due: Option<jiff::Timestamp>,
    woken: Option<Arc<Response>>,
    /// How many calls of others had changed something when it was last tried.
    changes_before: u32,
    /// It is tried because something has changed: that takes none of its other tries.
    is_extra: bool,
    was_set: bool,
}

impl Pending {
    fn tried(&mut self, response: &Arc<Response>) {
        if self.due.is_some() {
            self.woken = Some(Arc::clone(response));
            return;
        }
        let is_same = self.last.as_ref().is_some_and(|last| match (&last.outcome, &response.outcome) {
            (Outcome::Failed(_), Outcome::Failed(_)) => true,
            (Outcome::Changed(one), Outcome::Changed(other)) => {
                (&one.changed, &one.after) == (&other.changed, &other.after)
            }
            (Outcome::Pending(one), Outcome::Pending(other)) => one.data == other.data,
            _ => false,
        });
        let is_counted = !std::mem::take(&mut self.is_extra);
        self.unchanged = if is_same { self.unchanged + u32::from(is_counted) } else { 0 };
        self.last = Some(Arc::clone(response));
    }
}

impl Pending {
    /// Returns whether something is missing or in the way.
    fn is_blocked(&self) -> bool {
        self.last.as_ref().is_some_and(|last| matches!(&last.outcome, Outcome::Failed(failure) if failure.is_blocked()))
    }

    /// A run that was woken and ended only when it was due counts as the one that was due.
    fn overdue(&mut self, now: jiff::Timestamp) {
        if let Some(due) = self.due.take() {
            assert!(now >= due, "what was due at {due} is forgotten at {now}");
            let response = self.woken.take().expect("it was tried");
            self.tried(&response);
        }
    }
}

/// Returns whether a test found a difference, so that a set follows.
fn differs(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Tested(tested) if !tested.in_desired_state)
}

/// What is known of a run of a scene from its events so far.
struct Watch<'s> {
    scene: &'s Scene,
    reconciler: &'s Reconciler,
    rule: WhileProgress,
    known: BTreeMap<NodeId, Pending>,
    batches: BTreeSet<jiff::Timestamp>,
    started: u32,
    changes: u32,
    is_stirred: bool,
}

/// How often each thing was seen.
#[derive(Default)]
struct Seen {
    again: u32,
    extra: u32,
    given_up: u32,
    at_once: u32,
    hopeless: u32,
}

impl Watch<'_> {
    fn is_together(&self) -> bool {
        self.reconciler.pace == Pace::Together
    }

    fn instance(&mut self, id: NodeId) -> &mut Pending {
        self.known.entry(id).or_default()
    }

    fn is_exhausted(&self, id: NodeId) -> bool {
        let re_runs = if self.is_together() { self.started } else { self.known[&id].re_runs };
        re_runs >= self.reconciler.max_re_runs
    }

    fn is_over(&self, id: NodeId) -> bool {
        let one = &self.known[&id];
        let is_working = matches!(one.last.as_ref().map(|last| &last.outcome), Some(Outcome::Pending(_)));
        self.is_exhausted(id) || one.unchanged >= self.rule.max_unchanged && !(self.rule.patient && is_working)
    }

    fn waits_for_others(&self, one: &Pending) -> bool {
        self.reconciler.gives_up_blocked() && one.is_blocked()
    }

    /// Returns whether nothing of the run can bring what it lacks.
    fn is_hopeless(&self, id: NodeId, in_flight: &[Call]) -> bool {
        let is_run_again = |other: &Pending| other.until.is_some() && !self.waits_for_others(other);
        let is_busy = !in_flight.is_empty() || self.is_stirred || self.known.values().any(is_run_again);
        self.waits_for_others(&self.known[&id]) && !is_busy
    }

    fn ended(&mut self, id: NodeId, response: &Arc<Response>) {
        self.changes += u32::from(matches!(response.outcome, Outcome::Changed(_)));
        let is_blocked = matches!(&response.outcome, Outcome::Failed(failure) if failure.is_blocked());
        self.is_stirred |= self.known[&id].was_set && !is_blocked;
        self.instance(id).tried(response);
    }

    fn scheduled(&mut self, id: NodeId, until: jiff::Timestamp, event: &Event, in_flight: &[Call], seen: &mut Seen) {
        let name = format!("{}: {}\n{}", self.scene.number, self.scene.graph.node(id).name, self.scene.text);
        seen.again += 1;
        self.instance(id).overdue(event.at);
        let is_extra = self.waits_for_others(&self.known[&id]) && self.known[&id].changes_before < self.changes;
        if is_extra {
            seen.at_once += 1;
            assert!(until == event.at && !self.is_exhausted(id), "{name} is tried at once");
        } else {
            assert!(!self.is_over(id), "{name} is run again");
        }
        let instance = self.instance(id);
        (instance.is_extra, instance.until) = (is_extra, Some(until));
        instance.re_runs += 1;
        if self.is_together() {
            assert!(in_flight.is_empty(), "{name}: something is under way");
            let mut others = self.known.values().filter_map(|other| other.until);
            assert!(others.all(|other| other == until), "{name}: another batch waits");
        }
    }

    fn started(&mut self, id: NodeId, operation: Operation) {
        let changes = self.changes;
        let instance = self.instance(id);
        instance.changes_before = changes;
        instance.was_set |= operation == Operation::Set;
        if let Some(until) = instance.until.take() {
            self.started += u32::from(self.batches.insert(until));
        }
    }

    fn failed(&mut self, id: NodeId, event: &Event, in_flight: &[Call], seen: &mut Seen) {
        self.instance(id).overdue(event.at);
        // What fails here exits with a code or lacks something, which can heal.
        let heals = self.known[&id].last.is_some() && !self.scene.is_asserted(id);
        let is_hopeless = self.is_hopeless(id, in_flight);
        seen.given_up += u32::from(heals);
        seen.hopeless += u32::from(is_hopeless);
        let name = &self.scene.graph.node(id).name;
        let is_right = !heals || self.is_over(id) || is_hopeless;
        assert!(is_right, "{}: {name}\n{} is given up too early", self.scene.number, self.scene.text);
    }
}

#[test]
fn a_reconciler_ends_exactly_when_it_says() {
    let mut seen = Seen::default();
    for (scene, reconciler, rule) in pending_scenes() {
        let (run, _, log) = scene.ended(Mode::APPLY);
        let (known, batches) = (BTreeMap::new(), BTreeSet::new());
        let (scene, reconciler) = (&scene, &reconciler);
        let mut watch = Watch { scene, reconciler, rule, known, batches, started: 0, changes: 0, is_stirred: false };
        for (event, (_, in_flight)) in log.events.iter().zip(&log.snapshots) {
            let Some(id) = event.kind.instance().map(InstancePath::node) else { continue };
            let instance = watch.instance(id);
            match &event.kind {
                EventKind::CallEnded { response, .. } if !differs(&response.outcome) => watch.ended(id, response),
                EventKind::Woken { .. } => instance.due = instance.due.or(instance.until),
                // A run before its time is an extra one: what was to happen, happens.
                EventKind::RetryScheduled { until, .. } if instance.due == Some(*until) => {
                    seen.extra += 1;
                    (instance.due, instance.until) = (None, Some(*until));
                }
                EventKind::RetryScheduled { until, .. } => watch.scheduled(id, *until, event, in_flight, &mut seen),
                EventKind::CallStarted { operation, .. } => watch.started(id, *operation),
                EventKind::Settled { status: Status::Failed | Status::Pending, problem: None, .. } => {
                    watch.failed(id, event, in_flight, &mut seen);
                }
                EventKind::Settled { status: Status::Skipped(SkipReason::Need(need)), .. } => {
                    let blocks = run.report().status(need.node()).is_some_and(Status::blocks);
                    assert!(blocks || scene.has_no_alternative(&run, id), "{}: {id:?} starves", scene.number);
                }
                _ => {}
            }
        }
    }
    let Seen { again, extra, given_up, at_once, hopeless } = seen;
    assert!([again, extra, given_up, at_once, hopeless].iter().all(|times| *times > 0));
}

/// The dependencies of each instance.
type Shape = fn(usize) -> String;

#[test]
fn a_hundred_thousand_instances_take_linear_time() {
    let count = 100_000;
    let shapes: [(&str, Shape); 2] = [
        ("independent", |_| String::new()),
        ("a chain", |at| at.checked_sub(1).map(|need| format!("'Test/Echo:{need}'")).unwrap_or_default()),
    ];
    for (shape, need) in shapes {
        let mut text = "$schema: s\nresources:\n".to_owned();
        for at in 0..count {
            writeln!(text, "- {{type: Test/Echo, name: '{at}', dependsOn: [{}]}}", need(at)).unwrap();
        }
        let steps = steps(Mode::APPLY, &text, World::default());
        assert!(steps <= 4 * count, "{shape}: {steps} steps");
    }
}

/// An instance that lacks something is looked at once more when all others are done, and not whenever one of them is.
#[test]
fn many_that_are_blocked_take_little() {
    let count = 30_000;
    let mut text = "$schema: s\nresources:\n".to_owned();
    let mut world = World::default();
    for at in 0..count {
        writeln!(text, "- {{type: Test/Echo, name: '{at}'}}").unwrap();
        world.0.insert(at.to_string(), Thing { lacking: 9, ..Thing::default() });
    }
    let asked = Arc::new(AtomicUsize::new(0));
    let policy = Counting { inner: Reconciler::continuous(3), asked: Arc::clone(&asked) };
    let mut run = Run::new(Setup { policy: Arc::new(policy), ..setup(&text, Mode::APPLY) });
    drive_plainly(&mut run, &mut world);
    let asked = asked.load(Ordering::Relaxed);
    assert!(asked <= 8 * count, "asked {asked} times");
}

/// A reconciler that counts how often it is asked for what decides about instances that are blocked.
struct Counting {
    inner: Reconciler,
    asked: Arc<AtomicUsize>,
}

impl Policy for Counting {
    fn after(&self, attempt: &Attempt<'_>) -> Verdict {
        self.inner.after(attempt)
    }

    fn gives_up_blocked(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.inner.gives_up_blocked()
    }
}

/// An instance that waits for any of many looks at each a few times only.
#[test]
fn many_alternatives_that_fail_take_little() {
    let count = 500;
    let mut text = "$schema: s\nresources:\n".to_owned();
    let mut world = World::default();
    for at in 0..count {
        writeln!(text, "- {{type: Test/Echo, name: '{at}'}}").unwrap();
        world.0.insert(at.to_string(), Thing { failures: 1, ..Thing::default() });
    }
    let ids: Vec<String> = (0..count).map(|at| format!("'Test/Echo:{at}'")).collect();
    writeln!(text, "- {{type: Test/Echo, name: last, directives: {{requireAny: [{}]}}}}", ids.join(", ")).unwrap();
    assert!(steps(Mode::APPLY, &text, world) <= 4 * count);
}

/// An instance that is for the failure of the last one of a chain does not look at the whole chain.
#[test]
fn many_that_are_for_a_failure_take_little() {
    let count = 10_000;
    let mut text = "$schema: s\nresources:\n- {type: Test/Echo, name: '0'}\n".to_owned();
    for at in 1..count {
        writeln!(text, "- {{type: Test/Echo, name: '{at}', dependsOn: ['Test/Echo:{}']}}", at - 1).unwrap();
    }
    for at in 0..count {
        let directives = format!("{{onFailure: ['Test/Echo:{}']}}", count - 1);
        writeln!(text, "- {{type: Test/Echo, name: 'r{at}', directives: {directives}}}").unwrap();
    }
    assert!(steps(Mode::PLAN, &text, World::default()) <= 8 * count);
}

/// How often a run is asked what comes next.
fn steps(mode: Mode, text: &str, mut world: World) -> usize {
    let mut run = Run::new(setup(text, mode));
    drive_plainly(&mut run, &mut world)
}

fn drive_plainly(run: &mut Run, world: &mut World) -> usize {
    let mut driver = Driver {
        room: Room { total: 8, lanes: [(Lane::Programs, 2)].into() },
        pick: &mut |_| 0,
        learn: &|_| Ok(Value::Null),
        signal: None,
        wake: &mut |_| None,
        observe: &mut |_, _, _, _| {},
    };
    drive(run, world, &mut driver)
}

#[test]
fn a_second_run_sets_nothing() {
    let mut converged = 0;
    for scene in scenes(4, Luck::Good) {
        let (first, mut world, _) = scene.ended(Mode::APPLY);
        let blocks = |run: &Run| scene.graph.iter().any(|(id, _)| run.report().status(id).is_some_and(Status::blocks));
        let (mut run, mut log) = (scene.new_run(Mode::APPLY), Log::default());
        scene.drive(&mut run, &mut world, &mut log, &scene.room, None);
        // What an assertion held back has its turn when that is skipped; and what acts on changes alone is skipped now, so
        // that it has no state to refer to, and what acts on failures has its turn.
        if blocks(&first) || blocks(&run) && scene.text.contains("reference(") {
            continue;
        }
        converged += 1;
        for (id, node) in scene.graph.iter() {
            assert_ne!(
                run.report().status(id),
                Some(&Status::Changed),
                "{}: {}\n{}",
                scene.number,
                node.name,
                scene.text
            );
        }
        for event in &log.events {
            if let EventKind::CallStarted { instance, operation: Operation::Set, .. } = &event.kind {
                assert!(
                    scene.graph.node(instance.node()).manifest.capabilities.implements_pretest,
                    "{}\n{}",
                    scene.number,
                    scene.text
                );
            }
        }
    }
    assert!(converged > 0, "some first runs reach the desired state");
}

#[test]
fn a_plan_of_what_is_in_state_says_that_nothing_changes() {
    for mut scene in scenes(5, Luck::Good) {
        scene.world.0.values_mut().for_each(|thing| thing.actual = None);
        let (run, _, _) = scene.ended(Mode::PLAN);
        let totals = run.totals();
        assert_eq!(totals.changed + totals.unknown + totals.drifted, 0, "{}\n{}", scene.number, scene.text);
    }
}

#[test]
fn a_plan_comes_true() {
    let (mut promised, mut open) = (0, 0);
    for mut scene in scenes(6, Luck::Good) {
        let corrupted = corrupts(&scene);
        for (name, corrupts) in corrupted {
            scene.world.0.get_mut(&name).unwrap().corrupts = corrupts;
        }
        let (plan, planned_world, _) = scene.ended(Mode::PLAN);
        let untouched = planned_world.0.iter().all(|(name, thing)| thing.actual == scene.world.0[name].actual);
        assert!(untouched, "{}: a plan changes nothing\n{}", scene.number, scene.text);
        let (apply, _, _) = scene.ended(Mode::APPLY);
        for ((name, planned), (_, done)) in scene.statuses(&plan).into_iter().zip(scene.statuses(&apply)) {
            // What is left open may come out either way; where that is a failure, what needs it is left out.
            match (planned.unwrap(), done.unwrap()) {
                (Status::Unknown(_), _) | (_, Status::Skipped(SkipReason::Need(_) | SkipReason::Container(_))) => {
                    open += 1;
                }
                (planned, done) => {
                    promised += 1;
                    assert_eq!(planned, done, "{}: {name}\n{}", scene.number, scene.text);
                }
            }
        }
    }
    println!("{promised} predicted, {open} unknown");
    assert!(promised > open, "the plan predicts nothing");
}

/// For each instance those that it has an effect on: they come after it and touch the same paths.
fn corrupts(scene: &Scene) -> BTreeMap<String, Vec<String>> {
    let mut corrupts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (id, node) in scene.graph.iter().filter(|(_, node)| node.role == Role::Instance) {
        for ancestor in ancestors(&scene.graph, id) {
            let other = scene.graph.node(ancestor);
            let Some(thing) = scene.world.0.get(&*other.name) else { continue };
            let overlaps = match (&thing.touches, &scene.world.0[&*node.name].touches) {
                (Some(theirs), Some(own)) => theirs.iter().any(|path| own.contains(path)),
                _ => true,
            };
            if overlaps {
                corrupts.entry(other.name.to_string()).or_default().push(node.name.to_string());
            }
        }
    }
    corrupts
}

#[test]
fn a_cancelled_run_begins_nothing_more() {
    for scene in scenes(7, Luck::Mixed) {
        let (_, _, whole) = scene.ended(Mode::APPLY);
        for after in 0..whole.events.len() {
            let (mut run, mut world, mut log) = (scene.new_run(Mode::APPLY), scene.world.clone(), Log::default());
            let signal = Some((after, EventKind::Cancelled));
            scene.drive(&mut run, &mut world, &mut log, &scene.room, signal);
            let rest = log.events.iter().skip_while(|event| !matches!(event.kind, EventKind::Cancelled));
            let begun = rest
                .filter(|event| matches!(event.kind, EventKind::CallStarted { .. } | EventKind::ContainerOpened { .. }))
                .count();
            assert_eq!(begun, 0, "{}, cancelled after {after}\n{}", scene.number, scene.text);
            assert!(run.is_finished());
        }
    }
}

#[test]
fn nothing_is_set_for_real_in_a_plan() {
    for scene in scenes(8, Luck::Mixed) {
        let (_, _, log) = scene.ended(Mode::PLAN);
        let real = log
            .events
            .iter()
            .any(|event| matches!(event.kind, EventKind::CallStarted { execution: Execution::Actual, .. }));
        assert!(!real, "{}\n{}", scene.number, scene.text);
    }
}
