//! The record of a document on a root, which lasts from one run to the next.
//!
//! There is one record for each document and root, so that the results of its runs lie together: the notifications
//! owed to its instances, those that are uncertain, and the things that these manage. Raise [`FORM`] when you add a member: a program that does
//! not know it must not write the record without it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
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

mod notes;

pub use notes::Note;
use notes::Notes;

/// The form of a record that this program reads and writes.
pub const FORM: u32 = 3;

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
    /// The instances that left a program running when they were set last, by their paths: it was ended, and what their test finds
    /// may be there without it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub uncertain: BTreeSet<String>,
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
pub enum RecordReading {
    /// The content; the default where there is no record.
    Known(Kept),
    /// Something other than this program changed it: its content is unknown.
    Damaged,
}

impl Default for RecordReading {
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
    pub fn read(&self) -> Result<RecordReading, StoreError> {
        match Folder::existing(&self.folder)? {
            Some(folder) => Ok(self.read_in(&folder)?.0),
            None => Ok(RecordReading::Known(Kept::default())),
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
            match read_from(&folder, name)? {
                (_, Behind::Damage) => return Err(StoreError::Damaged(self.folder.join(name))),
                (Some(record), _) if record.owner.root == self.owner.root => others.push(record.kept),
                _ => {}
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
    /// this returns it is the new one, and has what was noted behind the former one. Nothing is written where nothing changes
    /// and nothing was noted.
    pub fn change(&self, change: impl FnOnce(&mut Kept)) -> Result<(), StoreError> {
        let folder = Folder::create(&self.folder)?;
        let _lock = self.lock(&folder)?;
        let (former, notes) = self.intact(&folder)?;
        let mut kept = former.clone();
        change(&mut kept);
        if notes.is_none() && kept == former {
            return Ok(());
        }
        if kept == Kept::default() {
            folder.remove(&self.file)?;
            if notes.is_some() {
                folder.remove_unflushed(notes_of(&self.file))?;
            }
            return Ok(());
        }
        self.write(&folder, kept, notes.is_some())
    }

    /// Writes the record, which takes in the notes behind the former one.
    fn write(&self, folder: &Folder, kept: Kept, has_notes: bool) -> Result<(), StoreError> {
        let is_empty = kept == Kept::default();
        let record = record::encode(FORM, &Record { owner: self.owner.clone(), kept })?;
        // One with nothing in it only says whose notes are behind it.
        if is_empty { folder.replace_unflushed(&self.file, &record) } else { folder.replace(&self.file, &record) }?;
        if has_notes {
            folder.remove_unflushed(notes_of(&self.file))?;
        }
        Ok(())
    }

    /// Where a run notes what it comes to know.
    pub fn noting(&self) -> Noting<'_> {
        Noting { slot: self, open: None }
    }

    fn lock(&self, folder: &Folder) -> Result<impl Drop + use<>, StoreError> {
        folder.lock(LOCK, PATIENCE)?.map(Locked).ok_or_else(|| StoreError::Busy(self.folder.clone()))
    }

    /// What is kept, and the notes among it that are not in the record. What is damaged is set aside, and notes that were behind
    /// a former record are removed.
    fn intact(&self, folder: &Folder) -> Result<(Kept, Option<Notes>), StoreError> {
        match self.read_in(folder)? {
            (RecordReading::Known(kept), Behind::Notes(notes)) => Ok((kept, Some(notes))),
            (RecordReading::Known(kept), Behind::Nothing) => Ok((kept, None)),
            (RecordReading::Known(kept), _) => {
                folder.remove_unflushed(notes_of(&self.file))?;
                Ok((kept, None))
            }
            (RecordReading::Damaged, _) => {
                folder.set_aside(&self.file)?;
                folder.remove(&self.file)?;
                folder.remove_unflushed(notes_of(&self.file))?;
                Ok((Kept::default(), None))
            }
        }
    }

    fn read_in(&self, folder: &Folder) -> Result<(RecordReading, Behind), StoreError> {
        Ok(match read_from(folder, &self.file)? {
            (None, Behind::Damage) => (RecordReading::Damaged, Behind::Damage),
            (Some(record), _) if record.owner != self.owner => (RecordReading::Damaged, Behind::Damage),
            (record, behind) => (RecordReading::Known(record.map(|record| record.kept).unwrap_or_default()), behind),
        })
    }
}

/// The file of the notes behind a record.
fn notes_of(file: &str) -> String {
    format!("{}.notes", file.trim_end_matches(".json"))
}

/// The notes that are there beside a record.
enum Behind {
    Nothing,
    /// Some that add to it.
    Notes(Notes),
    /// Some that it has taken in, after which the process ended.
    Leftover,
    /// The record is damaged, or they are.
    Damage,
}

/// Reads a record with what was noted behind it. While others write, that is what was kept at some time meanwhile: a record is
/// replaced before the notes go that it takes in.
fn read_from(folder: &Folder, file: &str) -> Result<(Option<Record>, Behind), StoreError> {
    let notes = notes::read(folder, &notes_of(file))?;
    let json = match record::read(folder, file)? {
        Found::Intact(json) => json,
        Found::Damaged => return Ok((None, Behind::Damage)),
        Found::Absent if matches!(notes, notes::Found::Absent) => return Ok((None, Behind::Nothing)),
        Found::Absent => return Ok((None, Behind::Leftover)),
    };
    let mut record: Record = match record::decode(FORM, &json) {
        Ok(record) => record,
        Err(Undecodable::Newer(found)) => {
            return Err(StoreError::Newer { path: folder.path().join(file), found, reads: FORM });
        }
        Err(Undecodable::Foreign(_)) => return Ok((None, Behind::Damage)),
    };
    Ok(match notes {
        notes::Found::Absent => (Some(record), Behind::Nothing),
        notes::Found::Damaged => (None, Behind::Damage),
        notes::Found::Intact(mut notes) if notes.follow(&sha256(&json)) => {
            notes.add_to(&mut record.kept);
            (Some(record), Behind::Notes(notes))
        }
        notes::Found::Intact(_) => (Some(record), Behind::Leftover),
    })
}

/// Has others wait until it is dropped.
struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        _ = self.0.unlock();
    }
}

