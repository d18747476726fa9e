//! Instances that manage the same thing, so that each undoes what the other did.

use std::path::Path;
use std::sync::Arc;

use stead_core::claims::{Claims, Conflict, Contradiction, conflicts};
use stead_core::diag::Diagnostic;
use stead_core::graph::{Graph, Role};
use stead_core::id::NodeId;
use stead_core::manifest::Implementation;
use stead_core::run::Run;
use stead_core::run::codes::CONFLICT;
use stead_core::value::Value;
use stead_host::provider::Plain;

use crate::session::{Prepared, Session};

impl Session {
    /// Finds instances that undo each other's work, as far as that is known before anything runs: those without a condition
    /// whose properties are written out. The later of each two begins when the earlier one has ended, so that it finds what
    /// that one left and does not report as unchanged what is being removed. Each is a warning.
    pub(crate) fn order_conflicts(&self, prepared: &mut Prepared) {
        let found = self.stated_conflicts(&prepared.graph);
        let pairs: Vec<_> = found.iter().filter_map(|found| adjacent(&prepared.graph, found)).collect();
        if !pairs.is_empty() {
            let graph = Arc::make_mut(&mut prepared.graph);
            for (first, second) in pairs {
                graph.add_order(first, second);
            }
        }
        prepared.warnings.extend(warnings(&prepared.graph, &found));
    }

    fn stated_conflicts(&self, graph: &Graph) -> Vec<Conflict> {
        self.conflicts_among(graph, |id| settled(graph, id))
    }

    /// The other ones, which are known after a run: of instances whose properties were computed.
    pub fn computed_conflicts(&self, run: &Run) -> Vec<Diagnostic> {
        let graph = run.graph();
        let is_computed = |id: NodeId| settled(graph, id).is_none();
        if !graph.order.iter().any(|id| is_computed(*id)) {
            return Vec::new();
        }
        let desired = |id: NodeId| run.report().record(id).desired.as_ref();
        let found = self.conflicts_among(graph, desired);
        let equal = |one, other| desired(one) == desired(other);
        let news = found.iter().filter(|found| is_computed(found.first) || is_computed(found.second));
        news.filter(|found| !is_same(graph, found, equal)).map(|found| finding(graph, found)).collect()
    }

    /// The conflicts among the instances of which the desired state is known.
    fn conflicts_among<'g>(
        &self,
        graph: &'g Graph,
        desired: impl Fn(NodeId) -> Option<&'g Arc<Value>>,
    ) -> Vec<Conflict> {
        let claims = self.claims_among(graph, desired);
        conflicts(&claims.iter().map(|(id, claims)| (*id, claims)).collect::<Vec<_>>())
    }

    /// What the instances of a run read and manage, as far as that is known: those of built-in resources whose desired state
    /// was computed, or is written out in the document. What a program manages, nobody knows.
    pub fn claims(&self, run: &Run) -> Vec<(NodeId, Claims)> {
        let graph = run.graph();
        self.claims_among(graph, |id| run.report().record(id).desired.as_ref().or(graph.node(id).stated.as_ref()))
    }

    fn claims_among<'g>(
        &self,
        graph: &'g Graph,
        desired: impl Fn(NodeId) -> Option<&'g Arc<Value>>,
    ) -> Vec<(NodeId, Claims)> {
        let calls = self.calls();
        let claims_of = |id: &NodeId| {
            let node = graph.node(*id);
            let is_built_in = matches!(node.manifest.implementation, Implementation::BuiltIn);
            let desired = desired(*id).filter(|_| is_built_in && node.role == Role::Instance)?;
            Some((*id, calls.claims_of(&node.manifest, &Plain::covered(desired))?))
        };
        let mut claims = Vec::with_capacity(graph.order.len());
        claims.extend(graph.order.iter().filter_map(claims_of));
        claims
    }
}

fn warnings(graph: &Graph, found: &[Conflict]) -> Vec<Diagnostic> {
    let equal = |one, other| graph.node(one).stated == graph.node(other).stated;
    found.iter().filter(|found| !is_same(graph, found, equal)).map(|found| finding(graph, found)).collect()
}

/// The two instances or, where they are not adjacent, what holds them; `None` where the same holds both all the way.
fn adjacent(graph: &Graph, found: &Conflict) -> Option<(NodeId, NodeId)> {
    let with_containers = |id: NodeId| std::iter::successors(Some(id), |id| graph.container(*id));
    let beside = |first: NodeId| {
        let scope = graph.node(first).scope;
        with_containers(found.second).find(|second| graph.node(*second).scope == scope).map(|second| (first, second))
    };
    with_containers(found.first).find_map(beside).filter(|(first, second)| first != second)
}

/// The desired state of an instance, if it is known before anything runs that it will be reached.
fn settled(graph: &Graph, id: NodeId) -> Option<&Arc<Value>> {
    let unconditional = |id: NodeId| graph.declaration(id).condition.is_none();
    let stated = graph.node(id).stated.as_ref()?;
    std::iter::successors(Some(id), |id| graph.container(*id)).all(unconditional).then_some(stated)
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
            _ if stead_resources::account_at(path).is_some() => "let both state the same, or remove one of them",
            Contradiction::Same | Contradiction::Kind => "remove one of them, or give them different paths",
            Contradiction::Mode => "remove one of them, or give both the same mode",
            Contradiction::Replaced => "make the other one depend on the link, or remove one of them",
            Contradiction::Existence => "remove one of them",
            Contradiction::Purged => "add the name to the 'entries' of the directory, or remove one of them",
        })
}

fn message(one: &str, other: &str, about: Contradiction, path: &Path) -> String {
    if let Some(account) = stead_resources::account_at(path) {
        return format!("{one} and {other} contradict each other about {account}");
    }
    let path = path.display();
    match about {
        Contradiction::Same => format!("{one} and {other} both manage the same file '{path}'"),
        Contradiction::Kind => {
            format!("{one} and {other} require different kinds of '{path}': a file, a directory or a symbolic link")
        }
        Contradiction::Mode => format!("{one} and {other} require different modes of '{path}'"),
        Contradiction::Replaced => {
            format!(
                "{one} manages '{path}', and {other}, which comes later, replaces its directory with a symbolic link"
            )
        }
        Contradiction::Existence => format!("of {one} and {other}, one removes '{path}' and the other creates it"),
        Contradiction::Purged => {
            format!(
                "of {one} and {other}, one removes what its directory should not hold, and the other creates '{path}'"
            )
        }
    }
}
