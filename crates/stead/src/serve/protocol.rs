//! What goes over the wire: requests and answers of JSON-RPC 2.0, one a line. `docs/serve.md` is the contract.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use stead_core::value::Object;

/// The version of the protocol; a caller that speaks another one is refused.
pub(super) const VERSION: u64 = 1;

/// What a line asks for.
#[derive(Deserialize)]
pub(super) struct Request {
    /// Absent in a notification.
    pub(super) id: Option<Json>,
    pub(super) method: String,
    #[serde(default)]
    pub(super) params: Json,
}

impl Request {
    /// Reads a line. What is wrong with it comes with the id that it has all the same.
    pub(super) fn read(line: &str) -> Result<Self, Box<(Json, Problem)>> {
        let json: Json = serde_json::from_str(line)
            .map_err(|error| Box::new((Json::Null, Problem::new(Problem::PARSE, format!("not JSON: {error}")))))?;
        let id = json.get("id").cloned();
        let is_valid_id = id.as_ref().is_none_or(|id| id.is_string() || id.is_number());
        let request = serde_json::from_value(json).ok().filter(|_| is_valid_id);
        request.ok_or_else(|| {
            let message = "not a request: it needs 'method', and an 'id' that is a number or a string";
            Box::new((id.filter(|_| is_valid_id).unwrap_or_default(), Problem::new(Problem::REQUEST, message)))
        })
    }

    /// The id of a line that is not read because of what it would take: null unless it is a text or a number. Nothing else of
    /// the line is kept.
    pub(super) fn id_of(line: &str) -> Json {
        #[derive(Deserialize)]
        struct Identified<I> {
            id: I,
        }
        // An array would do in place of an object.
        if !line.trim_start().starts_with('{') {
            return Json::Null;
        }
        let text = serde_json::from_str(line).map(|named: Identified<String>| named.id.into());
        let number = || serde_json::from_str(line).map(|numbered: Identified<serde_json::Number>| numbered.id.into());
        text.or_else(|_| number()).unwrap_or_default()
    }

    /// Turns a set into what-if.
    pub(super) fn only_say(&mut self) {
        if let Json::Object(params) = &mut self.params {
            params.insert("whatIf".to_owned(), true.into());
        }
    }

    /// The parameters, in the form that the method asks for.
    pub(super) fn params<'a, P: Deserialize<'a>>(&'a self) -> Result<P, Problem> {
        P::deserialize(&self.params).map_err(|error| {
            Problem::new(Problem::PARAMS, format!("invalid parameters for '{}': {error}", self.method))
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Initialize {
    pub(super) protocol: u64,
    /// The schemas that the caller was made from, by type, or by `TYPE@VERSION`.
    #[serde(default)]
    pub(super) schemas: Map<String, Json>,
}

/// A call of one resource.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceParams {
    #[serde(rename = "type")]
    pub(super) type_name: String,
    #[serde(default)]
    pub(super) version: Option<String>,
    #[serde(default)]
    pub(super) properties: Object,
    /// Set alone: only say what would be done.
    #[serde(default)]
    pub(super) what_if: bool,
    /// Set alone: test the desired state again once it is set.
    #[serde(default)]
    pub(super) verify: bool,
    /// In seconds.
    #[serde(default)]
    pub(super) deadline: Option<f64>,
}

impl ResourceParams {
    /// The type that a request is about, as far as it names one.
    pub(super) fn type_of(request: &Request) -> &str {
        request.params.get("type").and_then(Json::as_str).unwrap_or_default()
    }
}

#[derive(Deserialize)]
pub(super) struct CancelParams {
    pub(super) id: Json,
}

/// Why a request is not answered with a result.
#[derive(Debug)]
pub(super) struct Problem {
    code: i32,
    message: String,
    data: Map<String, Json>,
}

impl Problem {
    /// The line is not JSON.
    pub(super) const PARSE: i32 = -32700;
    /// It is not a request.
    pub(super) const REQUEST: i32 = -32600;
    /// There is no such method.
    pub(super) const METHOD: i32 = -32601;
    /// The parameters are not what the method asks for.
    pub(super) const PARAMS: i32 = -32602;
    /// A defect of this program.
    pub(super) const INTERNAL: i32 = -32603;
    /// The resource failed.
    pub(super) const FAILED: i32 = -32000;
    /// It took longer than allowed.
    pub(super) const DEADLINE: i32 = -32001;
    /// The caller cancelled it.
    pub(super) const CANCELLED: i32 = -32002;
    /// There is no such resource.
    pub(super) const NOT_FOUND: i32 = -32003;
    /// The caller has not said hello, or speaks another version.
    pub(super) const HANDSHAKE: i32 = -32004;
    /// Too much is under way, or the answer is too long.
    pub(super) const LIMIT: i32 = -32005;

    pub(super) fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: Map::new() }
    }

    /// The same, with a member of `data`.
    pub(super) fn with(mut self, name: &str, value: impl Into<Json>) -> Self {
        self.data.insert(name.to_owned(), value.into());
        self
    }

    /// The error of an answer.
    pub(super) fn to_json(&self) -> Json {
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
struct Answer<'a> {
    jsonrpc: &'static str,
    id: &'a Json,
    #[serde(flatten)]
    outcome: Outcome,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Result(Json),
    Error(Json),
}

/// The line that answers a request.
pub(super) fn answer(id: &Json, result: Result<Json, Problem>) -> String {
    let outcome = result.map_or_else(|problem| Outcome::Error(problem.to_json()), Outcome::Result);
    // JSON always becomes text.
    let line = serde_json::to_string(&Answer { jsonrpc: "2.0", id, outcome }).unwrap_or_default();
    if line.len() > LONGEST_ANSWER {
        let message = format!("the answer has {} bytes, more than {LONGEST_ANSWER}", line.len());
        return answer(id, Err(Problem::new(Problem::LIMIT, message)));
    }
    line
}

/// An object with these members. Unlike `json!` it takes what it is given, and copies nothing.
pub(super) fn object<const N: usize>(members: [(&str, Json); N]) -> Json {
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The line that tells a message of a resource.
pub(super) fn log(id: &Json, level: &str, message: &str) -> String {
    json!({ "jsonrpc": "2.0", "method": "$/log", "params": { "id": id, "level": level, "message": message } })
        .to_string()
}
