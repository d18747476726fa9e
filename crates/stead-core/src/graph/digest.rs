//! The digest by which graphs are compared.

use sha2::{Digest as _, Sha256};

use super::Graph;
use crate::digest::hex;
use crate::document::DiscoveryTime;
use crate::text::Sources;

impl Graph {
    /// The SHA-256 of all that decides what a run of the graph does, in hexadecimal: the texts it came from, the values of
    /// its parameters, its instances with their order and needs, and the versions of their resources, unless those are
    /// looked for during the run.
    ///
    /// Guarantees: graphs with the same digest do the same on the same machine. Secrets count by their handles.
    pub fn digest(&self, sources: &Sources) -> String {
        let mut hash = Sha256::new();
        let mut add = |text: &str| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        };
        sources.iter().for_each(|(_, source)| add(&source.text));
        for scope in &self.scopes {
            scope.parameters.iter().for_each(|(name, value)| {
                add(name);
                add(&value.to_redacted_json().to_string());
            });
        }
        let is_settled = self.finds_resources_before();
        for (node, place) in self.nodes.iter().zip(&self.order) {
            let needs: Vec<_> = node.needs.iter().map(|need| (need.node.0, need.kind as u8)).collect();
            let version = if is_settled { node.manifest.version.to_string() } else { String::new() };
            add(&format!("{} {version} {needs:?} {}", node.path, place.0));
        }
        for exclusion in &self.exclusions {
            add(&format!("{exclusion:?}"));
        }
        hex(&hash.finalize())
    }

    /// Returns whether resources are searched for before anything runs, and never again.
    fn finds_resources_before(&self) -> bool {
        let discovery = self.scopes.first().and_then(|scope| scope.document.directives.discovery.as_ref());
        discovery.is_none_or(|discovery| discovery.value == DiscoveryTime::PreDeployment)
    }
}
