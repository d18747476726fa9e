//! One piece of work: the texts it read, the resources it knows, its secrets, and the machine it works on.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value as Json;
use stead_core::call::Failure;
use stead_core::diag::{Diagnostic, any_error};
use stead_core::document::{self, Document};
use stead_core::event::Mode;
use stead_core::expr::FactKey;
use stead_core::expr::codes::CODES as EXPRESSION;
use stead_core::graph::codes;
use stead_core::graph::{
    Expansion, ExpansionFinding, Facts, Found, Graph, Inputs, Lacks, Names, Resolution, Resources, Unresolved, Values,
    resolve, suggest_types,
};
use stead_core::id::TypeName;
use stead_core::identity::DocumentIdentity;
use stead_core::manifest::{self, Extension, Form, Kind, Manifest, VersionRequirement};
use stead_core::parameters::Supplied;
use stead_core::text::{Limits, Node, Source, Sources, Span};
use stead_core::value::{Object, Value};
use stead_host::bundle::{Files, FilesWithin};
use stead_host::catalog::{Discovery, Problem, Programs, Wanted};
use stead_host::command::{Settings, extension, list_adapted};
use stead_host::extensions::Extensions;
use stead_host::facts::Machine;
use stead_host::provider::{Context, Provider, Trace};
use stead_host::settings;
use stead_host::vault::{MemoryVault, take_secrets};
use stead_powershell::adapter::{PowerShell, adapters, module_search};
use stead_powershell::index::Inventory;
use stead_system::Cancel;
use stead_system::fs::{FsError, SystemRoot, Writes};
use stead_system::lock::Locks;

use crate::bundle::OpenedFiles;
use crate::calls::{Contexts, Providers, RealPaths, SessionCalls, forward};
use crate::execution::{ENGINE_VERSION, Planned};
use crate::host::{Host, HostOptions};
use crate::importing::Importers;
use crate::late::LateSearch;
use crate::memory::Memory;
use crate::messages::problem_text;
use crate::prepared::{Prepared, Unusable};
use crate::reconcile::ReconcileOptions;
use crate::second_look::SecondLook;

/// One piece of work. What it holds of secrets is wiped when it is dropped.
pub struct Session {
    /// Every text that findings can point into.
    pub sources: Sources,
    /// The machine.
    pub machine: Arc<Machine>,
    /// The secrets.
    pub vault: Arc<MemoryVault>,
    /// The resources that there are.
    pub discovery: Arc<Discovery>,
    /// The extensions that there are, at work.
    pub extensions: Arc<Extensions>,
    /// Ends everything early.
    pub cancel: Cancel,
    /// Stops a run so that it can be resumed.
    pub suspend: Cancel,
    /// Ends calls that change nothing; those that do go on.
    pub end_reads: Cancel,
    /// How long one program of a resource may take.
    pub deadline: Duration,
    /// What programs of resources are given.
    pub settings: Arc<Settings>,
    /// Whether instances of a document are distinguished by their names.
    pub names: Names,
    /// Whether every parameter of a document must have a value.
    pub values: Values,
    /// Whether what an instance lies in or uses is created before it, though the document does not say so.
    pub implicit_order: bool,
    pub(crate) host: Host,
    /// The variables of the environment that programs are given besides those that all are.
    inherited: Arc<[String]>,
    providers: Arc<Providers>,
    modules: Arc<Modules>,
    late: Arc<LateSearch>,
    pub(crate) root: Arc<Path>,
    /// The files that its documents came with.
    pub(crate) files: Option<Arc<Files>>,
    /// Removes them with this session, if it opened them.
    pub(crate) opened: Option<OpenedFiles>,
    system_root: Option<Arc<Path>>,
    trace: Trace,
    writes: Writes,
    /// What was reported of the resources that were found, by this session and those beside it.
    traced: Arc<Mutex<BTreeSet<String>>>,
}

