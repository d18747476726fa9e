//! Inventories: which machines there are, and what is said of each.

use std::collections::BTreeMap;

use stead_core::diag::{did_you_mean, nearest};
use stead_core::value::Object;

use crate::filter::Filter;
use crate::name::{Address, MachineName, UserName};

/// The machines that are known, in the order in which they were written. No name occurs twice.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Inventory {
    /// The machines.
    pub machines: Vec<Machine>,
}

/// A machine of an inventory.
#[derive(Clone, PartialEq, Debug)]
pub struct Machine {
    /// What it is called in everything that is printed.
    pub name: MachineName,
    /// Where it is.
    pub destination: Destination,
    /// What filters compare, by name.
    pub labels: BTreeMap<String, String>,
    /// The values that it has for parameters of documents, of all layers.
    pub parameters: Object,
}

/// Where a machine is, as far as that is stated: the configuration of `ssh` says the rest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Destination {
    /// Its address.
    pub address: Address,
    /// The account there.
    pub user: Option<UserName>,
    /// The port of its SSH server.
    pub port: Option<u16>,
}

impl Inventory {
    /// Returns the machines that a filter means; all without one.
    pub fn select<'a>(&'a self, filter: Option<&'a Filter>) -> impl Iterator<Item = &'a Machine> {
        self.machines.iter().filter(move |machine| filter.is_none_or(|filter| machine.matches(filter)))
    }
}

impl Inventory {
    /// Advice about a label that no machine has: a word that is something else, or near to what there is.
    pub fn advice_about_label(&self, label: &str) -> Option<String> {
        if self.machines.iter().any(|machine| machine.name.as_str() == label) {
            return Some(format!("'{label}' is the name of a machine: write name={label}"));
        }
        // A word may be the value that a label has at a machine.
        let mut labels = self.machines.iter().flat_map(|machine| &machine.labels);
        if let Some((known, _)) = labels.find(|(_, value)| *value == label) {
            return Some(format!("'{label}' is a value of the label '{known}': write {known}={label}"));
        }
        let labels = || self.machines.iter().flat_map(|machine| &machine.labels);
        if let Some(meant) = nearest(label, labels().map(|(name, _)| name.as_str())) {
            return Some(did_you_mean(meant));
        }
        // A group such as 'webservers', where machines have `role: web`.
        let group = labels().find(|(_, value)| is_group_of(label, value));
        group.map(|(name, value)| format!("an inventory has labels in place of groups: write {name}={value}"))
    }
}

/// Returns whether a word is the name of a group of what a label says: `web`, `webs`, `web_servers` or `webservers`.
fn is_group_of(word: &str, value: &str) -> bool {
    const ENDINGS: [&str; 10] =
        ["s", "server", "servers", "host", "hosts", "node", "nodes", "machine", "machines", "group"];
    let rest = word.strip_prefix(value).filter(|_| value.len() > 1);
    rest.is_some_and(|rest| ENDINGS.contains(&rest.trim_start_matches(['_', '-'])))
}

impl Machine {
    /// A machine of which nothing is known but its name and where it is.
    pub fn at(name: MachineName, destination: Destination) -> Self {
        Self { name, destination, labels: BTreeMap::new(), parameters: Object::new() }
    }

    /// Returns whether a filter means it. `name` is a label that each machine has.
    pub fn matches(&self, filter: &Filter) -> bool {
        filter.matches(&|label: &str| match label {
            NAME => Some(self.name.as_str()),
            label => self.labels.get(label).map(String::as_str),
        })
    }
}

/// The label that each machine has: its name.
pub(crate) const NAME: &str = "name";

/// The most machines of one inventory.
pub(crate) const MOST_MACHINES: usize = 20_000;

/// The number as a port.
pub(crate) fn port_of(number: i64) -> Option<u16> {
    u16::try_from(number).ok().filter(|port| *port > 0)
}
