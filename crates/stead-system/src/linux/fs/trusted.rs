//! Paths of which every component can be changed by trusted users only.
//!
//! A path is walked from `/`: each component is opened relative to the one before it and judged by its descriptor, and
//! links are resolved by hand. A name in a directory that only a trusted user can write leads to the same thing until a
//! trusted user changes it. By induction that holds for a whole path once it has been walked: nobody else can exchange
//! anything on it later, neither an ancestor nor the file.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, mkdirat, openat, readlinkat, renameat, unlinkat};
use rustix::io::Errno;

/// As many as the kernel follows.
const MAX_LINKS: usize = 40;

const STEP: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// For reading the names in a directory.
const LIST: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The mode bits that let others than the owner write. The group bits are also the mask of a POSIX access list
/// (`system.posix_acl_access`): without them no entry of one grants writing, so that the list need not be read.
const OTHERS_WRITE: u32 = 0o022;

/// In a directory with this bit only the owner of an entry may rename or remove it.
const STICKY: u32 = 0o1000;

/// Who runs, and so whose files are trusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct User {
    /// The effective user id.
    pub id: u32,
}

impl User {
    /// The user that this process runs as.
    pub fn current() -> Self {
        Self { id: rustix::process::geteuid().as_raw() }
    }

    /// Whose files this user trusts. For root it matters: whoever can change what root runs is root. Everybody else
    /// runs what they choose to.
    pub fn trust(self) -> Trust {
        if self.id == 0 { Trust::Root } else { Trust::Everyone }
    }
}

/// Whose files are trusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trust {
    /// Root's only.
    Root,
    /// Root's only, also in a directory like `/tmp`: nobody can take away or exchange there what is root's, and what
    /// has no other name is there because root put it there. For what counts by what is in it, and not by where it is.
    RootAnywhere,
    /// Everybody's: nothing is judged.
    Everyone,
}

/// Why a component of a path is not trusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Distrust {
    /// Another user than root owns it.
    Owner(u32),
    /// It is a directory of another user than root.
    DirectoryOf(u32),
    /// Others than its owner can write it; its mode.
    Writable(u32),
    /// Its directory is one that everybody can create names in, such as `/tmp`.
    SharedDirectory,
}

/// The first component of a path that is not trusted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Untrusted {
    /// The component, behind all links on the way.
    pub component: PathBuf,
    /// Why.
    pub reason: Distrust,
}

impl std::error::Error for Untrusted {}

impl fmt::Display for Untrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let component = self.component.display();
        match self.reason {
            Distrust::Owner(user) | Distrust::DirectoryOf(user) => {
                write!(f, "'{component}' is owned by user {user}, not by root")
            }
            Distrust::Writable(mode) => {
                let who = match mode & OTHERS_WRITE {
                    0o020 => "its group or an access list",
                    _ => "everyone",
                };
                write!(f, "'{component}' can be written by {who} (mode {:04o})", mode & 0o7777)
            }
            Distrust::SharedDirectory => write!(f, "'{component}' is in a directory that everyone can write"),
        }
    }
}

impl Untrusted {
    /// Returns the advice about it.
    pub fn help(&self) -> String {
        let component = self.component.display();
        match self.reason {
            Distrust::Owner(_) => format!("run `chown root '{component}'`"),
            // Whose it is works in it: root's, it would be of no use to them, and what is in it is not checked by that.
            Distrust::DirectoryOf(_) => {
                "put what root is to use into a directory of root, such as below /usr/local".to_owned()
            }
            Distrust::Writable(mode) if mode & OTHERS_WRITE == 0o020 => format!("run `chmod g-w '{component}'`"),
            Distrust::Writable(_) => format!("run `chmod go-w '{component}'`"),
            Distrust::SharedDirectory => "move it to a directory that only root can write".to_owned(),
        }
    }
}

