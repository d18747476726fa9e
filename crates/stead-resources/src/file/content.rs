//! The content of a file: desired, compared, reported and written.

use std::borrow::Cow;
use std::convert;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use stead_core::call::{Failure, FailureKind, Presumed};
use stead_core::destruction::{Item, ItemKind};
use stead_core::digest::hex;
use stead_core::value::{Object, Value};
use stead_host::provider::Context;
use stead_system::fs::{self, FileKind, How, Replacement, Status, SystemPath};

use super::{Current, Properties};
use crate::checksum::digest;
use crate::input::{Base64, blocked, cannot, transient};

/// Content up to this size is part of a reported state, so that users see what changes; of more, only the digest.
const SHOWN: u64 = 256 * 1024;

/// The largest source that a command is handed before it is in place.
const MAX_CHECKED: u64 = 64 << 20;

/// As much as is read at once.
const CHUNK: usize = 16 * 1024;

/// The content that is asked for.
pub(crate) enum Content<'a> {
    /// It does not matter; a new file is empty.
    Any,
    Text(&'a str),
    Binary(Vec<u8>),
    /// That of another file.
    Source {
        text: &'a str,
        path: SystemPath,
    },
}

/// Content as a state or a plan shows it.
pub(crate) enum Shown {
    /// The whole text.
    Text(String),
    /// What is not text, too long, or not for everyone to read.
    Digest { size: u64, sha256: Option<String> },
}

impl Shown {
    /// Of the bytes of something.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) if bytes.len() as u64 <= SHOWN => Self::Text(text.to_owned()),
            _ => Self::Digest { size: bytes.len() as u64, sha256: Some(hex(&Sha256::digest(bytes))) },
        }
    }

    pub(crate) fn of_file(file: &File, status: &Status, may_be_text: bool) -> io::Result<Self> {
        if may_be_text
            && status.size <= SHOWN
            && let Ok(text) = String::from_utf8(read_all(file)?)
        {
            return Ok(Self::Text(text));
        }
        Ok(Self::Digest { size: status.size, sha256: sha256(file)? })
    }

    /// Adds it to a state.
    pub(crate) fn report(&self, state: &mut Object) {
        match self {
            Self::Text(text) => _ = state.insert(Properties::CONTENT.into(), Value::from(text.as_str())),
            Self::Digest { size, sha256 } => {
                state.insert(Properties::SIZE.into(), Value::from(*size));
                state.extend(
                    sha256.as_ref().map(|digest| (Properties::SHA256.to_owned(), Value::from(digest.as_str()))),
                );
            }
        }
    }

    /// What it is where a text is not shown.
    pub(super) fn item(&self, path: &str) -> Option<Item> {
        let Self::Digest { size, sha256 } = self else { return None };
        Some(Item { path: path.to_owned(), kind: ItemKind::Content { size: *size, sha256: sha256.clone() } })
    }
}

/// The content that a file is to have: what [`super::Desired`] needs to know of it.
pub(crate) trait FileContent {
    /// The property that differs where the content does.
    fn property(&self) -> &'static str;

    /// Returns whether it matters; if not, it is never written.
    fn is_stated(&self) -> bool {
        true
    }

    /// Returns whether a file has this content, byte for byte.
    fn is_in(&self, file: &File, status: &Status, at: &Path) -> Result<bool, Failure>;

    /// What is not there yet without which it cannot be written.
    fn presumed(&self) -> Option<Presumed>;

    /// Adds what a file that has it contains to a state.
    fn echo(&self, state: &mut Object);

    /// Returns whether the desired state itself has what [`FileContent::shown`] shows.
    fn is_shown_as_stated(&self) -> bool;

    /// Adds what a file will contain, that has something else, to a state: how it is shown.
    fn announce(&self, shown: Option<&Shown>, state: &mut Object);

    /// How the content that is asked for is shown; `None` where none is, or it is not known yet.
    fn shown(&self) -> Option<Shown>;

    /// How the content of a file is shown that differs from this: as text only if this is, so that both compare.
    fn shown_of(&self, file: &File, status: &Status) -> io::Result<Shown>;

    /// Adds what a file contains to a state that lacks it.
    fn report(&self, file: &File, status: &Status, state: &mut Object) -> io::Result<()> {
        self.shown_of(file, status)?.report(state);
        Ok(())
    }

    /// Adds the whole content of a file, in the form in which it is stated, for whoever asks for it.
    fn give(&self, current: &Current, at: &Path, state: &mut Object) -> Result<(), Failure>;

