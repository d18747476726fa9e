//! Wire formats: the JSON that DSC v3 prints, made from what the engine works with, and only here.

pub mod document;
pub mod nested;
pub mod results;

use serde_json::{Value as Json, json};

use crate::expr::{Builtin, ValueKind};

/// Returns the object that `function list` prints of a function.
pub fn function_definition(function: &Builtin) -> Json {
    let words = |kinds: &[ValueKind]| kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>();
    json!({
        "category": function.categories,
        "name": function.name,
        "description": function.description,
        "syntax": function.syntax,
        "constraints": function.constraints,
        "minArgs": function.min,
        // DSC v3 has no word for "any number" but the largest that it can count to.
        "maxArgs": function.max.map_or(u64::MAX, |max| max as u64),
        "acceptedArgOrderedTypes": function.accepts.iter().map(|kinds| words(kinds)).collect::<Vec<_>>(),
        "remainingArgAcceptedTypes": function.rest.map(words),
        "returnTypes": words(function.returns),
    })
}
