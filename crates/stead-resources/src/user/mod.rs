//! `Stead/User`: a user account.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use stead_core::call::{Execution, Exported, Failure, Presumed};
use stead_core::claims::{Claims, Extent, Provision, Ties};
use stead_core::destruction::{Effect, Effects, Item, ItemKind};
use stead_core::manifest::Capabilities;
use stead_core::statements::Statement;
use stead_core::value::{Object, REDACTED, Value};
use stead_declare::resource;
use stead_host::provider::{Context, Cost, Lint, Linter, Plain, Provider, SetReply, State, TestReply};

use crate::accounts::{AccountLock, Databases, Membership, Record, Settings, record_path};
use crate::declared::Declared as _;
use crate::input::{blocked, read, read_each};
use crate::pending;
use crate::text::{AccountName, Expiry, Field, HomePath, NewAccountName, PasswordHash};
use crate::{ALL_BUT_EXPORT, BuiltIn, reply};

mod home;
mod lints;
mod password;

use home::HomeStep;

/// The fields of passwd(5).
const UID: usize = 2;
const GID: usize = 3;
const COMMENT: usize = 4;
const HOME: usize = 5;
const SHELL: usize = 6;

/// An account of the system's own databases. Numbers, home and shell that are not stated come from /etc/login.defs and
/// /etc/default/useradd, as with useradd; no ranges are added to /etc/subuid and /etc/subgid. Without a password it is
/// locked. It is changed under the lock that useradd takes.
#[resource(
    "Stead/User",
    about = "A user account.",
    tags("account", "linux", "user"),
    capabilities = Capabilities { export: true, ..ALL_BUT_EXPORT },
)]
struct Properties<'a> {
    /// The name of the user.
    #[property(key)]
    name: NewAccountName<'a>,
    /// The uid. By default the next free one. The uid of a user is not changed, since files belong to it.
    uid: Option<u32>,
    /// The primary group, by name or gid; it must exist. By default a new user gets a group of its own name, where
    /// login.defs says so.
    group: Option<AccountName<'a>>,
    /// The supplementary groups, which must exist.
    groups: Option<Vec<NewAccountName<'a>>>,
    /// minimum: the user stays in other groups; exact: it leaves them.
    #[property(option)]
    #[serde(default)]
    #[schemars(extend("default" = "minimum"))]
    membership: Membership,
    /// The comment field, usually the full name.
    comment: Option<Field<'a>>,
    /// The home directory. It is not moved when this changes.
    home: Option<HomePath<'a>>,
    /// The login shell. The program must exist, except `nologin` and `false`.
    shell: Option<Field<'a>>,
    /// The hash of its password, as crypt(5) describes, or '*' for none. It is never shown. Give it as a
    /// parameter of type secureString, so that it is not in the document either.
    #[property(option, secret)]
    password_hash: Option<PasswordHash<'a>>,
    /// Whether the password is locked: no password is accepted.
    locked: Option<bool>,
    /// The day on which the account expires, as 2027-12-31, or never.
    expires: Option<Expiry<'a>>,
    /// Minimum days between changes of the password; -1 for none.
    password_minimum_age: Option<i32>,
    /// Maximum days for which a password is valid; -1 for none.
    password_maximum_age: Option<i32>,
    /// Days of warning before the password expires; -1 for none.
    password_warning: Option<i32>,
    /// Whether a new user gets a uid of the system range, and no home unless 'createHome' is true.
    #[property(option)]
    system: bool,
    /// Whether the home of a new user is created, as a copy of /etc/skel. By default it is, but for system accounts. An
    /// existing directory is left alone.
    #[property(option)]
    create_home: Option<bool>,
    /// Whether the home is removed with the user, with everything in it.
    #[property(option)]
    remove_home: bool,
    /// Whether the user exists.
    exist: bool,
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {}

/// The properties in which two instances can contradict each other. A primary group has a name and a number.
const STATED: [&str; 9] = [
    Properties::UID,
    Properties::HOME,
    Properties::SHELL,
    Properties::COMMENT,
    Properties::LOCKED,
    Properties::EXPIRES,
    Properties::PASSWORD_MINIMUM_AGE,
    Properties::PASSWORD_MAXIMUM_AGE,
    Properties::PASSWORD_WARNING,
];

/// `Stead/User` as it is registered.
pub(crate) fn built_in(lock: &AccountLock) -> Option<BuiltIn> {
    Properties::built_in(Arc::new(Users { lock: lock.clone() }))
}

