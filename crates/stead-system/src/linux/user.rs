//! Users and groups: who runs this, and their names.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::unistd::{Gid, Group, Uid, User};

use super::fs::{FsError, SystemRoot};

mod servers;

/// Returns whether this process may do everything on this system: it runs as root.
pub fn is_root() -> bool {
    own() == 0
}

/// The user that this process acts as.
pub fn own() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The group that this process acts as.
pub fn own_group() -> u32 {
    rustix::process::getegid().as_raw()
}

/// The account of a user in the running system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Account {
    /// The user.
    pub uid: u32,
    /// The first of the groups of the user.
    pub gid: u32,
    /// The home directory.
    pub home: PathBuf,
}

/// Looks a user of the running system up; `None` where there is none of that name.
pub fn find(name: &str) -> io::Result<Option<Account>> {
    let found = running(Subject::User, Key::Name(name))?;
    Ok(found.map(|user| Account { uid: user.id, gid: user.gid, home: user.home }))
}

/// What a user or a group is looked up by.
#[derive(Clone, Copy, Debug)]
enum Key<'a> {
    Name(&'a str),
    Id(u32),
}

/// A user or a group. Of a group, the group is itself, and there is no home.
#[derive(PartialEq, Eq, Debug)]
struct Entry {
    name: String,
    id: u32,
    gid: u32,
    home: PathBuf,
}

/// A user or a group of the running system, wherever that has its users and groups from.
fn running(subject: Subject, key: Key<'_>) -> io::Result<Option<Entry>> {
    match running_libc(subject, key)? {
        None if cfg!(target_env = "musl") => servers::ask(subject, key),
        found => Ok(found),
    }
}

/// A user or a group that the library in this program knows.
fn running_libc(subject: Subject, key: Key<'_>) -> io::Result<Option<Entry>> {
    let of_user = |user: User| Entry { name: user.name, id: user.uid.as_raw(), gid: user.gid.as_raw(), home: user.dir };
    let of_group = |group: Group| {
        let id = group.gid.as_raw();
        Entry { name: group.name, id, gid: id, home: PathBuf::new() }
    };
    Ok(match (subject, key) {
        (Subject::User, Key::Name(name)) => User::from_name(name)?.map(of_user),
        (Subject::User, Key::Id(id)) => User::from_uid(Uid::from_raw(id))?.map(of_user),
        (Subject::Group, Key::Name(name)) => Group::from_name(name)?.map(of_group),
        (Subject::Group, Key::Id(id)) => Group::from_gid(Gid::from_raw(id))?.map(of_group),
    })
}

/// Whose names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Subject {
    /// Of users
    User,
    /// Of groups
    Group,
}

impl Subject {
    /// The word that messages use.
    pub fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Group => "group",
        }
    }
}

/// The names of the systems that are managed, each below its root.
#[derive(Default)]
pub struct NamesByRoot {
    running: Arc<Names>,
    others: Mutex<BTreeMap<SystemRoot, Arc<Names>>>,
}

impl NamesByRoot {
    /// The names of one system.
    pub fn of(&self, root: &SystemRoot) -> Arc<Names> {
        if root.is_running() {
            return Arc::clone(&self.running);
        }
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Names { root: Some(root.clone()), ..Names::default() });
        Arc::clone(others.entry(root.clone()).or_insert_with(new))
    }
}

/// Looks names up, and remembers what it found for a moment: those of the running system where no other one is meant.
///
/// Of another system only its own files count: what this one has a name for is somebody else there. A lookup may ask a server; a run
/// asks for the same few names thousands of times. A name that is not there is asked for every time, because the run may be about
/// to create it.
#[derive(Default)]
pub struct Names {
    /// Where another system than the running one is.
    root: Option<SystemRoot>,
    by_name: Mutex<Remembered<String, u32>>,
    by_id: Mutex<Remembered<u32, Option<String>>>,
}

type Remembered<K, V> = BTreeMap<(Subject, K), (Instant, V)>;

