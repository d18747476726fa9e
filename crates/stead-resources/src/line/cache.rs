//! What many instances on one file have in common: its lines, its lock, and expressions.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use regex::bytes::Regex;
use rustix::fs::{AtFlags, CWD, OFlags, fstat, statat};
use rustix::time::{ClockId, clock_gettime};
use stead_core::call::Failure;
use stead_host::fs::{self, FsError, Kind, Place, Status};

use super::lines::Lines;
use crate::input::{cannot, invalid, refused};

/// A file that was read.
pub(super) struct Text {
    pub(super) status: Status,
    pub(super) lines: Lines,
}

impl Text {
    pub(super) fn new(status: Status, content: Vec<u8>) -> Self {
        Self { status, lines: Lines::new(content) }
    }
}

/// Enough for the instances of a document that are next to each other; files are read again at little cost.
const MAX_TEXTS: usize = 64;

/// A larger file is not one that users edit by lines.
const MAX_SIZE: u64 = 64 * 1024 * 1024;

/// How a file is opened without waiting for anything.
pub(super) const LOOK: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// The files that were read, and the locks of those that are written.
#[derive(Default)]
pub(super) struct Files {
    texts: Mutex<BTreeMap<PathBuf, Arc<Text>>>,
    locks: Mutex<BTreeMap<LockKey, Arc<Mutex<()>>>>,
}

/// The inode of a directory and a name in it: the same whatever path leads there.
type LockKey = ((u64, u64), OsString);

impl Files {
    /// The text at a path; `None` when nothing is there. A text that has not changed is not read again.
    pub(super) fn look(&self, path: &Path) -> Result<Option<Arc<Text>>, Failure> {
        // Asking by path is enough here: only what was opened safely under this path can be found again.
        let now = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok().map(Status::from);
        if let Some(text) = now.and_then(|status| self.known(path, &status)) {
            return Ok(Some(text));
        }
        self.read(path, fs::open(path, LOOK))
    }

    /// The same in a directory that is open.
    pub(super) fn look_at(&self, place: &Place) -> Result<Option<Arc<Text>>, Failure> {
        if let Some(text) = place.status()?.and_then(|status| self.known(place.path(), &status)) {
            return Ok(Some(text));
        }
        self.read(place.path(), place.open(LOOK))
    }

    /// Keeps a text for the next one who asks.
    pub(super) fn remember(&self, path: &Path, text: Text) -> Arc<Text> {
        let text = Arc::new(text);
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        if texts.len() >= MAX_TEXTS && !texts.contains_key(path) {
            texts.pop_first();
        }
        texts.insert(path.to_owned(), Arc::clone(&text));
        text
    }

    /// The lock of what is at a place; to be held from looking to writing.
    pub(super) fn lock(&self, place: &Place) -> Result<Arc<Mutex<()>>, Failure> {
        let key = (place.directory_status()?.identity.inode(), place.name().to_owned());
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        if locks.len() >= MAX_TEXTS {
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
        }
        Ok(Arc::clone(locks.entry(key).or_default()))
    }

    fn known(&self, path: &Path, status: &Status) -> Option<Arc<Text>> {
        let texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let text = texts.get(path)?;
        let clock = clock_gettime(ClockId::Realtime);
        let unchanged =
            text.status.identity == status.identity && !status.identity.is_fresh((clock.tv_sec, clock.tv_nsec));
        unchanged.then(|| Arc::clone(text))
    }

    fn read(&self, path: &Path, opened: Result<Option<OwnedFd>, FsError>) -> Result<Option<Arc<Text>>, Failure> {
        let Some(fd) = opened? else { return Ok(None) };
        let mut file = File::from(fd);
        let status = fstat(&file).map(Status::from).map_err(|errno| cannot("examine", path, errno))?;
        if status.kind != Kind::File {
            return Err(refused("path", format!("'{}' is a {}, not a file", path.display(), status.kind.word())));
        }
        if status.size > MAX_SIZE {
            return Err(refused("path", format!("'{}' has more than {} MiB", path.display(), MAX_SIZE >> 20)));
        }
        let mut content = Vec::with_capacity(usize::try_from(status.size).unwrap_or_default() + 1);
        file.read_to_end(&mut content).map_err(|error| cannot("read", path, error))?;
        Ok(Some(self.remember(path, Text::new(status, content))))
    }
}

/// Holds a lock; it protects nothing that a panic could have left half done.
pub(super) fn hold(lock: &Mutex<()>) -> MutexGuard<'_, ()> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Expressions that were compiled: compiling one takes longer than a search in a file.
#[derive(Default)]
pub(super) struct Patterns {
    compiled: Mutex<BTreeMap<String, Regex>>,
}

impl Patterns {
    const MAX: usize = 1024;

    /// Compiles what a property holds.
    pub(super) fn compile(&self, property: &str, pattern: &str) -> Result<Regex, Failure> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(regex) = compiled.get(pattern) {
            return Ok(regex.clone());
        }
        let regex = Regex::new(pattern).map_err(|error| not_usable(property, &error))?;
        if compiled.len() >= Self::MAX {
            compiled.clear();
        }
        compiled.insert(pattern.to_owned(), regex.clone());
        Ok(regex)
    }
}

fn not_usable(property: &str, error: &regex::Error) -> Failure {
    if let regex::Error::CompiledTooBig(limit) = error {
        let limit = limit >> 20;
        return invalid(property, format!("'{property}' is too large: compiled, it takes more than {limit} MiB"));
    }
    // The message of the parser quotes the expression, which may be secret; its last line has the reason alone.
    let reason = error.to_string();
    let reason = reason.rsplit_once("error: ").map(|(_, reason)| format!(": {reason}")).unwrap_or_default();
    invalid(property, format!("'{property}' is not a valid regular expression{reason}"))
}
