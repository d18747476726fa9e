//! The record of a document on a root, which lasts from one run to the next.
//!
//! There is one record for each document and root, so that the results of its runs lie together: the notifications
//! owed to its instances, and the things that these manage. Raise [`FORM`] when you add a member: a program that does
//! not know it must not write the record without it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use stead_core::digest::sha256;
use stead_core::id::TypeName;
use stead_core::identity::DocumentIdentity;

use super::StoreError;
use super::record::{self, Found, Undecodable};
use stead_system::folder::Folder;

/// The form of a record that this program reads and writes.
pub const FORM: u32 = 2;

const FOLDER: &str = "kept";
const LOCK: &str = "lock";
/// A file of no use.
const TRIAL: &str = "trial";
/// Longer than it takes to write a record, on a disk that is busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// The content of a record.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Kept {
    /// The instances that are owed a notification, by their paths.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub owed: BTreeSet<String>,
    /// The things that its instances manage. Each key tells a thing, and nothing but equality is read out of it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub managed: BTreeMap<String, Managed>,
}

/// A thing that runs of a document manage.
///
/// Guarantees: no secret is in it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Managed {
    /// The name of the instance that managed it last.
    pub name: Box<str>,
    /// The type of the instance.
    pub type_name: TypeName,
    /// The properties by which it is removed, without `_exist`; `None` where nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removal: Option<Map<String, Json>>,
    /// True if a run found it absent and made it, and no run has begun to remove it since.
    #[serde(default, skip_serializing_if = "is_false")]
    pub created: bool,
    /// The keys of the things that must be there for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// The place of a record in a store.
#[derive(Clone, Debug)]
pub struct Slot {
    folder: PathBuf,
    file: String,
    owner: Owner,
}

/// Whose a record is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Owner {
    /// The system root, as text.
    root: String,
    document: DocumentIdentity,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    #[serde(flatten)]
    owner: Owner,
    kept: Kept,
}

/// The result of reading a record.
#[derive(PartialEq, Eq, Debug)]
pub enum Reading {
    /// The content; the default where there is no record.
    Known(Kept),
    /// Something other than this program changed it: its content is unknown.
    Damaged,
}

impl Default for Reading {
    fn default() -> Self {
        Self::Known(Kept::default())
    }
}

impl Slot {
    /// The record of a document on a root, in the store in this folder.
    ///
    /// Assumptions: the root is a real path.
    pub fn of(store: &Path, root: &Path, document: &DocumentIdentity) -> Self {
        let owner = Owner { root: root.to_string_lossy().into_owned(), document: document.clone() };
        let name = sha256([root.as_os_str().as_encoded_bytes(), b"\0", document.as_str().as_bytes()].concat());
        Self { folder: store.join(FOLDER), file: format!("{}.json", name.get(..32).unwrap_or(&name)), owner }
    }

