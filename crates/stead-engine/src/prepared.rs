//! A document that can be run, and one that cannot.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use stead_core::diag::codes::{document, parameters, text};
use stead_core::diag::{Code, Diagnostic, any_error};
use stead_core::document::{Document, Reconcile};
use stead_core::graph::{Facts, Graph, NeedKind};
use stead_core::id::NodeId;
use stead_core::identity::DocumentIdentity;
use stead_core::parameters::Supplied;
use stead_core::text::{Sources, Span};
use stead_resources::builtin_of;

use crate::delivery::Delivery;
use crate::managing::Gone;
use crate::memory::Memory;
use crate::messages::finding_line;
use crate::shared_files::SharedFiles;
use crate::staying::to_be_removed;

/// A document that can be run.
pub struct Prepared {
    /// The instances, in order.
    pub graph: Arc<Graph>,
    /// The texts that findings point into.
    pub sources: Arc<Sources>,
    /// The facts that the machine was asked for while it was resolved.
    pub facts: Facts,
    /// The warnings about it.
    pub warnings: Vec<Diagnostic>,
    /// Where it came from.
    pub origin: Arc<str>,
    /// How what is pending is run again, as far as it says so.
    pub reconcile: Reconcile,
    /// The parameters that were supplied, with their secrets sealed.
    pub supplied: Supplied,
    /// The instances that runs of it are about; `None` for all. See [`Prepared::select`].
    pub selected: Option<Arc<BTreeSet<NodeId>>>,
    /// The instances that its part was named by.
    pub(crate) named: BTreeSet<NodeId>,
    /// Its memory between runs; `None` where its runs do not remember former ones.
    pub memory: Option<Memory>,
    /// The things that it does not have any more; see [`crate::Session::account_for_removed`].
    pub(crate) removed: Gone,
    /// The files that several of the instances manage.
    pub(crate) shared: SharedFiles,
}

impl Prepared {
    /// Returns whether runs of it are about an instance.
    pub fn is_selected(&self, id: NodeId) -> bool {
        self.selected.as_ref().is_none_or(|selected| selected.contains(&id))
    }

    /// The delivery that its runs are of.
    pub(crate) fn delivery(&self) -> Delivery {
        self.memory.as_ref().map(Memory::delivery).unwrap_or_default()
    }

    /// A warning about the things of former runs that it removes, if there are any.
    pub fn to_be_removed(&self) -> Option<Diagnostic> {
        let things: Vec<String> = self.removed.removing.keys().map(|id| self.graph.label(*id)).collect();
        (!things.is_empty()).then(|| to_be_removed(&things))
    }

    /// Warnings about the things that newer deliveries made and that this one, which restores a former one, does not remove.
    pub fn not_restored(&self) -> Vec<Diagnostic> {
        self.removed.not_restored.findings()
    }

    /// Those of them that may be removed by a later run, so that what is restored is not there yet: each with the reason.
    pub fn not_restored_yet(&self) -> impl Iterator<Item = (&str, String)> {
        self.removed.not_restored.yet()
    }

    /// Returns the identity that the document states itself, for its records between runs.
    pub fn stated_identity(&self) -> Option<DocumentIdentity> {
        self.graph.scopes.first().and_then(|scope| scope.document.identity())
    }

    /// Warnings about what dsc does not have, in it and in the documents that it includes.
    pub fn not_portable(&self) -> Vec<Diagnostic> {
        let documents = self.graph.scopes.iter().flat_map(|scope| scope.document.not_portable(&self.sources));
        each_once(documents.chain(self.graph.not_portable(&self.sources)).collect())
    }

    /// Warnings about what was hardly meant as it is written, in it and in the documents that it includes.
    pub fn advice(&self) -> Vec<Diagnostic> {
        let documents = self.graph.scopes.iter().flat_map(|scope| scope.document.advice(&self.sources));
        each_once(documents.chain(self.commands_without_test()).collect())
    }

    /// Those of them about what is not read as it was meant, which a run gives as well.
    pub(crate) fn misreadings(&self) -> Vec<Diagnostic> {
        each_once(self.graph.scopes.iter().flat_map(|scope| scope.document.misreadings(&self.sources)).collect())
    }

