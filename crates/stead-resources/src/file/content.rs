//! The content of a file: desired, compared, reported and written.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::fs::OFlags;
use serde_json::{Map, Value as Json, json};
use sha2::{Digest, Sha256};
use stead_core::call::{Failure, Presumed};
use stead_host::fs::{self, Kind, Replacement, Status};
use stead_host::provider::Context;

use crate::input::{Input, cannot, invalid, refused};

/// Content up to this size is part of a reported state, so that people see what changes; of more, only the digest.
const SHOWN: u64 = 256 * 1024;

/// As much as is read at once.
const CHUNK: usize = 16 * 1024;

/// The content that is asked for.
pub(crate) enum Content<'a> {
    /// It does not matter; a new file is empty.
    Any,
    Text(&'a str),
    Binary {
        text: &'a str,
        bytes: Vec<u8>,
    },
    /// That of another file.
    Source {
        text: &'a str,
        path: PathBuf,
    },
}

impl<'a> Content<'a> {
    pub(crate) fn read(input: &Input<'a>, cx: &Context) -> Result<Self, Failure> {
        let stated = ["content", "contentBase64", "source"].into_iter().filter(|name| input.has(name));
        if let Some(second) = stated.clone().nth(1) {
            let first = stated.clone().next().unwrap_or_default();
            return Err(invalid(second, format!("'{second}' and '{first}' exclude each other")));
        }
        if let Some(text) = input.text("content")? {
            Ok(Self::Text(text))
        } else if let Some(text) = input.text("contentBase64")? {
            let bytes = STANDARD
                .decode(text.trim_end())
                .map_err(|_| invalid("contentBase64", "'contentBase64' is not Base64"))?;
            Ok(Self::Binary { text, bytes })
        } else if let Some((text, path)) = input.path("source", cx)? {
            Ok(Self::Source { text, path })
        } else {
            Ok(Self::Any)
        }
    }

    /// The property that states it.
    pub(crate) fn property(&self) -> &'static str {
        match self {
            Self::Any | Self::Text(_) => "content",
            Self::Binary { .. } => "contentBase64",
            Self::Source { .. } => "source",
        }
    }

    /// Whether a file has this content, byte for byte.
    pub(crate) fn is_in(&self, file: &File, status: &Status, at: &Path) -> Result<bool, Failure> {
        let unreadable = |error| cannot("read", at, error);
        match self {
            Self::Any => Ok(true),
            Self::Text(text) => equals(file, status, text.as_bytes()).map_err(unreadable),
            Self::Binary { bytes, .. } => equals(file, status, bytes).map_err(unreadable),
            Self::Source { path, .. } => {
                let (source, size) = open_source(path)?;
                Ok(size == status.size && same(file, &source).map_err(unreadable)?)
            }
        }
    }

    /// What is not there yet without which it cannot be written.
    pub(crate) fn presumed(&self) -> Option<Presumed> {
        let Self::Source { path, .. } = self else { return None };
        open_source(path).err().map(|failure| Presumed { failure, path: Some(path.clone()) })
    }

    /// Adds it to a state, as it was written.
    pub(crate) fn echo(&self, state: &mut Map<String, Json>) {
        let (text, shown) = match self {
            Self::Any => return,
            Self::Text(text) => (text, text.len() as u64 <= SHOWN),
            Self::Binary { text, bytes } => (text, bytes.len() as u64 <= SHOWN),
            Self::Source { text, .. } => (text, true),
        };
        if shown {
            state.insert(self.property().into(), json!(text));
        }
    }

    /// Adds what a file contains to a state, in the form that was asked for; the digest where that is not possible.
    pub(crate) fn report(&self, file: &File, status: &Status, state: &mut Map<String, Json>) -> io::Result<()> {
        if matches!(self, Self::Any) {
            return Ok(());
        }
        let small = status.size <= SHOWN && !matches!(self, Self::Source { .. });
        let bytes = if small { read_all(file)? } else { Vec::new() };
        match (self, String::from_utf8(bytes)) {
            (Self::Text(_), Ok(text)) if small => state.insert("content".into(), json!(text)),
            (Self::Binary { .. }, Ok(text)) if small => {
                state.insert("contentBase64".into(), json!(STANDARD.encode(text)))
            }
            (Self::Binary { .. }, Err(bytes)) => {
                state.insert("contentBase64".into(), json!(STANDARD.encode(bytes.as_bytes())))
            }
            _ => state.insert("sha256".into(), json!(sha256(file)?)),
        };
        Ok(())
    }

    /// Writes it.
    pub(crate) fn write(&self, replacement: &Replacement<'_>) -> Result<(), Failure> {
        match self {
            Self::Any => {}
            Self::Text(text) => replacement.write(text.as_bytes())?,
            Self::Binary { bytes, .. } => replacement.write(bytes)?,
            Self::Source { path, .. } => copy(&open_source(path)?.0, replacement)?,
        }
        Ok(())
    }
}

