//! PowerShell resources as providers: each operation is a call of a worker.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use serde_json::value::RawValue;
use serde_json::{Value as PlainJson, json};
use stead_core::call::{Execution, Exported, Failure, FailureKind, Operation, Restart};
use stead_core::value::{Object, REDACTED, Value};
use stead_host::command::secrets::Secrets;
use stead_host::provider::{ActivityProgress, Context, Plain, Provider, SetReply, State, TestReply, TraceLevel};
use stead_powershell_reader::resource::{DefinitionKind, Resource};
use stead_powershell_reader::schema::json_schema;
use stead_powershell_reader::types::Type;
use stead_system::fs::OpenError;

use crate::convert::{self, Json, Mismatch, Purpose, ValueRefusal, Wire};
use crate::script;
use crate::words::{Variables, Words};
use crate::worker::{
    Call, Deadline, Failed, Lease, Limits, Method, MethodReply, Module, Origin, Pool, Records, StatedScripts, Stream,
    StreamRecord,
};

/// Where a resource comes from.
pub struct Source {
    /// The file that is imported to call it: of a class the manifest or script of its module, of a script resource
    /// its implementation.
    pub module: PathBuf,
    /// Something that changes whenever a file of the module does, or why one is not to be run; asked before each call.
    pub stamp: Box<dyn Fn() -> Result<String, OpenError> + Send + Sync>,
}

impl Source {
    /// A module that is a part of this program: its text, which the worker takes for a file that begins with `text:`.
    pub(crate) fn built_in(text: &str) -> Self {
        Self { module: PathBuf::from(text), stamp: Box::new(|| Ok(String::new())) }
    }
}

/// Carries out the operations of one resource by calls of workers.
pub struct PowerShellProvider {
    /// `None` where PowerShell is not there: properties can be checked all the same.
    pool: Option<Pool>,
    resource: Arc<Resource>,
    source: Source,
    code: Box<CodeOf>,
}

/// The code that a call runs.
pub(crate) struct Code {
    /// Whose it is.
    pub(crate) origin: Origin,
    /// What its files say.
    pub(crate) words: Arc<Words>,
}

/// Returns the code of a call, by the stamp of the files that it runs.
type CodeOf = dyn Fn(&str) -> Code + Send + Sync;

impl PowerShellProvider {
    /// For a resource that is a class or a script. A composite is expanded before anything runs.
    pub fn new(pool: Option<Pool>, resource: Arc<Resource>, source: Source) -> Self {
        let file = source.module.clone();
        let code = move |_: &str| Code { origin: Origin::of_file(&file), words: Arc::default() };
        Self { pool, resource, source, code: Box::new(code) }
    }

    /// Returns the same provider, for code of which more is known.
    #[must_use]
    pub(crate) fn from(self, code: Box<CodeOf>) -> Self {
        Self { code, ..self }
    }

    /// A session for calls of one instance, of which this method is the first.
    fn open<'a>(&'a self, cx: &'a Context, input: &Plain, method: Method) -> Result<Opened<'a>, Failure> {
        if self.resource.kind == DefinitionKind::Composite {
            let message =
                format!("'{}' is a composite resource: use it in a document, where it is expanded", self.resource.name);
            return Err(Failure::new(FailureKind::Unsupported, message));
        }
        let (deadline, secrets) = (Deadline::after(cx.deadline), Secrets::of(input));
        let purpose = if method == Method::Export { Purpose::Filter } else { Purpose::Instance };
        let properties = self.properties(input, purpose).map_err(|refusals| {
            let error_id =
                refusals.first().and_then(|first| error_id(first, self.resource.kind, method)).map(Into::into);
            Failure { error_id, ..invalid(&refusals, &secrets) }
        })?;
        let pool = self
            .pool
            .as_ref()
            .ok_or_else(|| Failure::new(FailureKind::Start, "PowerShell not found: no 'pwsh' in PATH"))?;
        let stamp = (self.source.stamp)().map_err(|error| {
            Failure::new(FailureKind::Start, format!("cannot load the module of '{}': {error}", self.resource.name))
        })?;
        let module = Module { path: &self.source.module, stamp: &stamp };
        let (output, cancel, inherited) = (cx.output_limit, &cx.cancel, &*cx.inherited);
        let limits = Limits { deadline, output, cancel, inherited, to_come: cx.to_come };
        let code = (self.code)(&stamp);
        self.name_withheld(cx, pool, &code.words, &properties);
        let origin = self.origin_of(code.origin, input, &secrets);
        let lease = pool.lease(module, origin, &limits).map_err(|failed| failure(&failed, &secrets))?;
        let (directory, root) = (cx.directory().to_path_buf(), cx.program_root());
        Ok(Opened { provider: self, cx, limits, lease, properties, stamp, directory, root, secrets })
    }

