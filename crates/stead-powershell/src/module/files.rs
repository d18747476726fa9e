//! The file system as far as modules are read from it.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::buffer::spare_capacity;
use rustix::fs::{Dir, FileType};
use stead_host::cache::Stamp;
use stead_host::fs::{OpenError, Trust, TrustedDirectory};

/// What a directory holds: whether each name may be that of a directory, and whether of a file.
pub type Names = BTreeMap<String, Entry>;

/// What a name in a directory is. A link may be either, and so may what the file system does not tell.
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
    /// Whether it may be a file.
    pub fn may_be_file(self) -> bool {
        self != Self::Directory
    }

    /// Whether it may be a directory.
    pub fn may_be_directory(self) -> bool {
        self != Self::File
    }
}

/// Reads directories and files. All effects of reading modules are here.
pub trait Files {
    /// What a directory holds; names that are not UTF-8 are left out.
    fn list(&self, directory: &Path) -> Result<Stamped<Arc<Names>>, OpenError>;

    /// The content of a file.
    fn read(&self, file: &Path) -> Result<Stamped<Vec<u8>>, OpenError>;
}

/// What was read, and the stamp from before it was: what changes meanwhile has another one next time. `None` where the
/// system did not say.
pub type Stamped<T> = (T, Option<Stamp>);

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

    /// The same, mostly what is below these directories.
    pub fn below(roots: &'a [PathBuf], trust: Trust) -> Self {
        Self { trust, roots, opened: Mutex::default() }
    }

    fn open(&self, path: &Path) -> Result<TrustedDirectory, OpenError> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        while opened.last().is_some_and(|(above, _)| !path.starts_with(above)) {
            opened.pop();
        }
        let (above, mut directory) = if let Some(last) = opened.last() {
            last.clone()
        } else {
            let root = self.roots.iter().find(|root| path.starts_with(root)).map_or(path, PathBuf::as_path);
            let root = (root.to_owned(), TrustedDirectory::open(root, self.trust)?);
            opened.push(root.clone());
            root
        };
        let mut at = above.clone();
        for name in path.strip_prefix(&above).unwrap_or(Path::new("")) {
            at.push(name);
            directory = directory.directory(name)?;
            opened.push((at.clone(), directory.clone()));
        }
        Ok(directory)
    }
}

fn failed(path: &Path, source: io::Error) -> OpenError {
    OpenError::System { path: path.to_owned(), source }
}

impl Files for Disk<'_> {
    fn list(&self, directory: &Path) -> Result<Stamped<Arc<Names>>, OpenError> {
        let opened = self.open(directory)?;
        let stamp = Stamp::of(opened.metadata());
        let opened = opened.listable().map_err(|source| failed(directory, source))?;
        let mut names = Names::new();
        for entry in Dir::new(opened).map_err(|errno| failed(directory, errno.into()))? {
            let entry = entry.map_err(|errno| failed(directory, errno.into()))?;
            let kind = match entry.file_type() {
                FileType::Directory => Entry::Directory,
                FileType::RegularFile => Entry::File,
                FileType::Symlink | FileType::Unknown => Entry::Link,
                _ => continue,
            };
            if let Some(name) = entry.file_name().to_str().ok().filter(|name| !matches!(*name, "." | "..")) {
                names.insert(name.to_owned(), kind);
            }
        }
        Ok((Arc::new(names), Some(stamp)))
    }

    fn read(&self, file: &Path) -> Result<Stamped<Vec<u8>>, OpenError> {
        let missing = || failed(file, io::ErrorKind::NotFound.into());
        let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else { return Err(missing()) };
        let (opened, metadata) = self.open(folder)?.readable(name)?;
        let size = usize::try_from(metadata.len().min(LARGEST)).unwrap_or(0);
        let mut bytes = Vec::with_capacity(size + 1);
        // Of a file that has the size it had, one call returns all: only a larger one fills the buffer.
        let first =
            rustix::io::read(&opened, spare_capacity(&mut bytes)).map_err(|errno| failed(file, errno.into()))?;
        if first != size {
            let read = opened.take(LARGEST + 1 - first as u64).read_to_end(&mut bytes);
            read.map_err(|source| failed(file, source))?;
        }
        if bytes.len() as u64 > LARGEST {
            return Err(failed(file, io::ErrorKind::FileTooLarge.into()));
        }
        Ok((bytes, Some(Stamp::of(&metadata))))
    }
}
