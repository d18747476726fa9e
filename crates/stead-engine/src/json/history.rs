//! Recorded runs as JSON for programs.

use serde_json::{Map, Value as Json, json};
use stead_core::call::Execution;
use stead_core::destruction::Effect;
use stead_core::event::Header;
use stead_core::history::{AttemptRecord, AttemptResult, CallRecord, History, RunEnd};
use stead_core::instance_path::InstancePath;
use stead_core::report::Record;
use stead_core::wire::results::{duration, operation_name, restarts};
use stead_resources::{BuiltIn, builtin};

use super::{differences, word};
use crate::difference::Difference;

/// A recorded run as a whole: what it was about, and how it ended.
pub fn recorded_run(id: &str, history: &History, is_running: bool) -> Json {
    let report = &history.report;
    let mut all = Map::from_iter([("version".to_owned(), 1.into()), ("run".to_owned(), id.into())]);
    if let Some(header) = &report.header {
        about(&mut all, header);
    }
    all.insert("began".into(), report.began.map(|at| at.to_string()).into());
    all.insert("ended".into(), report.ended.map(|at| at.to_string()).into());
    all.insert("state".into(), if is_running { "running" } else { end_word(history.end()) }.into());
    all.insert("totals".into(), json!(history.totals()));
    all.insert("notFinished".into(), history.unsettled().into());
    all.insert("duration".into(), duration(history.elapsed()).into());
    all.insert("reconcile".into(), json!({ "re_runs_count": report.re_runs }));
    Json::Object(all)
}

fn about(all: &mut Map<String, Json>, header: &Header) {
    all.insert("document".into(), (*header.origin).into());
    all.insert("operation".into(), operation_name(header.mode.operation).into());
    all.insert("whatIf".into(), (header.mode.execution == Execution::WhatIf).into());
}

/// A recorded run that cannot be read.
pub fn unreadable_run(id: &str, why: &str) -> Json {
    json!({ "version": 1, "run": id, "state": "unreadable", "error": why })
}

/// A recorded run with every instance, and every attempt at it.
pub fn history(id: &str, history: &History, is_running: bool) -> Json {
    let mut all = recorded_run(id, history, is_running);
    let instances: Vec<Json> = history.instances().map(|(path, record)| instance(history, path, record)).collect();
    all["restartRequired"] = restarts(&history.report.restarts);
    all["instances"] = instances.into();
    all
}

/// The word for how a run ended.
pub fn end_word(end: RunEnd) -> &'static str {
    match end {
        RunEnd::Finished => "finished",
        RunEnd::Cancelled => "cancelled",
        RunEnd::Suspended => "suspended",
        RunEnd::Interrupted => "interrupted",
    }
}

fn instance(history: &History, path: &InstancePath, record: &Record) -> Json {
    let mut all = Map::new();
    all.insert("name".into(), (**path.name()).into());
    all.insert("type".into(), path.type_name().as_str().into());
    if let Some(container) = path.container() {
        all.insert("within".into(), container.id().to_string().into());
    }
    all.insert("status".into(), record.status().map_or("notFinished", word).into());
    all.insert("action".into(), record.effect().map(Effect::word).into());
    if let Some(reason) = record.why_ended() {
        all.insert("message".into(), reason.into());
    }
    if !history.is_container(path.node()) {
        let built_in = builtin(path.type_name());
        let difference = Difference::of_record(record, built_in).filter(|_| record.is_changed());
        all.insert("changes".into(), difference.as_ref().map(differences).unwrap_or_default().into());
        let attempts = history.attempts(path.node()).iter().enumerate();
        all.insert("attempts".into(), attempts.map(|(at, each)| attempt(at + 1, each, built_in)).collect());
    }
    all.insert("duration".into(), duration(record.elapsed).into());
    Json::Object(all)
}

fn attempt(number: usize, attempt: &AttemptRecord, built_in: Option<&BuiltIn>) -> Json {
    let result = attempt.result();
    let difference = result.changed().map(|changed| Difference::of_set(changed, built_in));
    let mut all = Map::from_iter([("number".to_owned(), number.into())]);
    all.insert("began".into(), attempt.began.to_string().into());
    all.insert("waited".into(), attempt.waited.map(duration).into());
    all.insert("wokenEarly".into(), attempt.woken.into());
    all.insert("calls".into(), attempt.calls.iter().map(call).collect());
    all.insert("result".into(), result_word(result).into());
    if let Some(reason) = result.reason() {
        all.insert("message".into(), reason.into());
    }
    if let Some(unknown) = attempt.state_unknown() {
        all.insert("stateUnknown".into(), unknown.into());
    }
    all.insert("changes".into(), difference.as_ref().map(differences).unwrap_or_default().into());
    Json::Object(all)
}

fn call(call: &CallRecord) -> Json {
    json!({ "operation": operation_name(call.operation), "duration": call.elapsed.map(duration) })
}

fn result_word(result: AttemptResult<'_>) -> &'static str {
    match result {
        AttemptResult::Read => "read",
        AttemptResult::InState => "unchanged",
        AttemptResult::Drifted => "drifted",
        AttemptResult::Undetermined(_) => "unknown",
        AttemptResult::Changed(_) | AttemptResult::Deleted => "changed",
        AttemptResult::NotConverged(..) => "notConverged",
        AttemptResult::Pending(_) => "pending",
        AttemptResult::Failed(_) => "failed",
        AttemptResult::Interrupted => "interrupted",
    }
}
