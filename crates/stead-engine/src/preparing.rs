//! From text to a document that can be run, or to everything that is wrong with it.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

use stead_core::diag::{Diagnostic, any_error};
use stead_core::document::{self, Document, Reconcile};
use stead_core::event::Mode;
use stead_core::expr::codes::CODES as EXPRESSION;
use stead_core::graph::{Facts, Graph, Inputs, Resolution, codes, resolve, suggest_types};
use stead_core::parameters::Supplied;
use stead_core::text::{self, Limits, Node, Source, SourceId, Span};
use stead_host::vault::take_secrets;

use crate::host::ENGINE_VERSION;
use crate::importing::Importers;
use crate::known::{Expanding, Known};
use crate::late::LateSearch;
use crate::managing::Gone;
use crate::modules;
use crate::prepared::{Prepared, Unusable};
use crate::reconcile::ReconcileOptions;
use crate::session::Session;
use crate::shared_files::SharedFiles;

impl Session {
    /// Makes a document ready to run, or says everything that is wrong with it.
    pub fn prepare(
        &mut self,
        name: &str,
        text: impl Into<String>,
        supplied: impl Into<Supplied>,
    ) -> Result<Prepared, Unusable> {
        let (document, findings) = self.parse(name, text);
        self.prepare_ordered(document, findings, supplied.into())
    }

    /// Prepares a text that was read already, as the first one of this session, by its tree.
    pub fn prepare_read(
        &mut self,
        name: &str,
        text: &str,
        read: (Option<Node>, Vec<Diagnostic>),
        supplied: impl Into<Supplied>,
    ) -> Result<Prepared, Unusable> {
        let source = self.sources.add(Source::new(name, text));
        let (document, findings) = document::of_tree(source, text, read, &Limits::default());
        self.sources.hide(document.secret_defaults());
        self.prepare_ordered(document, findings, supplied.into())
    }

    fn prepare_ordered(
        &mut self,
        document: Document,
        findings: Vec<Diagnostic>,
        supplied: Supplied,
    ) -> Result<Prepared, Unusable> {
        let mut prepared = self.prepare_parsed(document, findings, supplied)?;
        self.complete_order(&mut prepared);
        let suspicious = self.lints(&prepared);
        prepared.warnings.extend(suspicious);
        Ok(prepared)
    }

    /// Prepares the parameters and variables alone: what it asks of resources is not looked at.
    pub fn prepare_values(
        &mut self,
        name: &str,
        text: impl Into<String>,
        supplied: impl Into<Supplied>,
    ) -> Result<Prepared, Unusable> {
        let (mut document, findings) = self.parse(name, text);
        document.resources = Vec::new();
        document.outputs = Vec::new();
        self.prepare_parsed(document, findings, supplied.into())
    }

    fn parse(&mut self, name: &str, text: impl Into<String>) -> (Document, Vec<Diagnostic>) {
        let source = Source::new(name, text);
        let text = Arc::clone(&source.text);
        let (document, findings) = document::parse(self.sources.add(source), &text, &Limits::default());
        self.sources.hide(document.secret_defaults());
        (document, findings)
    }

    fn prepare_parsed(
        &mut self,
        document: Document,
        findings: Vec<Diagnostic>,
        supplied: Supplied,
    ) -> Result<Prepared, Unusable> {
        let mut outcome = self.prepare_unspared(document, findings, supplied);
        let (Ok(Prepared { warnings: findings, .. }) | Err(Unusable { findings, .. })) = &mut outcome;
        self.spare_repeated(findings);
        outcome
    }

    /// Takes out the changes that would alter a value which an alias repeats elsewhere.
    pub(crate) fn spare_repeated(&self, findings: &mut [Diagnostic]) {
        let mut repeated = BTreeMap::new();
        let repeated_in = |id: SourceId| {
            let tree = self.sources.get(id).and_then(|source| text::read(id, &source.text, &Limits::default()).0);
            tree.map(|tree| tree.repeated()).unwrap_or_default()
        };
        for finding in findings {
            let Some(source) = finding.fix.as_ref().map(|fix| fix.span.source) else { continue };
            finding.spare(repeated.entry(source).or_insert_with(|| repeated_in(source)));
        }
    }

