//! How states and answers show packages.

use stead_core::destruction::{Effect, Effects};
use stead_core::value::{Object, Value};
use stead_host::provider::SetReply;

use super::manager::{Install, Installed, Lists, Package, Plan, Presence, is_same};
use super::system::System;
use super::{Change, Properties, package};
use crate::reply;

impl Properties<'_> {
    pub(super) fn effect(&self, differing: &[&str]) -> Effect {
        match (self.exist, differing.contains(&Properties::EXIST)) {
            (true, true) => Effect::Create,
            (true, false) => Effect::Change,
            (false, _) => Effect::Remove,
        }
    }

    /// Returns what a test predicts of a set without the package lists: which of several packages are missing.
    pub(super) fn expected(&self, system: &System<'_>, differing: &[&str]) -> SetReply {
        let mut effects = Effects::of(self.effect(differing));
        let differs = self.names().filter(|name| self.differing_of(system, name).contains(&Properties::EXIST));
        for name in differs {
            let version = system.installed.find(name).map(|found| found.version.to_string());
            let list = if self.exist { &mut effects.creates } else { &mut effects.destroys };
            list.push(package(name, if self.exist { "" } else { version.as_deref().unwrap_or_default() }, None));
        }
        let after = self.state_after(&Plan::default(), &system.installed);
        SetReply { effects, ..reply::set(after, differing, Vec::new()) }
    }

    pub(super) fn reply(
        &self,
        change: &Change,
        before: &Installed,
        words: Vec<String>,
        lists: Option<&Lists>,
    ) -> SetReply {
        let mut effects = Effects::of(self.effect(&change.differing));
        effects.creates.extend(lists.map(Lists::item));
        let after = self.state_after(&change.plan, before);
        // The property tells the version of the one package, unless it is stated in another way.
        let shown = self.name.and_then(|name| Some((name.0, after.get(Properties::VERSION)?.as_str()?)));
        let is_shown =
            |new: &Install| shown.is_some_and(|(name, version)| is_same(&new.name, name) && new.version == version);
        let is_stated = |new: &&Install| self.names().any(|stated| is_same(&new.name, stated));
        let others = change.plan.installs.iter().filter(|new| !is_shown(new));
        let (stated, others): (Vec<&Install>, Vec<&Install>) = others.partition(is_stated);
        effects.creates.extend(
            stated.into_iter().chain(others).map(|new| package(&new.name, &new.version, new.former.as_deref())),
        );
        effects.destroys.extend(change.plan.removes.iter().map(|gone| package(&gone.name, &gone.version, None)));
        SetReply { effects, ..reply::set(after, &change.differing, words) }
    }

    /// The steps of a change, in words.
    pub(super) fn intentions(&self, change: &Change) -> Vec<String> {
        let installs = change.plan.installs.iter().map(|new| match &new.former {
            None => format!("install {} {}", new.name, new.version),
            Some(former) => format!("change {} from {former} to {}", new.name, new.version),
        });
        let word = if self.purge { "purge" } else { "remove" };
        let removes = change.plan.removes.iter().map(|gone| format!("{word} {} {}", gone.name, gone.version));
        let hold = |(name, on): &(String, bool)| format!("{} {name}", if *on { "hold" } else { "release the hold of" });
        let automatic = |(name, on): &(String, bool)| {
            format!("mark {name} as installed {}", if *on { "automatically" } else { "manually" })
        };
        let transaction = &change.transaction;
        let marks = transaction.hold.iter().map(hold).chain(transaction.automatic.iter().map(automatic));
        removes.chain(installs).chain(marks).collect()
    }

    /// The state, with what is stated for what does not differ.
    pub(super) fn state(&self, installed: &Installed, differing: &[&str]) -> Object {
        let found = |name: &str| installed.find(name).filter(|found| found.presence != Presence::Configuration);
        let is_whole = |name: &str| installed.find(name).is_some_and(|found| found.presence == Presence::Installed);
        // Some of several are neither there nor gone: it is what they should not be.
        let exist =
            if self.exist { self.names().all(is_whole) } else { self.names().any(|name| found(name).is_some()) };
        let mut state = self.named(exist);
        if !exist {
            let is_left = self.names().any(|name| installed.find(name).is_some());
            state.extend(self.purge.then(|| (Properties::PURGE.to_owned(), Value::from(!is_left))));
        }
        let version = self.version.as_ref().filter(|_| exist && !differing.contains(&Properties::VERSION));
        let found: Vec<&Package> = self.names().filter_map(found).collect();
        let versions = found.iter().map(|package| package.version.to_string()).collect();
        self.add_versions(&mut state, version.map(|version| version.text), versions);
        if exist {
            state.insert(Properties::HOLD.to_owned(), Value::from(found.iter().all(|package| package.hold)));
            let automatic: Option<Vec<bool>> = found.iter().map(|package| package.automatic).collect();
            let automatic = automatic.map(|each| each.into_iter().all(|automatic| automatic));
            state.extend(automatic.map(|automatic| (Properties::AUTOMATIC.to_owned(), Value::from(automatic))));
        }
        state
    }

    fn named(&self, exist: bool) -> Object {
        let mut state = Object::with_capacity(6);
        state.extend(self.name.map(|name| (Properties::NAME.to_owned(), Value::from(name.0))));
        if let Some(names) = &self.names {
            let names = names.iter().map(|name| Value::from(name.0)).collect();
            state.insert(Properties::NAMES.to_owned(), Value::Array(names));
        }
        state.insert(Properties::EXIST.to_owned(), Value::from(exist));
        state
    }

    /// The version of the one package, as stated where that holds, or those of several.
    fn add_versions(&self, state: &mut Object, stated: Option<&str>, found: Vec<String>) {
        let one = self.name.and(found.first().map(String::as_str));
        let version = stated.or(one).map(|version| (Properties::VERSION.to_owned(), Value::from(version)));
        state.extend(version);
        if self.names.is_some() && !found.is_empty() {
            state.insert(Properties::VERSIONS.to_owned(), Value::from(found));
        }
    }

    /// The state after a set that comes to this plan.
    pub(super) fn state_after(&self, plan: &Plan, before: &Installed) -> Object {
        let mut state = self.named(self.exist);
        if !self.exist {
            state.extend(self.purge.then(|| (Properties::PURGE.to_owned(), Value::from(true))));
            return state;
        }
        let planned = |name: &str| {
            let planned = plan.installs.iter().find(|new| is_same(&new.name, name));
            planned.map(|new| new.version.clone()).or_else(|| before.find(name).map(|found| found.version.to_string()))
        };
        self.add_versions(
            &mut state,
            self.version.as_ref().map(|version| version.text),
            self.names().filter_map(planned).collect(),
        );
        for (property, stated) in [(Properties::HOLD, self.hold), (Properties::AUTOMATIC, self.automatic)] {
            state.extend(stated.map(|stated| (property.to_owned(), Value::from(stated))));
        }
        state
    }
}
