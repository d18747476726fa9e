//! Reading the files that a bundle is made of.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::GlobBuilder;
use stead_core::bundle::path::normal;
use stead_core::bundle::{Entry, MOST_BYTES, MOST_ENTRIES};

use stead_system::fs::{Status, open_followed, reason};

/// The files and folders of a bundle, as they are read.
#[derive(Default)]
pub struct Gathering {
    entries: BTreeMap<String, Entry>,
    bytes: u64,
}

/// Why a file cannot be in a bundle, in words.
#[derive(Debug, PartialEq, Eq)]
pub enum Missing {
    /// There is nothing of that name.
    Absent,
    /// Something is there that cannot be in a bundle.
    Unfit(String),
}

impl Missing {
    /// Describes the reason.
    pub fn reason(&self) -> &str {
        match self {
            Self::Absent => "no such file or directory",
            Self::Unfit(reason) => reason,
        }
    }
}

impl Gathering {
    /// Adds what is at `at`, a file or a folder with all that is in it, under a path. Links to it are followed; a folder with
    /// links in it cannot be in a bundle.
    ///
    /// Guarantees: what is not added as a whole is not added at all.
    pub fn add(&mut self, path: &str, at: &Path) -> Result<(), Missing> {
        if self.entries.contains_key(path) {
            return Ok(());
        }
        let before = self.bytes;
        let mut added = BTreeSet::new();
        let result = self.add_each(path, at, &mut added);
        if result.is_err() {
            self.entries.retain(|path, _| !added.contains(path));
            self.bytes = before;
        }
        result
    }

