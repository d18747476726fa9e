//! Digests of schemas.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

/// `sha256:` and the digest of the canonical JSON of a schema: keys sorted, no blanks.
pub(crate) fn schema_digest(schema: &Json) -> String {
    let mut canonical = String::new();
    write(schema, &mut canonical);
    let digest = Sha256::digest(canonical.as_bytes());
    let hex = digest.iter().map(|byte| format!("{byte:02x}"));
    format!("sha256:{}", hex.collect::<String>())
}

fn write(json: &Json, out: &mut String) {
    match json {
        Json::Object(members) => {
            let members: BTreeMap<_, _> = members.iter().collect();
            write_list(out, ('{', '}'), members, |out, (name, value)| {
                out.push_str(&Json::String(name.clone()).to_string());
                out.push(':');
                write(value, out);
            });
        }
        Json::Array(items) => write_list(out, ('[', ']'), items, |out, item| write(item, out)),
        other => out.push_str(&other.to_string()),
    }
}

fn write_list<T>(
    out: &mut String,
    (open, close): (char, char),
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut String, T),
) {
    out.push(open);
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(close);
}