/// Why a path was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Somebody who is not trusted could change it.
    #[error(transparent)]
    Untrusted(#[from] Untrusted),
    /// The system refused it.
    #[error("cannot open '{}'", path.display())]
    System {
        /// The component.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

impl OpenError {
    fn system(path: &Path, errno: Errno) -> Self {
        Self::System { path: path.to_owned(), source: errno.into() }
    }

    fn is(&self, errno: Errno) -> bool {
        matches!(self, Self::System { source, .. } if source.raw_os_error() == Some(errno.raw_os_error()))
    }

    /// Returns whether a component on the way is there and is not a directory.
    pub fn is_not_a_directory(&self) -> bool {
        matches!(self, Self::System { source, .. } if source.kind() == io::ErrorKind::NotADirectory)
    }

    /// Returns whether nothing is there.
    pub fn is_not_found(&self) -> bool {
        let Self::System { source, .. } = self else { return false };
        matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
    }
}

/// The way to a file that may not be there when it is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    /// It is created.
    New,
    /// It is there.
    Existing,
}

/// A directory that was opened and judged, with every component on the way to it.
#[derive(Clone, Debug)]
pub struct TrustedDirectory {
    file: Arc<File>,
    path: PathBuf,
    metadata: Metadata,
    trust: Trust,
}

/// A file, or whatever else a name leads to, that was opened and judged with every component on the way to it.
#[derive(Debug)]
pub struct TrustedFile {
    directory: TrustedDirectory,
    name: OsString,
    metadata: Metadata,
}

impl TrustedDirectory {
    /// Opens a directory for looking names up in it.
    ///
    /// Guarantees: with [`Trust::Root`], nobody but root can change what the path leads to, or create names in it.
    pub fn open(path: &Path, trust: Trust) -> Result<Self, OpenError> {
        match find(path, trust)? {
            Found::Directory(directory) => Ok(directory),
            Found::File(_) => Err(OpenError::system(path, Errno::NOTDIR)),
        }
    }

    /// Opens it after creating the missing part of it, for its owner alone.
    pub fn create(path: &Path, trust: Trust) -> Result<Self, OpenError> {
        match Self::open(path, trust) {
            Err(error) if error.is_not_found() => {}
            opened => return opened,
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Self::open(path, trust) };
        let parent = Self::create(parent, trust)?;
        match mkdirat(&*parent.file, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => Self::open(path, trust),
            Err(errno) => Err(OpenError::system(path, errno)),
        }
    }

    /// Opens what a name in it leads to, links followed.
    pub fn file(&self, name: &OsStr) -> Result<TrustedFile, OpenError> {
        match Walk::from(self.clone()).to(Path::new(name))? {
            Found::File(file) => Ok(file),
            Found::Directory(directory) => Err(OpenError::system(&directory.path, Errno::ISDIR)),
        }
    }

    /// Opens the regular file that a name in it leads to, links followed, for reading; with what the system knew of it
    /// then.
    ///
    /// Guarantees: as of [`Self::file`] and [`TrustedFile::read`], for which it asks the system more often. What has no end
    /// is opened here, and refused.
    pub fn readable(&self, name: &OsStr) -> Result<(File, Metadata), OpenError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match self.plain(name, flags) {
            Ok((file, metadata, _)) if metadata.is_file() => Ok((file, metadata)),
            Ok((_, _, path)) => Err(not_regular(path)),
            Err(error) if error.is(Errno::LOOP) => {
                let file = self.file(name)?;
                Ok((file.read()?, file.metadata))
            }
            Err(error) => Err(error),
        }
    }

    /// Opens the directory that a name in it leads to, links followed, for reading the names in it; with what the system
    /// knew of it then.
    ///
    /// Guarantees: as of [`Self::directory`] and [`Self::listable`], for which it asks the system more often.
    pub fn listable_below(&self, name: &OsStr) -> Result<(OwnedFd, Metadata), OpenError> {
        match self.plain(name, LIST) {
            Ok((file, metadata, path)) => {
                judge_writable(&metadata, &path, self.trust)?;
                Ok((file.into(), metadata))
            }
            Err(error @ OpenError::Untrusted(_)) => Err(error),
            // A link, or what tells in which step it fails.
            Err(OpenError::System { .. }) => {
                let directory = self.directory(name)?;
                let listable = directory.listable();
                let opened = listable.map_err(|source| OpenError::System { path: self.path.join(name), source })?;
                Ok((opened, directory.metadata))
            }
        }
    }

    /// Opens and judges what has that name in it; what is not a name here is a link as far as this is concerned.
    fn plain(&self, name: &OsStr, flags: OFlags) -> Result<(File, Metadata, PathBuf), OpenError> {
        let path = self.path.join(name);
        let failed = |errno| OpenError::system(&path, errno);
        let is_plain = !matches!(name.as_bytes(), b"." | b"..") && !name.as_bytes().contains(&b'/');
        let opened = if is_plain { openat(&*self.file, name, flags, Mode::empty()) } else { Err(Errno::LOOP) };
        let file = File::from(opened.map_err(failed)?);
        let metadata = file.metadata().map_err(|source| OpenError::System { path: path.clone(), source })?;
        judge_entry(&metadata, &path, self.trust)?;
        judge_name(self, &metadata, &path)?;
        Ok((file, metadata, path))
    }

    /// Opens the directory that a name in it leads to, links followed.
    pub fn directory(&self, name: &OsStr) -> Result<Self, OpenError> {
        match Walk::from(self.clone()).to(Path::new(name))? {
            Found::Directory(directory) => Ok(directory),
            Found::File(file) => Err(OpenError::system(&file.path(), Errno::NOTDIR)),
        }
    }

    /// Judges what a program that works in it opens by a path: every component on the way, and at its end a file, or a place in
    /// which others could create one. Something else there, such as a folder or a device, may be another user's.
    pub fn judge(&self, path: &Path) -> Result<(), Untrusted> {
        match Walk::from(self.clone()).to(path) {
            Err(OpenError::Untrusted(untrusted)) if !self.ends_in_no_file(path, &untrusted) => Err(untrusted),
            _ => Ok(()),
        }
    }

    /// Returns whether a path leads to a folder, a device or a socket, which nobody can exchange for one, as only its own owner or
    /// mode is not trusted.
    fn ends_in_no_file(&self, path: &Path, untrusted: &Untrusted) -> bool {
        let end = std::fs::canonicalize(self.path.join(path)).is_ok_and(|end| end == untrusted.component);
        let entry = (untrusted.component.parent(), untrusted.component.file_name());
        let (true, (Some(parent), Some(name))) = (end, entry) else { return false };
        let opened = Self::open(parent, self.trust)
            .ok()
            .and_then(|parent| openat(&*parent.file, name, STEP, Mode::empty()).ok());
        let metadata = opened.and_then(|opened| File::from(opened).metadata().ok());
        metadata.is_some_and(|metadata| !metadata.is_file() && !metadata.is_symlink())
    }

    /// The names in it.
    pub fn names(&self) -> io::Result<BTreeSet<OsString>> {
        let mut names = BTreeSet::new();
        for entry in Dir::new(self.listable()?)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.insert(OsString::from_vec(name));
            }
        }
        Ok(names)
    }

    /// The names of the folders in it; links are none.
    pub fn folders(&self) -> io::Result<BTreeSet<OsString>> {
        let mut names = BTreeSet::new();
        for entry in Dir::new(self.listable()?)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if matches!(entry.file_type(), FileType::Directory | FileType::Unknown) && name != b"." && name != b".." {
                names.insert(OsString::from_vec(name.to_vec()));
            }
        }
        Ok(names)
    }

    /// Creates a file in it that only its owner can read and write. Fails where something has the name.
    pub fn create_file(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&*self.file, name, flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// Opens a file in it for reading and for appending. A new one, which nothing may be in the place of, can only be read by its
    /// owner. A link is refused.
    pub fn append(&self, name: &OsStr, presence: Presence) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let flags = if presence == Presence::New { flags | OFlags::CREATE | OFlags::EXCL } else { flags };
        Ok(openat(&*self.file, name, flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// Opens what has that name in it for reading, without judging it. A link is refused.
    pub fn open_file(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(openat(&*self.file, name, flags, Mode::empty())?.into())
    }

    /// Gives what has a name in it another one, in place of what has that.
    pub fn rename(&self, name: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(renameat(&*self.file, name, &*self.file, to)?)
    }

    /// Takes a name in it away that no directory has.
    pub fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&*self.file, name, AtFlags::empty())?)
    }

    /// A descriptor of it that names can be read from.
    pub fn listable(&self) -> io::Result<OwnedFd> {
        Ok(openat(&*self.file, ".", LIST, Mode::empty())?)
    }

    /// Returns its metadata as it was judged.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Its path, behind all links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path to a name in it through its descriptor, which is good for this process and until this value is dropped.
    pub fn through_descriptor(&self, name: &OsStr) -> PathBuf {
        Path::new("/proc/self/fd").join(self.file.as_raw_fd().to_string()).join(name)
    }
}

