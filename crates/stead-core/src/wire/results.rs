//! Result documents: what `config get|set|test|export` and `resource get|set|test|export` print.
//!
//! Shapes and the order of keys are those of DSC v3's `configuration-*-result` and `resource-*-result` schemas.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value as Json, json};

use crate::call::{Execution, Exported, Operation, Outcome, Response, Restart, Tested, nested_results};
use crate::diag::Diagnostic;
use crate::diff::absence;
use crate::event::{Mode, SkipReason, Status};
use crate::graph::{Graph, Purpose, Role, ScopeId};
use crate::id::{NodeId, ResourceId};
use crate::manifest::Capabilities;
use crate::planner::deletes;
use crate::report::{Record, Report};
use crate::run::Run;
use crate::value::Value;

/// The schema that exported documents name.
pub const DOCUMENT_SCHEMA: &str = "https://aka.ms/dsc/schemas/v3/bundled/config/document.json";

/// The members of a result document about the program and the rights that it ran with.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The version of DSC that the document is compatible with.
    pub version: &'a str,
    /// True if it ran as root.
    pub elevated: bool,
}

/// The result document of a run: for export a configuration document, otherwise the results in the order of the run,
/// those that failed as messages.
pub fn document(run: &Run, setting: Setting<'_>) -> Json {
    let (graph, report) = (run.graph(), run.report());
    let information = information(run, setting);
    let mut document = Map::new();
    if run.mode().operation == Operation::Export {
        document.insert("$schema".into(), DOCUMENT_SCHEMA.into());
        document.insert("contentVersion".into(), "1.0.0".into());
    }
    document.insert("executionInformation".into(), information.clone());
    let mut metadata = Map::from_iter([("Microsoft.DSC".to_owned(), information)]);
    if run.mode().operation == Operation::Export {
        metadata.extend(own_metadata(graph));
    }
    document.insert("metadata".into(), Json::Object(metadata));
    if run.mode().operation == Operation::Export {
        document.insert("resources".into(), Json::Array(exported(graph, report)));
        return Json::Object(document);
    }
    let shaper = Shaper { graph, report, places: places(graph), mode: run.mode() };
    document.insert("results".into(), Json::Array(shaper.scope(ScopeId(0))));
    let messages = messages(graph, report);
    let outputs = run.outputs();
    let failed = !messages.is_empty() || outputs.iter().any(|(_, value)| value.is_err());
    document.insert("messages".into(), Json::Array(messages));
    document.insert("hadErrors".into(), Json::Bool(failed));
    let outputs = shown(outputs);
    if !outputs.is_empty() {
        document.insert("outputs".into(), Json::Object(outputs));
    }
    Json::Object(document)
}

/// The metadata of the document itself, which an exported one takes over.
fn own_metadata(graph: &Graph) -> Map<String, Json> {
    let written = graph.scopes.first().and_then(|scope| scope.document.metadata.as_ref());
    let Some(Json::Object(mut members)) = written.map(|node| node.literal().to_redacted_json()) else {
        return Map::new();
    };
    members.retain(|name, _| name != "Microsoft.DSC");
    members
}

fn information(run: &Run, setting: Setting<'_>) -> Json {
    let report = run.report();
    let (began, ended) = (report.began.unwrap_or_default(), report.ended.unwrap_or_default());
    let mut all = Map::new();
    all.insert("duration".into(), duration(Duration::try_from(ended - began).unwrap_or_default()).into());
    all.insert("endDatetime".into(), instant(ended).into());
    all.insert("executionType".into(), execution_type(run.mode().execution).into());
    all.insert("operation".into(), operation_name(run.mode().operation).into());
    if !report.restarts.is_empty() {
        all.insert("restartRequired".into(), restarts(&in_order(run.graph(), report)));
    }
    all.insert("securityContext".into(), if setting.elevated { "elevated" } else { "restricted" }.into());
    all.insert("startDatetime".into(), instant(began).into());
    all.insert("version".into(), setting.version.into());
    Json::Object(all)
}

