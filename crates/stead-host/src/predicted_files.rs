//! In what-if: files as the predicted changes leave them, for those that are predicted behind these.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stead_core::id::NodeId;
use stead_system::fs::Status;

/// More is not held of a file: what edits it stays unknown until the one in front of it was set.
const MAX_SIZE: usize = 4 << 20;

/// A file as a change will leave it. It may hold secrets.
#[derive(Clone)]
pub struct PredictedFile {
    /// All of its bytes.
    pub content: Arc<[u8]>,
    /// Its mode and owner.
    pub status: Status,
}

/// The files that several instances manage, as the changes that were predicted so far leave them.
///
/// Assumptions: of the instances on one file, each is called once those in front of it are settled.
#[derive(Default)]
pub struct PredictedFiles {
    /// Each file by all of its names.
    names: HashMap<PathBuf, usize>,
    files: Mutex<Vec<File>>,
}

#[derive(Default)]
struct File {
    /// The latest one that was predicted from what is held here.
    seen_by: Option<NodeId>,
    /// As the latest change leaves it, and before that as the one in front of it did.
    left: Vec<(NodeId, PredictedFile)>,
}

impl PredictedFiles {
    /// Of these files, each with its names.
    pub fn new(files: impl IntoIterator<Item = Vec<PathBuf>>) -> Self {
        let mut all = Self::default();
        let mut count = 0;
        for (file, names) in files.into_iter().enumerate() {
            all.names.extend(names.into_iter().map(|name| (name, file)));
            count = file + 1;
        }
        *all.files() = (0..count).map(|_| File::default()).collect();
        all
    }

    fn files(&self) -> MutexGuard<'_, Vec<File>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what a change would leave of files, by their places, that is not made as it was predicted.
    pub fn withdraw(&self, id: NodeId, places: &[usize]) {
        let mut files = self.files();
        for place in places {
            if let Some(file) = files.get_mut(*place) {
                file.left.retain(|(of, _)| *of != id);
            }
        }
    }

    /// Returns whether an instance was predicted from the file at a path as it is held here.
    pub fn is_seen_by(&self, id: NodeId, path: &Path) -> bool {
        self.file_at(path, |file| file.seen_by == Some(id))
    }

    /// Returns whether it is held here how an instance leaves the file at a path.
    pub fn is_left_by(&self, id: NodeId, path: &Path) -> bool {
        self.file_at(path, |file| file.left.iter().any(|(of, _)| *of == id))
    }

    fn file_at(&self, path: &Path, is_so: impl Fn(&File) -> bool) -> bool {
        self.names.get(path).is_some_and(|at| self.files().get(*at).is_some_and(is_so))
    }
}

/// The files that an instance is predicted from.
#[derive(Clone)]
pub struct FileForecast {
    /// The files.
    pub files: Arc<PredictedFiles>,
    /// The instance.
    pub of: NodeId,
}

impl FileForecast {
    /// The file at a path, where a change in front of the instance leaves another one than there is.
    pub fn look(&self, path: &Path) -> Option<PredictedFile> {
        let at = *self.files.names.get(path)?;
        let mut files = self.files.files();
        let file = files.get_mut(at)?;
        file.seen_by = Some(self.of);
        file.left.iter().rev().find(|(of, _)| *of != self.of).map(|(_, left)| left.clone())
    }

    /// Returns whether others manage the file at a path as well.
    pub fn is_shared(&self, path: &Path) -> bool {
        self.files.names.contains_key(path)
    }

    /// Has those behind the instance find the file at a path so.
    pub fn leave(&self, path: &Path, left: PredictedFile) {
        let Some(at) = self.files.names.get(path).filter(|_| left.content.len() <= MAX_SIZE) else { return };
        let mut files = self.files.files();
        let Some(file) = files.get_mut(*at) else { return };
        file.left.retain(|(of, _)| *of != self.of);
        // What is further in front is of no use any more.
        file.left.drain(..file.left.len().saturating_sub(1));
        file.left.push((self.of, left));
    }
}
