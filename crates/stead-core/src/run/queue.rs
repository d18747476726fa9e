//! What can be begun, in the order in which it is begun.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::sync::Arc;

use jiff::Timestamp;

use super::Room;
use crate::graph::{Exclusion, Graph};
use crate::id::NodeId;
use crate::manifest::Lane;

/// A place in a queue: nodes that are ready come first, in the order of the graph; then those that back off, by time.
type Place = (Option<Timestamp>, u32, NodeId);

/// Nodes that something can be decided about, and nodes that back off, by what limits their calls.
///
/// Each limit has a queue of its own, so that nobody looks through what waits for another.
pub(super) struct Queues {
    lanes: Vec<Lane>,
    limits: Vec<Queue>,
    /// For each node its place in `limits`, and in the order of the graph.
    nodes: Vec<(usize, u32)>,
}

/// Nodes whose calls are limited in the same way.
struct Queue {
    /// A place in the lanes.
    lane: usize,
    exclusion: Option<Arc<Exclusion>>,
    places: BTreeSet<Place>,
}

impl Queues {
    pub(super) fn new(graph: &Graph) -> Self {
        let mut new = Self { lanes: Vec::new(), limits: Vec::new(), nodes: Vec::with_capacity(graph.nodes.len()) };
        let (mut lanes, mut queues) = (BTreeMap::new(), BTreeMap::new());
        for (id, node) in graph.iter() {
            let lane = *lanes.entry(node.manifest.lane()).or_insert_with_key(|lane| {
                new.lanes.push(lane.clone());
                new.lanes.len() - 1
            });
            let exclusion = graph.exclusions.get(&id);
            let queue = *queues.entry((lane, exclusion)).or_insert_with(|| {
                new.limits.push(Queue { lane, exclusion: exclusion.cloned(), places: BTreeSet::new() });
                new.limits.len() - 1
            });
            new.nodes.push((queue, 0));
        }
        for (rank, id) in (0..).zip(&graph.order) {
            new.nodes[id.index()].1 = rank;
        }
        new
    }

    /// The place of a node in the order of the graph.
    pub(super) fn rank(&self, id: NodeId) -> u32 {
        self.nodes[id.index()].1
    }

    /// Adds a node that is ready.
    pub(super) fn ready(&mut self, id: NodeId) {
        self.insert(id, None);
    }

    /// Adds a node that is not begun before an instant.
    pub(super) fn back_off(&mut self, id: NodeId, until: Timestamp) {
        self.insert(id, Some(until));
    }

    fn insert(&mut self, id: NodeId, until: Option<Timestamp>) {
        let (queue, rank) = self.nodes[id.index()];
        self.limits[queue].places.insert((until, rank, id));
    }

    /// Removes a node that is ready, or backs off until the instant given.
    pub(super) fn remove(&mut self, id: NodeId, until: Option<Timestamp>) {
        let (queue, rank) = self.nodes[id.index()];
        self.limits[queue].places.remove(&(until, rank, id));
    }

    /// When the first node that backs off is due after `now`, of those at the front of their queue.
    pub(super) fn wake(&self, now: Timestamp) -> Option<Timestamp> {
        let behind = (Some(now), u32::MAX, NodeId(u32::MAX));
        self.limits.iter().filter_map(|queue| queue.places.range(behind..).next()?.0).min()
    }

    /// The nodes that back off.
    pub(super) fn backing_off(&self) -> impl Iterator<Item = NodeId> {
        let first = (Some(Timestamp::MIN), 0, NodeId(0));
        self.limits.iter().flat_map(move |queue| queue.places.range(first..)).map(|(_, _, id)| *id)
    }

    /// The nodes that can be begun at an instant beside those that have a call under way, while there is room for them.
    pub(super) fn due(&self, until: Timestamp, room: &Room, in_flight: &BTreeSet<NodeId>) -> Due<'_> {
        let last = (Some(until), u32::MAX, NodeId(u32::MAX));
        let mut due = Due {
            queues: self.limits.iter().map(|queue| (queue, queue.places.range(..=last).peekable())).collect(),
            lanes: self.lanes.iter().map(|lane| room.lanes.get(lane).map_or(room.total, |left| *left)).collect(),
            total: room.total,
            taken: Taken::default(),
            last: 0,
        };
        let exclusion = |id: &NodeId| self.limits[self.nodes[id.index()].0].exclusion.as_deref();
        for id in in_flight {
            due.taken.add(exclusion(id));
        }
        due
    }
}

/// Goes through nodes that can be begun, in the order of the graph.
pub(super) struct Due<'a> {
    queues: Vec<(&'a Queue, Peekable<std::collections::btree_set::Range<'a, Place>>)>,
    /// The room that is left in each lane.
    lanes: Vec<usize>,
    total: usize,
    taken: Taken<'a>,
    /// The queue of the node that was given last.
    last: usize,
}

/// What calls that are under way exclude.
#[derive(Default)]
struct Taken<'a> {
    calls: usize,
    is_all: bool,
    names: BTreeSet<&'a str>,
}

impl<'a> Taken<'a> {
    fn add(&mut self, exclusion: Option<&'a Exclusion>) {
        self.calls += 1;
        match exclusion {
            None => {}
            Some(Exclusion::All) => self.is_all = true,
            Some(Exclusion::Names(names)) => self.names.extend(names.iter().map(|name| &**name)),
        }
    }

    fn allows(&self, exclusion: Option<&Exclusion>) -> bool {
        match exclusion {
            None => true,
            Some(Exclusion::All) => self.calls == 0,
            Some(Exclusion::Names(names)) => names.iter().all(|name| !self.names.contains(&**name)),
        }
    }
}

impl Queue {
    fn is_alone(&self) -> bool {
        self.exclusion.as_deref() == Some(&Exclusion::All)
    }
}

impl Due<'_> {
    /// Notes that the node given last takes room.
    pub(super) fn take_room(&mut self) {
        let (queue, _) = self.queues[self.last];
        self.total -= 1;
        self.lanes[queue.lane] -= 1;
        self.taken.add(queue.exclusion.as_deref());
    }
}

impl Iterator for Due<'_> {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        if self.total == 0 || self.taken.is_all {
            return None;
        }
        let (lanes, taken) = (&self.lanes, &self.taken);
        let fronts = self.queues.iter_mut().enumerate().filter_map(|(at, (queue, places))| {
            let can_begin = lanes[queue.lane] > 0 && taken.allows(queue.exclusion.as_deref());
            // What excludes all others is not overtaken, or it might wait for as long as there is anything else.
            (can_begin || queue.is_alone()).then(|| Some((**places.peek()?, can_begin, at)))?
        });
        let (_, can_begin, at) = fronts.min()?;
        if !can_begin {
            return None;
        }
        self.last = at;
        self.queues[at].1.next().map(|(_, _, id)| *id)
    }
}
