//! States as the check compares them, and the secrets in them.

use serde_json::{Map, Value as Json};

use crate::provider::State;

/// Returns the part of a state that is about the instance, and not for the engine.
pub(super) fn bare(state: &State) -> Json {
    let mut state = state.to_json();
    match &mut state {
        Json::Object(members) => {
            members.retain(|name, _| !["_inDesiredState", "_metadata", "_restartRequired"].contains(&name.as_str()));
        }
        Json::Array(results) => results.iter_mut().filter_map(Json::as_object_mut).for_each(|result| {
            // When it was done, and how long it took.
            result.retain(|name, _| !["metadata", "executionInformation"].contains(&name.as_str()));
        }),
        _ => {}
    }
    state
}

/// The names of the members that two states do not share, in order; of states that have none, `resources`.
pub(super) fn unequal(one: &Json, other: &Json) -> Vec<String> {
    if one.is_array() && other.is_array() {
        return if one == other { Vec::new() } else { vec!["resources".to_owned()] };
    }
    let none = Map::new();
    let [one, other] = [one, other].map(|state| state.as_object().unwrap_or(&none));
    let mut names: Vec<String> =
        one.keys().chain(other.keys()).filter(|name| one.get(*name) != other.get(*name)).cloned().collect();
    names.sort();
    names.dedup();
    names
}

/// How many nested instances of a group have no result in what it answered; none where it answers with no results.
pub(super) fn unanswered(desired: &Json, answer: &Json) -> usize {
    let (Some(nested), Some(results)) = (desired.get("resources").and_then(Json::as_array), answer.as_array()) else {
        return 0;
    };
    let answers = |instance: &Json| {
        let alike = |result: &&Json| ["name", "type"].iter().all(|key| result.get(*key) == instance.get(*key));
        results.iter().filter(alike).count() == 1
    };
    nested.iter().filter(|instance| !answers(instance)).count()
}

pub(super) fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

pub(super) fn is_wrapped(value: &Json) -> bool {
    let members = value.as_object().filter(|members| members.len() == 1);
    members.is_some_and(|members| members.keys().any(|key| key == "secureString" || key == "secureObject"))
}

/// Returns whether anything in a state is in such a wrapping.
pub(super) fn holds_wrapped(state: &Json) -> bool {
    is_wrapped(state)
        || match state {
            Json::Array(items) => items.iter().any(holds_wrapped),
            Json::Object(members) => members.values().any(holds_wrapped),
            _ => false,
        }
}

/// Shorter texts occur in what is none of the secret.
const SHORTEST: usize = 4;

/// Every text below a wrapping.
pub(super) fn collect_secrets(json: &Json, secrets: &mut Vec<String>) {
    match json {
        Json::Array(items) => items.iter().for_each(|item| collect_secrets(item, secrets)),
        Json::Object(members) if is_wrapped(json) => members.values().for_each(|value| texts(value, secrets)),
        Json::Object(members) => members.values().for_each(|value| collect_secrets(value, secrets)),
        _ => {}
    }
}

fn texts(json: &Json, found: &mut Vec<String>) {
    match json {
        Json::String(text) if text.len() >= SHORTEST => found.push(text.clone()),
        Json::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Json::Object(members) => members.values().for_each(|value| texts(value, found)),
        _ => {}
    }
}

pub(super) fn holds(state: &Json, secret: &str) -> bool {
    match state {
        Json::String(text) => text.contains(secret),
        Json::Array(items) => items.iter().any(|item| holds(item, secret)),
        Json::Object(members) => members.values().any(|value| holds(value, secret)),
        _ => false,
    }
}
