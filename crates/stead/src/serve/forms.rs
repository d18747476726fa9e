//! Values and differences in the form that the protocol has for them.

use serde_json::{Value as Json, json};
use stead_core::diff::{Alteration, Change};
use stead_core::value::Value;

use crate::rpc::object;

/// A difference: what is desired is what is there after, or nothing.
pub(super) fn change(change: &Change) -> Json {
    let property = change.path.as_str();
    match &change.what {
        Alteration::Added(new) => object([("property", property.into()), ("desired", plain(new))]),
        Alteration::Removed(old) => object([("property", property.into()), ("actual", plain(old))]),
        Alteration::Replaced { old, new } => {
            object([("property", property.into()), ("actual", plain(old)), ("desired", plain(new))])
        }
    }
}

/// A value as the protocol has it: where a secret is, only that there is one.
pub(super) fn plain(value: &Value) -> Json {
    value.to_json_with(&|| json!({ "$secret": true }))
}
