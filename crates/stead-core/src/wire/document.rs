//! Result documents of runs, written as they are made: one that tells of many instances is in memory nowhere but where its reader
//! wants it.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::ser::SerializeSeq as _;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json, json};

use super::results::{DOCUMENT_SCHEMA, duration, exported_instance, operation_name, reason, restarts, result};
use crate::call::{Execution, Exported, Operation, Outcome, Restart};
use crate::diag::Diagnostic;
use crate::event::{Mode, Status};
use crate::graph::{Graph, NestingPurpose, Role, ScopeId};
use crate::id::NodeId;
use crate::report::{Record, Report};
use crate::run::Run;
use crate::value::Value;

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
pub fn document<'a>(run: &'a Run, setting: Setting<'_>) -> impl Serialize + 'a {
    let (graph, report) = (run.graph(), run.report());
    let execution_information = information(run, setting);
    let mut metadata = Map::from_iter([("Microsoft.DSC".to_owned(), execution_information.clone())]);
    if run.mode().operation == Operation::Export {
        metadata.extend(own_metadata(graph));
        return Document::Exported {
            schema: DOCUMENT_SCHEMA,
            content_version: "1.0.0",
            execution_information,
            metadata,
            resources: Resources { graph, report },
        };
    }
    let messages = messages(graph, report);
    let outputs = run.outputs();
    let had_errors = !messages.is_empty() || outputs.iter().any(|(_, value)| value.is_err());
    let shaper = Shaper { graph, report, places: places(graph), mode: run.mode() };
    let results = Scope { shaper, scope: ScopeId(0) };
    Document::Done { execution_information, metadata, results, messages, had_errors, outputs: shown(outputs) }
}

#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum Document<'a> {
    Done {
        execution_information: Json,
        metadata: Map<String, Json>,
        results: Scope<'a>,
        messages: Vec<Json>,
        had_errors: bool,
        #[serde(skip_serializing_if = "Map::is_empty")]
        outputs: Map<String, Json>,
    },
    Exported {
        #[serde(rename = "$schema")]
        schema: &'static str,
        content_version: &'static str,
        execution_information: Json,
        metadata: Map<String, Json>,
        resources: Resources<'a>,
    },
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

/// RFC 3339 in UTC with nanoseconds and a numeric offset.
fn instant(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%S.%9f+00:00").to_string()
}

/// The place of every node in the order of the run, by which results are listed.
fn places(graph: &Graph) -> Rc<[usize]> {
    let mut places = vec![0; graph.nodes.len()];
    for (place, id) in graph.order.iter().enumerate() {
        places[id.index()] = place;
    }
    places.into()
}

#[derive(Clone)]
struct Shaper<'a> {
    graph: &'a Graph,
    report: &'a Report,
    places: Rc<[usize]>,
    mode: Mode,
}

impl<'a> Shaper<'a> {
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
    fn instance(&self, id: NodeId) -> Option<Instance<'a>> {
        let record = self.report.record(id);
        let nested = |scope: ScopeId| Scope { shaper: self.clone(), scope };
        let result = match self.graph.node(id).role {
            Role::Container { .. } if matches!(record.status(), None | Some(Status::Skipped(_))) => return None,
            Role::Container { inner, purpose: NestingPurpose::Adapter } => {
                // JSON always becomes a value.
                let nested = serde_json::to_value(nested(inner)).unwrap_or_default();
                InstanceResult::State(self.of_adapter(nested.as_array().map_or(&[], Vec::as_slice)))
            }
            Role::Container { inner, .. } => InstanceResult::Nested(nested(inner)),
            Role::Instance => InstanceResult::State(result(self.graph, record, self.mode, id)?),
        };
        let (execution_information, metadata) = instance_information(record);
        let name = &*self.graph.node(id).name;
        let type_name = self.graph.declaration(id).type_name.value.as_str();
        Some(Instance { execution_information, metadata, name, type_name, result })
    }
}

/// The results of a scope.
struct Scope<'a> {
    shaper: Shaper<'a>,
    scope: ScopeId,
}

impl<'a> Scope<'a> {
    fn instances(&self) -> impl Iterator<Item = Instance<'a>> {
        let mut members = self.shaper.graph.scope(self.scope).members.clone();
        members.sort_by_key(|id| self.shaper.places[id.index()]);
        members.into_iter().filter_map(|id| self.shaper.instance(id))
    }
}

impl Serialize for Scope<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut results = serializer.serialize_seq(None)?;
        self.instances().try_for_each(|each| results.serialize_element(&each))?;
        results.end()
    }
}

/// The result of an instance, and what is known of it besides.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Instance<'a> {
    execution_information: Json,
    metadata: Json,
    name: &'a str,
    #[serde(rename = "type")]
    type_name: &'a str,
    result: InstanceResult<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum InstanceResult<'a> {
    State(Json),
    Nested(Scope<'a>),
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

fn shown(outputs: Vec<(String, Result<Value, Diagnostic>)>) -> Map<String, Json> {
    // What could not be computed is reported by the caller, with its place; a document cannot say it.
    outputs.into_iter().filter_map(|(name, value)| Some((name, value.ok()?.to_redacted_json()))).collect()
}

/// The instances that an export found.
struct Resources<'a> {
    graph: &'a Graph,
    report: &'a Report,
}

impl<'a> Resources<'a> {
    fn found(&self, id: NodeId) -> Option<&'a [Exported]> {
        match self.report.record(id).response.as_deref().map(|response| &response.outcome) {
            Some(Outcome::Exported(found)) => Some(found),
            _ => None,
        }
    }

    fn adapter(&self, id: NodeId) -> Option<NodeId> {
        let container = self.graph.container(id)?;
        matches!(self.graph.node(container).role, Role::Container { purpose: NestingPurpose::Adapter, .. })
            .then_some(container)
    }

    /// The states that were found in each adapter.
    fn of_adapters(&self) -> BTreeMap<NodeId, Vec<&'a Exported>> {
        let mut adapters: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for id in &self.graph.order {
            if let (Some(adapter), Some(found)) = (self.adapter(*id), self.found(*id)) {
                adapters.entry(adapter).or_default().extend(found);
            }
        }
        adapters
    }

    /// What an adapter exports is one instance of it, with the states in a list.
    fn of_adapter(&self, adapter: NodeId, found: &[&Exported], elapsed: Duration) -> Json {
        let states: Vec<Json> = found.iter().map(|each| each.properties.to_redacted_json()).collect();
        json!({
            "type": self.graph.declaration(adapter).type_name.value.as_str(),
            "name": &*self.graph.node(adapter).name,
            "executionInformation": { "duration": duration(elapsed) },
            "properties": { "result": states },
        })
    }
}

impl Serialize for Resources<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut resources = serializer.serialize_seq(None)?;
        let mut adapters = self.of_adapters();
        for id in &self.graph.order {
            let (Some(found), elapsed) = (self.found(*id), self.report.record(*id).elapsed) else { continue };
            if let Some(adapter) = self.adapter(*id) {
                // All of it stands where the first of it was found.
                if let Some(found) = adapters.remove(&adapter) {
                    resources.serialize_element(&self.of_adapter(adapter, &found, elapsed))?;
                }
                continue;
            }
            let type_name = &self.graph.declaration(*id).type_name.value;
            for (at, each) in found.iter().enumerate() {
                resources.serialize_element(&exported_instance(type_name, at, each, elapsed))?;
            }
        }
        resources.end()
    }
}
