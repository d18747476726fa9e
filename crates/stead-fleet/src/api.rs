//! The schema of the API in the form of OpenAPI 3.1, made of the routes and of the messages themselves.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use stead_protocol::{
    AcceptAnswer, AcceptRequest, ActShown, Action, Asker, CauseShown, CheckAnswer, CheckShown, DesiredAnswer,
    DriftShown, EnrolAnswer, EnrolRequest, EventShown, FleetStatus, Heartbeat, HoldRequest, InviteAnswer,
    InviteRequest, ListPage, MachineShown, PlanAnswer, PublishAnswer, ROUTES, ReportShown, ReportsAnswer, Route,
    SentReport, StandingRequest, TokenAnswer, TokenRequest,
};

/// The description of a route.
struct Row {
    /// The summary, as a command.
    does: &'static str,
    /// The names of the parts of the path that stand for `*`.
    parts: &'static [&'static str],
    /// The names of what may be behind `?`.
    queries: &'static [&'static str],
    asks: Content,
    answers: Content,
}

/// A body.
#[derive(Clone, Copy)]
enum Content {
    Nothing,
    Text,
    Bytes,
    Json(fn(&mut SchemaGenerator) -> Schema),
}

/// The queries of a list of machines.
const LIST: &[&str] = &["where", "after", "most"];

fn of<T: JsonSchema>() -> Content {
    Content::Json(SchemaGenerator::subschema_for::<T>)
}

fn gets(does: &'static str, parts: &'static [&'static str], queries: &'static [&'static str], answers: Content) -> Row {
    Row { does, parts, queries, asks: Content::Nothing, answers }
}

fn posts(does: &'static str, parts: &'static [&'static str], asks: Content, answers: Content) -> Row {
    Row { does, parts, queries: &[], asks, answers }
}

/// The row of each action: a route without one does not compile.
fn row(action: Action) -> Row {
    use Content::{Bytes, Text};
    match action {
        Action::Enrol => posts("Join the fleet as a machine.", &[], of::<EnrolRequest>(), of::<EnrolAnswer>()),
        Action::Accept => posts("Take an account by a link.", &[], of::<AcceptRequest>(), of::<AcceptAnswer>()),
        Action::Desired => gets("Wait for a newer release.", &[], &["after"], of::<DesiredAnswer>()),
        Action::Reports => posts(
            "Send reports, which are acknowledged when they are on the disk.",
            &[],
            of::<Vec<SentReport>>(),
            of::<ReportsAnswer>(),
        ),
        Action::Root => gets("Get the root statement.", &[], &[], Text),
        Action::Roster => gets("Get the roster.", &[], &[], Text),
        Action::Signers => gets("Get a list of signers.", &["number"], &[], Text),
        Action::Release => gets("Get a release.", &["channel", "number"], &[], Text),
        Action::Envelope => gets("Get the secrets of a release for the machine.", &["channel", "number"], &[], Text),
        Action::Blob => gets("Get a bundle, or a part of it by Range.", &["digest"], &[], Bytes),
        Action::Machines => gets("List machines.", &[], LIST, of::<ListPage<MachineShown>>()),
        Action::Machine => gets("Show a machine.", &["name"], &[], of::<MachineShown>()),
        Action::ReportsOf => {
            gets("List reports of a machine.", &["name"], &["after", "most"], of::<ListPage<ReportShown>>())
        }
        Action::Status => gets("Count machines by state and channel.", &[], &["where"], of::<FleetStatus>()),
        Action::Drift => gets("List instances that drifted.", &[], LIST, of::<ListPage<DriftShown>>()),
        Action::Failures => gets("List failures, grouped by cause.", &[], LIST, of::<ListPage<CauseShown>>()),
        Action::Events => gets("Wait for events.", &[], &["after"], of::<ListPage<EventShown>>()),
        Action::Metrics => gets("Get metrics for Prometheus.", &[], &["where"], Text),
        Action::Checks => {
            gets("List machines that were asked to check.", &["number"], LIST, of::<ListPage<CheckShown>>())
        }
        Action::Acts => gets("List acts of operators.", &[], &["after"], of::<Vec<ActShown>>()),
        Action::Standing => posts("Admit or retire a machine.", &["name"], of::<StandingRequest>(), Text),
        Action::Hold => posts("Hold a machine, or let it go on.", &["name"], of::<HoldRequest>(), Text),
        Action::Check => Row {
            queries: &["where"],
            ..posts("Make machines check their documents now.", &[], Content::Nothing, of::<CheckAnswer>())
        },
        Action::Token => posts("Create a token to join with.", &[], of::<TokenRequest>(), of::<TokenAnswer>()),
        Action::Invite => posts("Create a link to take an account.", &[], of::<InviteRequest>(), of::<InviteAnswer>()),
        Action::StoreEnvelope => {
            posts("Store sealed secrets of a release.", &["channel", "number", "machine"], Text, of::<PublishAnswer>())
        }
        Action::StoreBlob => posts("Store a bundle.", &["digest"], Bytes, of::<PublishAnswer>()),
        Action::Plan => posts("Show what a signed roster would change.", &[], Text, of::<PlanAnswer>()),
        Action::Publish => posts("Publish a signed statement.", &["kind"], Text, of::<PublishAnswer>()),
    }
}

fn query(name: &str) -> &'static str {
    match name {
        "where" => "the machines that are meant, as in: role=web and not state=silent",
        "most" => "how many lines at most, from 1 to 1000",
        _ => "what comes behind this place, as the member `next` of the page before names it, or behind this number",
    }
}

impl Content {
    fn media(self, generator: &mut SchemaGenerator) -> Option<Value> {
        Some(match self {
            Self::Nothing => return None,
            Self::Text => json!({ "text/plain": { "schema": { "type": "string" } } }),
            Self::Bytes => json!({ "application/octet-stream": {} }),
            Self::Json(schema) => json!({ "application/json": { "schema": schema(generator) } }),
        })
    }
}

/// The schema of the API.
pub fn api() -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into())
        .into_generator();
    let mut paths = Map::new();
    for route in ROUTES {
        let operation = operation(route, &mut generator);
        let path = paths.entry(named(route)).or_insert_with(|| json!({}));
        path[route.method.to_lowercase()] = operation;
    }
    let heartbeat = generator.subschema_for::<Heartbeat>();
    let operator = "the token of an operator's account";
    let machine = "the request as its machine signed it, or proved it by its session: it names the machine and its number in the header \
        `stead-request`, and what it says of itself in the header `stead-heartbeat`";
    json!({
        "openapi": "3.1.0",
        "info": { "title": "stead-fleet", "version": "1" },
        "paths": paths,
        "components": {
            "securitySchemes": {
                "machine": {
                    "type": "apiKey", "in": "header", "name": stead_protocol::SIGNATURE, "description": machine,
                    "x-heartbeat": heartbeat,
                },
                "operator": { "type": "http", "scheme": "bearer", "description": operator },
            },
            "schemas": generator.take_definitions(true),
        },
    })
}

