//! The form of records: a line of JSON, and a line with its checksum.

use serde::Serialize;
use stead_core::digest::sha256;

use super::{Folder, StoreError};

/// What a file says.
#[derive(Debug)]
pub enum Found {
    /// The JSON, with a checksum that fits.
    Intact(Vec<u8>),
    /// Something else.
    Damaged,
    /// There is no such file.
    Absent,
}

/// The content of the file for a value.
pub fn encode(value: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    let mut record = serde_json::to_vec(value).map_err(StoreError::Encode)?;
    let checksum = checksum_of(&record);
    record.extend(checksum);
    Ok(record)
}

/// Reads a record. Fails when the system does.
pub fn read(folder: &Folder, name: &str) -> Result<Found, StoreError> {
    let Some(mut record) = folder.read(name)? else { return Ok(Found::Absent) };
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
