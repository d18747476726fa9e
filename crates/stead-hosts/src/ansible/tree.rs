//! Inventories of Ansible in YAML, and the JSON that programs print for it.

use stead_core::text::{Entry, Kind, Node};

use crate::finding::Findings;
use crate::inventory::Inventory;

use super::groups::{ALL, Groups, Variable};
use super::ini::expanded;

/// Where programs put the variables of all machines.
const META: &str = "_meta";

const OF_GROUP: &[&str] = &["hosts", "children", "vars"];

/// Returns whether these members of an object are groups: all of them look so, or one has a name that only Ansible gives.
pub(crate) fn is_tree(entries: &[Entry]) -> bool {
    let is_member = |member: &Entry| OF_GROUP.contains(&&*member.key);
    let is_group = |entry: &Entry| match &entry.value.kind {
        Kind::Null => true,
        Kind::Object(members) => members.iter().all(is_member),
        _ => false,
    };
    let is_named = entries.iter().any(|entry| matches!(&*entry.key, META | ALL));
    is_named || !entries.is_empty() && entries.iter().all(is_group)
}

/// Reads groups.
pub(crate) fn of_tree(entries: &[Entry], findings: &mut Findings) -> Inventory {
    let mut groups = Groups::default();
    for entry in entries {
        if &*entry.key == META {
            let machines = entry.value.get("hostvars").and_then(Node::entries).unwrap_or_default();
            for machine in machines {
                groups.set(&machine.key, machine.key_span, variables(&machine.value));
            }
        } else {
            group(&mut groups, entry, findings);
        }
    }
    groups.inventory(findings)
}

fn group(groups: &mut Groups, entry: &Entry, findings: &mut Findings) {
    let (name, node) = (&*entry.key, &entry.value);
    groups.group(name);
    if node.items().is_some() {
        return machines(groups, name, node, findings);
    }
    for member in node.entries().unwrap_or_default() {
        match &*member.key {
            "hosts" => machines(groups, name, &member.value, findings),
            "children" => children(groups, name, &member.value, findings),
            "vars" => groups.group(name).variables.extend(variables(&member.value)),
            other => {
                let message = format!("the group '{}' has no '{}'", name.escape_debug(), other.escape_debug());
                findings.wrong(member.key_span, message, "a group has hosts, children, vars");
            }
        }
    }
}

/// The machines of a group: an object by their names, or a list of the names.
fn machines(groups: &mut Groups, group: &str, node: &Node, findings: &mut Findings) {
    match &node.kind {
        Kind::Null => {}
        Kind::Object(entries) => {
            for entry in entries {
                for name in expanded(&entry.key, entry.key_span, findings) {
                    groups.add(group, &name, entry.key_span);
                    groups.set(&name, entry.key_span, variables(&entry.value));
                }
            }
        }
        Kind::Array(items) => {
            for item in items {
                match item.as_str() {
                    Some(name) => groups.add(group, name, item.span),
                    None => findings.wrong(item.span, "the name of a machine must be a string", "put it in quotes"),
                }
            }
        }
        _ => findings.wrong(node.span, "'hosts' must be an object or an array", "write 'NAME:' for each machine"),
    }
}

/// The groups within a group: an object with what they are, or a list of their names.
fn children(groups: &mut Groups, parent: &str, node: &Node, findings: &mut Findings) {
    for entry in node.entries().unwrap_or_default() {
        groups.group(parent).children.insert(entry.key.to_string(), entry.key_span);
        group(groups, entry, findings);
    }
    for item in node.items().unwrap_or_default() {
        match item.as_str() {
            Some(name) => drop(groups.group(parent).children.insert(name.to_owned(), item.span)),
            None => findings.wrong(item.span, "the name of a group must be a string", "put it in quotes"),
        }
    }
}

fn variables(node: &Node) -> Vec<Variable> {
    let entries = node.entries().unwrap_or_default();
    let variable =
        |entry: &Entry| Variable { name: entry.key.to_string(), value: entry.value.literal(), span: entry.key_span };
    entries.iter().map(variable).collect()
}
