//! The output of a run when a resource that holds others is made of it, as its `--as-…` options say.

use serde_json::{Value as Json, json};

use super::results::DOCUMENT_SCHEMA;

/// The result document of a run, without what is around the results.
pub fn results_alone(mut document: Json) -> Json {
    document.get_mut("results").map_or_else(|| json!([]), Json::take)
}

/// The type of the first instance that a test did not find in the desired state.
pub fn failed_assertion(document: &Json) -> Option<&str> {
    let failed = instances(document).find(|instance| !in_desired_state(&instance["result"]))?;
    Some(failed["type"].as_str().unwrap_or_default())
}

fn in_desired_state(result: &Json) -> bool {
    match result {
        Json::Array(nested) => nested.iter().all(|instance| in_desired_state(&instance["result"])),
        result => result["inDesiredState"] == true,
    }
}

/// The results of a test in the shape of those of a get.
pub fn tests_as_gets(document: &Json) -> Json {
    Json::Array(instances(document).map(test_as_get).collect())
}

fn test_as_get(instance: &Json) -> Json {
    let mut got = instance.clone();
    got["result"] = match &instance["result"] {
        Json::Array(nested) => nested.iter().map(test_as_get).collect(),
        result => json!({ "actualState": result["actualState"] }),
    };
    got
}

/// The states that a test found as a document that says so. What is nested has no state of its own.
pub fn tests_as_document(document: &Json) -> Json {
    let instance = |instance: &Json| {
        let mut found = json!({ "type": instance["type"], "name": instance["name"] });
        if let Some(state) = instance["result"].get("actualState").filter(|state| state.is_object()) {
            found["properties"] = state.clone();
        }
        found
    };
    json!({
        "$schema": DOCUMENT_SCHEMA,
        "contentVersion": "1.0.0",
        "resources": instances(document).map(instance).collect::<Json>(),
    })
}

fn instances(document: &Json) -> impl Iterator<Item = &Json> {
    document["results"].as_array().into_iter().flatten()
}
