//! Folders that only this user can enter, for as long as a process needs them.

use std::fs::{DirBuilder, File, OpenOptions, Permissions, set_permissions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::process::geteuid;

use super::fs::{User, judge, mounts_below};

const PREFIX: &str = "stead-files-";

/// The longest path of a folder in which that of a program may be: names of sockets have up to 78 bytes below that.
const LONGEST_BASE: usize = 28;

/// A folder with a name of its own that only this user can enter. It is gone when this is dropped, with all that is in it.
///
/// Guarantees: it is one of memory where the system has one; what a killed process left is removed by the next one.
pub struct Scratch {
    path: PathBuf,
    /// Locked as long as the folder is in use.
    _lock: File,
}

/// Why there is no such folder, and where it was to be.
#[derive(Debug)]
pub struct ScratchError {
    /// The folder above it.
    pub above: PathBuf,
    /// The error of the system.
    pub source: io::Error,
}

impl Scratch {
    /// A new folder: one that programs can be started from where it is to hold some.
    pub fn new(has_programs: bool) -> Result<Self, ScratchError> {
        Self::below(bases(), |path| !has_programs || runs(path))
    }

    /// A new folder for what a program keeps for itself while it runs, such as its temporary files and its sockets: on the disk,
    /// as that may be large, and with a path that is short enough for sockets.
    ///
    /// It is where `TMPDIR` says, unless that is too long or others than root could exchange what root has there.
    pub fn for_program() -> Result<Self, ScratchError> {
        let trust = User::current().trust();
        let stated = std::env::var_os("TMPDIR").map(PathBuf::from).filter(|path| path.is_absolute());
        let stated = stated.filter(|path| path.as_os_str().len() <= LONGEST_BASE && judge(path, trust).is_ok());
        Self::below(stated.into_iter().chain(["/tmp", "/var/tmp", "/run"].map(PathBuf::from)).collect(), |_| true)
    }

    /// One in the first of these folders that can have it safely, else in the last. What killed processes left in any is removed.
    fn below(mut bases: Vec<PathBuf>, fits: impl Fn(&Path) -> bool) -> Result<Self, ScratchError> {
        for base in &bases {
            remove_abandoned(base);
        }
        let last = bases.pop().unwrap_or_default();
        let above = bases.into_iter().find(|path| is_safe(path) && fits(path)).unwrap_or(last);
        match private_folder(&above) {
            Ok((path, lock)) => Ok(Self { path, _lock: lock }),
            Err(source) => Err(ScratchError { above, source }),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a folder in it that only this user can enter, with those above it that are missing.
    pub fn create_folder(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)
    }

    /// Writes a file in it where nothing is, with this mode.
    pub fn create_file(&self, path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(content)?;
        file.set_permissions(Permissions::from_mode(mode))
    }

    /// Gives a folder in it another mode.
    pub fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        set_permissions(path, Permissions::from_mode(mode))
    }

    /// Removes it, once nobody reads any of it.
    pub fn remove(&self) {
        remove(&self.path);
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.remove();
    }
}

/// The folders that folders of files can be made in, the best first and the one that is always there last.
fn bases() -> Vec<PathBuf> {
    let shared = PathBuf::from("/dev/shm");
    // The environment of root may come from another user.
    if geteuid().is_root() {
        return vec!["/run".into(), shared, "/tmp".into()];
    }
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    own.into_iter().chain([shared, std::env::temp_dir()]).collect()
}

/// Returns whether programs can be started from a folder.
fn runs(folder: &Path) -> bool {
    statvfs(folder).is_ok_and(|found| !found.f_flag.contains(StatVfsMountFlags::NOEXEC))
}

/// Returns whether this user can create a folder there, and nobody else but root can remove or rename it.
fn is_safe(path: &Path) -> bool {
    const STICKY: u32 = 0o1000;
    let Ok(found) = path.symlink_metadata() else { return false };
    let is_own = found.uid() == 0 || found.uid() == geteuid().as_raw();
    let is_private = found.mode() & 0o022 == 0 || found.mode() & STICKY != 0;
    found.is_dir() && is_own && is_private && rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

/// A new folder that only this user can enter, and its lock.
fn private_folder(base: &Path) -> io::Result<(PathBuf, File)> {
    const ATTEMPTS: usize = 100;
    for _ in 0..ATTEMPTS {
        let folder = base.join(format!("{PREFIX}{:016x}", RandomState::new().hash_one(std::process::id())));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            made => made?,
        }
        // Another process may take it for an abandoned one before it is locked.
        if let Some(lock) = locked(&folder)? {
            return Ok((folder, lock));
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Locks a folder; `None` where another process has locked or removed it.
fn locked(folder: &Path) -> io::Result<Option<File>> {
    let lock = match File::open(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    Ok(Some(lock).filter(|lock| lock.try_lock().is_ok() && folder.exists()))
}

/// Removes the folders of this user that no process has locked. Each is locked until it is gone: whoever has just made it
/// gets the lock, or finds that it is not there any more.
fn remove_abandoned(base: &Path) {
    for entry in base.read_dir().into_iter().flatten().flatten() {
        let is_named = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        let is_own = || entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw());
        if is_named
            && is_own()
            && let Ok(Some(_lock)) = locked(&entry.path())
        {
            remove(&entry.path());
        }
    }
}

fn remove(folder: &Path) {
    // Something that is mounted there is not this folder's.
    if File::open(folder).is_ok_and(|opened| !mounts_below(&opened).is_empty()) {
        tracing::warn!("'{}' is not removed: something is mounted in it", folder.display());
        return;
    }
    // A folder of the bundle may not be writable to anybody; root needs no permission.
    if std::fs::remove_dir_all(folder).is_err() && folder.exists() {
        make_writable(folder);
        let _ = std::fs::remove_dir_all(folder);
    }
}

fn make_writable(folder: &Path) {
    let _ = set_permissions(folder, Permissions::from_mode(0o700));
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            make_writable(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_is_in_use_stays() {
        let base = tempfile::tempdir().unwrap();
        let (in_use, lock) = private_folder(base.path()).unwrap();
        let (left, killed) = private_folder(base.path()).unwrap();
        std::fs::write(left.join("key"), "secret").unwrap();
        drop(killed);
        remove_abandoned(base.path());
        assert_eq!((in_use.exists(), left.exists()), (true, false));
        drop(lock);
    }

    /// How often each of several processes, here threads, makes a folder and removes what it takes for abandoned.
    const ROUNDS: usize = 400;

    #[test]
    fn nobody_removes_what_another_has_just_made() {
        let base = tempfile::tempdir().unwrap();
        let work = || {
            for _ in 0..ROUNDS {
                remove_abandoned(base.path());
                let (folder, lock) = private_folder(base.path()).unwrap();
                std::fs::write(folder.join("key"), "secret").unwrap();
                std::thread::yield_now();
                assert_eq!(std::fs::read(folder.join("key")).unwrap(), b"secret");
                remove(&folder);
                drop(lock);
            }
        };
        std::thread::scope(|scope| (0..16).for_each(|_| drop(scope.spawn(work))));
    }
}