/// Carries out `Stead/User`.
struct Users {
    lock: AccountLock,
}

impl Provider for Users {
    fn linter(&self) -> Option<&dyn Linter> {
        Some(const { &(lints::lints as fn(&Object) -> Vec<Lint>) })
    }

    fn validate(&self, _cx: &Context, input: &Plain) -> Result<(), Failure> {
        read::<Properties<'_>>(input).map(|_| ())
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        let desired: Properties<'_> = read_each(input)?;
        Ok(Plain::new(state(&Databases::read(cx)?, desired.name.0)))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let desired: Properties<'_> = read(input)?;
        let databases = Databases::read(cx)?;
        let differing = desired.differing(&databases)?;
        let mut state = state(&databases, desired.name.0);
        // What is as desired is reported as it was written, but for a secret.
        let is_as_stated = |property: &str| !differing.contains(&property) && !differing.contains(&Properties::EXIST);
        let hash = desired.password_hash.map(|_| (Properties::PASSWORD_HASH, REDACTED));
        for (name, text) in hash.into_iter().chain(desired.group.map(|group| (Properties::GROUP, group.0))) {
            if desired.exist && is_as_stated(name) {
                state.insert(name.to_owned(), Value::from(text));
            }
        }
        // What cannot be set as things are is still compared.
        let set = desired.predicted(cx, databases).map_or_else(|_| SetReply::default(), |done| desired.reply(done));
        Ok(reply::tested_as(state, &differing, set))
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let desired: Properties<'_> = read(input)?;
        let predicted = desired.predicted(cx, Databases::read(cx)?)?;
        if execution == Execution::WhatIf || predicted.differing.is_empty() {
            return Ok(desired.reply(predicted));
        }
        if let Some(presumed) = desired.without_shell(cx, &predicted) {
            return Err(presumed.failure);
        }
        self.carry_out(cx, &desired, predicted).map(|done| desired.reply(done))
    }

