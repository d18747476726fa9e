//! A graph while it is built, and what both passes over a document ask it.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::HashMap;

use super::{Graph, Halt, Inputs, Iteration, ScopeId, ScopeView, StatedNeeds, Unresolved, Values, codes, evaluate};
use crate::budget::Budget;
use crate::diag::{Code, Diagnostic, Findings, Meant};
use crate::expr::{self, FactKey, Stop, Template};
use crate::id::{NodeId, ResourceId, TypeName};
use crate::manifest::Manifest;
use crate::text::{Sources, Span};
use crate::value::Value;

/// The state that both passes work on.
pub(super) struct Builder<'a> {
    pub(super) inputs: &'a Inputs<'a>,
    pub(super) sources: &'a mut Sources,
    pub(super) graph: Graph,
    pub(super) findings: Findings,
    pub(super) wants: BTreeSet<FactKey>,
    pub(super) room: BuildRoom,
    /// True if instances are missing from the graph because something is wrong with them.
    pub(super) is_incomplete: bool,
    pub(super) compared: usize,
    pub(super) budget: Budget,
    /// Instances of one type mostly stand together; this saves most searches.
    pub(super) last_found: Option<(TypeName, Option<String>, Arc<Manifest>)>,
    /// The types that no resource was found for.
    pub(super) unknown: HashMap<RequestedType, Unknown>,
    /// Substitutes for resources that are searched for again during the run.
    pub(super) late: HashMap<RequestedType, Arc<Manifest>>,
    /// The deprecated resources that were warned of.
    pub(super) deprecated: BTreeSet<TypeName>,
    /// Where the loops of the scopes that were searched for them are named, by their names.
    pub(super) loop_names: HashMap<ScopeId, LoopNames>,
    /// The instances of loops that were named as a whole.
    pub(super) loops: HashMap<(ScopeId, Box<str>), Arc<[NodeId]>>,
    /// Messages already reported about resources that lack an operation of their kind.
    pub(super) incomplete: BTreeSet<String>,
}

/// Where the first loop of each name is named, and the second one if there are more.
pub(super) type LoopNames = HashMap<Box<str>, (Span, Option<Span>)>;

/// A request to the catalog: a type, a version and an adapter.
pub(super) type RequestedType = (TypeName, Option<String>, Option<TypeName>);

/// A type that no resource was found for.
pub(super) struct Unknown {
    /// The finding at the first instance.
    pub(super) first: Diagnostic,
    pub(super) why: Unresolved,
    /// How many instances have this type.
    pub(super) instances: usize,
}

/// The numbers of nodes and documents that may still be built. Where one of them is used up nothing more is: a
/// document that includes itself twice would go on for ever, however shallow.
pub(super) struct BuildRoom {
    pub(super) depth: usize,
    pub(super) instances: i64,
    pub(super) included: usize,
}

impl BuildRoom {
    pub(super) const NONE: Self = Self { depth: 0, instances: 0, included: 0 };

    pub(super) fn is_used_up(&self) -> bool {
        self.instances == 0
    }
}

