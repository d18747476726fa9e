//! The words that stead and a resident exchange: JSON-RPC 2.0, a line each, as `stead serve` has them from the other side.
//!
//! This is the only module that knows the form of the messages: [`super::process`] knows ids, lines and ends.

use std::time::Duration;

use serde_json::{Map, Value as Json, json};
use stead_core::call::{Failure, FailureKind};

use crate::command::output::{self, Expected};
use crate::provider::TraceLevel;

/// The version of the protocol that is spoken.
const VERSION: u32 = 1;

/// How many calls a resident may ask for side by side.
const MOST_SIDE_BY_SIDE: u64 = 64;

/// A call of a resident.
pub(in crate::command) struct Query<'a> {
    pub(in crate::command) method: &'static str,
    pub(in crate::command) type_name: &'a str,
    pub(in crate::command) version: &'a str,
    pub(in crate::command) properties: &'a Json,
    pub(in crate::command) what_if: bool,
    pub(in crate::command) directory: String,
    /// Of an adapted resource: where it is, and what its manifest holds for its adapter.
    pub(in crate::command) path: Option<String>,
    pub(in crate::command) content: Option<&'a Json>,
    /// The data that it handed back when it was still working.
    pub(in crate::command) pending: Option<Json>,
}

impl Query<'_> {
    /// Returns whether it may be asked twice.
    pub(super) fn only_reads(&self) -> bool {
        matches!(self.method, "get" | "test" | "export" | "validate")
    }
}

/// A message of a resident.
pub(super) enum Message {
    /// The answer to a request.
    Answer(u64, Result<Json, Failure>),
    /// Something for a person, about a request or about none.
    Log(Option<u64>, TraceLevel, String),
}

/// The first line that a resident is sent.
pub(super) fn greeting(id: u64) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": {"protocol": VERSION}}))
}

/// Reads the answer to the greeting: how many calls the resident takes side by side.
pub(super) fn width(answer: &Json) -> Result<usize, String> {
    match answer.get("protocol").and_then(Json::as_u64) {
        Some(version) if version == u64::from(VERSION) => {}
        Some(version) => {
            return Err(format!("it speaks version {version} of the protocol, and stead version {VERSION}"));
        }
        None => return Err("its answer to 'initialize' has no 'protocol'".to_owned()),
    }
    let stated = answer.get("sideBySide").map_or(Some(1), Json::as_u64).filter(|width| *width > 0);
    let width = stated.ok_or("'sideBySide' must be a number of calls")?;
    usize::try_from(width.min(MOST_SIDE_BY_SIDE)).map_err(|error| error.to_string())
}

/// The line for a call, which may take so long.
pub(super) fn request(id: u64, asked: &Query<'_>, left: Duration) -> Vec<u8> {
    let mut params = Map::new();
    let mut put = |name: &str, value: Json| params.insert(name.to_owned(), value);
    put("type", asked.type_name.into());
    put("version", asked.version.into());
    put("directory", asked.directory.as_str().into());
    put("deadline", left.as_secs_f64().into());
    if !asked.properties.is_null() {
        put("properties", asked.properties.clone());
    }
    if asked.what_if {
        put("whatIf", true.into());
    }
    if let Some(path) = &asked.path {
        put("path", path.as_str().into());
    }
    if let Some(content) = asked.content {
        put("content", content.clone());
    }
    if let Some(pending) = &asked.pending {
        put("pending", pending.clone());
    }
    line(&json!({"jsonrpc": "2.0", "id": id, "method": asked.method, "params": params}))
}

/// The line that ends a call early.
pub(super) fn cancel(id: u64) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "method": "$/cancel", "params": {"id": id}}))
}

fn line(message: &Json) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// Reads a line. An error says what is wrong with it, without any of it: it may hold secrets.
pub(super) fn read(line: &[u8]) -> Result<Message, String> {
    let wrong = |what: &str| format!("each line of its standard output must be a message of JSON-RPC 2.0: {what}");
    let values = output::parse(line, Expected::Values(1)).map_err(|garbage| wrong(&garbage.problem.to_string()))?;
    let Some(Json::Object(mut members)) = values.into_iter().next() else { return Err(wrong("it is not an object")) };
    if members.get("jsonrpc").and_then(Json::as_str) != Some("2.0") {
        return Err(wrong("it has no '\"jsonrpc\": \"2.0\"'"));
    }
    if let Some(method) = members.remove("method") {
        return log(method.as_str(), members.get("params").unwrap_or(&Json::Null));
    }
    let id = members.get("id").and_then(Json::as_u64).ok_or("an answer has no 'id', the number of its request")?;
    match (members.remove("result"), members.remove("error")) {
        (Some(result), None) => Ok(Message::Answer(id, Ok(result))),
        (None, Some(error)) => Ok(Message::Answer(id, Err(failure(&error)))),
        _ => Err("an answer has either a 'result' or an 'error'".to_owned()),
    }
}

