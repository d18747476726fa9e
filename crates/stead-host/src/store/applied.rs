//! Digests of secrets that were set: a resource that keeps them to itself can be compared with nothing else.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stead_system::folder::Folder;
use stead_system::places;

use super::record::{self, Found};
use super::{Keys, StoreError, keys};

/// The form of the record.
const FORM: u32 = 1;

/// The folder of the records in the store.
const FOLDER: &str = "applied";

/// The digests of the secrets of one instance, by property. A digest can be made with the key of the store alone.
#[derive(Serialize, Deserialize, Default)]
struct Applied {
    digests: BTreeMap<String, String>,
}

/// What is known of a secret that is stated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Known {
    /// It is the one that was set last.
    SetLast,
    /// Another one was.
    Other,
    /// None was set, as far as is known.
    Nothing,
}

/// The secrets that are stated of one instance, each as a digest, and where those that were set last are recorded.
pub struct StatedSecrets {
    name: String,
    stated: Applied,
}

impl StatedSecrets {
    /// The secrets of an instance, by property; `identity` is what tells it from others. `None` for a user without a store.
    ///
    /// # Errors
    /// When the key of the store cannot be used.
    pub fn new<S: Serialize>(
        identity: &impl Serialize,
        secrets: impl IntoIterator<Item = (String, S)>,
    ) -> Result<Option<Self>, StoreError> {
        let Some(keys) = keys()? else { return Ok(None) };
        let name = keys.digest(&("instance", identity))?;
        let digest = |(property, secret): (String, S)| {
            let digest = keys.digest(&("secret", &name, &property, secret))?;
            Ok((property, digest))
        };
        let digests = secrets.into_iter().map(digest).collect::<Result<_, StoreError>>()?;
        Ok(Some(Self { stated: Applied { digests }, name }))
    }

    /// Returns what is known of the secret of each property.
    ///
    /// # Errors
    /// When the system fails. A record that is damaged or newer tells nothing.
    pub fn known(&self) -> Result<BTreeMap<String, Known>, StoreError> {
        let recorded = existing()?.map(|folder| self.recorded(&folder)).transpose()?.unwrap_or_default();
        let known = |(property, digest): (&String, &String)| {
            let known = match recorded.digests.get(property) {
                Some(recorded) if recorded == digest => Known::SetLast,
                Some(_) => Known::Other,
                None => Known::Nothing,
            };
            (property.clone(), known)
        };
        Ok(self.stated.digests.iter().map(known).collect())
    }

    /// Forgets, durably, what was set last and is not one of these: to be called before they are set, since a set that fails may
    /// have replaced it all the same.
    ///
    /// # Errors
    /// When the store cannot be used.
    pub fn forget(&self) -> Result<(), StoreError> {
        let Some(folder) = existing()? else { return Ok(()) };
        let mut recorded = self.recorded(&folder)?;
        let before = recorded.digests.len();
        recorded.digests.retain(|property, digest| self.stated.digests.get(property) == Some(digest));
        if recorded.digests.len() == before {
            return Ok(());
        }
        Ok(folder.replace(&self.name, &record::encode(FORM, &recorded)?)?)
    }

    fn recorded(&self, folder: &Folder) -> Result<Applied, StoreError> {
        Ok(match record::read(folder, &self.name)? {
            Found::Intact(json) => record::decode(FORM, &json).unwrap_or_default(),
            Found::Damaged | Found::Absent => Applied::default(),
        })
    }

    /// Records that these secrets were set.
    ///
    /// # Errors
    /// When the store cannot be used.
    pub fn record(&self) -> Result<(), StoreError> {
        let Some(store) = places::store() else { return Ok(()) };
        let folder = Folder::create(&store)?.within(FOLDER)?;
        Ok(folder.replace(&self.name, &record::encode(FORM, &self.stated)?)?)
    }
}

/// The folder of the records, where there is one.
fn existing() -> Result<Option<Folder>, StoreError> {
    Ok(places::store().map(|store| Folder::existing(&store.join(FOLDER))).transpose()?.flatten())
}

impl Keys {
    /// A digest that nobody can make without the key.
    fn digest(&self, value: &impl Serialize) -> Result<String, StoreError> {
        self.first.name(value).map(|(digest, _)| digest)
    }
}
