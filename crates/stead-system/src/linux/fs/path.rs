//! Paths below the root of an operating system.

use std::ffi::OsStr;
use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::below::below_root;

/// The operating system that is managed: the running one, or the one below a directory.
///
/// Guarantees: nothing gives its directory to whoever works on files. What is below it is found by [`Self::at`], which opens no
/// link of another system as one of this, or read by this type, which reads what that system itself would.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct SystemRoot(Option<Arc<Path>>);

impl SystemRoot {
    /// The system that runs.
    pub fn running() -> Self {
        Self(None)
    }

    /// The system below a directory; below `/` that is the running one.
    pub fn below(root: &Path) -> Self {
        Self((root != Path::new("/")).then(|| root.into()))
    }

    /// Returns whether it is the running system, so that the state of its kernel and services counts.
    pub fn is_running(&self) -> bool {
        self.0.is_none()
    }

    /// Its directory; `None` for the running system.
    pub(super) fn directory(&self) -> Option<&Path> {
        self.0.as_deref()
    }

    pub(super) fn path(&self) -> &Path {
        self.directory().unwrap_or(Path::new("/"))
    }

    /// Where a path of that system is; a relative one starts at its root.
    ///
    /// Guarantees: neither `..` nor a link in front of the last component leads out of the system.
    pub fn at(&self, path: impl AsRef<Path>) -> SystemPath {
        let path = path.as_ref();
        let shown = match &self.0 {
            Some(root) => below_root(root, path),
            None => Path::new("/").join(path),
        };
        SystemPath { system: self.clone(), shown }
    }
}

/// Where something of a system is, or is to be.
///
/// As a path it is for messages, and for telling one from another. What is there is found by the functions of this module
/// alone, all of which stay below the root of the system.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SystemPath {
    system: SystemRoot,
    shown: PathBuf,
}

impl SystemPath {
    /// A path of the running system; a relative one starts at the working directory.
    pub fn here(path: impl Into<PathBuf>) -> Self {
        Self { system: SystemRoot::running(), shown: path.into() }
    }

    /// A path below it. An absolute one takes its place, as one of the same system.
    #[must_use]
    pub fn join(&self, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        if path.is_absolute() {
            return self.system.at(path);
        }
        Self { system: self.system.clone(), shown: self.shown.join(path) }
    }

    /// Another name in the same directory.
    #[must_use]
    pub fn with_file_name(&self, name: impl AsRef<OsStr>) -> Self {
        Self { system: self.system.clone(), shown: self.shown.with_file_name(name) }
    }

    /// The directory that it is in; `None` for the root of the system.
    pub fn parent(&self) -> Option<Self> {
        self.parent_path().map(|shown| Self { system: self.system.clone(), shown: shown.to_owned() })
    }

    /// Like [`Self::parent`], as a path.
    pub fn parent_path(&self) -> Option<&Path> {
        self.shown.parent().filter(|_| self.system.is_running() || self.shown != self.system.path())
    }

    /// It, and the directories that it is in, up to the root of the system.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> + use<> {
        std::iter::successors(Some(self.clone()), Self::parent)
    }

    /// The root of another system than the running one, with the path below it.
    pub(super) fn in_root(&self) -> Option<(&Path, &Path)> {
        let root = self.system.directory()?;
        let within = self.shown.strip_prefix(root).unwrap_or(&self.shown);
        Some((root, if within.as_os_str().is_empty() { Path::new(".") } else { within }))
    }

    pub(super) fn system(&self) -> &SystemRoot {
        &self.system
    }
}

impl Deref for SystemPath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.shown
    }
}

impl From<SystemPath> for PathBuf {
    fn from(path: SystemPath) -> Self {
        path.shown
    }
}

impl fmt::Display for SystemPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shown.display().fmt(f)
    }
}
