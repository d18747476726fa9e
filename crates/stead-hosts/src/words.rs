//! Words of other tools in inventories, and other forms of what stands there.

use std::borrow::Cow;

use stead_core::text::{Kind, Node};

/// The meaning of a key of another tool at a machine.
const AT_MACHINES: [(&str, &str); 14] = [
    ("ip", "address"),
    ("host", "address"),
    ("hostname", "address"),
    ("fqdn", "address"),
    ("ansible_host", "address"),
    ("vars", "parameters"),
    ("variables", "parameters"),
    ("params", "parameters"),
    ("username", "user"),
    ("login", "user"),
    ("ansible_user", "user"),
    ("ansible_port", "port"),
    ("groups", "labels"),
    ("tags", "labels"),
];

/// Advice about a key that no machine has.
pub(crate) fn at_machine(key: &str) -> Option<String> {
    let (_, own) = AT_MACHINES.iter().find(|(word, _)| key.eq_ignore_ascii_case(word))?;
    Some(format!("write it as '{own}'"))
}

/// The form of machines that are written as a list: the first ones by their names.
pub(crate) fn as_machines(list: &Node) -> Option<String> {
    let names: Vec<&str> = list.items()?.iter().map_while(Node::as_str).take(2).collect();
    let members: Vec<String> = names.iter().map(|name| format!("{name}: {{}}")).collect();
    (!names.is_empty()).then(|| format!("write names with a colon: `machines: {{{}}}`", members.join(", ")))
}

/// The form of labels that are written as words, or as a comparison.
pub(crate) fn as_labels(node: &Node) -> Option<String> {
    let pair = |text: &str| text.split_once('=').map(|(name, value)| format!("{name}: {value}"));
    let pairs: Vec<String> = match &node.kind {
        Kind::String(text) => text.split([',', ' ']).filter_map(pair).collect(),
        Kind::Array(items) => items.iter().filter_map(Node::as_str).filter_map(pair).collect(),
        _ => return None,
    };
    let members = if pairs.is_empty() { "role: web, site: berlin".to_owned() } else { pairs.join(", ") };
    Some(format!("a label has a name and a value: write `labels: {{{members}}}`"))
}

/// An address as messages have it: what is in front of '@' may be a password.
pub(crate) fn shown(address: &str) -> Cow<'_, str> {
    match address.rsplit_once('@') {
        Some((user, rest)) if user.contains(':') => format!("…@{rest}").into(),
        _ => address.into(),
    }
}

/// The form of an address that is written with a user or a port.
pub(crate) fn apart(address: &str) -> Option<String> {
    let address = address.strip_prefix("ssh://").unwrap_or(address);
    let (user, rest) = address.rsplit_once('@').map_or((None, address), |(user, rest)| (Some(user), rest));
    let port = |(host, port): (_, &str)| port.parse::<u16>().is_ok().then(|| (host, Some(port.to_owned())));
    let (host, port) = rest.rsplit_once(':').and_then(port).unwrap_or((rest, None));
    let user = user.map(|user| format!("`user: {}`, ", if user.contains(':') { "NAME" } else { user }));
    let port = port.map(|port| format!(" and `port: {port}`"));
    (user.is_some() || port.is_some())
        .then(|| format!("write {}`address: {host}`{}", user.unwrap_or_default(), port.unwrap_or_default()))
}
