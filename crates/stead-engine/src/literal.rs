//! Properties as they are written, where nothing in them is still to be computed.

use serde_json::{Map, Value as Json};
use stead_core::expr::Template;
use stead_core::text::Kind;

/// Whether nothing in a value is still to be computed or opened.
pub(crate) fn is_literal(value: &Template) -> bool {
    match &value.kind {
        Kind::Compiled(_) => false,
        Kind::Array(items) => items.iter().all(is_literal),
        Kind::Object(entries) => entries
            .iter()
            .all(|entry| !matches!(&*entry.key, "secureString" | "secureObject") && is_literal(&entry.value)),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::String(_) => true,
    }
}

/// The members of an object, expressions as text; a text for which `is_needed` is false is left empty. It is given the
/// name of the member as well. An empty object for anything else.
pub(crate) fn members(properties: &Template, is_needed: impl Fn(&str, &str) -> bool) -> Map<String, Json> {
    let member = |name: &str, value: &Template| match &value.kind {
        Kind::String(text) if !is_needed(name, text) => Json::String(String::new()),
        _ => value.literal().to_redacted_json(),
    };
    let entries = properties.entries().into_iter().flatten();
    entries.map(|entry| (entry.key.to_string(), member(&entry.key, &entry.value))).collect()
}
