//! What holds for every run: random documents, random machines, random orders of answers.
//!
//! `STEAD_RUNS=10000` tries so many of them. A failure names its number, which alone makes it again.

#![expect(clippy::unwrap_used, reason = "a test may fail this way")]
#![expect(clippy::disallowed_methods, reason = "how much is tried is up to who tries; the core itself asks nothing")]

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

use random::Numbers;
use simulation::{Driver, Set, Thing, World, drive};
use stead_core::call::{Call, Execution, Operation, Restart};
use stead_core::event::{Because, Event, Fact};
use stead_core::graph::{Facts, Graph, Purpose, Role};
use stead_core::id::NodeId;
use stead_core::run::{Mode, Run, Status};
use stead_core::text::Sources;
use stead_core::value::{Object, Value};
use stead_testkit::Case;

/// A document, a machine, and how many calls may be under way.
struct Scene {
    graph: Arc<Graph>,
    sources: Arc<Sources>,
    world: World,
    width: usize,
    text: String,
    number: u64,
}

/// What is drawn for a scene.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Luck {
    /// Everything goes right.
    Good,
    /// Sets fail or do nothing.
    Mixed,
}

fn scenes(seed: u64, luck: Luck) -> impl Iterator<Item = Scene> {
    let count = std::env::var("STEAD_RUNS").map_or(250, |text| text.parse().expect("a number"));
    (0..count).map(move |number| scene(seed, number, luck))
}

