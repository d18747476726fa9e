//! Names of users and groups.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::unistd::{Gid, Group, Uid, User};

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

/// Looks names up, and remembers what it found for a moment.
///
/// A lookup may ask a server; a run asks for the same few names thousands of times. A name that is not there is asked
/// for every time, because the run may be about to create it.
#[derive(Default)]
pub struct Names {
    ids: Mutex<Remembered<String, u32>>,
    names: Mutex<Remembered<u32, Option<String>>>,
}

type Remembered<K, V> = BTreeMap<(Subject, K), (Instant, V)>;

/// Long enough for a run of thousands of files, short enough for a daemon that sees accounts come and go.
const MOMENT: Duration = Duration::from_secs(2);

impl Names {
    /// The number of a name, or the number that the text is; `None` when there is neither.
    pub fn id(&self, subject: Subject, name: &str) -> Result<Option<u32>, std::io::Error> {
        let key = (subject, name.to_owned());
        let now = Instant::now();
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, id)) = ids.get(&key).filter(|(at, _)| now.duration_since(*at) < MOMENT) {
            return Ok(Some(*id));
        }
        let found = match subject {
            Subject::User => User::from_name(name)?.map(|user| user.uid.as_raw()),
            Subject::Group => Group::from_name(name)?.map(|group| group.gid.as_raw()),
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
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let known = names.get(&(subject, id)).filter(|(at, _)| now.duration_since(*at) < MOMENT);
        let name = if let Some((_, name)) = known {
            name.clone()
        } else {
            let found = match subject {
                Subject::User => User::from_uid(Uid::from_raw(id)).ok().flatten().map(|user| user.name),
                Subject::Group => Group::from_gid(Gid::from_raw(id)).ok().flatten().map(|group| group.name),
            };
            names.insert((subject, id), (now, found.clone()));
            found
        };
        name.unwrap_or_else(|| id.to_string())
    }
}
