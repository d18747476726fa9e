//! Resources that list instances.

use serde_json::{Value as Json, json};

use crate::{Args, Lines};

/// As many instances as it is asked for, all of one name.
pub(crate) fn export(args: &Args) -> Lines {
    let count = args.input.get("count").and_then(Json::as_u64).unwrap_or(5);
    let instance = |index| {
        json!({
            "count": index, "name": format!("Instance{index}"), "_name": "TestName", "_securityContext": "elevated",
        })
    };
    (0..count).map(instance).collect()
}

/// An instance of each type that it is given, as a whole.
pub(crate) fn exporter(args: &Args) -> Lines {
    let types = args.input.get("typeNames").and_then(Json::as_array).cloned().unwrap_or_default();
    let instance = |name| json!({"name": "test", "type": name, "properties": {"foo": "bar", "hello": "world"}});
    types.into_iter().map(instance).collect()
}

/// Users whose names fit the filter: an object, in whose name `*` stands for any text.
pub(crate) fn users(args: &Args) -> Lines {
    let pattern = args.text("name").unwrap_or("*").to_lowercase();
    let fits = |name: &&str| matches(&pattern, &name.to_lowercase());
    ["Steve", "Tess", "Gijs"].into_iter().filter(fits).map(|name| json!({"name": name})).collect()
}

fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, tail)) => text.strip_prefix(head).is_some_and(|rest| {
            rest.char_indices()
                .map(|(index, _)| index)
                .chain([rest.len()])
                .any(|start| rest.get(start..).is_some_and(|rest| matches(tail, rest)))
        }),
    }
}