impl Session {
    pub(crate) fn new(host: &Host, root: PathBuf, cancel: Cancel) -> Self {
        let settings = Arc::new(command_settings(&root, &host.options));
        let vault = Arc::<MemoryVault>::default();
        let context_root = Arc::from(root.as_path());
        let context = extension_context(&root, &cancel, &host.options);
        let modules = Arc::new(Modules { host: host.clone(), inventory: Mutex::default() });
        let machine = machine(root, &host.options);
        let programs = OnMachine {
            machine: machine.beside(),
            settings: Arc::clone(&settings),
            context: context.clone(),
            modules: Arc::clone(&modules),
        };
        let discovery = Arc::new(Discovery::new(host.options.search.clone(), host.catalog(), Arc::new(programs)));
        let extensions = Arc::new(Extensions::new(Arc::clone(&discovery), (*settings).clone(), context));
        let late = Arc::new(LateSearch::new(Arc::clone(&discovery)));
        Self {
            sources: Sources::default(),
            machine: Arc::new(with_secrets(machine, &extensions, &vault)),
            vault,
            discovery,
            extensions,
            cancel,
            suspend: Cancel::default(),
            end_reads: Cancel::default(),
            deadline: host.options.deadline.unwrap_or(Context::DEADLINE),
            names: Names::Unique,
            values: Values::Required,
            implicit_order: true,
            inherited: host.options.environment.clone().into(),
            providers: Arc::new(Providers::new(host, Arc::clone(&settings))),
            modules,
            late,
            settings,
            host: host.clone(),
            root: context_root,
            files: None,
            opened: None,
            system_root: None,
            trace: Arc::new(forward),
            writes: Writes::default().with_locks(Locks::of_this_user()),
            traced: Arc::default(),
        }
    }

    /// Another piece of work with secrets of its own, for which resources are not looked for again.
    #[must_use]
    pub fn beside(&self, cancel: Cancel) -> Self {
        let vault = Arc::<MemoryVault>::default();
        Self {
            sources: Sources::default(),
            machine: Arc::new(with_secrets(self.machine.beside(), &self.extensions, &vault)),
            vault,
            discovery: Arc::clone(&self.discovery),
            extensions: Arc::clone(&self.extensions),
            cancel,
            suspend: Cancel::default(),
            end_reads: Cancel::default(),
            deadline: self.deadline,
            settings: Arc::clone(&self.settings),
            names: self.names,
            values: self.values,
            implicit_order: self.implicit_order,
            host: self.host.clone(),
            modules: Arc::clone(&self.modules),
            late: Arc::new(LateSearch::new(Arc::clone(&self.discovery))),
            inherited: Arc::clone(&self.inherited),
            providers: Arc::clone(&self.providers),
            root: Arc::clone(&self.root),
            files: self.files.clone(),
            opened: None,
            system_root: self.system_root.clone(),
            trace: Arc::clone(&self.trace),
            writes: Writes::default().with_locks(Locks::of_this_user()),
            traced: Arc::clone(&self.traced),
        }
    }

    /// The same for many small runs: what they change is flushed by [`Session::flush`] of this session, not at the end of each.
    #[must_use]
    pub fn beside_unflushed(&self, cancel: Cancel) -> Self {
        Self { writes: self.writes.flushed_elsewhere(), ..self.beside(cancel) }
    }

    /// Has what was changed by [`Session::beside_unflushed`] until now written to the disk.
    ///
    /// # Errors
    /// When a file system cannot be flushed; that is reported once.
    pub fn flush(&self) -> Result<(), FsError> {
        self.writes.flush()
    }

    /// Has messages of resources given to `trace` instead of the log of this process.
    pub fn set_trace(&mut self, trace: Trace) {
        self.trace = trace;
    }

