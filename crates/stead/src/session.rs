//! One call of the program: the texts it read, the resources it knows, and the machine it works on.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use serde_json::Value as Json;
use stead_core::call::{Answered, Call, Failure, FailureKind};
use stead_core::diag::{Diagnostic, any_error};
use stead_core::diff::exists;
use stead_core::document::{self, Document};
use stead_core::expr::FactKey;
use stead_core::graph::codes;
use stead_core::graph::{Facts, Found, Graph, Inputs, Names, Resolution, Resources, resolve};
use stead_core::id::{NodeId, TypeName};
use stead_core::manifest::{Catalog, Extension, Form, Implementation, Kind, Manifest, VersionRequirement};
use stead_core::parameters::Finding;
use stead_core::text::{Limits, Source, Sources, Span};
use stead_core::value::{Object, Value};
use stead_host::catalog::{Discovery, Problem, Programs, Wanted};
use stead_host::command::{CommandProvider, Settings, extension, list_adapted};
use stead_host::drive::World;
use stead_host::extensions::Extensions;
use stead_host::facts::Machine;
use stead_host::fs::Writes;
use stead_host::lock::Locks;
use stead_host::operate::carry_out;
use stead_host::provider::{Cancel, Context, Cost, Plain, Provider, Trace, TraceLevel};
use stead_host::settings;
use stead_host::vault::{MemoryVault, take_secrets};
use stead_resources::BuiltIn;

use crate::surroundings::Surroundings;

/// The version of DSC that documents and results are compatible with.
pub(crate) const DSC_VERSION: &str = "3.4.0-preview.1";

/// The version that `directives.version` is held against. A dsc of [`DSC_VERSION`] takes that of its engine, which is
/// counted by itself, and a document that it takes is taken here.
const ENGINE_VERSION: &str = "3.2.0";

/// What does not change during one call of the program.
pub(crate) struct Session {
    /// Every text that findings can point into.
    pub(crate) sources: Sources,
    /// The machine.
    pub(crate) machine: Arc<Machine>,
    /// The secrets.
    pub(crate) vault: Arc<MemoryVault>,
    /// The resources that there are.
    pub(crate) discovery: Arc<Discovery>,
    /// The extensions that there are, at work.
    pub(crate) extensions: Arc<Extensions>,
    /// The resources that are built in, by type.
    pub(crate) built_in: HashMap<TypeName, BuiltIn>,
    /// Ends everything early.
    pub(crate) cancel: Cancel,
    /// How long one program of a resource may take.
    pub(crate) deadline: Duration,
    /// What programs of resources are given.
    pub(crate) settings: Settings,
    /// Whether instances of a document are told apart by their names.
    pub(crate) names: Names,
    /// The instances of the document that may not run with the rights that there are, and why.
    refused: HashMap<NodeId, &'static str>,
    providers: RwLock<BTreeMap<usize, Arc<dyn Provider>>>,
    root: Arc<Path>,
    trace: Trace,
    writes: Writes,
}

/// A document that can be run.
pub(crate) struct Prepared {
    pub(crate) graph: Arc<Graph>,
    pub(crate) sources: Arc<Sources>,
    pub(crate) facts: Facts,
    pub(crate) warnings: Vec<Diagnostic>,
}

/// A document that cannot be run.
pub(crate) struct Unusable {
    /// Everything that is wrong with it.
    pub(crate) findings: Vec<Diagnostic>,
    /// Whether it is already the input that cannot be used: text that cannot be read, parameters that do not fit,
    /// variables that cannot be computed. dsc has an exit code of its own for that.
    pub(crate) is_input: bool,
}