impl Builder<'_> {
    pub(super) fn error(&mut self, code: Code, span: Span, message: impl Into<String>) {
        self.findings.push(Diagnostic::error(code, span, message));
    }

    /// Says why nothing more can be built.
    pub(super) fn stop(&mut self, code: Code, span: Span, message: String) {
        self.room = BuildRoom::NONE;
        self.error(code, span, message);
    }

    /// Counts a value that is kept as long as the graph; `None` when there is no room for it.
    pub(super) fn keep(&mut self, value: Value, span: Span) -> Option<Value> {
        match self.budget.keep(&value) {
            Ok(()) => Some(value),
            Err(exceeded) => {
                self.too_large(span, format!("the document takes {exceeded}"));
                None
            }
        }
    }

    pub(super) fn too_large(&mut self, span: Span, message: String) {
        self.room = BuildRoom::NONE;
        let finding = Diagnostic::error(&expr::codes::LIMIT, span, message);
        self.findings.push(finding.with_help("use fewer iterations, or smaller values"));
    }

    /// The instance that was probably meant, of the same type if any is near, unless too many have been looked at already.
    pub(super) fn meant(&mut self, wanted: &ResourceId, scope: ScopeId) -> Option<Meant> {
        let adjacent = &self.graph.scope(scope).ids;
        self.compared = self.compared.checked_sub(adjacent.len())?;
        let ids = || adjacent.iter().map(|other| other.0.id());
        let same = ids().filter(|other| other.type_name == wanted.type_name);
        let near = Meant::name(&wanted.name, same.map(|other| &*other.name));
        // What has the name in another case, but is of another type, is not what was named.
        near.or_else(|| Meant::name(&wanted.name, ids().map(|other| &*other.name)).map(Meant::doubted))
    }

    pub(super) fn place<'p>(&'p self, scope: ScopeId, iteration: Option<&'p Iteration>) -> ScopeView<'p> {
        ScopeView {
            scopes: &self.graph.scopes,
            scope,
            iteration,
            facts: self.inputs.facts,
            seal: self.inputs.seal,
            budget: Some(&self.budget),
        }
    }

    pub(super) fn stated_needs(&self) -> StatedNeeds<'_> {
        let Inputs { facts, seal, .. } = *self.inputs;
        StatedNeeds { graph: &self.graph, sources: self.sources, facts, seal, budget: &self.budget }
    }

    /// Evaluates what must be known before anything runs.
    pub(super) fn value(&mut self, scope: ScopeId, iteration: Option<&Iteration>, node: &Template) -> Option<Value> {
        let value = evaluate(node, &self.place(scope, iteration));
        self.settle(value)
    }

    /// Returns whether a value depends on a parameter that may have no value.
    pub(super) fn is_open(&self, scope: ScopeId, iteration: Option<&Iteration>, node: &Template) -> bool {
        let stop = || evaluate(node, &self.place(scope, iteration)).err().map(|halt| halt.stop);
        self.inputs.values == Values::Open && matches!(stop(), Some(Stop::Open(_)))
    }

    /// Turns what kept a value from being computed into a finding or a want.
    pub(super) fn settle(&mut self, value: Result<Value, Halt>) -> Option<Value> {
        let halt = match value {
            Ok(value) => return Some(value),
            Err(halt) => halt,
        };
        match &halt.stop {
            Stop::Missing(key) => match self.inputs.facts.get(key) {
                Some(Err(reason)) => self.error(&codes::MISSING_FACT, halt.span, reason.clone()),
                _ => {
                    self.wants.insert(key.clone());
                }
            },
            // What is not known was reported already, or need not be known.
            Stop::Open(_) => {}
            Stop::Fault(_) => {
                self.findings.extend(halt.diagnostic(self.sources));
                if self.budget.check().is_err() {
                    self.room = BuildRoom::NONE;
                }
            }
            Stop::Unknown(id) => {
                let message =
                    format!("'{id}' is only known once it has run, but this must be known before anything runs");
                self.error(&codes::BAD_NAME, halt.span, message);
            }
        }
        None
    }

    /// Text that must be known before anything runs and can be shown.
    pub(super) fn text(
        &mut self,
        scope: ScopeId,
        iteration: Option<&Iteration>,
        node: &Template,
        what: &str,
    ) -> Option<String> {
        match self.value(scope, iteration, node)? {
            Value::String(text) => return Some(text),
            Value::Sealed(_) => {
                let finding = Diagnostic::error(&codes::SECRET_HERE, node.span, format!("{what} cannot be a secret"));
                self.findings.push(finding.with_help("it is shown and stored; use a parameter that is not secure"));
            }
            other => {
                let message = format!("{what} result is not a string: it is {}", other.described());
                self.error(&codes::BAD_NAME, node.span, message);
            }
        }
        None
    }
}
