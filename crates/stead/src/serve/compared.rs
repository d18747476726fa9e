//! Comparisons for callers that decide by properties, and the secrets that no comparison can see.

use serde_json::{Map, Value as Json};
use stead_core::call::Tested;
use stead_core::diff::{Case, Existence, Rules, changes, differing, overlaid};
use stead_core::report::Record;
use stead_core::value::{Object, Value, pointer};
use stead_engine::{Difference, ResourceCall};
use stead_host::store::StoreError;
use stead_host::store::applied::{Known, StatedSecrets};
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
    if !holds(desired, called.manifest.existence) && !holds(actual, called.manifest.existence) {
        return (Vec::new(), Vec::new());
    }
    let names = differing(desired, actual, &rules);
    let found: Vec<Json> = changes(actual, &overlaid(actual, desired, &rules)).iter().map(change).collect();
    (found.into_iter().filter(|one| names.iter().any(|name| is_of(one, name))).collect(), names)
}

fn holds(state: &Value, existence: Existence) -> bool {
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

/// Returns the secrets that are stated of an instance, in the clear yet, where what was set last counts: built-in resources
/// compare what they keep themselves.
pub(super) fn stated_secrets(called: &ResourceCall, properties: &Object) -> Result<Option<StatedSecrets>, StoreError> {
    if builtin_of(&called.manifest).is_some() {
        return Ok(None);
    }
    let secrets: Vec<_> = properties.iter().filter(|(_, value)| holds_wrapped(value)).collect();
    if secrets.is_empty() {
        return Ok(None);
    }
    let keys = called.keys();
    let is_key = |name: &str| keys.iter().any(|key| key.eq_ignore_ascii_case(name)) || keys.is_empty();
    let identity = properties.iter().filter(|(name, value)| is_key(name) && !holds_wrapped(value));
    let written = |value: &Value| {
        let text = value.to_redacted_json().to_string();
        if called.manifest.is_powershell() { text.to_lowercase() } else { text }
    };
    let mut identity: Vec<_> = identity.map(|(name, value)| (name.to_lowercase(), written(value))).collect();
    identity.sort();
    let identity = (called.manifest.type_name.as_str(), called.session.root(), identity);
    StatedSecrets::new(&identity, secrets.into_iter().map(|(name, value)| (name.clone(), value.to_redacted_json())))
}

/// The properties with secrets that differ from those that were set last. Of one that was never set this counts only where the
/// resource keeps it to itself.
pub(super) fn unapplied(called: &ResourceCall, record: &Record, actual: &Value, stated: &StatedSecrets) -> Vec<String> {
    let known = match stated.known() {
        Ok(known) => known,
        Err(error) => {
            tracing::warn!("secrets cannot be compared with those that were set last: {error}");
            return Vec::new();
        }
    };
    let Some(Value::Object(desired)) = record.desired.as_deref() else { return Vec::new() };
    let covers = |name: &str| {
        let places = called.manifest.secret_places.as_ref().filter(|_| called.manifest.is_powershell());
        places.is_some_and(|places| places.has(name))
    };
    let found = |name: &str| {
        let mut members = actual.as_object().into_iter().flatten();
        members.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    };
    let differs = |name: &String, known: Known| {
        let is_unread = || desired.get(name).is_some_and(|wanted| covers(name) || is_kept_back(wanted, found(name)));
        match known {
            Known::SetLast => false,
            // Two that differ in case alone count as equal in a state.
            Known::Other if called.manifest.is_powershell() => true,
            Known::Other | Known::Nothing => is_unread(),
        }
    };
    known.into_iter().filter(|(name, known)| differs(name, *known)).map(|(name, _)| name).collect()
}

/// Returns whether a state leaves out a secret that is desired.
fn is_kept_back(wanted: &Value, actual: Option<&Value>) -> bool {
    match (wanted, actual) {
        (Value::Sealed(_), actual) => matches!(actual, None | Some(Value::Null)),
        (Value::Object(wanted), actual) => {
            let members = actual.and_then(Value::as_object);
            let of = |name: &str| members?.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, it)| it);
            wanted.iter().any(|(name, value)| is_kept_back(value, of(name)))
        }
        (Value::Array(_), actual) => wanted.has_sealed() && !actual.is_some_and(Value::has_sealed),
        _ => false,
    }
}

/// Returns whether a part of a value is in the form of secrets.
fn holds_wrapped(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(holds_wrapped),
        Value::Object(members) => {
            members.len() == 1 && members.keys().all(|name| is_wrapping(name)) || members.values().any(holds_wrapped)
        }
        _ => false,
    }
}

fn is_wrapping(name: &str) -> bool {
    name == "secureString" || name == "secureObject"
}

/// A value with its secrets as themselves.
pub(super) fn bare(value: Value) -> Value {
    match value {
        Value::Object(members) if members.len() == 1 && members.keys().all(|name| is_wrapping(name)) => {
            members.into_iter().next().map(|(_, secret)| bare(secret)).unwrap_or_default()
        }
        Value::Object(members) => Value::Object(members.into_iter().map(|(name, it)| (name, bare(it))).collect()),
        Value::Array(items) => Value::Array(items.into_iter().map(bare).collect()),
        other => other,
    }
}
