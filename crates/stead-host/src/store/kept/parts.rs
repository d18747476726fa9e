//! The things of a record, in parts: files of their own, whose digests the record has.
//!
//! Each part has two files, of which the record names one. The other is replaced, and then the record, so that the part that it names is
//! there at any time.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use stead_core::digest::sha256;
use stead_system::folder::Folder;

use super::record::{Found, content};
use super::{Accounted, Kept, RecordReading, StoreError, Things};

/// A record as it is stored.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Stored {
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) owed: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) uncertain: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) accounted: Option<Accounted>,
    #[serde(default, skip_serializing_if = "Parts::is_empty")]
    pub(super) parts: Parts,
    /// The things, in the forms before the fourth.
    #[serde(default, skip_serializing_if = "Things::is_empty")]
    pub(super) managed: Things,
    /// See [`Kept::delivered`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) delivered: bool,
}

/// The parts of a record. One without things is not there.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Parts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    managed: Option<Part>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left: Option<Part>,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Part {
    digest: String,
    /// Which of its files it is.
    file: Which,
}

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Which {
    A,
    B,
}

const MANAGED: &str = "managed";
const LEFT: &str = "left";

fn name_of(record: &str, part: &str, which: Which) -> String {
    let which = if which == Which::A { "a" } else { "b" };
    format!("{}.{part}.{which}", record.trim_end_matches(".json"))
}

impl Stored {
    /// Everything but the things.
    pub(super) fn without_things(self) -> Kept {
        Kept { owed: self.owed, uncertain: self.uncertain, ..Kept::default() }
    }

    /// The whole content; damaged where a part is not the one that the record has.
    pub(super) fn with_parts(&self, folder: &Folder, record: &str) -> Result<RecordReading, StoreError> {
        let managed = match &self.parts.managed {
            None => self.managed.clone(),
            Some(part) => match part.read(folder, record, MANAGED)? {
                RecordReading::Known(managed) => managed,
                RecordReading::Damaged(path) => return Ok(RecordReading::Damaged(path)),
            },
        };
        let left = self.parts.left.as_ref().map(|part| part.read(folder, record, LEFT)).transpose()?;
        let (owed, uncertain, accounted) = (self.owed.clone(), self.uncertain.clone(), self.accounted.clone());
        let delivered = self.delivered;
        Ok(left.unwrap_or_default().map(|left| Kept { owed, uncertain, accounted, managed, left, delivered }))
    }
}

impl Part {
    fn read(&self, folder: &Folder, record: &str, part: &str) -> Result<RecordReading<Things>, StoreError> {
        let name = name_of(record, part, self.file);
        let things = match content(folder, &name)? {
            Found::Intact(json) if sha256(&json) == self.digest => serde_json::from_slice(&json).ok(),
            _ => None,
        };
        Ok(things.map_or_else(|| RecordReading::Damaged(folder.path().join(name)), RecordReading::Known))
    }

    /// Writes these things beside a former part, unless that has them; `None` for no things.
    fn replaced(
        former: Option<&Self>,
        (folder, record, part): (&Folder, &str, &str),
        things: &Things,
    ) -> Result<Option<Self>, StoreError> {
        if things.is_empty() {
            return Ok(None);
        }
        let json = serde_json::to_vec(things).map_err(StoreError::Encode)?;
        let digest = sha256(&json);
        if let Some(same) = former.filter(|former| former.digest == digest) {
            return Ok(Some(same.clone()));
        }
        let file = if former.is_some_and(|former| former.file == Which::A) { Which::B } else { Which::A };
        folder.replace(&name_of(record, part, file), &json)?;
        Ok(Some(Self { digest, file }))
    }
}

impl Parts {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Writes the parts that have other things: those that are managed, and those that were left behind. The record that has them
    /// is to be written next.
    pub(super) fn replaced(
        &self,
        folder: &Folder,
        record: &str,
        [managed, left]: [&Things; 2],
    ) -> Result<Self, StoreError> {
        Ok(Self {
            managed: Part::replaced(self.managed.as_ref(), (folder, record, MANAGED), managed)?,
            left: Part::replaced(self.left.as_ref(), (folder, record, LEFT), left)?,
        })
    }

    /// Removes the files of parts of a record that it does not have.
    pub(super) fn remove_others(&self, folder: &Folder, record: &str) -> Result<(), StoreError> {
        for (name, part) in [(MANAGED, &self.managed), (LEFT, &self.left)] {
            let kept = part.as_ref().map(|part| part.file);
            for which in [Which::A, Which::B].into_iter().filter(|which| Some(*which) != kept) {
                folder.remove_unflushed(name_of(record, name, which))?;
            }
        }
        Ok(())
    }
}
