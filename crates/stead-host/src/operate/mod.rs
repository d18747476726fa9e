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
mod former;
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
pub(crate) use self::former::settable;
pub use self::former::{can_be_stated, former_properties};
use self::opened::Opened;
use self::reseal::Resealer;
use crate::provider::{Asked, Context, Provider, TraceLevel};
use crate::vault::Vault;

/// One of the calls that are carried out together.
pub struct Called<'a> {
    /// The call.
    pub call: &'a Call,
    /// Its resource.
    pub provider: &'a dyn Provider,
    /// Its context.
    pub cx: &'a Context,
}

/// Carries out a call with the methods that the resource has.
///
/// Guarantees: nothing changes in [`Execution::WhatIf`]. A resource that panics has failed. No secret of the
/// call or of the vault is in the response or in what is traced, except sealed; [`crate::redactor`] says in which forms.
///
/// Assumptions: the panic hook of the program prints no payload; it runs before this function hears of a panic.
pub fn carry_out(call: &Call, provider: &dyn Provider, vault: &dyn Vault, cx: &Context) -> Response {
    let began = Instant::now();
    let attempt = match prepared(&Called { call, provider, cx }, vault) {
        Ok(attempt) => attempt,
        Err(failure) => return failure.into(),
    };
    let mut course = Course::of(&attempt);
    while let Some(method) = course.next() {
        course.ask(|attempt| attempt.invoke(method));
    }
    course.response(began)
}

/// Carries out calls of resources with the same [`stead_core::manifest::BatchKey`]: what they ask at a time is asked in one call. The
/// responses are in the order of the calls.
///
/// Guarantees: those of [`carry_out`], for each; what one comes to takes nothing from the others.
pub fn carry_out_together(calls: &[Called<'_>], vault: &dyn Vault) -> Vec<Response> {
    let began = Instant::now();
    let attempts: Vec<Result<Attempt<'_>, Failure>> = calls.iter().map(|called| prepared(called, vault)).collect();
    let mut courses: Vec<Result<Course<'_>, &Failure>> =
        attempts.iter().map(|attempt| attempt.as_ref().map(Course::of)).collect();
    loop {
        // What reads comes first: who is asked later is then asked with more others.
        let wanted = courses.iter_mut().flatten().filter_map(Course::next);
        let Some(method) = wanted.min_by_key(|method| matches!(method, Method::Set(_) | Method::Delete(_))) else {
            break;
        };
        let asking = courses.iter_mut().flatten().filter(|course| course.wanted == Some(method));
        ask_together(method, asking.collect());
    }
    let response = |course: Result<Course<'_>, &Failure>| match course {
        Ok(course) => course.response(began),
        Err(failure) => failure.clone().into(),
    };
    courses.into_iter().map(response).collect()
}

/// Asks a method for all of these.
fn ask_together<'a>(method: Method, mut courses: Vec<&mut Course<'a>>) {
    let Some(together) = courses.first().and_then(|course| course.attempt.provider.together()) else {
        return courses.into_iter().for_each(|course| course.ask(|attempt| attempt.invoke(method)));
    };
    let ready = |attempt: &'a Attempt<'a>| {
        let begun = attempt.check_cancelled().and_then(|()| guarded(|| attempt.begin(method)));
        (attempt, begun)
    };
    let begun: Vec<_> = courses.iter().map(|course| ready(course.attempt)).collect();
    let asked = begun.iter().filter_map(|(attempt, begun)| {
        let type_name = &attempt.call.manifest.type_name;
        Some(Asked { type_name, cx: &begun.as_ref().ok()?.cx, input: &attempt.input })
    });
    let asked: Vec<Asked<'_>> = asked.collect();
    let answers = guarded(|| Ok(if asked.is_empty() { Vec::new() } else { together.answer_all(method, &asked) }));
    let (mut answers, otherwise) = match answers {
        Ok(answers) => (answers.into_iter(), Failure::new(FailureKind::System, "internal error: there is no answer")),
        Err(failure) => (Vec::new().into_iter(), failure),
    };
    let replies = begun.into_iter().map(|(attempt, begun)| {
        attempt.end(begun?);
        let answer = answers.next().unwrap_or_else(|| Err(otherwise.clone()))?;
        guarded(|| attempt.reply(method, answer))
    });
    let replies: Vec<Result<Reply, Failure>> = replies.collect();
    for (course, reply) in courses.iter_mut().zip(replies) {
        course.take(reply);
    }
}

