//! What is in an archive, entry by entry, within limits.

use std::io::{self, BufReader, Read, Seek, SeekFrom};

use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;
use stead_core::call::Failure;
use stead_system::fs::Patience;
use tar::EntryType;
use zip::{System, ZipArchive};

use super::Properties;
use super::reading::{Budget, Frames, Gauge, MAX_WINDOW, Stream, unreadable};
use crate::input::impossible;

/// Where the word ends that a tar archive has in its first header.
const MAGIC_END: u64 = 262;

/// How many entries are unpacked, with the directories that they imply.
pub(super) const MAX_ENTRIES: usize = 250_000;

/// As much of the target of a link is read: more than a link can have.
const MAX_TARGET: u64 = 4096;

/// As much of a name is shown, in characters.
const MAX_SHOWN: usize = 100;

/// Records of PAX with these names say how a sparse file is laid out.
const PAX_SPARSE: &[u8] = b"GNU.sparse.";

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

/// An archive that can be read from anywhere in it.
pub(super) trait Source: Read + Seek {}

impl<T: Read + Seek> Source for T {}

/// Takes an entry, its number, and its content, of which it reads all or nothing.
pub(super) type Visit<'v> = &'v mut dyn FnMut(usize, RawEntry, &mut dyn Read) -> Result<(), Failure>;

/// Shows every entry of an archive in its order.
///
/// Guarantees: damage that the format can reveal is refused (by the CRC-32 of gzip and zip, the checks of xz and the checksum
/// of zstd): in content that is read, and in a compressed tar archive as a whole.
pub(super) fn for_each(archive: &mut dyn Source, patience: &Patience, visit: Visit<'_>) -> Result<(), Failure> {
    let mut begin = Vec::new();
    let sought = archive.rewind().and_then(|()| (&mut *archive).take(MAGIC_END).read_to_end(&mut begin));
    let size = sought.and_then(|_| archive.seek(SeekFrom::End(0))).map_err(unreadable)?;
    archive.rewind().map_err(unreadable)?;
    let budget = || Budget::of(size, patience);
    let file = BufReader::with_capacity(64 << 10, archive);
    match begin.as_slice() {
        [0x1f, 0x8b, ..] => tar(MultiGzDecoder::new(file), &budget, visit),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            let memory = u32::try_from(MAX_WINDOW >> 10).unwrap_or(u32::MAX);
            tar(XzReader::new_mem_limit(file, true, memory), &budget, visit)
        }
        // The second one is a frame that is skipped.
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            tar(Frames::new(file, MAX_WINDOW), &budget, visit)
        }
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => zip(file, &budget(), visit),
        [b'B', b'Z', b'h', ..] => {
            Err(impossible(Properties::SOURCE, "the archive is compressed with bzip2, which is not supported"))
        }
        begin if begin.ends_with(b"ustar") => tar(file, &budget, visit),
        _ => Err(impossible(Properties::SOURCE, "'source' is not a tar or zip archive")),
    }
}

fn tar<'p>(source: impl Read, budget: &dyn Fn() -> Budget<'p>, visit: Visit<'_>) -> Result<(), Failure> {
    // A sparse file has more content than the archive has of it.
    let (stored, content) = (budget(), budget());
    let gauge = Gauge::default();
    let mut archive = tar::Archive::new(Stream::new(source, &stored, &gauge));
    for (number, entry) in archive.entries().map_err(unreadable)?.enumerate() {
        let mut entry = entry.map_err(unreadable)?;
        let is_sparse = entry.header().entry_type().is_gnu_sparse();
        let size = if is_sparse { entry.header().entry_size().map_err(unreadable)? } else { entry.size() };
        gauge.begin_content(size);
        if let Some(raw) = tar_entry(&mut entry)? {
            let size = entry.size();
            visit(number, raw, &mut content.within(&mut entry, size))?;
        }
    }
    // The checksums of the compression come last.
    let rest = archive.into_inner().into_source();
    io::copy(&mut stored.within(rest, 0), &mut io::sink()).map(|_| ()).map_err(unreadable)
}

