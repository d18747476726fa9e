//! Objects, and JSON.

use super::super::builtin::{Arguments, BuiltinResult, Wrong};
use crate::value::{Object, Value};

pub(super) fn null(_: Arguments) -> Value {
    Value::Null
}

pub(super) fn create(mut arguments: Arguments) -> BuiltinResult {
    if !arguments.left().is_multiple_of(2) {
        let message = "Arguments must be provided in key-value pairs";
        return Err(Wrong { argument: None, ..Wrong::value(0, message) });
    }
    let mut members = Object::with_capacity(arguments.left() / 2);
    for position in (0..arguments.left()).step_by(2) {
        let Value::String(key) = arguments.any() else {
            return Err(Wrong::kind(position, "Object keys must be strings"));
        };
        members.insert(key, arguments.any());
    }
    Ok(Value::Object(members))
}

pub(super) fn items(mut arguments: Arguments) -> BuiltinResult {
    let item = |(key, value): (String, Value)| {
        Value::Object(Object::from_iter([("key".to_owned(), key.into()), ("value".to_owned(), value)]))
    };
    Ok(Value::Array(arguments.object()?.into_iter().map(item).collect()))
}

pub(super) fn keys(mut arguments: Arguments) -> BuiltinResult {
    Ok(Value::Array(arguments.object()?.into_iter().map(|(name, _)| Value::String(name)).collect()))
}

pub(super) fn shallow_merge(mut arguments: Arguments) -> BuiltinResult {
    let mut merged = Object::new();
    for each in arguments.array()? {
        let Value::Object(members) = each else {
            return Err(Wrong::kind(0, "All elements of the array must be objects"));
        };
        merged.extend(members);
    }
    Ok(Value::Object(merged))
}

pub(super) fn json(mut arguments: Arguments) -> BuiltinResult {
    match serde_json::from_str::<serde_json::Value>(&arguments.text()?) {
        Ok(json) => Ok(json.into()),
        Err(error) => Err(Wrong::value(0, format!("Invalid JSON string: {error}"))),
    }
}
