//! Programs, and what their headers say.

// The same file: tasks are built without the crates.
#[path = "../../crates/stead-hosts/src/program.rs"]
#[expect(unreachable_pub, reason = "in its crate it is for others")]
mod header;

use std::fs;
use std::path::PathBuf;

use header::ProgramHeader;

/// A program, and what its header says of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// The processor that it runs on.
    pub(crate) processor: &'static str,
    /// True if it needs no libraries of the machine.
    pub(crate) is_static: bool,
}

impl Program {
    /// Reads the header of a program.
    pub(crate) fn read(path: PathBuf) -> Result<Self, String> {
        let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let ProgramHeader { processor, is_static } = ProgramHeader::read(&bytes)
            .ok_or_else(|| format!("{}: not a program for x86_64 or aarch64 and Linux", path.display()))?;
        Ok(Self { path, processor, is_static })
    }

    /// The name of its processor in packages of Debian.
    pub(crate) fn of_debian(&self) -> &'static str {
        if self.processor == "aarch64" { "arm64" } else { "amd64" }
    }

    /// True if this machine can run it.
    pub(crate) fn runs_here(&self) -> bool {
        self.processor == std::env::consts::ARCH
    }

    /// The end of the names of its archives.
    pub(crate) fn target(&self) -> String {
        format!("{}-linux-{}", self.processor, if self.is_static { "musl" } else { "gnu" })
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
