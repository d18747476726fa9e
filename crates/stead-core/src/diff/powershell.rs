//! Equality as PowerShell has it: of what it makes of a value, and not of how that is written.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::Case;
use super::exact::{Exactly, string_key};
use crate::value::Value;

/// The key of null and of what is empty.
const NOTHING: &str = "n";

/// Text that is the same for two values exactly if they are equal; `None` when a part is sealed.
///
/// Null, no text and nothing in an array or object are the same. So are a value and an array of it, a number or truth value and
/// its text, text in any case and with spaces around it, and a point in time in any offset; one without is taken for UTC.
pub(super) fn key(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => NOTHING.to_owned(),
        Value::Bool(truth) => text_key(&truth.to_string()),
        Value::Number(number) => match Exactly::of(number) {
            Exactly::Integer(integer) => text_key(&integer.to_string()),
            Exactly::Fraction(bits) => text_key(&f64::from_bits(bits).to_string()),
        },
        Value::String(text) => text_key(text),
        Value::Array(items) => {
            let mut keys = items.iter().map(key).collect::<Option<Vec<_>>>()?;
            keys.sort_unstable();
            match keys.as_slice() {
                [] => NOTHING.to_owned(),
                [only] => only.clone(),
                keys => format!("[{}]", keys.join(",")),
            }
        }
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| Some((string_key(name, Case::Ignored), key(value)?));
            let mut keys = members.iter().map(member).collect::<Option<Vec<_>>>()?;
            keys.retain(|(_, key)| key != NOTHING);
            keys.sort_unstable();
            let keys: Vec<String> = keys.into_iter().map(|(name, key)| format!("{name}:{key}")).collect();
            if keys.is_empty() { NOTHING.to_owned() } else { format!("{{{}}}", keys.join(",")) }
        }
        Value::Sealed(_) => return None,
    })
}

/// Returns whether there is nothing in a value.
pub(super) fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => trimmed(text).is_empty(),
        Value::Array(items) => matches!(flat(items), []) || matches!(flat(items), [only] if is_nothing(only)),
        Value::Object(members) => members.values().all(is_nothing),
        Value::Bool(_) | Value::Number(_) | Value::Sealed(_) => false,
    }
}

/// The elements of an array that is not the only element of another one.
pub(super) fn flat(mut items: &[Value]) -> &[Value] {
    while let [Value::Array(inner)] = items {
        items = inner;
    }
    items
}

fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

fn text_key(text: &str) -> String {
    let text = trimmed(text);
    match instant(text) {
        _ if text.is_empty() => NOTHING.to_owned(),
        Some(instant) => format!("@{}", instant.as_nanosecond()),
        None => string_key(text, Case::Ignored),
    }
}

/// A day and a time of it, as JSON has them.
fn instant(text: &str) -> Option<Timestamp> {
    let is_dated = matches!(text.as_bytes(), [b'0'..=b'9', _, _, _, b'-', _, _, b'-', _, _, b'T' | b't', _, ..]);
    if !is_dated {
        return None;
    }
    let text = text.strip_suffix(" UTC").unwrap_or(text);
    let local = || Some(text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp());
    text.parse().ok().or_else(local)
}
