//! The tools as callers see them. Their names and arguments are those of DSC v3; `what_if` is an addition.

use serde_json::{Map, Value, json};

/// The instructions to callers.
pub(super) const INSTRUCTIONS: &str = "\
stead brings machines into the state that a document says. Look with get and test first; set and delete change the \
machine that this server runs on, with the rights that it runs with. what_if says what set would change.";

/// The most that a tool does to the machine.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    Looks,
    Changes,
}

/// Every tool, as `tools/list` has it.
pub(super) fn all() -> Vec<Value> {
    invoking().into_iter().chain(looking()).collect()
}

fn invoking() -> [Value; 4] {
    [
        tool(
            "invoke_dsc_config",
            "Carries out a configuration document: get, set, test or export",
            Effect::Changes,
            &[
                ("operation", operation(&["get", "set", "test", "export"]), true),
                ("configuration", text("The document as YAML or JSON"), true),
                ("parameters", text("Its parameters as YAML or JSON"), false),
                ("what_if", what_if(), false),
            ],
        ),
        tool(
            "invoke_dsc_resource",
            "Calls one resource: get, set, test, export or delete",
            Effect::Changes,
            &[
                ("operation", operation(&["get", "set", "test", "export", "delete"]), true),
                ("resource_type", text("The type, such as Microsoft.DSC.Debug/Echo"), true),
                ("properties_json", text("The desired state as JSON; show_dsc_resource has its schema"), false),
                ("what_if", what_if(), false),
            ],
        ),
        tool(
            "invoke_dsc_expression",
            "Evaluates an expression",
            Effect::Looks,
            &[("expression", text("The expression with its brackets: \"[concat('a', 'b')]\""), true)],
        ),
        tool(
            "invoke_dsc_function",
            "Calls one of the functions that expressions can use",
            Effect::Looks,
            &[
                ("function", text("Its name; list_dsc_functions has them"), true),
                ("parameters", json!({ "type": "array", "description": "What it is called with" }), false),
            ],
        ),
    ]
}

fn looking() -> [Value; 4] {
    [
        tool(
            "list_dsc_functions",
            "Lists the functions that expressions can use",
            Effect::Looks,
            &[
                ("function_filter", text("Only those of this name; * stands for any text"), false),
                ("category_filter", texts("Only those of all these categories"), false),
                ("description_filter", text("Only those of this description; * stands for any text"), false),
            ],
        ),
        tool(
            "list_dsc_resources",
            "Lists the resources of this machine",
            Effect::Looks,
            &[("adapter", text("Only those that this adapter carries out; * stands for any text"), false)],
        ),
        tool(
            "show_dsc_resource",
            "Says what a resource can do, and the schema of its properties",
            Effect::Looks,
            &[("type", text("The type, such as Microsoft.DSC.Debug/Echo"), true)],
        ),
        tool(
            "show_dsc_schema",
            "Says what documents, manifests and results look like, as a JSON Schema",
            Effect::Looks,
            &[("type", text("What, such as configuration or resource-manifest"), true)],
        ),
    ]
}

fn tool(name: &str, description: &str, effect: Effect, arguments: &[(&str, Value, bool)]) -> Value {
    let properties: Map<_, _> = arguments.iter().map(|(key, schema, _)| ((*key).to_owned(), schema.clone())).collect();
    let required: Vec<_> = arguments.iter().filter(|(_, _, needed)| *needed).map(|(key, _, _)| *key).collect();
    let looks = effect == Effect::Looks;
    json!({
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object", "properties": properties, "required": required,
        },
        "annotations": { "readOnlyHint": looks, "destructiveHint": !looks, "openWorldHint": !looks },
    })
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn texts(description: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": description })
}

fn operation(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words, "description": "What to do" })
}

fn what_if() -> Value {
    json!({ "type": "boolean", "description": "For set: only say what would change" })
}
