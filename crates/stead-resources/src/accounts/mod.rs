//! The databases of users and groups: passwd(5), shadow(5), group(5) and gshadow(5), under the lock of shadow-utils.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;
use stead_core::call::{Failure, FailureKind, Presumed};
use stead_host::provider::Context;
use stead_system::fs::{self, Former, FsError, How, Ownership, Place, Replacement, SystemPath};
use stead_system::lock::ProgramLock;
use stead_system::user;

use crate::edit::{Cache, Content, Text};
use crate::input::{blocked, cannot};
use crate::pending;

mod account;
mod settings;
mod table;

pub(crate) use account::Account;
pub(crate) use settings::Settings;
pub(crate) use table::{Record, Table};

/// The databases that were read, of whatever system, for all instances.
static TABLES: Cache<Arc<Table>> = Cache::new();

/// A path of the system that a call is about.
pub(crate) fn path(cx: &Context, path: &str) -> SystemPath {
    cx.system_root.at(path)
}

/// What an account is claimed as: a database is like a directory of its records, and a group one of its members.
///
/// So a user that is created in front of a file that belongs to it makes that file possible, and a user that joins a group
/// alters neither the group nor its other members.
pub(crate) fn record_path(database: &str, name: &str) -> PathBuf {
    Path::new("/etc").join(database).join(name)
}

/// What is claimed by such a path, in words.
pub fn account_at(path: &Path) -> Option<String> {
    let parts: Vec<&str> = path.to_str()?.strip_prefix("/etc/")?.split('/').collect();
    match parts.as_slice() {
        ["passwd", user] => Some(format!("the user '{user}'")),
        ["group", group] => Some(format!("the group '{group}'")),
        ["group", group, user] => Some(format!("the membership of '{user}' in the group '{group}'")),
        _ => None,
    }
}

impl Content for Arc<Table> {
    fn of(bytes: Vec<u8>) -> Result<Self, &'static str> {
        Ok(Self::new(Table::read(&bytes)))
    }
}

/// Returns whether this user is denied read access to a path.
fn is_closed(path: &SystemPath) -> bool {
    let opened = fs::open(path, How::Read);
    matches!(opened, Err(FsError::System { source, .. }) if source.kind() == ErrorKind::PermissionDenied)
}

/// One database, as it was read and as it is to be.
struct Database {
    path: SystemPath,
    former: Option<Arc<Text<Arc<Table>>>>,
    table: Arc<Table>,
}

impl Database {
    /// What does not exist is empty; so is what this user may not read if `is_secret`.
    fn read(cx: &Context, file: &str, is_secret: bool) -> Result<Self, Failure> {
        let path = path(cx, file);
        let may_be_hidden = is_secret && !user::is_root();
        let former = match TABLES.look(&path) {
            Err(_) if may_be_hidden && is_closed(&path) => None,
            looked => looked?,
        };
        let table = former.as_ref().map(|text| Arc::clone(&text.content)).unwrap_or_default();
        Ok(Self { path, former, table })
    }

    fn exists(&self) -> bool {
        self.former.is_some()
    }

    fn is_changed(&self) -> bool {
        self.former.as_ref().is_some_and(|former| former.content != self.table)
    }

    /// Returns false when somebody who does not lock changed it meanwhile.
    fn write(&self, cx: &Context) -> Result<bool, Failure> {
        let Some(former) = self.former.as_ref().filter(|_| self.is_changed()) else { return Ok(true) };
        let status = &former.status;
        let Some(place) = Place::find(&self.path, &cx.writes)? else { return Ok(false) };
        let mut replacement = Replacement::begin(&place, Former::Unchanged(status))?;
        if let Some(file) = place.open(How::Read)? {
            replacement.keep_attributes(&file.into())?;
        }
        replacement.write(&self.table.bytes())?;
        let ownership = Ownership { uid: Some(status.uid), gid: Some(status.gid) };
        Ok(replacement.finish(status.mode, ownership)?.is_some())
    }
}

