//! Values that are not put together from others, and keys that are equal when values are.

use std::fmt::Write as _;

use super::{Case, powershell};
use crate::value::{Number, Value};

/// Returns whether two values are equal, when not both are objects or both arrays.
pub(super) fn equal(one: &Value, other: &Value, case: Case) -> bool {
    match (one, other) {
        (Value::Sealed(_), _) | (_, Value::Sealed(_)) => one == other,
        _ if case == Case::PowerShell => powershell::key(one).is_some_and(|key| powershell::key(other) == Some(key)),
        (Value::Number(one), Value::Number(other)) => Exactly::of(one) == Exactly::of(other),
        (Value::String(one), Value::String(other)) => match case {
            Case::Exact | Case::IgnoredInNames => one == other,
            Case::Ignored | Case::PowerShell => one == other || one.to_lowercase() == other.to_lowercase(),
        },
        _ => one == other,
    }
}

/// A number such that equal numbers are equal, however they are written: `1`, `1.0`, `-0.0` and `0`.
#[derive(PartialEq, Eq)]
pub(super) enum Exactly {
    Integer(i128),
    Fraction(u64),
}

impl Exactly {
    pub(super) fn of(number: &Number) -> Self {
        if let Some(integer) = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from)) {
            return Self::Integer(integer);
        }
        let float = number.as_f64().unwrap_or(f64::NAN);
        // Below 2^126 a float without a fraction is an integer that `i128` holds exactly.
        if float.fract() == 0.0 && float.abs() < 8.5e37 {
            #[expect(clippy::cast_possible_truncation, reason = "it is integral and in range")]
            return Self::Integer(float as i128);
        }
        Self::Fraction(float.to_bits())
    }
}

/// Text that is the same for two values exactly if they are equal; `None` when a part is sealed.
pub(super) fn key(value: &Value, case: Case) -> Option<String> {
    if case == Case::PowerShell {
        return powershell::key(value);
    }
    Some(match value {
        Value::Null => "n".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => match Exactly::of(number) {
            Exactly::Integer(integer) => integer.to_string(),
            Exactly::Fraction(bits) => format!("x{bits}"),
        },
        Value::String(text) => string_key(text, case),
        Value::Array(items) => {
            let mut keys = items.iter().map(|item| key(item, case)).collect::<Option<Vec<_>>>()?;
            keys.sort_unstable();
            format!("[{}]", keys.join(","))
        }
        Value::Object(members) => {
            let names = if case == Case::Exact { Case::Exact } else { Case::Ignored };
            let member =
                |(name, value): (&String, &Value)| Some(format!("{}:{}", string_key(name, names), key(value, case)?));
            let mut keys = members.iter().map(member).collect::<Option<Vec<_>>>()?;
            keys.sort_unstable();
            format!("{{{}}}", keys.join(","))
        }
        Value::Sealed(_) => return None,
    })
}

/// The length in front keeps text from looking like anything else.
pub(super) fn string_key(text: &str, case: Case) -> String {
    let text = match case {
        Case::Exact | Case::IgnoredInNames => std::borrow::Cow::Borrowed(text),
        Case::Ignored | Case::PowerShell => std::borrow::Cow::Owned(text.to_lowercase()),
    };
    let mut key = String::with_capacity(text.len() + 4);
    // Writing to a string cannot fail.
    let _ = write!(key, "\"{}\"", text.len());
    key.push_str(&text);
    key
}
