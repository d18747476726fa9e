//! Users of the system that is managed.

use stead_core::call::{Failure, Presumed};
use stead_host::provider::Context;
use stead_system::fs::{self, Ownership};
use stead_system::user;

use super::{Databases, Table, record_path};
use crate::input::{blocked, transient};

/// A user.
pub(crate) struct Account {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// The home directory, as the system that is managed names it.
    pub(crate) home: String,
}

impl Account {
    /// Looks a user up in the system that is managed, or says that there is none yet.
    pub(crate) fn find(cx: &Context, name: &str, property: &str) -> Result<Result<Self, Presumed>, Failure> {
        let found = if cx.manages_running_system() {
            of_this_system(name, property)?
        } else {
            in_table(Databases::read(cx)?.users(), name)
        };
        let hint = "Add a Stead/User for it to the document";
        Ok(found.ok_or_else(|| {
            Presumed::of(
                blocked(property, format!("there is no user '{name}'. {hint}")),
                vec![cx.resolve(record_path("passwd", name)).into()],
            )
        }))
    }

    /// That what is created belongs to the user and the user's group.
    pub(crate) fn ownership(&self) -> Ownership {
        Ownership { uid: Some(self.uid), gid: Some(self.gid) }
    }
}

fn of_this_system(name: &str, property: &str) -> Result<Option<Account>, Failure> {
    let user = user::find(name)
        .map_err(|error| transient(property, format!("cannot look up the user: {}", fs::reason(&error))))?;
    Ok(user.and_then(|user| Some(Account { home: user.home.to_str()?.to_owned(), uid: user.uid, gid: user.gid })))
}

fn in_table(table: &Table, name: &str) -> Option<Account> {
    let record = table.find(name)?;
    Some(Account { uid: record.number(2)?, gid: record.number(3)?, home: record.get(5).into_owned() })
}
