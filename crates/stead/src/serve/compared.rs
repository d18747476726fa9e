//! Comparisons for callers that decide by properties.

use serde_json::{Map, Value as Json};
use stead_core::call::Tested;
use stead_core::diff::{Case, Existence, Rules, changes, differing, overlaid};
use stead_core::report::Record;
use stead_core::value::{Value, pointer};
use stead_engine::{Difference, ResourceCall};
use stead_resources::builtin_of;

use super::forms::{change, plain};

/// The rules by which properties of a resource are compared for a caller.
pub(super) fn rules(called: &ResourceCall) -> Rules<'static> {
    let case = if called.manifest.is_powershell() { Case::PowerShell } else { Case::Exact };
    Rules { case, schema: None }
}

/// The differences between a state and what is desired of it, as the protocol has them.
pub(super) fn differences(called: &ResourceCall, record: &Record, tested: &Tested) -> Vec<Json> {
    let (mut found, names) = if called.manifest.is_powershell() {
        of_powershell(called, record, &tested.actual)
    } else {
        let differs = Difference::of_record(record, builtin_of(&called.manifest)).filter(|_| !tested.in_desired_state);
        let found = differs.iter().flat_map(|difference| &difference.properties).map(change).collect();
        (found, tested.differing.clone())
    };
    let unexplained: Vec<Json> = names
        .iter()
        .filter(|name| !is_within(&found, name))
        .map(|name| undetailed(name, record, &tested.actual))
        .collect();
    found.extend(unexplained);
    found
}

/// The differences in detail, and the names of all properties that differ. An instance that is neither there nor to be there has
/// none.
fn of_powershell(called: &ResourceCall, record: &Record, actual: &Value) -> (Vec<Json>, Vec<String>) {
    let rules = rules(called);
    let Some(desired) = record.desired.as_deref() else { return (Vec::new(), Vec::new()) };
    if !is_there(desired, called.manifest.existence) && !is_there(actual, called.manifest.existence) {
        return (Vec::new(), Vec::new());
    }
    let names = differing(desired, actual, &rules);
    let found: Vec<Json> = changes(actual, &overlaid(actual, desired, &rules)).iter().map(change).collect();
    (found.into_iter().filter(|one| names.iter().any(|name| is_of(one, name))).collect(), names)
}

pub(super) fn is_there(state: &Value, existence: Existence) -> bool {
    state.as_object().is_none_or(|state| existence.holds(state))
}

/// That a property differs, with what is stated and found of it.
pub(super) fn undetailed(name: &str, record: &Record, actual: &Value) -> Json {
    let mut found = Map::from_iter([("property".to_owned(), pointer::within("", name).into())]);
    let desired = record.desired.as_ref().and_then(|desired| desired.get(name));
    for (word, value) in [("actual", actual.get(name)), ("desired", desired)] {
        found.extend(value.map(|value| (word.to_owned(), plain(value))));
    }
    found.into()
}

/// Returns whether one of these differences is within a property.
fn is_within(found: &[Json], name: &str) -> bool {
    found.iter().any(|one| is_of(one, name))
}

/// Names of properties have no case where that matters.
fn is_of(difference: &Json, name: &str) -> bool {
    let first = difference["property"].as_str().and_then(|path| pointer::steps(path).next());
    first.is_some_and(|first| first.eq_ignore_ascii_case(name))
}
