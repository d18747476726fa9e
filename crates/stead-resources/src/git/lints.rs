//! Addresses that git takes for paths, and words that name no revision.

use stead_core::value::{Object, Value};
use stead_host::provider::Lint;

use super::Properties;

/// Finds a host without the scheme of a URL, and a word of other tools for the newest commit.
pub(super) fn lints(properties: &Object) -> Vec<Lint> {
    let text = |name: &str| properties.get(name).and_then(Value::as_str);
    let host = text(Properties::REPOSITORY).filter(|address| is_host(address)).map(|address| {
        let message = "git takes this for a path on the machine: it has no scheme";
        Lint::new(&[Properties::REPOSITORY], message, format!("write \"https://{address}\""))
    });
    let latest = text(Properties::REVISION).filter(|word| *word == "latest").map(|_| {
        let message = "'latest' is a branch, a tag or a commit of that name";
        let help = "name the branch, such as main, and write `update: true` to follow it";
        Lint::new(&[Properties::REVISION], message, help)
    });
    host.into_iter().chain(latest).collect()
}

/// Returns whether an address begins with the name of a host, as of `github.com/owner/name`.
fn is_host(address: &str) -> bool {
    let is_part = |each: char| each.is_ascii_alphanumeric() || "-._/".contains(each);
    let Some((host, path)) = address.split_once('/') else { return false };
    !path.is_empty() && host.contains('.') && !host.starts_with('.') && address.chars().all(is_part)
}
