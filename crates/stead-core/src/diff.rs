//! Desired against actual: which properties differ, and what changed between two states.
//!
//! A desired state is a *part* of the actual one: only what it names counts, at every depth of objects. Arrays are
//! compared without regard to order, every element once. Sealed values are equal when their recipes are; the host makes
//! sure that an actual secret equal to the desired one has its recipe.

mod arrays;
mod changes;
mod exact;
mod powershell;
mod respelled;
mod rules;
mod scalar;

pub use changes::{Alteration, Change, changes};
pub use respelled::respelled;
pub use rules::{Case, Rules};

use crate::value::{Object, Value};
use rules::Shape;

/// The property that says whether an instance is to exist, or exists.
const EXIST: &str = "_exist";

/// The properties that are for the engine or an editor, and no part of the state.
const NOT_STATE: [&str; 2] = ["$schema", "_metadata"];

/// The names of the top-level properties in which the actual state is not the desired one, in the order desired.
///
/// Guarantees: nothing differs from itself, and what is added to an actual state makes nothing differ (arrays and
/// `_exist` aside).
///
/// - `_exist` is true where it is not stated. When the instance is not to be there, nothing else about it matters.
/// - What the schema calls `writeOnly` is not compared; its `default` stands in for what the actual state leaves out.
/// - A secret that the actual state leaves out or states as null does not differ: the resource keeps it to itself.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use stead_core::diff::{Rules, differing};
/// use stead_core::value::Value;
///
/// let actual = Value::from(json!({ "path": "/etc/motd", "mode": "0600", "size": 12 }));
/// let desired = Value::from(json!({ "path": "/etc/motd", "mode": "0644" }));
/// // What is not stated does not matter.
/// assert_eq!(differing(&desired, &actual, &Rules::default()), ["mode"]);
///
/// // Of an instance that is not to be there, nothing but that matters.
/// let absent = Value::from(json!({ "path": "/etc/motd", "mode": "0644", "_exist": false }));
/// assert_eq!(differing(&absent, &actual, &Rules::default()), ["_exist"]);
///
/// // A password that is taken and never reported is not compared.
/// let schema = json!({ "properties": { "password": { "writeOnly": true } } });
/// let desired = Value::from(json!({ "password": "hunter2" }));
/// assert!(differing(&desired, &actual, &Rules::of_schema(&schema)).is_empty());
/// ```
pub fn differing(desired: &Value, actual: &Value, rules: &Rules<'_>) -> Vec<String> {
    // A resource that gives back what it was given.
    if std::ptr::eq(desired, actual) {
        return Vec::new();
    }
    let (Value::Object(desired), Value::Object(actual)) = (desired, actual) else {
        return Vec::new();
    };
    if exists(desired) != exists(actual) && !exists(desired) {
        return vec![EXIST.to_owned()];
    }
    if !exists(desired) {
        return Vec::new();
    }
    let shape = rules.shape();
    let mut names: Vec<String> = desired
        .iter()
        .filter(|(name, _)| !NOT_STATE.contains(&name.as_str()) && *name != EXIST)
        .filter(|(name, wanted)| !member_matches(wanted, rules.member(actual, name), shape.property(name), rules))
        .map(|(name, _)| name.clone())
        .collect();
    if !exists(actual) {
        names.push(EXIST.to_owned());
    }
    names
}

/// Returns whether a state says that the instance exists; it does unless `_exist` is `false`.
pub fn exists(state: &Object) -> bool {
    state.get(EXIST).and_then(Value::as_bool).unwrap_or(true)
}

/// How the states of a resource say whether the instance exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Existence {
    /// By `_exist` alone.
    #[default]
    Exist,
    /// By the property `Ensure` as well, as resources of PowerShell do: what is `Absent` is not there. Neither has a case.
    Ensure,
}

impl Existence {
    /// Returns whether a state says that the instance exists; it does unless it says otherwise.
    ///
    /// # Examples
    /// ```
    /// use serde_json::json;
    /// use stead_core::diff::Existence;
    /// use stead_core::value::Value;
    ///
    /// let state = Value::from(json!({ "Key": "a", "ensure": "absent" }));
    /// let state = state.as_object().ok_or("it is an object")?;
    /// assert!(Existence::Exist.holds(state));
    /// assert!(!Existence::Ensure.holds(state));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn holds(self, state: &Object) -> bool {
        exists(state) && (self == Self::Exist || !is_ensured_absent(state))
    }
}

/// Returns whether a state, desired or actual, has `Ensure: Absent`.
pub fn is_ensured_absent(state: &Object) -> bool {
    let mut ensured = state.iter().filter(|(name, _)| name.eq_ignore_ascii_case("Ensure"));
    ensured.any(|(_, value)| value.as_str().is_some_and(|word| word.eq_ignore_ascii_case("Absent")))
}