    /// Returns everything that the calls of a run over a graph need.
    pub(crate) fn calls(&self, graph: &Graph) -> SessionCalls {
        SessionCalls {
            planned: Planned::default(),
            second_look: SecondLook::default(),
            providers: Arc::clone(&self.providers),
            machine: Arc::clone(&self.machine),
            vault: Arc::clone(&self.vault),
            contexts: Arc::new(Contexts::new(self.context(Arc::<str>::default()), graph)),
            real_paths: RealPaths::below(self.system_root().unwrap_or(Path::new("/"))),
            late: Arc::clone(&self.late),
            reads: self.cancel.or(&self.end_reads),
        }
    }

    /// What it shares with other sessions.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Where relative paths start from.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The root of the operating system, if it is not the one that runs.
    pub fn system_root(&self) -> Option<&Path> {
        self.system_root.as_deref()
    }

    /// Makes another folder the root of the operating system: the paths of built-in resources start there.
    pub fn set_system_root(&mut self, root: &Path) {
        // `resolve` only adds to it.
        self.system_root = Some(std::path::absolute(root).unwrap_or_else(|_| root.to_path_buf()).into());
        // Nobody else has the machine before the first document is looked at.
        if let Some(machine) = Arc::get_mut(&mut self.machine) {
            machine.system_root = root.to_path_buf();
        }
    }

    /// Returns the memory of a document on the root that this session works on.
    pub fn memory(&self, document: &DocumentIdentity) -> Memory {
        Memory::of(self.system_root().unwrap_or(Path::new("/")), document)
    }

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

    /// The same of a text that was read already, as the first one of this session, by what was read.
    pub fn prepare_read(
        &mut self,
        name: &str,
        text: &str,
        read: (Option<Node>, Vec<Diagnostic>),
        supplied: impl Into<Supplied>,
    ) -> Result<Prepared, Unusable> {
        let source = self.sources.add(Source::new(name, text));
        let (document, findings) = document::of_tree(source, text, read, &Limits::default());
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
        Ok(prepared)
    }

