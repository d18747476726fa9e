//! What of a document DSC v3 does not have.

use super::{Document, Exclusive, Instance, Reconcile, codes};
use crate::diag::Diagnostic;
use crate::expr::{Placed, expressions};
use crate::id::TypeName;
use crate::text::{Sources, Span, locate};

/// Whose types only stead has.
const OWNER: &str = "stead";

impl Document {
    /// Warnings about the functions, directives and types that DSC v3 does not have, in the order written.
    ///
    /// What is nested in a group is a document of its own, and so is what is included.
    pub fn not_portable(&self, sources: &Sources) -> Vec<Diagnostic> {
        let mut found = self.directives_of_stead();
        for instance in &self.resources {
            let type_name = &instance.type_name;
            if is_of_stead(&type_name.value) {
                found.push(finding(type_name.span, &format!("the type '{}'", type_name.value)));
            }
            found.extend(instance.directives_of_stead());
        }
        let defaults = self.parameters.iter().filter_map(|parameter| parameter.default.as_ref());
        let outputs = self.functions.iter().map(|function| &function.output);
        for Placed { expression, span } in defaults.chain(outputs).chain(self.values()).flat_map(expressions) {
            let own = expression.builtins().filter(|(builtin, _)| builtin.is_own());
            found.extend(own.map(|(builtin, at)| {
                finding(locate(sources, span, at), &format!("the function '{}()'", builtin.name))
            }));
        }
        found.sort_by_key(|finding| finding.span);
        found
    }

    fn directives_of_stead(&self) -> Vec<Diagnostic> {
        let directives = &self.directives;
        let reconcile = &directives.reconcile;
        let places = [
            reconcile.reconciler.as_ref().map(|each| each.span),
            reconcile.pending.as_ref().map(|each| each.span),
            reconcile.wait.as_ref().map(|each| each.span),
        ];
        let is_stated = *reconcile != Reconcile::default();
        let place = places.into_iter().flatten().next().unwrap_or(Span::new(self.source, 0, 0));
        let stated = [
            ("configurationMode", directives.configuration_mode.as_ref().map(|each| each.span)),
            ("reconcile", is_stated.then_some(place)),
            ("implicitOrder", directives.implicit_order.as_ref().map(|each| each.span)),
        ];
        stated.into_iter().filter_map(|(name, span)| Some(directive(span?, name))).collect()
    }
}

impl Instance {
    fn directives_of_stead(&self) -> Vec<Diagnostic> {
        let directives = self.directives();
        let exclusive = directives.exclusive.as_ref().map(|exclusive| match exclusive {
            Exclusive::Names(names) => names.first().map_or(self.span, |name| name.span),
            Exclusive::All => self.span,
        });
        let stated = [
            ("configurationMode", directives.configuration_mode.as_ref().map(|each| each.span)),
            ("reconcileWait", directives.reconcile_wait.as_ref().map(|each| each.span)),
            ("exclusive", exclusive),
        ];
        let relations = directives
            .relations
            .iter()
            .map(|(relation, ids)| (relation.as_str(), Some(ids.first().map_or(self.span, |id| id.span))));
        stated.into_iter().chain(relations).filter_map(|(name, span)| Some(directive(span?, name))).collect()
    }
}

fn is_of_stead(type_name: &TypeName) -> bool {
    type_name.as_str().split_once('/').is_some_and(|(owner, _)| owner.eq_ignore_ascii_case(OWNER))
}

fn directive(span: Span, name: &str) -> Diagnostic {
    finding(span, &format!("the directive '{name}'"))
}

fn finding(span: Span, what: &str) -> Diagnostic {
    Diagnostic::warning(&codes::NOT_PORTABLE, span, format!("{what} is not supported by dsc"))
}