    /// Whose code a call runs. What one instance left in the memory of a process, the scripts of another one could read.
    fn origin_of(&self, origin: Origin, input: &Plain, secrets: &Secrets) -> Origin {
        let scripts = match (runs_scripts(&self.resource), secrets.is_empty()) {
            (false, _) => StatedScripts::None,
            (true, true) => StatedScripts::Any,
            (true, false) => StatedScripts::Of(number(input)),
        };
        Origin { scripts, alone: origin.alone || !secrets.is_empty(), ..origin }
    }

    /// Warns of variables that the code reads, and that whoever calls has set and programs are not given. A path that is made of one
    /// would be another.
    fn name_withheld(&self, cx: &Context, pool: &Pool, words: &Words, properties: &[(String, Wire)]) {
        let mut stated = Variables::default();
        for (_, value) in properties.iter().filter(|_| runs_scripts(&self.resource)) {
            if let Wire::String(text) = value {
                stated.take(text);
            }
        }
        let names: BTreeSet<String> = words.variables.union(&stated.difference()).cloned().collect();
        if names.is_empty() {
            return;
        }
        let name = &self.resource.name;
        let withheld = pool.newly_withheld(name, &names, &cx.inherited);
        if !withheld.is_empty() {
            let (all, options) = (withheld.join("', '"), withheld.join(" --env "));
            let way =
                format!("add '--env {options}', the document directive 'environment', or the setting 'environment'");
            cx.say(
                TraceLevel::Warn,
                &format!("'{name}' reads environment variables that are not passed to it: '{all}'; {way}"),
            );
        }
    }

    fn properties(&self, input: &Plain, purpose: Purpose) -> Result<Vec<(String, Wire)>, Vec<ValueRefusal>> {
        let Json::Object(stated) = unwrapped(input.expose()) else { return Ok(Vec::new()) };
        convert::properties(&self.resource.properties, &stated, purpose)
    }
}

/// Returns whether instances state scripts that the resource runs, by what their properties are called or are.
fn runs_scripts(resource: &Resource) -> bool {
    resource.properties.iter().any(|property| {
        matches!(property.ty, Type::ScriptBlock)
            || property.ty == Type::String && property.name.to_lowercase().ends_with("script")
    })
}

/// A number for an input, of which nothing is sealed any more, by a key that no other process has.
fn number(input: &Plain) -> u64 {
    static KEY: OnceLock<RandomState> = OnceLock::new();
    KEY.get_or_init(RandomState::new).hash_one(input.expose().to_redacted_json().to_string())
}

/// A worker and what it is given.
struct Opened<'a> {
    provider: &'a PowerShellProvider,
    cx: &'a Context,
    limits: Limits<'a>,
    lease: Lease<'a>,
    properties: Vec<(String, Wire)>,
    stamp: String,
    directory: PathBuf,
    root: PathBuf,
    secrets: Secrets,
}

impl Opened<'_> {
    fn call(&mut self, method: Method) -> Result<MethodReply, Failure> {
        let (cx, secrets) = (&self.cx, &self.secrets);
        let report = |said: ActivityProgress| {
            let scrubbed = |text: &String| secrets.scrub(text).into_owned();
            let [activity, status, operation] = [&said.activity, &said.status, &said.operation].map(scrubbed);
            let said = ActivityProgress { activity, status, operation, ..said };
            self.cx.progress.iter().for_each(|sink| sink(&said));
        };
        let call = Call {
            kind: self.provider.resource.kind,
            module: Module { path: &self.provider.source.module, stamp: &self.stamp },
            resource: &self.provider.resource.name,
            method,
            properties: &self.properties,
            records: records(self.cx.shown),
            progress: self.cx.progress.is_some().then_some(&report),
            directory: &self.directory,
            root: &self.root,
        };
        let mut forward = |record: StreamRecord| cx.say(level(record.stream), &secrets.scrub(&record.message));
        self.lease.call(&call, &self.limits, &mut forward).map_err(|failed| failure(&failed, secrets))
    }

    fn get(&mut self) -> Result<Value, Failure> {
        let reply = self.call(Method::Get)?;
        let state = reply.state().map_err(|error| failure(&Failed::Call(error), &self.secrets))?;
        let Some(state) = state else {
            self.cx.say(TraceLevel::Warn, "Get returned nothing");
            return Ok(Value::from(json!({})));
        };
        parse(state)
    }
}

