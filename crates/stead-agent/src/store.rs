//! Where the agent keeps what outlives it.
//!
//! ```text
//! DIR/lock                  one agent at a time: a flock that ends with its process
//! DIR/state.json            the record, and a line with its checksum
//! DIR/state.former.json     the record before it
//! DIR/documents/NAME        what was delivered, sealed
//! DIR/key                   what it is sealed with, unless a systemd credential is
//! DIR/machine.key           the keys of this machine, and machine.lock while they are made
//! DIR/jobs/ID.journal       the journal of a job
//! DIR/reports.redb          the reports of jobs
//! DIR/log.jsonl             what the agent did, and log.former.jsonl before it
//! DIR/following/            what was fetched of a source of releases
//! DIR/control.sock          where it is asked
//! DIR/*.damaged             what was damaged, and set aside
//! ```
//!
//! Guarantees
//! - A file is replaced as a whole, and is on the disk before the operation returns. What failed is not retried on the same
//!   file: the next attempt writes a new one.
//! - Directories are 0700 and files 0600 from their creation.
//! - Damage is found, set aside and reported as a [`Repair`]. An error of the system is never taken for damage.

mod delivered;

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use stead_host::store::kept::Slot;
use stead_host::store::record::{self, Found, Undecodable};
use stead_host::store::{self, Keys, LostKey, SealingPurpose};
use stead_system::folder::{Folder, FolderError};
use stead_system::fs::Status;

use crate::state::AgentState;
pub use delivered::Delivered;

const RECORD: &str = "state.json";
const FORMER_RECORD: &str = "state.former.json";
/// How long another agent may take to end.
const MOMENT: Duration = Duration::from_millis(200);
pub(crate) const LOCK: &str = "lock";

/// The state directory, locked against other agents until this is dropped.
///
/// # Examples
/// ```
/// use stead_agent::{AgentState, Store};
///
/// let folder = tempfile::tempdir()?;
/// let folder = folder.path().join("agent");
/// let (mut store, state, repairs) = Store::open(&folder)?;
/// assert_eq!(state, AgentState::default());
/// assert!(repairs.is_empty());
/// store.save(&AgentState { drift_found: true, ..state })?;
/// drop(store);
/// // The next process knows what was saved.
/// let (_, state, _) = Store::open(&folder)?;
/// assert!(state.drift_found);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Store {
    folder: Folder,
    documents: Arc<Documents>,
    /// The record as it is on the disk; `None` when nobody knows, because saving failed.
    saved: Option<AgentState>,
    lock: File,
}

/// The store of delivered documents, which are sealed.
pub(crate) struct Documents {
    folder: Folder,
    keys: Keys,
}

impl Documents {
    /// The folder of the store that they lie in.
    pub(crate) fn store(&self) -> &Path {
        let folder = self.folder.path();
        folder.parent().unwrap_or(folder)
    }

    /// Returns the document that is stored under a name.
    ///
    /// Guarantees: it is what was put there, to the last bit. Fails if it is missing or damaged, or cannot be read.
    pub(crate) fn get(&self, content: &str) -> Result<Delivered, StoreError> {
        let path = self.folder.path().join(content);
        let Some(sealed) = self.folder.read(content)? else { return Err(StoreError::NoDocument(path)) };
        self.keys.unseal(SealingPurpose::DOCUMENT, content, &sealed).ok_or(StoreError::DamagedDocument(path))
    }
}

/// Why the store cannot be used, or something in it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The private store cannot be used.
    #[error(transparent)]
    Private(#[from] store::StoreError),
    /// Its folder, or a file in it, cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Another agent has it.
    #[error("another agent is using '{}'", .0.display())]
    InUse(PathBuf),
    /// The record is whole, and not one that this version can read.
    #[error("'{}' was written by another version of stead: use that version, or remove the file and deliver the document and \
        the settings again", path.display())]
    Version {
        /// The record.
        path: PathBuf,
        /// The error of the parser.
        #[source]
        source: serde_json::Error,
    },
    /// The record is whole, and newer than this version.
    #[error("'{}' was written by a newer version of stead (form {found}; this version reads up to {known}): use that version, or \
        remove the file and deliver the document and the settings again", path.display())]
    Newer {
        /// The record.
        path: PathBuf,
        /// Its form.
        found: u32,
        /// The newest form that is known.
        known: u32,
    },
    /// There is no such document.
    #[error("the document '{}' does not exist", .0.display())]
    NoDocument(PathBuf),
    /// A document cannot be unsealed.
    #[error("the document '{}' is damaged, or was sealed with another key", .0.display())]
    DamagedDocument(PathBuf),
}