    /// The same of its parameters and variables alone: what it asks of resources is not looked at.
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
        document::parse(self.sources.add(source), &text, &Limits::default())
    }

    fn prepare_parsed(
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
        self.hand_on(&document);
        let names = supplied.values.keys().cloned().collect();
        let supplied = match self.sealed(&document, supplied) {
            Ok(supplied) => supplied,
            Err(wrong) => {
                findings.extend(wrong);
                return Err(Unusable::new(&document, findings, &self.sources));
            }
        };
        self.resolve(document, &supplied, findings).map(|prepared| Prepared { supplied: names, ..prepared })
    }

    /// Has programs of resources, and those of extensions that open secrets, given the variables of the environment that a
    /// document names. What is found by programs is found for every document.
    fn hand_on(&mut self, document: &Document) {
        let names = document.directives.environment.iter().map(|name| name.value.clone());
        let all: Vec<String> = self.host.options.environment.iter().cloned().chain(names).collect();
        if *all == *self.inherited {
            return;
        }
        let mut settings = command_settings(&self.root, &self.host.options);
        settings.environment.add_of_this_process(&all);
        self.settings = Arc::new(settings);
        self.providers = Arc::new(Providers::new(&self.host, Arc::clone(&self.settings)));
        self.inherited = all.into();
        let context = extension_context(&self.root, &self.cancel, &self.host.options);
        let extensions = Extensions::new(Arc::clone(&self.discovery), (*self.settings).clone(), context);
        self.extensions = Arc::new(extensions);
        self.machine = Arc::new(with_secrets(self.machine.beside(), &self.extensions, &self.vault));
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

    /// What else is wrong with a document whose text is. Instances that could not be read are missing from it, so that
    /// nothing is said of what is not there, nor of what a wrong expression comes to.
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

    fn resolve(
        &mut self,
        document: Document,
        supplied: &Supplied,
        mut findings: Vec<Diagnostic>,
    ) -> Result<Prepared, Unusable> {
        let document = Arc::new(document);
        let folder = self.shown_folder(&document);
        let mut facts = Facts::new();
        let (context, usual) = (self.context(""), self.context(""));
        let expanding = Expanding { modules: &self.modules, importers: Importers::new(&self.settings, context) };
        loop {
            let known =
                Known { discovery: &self.discovery, expanding: Some(&expanding), marks: (&self.providers, &usual) };
            let inputs = Inputs {
                catalog: &known,
                parameters: supplied,
                facts: &facts,
                version: ENGINE_VERSION,
                names: self.names,
                values: self.values,
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
                Resolution::Faulty { findings: wrong, rest } => {
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
        let is_there =
            || std::path::absolute(if written.is_empty() { "." } else { written }).is_ok_and(|path| path == *self.root);
        match &self.files {
            Some(_) => String::new(),
            None if name.starts_with('<') || is_there() => written.to_owned(),
            None => self.root.display().to_string(),
        }
    }

    fn prepared(&self, document: &Document, graph: Graph, facts: Facts) -> Prepared {
        let sources = Arc::new(self.sources.clone());
        let origin = sources.get(document.source).map_or("", |source| source.name.as_str()).into();
        let reconcile = document.directives.reconcile.clone();
        Prepared {
            graph: Arc::new(graph),
            sources,
            facts,
            warnings: Vec::new(),
            origin,
            reconcile,
            supplied: BTreeSet::new(),
            selected: None,
            memory: None,
        }
    }

    /// The same with what is wrong with the properties of those instances that could be resolved, so that nothing waits for
    /// a second round. See [`Self::check_properties`].
    #[must_use]
    pub fn with_properties(&self, mut unusable: Unusable, mode: Mode) -> Unusable {
        // Programs are asked nothing for those who may not run the document.
        let rest = unusable.rest.take().filter(|rest| rest.graph.refused(self.machine.elevated).is_none());
        unusable.findings.extend(rest.iter().flat_map(|rest| self.check_properties(rest, mode)));
        unusable
    }

    /// Tells what was found wrong while resources were looked for, if that was done; everything once.
    pub fn trace_problems(&self) {
        for problem in self.discovery.problems() {
            let text = problem_text(&problem);
            if problem.is_notable() {
                self.warn_once(&text);
            } else if self.is_new(&text) {
                tracing::info!("{text}");
            }
        }
        if self.discovery.has_searched() {
            let deprecated =
                self.discovery.extensions().values().filter_map(|each| Some((each, each.deprecation.as_ref()?)));
            for (extension, advice) in deprecated {
                self.warn_once(&format!("Extension '{}' is deprecated: {advice}", extension.type_name));
            }
        }
    }

    /// The extensions, with the search for manifests within PowerShell modules where there may be modules.
    pub fn listed_extensions(&self) -> Vec<Extension> {
        let known = self.discovery.extensions();
        let is_new = |extension: &Extension| !known.values().any(|each| each.type_name == extension.type_name);
        let search = self.modules.host.powershell().and_then(|_| module_search()).filter(is_new);
        let mut listed: Vec<Extension> = known.values().map(|each| Extension::clone(each)).chain(search).collect();
        listed.sort_by(|one, other| one.type_name.cmp(&other.type_name));
        listed
    }

    /// Warns of what holds for every session beside this one, too.
    pub(crate) fn warn_once(&self, text: &str) {
        if self.is_new(text) {
            tracing::warn!("{text}");
        }
    }

    fn is_new(&self, text: &str) -> bool {
        self.traced.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned())
    }

    /// What was found wrong that may be why types are unknown, for the findings that say so.
    pub fn explanations(&self, findings: &[Diagnostic]) -> Vec<String> {
        let missing: Vec<TypeName> = findings.iter().filter_map(|finding| self.missing_type(finding)).collect();
        let problems = self.discovery.problems();
        let explain = |problem: &&Problem| missing.iter().any(|name| problem.may_explain(name));
        problems.iter().filter(explain).map(problem_text).collect()
    }

    /// Has findings about types without an owner say which types were probably meant.
    fn suggest_types(&self, findings: &mut [Diagnostic]) {
        let usual = self.context("types");
        let known = Known { discovery: &self.discovery, expanding: None, marks: (&self.providers, &usual) };
        suggest_types(findings, &known, &self.sources);
    }

    fn missing_type(&self, finding: &Diagnostic) -> Option<TypeName> {
        let span = finding.span.filter(|_| *finding.code == codes::UNKNOWN_TYPE)?;
        let text = self.sources.get(span.source)?.text.get(span.start as usize..span.end as usize)?;
        TypeName::parse(text.trim_matches(['"', '\''])).ok()
    }

    /// The resource of that type, looked for on the machine if it is not built in.
    pub fn find(&self, type_name: &TypeName, version: Option<&str>) -> Result<Arc<Manifest>, NotFound> {
        let usual = self.context(type_name.as_str());
        let known = Known { discovery: &self.discovery, expanding: None, marks: (&self.providers, &usual) };
        match known.find(type_name, version, None) {
            Found::Resource(manifest) => Ok(manifest),
            Found::Nothing(Unresolved { message, help, .. }) => Err(NotFound { message, help }),
        }
    }

    /// What carries out a resource; made once for each.
    pub fn provider(&self, manifest: &Arc<Manifest>) -> Arc<dyn Provider> {
        self.providers.of(manifest)
    }

    /// What a call is carried out with.
    pub fn context(&self, name: impl Into<Arc<str>>) -> Context {
        Context {
            name: name.into(),
            deadline: self.deadline,
            cancel: self.cancel.clone(),
            writes: self.writes.clone(),
            trace: Arc::clone(&self.trace),
            system_root: self.system_root.as_deref().map_or_else(SystemRoot::running, SystemRoot::below),
            inherited: Arc::clone(&self.inherited),
            files: self.files.clone().map(|files| Arc::new(FilesWithin { files, folder: Arc::default() })),
            ..Context::new(Arc::clone(&self.root))
        }
    }
}

/// Whether a finding is about a text in which one of the known findings is about the expression itself.
fn is_on_expression(finding: &Diagnostic, known: &[Diagnostic]) -> bool {
    let wrong = || known.iter().filter(|known| EXPRESSION.contains(&known.code)).filter_map(|known| known.span);
    finding.span.is_some_and(|span| wrong().any(|wrong| span.holds(wrong)))
}

/// A resource that is not there.
#[derive(Debug)]
pub struct NotFound {
    /// One sentence.
    pub message: String,
    /// What was probably meant.
    pub help: Option<String>,
}

/// Discovery as the core asks it.
struct Known<'a> {
    discovery: &'a Discovery,
    expanding: Option<&'a Expanding<'a>>,
    /// The providers that ask programs for the marks of their schemas, and the context of those calls.
    marks: (&'a Providers, &'a Context),
}

/// The parts of the host that expand instances.
struct Expanding<'a> {
    modules: &'a Modules,
    importers: Importers<'a>,
}