impl AsFd for TrustedDirectory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl TrustedFile {
    /// Opens what a path leads to.
    pub fn open(path: &Path, trust: Trust) -> Result<Self, OpenError> {
        match find(path, trust)? {
            Found::File(file) => Ok(file),
            Found::Directory(directory) => Err(OpenError::system(&directory.path, Errno::ISDIR)),
        }
    }

    /// Returns its metadata as it was judged.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The directory that it is in, behind all links.
    pub fn directory(&self) -> &TrustedDirectory {
        &self.directory
    }

    /// Its path, behind all links.
    pub fn path(&self) -> PathBuf {
        self.directory.path.join(&self.name)
    }

    /// Opens it for reading.
    ///
    /// Guarantees: it is a regular file and the one that was judged. What has no end, or waits for somebody to write,
    /// is refused at once.
    pub fn read(&self) -> Result<File, OpenError> {
        let failed = |errno| OpenError::system(&self.path(), errno);
        if !self.metadata.is_file() {
            return Err(not_regular(self.path()));
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(openat(&*self.directory.file, &self.name, flags, Mode::empty()).map_err(failed)?);
        let now = file.metadata().map_err(|source| OpenError::System { path: self.path(), source })?;
        let same = (now.dev(), now.ino()) == (self.metadata.dev(), self.metadata.ino());
        if same { Ok(file) } else { Err(failed(Errno::STALE)) }
    }
}

fn not_regular(path: PathBuf) -> OpenError {
    OpenError::System { path, source: io::Error::new(io::ErrorKind::InvalidInput, "not a regular file") }
}

enum Found {
    Directory(TrustedDirectory),
    File(TrustedFile),
}

/// Checks every component of a path that exists, and that nobody else can create what of it does not.
pub fn judge(path: &Path, trust: Trust) -> Result<(), OpenError> {
    let mut walk = Walk::from(root(trust)?);
    walk.push(&absolute(path)?);
    while let Some(name) = walk.rest.pop() {
        match walk.step(name) {
            Ok(None) => {}
            Ok(Some(_)) => return Ok(()),
            Err(error) if error.is_not_found() => break,
            Err(error) => return Err(error),
        }
    }
    Ok(judge_writable(&walk.at.metadata, &walk.at.path, trust)?)
}

fn absolute(path: &Path) -> Result<PathBuf, OpenError> {
    std::path::absolute(path).map_err(|source| OpenError::System { path: path.to_owned(), source })
}

fn find(path: &Path, trust: Trust) -> Result<Found, OpenError> {
    Walk::from(root(trust)?).to(&absolute(path)?)
}

/// One component after the other.
struct Walk {
    at: TrustedDirectory,
    /// The names that are still to be walked, last first.
    rest: Vec<OsString>,
    links: usize,
}

impl Walk {
    fn from(at: TrustedDirectory) -> Self {
        Self { at, rest: Vec::new(), links: 0 }
    }

