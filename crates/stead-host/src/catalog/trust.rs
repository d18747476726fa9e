//! Whose word a run of root takes.
//!
//! A manifest names programs that are then run. When root runs them, whoever can write the manifest is root.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Who runs, and so whose files are trusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct User {
    /// The effective user id.
    pub id: u32,
}

impl User {
    /// The user that this process runs as.
    pub fn current() -> Self {
        Self { id: rustix::process::geteuid().as_raw() }
    }

    /// Whether this user can do everything, so that it matters whose files are read.
    pub fn is_root(self) -> bool {
        self.id == 0
    }
}

/// Why a file is not trusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Untrusted {
    /// Everybody can write it.
    #[error("everybody can write it")]
    Writable,
    /// Somebody else owns it.
    #[error("it is owned by user {0}, neither root nor the one who runs")]
    Owner(u32),
    /// Everybody can write the directory that it is in.
    #[error("everybody can write its directory")]
    WritableDirectory,
    /// Somebody else owns the directory that it is in.
    #[error("its directory is owned by user {0}, neither root nor the one who runs")]
    DirectoryOwner(u32),
}

impl Untrusted {
    /// What to do about it.
    pub fn help(self) -> &'static str {
        match self {
            Self::Writable => "take the right away: chmod o-w",
            Self::Owner(_) => "give it to root: chown root",
            Self::WritableDirectory => "take the right away from its directory, or do not search there",
            Self::DirectoryOwner(_) => "give its directory to root, or do not search there",
        }
    }
}

const OTHERS_WRITE: u32 = 0o002;

/// Whether `user` may take a file at its word. Everything is trusted unless the user is root.
pub(super) fn file(user: User, metadata: &Metadata) -> Result<(), Untrusted> {
    if !user.is_root() {
        return Ok(());
    }
    if metadata.mode() & OTHERS_WRITE != 0 {
        return Err(Untrusted::Writable);
    }
    owner(user, metadata).map_err(Untrusted::Owner)
}

/// The same for a directory that files are in. A sticky one is no better: everybody can add a manifest.
pub(super) fn directory(user: User, metadata: &Metadata) -> Result<(), Untrusted> {
    if !user.is_root() {
        return Ok(());
    }
    if metadata.mode() & OTHERS_WRITE != 0 {
        return Err(Untrusted::WritableDirectory);
    }
    owner(user, metadata).map_err(Untrusted::DirectoryOwner)
}

/// The same for the directory that a symbolic link leads into.
pub(super) fn behind_link(user: User, path: &Path) -> Result<(), Untrusted> {
    if !user.is_root() {
        return Ok(());
    }
    // A link that leads nowhere is reported when its file is opened.
    let Ok(target) = fs::canonicalize(path) else { return Ok(()) };
    let Some(metadata) = target.parent().and_then(|parent| fs::metadata(parent).ok()) else { return Ok(()) };
    directory(user, &metadata)
}

fn owner(user: User, metadata: &Metadata) -> Result<(), u32> {
    if [0, user.id].contains(&metadata.uid()) { Ok(()) } else { Err(metadata.uid()) }
}
