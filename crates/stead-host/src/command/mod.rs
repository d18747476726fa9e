//! Resources that are programs: their own, or carried out by an adapter.
//!
//! A manifest says which program an operation is and how it gets its input. Everything else is the same for
//! all of them: [`input`] makes the call, [`stead_system::process`] runs it, [`output`] and [`stderr`] read the answer.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use stead_core::call::{Execution, Exported, Failure, FailureKind};
use stead_core::claims::Claims;
use stead_core::document::SecurityContext;
use stead_core::id::TypeName;
use stead_core::manifest::{
    AdaptedResource, AdapterInput, Argument, CommandResource, Implementation, Manifest, OperationSecurity, ProgramCall,
    SchemaSource,
};
use stead_core::planner::Method;
use stead_core::schema::Schema;

use crate::provider::{Asked, Context, Plain, Provider, SetReply, TestReply, Together};
use answer::Request;
use input::{Subject, prepare};
use invoke::{Invocation, Origin, Printed};
use output::Expected;
use resident::{Host, Query};
use secrets::Secrets;
use shape::Shape;

pub use invoke::CommandSettings;
pub use resident::{ResidentPool, Residents};

mod answer;
pub mod extension;
mod input;
mod invoke;
mod methods;
mod named;
pub mod output;
pub mod reconcile;
pub mod resident;
pub mod scripts;
pub mod secrets;
mod shape;
pub mod stderr;
mod together;

/// The provider of a command or an adapted resource, with [`CommandSettings::of_this_process`].
///
/// One of another implementation gets a provider that can do nothing.
pub fn provider_for(manifest: &Arc<Manifest>) -> Arc<dyn Provider> {
    match CommandProvider::new(manifest, CommandSettings::of_this_process()) {
        Some(provider) => Arc::new(provider),
        None => Arc::new(Nothing),
    }
}

struct Nothing;
impl Provider for Nothing {}

/// Lists the resources that an adapter can carry out, as it describes them: an object each.
pub fn list_adapted(adapter: &Manifest, settings: &CommandSettings, cx: &Context) -> Result<Vec<Json>, Failure> {
    let unsupported =
        || Failure::new(FailureKind::Unsupported, format!("'{}' cannot list resources", adapter.type_name));
    let Implementation::Command(methods) = &adapter.implementation else { return Err(unsupported()) };
    let list = methods.adapter.as_ref().and_then(|adapter| adapter.list.as_ref()).ok_or_else(unsupported)?;
    listing(adapter, methods, ("list", list), &subject(adapter), settings, cx)
}

/// Has an adapter list one type, maybe with others; `None` where it has no program for that.
pub fn find_adapted(
    adapter: &Manifest,
    wanted: &TypeName,
    settings: &CommandSettings,
    cx: &Context,
) -> Option<Result<Vec<Json>, Failure>> {
    let Implementation::Command(methods) = &adapter.implementation else { return None };
    let find = methods.adapter.as_ref()?.find.as_ref()?;
    let subject = Subject { type_name: wanted.to_string(), ..subject(adapter) };
    Some(listing(adapter, methods, ("find", find), &subject, settings, cx))
}

