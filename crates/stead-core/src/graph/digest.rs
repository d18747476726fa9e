//! What tells one graph from another.

use sha2::{Digest as _, Sha256};

use super::Graph;
use crate::digest::hex;
use crate::text::Sources;

impl Graph {
    /// The SHA-256 of all that decides what a run of the graph does, in hexadecimal: the texts it came from, the values of
    /// its parameters, its instances with their order and needs, and the versions of their resources.
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
        for (node, place) in self.nodes.iter().zip(&self.order) {
            let needs: Vec<_> = node.needs.iter().map(|need| (need.node.0, need.kind as u8)).collect();
            add(&format!("{} {} {needs:?} {}", node.path, node.manifest.version, place.0));
        }
        for exclusion in &self.exclusions {
            add(&format!("{exclusion:?}"));
        }
        hex(&hash.finalize())
    }
}
