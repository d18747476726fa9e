//! Instances that manage the same thing, so that each undoes what the other did.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value as Json;
use stead_core::claims::{Claims, Conflict, Contradiction, conflicts};
use stead_core::diag::Diagnostic;
use stead_core::graph::{Graph, Role};
use stead_core::id::NodeId;
use stead_core::run::Run;
use stead_core::run::codes::CONFLICT;
use stead_host::provider::Plain;

use crate::literal::{is_literal, members};
use crate::session::{Prepared, Session};

/// No path is longer, and claims are about paths: longer texts, such as the content of files, are not copied.
const LONGEST_PATH: usize = 4096;

impl Session {
    /// A warning for each two instances that undo each other's work, as far as that is known before anything runs: of
    /// instances without a condition whose properties are written out.
    pub fn conflicts(&self, prepared: &Prepared) -> Vec<Diagnostic> {
        let graph = &prepared.graph;
        let found = self.conflicts_among(graph, |id| settled(graph, id).then(|| written(graph, id)));
        let equal = |one, other| literal(graph, one) == literal(graph, other);
        found.iter().filter(|found| !is_same(graph, found, equal)).map(|found| finding(graph, found)).collect()
    }

    /// The other ones, which are known after a run: of instances whose properties were computed.
    pub fn computed_conflicts(&self, run: &Run) -> Vec<Diagnostic> {
        let graph = run.graph();
        let is_computed = |id: NodeId| !settled(graph, id);
        if !graph.order.iter().any(|id| is_computed(*id)) {
            return Vec::new();
        }
        let desired = |id: NodeId| run.report().record(id).desired.as_deref();
        let found = self.conflicts_among(graph, |id| {
            let desired = desired(id)?;
            Some(if is_computed(id) { desired.to_redacted_json() } else { written(graph, id) })
        });
        let equal = |one, other| desired(one) == desired(other);
        let news = found.iter().filter(|found| is_computed(found.first) || is_computed(found.second));
        news.filter(|found| !is_same(graph, found, equal)).map(|found| finding(graph, found)).collect()
    }

    /// The conflicts among the instances of which the desired state is known.
    fn conflicts_among(&self, graph: &Graph, desired: impl Fn(NodeId) -> Option<Json>) -> Vec<Conflict> {
        let (calls, cx) = (self.calls(), self.context(Arc::<str>::default()));
        let claims_of = |id: &NodeId| {
            let node = graph.node(*id);
            // What a program manages, nobody knows.
            self.built_in(&node.manifest.type_name).filter(|_| node.role == Role::Instance)?;
            Some((*id, calls.claims_of(&node.manifest, &Plain::new(desired(*id)?), &cx)?))
        };
        let claims: Vec<(NodeId, Claims)> = graph.order.iter().filter_map(claims_of).collect();
        conflicts(&claims.iter().map(|(id, claims)| (*id, claims)).collect::<Vec<_>>())
    }
}

/// Whether the desired state of an instance is known before anything runs, and that it will be brought about.
fn settled(graph: &Graph, id: NodeId) -> bool {
    let unconditional = |id: NodeId| graph.declaration(id).condition.is_none();
    graph.declaration(id).properties.as_ref().is_some_and(is_literal)
        && std::iter::successors(Some(id), |id| graph.container(*id)).all(unconditional)
}

fn written(graph: &Graph, id: NodeId) -> Json {
    let properties = graph.declaration(id).properties.as_ref();
    let members = properties.map(|properties| members(properties, |_, text| text.len() <= LONGEST_PATH));
    Json::Object(members.unwrap_or_default())
}

fn literal(graph: &Graph, id: NodeId) -> Option<stead_core::value::Value> {
    graph.declaration(id).properties.as_ref().map(stead_core::text::Node::literal)
}

/// Whether both want the very same thing.
fn is_same(graph: &Graph, found: &Conflict, equal: impl Fn(NodeId, NodeId) -> bool) -> bool {
    let Conflict { first, second, .. } = *found;
    graph.node(first).manifest.type_name == graph.node(second).manifest.type_name && equal(first, second)
}

fn finding(graph: &Graph, found: &Conflict) -> Diagnostic {
    let Conflict { first, second, about, path } = found;
    let (one, other) = (graph.label(*first), graph.label(*second));
    Diagnostic::warning(&CONFLICT, graph.declaration(*second).name.span, message(&one, &other, *about, path))
        .with_label(graph.declaration(*first).name.span, "the other one")
        .with_help(match about {
            Contradiction::Same => "remove one of them, or give them different paths",
            Contradiction::Existence => "remove one of them",
            Contradiction::Purged => "add the name to the 'entries' of the directory, or remove one of them",
        })
}

fn message(one: &str, other: &str, about: Contradiction, path: &Path) -> String {
    let path = path.display();
    match about {
        Contradiction::Same => format!("{one} and {other} both manage the same file '{path}'"),
        Contradiction::Existence => format!("of {one} and {other}, one removes '{path}' and the other creates it"),
        Contradiction::Purged => {
            format!(
                "of {one} and {other}, one removes what its directory should not hold, and the other creates '{path}'"
            )
        }
    }
}
