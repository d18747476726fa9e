//! Truth and comparison.

use std::cmp::Ordering;

use super::super::builtin::{Arguments, BuiltinResult, Wrong};
use crate::value::{Number, Value};

pub(super) fn yes(_: Arguments) -> Value {
    true.into()
}

pub(super) fn no(_: Arguments) -> Value {
    false.into()
}

pub(super) fn not(mut arguments: Arguments) -> Value {
    (arguments.any() == Value::Bool(false)).into()
}

pub(super) fn boolean(mut arguments: Arguments) -> BuiltinResult {
    match arguments.any() {
        Value::Number(number) => Ok((compare(&number, &0.into()) != Some(Ordering::Equal)).into()),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Ok(true.into()),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Ok(false.into()),
        _ => Err(Wrong::value(0, "unable to parse string to bool: it is neither 'true' nor 'false'")),
    }
}

pub(super) fn equals(mut arguments: Arguments) -> Value {
    same(&arguments.any(), &arguments.any()).into()
}

pub(super) fn greater(arguments: Arguments) -> BuiltinResult {
    order(arguments, Ordering::is_gt)
}

pub(super) fn greater_or_equals(arguments: Arguments) -> BuiltinResult {
    order(arguments, Ordering::is_ge)
}

pub(super) fn less(arguments: Arguments) -> BuiltinResult {
    order(arguments, Ordering::is_lt)
}

pub(super) fn less_or_equals(arguments: Arguments) -> BuiltinResult {
    order(arguments, Ordering::is_le)
}

fn order(mut arguments: Arguments, verdict: fn(Ordering) -> bool) -> BuiltinResult {
    match (arguments.any(), arguments.any()) {
        (Value::Number(left), Value::Number(right)) => Ok(compare(&left, &right).is_some_and(verdict).into()),
        (Value::String(left), Value::String(right)) => Ok(verdict(left.cmp(&right)).into()),
        (left, right) => {
            let message = "Arguments must be of the same type (both numbers or both strings)";
            let wrong = Wrong { argument: None, ..Wrong::kind(0, message) };
            Err(match (&left, &right) {
                (Value::String(_), _) => wrong.with_help("convert the first one with int()"),
                (_, Value::String(_)) => wrong.with_help("convert the second one with int()"),
                _ => wrong,
            })
        }
    }
}

/// Returns whether two values are the same: numbers by what they count, objects without regard to the order of their
/// members.
pub(super) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare(left, right) == Some(Ordering::Equal),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, value)| right.get(key).is_some_and(|other| same(value, other)))
        }
        _ => left == right,
    }
}

/// Text that two values share exactly when they are the same, so that many can be compared with a set.
pub(super) fn identity(value: &Value) -> String {
    let mut text = String::new();
    identify(value, &mut text);
    text
}

fn identify(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push('~'),
        Value::Bool(truth) => out.push(if *truth { 'T' } else { 'F' }),
        Value::Number(number) => {
            let exact = whole(number).or_else(|| number.as_f64().and_then(whole_float));
            out.push_str(&exact.map_or_else(|| number.to_string(), |exact| exact.to_string()));
        }
        Value::String(text) => quote(text, out),
        Value::Array(items) => {
            out.push('[');
            for item in items {
                identify(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (key, value) in sorted {
                quote(key, out);
                identify(value, out);
            }
            out.push('}');
        }
        // Whoever asks sees the whole of his arguments, and is not asked as long as any part is sealed.
        Value::Sealed(_) => out.push('?'),
    }
}

/// The length in front says where it ends, whatever it contains.
fn quote(text: &str, out: &mut String) {
    out.push_str(&text.len().to_string());
    out.push(':');
    out.push_str(text);
}

/// Compares without rounding: an integer and a fraction are equal only if they are.
pub(super) fn compare(left: &Number, right: &Number) -> Option<Ordering> {
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        (None, None) => left.as_f64()?.partial_cmp(&right.as_f64()?),
        (Some(left), None) => against(left, right.as_f64()?),
        (None, Some(right)) => against(right, left.as_f64()?).map(Ordering::reverse),
    }
}

fn whole(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

/// Every integer of 64 bits lies within, and all floats within have a whole part that fits into 128 bits.
const BEYOND: f64 = 1e30;

#[expect(clippy::cast_possible_truncation, reason = "truncation is the point, and the range is checked before it")]
fn against(integer: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    if float.abs() >= BEYOND {
        return Some(if float > 0.0 { Ordering::Less } else { Ordering::Greater });
    }
    let by_fraction = 0.0_f64.partial_cmp(&float.fract())?;
    Some(integer.cmp(&(float.trunc() as i128)).then(by_fraction))
}

#[expect(clippy::cast_possible_truncation, reason = "the range is checked, and there is no fraction")]
fn whole_float(float: f64) -> Option<i128> {
    let is_whole = float.fract() == 0.0 && float.abs() < BEYOND;
    is_whole.then_some(float as i128)
}
