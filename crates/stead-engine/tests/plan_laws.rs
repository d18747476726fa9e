//! A plan says what an apply does: random documents of built-in resources over random start states.
//!
//! `STEAD_PAIRS=10000` tries so many pairs, `STEAD_FIRST_PAIR=487` begins with that one. A failure names the number of its
//! pair, which alone makes it again.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "support/pairs.rs"]
mod pairs;
#[path = "../../stead-core/tests/support/random.rs"]
mod random;
#[path = "../../stead-resources/tests/support/mod.rs"]
#[expect(dead_code, reason = "trees are a part of it")]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use pairs::Pair;
use serde_json::Value as Json;
use stead_core::claims::{Claim, Claims, Extent};
use stead_core::diag::Diagnostic;
use stead_core::event::{Mode, SkipReason, Status};
use stead_core::graph::{Need, NeedKind, Role};
use stead_core::id::NodeId;
use stead_core::run::Run;
use stead_core::source::Span;
use stead_core::value::Object;
use stead_engine::{Host, HostOptions, Prepared, RunOptions, Session, json};
use stead_testkit::times;
use support::World;

/// How many parts of a file could be carried out beside each other.
const BESIDE: NonZeroUsize = NonZeroUsize::new(4).unwrap();

/// A document and a directory that it is about.
struct Stage {
    pair: Pair,
    world: World,
    session: Session,
    prepared: Prepared,
}

impl Stage {
    fn new(host: &Host, number: u64) -> Self {
        Self::of(host, Pair::of(number))
    }

    fn of(host: &Host, pair: Pair) -> Self {
        let world = World::build(&pair.start);
        let root = world.root.path();
        let mut session = host.session(root).with(|options| options.system_root = Some(root.to_owned()));
        let prepared = session.prepare("main.json", &pair.document, Object::new());
        let prepared = prepared.map_err(|unusable| format!("{pair}{:?}", unusable.findings)).unwrap();
        Self { pair, world, session, prepared }
    }

    fn run(&self, mode: Mode) -> Run {
        self.run_beside(mode, NonZeroUsize::MIN)
    }

    /// Runs it with so many instances beside each other.
    fn run_beside(&self, mode: Mode, width: NonZeroUsize) -> Run {
        self.session.run(&self.prepared, RunOptions::new(mode, width)).unwrap()
    }

    fn fail(&self, what: &str) -> ! {
        panic!("{}left:\n{}\n{what}", self.pair, self.world.tree())
    }
}

/// The report that programs read, without how long things took, and without what only a run that acts has: that it does,
/// and what commands printed.
fn printed(run: &Run) -> Json {
    let mut report = json::report(run, &stead_engine::Summary::of(run), Duration::ZERO);
    report.as_object_mut().unwrap().remove("whatIf");
    for instance in report["instances"].as_array_mut().unwrap() {
        instance.as_object_mut().unwrap().retain(|name, _| name != "duration" && name != "output");
    }
    report
}

fn status(run: &Run, id: NodeId) -> &Status {
    run.report().status(id).unwrap()
}

/// Why a second apply changes something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Restless {
    /// It does what an instance failed to do before, or one that was skipped because another one failed.
    Failed,
    /// Two instances undo each other's work, and a warning says so.
    Conflict,
    /// Lines of one file edit each other.
    Lines,
    /// An instance manages what is copied with a tree; which files that are is not known from the document.
    Copies,
}

#[derive(Default)]
struct Counts {
    predicted: usize,
    open: usize,
    whole: usize,
    destroyed: u64,
    converged: usize,
    restless: BTreeMap<Restless, usize>,
}

#[test]
fn an_apply_does_what_its_plan_said() {
    let host = Host::new(HostOptions::default());
    let mut counts = Counts::default();
    let first = times("STEAD_FIRST_PAIR", 0) as u64;
    for number in first..first + times("STEAD_PAIRS", 300) as u64 {
        let stage = Stage::new(&host, number);
        let before = stage.world.imprint();
        let plan = stage.run(Mode::PLAN);
        if stage.world.imprint() != before {
            stage.fail("the plan changed something");
        }
        assert_shown_alike(&stage, &plan);
        let apply = stage.run(Mode::APPLY);
        assert_promised(&stage, &plan, &apply, &mut counts);
        match assert_converged(&stage, &apply) {
            Ok(()) => counts.converged += 1,
            Err(reason) => *counts.restless.entry(reason).or_default() += 1,
        }
    }
    let Counts { predicted, open, whole, destroyed, converged, restless } = counts;
    println!(
        "{predicted} instances predicted, {open} open; {whole} whole reports predicted; {destroyed} things destroyed as \
         predicted; {converged} documents converged, others not: {restless:?}"
    );
    assert!(predicted > 8 * open, "the plan predicts too little: {predicted} predicted, {open} open");
    assert!(whole > 0 && destroyed > 0, "everything occurs");
    assert!(converged > 10 * restless.values().sum::<usize>(), "most documents converge");
}

