//! The states that a run finds.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;
use stead_core::graph::{Node, Role};
use stead_core::id::NodeId;
use stead_core::manifest::UndoWay;
use stead_host::provider::Plain;

use crate::contexts::Contexts;
use crate::prepared::Prepared;
use crate::session::Session;

impl Session {
    /// The states of instances that are taken back by their state, as they are now, by instance. A run that takes another one back puts
    /// their files back first, after which they are others.
    pub(crate) fn states_before(&self, prepared: &Prepared) -> BTreeMap<String, Json> {
        let graph = &prepared.graph;
        let contexts = Contexts::new(self.context(Arc::<str>::default()), graph);
        let state = |(id, node): (NodeId, &Node)| {
            let has_state = node.role == Role::Instance && node.manifest.undo == UndoWay::State;
            // Where a property is computed, or a secret, it is read right before the set.
            let desired = node.stated.as_ref().filter(|desired| has_state && !desired.has_sealed())?;
            let input = Plain::covered(desired);
            let state = self.shared.providers.of(&node.manifest).get(contexts.of(id), &input).ok()?;
            Some((node.path.to_string(), state.to_json()))
        };
        graph.iter().filter_map(state).collect()
    }
}
