//! `Stead/Package`: packages of the operating system.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use stead_core::call::{Execution, Exported, Failure, FailureKind, Presumed};
use stead_core::claims::{Provision, Ties};
use stead_core::destruction::{Effects, Item, ItemKind};
use stead_core::manifest::Capabilities;
use stead_core::statements::Statement;
use stead_core::value::{Object, Value};
use stead_declare::resource;
use stead_host::provider::{Context, Cost, Plain, Provider, SetReply, State, TestReply};

use crate::declared::Declared as _;
use crate::input::{PackageName, ReadOnly, ReleaseName, impossible, read, read_each, required, transient};
use crate::{ALL_BUT_EXPORT, BuiltIn, reply};

mod apt;
mod dnf;
mod dpkg;
mod locks;
mod manager;
mod rpm;
mod shown;
mod states;
mod system;
mod version;

use apt::Apt;
use dnf::Dnf;
use manager::{Install, Installed, Lists, Package, PackageManager, Plan, Presence, Remove, Transaction, is_same};
use shown::Shown;
use system::{System, is_virtual, no_database, not_listed};
use version::{PackageVersion, Requirement};

/// Packages of the distribution, with apt or dnf (version 4). What is installed is read from the database of the package
/// manager, that of rpm with `rpm`. The package manager itself runs only to plan or make a change, and asks no questions. The
/// packages of one instance are installed or removed in one transaction.
#[resource(
    "Stead/Package",
    about = "Packages of the distribution.",
    tags("apt", "dnf", "linux", "package"),
    undo = Cannot,
    capabilities = Capabilities { export: true, ..ALL_BUT_EXPORT },
    exclusive(name, names),
)]
#[schemars(extend("dependentSchemas" = { "name": { "properties": { "names": false } } }))]
struct Properties<'a> {
    /// The name of the package, with its architecture after a colon if it is not that of the system. This or 'names' is
    /// required.
    #[property(key)]
    name: Option<PackageName<'a>>,
    /// The names of several packages; in place of 'name'.
    #[schemars(length(min = 1))]
    names: Option<Vec<PackageName<'a>>>,
    /// The version: an exact one, comparisons that must all hold, such as ">= 1.2, < 2", or latest for the newest one in the
    /// package lists. Any version by default.
    version: Option<PackageVersion<'a>>,
    /// Whether the package is held at its version. A held package is changed only by an instance that states this
    /// property. With dnf, this requires its plugin versionlock.
    hold: Option<bool>,
    /// Whether it is marked as automatically installed, so that it can be removed when no other package requires it. Only
    /// with apt.
    automatic: Option<bool>,
    /// The release to install it from, such as bookworm-backports. By default the package manager chooses. Only with apt.
    #[property(option)]
    release: Option<ReleaseName<'a>>,
    /// Whether recommended packages are installed with it. By default as the package manager is configured.
    #[property(option)]
    recommends: Option<bool>,
    /// Whether its configuration files are removed with it. Only with apt.
    purge: bool,
    /// Whether an older version may be installed in place of a newer one.
    #[property(option)]
    allow_downgrade: bool,
    /// When the package lists are updated before an installation. Unless that is never, they are updated as well where they lack
    /// what is to be installed. A what-if uses the existing lists, and says how old they are if a set would update them. What a
    /// saved plan shows is installed in just the versions that it shows, or not at all.
    #[property(option)]
    #[serde(default)]
    update_lists: UpdateLists,
    /// The age in seconds at which package lists are stale; a day by default. They are also stale when a repository was changed
    /// after the last update.
    #[property(option)]
    maximum_list_age: Option<u32>,
    /// Whether the package is installed.
    exist: bool,
    /// The versions of the packages of 'names' that are installed.
    versions: Option<ReadOnly<Vec<String>>>,
}

