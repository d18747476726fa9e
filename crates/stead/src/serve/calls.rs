//! The methods of the protocol, each one a call of the engine.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value as Json, json};
use stead_core::call::{Execution, Failure, FailureKind, Operation, Outcome, code};
use stead_core::diff::{Alteration, Change, Existence};
use stead_core::event::Mode;
use stead_core::report::Record;
use stead_core::schema::digest;
use stead_core::value::{Object, Value, pointer};
use stead_core::wire::results::restarts;
use stead_engine::{
    Difference, Execution as Plan, Refusal, ResourceCall, RunWatch, Session, error_chain, finding_line,
};
use stead_host::executor::Inline;
use stead_host::provider::{Trace, TraceLevel};
use stead_resources::builtin_of;
use stead_system::Cancel;

use super::places::{Look, Places};
use super::protocol::{Initialize, Log, Manner, ResourceParams, VERSION};
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
        "get" | "schema" => Operation::Get,
        "test" => Operation::Test,
        "set" => Operation::Set,
        "export" => Operation::Export,
        other => return Err(Problem::new(Problem::METHOD, format!("there is no method '{other}'"))),
    };
    let params: ResourceParams = request.params()?;
    let began = Instant::now();
    let base = places.of(&params.manner.caller, Look::Once)?;
    let mut called = called(prepared(&base, &params.manner, work)?, &params)?;
    if request.method == "schema" {
        return schema(&called);
    }
    let execution = if params.what_if { Execution::WhatIf } else { Execution::Actual };
    let is_change = operation == Operation::Set && execution == Execution::Actual;
    let verified = (params.verify && is_change).then(|| params.properties.clone());
    let first = record(&called, Mode::direct(operation, execution), params.properties, watch)?;
    let mut answer = result(&called, &first);
    if let Some(desired) = verified.filter(|_| !needs_restart(&first)) {
        let left = called.session.deadline().saturating_sub(began.elapsed());
        called = ResourceCall { session: called.session.with(|options| options.deadline = Some(left)), ..called };
        // The change was made: that its test fails does not take its answer away.
        answer["verification"] = match record(&called, Mode::direct(Operation::Test, execution), desired, watch) {
            Ok(second) => result(&called, &second),
            Err(problem) => json!({ "error": problem.to_json() }),
        };
    }
    Ok(answer)
}

/// Whether what was changed takes effect after a restart: until then nothing can be said of it.
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
    Ok(base.beside_unflushed(work.cancel.clone()).with(|options| {
        options.shown = shown;
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
            Refusal::NotFound(message) => (Problem::NOT_FOUND, message),
            Refusal::Failed(message) => (Problem::PARAMS, message),
            Refusal::Input(_) => (Problem::PARAMS, "the type cannot be read".to_owned()),
        };
        Problem::new(code, message).with("type", params.type_name.as_str())
    })
}

fn schema(called: &ResourceCall) -> Result<Json, Problem> {
    let manifest = &called.manifest;
    let schema = called.schema().map_err(|refusal| match refusal {
        Refusal::NotFound(message) | Refusal::Failed(message) => Problem::new(Problem::FAILED, message),
        Refusal::Input(_) => Problem::new(Problem::FAILED, "the schema cannot be read"),
    })?;
    let digest = digest(&schema);
    Ok(json!({
        "type": manifest.type_name.as_str(), "version": manifest.version.to_string(), "digest": digest, "schema": schema,
    }))
}

fn record(called: &ResourceCall, mode: Mode, properties: Object, watch: &Arc<RunWatch>) -> Result<Record, Problem> {
    let type_name = called.manifest.type_name.as_str();
    let failed = |code, message: String| Problem::new(code, message).with("type", type_name);
    let plan = Plan { watch: Some(Arc::clone(watch)), ..Plan::new(mode, NonZeroUsize::MIN) };
    let attempted = called.attempt(Value::Object(properties), plan);
    let (record, sources) = attempted.map_err(|error| failed(Problem::FAILED, error_chain(&error)))?;
    if let Some(failure) = record.failure() {
        return Err(problem(type_name, failure));
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
        Outcome::Tested(tested) => {
            let built_in = builtin_of(&called.manifest);
            let differs = Difference::of_record(record, built_in).filter(|_| !tested.in_desired_state);
            let found = differs.iter().flat_map(|difference| &difference.properties).map(differing);
            let mut found: Vec<Json> = found.collect();
            let unexplained = tested.differing.iter().filter(|name| !is_within(&found, name));
            let unexplained: Vec<Json> = unexplained.map(|name| undetailed(name, record, &tested.actual)).collect();
            found.extend(unexplained);
            object([
                ("inDesiredState", tested.in_desired_state.into()),
                ("exists", is_there(&tested.actual, existence).into()),
                ("actual", plain(&tested.actual)),
                ("differing", found.into()),
            ])
        }
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
        // A set deletes by itself where that is desired; pending and failed ones are errors.
        Outcome::Deleted(_) | Outcome::Pending(_) | Outcome::Failed(_) => Json::Null,
    }
}

/// A difference: what is desired is what is there after, or nothing.
fn differing(change: &Change) -> Json {
    let property = change.path.as_str();
    match &change.what {
        Alteration::Added(new) => object([("property", property.into()), ("desired", plain(new))]),
        Alteration::Removed(old) => object([("property", property.into()), ("actual", plain(old))]),
        Alteration::Replaced { old, new } => {
            object([("property", property.into()), ("actual", plain(old)), ("desired", plain(new))])
        }
    }
}

/// That a property differs, with what is stated and found of it.
fn undetailed(name: &str, record: &Record, actual: &Value) -> Json {
    let mut found = Map::from_iter([("property".to_owned(), pointer::within("", name).into())]);
    let desired = record.desired.as_ref().and_then(|desired| desired.get(name));
    for (word, value) in [("actual", actual.get(name)), ("desired", desired)] {
        found.extend(value.map(|value| (word.to_owned(), plain(value))));
    }
    found.into()
}

/// Whether a difference is within a property.
fn is_within(found: &[Json], name: &str) -> bool {
    let property = |one: &Json| pointer::steps(one["property"].as_str()?).next().map(|first| first == name);
    found.iter().any(|one| property(one) == Some(true))
}

fn is_there(state: &Value, existence: Existence) -> bool {
    state.as_object().is_none_or(|state| existence.holds(state))
}

/// A value as the protocol has it: where a secret is, only that there is one.
fn plain(value: &Value) -> Json {
    value.to_json_with(&|| json!({ "$secret": true }))
}
