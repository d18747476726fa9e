//! Instances that are carried out on this machine although another system is managed.

use stead_core::diag::Diagnostic;
use stead_core::graph::Role;
use stead_core::graph::codes::BESIDE_ROOT;
use stead_core::id::NodeId;

use crate::prepared::Prepared;
use crate::session::Session;
use crate::staying::listed;

impl Session {
    /// A warning about the selected instances whose resources do not keep below the system root: their programs run on this
    /// machine.
    pub fn beside_root(&self, prepared: &Prepared) -> Option<Diagnostic> {
        let root = self.system_root()?;
        let graph = &prepared.graph;
        let is_beside = |id: &NodeId| {
            let node = graph.node(*id);
            let (can, keeps) = (node.manifest.capabilities, node.manifest.promises.below_root);
            node.role == Role::Instance && prepared.is_selected(*id) && !keeps && (can.set || can.delete || can.test)
        };
        let beside: Vec<NodeId> = graph.order.iter().copied().filter(is_beside).collect();
        let first = graph.declaration(*beside.first()?).type_name.span;
        let labels: Vec<String> = beside.iter().map(|id| graph.label(*id)).collect();
        let named = listed(&labels, labels.len());
        let message = format!("programs run on this machine, not in '{}': {named}", root.display());
        let help = "leave them out with '--skip TYPE', or run stead inside that system";
        Some(Diagnostic::warning(&BESIDE_ROOT, first, message).with_help(help))
    }
}