/// When package lists are updated.
#[derive(Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
enum UpdateLists {
    /// When they are stale.
    #[default]
    Stale,
    /// Each time that something is installed.
    Always,
    /// Never.
    Never,
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {
    fn check(&self) -> Result<(), Failure> {
        let is_named = self.name.is_some() || self.names.as_ref().is_some_and(|names| !names.is_empty());
        if is_named { Ok(()) } else { Err(required(&[Properties::NAME, Properties::NAMES])) }
    }
}

/// `Stead/Package` as it is registered.
pub(crate) fn built_in() -> Option<BuiltIn> {
    Properties::built_in(Arc::new(Packages::default()))
}

/// What only systems of other package managers have.
const OTHERS: [(&str, &str); 3] =
    [("etc/zypp", "zypper"), ("var/lib/pacman/local", "pacman"), ("lib/apk/db/installed", "apk")];

/// Carries out `Stead/Package`.
#[derive(Default)]
struct Packages {
    apt: Apt,
    dnf: Dnf,
    /// Held while packages are changed: package managers refuse to work twice at once.
    changing: Mutex<()>,
}

impl Packages {
    /// The package manager of a system. That dpkg, or rpm, is there to look into packages makes none of it.
    fn manager(&self, cx: &Context) -> Result<&dyn PackageManager, Failure> {
        let status = cx.system_root.status(dpkg::STATUS);
        if status.is_some_and(|status| status.size > 0) {
            return Ok(&self.apt);
        }
        if let Some((_, other)) = OTHERS.iter().find(|(place, _)| cx.system_root.status(place).is_some()) {
            return Err(impossible("", format!("the package manager {other} is not supported, only apt and dnf")));
        }
        match (rpm::exists(cx), status) {
            (true, _) => Ok(&self.dnf),
            (false, Some(_)) => Ok(&self.apt),
            (false, None) => Err(no_database(cx)),
        }
    }

    /// The package manager that carries an instance out.
    fn manager_for(&self, cx: &Context, desired: &Properties<'_>) -> Result<&dyn PackageManager, Failure> {
        let manager = self.manager(cx)?;
        let is_stated = |property: &str| match property {
            Properties::AUTOMATIC => desired.automatic.is_some(),
            Properties::PURGE => desired.purge,
            Properties::RELEASE => desired.release.is_some(),
            _ => false,
        };
        match manager.unsupported().iter().find(|(property, _)| is_stated(property)) {
            Some((property, why)) => Err(impossible(
                property,
                format!("'{property}' is not supported by the package manager of this system: {why}"),
            )),
            None => Ok(manager),
        }
    }
}

impl Provider for Packages {
    fn has_state_elsewhere(&self, _cx: &Context, _input: &Plain) -> bool {
        true
    }

    fn test_cost(&self, desired: &Value) -> Cost {
        // Only the package lists know which version that is, and a program asks them.
        let is_latest = desired.get(Properties::VERSION).and_then(Value::as_str) == Some("latest");
        if is_latest { Cost::Process } else { Cost::Inline }
    }

    fn states(&self, _cx: &Context, input: &Plain) -> Vec<Statement> {
        let Ok(stated) = read_each::<Properties<'_>>(input) else { return Vec::new() };
        // Ranges may have versions in common.
        let is_exact = matches!(stated.version.as_ref().map(|each| &each.requirement), Some(Requirement::Exact(_)));
        let properties: &[&str] = if is_exact {
            &[Properties::VERSION, Properties::HOLD, Properties::AUTOMATIC]
        } else {
            &[Properties::HOLD, Properties::AUTOMATIC]
        };
        let thing = |name| format!("the package '{name}'");
        stated.names().flat_map(|name| reply::states(&thing(name), input, properties)).collect()
    }

    fn ties(&self, input: &Plain) -> Ties {
        if reply::is_removal(input) {
            return Ties::default();
        }
        let stated = input.expose();
        let names = stated
            .get(Properties::NAMES)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .chain(stated.get(Properties::NAME));
        let provides = names.filter_map(|name| Some(Provision::Package(name.as_str()?.to_owned()))).collect();
        Ties { provides, uses: vec![Provision::PackageSource] }
    }

    fn validate(&self, _cx: &Context, input: &Plain) -> Result<(), Failure> {
        read::<Properties<'_>>(input).map(|_| ())
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        let desired: Properties<'_> = read(input)?;
        let system = System::look(self.manager_for(cx, &desired)?, cx, &desired)?;
        Ok(Plain::new(desired.state(&system.installed, &desired.differing(&system))))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let desired: Properties<'_> = read(input)?;
        let system = System::look(self.manager_for(cx, &desired)?, cx, &desired)?;
        let differing = desired.differing(&system);
        let state = desired.state(&system.installed, &differing);
        if desired.names.is_none() || differing.is_empty() {
            return Ok(reply::tested(state, &differing));
        }
        Ok(reply::tested_as(state, &differing, desired.expected(&system, &differing)))
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let desired: Properties<'_> = read(input)?;
        let manager = self.manager_for(cx, &desired)?;
        match execution {
            Execution::WhatIf => desired.predict(manager, cx),
            Execution::Actual => {
                let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
                desired.bring_about(manager, cx)
            }
        }
    }

