//! Carrying out a call: the methods that the planner asks for, with secrets opened and sealed again.
//!
//! ```text
//! Call ──open──▶ input ──▶ Planner ⇄ method, method, … ──reseal──▶ Response
//! ```
//!
//! Which methods an operation is made of is decided by [`stead_core::planner`]. This is the border for secrets: they are
//! opened on the way out and sealed again on the way in, so that nothing behind it ever holds one.

mod attempt;
mod cover;
mod opened;
mod reseal;

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use stead_core::call::{Call, Execution, Failure, FailureKind, Operation, Outcome, Presumed, Response, Wanted};
use stead_core::diff::Case;
use stead_core::manifest::Lane;
use stead_core::planner::{Method, Planner, PlannerStep, Reply, deletes};
use stead_core::value::{Object, Sensitive, Value};
use stead_core::wire::results::operation_name;

use self::attempt::Attempt;
use self::cover::Cover;
use self::opened::Opened;
use self::reseal::Resealer;
use crate::provider::{Context, Provider, TraceLevel};
use crate::vault::Vault;

/// Carries out a call with the methods that the resource has.
///
/// Guarantees: nothing changes in [`Execution::WhatIf`]. A resource that panics has failed. No secret of the
/// call or of the vault is in the response or in what is traced, except sealed; [`crate::redactor`] says in which forms.
///
/// Assumptions: the panic hook of the program prints no payload; it runs before this function hears of a panic.
pub fn carry_out(call: &Call, provider: &dyn Provider, vault: &dyn Vault, cx: &Context) -> Response {
    let (began, operation) = (Instant::now(), operation_name(call.operation));
    let attempt = match guarded(|| prepare(call, provider, vault, cx)) {
        Ok(attempt) => attempt,
        Err(failure) => return failure.into(),
    };
    for name in std::iter::once(&call.manifest.type_name).chain(call.manifest.require_adapter()) {
        tracing::debug!("Invoking {operation} for '{name}'");
    }
    if call.manifest.lane() == Lane::InProcess {
        tracing::info!("Invoking {operation} '{}' using 'stead'", call.manifest.type_name);
    }
    for message in substitutes(call, &attempt) {
        attempt.note(TraceLevel::Info, &message);
    }
    let response = invoke(call, &attempt);
    tracing::debug!(
        "{operation} of '{}' ({}) took {:.3} s",
        cx.name,
        call.manifest.type_name,
        began.elapsed().as_secs_f64()
    );
    response.unwrap_or_else(|failure| attempt.scrubbed(failure).into())
}

fn invoke(call: &Call, attempt: &Attempt<'_>) -> Result<Response, Failure> {
    let mut planner = Planner::new(call, &attempt.desired, attempt.rules());
    let mut unknown = None;
    loop {
        match planner.step()? {
            PlannerStep::Done(response) => {
                let response = Response { unknown, ..predicted(attempt, *response) };
                return Ok(complete(call, attempt, response));
            }
            PlannerStep::Invoke(method) => {
                let answer = attempt.check_cancelled().and_then(|()| guarded(|| attempt.invoke(method)));
                if let Some(warning) = planner.observe(answer.map_err(|failure| attempt.scrubbed(failure)))? {
                    attempt.note(TraceLevel::Warn, &warning);
                    unknown = Some(warning);
                }
            }
        }
    }
}

/// A response with what a set would be refused for, where it says what a set would change.
fn predicted(attempt: &Attempt<'_>, mut response: Response) -> Response {
    if let Outcome::Changed(changed) = &mut response.outcome
        && attempt.call.execution == Execution::WhatIf
        && changed.changed.is_some()
        && let Err(failure) = attempt.check_uncovered()
    {
        changed.presumed = Some(Presumed { failure, paths: Vec::new() });
    }
    response
}

/// Adds the complete state to a response, if an expression may refer to it. A response whose state cannot be read
/// stays as it is.
fn complete(call: &Call, attempt: &Attempt<'_>, response: Response) -> Response {
    let tells_less = match &response.outcome {
        Outcome::Tested(_) => true,
        Outcome::Changed(_) => call.execution == Execution::Actual,
        _ => false,
    };
    let is_cheap = call.manifest.promises.cheap_test;
    if call.wanted != Wanted::All || !tells_less || !is_cheap || !attempt.provider.get_tells_all() {
        return response;
    }
    match attempt.invoke(Method::Get) {
        Ok(Reply::State(reading)) => Response { complete: Some(reading.state), ..response },
        _ => response,
    }
}

