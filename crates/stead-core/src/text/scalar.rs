//! The meaning of a plain scalar: the rules of YAML 1.2's core schema as DSC v3 applies them.

use super::Kind;
use crate::value::Number;

/// The value of unquoted text.
pub(super) enum Plain {
    /// A value.
    Value(Kind),
    /// An integer beyond 64 bits.
    Unkept,
    /// Infinity, or not-a-number.
    NotFinite,
    /// Text, although it has the form of a number.
    TooLarge,
    /// Text.
    Text,
}

/// Reads unquoted text.
pub(super) fn plain(text: &str) -> Plain {
    // Nearly all text starts with a letter that starts neither a number nor a word of the schema.
    match text.as_bytes().first() {
        None => Plain::Value(Kind::Null),
        Some(b'~' | b'n' | b'N') if is_null(text) => Plain::Value(Kind::Null),
        Some(b't' | b'T' | b'f' | b'F') => boolean(text).map_or(Plain::Text, |truth| Plain::Value(Kind::Bool(truth))),
        Some(b'0'..=b'9' | b'+' | b'-' | b'.') => number(text),
        Some(_) => Plain::Text,
    }
}

/// Returns whether it is one of the forms of null.
pub(super) fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// The truth value, if it is one of its forms.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// Reads text that may be a number.
pub(super) fn number(text: &str) -> Plain {
    match integer(text) {
        Some(Integer::Kept(number)) => return Plain::Value(Kind::Number(number)),
        Some(Integer::Beyond) => return Plain::Unkept,
        None if has_leading_zero(text) => return Plain::Text,
        None => {}
    }
    if is_special_float(text) {
        return Plain::NotFinite;
    }
    match float(text) {
        Some(value) => Number::from_f64(value).map_or(Plain::TooLarge, |number| Plain::Value(Kind::Number(number))),
        None => Plain::Text,
    }
}

/// The number as floating point, if it has the form of one; infinite when it is too large.
pub(super) fn float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    // Rust also reads the words `inf`, `infinity` and `nan`, which are text in YAML.
    let numeric = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    if numeric && !has_leading_zero(text) { text.parse().ok() } else { None }
}

enum Integer {
    Kept(Number),
    Beyond,
}

fn integer(text: &str) -> Option<Integer> {
    let negative = text.starts_with('-');
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (digits, radix) = match unsigned.get(..2) {
        Some("0x") => (unsigned.get(2..)?, 16),
        Some("0o") => (unsigned.get(2..)?, 8),
        Some("0b") => (unsigned.get(2..)?, 2),
        _ if has_leading_zero(text) => return None,
        _ => (unsigned, 10),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok();
    let kept = match magnitude {
        Some(magnitude) if negative => 0i64.checked_sub_unsigned(magnitude).map(Number::from),
        magnitude => magnitude.map(Number::from),
    };
    Some(kept.map_or(Integer::Beyond, Integer::Kept))
}

/// `0644` is text: YAML 1.2 gives leading zeros no meaning, and file modes and telephone numbers need them.
fn has_leading_zero(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_special_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN")
}