impl Known<'_> {
    /// Why nothing was found: a manifest that declares the type and is invalid says more than a similar name.
    fn nothing(&self, type_name: &TypeName, version: &str, error: &manifest::NotFound) -> Found {
        let invalid = match error {
            manifest::NotFound::Type { .. } => self.discovery.find_problem(|problem| problem.first_error_of(type_name)),
            manifest::NotFound::Version { .. } => None,
        };
        let meant = error.meant().filter(|_| invalid.is_none()).cloned();
        let (why, help) = match (invalid, error) {
            (Some((finding, help)), _) => (format!(": its manifest is invalid: {finding}"), help),
            (None, manifest::NotFound::Version { .. }) => (format!(": {error}"), error.help()),
            (None, manifest::NotFound::Type { .. }) if self.missing_export(type_name).is_some() => {
                let help = "only classes in the root module and in nested modules are found, and script resources";
                (format!(": {}", self.missing_export(type_name).unwrap_or_default()), Some(help.to_owned()))
            }
            (None, manifest::NotFound::Type { .. }) => {
                (String::new(), error.help().or_else(|| Some("`stead resource list` shows which there are".to_owned())))
            }
        };
        let message = format!("Resource not found: {type_name}{version}{why}");
        Found::Nothing(Unresolved { lacks: error.into(), message, help, meant })
    }

    /// The reason why a PowerShell module does not have a resource that it declares.
    fn missing_export(&self, type_name: &TypeName) -> Option<String> {
        self.expanding?.modules.with(|powershell, inventory| powershell.missing_export(inventory, type_name))?
    }

    fn has_adapter(&self, type_name: &TypeName) -> bool {
        self.discovery.discovered().catalog.find(type_name, None).is_ok_and(|found| found.kind == Kind::Adapter)
    }
}

