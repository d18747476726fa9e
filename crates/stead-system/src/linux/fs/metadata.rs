//! Files of this process itself, by paths of the running system.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{Access, OFlags, access};

/// Opens a file for reading, all links followed, without waiting for anybody, such as the writer of a FIFO.
pub fn open_followed(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)
}

/// Opens a file for appending that only its owner can read, after creating it if it is not there. A link is refused.
pub fn append_private(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(path)
}

/// Makes a directory that only its owner can enter. Fails where something is.
pub fn make_private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Returns whether what is read of it may never end, or waits for somebody: a FIFO, a device of characters, a socket.
pub fn is_endless(metadata: &Metadata) -> bool {
    let kind = metadata.file_type();
    kind.is_fifo() || kind.is_char_device() || kind.is_socket()
}

/// Fails where this user may not write to what is at a path, all links followed.
pub fn check_writable(path: &Path) -> io::Result<()> {
    Ok(access(path, Access::WRITE_OK)?)
}
