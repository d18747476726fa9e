//! A tree as another one has it.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, Stat, Uid, chownat, fchmod, mkdirat, openat, readlinkat, statat,
    symlinkat,
};
use rustix::process::geteuid;

use super::listing::entries;
use crate::error::FsError;

/// How many directories may be within each other in what is copied.
const DEEPEST: usize = 200;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Copies what is in one directory into another: directories and files with their permissions, links as they are. For root, all
/// keep their owners. What is neither, such as a socket or a device, is left out.
///
/// Guarantees: no link is followed, in neither of them, but for `from` and `to` themselves.
///
/// # Errors
/// At the first thing that cannot be read or made; what was copied stays.
pub fn copy_tree(from: &Path, to: &Path) -> Result<(), FsError> {
    let opened = |path: &Path| {
        let opened = openat(CWD, path, DIRECTORY.difference(OFlags::NOFOLLOW), Mode::empty());
        opened.map_err(|errno| FsError::system("open the directory", path, errno))
    };
    copy_entries((&opened(from)?, &opened(to)?), from, 0)
}

/// Makes a symbolic link where nothing is.
pub fn make_link(target: &str, link: &Path) -> io::Result<()> {
    Ok(rustix::fs::symlink(target, link)?)
}

fn copy_entries((from, to): (&OwnedFd, &OwnedFd), path: &Path, depth: usize) -> Result<(), FsError> {
    if depth > DEEPEST {
        return Err(FsError::system("copy", path, io::Error::other("it has too many directories within each other")));
    }
    for name in entries(from, path)?.keys() {
        let path = &path.join(name);
        let failed = |errno: rustix::io::Errno| FsError::system("copy", path, errno);
        let found = statat(from, name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => copy_directory((from, to), name, path, (&found, depth))?,
            FileType::Symlink => {
                let target = readlinkat(from, name, Vec::new()).map_err(failed)?;
                symlinkat(target, to, name).map_err(failed)?;
                own(to, name, &found).map_err(failed)?;
            }
            FileType::RegularFile => {
                copy_file((from, to), name, &found).map_err(|error| FsError::system("copy", path, error))?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn copy_directory(
    (from, to): (&OwnedFd, &OwnedFd),
    name: &OsStr,
    path: &Path,
    (found, depth): (&Stat, usize),
) -> Result<(), FsError> {
    let failed = |errno: rustix::io::Errno| FsError::system("copy", path, errno);
    mkdirat(to, name, Mode::RWXU).map_err(failed)?;
    let opened = |above: &OwnedFd| openat(above, name, DIRECTORY, Mode::empty()).map_err(failed);
    let (inner, copy) = (opened(from)?, opened(to)?);
    copy_entries((&inner, &copy), path, depth + 1)?;
    own(to, name, found).map_err(failed)?;
    // At last, since it may be one that its owner cannot write to.
    fchmod(&copy, Mode::from_raw_mode(found.st_mode)).map_err(failed)
}

fn copy_file((from, to): (&OwnedFd, &OwnedFd), name: &OsStr, found: &Stat) -> io::Result<()> {
    let source = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let target = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mut source = File::from(openat(from, name, source, Mode::empty())?);
    let mut copy = File::from(openat(to, name, target, Mode::RUSR | Mode::WUSR)?);
    io::copy(&mut source, &mut copy)?;
    own(to, name, found)?;
    Ok(fchmod(&copy, Mode::from_raw_mode(found.st_mode))?)
}

/// Only root can give files away.
fn own(to: &impl AsFd, name: &OsStr, found: &Stat) -> rustix::io::Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let (uid, gid) = (Uid::from_raw(found.st_uid), Gid::from_raw(found.st_gid));
    chownat(to, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_tree_is_copied_with_its_permissions_and_its_links_lead_nowhere_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("a/b")).unwrap();
        fs::create_dir(&to).unwrap();
        fs::write(from.join("a/b/file"), "content").unwrap();
        fs::set_permissions(from.join("a/b/file"), fs::Permissions::from_mode(0o640)).unwrap();
        fs::set_permissions(from.join("a/b"), fs::Permissions::from_mode(0o550)).unwrap();
        symlink("/etc/passwd", from.join("a/link")).unwrap();
        let _socket = UnixListener::bind(from.join("socket")).unwrap();
        copy_tree(&from, &to).unwrap();
        let mode = |path: &str| to.join(path).symlink_metadata().unwrap().mode() & 0o7777;
        assert_eq!(
            (fs::read_to_string(to.join("a/b/file")).unwrap(), mode("a/b/file"), mode("a/b")),
            ("content".into(), 0o640, 0o550)
        );
        assert_eq!(fs::read_link(to.join("a/link")).unwrap(), Path::new("/etc/passwd"));
        assert!(!to.join("socket").exists());
        // What is there already is not replaced.
        assert!(copy_tree(&from, &to).is_err());
    }
}
