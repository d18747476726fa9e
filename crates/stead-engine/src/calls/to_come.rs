//! The calls that are still to come in a run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use stead_core::call::Call;
use stead_core::graph::Graph;
use stead_core::id::{NodeId, TypeName};

/// The instances that have not been called, by the adapter that carries them out.
pub(crate) struct ToCome(Mutex<BTreeMap<TypeName, BTreeSet<NodeId>>>);

impl ToCome {
    /// Those of a graph.
    pub(super) fn of(graph: &Graph) -> Self {
        let mut by_adapter = BTreeMap::<_, BTreeSet<_>>::new();
        for id in &graph.order {
            if let Some(adapter) = graph.node(*id).manifest.require_adapter() {
                by_adapter.entry(adapter.clone()).or_default().insert(*id);
            }
        }
        Self(Mutex::new(by_adapter))
    }

    /// How many are left of the adapter of a call, which is made now; 0 without an adapter.
    pub(super) fn behind(&self, call: &Call) -> usize {
        let Some(adapter) = call.manifest.require_adapter() else { return 0 };
        let mut by_adapter = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        by_adapter.get_mut(adapter).map_or(0, |instances| {
            instances.remove(&call.instance.node());
            instances.len()
        })
    }
}