fn tar_entry(entry: &mut tar::Entry<'_, impl Read>) -> Result<Option<RawEntry>, Failure> {
    let entry_type = entry.header().entry_type();
    // It says something about the whole archive.
    if entry_type == EntryType::XGlobalHeader {
        return Ok(None);
    }
    check_attributes(entry)?;
    let target = || {
        let target = entry
            .link_name_bytes()
            .ok_or_else(|| impossible(Properties::SOURCE, "a link in the archive has no target"))?;
        Ok::<_, Failure>(target.into_owned())
    };
    let name = entry.path_bytes().into_owned();
    let kind = match entry_type {
        // Archives from before there was a type for directories.
        EntryType::Regular if name.ends_with(b"/") => RawKind::Directory,
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => RawKind::File,
        EntryType::Directory => RawKind::Directory,
        EntryType::Symlink => RawKind::Symlink(target()?),
        EntryType::Link => RawKind::HardLink(target()?),
        _ => RawKind::Special,
    };
    let mode = entry.header().mode().map_err(unreadable)?;
    Ok(Some(RawEntry { name, kind, mode: Some(mode) }))
}

/// Refuses records of PAX that would be misread: a name among them would not be found.
fn check_attributes(entry: &mut tar::Entry<'_, impl Read>) -> Result<(), Failure> {
    let name = entry.path_bytes().into_owned();
    for record in entry.pax_extensions().map_err(unreadable)?.into_iter().flatten() {
        let malformed = "has attributes that cannot be read. Create the archive without extended attributes";
        let record = record.map_err(|_| not_unpacked(&name, malformed))?;
        if record.key_bytes().starts_with(PAX_SPARSE) {
            let hint = "Create the archive with 'tar --format=gnu', or without '--sparse'";
            return Err(not_unpacked(
                &name,
                &format!("is a sparse file in the format of PAX, which is not supported. {hint}"),
            ));
        }
    }
    Ok(())
}

fn zip(file: BufReader<&mut dyn Source>, budget: &Budget<'_>, visit: Visit<'_>) -> Result<(), Failure> {
    let mut archive = ZipArchive::new(file).map_err(unreadable)?;
    if archive.len() > MAX_ENTRIES {
        return Err(too_many());
    }
    for number in 0..archive.len() {
        let entry = archive.by_index(number).map_err(unreadable)?;
        let mut name = entry.name_raw().to_owned();
        let knows_modes = !matches!(entry.system(), System::Dos | System::Os2 | System::WindowsNTFS | System::VFAT);
        if !knows_modes {
            name.iter_mut().filter(|byte| **byte == b'\\').for_each(|byte| *byte = b'/');
        }
        let mode = entry.unix_mode().filter(|mode| knows_modes && *mode != 0);
        let is_directory = name.ends_with(b"/");
        let size = entry.size();
        let mut content = budget.within(entry, size);
        let kind = match mode.map(|mode| mode & 0o170_000) {
            _ if is_directory => RawKind::Directory,
            Some(0o120_000) => {
                let mut target = Vec::new();
                content.by_ref().take(MAX_TARGET + 1).read_to_end(&mut target).map_err(unreadable)?;
                RawKind::Symlink(target)
            }
            None | Some(0 | 0o100_000) => RawKind::File,
            Some(0o040_000) => RawKind::Directory,
            Some(_) => RawKind::Special,
        };
        visit(number, RawEntry { name, kind, mode }, &mut content)?;
    }
    Ok(())
}

/// The failure that an entry is not unpacked. What is shown of its name is short and does nothing to a terminal.
pub(super) fn not_unpacked(name: &[u8], problem: &str) -> Failure {
    let mut shown = String::new();
    for character in String::from_utf8_lossy(name).chars().take(MAX_SHOWN) {
        if character.is_control() { shown.extend(character.escape_default()) } else { shown.push(character) }
    }
    impossible(Properties::SOURCE, format!("'{shown}' in the archive {problem}"))
}

/// The failure that an archive has too many entries.
pub(super) fn too_many() -> Failure {
    impossible(Properties::SOURCE, format!("the archive has more than {MAX_ENTRIES} entries"))
}
