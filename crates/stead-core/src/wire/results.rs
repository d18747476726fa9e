//! Results of instances, as `config get|set|test|export` and `resource get|set|test|export` print them.
//!
//! Shapes and the order of keys are those of DSC v3's `configuration-*-result` and `resource-*-result` schemas.

use std::time::Duration;

use serde_json::{Map, Value as Json, json};

use crate::call::{Execution, Exported, Operation, Outcome, Response, Restart, Tested, nested_results};
use crate::diff::absence;
use crate::event::{Mode, SkipReason, Status};
use crate::graph::{Graph, Role};
use crate::id::{NodeId, ResourceId};
use crate::manifest::Capabilities;
use crate::planner::deletes;
use crate::report::{Record, Report};
use crate::value::Value;

/// The schema that exported documents name.
pub const DOCUMENT_SCHEMA: &str = "https://aka.ms/dsc/schemas/v3/bundled/config/document.json";

/// The word for an operation in documents and on the command line.
pub fn operation_name(operation: Operation) -> &'static str {
    match operation {
        Operation::Get => "get",
        Operation::Test => "test",
        Operation::Set => "set",
        Operation::Delete => "delete",
        Operation::Export => "export",
    }
}

/// An ISO 8601 duration in seconds with up to nine decimals, such as `PT0.09S`.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use stead_core::wire::results::duration;
///
/// assert_eq!(duration(Duration::from_millis(90)), "PT0.09S");
/// assert_eq!(duration(Duration::from_secs(75)), "PT75S");
/// ```
pub fn duration(elapsed: Duration) -> String {
    let nanos = format!("{:09}", elapsed.subsec_nanos());
    match nanos.trim_end_matches('0') {
        "" => format!("PT{}S", elapsed.as_secs()),
        decimals => format!("PT{}.{decimals}S", elapsed.as_secs()),
    }
}

/// `_restartRequired` as documents hold it.
pub fn restarts(restarts: &[Restart]) -> Json {
    let each = |restart: &Restart| match restart {
        Restart::System(name) => json!({ "system": name }),
        Restart::Service(name) => json!({ "service": name }),
        Restart::Process { name, id } => json!({ "process": { "name": name, "id": id } }),
    };
    Json::Array(restarts.iter().map(each).collect())
}

/// The `result` of an instance; `None` when it failed or was left out.
pub fn result(graph: &Graph, record: &Record, mode: Mode, id: NodeId) -> Option<Json> {
    let response = record.response.as_ref()?;
    Some(match (&response.outcome, mode.operation) {
        (Outcome::Tested(tested), Operation::Set) => {
            let desired = record.desired.as_deref().unwrap_or(&Value::Null);
            untouched(tested, desired, &graph.node(id).manifest.capabilities, mode.execution)
        }
        // What is within an assertion is tested, whatever is asked.
        (Outcome::Tested(tested), Operation::Get) => json!({ "actualState": tested.actual.to_redacted_json() }),
        (Outcome::Tested(tested), _) => test_result(record.desired.as_deref(), tested),
        _ => return state_result(response),
    })
}

/// An instance that was in the desired state, and so was not set, in the shape of a set.
fn untouched(tested: &Tested, desired: &Value, capabilities: &Capabilities, execution: Execution) -> Json {
    let actual = tested.actual.to_redacted_json();
    let predicted = if execution == Execution::WhatIf { absence(desired) } else { None };
    let after = predicted.map_or_else(|| actual.clone(), |after| after.to_redacted_json());
    // dsc deletes without a look, and then reports that nothing changed.
    let nothing: &[Json] = &[];
    let changed = (execution == Execution::Actual && deletes(capabilities, desired)).then_some(nothing);
    json!({ "beforeState": actual, "afterState": after, "changedProperties": changed })
}

/// `{desiredState, actualState, inDesiredState, differingProperties}`
pub fn test_result(desired: Option<&Value>, tested: &Tested) -> Json {
    let mut desired = desired.map_or(Json::Null, Value::to_redacted_json);
    if let Some(metadata) = &tested.metadata {
        // Indexing makes an object of null: an instance may have metadata and no properties.
        desired["_metadata"] = metadata.to_redacted_json();
    }
    json!({
        "desiredState": desired,
        "actualState": tested.actual.to_redacted_json(),
        "inDesiredState": tested.in_desired_state,
        "differingProperties": tested.differing,
    })
}

/// `{actualState}`; of a program that holds others and reports their results, those.
pub fn got(shown: Json, actual: &Value) -> Json {
    if nested_results(actual).is_some() { shown } else { json!({ "actualState": shown }) }
}

/// `{actualState}` or `{beforeState, afterState, changedProperties}`; `None` for other outcomes.
pub fn state_result(response: &Response) -> Option<Json> {
    match &response.outcome {
        Outcome::Got(actual) => Some(got(actual.to_redacted_json(), actual)),
        Outcome::Changed(changed) => Some(json!({
            "beforeState": changed.before.to_redacted_json(),
            "afterState": changed.after.to_redacted_json(),
            "changedProperties": changed.changed,
        })),
        Outcome::Tested(_) | Outcome::Exported(_) | Outcome::Deleted(_) | Outcome::Pending(_) | Outcome::Failed(_) => {
            None
        }
    }
}