    fn prepare_unspared(
        &mut self,
        document: Document,
        mut findings: Vec<Diagnostic>,
        supplied: Supplied,
    ) -> Result<Prepared, Unusable> {
        if any_error(&findings) {
            self.suggest_types(&mut findings);
            let mut unusable = Unusable::new(&document, findings, &self.sources);
            let more = self.more_findings(document, supplied, &unusable.findings);
            unusable.findings.extend(more);
            return Err(unusable);
        }
        self.look_in(modules::stated(&document));
        self.hand_on(&document);
        let supplied = match self.sealed(&document, supplied) {
            Ok(supplied) => supplied,
            Err(wrong) => {
                findings.extend(wrong);
                return Err(Unusable::new(&document, findings, &self.sources));
            }
        };
        self.resolve(document, &supplied, findings).map(|prepared| Prepared { supplied, ..prepared })
    }

    /// Has modules of PowerShell looked for in the folders that a document names.
    fn look_in(&mut self, stated: Vec<String>) {
        if stated == self.shared.stated_modules {
            return;
        }
        self.shared = Arc::new(self.shared.with_modules(stated, &self.machine, &self.options.cancel));
        self.late = Arc::new(LateSearch::new(Arc::clone(&self.shared.discovery)));
        self.change_machine(|_| {});
    }

    /// Has programs of resources, and those of extensions that open secrets, given the variables of the environment that a
    /// document names. What is found by programs is found for every document.
    fn hand_on(&mut self, document: &Document) {
        let names = document.directives.environment.iter().map(|name| name.value.clone());
        let all: Vec<String> = self.shared.host.options.environment.iter().cloned().chain(names).collect();
        if *all == *self.shared.inherited {
            return;
        }
        self.shared = Arc::new(self.shared.with_environment(all, &self.options.cancel));
        self.change_machine(|_| {});
    }

    /// Moves the secrets of what was supplied into the vault, or says what is wrong with them. The line of the document is not
    /// shown then: it may hold a default or what is allowed.
    fn sealed(&self, document: &Document, mut supplied: Supplied) -> Result<Supplied, Vec<Diagnostic>> {
        let values = std::mem::take(&mut supplied.values);
        match take_secrets(&document.parameters, values, &*self.vault) {
            Ok(values) => Ok(Supplied { values, ..supplied }),
            Err(wrong) => Err(wrong.into_iter().map(|finding| finding.placed(None, &supplied)).collect()),
        }
    }

    /// Returns the other mistakes in a document whose text has some. Instances that could not be read are missing
    /// from it, so that nothing is said of what is not there, nor of what a wrong expression comes to.
    fn more_findings(&mut self, document: Document, supplied: Supplied, known: &[Diagnostic]) -> Vec<Diagnostic> {
        let Ok(supplied) = self.sealed(&document, supplied) else { return Vec::new() };
        let Err(Unusable { mut findings, .. }) = self.resolve(document, &supplied, Vec::new()) else {
            return Vec::new();
        };
        let is_consequence = |finding: &Diagnostic| {
            [&codes::UNKNOWN_INSTANCE, &codes::MISSING_FACT].contains(&finding.code) || is_on_expression(finding, known)
        };
        findings.retain(|finding| !is_consequence(finding));
        findings
    }

    pub(crate) fn resolve(
        &mut self,
        document: Document,
        supplied: &Supplied,
        mut findings: Vec<Diagnostic>,
    ) -> Result<Prepared, Unusable> {
        let document = Arc::new(document);
        let folder = self.shown_folder(&document);
        let mut facts = Facts::new();
        let (context, usual) = (self.context(""), self.context(""));
        let expanding =
            Expanding { modules: &self.shared.modules, importers: Importers::new(&self.shared.settings, context) };
        loop {
            let known = Known {
                discovery: &self.shared.discovery,
                expanding: Some(&expanding),
                marks: (&self.shared.providers, &usual),
            };
            let inputs = Inputs {
                catalog: &known,
                parameters: supplied,
                facts: &facts,
                version: ENGINE_VERSION,
                names: self.options.names,
                values: self.options.values,
                folder: &folder,
                seal: &*self.vault,
            };
            match resolve(&document, &inputs, &mut self.sources) {
                Resolution::Graph(graph, warnings) => {
                    findings.extend(warnings);
                    let prepared = self.prepared(&document, graph, facts);
                    if let Err(wrong) = self.policy(&ReconcileOptions::default(), &prepared.reconcile) {
                        findings.extend(wrong);
                        return Err(Unusable {
                            rest: Some(Box::new(prepared)),
                            ..Unusable::new(&document, findings, &self.sources)
                        });
                    }
                    return Ok(Prepared { warnings: findings, ..prepared });
                }
                Resolution::Faulty { findings: mut wrong, rest } => {
                    self.suggest_types(&mut wrong);
                    findings.extend(wrong);
                    let rest = rest.map(|graph| Box::new(self.prepared(&document, graph, facts)));
                    return Err(Unusable { rest, ..Unusable::new(&document, findings, &self.sources) });
                }
                Resolution::Needs(keys) => {
                    for key in keys {
                        let value = self.machine.fact(&key);
                        facts.insert(key, value);
                    }
                }
            }
        }
    }

