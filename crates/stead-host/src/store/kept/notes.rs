//! Notes behind a record: what a run comes to know, a line each, so that it need not write the whole record for it.
//!
//! The first line names the record that the others follow: once that was replaced, which has them in it, they are of no use.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write as _};

use serde::{Deserialize, Serialize};
use stead_system::folder::{Folder, FolderError};
use stead_system::fs::{Identity, Presence};
use stead_system::machine::{BOOT_ID, boot_id};

use super::record::{self, content};
use super::{FORM, Kept, Managed, Record, StoreError};
use crate::journal::Chain;

/// What a run comes to know of things.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Note {
    /// Those that it has created.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub created: BTreeMap<String, Managed>,
    /// The keys of those that may be gone from now on, and whatever is there then another's.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub leaving: BTreeSet<String>,
}

impl Note {
    /// Returns whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.created.is_empty() && self.leaving.is_empty()
    }

    /// Adds it to what the record has. After the power failed, nobody knows that what was created is there.
    fn add_to(self, kept: &mut Kept, is_of_this_boot: bool) {
        kept.accounted = None;
        if is_of_this_boot {
            kept.take(self.created);
        }
        for key in self.leaving {
            kept.managed.entry(key.clone()).and_modify(|managed| managed.created = false);
            kept.left.entry(key).and_modify(|managed| managed.created = false);
        }
    }
}

/// The first line.
#[derive(Serialize, Deserialize)]
struct Head {
    form: u32,
    /// The digest of the record.
    follows: String,
    /// The boot of the machine in which they were written.
    boot: String,
}

/// The notes of a file.
pub(super) struct Notes {
    head: Head,
    each: Vec<Note>,
    chain: Chain,
    /// The bytes that they take. An incomplete line may come after them: what it announces was not done.
    length: u64,
}

/// The result of reading a file of notes.
pub(super) enum Found {
    Intact(Notes),
    Damaged,
    Absent,
}

/// Reads the notes of a file.
///
/// # Errors
/// When the system fails, or a newer version wrote them.
pub(super) fn read(folder: &Folder, name: &str) -> Result<Found, StoreError> {
    let bytes = match content(folder, name)? {
        record::Found::Intact(bytes) => bytes,
        record::Found::Damaged => return Ok(Found::Damaged),
        record::Found::Absent => return Ok(Found::Absent),
    };
    let length = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let mut lines = bytes.get(..length).unwrap_or_default().split_inclusive(|byte| *byte == b'\n');
    let mut chain = Chain::default();
    // Nothing was done yet of what they were to announce.
    let Some(first) = lines.next() else { return Ok(Found::Absent) };
    let Some(head) = chain.unwrap(first).and_then(|json| serde_json::from_slice::<Head>(json).ok()) else {
        return Ok(Found::Damaged);
    };
    if head.form > FORM {
        return Err(StoreError::Newer { path: folder.path().join(name), found: head.form, reads: FORM });
    }
    let is_of_this_boot = head.boot == this_boot();
    let mut found = Notes { head, each: Vec::new(), chain, length: first.len() as u64 };
    for line in lines {
        match chain.unwrap(line).and_then(|json| serde_json::from_slice(json).ok()) {
            Some(note) => found.each.push(note),
            None if is_of_this_boot => return Ok(Found::Damaged),
            // The power failed: what counts was flushed, and comes before the first that was not.
            None => break,
        }
        (found.chain, found.length) = (chain, found.length + line.len() as u64);
    }
    Ok(Found::Intact(found))
}

impl Notes {
    pub(super) fn follow(&self, digest: &str) -> bool {
        self.head.follows == digest
    }

    pub(super) fn are_of_this_boot(&self) -> bool {
        self.head.boot == this_boot()
    }

    /// Adds them to what the record has.
    pub(super) fn add_to(&mut self, kept: &mut Kept) {
        let is_of_this_boot = self.are_of_this_boot();
        kept.accounted = None;
        self.each.drain(..).for_each(|note| note.add_to(kept, is_of_this_boot));
    }
}

/// A file of notes that is written to.
pub(super) struct Open {
    file: File,
    /// The record that they follow, and its file.
    record: (Record, Identity),
    /// The content of the record with the notes taken in.
    kept: Kept,
    chain: Chain,
    length: u64,
    /// True once the name of the file is on the disk.
    is_named: bool,
}

impl Open {
    /// Goes on with notes, or begins with those that follow a record of this digest; with what the record says by now.
    ///
    /// Assumptions: the folder is locked, and a file that begins is not there yet.
    pub(super) fn new(
        (folder, name): (&Folder, &str),
        (record, kept): ((Record, Identity), Kept),
        follow: Result<Notes, String>,
    ) -> Result<Self, StoreError> {
        let presence = if follow.is_ok() { Presence::Existing } else { Presence::New };
        let file = folder.append(name, presence)?;
        let mut open = Self { file, record, kept, chain: Chain::default(), length: 0, is_named: false };
        match follow {
            Ok(notes) => {
                (open.chain, open.length) = (notes.chain, notes.length);
                open.file.set_len(notes.length).map_err(|source| failed("truncate", folder, name, source))?;
            }
            Err(follows) => open.write(folder, name, &Head { form: FORM, follows, boot: this_boot() })?,
        }
        Ok(open)
    }

    /// Returns whether nobody else wrote to it or to the record since.
    pub(super) fn is_current(&self, record: Option<Identity>) -> bool {
        record == Some(self.record.1) && self.file.metadata().is_ok_and(|now| now.len() == self.length)
    }

    /// Appends a note. Once this returns it survives the process, and where something may be gone the power, too.
    pub(super) fn append(&mut self, folder: &Folder, name: &str, note: Note) -> Result<(), StoreError> {
        self.write(folder, name, &note)?;
        if !note.leaving.is_empty() {
            self.file.sync_data().map_err(|source| failed("flush", folder, name, source))?;
            if !std::mem::replace(&mut self.is_named, true) {
                folder.flush()?;
            }
        }
        note.add_to(&mut self.kept, true);
        Ok(())
    }

    /// The record, and what it says with the notes.
    pub(super) fn into_content(self) -> (Record, Kept) {
        (self.record.0, self.kept)
    }

    fn write(&mut self, folder: &Folder, name: &str, line: &impl Serialize) -> Result<(), StoreError> {
        let (chain, bytes) = self.chain.wrap(std::slice::from_ref(line)).map_err(StoreError::Encode)?;
        self.file.write_all(&bytes).map_err(|source| failed("write", folder, name, source))?;
        (self.chain, self.length) = (chain, self.length + bytes.len() as u64);
        Ok(())
    }
}

/// The boot of the machine. Where nobody knows, all are the same.
fn this_boot() -> String {
    boot_id(BOOT_ID.as_ref()).unwrap_or_default()
}

fn failed(doing: &'static str, folder: &Folder, name: &str, source: io::Error) -> StoreError {
    FolderError::System { doing, path: folder.path().join(name), source }.into()
}
