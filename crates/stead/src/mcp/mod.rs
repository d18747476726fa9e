//! `mcp`: lets programs call the engine by the Model Context Protocol.
//!
//! Two ways of beginning are understood: the handshake of the versions up to 2025-11-25, and requests that name their version
//! themselves, as since 2026-07-28 (<https://modelcontextprotocol.io/specification>). `corpus/mcp` has recorded conversations.
//!
//! Guarantees: a call that changes the machine has it for itself: no other is carried out meanwhile. When the caller goes or
//! the server is stopped, what is under way is cancelled, and has some seconds to end in order.

mod call;
mod tool_calls;
mod tools;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value as Json, json};
use stead_system::Cancel;

use crate::exit::Exit;
use crate::interrupt;
use crate::process_env::ProcessEnv;
use crate::rpc::{About, Dispatch, Problem, Protocol, Request, Server, Work};
use call::ToolCall;
use tool_calls::{Tools, Unanswered};

/// The versions of the protocol, from the oldest on.
const VERSIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// The newest one that begins with `initialize`.
const NEWEST_WITH_HANDSHAKE: &str = "2025-11-25";

/// The members of `_meta` in a request that names its version itself.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The error for a version that is not spoken.
const UNSUPPORTED_VERSION: i32 = -32022;

/// Serves until standard input ends, or a signal asks for the end.
pub(crate) fn serve(env: ProcessEnv) -> Exit {
    let stop = Cancel::default();
    let host = env.host.clone();
    let protocol = ModelContext { tools: Tools { env }, greeted: AtomicBool::default() };
    match Server::new(host, protocol).converse(&stop) {
        Ok(()) => interrupt::exit(&stop, Exit::Success),
        Err(error) => {
            tracing::error!("{error}");
            Exit::DscServer
        }
    }
}

struct ModelContext {
    tools: Tools,
    /// True once the caller has been greeted by `initialize`: its requests then need not name their version.
    greeted: AtomicBool,
}

/// The form of a result, which depends on the version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// The members that the method has.
    Plain,
    /// Besides, that the result is a whole one; since 2026-07-28.
    Typed,
}

impl Form {
    /// The members that come before those of the method.
    fn begin(self) -> Map<String, Json> {
        match self {
            Self::Plain => Map::new(),
            Self::Typed => Map::from_iter([("resultType".to_owned(), "complete".into())]),
        }
    }

    /// A result that callers could keep, had we said for how long.
    fn listing<const N: usize>(self, members: [(&str, Json); N]) -> Json {
        let mut result = self.begin();
        if self == Self::Typed {
            result.extend([("ttlMs".to_owned(), 0.into()), ("cacheScope".to_owned(), "private".into())]);
        }
        result.extend(members.map(|(name, value)| (name.to_owned(), value)));
        result.into()
    }
}

impl ModelContext {
    /// The form of the result of a request, as its version asks.
    fn form(&self, request: &Request) -> Result<Form, Problem> {
        let meta = request.params.get("_meta");
        let stated = meta.and_then(|meta| meta.get(VERSION)).and_then(Json::as_str);
        if let Some(unknown) = stated.filter(|stated| !VERSIONS.contains(stated)) {
            let problem = Problem::new(UNSUPPORTED_VERSION, "Unsupported protocol version");
            return Err(problem.with("requested", unknown).with("supported", VERSIONS.to_vec()));
        }
        let is_newer = stated.is_some_and(|stated| stated > NEWEST_WITH_HANDSHAKE);
        // Without a handshake there is nothing else to go by.
        if is_newer || request.method == "server/discover" || !self.greeted.load(Ordering::Relaxed) {
            let has_capabilities = meta.and_then(|meta| meta.get(CAPABILITIES)).is_some_and(Json::is_object);
            let needed = [(VERSION, stated.is_some()), (CAPABILITIES, has_capabilities)];
            let missing: Vec<&str> = needed.iter().filter(|(_, is_there)| !is_there).map(|(name, _)| *name).collect();
            if !missing.is_empty() {
                let names = missing.join(", ");
                let message =
                    format!("'_meta' lacks {names}, which a request without 'initialize' before it must have");
                return Err(Problem::new(Problem::PARAMS, message));
            }
        }
        Ok(if is_newer { Form::Typed } else { Form::Plain })
    }

    fn answer_now(&self, request: &Request) -> Result<Json, Problem> {
        match request.method.as_str() {
            "initialize" => return self.initialize(request),
            // A caller may ask whether anybody is there before it says who it is.
            "ping" if request.params.get("_meta").is_none_or(|meta| meta.get(VERSION).is_none()) => {
                return Ok(json!({}));
            }
            _ => {}
        }
        let form = self.form(request)?;
        match request.method.as_str() {
            "server/discover" => Ok(discovery()),
            "tools/list" => Ok(form.listing([("tools", tools::all().into())])),
            // There are none, and callers ask all the same.
            "resources/list" => Ok(form.listing([("resources", json!([]))])),
            "resources/templates/list" => Ok(form.listing([("resourceTemplates", json!([]))])),
            "prompts/list" => Ok(form.listing([("prompts", json!([]))])),
            other => Err(Problem::new(Problem::METHOD, format!("there is no method '{other}'"))),
        }
    }

