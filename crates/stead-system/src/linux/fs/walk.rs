//! From a path to a descriptor.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, readlinkat};
use rustix::io::Errno;

use super::below::MAX_LINKS;
use super::handle::How;
use super::path::SystemPath;
use super::status::Status;
use super::trust::distrust;
use crate::error::FsError;
use crate::kind::FileKind;

/// A directory that names are looked up in; needs no right to list it.
const STEP: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The root of a system, by whatever path it was named.
const ROOT: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens what a path leads to; `None` when nothing is there.
///
/// Guarantees: those of the module. With [`How::Look`] a link as the last component is opened itself, else it is an error.
pub fn open(path: &SystemPath, how: How) -> Result<Option<OwnedFd>, FsError> {
    let flags = how.flags();
    let opened = match open_without_links(path, flags) {
        // Links on the way are rare; so is a kernel or a sandbox without the call.
        Err(Errno::LOOP | Errno::NOSYS | Errno::PERM) => return open_by_steps(path, flags),
        opened => opened,
    };
    found(opened, path, "open")
}

/// Opens a directory to look names up in; `None` when nothing is there.
pub fn open_directory(path: &SystemPath) -> Result<Option<OwnedFd>, FsError> {
    Ok(open_named_directory(path)?.map(|(directory, _)| directory))
}

/// [`open_directory`], with true if what was opened lies at the very path: no link leads to it, and it has no other spelling.
pub(super) fn open_named_directory(path: &SystemPath) -> Result<Option<(OwnedFd, bool)>, FsError> {
    match open_without_links(path, STEP) {
        // A link as the last component is "no directory" as well; here it may be followed.
        Err(Errno::LOOP | Errno::NOTDIR | Errno::NOSYS | Errno::PERM) => {
            Ok(Walk::run(path)?.map(|directory| (directory, false)))
        }
        opened => Ok(found(opened, path, "open the directory")?.map(|directory| (directory, is_spelled_out(path)))),
    }
}

/// Opens the file that lies at the very path, for reading; `None` for everything else.
pub(super) fn open_file_at(path: &SystemPath) -> Option<(OwnedFd, Status)> {
    let opened = is_spelled_out(path).then(|| open_without_links(path, How::Read.flags()))?.ok()?;
    let status = fstat(&opened).map(Status::from).ok()?;
    (status.kind == FileKind::File).then_some((opened, status))
}

/// Returns whether a path begins at the root of the running system and has no component that stands for another.
fn is_spelled_out(path: &SystemPath) -> bool {
    let Some(names) = path.as_os_str().as_bytes().strip_prefix(b"/").filter(|_| path.in_root().is_none()) else {
        return false;
    };
    names.is_empty() || names.split(|byte| *byte == b'/').all(|name| !matches!(name, b"" | b"." | b".."))
}

fn open_without_links(path: &SystemPath, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match path.in_root() {
        None => open_resolved(&CWD, path.as_os_str(), flags | OFlags::NOFOLLOW, resolve),
        Some((root, within)) => {
            let root = rustix::fs::open(root, ROOT, Mode::empty())?;
            open_resolved(&root, within.as_os_str(), flags | OFlags::NOFOLLOW, resolve | ResolveFlags::IN_ROOT)
        }
    }
}

/// openat2(2). The kernel asks to try again where something was renamed or mounted meanwhile.
pub(super) fn open_resolved(
    directory: &impl AsFd,
    path: &OsStr,
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    // A file under a lease answers the same for as long as that lasts.
    const TRIES: usize = 64;
    let open = || openat2(directory, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve);
    let is_final = |opened: &Result<OwnedFd, Errno>| !matches!(opened, Err(Errno::AGAIN | Errno::INTR));
    std::iter::repeat_with(open).take(TRIES).find(is_final).unwrap_or(Err(Errno::AGAIN))
}

fn open_by_steps(path: &SystemPath, flags: OFlags) -> Result<Option<OwnedFd>, FsError> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Walk::run(path) };
    let Some(parent) = Walk::run(&parent)? else { return Ok(None) };
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(parent, name, flags, Mode::empty()) {
        Err(Errno::LOOP) => {
            Err(FsError::WrongKind { path: path.to_path_buf(), found: FileKind::Symlink, wanted: FileKind::File })
        }
        opened => found(opened, path, "open"),
    }
}

