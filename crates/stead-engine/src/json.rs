//! Reports, events and findings as JSON for programs.
//!
//! Every object has `version`: 1 as long as members are only added.

mod history;

use std::time::Duration;

use serde_json::{Map, Value as Json, json};
use stead_core::call::Outcome;
use stead_core::destruction::Effect;
use stead_core::diag::{self, Diagnostic};
use stead_core::diff::Alteration;
use stead_core::event::{Event, EventKind, Mode, Problem, SkipReason, Status};
use stead_core::graph::Role;
use stead_core::id::NodeId;
use stead_core::run::Run;
use stead_core::text::Sources;
use stead_core::wire::results::{duration, left_out, operation_name, reason, restarts};

use crate::difference::{Difference, printed};
use crate::summary::Summary;
pub use history::{end_word, history, recorded_run, unreadable_run};

/// The report of a run: totals, every instance that it is about, restarts, outputs.
pub fn report(run: &Run, summary: &Summary, elapsed: Duration) -> Json {
    report_with(run, summary, elapsed, |_, instance| Some(instance))
}

/// Like [`report`], with what is made of each instance; it leaves out those of which nothing is.
pub fn report_with(
    run: &Run,
    summary: &Summary,
    elapsed: Duration,
    mut made: impl FnMut(NodeId, Map<String, Json>) -> Option<Map<String, Json>>,
) -> Json {
    let selected = run.graph().order.iter().filter(|id| run.report().is_selected(**id));
    let instances = selected.filter_map(|id| made(*id, instance(run, *id)).map(Json::Object));
    let outputs = summary.outputs.iter().map(|(name, value)| match value {
        Ok(value) => (name.clone(), value.to_redacted_json()),
        Err(finding) => (name.clone(), json!({ "error": finding.message })),
    });
    json!({
        "version": 1,
        "operation": operation_name(run.mode().operation),
        "whatIf": run.mode() == Mode::PLAN,
        "changes": summary.has_changes(),
        "totals": summary.totals,
        "duration": duration(elapsed),
        "cancelled": run.report().cancelled,
        "reconcile": { "re_runs_count": run.report().re_runs, "require_re_run": summary.given_up > 0 },
        "restartRequired": restarts(&run.report().restarts),
        "outputs": Json::Object(outputs.collect()),
        "instances": instances.collect::<Vec<_>>(),
    })
}

pub(crate) fn instance(run: &Run, id: NodeId) -> Map<String, Json> {
    let (graph, record) = (run.graph(), run.report().record(id));
    let mut all = Map::new();
    all.insert("name".into(), (*graph.node(id).name).into());
    all.insert("type".into(), graph.declaration(id).type_name.value.as_str().into());
    if let Some(container) = graph.container(id) {
        all.insert("within".into(), graph.id_of(container).to_string().into());
    }
    all.insert("status".into(), record.status().map_or("notRun", word).into());
    all.insert("action".into(), record.effect().map(Effect::word).into());
    if record.retries > 0 {
        all.insert("reRuns".into(), record.retries.into());
    }
    if let Some(message) = reason(graph, run.report(), id).or_else(|| not_processed(run, id)) {
        all.insert("message".into(), message.into());
    }
    if let Some(unknown) = record.state_unknown() {
        all.insert("stateUnknown".into(), unknown.into());
    }
    if let Some(due) = run.due(id) {
        all.insert("due".into(), due.into());
    }
    if let Some(Status::Unknown(because)) = record.status() {
        all.insert("because".into(), graph.id_of(because.node()).to_string().into());
    }
    let differs = matches!(record.status(), Some(Status::Changed | Status::Drifted));
    if graph.node(id).role == Role::Instance {
        let difference = Difference::of(run, id).filter(|_| differs);
        all.insert("changes".into(), Json::Array(difference.as_ref().map(differences).unwrap_or_default()));
        if let Some(Difference { words, .. }) = difference.filter(|difference| !difference.words.is_empty()) {
            all.insert("drift".into(), json!(words));
        }
    }
    if let Some(printed) = printed(run, id) {
        all.insert("output".into(), printed.to_redacted_json());
    }
    // What a plan says will fail will have no effect; what did fail may have had some.
    let happens = differs || run.mode() != Mode::PLAN;
    let effects = record.effects().filter(|effects| happens && !effects.is_empty());
    if let Some(effects) = effects {
        all.insert("effects".into(), json!(effects));
    }
    all.insert("duration".into(), duration(record.elapsed).into());
    all
}

