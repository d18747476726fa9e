//! Mounting file systems on the running system.

use std::ffi::CString;
use std::io;
use std::ops::BitOr;
use std::path::Path;

use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, mount_change,
    mount_remount, unmount,
};

use super::fs::{AsHandle, path_by_handle};

/// The properties of a mount that are not the usual ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flags(MountFlags);

impl Flags {
    /// Nothing.
    pub const NONE: Self = Self(MountFlags::empty());
    /// It changes what is mounted at another place.
    pub const BIND: Self = Self(MountFlags::BIND);
    /// Nothing can be written.
    pub const READ_ONLY: Self = Self(MountFlags::RDONLY);
    /// Programs do not get other rights than those of who starts them.
    pub const NO_SUID: Self = Self(MountFlags::NOSUID);
    /// Devices cannot be used.
    pub const NO_DEVICES: Self = Self(MountFlags::NODEV);
    /// Programs cannot be started.
    pub const NO_PROGRAMS: Self = Self(MountFlags::NOEXEC);
    /// Writes are on the disk at once.
    pub const SYNCHRONOUS: Self = Self(MountFlags::SYNCHRONOUS);
    /// Changes of names are on the disk at once.
    pub const SYNCHRONOUS_NAMES: Self = Self(MountFlags::DIRSYNC);
    /// Times of access are not kept.
    pub const NO_ACCESS_TIMES: Self = Self(MountFlags::NOATIME);
    /// Those of directories are not kept.
    pub const NO_ACCESS_TIMES_OF_DIRECTORIES: Self = Self(MountFlags::NODIRATIME);
    /// Times of access are kept where they are older than those of changes.
    pub const RELATIVE_ACCESS_TIMES: Self = Self(MountFlags::RELATIME);
    /// Times of access are always kept.
    pub const STRICT_ACCESS_TIMES: Self = Self(MountFlags::STRICTATIME);
    /// Times are written late.
    pub const LAZY_TIMES: Self = Self(MountFlags::LAZYTIME);
    /// Symbolic links are not followed.
    pub const NO_LINKS: Self = Self(MountFlags::NOSYMFOLLOW);

    /// Returns whether one of these is among them.
    pub const fn intersect(self, others: Self) -> bool {
        self.0.intersects(others.0)
    }

    /// Those that are not among the others.
    #[must_use]
    pub const fn without(self, others: Self) -> Self {
        Self(self.0.difference(others.0))
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// How mounts and unmounts below a mount pass to its other mounts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Propagation(MountPropagationFlags);

impl Propagation {
    /// In both directions.
    pub const SHARED: Self = Self(MountPropagationFlags::SHARED);
    /// Not at all.
    pub const PRIVATE: Self = Self(MountPropagationFlags::PRIVATE);
    /// To this one, and not from it.
    pub const RECEIVED: Self = Self(MountPropagationFlags::DOWNSTREAM);
    /// Not at all, and it cannot be mounted at another place.
    pub const UNBINDABLE: Self = Self(MountPropagationFlags::UNBINDABLE);

    /// As the former one, for all mounts below.
    #[must_use]
    pub fn recursive(self) -> Self {
        Self(self.0 | MountPropagationFlags::REC)
    }

    /// Returns whether it is the other one, for whichever mounts.
    pub fn is(self, other: Self) -> bool {
        self.0.contains(other.0)
    }
}

/// Mounts a file system at what is open. The data is for the file system itself.
pub fn at(point: &impl AsHandle, source: &str, fstype: &str, flags: Flags, data: &str) -> io::Result<()> {
    let data = CString::new(data)?;
    Ok(mount(source, path_by_handle(point), fstype, flags.0, data.as_c_str())?)
}

/// Mounts what is open at another place as well, without what is mounted below it.
pub fn bind(source: &impl AsHandle, point: &impl AsHandle) -> io::Result<()> {
    Ok(mount_bind(path_by_handle(source), path_by_handle(point))?)
}

/// Like [`bind`], with all that is mounted below it.
pub fn bind_recursive(source: &impl AsHandle, point: &impl AsHandle) -> io::Result<()> {
    Ok(mount_bind_recursive(path_by_handle(source), path_by_handle(point))?)
}

/// Changes the flags of a mount, and with data those of its file system.
pub fn change(point: &impl AsHandle, flags: Flags, data: &str) -> io::Result<()> {
    Ok(mount_remount(path_by_handle(point), flags.0, data)?)
}

/// Changes how mounts below pass to other mounts.
pub fn propagate(point: &impl AsHandle, propagation: Propagation) -> io::Result<()> {
    Ok(mount_change(path_by_handle(point), propagation.0)?)
}

/// Unmounts what is at a path, whose last component is not followed where it is a link.
pub fn remove(point: &Path) -> io::Result<()> {
    Ok(unmount(point, UnmountFlags::NOFOLLOW)?)
}

/// The numbers of a device: of its kind, and of itself.
pub fn device_numbers(device: u64) -> (u32, u32) {
    (rustix::fs::major(device), rustix::fs::minor(device))
}

/// The device that a file stands for, as a number; 0 where it stands for none.
pub fn device_of(metadata: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::rdev(metadata)
}

/// The number of the mount that what is open lies in, as the table of mounts has it.
pub fn holding(opened: &impl AsHandle) -> io::Result<Option<String>> {
    use std::os::fd::AsRawFd as _;
    let path = Path::new("/proc/self/fdinfo").join(opened.as_fd().as_raw_fd().to_string());
    let text = std::fs::read_to_string(path)?;
    Ok(text.lines().find_map(|line| line.strip_prefix("mnt_id:")).map(|id| id.trim().to_owned()))
}
