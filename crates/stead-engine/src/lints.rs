//! Values that resources accept, and that probably do something else than was meant.

use std::collections::HashSet;
use std::sync::Arc;

use stead_core::budget::Budget;
use stead_core::diag::Diagnostic;
use stead_core::expr::Template;
use stead_core::graph::{Role, stated_at};
use stead_core::manifest::Manifest;
use stead_core::text::Span;
use stead_core::value::pointer;
use stead_host::provider::lint::codes::SUSPICIOUS;
use stead_host::provider::{Plain, Provider};

use crate::prepared::Prepared;
use crate::session::Session;

impl Session {
    /// A warning for each such value, as far as properties are known before anything runs. The instances of a loop have one
    /// declaration, and what is said of it is said once.
    pub(crate) fn lints(&self, prepared: &Prepared) -> Vec<Diagnostic> {
        let (graph, budget) = (&prepared.graph, Budget::new(Budget::DOCUMENT));
        // Few, so that a search is faster than hashing.
        let mut providers: Vec<(&Arc<Manifest>, Arc<dyn Provider>)> = Vec::new();
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        for (id, node) in graph.iter().filter(|(_, node)| node.role == Role::Instance) {
            let at =
                providers.iter().position(|(manifest, _)| Arc::ptr_eq(manifest, &node.manifest)).unwrap_or_else(|| {
                    providers.push((&node.manifest, self.provider(&node.manifest)));
                    providers.len() - 1
                });
            let instance = graph.declaration(id);
            let linter = providers.get(at).and_then(|(_, provider)| provider.linter());
            let Some((linter, properties)) = linter.zip(instance.properties.as_ref()) else { continue };
            let Some(desired) = self.desired_so_far(prepared, id, &budget) else { continue };
            let covered = Plain::covered(&desired);
            for lint in covered.expose().as_object().map(|desired| linter.lint(desired)).unwrap_or_default() {
                let span = place(properties, &lint.property).unwrap_or(instance.name.span);
                if seen.insert((span, lint.message.clone())) {
                    found.push(Diagnostic::warning(&SUSPICIOUS, span, lint.message).with_help(lint.help));
                }
            }
        }
        found
    }
}

/// The place of a value; of one that an expression makes, that of the expression.
fn place(properties: &Template, property: &str) -> Option<Span> {
    let steps: Vec<_> = pointer::steps(property).collect();
    let outer =
        |count: usize| steps.iter().take(count).fold(String::new(), |outer, step| pointer::within(&outer, step));
    let mut outers = (1..=steps.len()).rev().map(outer);
    outers.find_map(|outer| stated_at(properties, &outer).map(|(value, _)| value.span))
}
