//! Several instances in one call of an adapter: what it is given, and which part of its answer is whose (docs/decisions/0095).

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};
use stead_core::call::{Execution, Failure, FailureKind};
use stead_core::planner::Method;

use super::answer::Request;
use super::input::prepare;
use super::invoke::Printed;
use super::output::Expected;
use super::resident::failure_of;
use super::secrets::Secrets;
use super::{CommandProvider, check_verdict, digest, shape, with_pending};
use crate::provider::{Asked, Context, MethodAnswer, Together, TraceLevel};

/// How much one call may print for all of its instances, of which each may print what a call of its own may.
const MOST_PRINTED: usize = 128 << 20;

impl Together for CommandProvider {
    fn validate_all(&self, all: &[Asked<'_>]) -> Vec<Result<(), Failure>> {
        let known = |asked: &Asked<'_>| self.methods.validate.is_none() || self.accepted().contains(&digest_of(asked));
        let open: Vec<&Asked<'_>> = all.iter().filter(|asked| !known(asked)).collect();
        let alone = |asked: &Asked<'_>| if known(asked) { Ok(()) } else { self.valid(&[asked]) };
        match self.valid(&open) {
            Ok(()) => all.iter().map(|_| Ok(())).collect(),
            // It does not say which.
            Err(failure) if failure.kind == FailureKind::Invalid && open.len() > 1 => all.iter().map(alone).collect(),
            Err(failure) => all.iter().map(|asked| if known(asked) { Ok(()) } else { Err(failure.clone()) }).collect(),
        }
    }

    fn answer_all(&self, method: Method, all: &[Asked<'_>]) -> Vec<Result<MethodAnswer, Failure>> {
        let Some(first) = all.first() else { return Vec::new() };
        let request = match self.request(method, first.cx) {
            Ok(request) => request,
            Err(failure) => return all.iter().map(|_| Err(failure.clone())).collect(),
        };
        let printed = self.run_all(&request, all).into_iter().zip(all);
        printed.map(|(printed, asked)| self.understood(method, asked, &request, &printed?)).collect()
    }
}

impl CommandProvider {
    fn understood(
        &self,
        method: Method,
        asked: &Asked<'_>,
        request: &Request<'_>,
        printed: &Printed,
    ) -> Result<MethodAnswer, Failure> {
        match method {
            Method::Get => self.got(request, printed).map(MethodAnswer::State),
            Method::Test => self.tested(asked.cx, request, printed).map(MethodAnswer::Test),
            Method::Set(_) => self.was_set(asked.cx, request, printed).map(MethodAnswer::Set),
            Method::Delete(_) => self.deleted(request, printed).map(MethodAnswer::Deleted),
        }
    }

    /// Runs one program for all, but for those whose properties are not valid.
    pub(super) fn run_all(&self, request: &Request<'_>, all: &[Asked<'_>]) -> Vec<Result<Printed, Failure>> {
        let valid = self.validate_all(all);
        let called: Vec<&Asked<'_>> =
            all.iter().zip(&valid).filter_map(|(asked, valid)| valid.is_ok().then_some(asked)).collect();
        let mut answers = self.answers(request, &called).into_iter();
        let unasked = || Err(self.unsupported(request.operation));
        valid.into_iter().map(|valid| valid.and_then(|()| answers.next().unwrap_or_else(unasked))).collect()
    }

    /// Runs one program for all. Where it says too much of what is only read, each half of them is asked by itself.
    fn answers(&self, request: &Request<'_>, called: &[&Asked<'_>]) -> Vec<Result<Printed, Failure>> {
        let printed = self.print(request, called).and_then(|(printed, secrets)| {
            let parts = parts_of(request, &printed, called)?;
            Ok((printed, secrets, parts))
        });
        let (printed, secrets, parts) = match printed {
            Ok(printed) => printed,
            Err(failure) if failure.kind == FailureKind::OutputLimit && called.len() > 1 && !changes(request) => {
                let (some, others) = called.split_at(called.len() / 2);
                return [some, others].into_iter().flat_map(|half| self.answers(request, half)).collect();
            }
            Err(failure) => {
                let failure = of_all(failure, called.len());
                return called.iter().map(|_| Err(failure.clone())).collect();
            }
        };
        let answer = |(asked, part): (&&Asked<'_>, Result<PartValues, Failure>)| {
            let values = part.map_err(|failure| scrubbed(failure, &secrets))?;
            Ok(printed.part(asked.type_name.as_str(), values))
        };
        called.iter().zip(parts).map(answer).collect()
    }

    /// Has a program print its answer for these.
    fn print(&self, request: &Request<'_>, called: &[&Asked<'_>]) -> Result<(Printed, Secrets), Failure> {
        let Some(first) = called.first() else { return Err(self.unsupported(request.operation)) };
        let secrets = secrets_of(called);
        let document = shape::document(called.iter().map(|asked| instance(asked)).collect(), true);
        let prepared = prepare(request.method, &self.subject, &document, &secrets, request.execution)?;
        if called.len() > 1 {
            tracing::debug!("{} instances are handed to one '{}'", called.len(), request.operation);
        }
        let invocation = self.invocation(request.operation, &request.method.executable, &secrets);
        let output_limit =
            first.cx.output_limit.saturating_mul(called.len()).min(first.cx.output_limit.max(MOST_PRINTED));
        let printed = invocation.run(&Context { output_limit, ..first.cx.clone() }, &prepared)?;
        Ok((printed, secrets))
    }

    /// Has `validate` look at some, all of them at once.
    fn valid(&self, open: &[&Asked<'_>]) -> Result<(), Failure> {
        let (Some(method), Some(first)) = (&self.methods.validate, open.first()) else { return Ok(()) };
        let secrets = secrets_of(open);
        let document = shape::document(open.iter().map(|asked| instance(asked)).collect(), true);
        let printed = self.perform(first.cx, ("validate", method), &document, &secrets, Execution::Actual)?;
        check_verdict(&printed, &secrets)?;
        for asked in open {
            self.remember(digest_of(asked));
        }
        Ok(())
    }
}