/// Writes notes behind a record, each of which is as long as what it says. The next change of the record takes them in.
pub struct Noting<'s> {
    slot: &'s Slot,
    open: Option<(Folder, notes::Open)>,
}

impl Noting<'_> {
    /// Adds a note. Once this returns it survives the process, and where something may be gone the power, too.
    pub fn note(&mut self, note: &Note) -> Result<(), StoreError> {
        let (slot, name) = (self.slot, notes_of(&self.slot.file));
        let (folder, open) = match self.open.take() {
            Some((folder, open)) => (folder, Some(open)),
            None => (Folder::create(&slot.folder)?, None),
        };
        let _lock = slot.lock(&folder)?;
        let record = folder.identity(&slot.file)?;
        let mut open = match open.filter(|open| open.is_current(record)) {
            Some(open) => open,
            None => slot.open_notes(&folder, &name)?,
        };
        // After an error nobody knows what it has: it is read then.
        open.append(&folder, &name, note)?;
        self.open = Some((folder, open));
        Ok(())
    }
}

impl Slot {
    /// Opens the notes behind the record. There is one then, so that whose they are is known.
    fn open_notes(&self, folder: &Folder, name: &str) -> Result<notes::Open, StoreError> {
        let (kept, notes) = self.intact(folder)?;
        let has_old = notes.as_ref().is_some_and(|notes| !notes.are_of_this_boot());
        let notes = notes.filter(Notes::are_of_this_boot);
        if has_old || folder.identity(&self.file)?.is_none() {
            self.write(folder, kept, has_old)?;
        }
        let damaged = || StoreError::Damaged(self.path());
        let follow = match (notes, record::read(folder, &self.file)?) {
            (Some(notes), _) => Ok(notes),
            (None, Found::Intact(json)) => Err(sha256(&json)),
            (None, _) => return Err(damaged()),
        };
        let record = folder.identity(&self.file)?.ok_or_else(damaged)?;
        notes::Open::new(folder, (name, record), follow)
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
        assert_eq!(one.read().unwrap(), RecordReading::Known(kept(&[])));
        assert!(!store.path().join(FOLDER).exists(), "reading creates nothing");
        owe(&one, "T:a");
        owe(&one, "T:b");
        assert_eq!(one.read().unwrap(), RecordReading::Known(kept(&["T:a", "T:b"])));
        assert_eq!(other.read().unwrap(), RecordReading::Known(kept(&[])));
        let elsewhere = Slot::of(store.path(), Path::new("/srv/root"), &DocumentIdentity::of_file(Path::new("/one")));
        assert_eq!(elsewhere.read().unwrap(), RecordReading::Known(kept(&[])));
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
            assert_eq!(slot.read().unwrap(), RecordReading::Damaged, "{}", String::from_utf8_lossy(&damaged));
        }
        let damaged = fs::read(slot.path()).unwrap();
        owe(&slot, "T:b");
        assert_eq!(slot.read().unwrap(), RecordReading::Known(kept(&["T:b"])));
        assert_eq!(fs::read(slot.path().with_extension("json.damaged")).unwrap(), damaged);
    }

    #[test]
    fn a_record_of_another_document_is_damage() {
        let store = tempfile::tempdir().unwrap();
        let (one, other) = (slot(&store, "/one"), slot(&store, "/other"));
        owe(&one, "T:a");
        fs::copy(one.path(), other.path()).unwrap();
        assert_eq!(other.read().unwrap(), RecordReading::Damaged);
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
        let RecordReading::Known(kept) = slot.read().unwrap() else { panic!("damaged") };
        assert_eq!(kept.owed.len(), 40);
    }

    fn thing(created: bool) -> Managed {
        let type_name = TypeName::parse("Stead/File").unwrap();
        Managed { name: "f".into(), type_name, removal: None, created, after: Vec::new() }
    }

    fn creates(keys: &[&str]) -> Note {
        let created = keys.iter().map(|key| ((*key).to_owned(), thing(true))).collect();
        Note { created, ..Note::default() }
    }

    fn leaves(keys: &[&str]) -> Note {
        Note { leaving: keys.iter().map(|key| (*key).to_owned()).collect(), ..Note::default() }
    }

    /// The keys of what is known to have been created.
    fn created(slot: &Slot) -> Vec<String> {
        let RecordReading::Known(kept) = slot.read().unwrap() else { panic!("damaged") };
        kept.managed.into_iter().filter_map(|(key, managed)| managed.created.then_some(key)).collect()
    }

    fn notes_at(slot: &Slot) -> PathBuf {
        slot.folder.join(notes_of(&slot.file))
    }

    #[test]
    fn notes_are_read_with_the_record_and_taken_in_by_its_next_change() {
        let store = tempfile::tempdir().unwrap();
        let (one, other) = (slot(&store, "/one"), slot(&store, "/other"));
        let mut noting = one.noting();
        noting.note(&creates(&["a", "b"])).unwrap();
        noting.note(&leaves(&["a"])).unwrap();
        // Those of another process.
        one.noting().note(&creates(&["c"])).unwrap();
        noting.note(&creates(&["d"])).unwrap();
        assert_eq!(created(&one), ["b", "c", "d"]);
        let Ok([others]) = <[Kept; 1]>::try_from(other.others().unwrap()) else { panic!("there is one") };
        assert!(others.managed["b"].created);
        let notes = fs::read(notes_at(&one)).unwrap();
        one.change(|kept| drop(kept.managed.remove("b"))).unwrap();
        assert!(!notes_at(&one).exists());
        // A kill left them behind the record that has them.
        fs::write(notes_at(&one), notes).unwrap();
        assert_eq!(created(&one), ["c", "d"]);
        noting.note(&creates(&["e"])).unwrap();
        assert_eq!(created(&one), ["c", "d", "e"]);
        one.change(|kept| kept.managed.clear()).unwrap();
        assert_eq!(fs::read_dir(&one.folder).unwrap().count(), 1, "nothing is left but the lock");
    }

    #[test]
    fn a_cut_through_notes_loses_the_last_alone_and_any_other_damage_is_found() {
        let store = tempfile::tempdir().unwrap();
        let slot = slot(&store, "/one");
        let mut noting = slot.noting();
        for key in ["a", "b", "c"] {
            noting.note(&creates(&[key])).unwrap();
        }
        let whole = fs::read(notes_at(&slot)).unwrap();
        for length in 0..whole.len() {
            fs::write(notes_at(&slot), &whole[..length]).unwrap();
            let lines = str::from_utf8(&whole[..length]).unwrap().matches('\n').count();
            assert_eq!(created(&slot).len(), lines.saturating_sub(1), "cut at {length}");
        }
        slot.noting().note(&creates(&["d"])).unwrap();
        assert_eq!(created(&slot), ["a", "b", "d"], "what is incomplete is cut off first");
        for at in 0..whole.len() - 1 {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            fs::write(notes_at(&slot), flipped).unwrap();
            assert_eq!(slot.read().unwrap(), RecordReading::Damaged, "flipped at {at}");
        }
        slot.change(|kept| kept.owed.extend(["T:a".to_owned()])).unwrap();
        assert_eq!(slot.read().unwrap(), RecordReading::Known(kept(&["T:a"])));
    }

    #[test]
    fn after_another_boot_nothing_counts_that_was_not_flushed() {
        let store = tempfile::tempdir().unwrap();
        let slot = slot(&store, "/one");
        slot.change(|kept| drop(kept.managed.insert("a".to_owned(), thing(true)))).unwrap();
        let record = fs::read(slot.path()).unwrap();
        let json = &record[..record.iter().position(|byte| *byte == b'\n').unwrap()];
        let head = serde_json::json!({"form": FORM, "follows": sha256(json), "boot": "another"});
        let lines =
            [head, serde_json::to_value(creates(&["b"])).unwrap(), serde_json::to_value(leaves(&["a"])).unwrap()];
        let (_, mut notes) = crate::journal::Chain::default().wrap(&lines).unwrap();
        // What the disk has of what followed.
        notes.extend(b"\0\0\0\n\0\0");
        fs::write(notes_at(&slot), notes).unwrap();
        assert_eq!(created(&slot), [""; 0], "the file of 'b' may not be there, and 'a' may be another's");
        slot.noting().note(&creates(&["c"])).unwrap();
        assert_eq!(created(&slot), ["c"]);
    }
}