    /// The whole of it, for a command that must accept it; a resource without one need not have it at hand.
    fn bytes(&self) -> Result<Cow<'_, [u8]>, Failure> {
        Err(Failure::new(FailureKind::Unsupported, "the content is not at hand for a command"))
    }

    /// Writes it.
    fn write(&self, replacement: &Replacement<'_>) -> Result<(), Failure>;
}

impl<'a> Content<'a> {
    /// The content that the properties state, in one way or not at all.
    pub(super) fn of(properties: &mut Properties<'a>, cx: &Context) -> Result<Self, Failure> {
        Ok(if let Some(text) = properties.content {
            Self::Text(text)
        } else if let Some(Base64(bytes)) = properties.content_base64.take() {
            Self::Binary(bytes)
        } else if let Some(source) = properties.source {
            Self::Source { text: source.0, path: source.source(cx, Properties::SOURCE)? }
        } else {
            Self::Any
        })
    }
}

impl FileContent for Content<'_> {
    fn property(&self) -> &'static str {
        match self {
            Self::Any | Self::Text(_) | Self::Source { .. } => Properties::CONTENT,
            Self::Binary(_) => Properties::CONTENT_BASE64,
        }
    }

    fn is_stated(&self) -> bool {
        !matches!(self, Self::Any)
    }

    fn is_in(&self, file: &File, status: &Status, at: &Path) -> Result<bool, Failure> {
        let unreadable = |error| cannot("read", at, error);
        match self {
            Self::Any => Ok(true),
            Self::Text(text) => equals(file, status, text.as_bytes()).map_err(unreadable),
            Self::Binary(bytes) => equals(file, status, bytes).map_err(unreadable),
            Self::Source { path, .. } => {
                let (source, wanted) = open_source(path)?;
                Ok(wanted.size == status.size && same(file, &source).map_err(unreadable)?)
            }
        }
    }

    fn presumed(&self) -> Option<Presumed> {
        let Self::Source { path, .. } = self else { return None };
        open_source(path).err().map(|failure| Presumed::of(failure, vec![path.to_path_buf()]))
    }

    fn echo(&self, state: &mut Object) {
        match self {
            Self::Text(text) if text.len() as u64 <= SHOWN => {
                _ = state.insert(Properties::CONTENT.into(), Value::from(*text));
            }
            Self::Binary(bytes) if bytes.len() as u64 <= SHOWN => {
                state.insert(Properties::CONTENT_BASE64.into(), Value::from(STANDARD.encode(bytes)));
            }
            Self::Source { text, .. } => _ = state.insert(Properties::SOURCE.into(), Value::from(*text)),
            Self::Any | Self::Text(_) | Self::Binary(_) => {}
        }
    }

    fn is_shown_as_stated(&self) -> bool {
        match self {
            Self::Any => true,
            Self::Text(text) => text.len() as u64 <= SHOWN,
            Self::Binary(_) | Self::Source { .. } => false,
        }
    }

    fn announce(&self, shown: Option<&Shown>, state: &mut Object) {
        // No state has both: what is shown as text is compared as text.
        if let (Self::Source { text, .. }, None | Some(Shown::Digest { .. })) = (self, shown) {
            state.insert(Properties::SOURCE.into(), Value::from(*text));
        }
        if let Some(shown) = shown {
            shown.report(state);
        }
    }

    fn shown(&self) -> Option<Shown> {
        match self {
            Self::Any => None,
            Self::Text(text) => Some(Shown::of(text.as_bytes())),
            Self::Binary(bytes) => {
                Some(Shown::Digest { size: bytes.len() as u64, sha256: Some(hex(&Sha256::digest(bytes))) })
            }
            Self::Source { path, .. } => {
                let (source, status) = open_source(path).ok()?;
                Shown::of_file(&source, &status, is_public(&status)).ok()
            }
        }
    }

    fn shown_of(&self, file: &File, status: &Status) -> io::Result<Shown> {
        let may_be_text = match self {
            Self::Any | Self::Text(_) => true,
            Self::Binary(_) => false,
            Self::Source { path, .. } => is_public(status) && open_source(path).is_ok_and(|(_, of)| is_public(&of)),
        };
        Shown::of_file(file, status, may_be_text)
    }

    fn give(&self, current: &Current, at: &Path, state: &mut Object) -> Result<(), Failure> {
        let (file, status) = (&current.file, &current.status);
        let unreadable = |error| cannot("read", at, error);
        match self {
            Self::Any => {}
            Self::Text(_) => self.report(file, status, state).map_err(unreadable)?,
            Self::Binary(_) if status.size > SHOWN => {}
            Self::Binary(_) => {
                let bytes = read_all(file).map_err(unreadable)?;
                state.insert(Properties::CONTENT_BASE64.into(), Value::from(STANDARD.encode(bytes)));
            }
            // A look needs no source that can be read.
            Self::Source { text, path } => {
                let rewound = (&*file).seek(SeekFrom::Start(0)).is_ok();
                if rewound && open_source(path).is_ok() && self.is_in(file, status, at)? {
                    state.insert(Properties::SOURCE.into(), Value::from(*text));
                }
            }
        }
        Ok(())
    }

    fn bytes(&self) -> Result<Cow<'_, [u8]>, Failure> {
        Ok(match self {
            Self::Any => Cow::default(),
            Self::Text(text) => text.as_bytes().into(),
            Self::Binary(bytes) => bytes.into(),
            Self::Source { path, .. } => {
                let (file, status) = open_source(path)?;
                if status.size > MAX_CHECKED {
                    let message = format!(
                        "a command is handed at most {} MiB, and '{}' has more",
                        MAX_CHECKED >> 20,
                        path.display()
                    );
                    return Err(blocked(Properties::SOURCE, message));
                }
                read_all(&file).map_err(|error| cannot("read", path, error))?.into()
            }
        })
    }

    fn write(&self, replacement: &Replacement<'_>) -> Result<(), Failure> {
        match self {
            Self::Any => {}
            Self::Text(text) => replacement.write(text.as_bytes())?,
            Self::Binary(bytes) => replacement.write(bytes)?,
            Self::Source { path, .. } => copy(&open_source(path)?.0, replacement)?,
        }
        Ok(())
    }
}

