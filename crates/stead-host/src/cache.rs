//! Caches: files that may be deleted at any time.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use stead_core::digest::sha256;
use stead_system::fs::{OpenError, Status, TrustedDirectory, User, read_exact_at};

/// A file of a cache directory: private, written all or nothing, and checked by its digest.
///
/// One that cannot be read, is not ours or is damaged counts as missing.
#[derive(Clone, Copy, Debug)]
pub struct CacheFile {
    name: &'static str,
    /// The first line of the file, in front of the digest of the rest. The version is part of it, because what one version
    /// reads without a finding another may not.
    header: &'static str,
}

/// Larger ones are not read.
const LARGEST: u64 = 64 << 20;

/// Why a file of a cache is not used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// Its directory cannot be opened, or is not trusted.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The system refused it.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Somebody else could have written it.
    #[error("others can write it")]
    Writable,
    /// It is not a file, or a very large one.
    #[error("it is too large")]
    Size,
    /// It is not what was written, or of another version.
    #[error("it is damaged or from another version")]
    Damaged,
}

impl CacheFile {
    /// The file of that name. The header names what is in it and the version that wrote it, and ends in a blank.
    pub const fn new(name: &'static str, header: &'static str) -> Self {
        Self { name, header }
    }

    /// Writes the file; all or nothing.
    pub fn write(&self, cache: &Path, user: User, body: &[u8]) -> Result<(), CacheError> {
        self.write_pieces(cache, user, &[format!("{}{}\n", self.header, sha256(body)).as_bytes(), body])
    }

    /// Writes a file with a table, which [`Self::open`] reads at once, and parts, which are read by themselves.
    pub fn write_parts(&self, cache: &Path, user: User, table: &[u8], parts: &[u8]) -> Result<(), CacheError> {
        let header = format!("{}{} {}\n", self.header, checksum(table), table.len());
        self.write_pieces(cache, user, &[header.as_bytes(), table, parts])
    }

    fn write_pieces(&self, cache: &Path, user: User, pieces: &[&[u8]]) -> Result<(), CacheError> {
        let directory = TrustedDirectory::create(cache, user.trust())?;
        let temporary = format!("{}.{}", self.name, std::process::id());
        let (temporary, name) = (OsStr::new(&temporary), OsStr::new(self.name));
        // Left behind by a process of that number that ended in the middle.
        let _ = directory.remove_file(temporary);
        let mut file = directory.create_file(temporary)?;
        let written = pieces.iter().try_for_each(|piece| file.write_all(piece));
        let renamed = written.and_then(|()| directory.rename(temporary, name));
        if renamed.is_err() {
            let _ = directory.remove_file(temporary);
        }
        Ok(renamed?)
    }

    /// The whole file, if it is private to this user; see [`Self::body`].
    pub fn read(&self, cache: &Path, user: User) -> Result<Vec<u8>, CacheError> {
        let (file, size) = self.open_private(cache, user)?;
        let mut text = Vec::with_capacity(size + 1);
        file.take(LARGEST).read_to_end(&mut text)?;
        Ok(text)
    }

    /// Reads the table of a file that [`Self::write_parts`] wrote, if it is private to this user.
    pub fn open(&self, cache: &Path, user: User) -> Result<Parted, CacheError> {
        let (file, size) = self.open_private(cache, user)?;
        let mut start = vec![0; size.min(self.header.len() + LONGEST_HEADER)];
        read_exact_at(&file, &mut start, 0)?;
        let rest = start.strip_prefix(self.header.as_bytes()).ok_or(CacheError::Damaged)?;
        let end = rest.iter().position(|byte| *byte == b'\n').ok_or(CacheError::Damaged)?;
        let line = rest.get(..end).and_then(|line| std::str::from_utf8(line).ok()).ok_or(CacheError::Damaged)?;
        let (expected, length) = line.split_once(' ').ok_or(CacheError::Damaged)?;
        let length: usize = length.parse().ok().filter(|length| *length <= size).ok_or(CacheError::Damaged)?;
        let table_at = self.header.len() + end + 1;
        let mut table = vec![0; length];
        read_exact_at(&file, &mut table, table_at as u64)?;
        if checksum(&table).to_string() != expected {
            return Err(CacheError::Damaged);
        }
        Ok(Parted { file, table, parts_at: (table_at + length) as u64 })
    }

    /// The file, if it is private to this user, and its size.
    fn open_private(&self, cache: &Path, user: User) -> Result<(File, usize), CacheError> {
        let directory = TrustedDirectory::open(cache, user.trust())?;
        private(user, directory.metadata())?;
        let file = directory.open_file(OsStr::new(self.name))?;
        let metadata = file.metadata()?;
        private(user, &metadata)?;
        if !metadata.is_file() || metadata.len() > LARGEST {
            return Err(CacheError::Size);
        }
        Ok((file, usize::try_from(metadata.len()).map_err(|_| CacheError::Size)?))
    }

    /// Returns the content, given the whole file; `None` if that is damaged or from another version.
    pub fn body<'a>(&self, text: &'a [u8]) -> Option<&'a [u8]> {
        let rest = text.strip_prefix(self.header.as_bytes())?;
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let (expected, body) = (rest.get(..end)?, rest.get(end + 1..)?);
        (sha256(body).as_bytes() == expected).then_some(body)
    }
}

/// The checksum of a table and its length, and the end of their line.
const LONGEST_HEADER: usize = 20 + 1 + 20 + 1;

/// A file with a table and parts. It stays the same when the file is replaced meanwhile.
#[derive(Debug)]
pub struct Parted {
    file: File,
    table: Vec<u8>,
    parts_at: u64,
}

/// Where a part lies behind the table, how long it is, and its checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CachePart(u64, u32, u64);

impl CachePart {
    /// Adds what is written to others; nothing where writing fails.
    pub fn append(parts: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> Option<()>) -> Option<Self> {
        let start = parts.len();
        let part = write(parts).and_then(|()| {
            let written = parts.get(start..)?;
            Some(Self(start as u64, written.len().try_into().ok()?, checksum(written)))
        });
        if part.is_none() {
            parts.truncate(start);
        }
        part
    }
}

impl Parted {
    /// The table.
    pub fn table(&self) -> &[u8] {
        &self.table
    }

    /// A part; `None` if it is damaged.
    pub fn part(&self, CachePart(start, length, expected): &CachePart) -> Option<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(*length).ok().filter(|length| *length as u64 <= LARGEST)?];
        read_exact_at(&self.file, &mut bytes, self.parts_at.checked_add(*start)?).ok()?;
        (checksum(&bytes) == *expected).then_some(bytes)
    }
}

/// Against damage: nobody else can write the file. A digest takes longer than reading what it is about. Another release of
/// the standard library may compute another number, and the file counts as damaged then.
fn checksum(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

fn private(user: User, metadata: &Metadata) -> Result<(), CacheError> {
    let status = Status::from(metadata);
    if status.uid == user.id && status.mode & 0o022 == 0 { Ok(()) } else { Err(CacheError::Writable) }
}
