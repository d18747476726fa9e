//! The desired state in the spelling of the actual one.

use std::collections::HashMap;

use super::{Rules, Shape, matches, scalar};
use crate::value::{Object, Value};

/// Returns the desired state in which everything that is equal to the actual state is written as it is there: a set that changes
/// something else then leaves it as it is.
///
/// Guarantees: what differs from the actual state is the same as before, and nothing is added.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use stead_core::diff::{Case, Rules, respelled};
/// use stead_core::value::Value;
///
/// let rules = Rules { case: Case::PowerShell, schema: None };
/// let actual = Value::from(json!({ "Name": "Web", "Level": 1, "Size": 9 }));
/// let desired = Value::from(json!({ "name": "web", "level": 2 }));
/// assert_eq!(respelled(&desired, &actual, &rules), Value::from(json!({ "Name": "Web", "Level": 2 })));
/// ```
#[must_use]
pub fn respelled(desired: &Value, actual: &Value, rules: &Rules<'_>) -> Value {
    match (desired, actual) {
        (Value::Object(desired), Value::Object(actual)) => Value::Object(members(desired, actual, rules)),
        (Value::Array(desired), Value::Array(actual)) => Value::Array(elements(desired, actual, rules)),
        (Value::String(_), Value::String(_)) if scalar::equal(desired, actual, rules.case) => actual.clone(),
        _ => desired.clone(),
    }
}

fn members(desired: &Object, actual: &Object, rules: &Rules<'_>) -> Object {
    let member = |(name, wanted): (&String, &Value)| match rules.entry(actual, name) {
        Some((name, actual)) => (name.clone(), respelled(wanted, actual, rules)),
        None => (name.clone(), wanted.clone()),
    };
    desired.iter().map(member).collect()
}

/// Each element as the one that it is equal to; in the order in which those are, where every element has one.
fn elements(desired: &[Value], actual: &[Value], rules: &Rules<'_>) -> Vec<Value> {
    let mut free = Free::new(actual, rules);
    let mut paired: Vec<(Option<usize>, Value)> = desired
        .iter()
        .map(|wanted| match free.take(wanted) {
            Some((at, equal)) => (Some(at), respelled(wanted, equal, rules)),
            None => (None, wanted.clone()),
        })
        .collect();
    if desired.len() == actual.len() && paired.iter().all(|(at, _)| at.is_some()) {
        paired.sort_by_key(|(at, _)| *at);
    }
    paired.into_iter().map(|(_, value)| value).collect()
}

/// The actual elements that no desired one was paired with yet.
struct Free<'v> {
    by_key: HashMap<String, Vec<usize>>,
    /// By their places.
    all: Vec<Option<&'v Value>>,
    rules: Rules<'v>,
}

impl<'v> Free<'v> {
    fn new(actual: &'v [Value], rules: &Rules<'v>) -> Self {
        let mut by_key: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, value) in actual.iter().enumerate().rev() {
            if let Some(key) = scalar::key(value, rules.case) {
                by_key.entry(key).or_default().push(at);
            }
        }
        Self { by_key, all: actual.iter().map(Some).collect(), rules: *rules }
    }

    fn take(&mut self, wanted: &Value) -> Option<(usize, &'v Value)> {
        let same =
            scalar::key(wanted, self.rules.case).and_then(|key| self.by_key.get(&key)).into_iter().flatten().rev();
        let same = same.copied().find(|at| self.all.get(*at).is_some_and(Option::is_some));
        let has_all = |value: &&Value| matches(wanted, value, Shape::ANY, &self.rules);
        let in_part = || self.all.iter().position(|value| value.as_ref().is_some_and(has_all));
        let is_composite = matches!(wanted, Value::Object(_) | Value::Array(_));
        let at = same.or_else(|| if is_composite { in_part() } else { None })?;
        Some((at, self.all.get_mut(at)?.take()?))
    }
}
