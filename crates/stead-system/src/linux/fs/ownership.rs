//! Owners of files.

use std::path::Path;

use rustix::fs::Gid;
use rustix::io::Errno;
use rustix::process::{getegid, geteuid, getgroups};

use super::status::Status;
use crate::error::FsError;

/// An owner and a group; what is `None` is left as it is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Ownership {
    /// The owner.
    pub uid: Option<u32>,
    /// The group.
    pub gid: Option<u32>,
}

impl Ownership {
    /// Returns whether there is nothing to change.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }

    /// Returns it with the parts that it leaves as they are taken from another one.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { uid: self.uid.or(other.uid), gid: self.gid.or(other.gid) }
    }

    /// Checks that this process may make what it creates at a path belong so: root may, others only what they are.
    pub fn check_allowed(self, path: &Path) -> Result<(), FsError> {
        let is_own = |gid: u32| {
            gid == getegid().as_raw() || getgroups().is_ok_and(|groups| groups.contains(&Gid::from_raw(gid)))
        };
        let own = self.uid.is_none_or(|uid| uid == geteuid().as_raw()) && self.gid.is_none_or(is_own);
        let allowed = own || geteuid().is_root();
        if allowed { Ok(()) } else { Err(FsError::system("change the owner of", path, Errno::PERM)) }
    }

    /// Returns whether it takes a file away from a user who may still have it open, and could write to it afterwards.
    ///
    /// Then the file must not change hands in place: its new owner gets a new one with the same content.
    pub fn takes_over(self, file: &Status) -> bool {
        let trusted = file.uid == 0 || file.uid == geteuid().as_raw();
        !trusted && self.uid.is_some_and(|uid| uid != file.uid)
    }

    /// Returns the part of it that differs from a status.
    #[must_use]
    pub fn beyond(self, status: &Status) -> Self {
        Self { uid: self.uid.filter(|uid| *uid != status.uid), gid: self.gid.filter(|gid| *gid != status.gid) }
    }
}
