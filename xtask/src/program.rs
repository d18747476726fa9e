//! Programs, and what their headers say.

use std::fs;
use std::path::PathBuf;

/// The processor that a program runs on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Processor {
    X86_64,
    Aarch64,
}

impl Processor {
    /// Its name in targets, and in packages of Fedora.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// Its name in packages of Debian.
    pub(crate) fn of_debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }
}

/// A program, and what its header says of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) processor: Processor,
    /// True if it needs no libraries of the machine.
    pub(crate) is_static: bool,
}

impl Program {
    /// Reads the header of a program.
    pub(crate) fn read(path: PathBuf) -> Result<Self, String> {
        let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let half = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let is_elf = bytes.starts_with(b"\x7fELF\x02\x01");
        let processor = match half(18).filter(|_| is_elf) {
            Some(62) => Processor::X86_64,
            Some(183) => Processor::Aarch64,
            _ => return Err(format!("{}: not a program for x86_64 or aarch64 and Linux", path.display())),
        };
        // The first four bytes of an entry of the program header are its kind; the third kind names the dynamic linker.
        let start = bytes.get(32..40).and_then(|eight| Some(u64::from_le_bytes(eight.try_into().ok()?)));
        let start = usize::try_from(start.unwrap_or_default()).map_err(|error| error.to_string())?;
        let (size, count) = (half(54).unwrap_or_default(), half(56).unwrap_or_default());
        let mut kinds = (0..count).filter_map(|entry| {
            let at = start.checked_add(usize::from(size) * usize::from(entry))?;
            bytes.get(at..at.checked_add(4)?)
        });
        let is_static = !kinds.any(|kind| kind == [3, 0, 0, 0]);
        Ok(Self { path, processor, is_static })
    }

    /// True if this machine can run it.
    pub(crate) fn runs_here(&self) -> bool {
        self.processor.name() == std::env::consts::ARCH
    }

    /// The end of the names of its archives.
    pub(crate) fn target(&self) -> String {
        format!("{}-linux-{}", self.processor.name(), if self.is_static { "musl" } else { "gnu" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_of_a_program_says_what_it_is_for() {
        let here = Program::read(std::env::current_exe().unwrap()).unwrap();
        assert!(here.runs_here() && !here.is_static, "{here:?}");
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        for text in ["#!/bin/sh\n", "", "\x7fELF\x02\x01", "\x7fELF\x01\x01 of another width and processor"] {
            fs::write(&script, text).unwrap();
            assert!(Program::read(script.clone()).unwrap_err().contains("not a program for x86_64"), "{text:?}");
        }
    }
}
