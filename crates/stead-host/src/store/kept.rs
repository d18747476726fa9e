//! The record of a document on a root, which lasts from one run to the next.
//!
//! There is one record for each document and root, so that the results of its runs lie together: the notifications
//! owed to its instances, those that are uncertain, and the things that these manage and that they left behind. Things lie in
//! parts of the record, files of their own: a run of a document that is as it was reads none of them, and a part that does not
//! change is not written. Raise [`FORM`] when you add a member: a program that does not know it must not write the record without it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use stead_core::digest::sha256;
use stead_core::id::TypeName;
use stead_core::identity::DocumentIdentity;

use super::StoreError;
use super::record::{self, Found, Undecodable};
use stead_system::folder::Folder;

mod deliveries;
mod notes;
mod parts;

pub use notes::Note;
use notes::Notes;
use parts::{Parts, Stored};

/// The form of a record that this program reads and writes.
pub const FORM: u32 = 5;

const FOLDER: &str = "kept";
const LOCK: &str = "lock";
/// A file of no use.
const TRIAL: &str = "trial";
/// Longer than it takes to write a record, on a disk that is busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// The content of a record.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Kept {
    /// The instances that are owed a notification, by their paths.
    pub owed: BTreeSet<String>,
    /// The instances that left a program running when they were set last, by their paths: it was ended, and what their test finds
    /// may be there without it.
    pub uncertain: BTreeSet<String>,
    /// The document that the things were compared with; `None` once one of them is another.
    pub accounted: Option<Accounted>,
    /// The things that its instances manage. Each key tells a thing, and nothing but equality is read out of it.
    pub managed: Things,
    /// Those that no instance had any more when a run settled.
    pub left: Things,
    /// True if the last run that settled with things of the document was of a delivery; false without things.
    pub delivered: bool,
}

/// Things by their keys.
pub type Things = BTreeMap<String, Managed>;

impl Kept {
    /// A thing that an instance manages, or that was left behind.
    pub fn thing(&self, key: &str) -> Option<&Managed> {
        self.managed.get(key).or_else(|| self.left.get(key))
    }

    /// Takes things in as those that instances manage.
    pub fn take(&mut self, things: Things) {
        self.left.retain(|key, _| !things.contains_key(key));
        self.managed.extend(things);
    }

    /// Returns whether the document has it by deliveries, of which one at a time is in force.
    pub fn is_of_delivery(&self) -> bool {
        self.delivered || self.things().any(|(_, managed)| managed.since > 0)
    }

    /// All things, those that were left behind too.
    pub fn things(&self) -> impl Iterator<Item = (&String, &Managed)> {
        self.managed.iter().chain(&self.left)
    }
}

/// A comparison of a document with the things of its record, which need not be made again while neither changes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Accounted {
    /// The digest of the document, as its instances are stated.
    pub document: String,
    /// The digest of which instances succeeded.
    pub succeeded: String,
    /// The digest of which records of other documents there were.
    pub others: String,
    /// Those that were left behind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left: BTreeMap<StayReason, LeftBehind>,
}

/// Why what is left behind stays, and stays in the record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StayReason {
    /// The document does not say that it is to be removed.
    NotStated,
    /// Something that stays lies in it, or uses it.
    Used,
}

/// Things that were left behind.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LeftBehind {
    /// How many there are.
    pub count: usize,
    /// The first of them.
    pub first: Vec<Managed>,
}

/// A record without its things.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Outline {
    /// See [`Kept::owed`].
    pub owed: BTreeSet<String>,
    /// See [`Kept::uncertain`].
    pub uncertain: BTreeSet<String>,
    /// See [`Kept::accounted`].
    pub accounted: Option<Accounted>,
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
    pub removal: Option<Arc<Map<String, Json>>>,
    /// True if a run found it absent and made it, and no run has begun to remove it since.
    #[serde(default, skip_serializing_if = "is_false")]
    pub created: bool,
    /// The number of the delivery in whose run it was made last; 0 where it was found, or nobody counts deliveries.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub since: u64,
    /// The keys of the things that must be there for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
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

#[derive(PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    #[serde(flatten)]
    owner: Owner,
    kept: Stored,
}

/// The result of reading a record.
#[derive(PartialEq, Eq, Debug)]
pub enum RecordReading<T = Kept> {
    /// The content; the default where there is no record.
    Known(T),
    /// Something other than this program changed this file of it: its content is unknown.
    Damaged(PathBuf),
}

