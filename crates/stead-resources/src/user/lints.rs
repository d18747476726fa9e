//! Shells that login programs do not find.

use stead_core::value::{Object, Value};
use stead_host::provider::Lint;

use super::Properties;

/// Finds a shell that is not written with its path.
pub(super) fn lints(properties: &Object) -> Vec<Lint> {
    let shell = properties.get(Properties::SHELL).and_then(Value::as_str);
    let name = shell.filter(|shell| !shell.is_empty() && shell.chars().all(|each| each.is_ascii_alphanumeric()));
    let lint = |name: &str| {
        let path = if name == "nologin" { "/usr/sbin/nologin".to_owned() } else { format!("/bin/{name}") };
        Lint::new(&[Properties::SHELL], "a shell is found by its path alone", format!("write {path}"))
    };
    name.map(lint).into_iter().collect()
}