    /// A warning for each command that runs on every apply.
    fn commands_without_test(&self) -> impl Iterator<Item = Diagnostic> {
        let is_handler = |id: NodeId| {
            let mut needs = self.graph.node(id).needs.iter();
            needs.any(|need| need.kind.notifies() || need.kind == NeedKind::OnFailure)
        };
        let is_after_something =
            move |id: NodeId| std::iter::successors(Some(id), |id| self.graph.container(*id)).any(is_handler);
        let always = self.graph.iter().filter_map(move |(id, node)| {
            let [runs, unless @ ..] = builtin_of(&node.manifest)?.repeated else { return None };
            let instance = self.graph.declaration(id);
            let stated = instance.properties.as_ref()?.entries()?;
            let has = |names: &[&str]| stated.iter().any(|entry| names.contains(&&*entry.key));
            (has(&[*runs]) && !has(unless) && !is_after_something(id)).then_some(instance)
        });
        always.map(|instance| {
            let message = "this command runs on every apply: nothing says when it is not needed";
            let finding = Diagnostic::warning(&document::RUNS_ALWAYS, instance.name.span, message);
            finding.with_help(
                "add 'test', a command that exits with 0 when there is nothing to do, or 'creates', a path that the command \
                 creates; to run it only after a change of something else, add directives: {onChanges: \
                 [\"[resourceId('TYPE', 'NAME')]\"]}",
            )
        })
    }

    /// Returns the digest that other documents, and itself with other parameters, do not have.
    pub fn digest(&self) -> String {
        self.graph.digest(&self.sources)
    }
}

/// Findings in the order of the text. What is nested in a group is a part of its properties as well; what is wrong in a loop is
/// so in each iteration.
fn each_once(mut found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    found.sort_by_key(|finding| finding.span);
    let mut known = BTreeSet::new();
    found.retain(|finding| known.insert((finding.span, finding.message.clone())));
    found
}

/// A document that cannot be run.
pub struct Unusable {
    /// Everything that is wrong with it.
    pub findings: Vec<Diagnostic>,
    /// True if the input itself cannot be used: text that cannot be read, parameters that do not fit, variables that
    /// cannot be computed. dsc has an exit code of its own for that.
    pub is_input: bool,
    /// The texts that findings point into.
    pub sources: Sources,
    /// The part of it that could be resolved.
    pub(crate) rest: Option<Box<Prepared>>,
}

impl Unusable {
    pub(crate) fn new(document: &Document, findings: Vec<Diagnostic>, sources: &Sources) -> Self {
        let errors = || findings.iter().filter(|finding| any_error(std::slice::from_ref(*finding)));
        let of = |codes: &[Code]| errors().any(|finding| codes.contains(&finding.code));
        let defaults = document.parameters.iter().filter_map(|parameter| parameter.default.as_ref());
        let values: Vec<_> = defaults.chain(document.variables.iter().map(|variable| &variable.value)).collect();
        let within = |span: Span| values.iter().any(|value| value.span.holds(span));
        // dsc reads the text, then its form, then checks parameters with their bounds, and computes its values.
        let bounds = &document::BOUNDS;
        let has_flaws = errors().any(|finding| document::CODES.contains(&finding.code) && finding.code != bounds);
        let is_input = of(text::CODES)
            || !has_flaws
                && (of(parameters::CODES) || of(&[bounds]) || errors().any(|finding| finding.span.is_some_and(within)));
        Self { is_input, ..Self::of_properties(findings, sources) }
    }

    /// A document that can be read and resolved, and whose instances are not as their resources want them.
    pub(crate) fn of_properties(findings: Vec<Diagnostic>, sources: &Sources) -> Self {
        Self { findings, is_input: false, sources: sources.clone(), rest: None }
    }
}

/// Each finding with its place, one line each.
impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.findings.iter().map(|finding| finding_line(finding, &self.sources));
        f.write_str(&lines.collect::<Vec<_>>().join("\n"))
    }
}

/// As it is displayed: it is what a `main` that returns errors prints.
impl fmt::Debug for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for Unusable {}
