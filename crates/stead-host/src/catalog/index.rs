//! The index of what was found last time, on disk, so that nothing is listed, opened and read again that has not
//! changed.
//!
//! The index is a cache: it may be deleted at any time, and one that cannot be read, is not ours or is damaged counts
//! as empty.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::cache::{CacheError, CacheFile};
use stead_system::fs::{Identity, User};

/// Directories by path.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Index {
    pub(super) directories: BTreeMap<String, Directory>,
}

/// A directory and the manifests in it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Directory {
    pub(super) stamp: Identity,
    /// By name.
    pub(super) files: BTreeMap<String, Entry>,
    /// The folders in it, where they were looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) folders: Option<BTreeSet<String>>,
}

/// A name in a directory that is that of a manifest.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Entry {
    /// The content of the file; absent when the file needs to be read each time.
    pub(super) content: Option<Content>,
}

/// A file that was read without a finding.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Content {
    pub(super) stamp: Identity,
    pub(super) json: Json,
}

/// A machine with a thousand manifests has about 5 MiB.
const CACHE: CacheFile =
    CacheFile::new("manifests.index", concat!("stead manifests 4 ", env!("CARGO_PKG_VERSION"), " "));
/// Directories of other searches that are kept, so that searches with other paths, and those below the folders of modules, take
/// turns without work.
const KEPT: usize = 4096;

impl Index {
    /// Reads the index in a cache directory; empty if there is none that can be relied on.
    pub(super) fn load(cache: &Path, user: User) -> Self {
        match load(cache, user) {
            Ok(index) => index,
            Err(reason) => {
                tracing::debug!(%reason, "the index of manifests is built anew");
                Self::default()
            }
        }
    }

    /// Writes the index; all or nothing. That it could not be written only costs time.
    pub(super) fn store(&self, cache: &Path, user: User) {
        if let Err(error) = self.write(cache, user) {
            tracing::debug!(%error, cache = %cache.display(), "the index of manifests cannot be written");
        }
    }

    /// Adds what an older index knows of directories that were not searched this time.
    pub(super) fn keep_others(&mut self, older: &Index) {
        for (path, directory) in older.directories.iter().take(KEPT) {
            self.directories.entry(path.clone()).or_insert_with(|| directory.clone());
        }
    }

    fn write(&self, cache: &Path, user: User) -> Result<(), CacheError> {
        CACHE.write(cache, user, &serde_json::to_vec(self).map_err(io::Error::from)?)
    }
}

fn load(cache: &Path, user: User) -> Result<Index, CacheError> {
    decode(&CACHE.read(cache, user)?).ok_or(CacheError::Damaged)
}

fn decode(text: &[u8]) -> Option<Index> {
    CACHE.body(text).and_then(|body| serde_json::from_slice(body).ok())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    fn sample(directory: &Path) -> Index {
        let stamp = Identity::of(&fs::metadata(directory).unwrap());
        let content = Some(Content { stamp, json: serde_json::json!({"type": "A/B"}) });
        let files = BTreeMap::from([("a.dsc.resource.json".to_owned(), Entry { content })]);
        Index { directories: BTreeMap::from([("/usr/bin".to_owned(), Directory { stamp, files, folders: None })]) }
    }

    #[test]
    fn what_is_stored_is_loaded_and_private() {
        let home = tempfile::tempdir().unwrap();
        let cache = home.path().join("cache/stead");
        let index = sample(home.path());
        index.store(&cache, User::current());
        index.store(&cache, User::current());
        assert_eq!(Index::load(&cache, User::current()), index);
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&cache), mode(&cache.join("manifests.index"))), (0o700, 0o600));
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 1);
    }

    #[test]
    fn every_damage_counts_as_empty() {
        let home = tempfile::tempdir().unwrap();
        let cache = home.path().join("cache");
        sample(home.path()).store(&cache, User::current());
        let file = cache.join("manifests.index");
        let whole = fs::read(&file).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            assert_eq!(decode(&damaged), None, "byte {at}");
            assert_eq!(decode(&whole[..at]), None, "cut at {at}");
        }
        let empty = |mode: u32| {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            Index::load(&cache, User::current()) == Index::default()
        };
        assert!(!empty(0o600) && empty(0o620) && empty(0o602));
        assert!(!empty(0o600));
        let stranger = User { id: User::current().id + 1 };
        assert_eq!(Index::load(&cache, stranger), Index::default());
        fs::rename(&file, cache.join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("elsewhere", &file).unwrap();
        assert_eq!(Index::load(&cache, User::current()), Index::default());
    }

    /// Otherwise a search below the folders of modules and one of other directories have the file written in turn, by each run.
    #[test]
    fn a_search_keeps_what_one_of_a_thousand_modules_found() {
        let home = tempfile::tempdir().unwrap();
        let known = sample(home.path()).directories.into_values().next().unwrap();
        let path = |number| format!("/modules/M{number:04}/1.0.0");
        let older = Index { directories: (0..2000).map(|number| (path(number), known.clone())).collect() };
        let mut newer = sample(home.path());
        newer.keep_others(&older);
        assert_eq!(newer.directories.len(), 2001);
    }
}
