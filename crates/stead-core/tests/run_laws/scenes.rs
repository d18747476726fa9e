//! Random documents and machines, and runs over them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use stead_core::call::{Call, Restart};
use stead_core::document::Exclusive;
use stead_core::event::{Event, EventKind, Mode, Status};
use stead_core::graph::{Graph, NeedKind, NestingPurpose, Role};
use stead_core::id::NodeId;
use stead_core::manifest::Lane;
use stead_core::run::{Room, Run, Setup};
use stead_core::value::{Object, Value};
use stead_testkit::Case;

use crate::random::Numbers;
use crate::simulation::{Driver, Job, Set, Thing, World, drive};
use crate::{prepare, seal};

/// A document, a machine, and how many calls may be under way.
pub(crate) struct Scene {
    /// True if instances that back off are woken at times.
    pub(crate) wakes: bool,
    pub(crate) graph: Arc<Graph>,
    pub(crate) setup: Setup,
    pub(crate) world: World,
    pub(crate) room: Room,
    pub(crate) text: String,
    pub(crate) number: u64,
}

/// The chances that a scene is drawn with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Luck {
    /// Everything goes right.
    Good,
    /// Sets fail or do nothing.
    Mixed,
}

pub(crate) fn scenes(seed: u64, luck: Luck) -> impl Iterator<Item = Scene> {
    some_scenes(seed, luck, 250)
}

pub(crate) fn some_scenes(seed: u64, luck: Luck, usual: usize) -> impl Iterator<Item = Scene> {
    let count = stead_testkit::times("STEAD_RUNS", usual);
    let first = stead_testkit::times("STEAD_FIRST_RUN", 0);
    (first as u64..count as u64).map(move |number| scene(seed, number, luck))
}

pub(crate) fn scene(seed: u64, number: u64, luck: Luck) -> Scene {
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
pub(crate) fn setup(text: &str, mode: Mode) -> Setup {
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

pub(crate) fn world(graph: &Graph, numbers: &mut Numbers, luck: Luck) -> World {
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
pub(crate) fn ancestors(graph: &Graph, id: NodeId) -> BTreeSet<NodeId> {
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

pub(crate) fn within(graph: &Graph, id: NodeId) -> Vec<NodeId> {
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
pub(crate) struct Log {
    pub(crate) events: Vec<Event>,
    pub(crate) snapshots: Vec<(World, Vec<Arc<Call>>)>,
}

impl Scene {
    pub(crate) fn new_run(&self, mode: Mode) -> Run {
        Run::new(Setup { mode, ..self.setup.clone() })
    }

    /// Drives a run until it is finished or suspended, in a random order of answers.
    pub(crate) fn drive(
        &self,
        run: &mut Run,
        world: &mut World,
        log: &mut Log,
        room: &Room,
        signal: Option<(usize, EventKind)>,
    ) {
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

    pub(crate) fn ended(&self, mode: Mode) -> (Run, World, Log) {
        let (mut run, mut world, mut log) = (self.new_run(mode), self.world.clone(), Log::default());
        self.drive(&mut run, &mut world, &mut log, &self.room, None);
        (run, world, log)
    }

    pub(crate) fn statuses(&self, run: &Run) -> Vec<(String, Option<Status>)> {
        self.graph.iter().map(|(id, node)| (node.name.to_string(), run.report().status(id).cloned())).collect()
    }

    /// Returns whether a need that must succeed did not.
    pub(crate) fn blocked(&self, run: &Run, id: NodeId) -> bool {
        let has_to = NeedKind::must_succeed;
        let mut needs = self.graph.node(id).needs.iter().filter(|need| has_to(need.kind));
        needs.any(|need| run.report().status(need.node).is_some_and(Status::blocks)) || self.has_no_alternative(run, id)
    }

    /// Returns whether one of several needs must succeed, and none can any more.
    pub(crate) fn has_no_alternative(&self, run: &Run, id: NodeId) -> bool {
        let needs = self.graph.node(id).needs.iter().filter(|need| need.kind == NeedKind::RequireAny);
        let ends: Vec<_> = needs.map(|need| run.report().status(need.node)).collect();
        !ends.is_empty() && ends.iter().all(|status| status.is_some_and(Status::blocks))
    }

    /// Returns whether all is known that an instance must know of its needs before it begins.
    pub(crate) fn can_begin(&self, run: &Run, id: NodeId) -> bool {
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
    pub(crate) fn exclude(&self, one: NodeId, other: NodeId) -> bool {
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

    pub(crate) fn is_asserted(&self, id: NodeId) -> bool {
        let outward = std::iter::successors(self.graph.container(id), |id| self.graph.container(*id));
        let purposes = outward.map(|id| self.graph.node(id).role);
        purposes.into_iter().any(|role| matches!(role, Role::Container { purpose: NestingPurpose::Assertion, .. }))
    }
}

pub(crate) const MODES: [Mode; 4] = [Mode::APPLY, Mode::PLAN, Mode::TEST, Mode::GET];