/// Returns whether the actual value has everything that the desired one names.
pub fn contains(actual: &Value, desired: &Value, rules: &Rules<'_>) -> bool {
    matches(desired, actual, rules.shape(), rules)
}

/// The state that a set is expected to reach: the actual one with what differs put in its place.
///
/// Guarantees: nothing of it differs from the desired state. What does not differ stays as it is, even where the desired
/// state writes it otherwise.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use stead_core::diff::{Rules, overlaid};
/// use stead_core::value::Value;
///
/// let actual = Value::from(json!({ "name": "web", "port": 80 }));
/// let desired = Value::from(json!({ "port": 8080 }));
/// let after = Value::from(json!({ "name": "web", "port": 8080 }));
/// assert_eq!(overlaid(&actual, &desired, &Rules::default()), after);
/// ```
#[must_use]
pub fn overlaid(actual: &Value, desired: &Value, rules: &Rules<'_>) -> Value {
    let (Value::Object(actual), Value::Object(desired)) = (actual, desired) else {
        return desired.clone();
    };
    let mut after = match (exists(actual), exists(desired)) {
        (true, true) => put_over(actual, desired, rules.shape(), rules),
        (false, true) => {
            let mut after = put_over(actual, desired, rules.shape(), rules);
            after.insert(EXIST.to_owned(), Value::Bool(true));
            after
        }
        (true, false) => desired.clone(),
        (false, false) => actual.clone(),
    };
    after.retain(|name, _| !NOT_STATE.contains(&name));
    Value::Object(after)
}

/// The state of an instance that is not to be there, once it is not: what is desired, for it has nothing else. `None`
/// when it is to be there.
pub fn absence(desired: &Value) -> Option<Value> {
    let mut after = desired.as_object().filter(|desired| !exists(desired))?.clone();
    after.retain(|name, _| !NOT_STATE.contains(&name));
    Some(Value::Object(after))
}

fn put_over(actual: &Object, desired: &Object, shape: Shape<'_>, rules: &Rules<'_>) -> Object {
    let mut after = actual.clone();
    for (name, wanted) in desired {
        let (shape, old) = (shape.property(name), rules.entry(actual, name));
        if member_matches(wanted, old.map(|(_, old)| old), shape, rules) {
            continue;
        }
        let value = match (old, wanted) {
            (Some((_, Value::Object(old))), Value::Object(wanted)) => {
                Value::Object(put_over(old, wanted, shape, rules))
            }
            _ => wanted.clone(),
        };
        after.insert(old.map_or(name, |(name, _)| name).clone(), value);
    }
    after
}

/// Returns whether a member is as desired, when the state may leave it out.
fn member_matches(wanted: &Value, actual: Option<&Value>, shape: Shape<'_>, rules: &Rules<'_>) -> bool {
    let is_kept_back = match wanted {
        Value::Sealed(_) => true,
        // A credential is not reported in part.
        _ => rules.case == Case::PowerShell && wanted.has_sealed(),
    };
    if shape.is_write_only() || (is_kept_back && matches!(actual, None | Some(Value::Null))) {
        return true;
    }
    match actual {
        Some(actual) => matches(wanted, actual, shape, rules),
        None if rules.case == Case::PowerShell && powershell::is_nothing(wanted) => true,
        None => shape.default().is_some_and(|default| matches(wanted, &Value::from(default.clone()), shape, rules)),
    }
}

fn matches(wanted: &Value, actual: &Value, shape: Shape<'_>, rules: &Rules<'_>) -> bool {
    let powershell = rules.case == Case::PowerShell;
    match (wanted, actual) {
        (Value::Array(_) | Value::Object(_), Value::Array(_) | Value::Object(_))
            if powershell && powershell::is_nothing(wanted) && powershell::is_nothing(actual) =>
        {
            true
        }
        (Value::Array(one), Value::Object(_)) if powershell => {
            matches!(one.as_slice(), [only] if matches(only, actual, shape, rules))
        }
        (Value::Object(_), Value::Array(one)) if powershell => {
            matches!(one.as_slice(), [only] if matches(wanted, only, shape, rules))
        }
        (Value::Object(wanted), Value::Object(actual)) => wanted
            .iter()
            .all(|(name, value)| member_matches(value, rules.member(actual, name), shape.property(name), rules)),
        (Value::Array(wanted), Value::Array(actual)) if powershell => {
            arrays::matches(powershell::flat(wanted), powershell::flat(actual), rules)
        }
        (Value::Array(wanted), Value::Array(actual)) => arrays::matches(wanted, actual, rules),
        _ => scalar::equal(wanted, actual, rules.case),
    }
}
