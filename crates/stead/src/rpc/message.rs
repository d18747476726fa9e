//! Requests and answers of JSON-RPC 2.0 as they go over the wire, one a line.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use stead_host::provider::ActivityProgress;

/// A request, or a notification where it has no id.
#[derive(Deserialize)]
pub(crate) struct Request {
    /// Absent in a notification.
    pub(crate) id: Option<Json>,
    pub(crate) method: String,
    #[serde(default)]
    pub(crate) params: Json,
}

impl Request {
    /// Reads a line. What is wrong with it comes with the id that it has all the same.
    pub(crate) fn read(line: &str) -> Result<Self, Box<(Option<Json>, Problem)>> {
        let json: Json = serde_json::from_str(line)
            .map_err(|error| Box::new((None, Problem::new(Problem::PARSE, format!("not JSON: {error}")))))?;
        let has = |name: &str| json.get(name).is_some();
        if !has("method") && (has("result") || has("error")) {
            // An answer, to what was never asked: like a notification that nobody knows.
            return Ok(Self { id: None, method: String::new(), params: Json::Null });
        }
        let id = json.get("id").cloned();
        let is_valid_id = id.as_ref().is_none_or(|id| id.is_string() || id.is_number());
        let request = serde_json::from_value(json).ok().filter(|_| is_valid_id);
        request.ok_or_else(|| {
            let message = "not a request: it needs 'method', and an 'id' that is a number or a string";
            Box::new((id.filter(|_| is_valid_id), Problem::new(Problem::REQUEST, message)))
        })
    }

    /// The id of a line that is not read because of what it would take, if it is a text or a number. Nothing else of the line is
    /// kept.
    pub(crate) fn id_of(line: &str) -> Option<Json> {
        #[derive(Deserialize)]
        struct Identified<I> {
            id: I,
        }
        // An array would do in place of an object.
        if !line.trim_start().starts_with('{') {
            return None;
        }
        let text = serde_json::from_str(line).map(|named: Identified<String>| named.id.into());
        let number = || serde_json::from_str(line).map(|numbered: Identified<serde_json::Number>| numbered.id.into());
        text.or_else(|_| number()).ok()
    }

    /// The parameters, in the form that the method asks for.
    pub(crate) fn params<'a, P: Deserialize<'a>>(&'a self) -> Result<P, Problem> {
        P::deserialize(&self.params).map_err(|error| {
            Problem::new(Problem::PARAMS, format!("invalid parameters for '{}': {error}", self.method))
        })
    }
}

/// Why a request is not answered with a result.
#[derive(Debug)]
pub(crate) struct Problem {
    code: i32,
    message: String,
    data: Map<String, Json>,
}

impl Problem {
    /// The line is not JSON.
    pub(crate) const PARSE: i32 = -32700;
    /// It is not a request.
    pub(crate) const REQUEST: i32 = -32600;
    /// There is no such method.
    pub(crate) const METHOD: i32 = -32601;
    /// The parameters are not what the method asks for.
    pub(crate) const PARAMS: i32 = -32602;
    /// A defect of this program.
    pub(crate) const INTERNAL: i32 = -32603;
    /// The resource failed.
    pub(crate) const FAILED: i32 = -32000;
    /// It took longer than allowed.
    pub(crate) const DEADLINE: i32 = -32001;
    /// The caller cancelled it.
    pub(crate) const CANCELLED: i32 = -32002;
    /// There is no such resource.
    pub(crate) const NOT_FOUND: i32 = -32003;
    /// The caller has not said hello, or speaks another version.
    pub(crate) const HANDSHAKE: i32 = -32004;
    /// Too much is under way, or the answer is too long.
    pub(crate) const LIMIT: i32 = -32005;

    pub(crate) fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: Map::new() }
    }

    /// Adds a member of `data`.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Json>) -> Self {
        self.data.insert(name.to_owned(), value.into());
        self
    }

    /// The error of an answer.
    pub(crate) fn to_json(&self) -> Json {
        let mut error = json!({ "code": self.code, "message": self.message });
        if !self.data.is_empty() {
            error["data"] = self.data.clone().into();
        }
        error
    }
}

/// The longest answer, in bytes. A caller may read a line into memory without fear.
const LONGEST_ANSWER: usize = 64 << 20;

/// An answer as it is written.
#[derive(Serialize)]
struct Answer<'a, R> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Json>,
    #[serde(flatten)]
    outcome: Outcome<R>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome<R> {
    Result(R),
    Error(Json),
}

/// The line that answers a request.
pub(super) fn answer<R: Serialize>(id: Option<&Json>, result: Result<R, Problem>) -> String {
    let outcome = result.map_or_else(|problem| Outcome::Error(problem.to_json()), Outcome::Result);
    // JSON always becomes text.
    let line = serde_json::to_string(&Answer { jsonrpc: "2.0", id, outcome }).unwrap_or_default();
    if line.len() > LONGEST_ANSWER {
        let message = format!("the answer has {} bytes, more than {LONGEST_ANSWER}", line.len());
        return answer::<Json>(id, Err(Problem::new(Problem::LIMIT, message)));
    }
    line
}

/// An object with these members. Unlike `json!` it takes what it is given, and copies nothing.
pub(crate) fn object<const N: usize>(members: [(&str, Json); N]) -> Json {
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The line that tells a message of a resource.
pub(crate) fn log(id: &Json, level: &str, message: &str) -> String {
    json!({ "jsonrpc": "2.0", "method": "$/log", "params": { "id": id, "level": level, "message": message } })
        .to_string()
}

/// The line that tells how far an activity of a resource is.
pub(crate) fn progress(id: &Json, said: &ActivityProgress) -> String {
    #[derive(Serialize)]
    struct Params<'a> {
        id: &'a Json,
        #[serde(flatten)]
        said: &'a ActivityProgress,
    }
    json!({ "jsonrpc": "2.0", "method": "$/progress", "params": Params { id, said } }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_read_is_answered_with_its_id() {
        for (line, id) in [
            (r#"{"params":[1,2],"id":7,"method":"get"}"#, Some(Json::from(7))),
            (r#"{"params":{"id":1},"id":"a"}"#, Some(Json::from("a"))),
            (r#"{"id":[1,2],"params":[]}"#, None),
            (r#"{"id":{"a":1}}"#, None),
            (r#"{"id":8"#, None),
            (r#"{"params":[]}"#, None),
            ("[1]", None),
        ] {
            assert_eq!(Request::id_of(line), id, "{line}");
        }
    }
}
