//! The files of a bundle, where resources and programs can read them.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions, Permissions, set_permissions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::process::geteuid;
use stead_core::bundle::path::normal;
use stead_core::bundle::{Bundle, Entry};

/// A bundle whose files lie in a folder that only this user can enter, until this is dropped.
///
/// Guarantees: the folder is one of memory where the system has one; what a killed process left is removed by the next one.
pub struct Files {
    bundle: Arc<Bundle>,
    /// The paths that the instances of the document create, in the form of the paths of the bundle.
    made: BTreeSet<String>,
    folder: PathBuf,
    /// Locked as long as the folder is in use.
    _lock: File,
}

/// The files of a bundle as a document in one of its folders sees them.
pub struct FilesWithin {
    /// The files.
    pub files: Arc<Files>,
    /// The folder of the document, from that of the outermost one.
    pub folder: Arc<str>,
}

/// Why the files of a bundle cannot be unpacked.
#[derive(Debug, thiserror::Error)]
#[error("cannot unpack the files of the bundle to '{}'", folder.display())]
pub struct UnpackError {
    folder: PathBuf,
    #[source]
    source: io::Error,
}

impl Files {
    /// Unpacks the files of a bundle. `made`: the paths that the instances of the document create, which are not read
    /// from the bundle.
    pub fn unpack(bundle: Arc<Bundle>, made: BTreeSet<String>) -> Result<Self, UnpackError> {
        let base = base(bundle.entries().values().any(is_program));
        let failed = |folder: &Path, source| UnpackError { folder: folder.to_owned(), source };
        for base in bases() {
            remove_abandoned(&base);
        }
        let (folder, lock) = private_folder(&base).map_err(|source| failed(&base, source))?;
        let files = Self { bundle, made, folder, _lock: lock };
        // What fails is removed with it.
        files.write().map_err(|source| failed(&files.folder, source))?;
        Ok(files)
    }

    fn write(&self) -> io::Result<()> {
        let create_folder = |path: &Path| DirBuilder::new().recursive(true).mode(0o700).create(path);
        create_folder(&self.place(""))?;
        for (path, entry) in self.bundle.entries() {
            let place = self.place(path);
            create_folder(place.parent().unwrap_or(&self.folder))?;
            match entry {
                Entry::Folder { .. } => create_folder(&place)?,
                Entry::File { mode, content } => {
                    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&place)?;
                    file.write_all(content)?;
                    file.set_permissions(Permissions::from_mode(*mode))?;
                }
            }
        }
        // From the bottom up, since a folder may not be writable to anybody.
        for (path, entry) in self.bundle.entries().iter().rev() {
            if let Entry::Folder { mode } = entry {
                set_permissions(self.place(path), Permissions::from_mode(*mode))?;
            }
        }
        Ok(())
    }

    /// Where a path of the bundle lies.
    fn place(&self, path: &str) -> PathBuf {
        match path.strip_prefix('/') {
            Some(path) => self.folder.join("machine").join(path),
            None => self.folder.join("document").join(path),
        }
    }

    /// Removes the folder with all that is in it, once nobody reads any of it.
    pub fn remove(&self) {
        remove(&self.folder);
    }

    /// The bundle.
    pub fn bundle(&self) -> &Arc<Bundle> {
        &self.bundle
    }

    /// Where the folder of the document is unpacked, or one below it.
    pub fn folder(&self, folder: &str) -> PathBuf {
        self.place(folder)
    }

    /// Resolves a path that a document in `folder` reads.
    pub fn find(&self, folder: &str, path: &str) -> Source {
        let Some(path) = normal(folder, path) else { return Source::Nowhere };
        let is_made = || self.made.iter().any(|made| is_at_or_below(&path, made));
        if self.bundle.holds(&path) {
            Source::Bundled(self.place(&path))
        } else if path.starts_with('/') || is_made() {
            Source::Machine
        } else {
            Source::Nowhere
        }
    }

    /// The content of a file of the bundle.
    pub fn content(&self, path: &str) -> Option<&[u8]> {
        self.bundle.file(&normal("", path)?).map(|content| &**content)
    }
}

/// Where something is that a document reads.
#[derive(PartialEq, Eq, Debug)]
pub enum Source {
    /// In the bundle, which has it here.
    Bundled(PathBuf),
    /// On the machine: its path is absolute, or the document creates it.
    Machine,
    /// It is not in the bundle.
    Nowhere,
}

impl Drop for Files {
    fn drop(&mut self) {
        self.remove();
    }
}

fn is_at_or_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn is_program(entry: &Entry) -> bool {
    matches!(entry, Entry::File { mode, .. } if mode & 0o111 != 0)
}

const PREFIX: &str = "stead-files-";

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

/// The folder that folders of files are made in: one of memory if there is one, and one that programs can be started from
/// where there are programs.
fn base(has_programs: bool) -> PathBuf {
    let runs = |path: &Path| statvfs(path).is_ok_and(|found| !found.f_flag.contains(StatVfsMountFlags::NOEXEC));
    let fits = |path: &PathBuf| is_safe(path) && (!has_programs || runs(path));
    let mut all = bases();
    let last = all.pop().unwrap_or_default();
    all.into_iter().find(fits).unwrap_or(last)
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
    use std::collections::BTreeMap;

    use super::*;

    fn bundle() -> Arc<Bundle> {
        let file = |mode| Entry::File { mode, content: Arc::from(&b"x"[..]) };
        let entries = [
            ("a/b/run.sh".to_owned(), file(0o755)),
            ("closed".to_owned(), Entry::Folder { mode: 0o500 }),
            ("closed/key".to_owned(), file(0o400)),
            ("/etc/motd".to_owned(), file(0o644)),
        ];
        let document = ("site.yaml".to_owned(), Arc::from("resources: []"));
        Arc::new(Bundle::new(None, document, BTreeMap::from(entries)).unwrap())
    }

    #[test]
    fn files_are_there_with_their_modes_until_nobody_uses_them() {
        let files = Files::unpack(bundle(), BTreeSet::new()).unwrap();
        let mode = |path: &Path| path.symlink_metadata().unwrap().mode() & 0o7777;
        let (folder, script) = (files.folder.clone(), files.folder("a").join("b/run.sh"));
        assert_eq!((mode(&folder), mode(&script), mode(&files.folder("closed"))), (0o700, 0o755, 0o500));
        assert_eq!(std::fs::read(script).unwrap(), b"x");
        drop(files);
        assert!(!folder.exists());
    }

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

    #[test]
    fn a_path_is_in_the_bundle_or_made_by_the_document_or_nowhere() {
        let made = ["out".to_owned(), "roles/web/made".to_owned()];
        let files = Files::unpack(bundle(), BTreeSet::from(made)).unwrap();
        let bundled = |path: &str| Source::Bundled(files.place(path));
        for (folder, path, found) in [
            ("", "a/b/run.sh", bundled("a/b/run.sh")),
            ("", "./a/../a/b", bundled("a/b")),
            ("a", "b/run.sh", bundled("a/b/run.sh")),
            ("", "/etc/../etc/motd", bundled("/etc/motd")),
            ("", "/etc/shadow", Source::Machine),
            ("", "out/deeper", Source::Machine),
            ("roles/web", "made", Source::Machine),
            ("", "outside", Source::Nowhere),
            ("", "../a/b/run.sh", Source::Nowhere),
            ("", "a/b/run.sh/x", Source::Nowhere),
        ] {
            assert_eq!(files.find(folder, path), found, "{folder} {path}");
        }
    }
}