fn listing(
    adapter: &Manifest,
    methods: &CommandResource,
    (operation, method): (&'static str, &ProgramCall),
    subject: &Subject,
    settings: &CommandSettings,
    cx: &Context,
) -> Result<Vec<Json>, Failure> {
    let secrets = Secrets::default();
    let invocation = Invocation {
        origin: origin(methods, settings),
        of: adapter.type_name.as_str(),
        operation,
        executable: &method.executable,
        secrets: &secrets,
    };
    let prepared = prepare(method, subject, &Json::Null, &secrets, Execution::Actual)?;
    let printed = invocation.run(cx, &prepared)?;
    let listed = printed.read(Expected::Lines)?;
    if listed.iter().any(|each| !each.is_object()) {
        return Err(printed.unexpected("every line must be an object"));
    }
    Ok(listed)
}

/// Has an importer say what its properties stand for: an object with the document in `configuration`.
pub fn resolve(importer: &Manifest, input: &Plain, settings: &CommandSettings, cx: &Context) -> Result<Json, Failure> {
    let unsupported =
        || Failure::new(FailureKind::Unsupported, format!("'{}' cannot resolve anything", importer.type_name));
    let Implementation::Command(methods) = &importer.implementation else { return Err(unsupported()) };
    let method = methods.resolve.as_ref().ok_or_else(unsupported)?;
    let secrets = Secrets::of(input);
    let (origin, executable) = (origin(methods, settings), method.executable.as_str());
    let of = importer.type_name.as_str();
    let invocation = Invocation { origin, of, operation: "resolve", executable, secrets: &secrets };
    let prepared = prepare(method, &subject(importer), &input.to_json(), &secrets, Execution::Actual)?;
    let printed = invocation.run(cx, &prepared)?;
    let resolved = printed.read(Expected::Values(1))?.pop();
    resolved.filter(Json::is_object).ok_or_else(|| printed.unexpected("it must be an object"))
}

/// Carries out a resource by the programs of a manifest: its own, or those of its adapter.
///
/// Guarantees: one call runs one program, and before it that of `validate` where the manifest has one and these
/// properties were not found valid before. Outputs are not sent through `validate`: it would double the processes, and
/// what a resource says of the machine is not the user's to fix.
pub struct CommandProvider {
    manifest: Arc<Manifest>,
    methods: Arc<CommandResource>,
    subject: Subject,
    own_schema: Option<SchemaSource>,
    shape: Shape,
    /// True if one call is made for several instances.
    takes_several: bool,
    settings: CommandSettings,
    residents: Residents,
    schema: OnceLock<Option<Arc<Schema>>>,
    export_schema: OnceLock<Option<Arc<Schema>>>,
    schema_turn: Mutex<()>,
    accepted: Mutex<BTreeSet<[u8; 32]>>,
    /// True if the warning about a test without a verdict was given.
    has_warned: AtomicBool,
}

/// The subject of calls of a manifest's programs. The path of a command resource is that of its manifest.
fn subject(manifest: &Manifest) -> Subject {
    let path = match &manifest.implementation {
        Implementation::Command(command) => Some(command.manifest_path.clone()),
        _ => None,
    };
    Subject { type_name: manifest.type_name.to_string(), version: manifest.version.to_string(), path, content: None }
}

fn origin<'a>(methods: &'a CommandResource, settings: &'a CommandSettings) -> Origin<'a> {
    Origin { manifest_path: &methods.manifest_path, exit_codes: &methods.exit_codes, settings }
}

impl CommandProvider {
    /// The provider of a manifest; `None` when it is neither a command nor adapted by one.
    pub fn new(manifest: &Arc<Manifest>, settings: CommandSettings) -> Option<Self> {
        match &manifest.implementation {
            Implementation::Command(methods) => {
                let schema = methods.schema.clone();
                Some(Self::assemble(manifest, methods, subject(manifest), schema, Shape::Direct, settings))
            }
            Implementation::Adapted { adapter, resource } => Self::adapted(manifest, adapter, resource, settings),
            _ => None,
        }
    }

    /// Shares the programs that stay with others.
    #[must_use]
    pub fn with_residents(self, residents: &Residents) -> Self {
        Self { residents: residents.clone(), ..self }
    }

    fn adapted(
        manifest: &Arc<Manifest>,
        adapter: &Manifest,
        resource: &AdaptedResource,
        settings: CommandSettings,
    ) -> Option<Self> {
        let Implementation::Command(methods) = &adapter.implementation else { return None };
        let shape = match methods.adapter.as_ref()?.input_kind {
            AdapterInput::Single => Shape::Direct,
            AdapterInput::Full => Shape::Document { in_configuration: true },
            AdapterInput::Sequence => Shape::Document { in_configuration: false },
        };
        let subject = Subject { path: resource.path.clone(), content: resource.content.clone(), ..subject(manifest) };
        let stated = resource.schema.clone().map(SchemaSource::Embedded);
        // The schema of an adapter that takes documents describes the document, not the instances in it.
        let schema = stated.or_else(|| methods.schema.clone().filter(|_| shape == Shape::Direct));
        Some(Self::assemble(manifest, methods, subject, schema, shape, settings))
    }

    fn assemble(
        manifest: &Arc<Manifest>,
        methods: &Arc<CommandResource>,
        subject: Subject,
        own_schema: Option<SchemaSource>,
        shape: Shape,
        settings: CommandSettings,
    ) -> Self {
        // What stays is asked for one instance, by its type.
        let shape = if methods.resident.is_some() { Shape::Direct } else { shape };
        Self {
            manifest: Arc::clone(manifest),
            methods: Arc::clone(methods),
            subject,
            own_schema,
            shape,
            takes_several: manifest.batch().is_some(),
            settings,
            residents: Residents::default(),
            schema: OnceLock::new(),
            export_schema: OnceLock::new(),
            schema_turn: Mutex::default(),
            accepted: Mutex::default(),
            has_warned: AtomicBool::new(false),
        }
    }

    fn invocation<'a>(&'a self, operation: &'static str, executable: &'a str, secrets: &'a Secrets) -> Invocation<'a> {
        let origin = origin(&self.methods, &self.settings);
        Invocation { origin, of: &self.subject.type_name, operation, executable, secrets }
    }

    /// Refuses an operation that requires other rights.
    fn check_privilege(&self, operation: &str, required: Option<SecurityContext>) -> Result<(), Failure> {
        let Some(required) = required.filter(|required| required.refusal(self.settings.elevated).is_some()) else {
            return Ok(());
        };
        let advice = if self.settings.elevated { "do not run it as root" } else { "run it as root" };
        let of = &self.manifest.type_name;
        let message =
            format!("Operation '{operation}' for resource '{of}' requires security context '{required:?}': {advice}");
        Err(Failure::new(FailureKind::Unsupported, message))
    }

    /// The rights that the operations need: those of whoever has the programs.
    fn security(&self) -> OperationSecurity {
        match &self.manifest.implementation {
            Implementation::Adapted { adapter, .. } => adapter.security,
            _ => self.manifest.security,
        }
    }

    fn unsupported(&self, operation: &str) -> Failure {
        let message = format!("resource '{}' does not support '{operation}'", self.manifest.type_name);
        Failure::new(FailureKind::Unsupported, message)
    }

    /// Carries out a method: by the program that stays, where there is one, or else by one for this call.
    fn perform(
        &self,
        cx: &Context,
        (operation, method): (&'static str, &ProgramCall),
        wanted: &Json,
        secrets: &Secrets,
        execution: Execution,
    ) -> Result<Printed, Failure> {
        let Some(program) = &self.methods.resident else {
            let wanted = with_pending(wanted, cx);
            let prepared = prepare(method, &self.subject, &wanted, secrets, execution)?;
            return self.invocation(operation, &method.executable, secrets).run(cx, &prepared);
        };
        let invocation = self.invocation(operation, &program.executable, secrets);
        let Subject { type_name, version, path, content } = &self.subject;
        let is_adapted = matches!(self.manifest.implementation, Implementation::Adapted { .. });
        let path = path.as_ref().filter(|_| is_adapted).map(|path| path.display().to_string());
        let asked = Query {
            // A what-if is a set that is only asked.
            method: if operation == "what-if" { "set" } else { operation },
            type_name,
            version,
            properties: wanted,
            what_if: execution == Execution::WhatIf,
            directory: cx.program_root().display().to_string(),
            path,
            content: content.as_ref(),
            pending: cx.pending.as_ref().map(Plain::to_json),
        };
        let host = Host { program, invocation: &invocation };
        Ok(invocation.answered(self.residents.call(&host, cx, &asked, secrets)?))
    }

    /// Runs one program for a method other than an export.
    fn run(&self, cx: &Context, request: &Request<'_>, input: &Plain) -> Result<Printed, Failure> {
        if self.takes_several {
            let asked = Asked { type_name: &self.manifest.type_name, cx, input };
            return self.run_all(request, &[asked]).pop().unwrap_or_else(|| Err(self.unsupported(request.operation)));
        }
        self.run_one(cx, request, input)
    }

    fn run_one(&self, cx: &Context, request: &Request<'_>, input: &Plain) -> Result<Printed, Failure> {
        let mut secrets = Secrets::of(input);
        cx.pending.iter().for_each(|kept| secrets.add(&Secrets::of(kept)));
        let wanted = self.shape.wrap(&self.subject.type_name, &input.to_json());
        self.validate_properties(cx, &wanted, &secrets)?;
        self.perform(cx, (request.operation, request.method), &wanted, &secrets, request.execution)
    }

    /// Has `validate` of the manifest look at properties, unless it found the same ones valid before.
    fn validate_properties(&self, cx: &Context, wanted: &Json, secrets: &Secrets) -> Result<(), Failure> {
        let Some(method) = self.methods.validate.as_ref().filter(|_| !wanted.is_null()) else { return Ok(()) };
        let digest = digest(wanted);
        if self.accepted().contains(&digest) {
            return Ok(());
        }
        let printed = self.perform(cx, ("validate", method), wanted, secrets, Execution::Actual)?;
        check_verdict(&printed, secrets)?;
        self.remember(digest);
        Ok(())
    }

    fn accepted(&self) -> std::sync::MutexGuard<'_, BTreeSet<[u8; 32]>> {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, digest: [u8; 32]) {
        // Enough for any document; a process that runs for months must not grow with every value it ever saw.
        const REMEMBERED: usize = 4096;
        let mut accepted = self.accepted();
        if accepted.len() >= REMEMBERED {
            accepted.clear();
        }
        accepted.insert(digest);
    }

    /// A schema, compiled once. Failures are not kept: the next call tries again.
    fn compiled(
        &self,
        cx: &Context,
        kept: &OnceLock<Option<Arc<Schema>>>,
        source: Option<&SchemaSource>,
    ) -> Result<Option<Arc<Schema>>, Failure> {
        if let Some(schema) = kept.get() {
            return Ok(schema.clone());
        }
        // One thread asks the program, the others wait for its answer.
        let _turn = self.schema_turn.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(schema) = kept.get() {
            return Ok(schema.clone());
        }
        let schema = source.map(|source| self.load_schema(cx, source)).transpose()?;
        Ok(kept.get_or_init(|| schema).clone())
    }

    fn load_schema(&self, cx: &Context, source: &SchemaSource) -> Result<Arc<Schema>, Failure> {
        let json = match source {
            SchemaSource::Embedded(json) => json.clone(),
            SchemaSource::Command { executable, arguments } => self.print_schema(cx, executable, arguments)?,
        };
        let schema = Schema::compile(json).map_err(|error| Failure::new(FailureKind::Protocol, error.to_string()))?;
        Ok(Arc::new(schema))
    }

    fn print_schema(&self, cx: &Context, executable: &str, arguments: &[Argument]) -> Result<Json, Failure> {
        let method = ProgramCall {
            executable: executable.to_owned(),
            arguments: arguments.to_vec(),
            input: stead_core::manifest::Input::None,
            returns: None,
            what_if_returns: None,
        };
        let secrets = Secrets::default();
        let invocation = self.invocation("schema", executable, &secrets);
        let prepared = prepare(&method, &self.subject, &Json::Null, &secrets, Execution::Actual)?;
        let printed = invocation.run(cx, &prepared)?;
        printed.read(Expected::Values(1))?.pop().ok_or_else(|| printed.unexpected("there is no schema"))
    }
}

/// Reads what `validate` says.
fn check_verdict(printed: &Printed, secrets: &Secrets) -> Result<(), Failure> {
    let answer = printed.read(Expected::Values(1))?;
    let answer = answer.first().unwrap_or(&Json::Null);
    match answer.get("valid").and_then(Json::as_bool) {
        Some(true) => Ok(()),
        Some(false) => {
            let reason = answer.get("reason").and_then(Json::as_str).unwrap_or("the resource does not say why");
            let reason = secrets.scrub(reason);
            Err(Failure::new(FailureKind::Invalid, format!("the properties are not valid: {reason}")))
        }
        None => Err(printed.unexpected("'valid' must be true or false")),
    }
}

fn digest(wanted: &Json) -> [u8; 32] {
    Sha256::digest(wanted.to_string()).into()
}

/// The properties with what the resource handed back when it was still working, in the place where it did.
fn with_pending<'a>(wanted: &'a Json, cx: &Context) -> Cow<'a, Json> {
    let Some(kept) = &cx.pending else { return Cow::Borrowed(wanted) };
    let mut wanted = wanted.clone();
    if wanted.is_null() {
        wanted = Json::Object(serde_json::Map::new());
    }
    let Some(members) = wanted.as_object_mut() else { return Cow::Owned(wanted) };
    let mut object = members;
    for name in ["_metadata", "stead"] {
        let member = object.entry(name).or_insert_with(|| Json::Object(serde_json::Map::new()));
        match member.as_object_mut() {
            Some(inner) => object = inner,
            None => return Cow::Owned(wanted),
        }
    }
    object.insert("pending".to_owned(), kept.to_json());
    Cow::Owned(wanted)
}