fn open_source(path: &Path) -> Result<(File, u64), Failure> {
    let about_source = |failure: Failure| Failure { property: Some("/source".to_owned()), ..failure };
    let opened = fs::open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY);
    let opened = opened.map_err(|error| about_source(error.into()))?;
    let fd = opened.ok_or_else(|| refused("source", format!("there is no file '{}'", path.display())))?;
    let file = File::from(fd);
    let status = rustix::fs::fstat(&file).map(Status::from);
    let status = status.map_err(|errno| refused("source", format!("cannot examine the source: {errno}")))?;
    if status.kind != Kind::File {
        return Err(refused("source", format!("'{}' is a {}, not a file", path.display(), status.kind.word())));
    }
    Ok((file, status.size))
}

/// Copies the whole content of a file.
pub(crate) fn copy(from: &File, replacement: &Replacement<'_>) -> Result<(), Failure> {
    let (mut from, mut to) = (from, replacement.file());
    let copied = from.seek(SeekFrom::Start(0)).and_then(|_| io::copy(&mut from, &mut to));
    copied.map_err(|error| replacement.failed(error))?;
    Ok(())
}

fn equals(mut file: &File, status: &Status, desired: &[u8]) -> io::Result<bool> {
    if status.size != desired.len() as u64 {
        return Ok(false);
    }
    // Most managed files are small.
    let (mut small, mut large) = ([0; 512], Vec::new());
    let chunk = if desired.len() <= small.len() {
        &mut small[..desired.len()]
    } else {
        large.resize(CHUNK.min(desired.len()), 0);
        &mut large
    };
    let mut rest = desired;
    while !rest.is_empty() {
        let read = file.read(chunk)?;
        match (rest.split_at_checked(read), chunk.get(..read)) {
            (Some((expected, next)), Some(found)) if read > 0 && expected == found => rest = next,
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// Whether two files have the same content from where they are.
pub(crate) fn same(one: &File, other: &File) -> io::Result<bool> {
    let (mut one_chunk, mut other_chunk) = (vec![0; CHUNK], vec![0; CHUNK]);
    loop {
        let (one_read, other_read) = (fill(one, &mut one_chunk)?, fill(other, &mut other_chunk)?);
        if one_chunk.get(..one_read) != other_chunk.get(..other_read) {
            return Ok(false);
        }
        if one_read == 0 {
            return Ok(true);
        }
    }
}

/// Reads until the chunk is full or the file ends, so that two files stay in step.
fn fill(mut file: &File, chunk: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = chunk.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read(rest)? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

/// The whole content.
pub(crate) fn read_all(mut file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The digest of the whole content; `None` when the file may be examined only.
pub(crate) fn sha256(mut file: &File) -> io::Result<Option<String>> {
    const NOT_READABLE: i32 = rustix::io::Errno::BADF.raw_os_error();
    match file.seek(SeekFrom::Start(0)) {
        Err(error) if error.raw_os_error() == Some(NOT_READABLE) => return Ok(None),
        sought => sought?,
    };
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        match fill(file, &mut chunk)? {
            0 => break,
            read => hasher.update(chunk.get(..read).unwrap_or_default()),
        }
    }
    let mut text = String::with_capacity(64);
    for byte in hasher.finalize() {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(Some(text))
}