fn log(method: Option<&str>, params: &Json) -> Result<Message, String> {
    if method != Some("$/log") {
        return Err("the only thing that a resident says unasked is '$/log'".to_owned());
    }
    let text = params.get("message").and_then(Json::as_str).ok_or("a '$/log' has no 'message'")?;
    let level = match params.get("level").and_then(Json::as_str) {
        Some("error") => TraceLevel::Error,
        Some("warning" | "warn") => TraceLevel::Warn,
        Some("info") => TraceLevel::Info,
        Some("verbose") => TraceLevel::Debug,
        Some("debug" | "trace") => TraceLevel::Trace,
        _ => return Err("the 'level' of a '$/log' is none of error, warning, info, verbose and debug".to_owned()),
    };
    Ok(Message::Log(params.get("id").and_then(Json::as_u64), level, text.to_owned()))
}

/// The failure that an error stands for. The numbers are those of `stead serve`.
pub(in crate::command) fn failure(error: &Json) -> Failure {
    let kind = match error.get("code").and_then(Json::as_i64) {
        Some(-32602) => FailureKind::Invalid,
        Some(-32601 | -32003) => FailureKind::Unsupported,
        Some(-32001) => FailureKind::Deadline,
        Some(-32002) => FailureKind::Cancelled,
        Some(-32700 | -32600) => FailureKind::Protocol,
        _ => FailureKind::Exit(1),
    };
    let text = |pointer: &str| error.pointer(pointer).and_then(Json::as_str).map(str::to_owned);
    let message = text("/message").unwrap_or_else(|| "the resource does not say why".to_owned());
    // Whoever states no pointer means the property of that name.
    let property = text("/data/property").map(|name| if name.starts_with('/') { name } else { format!("/{name}") });
    Failure { property, error_id: text("/data/id").map(Into::into), ..Failure::new(kind, message) }
}

/// The values that a program called once for each operation would have printed, a line each.
pub(super) fn printed(method: &str, result: Json) -> Result<Vec<Json>, &'static str> {
    if let Some(pending) = result.get("pending").filter(|_| matches!(method, "test" | "set")) {
        return Ok(vec![json!({"_metadata": {"stead": {"pending": pending}}})]);
    }
    match method {
        "get" => Ok(vec![state(result, "actual")?.0]),
        "test" => {
            let (mut actual, rest) = state(result, "actual")?;
            let verdict = match rest.get("inDesiredState").filter(|verdict| verdict.is_boolean()) {
                Some(verdict) => Ok(verdict.clone()),
                None if put(&mut actual, "unknown", &rest)? => Ok(false.into()),
                None => Err("'inDesiredState' must be true or false"),
            };
            match &mut actual {
                Json::Object(members) => drop(members.insert("_inDesiredState".to_owned(), verdict?)),
                // The results of a group contain their own verdicts.
                _ => drop(rest.get("inDesiredState")),
            }
            Ok(with_names(actual, rest.get("differing")))
        }
        "set" => set(result),
        "delete" if result.get("pending").is_some() => Err("a 'delete' cannot be pending"),
        "delete" => Ok(words(&result).into_iter().collect()),
        "export" => match result {
            Json::Object(mut members) => match members.remove("instances") {
                Some(Json::Array(instances)) => Ok(instances.into_iter().map(instance).collect()),
                _ => Err("'instances' must be an array"),
            },
            _ => Err("the result must be an object"),
        },
        _ => Ok(vec![result]),
    }
}

fn set(result: Json) -> Result<Vec<Json>, &'static str> {
    if result.is_null() || result.as_object().is_some_and(Map::is_empty) {
        return Ok(Vec::new());
    }
    let said = words(&result);
    if result.get("after").is_none() {
        if result.get("unknown").is_some_and(|why| !why.is_null()) {
            return Err("'unknown' is without 'after'");
        }
        return Ok(said.into_iter().collect());
    }
    let (mut after, rest) = state(result, "after")?;
    if let (Json::Object(after), Some(Json::Object(said))) = (&mut after, said) {
        after.extend(said);
    }
    put(&mut after, "unknown", &rest)?;
    put(&mut after, "before", &rest)?;
    Ok(with_names(after, rest.get("changed")))
}

fn with_names(state: Json, names: Option<&Json>) -> Vec<Json> {
    std::iter::once(state).chain(names.filter(|names| !names.is_null()).cloned()).collect()
}

/// Takes a state out of a result. What `exists` says is a property of it.
fn state(result: Json, name: &'static str) -> Result<(Json, Map<String, Json>), &'static str> {
    let Json::Object(mut members) = result else { return Err("the result must be an object") };
    let mut state = members.remove(name).ok_or(match name {
        "after" => "'after' must be a state",
        _ => "'actual' must be a state",
    })?;
    if let (Some(exists @ Json::Bool(_)), Json::Object(state)) = (members.get("exists"), &mut state) {
        state.entry("_exist").or_insert_with(|| exists.clone());
    }
    Ok((state, members))
}

/// Puts a member of a result where programs have it, in `_metadata.stead` of a state, and returns whether it is there.
fn put(state: &mut Json, name: &str, result: &Map<String, Json>) -> Result<bool, &'static str> {
    let stated = result.get(name).filter(|stated| !stated.is_null());
    let (Json::Object(state), Some(stated)) = (state, stated) else { return Ok(false) };
    let Json::Object(metadata) = state.entry("_metadata").or_insert_with(|| json!({})) else {
        return Err("'_metadata' must be an object");
    };
    let Json::Object(members) = metadata.entry("stead").or_insert_with(|| json!({})) else {
        return Err("'_metadata.stead' must be an object");
    };
    members.insert(name.to_owned(), stated.clone());
    Ok(true)
}