/// The databases of a system, which are changed in memory and then written.
pub(crate) struct Databases {
    passwd: Database,
    shadow: Database,
    group: Database,
    gshadow: Database,
}

impl Databases {
    /// As they are. What only root may read is empty for others.
    pub(crate) fn read(cx: &Context) -> Result<Self, Failure> {
        Ok(Self {
            passwd: Database::read(cx, "etc/passwd", false)?,
            shadow: Database::read(cx, "etc/shadow", true)?,
            group: Database::read(cx, "etc/group", false)?,
            gshadow: Database::read(cx, "etc/gshadow", true)?,
        })
    }

    pub(crate) fn users(&self) -> &Table {
        &self.passwd.table
    }

    pub(crate) fn groups(&self) -> &Table {
        &self.group.table
    }

    /// The passwords of users; `None` where there are none, or they may not be read.
    pub(crate) fn passwords(&self) -> Option<&Table> {
        self.shadow.exists().then_some(&self.shadow.table)
    }

    pub(crate) fn users_mut(&mut self) -> &mut Table {
        Arc::make_mut(&mut self.passwd.table)
    }

    pub(crate) fn passwords_mut(&mut self) -> Option<&mut Table> {
        self.shadow.exists().then_some(Arc::make_mut(&mut self.shadow.table))
    }

    /// Puts a group, with the same members in the database of its passwords.
    pub(crate) fn put_group(&mut self, record: &Record) {
        Arc::make_mut(&mut self.group.table).put(record);
        if self.gshadow.exists() {
            let name = record.name();
            let mut secret = self.gshadow.table.find(&name).unwrap_or_else(|| {
                let mut new = Record::new(&name, 4);
                new.set(1, "!");
                new
            });
            secret.set(3, &record.get(3));
            Arc::make_mut(&mut self.gshadow.table).put(&secret);
        }
    }

    pub(crate) fn remove_group(&mut self, name: &str) {
        for database in [&mut self.group, &mut self.gshadow] {
            Arc::make_mut(&mut database.table).remove(name);
        }
    }

    /// Removes a user from those who administer groups, and from the members that only that database has.
    pub(crate) fn forget_administrator(&mut self, user: &str) {
        let groups: Vec<Record> = self.gshadow.table.records().collect();
        for mut group in groups {
            for field in [2, 3] {
                let names = group.names(field);
                let others: Vec<&str> = names.iter().map(String::as_str).filter(|name| *name != user).collect();
                if others.len() < names.len() {
                    group.set(field, &others.join(","));
                    Arc::make_mut(&mut self.gshadow.table).put(&group);
                }
            }
        }
    }

    /// A new group of a name, as a record that is not yet put.
    pub(crate) fn new_group(&self, name: &str, gid: u32) -> Record {
        let mut record = Record::new(name, 4);
        record.set(1, if self.gshadow.exists() { "x" } else { "" });
        record.set(2, &gid.to_string());
        record
    }

    /// The numbers of users or groups.
    pub(crate) fn ids(table: &Table) -> Vec<u32> {
        table.records().filter_map(|record| record.number(2)).collect()
    }

    /// Fails where there are no such databases, or they may not be changed.
    pub(crate) fn check_changeable(&self) -> Result<(), Failure> {
        for database in [&self.passwd, &self.group] {
            if !database.exists() {
                let hint = "A root of another system has etc/passwd and etc/group before users and groups are managed below it";
                return Err(blocked("", format!("there is no '{}'. {hint}", database.path.display())));
            }
        }
        let foreign = self.passwd.former.as_ref().is_some_and(|former| former.status.uid != user::own());
        if foreign && !user::is_root() {
            return Err(cannot("write", &self.passwd.path, fs::access_denied()));
        }
        Ok(())
    }

    /// Returns what keeps one of the changed databases from being written: none of them is written then. `None` if all can be.
    /// Fails if this cannot be examined.
    pub(crate) fn presumed(&self) -> Result<Option<Presumed>, Failure> {
        for database in self.all().into_iter().filter(|database| database.is_changed()) {
            if let Some(presumed) = pending::at(&database.path)? {
                return Ok(Some(presumed));
            }
        }
        Ok(None)
    }

