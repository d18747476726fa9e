//! Reading within limits, and what is read besides plain bytes.

use std::cell::Cell;
use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::mem;

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use sha2::{Digest, Sha256};
use stead_core::call::Failure;
use stead_system::fs::{FsError, Patience};

use super::Properties;
use crate::checksum::{CHUNK, Checksum};
use crate::input::transient;

/// How many bytes an archive may yield.
const MAX_BYTES: u64 = 64 << 30;

/// How many times its own size an archive may yield, beyond what is always allowed. Text compresses to about a tenth.
const MAX_RATIO: u64 = 200;

/// What a small archive may yield whatever its size is.
const ALWAYS_ALLOWED: u64 = 256 << 20;

/// The memory that a dictionary of xz or zstd may take: the greatest that their programs use by default.
pub(super) const MAX_WINDOW: u64 = 128 << 20;

/// How many bytes of headers an entry of tar may have: they are in memory. Its name and attributes are among them.
const MAX_HEADERS: u64 = 1 << 20;

/// How many bytes may still be unpacked, and how long that may go on.
pub(super) struct Budget<'p> {
    left: Cell<u64>,
    allowed: u64,
    patience: &'p Patience,
}

impl<'p> Budget<'p> {
    /// For an archive of that size.
    pub(super) fn of(size: u64, patience: &'p Patience) -> Self {
        let allowed = size.saturating_mul(MAX_RATIO).clamp(ALWAYS_ALLOWED, MAX_BYTES);
        Self { left: Cell::new(allowed), allowed, patience }
    }

    /// The same content, of which no more can be read than is left; nothing, if it says itself that it has more.
    pub(super) fn within<R>(&self, content: R, declared: u64) -> Within<'_, R> {
        Within { content, declared, budget: self }
    }

    fn spend(&self, read: usize) -> io::Result<usize> {
        self.patience.check().map_err(io::Error::other)?;
        self.left.set(self.without(read as u64)?);
        Ok(read)
    }

    fn without(&self, bytes: u64) -> io::Result<u64> {
        let allowed = self.allowed >> 20;
        let exceeded = || format!("it has more than {allowed} MiB once unpacked, too much for its size");
        self.left.get().checked_sub(bytes).ok_or_else(|| io::Error::other(exceeded()))
    }
}

/// Content within a [`Budget`].
pub(super) struct Within<'b, R> {
    content: R,
    /// Of how many bytes it is not checked yet whether they are left.
    declared: u64,
    budget: &'b Budget<'b>,
}

impl<R: Read> Read for Within<'_, R> {
    fn read(&mut self, chunk: &mut [u8]) -> io::Result<usize> {
        self.budget.without(mem::take(&mut self.declared))?;
        self.budget.spend(self.content.read(chunk)?)
    }
}

/// How far a tar archive has been read, and how far it may be before its next entry is known.
#[derive(Default)]
pub(super) struct Gauge {
    position: Cell<u64>,
    content_end: Cell<u64>,
}

impl Gauge {
    /// Notes that an entry is known now, and how many bytes of it follow.
    pub(super) fn begin_content(&self, size: u64) {
        self.content_end.set(self.position.get().saturating_add(size));
    }
}

/// A tar archive, which does not end before it says so, and of which headers are read within a limit.
pub(super) struct Stream<'b, R> {
    source: R,
    budget: &'b Budget<'b>,
    gauge: &'b Gauge,
}

impl<'b, R> Stream<'b, R> {
    pub(super) fn new(source: R, budget: &'b Budget<'b>, gauge: &'b Gauge) -> Self {
        Self { source, budget, gauge }
    }

    /// What comes behind the end.
    pub(super) fn into_source(self) -> R {
        self.source
    }
}

impl<R: Read> Read for Stream<'_, R> {
    fn read(&mut self, chunk: &mut [u8]) -> io::Result<usize> {
        let read = self.budget.spend(self.source.read(chunk)?)?;
        if read == 0 && !chunk.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let position = self.gauge.position.get() + read as u64;
        self.gauge.position.set(position);
        if position.saturating_sub(self.gauge.content_end.get()) > MAX_HEADERS {
            let allowed = MAX_HEADERS >> 20;
            return Err(io::Error::other(format!("an entry has more than {allowed} MiB of names and attributes")));
        }
        Ok(read)
    }
}

/// The frames of zstd, one after the other: `pzstd` makes many, and files can be put together.
pub(super) struct Frames<R> {
    source: R,
    decoder: FrameDecoder,
}

impl<R: BufRead> Frames<R> {
    pub(super) fn new(source: R, max_window: u64) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(max_window);
        Self { source, decoder }
    }

    /// Returns whether the frame that was read has a checksum, and another content.
    fn is_damaged(&self) -> bool {
        let stated = self.decoder.get_checksum_from_data();
        stated.is_some() && stated != self.decoder.get_calculated_checksum()
    }

    fn next_frame(&mut self) -> io::Result<()> {
        let skipped = match self.decoder.reset(&mut self.source) {
            Ok(()) => return Ok(()),
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                u64::from(length)
            }
            Err(error) => return Err(fault(error)),
        };
        let has = io::copy(&mut (&mut self.source).take(skipped), &mut io::sink())?;
        if has == skipped { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, chunk: &mut [u8]) -> io::Result<usize> {
        while self.decoder.can_collect() == 0 {
            if !self.decoder.is_finished() {
                let decoded = self.decoder.decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1));
                decoded.map_err(fault)?;
            } else if self.is_damaged() {
                return Err(io::Error::other("a checksum does not match its content"));
            } else if self.source.fill_buf()?.is_empty() {
                return Ok(0);
            } else {
                self.next_frame()?;
            }
        }
        self.decoder.read(chunk)
    }
}