/// The path of a route with the names of its parts.
fn named(route: &Route) -> String {
    let mut parts = row(route.action).parts.iter();
    let part = |part: &str| match part {
        "*" => parts.next().map_or("*".to_owned(), |name| format!("{{{name}}}")),
        part => part.to_owned(),
    };
    route.path.split('/').map(part).collect::<Vec<_>>().join("/")
}

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let Row { does, parts, queries, asks, answers } = row(route.action);
    let parameter = |name: &str, place: &str, is_required: bool| json!({ "name": name, "in": place, "required": is_required, "schema": { "type": "string" } });
    let mut parameters: Vec<Value> = parts.iter().map(|name| parameter(name, "path", true)).collect();
    for name in queries {
        let mut parameter = parameter(name, "query", false);
        parameter["description"] = query(name).into();
        parameters.push(parameter);
    }
    let mut answer = json!({ "description": "Done." });
    if let Some(media) = answers.media(generator) {
        answer["content"] = media;
    }
    let refusal = json!({ "description": "The reason of the refusal.", "content": Content::Text.media(generator) });
    let mut responses = json!({ "200": answer, "default": refusal });
    if route.action == Action::Desired {
        responses["304"] = json!({ "description": "Nothing newer." });
    }
    let mut operation =
        json!({ "operationId": format!("{:?}", route.action), "summary": does, "responses": responses });
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if let Some(media) = asks.media(generator) {
        operation["requestBody"] = json!({ "required": true, "content": media });
    }
    let (scheme, role) = match route.asker {
        Asker::Anybody => return operation,
        Asker::Machine => ("machine", None),
        Asker::Viewer => ("operator", Some("viewer")),
        Asker::Operator => ("operator", Some("operator")),
        Asker::Approver => ("operator", Some("approver")),
    };
    operation["security"] = json!([{ scheme: role.iter().collect::<Vec<_>>() }]);
    operation
}

/// The JSON Schema of the answer to a request, if that is JSON.
pub fn answer_schema(method: &str, path: &str) -> Option<Value> {
    let (route, _) = stead_protocol::found(method, path)?;
    let api = api();
    let operation = &api["paths"][named(route)][route.method.to_lowercase()];
    let schema = operation["responses"]["200"]["content"]["application/json"].get("schema")?;
    Some(json!({ "allOf": [schema], "components": api["components"] }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_published_schema_is_that_of_the_routes() {
        let api = api();
        let text = serde_json::to_string_pretty(&api).unwrap_or_default() + "\n";
        stead_testkit::check_folder("docs/fleet-api", &[("openapi.json".to_owned(), text)].into());
        let count = |value: &Value| value.as_object().map_or(0, Map::len);
        let operations: usize = api["paths"].as_object().into_iter().flatten().map(|(_, path)| count(path)).sum();
        assert_eq!(operations, ROUTES.len());
        let mut names = BTreeSet::new();
        for route in ROUTES {
            let path = named(route);
            assert_eq!(route.path.matches('*').count(), row(route.action).parts.len(), "{path}");
            assert!(!path.contains('*') && names.insert((route.method, path)), "{route:?}");
        }
    }
}