impl Resources for Known<'_> {
    fn expand(
        &self,
        manifest: &Manifest,
        properties: &Object,
        sources: &mut Sources,
    ) -> Result<Expansion, Vec<ExpansionFinding>> {
        if let Some(expanding) = self.expanding.filter(|_| manifest.resolves()) {
            return expanding.importers.expand(manifest, properties, sources);
        }
        let expanded = self.expanding.and_then(|expanding| {
            expanding.modules.with(|powershell, inventory| powershell.expand(inventory, manifest, properties, sources))
        });
        if let Some(expanded) = expanded {
            return expanded;
        }
        let message = format!("'{}' is a composite resource of PowerShell, which is not used", manifest.type_name);
        let finding = Diagnostic::error(&stead_core::graph::codes::UNKNOWN_TYPE, Span::default(), message);
        Err(vec![Diagnostic { span: None, ..finding }.into()])
    }

    fn find(&self, type_name: &TypeName, requirement: Option<&str>, adapter: Option<&TypeName>) -> Found {
        let requirement = match requirement.map(VersionRequirement::parse).transpose() {
            Ok(requirement) => requirement,
            Err(error) => {
                let help = Some("write a requirement such as '=1.2.0' or '>=1.2.0'".to_owned());
                let message = error.to_string();
                return Found::Nothing(Unresolved { lacks: Lacks::Version, message, help, meant: None });
            }
        };
        let version = requirement.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
        match self.discovery.find(&Wanted { type_name: type_name.clone(), requirement, adapter: adapter.cloned() }) {
            Ok(manifest) => {
                let (providers, cx) = self.marks;
                Found::Resource(providers.marked(&manifest, cx))
            }
            Err(error) => match adapter.filter(|adapter| !self.has_adapter(adapter)) {
                Some(adapter) => {
                    let message = format!("Adapter not found: {adapter}, which is required for '{type_name}'");
                    let help = Some("install the adapter, or remove 'requireAdapter'".to_owned());
                    Found::Nothing(Unresolved { lacks: Lacks::Adapter, message, help, meant: None })
                }
                None => match (adapter, self.nothing(type_name, &version, &error)) {
                    (Some(adapter), Found::Nothing(why)) if why.lacks == Lacks::Type => {
                        let message = format!("{}: the adapter '{adapter}' does not list it", why.message);
                        let help = Some(format!("`stead resource list --adapter {adapter}` shows what it lists"));
                        Found::Nothing(Unresolved {
                            message,
                            help: why.meant.is_none().then_some(help).flatten(),
                            ..why
                        })
                    }
                    (_, found) => found,
                },
            },
        }
    }
}

/// What discovery has done by this program.
struct OnMachine {
    /// Without secrets: extensions that open them are what is being discovered.
    machine: Machine,
    settings: Arc<Settings>,
    context: Context,
    modules: Arc<Modules>,
}

/// The modules of PowerShell, which are searched for once.
struct Modules {
    host: Host,
    inventory: Mutex<Option<Inventory>>,
}