fn found(opened: Result<OwnedFd, Errno>, path: &Path, doing: &'static str) -> Result<Option<OwnedFd>, FsError> {
    match opened {
        Ok(fd) => Ok(Some(fd)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(FsError::system(doing, path, errno)),
    }
}

/// One component after the other, so that each link can be judged by where it is.
struct Walk<'a> {
    path: &'a SystemPath,
    at: OwnedFd,
    /// In a root: the root, and the directories on the way from it.
    above: Option<Vec<OwnedFd>>,
    /// Where that is, for messages.
    place: PathBuf,
    /// The names that are still to be walked, last first.
    rest: Vec<OsString>,
    links: usize,
}

impl<'a> Walk<'a> {
    fn run(path: &'a SystemPath) -> Result<Option<OwnedFd>, FsError> {
        let failed = |errno| FsError::system("open", path, errno);
        let at = match path.in_root() {
            None => openat(CWD, ".", STEP, Mode::empty()),
            Some((root, _)) => openat(CWD, root, ROOT, Mode::empty()),
        };
        let at = at.map_err(failed)?;
        let (above, place, rest) = match path.in_root() {
            None => (None, PathBuf::new(), &**path),
            Some((root, within)) => (Some(Vec::new()), root.to_owned(), within),
        };
        let mut walk = Self { path, at, above, place, rest: Vec::new(), links: 0 };
        walk.push(rest);
        while let Some(name) = walk.rest.pop() {
            match walk.step(&name) {
                Err(FsError::System { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                    return Ok(None);
                }
                stepped => stepped?,
            }
        }
        Ok(Some(walk.at))
    }

    fn push(&mut self, path: &Path) {
        let components = path.components().filter(|component| !matches!(component, Component::CurDir));
        self.rest.extend(components.rev().map(|component| component.as_os_str().to_owned()));
    }

    fn step(&mut self, name: &OsString) -> Result<(), FsError> {
        if self.above.is_some() && (name == ".." || name == "/") {
            self.go_up(name == "/");
            return Ok(());
        }
        self.place.push(name);
        match openat(&self.at, name, STEP, Mode::empty()) {
            Ok(next) => {
                let former = std::mem::replace(&mut self.at, next);
                if let Some(above) = &mut self.above {
                    above.push(former);
                }
                Ok(())
            }
            // Which of the two it is for a link depends on the kernel.
            Err(Errno::NOTDIR | Errno::LOOP) => self.follow(name),
            Err(errno) => Err(self.failed(errno)),
        }
    }

    /// To the directory above, or to the root, which is above itself.
    fn go_up(&mut self, to_the_root: bool) {
        let (Some(above), Some((root, _))) = (&mut self.above, self.path.in_root()) else { return };
        if to_the_root {
            above.truncate(1);
            self.place = root.join("_");
        }
        if let Some(directory) = above.pop() {
            self.at = directory;
        }
        if self.place != root {
            self.place.pop();
        }
    }

    fn follow(&mut self, name: &OsString) -> Result<(), FsError> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let link = openat(&self.at, name, flags, Mode::empty()).map_err(|errno| self.failed(errno))?;
        let status = fstat(&link).map_err(|errno| self.failed(errno))?;
        if FileType::from_raw_mode(status.st_mode) != FileType::Symlink {
            return Err(self.failed(Errno::NOTDIR));
        }
        let directory = fstat(&self.at).map_err(|errno| self.failed(errno))?;
        if let Some(because) = distrust(&Status::from(directory), &Status::from(status)) {
            return Err(FsError::UntrustedLink { link: self.place.clone(), because });
        }
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(FsError::TooManyLinks(self.path.to_path_buf()));
        }
        let target = readlinkat(&link, "", Vec::new()).map_err(|errno| self.failed(errno))?;
        self.place.pop();
        self.push(Path::new(OsStr::from_bytes(target.as_bytes())));
        Ok(())
    }

    fn failed(&self, errno: Errno) -> FsError {
        FsError::system("open the directory", &self.place, errno)
    }
}
