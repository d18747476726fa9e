//! The mounts below a directory.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::handle::{How, real_path};
use super::place::Place;
use crate::error::FsError;

/// The paths below an open directory, relative to it, at which something is mounted. None where the system does not tell.
pub fn mounts_below(directory: &impl AsFd) -> Vec<PathBuf> {
    let Ok(top) = real_path(directory) else { return Vec::new() };
    let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let below = |line: &[u8]| {
        let (id, path) = mount_of(line)?;
        let relative = path.strip_prefix(&top).ok().filter(|relative| !relative.as_os_str().is_empty())?;
        is_seen(id, &path).then(|| relative.to_owned())
    };
    table.split(|byte| *byte == b'\n').filter_map(below).collect()
}

/// Fails where a directory cannot be removed with everything in it, because it is a mount point or has one below it.
pub fn check_unmounted(place: &Place) -> Result<(), FsError> {
    place.check_writable()?;
    let Ok(Some(directory)) = place.open(How::Passage) else { return Ok(()) };
    first_mount(&directory, place.path())
}

/// Fails where something is mounted below an open directory, whose path is `path`.
pub(super) fn first_mount(directory: &impl AsFd, path: &Path) -> Result<(), FsError> {
    match mounts_below(directory).into_iter().next() {
        Some(below) => Err(FsError::MountPoint(path.join(below))),
        None => Ok(()),
    }
}

/// The number of a mount and where it is; see proc(5).
fn mount_of(line: &[u8]) -> Option<(u64, PathBuf)> {
    let mut fields = line.split(|byte| *byte == b' ');
    let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    Some((id, PathBuf::from(OsString::from_vec(unescaped(fields.nth(3)?)))))
}

/// A path in which space, tab, newline and backslash are written as `\` and three octal digits.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { behind.get(3..).unwrap_or_default() } else { behind };
    }
    bytes
}

/// Returns whether a mount is visible at its path, and not hidden by another one. Queries no remote file system.
fn is_seen(id: u64, path: &Path) -> bool {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    let found = statx(CWD, path, flags, StatxFlags::MNT_ID);
    found.is_ok_and(|found| found.stx_mask & StatxFlags::MNT_ID.bits() == 0 || found.stx_mnt_id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_table_says_where_something_is_mounted() {
        let line = br"36 35 98:0 /mnt1 /mnt/a\040b\134c rw,noatime master:1 - ext3 /dev/root rw";
        assert_eq!(mount_of(line), Some((36, PathBuf::from(r"/mnt/a b\c"))));
        assert_eq!(mount_of(b""), None);
    }
}