    /// Where the record lies.
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.file)
    }

    /// Reads the record. It changes nothing, and creates no folder.
    ///
    /// # Errors
    /// When the system fails, or a newer version wrote the record: it is not read in part.
    pub fn read(&self) -> Result<Reading, StoreError> {
        match Folder::existing(&self.folder)? {
            Some(folder) => self.read_in(&folder),
            None => Ok(Reading::Known(Kept::default())),
        }
    }

    /// Returns the records of the other documents on this root.
    ///
    /// # Errors
    /// When the system fails, or a record of the folder is damaged or newer, so that nobody knows whose it is.
    pub fn others(&self) -> Result<Vec<Kept>, StoreError> {
        let Some(folder) = Folder::existing(&self.folder)? else { return Ok(Vec::new()) };
        let mut others = Vec::new();
        for name in folder.names()?.iter().filter_map(|name| name.to_str()) {
            if name == self.file || Path::new(name).extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let path = || self.folder.join(name);
            let json = match record::read(&folder, name)? {
                Found::Intact(json) => json,
                Found::Damaged => return Err(StoreError::Damaged(path())),
                Found::Absent => continue,
            };
            match record::decode::<Record>(FORM, &json) {
                Ok(record) if record.owner.root == self.owner.root => others.push(record.kept),
                Ok(_) => {}
                Err(Undecodable::Newer(found)) => {
                    return Err(StoreError::Newer { path: path(), found, reads: FORM });
                }
                Err(Undecodable::Foreign(_)) => return Err(StoreError::Damaged(path())),
            }
        }
        Ok(others)
    }

    /// Makes sure that a record can be written, so that a run need not find out when it has changed something.
    pub fn prepare(&self) -> Result<(), StoreError> {
        let folder = Folder::create(&self.folder)?;
        folder.replace(TRIAL, b"")?;
        Ok(folder.remove_unflushed(TRIAL)?)
    }

    /// Changes what is kept. One process at a time does; what is damaged is set aside first, and taken for `Kept::default()`.
    ///
    /// Guarantees: the record is the former or the new one at any time, also after an error and after a power failure; once
    /// this returns it is the new one. Nothing is written where nothing changes.
    pub fn change(&self, change: impl FnOnce(&mut Kept)) -> Result<(), StoreError> {
        let folder = Folder::create(&self.folder)?;
        let _lock = folder.lock(LOCK, PATIENCE)?.ok_or_else(|| StoreError::Busy(self.folder.clone()))?;
        let former = match self.read_in(&folder)? {
            Reading::Known(kept) => kept,
            Reading::Damaged => {
                folder.set_aside(&self.file)?;
                folder.remove(&self.file)?;
                Kept::default()
            }
        };
        let mut kept = former.clone();
        change(&mut kept);
        if kept == former {
            return Ok(());
        }
        if kept == Kept::default() {
            return Ok(folder.remove(&self.file)?);
        }
        let record = Record { owner: self.owner.clone(), kept };
        Ok(folder.replace(&self.file, &record::encode(FORM, &record)?)?)
    }

    fn read_in(&self, folder: &Folder) -> Result<Reading, StoreError> {
        let json = match record::read(folder, &self.file)? {
            Found::Intact(json) => json,
            Found::Damaged => return Ok(Reading::Damaged),
            Found::Absent => return Ok(Reading::Known(Kept::default())),
        };
        match record::decode::<Record>(FORM, &json) {
            Ok(record) if record.owner == self.owner => Ok(Reading::Known(record.kept)),
            Err(Undecodable::Newer(found)) => Err(StoreError::Newer { path: self.path(), found, reads: FORM }),
            Ok(_) | Err(Undecodable::Foreign(_)) => Ok(Reading::Damaged),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::thread;

    use tempfile::TempDir;

    use super::*;

    fn slot(store: &TempDir, name: &str) -> Slot {
        Slot::of(store.path(), Path::new("/"), &DocumentIdentity::of_file(Path::new(name)))
    }

    fn kept(owed: &[&str]) -> Kept {
        Kept { owed: owed.iter().map(|path| (*path).to_owned()).collect(), ..Kept::default() }
    }

    fn owe(slot: &Slot, path: &str) {
        slot.change(|kept| kept.owed.extend([path.to_owned()])).unwrap();
    }

    #[test]
    fn what_is_kept_is_found_again_by_root_and_document() {
        let store = tempfile::tempdir().unwrap();
        let (one, other) = (slot(&store, "/one"), slot(&store, "/other"));
        assert_eq!(one.read().unwrap(), Reading::Known(kept(&[])));
        assert!(!store.path().join(FOLDER).exists(), "reading creates nothing");
        owe(&one, "T:a");
        owe(&one, "T:b");
        assert_eq!(one.read().unwrap(), Reading::Known(kept(&["T:a", "T:b"])));
        assert_eq!(other.read().unwrap(), Reading::Known(kept(&[])));
        let elsewhere = Slot::of(store.path(), Path::new("/srv/root"), &DocumentIdentity::of_file(Path::new("/one")));
        assert_eq!(elsewhere.read().unwrap(), Reading::Known(kept(&[])));
        one.change(|kept| kept.owed.clear()).unwrap();
        assert!(!one.path().exists(), "nothing is kept of it");
    }

    #[test]
    fn every_cut_and_every_flipped_bit_is_damage_and_what_is_damaged_is_set_aside() {
        let store = tempfile::tempdir().unwrap();
        let slot = slot(&store, "/one");
        owe(&slot, "T:a");
        let whole = fs::read(slot.path()).unwrap();
        let cut = (0..whole.len()).map(|length| whole[..length].to_vec());
        let flipped = (0..whole.len()).map(|at| {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            bytes
        });
        for damaged in cut.chain(flipped) {
            fs::write(slot.path(), &damaged).unwrap();
            assert_eq!(slot.read().unwrap(), Reading::Damaged, "{}", String::from_utf8_lossy(&damaged));
        }
        let damaged = fs::read(slot.path()).unwrap();
        owe(&slot, "T:b");
        assert_eq!(slot.read().unwrap(), Reading::Known(kept(&["T:b"])));
        assert_eq!(fs::read(slot.path().with_extension("json.damaged")).unwrap(), damaged);
    }

    #[test]
    fn a_record_of_another_document_is_damage() {
        let store = tempfile::tempdir().unwrap();
        let (one, other) = (slot(&store, "/one"), slot(&store, "/other"));
        owe(&one, "T:a");
        fs::copy(one.path(), other.path()).unwrap();
        assert_eq!(other.read().unwrap(), Reading::Damaged);
    }

    #[test]
    fn a_record_of_a_newer_version_is_refused_and_left_alone() {
        let store = tempfile::tempdir().unwrap();
        let slot = slot(&store, "/one");
        owe(&slot, "T:a");
        let newer = serde_json::json!({ "kept": { "owed": ["T:a"], "images": {} } });
        let newer = record::encode(FORM + 1, &newer).unwrap();
        fs::write(slot.path(), &newer).unwrap();
        let refused = |error: StoreError| matches!(error, StoreError::Newer { found, .. } if found == FORM + 1);
        assert!(slot.read().is_err_and(refused));
        assert!(slot.change(|kept| kept.owed.clear()).is_err_and(refused));
        assert_eq!(fs::read(slot.path()).unwrap(), newer);
    }

    #[test]
    fn one_at_a_time_changes_a_record() {
        let store = tempfile::tempdir().unwrap();
        let slot = slot(&store, "/one");
        thread::scope(|scope| {
            for writer in 0..4 {
                let slot = slot.clone();
                scope.spawn(move || (0..10).for_each(|each| owe(&slot, &format!("T:{writer}-{each}"))));
            }
        });
        let Reading::Known(kept) = slot.read().unwrap() else { panic!("damaged") };
        assert_eq!(kept.owed.len(), 40);
    }
}
