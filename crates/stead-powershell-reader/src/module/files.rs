//! The file system as far as modules are read from it.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use stead_system::fs::{FileKind, Handle, Identity, OpenError, Trust, TrustedDirectory, for_each_name, read_once};

/// The names in a directory, and for each whether it may be that of a directory or of a file.
pub type Names = BTreeMap<String, Entry>;

/// The kind of a name in a directory. A link may be either, and so may a name of which the file system does not tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// A directory.
    Directory,
    /// A file.
    File,
    /// A symbolic link, or not known.
    Link,
}

impl Entry {
    /// Returns whether it may be a file.
    pub fn may_be_file(self) -> bool {
        self != Self::Directory
    }

    /// Returns whether it may be a directory.
    pub fn may_be_directory(self) -> bool {
        self != Self::File
    }
}

/// Reads directories and files. All effects of reading modules are here.
pub trait Files {
    /// Lists the names in a directory; names that are not UTF-8 are left out.
    fn list(&self, directory: &Path) -> Result<Stamped<Arc<Names>>, OpenError>;

    /// The content of a file.
    fn read(&self, file: &Path) -> Result<Stamped<Vec<u8>>, OpenError>;
}

/// A value that was read, and the stamp from before it was: a file that changes meanwhile has another one next time.
/// `None` where the
/// system did not say.
pub type Stamped<T> = (T, Option<Identity>);

/// Larger files are not read: the largest script of a known module has 3 MB.
const LARGEST: u64 = 64 << 20;

/// The files of this machine.
///
/// Guarantees: with [`Trust::Root`], nothing is read that anybody but root could change, links included.
#[derive(Debug)]
pub struct Disk<'a> {
    trust: Trust,
    /// Where walks begin: each is opened once for all that is below it.
    roots: &'a [PathBuf],
    /// The directories on the way to the last one: a walk opens each once.
    opened: Mutex<Vec<(PathBuf, TrustedDirectory)>>,
}

impl<'a> Disk<'a> {
    /// Reads what is trusted.
    pub fn new(trust: Trust) -> Self {
        Self::below(&[], trust)
    }

    /// Returns the same access, used mostly for paths below these directories.
    pub fn below(roots: &'a [PathBuf], trust: Trust) -> Self {
        Self { trust, roots, opened: Mutex::default() }
    }

    /// Does something in a directory.
    fn within<T>(
        &self,
        path: &Path,
        work: impl FnOnce(&TrustedDirectory) -> Result<T, OpenError>,
    ) -> Result<T, OpenError> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        while opened.last().is_some_and(|(above, _)| !path.starts_with(above)) {
            opened.pop();
        }
        if opened.is_empty() {
            let root = self.root(path);
            opened.push((root.to_owned(), TrustedDirectory::open(root, self.trust)?));
        }
        while let Some((above, directory)) = opened.last() {
            let Some(name) = path.strip_prefix(above).ok().and_then(|rest| rest.iter().next()) else {
                return work(directory);
            };
            let next = (above.join(name), directory.directory(name)?);
            opened.push(next);
        }
        work(&TrustedDirectory::open(path, self.trust)?)
    }

    /// Returns where the walk to a path begins.
    fn root<'p>(&'p self, path: &'p Path) -> &'p Path {
        self.roots.iter().find(|root| path.starts_with(root)).map_or(path, PathBuf::as_path)
    }

    /// Opens a directory for reading the names in it. The last one on the way is opened for that alone.
    fn listable(&self, path: &Path) -> Result<(Handle, Metadata), OpenError> {
        match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) if self.root(path) != path => {
                self.within(parent, |parent| parent.listable_below(name))
            }
            _ => self.within(path, |directory| {
                let listable = directory.listable().map_err(|source| failed(path, source))?;
                Ok((listable, directory.metadata().clone()))
            }),
        }
    }
}

fn failed(path: &Path, source: io::Error) -> OpenError {
    OpenError::System { path: path.to_owned(), source }
}

impl Files for Disk<'_> {
    fn list(&self, directory: &Path) -> Result<Stamped<Arc<Names>>, OpenError> {
        let (opened, metadata) = self.listable(directory)?;
        let mut names = Names::new();
        let listed = for_each_name(opened, |name, kind| {
            let kind = match kind {
                Some(FileKind::Directory) => Entry::Directory,
                Some(FileKind::File) => Entry::File,
                Some(FileKind::Symlink) | None => Entry::Link,
                Some(FileKind::Special) => return,
            };
            if let Some(name) = name.to_str() {
                names.insert(name.to_owned(), kind);
            }
        });
        listed.map_err(|source| failed(directory, source))?;
        Ok((Arc::new(names), Some(Identity::of(&metadata))))
    }

    fn read(&self, file: &Path) -> Result<Stamped<Vec<u8>>, OpenError> {
        let missing = || failed(file, io::ErrorKind::NotFound.into());
        let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else { return Err(missing()) };
        let (opened, metadata) = self.within(folder, |folder| folder.readable(name))?;
        let size = usize::try_from(metadata.len().min(LARGEST)).unwrap_or(0);
        let mut bytes = Vec::with_capacity(size + 1);
        // Of a file that has the size it had, one call returns all: only a larger one fills the buffer.
        let first = read_once(&opened, &mut bytes).map_err(|source| failed(file, source))?;
        if first != size {
            let read = opened.take(LARGEST + 1 - first as u64).read_to_end(&mut bytes);
            read.map_err(|source| failed(file, source))?;
        }
        if bytes.len() as u64 > LARGEST {
            return Err(failed(file, io::ErrorKind::FileTooLarge.into()));
        }
        Ok((bytes, Some(Identity::of(&metadata))))
    }
}
