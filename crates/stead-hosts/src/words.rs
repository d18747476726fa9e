//! Words of other tools in inventories, and other forms of what stands there.

use std::borrow::Cow;

use stead_core::text::{Kind, Node};

use crate::name::{Address, MachineName};

/// The meaning of a key of another tool at a machine: a key of machines.
const AT_MACHINES: [(&[&str], &str); 5] = [
    (
        &[
            "ip",
            "host",
            "hostname",
            "fqdn",
            "ansible_host",
            "ansible_ssh_host",
            "addr",
            "ipaddress",
            "ip_address",
            "dns",
            "uri",
            "target",
        ],
        "address",
    ),
    (&["vars", "variables", "params", "facts", "settings", "data", "hostvars", "values"], "parameters"),
    (&["username", "login", "ansible_user", "ansible_ssh_user", "remote_user", "ssh_user", "account"], "user"),
    (&["ansible_port", "ansible_ssh_port", "ssh_port"], "port"),
    (&["groups", "tags", "label", "group_names", "roles"], "labels"),
];

/// Keys of other tools that no machine has, and what to do instead.
const ELSEWHERE: [(&[&str], &str); 5] = [
    (
        &[
            "password",
            "passwd",
            "ansible_password",
            "ansible_ssh_pass",
            "ansible_become_password",
            "ansible_become_pass",
            "ansible_sudo_pass",
            "become_pass",
            "sudo_password",
            "ssh_pass",
        ],
        "remove it: no password stands in an inventory; `ssh` logs in with your keys, and `--ask-sudo-password` asks for that of sudo",
    ),
    (
        &[
            "key",
            "private_key",
            "identity_file",
            "identityfile",
            "ssh_key",
            "key_file",
            "ansible_ssh_private_key_file",
            "ansible_private_key_file",
        ],
        "remove it: the configuration of `ssh` names the key: `IdentityFile` below `Host` in ~/.ssh/config",
    ),
    (
        &[
            "become",
            "sudo",
            "ansible_become",
            "ansible_become_user",
            "ansible_become_method",
            "become_user",
            "ansible_sudo",
        ],
        "remove it: `--sudo` works as root on the machines",
    ),
    (
        &[
            "connection",
            "transport",
            "ansible_connection",
            "ansible_ssh_common_args",
            "ansible_ssh_extra_args",
            "ssh_options",
            "ansible_python_interpreter",
            "proxy",
            "jump",
            "proxyjump",
            "bastion",
            "minion_opts",
            "thin_dir",
            "tty",
        ],
        "remove it: machines are reached by your `ssh`: jump hosts and options belong to ~/.ssh/config",
    ),
    (&["name", "id"], "remove it: a machine is called by its key below 'machines'"),
];

/// The properties that filters compare of machines most often.
const LABELS: [&str; 20] = [
    "role",
    "env",
    "environment",
    "stage",
    "tier",
    "site",
    "location",
    "datacenter",
    "dc",
    "region",
    "zone",
    "rack",
    "os",
    "group",
    "cluster",
    "team",
    "owner",
    "project",
    "customer",
    "class",
];

/// Advice about a key that no inventory has.
pub(crate) fn at_inventory(key: &str) -> Option<&'static str> {
    match &*key.to_ascii_lowercase() {
        "groups" | "children" | "group" | "roles" => Some(
            "the machines of a group have a label: `web1: {labels: {role: web}}`, and '--where role=web' chooses them",
        ),
        "vars" | "variables" | "defaults" | "all" => Some("values for all machines are 'parameters'"),
        "hosts" | "nodes" | "servers" | "targets" | "minions" | "inventory" => Some("write it as 'machines'"),
        _ => None,
    }
}