/// Returns the restarts that are due, in the order of the instances that asked for them and not of their responses.
fn in_order(graph: &Graph, report: &Report) -> Vec<Restart> {
    let responses = graph.order.iter().filter_map(|id| report.record(*id).response.as_ref());
    let mut all: Vec<Restart> = Vec::with_capacity(report.restarts.len());
    // An earlier response of the same instance may have asked for more than its last one.
    for restart in responses.flat_map(|response| &response.restarts).chain(&report.restarts) {
        if !all.contains(restart) {
            all.push(restart.clone());
        }
    }
    all
}

fn execution_type(execution: Execution) -> &'static str {
    match execution {
        Execution::Actual => "actual",
        Execution::WhatIf => "whatIf",
    }
}

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

/// RFC 3339 in UTC with nanoseconds and a numeric offset.
fn instant(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%S.%9f+00:00").to_string()
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

/// The place of every node in the order of the run, by which results are listed.
fn places(graph: &Graph) -> Vec<usize> {
    let mut places = vec![0; graph.nodes.len()];
    for (place, id) in graph.order.iter().enumerate() {
        places[id.index()] = place;
    }
    places
}

struct Shaper<'a> {
    graph: &'a Graph,
    report: &'a Report,
    places: Vec<usize>,
    mode: Mode,
}

impl Shaper<'_> {
    fn scope(&self, scope: ScopeId) -> Vec<Json> {
        let mut members = self.graph.scope(scope).members.clone();
        members.sort_by_key(|id| self.places[id.index()]);
        members.into_iter().filter_map(|id| self.instance(id)).collect()
    }

    /// The result of an instance of an adapter: what is nested in it makes up one state.
    fn of_adapter(&self, nested: &[Json]) -> Json {
        let state = |name: &str| adapted_state(nested, name);
        let any = |is: fn(&Json) -> bool| nested.iter().any(|each| is(&each["result"]));
        match self.mode.operation {
            Operation::Test => {
                let differs = any(|result| result["inDesiredState"] != true);
                json!({
                    "desiredState": state("desiredState"),
                    "actualState": state("actualState"),
                    "inDesiredState": !differs,
                    "differingProperties": if differs { vec!["result"] } else { Vec::new() },
                })
            }
            Operation::Set => {
                let changed = any(|result| result["changedProperties"].as_array().is_some_and(|all| !all.is_empty()));
                json!({
                    "beforeState": state("beforeState"),
                    "afterState": state("afterState"),
                    "changedProperties": if changed { vec!["result"] } else { Vec::new() },
                })
            }
            _ => json!({ "actualState": state("actualState") }),
        }
    }

    /// The result of one instance; `None` when it has none.
    fn instance(&self, id: NodeId) -> Option<Json> {
        let record = self.report.record(id);
        let result = match self.graph.node(id).role {
            Role::Container { .. } if matches!(record.status(), None | Some(Status::Skipped(_))) => return None,
            Role::Container { inner, purpose: Purpose::Adapter } => self.of_adapter(&self.scope(inner)),
            Role::Container { inner, .. } => Json::Array(self.scope(inner)),
            Role::Instance => result(self.graph, record, self.mode, id)?,
        };
        let (information, metadata) = instance_information(record);
        Some(json!({
            "executionInformation": information,
            "metadata": metadata,
            "name": &*self.graph.node(id).name,
            "type": self.graph.declaration(id).type_name.value.as_str(),
            "result": result,
        }))
    }
}

/// The states of what is nested in an instance of an adapter, as one state, as adapters report them.
fn adapted_state(nested: &[Json], state: &str) -> Json {
    let one = |each: &Json| json!({ "name": each["name"], "type": each["type"], "properties": each["result"][state] });
    json!({ "result": nested.iter().map(one).collect::<Vec<_>>() })
}

