//! The tree below the root of an operating system: the only access to it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, fstat, readlinkat, statat};
use rustix::io::Errno;

use super::handle::{How, real_path};
use super::listing::entries;
use super::path::{SystemPath, SystemRoot};
use super::read::{Content, read_open};
use super::status::Status;
use super::walk::{open, open_directory, open_resolved};
use crate::error::FsError;
use crate::kind::FileKind;

impl SystemRoot {
    /// Opens the file at a path as the system itself would, following all links; `None` when nothing is there.
    pub fn open(&self, path: impl AsRef<Path>, how: How) -> Result<Option<OwnedFd>, FsError> {
        let path = path.as_ref();
        let within = path.strip_prefix("/").unwrap_or(path);
        let within = if within.as_os_str().is_empty() { Path::new(".") } else { within };
        let directory =
            rustix::fs::open(self.path(), OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        match directory.and_then(|directory| open_resolved(&directory, within.as_os_str(), how.flags(), resolve)) {
            Ok(file) => Ok(Some(file)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            // A kernel or a sandbox without the call.
            Err(Errno::NOSYS | Errno::PERM) => open(&self.at(path), how),
            Err(errno) => Err(FsError::system("open", &self.path().join(within), errno)),
        }
    }

    /// Reads a file as the system itself would, all links followed; `None` when nothing is there.
    ///
    /// Guarantees: as of [`super::read`].
    pub fn read(&self, path: impl AsRef<Path>, max: u64) -> Result<Option<Content>, FsError> {
        let path = path.as_ref();
        let shown = self.path().join(path.strip_prefix("/").unwrap_or(path));
        self.open(path, How::Read)?.map(|file| read_open(file, &shown, max)).transpose()
    }

    /// Reads a text file like [`Self::read`], with invalid UTF-8 replaced; `None` also when it cannot be read.
    pub fn text(&self, path: impl AsRef<Path>, max: u64) -> Option<String> {
        let content = self.read(path, max).ok()??;
        Some(String::from_utf8_lossy(&content.bytes).into_owned())
    }

    /// The status of the file at a path, following all links; `None` when nothing can be seen there.
    pub fn status(&self, path: impl AsRef<Path>) -> Option<Status> {
        let opened = self.open(path, How::Look).ok()??;
        fstat(&opened).ok().map(Status::from)
    }

    /// The names in a directory, all links to it followed, and what has them; none where there is no directory.
    pub fn entries(&self, path: impl AsRef<Path>) -> Result<BTreeMap<OsString, FileKind>, FsError> {
        let path = path.as_ref();
        let directory = match self.open(path, How::Directory) {
            Err(FsError::System { source, .. }) if source.kind() == std::io::ErrorKind::NotADirectory => None,
            opened => opened?,
        };
        directory.map_or_else(|| Ok(BTreeMap::new()), |directory| entries(&directory, self.path()))
    }

    /// The root as an argument of a program that opens paths below it by itself; `None` for the running system.
    ///
    /// Guarantees: of these paths, as things are, none leads out of the root by a link, nor does an entry of a directory that is
    /// one of them.
    pub fn for_program(&self, paths: &[&str]) -> Result<Option<&Path>, FsError> {
        let Some(root) = self.directory() else { return Ok(None) };
        for path in paths {
            self.check_for_program(Path::new(path))?;
        }
        Ok(Some(root))
    }

    /// Fails where a program that opens a path below the root by itself, or an entry of a directory there, would leave
    /// the root.
    fn check_for_program(&self, within: &Path) -> Result<(), FsError> {
        let root = self.path();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = rustix::fs::open(root, flags, Mode::empty()).map_err(|errno| FsError::system("open", root, errno))?;
        let links = self.entries(within)?.into_iter().filter(|(_, kind)| *kind == FileKind::Symlink);
        for path in links.map(|(name, _)| within.join(name)).chain([within.to_owned()]) {
            // A file that is missing or cannot be opened is not opened by the program either.
            let opened = open_resolved(&top, path.as_os_str(), OFlags::PATH, ResolveFlags::BENEATH);
            if opened.is_err_and(|errno| errno == Errno::XDEV) {
                return Err(FsError::LeavesRoot(root.join(path)));
            }
        }
        Ok(())
    }
}

impl SystemPath {
    /// Fails where a program that is called with this path would leave the root of another system, by a link on the way or an
    /// entry of the directory that is there.
    pub fn check_for_program(&self) -> Result<(), FsError> {
        self.in_root().map_or(Ok(()), |(_, within)| self.system().check_for_program(within))
    }

    /// The status of the file at this path, without following a link; `None` when nothing can be seen there.
    pub fn status(&self) -> Option<Status> {
        if self.system().is_running() {
            return statat(CWD, &**self, AtFlags::SYMLINK_NOFOLLOW).ok().map(Status::from);
        }
        let opened = open(self, How::Look).ok()??;
        fstat(&opened).ok().map(Status::from)
    }

    /// The status of the file at this path, following all links as the system itself would; `None` when nothing can be
    /// seen there.
    pub fn followed(&self) -> Option<Status> {
        match self.in_root() {
            None => statat(CWD, &**self, AtFlags::empty()).ok().map(Status::from),
            Some((_, within)) => self.system().status(within),
        }
    }

    /// The target of the link that is there; `None` where there is none.
    pub fn link_target(&self) -> Option<PathBuf> {
        let target = if self.system().is_running() {
            readlinkat(CWD, &**self, Vec::new())
        } else {
            readlinkat(open(self, How::Look).ok()??, "", Vec::new())
        };
        target.ok().map(|target| OsString::from_vec(target.into_bytes()).into())
    }

    /// The directory that is there, by a path without links, for programs; `None` when nothing is there.
    pub fn real_directory(&self) -> Result<Option<PathBuf>, FsError> {
        let Some(directory) = open_directory(self)? else { return Ok(None) };
        real_path(&directory).map(Some).map_err(|source| FsError::System {
            doing: "examine",
            path: self.to_path_buf(),
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::linux::fs::{Place, Writes};

    /// A system with links of which those to `/etc` would lead to the running one; and a directory besides it.
    fn system() -> (tempfile::TempDir, SystemRoot) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        for made in ["outside", "root", "root/etc", "root/etc/d"] {
            fs::create_dir(folder.path().join(made)).unwrap();
        }
        fs::write(root.join("etc/f"), "own").unwrap();
        fs::write(folder.path().join("outside/f"), "outside").unwrap();
        symlink("/etc/f", root.join("absolute")).unwrap();
        symlink("../../../etc/f", root.join("etc/up")).unwrap();
        symlink("/etc/passwd", root.join("etc/passwd-of-root")).unwrap();
        symlink("/etc/d", root.join("directory")).unwrap();
        symlink("../../..", root.join("etc/above")).unwrap();
        symlink(folder.path().join("outside"), root.join("out")).unwrap();
        symlink("/proc/self/root", root.join("magic")).unwrap();
        let system = SystemRoot::below(&root);
        (folder, system)
    }

    #[test]
    fn links_lead_to_what_is_below_the_root() {
        let (folder, system) = system();
        let found = |path: &str| system.read(path, 100).unwrap().map(|content| content.bytes);
        for path in ["/absolute", "etc/up", "etc/above/etc/f", "/etc/../../etc/f"] {
            assert_eq!(found(path).as_deref(), Some(&b"own"[..]), "{path}");
        }
        for path in ["/etc/passwd-of-root", "/etc/f/g", "out/f", "magic/etc/passwd"] {
            assert_eq!(found(path), None, "{path}");
        }
        assert!(system.at("out/f").status().is_none() && system.at("out").followed().is_none());
        assert_eq!(system.at("out").link_target(), Some(folder.path().join("outside")));
        assert_eq!(system.at("absolute").followed().unwrap().size, 3);
    }

    /// Also for paths extended after they were resolved: their last component may be a link, which may change.
    #[test]
    fn what_is_created_is_below_the_root() {
        let (folder, system) = system();
        let place = |path: SystemPath| Place::find(&path, &Writes::unrecorded()).unwrap();
        for path in [system.at("directory").join("new"), system.at("directory/new"), system.at("x").join("/etc/d/new")]
        {
            place(path).unwrap().make_directory().unwrap();
            fs::remove_dir(folder.path().join("root/etc/d/new")).unwrap();
        }
        for path in [system.at("out").join("f"), system.at("out/f"), system.at("magic").join("etc/passwd")] {
            assert!(place(path).is_none());
        }
        assert_eq!(open_directory(&system.at("out")).unwrap().map(drop), None);
        let above = system.at("etc/above").join("../../outside/f");
        assert!(open(&above, How::Read).unwrap().is_none(), "{above}");
        assert_eq!(system.at("directory").real_directory().unwrap(), Some(folder.path().join("root/etc/d")));
        assert!(matches!(Place::find(&system.at("/"), &Writes::unrecorded()), Err(FsError::NoName(_))));
    }

    #[test]
    fn a_program_is_not_given_a_root_that_it_would_leave() {
        let (_folder, system) = system();
        assert!(system.for_program(&["etc/d", "etc/f", "usr"]).unwrap().is_some());
        for path in ["directory", "out/f", "etc", "magic"] {
            let error = system.for_program(&[path]).unwrap_err();
            assert!(matches!(error, FsError::LeavesRoot(_)), "{path}: {error}");
        }
        assert!(SystemRoot::running().for_program(&["etc"]).unwrap().is_none());
    }
}