    fn delete(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<Vec<String>, Failure> {
        let desired = Properties { exist: false, ..read(input)? };
        let manager = self.manager_for(cx, &desired)?;
        if execution == Execution::WhatIf {
            return desired.predict(manager, cx).map(|predicted| predicted.what_if);
        }
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        desired.bring_about(manager, cx).map(|_| Vec::new())
    }

    fn export(&self, cx: &Context, _filter: &Plain) -> Result<Vec<Exported>, Failure> {
        let installed = self.manager(cx)?.installed(cx)?;
        Ok(installed.complete().map(|package| exported(&installed, package)).collect())
    }
}

fn exported(installed: &Installed, package: &Package) -> Exported {
    let name = installed.full_name(package);
    let mut state = Object::with_capacity(5);
    state.insert(Properties::NAME.to_owned(), Value::from(name.as_str()));
    state.insert(Properties::VERSION.to_owned(), Value::from(&*package.version));
    for (property, holds) in
        [(Properties::HOLD, package.hold), (Properties::AUTOMATIC, package.automatic == Some(true))]
    {
        state.extend(holds.then(|| (property.to_owned(), Value::from(true))));
    }
    state.insert(Properties::EXIST.to_owned(), Value::from(true));
    Exported::named(name, state)
}

/// What a set comes to.
struct Change {
    differing: Vec<&'static str>,
    transaction: Transaction,
    plan: Plan,
}

impl<'a> Properties<'a> {
    fn names(&self) -> impl Iterator<Item = &'a str> {
        self.name.iter().chain(self.names.iter().flatten()).map(|name| name.0)
    }

