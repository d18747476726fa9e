//! The parameters of requests. `docs/serve.md` is the contract.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value as Json};
use stead_core::value::Object;

use crate::rpc::Request;

/// The version of the protocol; a caller that speaks another one is refused.
pub(super) const VERSION: u64 = 1;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Initialize {
    pub(super) protocol: u64,
    /// The schemas that the caller was made from, by type, or by `TYPE@VERSION`.
    #[serde(default)]
    pub(super) schemas: Map<String, Json>,
}

/// Where a request comes from. A caller that says nothing means where this process was started.
#[derive(Clone, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Caller {
    /// The folder that relative paths start from, and that resources of PowerShell are called in.
    pub(super) directory: Option<PathBuf>,
    /// Its `PSModulePath`.
    pub(super) module_path: Option<String>,
}

/// How much of what a resource says besides is passed on, each with what is before it.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Log {
    #[default]
    Info,
    Verbose,
    Debug,
}

/// What requests about a resource have in common.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Manner {
    #[serde(flatten)]
    pub(super) caller: Caller,
    pub(super) log: Log,
    /// True to be sent how far activities of the resource are.
    pub(super) progress: bool,
    /// In seconds.
    pub(super) deadline: Option<f64>,
}

/// Who decides whether an instance is in its desired state.
#[derive(Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Judge {
    /// The resource, by its own test.
    #[default]
    Resource,
    /// The properties that are stated. Resources whose test compares them decide themselves.
    Properties,
}

/// A call by the name that a resource has in PowerShell.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InvokeParams {
    pub(super) name: String,
    #[serde(default)]
    pub(super) module: Option<ModuleParams>,
    pub(super) method: MethodName,
    #[serde(default)]
    pub(super) properties: Object,
    #[serde(default)]
    pub(super) ignore_run_as_credential: bool,
    /// Set alone: only say what would be done.
    #[serde(default)]
    pub(super) what_if: bool,
    #[serde(flatten)]
    pub(super) manner: Manner,
}

/// A `ModuleSpecification`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ModuleParams {
    pub(super) name: String,
    #[serde(default)]
    pub(super) version: Option<String>,
    #[serde(default)]
    pub(super) minimum: Option<String>,
    #[serde(default)]
    pub(super) maximum: Option<String>,
    #[serde(default)]
    pub(super) guid: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum MethodName {
    Get,
    Test,
    Set,
}

/// Which resources are listed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListParams {
    /// Those that one adapter carries out; all that need none without it.
    #[serde(default)]
    pub(super) adapter: Option<String>,
    /// Those of one module, in whose name `*` stands for any text.
    #[serde(default)]
    pub(super) module: Option<ModuleParams>,
    #[serde(flatten)]
    pub(super) manner: Manner,
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
    /// Test alone: who decides.
    #[serde(default)]
    pub(super) by: Judge,
    /// Set alone: the state as a test answered it.
    #[serde(default)]
    pub(super) found: Option<Json>,
    /// Whether a script that does the same is part of the answer.
    #[serde(default)]
    pub(super) script: bool,
    #[serde(flatten)]
    pub(super) manner: Manner,
}

/// The resource that a request is about, as far as it names one.
pub(super) fn subject_of(request: &Request) -> &str {
    let named = request.params.get("type").or_else(|| request.params.get("name"));
    named.and_then(Json::as_str).unwrap_or_default()
}

/// The method of the resource that a request calls.
pub(super) fn called_by(request: &Request) -> &str {
    let invoked = || request.params.get("method").and_then(Json::as_str).unwrap_or_default();
    if request.method == "invoke" { invoked() } else { &request.method }
}

/// Turns a set into what-if.
pub(super) fn only_say(request: &mut Request) {
    if let Json::Object(params) = &mut request.params {
        params.insert("whatIf".to_owned(), true.into());
    }
}

#[derive(Deserialize)]
pub(super) struct CancelParams {
    pub(super) id: Json,
}
