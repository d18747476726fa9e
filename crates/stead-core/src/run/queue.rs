//! The nodes that can be begun, in the order in which they are begun.

use std::collections::{BTreeMap, BTreeSet, btree_set};
use std::iter::Peekable;
use std::sync::Arc;

use jiff::Timestamp;

use super::Room;
use super::few::FewNodes;
use crate::graph::{Exclusion, Graph};
use crate::id::NodeId;
use crate::manifest::Lane;

/// A node by its place in the order of the graph.
type Ranked = (u32, NodeId);

/// Behind every node.
const LAST: Ranked = (u32::MAX, NodeId(u32::MAX));

/// Nodes that something can be decided about, and nodes that back off, by what limits their calls.
///
/// Each limit has a queue of its own, so that nobody looks through what waits for another.
pub(super) struct Queues {
    lanes: Vec<Lane>,
    limits: Vec<Queue>,
    /// For each node its place in `limits`, and in the order of the graph.
    nodes: Vec<(u32, u32)>,
}

/// Nodes whose calls are limited in the same way.
struct Queue {
    /// A place in the lanes.
    lane: usize,
    exclusion: Option<Arc<Exclusion>>,
    ready: BTreeSet<Ranked>,
    backing_off: BTreeSet<(Timestamp, Ranked)>,
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
                let (ready, backing_off) = (BTreeSet::new(), BTreeSet::new());
                new.limits.push(Queue { lane, exclusion: exclusion.cloned(), ready, backing_off });
                new.limits.len() - 1
            });
            new.nodes.push((u32::try_from(queue).unwrap_or(u32::MAX), 0));
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
        let (queue, rank) = self.of(id);
        queue.ready.insert((rank, id));
    }

    /// Adds a node that is not begun before an instant.
    pub(super) fn back_off(&mut self, id: NodeId, until: Timestamp) {
        let (queue, rank) = self.of(id);
        queue.backing_off.insert((until, (rank, id)));
    }

    /// Removes a node that is ready.
    pub(super) fn remove(&mut self, id: NodeId) {
        let (queue, rank) = self.of(id);
        queue.ready.remove(&(rank, id));
    }

    /// Removes a node that backs off until an instant.
    pub(super) fn remove_backing_off(&mut self, id: NodeId, until: Timestamp) {
        let (queue, rank) = self.of(id);
        queue.backing_off.remove(&(until, (rank, id)));
    }

    fn of(&mut self, id: NodeId) -> (&mut Queue, u32) {
        let (queue, rank) = self.nodes[id.index()];
        (&mut self.limits[queue as usize], rank)
    }

    /// Returns when the first node that backs off is due after `now`, of those at the front of their queue.
    pub(super) fn wake(&self, now: Timestamp) -> Option<Timestamp> {
        let due = |queue: &Queue| queue.backing_off.range((now, LAST)..).next().map(|(until, _)| *until);
        self.limits.iter().filter_map(due).min()
    }

    /// Returns whether something can be decided about any node.
    pub(super) fn is_any_ready(&self) -> bool {
        self.limits.iter().any(|queue| !queue.ready.is_empty())
    }

    /// Returns whether a node that backed off is due.
    pub(super) fn is_any_due(&self, now: Timestamp) -> bool {
        self.limits.iter().any(|queue| queue.backing_off.first().is_some_and(|(until, _)| *until <= now))
    }

    /// The nodes that back off.
    pub(super) fn backing_off(&self) -> impl Iterator<Item = NodeId> {
        self.limits.iter().flat_map(|queue| &queue.backing_off).map(|(_, (_, id))| *id)
    }

    /// The nodes that can be begun at an instant beside those that have a call under way, while there is room for them.
    pub(super) fn due(&self, until: Timestamp, room: &Room, in_flight: &FewNodes) -> Due<'_> {
        let mut taken = Taken { calls: in_flight.len(), ..Taken::default() };
        // Few documents exclude anything.
        if self.limits.iter().any(|queue| queue.exclusion.is_some()) {
            for id in in_flight.iter() {
                taken.exclude(self.limits[self.nodes[id.index()].0 as usize].exclusion.as_deref());
            }
        }
        Due {
            queues: self.limits.iter().map(|queue| DueInQueue::new(queue, until)).collect(),
            lanes: self.lanes.iter().map(|lane| room.lanes.get(lane).map_or(room.total, |left| *left)).collect(),
            total: room.total,
            taken,
            last: 0,
        }
    }
}

/// Goes through nodes that can be begun, in the order of the graph.
pub(super) struct Due<'a> {
    queues: Vec<DueInQueue<'a>>,
    /// The room that is left in each lane.
    lanes: Vec<usize>,
    total: usize,
    taken: Taken<'a>,
    /// The queue of the node that was given last.
    last: usize,
}

struct DueInQueue<'a> {
    queue: &'a Queue,
    ready: Peekable<btree_set::Iter<'a, Ranked>>,
    backing_off: Peekable<btree_set::Range<'a, (Timestamp, Ranked)>>,
}

impl<'a> DueInQueue<'a> {
    fn new(queue: &'a Queue, until: Timestamp) -> Self {
        let backing_off = queue.backing_off.range(..=(until, LAST)).peekable();
        Self { queue, ready: queue.ready.iter().peekable(), backing_off }
    }

    /// The node that comes next. One that is ready comes before all that back off, in other queues as well.
    fn first(&mut self) -> Option<(Option<Timestamp>, Ranked)> {
        match self.ready.peek() {
            Some(ranked) => Some((None, **ranked)),
            None => self.backing_off.peek().map(|(until, ranked)| (Some(*until), *ranked)),
        }
    }

    fn pass(&mut self) {
        if self.ready.next().is_none() {
            self.backing_off.next();
        }
    }
}

/// The resources and names that calls under way exclude.
#[derive(Default)]
struct Taken<'a> {
    calls: usize,
    is_all: bool,
    names: BTreeSet<&'a str>,
}

impl<'a> Taken<'a> {
    fn exclude(&mut self, exclusion: Option<&'a Exclusion>) {
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
        let queue = self.queues[self.last].queue;
        self.total -= 1;
        self.lanes[queue.lane] -= 1;
        self.taken.calls += 1;
        self.taken.exclude(queue.exclusion.as_deref());
    }
}

impl Iterator for Due<'_> {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        if self.total == 0 || self.taken.is_all {
            return None;
        }
        let (lanes, taken) = (&self.lanes, &self.taken);
        let fronts = self.queues.iter_mut().enumerate().filter_map(|(at, due)| {
            let can_begin = lanes[due.queue.lane] > 0 && taken.allows(due.queue.exclusion.as_deref());
            // What excludes all others is not overtaken, or it might wait for as long as there is anything else.
            (can_begin || due.queue.is_alone()).then(|| Some((due.first()?, can_begin, at)))?
        });
        let ((_, (_, id)), can_begin, at) = fronts.min()?;
        if !can_begin {
            return None;
        }
        self.last = at;
        self.queues[at].pass();
        Some(id)
    }
}
