//! The methods of the protocol, each one a call of the engine.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value as Json, json};
use stead_core::call::{Execution, Failure, FailureKind, Operation, Outcome, Tested, code};
use stead_core::diff::{differing, respelled};
use stead_core::event::Mode;
use stead_core::report::Record;
use stead_core::schema::digest;
use stead_core::value::{Object, Value, pointer};
use stead_core::wire::results::restarts;
use stead_engine::{CallRefusal, ResourceCall, RunOptions, RunWatch, Session, error_chain, finding_line};
use stead_host::executor::Inline;
use stead_host::provider::{ProgressSink, Trace, TraceLevel};
use stead_resources::builtin_of;
use stead_system::Cancel;

use super::compared::{differences, is_there, rules, undetailed};
use super::forms::plain;
use super::places::{Look, Places};
use super::protocol::{Initialize, Judge, Log, Manner, ResourceParams, VERSION};
use super::secrets::{bare, noted, stated_secrets, unapplied};
use crate::rpc::{self, Problem, Request, Work, object};

/// Says hello: the versions, and the digests of the schemas that the caller was made from as they are now.
pub(super) fn initialize(session: &Session, request: &Request) -> Result<Json, Problem> {
    let asked: Initialize = request.params()?;
    if asked.protocol != VERSION {
        let message = format!("protocol version {} is not supported; this server speaks {VERSION}", asked.protocol);
        return Err(Problem::new(Problem::HANDSHAKE, message).with("protocol", VERSION));
    }
    let digest_of = |wanted: &String| {
        let (name, version) = wanted.split_once('@').map_or((wanted.as_str(), None), |(name, at)| (name, Some(at)));
        let called = ResourceCall::find(session.beside(Cancel::default()), name, version).ok()?;
        Some(digest(&called.schema().ok()?))
    };
    let schemas: Map<String, Json> = asked.schemas.keys().map(|name| (name.clone(), digest_of(name).into())).collect();
    Ok(json!({ "protocol": VERSION, "engine": env!("CARGO_PKG_VERSION"), "schemas": schemas }))
}

/// Carries out a request. Messages of the resource are printed meanwhile.
///
/// Calls of microseconds are made on this thread: whoever has the watch answers for a request that hangs.
pub(super) fn carry_out(places: &Places, work: &Work<Request>) -> Result<Json, Problem> {
    let Work { call: request, watch, .. } = work;
    let operation = match request.method.as_str() {
        "get" | "schema" | "compare" => Operation::Get,
        "test" => Operation::Test,
        "set" => Operation::Set,
        "export" => Operation::Export,
        other => return Err(Problem::new(Problem::METHOD, format!("there is no method '{other}'"))),
    };
    let params: ResourceParams = request.params()?;
    let base = places.of(&params.manner.caller, Look::Once)?;
    let called = called(prepared(&base, &params.manner, work)?, &params)?;
    match operation {
        _ if request.method == "schema" => schema(&called),
        _ if request.method == "compare" => Ok(compare(&called, params)),
        Operation::Test => test(&called, params, watch),
        Operation::Set => set(called, params, watch),
        _ => Asked::new(&called, &params, Mode::direct(operation, Execution::Actual)).answer(params.properties, watch),
    }
}

/// A method that is called for a request.
struct Asked<'a> {
    called: &'a ResourceCall,
    mode: Mode,
    /// True if the caller wants a script that does the same.
    script: bool,
}

impl<'a> Asked<'a> {
    fn new(called: &'a ResourceCall, params: &ResourceParams, mode: Mode) -> Self {
        Self { called, mode, script: params.script }
    }

    /// Has it carried out, and returns the result.
    fn answer(&self, properties: Object, watch: &Arc<RunWatch>) -> Result<Json, Problem> {
        let record = self.record(properties, watch)?;
        Ok(self.scripted(&record, result(self.called, &record)))
    }

