//! The second pass: what each instance needs, whether it may, and the order that follows.

use std::collections::BTreeSet;

use super::order::{Cycle, sort};
use super::resolve::Builder;
use super::{Graph, Role, ScopeId, codes};
use crate::diag::{Diagnostic, nearest};
use crate::expr::Part;
use crate::id::{NodeId, ResourceId};
use crate::text::{Kind, Node, Span, locate};
use crate::value::Value;

pub(super) fn link(builder: &mut Builder<'_>) {
    for at in 0..builder.graph.nodes.len() {
        let id = NodeId(u32::try_from(at).unwrap_or(u32::MAX));
        let needs = needs(builder, id);
        builder.graph.nodes[at].needs = needs.into_iter().collect();
    }
    if builder.findings.iter().all(|finding| finding.severity != crate::diag::Severity::Error) {
        order(builder);
    }
}

fn needs(builder: &mut Builder<'_>, id: NodeId) -> BTreeSet<NodeId> {
    let node = builder.graph.node(id);
    let (scope, turn) = (node.scope, node.turn.clone());
    let document = std::sync::Arc::clone(&builder.graph.scope(scope).document);
    let declaration = &document.resources[node.declaration as usize];
    let role = node.role;
    let mut needs = BTreeSet::new();
    for entry in &declaration.depends_on {
        if let Some(text) = builder.text(scope, turn.as_ref(), entry, "dependsOn") {
            needs.extend(target(builder, id, &text, entry.span, "depends on"));
        }
    }
    let mut references = Vec::new();
    // The properties of a holder are its nested instances, which have needs of their own.
    let properties = declaration.properties.as_ref().filter(|_| role == Role::Instance);
    for node in declaration.condition.iter().chain(properties) {
        collect_references(node, &mut references);
    }
    for reference in references {
        if let Some(text) = known_text(builder, scope, id, &reference.argument) {
            let span = locate(builder.sources, reference.span, reference.argument.at());
            needs.extend(target(builder, id, &text, span, "refers to"));
        }
    }
    needs
}

/// The argument of a call that refers to an instance.
struct Reference<'a> {
    /// The string that holds the expression.
    span: Span,
    argument: Part<'a>,
}

/// The argument of a `reference()`, if it can be told before anything runs.
fn known_text(builder: &Builder<'_>, scope: ScopeId, id: NodeId, argument: &Part<'_>) -> Option<String> {
    let turn = builder.graph.node(id).turn.as_ref();
    let place = super::Place { scopes: &builder.graph.scopes, scope, turn, facts: builder.inputs.facts };
    match argument.evaluate(&place) {
        Ok(Value::String(text)) => Some(text),
        _ => None,
    }
}

fn collect_references<'a>(node: &'a Node, found: &mut Vec<Reference<'a>>) {
    match &node.kind {
        Kind::Expression(expression) => {
            for name in ["reference", "stateChanged"] {
                let arguments = expression.calls(name).filter_map(|call| call.arguments().next());
                found.extend(arguments.map(|argument| Reference { span: node.span, argument }));
            }
        }
        Kind::Array(items) => items.iter().for_each(|item| collect_references(item, found)),
        Kind::Object(entries) => entries.iter().for_each(|entry| collect_references(&entry.value, found)),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::String(_) => {}
    }
}

/// The adjacent instance of that id, or a finding that says why there is none.
fn target(builder: &mut Builder<'_>, from: NodeId, text: &str, span: Span, verb: &str) -> Option<NodeId> {
    let id = match ResourceId::parse(text) {
        Ok(id) => id,
        Err(error) => {
            let finding = Diagnostic::error(&codes::NOT_AN_ID, span, error.to_string());
            builder.findings.push(finding.with_help("write [resourceId('Owner/Type', 'name')]"));
            return None;
        }
    };
    let scope = builder.graph.scope(builder.graph.node(from).scope);
    if let Some(found) = scope.ids.get(&id) {
        return Some(*found);
    }
    let finding = not_found(&builder.graph, from, &id, span, verb);
    builder.findings.push(finding);
    None
}

