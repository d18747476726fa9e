//! References to what an instance will not report, as its schema says.

use std::sync::Arc;

use stead_core::diag::{Diagnostic, Meant};
use stead_core::expr::codes::ACCESS;
use stead_core::expr::{Access, Placed, Template, expressions};
use stead_core::graph::{Role, ScopeId, StaticView};
use stead_core::id::{NodeId, ResourceId};
use stead_core::manifest::{self, Implementation};
use stead_core::schema::Schema;
use stead_core::text::{Span, locate};
use stead_core::value::Value;

use super::{Pass, Types};
use crate::prepared::Prepared;

/// A finding for each member of a `reference()` that the schema of the instance excludes.
pub(super) fn check(pass: &Pass<'_>, types: &mut Types<'_>) -> Vec<Diagnostic> {
    let prepared = pass.prepared;
    let graph = &prepared.graph;
    let mut found = Vec::new();
    for (id, node) in graph.iter().filter(|(_, node)| node.role == Role::Instance) {
        let instance = graph.declaration(id);
        // What is stated as it is holds no expression.
        let properties = instance.properties.as_ref().filter(|_| node.stated.is_none());
        let values = instance.condition.as_deref().into_iter().chain(properties);
        let accesses: Vec<_> = values.flat_map(accesses).collect();
        if !accesses.is_empty() {
            let view = pass.view(node.scope, node.iteration.as_deref());
            found.extend(accesses.iter().filter_map(|access| wrong(prepared, node.scope, &view, access, types)));
        }
    }
    let Some(outermost) = graph.scopes.first() else { return found };
    let outputs = outermost.document.outputs.iter();
    let accesses: Vec<_> =
        outputs.flat_map(|output| output.condition.iter().chain([&output.value])).flat_map(accesses).collect();
    let view = pass.view(ScopeId(0), None);
    found.extend(accesses.iter().filter_map(|access| wrong(prepared, ScopeId(0), &view, access, types)));
    found
}

/// Every access to what `reference()` returns, with the place of the string that it stands in.
fn accesses(node: &Template) -> Vec<(Access<'_>, Span)> {
    let all = expressions(node).into_iter();
    all.flat_map(|Placed { expression, span }| expression.accesses("reference").map(move |access| (access, span)))
        .collect()
}

fn wrong(
    prepared: &Prepared,
    scope: ScopeId,
    view: &StaticView<'_>,
    (access, span): &(Access<'_>, Span),
    types: &mut Types<'_>,
) -> Option<Diagnostic> {
    let Ok(Value::String(id)) = access.argument.evaluate(view) else { return None };
    let id = prepared.graph.scope(scope).ids.get(&ResourceId::parse(&id).ok()?)?.node();
    let schema = reported(prepared, id, types)?;
    let legacy = usize::from(access.members.first().is_some_and(|(name, _)| *name == "actualState"));
    let (name, at) = access.members.get(legacy)?;
    // What the engine adds to states begins with an underscore.
    let is_reported = |name: &str| !schema.write_only(name);
    if name.starts_with('_') || schema.allows(name) && is_reported(name) {
        return None;
    }
    let message = format!("{} does not report a property '{name}'", prepared.graph.label(id));
    let known: Vec<&str> = schema.property_names().into_iter().filter(|name| is_reported(name)).collect();
    let place = locate(&prepared.sources, *span, at.clone());
    let finding = Diagnostic::error(&ACCESS, place, message);
    Some(match Meant::word(name, known.iter().copied()) {
        Some(meant) => finding.with_meant(name, &meant, prepared.sources.text(place)),
        None => finding.with_help(format!("it reports {}", known.join(", "))),
    })
}

/// The schema of what an instance reports, if that is its own state.
fn reported(prepared: &Prepared, id: NodeId, types: &mut Types<'_>) -> Option<Arc<Schema>> {
    let node = prepared.graph.node(id);
    let is_own = node.role == Role::Instance && node.manifest.kind == manifest::ResourceKind::Resource;
    // An adapter may add to what its resources report.
    let is_adapted = matches!(node.manifest.implementation, Implementation::Adapted { .. });
    if is_own && !is_adapted { types.schema(&node.manifest) } else { None }
}
