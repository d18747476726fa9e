//! Integers of 64 bits: a result that does not fit is an error.

use super::super::builtin::{Arguments, BuiltinResult, Wrong};
use crate::value::{Number, Value};

pub(super) fn add(arguments: Arguments) -> BuiltinResult {
    arithmetic(arguments, "add", i64::checked_add)
}

pub(super) fn sub(arguments: Arguments) -> BuiltinResult {
    arithmetic(arguments, "sub", i64::checked_sub)
}

pub(super) fn mul(arguments: Arguments) -> BuiltinResult {
    arithmetic(arguments, "mul", i64::checked_mul)
}

pub(super) fn div(arguments: Arguments) -> BuiltinResult {
    arithmetic(arguments, "div", |left, right| left.checked_div(nonzero(right)?))
}

pub(super) fn modulo(arguments: Arguments) -> BuiltinResult {
    // The remainder of the smallest integer by -1 is 0, although its quotient does not fit.
    arithmetic(arguments, "mod", |left, right| Some(left.wrapping_rem(nonzero(right)?)))
}

fn nonzero(divisor: i64) -> Option<i64> {
    (divisor != 0).then_some(divisor)
}

fn arithmetic(mut arguments: Arguments, name: &str, compute: fn(i64, i64) -> Option<i64>) -> BuiltinResult {
    let (left, right) = (arguments.integer()?, arguments.integer()?);
    compute(left, right).map(Value::from).ok_or_else(|| match name {
        "div" | "mod" if right == 0 => Wrong::arithmetic("Cannot divide by zero"),
        _ => Wrong::arithmetic("the result overflows the 64 bits of an integer")
            .with_help(format!("{name}({left}, {right}) has no result")),
    })
}

pub(super) fn max(arguments: Arguments) -> BuiltinResult {
    extreme(arguments, i64::max)
}

pub(super) fn min(arguments: Arguments) -> BuiltinResult {
    extreme(arguments, i64::min)
}

fn extreme(mut arguments: Arguments, choose: fn(i64, i64) -> i64) -> BuiltinResult {
    let not_integers = || Wrong::kind(0, "Input must only contain integers");
    let items = match (arguments.left(), arguments.any()) {
        (1, Value::Array(items)) => items,
        (_, first) => std::iter::once(first).chain(arguments).collect(),
    };
    let mut best: Option<i64> = None;
    for item in items {
        let integer = item.as_i64().ok_or_else(not_integers)?;
        best = Some(best.map_or(integer, |best| choose(best, integer)));
    }
    best.map(Value::from).ok_or_else(|| Wrong::value(0, "Array cannot be empty"))
}

pub(super) fn integer(mut arguments: Arguments) -> BuiltinResult {
    match arguments.any() {
        Value::Number(number) => match number.as_i64() {
            Some(integer) => Ok(integer.into()),
            None => truncated(&number),
        },
        Value::String(text) => match text.trim().parse::<i64>() {
            Ok(integer) => Ok(integer.into()),
            // Not through the type of a float for what is an integer: it would be rounded.
            Err(_) if is_integer(text.trim()) => Err(too_large()),
            Err(_) => {
                let unreadable = || Wrong::value(0, "unable to parse string to int");
                let float = text.trim().parse::<f64>().map_err(|_| unreadable())?;
                truncated(&Number::from_f64(float).ok_or_else(unreadable)?)
            }
        },
        _ => Err(Wrong::kind(0, "an integer is made from a string or a number")),
    }
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn too_large() -> Wrong {
    Wrong::arithmetic("the number does not fit into the 64 bits of an integer")
}

#[expect(clippy::cast_possible_truncation, reason = "truncation is the point, and the range is checked before it")]
fn truncated(number: &Number) -> BuiltinResult {
    // The first float above the range: 2 to the power of 63 is one exactly.
    const END: f64 = 9_223_372_036_854_775_808.0;
    match number.as_f64() {
        Some(float) if (-END..END).contains(&float) => Ok((float as i64).into()),
        _ => Err(too_large()),
    }
}
