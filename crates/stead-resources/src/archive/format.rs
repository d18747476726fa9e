//! What is in an archive, entry by entry, within limits.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::StreamingDecoder;
use stead_core::call::Failure;
use tar::EntryType;
use zip::ZipArchive;

use crate::input::refused;

/// How many bytes an archive may yield.
const MAX_BYTES: u64 = 64 << 30;

/// How many times its own size an archive may yield, beyond what is always allowed. Text compresses to about a tenth.
const MAX_RATIO: u64 = 200;

/// What a small archive may yield whatever its size is.
const ALWAYS_ALLOWED: u64 = 256 << 20;

/// The memory that a dictionary of xz or zstd may take: the greatest that their programs use by default.
const MAX_WINDOW: u64 = 128 << 20;

/// Where the word ends that a tar archive has in its first header.
const MAGIC_END: u64 = 262;

/// The longest target of a link.
const MAX_TARGET: u64 = 4096;

/// An entry as the archive has it.
pub(super) struct RawEntry {
    pub(super) name: Vec<u8>,
    pub(super) kind: RawKind,
    /// The permissions, where the format has any.
    pub(super) mode: Option<u32>,
}

/// What an entry is.
pub(super) enum RawKind {
    File,
    Directory,
    Symlink(Vec<u8>),
    HardLink(Vec<u8>),
    /// What is never unpacked.
    Special,
}

/// Takes an entry, its number, and its content, of which it reads as much as it needs.
pub(super) type Visit<'v> = &'v mut dyn FnMut(usize, RawEntry, &mut dyn Read) -> Result<(), Failure>;

/// Shows every entry of an archive in its order.
pub(super) fn for_each(archive: &File, visit: Visit<'_>) -> Result<(), Failure> {
    let mut begin = Vec::new();
    let mut file = archive;
    let sought = file.seek(SeekFrom::Start(0)).and_then(|_| file.take(MAGIC_END).read_to_end(&mut begin));
    let size = sought.and_then(|_| file.seek(SeekFrom::End(0))).map_err(unreadable)?;
    file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
    let budget = Budget::of(size);
    let file = BufReader::with_capacity(64 << 10, file);
    match begin.as_slice() {
        [0x1f, 0x8b, ..] => tar(budget.within(MultiGzDecoder::new(file)), visit),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            let memory = u32::try_from(MAX_WINDOW >> 10).unwrap_or(u32::MAX);
            tar(budget.within(XzReader::new_mem_limit(file, true, memory)), visit)
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let decoder = StreamingDecoder::new_with_max_window_size(file, MAX_WINDOW);
            tar(budget.within(decoder.map_err(|error| unreadable(io::Error::other(error)))?), visit)
        }
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => zip(file, &budget, visit),
        [b'B', b'Z', b'h', ..] => {
            Err(refused("source", "the archive is compressed with bzip2, which is not supported"))
        }
        begin if begin.ends_with(b"ustar") => tar(budget.within(file), visit),
        _ => Err(refused("source", "it is not an archive of tar or zip")),
    }
}

fn tar(reader: impl Read, visit: Visit<'_>) -> Result<(), Failure> {
    let mut archive = tar::Archive::new(reader);
    for (number, entry) in archive.entries().map_err(unreadable)?.enumerate() {
        let mut entry = entry.map_err(unreadable)?;
        if let Some(raw) = tar_entry(&entry)? {
            visit(number, raw, &mut entry)?;
        }
    }
    Ok(())
}

fn tar_entry(entry: &tar::Entry<'_, impl Read>) -> Result<Option<RawEntry>, Failure> {
    let target = || {
        let target = entry.link_name_bytes().ok_or_else(|| refused("source", "a link in the archive has no target"))?;
        Ok::<_, Failure>(target.into_owned())
    };
    let kind = match entry.header().entry_type() {
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => RawKind::File,
        EntryType::Directory => RawKind::Directory,
        EntryType::Symlink => RawKind::Symlink(target()?),
        EntryType::Link => RawKind::HardLink(target()?),
        // It says something about the whole archive.
        EntryType::XGlobalHeader => return Ok(None),
        _ => RawKind::Special,
    };
    let mode = entry.header().mode().map_err(unreadable)?;
    Ok(Some(RawEntry { name: entry.path_bytes().into_owned(), kind, mode: Some(mode) }))
}

fn zip(file: BufReader<&File>, budget: &Budget, visit: Visit<'_>) -> Result<(), Failure> {
    let unreadable = |error| self::unreadable(io::Error::other(error));
    let mut archive = ZipArchive::new(file).map_err(unreadable)?;
    for number in 0..archive.len() {
        let entry = archive.by_index(number).map_err(unreadable)?;
        let (name, mode) = (entry.name_raw().to_owned(), entry.unix_mode());
        let (is_directory, is_link) = (entry.is_dir(), entry.is_symlink());
        let mut content = budget.within(entry);
        let kind = match (is_directory, is_link, mode.map(|mode| mode & 0o170_000)) {
            (true, ..) => RawKind::Directory,
            (_, true, _) => {
                let mut target = Vec::new();
                content.by_ref().take(MAX_TARGET).read_to_end(&mut target).map_err(self::unreadable)?;
                RawKind::Symlink(target)
            }
            (.., None | Some(0 | 0o100_000)) => RawKind::File,
            _ => RawKind::Special,
        };
        visit(number, RawEntry { name, kind, mode }, &mut content)?;
    }
    Ok(())
}

/// The failure that an archive cannot be read.
pub(super) fn unreadable(error: impl Into<io::Error>) -> Failure {
    let reason = stead_host::fs::reason(&error.into());
    refused("source", format!("cannot read the archive: {reason}"))
}

/// How many bytes may still be unpacked. Clones share it.
#[derive(Clone)]
struct Budget {
    left: Rc<Cell<u64>>,
    allowed: u64,
}

impl Budget {
    fn of(size: u64) -> Self {
        let allowed = size.saturating_mul(MAX_RATIO).clamp(ALWAYS_ALLOWED, MAX_BYTES);
        Self { left: Rc::new(Cell::new(allowed)), allowed }
    }

    /// The same content, of which no more can be read than is left.
    fn within<R>(&self, content: R) -> Within<R> {
        Within { content, budget: self.clone() }
    }
}

struct Within<R> {
    content: R,
    budget: Budget,
}

impl<R: Read> Read for Within<R> {
    fn read(&mut self, chunk: &mut [u8]) -> io::Result<usize> {
        let read = self.content.read(chunk)?;
        let Some(left) = self.budget.left.get().checked_sub(read as u64) else {
            let allowed = self.budget.allowed >> 20;
            return Err(io::Error::other(format!(
                "it has more than {allowed} MiB once unpacked, too much for its size"
            )));
        };
        self.budget.left.set(left);
        Ok(read)
    }
}