fn scene(seed: u64, number: u64, luck: Luck) -> Scene {
    let mut numbers = Numbers::of(seed, number);
    let mut writer = Writer { numbers: &mut numbers, text: "$schema: s\n".to_owned(), names: 0, room: 14 };
    writer.resources("", 0);
    let text = writer.text;
    let case = Case { sections: vec![("main.yaml".to_owned(), text.clone())], ..Case::default() };
    let prepared = prepare::prepare(&case).unwrap();
    let graph = prepared.graph.unwrap_or_else(|| panic!("{number}: {:?}\n{text}", prepared.findings));
    let world = world(&graph, &mut numbers, luck);
    let width = 1 + numbers.below(4);
    Scene { graph: Arc::new(graph), sources: Arc::new(prepared.sources), world, width, text, number }
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
            presumes: None,
            spoils: Vec::new(),
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
        for need in &graph.node(next).needs {
            if found.insert(*need) {
                waiting.push(*need);
                waiting.extend(within(graph, *need));
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

/// What happened in a run, and the machine and what was under way behind each event.
#[derive(Default)]
struct Log {
    events: Vec<Event>,
    snapshots: Vec<(World, Vec<Call>)>,
}

impl Scene {
    fn new_run(&self, mode: Mode) -> Run {
        Run::new(Arc::clone(&self.graph), Arc::clone(&self.sources), mode, Facts::new(), Arc::new(seal::Legible))
    }

    /// Drives a run to its end, in a random order of answers.
    fn drive(&self, run: &mut Run, world: &mut World, log: &mut Log, width: usize, cancel_after: Option<usize>) {
        let mut numbers = Numbers::of(self.number, 77);
        let mut driver = Driver {
            width,
            pick: &mut |count| numbers.below(count),
            learn: &|key| panic!("nothing is asked of the machine: {key:?}"),
            cancel_after,
            observe: &mut |_, world, under_way, event| {
                log.events.push(event.clone());
                log.snapshots.push((world.clone(), under_way.to_vec()));
            },
        };
        drive(run, world, &mut driver);
    }

    fn ended(&self, mode: Mode) -> (Run, World, Log) {
        let (mut run, mut world, mut log) = (self.new_run(mode), self.world.clone(), Log::default());
        self.drive(&mut run, &mut world, &mut log, self.width, None);
        (run, world, log)
    }

    fn statuses(&self, run: &Run) -> Vec<(String, Option<Status>)> {
        self.graph.iter().map(|(id, node)| (node.name.to_string(), run.report().status(id).cloned())).collect()
    }

    fn blocked(&self, run: &Run, id: NodeId) -> bool {
        self.graph.node(id).needs.iter().any(|need| run.report().status(*need).is_some_and(Status::blocks))
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
        if let Fact::Asked { node, .. } | Fact::Opened { node } = &event.fact {
            let settled = graph.node(*node).needs.iter().all(|need| run.report().status(*need).is_some());
            assert!(settled, "{number}: begun before its needs were settled\n{text}");
            assert!(!scene.blocked(&run, *node), "{number}: begun though a need failed\n{text}");
            let held = graph.container(*node).is_none_or(|container| open.contains(&container));
            assert!(held, "{number}: begun before what holds it was opened\n{text}");
        }
        if let Fact::Asked { node, operation: Operation::Set, .. } = &event.fact {
            assert_eq!(mode.operation, Operation::Set, "{number}: a set where none is wanted");
            assert!(!scene.is_asserted(*node), "{number}: a set within an assertion\n{text}");
        }
        match &event.fact {
            Fact::Opened { node } => assert!(open.insert(*node), "{number}: opened twice"),
            Fact::Closed { node } => assert!(open.remove(node), "{number}: closed before it was opened"),
            _ => {}
        }
        run.apply(event);
        for ((name, before), (_, after)) in before.iter().zip(scene.statuses(&run)) {
            assert!(before.is_none() || *before == after, "{number}: {name} was settled twice\n{text}");
        }
    }
    assert!(open.is_empty(), "{number}: what was opened is closed");
}

/// What was left out has a reason that holds; everything else was asked.
fn assert_reasons(scene: &Scene, run: &Run, log: &Log) {
    let Scene { graph, text, number, .. } = scene;
    let begun = log.events.iter().filter_map(|event| match &event.fact {
        Fact::Asked { node, .. }
        | Fact::Opened { node }
        | Fact::Refused { node, .. }
        | Fact::Unforeseen { node, .. } => Some(*node),
        _ => None,
    });
    let begun: BTreeSet<NodeId> = begun.collect();
    for (id, node) in graph.iter() {
        let status = run.report().status(id).unwrap();
        let holds = match status {
            Status::Skipped(Because::Need(need)) => {
                node.needs.contains(need) && run.report().status(*need).unwrap().blocks()
            }
            Status::Skipped(Because::Container(container)) => {
                graph.container(id) == Some(*container)
                    && matches!(
                        run.report().status(*container),
                        Some(Status::Skipped(_) | Status::Failed | Status::Unforeseen(_))
                    )
            }
            Status::Skipped(Because::Condition) => graph.declaration(id).condition.is_some(),
            Status::Skipped(Because::Cancelled) => false,
            _ => begun.contains(&id) && !scene.blocked(run, id),
        };
        assert!(holds, "{number}: {} is {status:?} without a reason\n{text}", node.name);
    }
}

#[test]
fn one_at_a_time_goes_in_the_order_of_the_graph() {
    for scene in scenes(2, Luck::Mixed) {
        for mode in MODES {
            let (mut run, mut world, mut log) = (scene.new_run(mode), scene.world.clone(), Log::default());
            scene.drive(&mut run, &mut world, &mut log, 1, None);
            let mut asked: Vec<NodeId> = log
                .events
                .iter()
                .filter_map(|event| match &event.fact {
                    Fact::Asked { node, .. } => Some(*node),
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

#[test]
fn a_power_cut_after_any_event_changes_nothing() {
    for mut scene in scenes(3, Luck::Mixed) {
        // A machine that fails once only would fail at another place.
        scene.world.0.values_mut().for_each(|thing| thing.failures = if thing.failures > 0 { u32::MAX } else { 0 });
        let (whole, _, log) = scene.ended(Mode::APPLY);
        let expected = scene.statuses(&whole);
        for at in 0..=log.events.len() {
            for effect in [Effect::Lost, Effect::Done] {
                let (journal, world) = cut(&log, &scene.world, at, effect);
                let (again, log) = resumed(&scene, &journal, world);
                assert_eq!(scene.statuses(&again), expected, "{}, cut after {at}\n{}", scene.number, scene.text);
                // And cut once more, somewhere behind.
                let second = log.events.len() * (at + 1) / (at + 2);
                let (rest, world) = cut(&log, &World::default(), second.max(1), effect);
                let journal = [journal, rest].concat();
                let (again, _) = resumed(&scene, &journal, world);
                assert_eq!(scene.statuses(&again), expected, "{}, cut after {at}, twice\n{}", scene.number, scene.text);
            }
        }
    }
}

/// What became of the sets that were under way.
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
    let Some((world, under_way)) = at.checked_sub(1).map(|last| &log.snapshots[last]) else {
        return (journal, before.clone());
    };
    let mut world = world.clone();
    // Of a resource that tests for itself nobody knows whether there was a difference.
    let sets = under_way.iter().filter(|call| call.operation == Operation::Set && call.tested.is_some());
    for call in sets.filter(|_| effect == Effect::Done) {
        world.answer(call);
    }
    (journal, world)
}

fn resumed(scene: &Scene, journal: &[Event], mut world: World) -> (Run, Log) {
    let (graph, sources) = (Arc::clone(&scene.graph), Arc::clone(&scene.sources));
    let mut run = Run::resume(graph, sources, Mode::APPLY, Facts::new(), Arc::new(seal::Legible), journal);
    let mut log = Log::default();
    scene.drive(&mut run, &mut world, &mut log, scene.width, None);
    assert_tested_again(scene, journal, &log);
    (run, log)
}

/// Nobody knows how far a call came that was cut off: whatever it was, the instance is looked at again before it is set.
fn assert_tested_again(scene: &Scene, journal: &[Event], log: &Log) {
    let mut open = BTreeSet::new();
    for event in journal {
        match &event.fact {
            Fact::Asked { node, .. } => drop(open.insert(*node)),
            Fact::Response { node, .. } => drop(open.remove(node)),
            _ => {}
        }
    }
    for event in &log.events {
        if let Fact::Asked { node, operation, .. } = &event.fact
            && open.remove(node)
        {
            let by_itself = scene.graph.node(*node).manifest.capabilities.implements_pretest;
            assert!(by_itself || *operation == Operation::Test, "{}\n{}", scene.number, scene.text);
        }
    }
    assert!(open.is_empty(), "{}: what was cut off is not asked again\n{}", scene.number, scene.text);
}

#[test]
fn a_second_run_sets_nothing() {
    for scene in scenes(4, Luck::Good) {
        let (_, mut world, _) = scene.ended(Mode::APPLY);
        let (mut run, mut log) = (scene.new_run(Mode::APPLY), Log::default());
        scene.drive(&mut run, &mut world, &mut log, scene.width, None);
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
            if let Fact::Asked { node, operation: Operation::Set, .. } = &event.fact {
                assert!(
                    scene.graph.node(*node).manifest.capabilities.implements_pretest,
                    "{}\n{}",
                    scene.number,
                    scene.text
                );
            }
        }
    }
}

#[test]
fn a_plan_of_what_is_in_state_says_that_nothing_changes() {
    for mut scene in scenes(5, Luck::Good) {
        scene.world.0.values_mut().for_each(|thing| thing.actual = None);
        let (run, _, _) = scene.ended(Mode::PLAN);
        let totals = run.totals();
        assert_eq!(totals.changed + totals.unforeseen + totals.drifted, 0, "{}\n{}", scene.number, scene.text);
    }
}

#[test]
fn a_plan_comes_true() {
    let (mut promised, mut open) = (0, 0);
    for mut scene in scenes(6, Luck::Good) {
        let spoiled = spoils(&scene);
        for (name, spoils) in spoiled {
            scene.world.0.get_mut(&name).unwrap().spoils = spoils;
        }
        let (plan, planned_world, _) = scene.ended(Mode::PLAN);
        let untouched = planned_world.0.iter().all(|(name, thing)| thing.actual == scene.world.0[name].actual);
        assert!(untouched, "{}: a plan changes nothing\n{}", scene.number, scene.text);
        let (apply, _, _) = scene.ended(Mode::APPLY);
        for ((name, planned), (_, done)) in scene.statuses(&plan).into_iter().zip(scene.statuses(&apply)) {
            // What is left open may come out either way; where that is a failure, what needs it is left out.
            match (planned.unwrap(), done.unwrap()) {
                (Status::Unforeseen(_), _) | (_, Status::Skipped(Because::Need(_) | Because::Container(_))) => {
                    open += 1
                }
                (planned, done) => {
                    promised += 1;
                    assert_eq!(planned, done, "{}: {name}\n{}", scene.number, scene.text);
                }
            }
        }
    }
    println!("{promised} foreseen, {open} left open");
    assert!(promised > open, "a plan that says nothing is no plan");
}

/// A chain of changes, each of a path of its own, behind it one that shares a path with none of them but with a change
/// beside. Near by that can be told; far away a plan errs on the side of caution, and takes no square of the time.
#[test]
fn a_plan_looks_so_far_and_no_further() {
    for (length, is_foreseen) in [(10, true), (3000, false)] {
        let mut text = "$schema: s\nresources:\n".to_owned();
        let mut world = World::default();
        let mut add = |name: String, need: Option<String>, state: Option<&str>, path: &str| {
            let need = need.map(|need| format!("'Test/Echo:{need}'")).unwrap_or_default();
            writeln!(text, "- {{type: Test/Echo, name: {name}, dependsOn: [{need}], properties: {{x: new}}}}").unwrap();
            let actual = state.map(|state| Value::Object(Object::from_iter([("x".to_owned(), state.into())])));
            world.0.insert(name, Thing { actual, touches: Some(vec![path.into()]), ..Thing::default() });
        };
        for at in 0..length {
            let need = (at > 0).then(|| format!("n{}", at - 1));
            add(format!("n{at}"), need, Some("old"), &format!("/{at}"));
        }
        add("beside".to_owned(), None, Some("old"), "/shared");
        add("last".to_owned(), Some(format!("n{}", length - 1)), None, "/shared");
        let case = Case { sections: vec![("main.yaml".to_owned(), text.clone())], ..Case::default() };
        let prepared = prepare::prepare(&case).unwrap();
        let graph = Arc::new(prepared.graph.unwrap());
        let mut run =
            Run::new(Arc::clone(&graph), Arc::new(prepared.sources), Mode::PLAN, Facts::new(), Arc::new(seal::Legible));
        let mut driver = Driver {
            width: 1,
            pick: &mut |_| 0,
            learn: &|_| Ok(Value::Null),
            cancel_after: None,
            observe: &mut |_, _, _, _| {},
        };
        drive(&mut run, &mut world, &mut driver);
        let (last, _) = graph.iter().last().unwrap();
        let foreseen = *run.report().status(last).unwrap() == Status::InState;
        assert_eq!(foreseen, is_foreseen, "{length}");
    }
}

/// For each instance those that it has an effect on: they come after it and touch the same paths.
fn spoils(scene: &Scene) -> BTreeMap<String, Vec<String>> {
    let mut spoils: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (id, node) in scene.graph.iter().filter(|(_, node)| node.role == Role::Instance) {
        for ancestor in ancestors(&scene.graph, id) {
            let other = scene.graph.node(ancestor);
            let Some(thing) = scene.world.0.get(&*other.name) else { continue };
            let overlaps = match (&thing.touches, &scene.world.0[&*node.name].touches) {
                (Some(theirs), Some(own)) => theirs.iter().any(|path| own.contains(path)),
                _ => true,
            };
            if overlaps {
                spoils.entry(other.name.to_string()).or_default().push(node.name.to_string());
            }
        }
    }
    spoils
}

#[test]
fn a_cancelled_run_begins_nothing_more() {
    for scene in scenes(7, Luck::Mixed) {
        let (_, _, whole) = scene.ended(Mode::APPLY);
        for after in 0..whole.events.len() {
            let (mut run, mut world, mut log) = (scene.new_run(Mode::APPLY), scene.world.clone(), Log::default());
            scene.drive(&mut run, &mut world, &mut log, scene.width, Some(after));
            let rest = log.events.iter().skip_while(|event| !matches!(event.fact, Fact::Cancelled));
            let begun = rest.filter(|event| matches!(event.fact, Fact::Asked { .. } | Fact::Opened { .. })).count();
            assert_eq!(begun, 0, "{}, cancelled after {after}\n{}", scene.number, scene.text);
            assert!(run.is_finished());
        }
    }
}

#[test]
fn nothing_is_set_for_real_in_a_plan() {
    for scene in scenes(8, Luck::Mixed) {
        let (_, _, log) = scene.ended(Mode::PLAN);
        let real =
            log.events.iter().any(|event| matches!(event.fact, Fact::Asked { execution: Execution::Actual, .. }));
        assert!(!real, "{}\n{}", scene.number, scene.text);
    }
}