    fn to(mut self, path: &Path) -> Result<Found, OpenError> {
        self.push(path);
        while let Some(name) = self.rest.pop() {
            if let Some(file) = self.step(name)? {
                return Ok(Found::File(file));
            }
        }
        // Names can be created in it, although none can be taken away.
        judge_writable(&self.at.metadata, &self.at.path, self.at.trust)?;
        Ok(Found::Directory(self.at))
    }

    fn push(&mut self, path: &Path) {
        let components = path.components().filter(|component| !matches!(component, Component::CurDir));
        self.rest.extend(components.rev().map(|component| component.as_os_str().to_owned()));
    }

    /// Goes to the next component; returns it when it is the last one and no directory.
    fn step(&mut self, name: OsString) -> Result<Option<TrustedFile>, OpenError> {
        if name == "/" {
            self.at = root(self.at.trust)?;
            return Ok(None);
        }
        let path = if name == ".." {
            self.at.path.parent().unwrap_or(Path::new("/")).to_owned()
        } else {
            self.at.path.join(&name)
        };
        let failed = |errno| OpenError::system(&path, errno);
        let file = File::from(openat(&*self.at.file, &name, STEP, Mode::empty()).map_err(failed)?);
        let metadata = file.metadata().map_err(|source| OpenError::System { path: path.clone(), source })?;
        judge_entry(&metadata, &path, self.at.trust)?;
        judge_name(&self.at, &metadata, &path)?;
        if metadata.is_symlink() {
            self.follow(&file, &path)?;
        } else if metadata.is_dir() {
            self.at = TrustedDirectory { file: Arc::new(file), path, metadata, trust: self.at.trust };
        } else if self.rest.is_empty() {
            return Ok(Some(TrustedFile { directory: self.at.clone(), name, metadata }));
        } else {
            return Err(failed(Errno::NOTDIR));
        }
        Ok(None)
    }

