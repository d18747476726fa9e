//! What a plan has shown of an instance, and whether a transaction comes to that.

use stead_core::call::Changed;
use stead_core::destruction::{Item, ItemKind};
use stead_core::value::Value;
use stead_host::provider::Binding;

use super::Properties;
use super::manager::{Installed, Plan, Presence, Transaction, is_same};

/// The installed and removed packages that a plan has shown for an instance.
pub(super) struct Shown<'a> {
    /// Names and versions.
    installs: Vec<(&'a str, &'a str)>,
    removes: Vec<&'a str>,
}

impl<'a> Shown<'a> {
    /// Returns what a set is bound to; `None` if it is not bound: there is no plan, or there were no package lists to plan with.
    /// `name` is the package of an instance that states just one, whose version is among its properties.
    pub(super) fn of(binding: &'a Binding, name: Option<&'a str>) -> Option<Self> {
        let Binding::Plan(changed) = binding else { return None };
        let Some(changed) = changed.as_deref() else {
            return Some(Self { installs: Vec::new(), removes: Vec::new() });
        };
        let created = changed.effects.creates.items();
        if changed.effects.leaves_versions_open() {
            return None;
        }
        let version = |item: &'a Item| match &item.kind {
            ItemKind::Package { version, .. } => Some((item.path.as_str(), version.as_str())),
            _ => None,
        };
        let mut installs: Vec<_> = created.iter().filter_map(version).collect();
        let is_listed = |name: &&str| installs.iter().any(|(listed, _)| is_same(listed, name));
        if let Some(name) = name.filter(|name| !is_listed(name)) {
            installs.extend(own_version(changed).map(|version| (name, version)));
        }
        let removes = changed.effects.destroys.items().iter().filter_map(version).map(|(name, _)| name).collect();
        Some(Self { installs, removes })
    }

    /// The version that a package was to get.
    pub(super) fn version_of(&self, name: &str) -> Option<&'a str> {
        let found = self.installs.iter().find(|(shown, _)| is_same(shown, name) || is_same(name, shown));
        found.map(|(_, version)| *version)
    }

    /// Pins the packages that a transaction installs to the versions that were shown of them.
    pub(super) fn pin(&self, mut transaction: Transaction) -> Transaction {
        for (name, version) in &mut transaction.install {
            *version = self.version_of(name).map(str::to_owned).or(version.take());
        }
        transaction
    }

    /// Describes the first deviation of `plan` from what was shown: a change that was not shown, or one that was and is missing.
    /// `None` if there is none. A change that another instance, or an earlier attempt, has already made is not missing.
    pub(super) fn deviation(&self, plan: &Plan, installed: &Installed) -> Option<String> {
        let is_there = |name: &str| installed.find(name).is_some_and(|found| found.presence == Presence::Installed);
        let is_new = |name: &str| plan.installs.iter().any(|new| is_same(&new.name, name) || is_same(name, &new.name));
        let is_left = |name: &str| {
            let found = installed.find(name).is_some_and(|found| found.presence != Presence::Configuration);
            found && !plan.removes.iter().any(|gone| gone.name == name)
        };
        let others = plan.installs.iter().filter_map(|new| match self.version_of(&new.name) {
            Some(version) if version == new.version => None,
            Some(version) => Some(format!("'{}' would get version {}, not {version}", new.name, new.version)),
            None => Some(format!("'{}' {} would be installed as well", new.name, new.version)),
        });
        let gone = plan.removes.iter().filter(|gone| !self.removes.contains(&gone.name.as_str()));
        let gone = gone.map(|gone| format!("'{}' would be removed as well", gone.name));
        let missing = self.installs.iter().filter(|(name, _)| !is_new(name) && !is_there(name));
        let missing = missing.map(|(name, _)| format!("'{name}' would not be installed"));
        let left =
            self.removes.iter().filter(|name| is_left(name)).map(|name| format!("'{name}' would not be removed"));
        others.chain(gone).chain(missing).chain(left).next()
    }
}

fn own_version(changed: &Changed) -> Option<&str> {
    changed.after.get(Properties::VERSION).and_then(Value::as_str)
}
