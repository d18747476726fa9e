//! References to what an instance will not report, as its schema says.

use std::sync::Arc;

use stead_core::diag::{Diagnostic, nearest};
use stead_core::expr::codes::ACCESS;
use stead_core::expr::{Access, Expression, Template};
use stead_core::graph::{Role, ScopeId, ScopeView, StaticView};
use stead_core::id::{NodeId, ResourceId};
use stead_core::manifest::{Implementation, Kind as ResourceKind};
use stead_core::schema::Schema;
use stead_core::text::{Kind, Span, locate};
use stead_core::value::Value;

use super::Types;
use crate::session::Prepared;

/// A finding for each member of a `reference()` that the schema of the instance excludes.
pub(super) fn check(prepared: &Prepared, types: &mut Types<'_>) -> Vec<Diagnostic> {
    let graph = &prepared.graph;
    let mut found = Vec::new();
    for (id, node) in graph.iter().filter(|(_, node)| node.role == Role::Instance) {
        let instance = graph.declaration(id);
        let values = instance.condition.as_deref().into_iter().chain(&instance.properties);
        let accesses: Vec<_> = values.flat_map(accesses).collect();
        if !accesses.is_empty() {
            let vault = Arc::clone(&types.session.vault);
            let view = graph.static_view(id, &prepared.facts, &*vault);
            found.extend(accesses.iter().filter_map(|access| wrong(prepared, node.scope, &view, access, types)));
        }
    }
    let Some(outermost) = graph.scopes.first() else { return found };
    let outputs = outermost.document.outputs.iter();
    let accesses: Vec<_> =
        outputs.flat_map(|output| output.condition.iter().chain([&output.value])).flat_map(accesses).collect();
    let vault = Arc::clone(&types.session.vault);
    let (scopes, scope, facts) = (&graph.scopes, ScopeId(0), &prepared.facts);
    let view = StaticView(ScopeView { scopes, scope, iteration: None, facts, seal: &*vault, budget: None });
    found.extend(accesses.iter().filter_map(|access| wrong(prepared, scope, &view, access, types)));
    found
}

/// Every access to what `reference()` returns, with the place of the string that it stands in.
fn accesses(node: &Template) -> Vec<(Access<'_>, Span)> {
    fn collect<'a>(node: &'a Template, found: &mut Vec<(&'a Expression, Span)>) {
        match &node.kind {
            Kind::Compiled(expression) => found.push((expression, node.span)),
            Kind::Array(items) => items.iter().for_each(|item| collect(item, found)),
            Kind::Object(entries) => entries.iter().for_each(|entry| collect(&entry.value, found)),
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::String(_) => {}
        }
    }
    let mut found = Vec::new();
    collect(node, &mut found);
    let all = found.into_iter();
    all.flat_map(|(expression, span)| expression.accesses("reference").map(move |access| (access, span))).collect()
}

fn wrong(
    prepared: &Prepared,
    scope: ScopeId,
    view: &StaticView<'_>,
    (access, span): &(Access<'_>, Span),
    types: &mut Types<'_>,
) -> Option<Diagnostic> {
    let Ok(Value::String(id)) = access.argument.evaluate(view) else { return None };
    let id = *prepared.graph.scope(scope).ids.get(&ResourceId::parse(&id).ok()?)?;
    let schema = reported(prepared, id, types)?;
    let legacy = usize::from(access.members.first().is_some_and(|(name, _)| *name == "actualState"));
    let (name, at) = access.members.get(legacy)?;
    // What the engine adds to states begins with an underscore.
    if name.starts_with('_') || schema.allows(name) {
        return None;
    }
    let message = format!("{} does not report a property '{name}'", prepared.graph.label(id));
    let known = schema.property_names();
    let help = match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean '{near}'?"),
        None => format!("it reports {}", known.join(", ")),
    };
    let place = locate(&prepared.sources, *span, at.clone());
    Some(Diagnostic::error(&ACCESS, place, message).with_help(help))
}

/// The schema of what an instance reports, if that is its own state.
fn reported(prepared: &Prepared, id: NodeId, types: &mut Types<'_>) -> Option<Arc<Schema>> {
    let node = prepared.graph.node(id);
    let is_own = node.role == Role::Instance && node.manifest.kind == ResourceKind::Resource;
    // An adapter may add to what its resources report.
    let is_adapted = matches!(node.manifest.implementation, Implementation::Adapted { .. });
    if is_own && !is_adapted { types.schema(&node.manifest) } else { None }
}