impl Opened<'_> {
    /// The state after a set, where anybody reads it. A restart that was asked for once must not be lost where it cannot be read.
    fn after_set(&mut self, reboot: bool) -> SetReply {
        let (mut state, unread) = match (self.cx.verdict_suffices, Value::Object(Object::new())) {
            (true, nothing) => (nothing, None),
            (false, nothing) => self.get().map_or_else(|failure| (nothing, Some(failure)), |state| (state, None)),
        };
        if let (true, Value::Object(members)) = (reboot, &mut state) {
            let name = stead_system::kernel::host_name();
            members.insert("_restartRequired".to_owned(), Value::from(json!([{ "system": name }])));
        }
        SetReply { after: Some(Plain::new(state)), unread, ..SetReply::default() }
    }
}

impl Provider for PowerShellProvider {
    /// It only describes: PowerShell compares names and the values of sets without regard to case, and converts.
    fn described_schema(&self, _cx: &Context) -> Result<Option<PlainJson>, Failure> {
        Ok(Some(json_schema(&self.resource)))
    }

    fn validate(&self, _cx: &Context, input: &Plain) -> Result<(), Failure> {
        // Those of a composite resource are checked when it is expanded.
        if self.resource.kind == DefinitionKind::Composite {
            return Ok(());
        }
        let checked = self.properties(input, Purpose::Instance);
        checked.map(drop).map_err(|refusals| invalid(&refusals, &Secrets::of(input)))
    }

    fn script(&self, cx: &Context, input: &Plain, operation: Operation) -> Option<String> {
        let properties = self.properties(input, Purpose::Instance).ok()?;
        let paths = self.pool.as_ref().map_or(&[][..], Pool::module_path);
        script::of(
            &self.resource,
            &self.source.module,
            operation,
            &properties,
            &script::Place { directory: &cx.directory(), root: &cx.program_root(), paths },
        )
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        self.open(cx, input, Method::Get)?.get().map(Plain::new)
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let mut opened = self.open(cx, input, Method::Test)?;
        let verdict = opened.call(Method::Test)?.verdict();
        let verdict = verdict.map_err(|error| failure(&Failed::Call(error), &opened.secrets))?;
        Ok(TestReply { in_desired_state: Some(verdict), ..TestReply::default() })
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let mut opened = self.open(cx, input, Method::Set)?;
        if execution == Execution::WhatIf {
            if !self.resource.methods.what_if {
                return Err(Failure::new(FailureKind::Unsupported, "the resource does not support what-if"));
            }
            let texts = opened.call(Method::WhatIf)?.texts();
            let what_if = texts.iter().map(|text| opened.secrets.scrub(text).into_owned()).collect();
            return Ok(SetReply { what_if, ..SetReply::default() });
        }
        let reboot = opened.call(Method::Set)?.reboot_required;
        Ok(opened.after_set(reboot))
    }

