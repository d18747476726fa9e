//! Files that are read whole, up to a size.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, fstat};
use rustix::io::Errno;

use super::error::FsError;
use super::status::{Kind, Status};
use super::walk::{open, open_resolved};

/// How a file is opened without waiting for anything.
const LOOK: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// A regular file that was read.
pub struct Content {
    /// As it was before it was read.
    pub status: Status,
    /// All of it.
    pub bytes: Vec<u8>,
}

/// Reads the file at a path, which is not a link; `None` when nothing is there.
///
/// Guarantees: those of the module. What is not a regular file, or has more than `max` bytes, is refused; no more than that
/// is ever in memory, even when the file grows while it is read.
pub fn read(path: &Path, max: u64) -> Result<Option<Content>, FsError> {
    open(path, LOOK)?.map(|file| read_open(file, path, max)).transpose()
}

/// The same for a file below the root of a system, as the system itself would read it: links are followed, and lead to what
/// is below the root.
pub fn read_within(root: &Path, path: &Path, max: u64) -> Result<Option<Content>, FsError> {
    open_within(root, path, LOOK)?.map(|file| read_open(file, &below(root, path), max)).transpose()
}

/// Opens what a path leads to below the root of a system, as the system itself would; `None` when nothing is there.
pub fn open_within(root: &Path, path: &Path, flags: OFlags) -> Result<Option<OwnedFd>, FsError> {
    let shown = below(root, path);
    let directory = rustix::fs::open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    match directory.and_then(|directory| open_resolved(&directory, path.as_os_str(), flags, resolve)) {
        Ok(file) => Ok(Some(file)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        // A kernel or a sandbox without the call.
        Err(Errno::NOSYS | Errno::PERM) => open(&shown, flags),
        Err(errno) => Err(FsError::system("open", &shown, errno)),
    }
}

fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// The same for what was opened; `path` is for messages.
pub fn read_open(file: OwnedFd, path: &Path, max: u64) -> Result<Content, FsError> {
    let status = fstat(&file).map(Status::from).map_err(|errno| FsError::system("examine", path, errno))?;
    if status.kind != Kind::File {
        return Err(FsError::WrongKind { path: path.to_owned(), found: status.kind, wanted: Kind::File });
    }
    let too_large = || FsError::TooLarge { path: path.to_owned(), max };
    if status.size > max {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(status.size).unwrap_or_default() + 1);
    let read = File::from(file).take(max + 1).read_to_end(&mut bytes);
    read.map_err(|source| FsError::System { doing: "read", path: path.to_owned(), source })?;
    if bytes.len() as u64 > max { Err(too_large()) } else { Ok(Content { status, bytes }) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_is_too_large_or_not_a_file_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        std::fs::write(at("f"), "12345").unwrap();
        assert_eq!(read(&at("f"), 5).unwrap().unwrap().bytes, b"12345");
        assert!(matches!(read(&at("f"), 4), Err(FsError::TooLarge { max: 4, .. })));
        assert!(matches!(read(root.path(), 4), Err(FsError::WrongKind { found: Kind::Directory, .. })));
        assert!(read(&at("g"), 4).unwrap().is_none());
    }

    #[test]
    fn what_grows_while_it_is_read_is_refused() {
        // Its size is given as 0.
        assert!(matches!(read(Path::new("/proc/version"), 16), Err(FsError::TooLarge { max: 16, .. })));
    }

    #[test]
    fn links_lead_to_what_is_below_the_root() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("etc")).unwrap();
        std::fs::write(root.path().join("etc/f"), "own").unwrap();
        symlink("/etc/f", root.path().join("absolute")).unwrap();
        symlink("../../../etc/f", root.path().join("etc/up")).unwrap();
        symlink("/etc/passwd", root.path().join("etc/passwd-of-root")).unwrap();
        let found = |path: &str| read_within(root.path(), Path::new(path), 100).unwrap().map(|content| content.bytes);
        assert_eq!(found("/absolute").as_deref(), Some(&b"own"[..]));
        assert_eq!(found("etc/up").as_deref(), Some(&b"own"[..]));
        assert_eq!(found("/etc/passwd-of-root"), None);
        assert_eq!(found("/etc/f/g"), None);
    }
}
