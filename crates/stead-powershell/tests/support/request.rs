//! A request to a worker, as whoever stands in for one reads it.

use serde_json::{Value as Json, json};

/// A request as one object, with its properties by their names.
pub(crate) fn request(line: &str) -> Json {
    let parts: Vec<&str> = line.split('\t').collect();
    let known = fields(parts[1]);
    let values: Vec<Json> = match &*known[7] {
        "texts" => fields(parts[2]).into_iter().map(Json::String).collect(),
        _ => serde_json::from_str(parts[2]).unwrap(),
    };
    let names = ["kind", "module", "resource", "method", "records", "directory", "root"];
    let mut request: Json = names.iter().zip(&known).map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    request["names"] = json!(known[8..]);
    request["properties"] = known[8..].iter().cloned().zip(values).collect();
    request["id"] = json!(parts[0]);
    request
}

/// The texts that are stated as one.
fn fields(joined: &str) -> Vec<String> {
    joined.split('\u{1}').map(unescaped).collect()
}

fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut whole = parts.next().unwrap().to_owned();
    while let Some(part) = parts.next() {
        if let Some(code) = part.strip_prefix('u') {
            whole.push(char::from_u32(u32::from_str_radix(&code[..4], 16).unwrap()).unwrap());
            whole.push_str(&code[4..]);
        } else {
            // Two of them are one.
            whole.push('\\');
            whole.push_str(parts.next().unwrap());
        }
    }
    whole
}
