//! What the header of a program says of it.

/// The header of a program for Linux.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProgramHeader {
    /// The processor that it runs on, as `uname -m` names it.
    pub processor: &'static str,
    /// True if it needs no libraries of the machine.
    pub is_static: bool,
}

impl ProgramHeader {
    /// Reads the header of a program; `None` where it is none for these processors: `x86_64` and `aarch64`.
    ///
    /// # Examples
    /// ```
    /// use stead_hosts::ProgramHeader;
    ///
    /// let own = std::fs::read("/proc/self/exe")?;
    /// assert_eq!(ProgramHeader::read(&own).map(|header| header.processor), Some(std::env::consts::ARCH));
    /// assert_eq!(ProgramHeader::read(b"#!/bin/sh"), None);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let half = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?));
        // 64 bits wide, the lower byte first.
        let is_program = bytes.starts_with(b"\x7fELF\x02\x01");
        let processor = match half(18).filter(|_| is_program)? {
            62 => "x86_64",
            183 => "aarch64",
            _ => return None,
        };
        // The first four bytes of an entry of the program header are its kind; the third kind names the dynamic linker.
        let start = usize::try_from(u64::from_le_bytes(bytes.get(32..40)?.try_into().ok()?)).ok()?;
        let (size, count) = (half(54)?, half(56)?);
        let mut kinds = (0..count).filter_map(|entry| {
            let at = start.checked_add(usize::from(size) * usize::from(entry))?;
            bytes.get(at..at.checked_add(4)?)
        });
        let is_static = !kinds.any(|kind| kind == [3, 0, 0, 0]);
        Some(Self { processor, is_static })
    }
}
