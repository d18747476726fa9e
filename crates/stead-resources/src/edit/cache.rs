//! What many instances on one file have in common: its text, read once, and its lock.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stead_core::call::Failure;
use stead_system::clock;
use stead_system::fs::{self, FsError, Handle, How, Place, Status, SystemPath};

use crate::input::blocked;

/// The content of a file in the form in which a resource edits it.
pub(crate) trait Content: Sized {
    /// Takes the bytes, or says what they must be, as in "is not UTF-8 text".
    fn of(bytes: Vec<u8>) -> Result<Self, &'static str>;
}

impl Content for String {
    fn of(bytes: Vec<u8>) -> Result<Self, &'static str> {
        Self::from_utf8(bytes).map_err(|_| "is not UTF-8 text")
    }
}

/// A file that was read.
pub(crate) struct Text<T> {
    pub(crate) status: Status,
    /// The content without the byte order mark.
    pub(crate) content: T,
    /// True if the file begins with a byte order mark, which is preserved.
    pub(super) has_mark: bool,
}

/// The UTF-8 byte order mark that Windows programs write at the start of a text; it is not part of the first line.
pub(super) const MARK: &[u8] = "\u{feff}".as_bytes();

/// Enough for the instances of a document that are next to each other; files are read again at little cost.
const MAX_TEXTS: usize = 64;

/// A larger file is not one that users edit by lines.
const MAX_SIZE: u64 = 64 * 1024 * 1024;

/// The inode of a directory and a name in it: the same whatever path leads there.
type LockKey = ((u64, u64), OsString);

/// The locks of files that are edited, which all resources that edit files share.
#[derive(Clone, Default)]
pub(crate) struct FileLocks(Arc<Mutex<BTreeMap<LockKey, Arc<Mutex<()>>>>>);

impl FileLocks {
    /// The lock of what is at a place; to be held from looking to writing.
    pub(super) fn of(&self, place: &Place) -> Result<Arc<Mutex<()>>, Failure> {
        let key = (place.directory_status()?.identity.inode(), place.name().to_owned());
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if locks.len() >= MAX_TEXTS {
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
        }
        Ok(Arc::clone(locks.entry(key).or_default()))
    }
}

/// The files that were read.
pub(crate) struct Cache<T>(Mutex<BTreeMap<PathBuf, Arc<Text<T>>>>);

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Cache<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }
}

impl<T: Content> Cache<T> {
    /// The text at a path; `None` when nothing is there. A text that has not changed is not read again.
    pub(crate) fn look(&self, path: &SystemPath) -> Result<Option<Arc<Text<T>>>, Failure> {
        // Asking by path is enough here: only what was opened safely under this path can be found again.
        let now = path.status();
        if let Some(text) = now.and_then(|status| self.known(path, &status)) {
            return Ok(Some(text));
        }
        self.read(path, fs::open(path, How::Read))
    }

    /// The same in a directory that is open.
    pub(super) fn look_at(&self, place: &Place) -> Result<Option<Arc<Text<T>>>, Failure> {
        if let Some(text) = place.status()?.and_then(|status| self.known(place.path(), &status)) {
            return Ok(Some(text));
        }
        self.read(place.path(), place.open(How::Read))
    }

    /// Keeps a text for the next one who asks.
    pub(super) fn remember(&self, path: &Path, text: Text<T>) -> Arc<Text<T>> {
        let text = Arc::new(text);
        let mut texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if texts.len() >= MAX_TEXTS && !texts.contains_key(path) {
            texts.pop_first();
        }
        texts.insert(path.to_owned(), Arc::clone(&text));
        text
    }

    fn known(&self, path: &Path, status: &Status) -> Option<Arc<Text<T>>> {
        let texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = texts.get(path)?;
        let unchanged = text.status.identity == status.identity && !status.identity.is_fresh(clock::now());
        unchanged.then(|| Arc::clone(text))
    }

    fn read(&self, path: &Path, opened: Result<Option<Handle>, FsError>) -> Result<Option<Arc<Text<T>>>, Failure> {
        let Some(file) = opened? else { return Ok(None) };
        let fs::Content { status, bytes } = fs::read_open(file, path, MAX_SIZE)?;
        Ok(Some(self.remember(path, Text::of(path, status, bytes)?)))
    }
}

impl<T: Content> Text<T> {
    /// The text of the file at a path that has these bytes.
    pub(super) fn of(path: &Path, status: Status, mut bytes: Vec<u8>) -> Result<Self, Failure> {
        let has_mark = bytes.starts_with(MARK);
        if has_mark {
            bytes.drain(..MARK.len());
        }
        let content = T::of(bytes).map_err(|what| blocked("path", format!("'{}' {what}", path.display())))?;
        Ok(Self { status, content, has_mark })
    }
}

/// Holds a lock; it protects nothing that a panic could have left half done.
pub(super) fn hold(lock: &Mutex<()>) -> MutexGuard<'_, ()> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
