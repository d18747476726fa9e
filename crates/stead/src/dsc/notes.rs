//! What dsc warns of that is not an error.

use stead_core::call::{Execution, Operation};
use stead_core::document::{DataType, DiscoveryTime, Document};
use stead_core::event::Mode;

use stead_core::run::Run;

use stead_engine::Prepared;

/// Warns of what dsc will not do for long, and of what it leaves out.
pub(super) fn warn(prepared: &Prepared, mode: Mode) {
    let place = |span| prepared.sources.place(span);
    for scope in &prepared.graph.scopes {
        for instance in scope.document.resources.iter().filter(|instance| !instance.copy.is_empty()) {
            tracing::warn!("{}: 'copy' is deprecated and will be removed from DSC", place(instance.span));
        }
    }
    let computes = !(mode.operation == Operation::Export || mode.execution == Execution::WhatIf);
    let outermost = prepared.graph.scopes.first().filter(|_| computes);
    for (name, span) in outermost.into_iter().flat_map(|scope| secure_outputs(&scope.document)) {
        tracing::warn!("{}: output '{name}' is secure and is left out", place(span));
    }
}

/// Returns whether resources that are not there are looked for once more when they are needed.
pub(super) fn looks_again(prepared: &Prepared) -> bool {
    let outermost = prepared.graph.scopes.first().and_then(|scope| scope.document.directives.discovery.as_ref());
    outermost.is_some_and(|discovery| discovery.value == DiscoveryTime::DuringDeployment)
}

/// Warns of instances that a set did not bring to their desired state: dsc reports the states and no more.
pub(super) fn warn_of_unreached(run: &Run) {
    let (graph, report) = (run.graph(), run.report());
    for id in &graph.order {
        let record = report.record(*id);
        if let (Some(properties), None) = (record.not_converged(), record.failure()) {
            let place = run.sources().place(graph.declaration(*id).name.span);
            let (label, properties) = (graph.label(*id), properties.join(", "));
            tracing::warn!(
                "{place}: {label} is not in the desired state after set; these properties differ: {properties}"
            );
        }
    }
}

fn secure_outputs(document: &Document) -> impl Iterator<Item = (&str, stead_core::text::Span)> {
    let is_secure = |kind: DataType| matches!(kind, DataType::SecureString | DataType::SecureObject);
    let secure = document.outputs.iter().filter(move |output| is_secure(output.data_type.value));
    secure.map(|output| (output.name.value.as_str(), output.name.span))
}