    /// Returns the folder of a document for messages: the folder part of its name, if it lies there, otherwise the
    /// absolute path.
    fn shown_folder(&self, document: &Document) -> String {
        let name = self.sources.get(document.source).map(|source| source.name.clone()).unwrap_or_default();
        let written = stead_core::bundle::path::folder_of(&name);
        let is_there = || {
            std::path::absolute(if written.is_empty() { "." } else { written })
                .is_ok_and(|path| path == *self.shared.root)
        };
        match &self.files {
            Some(_) => String::new(),
            None if name.starts_with('<') || is_there() => written.to_owned(),
            None => self.shared.root.display().to_string(),
        }
    }

    fn prepared(&self, document: &Document, graph: Graph, facts: Facts) -> Prepared {
        let sources = Arc::new(self.sources.clone());
        let origin = sources.get(document.source).map_or("", |source| source.name.as_str()).into();
        let instances = graph.scopes.iter().flat_map(|scope| &scope.document.resources);
        let rules = instances.filter_map(|instance| instance.directives().reconcile_pending.as_ref());
        // Each once, however many instances a loop makes.
        let rules: BTreeMap<&str, _> = rules.map(|rule| (rule.value.as_str(), rule)).collect();
        let rules = rules.into_values().cloned().collect();
        let reconcile = Reconcile { rules, ..document.directives.reconcile.clone() };
        Prepared {
            graph: Arc::new(graph),
            sources,
            facts,
            warnings: Vec::new(),
            origin,
            reconcile,
            supplied: Supplied::default(),
            selected: None,
            named: BTreeSet::new(),
            memory: None,
            removed: Gone::default(),
            shared: SharedFiles::default(),
        }
    }

    /// Adds the mistakes in the properties of those instances that could be resolved, so that nothing waits for a
    /// second round. See [`Self::check_properties`].
    #[must_use]
    pub fn with_properties(&self, mut unusable: Unusable, mode: Mode) -> Unusable {
        // Programs are asked nothing for those who may not run the document.
        let rest = unusable.rest.take().filter(|rest| rest.graph.refused(self.machine.elevated).is_none());
        // Properties of an include are checked where its document is read.
        let of_includes =
            || unusable.findings.iter().filter(|finding| *finding.code == codes::BAD_INCLUDE && finding.help.is_some());
        let known: BTreeSet<Span> = of_includes().filter_map(|finding| finding.span).collect();
        // Under another name, a property is there.
        let renamed = of_includes().filter(|finding| finding.fix.is_some()).filter_map(|finding| finding.span);
        let spans = || rest.iter().flat_map(|rest| rest.graph.iter().map(|(id, _)| rest.graph.declaration(id).span));
        let innermost = |known: Span| spans().filter(|span| span.holds(known)).min_by_key(|span| span.end - span.start);
        let renamed: Vec<Span> = renamed.filter_map(innermost).collect();
        let wrong = rest.iter().flat_map(|rest| self.check_properties(rest, mode));
        let is_new = |finding: &Diagnostic| {
            let is_known = |span: Span| known.contains(&span) || renamed.iter().any(|include| include.holds(span));
            !finding.span.is_some_and(is_known)
        };
        let wrong: Vec<Diagnostic> = wrong.filter(is_new).collect();
        unusable.findings.extend(wrong);
        unusable
    }

    /// Has findings about types without an owner say which types were probably meant.
    fn suggest_types(&self, findings: &mut [Diagnostic]) {
        let usual = self.context("types");
        let known =
            Known { discovery: &self.shared.discovery, expanding: None, marks: (&self.shared.providers, &usual) };
        suggest_types(findings, &known, &self.sources);
    }
}

/// Returns whether a finding is about a text in which one of the known findings is about the expression itself.
fn is_on_expression(finding: &Diagnostic, known: &[Diagnostic]) -> bool {
    let wrong = || known.iter().filter(|known| EXPRESSION.contains(&known.code)).filter_map(|known| known.span);
    finding.span.is_some_and(|span| wrong().any(|wrong| span.holds(wrong)))
}