    fn record(&self, properties: Object, watch: &Arc<RunWatch>) -> Result<Record, Problem> {
        // Without properties there is nothing that must fit a schema.
        let lists_all = self.mode.operation == Operation::Export && properties.is_empty();
        let properties = if lists_all { Value::Null } else { Value::Object(properties) };
        record(self.called, self.mode, properties, watch, self.script)
    }

    /// An answer with the script.
    fn scripted(&self, record: &Record, mut answer: Json) -> Json {
        if let Some(script) = self.script.then(|| script(self.called, record, self.mode.operation)).flatten() {
            answer["script"] = script.into();
        }
        answer
    }
}

/// A script that does the same as an operation that was carried out.
fn script(called: &ResourceCall, record: &Record, operation: Operation) -> Option<String> {
    called.script(record.desired.as_ref()?, operation)
}

/// Tests an instance. Where its properties are to decide, the state of a resource of PowerShell is read and compared: its own test
/// is not asked, which tells no property.
fn test(called: &ResourceCall, params: ResourceParams, watch: &Arc<RunWatch>) -> Result<Json, Problem> {
    let is_powershell = called.manifest.is_powershell();
    let by_properties = params.by == Judge::Properties && is_powershell;
    let operation = if by_properties { Operation::Get } else { Operation::Test };
    let asked = Asked::new(called, &params, Mode::direct(operation, Execution::Actual));
    // Where the test of a resource of PowerShell decides, nothing that it does not say counts.
    let counts = by_properties || !is_powershell;
    let secrets = if counts { stated_secrets(called, &params.properties)? } else { None };
    let record = asked.record(params.properties, watch)?;
    let response = record.response.as_deref().map(|response| &response.outcome);
    let tested = match response {
        Some(Outcome::Tested(tested)) => Arc::clone(tested),
        Some(Outcome::Got(actual)) => {
            let actual = Arc::clone(actual);
            let (differing, unknown, predicted, metadata) = (Vec::new(), None, None, None);
            Arc::new(Tested { actual, in_desired_state: true, differing, unknown, predicted, metadata })
        }
        _ => return Ok(Json::Null),
    };
    let mut found = differences(called, &record, &tested);
    let unapplied = secrets.map(|secrets| unapplied(called, &record, &tested.actual, &secrets)).transpose()?;
    let unapplied = unapplied.unwrap_or_default();
    found.extend(unapplied.iter().map(|name| undetailed(name, &record, &tested.actual)));
    let in_desired_state =
        if by_properties { found.is_empty() } else { tested.in_desired_state && unapplied.is_empty() };
    let mut answer = object([
        ("inDesiredState", in_desired_state.into()),
        ("exists", is_there(&tested.actual, called.manifest.existence).into()),
        ("actual", plain(&tested.actual)),
        ("differing", found.into()),
    ]);
    if let Some(why) = &tested.unknown {
        answer["unknown"] = (**why).into();
    }
    Ok(asked.scripted(&record, answer))
}

/// Compares a state that the caller knows with what it desires. Nothing is called.
fn compare(called: &ResourceCall, params: ResourceParams) -> Json {
    let (desired, found) = (bare(params.properties.into()), bare(Value::from(params.found.unwrap_or_default())));
    let rules = rules(called);
    let names = differing(&desired, &found, &rules).into_iter();
    let names: Vec<Json> = names.map(|name| object([("property", pointer::within("", &name).into())])).collect();
    object([
        ("inDesiredState", names.is_empty().into()),
        ("exists", is_there(&found, called.manifest.existence).into()),
        ("differing", names.into()),
        ("spelled", plain(&respelled(&desired, &found, &rules))),
    ])
}