impl Unusable {
    fn new(document: &Document, findings: Vec<Diagnostic>) -> Self {
        let errors = || findings.iter().filter(|finding| any_error(std::slice::from_ref(*finding)));
        let of = |module: &str| errors().any(|finding| finding.code.id.starts_with(module));
        let defaults = document.parameters.iter().filter_map(|parameter| parameter.default.as_ref());
        let values: Vec<_> = defaults.chain(document.variables.iter().map(|variable| &variable.value)).collect();
        let within = |span: Span| {
            let holds = |of: Span| of.source == span.source && of.start <= span.start && span.end <= of.end;
            values.iter().any(|value| holds(value.span))
        };
        // dsc reads the text, then checks its form, then computes what it holds.
        let is_input =
            of("E01") || !of("E02") && (of("E07") || errors().any(|finding| finding.span.is_some_and(within)));
        Self { findings, is_input }
    }
}

impl Session {
    /// A session whose relative paths start from `root`.
    pub(crate) fn new(root: PathBuf, surroundings: &Surroundings) -> Self {
        Self::with_cancel(root, surroundings, Cancel::default())
    }

    /// The same, ended early by `cancel`.
    pub(crate) fn with_cancel(root: PathBuf, surroundings: &Surroundings, cancel: Cancel) -> Self {
        let settings = command_settings(&root, surroundings);
        let vault = Arc::<MemoryVault>::default();
        let context_root = Arc::from(root.as_path());
        let context = extension_context(&root, &cancel);
        let built_in = stead_resources::builtins();
        let mut catalog = Catalog::default();
        for each in &built_in {
            catalog.add(Arc::clone(&each.manifest));
        }
        let programs = OnMachine {
            machine: machine(root.clone(), surroundings),
            settings: settings.clone(),
            context: context.clone(),
        };
        let discovery = Arc::new(Discovery::new(surroundings.search.clone(), catalog, Arc::new(programs)));
        let extensions = Arc::new(Extensions::new(Arc::clone(&discovery), settings.clone(), context));
        Self {
            sources: Sources::default(),
            machine: Arc::new(with_secrets(machine(root, surroundings), &extensions, &vault)),
            vault,
            discovery,
            extensions,
            built_in: built_in.into_iter().map(|each| (each.manifest.type_name.clone(), each)).collect(),
            cancel,
            deadline: Duration::from_mins(10),
            settings,
            names: Names::Unique,
            refused: HashMap::new(),
            providers: RwLock::default(),
            root: context_root,
            trace: Arc::new(forward),
            writes: Writes::default().with_locks(Locks::of_this_user()),
        }
    }

    /// Makes another folder the root of the operating system.
    pub(crate) fn set_system_root(&mut self, root: &Path) {
        // Nobody else has the machine before the first document is looked at.
        if let Some(machine) = Arc::get_mut(&mut self.machine) {
            machine.system_root = root.to_path_buf();
        }
    }

    /// Makes a document ready to run, or says everything that is wrong with it.
    pub(crate) fn prepare(&mut self, name: &str, text: &str, supplied: Object) -> Result<Prepared, Unusable> {
        let source = self.sources.add(Source::new(name, text));
        let (document, findings) = document::parse(source, text, &Limits::default());
        self.prepare_parsed(document, findings, supplied)
    }

    /// The same of its parameters and variables alone: what it asks of resources is not looked at.
    pub(crate) fn prepare_values(&mut self, name: &str, text: &str, supplied: Object) -> Result<Prepared, Unusable> {
        let source = self.sources.add(Source::new(name, text));
        let (mut document, findings) = document::parse(source, text, &Limits::default());
        document.resources = Vec::new();
        document.outputs = Vec::new();
        self.prepare_parsed(document, findings, supplied)
    }

    fn prepare_parsed(
        &mut self,
        document: Document,
        mut findings: Vec<Diagnostic>,
        supplied: Object,
    ) -> Result<Prepared, Unusable> {
        if any_error(&findings) {
            let mut unusable = Unusable::new(&document, findings);
            unusable.findings.extend(self.more_findings(document, supplied));
            return Err(unusable);
        }
        let supplied = match take_secrets(&document.parameters, supplied, &self.vault) {
            Ok(supplied) => supplied,
            Err(wrong) => {
                findings.extend(wrong.into_iter().map(unplaced));
                return Err(Unusable::new(&document, findings));
            }
        };
        self.resolve(document, &supplied, findings)
    }

