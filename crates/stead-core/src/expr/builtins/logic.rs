//! Truth and comparison.

use std::cmp::Ordering;

use super::super::builtin::{Arguments, Outcome, Wrong};
use crate::value::{Number, Value};

pub(super) fn yes(_: Arguments) -> Outcome {
    Ok(true.into())
}

pub(super) fn no(_: Arguments) -> Outcome {
    Ok(false.into())
}

pub(super) fn not(mut arguments: Arguments) -> Outcome {
    Ok((arguments.any() == Value::Bool(false)).into())
}

pub(super) fn boolean(mut arguments: Arguments) -> Outcome {
    match arguments.any() {
        Value::Number(number) => Ok((compare(&number, &0.into()) != Some(Ordering::Equal)).into()),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Ok(true.into()),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Ok(false.into()),
        _ => Err(Wrong::value(0, "unable to parse string to bool: it is neither 'true' nor 'false'")),
    }
}

pub(super) fn equals(mut arguments: Arguments) -> Outcome {
    Ok(same(&arguments.any(), &arguments.any()).into())
}

pub(super) fn greater(arguments: Arguments) -> Outcome {
    order(arguments, Ordering::is_gt)
}

pub(super) fn greater_or_equals(arguments: Arguments) -> Outcome {
    order(arguments, Ordering::is_ge)
}

pub(super) fn less(arguments: Arguments) -> Outcome {
    order(arguments, Ordering::is_lt)
}

pub(super) fn less_or_equals(arguments: Arguments) -> Outcome {
    order(arguments, Ordering::is_le)
}

fn order(mut arguments: Arguments, verdict: fn(Ordering) -> bool) -> Outcome {
    match (arguments.any(), arguments.any()) {
        (Value::Number(left), Value::Number(right)) => Ok(compare(&left, &right).is_some_and(verdict).into()),
        (Value::String(left), Value::String(right)) => Ok(verdict(left.cmp(&right)).into()),
        _ => {
            let message = "Arguments must be of the same type (both numbers or both strings)";
            Err(Wrong { argument: None, ..Wrong::kind(0, message) })
        }
    }
}

/// Whether two values are the same: numbers by what they count, objects without regard to the order of their members.
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

/// Compares without rounding: an integer and a fraction are equal only if they are.
fn compare(left: &Number, right: &Number) -> Option<Ordering> {
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

#[expect(clippy::cast_possible_truncation, reason = "truncation is the point, and the range is checked before it")]
fn against(integer: i128, float: f64) -> Option<Ordering> {
    // Every integer of 64 bits lies within, so that the conversion below is exact but for the fraction.
    const BEYOND: f64 = 1e30;
    if float.is_nan() {
        return None;
    }
    if float.abs() >= BEYOND {
        return Some(if float > 0.0 { Ordering::Less } else { Ordering::Greater });
    }
    let fraction = float - float.trunc();
    let by_fraction = 0.0_f64.partial_cmp(&fraction)?;
    Some(integer.cmp(&(float.trunc() as i128)).then(by_fraction))
}