    fn initialize(&self, request: &Request) -> Result<Json, Problem> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Initialize {
            protocol_version: String,
        }
        let asked = request.params::<Initialize>()?.protocol_version;
        let is_spoken = VERSIONS.contains(&asked.as_str()) && asked.as_str() <= NEWEST_WITH_HANDSHAKE;
        let version = if is_spoken { asked.as_str() } else { NEWEST_WITH_HANDSHAKE };
        self.greeted.store(true, Ordering::Relaxed);
        Ok(json!({
            "protocolVersion": version,
            "capabilities": { "tools": {} },
            "serverInfo": server_info(),
            "instructions": tools::INSTRUCTIONS,
        }))
    }

    /// Reads a call of a tool, and the form that its result is to have.
    fn read_call(&self, request: &Request) -> Result<(Form, ToolCall), Problem> {
        #[derive(Deserialize)]
        #[serde(expecting = "an object with 'name' and 'arguments'")]
        struct Called {
            name: String,
            #[serde(default)]
            arguments: Option<Map<String, Json>>,
        }
        let form = self.form(request)?;
        let Called { name, arguments } = request.params()?;
        let call = ToolCall::parse(&name, arguments.unwrap_or_default());
        Ok((form, call.map_err(|message| Problem::new(Problem::PARAMS, message))?))
    }
}

/// The result of a call that was carried out: its value, or in words why it failed.
struct ToolResult {
    form: Form,
    outcome: Result<Box<RawValue>, String>,
}

#[derive(Serialize)]
struct TextContent<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
}

impl Serialize for ToolResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The text is for callers that cannot read structured content.
        let text = self.outcome.as_ref().map_or_else(String::as_str, |value| value.get());
        let mut result = serializer.serialize_map(None)?;
        self.form.begin().iter().try_for_each(|(name, value)| result.serialize_entry(name, value))?;
        result.serialize_entry("content", &[TextContent { kind: "text", text }])?;
        if let Ok(value) = &self.outcome {
            result.serialize_entry("structuredContent", value)?;
        }
        result.serialize_entry("isError", &self.outcome.is_err())?;
        result.end()
    }
}

fn server_info() -> Json {
    json!({ "name": "stead", "version": env!("CARGO_PKG_VERSION") })
}

/// The answer to callers that ask for versions before anything else.
fn discovery() -> Json {
    let mut result = Form::Typed.begin();
    result.extend(
        [
            ("supportedVersions", json!(VERSIONS)),
            ("capabilities", json!({ "tools": {} })),
            ("instructions", tools::INSTRUCTIONS.into()),
            ("ttlMs", 0.into()),
            ("cacheScope", "private".into()),
            ("_meta", json!({ "io.modelcontextprotocol/serverInfo": server_info() })),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    result.into()
}

impl Protocol for ModelContext {
    type Call = (Form, ToolCall);
    type Answer = ToolResult;

    const WITHOUT_ID: Option<Json> = None;
    const ANSWERS_CANCELLED: bool = false;
    const GRACE: Option<Duration> = Some(Duration::from_secs(10));

    fn dispatch(&self, request: Request) -> Dispatch<Self::Call> {
        if request.method != "tools/call" {
            return Dispatch::Now(self.answer_now(&request));
        }
        match self.read_call(&request) {
            Ok((form, call)) => {
                let about = About { subject: "a tool".to_owned(), kind: call.kind(), alone: call.changes() };
                Dispatch::Beside(about, (form, call))
            }
            Err(problem) => Dispatch::Now(Err(problem)),
        }
    }

    fn carry_out(&self, work: Work<Self::Call>) -> Result<ToolResult, Problem> {
        let (form, call) = work.call;
        let outcome = match self.tools.call(call, work.cancel, work.watch) {
            Err(Unanswered::Refused(problem)) => return Err(problem),
            Err(Unanswered::Failed(message)) => Err(message),
            Ok(value) => Ok(value),
        };
        Ok(ToolResult { form, outcome })
    }

    fn cancelled(&self, notification: &Request) -> Option<Json> {
        let is_cancel = notification.method == "notifications/cancelled";
        notification.params.get("requestId").filter(|_| is_cancel).cloned()
    }

    fn hung(&self, subject: &str) -> Problem {
        Problem::new(Problem::DEADLINE, format!("{subject} hangs in a call of the system"))
    }

    fn finish(&self) -> Result<Json, Problem> {
        Ok(Json::Null)
    }
}