/// Each part is predicted from what those in front of it will leave, and the file that they are in may be new. However many instances
/// are carried out beside each other, an apply does that.
#[test]
fn parts_of_one_file_are_predicted() {
    let host = Host::new(HostOptions::default());
    let mut counts = Counts::default();
    let (first, mut changed) = (times("STEAD_FIRST_PAIR", 0) as u64, 0);
    for number in first..first + times("STEAD_PAIRS", 300) as u64 {
        let stage = Stage::of(&host, Pair::of_one_file(number));
        let before = stage.world.imprint();
        let plan = stage.run(Mode::PLAN);
        if stage.world.imprint() != before {
            stage.fail("the plan changed something");
        }
        let apply = stage.run_beside(Mode::APPLY, BESIDE);
        assert_promised(&stage, &plan, &apply, &mut counts);
        let several = apply.graph().order.iter().filter(|id| *status(&apply, **id) == Status::Changed).count();
        changed += usize::from(several > 1);
    }
    let Counts { predicted, open, whole, .. } = counts;
    println!("{predicted} instances predicted, {open} open; {whole} whole reports; {changed} files changed repeatedly");
    assert!(predicted > 20 * open && changed > 50, "{predicted} predicted, {open} open, {changed} changed repeatedly");
}

/// Why all of these instances changed again; `None` if there is none, or one did without a reason.
fn restless(stage: &Stage, apply: &Run, found: &[NodeId]) -> Option<Restless> {
    let Pair { lines, copies, .. } = &stage.pair;
    let conflicting = if found.is_empty() { BTreeSet::new() } else { conflicting(stage, apply) };
    let reason = |id: &NodeId| match &*apply.graph().node(*id).name {
        _ if conflicting.contains(id) => Some(Restless::Conflict),
        name if lines.contains(name) => Some(Restless::Lines),
        name if copies.contains(name) => Some(Restless::Copies),
        _ => None,
    };
    let reasons: Option<BTreeSet<Restless>> = found.iter().map(reason).collect();
    reasons?.into_iter().next()
}

/// The instances that warnings name, and those that manage what these do: of three, a warning names two.
fn conflicting(stage: &Stage, apply: &Run) -> BTreeSet<NodeId> {
    let warnings = [stage.prepared.warnings.clone(), stage.session.computed_conflicts(apply)].concat();
    let spans = |warning: &Diagnostic| {
        warning.span.into_iter().chain(warning.labels.iter().map(|(span, _)| *span)).collect::<Vec<_>>()
    };
    let spans: Vec<Span> = warnings.iter().flat_map(spans).collect();
    let managed = |claims: &Claims| {
        let managed = claims.0.iter().filter(|Claim::Path { extent, .. }| *extent != Extent::Read);
        managed.map(|Claim::Path { path, .. }| path.to_path_buf()).collect::<Vec<_>>()
    };
    let claims = stage.session.claims(apply);
    let is_named = |id: NodeId| spans.contains(&apply.graph().declaration(id).name.span);
    let contested: Vec<PathBuf> =
        claims.iter().filter(|(id, _)| is_named(*id)).flat_map(|(_, claims)| managed(claims)).collect();
    let meets = |path: &PathBuf| contested.iter().any(|other| path.starts_with(other) || other.starts_with(path));
    claims.iter().filter(|(_, claims)| managed(claims).iter().any(meets)).map(|(id, _)| *id).collect()
}

/// A check shows the difference of a file that a plan shows, if in another order, and of whatever kind the same removals:
/// both compare what is with what a set would make of it.
fn assert_shown_alike(stage: &Stage, plan: &Run) {
    let check = stage.run(Mode::TEST);
    let (planned, checked) = (printed(plan), printed(&check));
    let instances = |report: &Json| report["instances"].as_array().unwrap().clone();
    let changes =
        |instance: &Json| instance["changes"].as_array().unwrap().iter().map(Json::to_string).collect::<BTreeSet<_>>();
    for (planned, checked) in instances(&planned).iter().zip(&instances(&checked)) {
        let differs = planned["status"] == "changed" && checked["status"] == "drifted";
        let is_file = planned["type"] == "Stead/File";
        // What a plan has a part of a file come to, it has come to behind the parts in front of it.
        let is_behind = planned["name"].as_str().is_some_and(|name| stage.pair.lines.contains(name));
        let alike = !is_file || changes(planned) == changes(checked);
        if differs && !is_behind && !(alike && removals(planned) == removals(checked)) {
            stage.fail(&format!("planned\n{planned}\nchecked\n{checked}"));
        }
    }
}