/// `messages` of a result, where programs have what they would do.
fn words(result: &Json) -> Option<Json> {
    let messages = result.get("messages").filter(|messages| messages.is_array())?;
    Some(json!({"_metadata": {"whatIf": messages}}))
}

/// An exported instance as a program prints it.
fn instance(found: Json) -> Json {
    let Json::Object(mut members) = found else { return found };
    if members.contains_key("type") {
        return Json::Object(members);
    }
    let (name, properties) = (members.remove("name"), members.remove("properties"));
    match (properties, name) {
        (Some(Json::Object(mut properties)), Some(name)) => {
            properties.entry("_name").or_insert(name);
            Json::Object(properties)
        }
        (Some(properties), _) => properties,
        (None, _) => Json::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_what_a_program_would_print() {
        let cases = [
            ("get", json!({"actual": {"a": 1}, "exists": false}), json!([{"a": 1, "_exist": false}])),
            ("test", json!({"actual": {"a": 1}, "inDesiredState": true}), json!([{"a": 1, "_inDesiredState": true}])),
            (
                "test",
                json!({"actual": {}, "inDesiredState": false, "differing": ["a"]}),
                json!([{"_inDesiredState": false}, ["a"]]),
            ),
            ("set", json!({}), json!([])),
            ("set", json!({"after": {"a": 1}, "changed": ["a"]}), json!([{"a": 1}, ["a"]])),
            (
                "set",
                json!({"after": {"a": 1}, "messages": ["make it"]}),
                json!([{"a": 1, "_metadata": {"whatIf": ["make it"]}}]),
            ),
            (
                "test",
                json!({"actual": {"a": 1}, "unknown": "why"}),
                json!([{"a": 1, "_inDesiredState": false, "_metadata": {"stead": {"unknown": "why"}}}]),
            ),
            (
                "set",
                json!({"before": {"a": 0}, "after": {"a": 1}, "changed": ["a"]}),
                json!([{"a": 1, "_metadata": {"stead": {"before": {"a": 0}}}}, ["a"]]),
            ),
            (
                "set",
                json!({"after": {}, "messages": ["make it"], "unknown": "why"}),
                json!([{"_metadata": {"whatIf": ["make it"], "stead": {"unknown": "why"}}}]),
            ),
            ("delete", json!({"messages": ["gone"]}), json!([{"_metadata": {"whatIf": ["gone"]}}])),
            (
                "export",
                json!({"instances": [{"name": "n", "properties": {"a": 1}}, {"properties": {"a": 2}}]}),
                json!([{"a": 1, "_name": "n"}, {"a": 2}]),
            ),
            (
                "set",
                json!({"pending": {"message": "m"}}),
                json!([{"_metadata": {"stead": {"pending": {"message": "m"}}}}]),
            ),
            ("validate", json!({"valid": true}), json!([{"valid": true}])),
        ];
        for (method, result, expected) in cases {
            assert_eq!(printed(method, result).map(Json::from), Ok(expected), "{method}");
        }
        for (method, result) in [
            ("get", json!({})),
            ("test", json!({"actual": {}})),
            ("export", json!({})),
            ("delete", json!({"pending": {"message": "m"}})),
            ("test", json!({"actual": {"_metadata": "x"}, "unknown": "why"})),
            ("set", json!({"after": {"_metadata": [1]}, "unknown": "why"})),
            ("set", json!({"before": {}, "after": {"_metadata": {"stead": "x"}}})),
            ("set", json!({"unknown": "why"})),
        ] {
            assert!(printed(method, result).is_err(), "{method}");
        }
    }

    #[test]
    fn what_is_no_message_is_said_without_its_text() {
        for line in [
            "canary",
            "[]",
            r#"{"id": 1, "result": "canary"}"#,
            r#"{"jsonrpc": "2.0", "id": "canary", "result": 1}"#,
            r#"{"jsonrpc": "2.0", "id": 1}"#,
            r#"{"jsonrpc": "2.0", "id": 1, "result": 1, "error": {}}"#,
            r#"{"jsonrpc": "2.0", "method": "canary"}"#,
            r#"{"jsonrpc": "2.0", "method": "$/log", "params": {"level": "canary", "message": "m"}}"#,
        ] {
            let Err(why) = read(line.as_bytes()) else { panic!("{line}") };
            assert!(!why.contains("canary"), "{why}");
        }
    }
}