/// Long enough for a run of thousands of files, short enough for a daemon that sees accounts come and go.
const MOMENT: Duration = Duration::from_secs(2);

impl Names {
    /// The number of a name, or the number that the text is; `None` when there is neither.
    pub fn id(&self, subject: Subject, name: &str) -> Result<Option<u32>, io::Error> {
        let key = (subject, name.to_owned());
        let now = Instant::now();
        let mut ids = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, id)) = ids.get(&key).filter(|(at, _)| now.duration_since(*at) < MOMENT) {
            return Ok(Some(*id));
        }
        let found = match &self.root {
            Some(root) => recorded(root, subject, |each, _| each == name)?.map(|(_, id)| id),
            None => running(subject, Key::Name(name))?.map(|found| found.id),
        };
        let id = found.or_else(|| name.parse().ok());
        if let Some(id) = id {
            ids.insert(key, (now, id));
        }
        Ok(id)
    }

    /// The name of a number; the number as text when it has none.
    pub fn name(&self, subject: Subject, id: u32) -> String {
        let now = Instant::now();
        let mut names = self.by_id.lock().unwrap_or_else(PoisonError::into_inner);
        let known = names.get(&(subject, id)).filter(|(at, _)| now.duration_since(*at) < MOMENT);
        let name = if let Some((_, name)) = known {
            name.clone()
        } else {
            let found = match &self.root {
                Some(_) if id == 0 => Some("root".to_owned()),
                Some(root) => recorded(root, subject, |_, each| each == id).ok().flatten().map(|(name, _)| name),
                None => running(subject, Key::Id(id)).ok().flatten().map(|found| found.name),
            };
            names.insert((subject, id), (now, found.clone()));
            found
        };
        name.unwrap_or_else(|| id.to_string())
    }
}

/// The first name and number that `is_it` picks from the database below a root. Everywhere, 0 is root.
fn recorded(
    root: &SystemRoot,
    subject: Subject,
    is_it: impl Fn(&str, u32) -> bool,
) -> io::Result<Option<(String, u32)>> {
    /// That of a million accounts.
    const MAX_SIZE: u64 = 64 << 20;
    let database = match subject {
        Subject::User => "etc/passwd",
        Subject::Group => "etc/group",
    };
    let content = root.read(database, MAX_SIZE).map_err(|error| match error {
        FsError::System { source, .. } => source,
        other => io::Error::other(other.to_string()),
    })?;
    let text = content.map(|content| String::from_utf8_lossy(&content.bytes).into_owned()).unwrap_or_default();
    let records = text.lines().filter_map(|line| {
        let mut fields = line.split(':');
        Some((fields.next()?, fields.nth(1)?.parse().ok()?))
    });
    let found = records.chain([("root", 0)]).find(|(name, id)| is_it(name, *id));
    Ok(found.map(|(name, id)| (name.to_owned(), id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_system_below_the_root() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("etc")).unwrap();
        std::fs::write(root.path().join("etc/passwd"), "ann:x:4711:1::/:/bin/sh\n+::::::\nroot:x:4712:1::/:\n")
            .unwrap();
        std::fs::write(root.path().join("etc/group"), "ann:x:4713:\n").unwrap();
        let all = NamesByRoot::default();
        let names = all.of(&SystemRoot::below(root.path()));
        let id = |subject, name: &str| names.id(subject, name).unwrap();
        assert_eq!((id(Subject::User, "ann"), id(Subject::Group, "ann")), (Some(4711), Some(4713)));
        assert_eq!((id(Subject::User, "root"), id(Subject::Group, "root")), (Some(4712), Some(0)));
        assert_eq!((id(Subject::User, "daemon"), id(Subject::User, "17")), (None, Some(17)));
        assert_eq!((names.name(Subject::User, 4711), names.name(Subject::Group, 1)), ("ann".into(), "1".into()));
        assert_eq!(all.of(&SystemRoot::running()).name(Subject::User, 0), "root");
    }
}
