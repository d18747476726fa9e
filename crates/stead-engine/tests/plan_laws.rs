//! A plan says what an apply does: random documents of built-in resources over random start states.
//!
//! `STEAD_PAIRS=10000` tries so many pairs. A failure names its number, which alone makes the pair again.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "support/pairs.rs"]
mod pairs;
#[path = "../../stead-core/tests/support/random.rs"]
mod random;
#[path = "../../stead-resources/tests/support/mod.rs"]
#[expect(dead_code, reason = "trees are a part of it")]
mod support;

use std::num::NonZeroUsize;
use std::time::Duration;

use pairs::Pair;
use serde_json::Value as Json;
use stead_core::event::{Mode, SkipReason, Status};
use stead_core::graph::Role;
use stead_core::id::NodeId;
use stead_core::run::Run;
use stead_core::value::Object;
use stead_engine::{Execution, Host, HostOptions, Prepared, Session, json};
use stead_testkit::times;
use support::World;

/// A document and a directory that it is about.
struct Stage {
    pair: Pair,
    world: World,
    session: Session,
    prepared: Prepared,
}

impl Stage {
    fn new(host: &Host, number: u64) -> Self {
        let pair = Pair::of(number);
        let world = World::build(&pair.start);
        let mut session = host.session(world.root.path());
        session.set_system_root(world.root.path());
        let prepared = session.prepare("main.json", &pair.document, Object::new());
        let prepared = prepared.map_err(|unusable| format!("{pair}{:?}", unusable.findings)).unwrap();
        Self { pair, world, session, prepared }
    }

    fn run(&self, mode: Mode) -> Run {
        self.session.run(&self.prepared, Execution::new(mode, NonZeroUsize::MIN)).unwrap()
    }

    fn fail(&self, what: &str) -> ! {
        panic!("{what}\n{}left:\n{}", self.pair, self.world.tree())
    }
}

/// The instances of the report that programs read, without times and what commands printed, in the order of the graph.
fn instances(session: &Session, run: &Run) -> Vec<(NodeId, Json)> {
    let report = json::report(session, run, &stead_engine::Summary::of(run), Duration::ZERO);
    let instances = report["instances"].as_array().unwrap().iter().cloned().map(|mut instance| {
        instance.as_object_mut().unwrap().retain(|name, _| name != "duration" && name != "output");
        instance
    });
    run.graph().order.iter().copied().zip(instances).collect()
}

fn status(run: &Run, id: NodeId) -> &Status {
    run.report().status(id).unwrap()
}

#[derive(Default)]
struct Counts {
    predicted: usize,
    open: usize,
    destroyed: u64,
    converged: usize,
    conflicts: usize,
    failed: usize,
}

#[test]
fn an_apply_does_what_its_plan_said() {
    let host = Host::new(HostOptions::default());
    let mut counts = Counts::default();
    for number in 0..times("STEAD_PAIRS", 300) as u64 {
        let stage = Stage::new(&host, number);
        let before = stage.world.imprint();
        let plan = stage.run(Mode::PLAN);
        if stage.world.imprint() != before {
            stage.fail("the plan changed something");
        }
        let apply = stage.run(Mode::APPLY);
        assert_promised(&stage, &plan, &apply, &mut counts);
        assert_converged(&stage, &apply, &mut counts);
    }
    let Counts { predicted, open, destroyed, converged, conflicts, failed } = counts;
    println!(
        "{predicted} instances predicted, {open} open, {destroyed} things destroyed as predicted; \
         {converged} documents converged, {failed} failed, {conflicts} manage something twice"
    );
    assert!(predicted > 4 * open, "the plan predicts nothing: {predicted} predicted, {open} open");
    assert!(destroyed > 0 && converged > 0 && failed > 0, "everything occurs");
}

fn assert_promised(stage: &Stage, plan: &Run, apply: &Run, counts: &mut Counts) {
    for ((id, planned), (_, done)) in instances(&stage.session, plan).into_iter().zip(instances(&stage.session, apply))
    {
        // What needs something whose end is open may be skipped, and so may what it holds.
        let may_be_skipped =
            matches!(status(apply, id), Status::Skipped(SkipReason::Need(_) | SkipReason::Container(_)));
        if is_open(stage, plan, id) || (may_be_skipped && planned != done) {
            counts.open += 1;
            continue;
        }
        if planned != done {
            let all =
                plan.graph().order.iter().map(|id| {
                    format!("{}: {:?}, {:?}\n", plan.graph().label(*id), status(plan, *id), status(apply, *id))
                });
            stage.fail(&format!("{}planned\n{planned:#}\ndone\n{done:#}", all.collect::<String>()));
        }
        counts.predicted += 1;
        let destroys = apply.report().record(id).changed().map(|changed| changed.effects.destroys.total());
        counts.destroyed += destroys.unwrap_or_default();
    }
}

/// Whether a plan does not say what comes of an instance: it is unknown, or something before it changes the same thing. What
/// is said to be in its desired state, or to fail, is so even then.
fn is_open(stage: &Stage, plan: &Run, id: NodeId) -> bool {
    let node = plan.graph().node(id);
    match (node.role, status(plan, id)) {
        (Role::Container { inner, .. }, _) => {
            plan.graph().scope(inner).members.iter().any(|member| is_open(stage, plan, *member))
        }
        (Role::Instance, Status::Unknown(_)) => true,
        (Role::Instance, Status::Changed) => stage.pair.shared.contains(&*node.name),
        _ => false,
    }
}

/// A second apply changes nothing, and a check finds nothing.
fn assert_converged(stage: &Stage, apply: &Run, counts: &mut Counts) {
    let totals = apply.totals();
    if totals.failed + totals.skipped > 0 {
        counts.failed += 1;
        return;
    }
    let conflicts = [stage.session.conflicts(&stage.prepared), stage.session.computed_conflicts(apply)];
    // What replaces the directory that another one is in is not among the conflicts, which know paths and not what is there.
    if !stage.pair.shared.is_empty() || conflicts.iter().any(|conflicts| !conflicts.is_empty()) {
        counts.conflicts += 1;
        return;
    }
    let settled = stage.world.imprint();
    let again = stage.run(Mode::APPLY);
    let unguarded = |id: NodeId| stage.pair.unguarded.contains(&*again.graph().node(id).name);
    let changed = |run: &Run| {
        let all = run.graph().order.iter().copied();
        let found: Vec<_> = all.filter(|id| !matches!(status(run, *id), Status::InState) && !unguarded(*id)).collect();
        found.into_iter().map(|id| run.graph().label(id)).collect::<Vec<_>>()
    };
    let found = changed(&again);
    if !found.is_empty() || stage.pair.unguarded.is_empty() && stage.world.imprint() != settled {
        stage.fail(&format!("a second apply changed {found:?}"));
    }
    let found = changed(&stage.run(Mode::TEST));
    if !found.is_empty() {
        stage.fail(&format!("a check finds {found:?}"));
    }
    counts.converged += 1;
}