/// Returns why an instance failed or was left out, in one sentence; `None` when it was not.
pub fn reason(graph: &Graph, report: &Report, id: NodeId) -> Option<String> {
    let record = report.record(id);
    match record.status()? {
        Status::Failed => Some(record.why_failed().unwrap_or_else(|| container_reason(graph, report, id))),
        Status::Pending => Some(match record.response.as_deref().map(|response| &response.outcome) {
            Some(Outcome::Pending(pending)) => format!("still pending: {}", pending.message),
            _ => container_reason(graph, report, id),
        }),
        Status::Skipped(SkipReason::Need(need)) => {
            let what = if report.status(need.node()) == Some(&Status::Failed) { "failed" } else { "did not succeed" };
            Some(format!("skipped because {}, which it depends on, {what}", graph.label(need.node())))
        }
        Status::Skipped(SkipReason::Container(container)) => {
            Some(format!("skipped because {}, which contains it, was not carried out", graph.label(container.node())))
        }
        Status::Skipped(reason @ (SkipReason::Cancelled | SkipReason::Quarantined | SkipReason::Withheld)) => {
            Some(format!("skipped because {}", reason.clause()?))
        }
        Status::Undetermined => record.undetermined().map(str::to_owned),
        _ => None,
    }
}

/// Returns why an instance was left out on purpose, as a clause; `None` when it was not. An instance that a container
/// leaves out is named by that.
pub fn left_out(graph: &Graph, report: &Report, id: NodeId) -> Option<String> {
    let Status::Skipped(reason) = report.status(id)? else { return None };
    let clause = reason.clause()?;
    let outward = std::iter::successors(graph.container(id), |id| graph.container(*id));
    let Some(container) = outward.filter(|container| report.status(*container) == report.status(id)).last() else {
        return Some(clause.to_owned());
    };
    Some(format!("it is nested in {}, which was left out: {clause}", graph.label(container)))
}

fn container_reason(graph: &Graph, report: &Report, id: NodeId) -> String {
    let Role::Container { inner, .. } = graph.node(id).role else { return "it failed".to_owned() };
    let members = graph.scope(inner).members.iter();
    let is_bad = |status: &Status| status.blocks() || matches!(status, Status::Drifted | Status::Undetermined);
    let bad = members.filter(|member| report.status(**member).is_some_and(is_bad));
    let names: Vec<String> = bad.map(|member| graph.label(*member)).collect();
    match report.status(*graph.scope(inner).members.first().unwrap_or(&id)) {
        Some(Status::Drifted | Status::Undetermined) => format!("Assertion failed for {}", names.join(", ")),
        _ => format!("nested instances failed: {}", names.join(", ")),
    }
}

/// One instance of an exported document.
pub fn exported_instance(asked: &crate::id::TypeName, at: usize, found: &Exported, elapsed: Duration) -> Json {
    let type_name = found.type_name.as_ref().unwrap_or(asked);
    let name = found.name.clone().unwrap_or_else(|| format!("{}-{at}", type_name.short()));
    let mut instance = Map::new();
    instance.insert("type".into(), type_name.as_str().into());
    instance.insert("name".into(), name.into());
    if !found.depends_on.is_empty() {
        let needs: Vec<String> = found.depends_on.iter().map(resource_id_call).collect();
        instance.insert("dependsOn".into(), needs.into());
    }
    instance.insert("executionInformation".into(), json!({ "duration": duration(elapsed) }));
    instance.insert("properties".into(), found.properties.to_redacted_json());
    if let Some(metadata) = &found.metadata {
        instance.insert("metadata".into(), metadata.to_redacted_json());
    }
    Json::Object(instance)
}

/// `[resourceId('Type', 'name')]`
fn resource_id_call(id: &ResourceId) -> String {
    format!("[resourceId('{}', '{}')]", id.type_name, id.name.replace('\'', "''"))
}

/// The result of calling one resource: its states, and in the state of that name what it said beside them. In a document
/// that stands beside the result; here there is no other place for it.
pub fn stated(response: &Response, state: &str) -> Json {
    with_metadata(state_result(response).unwrap_or_default(), state, response)
}

/// The result of testing one resource.
pub fn tested(desired: &Value, response: &Response) -> Json {
    match &response.outcome {
        Outcome::Tested(tested) => with_metadata(test_result(Some(desired), tested), "actualState", response),
        _ => Json::Null,
    }
}

fn with_metadata(mut result: Json, state: &str, response: &Response) -> Json {
    let metadata = response.metadata.as_deref().map(Value::to_redacted_json).unwrap_or_default();
    let mut metadata = metadata.as_object().cloned().unwrap_or_default();
    if let Outcome::Changed(changed) = &response.outcome
        && !changed.what_if.is_empty()
    {
        metadata.insert("whatIf".to_owned(), json!(changed.what_if_messages()));
    }
    if let Some(members) = result.get_mut(state).and_then(Json::as_object_mut).filter(|_| !metadata.is_empty()) {
        members.insert("_metadata".to_owned(), Json::Object(metadata));
    }
    result
}

/// A document that holds every instance that an export of one resource found.
pub fn exported_document(type_name: &crate::id::TypeName, found: &[Exported], elapsed: Duration) -> Json {
    let resources = found.iter().enumerate().map(|(at, each)| exported_instance(type_name, at, each, elapsed));
    json!({
        "$schema": DOCUMENT_SCHEMA,
        "contentVersion": "1.0.0",
        "resources": resources.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_iso_8601() {
        assert_eq!(duration(Duration::ZERO), "PT0S");
        assert_eq!(duration(Duration::from_millis(90)), "PT0.09S");
        assert_eq!(duration(Duration::new(75, 1)), "PT75.000000001S");
    }
}