/// A call that is made ready, and said to begin.
fn prepared<'a>(called: &Called<'a>, vault: &'a dyn Vault) -> Result<Attempt<'a>, Failure> {
    let Called { call, provider, cx } = *called;
    let (operation, attempt) = (operation_name(call.operation), guarded(|| prepare(call, provider, vault, cx))?);
    for name in std::iter::once(&call.manifest.type_name).chain(call.manifest.require_adapter()) {
        tracing::debug!("Invoking {operation} for '{name}'");
    }
    if call.manifest.lane() == Lane::InProcess {
        tracing::info!("Invoking {operation} '{}' using 'stead'", call.manifest.type_name);
    }
    for message in substitutes(call, &attempt) {
        attempt.note(TraceLevel::Info, &message);
    }
    Ok(attempt)
}

/// The way of one call through the methods that its planner asks for.
struct Course<'a> {
    attempt: &'a Attempt<'a>,
    planner: Planner<'a>,
    /// The method that it waits for.
    wanted: Option<Method>,
    unknown: Option<String>,
    ended: Option<Result<Response, Failure>>,
}

impl<'a> Course<'a> {
    fn of(attempt: &'a Attempt<'a>) -> Self {
        let planner = Planner::new(attempt.call, &attempt.desired, attempt.rules());
        Self { attempt, planner, wanted: None, unknown: None, ended: None }
    }

    /// The method to ask, which is then given to [`Self::take`]; `None` once it has ended.
    fn next(&mut self) -> Option<Method> {
        while self.wanted.is_none() && self.ended.is_none() {
            match self.planner.step() {
                Ok(PlannerStep::Invoke(method)) => self.wanted = Some(method),
                Ok(PlannerStep::Export) => self.ask(Attempt::export),
                Ok(PlannerStep::Done(response)) => self.ended = Some(Ok(*response)),
                Err(failure) => self.ended = Some(Err(failure)),
            }
        }
        self.wanted
    }

    fn ask(&mut self, ask: impl FnOnce(&Attempt<'a>) -> Result<Reply, Failure>) {
        let attempt = self.attempt;
        self.take(attempt.check_cancelled().and_then(|()| guarded(|| ask(attempt))));
    }

    /// Takes in the answer to the method that it waited for.
    fn take(&mut self, answer: Result<Reply, Failure>) {
        self.wanted = None;
        match self.planner.observe(answer.map_err(|failure| self.attempt.scrubbed(failure))) {
            Ok(None) => {}
            Ok(Some(warning)) => {
                self.attempt.note(TraceLevel::Warn, &warning);
                self.unknown = Some(warning);
            }
            Err(failure) => self.ended = Some(Err(failure)),
        }
    }

    /// What it came to. Assumptions: it has ended.
    fn response(self, began: Instant) -> Response {
        let Self { attempt, unknown, ended, .. } = self;
        let call = attempt.call;
        let response = match ended {
            Some(Ok(response)) => complete(call, attempt, Response { unknown, ..predicted(attempt, response) }),
            Some(Err(failure)) => attempt.scrubbed(failure).into(),
            None => Failure::new(FailureKind::System, "internal error: the call has not ended").into(),
        };
        tracing::debug!(
            "{} of '{}' ({}) took {:.3} s",
            operation_name(call.operation),
            attempt.cx.name,
            call.manifest.type_name,
            began.elapsed().as_secs_f64()
        );
        response
    }
}

/// A response with what a set would be refused for, where it says what a set would change.
fn predicted(attempt: &Attempt<'_>, mut response: Response) -> Response {
    if let Outcome::Changed(changed) = &mut response.outcome
        && attempt.call.execution == Execution::WhatIf
        && changed.changed.is_some()
        && let Err(failure) = attempt.check_uncovered()
    {
        changed.presumed = Some(Presumed::of(failure, Vec::new()));
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
    let secrets = Cover::new(secrets, vault.redactor());
    let case = if call.manifest.is_powershell() { Case::PowerShell } else { Case::Exact };
    let resealer = Resealer { seal: vault, desired: Arc::clone(&desired), plain, secrets, case };
    let mut cx = with_scrubbed_trace(call, cx, &resealer.secrets);
    if let Some(kept) = &call.pending {
        let pending = match Opened::open(kept, vault) {
            Ok(Opened { bare, wrapped, .. }) => Some(wrapped.unwrap_or(bare)),
            Err(failure) => {
                let message = format!("what '{}' handed back is lost: {}", call.manifest.type_name, failure.message);
                cx.say(TraceLevel::Warn, &message);
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
fn with_scrubbed_trace<'a>(call: &Call, cx: &'a Context, secrets: &Cover) -> Cow<'a, Context> {
    if secrets.is_empty() && call.manifest.promises.covers_secrets {
        return Cow::Borrowed(cx);
    }
    let (further, secrets) = (cx.clone(), secrets.clone());
    let trace = Arc::new(move |level, text: &str| further.say(level, &secrets.scrub(text)));
    Cow::Owned(Context { trace, instance: None, ..cx.clone() })
}

/// A bug of one resource must not take down the run.
fn guarded<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(Failure::new(FailureKind::System, format!("internal error in the resource: {text}")))
    })
}