/// Sets an instance, and tests it afterwards where that is asked for. Of a caller that knows the state no state is read before.
fn set(mut called: ResourceCall, params: ResourceParams, watch: &Arc<RunWatch>) -> Result<Json, Problem> {
    let began = Instant::now();
    let execution = if params.what_if { Execution::WhatIf } else { Execution::Actual };
    let is_known = params.found.is_some() && !params.what_if && builtin_of(&called.manifest).is_none();
    let mode = if is_known { Mode::alone(Operation::Set) } else { Mode::direct(Operation::Set, execution) };
    let secrets = if params.what_if { None } else { stated_secrets(&called, &params.properties)? };
    let spelled = match &params.found {
        Some(found) => respelled(&params.properties.clone().into(), &Value::from(found.clone()), &rules(&called)),
        None => params.properties.clone().into(),
    };
    let Value::Object(spelled) = spelled else { return Ok(Json::Null) };
    let asked = Asked::new(&called, &params, mode);
    let first = noted(&called, secrets, || asked.record(spelled, watch))?;
    let mut answer = asked.scripted(&first, result(&called, &first));
    if params.verify && !params.what_if && !needs_restart(&first) {
        let left = called.session.deadline().saturating_sub(began.elapsed());
        called = ResourceCall { session: called.session.with(|options| options.deadline = Some(left)), ..called };
        // The change was made: that its test fails does not take its answer away.
        answer["verification"] = match test(&called, params, watch) {
            Ok(verification) => verification,
            Err(problem) => json!({ "error": problem.to_json() }),
        };
    }
    Ok(answer)
}

/// Returns whether what was changed takes effect after a restart: until then nothing can be said of it.
fn needs_restart(record: &Record) -> bool {
    record.response.as_deref().is_some_and(|response| !response.restarts.is_empty())
}

/// The session that a request is carried out in.
pub(super) fn prepared(base: &Session, manner: &Manner, work: &Work<Request>) -> Result<Session, Problem> {
    let in_time = |seconds: f64| {
        Duration::try_from_secs_f64(seconds)
            .map_err(|_| Problem::new(Problem::PARAMS, format!("'deadline': {seconds} is not a time in seconds")))
    };
    let deadline = manner.deadline.map(in_time).transpose()?;
    let shown = match manner.log {
        Log::Info => TraceLevel::Info,
        Log::Verbose => TraceLevel::Debug,
        Log::Debug => TraceLevel::Trace,
    };
    let (id, say) = (work.id.clone(), Arc::clone(&work.say));
    let trace: Trace = Arc::new(move |level, message: &str| {
        if level <= shown {
            say(rpc::log(&id, word(level), message));
        }
    });
    let (id, say) = (work.id.clone(), Arc::clone(&work.say));
    let progress: ProgressSink = Arc::new(move |said| say(rpc::progress(&id, said)));
    Ok(base.beside_unflushed(work.cancel.clone()).with(|options| {
        options.shown = shown;
        options.progress = manner.progress.then_some(progress);
        (options.trace, options.deadline) = (trace, deadline.or(options.deadline));
    }))
}

/// A level as messages have it: the names of the streams of PowerShell.
fn word(level: TraceLevel) -> &'static str {
    match level {
        TraceLevel::Error => "error",
        TraceLevel::Warn => "warning",
        TraceLevel::Info => "info",
        TraceLevel::Debug => "verbose",
        TraceLevel::Trace => "debug",
    }
}

fn called(session: Session, params: &ResourceParams) -> Result<ResourceCall, Problem> {
    let found = ResourceCall::find(session, &params.type_name, params.version.as_deref());
    found.and_then(ResourceCall::not_an_adapter).map_err(|refusal| {
        let (code, message) = match refusal {
            CallRefusal::NotFound(message) => (Problem::NOT_FOUND, message),
            CallRefusal::Failed(message) => (Problem::PARAMS, message),
            CallRefusal::Input(_) => (Problem::PARAMS, "the type cannot be read".to_owned()),
        };
        Problem::new(code, message).with("type", params.type_name.as_str())
    })
}