impl<T> RecordReading<T> {
    fn map<U>(self, change: impl FnOnce(T) -> U) -> RecordReading<U> {
        match self {
            Self::Known(content) => RecordReading::Known(change(content)),
            Self::Damaged(path) => RecordReading::Damaged(path),
        }
    }
}

impl<T: Default> Default for RecordReading<T> {
    fn default() -> Self {
        Self::Known(T::default())
    }
}

/// A record as it lies on the disk, with what is in its parts and behind it.
#[derive(Default)]
struct Whole {
    /// `None` where there is none.
    record: Option<Record>,
    kept: Kept,
    behind: Behind,
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
        let Some(folder) = Folder::existing(&self.folder)? else { return Ok(RecordReading::default()) };
        Ok(self.read_in(&folder)?.map(|whole| whole.kept))
    }

    /// Reads the record without its things, which takes the same however many there are.
    ///
    /// # Errors
    /// As [`Slot::read`].
    pub fn outline(&self) -> Result<RecordReading<Outline>, StoreError> {
        let Some(folder) = Folder::existing(&self.folder)? else { return Ok(RecordReading::default()) };
        // What a run noted that did not settle changes what there is.
        let stored = if folder.identity(&notes_of(&self.file))?.is_none() {
            match record_from(&folder, &self.file)? {
                Found::Absent => return Ok(RecordReading::default()),
                Found::Intact((record, _)) if record.owner == self.owner => record.kept,
                _ => return Ok(RecordReading::Damaged(self.path())),
            }
        } else {
            match self.read_in(&folder)? {
                RecordReading::Known(Whole { kept, .. }) => {
                    Stored { owed: kept.owed, uncertain: kept.uncertain, ..Stored::default() }
                }
                RecordReading::Damaged(path) => return Ok(RecordReading::Damaged(path)),
            }
        };
        let Stored { owed, uncertain, accounted, .. } = stored;
        Ok(RecordReading::Known(Outline { owed, uncertain, accounted }))
    }

    /// The digest of which records of other documents there are. It changes whenever one of them does.
    ///
    /// # Errors
    /// When the system fails.
    pub fn digest_of_others(&self) -> Result<String, StoreError> {
        let Some(folder) = Folder::existing(&self.folder)? else { return Ok(sha256("[]")) };
        let mut all = Vec::new();
        for name in self.names_of_others(&folder)? {
            all.push((folder.identity(&name)?, folder.identity(&notes_of(&name))?, name));
        }
        serde_json::to_vec(&all).map(sha256).map_err(StoreError::Encode)
    }

    fn names_of_others(&self, folder: &Folder) -> Result<Vec<String>, StoreError> {
        Ok(records_in(folder)?.into_iter().filter(|name| *name != self.file).collect())
    }

    /// Returns the records of the other documents on this root.
    ///
    /// # Errors
    /// When the system fails, or a record of the folder is damaged or newer, so that nobody knows whose it is.
    pub fn others(&self) -> Result<Vec<Kept>, StoreError> {
        let Some(folder) = Folder::existing(&self.folder)? else { return Ok(Vec::new()) };
        let mut others = Vec::new();
        for name in self.names_of_others(&folder)? {
            let whole = match read_from(&folder, &name)? {
                RecordReading::Known(whole) => whole,
                RecordReading::Damaged(path) => return Err(StoreError::Damaged(path)),
            };
            let is_here = whole.record.is_some_and(|record| record.owner.root == self.owner.root);
            others.extend(is_here.then_some(whole.kept));
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
    /// Where the things change, the change says anew what they were compared with.
    ///
    /// Guarantees: the record is the former or the new one at any time, also after an error and after a power failure; once
    /// this returns it is the new one, and has what was noted behind the former one. Nothing is written where nothing changes
    /// and nothing was noted, and of things only the part that changes.
    pub fn change(&self, change: impl FnOnce(&mut Kept)) -> Result<(), StoreError> {
        let folder = Folder::create(&self.folder)?;
        let _lock = self.lock(&folder)?;
        let whole = self.intact(&folder)?;
        self.change_in(&folder, whole, change)
    }

    /// Changes what is kept, given what it is.
    fn change_in(
        &self,
        folder: &Folder,
        Whole { record, mut kept, behind }: Whole,
        change: impl FnOnce(&mut Kept),
    ) -> Result<(), StoreError> {
        let accounted = kept.accounted.take();
        change(&mut kept);
        let has_things = kept.things().next().is_some();
        kept.delivered &= has_things;
        let is_damaged = matches!(behind, Behind::Damage);
        let has_notes = is_damaged || matches!(behind, Behind::Notes(_) | Behind::Own);
        match record {
            None if kept == Kept::default() && !is_damaged => return Ok(()),
            _ if kept == Kept::default() => {}
            record => return self.write(folder, record.as_ref(), (kept, accounted), has_notes),
        }
        folder.remove(&self.file)?;
        Parts::default().remove_others(folder, &self.file)?;
        if has_notes {
            folder.remove_unflushed(notes_of(&self.file))?;
        }
        Ok(())
    }

    /// Writes the record, which takes in the notes behind the former one. What that was compared with holds while its things do.
    fn write(
        &self,
        folder: &Folder,
        former: Option<&Record>,
        (kept, accounted): (Kept, Option<Accounted>),
        has_notes: bool,
    ) -> Result<(), StoreError> {
        let is_empty = kept == Kept::default();
        let former_parts = former.map(|record| record.kept.parts.clone()).unwrap_or_default();
        let parts = former_parts.replaced(folder, &self.file, [&kept.managed, &kept.left])?;
        let accounted = kept.accounted.or_else(|| accounted.filter(|_| parts == former_parts));
        let (own_parts, managed) = (parts.clone(), Things::new());
        let (owed, uncertain, delivered) = (kept.owed, kept.uncertain, kept.delivered);
        let stored = Stored { owed, uncertain, accounted, parts, managed, delivered };
        let record = Record { owner: self.owner.clone(), kept: stored };
        if !has_notes && former == Some(&record) {
            return Ok(());
        }
        let record = record::encode(FORM, &record)?;
        // One with nothing in it only says whose notes are behind it.
        if is_empty { folder.replace_unflushed(&self.file, &record) } else { folder.replace(&self.file, &record) }?;
        own_parts.remove_others(folder, &self.file)?;
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

    /// The record with its things and the notes behind it. A damaged one is copied aside and stays in its place until another
    /// replaces it: after a kill in between it would otherwise seem that nothing is owed. Notes behind a former record are removed.
    fn intact(&self, folder: &Folder) -> Result<Whole, StoreError> {
        match self.read_in(folder)? {
            RecordReading::Known(Whole { record, kept, behind: Behind::Leftover }) => {
                folder.remove_unflushed(notes_of(&self.file))?;
                Ok(Whole { record, kept, behind: Behind::Nothing })
            }
            RecordReading::Known(whole) => Ok(whole),
            RecordReading::Damaged(_) => {
                // What is owed is known if only what lies beside it is damaged.
                let kept = match record_from(folder, &self.file)? {
                    Found::Intact((record, _)) if record.owner == self.owner => record.kept.without_things(),
                    _ => Kept::default(),
                };
                folder.set_aside(&self.file)?;
                Ok(Whole { kept, behind: Behind::Damage, ..Whole::default() })
            }
        }
    }

    /// The record of another document is damage.
    fn read_in(&self, folder: &Folder) -> Result<RecordReading<Whole>, StoreError> {
        Ok(match read_from(folder, &self.file)? {
            RecordReading::Known(Whole { record: Some(record), .. }) if record.owner != self.owner => {
                RecordReading::Damaged(self.path())
            }
            reading => reading,
        })
    }
}

/// The files of the records in a folder.
fn records_in(folder: &Folder) -> Result<Vec<String>, StoreError> {
    let is_record = |name: &String| Path::new(name).extension().is_some_and(|extension| extension == "json");
    Ok(folder.names()?.into_iter().filter_map(|name| name.into_string().ok()).filter(is_record).collect())
}

/// The file of the notes behind a record.
fn notes_of(file: &str) -> String {
    format!("{}.notes", file.trim_end_matches(".json"))
}

/// The notes that are there beside a record.
#[derive(Default)]
enum Behind {
    #[default]
    Nothing,
    /// Some that add to it.
    Notes(Notes),
    /// Some that were written by whoever asks.
    Own,
    /// Some that it has taken in, after which the process ended.
    Leftover,
    /// Whatever there is: the record or what lies beside it is damaged.
    Damage,
}

/// Reads a record with its parts and what was noted behind it; damaged where any of these is. While others write, that is what
/// was kept at some time meanwhile: a record is replaced before the notes go that it takes in, and after a part that it has.
fn read_from(folder: &Folder, file: &str) -> Result<RecordReading<Whole>, StoreError> {
    let damaged = |name: &str| Ok(RecordReading::Damaged(folder.path().join(name)));
    let notes = notes::read(folder, &notes_of(file))?;
    let mut latest = record_from(folder, file)?;
    let (record, json, mut kept) = loop {
        let (record, json) = match latest {
            Found::Absent if matches!(notes, notes::Found::Absent) => return Ok(RecordReading::default()),
            Found::Absent => return Ok(RecordReading::Known(Whole { behind: Behind::Leftover, ..Whole::default() })),
            Found::Damaged => return damaged(file),
            Found::Intact(found) => found,
        };
        let part = match record.kept.with_parts(folder, file)? {
            RecordReading::Known(kept) => break (record, json, kept),
            RecordReading::Damaged(part) => part,
        };
        // Another process has replaced the part, and before that the record.
        latest = record_from(folder, file)?;
        if matches!(&latest, Found::Intact((_, later)) if *later == json) {
            return Ok(RecordReading::Damaged(part));
        }
    };
    let behind = match notes {
        notes::Found::Absent => Behind::Nothing,
        notes::Found::Damaged => return damaged(&notes_of(file)),
        notes::Found::Intact(mut notes) if notes.follow(&sha256(&json)) => {
            notes.add_to(&mut kept);
            Behind::Notes(notes)
        }
        notes::Found::Intact(_) => Behind::Leftover,
    };
    Ok(RecordReading::Known(Whole { record: Some(record), kept, behind }))
}

/// Reads a record without its parts, and its text.
fn record_from(folder: &Folder, file: &str) -> Result<Found<(Record, Vec<u8>)>, StoreError> {
    let json = match record::read(folder, file)? {
        Found::Intact(json) => json,
        Found::Damaged => return Ok(Found::Damaged),
        Found::Absent => return Ok(Found::Absent),
    };
    match record::decode(FORM, &json) {
        Ok(record) => Ok(Found::Intact((record, json))),
        Err(Undecodable::Newer(found)) => Err(StoreError::Newer { path: folder.path().join(file), found, reads: FORM }),
        Err(Undecodable::Foreign(_)) => Ok(Found::Damaged),
    }
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
    pub fn note(&mut self, note: Note) -> Result<(), StoreError> {
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

    /// Does what [`Slot::change`] does. What nobody else changed since the last note is not read again.
    ///
    /// # Errors
    /// As [`Slot::change`].
    pub fn change(&mut self, change: impl FnOnce(&mut Kept)) -> Result<(), StoreError> {
        if let Some((folder, open)) = self.open.take() {
            let _lock = self.slot.lock(&folder)?;
            if open.is_current(folder.identity(&self.slot.file)?) {
                let (record, kept) = open.into_content();
                return self.slot.change_in(&folder, Whole { record: Some(record), kept, behind: Behind::Own }, change);
            }
        }
        self.slot.change(change)
    }
}

impl Slot {
    /// Opens the notes behind the record. There is one then, so that whose they are is known.
    fn open_notes(&self, folder: &Folder, name: &str) -> Result<notes::Open, StoreError> {
        let Whole { record, kept, behind } = self.intact(folder)?;
        let is_damaged = matches!(behind, Behind::Damage);
        let notes = if let Behind::Notes(notes) = behind { Some(notes) } else { None };
        let has_old = is_damaged || notes.as_ref().is_some_and(|notes| !notes.are_of_this_boot());
        let notes = notes.filter(Notes::are_of_this_boot);
        if has_old || record.is_none() {
            self.write(folder, record.as_ref(), (kept.clone(), None), has_old)?;
        }
        let damaged = || StoreError::Damaged(self.path());
        let Found::Intact((record, json)) = record_from(folder, &self.file)? else { return Err(damaged()) };
        let follow = notes.ok_or_else(|| sha256(&json));
        let identity = folder.identity(&self.file)?.ok_or_else(damaged)?;
        notes::Open::new((folder, name), ((record, identity), kept), follow)
    }
}

#[cfg(test)]
mod tests;