    /// The names of the properties that differ.
    fn differing(&self, system: &System<'_>) -> Vec<&'static str> {
        let mut differing = Vec::new();
        for property in self.names().flat_map(|name| self.differing_of(system, name)) {
            if !differing.contains(&property) {
                differing.push(property);
            }
        }
        differing
    }

    fn differing_of(&self, system: &System<'_>, name: &str) -> Vec<&'static str> {
        let found = system.installed.find(name);
        let whole = found.filter(|found| found.presence == Presence::Installed);
        match (whole, found) {
            (Some(found), _) if self.exist => {
                let version = self
                    .version
                    .as_ref()
                    .is_some_and(|version| !system.accepts(&version.requirement, name, &found.version));
                let hold = self.hold.is_some_and(|hold| hold != found.hold);
                let automatic = self.automatic.is_some_and(|automatic| Some(automatic) != found.automatic);
                let all =
                    [(Properties::VERSION, version), (Properties::HOLD, hold), (Properties::AUTOMATIC, automatic)];
                all.into_iter().filter_map(|(name, differs)| differs.then_some(name)).collect()
            }
            (None, _) if self.exist => vec![Properties::EXIST],
            (_, Some(found)) if found.presence != Presence::Configuration => vec![Properties::EXIST],
            (_, Some(_)) if self.purge => vec![Properties::PURGE],
            _ => Vec::new(),
        }
    }

    /// What is to be done at once so that nothing differs.
    fn transaction(&self, system: &System<'_>) -> Result<Transaction, Failure> {
        let mut transaction = Transaction {
            purge: self.purge,
            release: self.release.map(|release| release.0.to_owned()),
            recommends: self.recommends,
            allow_downgrade: self.allow_downgrade,
            changes_held: self.hold.is_some(),
            ..Transaction::default()
        };
        for name in self.names() {
            let differing = self.differing_of(system, name);
            let is_new = differing.contains(&Properties::EXIST);
            if !self.exist {
                transaction.remove.extend((!differing.is_empty()).then(|| name.to_owned()));
                continue;
            }
            if is_new || differing.contains(&Properties::VERSION) {
                transaction.install.push((name.to_owned(), self.wanted_version(system, name)?));
            }
            let marks = [(Properties::HOLD, self.hold), (Properties::AUTOMATIC, self.automatic)];
            for (property, wanted) in marks {
                let list =
                    if property == Properties::HOLD { &mut transaction.hold } else { &mut transaction.automatic };
                // Installing a package clears what is marked.
                let is_due = !differing.is_empty();
                list.extend(wanted.filter(|_| is_due).map(|wanted| (name.to_owned(), wanted)));
            }
        }
        Ok(transaction)
    }

    /// The version to install, if one is required. Fails where what is installed may not make way for it.
    fn wanted_version(&self, system: &System<'_>, name: &str) -> Result<Option<String>, Failure> {
        let Some(stated) = &self.version else { return Ok(None) };
        let found = system.installed.find(name).filter(|found| found.presence == Presence::Installed);
        let version = system.choose(&stated.requirement, name)?;
        if let Some(found) = found
            && system.manager.order()(&version, &found.version).is_lt()
            && !self.allow_downgrade
        {
            let message = format!("the package '{name}' is installed in the newer version {}", found.version);
            // Without its epoch a version is older than any that has one.
            let is_same = found.version.split_once(':').is_some_and(|(_, rest)| rest == version);
            if is_same {
                return Err(impossible(
                    Properties::VERSION,
                    format!("{message}; include the epoch, the part before ':'"),
                ));
            }
            return Err(impossible(
                Properties::VERSION,
                format!("{message}. Add 'allowDowngrade: true' to install an older one"),
            ));
        }
        Ok(Some(version))
    }

    /// Fails for what no package list can change.
    fn check_possible(&self, system: &System<'_>) -> Result<(), Failure> {
        let (property, doing) =
            if self.exist { (Properties::VERSION, "change its version") } else { (Properties::EXIST, "remove it") };
        let is_held = |name: &&str| {
            let changes = self.differing_of(system, name).contains(&property);
            changes && self.hold.is_none() && system.installed.find(name).is_some_and(|found| found.hold)
        };
        if let Some(name) = self.names().find(is_held) {
            let hint = format!("Add 'hold' to {doing}");
            return Err(impossible(property, format!("the package '{name}' is held at its version. {hint}")));
        }
        if !self.exist {
            return Ok(());
        }
        match self.version.as_ref().map(|version| &version.requirement) {
            None | Some(Requirement::Exact(_)) => self.transaction(system).map(|_| ()),
            Some(Requirement::Latest | Requirement::Range(_)) => Ok(()),
        }
    }

    /// The package lists, if they are updated before a transaction.
    fn outdated_lists(&self, system: &System<'_>, cx: &Context) -> Option<Lists> {
        const DAY: u32 = 86_400;
        let installs = self.exist
            && self.differing(system).iter().any(|name| [Properties::EXIST, Properties::VERSION].contains(name));
        let maximum = Duration::from_secs(self.maximum_list_age.unwrap_or(DAY).into());
        let lists = Some(()).filter(|()| installs).map(|()| system.manager.lists(cx))?;
        let is_due = match self.update_lists {
            UpdateLists::Always => true,
            UpdateLists::Never => false,
            UpdateLists::Stale => lists.are_stale(maximum),
        };
        is_due.then_some(lists)
    }

    /// Returns what a plan has shown for the packages, if a set is bound to it.
    fn shown<'c>(&self, cx: &'c Context) -> Option<Shown<'c>>
    where
        'a: 'c,
    {
        Shown::of(&cx.binding, self.name.map(|name| name.0))
    }

    /// Decides what a set does, without changing anything, for a what-if and for the set itself. Fails where the set would: if
    /// the packages cannot be changed so, or it is bound to a plan that has shown something else.
    fn decide(&self, system: System<'_>, cx: &Context) -> Result<Change, Failure> {
        let differing = self.differing(&system);
        let installs = differing.iter().any(|name| [Properties::EXIST, Properties::VERSION].contains(name));
        let is_range = matches!(self.version.as_ref().map(|version| &version.requirement), Some(Requirement::Range(_)));
        let system = if self.exist && installs && is_range { system.with_available(cx, self)? } else { system };
        let transaction = self.transaction(&system)?;
        let shown = self.shown(cx);
        let transaction = if let Some(shown) = &shown { shown.pin(transaction) } else { transaction };
        let plan = system.manager.plan(cx, &transaction);
        let plan = plan.map_err(|failure| {
            let failure = self.unavailable(cx, &system, &transaction).unwrap_or(failure);
            if shown.is_some() { not_as_planned(failure) } else { failure }
        })?;
        if let Some(why) = shown.and_then(|shown| shown.deviation(&plan, &system.installed)) {
            return Err(not_as_planned(impossible(Properties::VERSION, why)));
        }
        let planned = |name: &str| {
            let mut installs = plan.installs.iter().map(|install| install.name.as_str());
            installs.any(|planned| is_same(planned, name))
        };
        if let Some((name, _)) = transaction.install.iter().find(|(name, _)| !planned(name)) {
            return Err(impossible(
                Properties::NAME,
                format!("the package manager has no package '{name}' to install"),
            ));
        }
        self.check_held(&system, &plan)?;
        self.check_order(&system, &plan)?;
        Ok(Change { differing, transaction, plan })
    }

    /// Why a transaction cannot be made, if a package or a version of one is not available: no second try helps.
    fn unavailable(&self, cx: &Context, system: &System<'_>, transaction: &Transaction) -> Option<Failure> {
        let names: Vec<&str> = transaction.install.iter().map(|(name, _)| name.as_str()).collect();
        let release = self.release.map(|release| release.0);
        // With nothing to install, or where the lists cannot be asked, the package manager has said why.
        let known = (!names.is_empty()).then(|| system.manager.available(cx, &names, release).ok()).flatten()?;
        transaction.install.iter().find_map(|(name, version)| {
            let found = known.iter().find(|each| is_same(&each.name, name));
            let versions = found.map(|found| &*found.versions).unwrap_or_default();
            match version {
                None if found.is_none() => Some(not_listed(name, &system.manager.names(cx, name))),
                None if versions.is_empty() => Some(is_virtual(name, &system.manager.providers(cx, name))),
                Some(version) if !versions.iter().any(|known| system.manager.names_version(version, known)) => {
                    let there_are = if versions.is_empty() { "none".to_owned() } else { versions.join(", ") };
                    let message = format!("the package lists have no version '{version}' of '{name}'");
                    Some(impossible(Properties::VERSION, format!("{message}; there are: {there_are}")))
                }
                _ => None,
            }
        })
    }

    /// Fails where others than the stated packages would change that are held: `hold` allows it for those alone.
    fn check_held(&self, system: &System<'_>, plan: &Plan) -> Result<(), Failure> {
        let changed = plan.installs.iter().map(|each| &each.name).chain(plan.removes.iter().map(|each| &each.name));
        let is_stated = |name: &str| self.names().any(|stated| is_same(name, stated));
        let is_held = |name: &str| system.installed.find(name).is_some_and(|found| found.hold);
        match changed.into_iter().find(|name| !is_stated(name) && is_held(name)) {
            None => Ok(()),
            Some(name) => {
                let message = format!("the package '{name}', which is held at its version, would change as well");
                Err(impossible(Properties::NAME, format!("{message}. Add it to 'names', or release its hold")))
            }
        }
    }

    /// Fails where others than the stated packages would get an older version, which not every package manager refuses.
    fn check_order(&self, system: &System<'_>, plan: &Plan) -> Result<(), Failure> {
        let order = system.manager.order();
        let is_older = |new: &&Install| new.former.as_deref().is_some_and(|former| order(&new.version, former).is_lt());
        match plan.installs.iter().find(is_older).filter(|_| !self.allow_downgrade) {
            None => Ok(()),
            Some(Install { name, version, .. }) => {
                let message = format!("the package '{name}' would be changed to the older version {version}");
                Err(impossible(Properties::NAME, format!("{message}. Add 'allowDowngrade: true' to allow it")))
            }
        }
    }

    fn predict(&self, manager: &dyn PackageManager, cx: &Context) -> Result<SetReply, Failure> {
        let system = System::look(manager, cx, self)?;
        let differing = self.differing(&system);
        let installed = Arc::clone(&system.installed);
        if differing.is_empty() {
            return Ok(reply::set(self.state(&installed, &[]), &[], Vec::new()));
        }
        self.check_possible(&system)?;
        let lists = self.outdated_lists(&system, cx);
        let stale = lists.as_ref().map(|_| "update the package lists".to_owned());
        let privilege = not_root();
        match self.decide(system, cx) {
            Ok(change) => {
                let words = stale.into_iter().chain(self.intentions(&change)).collect();
                Ok(SetReply { presumed: privilege, ..self.reply(&change, &installed, words, lists.as_ref()) })
            }
            // It is decided with the package lists, which another instance may change as well. Where there are none yet, nothing
            // is known of packages before the set gets them; but whether its program can be started is.
            Err(failure) => {
                let mut effects = Effects::of(self.effect(&differing));
                effects.creates.extend(lists.as_ref().map(Lists::item));
                let is_known = failure.kind == FailureKind::Start || !lists.as_ref().is_some_and(Lists::are_missing);
                let presumed = is_known.then(|| Presumed::of(failure, Vec::new())).or(privilege);
                let after = self.state_after(&Plan::default(), &installed);
                Ok(SetReply { presumed, effects, ..reply::set(after, &differing, stale.into_iter().collect()) })
            }
        }
    }

    fn bring_about(&self, manager: &dyn PackageManager, cx: &Context) -> Result<SetReply, Failure> {
        let system = System::look(manager, cx, self)?;
        let before = Arc::clone(&system.installed);
        if self.differing(&system).is_empty() {
            return Ok(reply::set(self.state(&before, &[]), &[], Vec::new()));
        }
        self.check_possible(&system)?;
        let lists = self.outdated_lists(&system, cx);
        let change = self.settle(system, cx, lists.is_some())?;
        manager.carry_out(cx, &change.transaction)?;
        let after = System::look(manager, cx, self)?;
        if let Some(name) = self.names().find(|name| !self.differing_of(&after, name).is_empty()) {
            let message = format!("the package manager reports success, and '{name}' is not in the desired state");
            return Err(transient("", message));
        }
        Ok(self.reply(&change, &before, Vec::new(), lists.as_ref()))
    }

    /// Decides what a set does, with package lists that are not stale. They are also updated if they lack what is needed: a set
    /// is refused for good only once the lists are known to be complete.
    fn settle(&self, system: System<'_>, cx: &Context, are_stale: bool) -> Result<Change, Failure> {
        let manager = system.manager;
        let former = self.decide(system, cx);
        let can_help = |failure: &Failure| matches!(failure.kind, FailureKind::Refused | FailureKind::Exit(_));
        let lacks = self.exist && self.update_lists != UpdateLists::Never && former.as_ref().is_err_and(can_help);
        if !are_stale && !lacks {
            return former;
        }
        let updated = manager.update_lists(cx)?;
        let decided = self.decide(System::look(manager, cx, self)?, cx).map_err(|failure| updated.explain(failure))?;
        if self.shown(cx).is_none() {
            check_removals(former.as_ref().map_or(&[], |former| &former.plan.removes), &decided.plan)?;
        }
        Ok(decided)
    }
}

fn package(name: &str, version: &str, former: Option<&str>) -> Item {
    let kind = ItemKind::Package { version: version.to_owned(), former: former.map(str::to_owned) };
    Item { path: name.to_owned(), kind }
}

/// A failure of a set that is to do what a plan has shown.
fn not_as_planned(failure: Failure) -> Failure {
    let message = format!("the package lists no longer have what was planned: {}; make a new plan", failure.message);
    Failure { message, ..failure }
}

/// Fails where the package lists that were updated let more packages be removed than those before, which a plan showed.
fn check_removals(known: &[Remove], plan: &Plan) -> Result<(), Failure> {
    let was_shown = |gone: &Remove| known.iter().any(|shown| shown.name == gone.name);
    match plan.removes.iter().find(|gone| !was_shown(gone)) {
        None => Ok(()),
        Some(Remove { name, .. }) => {
            let message = format!("with the updated package lists, the package '{name}' would be removed as well");
            Err(impossible(Properties::NAME, format!("{message}. Nothing was changed; a plan shows it now")))
        }
    }
}

/// In what-if: that only root can change packages.
fn not_root() -> Option<Presumed> {
    let failure = || impossible("", "only root can install and remove packages");
    (!stead_system::user::is_root()).then(|| Presumed::of(failure(), Vec::new()))
}