    /// In the order in which they are written. Users are last: by them is seen that an account is there, so that what is broken
    /// off in between still differs, and the next set completes it. This holds for one that goes as well.
    fn all(&self) -> [&Database; 4] {
        let Self { passwd, shadow, group, gshadow } = self;
        [gshadow, group, shadow, passwd]
    }

    /// Writes what was changed, each database at once.
    fn write(&self, cx: &Context) -> Result<bool, Failure> {
        for database in self.all() {
            if !database.write(cx)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Lets one change of accounts happen after the other, in this process and on the machine.
#[derive(Clone, Default)]
pub(crate) struct AccountLock(Arc<Mutex<()>>);

/// The lock of lckpwdf(3), which shadow-utils and systemd take as well; released when dropped.
struct Held(#[expect(dead_code, reason = "closing it releases the lock")] ProgramLock);

impl AccountLock {
    /// Changes the databases: `change` says what becomes of them, and is asked again when somebody who does not lock changed
    /// them meanwhile. `prepare` is done before they are written.
    pub(crate) fn change<R>(
        &self,
        cx: &Context,
        mut change: impl FnMut(&mut Databases) -> Result<R, Failure>,
        mut prepare: impl FnMut(&R) -> Result<(), Failure>,
    ) -> Result<R, Failure> {
        let until = Instant::now().checked_add(cx.deadline);
        let _own = wait(cx, until, || match self.0.try_lock() {
            Ok(own) => Ok(Some(own)),
            Err(TryLockError::Poisoned(own)) => Ok(Some(own.into_inner())),
            Err(TryLockError::WouldBlock) => Ok(None),
        })?;
        let _held = Held::take(cx, until)?;
        fs::retry_changed(&path(cx, "etc/passwd"), || {
            let mut databases = Databases::read(cx)?;
            let result = change(&mut databases)?;
            if let Some(Presumed { failure, .. }) = databases.presumed()? {
                return Err(failure);
            }
            prepare(&result)?;
            Ok(databases.write(cx)?.then_some(result))
        })
    }
}

impl Held {
    fn take(cx: &Context, until: Option<Instant>) -> Result<Self, Failure> {
        let path = path(cx, "etc/.pwd.lock");
        let Some(place) = Place::find(&path, &cx.writes)? else { return Err(cannot("lock", &path, fs::not_found())) };
        let lock = ProgramLock::open(&place)?;
        wait(cx, until, || Ok(lock.try_lock()?.then_some(())))?;
        Ok(Self(lock))
    }
}

/// Tries again and again to take a lock that another may hold.
fn wait<T>(
    cx: &Context,
    until: Option<Instant>,
    mut take: impl FnMut() -> Result<Option<T>, Failure>,
) -> Result<T, Failure> {
    loop {
        if let Some(taken) = take()? {
            return Ok(taken);
        }
        if cx.cancel.is_cancelled() {
            return Err(Failure::new(FailureKind::Cancelled, "the run was cancelled"));
        }
        if until.is_some_and(|until| Instant::now() > until) {
            let path = path(cx, "etc/.pwd.lock");
            let message = format!("cannot lock '{}': another program holds the lock", path.display());
            return Err(Failure::new(FailureKind::Deadline, message));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a list of members or groups says who belongs to it at least, or exactly.
#[derive(Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub(crate) enum Membership {
    /// Others may belong to it as well.
    #[default]
    Minimum,
    /// Nobody else does.
    Exact,
}

impl Membership {
    /// The names afterwards: as they are stated, or what is missing behind the former ones.
    pub(crate) fn after<'n>(self, former: &[String], wanted: impl Iterator<Item = &'n str>) -> Vec<String> {
        let mut after = if self == Self::Minimum { former.to_vec() } else { Vec::new() };
        for name in wanted {
            if !after.iter().any(|known| known == name) {
                after.push(name.to_owned());
            }
        }
        after
    }
}
