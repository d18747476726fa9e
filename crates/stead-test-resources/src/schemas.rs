//! Schemas that are printed by a program: `dsctest schema -s NAME`.

use serde_json::json;

use crate::{Args, Lines};

pub(crate) fn schema(args: &Args) -> Lines {
    let properties = match args.option("-s") {
        Some("what-if") => json!({"executionType": {"type": "string", "enum": ["Actual", "WhatIf"]}}),
        Some("what-if-delete") => json!({"_exist": {"type": "boolean"}, "_metadata": {"type": "object"}}),
        Some("people-filter") => json!({"name": {"type": "string", "pattern": "^[A-Za-z*]+$"}}),
        _ => return Lines::new(),
    };
    vec![json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    })]
}
