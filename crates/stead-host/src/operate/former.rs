//! Former states, which an undo sets again.

use serde_json::Value as Json;
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