    /// What else is wrong with a document whose text is. Instances that could not be read are missing from it, so that
    /// nothing is said of what is not there.
    fn more_findings(&mut self, document: Document, supplied: Object) -> Vec<Diagnostic> {
        let Ok(supplied) = take_secrets(&document.parameters, supplied, &self.vault) else { return Vec::new() };
        let Err(Unusable { mut findings, .. }) = self.resolve(document, &supplied, Vec::new()) else {
            return Vec::new();
        };
        findings.retain(|finding| finding.code != &codes::UNKNOWN_INSTANCE && finding.code != &codes::MISSING_FACT);
        findings
    }

    fn resolve(
        &mut self,
        document: Document,
        supplied: &Object,
        mut findings: Vec<Diagnostic>,
    ) -> Result<Prepared, Unusable> {
        let document = Arc::new(document);
        let mut facts = Facts::new();
        loop {
            let known = Known(&self.discovery);
            let inputs = Inputs {
                catalog: &known,
                parameters: supplied,
                facts: &facts,
                version: ENGINE_VERSION,
                names: self.names,
            };
            match resolve(&document, &inputs, &mut self.sources) {
                Resolution::Graph(graph, warnings) => {
                    findings.extend(warnings);
                    let why = |id| Some((id, graph.refusal(id, self.machine.elevated)?));
                    self.refused = graph.iter().filter_map(|(id, _)| why(id)).collect();
                    let sources = Arc::new(self.sources.clone());
                    return Ok(Prepared { graph: Arc::new(graph), sources, facts, warnings: findings });
                }
                Resolution::Faulty(wrong) => {
                    findings.extend(wrong);
                    return Err(Unusable::new(&document, findings));
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

    /// Tells what was found wrong while resources were looked for, if that was done.
    pub(crate) fn trace_problems(&self) {
        for problem in self.discovery.problems() {
            if problem.is_notable() {
                tracing::warn!("{}", problem_text(&problem));
            } else {
                tracing::info!("{}", problem_text(&problem));
            }
        }
        if self.discovery.has_searched() {
            let deprecated =
                self.discovery.extensions().values().filter_map(|each| Some((each, each.deprecation.as_ref()?)));
            for (extension, advice) in deprecated {
                tracing::warn!("Extension '{}' is deprecated: {advice}", extension.type_name);
            }
        }
    }

    /// What was found wrong that may be why types are unknown, for the findings that say so.
    pub(crate) fn explanations(&self, findings: &[Diagnostic]) -> Vec<String> {
        let missing: Vec<TypeName> = findings.iter().filter_map(|finding| self.missing_type(finding)).collect();
        let problems = self.discovery.problems();
        let explain = |problem: &&Problem| missing.iter().any(|name| problem.may_explain(name));
        problems.iter().filter(explain).map(problem_text).collect()
    }

    fn missing_type(&self, finding: &Diagnostic) -> Option<TypeName> {
        let span = finding.span.filter(|_| *finding.code == codes::UNKNOWN_TYPE)?;
        let text = self.sources.get(span.source)?.text.get(span.start as usize..span.end as usize)?;
        TypeName::parse(text.trim_matches(['"', '\''])).ok()
    }

    /// The resource of that type, looked for on the machine if it is not built in.
    pub(crate) fn find(&self, type_name: &TypeName, version: Option<&str>) -> Result<Arc<Manifest>, NotFound> {
        match Known(&self.discovery).find(type_name, version, None) {
            Found::Resource(manifest) => Ok(manifest),
            Found::Nothing { message, help } => Err(NotFound { message, help }),
        }
    }

    /// What carries out a resource; made once for each.
    pub(crate) fn provider(&self, manifest: &Arc<Manifest>) -> Arc<dyn Provider> {
        // The catalog keeps every manifest alive as long as the session, so that an address stands for one of them.
        let key = Arc::as_ptr(manifest) as usize;
        let known = self.providers.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        known.unwrap_or_else(|| {
            let made = self.make_provider(manifest);
            let mut providers = self.providers.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(providers.entry(key).or_insert(made))
        })
    }

    fn make_provider(&self, manifest: &Arc<Manifest>) -> Arc<dyn Provider> {
        if let Some(built_in) = self.built_in.get(&manifest.type_name)
            && matches!(manifest.implementation, Implementation::BuiltIn | Implementation::Engine)
        {
            return Arc::clone(&built_in.provider);
        }
        match CommandProvider::new(manifest, self.settings.clone()) {
            Some(provider) => Arc::new(provider),
            None => Arc::new(Incapable),
        }
    }

    /// What a call of a run is carried out with.
    fn context_of(&self, call: &Call) -> Context {
        let found = call.tested.as_ref().and_then(|tested| tested.actual.as_object());
        let found_absent = found.is_some_and(|found| !exists(found));
        Context { found_absent, ..self.context(Arc::clone(&call.name)) }
    }

    /// What a call is carried out with.
    pub(crate) fn context(&self, name: impl Into<Arc<str>>) -> Context {
        Context {
            name: name.into(),
            deadline: self.deadline,
            found_absent: false,
            output_limit: OUTPUT_LIMIT,
            cancel: self.cancel.clone(),
            writes: self.writes.clone(),
            root: Arc::clone(&self.root),
            trace: Arc::clone(&self.trace),
        }
    }
}

/// How much one program of a resource may print: far more than a state, far less than the memory of a machine.
const OUTPUT_LIMIT: usize = 16 * 1024 * 1024;

struct Incapable;
impl Provider for Incapable {}

/// Hands on what a resource wrote about what it does.
fn forward(level: TraceLevel, message: &str) {
    match level {
        TraceLevel::Error => tracing::error!("{message}"),
        TraceLevel::Warn => tracing::warn!("{message}"),
        TraceLevel::Info => tracing::info!("{message}"),
        TraceLevel::Debug => tracing::debug!("{message}"),
        TraceLevel::Trace => tracing::trace!("{message}"),
    }
}

/// A finding that has no place in any text.
pub(crate) fn unplaced(finding: Finding) -> Diagnostic {
    let Finding { code, message, help } = finding;
    let severity = stead_core::diag::Severity::Error;
    Diagnostic { code, severity, message, span: None, labels: Vec::new(), help, fix: None }
}

/// A resource that is not there.
#[derive(Debug)]
pub(crate) struct NotFound {
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

/// Discovery as the core asks it.
struct Known<'a>(&'a Discovery);

impl Known<'_> {
    fn has_adapter(&self, type_name: &TypeName) -> bool {
        self.0.discovered().catalog.find(type_name, None).is_ok_and(|found| found.kind == Kind::Adapter)
    }
}

impl Resources for Known<'_> {
    fn find(&self, type_name: &TypeName, requirement: Option<&str>, adapter: Option<&TypeName>) -> Found {
        let requirement = match requirement.map(VersionRequirement::parse).transpose() {
            Ok(requirement) => requirement,
            Err(error) => return Found::Nothing { message: error.to_string(), help: None },
        };
        let version = requirement.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
        match self.0.find(&Wanted { type_name: type_name.clone(), requirement, adapter: adapter.cloned() }) {
            Ok(manifest) => Found::Resource(manifest),
            Err(error) => match adapter.filter(|adapter| !self.has_adapter(adapter)) {
                Some(adapter) => {
                    let message = format!("Adapter not found: {adapter}, which is to carry out '{type_name}'");
                    Found::Nothing { message, help: None }
                }
                None => Found::Nothing {
                    message: format!("Resource not found: {type_name}{version}: {error}"),
                    help: error.help(),
                },
            },
        }
    }
}

/// What discovery has done by this program.
struct OnMachine {
    /// Without secrets: extensions that open them are what is being discovered.
    machine: Machine,
    settings: Settings,
    context: Context,
}

impl OnMachine {
    fn context(&self, name: &TypeName) -> Context {
        Context { name: name.as_str().into(), ..self.context.clone() }
    }
}

impl Programs for OnMachine {
    fn list_adapted(&self, adapter: &Manifest) -> Result<Vec<Json>, Failure> {
        list_adapted(adapter, &self.settings, &self.context(&adapter.type_name))
    }

    fn discover(&self, extension: &Extension) -> Result<Vec<Json>, Failure> {
        extension::discover(extension, &Form::ENDINGS, &self.settings, &self.context(&extension.type_name))
    }

    fn fact(&self, key: &FactKey) -> Option<Value> {
        self.machine.fact(key).ok()
    }
}

fn machine(root: PathBuf, surroundings: &Surroundings) -> Machine {
    let mut machine = Machine::of_this_process(root);
    machine.elevated = surroundings.elevated;
    machine
}

/// The machine, with extensions as its source of secrets.
fn with_secrets(mut machine: Machine, extensions: &Arc<Extensions>, vault: &Arc<MemoryVault>) -> Machine {
    let (extensions, vault) = (Arc::clone(extensions), Arc::clone(vault));
    machine.find_secret = Arc::new(move |name, from| extensions.open_secret(name, from, &vault));
    machine
}

/// What programs of resources are given: what may be handed on, where the document is, and how much is traced.
fn command_settings(root: &Path, surroundings: &Surroundings) -> Settings {
    let mut settings = Settings { elevated: surroundings.elevated, ..Settings::of_this_process() };
    settings.environment.set("DSC_CONFIG_ROOT", root);
    let level = surroundings.settings.trace_level;
    if let Some((word, _)) = settings::TraceLevel::ALL.iter().find(|(_, each)| *each == level) {
        settings.environment.set("DSC_TRACE_LEVEL", word.to_lowercase());
    }
    settings
}

/// What programs of adapters and extensions are called with while resources, secrets and documents are looked for.
fn extension_context(root: &Path, cancel: &Cancel) -> Context {
    Context {
        found_absent: false,
        name: "".into(),
        deadline: Duration::from_mins(1),
        output_limit: OUTPUT_LIMIT,
        cancel: cancel.clone(),
        writes: Writes::unrecorded(),
        root: Arc::from(root),
        trace: Arc::new(forward),
    }
}

impl World for Session {
    fn answer(&self, call: &Call) -> Answered {
        if let Some(why) = self.refused.get(&call.node) {
            return Failure::new(FailureKind::Unsupported, *why).into();
        }
        let provider = self.provider(&call.manifest);
        carry_out(call, &*provider, &*self.vault, &self.context_of(call))
    }

    fn touches(&self, call: &Call) -> Option<Vec<PathBuf>> {
        // Paths are not secret: where one is all the same, its place holder overlaps with nothing.
        let touches = self.provider(&call.manifest).touches(&Plain::new(call.desired.to_redacted_json()))?;
        // Written in one way, so that paths can be compared.
        Some(touches.iter().map(|path| self.root.join(path).components().collect()).collect())
    }

    fn cost(&self, call: &Call) -> Cost {
        self.provider(&call.manifest).cost(&call.desired)
    }

    fn learn(&self, key: &FactKey) -> Result<Value, String> {
        self.machine.fact(key)
    }
}

/// A problem in one line.
pub(crate) fn problem_text(problem: &Problem) -> String {
    let help = problem.help().map(|help| format!(" ({help})")).unwrap_or_default();
    format!("{problem}{help}").replace('\n', "; ")
}

/// The folder of a document, which relative paths start from.
pub(crate) fn folder_of(file: &Path) -> PathBuf {
    let folder = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf())
}