/// Something in the state directory that was damaged or missing, and what the agent goes on with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Repair {
    /// The damage that it was about.
    pub damage: Damage,
    /// Where the damaged files are now; none if they were missing.
    pub set_aside: Vec<PathBuf>,
}

/// The part that was damaged or missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// The record; the one before it is used.
    Record,
    /// The record before the one that is used.
    FormerRecord,
    /// Both; the agent has no document.
    AllRecords,
    /// The key; documents that were sealed with it cannot be read.
    Key,
    /// The reports of jobs; new ones are begun.
    Reports,
}

impl From<LostKey> for Repair {
    fn from(lost: LostKey) -> Self {
        Self { damage: Damage::Key, set_aside: lost.set_aside.into_iter().collect() }
    }
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.damage {
            Damage::Record => {
                "the record of the agent was damaged or missing; the former one is used, without the last change"
            }
            Damage::FormerRecord => "the former record of the agent was damaged; the newest one is used",
            Damage::AllRecords => {
                "both records of the agent were damaged or missing; deliver the document and the settings again"
            }
            Damage::Key => "the key of the agent was damaged or missing; deliver the document again",
            Damage::Reports => "the reports of former jobs were damaged; they are no longer shown",
        })?;
        let mut paths = self.set_aside.iter();
        if let Some(first) = paths.next() {
            write!(f, " (set aside as '{}'", first.display())?;
            paths.try_for_each(|path| write!(f, ", '{}'", path.display()))?;
            f.write_str(")")?;
        }
        Ok(())
    }
}

impl Store {
    /// Opens the state directory, which is created if it does not exist, and returns what was saved last. Documents are sealed
    /// with the systemd credential `stead-agent-key` if the process has it, else with a key of their own.
    ///
    /// Guarantees: what it returns survives a power failure. A record that is damaged is set aside and the former one is used.
    /// Fails, and changes nothing of what it cannot read, when the system fails.
    pub fn open(directory: &Path) -> Result<(Self, AgentState, Vec<Repair>), StoreError> {
        let credentials = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
        Self::open_with(directory, credentials.as_deref())
    }

    /// Opens it like [`Store::open`], with another directory of credentials.
    pub fn open_with(
        directory: &Path,
        credentials: Option<&Path>,
    ) -> Result<(Self, AgentState, Vec<Repair>), StoreError> {
        let folder = Folder::create(directory)?;
        let lock = folder.lock(LOCK, MOMENT)?.ok_or_else(|| StoreError::InUse(folder.path().to_owned()))?;
        let documents = folder.within("documents")?;
        let jobs = folder.within("jobs")?;
        for each in [&folder, &documents, &jobs] {
            each.remove_abandoned();
        }
        let is_used = !documents.names()?.is_empty();
        // What a killed process left visible may not be on the disk yet, and is relied on from now on.
        folder.flush()?;
        let (state, record_repair) = load_state(&folder, is_used)?;
        let (keys, lost_key) = Keys::load(&folder, credentials, is_used).inspect_err(|_| {
            // The next attempt does not find it again.
            if let Some(repair) = &record_repair {
                tracing::warn!("{repair}");
            }
        })?;
        let documents = Arc::new(Documents { folder: documents, keys });
        let store = Self { folder, documents, saved: Some(state.clone()), lock };
        Ok((store, state, record_repair.into_iter().chain(lost_key.map(Repair::from)).collect()))
    }

    /// Saves the record, in place of the one before, which is kept as the former one.
    ///
    /// Guarantees: the record on the disk is the old or the new one at any time, also after an error; after success it is the
    /// new one. Nothing is written when it is on the disk already.
    ///
    /// Caveats: there is no former record where the file system has no hard links.
    pub fn save(&mut self, state: &AgentState) -> Result<(), StoreError> {
        if self.saved.as_ref() == Some(state) {
            return Ok(());
        }
        self.saved = None;
        let record = record::encode(FORM, state)?;
        // It is another name for a file that is on the disk, and flushed with the directory below.
        self.folder.keep_former(RECORD, FORMER_RECORD)?;
        self.folder.replace(RECORD, &record)?;
        self.saved = Some(state.clone());
        Ok(())
    }

