//! The private store: what stead keeps between runs, in one folder that only its user can reach.
//!
//! ```text
//! STATE/key                what secrets in it are sealed with, unless a systemd credential is
//! STATE/documents/         what was delivered to the agent, and state.json, jobs/, reports.redb, ... beside it
//! STATE/runs/              recorded runs, and .NAME.images: what each of them changed, as it was before
//! STATE/applied/NAME       digests of the secrets that were set last of an instance that keeps them to itself
//! STATE/kept/NAME.json     what is kept of a document on a root: what is owed to its instances, and the digests of its parts
//! STATE/kept/NAME.managed.a, .left.a  parts of it: what its instances manage, and what they left behind; .b in turn
//! STATE/kept/NAME.notes    what a run has come to know since then, until it settles
//! STATE/key.lock           held while the key is made
//! STATE/locks/             locks, where STEAD_STATE names the folder
//! ```
//!
//! Guarantees
//! - A file is replaced as a whole, and is on the disk before the operation returns. What failed is not retried on the same
//!   file: the next attempt writes a new one.
//! - Directories are 0700 and files 0600 from their creation, opened below directories that nobody else can exchange.
//! - Damage is found, and an error of the system is never taken for damage.

pub mod applied;
pub mod images;
pub mod kept;
pub mod record;
mod sealing;

use std::path::PathBuf;
use std::time::Duration;

pub use sealing::{Keys, LostKey, SealingPurpose};
use stead_system::folder::{Folder, FolderError};
use stead_system::places;

/// The keys of the store of this user, made if there are none yet; `None` for a user without a store.
pub fn keys() -> Result<Option<Keys>, StoreError> {
    const LOCK: &str = "key.lock";
    const PATIENCE: Duration = Duration::from_secs(30);
    let Some(path) = places::store() else { return Ok(None) };
    let folder = Folder::create(&path)?;
    // Of two processes that made a key at once, one would seal with what is replaced.
    let _lock = folder.lock(LOCK, PATIENCE)?.ok_or(StoreError::Busy(path))?;
    Keys::load(&folder, None, false).map(|(keys, _)| Some(keys))
}

/// Why the store cannot be used, or something in it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder, or something in it, cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A newer version of stead wrote a record.
    #[error("'{}' was written by a newer version of stead: it has form {found}, and this one reads form {reads}", path.display())]
    Newer {
        /// The record.
        path: PathBuf,
        /// The form that it has.
        found: u32,
        /// The form that this program reads.
        reads: u32,
    },
    /// Something other than this program changed a record.
    #[error("'{}' is damaged", .0.display())]
    Damaged(PathBuf),
    /// Another process keeps it locked.
    #[error("another process is changing what is kept in '{}'", .0.display())]
    Busy(PathBuf),
    /// The credential is not a key.
    #[error("the credential '{}' must be at least {} bytes long", .0.display(), sealing::KEY_LENGTH)]
    Credential(PathBuf),
    /// A value cannot be encoded as JSON.
    #[error("cannot encode what is to be stored")]
    Encode(#[source] serde_json::Error),
    /// The system has no random numbers, or the text is too long to be sealed.
    #[error("cannot seal the document")]
    Seal,
}