/// Returns the things that are gone as a whole: files, directories with their names, lines.
fn removals(instance: &Json) -> Vec<&Json> {
    let items = instance["effects"]["destroys"]["items"].as_array();
    items.into_iter().flatten().filter(|item| item["kind"].get("content").is_none()).collect()
}

fn assert_promised(stage: &Stage, plan: &Run, apply: &Run, counts: &mut Counts) {
    let open = open(stage, plan, apply);
    let (planned, done) = (printed(plan), printed(apply));
    let instances =
        |report: &Json| report["instances"].as_array().unwrap().iter().map(Json::to_string).collect::<Vec<_>>();
    for ((id, planned), done) in plan.graph().order.iter().zip(instances(&planned)).zip(instances(&done)) {
        if open.contains(id) {
            counts.open += 1;
            continue;
        }
        if planned != done {
            let both =
                plan.graph().order.iter().map(|id| (plan.graph().label(*id), status(plan, *id), status(apply, *id)));
            stage.fail(&format!("{:#?}\nplanned\n{planned}\ndone\n{done}", both.collect::<Vec<_>>()));
        }
        counts.predicted += 1;
        let destroys = apply.report().record(*id).changed().map(|changed| changed.effects.destroys.total());
        counts.destroyed += destroys.unwrap_or_default();
    }
    if open.is_empty() {
        assert_eq!(planned.to_string(), done.to_string(), "{}", stage.pair);
        counts.whole += 1;
    }
}

/// The instances of which a plan does not say what comes of them: those that are unknown, commands that others left nothing
/// to do, those that were skipped because such a one failed, and what holds any of these.
fn open(stage: &Stage, plan: &Run, apply: &Run) -> BTreeSet<NodeId> {
    let graph = plan.graph();
    let mut open = BTreeSet::new();
    let mut known = None;
    while known != Some(open.len()) {
        known = Some(open.len());
        for id in &graph.order {
            let is_open = match (status(plan, *id), status(apply, *id)) {
                (Status::Unknown(_), _) => true,
                (Status::Changed, Status::InState) => stage.pair.anticipated.contains(&*graph.node(*id).name),
                (_, Status::Skipped(SkipReason::Need(other) | SkipReason::Container(other))) => {
                    open.contains(&other.node())
                }
                _ => false,
            };
            let holds_open = match graph.node(*id).role {
                Role::Container { inner, .. } => graph.scope(inner).members.iter().any(|member| open.contains(member)),
                Role::Instance => false,
            };
            if is_open || holds_open {
                open.insert(*id);
            }
        }
    }
    open
}

/// A second apply changes nothing, and a check finds nothing; or there is a reason.
fn assert_converged(stage: &Stage, apply: &Run) -> Result<(), Restless> {
    let settled = stage.world.imprint();
    let again = stage.run(Mode::APPLY);
    let unguarded = |id: NodeId| stage.pair.unguarded.contains(&*again.graph().node(id).name);
    let with = |run: &Run, wanted: Status| {
        let all = run.graph().order.iter().copied();
        all.filter(|id| *status(run, *id) == wanted && !unguarded(*id)).collect::<Vec<_>>()
    };
    let found = with(&again, Status::Changed);
    let was_blocked = |id: &NodeId| status(apply, *id).blocks();
    // Where a later instance undid an earlier one, the earlier fails now, and what waits for that failure begins.
    let fails_anew = |need: &Need| {
        need.kind == NeedKind::OnFailure && status(&again, need.node).blocks() && !was_blocked(&need.node)
    };
    let began_by_failure = |id: &NodeId| again.graph().node(*id).needs.iter().any(fails_anew);
    if found.iter().any(|id| was_blocked(id) || began_by_failure(id)) {
        return Err(Restless::Failed);
    }
    let is_instance = |id: &NodeId| again.graph().node(*id).role == Role::Instance;
    let found_instances: Vec<NodeId> = found.iter().copied().filter(is_instance).collect();
    if let Some(reason) = restless(stage, apply, &found_instances) {
        return Err(reason);
    }
    let labels = |found: &[NodeId]| found.iter().map(|id| again.graph().label(*id)).collect::<Vec<_>>();
    if !found.is_empty() || stage.pair.unguarded.is_empty() && stage.world.imprint() != settled {
        stage.fail(&format!("a second apply changed {:?}", labels(&found)));
    }
    // What cannot be set differs for good, and so does what is only tested.
    let is_set = |id: &NodeId| *status(&again, *id) == Status::InState;
    let found: Vec<NodeId> = with(&stage.run(Mode::TEST), Status::Drifted).into_iter().filter(is_set).collect();
    if !found.is_empty() {
        stage.fail(&format!("a check finds {:?}", labels(&found)));
    }
    Ok(())
}