/// Returns the actions of the engine in place of a method that the resource does not have, for traces.
fn substitutes(call: &Call, attempt: &Attempt<'_>) -> Vec<String> {
    let (of, capabilities) = (&call.manifest.type_name, call.manifest.capabilities);
    let predicts = match (call.operation, call.execution) {
        (Operation::Delete, Execution::WhatIf) => !capabilities.delete_what_if,
        (Operation::Set, Execution::WhatIf) if deletes(&capabilities, &attempt.desired) => !capabilities.delete_what_if,
        (Operation::Set, Execution::WhatIf) => !capabilities.set_what_if,
        _ => false,
    };
    let tests = call.operation == Operation::Test || (predicts && call.operation == Operation::Set);
    let mut messages = Vec::new();
    if predicts {
        let how = if call.operation == Operation::Delete { ": it would be called to delete" } else { "" };
        messages.push(format!("'{of}' does not natively support what-if, engine will generate synthetic what-if{how}"));
    }
    if tests && !capabilities.test && call.tested.is_none() {
        messages.push(format!("Resource '{of}' does not implement test, performing synthetic test"));
    }
    messages
}

fn prepare<'a>(
    call: &'a Call,
    provider: &'a dyn Provider,
    vault: &'a dyn Vault,
    cx: &'a Context,
) -> Result<Attempt<'a>, Failure> {
    if cx.cancel.is_cancelled() {
        return Err(Failure::new(FailureKind::Cancelled, "the run was cancelled before it began"));
    }
    let schema = provider.schema(cx)?;
    let desired = with_metadata(call, schema.as_deref().is_some_and(takes_metadata));
    let Opened { parted: desired, bare, wrapped, secrets } = Opened::open(&desired, vault)?;
    let plain = wrapped.is_some().then(|| Arc::new(Sensitive::new(bare.expose().clone())));
    let secrets = Arc::new(Cover::new(secrets, vault.redactor()));
    let case = if call.manifest.is_powershell() { Case::PowerShell } else { Case::Exact };
    let resealer = Resealer { seal: vault, desired: Arc::clone(&desired), plain, secrets, case };
    let mut cx = with_scrubbed_trace(call, cx, &resealer.secrets);
    if let Some(kept) = &call.pending {
        let pending = match Opened::open(kept, vault) {
            Ok(Opened { bare, wrapped, .. }) => Some(wrapped.unwrap_or(bare)),
            Err(failure) => {
                let message = format!("what '{}' handed back is lost: {}", call.manifest.type_name, failure.message);
                (cx.trace)(TraceLevel::Warn, &message);
                None
            }
        };
        cx = Cow::Owned(Context { pending, ..cx.into_owned() });
    }
    let mut attempt = Attempt { call, provider, schema, desired, input: bare, resealer, cx };
    attempt.choose_input(wrapped)?;
    Ok(attempt)
}

fn takes_metadata(schema: &stead_core::schema::Schema) -> bool {
    schema.json().pointer("/properties/_metadata").is_some()
}

/// The desired state with the metadata of the instance, for a resource that takes it. What the properties state wins.
fn with_metadata(call: &Call, taken: bool) -> Arc<Value> {
    let metadata = call.metadata.as_deref().and_then(Value::as_object).filter(|_| taken);
    let mut passed: Object = metadata.cloned().unwrap_or_default();
    passed.retain(|name, _| !attempt::is_reserved(name));
    let mut desired = match &*call.desired {
        Value::Object(desired) if !passed.is_empty() => desired.clone(),
        Value::Null if !passed.is_empty() => Object::new(),
        _ => return Arc::clone(&call.desired),
    };
    if let Some(Value::Object(stated)) = desired.get("_metadata") {
        passed.extend(stated.clone());
    }
    desired.insert("_metadata".to_owned(), Value::Object(passed));
    Arc::new(Value::Object(desired))
}

/// Covers the trace of resources that promise nothing: it may hold what others have sealed while they run.
fn with_scrubbed_trace<'a>(call: &Call, cx: &'a Context, secrets: &Arc<Cover>) -> Cow<'a, Context> {
    if secrets.is_empty() && call.manifest.promises.covers_secrets {
        return Cow::Borrowed(cx);
    }
    let (trace, secrets) = (Arc::clone(&cx.trace), Arc::clone(secrets));
    Cow::Owned(Context { trace: Arc::new(move |level, text| trace(level, &secrets.scrub(text))), ..cx.clone() })
}

/// A bug of one resource must not take down the run.
fn guarded<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(Failure::new(FailureKind::System, format!("internal error in the resource: {text}")))
    })
}