/// Opens the regular file that 'source' names.
pub(crate) fn open_source(path: &SystemPath) -> Result<(File, Status), Failure> {
    let about_source = |failure: Failure| Failure { property: Some("/source".to_owned()), ..failure };
    let opened = fs::open(path, How::Read);
    let opened = opened.map_err(|error| about_source(error.into()))?;
    let missing = || format!("there is no file '{}'. Create it, or correct the path", path.display());
    let fd = opened.ok_or_else(|| blocked(Properties::SOURCE, missing()))?;
    let file = File::from(fd);
    let status = Status::from(
        &file
            .metadata()
            .map_err(|error| transient(Properties::SOURCE, format!("cannot examine the source: {error}")))?,
    );
    if status.kind != FileKind::File {
        return Err(blocked(
            Properties::SOURCE,
            format!("'{}' is a {}, not a file", path.display(), status.kind.word()),
        ));
    }
    Ok((file, status))
}

/// The text of the file that 'source' names, of at most so many bytes, and its status.
pub(crate) fn source_text(path: &SystemPath, max: u64) -> Result<(String, Status), Failure> {
    let (file, status) = open_source(path)?;
    let mut text = String::new();
    if status.size > max {
        return Err(blocked(Properties::SOURCE, format!("'{}' has more than {max} bytes", path.display())));
    }
    let read = file.take(max).read_to_string(&mut text);
    read.map_err(|error| {
        transient(Properties::SOURCE, format!("cannot read '{}': {}", path.display(), fs::reason(&error)))
    })?;
    Ok((text, status))
}

/// Returns whether everyone may read it, so that a plan may show it. What is copied may be a key.
pub(crate) fn is_public(status: &Status) -> bool {
    status.mode & 0o004 != 0
}

/// Copies the whole content of a file.
pub(crate) fn copy(from: &File, replacement: &Replacement<'_>) -> Result<(), Failure> {
    let (mut from, mut to) = (from, replacement.file());
    let copied = from.seek(SeekFrom::Start(0)).and_then(|_| io::copy(&mut from, &mut to));
    copied.map_err(|error| replacement.failed(error))?;
    Ok(())
}

/// Returns whether a file has these bytes from where it is.
pub(crate) fn equals(mut file: &File, status: &Status, desired: &[u8]) -> io::Result<bool> {
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

/// Returns whether two files have the same content from where they are.
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
    match file.seek(SeekFrom::Start(0)) {
        Err(error) if fs::is_not_readable(&error) => return Ok(None),
        sought => sought?,
    };
    digest::<Sha256, io::Error>(&mut file, convert::identity, |_| Ok(())).map(|digest| Some(hex(&digest)))
}
