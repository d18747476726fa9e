//! Changes of what is open.

use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use rustix::fs::{AtFlags, Gid, Mode, Uid, chmod, chownat, fchmod, fchown};
use rustix::io::Errno;

use super::durability::Writes;
use super::ownership::Ownership;
use crate::error::FsError;

impl Writes {
    /// Changes the owner and the mode of a file or directory that is open; `None` leaves the mode as it is. A file may have been
    /// opened to be examined only.
    ///
    /// Guarantees: as durable as these writes are to be, once this returns.
    pub fn change(
        &self,
        opened: &impl AsFd,
        path: &Path,
        ownership: Ownership,
        mode: Option<u32>,
    ) -> Result<(), FsError> {
        self.keep_open(opened, path)?;
        // The owner first: the system takes set-user-id away when the owner changes.
        set_owner(opened, ownership).map_err(|errno| FsError::system("change the owner of", path, errno))?;
        if let Some(mode) = mode {
            set_mode(opened, mode).map_err(|errno| FsError::system("change the mode of", path, errno))?;
        }
        self.changed(opened, path)
    }
}

/// The one way to another owner of what is open.
pub(super) fn set_owner(opened: &impl AsFd, ownership: Ownership) -> Result<(), Errno> {
    if ownership.is_none() {
        return Ok(());
    }
    let (uid, gid) = (ownership.uid.map(Uid::from_raw), ownership.gid.map(Gid::from_raw));
    match fchown(opened, uid, gid) {
        Err(Errno::BADF) => chownat(opened, "", uid, gid, AtFlags::EMPTY_PATH),
        changed => changed,
    }
}

/// The one way to another mode of what is open.
pub(super) fn set_mode(opened: &impl AsFd, mode: u32) -> Result<(), Errno> {
    let mode = Mode::from_raw_mode(mode);
    match fchmod(opened, mode) {
        Err(Errno::BADF) => chmod(format!("/proc/self/fd/{}", opened.as_fd().as_raw_fd()), mode),
        changed => changed,
    }
}
