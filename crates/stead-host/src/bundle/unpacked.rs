//! The files of a bundle, where resources and programs can read them.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use stead_core::bundle::path::normal;
use stead_core::bundle::{Bundle, Entry};
use stead_system::scratch::{Scratch, ScratchError};

/// A bundle whose files lie in a folder that only this user can enter, until this is dropped.
///
/// Guarantees: the folder is one of memory where the system has one; what a killed process left is removed by the next one.
pub struct BundleFiles {
    bundle: Arc<Bundle>,
    /// The paths that the instances of the document create, in the form of the paths of the bundle.
    made: BTreeSet<String>,
    folder: Scratch,
}

/// The files of a bundle as a document in one of its folders sees them.
pub struct FilesWithin {
    /// The files.
    pub files: Arc<BundleFiles>,
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

impl BundleFiles {
    /// Unpacks the files of a bundle. `made`: the paths that the instances of the document create, which are not read
    /// from the bundle.
    pub fn unpack(bundle: Arc<Bundle>, made: BTreeSet<String>) -> Result<Self, UnpackError> {
        let failed = |ScratchError { above: folder, source }| UnpackError { folder, source };
        let folder = Scratch::new(bundle.entries().values().any(is_program)).map_err(failed)?;
        let files = Self { bundle, made, folder };
        // What fails is removed with it.
        files.write().map_err(|source| UnpackError { folder: files.folder.path().to_owned(), source })?;
        Ok(files)
    }

    fn write(&self) -> io::Result<()> {
        self.folder.create_folder(&self.place(""))?;
        for (path, entry) in self.bundle.entries() {
            let place = self.place(path);
            self.folder.create_folder(place.parent().unwrap_or(self.folder.path()))?;
            match entry {
                Entry::Folder { .. } => self.folder.create_folder(&place)?,
                Entry::File { mode, content } => self.folder.create_file(&place, content, *mode)?,
            }
        }
        // From the bottom up, since a folder may not be writable to anybody.
        for (path, entry) in self.bundle.entries().iter().rev() {
            if let Entry::Folder { mode } = entry {
                self.folder.set_mode(&self.place(path), *mode)?;
            }
        }
        Ok(())
    }

    /// Where a path of the bundle lies.
    fn place(&self, path: &str) -> PathBuf {
        match path.strip_prefix('/') {
            Some(path) => self.folder.path().join("machine").join(path),
            None => self.folder.path().join("document").join(path),
        }
    }

    /// Removes the folder with all that is in it, once nobody reads any of it.
    pub fn remove(&self) {
        self.folder.remove();
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

fn is_at_or_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn is_program(entry: &Entry) -> bool {
    matches!(entry, Entry::File { mode, .. } if mode & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Path;

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
        let files = BundleFiles::unpack(bundle(), BTreeSet::new()).unwrap();
        let mode = |path: &Path| path.symlink_metadata().unwrap().mode() & 0o7777;
        let (folder, script) = (files.folder.path().to_owned(), files.folder("a").join("b/run.sh"));
        assert_eq!((mode(&folder), mode(&script), mode(&files.folder("closed"))), (0o700, 0o755, 0o500));
        assert_eq!(std::fs::read(script).unwrap(), b"x");
        drop(files);
        assert!(!folder.exists());
    }

    #[test]
    fn a_path_is_in_the_bundle_or_made_by_the_document_or_nowhere() {
        let made = ["out".to_owned(), "roles/web/made".to_owned()];
        let files = BundleFiles::unpack(bundle(), BTreeSet::from(made)).unwrap();
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
