//! Runs that are recorded to be looked at later: a directory with one journal each.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use stead_core::event::Event;

use super::file::{FileJournal, OpenJournalError, system};
use super::format::{ReadError, read};
use stead_system::fs::{Presence, TrustedDirectory, User};

/// The name of a recorded run, such as `20261122T154500Z-001`: when it began in UTC, and which one of that second it was.
///
/// Guarantees: the order of names is the order in which runs began, as far as the clock says.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RunId(String);

impl RunId {
    /// A name that is written like one.
    pub fn parse(text: &str) -> Option<Self> {
        const FORM: &[u8] = b"ddddddddTddddddZ-ddd";
        let fits = |(form, byte): (&u8, u8)| if *form == b'd' { byte.is_ascii_digit() } else { *form == byte };
        (text.len() == FORM.len() && FORM.iter().zip(text.bytes()).all(fits)).then(|| Self(text.to_owned()))
    }

    /// The name of a run that begins now, where these are in use.
    fn next(at: Timestamp, used: &[Self]) -> Option<Self> {
        let second = at.to_zoned(TimeZone::UTC).strftime("%Y%m%dT%H%M%SZ").to_string();
        let numbers = used.iter().filter_map(|id| id.0.strip_prefix(&second)?.strip_prefix('-')?.parse::<u32>().ok());
        Self::parse(&format!("{second}-{:03}", numbers.max().unwrap_or(0) + 1))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The recorded runs of one directory.
///
/// Guarantees: only its owner can read what is in it, and the mode of a directory that exists is left alone. What was
/// recorded survives the end of the process that recorded it, but not necessarily a power failure: a record is read by
/// users, and nothing is resumed from it.
pub struct RecordedRuns {
    directory: TrustedDirectory,
}

/// The records of a run.
#[derive(Debug)]
pub struct RecordedRun {
    /// Its events. The last ones are missing if it is running, or was interrupted.
    pub events: Vec<Event>,
    /// True if a process is recording it at this moment.
    pub is_running: bool,
}

impl RecordedRuns {
    /// Opens the directory, after creating what is missing of it.
    pub fn create(path: &Path) -> Result<Self, OpenJournalError> {
        let path = std::path::absolute(path).map_err(|source| system("find", path, source))?;
        let opened = TrustedDirectory::create(&path, User::current().trust());
        let directory = opened.map_err(OpenJournalError::Directory)?;
        Ok(Self { directory })
    }

    /// Opens the directory; `None` where it does not exist, so that nothing is recorded.
    pub fn open(path: &Path) -> Result<Option<Self>, OpenJournalError> {
        match TrustedDirectory::open(path, User::current().trust()) {
            Ok(directory) => Ok(Some(Self { directory })),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(OpenJournalError::Directory(error)),
        }
    }

    /// Begins to record a run, with the one that it takes back, if it does. Nobody else begins one until it has its journal.
    pub fn begin(&self, at: Timestamp, undoes: Option<&RunId>) -> Result<Beginning<'_>, OpenJournalError> {
        let lock = self.lock()?;
        let used = self.ids()?;
        let exhausted = || io::Error::other("too many runs began in this second");
        let id = RunId::next(at, &used).ok_or_else(|| system("name", self.directory.path(), exhausted()))?;
        Ok(Beginning { runs: self, lock, used, id, undoes: undoes.cloned() })
    }

    /// Removes what runs changed whose records somebody removed, and what has the name of a run that begins.
    fn remove_orphans(&self, ids: &[RunId], begins: &RunId) -> Result<(), OpenJournalError> {
        let names = self.directory.names().map_err(|source| system("list", self.directory.path(), source))?;
        let is_orphan = |name: &OsStr| run_of(name).is_some_and(|run| run == *begins || !ids.contains(&run));
        names.iter().filter(|name| is_orphan(name)).for_each(|name| self.remove(name));
        Ok(())
    }

    /// What a run changed, as it was kept; `None` where it was not, or not all of it.
    pub fn images(&self, id: &RunId) -> Result<Option<Vec<u8>>, OpenJournalError> {
        let path = self.directory.path().join(images_of(id));
        let mut bytes = Vec::new();
        match self.directory.open_file(&images_of(id)).and_then(|mut file| file.read_to_end(&mut bytes)) {
            Ok(0) => Ok(None),
            Ok(_) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(system("read", &path, source)),
        }
    }

    /// Removes a run that nobody wants to look at.
    pub fn forget(&self, id: &RunId) {
        self.remove(OsStr::new(id.as_str()));
        self.remove(&images_of(id));
    }

    /// How long a file is; 0 where there is none.
    fn size(&self, name: &OsStr) -> u64 {
        let metadata = self.directory.open_file(name).and_then(|file| file.metadata());
        metadata.map_or(0, |metadata| metadata.len())
    }

    fn remove(&self, name: &OsStr) {
        match self.directory.remove_file(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!("cannot remove '{}': {error}", self.directory.path().join(name).display());
            }
            _ => {}
        }
    }

    fn is_over(&self, id: &RunId, directory: &File) -> bool {
        self.file(id).is_ok_and(|file| is_locked(&file, directory).is_ok_and(|locked| !locked))
    }