    fn delete(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<Vec<String>, Failure> {
        let desired = Properties { exist: false, ..read_each(input)? };
        let predicted = desired.predicted(cx, Databases::read(cx)?)?;
        if execution == Execution::WhatIf || predicted.differing.is_empty() {
            return predicted.presumed.map_or(Ok(predicted.what_if), |presumed| Err(presumed.failure));
        }
        self.carry_out(cx, &desired, predicted).map(|_| Vec::new())
    }

    fn export(&self, cx: &Context, _filter: &Plain) -> Result<Vec<Exported>, Failure> {
        let databases = Databases::read(cx)?;
        let exported = |record: Record| Exported::named(record.name(), state(&databases, &record.name()));
        Ok(databases.users().records().map(exported).collect())
    }

    fn cost(&self, _desired: &Value) -> Cost {
        Cost::Inline
    }

    fn states(&self, _cx: &Context, input: &Plain) -> Vec<Statement> {
        let name = reply::text(input, Properties::NAME).unwrap_or_default();
        reply::states(&format!("the user '{name}'"), input, &STATED)
    }

    fn claims(&self, input: &Plain) -> Option<Claims> {
        let stated: Properties<'_> = read_each(input).ok()?;
        // Which groups it leaves is not known before they are read.
        let leaves_others = stated.groups.is_some() && stated.membership == Membership::Exact;
        (stated.exist && !leaves_others).then(|| stated.claims())
    }

    /// Whatever it leaves, others wait for what it makes.
    fn manages(&self, cx: &Context, input: &Plain) -> Option<Claims> {
        let stated: Properties<'_> = read_each(input).ok()?;
        stated.exist.then(|| with_unstated(cx, &stated, stated.claims()))
    }

    /// Its groups, whatever becomes of the others that it is in.
    fn ties(&self, input: &Plain) -> Ties {
        let mut ties = reply::ties(input);
        let stated = input.expose().get(Properties::GROUPS).and_then(Value::as_array).unwrap_or_default();
        let groups = stated.iter().filter_map(Value::as_str).map(|group| record_path("group", group));
        ties.uses.extend(groups.map(|group| Provision::Path(group.into())));
        ties
    }

    /// With the group and the home that are made where the instance names none.
    fn claims_there(&self, cx: &Context, input: &Plain) -> Option<Claims> {
        Some(with_unstated(cx, &read_each(input).ok()?, self.claims(input)?))
    }
}

/// Claims with those on what an instance makes and does not state.
fn with_unstated(cx: &Context, stated: &Properties<'_>, claims: Claims) -> Claims {
    let Ok(settings) = Settings::of(cx) else { return claims };
    let has_group = stated.group.is_none() && settings.user_groups();
    let group = has_group.then(|| (record_path("group", stated.name.0), Extent::Directory));
    let has_home = stated.home.is_none() && stated.makes_home();
    let home = has_home.then(|| (PathBuf::from(stated.home_by(&settings)), Extent::Presence));
    let more: Claims = group.into_iter().chain(home).collect();
    Claims(claims.0.into_iter().chain(more.0).collect())
}

impl Users {
    /// A home is removed without the lock, since that may take long, and before its user, so that a run that was broken off
    /// is continued by the next one.
    fn carry_out(&self, cx: &Context, desired: &Properties<'_>, predicted: Change) -> Result<Change, Failure> {
        if let Some(step @ HomeStep::Remove { .. }) = &predicted.home {
            step.take(cx)?;
            self.lock.change(cx, |databases| desired.change(cx, databases), |_| Ok(()))?;
            return Ok(predicted);
        }
        let take = |change: &Change| change.home.as_ref().map_or(Ok(()), |step| step.take(cx));
        self.lock.change(cx, |databases| desired.change(cx, databases), take)
    }
}

fn state(databases: &Databases, name: &str) -> Object {
    let found = databases.users().find(name);
    let mut state = Object::with_capacity(8);
    state.insert(Properties::NAME.to_owned(), Value::from(name));
    state.insert(Properties::EXIST.to_owned(), Value::from(found.is_some()));
    let Some(found) = found else { return state };
    state.extend(found.number(UID).map(|uid| (Properties::UID.to_owned(), Value::from(i64::from(uid)))));
    if let Some(gid) = found.number(GID) {
        let group = databases.groups().records_with(&gid.to_string()).find(|group| group.number(2) == Some(gid));
        let group = group.map_or_else(|| gid.to_string(), |group| group.name().into_owned());
        state.insert(Properties::GROUP.to_owned(), Value::from(group));
    }
    let groups = groups_of(databases, name).into_iter().map(Value::from).collect();
    state.insert(Properties::GROUPS.to_owned(), Value::Array(groups));
    for (property, field) in [(Properties::COMMENT, COMMENT), (Properties::HOME, HOME), (Properties::SHELL, SHELL)] {
        state.insert(property.to_owned(), Value::from(found.get(field).into_owned()));
    }
    if let Some(record) = databases.passwords().and_then(|passwords| passwords.find(name)) {
        password::report(&record, &mut state);
    }
    state
}

/// The groups that list a user among their members.
fn groups_of(databases: &Databases, user: &str) -> Vec<String> {
    let groups = databases.groups().records_with(user);
    let groups = groups.filter(|group| group.names(3).iter().any(|member| member == user));
    groups.map(|group| group.name().into_owned()).collect()
}

/// What becomes of a user.
#[derive(Default)]
struct Change {
    differing: Vec<&'static str>,
    what_if: Vec<String>,
    effects: Effects,
    home: Option<HomeStep>,
    /// The groups afterwards.
    groups: Vec<String>,
    /// In what-if: what keeps its home from being made or removed.
    presumed: Option<Presumed>,
}

impl Properties<'_> {
    /// The paths of an instance that is to exist, of what it states.
    fn claims(&self) -> Claims {
        let name = self.name.0;
        let user = (record_path("passwd", name), Extent::Directory);
        let groups =
            self.groups.iter().flatten().map(|group| (record_path("group", group.0).join(name), Extent::Directory));
        let home = self.home.filter(|_| self.makes_home()).map(|home| (PathBuf::from(home.0), Extent::Presence));
        std::iter::once(user).chain(groups).chain(home).collect()
    }

