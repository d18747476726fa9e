//! The changes between two states, for users to read.

use super::{Rules, contains};
use crate::value::pointer::within;
use crate::value::{Object, Value};

/// One difference between two states.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// Where, as a JSON pointer; empty for the whole.
    pub path: String,
    /// The change there.
    pub what: Alteration,
}

/// A change at a place.
#[derive(Clone, PartialEq, Debug)]
pub enum Alteration {
    /// There was nothing before.
    Added(Value),
    /// There is nothing after.
    Removed(Value),
    /// There is something else.
    Replaced {
        /// The value before.
        old: Value,
        /// The value after.
        new: Value,
    },
}

/// Everything that changed, at the deepest place that tells it, in the order of the states.
///
/// Arrays with the same elements in another order are the same, as everywhere in comparisons.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use stead_core::diff::{Alteration, changes};
/// use stead_core::value::Value;
///
/// let before = Value::from(json!({ "owner": { "name": "www-data" }, "tags": ["a", "b"] }));
/// let after = Value::from(json!({ "owner": { "name": "root" }, "tags": ["b", "a"] }));
/// let found = changes(&before, &after);
/// // The deepest place that tells it; another order of the tags changes nothing.
/// assert_eq!(found.len(), 1);
/// assert_eq!(found[0].path, "/owner/name");
/// assert_eq!(found[0].what, Alteration::Replaced { old: "www-data".into(), new: "root".into() });
/// ```
pub fn changes(before: &Value, after: &Value) -> Vec<Change> {
    let mut found = Vec::new();
    compare("", before, after, &mut found);
    found
}

fn compare(path: &str, before: &Value, after: &Value, found: &mut Vec<Change>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => compare_objects(path, before, after, found),
        (Value::Array(before), Value::Array(after)) => compare_arrays(path, before, after, found),
        _ if same(before, after) => {}
        _ => note(path, Alteration::Replaced { old: before.clone(), new: after.clone() }, found),
    }
}

fn compare_objects(path: &str, before: &Object, after: &Object, found: &mut Vec<Change>) {
    for (name, old) in before {
        let path = within(path, name);
        match after.get(name) {
            Some(new) => compare(&path, old, new, found),
            None => note(&path, Alteration::Removed(old.clone()), found),
        }
    }
    for (name, new) in after.iter().filter(|(name, _)| !before.contains_key(name)) {
        note(&within(path, name), Alteration::Added(new.clone()), found);
    }
}

/// Elements that are the same at both ends are passed over; what is between is compared place by place.
fn compare_arrays(path: &str, before: &[Value], after: &[Value], found: &mut Vec<Change>) {
    if super::arrays::matches(before, after, &Rules::default())
        && super::arrays::matches(after, before, &Rules::default())
    {
        return;
    }
    let start = before.iter().zip(after).take_while(|(old, new)| same(old, new)).count();
    let (before, after) = (before.get(start..).unwrap_or_default(), after.get(start..).unwrap_or_default());
    let end = before.iter().rev().zip(after.iter().rev()).take_while(|(old, new)| same(old, new)).count();
    let middle = |all: &[Value]| all.len().saturating_sub(end);
    let before = before.get(..middle(before)).unwrap_or_default();
    let after = after.get(..middle(after)).unwrap_or_default();
    for at in 0..before.len().max(after.len()) {
        let path = format!("{path}/{}", start + at);
        match (before.get(at), after.get(at)) {
            (Some(old), Some(new)) => compare(&path, old, new, found),
            (Some(old), None) => note(&path, Alteration::Removed(old.clone()), found),
            (None, Some(new)) => note(&path, Alteration::Added(new.clone()), found),
            (None, None) => {}
        }
    }
}

fn same(one: &Value, other: &Value) -> bool {
    contains(one, other, &Rules::default()) && contains(other, one, &Rules::default())
}

fn note(path: &str, what: Alteration, found: &mut Vec<Change>) {
    found.push(Change { path: path.to_owned(), what });
}
