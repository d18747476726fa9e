//! The parameters of requests. `docs/serve.md` is the contract.

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

/// The type that a request is about, as far as it names one.
pub(super) fn type_of(request: &Request) -> &str {
    request.params.get("type").and_then(Json::as_str).unwrap_or_default()
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