    fn add_each(&mut self, path: &str, at: &Path, added: &mut BTreeSet<String>) -> Result<(), Missing> {
        let mut open_ones = vec![(path.to_owned(), at.to_owned())];
        while let Some((path, at)) = open_ones.pop() {
            let file = open_followed(&at).map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => Missing::Absent,
                _ => Missing::Unfit(reason(&error)),
            })?;
            let metadata = file.metadata().map_err(|error| Missing::Unfit(reason(&error)))?;
            let mode = Status::from(&metadata).mode & 0o777;
            let entry = if metadata.is_dir() {
                open_ones.extend(listed(&path, &at)?);
                Entry::Folder { mode }
            } else if metadata.is_file() {
                Entry::File { mode, content: self.content(file)? }
            } else {
                return Err(Missing::Unfit(format!("'{}' is neither a file nor a folder", at.display())));
            };
            if self.entries.len() >= MOST_ENTRIES {
                return Err(Missing::Unfit(format!("the bundle would have more than {MOST_ENTRIES} files")));
            }
            // The folder of the document itself has no name.
            if !path.is_empty() && self.entries.insert(path.clone(), entry).is_none() {
                added.insert(path);
            }
        }
        Ok(())
    }

    fn content(&mut self, file: File) -> Result<Arc<[u8]>, Missing> {
        let (mut bytes, room) = (Vec::new(), MOST_BYTES.saturating_sub(self.bytes));
        let read = file.take(room + 1).read_to_end(&mut bytes);
        let read = read.map_err(|error| Missing::Unfit(reason(&error)))? as u64;
        if read > room {
            return Err(Missing::Unfit(format!("the bundle would have more than {} MiB", MOST_BYTES >> 20)));
        }
        self.bytes += read;
        Ok(Arc::from(bytes))
    }

    /// Adds the files below a folder that a pattern is about: how many.
    pub fn add_matching(&mut self, folder: &str, at: &Path, pattern: &str) -> Result<usize, Missing> {
        let whole = normal(folder, pattern).filter(|whole| !whole.starts_with('/'));
        let whole = whole.ok_or_else(|| Missing::Unfit("it leads out of the folder of the document".to_owned()))?;
        let glob = GlobBuilder::new(&whole).literal_separator(true).build();
        let glob = glob.map_err(|error| Missing::Unfit(error.kind().to_string()))?.compile_matcher();
        // Nothing else is looked at than what can fit.
        let fixed: Vec<&str> = whole.split('/').take_while(|name| !name.contains(['*', '?', '[', '{', '\\'])).collect();
        let is_fixed = fixed.len() == whole.split('/').count();
        let start = fixed.join("/");
        let (mut open_ones, mut seen, mut count) = (vec![(start.clone(), at.join(&start))], 0, 0);
        while let Some((path, at)) = open_ones.pop() {
            seen += 1;
            if seen > MOST_SEEN {
                return Err(Missing::Unfit(format!("there are more than {MOST_SEEN} files to look at")));
            }
            let is_folder = at.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
            if is_folder && !is_fixed {
                open_ones.extend(unlinked(&path, &at)?);
            } else if (is_fixed || glob.is_match(&path)) && at.exists() {
                self.add(&path, &at)?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// The content of a file that was added.
    pub fn file(&self, path: &str) -> Option<&Arc<[u8]>> {
        match self.entries.get(path)? {
            Entry::File { content, .. } => Some(content),
            Entry::Folder { .. } => None,
        }
    }

    /// All of them.
    pub fn into_entries(self) -> BTreeMap<String, Entry> {
        self.entries
    }
}

/// The limit of files that are looked at for one pattern.
const MOST_SEEN: usize = 200_000;

/// The entries of a folder as pairs of the path in the bundle and the path on the machine. Fails if one is a symbolic
/// link.
fn listed(path: &str, at: &Path) -> Result<Vec<(String, PathBuf)>, Missing> {
    let all = unlinked(path, at)?;
    let is_link = |at: &Path| at.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
    match all.iter().find(|(_, at)| is_link(at)) {
        Some((_, link)) => Err(Missing::Unfit(format!("'{}' is a symbolic link", link.display()))),
        None => Ok(all),
    }
}

fn unlinked(path: &str, at: &Path) -> Result<Vec<(String, PathBuf)>, Missing> {
    let unreadable =
        |error: std::io::Error| Missing::Unfit(format!("cannot list '{}': {}", at.display(), reason(&error)));
    let mut all = Vec::new();
    for entry in at.read_dir().map_err(unreadable)? {
        let at = entry.map_err(unreadable)?.path();
        let name = at.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| Missing::Unfit(format!("the name '{}' is not Unicode text", at.display())))?;
        let path = if path.is_empty() { name.to_owned() } else { format!("{}/{name}", path.trim_end_matches('/')) };
        all.push((path, at));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_about_files_below_the_folder_alone() {
        let root = tempfile::tempdir().unwrap();
        for path in ["a/1.txt", "a/b/2.txt", "a/b/3.md", "c.txt"] {
            std::fs::create_dir_all(root.path().join(path).parent().unwrap()).unwrap();
            std::fs::write(root.path().join(path), "x").unwrap();
        }
        let found = |folder: &str, pattern: &str| {
            let mut gathering = Gathering::default();
            gathering.add_matching(folder, root.path(), pattern).map(|_| gathering.into_entries().into_keys().collect())
        };
        let paths = |paths: &[&str]| Ok(paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>());
        assert_eq!(found("", "a/*.txt"), paths(&["a/1.txt"]));
        assert_eq!(found("", "**/*.txt"), paths(&["a/1.txt", "a/b/2.txt", "c.txt"]));
        assert_eq!(found("a", "b/*"), paths(&["a/b/2.txt", "a/b/3.md"]));
        assert_eq!(found("", "a/b"), paths(&["a/b", "a/b/2.txt", "a/b/3.md"]));
        assert_eq!(found("", "nothing/*"), paths(&[]));
        assert!(found("", "../*").is_err() && found("", "/etc/*").is_err() && found("", "a/[").is_err());
    }

    #[test]
    fn what_cannot_be_added_as_a_whole_leaves_nothing() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("tree")).unwrap();
        std::fs::write(root.path().join("tree/file"), "x").unwrap();
        std::os::unix::fs::symlink("file", root.path().join("tree/link")).unwrap();
        let mut gathering = Gathering::default();
        assert!(matches!(gathering.add("tree", &root.path().join("tree")), Err(Missing::Unfit(_))));
        assert_eq!(gathering.add("gone", &root.path().join("gone")), Err(Missing::Absent));
        // A link that is named itself stands for its target.
        assert_eq!(gathering.add("link", &root.path().join("tree/link")), Ok(()));
        assert_eq!(gathering.into_entries().into_keys().collect::<Vec<_>>(), ["link"]);
    }
}
