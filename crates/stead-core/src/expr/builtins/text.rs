//! Text.

use std::path::PathBuf;

use super::super::builtin::{Arguments, BuiltinResult, Wrong};
use crate::value::Value;

/// The longest text that one function makes, in bytes.
pub(super) const MAX_TEXT: usize = 32 << 20;

pub(super) fn ends_with(mut arguments: Arguments) -> BuiltinResult {
    Ok(arguments.text()?.ends_with(&arguments.text()?).into())
}

pub(super) fn starts_with(mut arguments: Arguments) -> BuiltinResult {
    Ok(arguments.text()?.starts_with(&arguments.text()?).into())
}

pub(super) fn to_lower(mut arguments: Arguments) -> BuiltinResult {
    Ok(arguments.text()?.to_lowercase().into())
}

pub(super) fn to_upper(mut arguments: Arguments) -> BuiltinResult {
    Ok(arguments.text()?.to_uppercase().into())
}

pub(super) fn trim(mut arguments: Arguments) -> BuiltinResult {
    Ok(arguments.text()?.trim().into())
}

pub(super) fn string(mut arguments: Arguments) -> BuiltinResult {
    match arguments.any() {
        Value::String(text) => Ok(text.into()),
        other => Ok(to_text(&other)?.into()),
    }
}

/// A value as text: strings as they are, everything else as JSON.
///
/// Assumptions: no part of it is sealed; a sealed part is an error that says so.
pub(super) fn to_text(value: &Value) -> Result<String, Wrong> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        _ if value.has_sealed() => Err(Wrong::kind(0, "a secret cannot be made into text here")),
        // Nothing is left that the redaction could replace.
        _ => Ok(value.to_redacted_json().to_string()),
    }
}

pub(super) fn join(mut arguments: Arguments) -> BuiltinResult {
    let (items, delimiter) = (arguments.array()?, arguments.text()?);
    let mut joined = String::new();
    for (at, item) in items.iter().enumerate() {
        match item {
            Value::Null => return Err(Wrong::kind(0, "Array elements cannot be null")),
            Value::Array(_) => return Err(Wrong::kind(0, "Array elements cannot be arrays")),
            Value::Object(_) => return Err(Wrong::kind(0, "Array elements cannot be objects")),
            _ => {}
        }
        if at > 0 {
            joined.push_str(&delimiter);
        }
        joined.push_str(&to_text(item)?);
        if joined.len() > MAX_TEXT {
            return Err(Wrong::limit());
        }
    }
    Ok(joined.into())
}

/// Follows the rules of the system for joining paths: a part that is absolute replaces those before it.
pub(super) fn path(mut arguments: Arguments) -> BuiltinResult {
    let first = arguments.text()?;
    let is_drive = first.len() == 2 && first.ends_with(':');
    // `C:` alone is relative to a directory that nobody sees.
    let mut path = PathBuf::from(if is_drive { first + std::path::MAIN_SEPARATOR_STR } else { first });
    while arguments.left() > 0 {
        path.push(arguments.text()?);
    }
    Ok(path.to_string_lossy().into_owned().into())
}

/// Positions and lengths count characters.
pub(super) fn substring(mut arguments: Arguments) -> BuiltinResult {
    let (text, start) = (arguments.text()?, arguments.integer()?);
    let length = if arguments.left() > 0 { Some(arguments.integer()?) } else { None };
    let start = usize::try_from(start).map_err(|_| Wrong::value(1, "Start index cannot be negative"))?;
    let rest = text.chars().count().checked_sub(start);
    let rest = rest.ok_or_else(|| Wrong::value(1, "Start index is beyond the end of the string"))?;
    let length = match length {
        None => rest,
        Some(length) => usize::try_from(length).map_err(|_| Wrong::value(2, "Length cannot be negative"))?,
    };
    if length > rest {
        return Err(Wrong::value(2, "Length extends beyond the end of the string"));
    }
    Ok(text.chars().skip(start).take(length).collect::<String>().into())
}