impl Provider for CommandProvider {
    fn validate(&self, cx: &Context, input: &Plain) -> Result<(), Failure> {
        if self.takes_several {
            let asked = Asked { type_name: &self.manifest.type_name, cx, input };
            return self.validate_all(&[asked]).into_iter().collect();
        }
        let wanted = self.shape.wrap(&self.subject.type_name, &input.to_json());
        self.validate_properties(cx, &wanted, &Secrets::of(input))
    }

    fn schema(&self, cx: &Context) -> Result<Option<Arc<Schema>>, Failure> {
        self.compiled(cx, &self.schema, self.own_schema.as_ref())
    }

    fn export_schema(&self, cx: &Context) -> Result<Option<Arc<Schema>>, Failure> {
        // What an adapter exports is asked for with a document, which no filter describes.
        let is_own = matches!(self.manifest.implementation, Implementation::Command(_));
        let source = self.methods.export_schema.as_ref().filter(|_| is_own);
        self.compiled(cx, &self.export_schema, source)
    }

    fn called_once(&self) -> Option<Box<dyn Provider>> {
        let is_own = matches!(self.manifest.implementation, Implementation::Command(_));
        self.methods.resident.as_ref().filter(|_| is_own)?;
        let methods = Arc::new(CommandResource { resident: None, ..CommandResource::clone(&self.methods) });
        let (subject, schema) = (self.subject.clone(), self.own_schema.clone());
        let once = Self::assemble(&self.manifest, &methods, subject, schema, self.shape, self.settings.clone());
        Some(Box::new(once))
    }

