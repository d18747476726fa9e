//! Properties as they are written, where something in them is still to be computed.

use stead_core::expr::Template;
use stead_core::text::Kind;
use stead_core::value::{Object, Value};

/// The members of an object, expressions as text; a text for which `is_needed` is false is left empty. It is given the
/// name of the member as well. An empty object for anything else.
pub(crate) fn members(properties: &Template, is_needed: impl Fn(&str, &str) -> bool) -> Object {
    let member = |name: &str, value: &Template| match &value.kind {
        Kind::String(text) if !is_needed(name, text) => Value::from(""),
        _ => value.literal(),
    };
    let entries = properties.entries().into_iter().flatten();
    entries.map(|entry| (entry.key.as_ref().to_owned(), member(&entry.key, &entry.value))).collect()
}
