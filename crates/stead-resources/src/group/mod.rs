//! `Stead/Group`: a group of users.

use std::collections::BTreeSet;
use std::sync::Arc;

use stead_core::call::{Execution, Exported, Failure};
use stead_core::claims::{Claims, Extent};
use stead_core::destruction::{Effect, Effects, Item, ItemKind};
use stead_core::manifest::Capabilities;
use stead_core::statements::Statement;
use stead_core::value::{Object, Value};
use stead_declare::resource;
use stead_host::provider::{Context, Cost, Plain, Provider, SetReply, State, TestReply};

use crate::accounts::{AccountLock, Databases, Membership, Record, Settings, record_path};
use crate::declared::Declared as _;
use crate::input::{blocked, read, read_each};
use crate::text::NewAccountName;
use crate::{ALL_BUT_EXPORT, BuiltIn, reply};

/// A group of the system's own databases. It is changed under the lock that groupadd takes.
#[resource(
    "Stead/Group",
    about = "A group of users.",
    tags("account", "group", "linux"),
    capabilities = Capabilities { export: true, ..ALL_BUT_EXPORT },
)]
struct Properties<'a> {
    /// The name of the group.
    #[property(key)]
    name: NewAccountName<'a>,
    /// The gid. By default the next free one. The gid of a group is not changed, since files belong to it.
    gid: Option<u32>,
    /// The users in it, besides those whose primary group it is.
    members: Option<Vec<NewAccountName<'a>>>,
    /// minimum: other members stay; exact: they are removed.
    #[property(option)]
    #[serde(default)]
    #[schemars(extend("default" = "minimum"))]
    membership: Membership,
    /// Whether a new group gets a gid of the system range.
    #[property(option)]
    system: bool,
    /// Whether the group exists.
    exist: bool,
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {}

/// `Stead/Group` as it is registered.
pub(crate) fn built_in(lock: &AccountLock) -> Option<BuiltIn> {
    Properties::built_in(Arc::new(Groups { lock: lock.clone() }))
}

/// Carries out `Stead/Group`.
struct Groups {
    lock: AccountLock,
}

impl Provider for Groups {
    fn validate(&self, _cx: &Context, input: &Plain) -> Result<(), Failure> {
        read::<Properties<'_>>(input).map(|_| ())
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        let desired: Properties<'_> = read_each(input)?;
        let found = Databases::read(cx)?.groups().find(desired.name.0);
        Ok(Plain::new(state(desired.name.0, found.as_ref())))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let desired: Properties<'_> = read(input)?;
        let mut databases = Databases::read(cx)?;
        let found = databases.groups().find(desired.name.0);
        let differing = desired.differing(found.as_ref());
        let state = state(desired.name.0, found.as_ref());
        // What cannot be set as things are is still compared.
        let set = desired.change(cx, &mut databases).map_or_else(|_| SetReply::default(), |done| desired.reply(done));
        Ok(reply::tested_as(state, &differing, set))
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let desired: Properties<'_> = read(input)?;
        let mut databases = Databases::read(cx)?;
        let predicted = desired.change(cx, &mut databases)?;
        if execution == Execution::WhatIf || predicted.differing.is_empty() {
            return Ok(SetReply { presumed: databases.presumed()?, ..desired.reply(predicted) });
        }
        self.lock.change(cx, |databases| desired.change(cx, databases), |_| Ok(())).map(|done| desired.reply(done))
    }

    fn delete(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<Vec<String>, Failure> {
        let desired = Properties { exist: false, ..read_each(input)? };
        let mut databases = Databases::read(cx)?;
        let predicted = desired.change(cx, &mut databases)?;
        if execution == Execution::WhatIf || predicted.differing.is_empty() {
            return databases.presumed()?.map_or(Ok(predicted.what_if), |presumed| Err(presumed.failure));
        }
        self.lock.change(cx, |databases| desired.change(cx, databases), |_| Ok(())).map(|_| Vec::new())
    }

    fn export(&self, cx: &Context, _filter: &Plain) -> Result<Vec<Exported>, Failure> {
        let databases = Databases::read(cx)?;
        let exported =
            |record: Record| Exported::named(record.name().into_owned(), state(&record.name(), Some(&record)));
        Ok(databases.groups().records().map(exported).collect())
    }

    fn cost(&self, _desired: &Value) -> Cost {
        Cost::Inline
    }

    fn states(&self, _cx: &Context, input: &Plain) -> Vec<Statement> {
        let name = reply::text(input, Properties::NAME).unwrap_or_default();
        reply::states(&format!("the group '{name}'"), input, &[Properties::GID])
    }

    fn claims(&self, input: &Plain) -> Option<Claims> {
        let stated: Properties<'_> = read_each(input).ok()?;
        let group = record_path("group", stated.name.0);
        let members = || stated.members.iter().flatten().map(|member| member.0);
        let extent = match stated.membership {
            _ if !stated.exist => Extent::Absent,
            Membership::Exact => Extent::Entries { kept: members().map(str::to_owned).collect() },
            Membership::Minimum => Extent::Directory,
        };
        let joined = members().filter(|_| stated.exist).map(|member| (group.join(member), Extent::Directory));
        Some(std::iter::once((group.clone(), extent)).chain(joined).collect())
    }
}

fn state(name: &str, found: Option<&Record>) -> Object {
    let mut state = Object::with_capacity(4);
    state.insert(Properties::NAME.to_owned(), Value::from(name));
    state.insert(Properties::EXIST.to_owned(), Value::from(found.is_some()));
    if let Some(found) = found {
        state.extend(found.number(2).map(|gid| (Properties::GID.to_owned(), Value::from(i64::from(gid)))));
        let members = found.names(3).into_iter().map(Value::from).collect();
        state.insert(Properties::MEMBERS.to_owned(), Value::Array(members));
    }
    state
}

/// What becomes of a group.
#[derive(Default)]
struct Change {
    differing: Vec<&'static str>,
    what_if: Vec<String>,
    effects: Effects,
    /// The members afterwards.
    members: Vec<String>,
}

impl Properties<'_> {
    fn members_after(&self, former: &[String]) -> Vec<String> {
        let Some(wanted) = &self.members else { return former.to_vec() };
        self.membership.after(former, wanted.iter().map(|name| name.0))
    }