/// Advice about a key that no machine has. The value is repeated where it is that of a label.
pub(crate) fn at_machine(key: &str, value: &Node) -> String {
    let word = key.to_ascii_lowercase().replace('-', "_");
    let word = &*word;
    if let Some((_, own)) = AT_MACHINES.iter().find(|(words, _)| words.contains(&word)) {
        return format!("write it as '{own}'");
    }
    if let Some((_, advice)) = ELSEWHERE.iter().find(|(words, _)| words.contains(&word)) {
        return (*advice).to_owned();
    }
    let is_label = LABELS.contains(&word);
    match value.as_str().filter(|value| is_label && MachineName::parse(value).is_ok()) {
        Some(value) => format!("a label is written `labels: {{{key}: {value}}}`"),
        None if is_label => format!("a label is written `labels: {{{key}: VALUE}}`"),
        None => "what filters compare goes below 'labels', and what documents have as parameters below 'parameters'"
            .to_owned(),
    }
}

/// The form of a machine that is written as its address.
pub(crate) fn as_machine(name: &str, node: &Node) -> Option<String> {
    let address = node.as_str().filter(|address| Address::parse(address).is_ok())?;
    MachineName::parse(name).ok()?;
    Some(format!("write `{name}: {{address: {address}}}`"))
}

/// The form of machines that are written as a list: the first ones by their names.
pub(crate) fn as_machines(list: &Node) -> Option<String> {
    const NAMES: [&str; 4] = ["name", "host", "hostname", "id"];
    const ADDRESSES: [&str; 4] = ["address", "ip", "ansible_host", "addr"];
    let items = list.items()?;
    let is_name = |name: &&str| MachineName::parse(name).is_ok();
    let names: Vec<&str> = items.iter().map_while(Node::as_str).filter(is_name).take(2).collect();
    if !names.is_empty() {
        let members: Vec<String> = names.iter().map(|name| format!("{name}: {{}}")).collect();
        return Some(format!("write names with a colon: `machines: {{{}}}`", members.join(", ")));
    }
    let first = items.first()?;
    let by_key = NAMES.iter().find_map(|key| Some((*key, first.get(key)?.as_str().filter(is_name)?)));
    // In `- web1: {...}` the name is a key.
    let (written, name) = if let Some((key, name)) = by_key {
        (format!("- {key}: {name}"), name)
    } else {
        let key = first.entries()?.first().map(|entry| &*entry.key).filter(is_name)?;
        (format!("- {key}:"), key)
    };
    let address = ADDRESSES.iter().find_map(|key| first.get(key)?.as_str().filter(|text| Address::parse(text).is_ok()));
    let form = match (by_key, address) {
        (None, _) => format!("{name}:"),
        (_, Some(address)) => format!("{name}: {{address: {address}}}"),
        _ => format!("{name}: {{}}"),
    };
    Some(format!("a machine is called by its key: write `{form}` in place of `{written}`"))
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

/// Returns whether an address has a port behind it: one of IPv6 has more than one ':'.
pub(crate) fn has_port(address: &str) -> bool {
    let port = address.split_once(':').map(|(_, port)| port);
    port.is_some_and(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The form of an address that is written with a user or a port.
pub(crate) fn apart(address: &str) -> Option<String> {
    let schemes = ["ssh://", "http://", "https://"];
    let host = schemes.iter().find_map(|scheme| address.strip_prefix(scheme)).map(|rest| rest.trim_end_matches('/'));
    if let Some(host) = host.filter(|host| Address::parse(host).is_ok() && !host.contains(':')) {
        return Some(format!("write `address: {host}`"));
    }
    let address = host.unwrap_or(address);
    let (user, rest) = address.rsplit_once('@').map_or((None, address), |(user, rest)| (Some(user), rest));
    let port = |(host, port): (_, &str)| port.parse::<u16>().is_ok().then(|| (host, Some(port.to_owned())));
    let (host, port) = rest.rsplit_once(':').and_then(port).unwrap_or((rest, None));
    let user = user.map(|user| format!("`user: {}`, ", if user.contains(':') { "NAME" } else { user }));
    let port = port.map(|port| format!(" and `port: {port}`"));
    (user.is_some() || port.is_some())
        .then(|| format!("write {}`address: {host}`{}", user.unwrap_or_default(), port.unwrap_or_default()))
}
