//! Former states, which an undo sets again.

use serde_json::{Map, Value as Json};
use stead_core::schema::Schema;

/// A state without what can only be read, so that it can be set.
pub(crate) fn settable(mut state: Json, schema: Option<&Schema>) -> Json {
    let properties = schema.and_then(|schema| schema.json().get("properties"));
    let is_read_only = |name: &str| properties.and_then(|all| all.get(name)?.get("readOnly")?.as_bool()) == Some(true);
    if let Some(members) = state.as_object_mut() {
        members.retain(|name, _| !is_read_only(name));
    }
    state
}

/// The properties that set a former state again: what is stated, as it was, and what else of the state counts.
pub fn former_properties(
    stated: &Map<String, Json>,
    before: &Map<String, Json>,
    counts: impl Fn(&str) -> bool,
) -> Map<String, Json> {
    let as_it_was = |(name, value): (&String, &Json)| (name.clone(), before.get(name).unwrap_or(value).clone());
    let mut properties: Map<String, Json> = stated.iter().map(as_it_was).collect();
    if before.get("_exist") == Some(&Json::Bool(false)) {
        properties.insert("_exist".to_owned(), Json::Bool(false));
    } else {
        properties
            .extend(before.iter().filter(|(name, _)| counts(name)).map(|(name, value)| (name.clone(), value.clone())));
    }
    properties
}

/// Returns whether a name of a state can be stated to set it again: what stead adds to states cannot.
pub fn can_be_stated(name: &str) -> bool {
    !name.starts_with('_') || name == "_exist"
}
