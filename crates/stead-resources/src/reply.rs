//! What resources that are about a path have in common: their states and their answers.

use std::path::PathBuf;

use serde_json::{Map, Value as Json, json};
use stead_core::value::Value;
use stead_host::provider::{Cost, Plain, SetReply, TestReply};

/// A state: where it is, and whether it is there.
pub(crate) fn state(path: &str, exist: bool) -> Map<String, Json> {
    // With room for what else there is to say.
    let mut state = Map::with_capacity(5);
    state.insert("path".to_owned(), json!(path));
    state.insert("_exist".to_owned(), json!(exist));
    state
}

/// The answer to a test that found this state, in which these properties differ.
pub(crate) fn tested(actual: Map<String, Json>, differing: &[&str]) -> TestReply {
    TestReply {
        actual: Some(Plain::new(actual.into())),
        in_desired_state: Some(differing.is_empty()),
        differing: Some(owned(differing)),
    }
}

/// The answer to a set after which, or in what-if would be, this state; these properties differed.
pub(crate) fn set(after: Map<String, Json>, differing: &[&str], what_if: Vec<String>) -> SetReply {
    SetReply { after: Some(Plain::new(after.into())), changed: Some(owned(differing)), what_if, ..SetReply::default() }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// How long a call takes: what has to be copied may be large.
pub(crate) fn cost(desired: &Value) -> Cost {
    let copies = desired.as_object().is_some_and(|properties| properties.contains_key("source"));
    if copies { Cost::Process } else { Cost::Inline }
}

/// The paths of `path` and `source`; `None` without the first.
pub(crate) fn touches(input: &Plain) -> Option<Vec<PathBuf>> {
    let text = |name| input.expose().get(name).and_then(Json::as_str).map(PathBuf::from);
    Some([text("path")?].into_iter().chain(text("source")).collect())
}