    fn differing(&self, found: Option<&Record>) -> Vec<&'static str> {
        let Some(found) = found.filter(|_| self.exist) else {
            return if found.is_some() == self.exist { Vec::new() } else { vec![Properties::EXIST] };
        };
        let gid = self.gid.is_some_and(|gid| found.number(2) != Some(gid));
        let former: BTreeSet<String> = found.names(3).into_iter().collect();
        let after: BTreeSet<String> = self.members_after(&found.names(3)).into_iter().collect();
        [(Properties::GID, gid), (Properties::MEMBERS, former != after)]
            .into_iter()
            .filter_map(|(name, differs)| differs.then_some(name))
            .collect()
    }

    /// Changes the databases in memory.
    fn change(&self, cx: &Context, databases: &mut Databases) -> Result<Change, Failure> {
        let found = databases.groups().find(self.name.0);
        let differing = self.differing(found.as_ref());
        let former = found.as_ref().map(|found| found.names(3)).unwrap_or_default();
        let mut change = Change { members: self.members_after(&former), differing, ..Change::default() };
        if change.differing.is_empty() {
            return Ok(change);
        }
        databases.check_changeable()?;
        match found {
            Some(found) if !self.exist => {
                self.remove(databases, &found, &mut change)?;
            }
            Some(found) => {
                if change.differing.contains(&Properties::GID) {
                    let gid = found.number(2).unwrap_or_default();
                    let hint = "Files belong to it; change both with groupmod and chgrp";
                    return Err(blocked(Properties::GID, format!("the group '{}' has gid {gid}. {hint}", self.name.0)));
                }
                change.effects = Effects::of(Effect::Change);
                change.what_if.push(match change.members.as_slice() {
                    [] => "remove all members".to_owned(),
                    members => format!("set its members to {}", members.join(", ")),
                });
                let mut record = found;
                record.set(3, &change.members.join(","));
                databases.put_group(&record);
            }
            None => {
                let gid = self.new_gid(cx, databases)?;
                change.effects = Effects::of(Effect::Create);
                change.what_if.push(format!("create the group with gid {gid}"));
                let mut record = databases.new_group(self.name.0, gid);
                record.set(3, &change.members.join(","));
                databases.put_group(&record);
            }
        }
        Ok(change)
    }

    fn new_gid(&self, cx: &Context, databases: &Databases) -> Result<u32, Failure> {
        if let Some(gid) = self.gid {
            let owner = databases.groups().records().find(|record| record.number(2) == Some(gid));
            return match owner {
                Some(owner) => {
                    Err(blocked(Properties::GID, format!("gid {gid} is already used by the group '{}'", owner.name())))
                }
                None => Ok(gid),
            };
        }
        let used = Databases::ids(databases.groups());
        let free = Settings::of(cx)?.new_gid(self.system, &used);
        free.ok_or_else(|| blocked(Properties::GID, "no gid is free in the range of /etc/login.defs"))
    }

    fn remove(&self, databases: &mut Databases, found: &Record, change: &mut Change) -> Result<(), Failure> {
        let gid = found.number(2);
        if let Some(user) = databases.users().records().find(|user| gid.is_some() && user.number(3) == gid) {
            let message = format!("'{}' is the primary group of the user '{}'", self.name.0, user.name());
            return Err(blocked(
                Properties::NAME,
                format!("{message}. Remove that user first, or give it another group"),
            ));
        }
        change.effects = Effects::of(Effect::Remove);
        if let Some((number, text)) = databases.groups().line(self.name.0) {
            change.effects.destroys.push(Item { path: "/etc/group".to_owned(), kind: ItemKind::Line { number, text } });
        }
        change.what_if.push("remove the group".to_owned());
        databases.remove_group(self.name.0);
        Ok(())
    }

    fn reply(&self, change: Change) -> SetReply {
        let mut after = Object::with_capacity(4);
        after.insert(Properties::NAME.to_owned(), Value::from(self.name.0));
        after.insert(Properties::EXIST.to_owned(), Value::from(self.exist));
        if self.exist {
            after.extend(self.gid.map(|gid| (Properties::GID.to_owned(), Value::from(i64::from(gid)))));
            if self.members.is_some() {
                let members = change.members.into_iter().map(Value::from).collect();
                after.insert(Properties::MEMBERS.to_owned(), Value::Array(members));
            }
        }
        SetReply { effects: change.effects, ..reply::set(after, &change.differing, change.what_if) }
    }
}