    fn differing(&self, databases: &Databases) -> Result<Vec<&'static str>, Failure> {
        let found = databases.users().find(self.name.0);
        let Some(found) = found.as_ref().filter(|_| self.exist) else {
            return Ok(if found.is_some() == self.exist { Vec::new() } else { vec![Properties::EXIST] });
        };
        let mut differing = Vec::new();
        if self.uid.is_some_and(|uid| found.number(UID) != Some(uid)) {
            differing.push(Properties::UID);
        }
        if self.group.is_some_and(|group| gid_of(databases, group) != found.number(GID)) {
            differing.push(Properties::GROUP);
        }
        let former = groups_of(databases, self.name.0);
        if as_set(&self.groups_after(&former)) != as_set(&former) {
            differing.push(Properties::GROUPS);
        }
        let names = [Properties::COMMENT, Properties::HOME, Properties::SHELL].into_iter().zip(self.texts());
        let differs = |(text, field): (Option<&str>, usize)| text.is_some_and(|text| found.get(field) != text);
        differing.extend(names.filter_map(|(name, field)| differs(field).then_some(name)));
        if self.states_password() {
            let passwords = databases.passwords().ok_or_else(password::no_database)?;
            let record = passwords.find(self.name.0).unwrap_or_else(|| Record::new(self.name.0, 9));
            differing.extend(self.password_differs(&record));
        }
        Ok(differing)
    }

    /// The fields that are texts, as far as they are stated.
    fn texts(&self) -> [(Option<&str>, usize); 3] {
        let (comment, shell) = (self.comment.map(|comment| comment.0), self.shell.map(|shell| shell.0));
        [(comment, COMMENT), (self.home.map(|home| home.0), HOME), (shell, SHELL)]
    }

    fn groups_after(&self, former: &[String]) -> Vec<String> {
        let Some(wanted) = &self.groups else { return former.to_vec() };
        self.membership.after(former, wanted.iter().map(|name| name.0))
    }

    /// What a set would do. A group that is not there yet may be created in front of it.
    fn predicted(&self, cx: &Context, mut databases: Databases) -> Result<Change, Failure> {
        let is_missing = |name: &&str| name.parse::<u32>().is_err() && databases.groups().find(name).is_none();
        let own = self.group.map(|group| (Properties::GROUP, group.0));
        let stated = own.into_iter().chain(self.groups.iter().flatten().map(|group| (Properties::GROUPS, group.0)));
        let missing: Vec<_> = stated.filter(|(_, name)| self.exist && is_missing(name)).collect();
        let mut presumed = Vec::new();
        for (property, name) in missing {
            presumed.push(Some(Presumed::of(
                no_group(property, name),
                vec![cx.resolve(record_path("group", name)).into()],
            )));
            // Nobody has this gid, so that the user is not taken for a member already.
            let group = databases.new_group(name, u32::MAX);
            databases.put_group(&group);
        }
        let mut change = self.change(cx, &mut databases)?;
        presumed.extend([change.presumed.take(), databases.presumed()?, self.without_shell(cx, &change)]);
        let presumed = Presumed::all(presumed).filter(|_| !change.differing.is_empty());
        Ok(Change { presumed, ..change })
    }

    /// That the shell which the user is to get must be there first: who has one that is missing cannot log in.
    fn without_shell(&self, cx: &Context, change: &Change) -> Option<Presumed> {
        let is_given = |name: &&str| [Properties::SHELL, Properties::EXIST].contains(name);
        let shell = self.shell.filter(|_| self.exist && change.differing.iter().any(is_given))?.0;
        let refuses = ["", "nologin", "false"].contains(&shell.rsplit('/').next().unwrap_or_default());
        let path = cx.resolve(shell);
        let failure = || {
            let hint = if shell.contains('/') {
                "Add a Stead/Package that brings it to the document".to_owned()
            } else {
                format!("Write its path, such as '/bin/{shell}'")
            };
            blocked(Properties::SHELL, format!("there is no shell '{shell}'. {hint}"))
        };
        let is_missing = !refuses && path.followed().is_none();
        is_missing.then(|| Presumed::of(failure(), vec![path.into()]))
    }

    /// Changes the databases in memory, and says what is to be done besides.
    fn change(&self, cx: &Context, databases: &mut Databases) -> Result<Change, Failure> {
        let differing = self.differing(databases)?;
        let former = groups_of(databases, self.name.0);
        let mut change = Change { groups: self.groups_after(&former), differing, ..Change::default() };
        if change.differing.is_empty() {
            return Ok(change);
        }
        databases.check_changeable()?;
        match databases.users().find(self.name.0) {
            Some(found) if !self.exist => self.remove(cx, databases, &found, &mut change)?,
            Some(found) => self.alter(cx, databases, found, &mut change)?,
            None => self.create(cx, databases, &mut change)?,
        }
        Ok(change)
    }

    fn create(&self, cx: &Context, databases: &mut Databases, change: &mut Change) -> Result<(), Failure> {
        let settings = Settings::of(cx)?;
        let uid = self.new_uid(databases, &settings)?;
        let gid = self.new_gid(databases, &settings, uid)?;
        let home = self.home_by(&settings);
        let mut record = Record::new(self.name.0, 7);
        record.set(1, if databases.passwords().is_some() { "x" } else { "*" });
        record.set(UID, &uid.to_string());
        record.set(GID, &gid.to_string());
        record.set(COMMENT, self.comment.map_or("", |comment| comment.0));
        record.set(HOME, &home);
        record.set(SHELL, self.shell.map_or_else(|| settings.shell(), |shell| shell.0));
        databases.users_mut().put(&record);
        self.change_password(databases, &settings)?;
        self.change_groups(databases, &change.groups)?;
        change.effects = Effects::of(Effect::Create);
        change.what_if.push(format!("create the user with uid {uid}"));
        if self.makes_home() {
            let skeleton = cx.resolve(settings.skeleton());
            if let Some((item, presumed)) = home::made(cx, &home, &skeleton)? {
                change.presumed = presumed;
                change.what_if.push(format!("create the home '{home}'"));
                change.effects.creates.push(item);
                let (home, mode) = (cx.resolve(&home), settings.home_mode());
                change.home = Some(HomeStep::Make { home, skeleton, mode, uid, gid });
            }
        }
        Ok(())
    }

    fn makes_home(&self) -> bool {
        self.create_home.unwrap_or(!self.system)
    }

    /// The home of a new user.
    fn home_by(&self, settings: &Settings) -> String {
        self.home.map_or_else(|| format!("{}/{}", settings.homes(), self.name.0), |home| home.0.to_owned())
    }

    fn new_uid(&self, databases: &Databases, settings: &Settings) -> Result<u32, Failure> {
        let Some(uid) = self.uid else {
            let free = settings.new_uid(self.system, &Databases::ids(databases.users()));
            return free.ok_or_else(|| blocked(Properties::UID, "no uid is free in the range of /etc/login.defs"));
        };
        match databases.users().records().find(|record| record.number(UID) == Some(uid)) {
            Some(owner) => {
                Err(blocked(Properties::UID, format!("uid {uid} is already used by the user '{}'", owner.name())))
            }
            None => Ok(uid),
        }
    }

    /// The number of the group of a new user. A group of the user's own is put into the database.
    fn new_gid(&self, databases: &mut Databases, settings: &Settings, uid: u32) -> Result<u32, Failure> {
        if let Some(group) = self.group {
            return gid_of(databases, group).ok_or_else(|| no_group(Properties::GROUP, group.0));
        }
        if !settings.user_groups() {
            return Ok(settings.group());
        }
        if let Some(gid) = databases.groups().find(self.name.0).and_then(|own| own.number(2)) {
            return Ok(gid);
        }
        let used = Databases::ids(databases.groups());
        let gid = Some(uid).filter(|gid| !used.contains(gid)).or_else(|| settings.new_gid(self.system, &used));
        let gid = gid.ok_or_else(|| blocked(Properties::GROUP, "no gid is free in the range of /etc/login.defs"))?;
        let group = databases.new_group(self.name.0, gid);
        databases.put_group(&group);
        Ok(gid)
    }

    fn alter(
        &self,
        cx: &Context,
        databases: &mut Databases,
        mut record: Record,
        change: &mut Change,
    ) -> Result<(), Failure> {
        if change.differing.contains(&Properties::UID) {
            let uid = record.number(UID).unwrap_or_default();
            let hint = "Files belong to it; change both with usermod and chown";
            return Err(blocked(Properties::UID, format!("the user '{}' has uid {uid}. {hint}", self.name.0)));
        }
        if let Some(group) = self.group {
            let gid = gid_of(databases, group).ok_or_else(|| no_group(Properties::GROUP, group.0))?;
            record.set(GID, &gid.to_string());
        }
        for (text, field) in self.texts() {
            if let Some(text) = text {
                record.set(field, text);
            }
        }
        databases.users_mut().put(&record);
        if self.states_password() {
            self.change_password(databases, &Settings::of(cx)?)?;
        }
        self.change_groups(databases, &change.groups)?;
        change.effects = Effects::of(Effect::Change);
        let words = |name: &&str| match *name {
            Properties::GROUPS => format!("set its groups to {}", change.groups.join(", ")),
            name => format!("set its {name}"),
        };
        change.what_if = change.differing.iter().map(words).collect();
        Ok(())
    }

    /// Lets the user be a member of these groups and of no others.
    fn change_groups(&self, databases: &mut Databases, wanted: &[String]) -> Result<(), Failure> {
        if let Some(missing) = wanted.iter().find(|name| databases.groups().find(name).is_none()) {
            return Err(no_group(Properties::GROUPS, missing));
        }
        let groups: Vec<Record> = databases.groups().records().collect();
        for mut group in groups {
            let mut members = group.names(3);
            let is_wanted = wanted.iter().any(|name| *name == group.name());
            if members.iter().any(|member| member == self.name.0) == is_wanted {
                continue;
            }
            members.retain(|member| member != self.name.0);
            members.extend(is_wanted.then(|| self.name.0.to_owned()));
            group.set(3, &members.join(","));
            databases.put_group(&group);
        }
        Ok(())
    }

    fn remove(
        &self,
        cx: &Context,
        databases: &mut Databases,
        found: &Record,
        change: &mut Change,
    ) -> Result<(), Failure> {
        let (name, gid) = (self.name.0, found.number(GID));
        change.effects = Effects::of(Effect::Remove);
        change.what_if.push("remove the user".to_owned());
        if self.remove_home
            && let Some((home, item)) = home::removed(cx, databases.users(), found)?
        {
            change.what_if.push(format!("remove the home '{}'", found.get(HOME)));
            change.effects.destroys.push(item);
            change.presumed = pending::not_removable(&home)?;
            change.home = Some(HomeStep::Remove { home });
        }
        self.change_groups(databases, &[])?;
        databases.forget_administrator(name);
        databases.users_mut().remove(name);
        if let Some(passwords) = databases.passwords_mut() {
            passwords.remove(name);
        }
        let own = databases.groups().find(name).filter(|group| group.number(2) == gid && group.names(3).is_empty());
        let is_used = databases.users().records().any(|user| user.number(GID) == gid);
        if own.is_some() && !is_used && Settings::of(cx)?.user_groups() {
            if let Some((number, text)) = databases.groups().line(name) {
                change
                    .effects
                    .destroys
                    .push(Item { path: "/etc/group".to_owned(), kind: ItemKind::Line { number, text } });
            }
            databases.remove_group(name);
        }
        Ok(())
    }

    fn reply(&self, change: Change) -> SetReply {
        let mut after = Object::with_capacity(8);
        after.insert(Properties::NAME.to_owned(), Value::from(self.name.0));
        after.insert(Properties::EXIST.to_owned(), Value::from(self.exist));
        if self.exist {
            self.echo(&mut after, change.groups);
        }
        let reply = reply::set(after, &change.differing, change.what_if);
        SetReply { effects: change.effects, presumed: change.presumed, ..reply }
    }

    /// Adds what is stated to a state, as if it were so.
    fn echo(&self, state: &mut Object, groups: Vec<String>) {
        let number = |number: Option<i32>| number.map(|number| Value::from(i64::from(number)));
        let field = |field: Option<Field<'_>>| field.map(|field| Value::from(field.0));
        let groups = self.groups.as_ref().map(|_| Value::Array(groups.into_iter().map(Value::from).collect()));
        let stated = [
            (Properties::UID, self.uid.map(|uid| Value::from(i64::from(uid)))),
            (Properties::GROUP, self.group.map(|group| Value::from(group.0))),
            (Properties::GROUPS, groups),
            (Properties::COMMENT, field(self.comment)),
            (Properties::HOME, self.home.map(|home| Value::from(home.0))),
            (Properties::SHELL, field(self.shell)),
            (Properties::PASSWORD_HASH, self.password_hash.map(|_| Value::from(REDACTED))),
            (Properties::LOCKED, self.locked.map(Value::from)),
            (Properties::EXPIRES, self.expires.map(|expiry| Value::from(expiry.text))),
            (Properties::PASSWORD_MINIMUM_AGE, number(self.password_minimum_age)),
            (Properties::PASSWORD_MAXIMUM_AGE, number(self.password_maximum_age)),
            (Properties::PASSWORD_WARNING, number(self.password_warning)),
        ];
        state.extend(stated.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    }
}

/// The number of a group that is stated by name or number; `None` while there is no such group.
fn gid_of(databases: &Databases, group: AccountName<'_>) -> Option<u32> {
    let by_name = databases.groups().find(group.0).and_then(|record| record.number(2));
    by_name.or_else(|| group.0.parse().ok())
}

fn as_set(names: &[String]) -> BTreeSet<&str> {
    names.iter().map(String::as_str).collect()
}

fn no_group(property: &str, name: &str) -> Failure {
    blocked(property, format!("there is no group '{name}'. Add a Stead/Group for it to the document"))
}
