//! A journal in a file.

use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use stead_core::event::Event;

use super::format::{Chain, Contents, ReadError, contents};
use super::{Journal, JournalError};
use stead_system::fs::{OpenError, Presence, TrustedDirectory, User};

/// A journal in a file that one process at a time writes to.
///
/// Guarantees: what was appended survives a power failure, or with [`Self::create_unflushed`] the end of the process. Events
/// that are appended together are written and flushed together. After an append that failed, all others fail.
pub struct FileJournal {
    path: PathBuf,
    /// `None` after an append failed: nobody knows what the file holds then.
    file: Option<File>,
    outlives: Outlives,
    chain: Chain,
}

/// The event that a journal survives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outlives {
    Process,
    Power,
}

/// Why a journal was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenJournalError {
    /// Its directory cannot be used.
    #[error("cannot use the directory of the journal")]
    Directory(#[source] OpenError),
    /// The system refused it.
    #[error("cannot {doing} the journal '{}'", path.display())]
    System {
        /// The action that was tried, as in "cannot …".
        doing: &'static str,
        /// The journal.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// Another process writes to it.
    #[error("another run is using the journal '{}'", .0.display())]
    InUse(PathBuf),
    /// Its records cannot be resumed.
    #[error("cannot read the journal '{}'", path.display())]
    Read {
        /// The journal.
        path: PathBuf,
        /// The mistake in it.
        #[source]
        source: ReadError,
    },
}

impl FileJournal {
    /// Creates a journal that only its owner can read. Fails if the file exists, or if somebody who is not trusted could
    /// exchange it.
    pub fn create(path: &Path) -> Result<Self, OpenJournalError> {
        let (file, directory) = created(path)?;
        let flushed =
            file.sync_all().and_then(|()| File::open(directory.through_descriptor(OsStr::new(".")))?.sync_all());
        flushed.map_err(|source| system("flush", path, source))?;
        Ok(Self::empty(path, file, Outlives::Power))
    }

    /// Creates a journal whose records survive the end of the process alone: nothing is flushed.
    pub fn create_unflushed(path: &Path) -> Result<Self, OpenJournalError> {
        created(path).map(|(file, _)| Self::empty(path, file, Outlives::Process))
    }

    fn empty(path: &Path, file: File, outlives: Outlives) -> Self {
        Self { path: path.to_owned(), file: Some(file), outlives, chain: Chain::default() }
    }

    /// Opens a journal to go on with it, and returns the events that it holds. An incomplete last record is removed: what it
    /// announces was not done.
    pub fn resume(path: &Path) -> Result<(Self, Vec<Event>), OpenJournalError> {
        let mut file = open(&directory_of(path)?, path, Presence::Existing)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|source| system("read", path, source))?;
        let Contents { events, chain, length } = match contents(&bytes) {
            // The process ended after it created the file.
            Err(ReadError::Empty) => Contents { events: Vec::new(), chain: Chain::default(), length: 0 },
            read => read.map_err(|source| OpenJournalError::Read { path: path.to_owned(), source })?,
        };
        if length < bytes.len() {
            let cut = file.set_len(length as u64).and_then(|()| file.sync_all());
            cut.map_err(|source| system("truncate", path, source))?;
        }
        Ok((Self { path: path.to_owned(), file: Some(file), outlives: Outlives::Power, chain }, events))
    }

    fn write(&mut self, events: &[Event]) -> io::Result<()> {
        // Comes back at the end: whatever fails in between, nothing is appended after it.
        let mut file = self.file.take().ok_or_else(|| io::Error::other("writing to it failed before"))?;
        let (chain, records) = self.chain.wrap(events)?;
        file.write_all(&records)?;
        if self.outlives == Outlives::Power {
            file.sync_data()?;
        }
        (self.chain, self.file) = (chain, Some(file));
        Ok(())
    }
}

impl Journal for FileJournal {
    fn append(&mut self, events: &[Event]) -> Result<(), JournalError> {
        self.write(events).map_err(|source| JournalError { path: self.path.clone(), source })
    }

    fn is_durable(&self) -> bool {
        self.outlives == Outlives::Power
    }
}

/// A new file that only its owner can read, and the directory that it is in.
fn created(path: &Path) -> Result<(File, TrustedDirectory), OpenJournalError> {
    let directory = directory_of(path)?;
    let file = open(&directory, path, Presence::New)?;
    Ok((file, directory))
}

fn directory_of(path: &Path) -> Result<TrustedDirectory, OpenJournalError> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let absolute = std::path::absolute(parent).map_err(|source| system("find", path, source))?;
    TrustedDirectory::open(&absolute, User::current().trust()).map_err(OpenJournalError::Directory)
}

/// Opens the journal for appending, and locks it.
fn open(directory: &TrustedDirectory, path: &Path, presence: Presence) -> Result<File, OpenJournalError> {
    let name = path.file_name().unwrap_or(OsStr::new("."));
    let file = directory.append(name, presence).map_err(|source| system("open", path, source))?;
    let metadata = file.metadata().map_err(|source| system("examine", path, source))?;
    if !metadata.is_file() {
        return Err(system("open", path, io::Error::other("not a regular file")));
    }
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenJournalError::InUse(path.to_owned())),
        Err(TryLockError::Error(source)) => Err(system("lock", path, source)),
    }
}

pub(super) fn system(doing: &'static str, path: &Path, source: io::Error) -> OpenJournalError {
    OpenJournalError::System { doing, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_appended_after_an_append_that_failed() {
        let only_readable = File::open("/dev/null").expect("there is always nothing");
        let mut journal = FileJournal {
            path: "journal".into(),
            file: Some(only_readable),
            outlives: Outlives::Process,
            chain: Chain::default(),
        };
        let event = Event { sequence: 0, at: jiff::Timestamp::UNIX_EPOCH, kind: stead_core::event::EventKind::Resumed };
        assert!(journal.append(std::slice::from_ref(&event)).is_err());
        assert!(journal.file.is_none());
        assert!(journal.append(&[event]).is_err_and(|error| error.source.kind() == io::ErrorKind::Other));
    }
}
