//! A resource that asks for a restart of the machine when it is set.

use serde_json::{Value as Json, json};

/// The manifest of `Test/Restart`, whose script is called with `get` or `set`.
pub(crate) fn manifest(script: &str) -> Json {
    let method = |name: &str| json!({"executable": "/bin/sh", "args": [script, name], "input": "stdin"});
    let mut set = method("set");
    set["return"] = "state".into();
    json!({
        "$schema": "https://aka.ms/dsc/schemas/v3/bundled/resource/manifest.json",
        "type": "Test/Restart",
        "version": "1.0.0",
        "get": method("get"),
        "set": set,
        "schema": {"embedded": {"type": "object", "properties": {
            "path": {"type": "string"}, "_exist": {"type": "boolean"}, "_restartRequired": {"type": "array"}}}},
    })
}
