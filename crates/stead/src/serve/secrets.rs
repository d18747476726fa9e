//! Secrets that no comparison can see: what is known of them goes by digests of those that were set last.

use stead_core::diff::Rules;
use stead_core::report::Record;
use stead_core::value::{Object, Value};
use stead_engine::{ResourceCall, error_chain};
use stead_host::store::StoreError;
use stead_host::store::applied::{Known, StatedSecrets};
use stead_resources::builtin_of;

use super::compared::rules;
use crate::rpc::Problem;

/// Returns the secrets that are stated of an instance, in the clear yet, where what was set last counts: built-in resources
/// compare what they keep themselves.
pub(super) fn stated_secrets(called: &ResourceCall, properties: &Object) -> Result<Option<StatedSecrets>, Problem> {
    if builtin_of(&called.manifest).is_some() {
        return Ok(None);
    }
    let secrets: Vec<_> = properties.iter().filter(|(_, value)| holds_wrapped(value)).collect();
    if secrets.is_empty() {
        return Ok(None);
    }
    let keys = called.keys();
    let is_key = |name: &str| keys.iter().any(|key| key.eq_ignore_ascii_case(name));
    // Where nothing is known of keys, another secret does not make another instance.
    let tells = |name: &str, value: &Value| if keys.is_empty() { !holds_wrapped(value) } else { is_key(name) };
    let written = |value: &Value| {
        let text = value.to_redacted_json().to_string();
        if called.manifest.is_powershell() { text.to_lowercase() } else { text }
    };
    let identity = properties.iter().filter(|(name, value)| tells(name, value));
    let mut identity: Vec<_> = identity.map(|(name, value)| (name.to_lowercase(), written(value))).collect();
    identity.sort();
    let identity = (called.manifest.type_name.as_str(), called.session.root(), identity);
    let secrets = secrets.into_iter().map(|(name, value)| (name.clone(), value.to_redacted_json()));
    StatedSecrets::new(&identity, secrets).map_err(|error| unknown(called, &error))
}

/// Carries out a set of these secrets. What is known of them is right whatever becomes of it: those that it is to replace are
/// forgotten before, as one that fails may have replaced them.
pub(super) fn noted<T>(
    called: &ResourceCall,
    secrets: Option<StatedSecrets>,
    set: impl FnOnce() -> Result<T, Problem>,
) -> Result<T, Problem> {
    let Some(secrets) = secrets else { return set() };
    secrets.forget().map_err(|error| unknown(called, &error))?;
    let done = set()?;
    if let Err(error) = secrets.record() {
        let error = error_chain(&error);
        tracing::warn!(
            "the secrets were set, but stead could not note which: {error}; the next test may report them as different"
        );
    }
    Ok(done)
}

/// The properties with secrets that differ from those that were set last. Of one that was never set this counts only where the
/// resource keeps it to itself.
pub(super) fn unapplied(
    called: &ResourceCall,
    record: &Record,
    actual: &Value,
    stated: &StatedSecrets,
) -> Result<Vec<String>, Problem> {
    let known = stated.known().map_err(|error| unknown(called, &error))?;
    let Some(Value::Object(desired)) = record.desired.as_deref() else { return Ok(Vec::new()) };
    let rules = rules(called);
    let covers = |name: &str| {
        let places = called.manifest.secret_places.as_ref().filter(|_| called.manifest.is_powershell());
        places.is_some_and(|places| places.has(name))
    };
    let found = |name: &str| rules.member(actual.as_object()?, name);
    let differs = |name: &String, known: Known| {
        let is_unread =
            || desired.get(name).is_some_and(|wanted| covers(name) || is_kept_back(wanted, found(name), &rules));
        match known {
            Known::SetLast => false,
            // Two that differ in case alone count as equal in a state.
            Known::Other if called.manifest.is_powershell() => true,
            Known::Other | Known::Nothing => is_unread(),
        }
    };
    Ok(known.into_iter().filter(|(name, known)| differs(name, *known)).map(|(name, _)| name).collect())
}

/// Returns whether a state leaves out a secret that is desired.
fn is_kept_back(wanted: &Value, actual: Option<&Value>, rules: &Rules<'_>) -> bool {
    match (wanted, actual) {
        (Value::Sealed(_), actual) => matches!(actual, None | Some(Value::Null)),
        (Value::Object(wanted), actual) => {
            let of = |name: &str| rules.member(actual?.as_object()?, name);
            wanted.iter().any(|(name, value)| is_kept_back(value, of(name), rules))
        }
        (Value::Array(_), actual) => wanted.has_sealed() && !actual.is_some_and(Value::has_sealed),
        _ => false,
    }
}

/// Why nothing is known of secrets.
fn unknown(called: &ResourceCall, error: &StoreError) -> Problem {
    let error = error_chain(error);
    let message = format!("stead cannot tell whether the secrets changed since they were last set: {error}");
    Problem::new(Problem::FAILED, message).with("type", called.manifest.type_name.as_str())
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
