//! Numbers and texts as parts of keys.

use std::fmt::Write as _;

use super::Case;
use crate::value::Number;

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
