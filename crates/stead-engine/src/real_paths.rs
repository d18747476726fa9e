//! Where paths lead.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use stead_system::fs::SystemRoot;

/// Where paths lead through links of what is above them, and through `..`. Each folder is looked at once: a plan changes nothing.
pub(crate) struct RealPaths {
    /// The root of the system, which no link leads out of.
    root: PathBuf,
    folders: Mutex<Folders>,
}

#[derive(Default)]
struct Folders {
    known: HashMap<PathBuf, Option<PathBuf>>,
    /// The last one that was asked for, since one folder has many files, and taking a path apart takes longer than all else.
    last: Option<(Vec<u8>, Option<PathBuf>)>,
}

impl RealPaths {
    /// Those of the system with this root.
    pub(crate) fn below(root: &Path) -> Self {
        Self { root: root.to_owned(), folders: Mutex::default() }
    }

    /// The root of the system.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The path that is meant by a path, if links lead elsewhere.
    pub(crate) fn of(&self, path: &Path) -> Option<PathBuf> {
        let bytes = path.as_os_str().as_encoded_bytes();
        let folder = bytes.get(..bytes.iter().rposition(|byte| *byte == b'/')?).filter(|_| !bytes.ends_with(b"/"))?;
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        if folders.last.as_ref().is_none_or(|(last, _)| last != folder) {
            let real = self.folder(&mut folders.known, path.parent()?);
            folders.last = Some((folder.to_owned(), real));
        }
        let (_, real) = folders.last.as_ref()?;
        Some(real.as_ref()?.join(path.file_name()?))
    }

    /// Where a folder is that links lead to; `None` where it is what it is called. The folders above it are looked at first.
    fn folder(&self, known: &mut HashMap<PathBuf, Option<PathBuf>>, folder: &Path) -> Option<PathBuf> {
        if let Some(real) = known.get(folder) {
            return real.clone();
        }
        let (above, last) = (folder.parent()?, folder.components().next_back()?);
        let real_above = self.folder(known, above);
        let real = if last == Component::ParentDir {
            real_above.as_deref().unwrap_or(above).parent().map(Path::to_path_buf)
        } else {
            let here = real_above.map(|above| above.join(last));
            let path = here.as_deref().unwrap_or(folder);
            if path.is_symlink() { self.behind(path).or(here) } else { here }
        };
        known.insert(folder.to_owned(), real.clone());
        real
    }

    /// Where a link below the root leads.
    fn behind(&self, link: &Path) -> Option<PathBuf> {
        if self.root == Path::new("/") {
            return link.canonicalize().ok();
        }
        let within = link.strip_prefix(&self.root).ok()?;
        SystemRoot::below(&self.root).at(within).real_directory().ok()?
    }
}
