//! Calls of tools, read from the arguments that they came with.

use serde_json::{Map, Value};

/// What may be done with a document or a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operation {
    /// Say how it is.
    Get,
    /// Reach the desired state.
    Set,
    /// The same, but only say what would be done.
    WhatIf,
    /// Say whether it is as desired.
    Test,
    /// Delete it. For resources only.
    Delete,
    /// List what there is.
    Export,
}

/// A call of a tool.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum ToolCall {
    /// Carry out a document.
    Config {
        /// What to do.
        operation: Operation,
        /// The document, YAML or JSON.
        document: String,
        /// Its parameters, YAML or JSON.
        parameters: Option<String>,
    },
    /// Call one resource.
    Resource {
        /// What to do.
        operation: Operation,
        /// The type of the resource.
        type_name: String,
        /// The desired state, as JSON.
        properties: Option<String>,
    },
    /// Evaluate an expression.
    Expression(String),
    /// Call one function.
    Function {
        /// Its name.
        name: String,
        /// What it is called with.
        parameters: Vec<Value>,
    },
    /// Say which functions there are.
    ListFunctions {
        /// Only those of this name; `*` stands for any text.
        name: Option<String>,
        /// Only those of all these categories.
        categories: Vec<String>,
        /// Only those with this in their description.
        description: Option<String>,
    },
    /// Say which resources there are.
    ListResources {
        /// Only those that this adapter carries out; `*` stands for any text.
        adapter: Option<String>,
    },
    /// Say what a resource is.
    ShowResource(String),
    /// Say what the text of a type looks like.
    ShowSchema(String),
}

impl ToolCall {
    /// Reads a call; what is wrong with it is said in words.
    pub(super) fn parse(tool: &str, arguments: Map<String, Value>) -> Result<Self, String> {
        let mut from = Arguments(arguments);
        let request = match tool {
            "invoke_dsc_config" => Self::Config {
                operation: from.operation(&["get", "set", "test", "export"])?,
                document: from.text("configuration")?,
                parameters: from.optional_text("parameters")?,
            },
            "invoke_dsc_resource" => {
                let operation = from.operation(&["get", "set", "test", "export", "delete"])?;
                let type_name = from.text("resource_type")?;
                from.pass_over("type", &type_name);
                Self::Resource { operation, type_name, properties: from.optional_text("properties_json")? }
            }
            "invoke_dsc_expression" => Self::Expression(from.text("expression")?),
            "invoke_dsc_function" => {
                Self::Function { name: from.text("function")?, parameters: from.list("parameters")? }
            }
            "list_dsc_functions" => Self::ListFunctions {
                name: from.optional_text("function_filter")?,
                categories: from.words("category_filter")?,
                description: from.optional_text("description_filter")?,
            },
            "list_dsc_resources" => Self::ListResources { adapter: from.optional_text("adapter")? },
            "show_dsc_resource" => Self::ShowResource(from.text("type")?),
            "show_dsc_schema" => Self::ShowSchema(from.text("type")?),
            _ => return Err(format!("there is no tool '{tool}'")),
        };
        // Those that look only pass over what nobody asked for, as dsc does.
        if request.changes() {
            from.end()?;
        }
        Ok(request)
    }

    /// Names what it is of: calls of one kind have answers of about the same size.
    pub(super) fn kind(&self) -> String {
        match self {
            Self::Config { operation, document, .. } => format!("{operation:?} of {} KiB", document.len() >> 10),
            // A name that is not a type may be as long as a document.
            Self::Resource { operation, type_name, .. } => format!("{operation:?} {type_name:.100}"),
            _ => String::new(),
        }
    }

    /// Returns whether it may change the machine.
    pub(super) fn changes(&self) -> bool {
        match self {
            Self::Config { operation, .. } | Self::Resource { operation, .. } => {
                matches!(operation, Operation::Set | Operation::Delete)
            }
            _ => false,
        }
    }
}

/// Arguments that have not been asked for yet.
struct Arguments(Map<String, Value>);

impl Arguments {
    /// What to do; `what_if` decides how `set` is meant, and means nothing elsewhere.
    fn operation(&mut self, words: &[&str]) -> Result<Operation, String> {
        let word = self.text("operation")?;
        let what_if = self.truth("what_if")?;
        match word.as_str() {
            _ if !words.contains(&word.as_str()) => {
                Err(format!("'operation' is '{word}', but must be one of {}", words.join(", ")))
            }
            "set" if what_if => Ok(Operation::WhatIf),
            // Doing it after all is the last thing that was meant.
            _ if what_if => Err(format!("there is no 'what_if' for '{word}'")),
            "set" => Ok(Operation::Set),
            "test" => Ok(Operation::Test),
            "delete" => Ok(Operation::Delete),
            "export" => Ok(Operation::Export),
            _ => Ok(Operation::Get),
        }
    }

    fn take(&mut self, key: &str) -> Option<Value> {
        self.0.remove(key).filter(|value| !value.is_null())
    }

    fn text(&mut self, key: &str) -> Result<String, String> {
        self.optional_text(key)?.ok_or_else(|| format!("'{key}' is missing"))
    }