fn not_found(graph: &Graph, from: NodeId, id: &ResourceId, span: Span, verb: &str) -> Diagnostic {
    let this = graph.label(from);
    let wanted = format!("'{}' ({})", id.name, id.type_name);
    if let Some(external) = graph.scopes.iter().find_map(|scope| scope.ids.get(id)) {
        return external_target(graph, from, *external, span, verb);
    }
    let message = match verb {
        "depends on" => format!(
            "'dependsOn' resource name '{}' does not exist for resource named '{}': there is no {wanted}",
            id.name,
            graph.node(from).name
        ),
        _ => format!("{this} {verb} {wanted}, which does not exist"),
    };
    let finding = Diagnostic::error(&codes::UNKNOWN_INSTANCE, span, message);
    let adjacent = &graph.scope(graph.node(from).scope).ids;
    if let Some(other) = adjacent.keys().find(|other| other.name == id.name) {
        let help = format!("'{}' is of type '{}'", other.name, other.type_name);
        return finding.with_help(help);
    }
    match nearest(&id.name, adjacent.keys().map(|other| other.name.as_str())) {
        Some(name) => finding.with_help(format!("did you mean '{name}'?")),
        None => finding,
    }
}

fn external_target(graph: &Graph, from: NodeId, external: NodeId, span: Span, verb: &str) -> Diagnostic {
    let (this, other) = (graph.label(from), graph.label(external));
    let message = format!("{this} {verb} {other}, which is not adjacent to it");
    let finding = Diagnostic::error(&codes::NOT_ADJACENT, span, message)
        .with_label(graph.declaration(external).name.span, "declared here");
    let here = graph.node(from).scope;
    // The holder on the way to the external instance that is adjacent to this one, if it lies deeper.
    let outward = std::iter::successors(Some(external), |id| graph.holder(*id));
    if let Some(holder) = outward.skip(1).find(|id| graph.node(*id).scope == here) {
        let holder = graph.label(holder);
        return finding.with_help(format!("it is nested in {holder}: depend on that instead"));
    }
    match graph.holder(from) {
        Some(holder) => {
            let holder = graph.label(holder);
            finding.with_help(format!("this instance is nested in {holder}: let that depend on it instead"))
        }
        None => finding,
    }
}

/// Sorts every scope and strings them together, what is nested behind what holds it.
fn order(builder: &mut Builder<'_>) {
    let graph = &builder.graph;
    let mut sorted = Vec::with_capacity(graph.scopes.len());
    for scope in &graph.scopes {
        sorted.push(sort_scope(graph, &scope.members).unwrap_or_else(|cycle| {
            builder.findings.push(cycle_finding(graph, &scope.members, &cycle));
            Vec::new()
        }));
    }
    let mut order = Vec::with_capacity(builder.graph.nodes.len());
    if let Some(outermost) = sorted.first() {
        append(&builder.graph, &sorted, outermost, &mut order);
    }
    builder.graph.order = order;
}

fn append(graph: &Graph, sorted: &[Vec<NodeId>], scope: &[NodeId], order: &mut Vec<NodeId>) {
    for &id in scope {
        order.push(id);
        if let Role::Holder { inner, .. } = graph.node(id).role {
            append(graph, sorted, &sorted[inner.index()], order);
        }
    }
}

fn sort_scope(graph: &Graph, members: &[NodeId]) -> Result<Vec<NodeId>, Cycle> {
    // Members are in document order, so a binary search finds the place of a need among them.
    let place = |id: &NodeId| members.binary_search(id).unwrap_or(0);
    let needs: Vec<Vec<usize>> = members.iter().map(|id| graph.node(*id).needs.iter().map(place).collect()).collect();
    Ok(sort(&needs)?.into_iter().map(|at| members[at]).collect())
}

fn cycle_finding(graph: &Graph, members: &[NodeId], cycle: &Cycle) -> Diagnostic {
    let ids: Vec<NodeId> = cycle.0.iter().map(|at| members[*at]).collect();
    let first = ids.first().copied().unwrap_or(NodeId(0));
    let path: Vec<String> = ids.iter().chain([&first]).map(|id| graph.label(*id)).collect();
    let span = |id: NodeId| {
        let declaration = graph.declaration(id);
        declaration.depends_on.first().map_or(declaration.name.span, |entry| entry.span)
    };
    let message = format!("Circular dependency: {}", path.join(" -> "));
    let finding = Diagnostic::error(&codes::CYCLE, span(first), message);
    ids.iter().skip(1).fold(finding, |finding, id| {
        let label = format!("{} waits here", graph.label(*id));
        finding.with_label(span(*id), label)
    })
}