    /// The names of all runs, the oldest first.
    pub fn ids(&self) -> Result<Vec<RunId>, OpenJournalError> {
        let names = self.directory.names().map_err(|source| system("list", self.directory.path(), source))?;
        Ok(names.iter().filter_map(|name| RunId::parse(name.to_str()?)).collect())
    }

    /// Reads the records of a run.
    pub fn read(&self, id: &RunId) -> Result<RecordedRun, OpenJournalError> {
        let path = self.path_of(id);
        let (file, mut bytes) = (self.file(id)?, Vec::new());
        // Looked at first: what a process still writes is not missed.
        let is_running = is_locked(&file, &self.lock()?).map_err(|source| system("examine", &path, source))?;
        (&file).read_to_end(&mut bytes).map_err(|source| system("read", &path, source))?;
        let events = match read(&bytes) {
            Err(ReadError::Empty) => Vec::new(),
            Err(ReadError::Torn { intact }) => intact,
            read => read.map_err(|source| OpenJournalError::Read { path, source })?,
        };
        Ok(RecordedRun { events, is_running })
    }

    /// Opens a journal for reading. Nothing that is not a regular file is waited for.
    fn file(&self, id: &RunId) -> Result<File, OpenJournalError> {
        let failed = |source| system("open", &self.path_of(id), source);
        let file = self.directory.open_file(OsStr::new(id.as_str())).map_err(failed)?;
        let is_file = file.metadata().map_err(failed)?.is_file();
        if is_file { Ok(file) } else { Err(failed(io::Error::other("not a regular file"))) }
    }

    fn lock(&self) -> Result<File, OpenJournalError> {
        let opened = self.directory.listable().map(File::from);
        let locked = opened.and_then(|file| file.lock().map(|()| file));
        locked.map_err(|source| system("lock the directory of", self.directory.path(), source))
    }

    fn path_of(&self, id: &RunId) -> PathBuf {
        self.directory.path().join(id.as_str())
    }
}

/// A run that begins to be recorded. It is not there until it has its journal: after a kill before that, nothing of it was done.
pub struct Beginning<'r> {
    runs: &'r RecordedRuns,
    lock: File,
    /// The runs that there are.
    used: Vec<RunId>,
    id: RunId,
    undoes: Option<RunId>,
}

impl Beginning<'_> {
    /// The name of the run.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// A new file for what the run changes. The oldest of such files are removed where all together could come to more than a
    /// gibibyte, but none that must stay.
    pub fn images(&self) -> Result<File, OpenJournalError> {
        let Self { runs, used, id, .. } = self;
        runs.remove_orphans(used, id)?;
        let sizes: Vec<u64> = used.iter().map(|id| runs.size(&images_of(id))).collect();
        let mut total: u64 = sizes.iter().sum();
        for (id, size) in used.iter().zip(sizes).filter(|(_, size)| *size > 0) {
            if total > MOST_IMAGES && self.may_go(id) {
                runs.remove(&images_of(id));
                total -= size;
            }
        }
        let path = runs.directory.path().join(images_of(id));
        runs.directory.append(&images_of(id), Presence::New).map_err(|source| system("create", &path, source))
    }

    /// Creates the journal, and removes the oldest runs of which there are more than `keep`, or whose events take more than 256 MiB,
    /// but none that must stay.
    pub fn journal(self, keep: NonZeroUsize) -> Result<(RunId, FileJournal), OpenJournalError> {
        let Self { runs, used, id, .. } = &self;
        let journal = FileJournal::create_unflushed(&runs.path_of(id))?;
        let sizes: Vec<u64> = used.iter().map(|id| runs.size(OsStr::new(id.as_str()))).collect();
        let (mut count, mut total) = (used.len() + 1, sizes.iter().sum::<u64>());
        for (id, size) in used.iter().zip(sizes) {
            if (count > keep.get() || total > MOST_EVENTS) && self.may_go(id) {
                runs.forget(id);
                (count, total) = (count - 1, total - size);
            }
        }
        Ok((self.id, journal))
    }

    /// A run stays while it is recorded, and while another takes it back: after a kill that goes on.
    fn may_go(&self, id: &RunId) -> bool {
        self.undoes.as_ref() != Some(id) && self.runs.is_over(id, &self.lock)
    }
}

/// How many bytes of what runs changed are kept when another run begins: a gibibyte, without what that one may keep.
const MOST_IMAGES: u64 = (1 << 30) - (64 << 20);

/// How many bytes of events are kept when another run begins.
const MOST_EVENTS: u64 = 256 << 20;

/// What the name of a file has behind that of its run. It begins with a dot: whoever lists the folder finds runs.
const IMAGES: &str = ".images";

fn images_of(id: &RunId) -> OsString {
    format!(".{id}{IMAGES}").into()
}

/// The run whose changes a file of this name has.
fn run_of(name: &OsStr) -> Option<RunId> {
    RunId::parse(name.to_str()?.strip_prefix('.')?.strip_suffix(IMAGES)?)
}

/// Returns whether a process writes to a journal. The directory is locked meanwhile: whoever creates a journal is not
/// disturbed.
fn is_locked(file: &File, _directory: &File) -> io::Result<bool> {
    match file.try_lock_shared() {
        Ok(()) => file.unlock().map(|()| false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(source)) => Err(source),
    }
}
