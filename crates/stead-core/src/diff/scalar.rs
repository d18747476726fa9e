//! Values that are not put together from others, and keys that are equal when values are.

use super::exact::{Exactly, string_key};
use super::{Case, powershell};
use crate::value::Value;

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