fn schema(called: &ResourceCall) -> Result<Json, Problem> {
    let manifest = &called.manifest;
    let schema = called.schema().map_err(|refusal| match refusal {
        CallRefusal::NotFound(message) | CallRefusal::Failed(message) => Problem::new(Problem::FAILED, message),
        CallRefusal::Input(_) => Problem::new(Problem::FAILED, "the schema cannot be read"),
    })?;
    let digest = digest(&schema);
    Ok(json!({
        "type": manifest.type_name.as_str(), "version": manifest.version.to_string(), "digest": digest, "schema": schema,
    }))
}

fn record(
    called: &ResourceCall,
    mode: Mode,
    properties: Value,
    watch: &Arc<RunWatch>,
    scripted: bool,
) -> Result<Record, Problem> {
    let type_name = called.manifest.type_name.as_str();
    let failed = |code, message: String| Problem::new(code, message).with("type", type_name);
    let plan = RunOptions { watch: Some(Arc::clone(watch)), ..RunOptions::new(mode, NonZeroUsize::MIN) };
    let attempted = called.attempt(properties, plan);
    let (record, sources) = attempted.map_err(|error| failed(Problem::FAILED, error_chain(&error)))?;
    if let Some(failure) = record.failure() {
        let script = scripted.then(|| script(called, &record, mode.operation)).flatten();
        return Err(script.into_iter().fold(problem(type_name, failure), |problem, it| problem.with("script", it)));
    }
    match (record.finding(), &record.response) {
        (Some(finding), _) => {
            Err(failed(Problem::FAILED, finding_line(finding, &sources)).with("code", finding.code.id))
        }
        (None, None) => Err(failed(Problem::CANCELLED, "the request was cancelled".to_owned())),
        (None, Some(_)) => Ok(record),
    }
}

/// What is answered for a request that hangs.
pub(super) fn hung(type_name: &str) -> Problem {
    problem(type_name, &Inline::failure(Inline::DEADLINE))
}

/// The code of the error for a failure of a resource.
pub(super) fn failure_number(failure: &Failure) -> i32 {
    match failure.kind {
        FailureKind::Deadline => Problem::DEADLINE,
        FailureKind::Cancelled => Problem::CANCELLED,
        _ => Problem::FAILED,
    }
}

fn problem(type_name: &str, failure: &Failure) -> Problem {
    let problem = Problem::new(failure_number(failure), failure.message.trim_end()).with("type", type_name);
    let problem = problem.with("code", code(&failure.kind).id).with("retryable", failure.can_heal());
    match &failure.property {
        Some(property) => problem.with("property", property.as_str()),
        None => problem,
    }
}

pub(super) fn result(called: &ResourceCall, record: &Record) -> Json {
    let Some(response) = record.response.as_deref() else { return Json::Null };
    let existence = called.manifest.existence;
    match &response.outcome {
        Outcome::Got(actual) => object([("exists", is_there(actual, existence).into()), ("actual", plain(actual))]),
        Outcome::Changed(changed) => object([
            ("before", plain(&changed.before)),
            ("after", plain(&changed.after)),
            ("exists", is_there(&changed.after, existence).into()),
            ("changed", json!(changed.changed.as_deref().unwrap_or_default())),
            ("messages", changed.what_if_messages().into()),
            ("restartRequired", restarts(&response.restarts)),
        ]),
        Outcome::Exported(found) => {
            let each = found.iter().map(|each| {
                let mut instance = Map::new();
                instance.extend(each.name.as_ref().map(|name| ("name".to_owned(), Json::from(name.as_str()))));
                instance.insert("properties".to_owned(), plain(&each.properties));
                Json::Object(instance)
            });
            object([("instances", each.collect())])
        }
        // A test compares besides. A set deletes by itself where that is desired; pending and failed ones are errors.
        Outcome::Tested(_) | Outcome::Deleted(_) | Outcome::Pending(_) | Outcome::Failed(_) => Json::Null,
    }
}