    fn optional_text(&mut self, key: &str) -> Result<Option<String>, String> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("'{key}' must be a string")),
        }
    }

    fn truth(&mut self, key: &str) -> Result<bool, String> {
        match self.take(key) {
            None => Ok(false),
            Some(Value::Bool(truth)) => Ok(truth),
            Some(_) => Err(format!("'{key}' must be true or false")),
        }
    }

    fn list(&mut self, key: &str) -> Result<Vec<Value>, String> {
        match self.take(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => Ok(items),
            Some(_) => Err(format!("'{key}' must be an array")),
        }
    }

    /// A list of texts, or one.
    fn words(&mut self, key: &str) -> Result<Vec<String>, String> {
        let items = match self.take(key) {
            Some(one @ Value::String(_)) => vec![one],
            Some(Value::Array(items)) => items,
            None => Vec::new(),
            Some(_) => return Err(format!("'{key}' must be an array of strings")),
        };
        let text = |item: Value| match item {
            Value::String(text) => Ok(text),
            _ => Err(format!("'{key}' must be an array of strings")),
        };
        items.into_iter().map(text).collect()
    }

    /// Passes over an argument that says once more what another one has said: callers of dsc state the type by both of its names.
    fn pass_over(&mut self, name: &str, said: &str) {
        if self.0.get(name).is_some_and(|again| again == said) {
            self.0.remove(name);
        }
    }

    /// Refuses arguments that nobody asked for: a misspelled `what_if` must not change the machine.
    fn end(self) -> Result<(), String> {
        self.0.keys().next().map_or(Ok(()), |key| Err(format!("there is no argument '{key}'")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(tool: &str, arguments: Value) -> Result<ToolCall, String> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        ToolCall::parse(tool, arguments)
    }

    #[test]
    fn what_if_is_never_taken_for_the_real_thing() {
        let call = |operation: &str, key: &str, what_if: Value| {
            let arguments = json!({ "operation": operation, "resource_type": "A/B", key: what_if });
            parse("invoke_dsc_resource", arguments).map(|request| (request.changes(), request))
        };
        assert!(call("set", "what_if", json!(false)).unwrap().0);
        assert!(!call("set", "what_if", json!(true)).unwrap().0);
        assert_eq!(call("set", "whatIf", json!(true)).unwrap_err(), "there is no argument 'whatIf'");
        assert_eq!(call("set", "what_if", json!("true")).unwrap_err(), "'what_if' must be true or false");
        assert_eq!(call("delete", "what_if", json!(true)).unwrap_err(), "there is no 'what_if' for 'delete'");
        for key in ["what_iff", "simulate", "dry-run", "type"] {
            for operation in ["set", "delete"] {
                assert_eq!(call(operation, key, json!(true)).unwrap_err(), format!("there is no argument '{key}'"));
            }
            assert!(!call("test", key, json!(true)).unwrap().0, "what looks only passes over others");
        }
        assert!(call("delete", "what_if", Value::Null).unwrap().0);
        assert!(call("set", "type", json!("A/B")).unwrap().0, "what is said twice is said once");
        assert_eq!(call("set", "type", json!("A/C")).unwrap_err(), "there is no argument 'type'");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let wrong = |tool: &str, arguments: Value| parse(tool, arguments).unwrap_err();
        assert_eq!(wrong("invoke", json!({})), "there is no tool 'invoke'");
        assert_eq!(wrong("show_dsc_resource", json!({})), "'type' is missing");
        assert_eq!(wrong("show_dsc_resource", json!({ "type": 1 })), "'type' must be a string");
        assert_eq!(
            wrong("invoke_dsc_function", json!({ "function": "f", "parameters": 1 })),
            "'parameters' must be an array"
        );
        let delete = json!({ "operation": "delete", "configuration": "" });
        assert_eq!(
            wrong("invoke_dsc_config", delete),
            "'operation' is 'delete', but must be one of get, set, test, export"
        );
    }

    #[test]
    fn every_tool_is_read_and_takes_what_its_schema_says() {
        for tool in crate::mcp::tools::all() {
            let name = tool["name"].as_str().unwrap();
            let properties = tool["inputSchema"]["properties"].as_object().unwrap();
            let value = |schema: &Value| match schema["type"].as_str().unwrap() {
                "boolean" => json!(false),
                "array" => json!(["x"]),
                _ => schema["enum"].get(0).cloned().unwrap_or(json!("x")),
            };
            let arguments: Map<_, _> = properties.iter().map(|(key, schema)| (key.clone(), value(schema))).collect();
            ToolCall::parse(name, arguments.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
            let required = tool["inputSchema"]["required"].as_array().cloned().unwrap_or_default();
            for key in properties.keys() {
                let without: Map<_, _> = arguments.clone().into_iter().filter(|(each, _)| each != key).collect();
                let refused = ToolCall::parse(name, without).is_err();
                assert_eq!(refused, required.contains(&json!(key)), "{name} without {key}");
            }
        }
    }
}
