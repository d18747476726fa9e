//! The outputs of a document, computed from what its instances answered.

use std::cell::Cell;
use std::collections::BTreeSet;

use super::view::View;
use super::{Run, codes};
use crate::call::Execution;
use crate::diag::Diagnostic;
use crate::document::Output;
use crate::expr::{FactKey, Stop};
use crate::graph::{Halt, ScopeId, ScopeView, evaluate, wrong_output};
use crate::text::Span;
use crate::value::{Value, sealing_wrapped};

impl Run {
    /// The values of the outputs of the outermost document, in the order declared, or what is wrong with them.
    ///
    /// Left out are those whose condition is false and those of secure type, and in what-if all that may still come to
    /// something: they tell of what was done.
    pub fn outputs(&self) -> Vec<(String, Result<Value, Diagnostic>)> {
        let Some(scope) = self.graph.scopes.first() else { return Vec::new() };
        let view = self.outermost();
        let shown = scope.document.outputs.iter().filter(|output| !output.data_type.value.is_secure());
        let outputs = shown.filter_map(|output| Some((output.name.value.clone(), self.output(output, &view)?)));
        outputs.filter(|(_, value)| self.mode.execution == Execution::Actual || value.is_err()).collect()
    }

    fn outermost(&self) -> View<'_> {
        let (scopes, facts, seal) = (&self.graph.scopes, &self.facts, &*self.seal);
        let place = ScopeView { scopes, scope: ScopeId(0), iteration: None, facts, seal, budget: None };
        View { place, run: self, of: None, read_open: Cell::default() }
    }

    fn output(&self, output: &Output, view: &View<'_>) -> Option<Result<Value, Diagnostic>> {
        view.read_open.set(None);
        let wanted = output.condition.as_ref().map(|condition| evaluate(condition, view));
        match wanted {
            None | Some(Ok(Value::Bool(true))) => {}
            Some(Ok(_)) => return None,
            Some(Err(halt)) => return self.halted_output(&halt, view).map(Err),
        }
        Some(match evaluate(&output.value, view) {
            Ok(value) => match wrong_output(output, &value) {
                Some(finding) => Err(finding),
                None => Ok(sealing_wrapped(value, &*self.seal)),
            },
            Err(halt) => Err(self.halted_output(&halt, view)?),
        })
    }

    /// Returns why an output has no value; `None` where it may have one when the run is made.
    fn halted_output(&self, halt: &Halt, view: &View<'_>) -> Option<Diagnostic> {
        // Of a part of the document, what refers to the rest has no value.
        let may_lack = self.only_looks() || self.exceptions.selected.is_some();
        match &halt.stop {
            Stop::Fault(_) if view.left_open().is_some() => return None,
            Stop::Fault(_) => {}
            _ if may_lack => return None,
            _ => {}
        }
        Some(halt.diagnostic(&self.sources).unwrap_or_else(|| {
            let message = match &halt.stop {
                Stop::Missing(key) => match self.facts.get(key) {
                    Some(Err(reason)) => return no_fact(key, halt.span, reason),
                    _ => "the machine was not asked for a value that this needs".to_owned(),
                },
                _ => "it depends on what is not known".to_owned(),
            };
            Diagnostic::error(&codes::NO_FACT, halt.span, message)
        }))
    }

    /// Returns what the outputs ask of the machine, to be observed before they are computed.
    pub fn output_wants(&self) -> BTreeSet<FactKey> {
        let Some(scope) = self.graph.scopes.first() else { return BTreeSet::new() };
        let view = self.outermost();
        let nodes = scope.document.outputs.iter().flat_map(|output| output.condition.iter().chain([&output.value]));
        let wanted = nodes.filter_map(|node| match evaluate(node, &view).err()?.stop {
            Stop::Missing(key) if !self.facts.contains_key(&key) => Some(key),
            _ => None,
        });
        wanted.collect()
    }
}

/// The finding that the machine cannot supply what an expression asks for.
pub(super) fn no_fact(key: &FactKey, span: Span, reason: &str) -> Diagnostic {
    let finding = Diagnostic::error(&codes::NO_FACT, span, reason.to_owned());
    match key {
        FactKey::Secret(..) if reason.starts_with("No ") => finding.with_help(
            "an extension for a vault supplies secrets, and none is installed. Without one, declare a parameter of the type secureString, \
             write parameters('NAME'), and pass the value in the environment as STEAD_PARAM_NAME",
        ),
        FactKey::Secret(..) => finding.with_help("store it in the vault under this name, or correct the name"),
        _ => finding,
    }
}