/// Why a frame cannot be read, as other formats say it.
fn fault(error: FrameDecoderError) -> io::Error {
    if let FrameDecoderError::WindowSizeTooBig { .. } = error {
        return io::ErrorKind::OutOfMemory.into();
    }
    let mut cause: Option<&dyn Error> = Some(&error);
    while let Some(at) = cause {
        if at.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof) {
            return io::ErrorKind::UnexpectedEof.into();
        }
        cause = at.source();
    }
    io::Error::other(error)
}

/// An archive whose digest was checked: nothing is read of it that did not have that digest, whoever writes to the file
/// meanwhile.
pub(super) struct Verified<'f> {
    file: &'f File,
    size: u64,
    /// Those of its chunks.
    digests: Vec<[u8; 32]>,
    at: u64,
    /// The number of the chunk that was read last, and the chunk.
    chunk: Option<(u64, Vec<u8>)>,
}

impl<'f> Verified<'f> {
    /// Reads a file once, and fails when it cannot be read. `None` when it has another digest.
    pub(super) fn of(file: &'f File, checksum: &Checksum, patience: &Patience) -> Result<Option<Self>, Failure> {
        let mut verified = Self { file, size: 0, digests: Vec::new(), at: 0, chunk: None };
        let has_digest = checksum.is_of_chunks(file, unreadable, |chunk| {
            patience.check()?;
            verified.size += chunk.len() as u64;
            verified.digests.push(Sha256::digest(chunk).into());
            Ok(())
        })?;
        Ok(has_digest.then_some(verified))
    }

    fn load(&mut self, number: u64) -> io::Result<&[u8]> {
        if self.chunk.as_ref().is_none_or(|(loaded, _)| *loaded != number) {
            let mut chunk = Vec::new();
            let (mut file, expected) = (self.file, usize::try_from(number).ok().and_then(|at| self.digests.get(at)));
            if let Some(expected) = expected {
                file.seek(SeekFrom::Start(number * CHUNK as u64))?;
                file.take(CHUNK as u64).read_to_end(&mut chunk)?;
                if *expected != <[u8; 32]>::from(Sha256::digest(&chunk)) {
                    return Err(io::Error::other("it was changed while it was read"));
                }
            }
            self.chunk = Some((number, chunk));
        }
        Ok(self.chunk.as_ref().map(|(_, chunk)| chunk.as_slice()).unwrap_or_default())
    }
}

impl Read for Verified<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let (at, length) = (self.at, CHUNK as u64);
        let chunk = self.load(at / length)?;
        let begin = usize::try_from(at % length).unwrap_or(usize::MAX);
        let read = chunk.get(begin..).unwrap_or_default().read(into)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Verified<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let to = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.size.checked_add_signed(by),
        };
        self.at = to.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// The failure that an archive cannot be read.
pub(super) fn unreadable(error: impl Into<io::Error>) -> Failure {
    let error = match error.into().downcast::<FsError>() {
        Ok(stopped) => return stopped.into(),
        Err(error) => error,
    };
    let reason = match error.kind() {
        io::ErrorKind::UnexpectedEof => "it is truncated".to_owned(),
        io::ErrorKind::OutOfMemory => format!("it takes more than {} MiB of memory", MAX_WINDOW >> 20),
        _ => stead_system::fs::reason(&error),
    };
    transient(Properties::SOURCE, format!("cannot read the archive: {reason}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;
    use std::path::Path;

    use stead_host::provider::Context;

    use super::*;
    use stead_core::digest::hex;

    /// A file of three chunks and its digest.
    fn file() -> (File, Checksum) {
        let content = vec![7; 2 * CHUNK + 9];
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&content, 0).unwrap();
        (file, Checksum::sha256(&hex(&Sha256::digest(&content))).unwrap())
    }

    fn patience() -> Patience {
        Context::new(Path::new("/")).patience()
    }

    #[test]
    fn a_verified_archive_reads_as_its_file_from_anywhere() {
        let (file, checksum) = file();
        let mut verified = Verified::of(&file, &checksum, &patience()).unwrap().unwrap();
        let mut all = Vec::new();
        assert_eq!(verified.read_to_end(&mut all).unwrap(), 2 * CHUNK + 9);
        assert!(all.iter().all(|byte| *byte == 7));
        for (to, left) in
            [(SeekFrom::End(-3), 3), (SeekFrom::Start(CHUNK as u64 - 1), CHUNK + 10), (SeekFrom::End(1), 0)]
        {
            verified.seek(to).unwrap();
            assert_eq!(verified.read_to_end(&mut Vec::new()).unwrap(), left, "{to:?}");
        }
        assert!(Verified::of(&file, &Checksum::sha256(&"0".repeat(64)).unwrap(), &patience()).unwrap().is_none());
    }

    #[test]
    fn nothing_is_read_that_was_changed_since_its_digest_was_checked() {
        let (file, checksum) = file();
        let mut verified = Verified::of(&file, &checksum, &patience()).unwrap().unwrap();
        file.write_all_at(b"8", CHUNK as u64).unwrap();
        let mut before = vec![0; CHUNK];
        verified.read_exact(&mut before).unwrap();
        assert!(verified.read(&mut before).is_err());
        verified.seek(SeekFrom::Start(2 * CHUNK as u64)).unwrap();
        assert_eq!(verified.read(&mut before).unwrap(), 9);
        file.write_all_at(b"7", CHUNK as u64 * 3).unwrap();
        verified.seek(SeekFrom::Start(0)).unwrap();
        verified.read_exact(&mut before).unwrap();
        verified.seek(SeekFrom::Start(2 * CHUNK as u64)).unwrap();
        assert!(verified.read(&mut before).is_err(), "it has become longer");
    }
}