    /// Stores what was delivered, sealed, and returns its name. The same delivery has the same name; without the key, the name
    /// says nothing about it.
    ///
    /// Guarantees: it survives a power failure. It is written anew if it is there already, which may not be flushed.
    pub fn put(&self, delivered: &Delivered) -> Result<String, StoreError> {
        let (name, sealed) = self.documents.keys.seal(SealingPurpose::DOCUMENT, delivered)?;
        self.documents.folder.replace(&name, &sealed)?;
        Ok(name)
    }

    /// Returns the document that was stored under a name.
    ///
    /// Guarantees: it is what was put there, to the last bit.
    pub fn get(&self, content: &str) -> Result<Delivered, StoreError> {
        self.documents.get(content)
    }

    /// The documents, for whoever reads them without the record.
    pub(crate) fn documents(&self) -> Arc<Documents> {
        Arc::clone(&self.documents)
    }

    /// Removes the documents that neither these nor the records on the disk name.
    pub fn keep_only(&self, contents: &BTreeSet<&str>) -> Result<(), StoreError> {
        let mut kept: BTreeSet<String> = contents.iter().map(|content| (*content).to_owned()).collect();
        for name in [RECORD, FORMER_RECORD] {
            if let Found::Intact(record) = record::read(&self.folder, name)? {
                kept.extend(decode(&self.folder, name, &record)?.generations.into_values().map(|each| each.content));
            }
        }
        for name in self.documents.folder.names()? {
            if !name.to_str().is_some_and(|name| kept.contains(name)) {
                self.documents.folder.remove_unflushed(&name)?;
            }
        }
        Ok(())
    }

    /// Returns the path of the journal of a job. The id must be a file name.
    pub fn journal(&self, job: &str) -> PathBuf {
        self.folder.path().join("jobs").join(format!("{job}.journal"))
    }

    /// The state directory, behind all links.
    pub fn directory(&self) -> &Path {
        self.folder.path()
    }

    /// Returns whether the directory still has the lock that this process holds, so that no other agent can start
    /// there.
    pub fn is_in_place(&self) -> bool {
        let named = self.folder.path().join(LOCK).symlink_metadata();
        let inode = |metadata: &Metadata| Status::from(metadata).identity.inode();
        let same = |named: &Metadata| self.lock.metadata().is_ok_and(|held| inode(&held) == inode(named));
        match named {
            Ok(named) => same(&named),
            // Other errors say nothing about it.
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }
}

/// The form of the record.
const FORM: u32 = 2;

/// Reads the record, or the former one. `is_used`: there are documents, so that there must be one.
fn load_state(folder: &Folder, is_used: bool) -> Result<(AgentState, Option<Repair>), StoreError> {
    use Found::{Absent, Damaged, Intact};
    let found = [record::read(folder, RECORD)?, record::read(folder, FORMER_RECORD)?];
    let (state, damage) = match &found {
        [Intact(newest), former] => {
            (decode(folder, RECORD, newest)?, matches!(former, Damaged).then_some(Damage::FormerRecord))
        }
        [_, Intact(former)] => (decode(folder, FORMER_RECORD, former)?, Some(Damage::Record)),
        [Absent, Absent] if !is_used => {
            Slot::number_anew(folder.path())?;
            folder.flush_ancestors()?;
            (AgentState::default(), None)
        }
        _ => {
            Slot::number_anew(folder.path())?;
            (AgentState::default(), Some(Damage::AllRecords))
        }
    };
    let mut set_aside = Vec::new();
    for (name, found) in [RECORD, FORMER_RECORD].into_iter().zip(&found) {
        if matches!(found, Damaged) {
            set_aside.extend(folder.set_aside(name)?);
        }
    }
    if !matches!(found, [Intact(_), _]) {
        folder.replace(RECORD, &record::encode(FORM, &state)?)?;
    }
    if matches!(found, [_, Damaged]) {
        folder.remove(FORMER_RECORD)?;
    }
    Ok((state, damage.map(|damage| Repair { damage, set_aside })))
}

fn decode(folder: &Folder, name: &str, record: &[u8]) -> Result<AgentState, StoreError> {
    let path = || folder.path().join(name);
    record::decode(FORM, record).map_err(|error| match error {
        Undecodable::Newer(found) => StoreError::Newer { path: path(), found, known: FORM },
        Undecodable::Foreign(source) => StoreError::Version { path: path(), source },
    })
}