    fn follow(&mut self, link: &File, path: &Path) -> Result<(), OpenError> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(OpenError::system(path, Errno::LOOP));
        }
        let target = readlinkat(link, "", Vec::new()).map_err(|errno| OpenError::system(path, errno))?;
        self.push(Path::new(OsStr::from_bytes(target.as_bytes())));
        Ok(())
    }
}

fn root(trust: Trust) -> Result<TrustedDirectory, OpenError> {
    let path = PathBuf::from("/");
    let file = File::from(openat(CWD, "/", STEP, Mode::empty()).map_err(|errno| OpenError::system(&path, errno))?);
    let metadata = file.metadata().map_err(|source| OpenError::System { path: path.clone(), source })?;
    judge_entry(&metadata, &path, trust)?;
    Ok(TrustedDirectory { file: Arc::new(file), path, metadata, trust })
}

/// Judges what a name leads to by its own owner and mode.
fn judge_entry(entry: &Metadata, path: &Path, trust: Trust) -> Result<(), Untrusted> {
    if trust != Trust::Everyone && entry.uid() != 0 {
        let of = if entry.is_dir() { Distrust::DirectoryOf } else { Distrust::Owner };
        return Err(Untrusted { component: path.to_owned(), reason: of(entry.uid()) });
    }
    let is_passage = entry.is_dir() && entry.mode() & STICKY != 0;
    // The mode of a link means nothing.
    if is_passage || entry.is_symlink() { Ok(()) } else { judge_writable(entry, path, trust) }
}

fn judge_writable(entry: &Metadata, path: &Path, trust: Trust) -> Result<(), Untrusted> {
    if trust == Trust::Everyone || entry.mode() & OTHERS_WRITE == 0 {
        return Ok(());
    }
    Err(Untrusted { component: path.to_owned(), reason: Distrust::Writable(entry.mode()) })
}

/// Judges that a name leads to an entry. Whoever can create names in a directory can give a file of root's another name
/// there, but not a directory.
fn judge_name(directory: &TrustedDirectory, entry: &Metadata, path: &Path) -> Result<(), Untrusted> {
    let is_sticky = directory.metadata.mode() & STICKY != 0;
    let is_roots = directory.trust == Trust::RootAnywhere && is_sticky && entry.uid() == 0 && entry.nlink() == 1;
    if entry.is_dir() || is_roots || judge_writable(&directory.metadata, path, directory.trust).is_ok() {
        return Ok(());
    }
    Err(Untrusted { component: path.to_owned(), reason: Distrust::SharedDirectory })
}
