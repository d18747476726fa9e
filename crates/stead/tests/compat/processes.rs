//! Listings of processes. What ran on one machine does not run on another, so that their shape is compared: every
//! element in full but for the values of its properties, and not how many there are.

use serde_json::{Map, Value as Json, json};

use crate::case::Run;

/// The type that is listed.
const PROCESS: &str = "Microsoft/Process";

/// The answer of a run with the shape of processes in place of what they were; any other answer as it is.
pub(crate) fn comparable(run: &Run, values: Vec<Json>) -> Vec<Json> {
    if !run.args.iter().any(|arg| arg == PROCESS) {
        return values.into_iter().map(document).collect();
    }
    match values.as_slice() {
        [Json::Array(states)] => vec![Json::Array(distinct(states.iter().map(shape)))],
        [document_of_one] if document_of_one.get("resources").is_some() => values.into_iter().map(document).collect(),
        states => distinct(states.iter().map(shape)),
    }
}

/// An exported document.
fn document(mut document: Json) -> Json {
    let is_process = |instance: &Json| instance["type"] == PROCESS;
    if let Some(instances) = document.get_mut("resources").and_then(Json::as_array_mut)
        && instances.iter().any(is_process)
    {
        let mut expected = 0;
        let listed =
            instances.iter().map(|each| if is_process(each) { instance(each, &mut expected) } else { each.clone() });
        *instances = distinct(listed);
    }
    document
}

/// An exported instance. Its name is hidden if it counts on from the one before or starts anew.
fn instance(instance: &Json, expected: &mut usize) -> Json {
    let mut shown = instance.clone();
    let number = instance["name"].as_str().and_then(|name| name.strip_prefix("Process-")?.parse().ok());
    match number {
        Some(0) => *expected = 1,
        Some(number) if number == *expected => {
            *expected += 1;
            shown["name"] = "Process-${NEXT}".into();
        }
        _ => {}
    }
    shown["properties"] = shape(&instance["properties"]);
    shown
}

/// The kinds of everything in a value.
fn shape(value: &Json) -> Json {
    match value {
        Json::Object(members) => {
            Json::Object(members.iter().map(|(key, value)| (key.clone(), shape(value))).collect::<Map<_, _>>())
        }
        Json::Array(items) => Json::Array(items.iter().map(shape).collect()),
        Json::String(_) => json!("${TEXT}"),
        Json::Number(_) => json!("${NUMBER}"),
        other => other.clone(),
    }
}

/// The values without those that are like the one before.
fn distinct(values: impl Iterator<Item = Json>) -> Vec<Json> {
    let mut all: Vec<Json> = values.collect();
    all.dedup_by_key(|value| value.to_string());
    all
}
