//! What every form of an inventory of Ansible comes to: groups that hold machines and other groups.

use std::collections::{BTreeMap, BTreeSet};

use stead_core::text::Span;
use stead_core::value::{Object, Value};

use crate::filter::is_label;
use crate::finding::Findings;
use crate::inventory::{Destination, Inventory, MOST_MACHINES, Machine, NAME, port_of};
use crate::name::{Address, MachineName, UserName};

/// A variable and where it is set.
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) value: Value,
    pub(super) span: Span,
}

/// A group.
#[derive(Default)]
pub(super) struct Group {
    pub(super) machines: BTreeSet<String>,
    pub(super) children: BTreeMap<String, Span>,
    pub(super) variables: Vec<Variable>,
}

/// An inventory as Ansible sees it.
#[derive(Default)]
pub(super) struct Groups {
    /// Machines in the order in which they were first named, with where that is and their own variables.
    machines: Vec<(String, Span)>,
    known: BTreeMap<String, Vec<Variable>>,
    by_name: BTreeMap<String, Group>,
}

/// The group that holds all machines.
pub(super) const ALL: &str = "all";

/// Ansible's name for machines without a group.
const UNGROUPED: &str = "ungrouped";

impl Groups {
    pub(super) fn group(&mut self, name: &str) -> &mut Group {
        self.by_name.entry(name.to_owned()).or_default()
    }

    /// Notes a machine of a group.
    pub(super) fn add(&mut self, group: &str, machine: &str, span: Span) {
        if self.know(machine, span).is_some() {
            self.group(group).machines.insert(machine.to_owned());
        }
    }

    /// The variables of a machine; `None` where there are too many machines, of which nothing more is kept.
    fn know(&mut self, machine: &str, span: Span) -> Option<&mut Vec<Variable>> {
        if !self.known.contains_key(machine) {
            if self.machines.len() > MOST_MACHINES {
                return None;
            }
            self.machines.push((machine.to_owned(), span));
        }
        Some(self.known.entry(machine.to_owned()).or_default())
    }

    pub(super) fn set(&mut self, machine: &str, span: Span, variables: impl IntoIterator<Item = Variable>) {
        if let Some(own) = self.know(machine, span) {
            own.extend(variables);
        }
    }

    /// The inventory. Groups are labels, their variables parameters: those of a group win over those of the groups that
    /// hold it, those of groups of one depth by their names, and those of a machine over all.
    pub(super) fn inventory(self, findings: &mut Findings) -> Inventory {
        let Some(depths) = self.depths(findings) else { return Inventory::default() };
        let parents = self.parents();
        let mut said = BTreeSet::new();
        let mut machines = Vec::new();
        for (name, span) in &self.machines {
            let mut member: Vec<&str> = self.member_of(name, &parents).into_iter().collect();
            member.sort_by_key(|group| (depths.get(group).copied().unwrap_or_default(), *group));
            let own = self.known.get(name).map(Vec::as_slice).unwrap_or_default();
            let layers =
                member.iter().filter_map(|group| self.by_name.get(*group)).map(|group| group.variables.as_slice());
            let variables = layers.chain([own]).flatten();
            machines.extend(machine((name, *span), &member, variables, &mut Said { findings, said: &mut said }));
        }
        Inventory { machines }
    }

    /// The groups that hold each group.
    fn parents(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut parents: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (name, group) in &self.by_name {
            for child in group.children.keys() {
                parents.entry(child).or_default().insert(name);
            }
        }
        parents
    }

    /// Every group that holds a machine, by itself or by way of others.
    fn member_of<'a>(&'a self, machine: &str, parents: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
        let direct = self.by_name.iter().filter(|(_, group)| group.machines.contains(machine));
        let mut open: Vec<&str> = direct.map(|(name, _)| name.as_str()).chain([ALL]).collect();
        let mut found = BTreeSet::new();
        while let Some(group) = open.pop() {
            if found.insert(group) {
                open.extend(parents.get(group).into_iter().flatten());
            }
        }
        found
    }

    /// How deep each group lies below the outermost ones; `None` where a group holds itself.
    fn depths(&self, findings: &mut Findings) -> Option<BTreeMap<&str, usize>> {
        let mut depths: BTreeMap<&str, usize> = BTreeMap::new();
        let mut waiting: BTreeMap<&str, usize> = self.by_name.keys().map(|name| (name.as_str(), 0)).collect();
        for child in self.by_name.values().flat_map(|group| group.children.keys()) {
            *waiting.entry(child).or_default() += 1;
        }
        let mut open: Vec<&str> = waiting.iter().filter(|(_, count)| **count == 0).map(|(name, _)| *name).collect();
        while let Some(name) = open.pop() {
            let depth = *depths.entry(name).or_insert(usize::from(name != ALL));
            for child in self.by_name.get(name).into_iter().flat_map(|group| group.children.keys()) {
                let deepest = depths.entry(child).or_default();
                *deepest = (*deepest).max(depth + 1);
                let left = waiting.entry(child).or_default();
                *left -= 1;
                if *left == 0 {
                    open.push(child);
                }
            }
        }
        let left = |name: &str| waiting.get(name).is_some_and(|left| *left > 0);
        let circular =
            self.by_name.iter().filter(|(name, _)| left(name)).find_map(|(_, group)| group.children.iter().next());
        match circular {
            Some((child, span)) => {
                findings.wrong(
                    *span,
                    format!("the group '{}' is within itself", child.escape_debug()),
                    "remove it here",
                );
                None
            }
            None => Some(depths),
        }
    }
}

