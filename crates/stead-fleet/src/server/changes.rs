//! What one roster states otherwise than another one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use stead_protocol::ChangeShown;
use stead_release::{Roster, RosterMachine};

/// What is stated from now on and was not before: channels, then machines, their labels and holds.
pub(super) fn changes(former: Option<&Roster>, roster: &Roster) -> Vec<ChangeShown> {
    let (no_floors, no_machines) = (BTreeMap::new(), BTreeMap::new());
    let floors = former.map_or(&no_floors, |former| &former.floors);
    let machines = (former.map_or(&no_machines, |former| &former.machines), &roster.machines);
    let mut changes = compared("channel", (floors, &roster.floors), |floor| Some(format!("from {}", floor.number)));
    changes.extend(compared("machine", machines, |machine| Some(keys(machine))));
    changes.extend(compared("labels", machines, labels));
    changes.extend(compared("hold", machines, |machine| {
        machine.hold.as_ref().map(|hold| format!("until {}: {}", hold.until(), hold.why()))
    }));
    changes
}

/// What differs in what is shown of each name.
fn compared<K: Ord + Display, V>(
    kind: &str,
    (former, now): (&BTreeMap<K, V>, &BTreeMap<K, V>),
    shown: impl Fn(&V) -> Option<String>,
) -> Vec<ChangeShown> {
    let names: BTreeSet<&K> = former.keys().chain(now.keys()).collect();
    let change = |name: &K| {
        let [from, to] = [former, now].map(|all| all.get(name).and_then(&shown));
        (from != to).then(|| ChangeShown { kind: kind.to_owned(), name: name.to_string(), from, to })
    };
    names.into_iter().filter_map(change).collect()
}

/// The keys of a machine: whose requests are taken for its own, and to whom secrets are sealed.
fn keys(machine: &RosterMachine) -> String {
    let sealing = machine.sealing.as_ref().map_or(String::new(), |key| format!(" {key}"));
    machine.key.fingerprint() + &sealing
}

fn labels(machine: &RosterMachine) -> Option<String> {
    let labels: Vec<_> = machine.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    (!labels.is_empty()).then(|| labels.join(" "))
}