fn changes(request: &Request<'_>) -> bool {
    request.execution == Execution::Actual && matches!(request.operation, "set" | "delete")
}

/// Splits an answer by instance: the values, what is wrong with them, or the failure that the adapter states.
fn parts_of(
    request: &Request<'_>,
    printed: &Printed,
    called: &[&Asked<'_>],
) -> Result<Vec<Result<PartValues, Failure>>, Failure> {
    let changes = changes(request);
    if printed.bytes().is_empty() && request.expected.is_none() {
        return Ok(called.iter().map(|_| Ok(Ok(Vec::new()))).collect());
    }
    let read = printed.read(request.expected.unwrap_or(Expected::Values(1))).and_then(|values| {
        let whole = values.into_iter().next().unwrap_or_default();
        shape::instances(whole).map_err(|_| printed.unexpected("it must be {\"result\": [..]}"))
    });
    let answered = match read {
        Ok(answered) => answered,
        // It was made, whatever it reports.
        Err(failure) if changes => {
            called.iter().take(1).for_each(|asked| asked.cx.say(TraceLevel::Warn, &failure.message));
            return Ok(called.iter().map(|_| Ok(Err("it cannot be read"))).collect());
        }
        Err(failure) => return Err(failure),
    };
    let mut by_name = BTreeMap::new();
    for answer in answered {
        by_name.entry(name_of(&answer)).and_modify(|known| *known = None).or_insert(Some(answer));
    }
    let parts = called.iter().map(|asked| match by_name.remove(&key(asked.type_name.as_str(), &asked.cx.name)) {
        None => Ok(Err("it has no result for this instance")),
        Some(None) => Ok(Err("it has two results for this instance")),
        Some(Some(answer)) => values_of(answer, changes),
    });
    let parts = parts.collect();
    if let Some((stray, first)) = by_name.into_values().flatten().next().zip(called.first()) {
        let of = |member| stray.get(member).and_then(Json::as_str).unwrap_or_default();
        let (name, type_name, program) = (of("name"), of("type"), &request.method.executable);
        let message = format!("'{program}' returned a result for '{name}' ({type_name}), which was not in the call");
        first.cx.say(TraceLevel::Warn, &message);
    }
    Ok(parts)
}

/// The values that an adapter answered for one, or what is wrong with them.
type PartValues = Result<Vec<Json>, &'static str>;

fn secrets_of(called: &[&Asked<'_>]) -> Secrets {
    let mut secrets = Secrets::default();
    for asked in called {
        secrets.add(&Secrets::of(asked.input));
        asked.cx.pending.iter().for_each(|kept| secrets.add(&Secrets::of(kept)));
    }
    secrets
}

/// An instance as the adapter gets it, with what it handed back when it was still working.
fn instance(asked: &Asked<'_>) -> Json {
    let properties = asked.input.to_json();
    let properties: Cow<'_, Json> = with_pending(&properties, asked.cx);
    shape::instance(&asked.cx.name, asked.type_name.as_str(), &properties)
}

/// The digest of what `validate` is asked about.
fn digest_of(asked: &Asked<'_>) -> [u8; 32] {
    digest(&shape::instance(&asked.cx.name, asked.type_name.as_str(), &asked.input.to_json()))
}

fn key(type_name: &str, name: &str) -> (String, String) {
    (type_name.to_ascii_lowercase(), name.to_owned())
}

fn name_of(answer: &Json) -> (String, String) {
    let text = |member: &str| answer.get(member).and_then(Json::as_str).unwrap_or_default();
    key(text("type"), text("name"))
}

fn values_of(answer: Json, changes: bool) -> Result<PartValues, Failure> {
    match answer.get("error") {
        Some(error) if !error.is_null() => Err(failure_of(error)),
        // What is changed need not be reported.
        _ if changes && answer.get("properties").is_none() => Ok(Ok(Vec::new())),
        _ => Ok(Ok(vec![Json::Object(Map::from_iter([("result".to_owned(), Json::Array(vec![answer]))]))])),
    }
}

fn scrubbed(failure: Failure, secrets: &Secrets) -> Failure {
    let clean = |text: &str| secrets.scrub(text).into_owned();
    let property = failure.property.as_deref().map(clean);
    let error_id = failure.error_id.as_deref().map(|id| clean(id).into());
    Failure { message: clean(&failure.message), property, error_id, ..failure }
}

/// A failure of the call that several instances had.
fn of_all(failure: Failure, count: usize) -> Failure {
    if count < 2 {
        return failure;
    }
    Failure { message: format!("{}\nthe call was that of {count} instances", failure.message.trim_end()), ..failure }
}
