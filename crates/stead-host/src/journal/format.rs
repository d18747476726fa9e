//! How a journal is written: one record a line, a checksum in front of the event as JSON.
//!
//! ```text
//! 7c0d4a5be1f7a1d3 {"sequence":0,"at":"…","event":"began","version":2,…}
//! 95b1f0e6a2d4c877 {"sequence":1,"at":"…","event":"callStarted",…}
//! ```
//!
//! A checksum covers its record and the checksum before it: a record that was changed, removed, repeated, moved or brought
//! from another journal does not fit. It finds accidents, not attacks: whoever can write the file can compute checksums.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use stead_core::event::{Event, VERSION};

/// The length of a checksum in a record: 64 bits, in hexadecimal.
const CHECKSUM: usize = 16;

/// Why a journal cannot be used as it is.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is nothing in it.
    #[error("the journal is empty")]
    Empty,
    /// It does not begin as a journal does.
    #[error("this is not a journal")]
    NotAJournal,
    /// It was written by another version of stead.
    #[error("the journal has version {found}; this program reads version {VERSION}")]
    Version {
        /// The version that it names.
        found: u32,
    },
    /// The last record is incomplete, as after a power failure. None of what it announces was done.
    #[error("the last record of the journal is incomplete")]
    Torn {
        /// The events in front of it, from which a run can be resumed.
        intact: Vec<Event>,
    },
    /// A checksum does not fit.
    #[error("record {record} of the journal is corrupted")]
    Corrupted {
        /// Counted from 0.
        record: usize,
    },
    /// A record was written as it is, and is not an event that this program knows.
    #[error("record {record} of the journal is not a valid event")]
    Unreadable {
        /// Counted from 0.
        record: usize,
        /// The mistake in it.
        #[source]
        source: serde_json::Error,
    },
}

/// The events of a journal.
///
/// Guarantees: these are all events that were appended, or those up to some record; never others.
pub fn read(bytes: &[u8]) -> Result<Vec<Event>, ReadError> {
    let Contents { events, length, .. } = contents(bytes)?;
    if length < bytes.len() {
        return Err(ReadError::Torn { intact: events });
    }
    Ok(events)
}

/// The content of the complete records of a journal.
pub(super) struct Contents {
    pub(super) events: Vec<Event>,
    /// The chain that the next record continues.
    pub(super) chain: Chain,
    /// How many bytes they take; what follows is an incomplete record.
    pub(super) length: usize,
}

pub(super) fn contents(bytes: &[u8]) -> Result<Contents, ReadError> {
    if bytes.is_empty() {
        return Err(ReadError::Empty);
    }
    if !may_begin_record(bytes) {
        return Err(ReadError::NotAJournal);
    }
    let length = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let (mut chain, mut events) = (Chain::default(), Vec::new());
    for (record, line) in bytes.get(..length).unwrap_or_default().split_inclusive(|byte| *byte == b'\n').enumerate() {
        let json = chain.unwrap(line).ok_or(ReadError::Corrupted { record })?;
        if record == 0 {
            check_first(json)?;
        }
        let text = str::from_utf8(json).map_err(|_| ReadError::Corrupted { record })?;
        events.push(Event::from_json(text).map_err(|source| ReadError::Unreadable { record, source })?);
    }
    Ok(Contents { events, chain, length })
}

/// Returns whether bytes are the beginning of a record, as far as they reach.
fn may_begin_record(bytes: &[u8]) -> bool {
    bytes.iter().take(CHECKSUM + 2).enumerate().all(|(at, byte)| match at.cmp(&CHECKSUM) {
        std::cmp::Ordering::Less => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        std::cmp::Ordering::Equal => *byte == b' ',
        std::cmp::Ordering::Greater => *byte == b'{',
    })
}

/// The version is looked at before anything that another version may write in another way.
fn check_first(json: &[u8]) -> Result<(), ReadError> {
    #[derive(Deserialize)]
    struct First {
        event: String,
        version: u32,
    }
    match serde_json::from_slice::<First>(json) {
        Ok(first) if first.event != "began" => Err(ReadError::NotAJournal),
        Ok(First { version: VERSION, .. }) => Ok(()),
        Ok(First { version, .. }) => Err(ReadError::Version { found: version }),
        Err(_) => Err(ReadError::NotAJournal),
    }
}

/// The checksum of a record and of all that are in front of it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Chain([u8; CHECKSUM / 2]);

impl Chain {
    /// Writes values as records.
    pub(crate) fn wrap(mut self, values: &[impl Serialize]) -> serde_json::Result<(Self, Vec<u8>)> {
        let mut records = Vec::with_capacity(values.len() * 256);
        for value in values {
            let json = serde_json::to_vec(value)?;
            self = self.next(&json);
            records.extend(self.text().as_bytes());
            records.push(b' ');
            records.extend(json);
            records.push(b'\n');
        }
        Ok((self, records))
    }

    /// The value of a record, as JSON, if it is what was written after the last one.
    pub(crate) fn unwrap<'r>(&mut self, line: &'r [u8]) -> Option<&'r [u8]> {
        let (checksum, rest) = line.split_at_checked(CHECKSUM)?;
        let json = rest.strip_prefix(b" ")?.strip_suffix(b"\n")?;
        *self = self.next(json);
        (checksum == self.text().as_bytes()).then_some(json)
    }

    fn text(self) -> String {
        format!("{:016x}", u64::from_be_bytes(self.0))
    }

    fn next(self, json: &[u8]) -> Self {
        let digest = Sha256::new().chain_update(self.0).chain_update(json).finalize();
        let mut checksum = Self::default();
        checksum.0.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
        checksum
    }
}
