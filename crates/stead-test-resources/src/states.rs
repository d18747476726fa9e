//! Resources that read, test and set one state.

use std::path::PathBuf;
use std::{env, fs};

use serde_json::{Value as Json, json};

use crate::{Args, Lines};

/// Answers with what it is given.
pub(crate) fn echo(args: &Args) -> Lines {
    vec![Json::Object(args.input.clone())]
}

/// Says that it was deleted, whatever it is asked.
pub(crate) fn delete(_: &Args) -> Lines {
    vec![json!({"deleteCalled": true, "_exist": false})]
}

/// Says in words what `_exist` says.
pub(crate) fn exist(args: &Args) -> Lines {
    let exists = args.input.get("_exist").is_none_or(|exist| exist == true);
    vec![json!({"state": if exists { "Present" } else { "Absent" }, "_exist": exists})]
}

/// One of three instances, found by its name or id; the first when nothing is said.
pub(crate) fn get(args: &Args) -> Lines {
    let instances = [("one", 1), ("two", 2), ("three", 3)];
    let fits = |name: &str, id: i64| {
        args.text("name").is_none_or(|wanted| wanted == name) && args.input.get("id").is_none_or(|wanted| *wanted == id)
    };
    let found = instances.into_iter().find(|(name, id)| fits(name, *id));
    found.map(|(name, id)| json!({"name": name, "id": id})).into_iter().collect()
}

/// Claims to be in the desired state as asked, whatever differs.
pub(crate) fn in_desired_state(args: &Args) -> Lines {
    vec![json!({"_inDesiredState": args.input.get("_inDesiredState"), "valueOne": 1, "valueTwo": 2})]
}

/// Gives the metadata back that came with the instance; `export` does so for three instances.
pub(crate) fn metadata(args: &Args) -> Lines {
    let instance = |count: usize| {
        let mut state = json!({});
        if let Some(metadata) = args.input.get("_metadata") {
            state["_metadata"] = metadata.clone();
        }
        state["_name"] = format!("Metadata example {count}").into();
        state["count"] = count.into();
        state
    };
    (1..=if args.operation() == "export" { 3 } else { 1 }).map(instance).collect()
}

/// Tells which operation was called with which parameters.
pub(crate) fn operation(args: &Args) -> Lines {
    vec![json!({"operation": args.operation(), "params": args.input.get("params")})]
}

/// An environment variable that others must read again after a `set`.
pub(crate) fn refresh_env(args: &Args) -> Lines {
    let mut state = json!({"name": args.input.get("name"), "value": args.input.get("value")});
    if let (true, Some(state)) = (args.operation() == "set", state.as_object_mut()) {
        state.insert("_metadata".to_owned(), json!({"_refreshEnv": true}));
    }
    vec![state]
}

/// Reports the name only: the rest is as its schema says by default.
pub(crate) fn schema_default(args: &Args) -> Lines {
    vec![json!({"name": args.input.get("name")})]
}

/// Tells the operation that could be called with the rights there are.
pub(crate) fn security_context(args: &Args) -> Lines {
    vec![json!({"operation": args.operation()})]
}

/// A number that is 1 until it is set.
pub(crate) fn size(args: &Args) -> Lines {
    let kept = Size::of_document();
    if args.operation() == "set" {
        kept.keep(args.input.get("size").and_then(Json::as_u64));
    }
    vec![json!({"size": kept.read()})]
}

/// A number in a file of the folder of the document.
pub(crate) struct Size(PathBuf);

impl Size {
    pub(crate) fn of_document() -> Self {
        Self(PathBuf::from(env::var_os("DSC_CONFIG_ROOT").unwrap_or_default()).join("size"))
    }

    pub(crate) fn read(&self) -> u64 {
        fs::read_to_string(&self.0).ok().and_then(|text| text.parse().ok()).unwrap_or(1)
    }

    pub(crate) fn keep(&self, size: Option<u64>) {
        if let Some(size) = size {
            // Where it cannot be written, the next read tells.
            drop(fs::write(&self.0, size.to_string()));
        }
    }
}

/// Two values that never change; `test` and `set` say themselves which of them differ.
pub(crate) fn state_and_diff(args: &Args) -> Lines {
    let actual = [("valueOne", 1), ("valueTwo", 2)];
    let differs = |property: &str, value: i64| args.input.get(property).is_some_and(|wanted| *wanted != value);
    let differing: Vec<&str> =
        actual.into_iter().filter(|(name, value)| differs(name, *value)).map(|(name, _)| name).collect();
    let state = json!({"_inDesiredState": differing.is_empty(), "valueOne": 1, "valueTwo": 2});
    match args.operation() {
        "get" => vec![state],
        _ => vec![state, json!(differing)],
    }
}

/// Tells whether it was asked to act or to say what it would do.
pub(crate) fn what_if(args: &Args) -> Lines {
    vec![json!({"executionType": if args.has("-w") { "WhatIf" } else { "Actual" }})]
}

/// As [`what_if`], and in what-if also says which properties would change.
pub(crate) fn what_if_diff(args: &Args) -> Lines {
    let mut lines = what_if(args);
    if args.has("-w") {
        lines.push(json!(["executionType"]));
    }
    lines
}

/// Is not there, and says in words what deleting it would do.
pub(crate) fn what_if_delete(args: &Args) -> Lines {
    if args.has("-w") {
        return vec![json!({"_metadata": {"whatIf": ["Delete what-if message 1", "Delete what-if message 2"]}})];
    }
    vec![json!({"_exist": false})]
}
