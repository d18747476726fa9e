//! Operators on values that are there: numbers, bits and comparisons.

use crate::manifest::value::Value;

use super::{Evaluate, insert, too_large};

/// A number as far as calculations need it.
#[derive(Clone, Copy)]
pub(super) enum Amount {
    Whole(i128),
    Decimal(i128, u32),
    Real(f64),
}

impl Amount {
    pub(super) fn value(self) -> Value {
        match self {
            Self::Whole(value) => narrow(value),
            Self::Decimal(mantissa, scale) => Value::Decimal(mantissa, scale),
            Self::Real(value) => Value::Double(value),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a double holds what it can, as in PowerShell")]
    pub(super) fn real(self) -> f64 {
        match self {
            Self::Whole(value) => value as f64,
            Self::Decimal(mantissa, scale) => mantissa as f64 / 10_f64.powi(scale.try_into().unwrap_or(0)),
            Self::Real(value) => value,
        }
    }
}

/// The narrowest type that a result has: an `int`, a `long`, else a `double`.
pub(super) fn narrow(value: i128) -> Value {
    if i32::try_from(value).is_ok() {
        return Value::int(value);
    }
    match i64::try_from(value) {
        Ok(_) => Value::Integer { value, bits: 64, signed: true },
        Err(_) => Value::Double(Amount::Whole(value).real()),
    }
}

/// A result that keeps the type of what it was made of, where it fits.
pub(super) fn whole(value: i128, like: &Value) -> Value {
    match like {
        Value::Integer { bits: 64, signed: true, .. } if i64::try_from(value).is_ok() => {
            Value::Integer { value, bits: 64, signed: true }
        }
        _ => narrow(value),
    }
}

pub(super) fn number(value: &Value) -> Evaluate<Amount> {
    Ok(match value {
        Value::Null => Amount::Whole(0),
        Value::Boolean(value) => Amount::Whole((*value).into()),
        Value::Integer { value, .. } => Amount::Whole(*value),
        Value::Decimal(mantissa, scale) => Amount::Decimal(*mantissa, *scale),
        Value::Double(value) => Amount::Real(*value),
        Value::Character(character) => Amount::Whole(u32::from(*character).into()),
        Value::Text(text) | Value::Big(text) => return parse_number(text),
        Value::Date(_) | Value::Type(_) | Value::List(_) | Value::Table(_) | Value::Opaque { .. } => {
            return Err(format!("'{}' is not a number", value.to_text()));
        }
    })
}

pub(super) fn parse_number(text: &str) -> Evaluate<Amount> {
    let text = text.trim();
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let parsed = match crate::token::Number::parse(digits).map(Value::from) {
        _ if digits.is_empty() => Some(Amount::Whole(0)),
        Some(value) if !matches!(value, Value::Big(_)) => Some(number(&value)?),
        _ => None,
    };
    match parsed.ok_or_else(|| format!("'{text}' is not a number"))? {
        Amount::Whole(value) if negative => Ok(Amount::Whole(-value)),
        Amount::Decimal(mantissa, scale) if negative => Ok(Amount::Decimal(-mantissa, scale)),
        Amount::Real(value) if negative => Ok(Amount::Real(-value)),
        amount => Ok(amount),
    }
}

/// An integer; halves are rounded to the even one.
pub(super) fn integer(value: &Value) -> Evaluate<i128> {
    match number(value)? {
        Amount::Whole(value) => Ok(value),
        #[expect(clippy::cast_possible_truncation, reason = "what is too large is refused by its type")]
        amount => Ok(amount.real().round_ties_even() as i128),
    }
}

pub(super) fn add(left: Value, right: Value) -> Evaluate<Value> {
    match (left, right) {
        (Value::Null, right) => Ok(right),
        (Value::Text(left), right) => Ok(Value::Text(left + &right.to_text())),
        (Value::Character(left), right) => Ok(Value::Text(format!("{left}{}", right.to_text()))),
        (Value::List(mut left), right) => {
            match right {
                Value::List(right) => left.extend(right),
                right => left.push(right),
            }
            Ok(Value::List(left))
        }
        (Value::Table(mut left), Value::Table(right)) => {
            for (key, value) in right {
                insert(&mut left, key, value)?;
            }
            Ok(Value::Table(left))
        }
        (left, right) => calculate("+", &left, &right),
    }
}

/// The most that `*` repeats a text or a list to.
const LARGEST: usize = 1 << 20;

pub(super) fn calculate(operator: &str, left: &Value, right: &Value) -> Evaluate<Value> {
    if operator == "*" && matches!(left, Value::Text(_) | Value::List(_)) {
        return repeat(left, integer(right)?);
    }
    match (number(left)?, number(right)?) {
        (Amount::Whole(left), Amount::Whole(right)) => exact(operator, left, right),
        (left, right) => {
            let (left, right) = (left.real(), right.real());
            Ok(Value::Double(match operator {
                "+" => left + right,
                "-" => left - right,
                "*" => left * right,
                "/" => left / right,
                _ => left % right,
            }))
        }
    }
}

fn exact(operator: &str, left: i128, right: i128) -> Evaluate<Value> {
    let zero = || "division by zero".to_owned();
    let value = match operator {
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "%" => return left.checked_rem(right).map(narrow).ok_or_else(zero),
        _ if right == 0 => return Err(zero()),
        _ if left % right == 0 => left.checked_div(right),
        _ => return Ok(Value::Double(Amount::Whole(left).real() / Amount::Whole(right).real())),
    };
    value.map(narrow).ok_or_else(|| "the number is too large".to_owned())
}

fn repeat(value: &Value, count: i128) -> Evaluate<Value> {
    let count = usize::try_from(count).map_err(|_| "the count is negative".to_owned())?;
    let fits = |length: usize| length.checked_mul(count).is_some_and(|length| length <= LARGEST);
    match value {
        Value::Text(text) if fits(text.len()) => Ok(Value::Text(text.repeat(count))),
        Value::List(values) if fits(value.weight().max(values.len())) => {
            Ok(Value::List(values.iter().cycle().take(values.len() * count).cloned().collect()))
        }
        _ => Err(too_large()),
    }
}

pub(super) fn bitwise(operator: &str, left: &Value, right: &Value) -> Evaluate<Value> {
    let (number, right) = (integer(left)?, integer(right)?);
    let bits = u32::try_from(right & 31).unwrap_or(0);
    Ok(whole(
        match operator {
            "band" => number & right,
            "bor" => number | right,
            "bxor" => number ^ right,
            "shl" => number << bits,
            _ => number >> bits,
        },
        left,
    ))
}

/// An operator that compares; with a list on its left, most of them select.
pub(super) fn compare(operator: &str, left: Value, right: &Value) -> Evaluate<Value> {
    let (bare, cased) = match operator.strip_prefix(['c', 'i']) {
        Some(bare) if operator != "contains" && operator != "in" => (bare, operator.starts_with('c')),
        _ => (operator, false),
    };
    let contains = |all: &Value, one: &Value| match all {
        Value::List(values) => values.iter().any(|value| equal(value, one, cased)),
        other => equal(other, one, cased),
    };
    match bare {
        "contains" => Ok(Value::Boolean(contains(&left, right))),
        "notcontains" => Ok(Value::Boolean(!contains(&left, right))),
        "in" => Ok(Value::Boolean(contains(right, &left))),
        "notin" => Ok(Value::Boolean(!contains(right, &left))),
        _ => match left {
            Value::List(values) => {
                let mut kept = Vec::new();
                for value in values {
                    if holds(bare, &value, right, cased)? {
                        kept.push(value);
                    }
                }
                Ok(Value::List(kept))
            }
            left => holds(bare, &left, right, cased).map(Value::Boolean),
        },
    }
}

fn holds(operator: &str, left: &Value, right: &Value, cased: bool) -> Evaluate<bool> {
    Ok(match operator {
        "eq" => equal(left, right, cased),
        "ne" => !equal(left, right, cased),
        "like" => crate::manifest::wildcard::matches(&right.to_text(), &left.to_text(), cased),
        "notlike" => !crate::manifest::wildcard::matches(&right.to_text(), &left.to_text(), cased),
        _ => {
            let order = match left {
                Value::Text(left) => crate::manifest::collation::order(left, &right.to_text(), cased)?,
                _ => number(left)?.real().total_cmp(&number(right)?.real()),
            };
            match operator {
                "gt" => order.is_gt(),
                "ge" => order.is_ge(),
                "lt" => order.is_lt(),
                _ => order.is_le(),
            }
        }
    })
}

pub(super) fn alike(left: &str, right: &str, cased: bool) -> bool {
    if cased {
        left == right
    } else if left.is_ascii() && right.is_ascii() {
        left.eq_ignore_ascii_case(right)
    } else {
        left.to_lowercase() == right.to_lowercase()
    }
}

/// Returns whether two values are equal, the second converted to the type of the first.
pub(super) fn equal(left: &Value, right: &Value, cased: bool) -> bool {
    match (left, right) {
        (Value::Null, right) => *right == Value::Null,
        (Value::Boolean(left), right) => *left == right.is_true(),
        (Value::Text(_), Value::Null) => false,
        (Value::Text(left), Value::Text(right)) => alike(left, right, cased),
        (Value::Text(left), right) => alike(left, &right.to_text(), cased),
        (Value::Integer { value: left, .. }, Value::Integer { value: right, .. }) => left == right,
        (Value::Integer { .. } | Value::Decimal(..) | Value::Double(_), right) if *right != Value::Null => {
            let amounts = number(left).and_then(|left| Ok((left.real(), number(right)?.real())));
            amounts.is_ok_and(|(left, right)| left.total_cmp(&right).is_eq())
        }
        (left, right) => left == right,
    }
}
