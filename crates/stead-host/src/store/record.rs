//! The form of records: a line of JSON, and a line with its checksum. Each states the number of its form, which grows with
//! every member or word that an older version must not pass over.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use stead_core::digest::sha256;

use super::StoreError;
use stead_system::folder::Folder;

/// The content of a file.
#[derive(Debug)]
pub enum Found<T = Vec<u8>> {
    /// The JSON, with a checksum that fits.
    Intact(T),
    /// Something else.
    Damaged,
    /// There is no such file.
    Absent,
}

/// Why a record that is intact cannot be used.
#[derive(Debug)]
pub enum Undecodable {
    /// It has this form, which is newer than the one that is read. Nothing of it is read.
    Newer(u32),
    /// Its content is not that of such a record.
    Foreign(serde_json::Error),
}

/// A value with its form.
#[derive(Serialize)]
struct Formed<'v, T> {
    form: u32,
    #[serde(flatten)]
    value: &'v T,
}

/// The form of a record; the first ones stated none.
#[derive(Deserialize)]
struct Form {
    #[serde(default)]
    form: u32,
}

/// The content of the file for a value, in this form.
pub fn encode(form: u32, value: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    let mut record = serde_json::to_vec(&Formed { form, value }).map_err(StoreError::Encode)?;
    let checksum = checksum_of(&record);
    record.extend(checksum);
    Ok(record)
}

/// The value of a record, whose form is this one or an older one.
pub fn decode<T: DeserializeOwned>(form: u32, json: &[u8]) -> Result<T, Undecodable> {
    match serde_json::from_slice(json).map_err(Undecodable::Foreign)? {
        Form { form: newer } if newer > form => Err(Undecodable::Newer(newer)),
        Form { .. } => serde_json::from_slice(json).map_err(Undecodable::Foreign),
    }
}

/// Reads a file of a store. Something else in its place is damage. Fails when the system does.
pub(super) fn content(folder: &Folder, name: &str) -> Result<Found, StoreError> {
    match folder.read(name) {
        Ok(content) => Ok(content.map_or(Found::Absent, Found::Intact)),
        Err(error) if error.is_something_else() => Ok(Found::Damaged),
        Err(error) => Err(error.into()),
    }
}

/// Reads a record. Fails when the system does.
pub fn read(folder: &Folder, name: &str) -> Result<Found, StoreError> {
    let mut record = match content(folder, name)? {
        Found::Intact(record) => record,
        other => return Ok(other),
    };
    // In JSON without layout there is no newline.
    let length = record.iter().position(|byte| *byte == b'\n').unwrap_or(record.len());
    let (json, checksum) = record.split_at(length);
    if checksum_of(json) != checksum {
        return Ok(Found::Damaged);
    }
    record.truncate(length);
    Ok(Found::Intact(record))
}

fn checksum_of(json: &[u8]) -> Vec<u8> {
    format!("\n{{\"sha256\":\"{}\"}}\n", sha256(json)).into_bytes()
}