fn instance_information(record: &Record) -> (Json, Json) {
    let elapsed = duration(record.elapsed);
    let mut information = Map::from_iter([("duration".to_owned(), Json::from(elapsed.clone()))]);
    let mut metadata = Map::from_iter([("Microsoft.DSC".to_owned(), json!({ "duration": elapsed }))]);
    let Some(response) = &record.response else { return (Json::Object(information), Json::Object(metadata)) };
    if !response.restarts.is_empty() {
        information.insert("restartRequired".into(), restarts(&response.restarts));
    }
    if let Some(Json::Object(more)) = response.metadata.as_deref().map(Value::to_redacted_json) {
        metadata.extend(more);
    }
    if let Outcome::Changed(changed) = &response.outcome
        && !changed.what_if.is_empty()
    {
        let messages = Json::from(changed.what_if_messages());
        information.insert("whatIf".into(), messages.clone());
        metadata.insert("whatIf".into(), messages);
    }
    (Json::Object(information), Json::Object(metadata))
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

fn messages(graph: &Graph, report: &Report) -> Vec<Json> {
    let failed = graph.order.iter().filter(|id| report.status(**id).is_some_and(Status::blocks));
    let reasons = failed.filter_map(|id| Some((*id, reason(graph, report, *id)?)));
    reasons
        .map(|(id, message)| {
            json!({
                "name": &*graph.node(id).name,
                "type": graph.declaration(id).type_name.value.as_str(),
                "message": message,
                "level": "error",
            })
        })
        .collect()
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
    let bad = members
        .filter(|member| report.status(**member).is_some_and(|status| status.blocks() || *status == Status::Drifted));
    let names: Vec<String> = bad.map(|member| graph.label(*member)).collect();
    match report.status(*graph.scope(inner).members.first().unwrap_or(&id)) {
        Some(Status::Drifted) => format!("Assertion failed for {}", names.join(", ")),
        _ => format!("nested instances failed: {}", names.join(", ")),
    }
}

fn exported(graph: &Graph, report: &Report) -> Vec<Json> {
    let of_adapter = |id: NodeId| {
        let container = graph.container(id)?;
        matches!(graph.node(container).role, Role::Container { purpose: Purpose::Adapter, .. }).then_some(container)
    };
    let mut resources: Vec<Json> = Vec::new();
    let mut adapters: BTreeMap<NodeId, usize> = BTreeMap::new();
    for id in &graph.order {
        let found = match report.record(*id).response.as_deref().map(|response| &response.outcome) {
            Some(Outcome::Exported(found)) => found.as_slice(),
            _ => continue,
        };
        let elapsed = report.record(*id).elapsed;
        let Some(adapter) = of_adapter(*id) else {
            let type_name = &graph.declaration(*id).type_name.value;
            resources
                .extend(found.iter().enumerate().map(|(at, each)| exported_instance(type_name, at, each, elapsed)));
            continue;
        };
        // What an adapter exports is one instance of it, with the states in a list.
        let at = *adapters.entry(adapter).or_insert_with(|| {
            let (name, type_name) = (&*graph.node(adapter).name, graph.declaration(adapter).type_name.value.as_str());
            let state = json!({ "result": [] });
            resources.push(json!({
                "type": type_name, "name": name, "executionInformation": { "duration": duration(elapsed) },
                "properties": state,
            }));
            resources.len() - 1
        });
        let states = resources.get_mut(at).and_then(|one| one.pointer_mut("/properties/result")?.as_array_mut());
        if let Some(states) = states {
            states.extend(found.iter().map(|each| each.properties.to_redacted_json()));
        }
    }
    resources
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

fn shown(outputs: Vec<(String, Result<Value, Diagnostic>)>) -> Map<String, Json> {
    // What could not be computed is reported by the caller, with its place; a document cannot say it.
    outputs.into_iter().filter_map(|(name, value)| Some((name, value.ok()?.to_redacted_json()))).collect()
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
