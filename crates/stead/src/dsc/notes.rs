//! What dsc warns of that is no mistake.

use stead_core::call::{Execution, Operation};
use stead_core::document::{DataType, Document};
use stead_core::event::Mode;

use stead_engine::Prepared;

/// Warns of what dsc will not do for long, and of what it leaves out.
pub(super) fn warn(prepared: &Prepared, mode: Mode) {
    let place = |span| prepared.sources.place(span);
    for scope in &prepared.graph.scopes {
        for instance in scope.document.resources.iter().filter(|instance| instance.copy.is_some()) {
            tracing::warn!("{}: 'copy' is deprecated: dsc means to take it no more", place(instance.span));
        }
    }
    let computes = !(mode.operation == Operation::Export || mode.execution == Execution::WhatIf);
    let outermost = prepared.graph.scopes.first().filter(|_| computes);
    for (name, span) in outermost.into_iter().flat_map(|scope| secure_outputs(&scope.document)) {
        tracing::warn!("{}: Output '{name}' is secure, and left out", place(span));
    }
}

fn secure_outputs(document: &Document) -> impl Iterator<Item = (&str, stead_core::text::Span)> {
    let is_secure = |kind: DataType| matches!(kind, DataType::SecureString | DataType::SecureObject);
    let secure = document.outputs.iter().filter(move |output| is_secure(output.data_type.value));
    secure.map(|output| (output.name.value.as_str(), output.name.span))
}
