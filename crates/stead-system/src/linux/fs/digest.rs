//! Digests of all that is at a path.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags, openat, readlinkat};
use sha2::{Digest as _, Sha256};

use super::handle::{How, status_of};
use super::listing::entries;
use super::path::SystemPath;
use super::walk::open;
use crate::error::FsError;
use crate::kind::FileKind;

/// The SHA-256, in hexadecimal digits, of what is at a path: the content and mode of a file, or the names, modes and contents of
/// all that is in a directory, with the targets of links; `None` when nothing is there.
///
/// Guarantees: two trees have the same digest only if a copy of one is a copy of the other. Links in a tree are not followed.
pub fn digest(path: &SystemPath) -> Result<Option<String>, FsError> {
    let Some(found) = open(path, How::Read)? else { return Ok(None) };
    let mut hasher = Sha256::new();
    add(&mut hasher, &found, path)?;
    Ok(Some(stead_core::digest::hex(&hasher.finalize())))
}

fn add(hasher: &mut Sha256, found: &OwnedFd, path: &Path) -> Result<(), FsError> {
    let status = status_of(found, path)?;
    hasher.update(format!(
        "{:?} {:o} {}\n",
        status.kind,
        status.mode,
        status.size * u64::from(status.kind == FileKind::File)
    ));
    match status.kind {
        FileKind::File => {
            let failed = |source: io::Error| FsError::System { doing: "read", path: path.to_owned(), source };
            add_content(hasher, found).map_err(failed)
        }
        FileKind::Directory => {
            for (name, kind) in entries(found, path)? {
                let inside = path.join(&name);
                hasher.update(format!("{} {kind:?} ", name.len()));
                hasher.update(name.as_bytes());
                let failed = |errno| FsError::system("read", &inside, errno);
                match kind {
                    FileKind::File | FileKind::Directory => {
                        let opened = openat(found, &name, How::Read.flags() | OFlags::NOFOLLOW, Mode::empty())
                            .map_err(failed)?;
                        add(hasher, &opened, &inside)?;
                    }
                    FileKind::Symlink => {
                        let target = readlinkat(found, &name, Vec::new()).map_err(failed)?;
                        hasher.update(format!("{} ", target.as_bytes().len()));
                        hasher.update(target.as_bytes());
                    }
                    FileKind::Special => {}
                }
            }
            hasher.update("\n");
            Ok(())
        }
        FileKind::Symlink | FileKind::Special => Ok(()),
    }
}

/// Adds all that a file has from where it is.
pub(super) fn add_content(hasher: &mut Sha256, file: &impl AsFd) -> io::Result<()> {
    // Most files are much smaller: memory that nothing is read into is not touched.
    let mut chunk = Vec::with_capacity(64 << 10);
    loop {
        chunk.clear();
        match rustix::io::retry_on_intr(|| rustix::io::read(file, spare_capacity(&mut chunk)))? {
            0 => return Ok(()),
            _ => hasher.update(&chunk),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_a_copy_would_have_otherwise_is_in_it() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| SystemPath::here(root.path().join(name));
        let make = |name: &str, content: &str| {
            std::fs::create_dir_all(root.path().join(name).join("in")).unwrap();
            std::fs::write(root.path().join(name).join("in/file"), content).unwrap();
            std::os::unix::fs::symlink("file", root.path().join(name).join("in/link")).unwrap();
        };
        make("one", "abc");
        make("same", "abc");
        make("other", "abd");
        make("mode", "abc");
        std::fs::set_permissions(root.path().join("mode/in/file"), Permissions::from_mode(0o4755)).unwrap();
        make("link", "abc");
        std::fs::remove_file(root.path().join("link/in/link")).unwrap();
        std::os::unix::fs::symlink("elif", root.path().join("link/in/link")).unwrap();
        let of = |name: &str| digest(&at(name)).unwrap();
        assert_eq!(of("one"), of("same"));
        for other in ["other", "mode", "link", "one/in", "none"] {
            assert_ne!(of("one"), of(other), "{other}");
        }
        assert_eq!(of("none"), None);
    }
}
