//! Sets of few nodes, most of which leave in the order in which they came.

use std::collections::VecDeque;

use crate::id::NodeId;

/// Few nodes, in ascending order.
#[derive(Default)]
pub(super) struct FewNodes(VecDeque<NodeId>);

impl FewNodes {
    pub(super) fn insert(&mut self, id: NodeId) {
        if self.0.back().is_none_or(|last| *last < id) {
            self.0.push_back(id);
        } else if let Err(place) = self.0.binary_search(&id) {
            self.0.insert(place, id);
        }
    }

    pub(super) fn remove(&mut self, id: NodeId) {
        if self.0.front() == Some(&id) {
            self.0.pop_front();
        } else if let Ok(place) = self.0.binary_search(&id) {
            self.0.remove(place);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = NodeId> {
        self.0.iter().copied()
    }

    /// Removes those that `is_wanted` says, and returns them.
    pub(super) fn extract(&mut self, is_wanted: impl Fn(NodeId) -> bool) -> VecDeque<NodeId> {
        let (wanted, others) = self.iter().partition(|id| is_wanted(*id));
        self.0 = others;
        wanted
    }
}
