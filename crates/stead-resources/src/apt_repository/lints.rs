//! Addresses of repositories that apt has no method for.

use stead_core::value::{Object, Value};
use stead_host::provider::Lint;

use super::Properties;

/// Finds addresses without a scheme.
pub(super) fn lints(properties: &Object) -> Vec<Lint> {
    let uris = properties.get(Properties::URIS).and_then(Value::as_array).into_iter().flatten().enumerate();
    let without = uris.filter_map(|(at, uri)| Some((at, uri.as_str().filter(|uri| !uri.contains(':'))?)));
    let lint = |(at, uri): (usize, &str)| {
        let is_host =
            uri.contains('.') && uri.chars().all(|each| each.is_ascii_alphanumeric() || "-._/".contains(each));
        let help = if is_host {
            format!("write \"https://{uri}\"")
        } else {
            "write a URL, such as https://deb.debian.org/debian".to_owned()
        };
        Lint::new(&[Properties::URIS, &at.to_string()], "apt has no method for an address without a scheme", help)
    };
    without.map(lint).collect()
}
