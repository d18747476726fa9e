//! What can be begun, in the order in which it is begun.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::Room;
use crate::graph::Graph;
use crate::id::NodeId;
use crate::manifest::Lane;

/// A place in a queue: nodes that are ready come first, in the order of the graph; then those that back off, by time.
type Place = (Option<Timestamp>, u32, NodeId);

/// Nodes that something can be decided about, and nodes that back off, by the lanes of their calls.
///
/// Each lane has a queue of its own, so that nobody looks through what waits for room in another.
pub(super) struct Queues {
    lanes: Vec<(Lane, BTreeSet<Place>)>,
    /// For each node its place in `lanes`, and in the order of the graph.
    nodes: Vec<(usize, u32)>,
}

impl Queues {
    pub(super) fn new(graph: &Graph) -> Self {
        let mut known = BTreeMap::new();
        let lanes = graph.nodes.iter().map(|node| {
            let next = known.len();
            *known.entry(node.manifest.lane()).or_insert(next)
        });
        let mut nodes: Vec<(usize, u32)> = lanes.map(|lane| (lane, 0)).collect();
        for (rank, id) in (0..).zip(&graph.order) {
            nodes[id.index()].1 = rank;
        }
        let mut known: Vec<(Lane, usize)> = known.into_iter().collect();
        known.sort_by_key(|(_, at)| *at);
        Self { lanes: known.into_iter().map(|(lane, _)| (lane, BTreeSet::new())).collect(), nodes }
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
        let (lane, rank) = self.nodes[id.index()];
        self.lanes[lane].1.insert((until, rank, id));
    }

    /// Removes a node that is ready, or backs off until the instant given.
    pub(super) fn remove(&mut self, id: NodeId, until: Option<Timestamp>) {
        let (lane, rank) = self.nodes[id.index()];
        self.lanes[lane].1.remove(&(until, rank, id));
    }

    /// When the first node that backs off is due after `now`, of those at the front of their lane.
    pub(super) fn wake(&self, now: Timestamp) -> Option<Timestamp> {
        let behind = (Some(now), u32::MAX, NodeId(u32::MAX));
        self.lanes.iter().filter_map(|(_, queue)| queue.range(behind..).next()?.0).min()
    }

    /// The nodes that back off.
    pub(super) fn backing_off(&self) -> impl Iterator<Item = NodeId> {
        let first = (Some(Timestamp::MIN), 0, NodeId(0));
        self.lanes.iter().flat_map(move |(_, queue)| queue.range(first..)).map(|(_, _, id)| *id)
    }

    /// The nodes that can be begun at an instant, while there is room for them.
    pub(super) fn due(&self, until: Timestamp, room: &Room) -> Due<'_> {
        let last = (Some(until), u32::MAX, NodeId(u32::MAX));
        let lanes = self.lanes.iter().map(|(lane, queue)| {
            let left = room.lanes.get(lane).map_or(room.total, |left| *left);
            (queue.range(..=last).peekable(), left)
        });
        Due { lanes: lanes.collect(), total: room.total, last: 0 }
    }
}

/// Goes through nodes that can be begun, in the order of the graph.
pub(super) struct Due<'a> {
    lanes: Vec<(std::iter::Peekable<std::collections::btree_set::Range<'a, Place>>, usize)>,
    total: usize,
    /// The lane of the node that was given last.
    last: usize,
}

impl Due<'_> {
    /// Notes that the node given last takes room.
    pub(super) fn take_room(&mut self) {
        self.total -= 1;
        self.lanes[self.last].1 -= 1;
    }
}

impl Iterator for Due<'_> {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        let with_room = self.lanes.iter_mut().enumerate().filter(|(_, (_, left))| self.total > 0 && *left > 0);
        let fronts = with_room.filter_map(|(lane, (queue, _))| Some((**queue.peek()?, lane)));
        let (_, lane) = fronts.min()?;
        self.last = lane;
        self.lanes[lane].0.next().map(|(_, _, id)| *id)
    }
}
