//! `mode`, `owner` and `group`: what files, directories and links have in common.

use std::io;
use std::path::PathBuf;

use stead_core::call::{Failure, Presumed};
use stead_core::value::{Object, Value};
use stead_host::provider::Context;
use stead_system::fs::{Ownership, Status, format_mode};
use stead_system::user::{Names, Subject};

use crate::accounts::record_path;
use crate::input::{Mode, blocked, transient};
use crate::text::AccountName;

/// The permissions that a desired state asks for; what it does not mention stays as it is.
pub(crate) struct Permissions<'a> {
    pub(crate) mode: Option<(&'a str, u32)>,
    pub(crate) owner: Option<Account<'a>>,
    pub(crate) group: Option<Account<'a>>,
    /// Where the records of those will be that do not exist.
    missing: Vec<PathBuf>,
}

/// A user or group as written, and its number.
pub(crate) struct Account<'a> {
    text: &'a str,
    /// `None` while it does not exist; something else in the document may create it.
    id: Option<u32>,
}

impl<'a> Permissions<'a> {
    /// Looks up the numbers of owner and group.
    pub(crate) fn find(
        cx: &Context,
        mode: Option<Mode<'a>>,
        owner: Option<AccountName<'a>>,
        group: Option<AccountName<'a>>,
        names: &Names,
    ) -> Result<Self, Failure> {
        let account = |name: Option<AccountName<'a>>, subject: Subject, property: &str| {
            name.map(|name| Account::find(name.0, names, subject, property)).transpose()
        };
        let (owner, group) = if cx.gives_files_away() { (owner, group) } else { (None, None) };
        let owner = account(owner, Subject::User, "owner")?;
        let group = account(group, Subject::Group, "group")?;
        let record = |database, account: &Option<Account<'_>>| {
            let missing = account.as_ref().filter(|account| account.id.is_none())?;
            Some(cx.resolve(record_path(database, missing.text)).into())
        };
        let missing = [record("passwd", &owner), record("group", &group)].into_iter().flatten().collect();
        Ok(Self { mode: mode.map(|mode| (mode.text, mode.bits)), owner, group, missing })
    }

    /// The names of those that differ.
    pub(crate) fn differing(&self, status: &Status) -> Vec<&'static str> {
        let mode = self.mode.is_some_and(|(_, mode)| mode != status.mode);
        let owner = self.owner.as_ref().is_some_and(|owner| owner.id != Some(status.uid));
        let group = self.group.as_ref().is_some_and(|group| group.id != Some(status.gid));
        [("mode", mode), ("owner", owner), ("group", group)]
            .into_iter()
            .filter_map(|(name, differs)| differs.then_some(name))
            .collect()
    }

    /// The numbers of owner and group. Fails when a name has none.
    pub(crate) fn ownership(&self) -> Result<Ownership, Failure> {
        let id = |account: &Option<Account<'_>>, subject: Subject, property| match account {
            Some(Account { text, id: None }) => Err(no_account(subject, text, property)),
            Some(Account { id, .. }) => Ok(*id),
            None => Ok(None),
        };
        let uid = id(&self.owner, Subject::User, "owner")?;
        Ok(Ownership { uid, gid: id(&self.group, Subject::Group, "group")? })
    }

    /// What is not there yet without which nobody can be made the owner.
    pub(crate) fn presumed(&self) -> Option<Presumed> {
        let failure = self.ownership().err()?;
        Some(Presumed::of(failure, self.missing.clone()))
    }

    /// Adds what is asked for to a state. What is as desired is reported as it was written.
    pub(crate) fn report(&self, status: &Status, names: &Names, state: &mut Object) {
        if let Some((text, mode)) = self.mode {
            state.insert(
                "mode".into(),
                if mode == status.mode { Value::from(text) } else { Value::from(format_mode(status.mode)) },
            );
        }
        for (name, account, subject, id) in
            [("owner", &self.owner, Subject::User, status.uid), ("group", &self.group, Subject::Group, status.gid)]
        {
            if let Some(account) = account {
                let as_desired = account.id == Some(id);
                state.insert(
                    name.into(),
                    if as_desired { Value::from(account.text) } else { Value::from(names.name(subject, id)) },
                );
            }
        }
    }

    /// Adds what is asked for to a state, as if it were so.
    pub(crate) fn echo(&self, state: &mut Object) {
        let owner = self.owner.as_ref().map(|owner| owner.text);
        let group = self.group.as_ref().map(|group| group.text);
        for (name, text) in [("mode", self.mode.map(|(text, _)| text)), ("owner", owner), ("group", group)] {
            if let Some(text) = text {
                state.insert(name.into(), Value::from(text));
            }
        }
    }

    /// What would be done about those that differ, in words.
    pub(crate) fn intentions(&self, differing: &[&str]) -> Vec<String> {
        let owner = self.owner.as_ref().map(|owner| owner.text);
        let group = self.group.as_ref().map(|group| group.text);
        [("mode", self.mode.map(|(text, _)| text)), ("owner", owner), ("group", group)]
            .into_iter()
            .filter(|(name, _)| differing.contains(name))
            .filter_map(|(name, text)| text.map(|text| format!("set its {name} to {text}")))
            .collect()
    }
}

fn no_account(subject: Subject, name: &str, property: &str) -> Failure {
    let (word, resource) = match subject {
        Subject::User => ("user", "Stead/User"),
        Subject::Group => ("group", "Stead/Group"),
    };
    blocked(property, format!("there is no {word} '{name}'. Add a {resource} for it to the document"))
}

/// Returns that there is no such user or group yet. An image may have no accounts; where there are some, root is among them.
pub(crate) fn without_account(
    cx: &Context,
    names: &Names,
    (subject, name, property): (Subject, &str, &str),
) -> Result<Option<Presumed>, Failure> {
    let database = match subject {
        Subject::User => "passwd",
        Subject::Group => "group",
    };
    let has_accounts = cx.manages_running_system() || cx.system_root.at(format!("etc/{database}")).status().is_some();
    if !has_accounts || name == "root" || Account::find(name, names, subject, property)?.id.is_some() {
        return Ok(None);
    }
    let paths = vec![cx.resolve(record_path(database, name)).into()];
    Ok(Some(Presumed::of(no_account(subject, name, property), paths)))
}

/// Adds mode, owner and group to a state.
pub(crate) fn report_all(status: &Status, names: &Names, state: &mut Object) {
    state.insert("mode".into(), Value::from(format_mode(status.mode)));
    report_accounts(status, names, state);
}

/// Adds owner and group to a state.
pub(crate) fn report_accounts(status: &Status, names: &Names, state: &mut Object) {
    state.insert("owner".into(), Value::from(names.name(Subject::User, status.uid)));
    state.insert("group".into(), Value::from(names.name(Subject::Group, status.gid)));
}

impl<'a> Account<'a> {
    fn find(text: &'a str, names: &Names, subject: Subject, property: &str) -> Result<Self, Failure> {
        let unknown = |error: io::Error| {
            let reason = stead_system::fs::reason(&error);
            transient(property, format!("cannot look up the {}: {reason}", subject.word()))
        };
        Ok(Self { text, id: names.id(subject, text).map_err(unknown)? })
    }
}