/// Why nothing was done with an instance, where nothing is wrong with that.
fn not_processed(run: &Run, id: NodeId) -> Option<String> {
    match run.report().status(id) {
        None if run.report().suspended => Some("the run was suspended before it was begun".to_owned()),
        _ => left_out(run.graph(), run.report(), id),
    }
}

fn word(status: &Status) -> &'static str {
    match status {
        Status::Read => "read",
        Status::InState => "unchanged",
        Status::Drifted => "drifted",
        Status::Changed => "changed",
        Status::Failed => "failed",
        Status::Pending => "pending",
        Status::Skipped(SkipReason::Condition) => "skippedByCondition",
        Status::Skipped(_) => "skipped",
        Status::Unknown(_) | Status::Undetermined => "unknown",
    }
}

fn differences(difference: &Difference) -> Vec<Json> {
    let exist = match difference.effect {
        Effect::Create | Effect::Replace => Some(json!({ "path": "/_exist", "before": false, "after": true })),
        Effect::Remove => Some(json!({ "path": "/_exist", "before": true, "after": false })),
        Effect::Change => None,
    };
    let each = difference.properties.iter().map(|change| match &change.what {
        Alteration::Added(new) => json!({ "path": change.path, "after": new.to_redacted_json() }),
        Alteration::Removed(old) => json!({ "path": change.path, "before": old.to_redacted_json() }),
        Alteration::Replaced { old, new } => {
            json!({ "path": change.path, "before": old.to_redacted_json(), "after": new.to_redacted_json() })
        }
    });
    exist.into_iter().chain(each).collect()
}

/// One event in a line, without the states of instances.
pub fn event(event: &Event) -> Json {
    let mut line = Map::from_iter([("at".to_owned(), Json::from(event.at.to_string()))]);
    line.insert("event".into(), event_word(&event.kind).into());
    if let Some(instance) = event.kind.instance() {
        line.insert("instance".into(), instance.to_string().into());
    }
    match &event.kind {
        EventKind::Began(header) => {
            let instances = header.selected.as_ref().map_or(header.instances as usize, |selected| selected.len());
            line.insert("instances".into(), instances.into());
        }
        EventKind::CallStarted { operation, .. } => {
            line.insert("operation".into(), operation_name(*operation).into());
        }
        EventKind::CallEnded { response, elapsed, .. } => {
            line.insert("duration".into(), duration(*elapsed).into());
            if let Outcome::Failed(failure) = &response.outcome {
                line.insert("failure".into(), failure.message.clone().into());
            }
        }
        EventKind::RetryScheduled { until, .. } => {
            line.insert("until".into(), until.to_string().into());
        }
        EventKind::Settled { status, problem, .. } => {
            line.insert("status".into(), word(status).into());
            line.extend(problem.as_deref().map(|problem| ("failure".to_owned(), message(problem).into())));
        }
        EventKind::Refuted { problem, .. } => {
            line.insert("status".into(), word(&Status::Failed).into());
            line.insert("failure".into(), message(problem).into());
        }
        _ => {}
    }
    Json::Object(line)
}

fn message(problem: &Problem) -> String {
    match problem {
        Problem::Finding(finding) => finding.message.clone(),
        Problem::Failure(failure) => failure.message.clone(),
    }
}

fn event_word(kind: &EventKind) -> &'static str {
    match kind {
        EventKind::Began(_) => "began",
        EventKind::Resumed => "resumed",
        EventKind::FactObserved(_) => "factObserved",
        EventKind::ContainerOpened { .. } => "containerOpened",
        EventKind::CallStarted { .. } => "callStarted",
        EventKind::CallEnded { .. } => "callEnded",
        EventKind::RetryScheduled { .. } => "retryScheduled",
        EventKind::Woken { .. } => "woken",
        EventKind::Settled { .. } => "settled",
        EventKind::Refuted { .. } => "refuted",
        EventKind::Suspended => "suspended",
        EventKind::Cancelled => "cancelled",
    }
}

/// Why a document or its parameters cannot be read.
pub fn unreadable(why: &str) -> Json {
    json!({ "version": 1, "findings": [], "error": why })
}

/// Findings of a document.
pub fn findings(findings: &[Diagnostic], sources: &Sources) -> Json {
    let all: Vec<Json> = findings.iter().map(|finding| diag::to_json(finding, sources)).collect();
    json!({ "version": 1, "findings": all })
}