impl Modules {
    /// What PowerShell tells by them; `None` where there is none.
    fn with<T>(&self, of: impl FnOnce(&PowerShell, &mut Inventory) -> T) -> Option<T> {
        let powershell = self.host.powershell()?;
        let mut inventory = self.inventory.lock().unwrap_or_else(PoisonError::into_inner);
        Some(of(powershell, inventory.get_or_insert_with(|| powershell.search())))
    }
}

impl OnMachine {
    fn context(&self, name: &TypeName) -> Context {
        Context { name: name.as_str().into(), ..self.context.clone() }
    }

    /// What an adapter of this program answers by the modules of PowerShell.
    fn in_modules<T>(&self, adapter: &Manifest, of: impl FnOnce(&PowerShell, &mut Inventory) -> T) -> Option<T> {
        adapter.is_in_process().then(|| self.modules.with(of)).flatten()
    }
}

impl Programs for OnMachine {
    fn adapters(&self) -> Vec<Manifest> {
        self.modules.host.powershell().map(|_| adapters()).unwrap_or_default()
    }

    fn module_folders(&self) -> Vec<PathBuf> {
        self.modules.host.powershell().map(|powershell| powershell.module_path().to_vec()).unwrap_or_default()
    }

    fn list_adapted(&self, adapter: &Manifest) -> Result<Vec<Json>, Failure> {
        let listed = self.in_modules(adapter, |powershell, found| powershell.list(found, &adapter.type_name));
        listed.map_or_else(|| list_adapted(adapter, &self.settings, &self.context(&adapter.type_name)), Ok)
    }

    fn find_adapted(&self, adapter: &Manifest, wanted: &TypeName) -> Option<Vec<Json>> {
        self.in_modules(adapter, |powershell, found| powershell.find(found, &adapter.type_name, wanted))
    }

    fn discover(&self, extension: &Extension) -> Result<Vec<Json>, Failure> {
        extension::discover(extension, &Form::ENDINGS, &self.settings, &self.context(&extension.type_name))
    }

    fn forget(&self) {
        *self.modules.inventory.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn fact(&self, key: &FactKey) -> Option<Value> {
        self.machine.fact(key).ok()
    }
}

fn machine(root: PathBuf, options: &HostOptions) -> Machine {
    let mut machine = Machine::of_this_process(root);
    machine.elevated = options.elevated;
    machine
}

/// The machine, with extensions as its source of secrets.
fn with_secrets(mut machine: Machine, extensions: &Arc<Extensions>, vault: &Arc<MemoryVault>) -> Machine {
    let (extensions, vault) = (Arc::clone(extensions), Arc::clone(vault));
    machine.find_secret = Arc::new(move |name, from| extensions.open_secret(name, from, &*vault));
    machine
}

/// What programs of resources are given: what may be handed on, where the document is, and how much is traced.
fn command_settings(root: &Path, options: &HostOptions) -> Settings {
    let mut settings = Settings { elevated: options.elevated, ..Settings::of_this_process() };
    settings.environment.add_of_this_process(&options.environment);
    settings.environment.set("DSC_CONFIG_ROOT", root);
    let level = options.trace_level;
    if let Some((word, _)) = settings::TraceLevel::ALL.iter().find(|(_, each)| *each == level) {
        settings.environment.set("DSC_TRACE_LEVEL", word.to_lowercase());
    }
    settings
}

/// What programs of adapters and extensions are called with while resources, secrets and documents are looked for.
fn extension_context(root: &Path, cancel: &Cancel, options: &HostOptions) -> Context {
    Context {
        deadline: options.deadline.unwrap_or(Duration::from_mins(1)),
        cancel: cancel.clone(),
        trace: Arc::new(forward),
        ..Context::new(root)
    }
}

/// The folder of a document, which relative paths start from.
pub fn folder_of(file: &Path) -> PathBuf {
    let folder = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf())
}