/// What was said already: a variable of a group is one of many machines.
struct Said<'a> {
    findings: &'a mut Findings,
    said: &'a mut BTreeSet<Span>,
}

impl Said<'_> {
    fn left_out(&mut self, variable: &Variable, message: String, help: &str) {
        if self.said.insert(variable.span) {
            self.findings.left_out(variable.span, message, help);
        }
    }
}

fn machine<'v>(
    (name, span): (&str, Span),
    groups: &[&str],
    variables: impl Iterator<Item = &'v Variable>,
    said: &mut Said<'_>,
) -> Option<Machine> {
    let named = said.findings.named(span, ("the name of a machine", name), MachineName::parse(name));
    let mut parameters: BTreeMap<&str, &Variable> = variables.map(|variable| (&*variable.name, variable)).collect();
    let address = take(&mut parameters, &["ansible_host", "ansible_ssh_host"]);
    let (text, at) = address.map_or((name.to_owned(), span), |variable| (text_of(&variable.value), variable.span));
    let address = said.findings.named(at, ("an address", &text), Address::parse(&text));
    let user = take(&mut parameters, &["ansible_user", "ansible_ssh_user"]).and_then(|variable| {
        let text = text_of(&variable.value);
        said.findings.named(variable.span, ("the name of a user", &text), UserName::parse(&text))
    });
    let port = take(&mut parameters, &["ansible_port", "ansible_ssh_port"]).and_then(|variable| {
        let port = variable.value.as_i64().or_else(|| text_of(&variable.value).parse().ok()).and_then(port_of);
        if port.is_none() {
            said.findings.wrong(variable.span, "'ansible_port' must be a number from 1 to 65535", "such as 22");
        }
        port
    });
    let labels = groups.iter().filter(|group| !matches!(**group, ALL | UNGROUPED | NAME) && is_label(group));
    let labels = labels.map(|group| ((*group).to_owned(), "true".to_owned())).collect();
    let parameters = parameters.into_values().filter_map(|variable| parameter(variable, said)).collect::<Object>();
    Some(Machine { labels, parameters, ..Machine::at(named?, Destination { address: address?, user, port }) })
}

/// Takes out the variables of these names; the first of them counts.
fn take<'v>(variables: &mut BTreeMap<&'v str, &'v Variable>, names: &[&str]) -> Option<&'v Variable> {
    let found: Vec<_> = names.iter().filter_map(|name| variables.remove(*name)).collect();
    found.into_iter().next()
}

fn parameter(variable: &Variable, said: &mut Said<'_>) -> Option<(String, Value)> {
    let Variable { name, value, .. } = variable;
    let is_template = |text: &str| text.contains("{{") || text.contains("{%");
    if name == "ansible_connection" && value.as_str() == Some("ssh") {
        return None;
    }
    if name.starts_with("ansible_") {
        let message = format!("'{}' is a setting of Ansible, which has no effect here", name.escape_debug());
        said.left_out(variable, message, "set it in ~/.ssh/config");
        return None;
    }
    if any_text(value, &is_template) {
        let message = format!("'{}' is a template, which is not evaluated: it is not a parameter", name.escape_debug());
        said.left_out(variable, message, "write the value out, or compute it in the document");
        return None;
    }
    Some((name.clone(), value.clone()))
}

fn any_text(value: &Value, is: &impl Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => is(text),
        Value::Array(items) => items.iter().any(|item| any_text(item, is)),
        Value::Object(members) => members.values().any(|member| any_text(member, is)),
        _ => false,
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_redacted_json().to_string(), str::to_owned)
}