    fn delete(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<Vec<String>, Failure> {
        if execution == Execution::Actual {
            self.open(cx, input, Method::Delete)?.call(Method::Delete)?;
        }
        Ok(Vec::new())
    }

    fn export(&self, cx: &Context, input: &Plain) -> Result<Vec<Exported>, Failure> {
        let mut opened = self.open(cx, input, Method::Export)?;
        if !opened.properties.is_empty() {
            cx.say(TraceLevel::Trace, "Properties provided for filtered export");
        }
        let reply = opened.call(Method::Export)?;
        let states = reply.states().map_err(|error| failure(&Failed::Call(error), &opened.secrets))?;
        let exported =
            |properties| Exported { type_name: None, name: None, properties, depends_on: Vec::new(), metadata: None };
        states.into_iter().map(|state| parse(state).map(exported)).collect()
    }

    fn wants_wrapped_secrets(&self) -> bool {
        true
    }
}

fn parse(state: &RawValue) -> Result<Value, Failure> {
    let json: PlainJson = serde_json::from_str(state.get())
        .map_err(|error| Failure::new(FailureKind::Protocol, format!("the state is not valid JSON: {error}")))?;
    Ok(Value::from(covering_secrets(json)))
}

/// A state in which secrets of PowerShell, of which a worker says only that they are there, have the form that results have.
fn covering_secrets(json: PlainJson) -> PlainJson {
    match json {
        PlainJson::Object(members) => match members.get("$secret").and_then(PlainJson::as_str) {
            Some("SecureString") => REDACTED.into(),
            Some("PSCredential") => json!({ "username": members.get("username"), "password": REDACTED }),
            _ => members.into_iter().map(|(name, value)| (name, covering_secrets(value))).collect(),
        },
        PlainJson::Array(items) => items.into_iter().map(covering_secrets).collect(),
        other => other,
    }
}

/// The input with its secrets as themselves: how they are wrapped is for those who print.
fn unwrapped(value: &Value) -> Json {
    match value {
        Value::Object(members) if members.len() == 1 => match members.first() {
            Some((name, inner)) if name == "secureString" || name == "secureObject" => unwrapped(inner),
            _ => object(members.iter()),
        },
        Value::Object(members) => object(members.iter()),
        Value::Array(items) => Json::Array(items.iter().map(unwrapped).collect()),
        scalar => Json::from(scalar),
    }
}

fn object<'a>(members: impl Iterator<Item = (&'a String, &'a Value)>) -> Json {
    Json::Object(members.map(|(name, value)| (name.clone(), unwrapped(value))).collect())
}

fn invalid(refusals: &[ValueRefusal], secrets: &Secrets) -> Failure {
    let text = |refusal: &ValueRefusal| format!("{} [{}]", secrets.scrub(&refusal.to_string()), refusal.code.id);
    let messages: Vec<String> = refusals.iter().map(text).collect();
    let property = refusals.first().map(|refusal| refusal.pointer.clone());
    Failure { property, ..Failure::new(FailureKind::Invalid, messages.join("; ")) }
}

fn failure(failed: &Failed, secrets: &Secrets) -> Failure {
    let scrubbed = |text: &str| secrets.scrub(text).into_owned();
    // The id of a text that was thrown is that text.
    let error_id = failed.error_id().map(|id| scrubbed(id).into());
    let restart = failed.asks_for_restart().then(|| Box::new(Restart::System(stead_system::kernel::host_name())));
    let raised = failed.raised().map(|raised| Box::new(raised.with_texts(scrubbed)));
    Failure { error_id, raised, restart, ..Failure::new(failed.kind(), scrubbed(&failed.explain())) }
}

/// The `FullyQualifiedErrorId` that PowerShell has for a value that is refused here; `None` where it would accept it.
fn error_id(refusal: &ValueRefusal, kind: DefinitionKind, method: Method) -> Option<String> {
    let is_class = kind == DefinitionKind::Class;
    let is_within = refusal.pointer.matches('/').count() > 1;
    let name = match refusal.mismatch {
        Mismatch::Unknown if is_class && !is_within => "PropertyAssignmentException",
        Mismatch::Missing if is_class => return None,
        _ if is_class => "ExceptionWhenSetting",
        Mismatch::Unknown if !is_within => "NamedParameterNotFound",
        Mismatch::Missing => "MissingMandatoryParameter",
        Mismatch::Rule => "ParameterArgumentValidationError",
        _ => "ParameterArgumentTransformationError",
    };
    Some(if is_class { name.to_owned() } else { format!("{name},{method:?}-TargetResource") })
}

/// The records that a worker is asked for, so that nothing is sent that nobody sees.
fn records(shown: TraceLevel) -> Records {
    match shown {
        TraceLevel::Error | TraceLevel::Warn => Records::None,
        TraceLevel::Info => Records::Information,
        TraceLevel::Debug => Records::Verbose,
        TraceLevel::Trace => Records::Debug,
    }
}

fn level(stream: Stream) -> TraceLevel {
    match stream {
        Stream::Error => TraceLevel::Error,
        Stream::Warning => TraceLevel::Warn,
        Stream::Information => TraceLevel::Info,
        Stream::Verbose => TraceLevel::Debug,
        Stream::Debug => TraceLevel::Trace,
    }
}