    fn claims(&self, input: &Plain) -> Option<Claims> {
        // What an adapter claims says nothing of those that it carries out.
        let is_own = matches!(self.manifest.implementation, Implementation::Command(_));
        is_own.then(|| self.methods.claims_of(input.expose())).flatten()
    }

    /// Returns true: resources that are programs are used to it.
    fn wants_wrapped_secrets(&self) -> bool {
        true
    }

    fn together(&self) -> Option<&dyn Together> {
        self.takes_several.then_some(self)
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<Plain, Failure> {
        let request = self.request(Method::Get, cx)?;
        self.got(&request, &self.run(cx, &request, input)?)
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let request = self.request(Method::Test, cx)?;
        self.tested(cx, &request, &self.run(cx, &request, input)?)
    }

    /// A set that succeeded is not lost when its report is unusable: the state after it can be read.
    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let request = self.request(Method::Set(execution), cx)?;
        self.was_set(cx, &request, &self.run(cx, &request, input)?)
    }

    fn delete(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<Vec<String>, Failure> {
        let request = self.request(Method::Delete(execution), cx)?;
        self.deleted(&request, &self.run(cx, &request, input)?)
    }

    fn export(&self, cx: &Context, input: &Plain) -> Result<Vec<Exported>, Failure> {
        let method = self.methods.export.as_ref().ok_or_else(|| self.unsupported("export"))?;
        self.check_privilege("export", self.security().export)?;
        let request = Request::new("export", method, Execution::Actual).expecting(Expected::Lines);
        Ok(request.understand(self, &self.run_one(cx, &request, input)?)?.exported)
    }
}
