//! The digest by which schemas are compared.

use serde_json::Value as Json;

use crate::digest::sha256;

/// `sha256:` and the digest of a schema, as hexadecimal digits. The order of members and white space do not count.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use stead_core::schema::digest;
///
/// let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
/// let other = json!({ "type": "object", "properties": { "path": { "type": "integer" } } });
/// assert_eq!(digest(&schema), digest(&schema.clone()));
/// assert_ne!(digest(&schema), digest(&other));
/// ```
pub fn digest(schema: &Json) -> String {
    let mut text = String::new();
    write_canonical(schema, &mut text);
    format!("sha256:{}", sha256(text))
}

/// As JSON without white space, members by their names.
fn write_canonical(value: &Json, text: &mut String) {
    match value {
        Json::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            enclosed(text, "{", "}", members, |(name, value), text| {
                text.push_str(&Json::from(name.as_str()).to_string());
                text.push(':');
                write_canonical(value, text);
            });
        }
        Json::Array(items) => enclosed(text, "[", "]", items, write_canonical),
        other => text.push_str(&other.to_string()),
    }
}

fn enclosed<I>(
    text: &mut String,
    open: &str,
    close: &str,
    items: impl IntoIterator<Item = I>,
    write: impl Fn(I, &mut String),
) {
    text.push_str(open);
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        write(item, text);
    }
    text.push_str(close);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn order_does_not_count_and_everything_else_does() {
        let schema = json!({ "type": "object", "required": ["b", "a"], "properties": { "a\n": 1 } });
        let text = r#" {"properties":{"a\n":1}, "required":["b","a"], "type":"object"} "#;
        assert_eq!(digest(&schema), digest(&serde_json::from_str(text).unwrap_or_default()));
        assert_ne!(digest(&schema), digest(&json!({ "type": "object", "required": ["a", "b"] })));
        // By `printf '[]' | sha256sum`.
        let empty = "sha256:4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945";
        assert_eq!(digest(&json!([])), empty);
    }
}
