//! Runs that are cut off and resumed, and what a journal must hold for that.

use std::collections::BTreeSet;

use std::sync::Arc;

use stead_core::call::Operation;
use stead_core::event::{Event, EventKind, Header, Mode, Status};
use stead_core::graph::Graph;
use stead_core::id::NodeId;
use stead_core::report::Report;
use stead_core::run::{ReplayError, Retention, Run, Setup};

use crate::random::Numbers;
use crate::retries::reconciler;
use crate::scenes::{Log, Luck, Scene, scenes, setup, some_scenes, within};
use crate::simulation::{Job, Set, World};

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
