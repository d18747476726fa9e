//! Where a document states that an instance needs another.

use super::link::{REFERRING, Reference, references_in};
use super::{Facts, Graph, ScopeView, codes, evaluate};
use crate::budget::Budget;
use crate::diag::Diagnostic;
use crate::document::Relation;
use crate::expr::{Placed, Template, expressions};
use crate::id::{NodeId, ResourceId};
use crate::text::{Sources, Span, locate};
use crate::value::{Seal, Value};

/// The places of what instances state about each other.
#[derive(Clone, Copy)]
pub struct StatedNeeds<'a> {
    /// The graph of the instances.
    pub graph: &'a Graph,
    /// The texts that they are declared in.
    pub sources: &'a Sources,
    /// The facts that their expressions see.
    pub facts: &'a Facts,
    /// Where secrets are kept.
    pub seal: &'a dyn Seal,
    /// The cost of evaluating is taken from it.
    pub budget: &'a Budget,
}

impl StatedNeeds<'_> {
    /// The finding about instances of which each needs the next and the last needs the first.
    pub(super) fn cycle(&self, ids: &[NodeId]) -> Diagnostic {
        let first = ids.first().copied().unwrap_or(NodeId(0));
        let following = || ids.iter().chain([&first]).skip(1);
        let path: Vec<String> = ids.iter().chain([&first]).map(|id| self.graph.label(*id)).collect();
        let message = format!("Circular dependency: {}", path.join(" -> "));
        let mut links = ids.iter().zip(following()).map(|(from, to)| (*from, self.place_or_name(*from, *to)));
        let span = links.next().map(|(_, span)| span).unwrap_or_default();
        let finding = Diagnostic::error(&codes::CYCLE, span, message).with_help("remove one of these dependencies");
        links.fold(finding, |finding, (id, span)| finding.with_label(span, self.here(id)))
    }

    /// The words beside a place at which an instance states a need.
    pub fn here(&self, id: NodeId) -> String {
        format!("{} depends on it here", self.graph.label(id))
    }

    fn place_or_name(&self, from: NodeId, to: NodeId) -> Span {
        self.place(from, to).unwrap_or(self.graph.declaration(from).name.span)
    }

    /// Returns where it is written that an instance needs another; `None` if it is implied.
    pub fn place(&self, from: NodeId, to: NodeId) -> Option<Span> {
        let listed = |id, is_before| {
            let relations = self.graph.declaration(id).directives().relations.iter();
            let wanted = relations.filter(move |(relation, _)| (*relation == Relation::Before) == is_before);
            wanted.flat_map(|(_, ids)| ids)
        };
        let declaration = self.graph.declaration(from);
        let mut own = declaration.depends_on.iter().chain(listed(from, false));
        let names =
            |who, entry: &Template, whom| evaluate(entry, &self.view(who)).is_ok_and(|value| self.is_id(&value, whom));
        let before = || listed(to, true).find(|entry| names(to, entry, from));
        if let Some(entry) = own.find(|entry| names(from, entry, to)).or_else(before) {
            return Some(entry.span);
        }
        let nodes = declaration.condition.as_deref().into_iter().chain(&declaration.properties);
        let expressions: Vec<Placed<'_>> = nodes.flat_map(expressions).collect();
        let view = self.view(from);
        let names_it = |each: &Reference<'_>| each.argument.evaluate(&view).is_ok_and(|id| self.is_id(&id, to));
        let mut all = REFERRING.into_iter().flat_map(|function| references_in(&expressions, function));
        all.find(names_it).map(|reference| locate(self.sources, reference.span, reference.argument.at()))
    }

    /// The view that the expressions of an instance have.
    fn view(&self, id: NodeId) -> ScopeView<'_> {
        let node = self.graph.node(id);
        ScopeView {
            scopes: &self.graph.scopes,
            scope: node.scope,
            iteration: node.iteration.as_deref(),
            facts: self.facts,
            seal: self.seal,
            budget: Some(self.budget),
        }
    }

    fn is_id(&self, value: &Value, id: NodeId) -> bool {
        let is_its_loop = |text: &str| {
            let iteration = self.graph.node(id).iteration.as_deref();
            iteration.is_some_and(|iteration| iteration.outward().any(|each| *each.name == *text))
        };
        value.as_str().is_some_and(|text| {
            ResourceId::parse(text).map_or_else(|_| is_its_loop(text), |named| named == self.graph.id_of(id))
        })
    }
}
