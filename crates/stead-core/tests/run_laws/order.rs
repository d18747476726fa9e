//! What comes before what, and that everything comes to one end.

use std::collections::BTreeSet;

use stead_core::call::Operation;
use stead_core::event::{EventKind, Mode, Problem, SkipReason, Status};
use stead_core::graph::NeedKind;
use stead_core::id::NodeId;
use stead_core::run::{Room, Run};

use crate::scenes::{Log, Luck, MODES, Scene, scenes};

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
