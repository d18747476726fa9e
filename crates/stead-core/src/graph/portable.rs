//! Relations between instances that DSC v3 refuses or gets wrong.

use std::collections::BTreeMap;

use super::{Graph, NeedKind, Role, Scope};
use crate::diag::Diagnostic;
use crate::document::codes::NOT_PORTABLE;
use crate::expr::expressions;
use crate::id::NodeId;
use crate::manifest::ResourceKind;
use crate::text::{self, Sources, Span, locate};

impl Graph {
    /// Warnings about what DSC v3 does not do with these instances, in no order.
    pub fn not_portable(&self, sources: &Sources) -> Vec<Diagnostic> {
        let of_scopes = self.scopes.iter().flat_map(|scope| {
            let order = self.order_not_found(scope);
            order.into_iter().chain(self.not_found_by_name(scope)).chain(outer_values(scope, sources))
        });
        of_scopes.chain(self.without_set()).collect()
    }

    /// The dependencies of each instance of a scope, as pairs of the instance and the one that it requires.
    fn required(&self, scope: &Scope) -> Vec<(NodeId, NodeId)> {
        scope.members.iter().flat_map(|id| self.required_by(*id).map(|need| (*id, need))).collect()
    }

    fn required_by(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let needs = self.node(id).needs.iter().filter(|need| need.kind == NeedKind::Require);
        needs.map(|need| need.node)
    }

    /// Dependencies that come too late where they are looked for one level deep, as dsc does it.
    fn order_not_found(&self, scope: &Scope) -> Vec<Diagnostic> {
        let required = self.required(scope);
        let mut places: BTreeMap<NodeId, usize> = BTreeMap::new();
        for id in &scope.members {
            let is_stated = !self.declaration(*id).depends_on.is_empty();
            for next in self.required_by(*id).filter(|_| is_stated).chain([*id]) {
                let place = places.len();
                places.entry(next).or_insert(place);
            }
        }
        let late = required.iter().filter(|(dependent, need)| places.get(need) > places.get(dependent));
        let described = |(dependent, need): &(NodeId, NodeId)| {
            let (need, dependent) = (*need, *dependent);
            let message = format!(
                "that '{}' comes before '{}' is not found by dsc, which looks one level deep",
                self.node(need).name,
                self.node(dependent).name
            );
            warning(self.declaration(dependent).name.span, message)
                .with_help("declare it before, and name it in 'dependsOn'")
        };
        late.map(described).collect()
    }

    /// Dependencies on what dsc does not find by its name.
    fn not_found_by_name(&self, scope: &Scope) -> Vec<Diagnostic> {
        let required = self.required(scope);
        let described = |(dependent, need): &(NodeId, NodeId)| {
            let (instance, needed) = (self.declaration(*dependent), self.declaration(*need));
            let place = instance.depends_on.first()?.span;
            let (dependent, node) = (self.node(*dependent), self.node(*need));
            if node.iteration.is_none() && matches!(needed.name.kind, text::Kind::Compiled(_)) {
                let message = format!("'{}' is not found by dsc: its name is an expression", node.name);
                return Some(warning(place, message));
            }
            dependent.iteration.as_ref()?;
            let is_alike = |id: &&NodeId| self.declaration(**id).type_name.value == needed.type_name.value;
            let first = scope.members.iter().find(is_alike).filter(|first| *first != need)?;
            let message = format!(
                "dsc takes '{}' for '{}': in a loop it looks for the type alone",
                self.node(*first).name,
                node.name
            );
            Some(warning(place, message))
        };
        required.iter().filter_map(described).collect()
    }

    /// Instances that dsc cannot set, even where they are in their desired state.
    fn without_set(&self) -> impl Iterator<Item = Diagnostic> + '_ {
        let is_unset = |id: NodeId| {
            let node = self.node(id);
            let can = &node.manifest.capabilities;
            node.role == Role::Instance
                && node.manifest.kind == ResourceKind::Resource
                && !can.set
                && !self.is_asserted(id)
        };
        self.iter().filter(move |(id, _)| is_unset(*id)).map(|(id, node)| {
            let message = format!("'config set' fails in dsc: '{}' has no 'set'", node.manifest.type_name);
            warning(self.declaration(id).type_name.span, message).with_help("put it into an assertion")
        })
    }
}

/// Parameters and variables of the document around a group, which dsc does not see.
fn outer_values(scope: &Scope, sources: &Sources) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let document = &scope.document;
    for placed in document.computing_values().filter(|_| scope.outer.is_some()).flat_map(expressions) {
        for function in ["parameters", "variables"] {
            for call in placed.expression.calls(function) {
                let argument = call.arguments().next();
                let Some(name) = argument.as_ref().and_then(|argument| argument.text()) else { continue };
                let is_own = match function {
                    "parameters" => document.parameters.iter().any(|parameter| parameter.name.value == name),
                    _ => document.variables.iter().any(|variable| variable.name.value == name),
                };
                if !is_own {
                    let message =
                        format!("'{function}('{name}')' of the document around the group is not found by dsc");
                    found.push(warning(locate(sources, placed.span, call.at()), message));
                }
            }
        }
    }
    found
}

fn warning(span: Span, message: String) -> Diagnostic {
    Diagnostic::warning(&NOT_PORTABLE, span, message)
}
