//! Files that no directory has, for programs that read a file.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, memfd_create};

/// A file in memory that nobody but this user's processes can open. It is gone when this is dropped.
pub struct MemoryFile(File);

impl MemoryFile {
    /// A file with this content. The name is for those who look at the processes of the machine.
    pub fn new(name: &str, content: &[u8]) -> io::Result<Self> {
        let mut file = File::from(memfd_create(name, MemfdFlags::CLOEXEC)?);
        file.write_all(content)?;
        Ok(Self(file))
    }

    /// The file, to be read from its start.
    pub(super) fn into_input(mut self) -> io::Result<File> {
        self.0.rewind()?;
        Ok(self.0)
    }

    /// Where every process finds it while this value lives.
    pub fn path(&self) -> PathBuf {
        let own = Path::new("/proc").join(std::process::id().to_string());
        own.join(format!("fd/{}", self.0.as_raw_fd()))
    }
}
