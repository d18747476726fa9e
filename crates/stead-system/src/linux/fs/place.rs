//! A name in an open directory.

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    Access, AtFlags, Mode, OFlags, RenameFlags, StatxFlags, accessat, fstat, mkdirat, openat, readlinkat,
    renameat_with, statat, statx, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::durability::Writes;
use super::handle::{How, real_path};
use super::path::SystemPath;
use super::status::Status;
use super::walk::open_named_directory;
use crate::error::FsError;
use crate::kind::FileKind;

/// In a directory with this bit only the owner of a file may take its name away.
const STICKY: u32 = 0o1000;

/// A name in an open directory: where something is, or is to be.
///
/// Invariant: `name` is one component and neither `.` nor `..`.
pub struct Place {
    directory: OwnedFd,
    name: Box<OsStr>,
    path: PathBuf,
    /// True if the directory was found at the very path.
    is_named: bool,
    /// See [`Place::real_directory`].
    real: OnceCell<PathBuf>,
    writes: Writes,
}

impl Place {
    /// Resolves all but the last component; `None` when the directory is not there. What is written there is recorded in
    /// `writes`.
    pub fn find(path: &SystemPath, writes: &Writes) -> Result<Option<Self>, FsError> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(FsError::NoName(path.to_path_buf()));
        };
        let parent = if parent.as_os_str().is_empty() { SystemPath::here(".") } else { parent };
        let found = open_named_directory(&parent)?;
        let place = |(directory, is_named)| Self { is_named, ..Self::new(directory, name, path.to_path_buf(), writes) };
        Ok(found.map(place))
    }

    /// A name in a directory that is open. Fails when it is not a single name.
    pub fn within(directory: &impl AsFd, name: &OsStr, path: PathBuf, writes: &Writes) -> Result<Self, FsError> {
        let single = Path::new(name).file_name() == Some(name);
        let directory = directory.as_fd().try_clone_to_owned();
        match directory {
            Ok(directory) if single => Ok(Self::new(directory, name, path, writes)),
            Ok(_) => Err(FsError::NoName(path)),
            Err(source) => Err(FsError::System { doing: "open the directory of", path, source }),
        }
    }

    fn new(directory: OwnedFd, name: &OsStr, path: PathBuf, writes: &Writes) -> Self {
        Self { directory, name: name.into(), path, is_named: false, real: OnceCell::new(), writes: writes.clone() }
    }

    /// The whole path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The last component.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// The directory.
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// The path of the directory without links, as it was when it was opened or asked for first.
    pub(super) fn real_directory(&self) -> io::Result<&Path> {
        // Where the kernel followed no link to it, and the path is spelled as the kernel does, it would answer the same.
        let named = self.path.parent().filter(|_| self.is_named);
        if let Some(real) = named.or_else(|| self.real.get().map(PathBuf::as_path)) {
            return Ok(real);
        }
        let real = real_path(&self.directory)?;
        Ok(self.real.get_or_init(|| real))
    }

    /// Another name in the same directory.
    pub fn sibling(&self, name: &OsStr) -> Result<Self, FsError> {
        Self::within(&self.directory, name, self.path.with_file_name(name), &self.writes)
    }

    /// Returns the record of the writes there.
    pub fn writes(&self) -> &Writes {
        &self.writes
    }

    /// The directory's own status.
    pub fn directory_status(&self) -> Result<Status, FsError> {
        fstat(&self.directory).map(Status::from).map_err(|errno| self.failed("examine the directory of", errno))
    }

    /// Checks that this name may be given and taken away by this process.
    pub fn check_writable(&self) -> Result<(), FsError> {
        if self.is_mount_point() {
            return Err(FsError::MountPoint(self.path.clone()));
        }
        let allowed = accessat(&self.directory, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS);
        allowed.map_err(|errno| self.failed("write", errno))?;
        let (directory, own) = (self.directory_status()?, geteuid());
        let belongs = |status: &Status| own.is_root() || status.uid == own.as_raw();
        if directory.mode & STICKY == 0 || belongs(&directory) || self.status()?.is_none_or(|status| belongs(&status)) {
            return Ok(());
        }
        Err(self.failed("remove", Errno::PERM))
    }

    /// Returns whether something is mounted at this name, even on a file: it cannot be replaced then.
    fn is_mount_point(&self) -> bool {
        let mount = |name: &OsStr, flags| {
            let found = statx(&self.directory, name, flags | AtFlags::NO_AUTOMOUNT, StatxFlags::MNT_ID).ok()?;
            (found.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(found.stx_mnt_id)
        };
        let own = mount(&self.name, AtFlags::SYMLINK_NOFOLLOW);
        own.zip(mount(OsStr::new(""), AtFlags::EMPTY_PATH)).is_some_and(|(own, around)| own != around)
    }

    /// Returns the status of the node there, without following it.
    pub fn status(&self) -> Result<Option<Status>, FsError> {
        match statat(&self.directory, &*self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat.into())),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(self.failed("examine", errno)),
        }
    }

    /// Returns whether a file that was opened here still has the name, and is unchanged.
    pub(super) fn is_still(&self, former: &Status) -> Result<bool, FsError> {
        Ok(self.status()?.is_some_and(|now| now.identity == former.identity))
    }

    /// Opens what is there, a link itself with [`How::Look`]; `None` when nothing is there.
    pub fn open(&self, how: How) -> Result<Option<OwnedFd>, FsError> {
        match openat(&self.directory, &*self.name, how.flags() | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(fd) => Ok(Some(fd)),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::LOOP) => Err(self.is_instead(FileKind::Symlink, FileKind::File)),
            Err(errno) => Err(self.failed("open", errno)),
        }
    }

    /// The target of the symbolic link that is there.
    pub fn read_link(&self) -> Result<Vec<u8>, FsError> {
        let target = readlinkat(&self.directory, &*self.name, Vec::new());
        target.map(std::ffi::CString::into_bytes).map_err(|errno| self.failed("read the link", errno))
    }

    /// Creates a directory that only its owner can use, and opens it.
    ///
    /// Guarantees: the directory that is returned is one that was created by this user.
    pub fn make_directory(&self) -> Result<OwnedFd, FsError> {
        self.begin_writing()?;
        mkdirat(&self.directory, &*self.name, Mode::RWXU)
            .map_err(|errno| self.failed("create the directory", errno))?;
        self.renamed()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(&self.directory, &*self.name, flags, Mode::empty());
        let directory = opened.map_err(|_| FsError::Exchanged(self.path.clone()))?;
        let status = fstat(&directory).map_err(|errno| self.failed("examine", errno))?;
        if status.st_uid != rustix::process::geteuid().as_raw() {
            return Err(FsError::Exchanged(self.path.clone()));
        }
        Ok(directory)
    }

    /// Gives what is there another name in the same directory, which is an error where something has that.
    pub fn rename_if_free(&self, name: &OsStr) -> Result<(), FsError> {
        self.begin_writing()?;
        self.begin_writing_as(name)?;
        self.writes.keep_moved(self, name)?;
        let renamed = renameat_with(&self.directory, &*self.name, &self.directory, name, RenameFlags::NOREPLACE);
        renamed.map_err(|errno| FsError::system("create", &self.path.with_file_name(name), errno))?;
        self.renamed()
    }

    /// Removes what is there, if it is not a directory. Returns whether something was there.
    pub fn remove(&self) -> Result<bool, FsError> {
        self.unlink(AtFlags::empty())
    }

    /// Removes the empty directory that is there. Returns whether something was there.
    pub fn remove_directory(&self) -> Result<bool, FsError> {
        self.unlink(AtFlags::REMOVEDIR)
    }

    fn unlink(&self, flags: AtFlags) -> Result<bool, FsError> {
        self.begin_writing()?;
        match unlinkat(&self.directory, &*self.name, flags) {
            Ok(()) => self.renamed().map(|()| true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(self.failed("remove", errno)),
        }
    }

    /// To be called before this name is changed.
    pub(super) fn begin_writing(&self) -> Result<(), FsError> {
        self.begin_writing_as(&self.name)
    }

    /// To be called before another name in the directory is changed as well.
    pub(super) fn begin_writing_as(&self, name: &OsStr) -> Result<(), FsError> {
        self.writes.begin(self.directory.as_fd(), &self.path)?;
        self.writes.keep(self, name)
    }

    pub(super) fn written(&self, file: &impl AsFd) -> Result<(), FsError> {
        self.writes.written(file.as_fd(), &self.path)
    }

    /// To be called when this name has changed.
    pub(super) fn renamed(&self) -> Result<(), FsError> {
        self.writes.kept_is_changed(self);
        self.writes.renamed(self.directory.as_fd(), &self.path)
    }

    /// The error that something else is there.
    pub fn is_instead(&self, found: FileKind, wanted: FileKind) -> FsError {
        FsError::WrongKind { path: self.path.clone(), found, wanted }
    }

    pub(super) fn failed(&self, doing: &'static str, errno: Errno) -> FsError {
        if errno == Errno::BUSY && self.is_mount_point() {
            return FsError::MountPoint(self.path.clone());
        }
        FsError::system(doing, &self.path, errno)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_real_directory_is_that_of_the_kernel_however_the_path_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("a/b")).unwrap();
        std::os::unix::fs::symlink("a", top.join("link")).unwrap();
        for (directory, is_named) in
            [("a/b", true), ("a//b", false), ("a/./b", false), ("a/b/../b", false), ("link/b", false), ("./a/b", false)]
        {
            // As text: a path that is joined loses nothing of it.
            let path = format!("{}/{directory}/file", top.display());
            let place = Place::find(&SystemPath::here(path), &Writes::unrecorded()).unwrap().unwrap();
            assert_eq!(place.is_named, is_named, "{directory}");
            assert_eq!(place.real_directory().unwrap(), real_path(&place.directory()).unwrap(), "{directory}");
        }
        let relative = Place::find(&SystemPath::here("Cargo.toml"), &Writes::unrecorded()).unwrap().unwrap();
        assert_eq!(relative.real_directory().unwrap(), std::env::current_dir().unwrap().canonicalize().unwrap());
    }
}
