//! What was read last time, on disk, so that no module is read again that has not changed.
//!
//! Everything that reading a module looked at is kept beside it, with its stamp: directories, files, what was not there, and
//! variables of the environment. A module holds as long as all of that is as it was.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use stead_host::cache::{CacheFile, Stamp, Unusable};
use stead_host::fs::{OpenError, User};

use crate::module::{Environment, Files, Found, Module, Modules, Names, find};

/// The index in a cache directory.
#[derive(Debug)]
pub struct Index<'a> {
    /// The directory.
    pub cache: &'a Path,
    /// Whose it is.
    pub user: User,
    /// The present time.
    pub now: SystemTime,
}

const CACHE: CacheFile =
    CacheFile::new("powershell.index", concat!("stead powershell modules 1 ", env!("CARGO_PKG_VERSION"), " "));

/// Directories of other searches that are kept.
const KEPT: usize = 16;

/// What is known of the directories that were searched.
type Roots = BTreeMap<PathBuf, Root>;

/// A directory of `PSModulePath`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Root {
    /// Whether all modules are there, and every later change will show.
    complete: bool,
    /// What finding the modules depends on.
    on: Dependencies,
    modules: Vec<Kept>,
}

impl Root {
    fn holds(&self, environment: &Environment<'_>) -> bool {
        self.complete && self.on.hold(environment) && self.modules.iter().all(|kept| kept.on.hold(environment))
    }
}

/// A module that was found; `None` where PowerShell does not see it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Kept {
    found: Found,
    on: Dependencies,
    module: Option<Module>,
}

/// What a result depends on.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
struct Dependencies {
    /// Directories and files; nothing for what was not there.
    paths: BTreeMap<PathBuf, Option<Stamp>>,
    /// Variables of the environment.
    variables: BTreeMap<String, Option<String>>,
}

impl Dependencies {
    fn hold(&self, environment: &Environment<'_>) -> bool {
        self.variables.iter().all(|(name, value)| environment(name) == *value)
            && self.paths.iter().all(|(path, known)| stamp(path) == *known)
    }

    /// Whether every later change will show.
    fn settled(&self, now: SystemTime) -> bool {
        self.paths.values().flatten().all(|stamp| stamp.settled(now))
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    std::fs::metadata(path).ok().map(|metadata| Stamp::of(&metadata))
}

/// Notes what is read.
struct Recorder<'a> {
    files: &'a dyn Files,
    paths: RefCell<BTreeMap<PathBuf, Option<Stamp>>>,
}

impl Recorder<'_> {
    /// Before it is read: what changes meanwhile has another stamp next time.
    fn note(&self, path: &Path) {
        self.paths.borrow_mut().entry(path.to_owned()).or_insert_with(|| stamp(path));
    }
}

impl Files for Recorder<'_> {
    fn list(&self, directory: &Path) -> Result<Names, OpenError> {
        self.note(directory);
        self.files.list(directory)
    }

    fn read(&self, file: &Path) -> Result<Vec<u8>, OpenError> {
        self.note(file);
        self.files.read(file)
    }
}

impl Index<'_> {
    /// The same as [`Modules::read`], and what has not changed comes from the index.
    ///
    /// Guarantees: after any change of a file, a directory or a variable that a module was read from, it is read again. The
    /// index is private to its user and written all or nothing; a damaged one counts as empty.
    pub fn read(&self, modules: &Modules<'_>) -> (Vec<Module>, Vec<OpenError>) {
        let mut older = self.load().unwrap_or_else(|reason| {
            tracing::debug!(%reason, "the index of PowerShell modules is built anew");
            Roots::new()
        });
        let (mut searched, mut errors, mut changed) = (Vec::new(), Vec::new(), false);
        for directory in modules.directories {
            let root = match older.remove(directory) {
                Some(root) if root.holds(modules.environment) => root,
                known => {
                    changed = true;
                    let (root, unreadable) = search(modules, directory, known);
                    errors.extend(unreadable);
                    root
                }
            };
            searched.push((directory.clone(), root));
        }
        if changed && let Err(error) = self.store(older, &searched) {
            tracing::debug!(%error, "the index of PowerShell modules cannot be written");
        }
        (searched.into_iter().flat_map(|(_, root)| root.modules).filter_map(|kept| kept.module).collect(), errors)
    }

    fn load(&self) -> Result<Roots, Unusable> {
        let text = CACHE.read(self.cache, self.user)?;
        CACHE.body(&text).and_then(|body| serde_json::from_slice(body).ok()).ok_or(Unusable::Damaged)
    }

    /// Writes what can be relied on later, and what is known of directories that were not searched now.
    fn store(&self, others: Roots, searched: &[(PathBuf, Root)]) -> Result<(), Unusable> {
        let mut roots: Roots = others.into_iter().take(KEPT).collect();
        for (directory, root) in searched {
            let mut root = root.clone();
            let count = root.modules.len();
            root.modules.retain(|kept| kept.on.settled(self.now));
            root.complete &= root.modules.len() == count && root.on.settled(self.now);
            roots.insert(directory.clone(), root);
        }
        CACHE.write(self.cache, self.user, &serde_json::to_vec(&roots).map_err(std::io::Error::from)?)
    }
}

/// Searches a directory; modules that have not changed are taken over.
fn search(modules: &Modules<'_>, directory: &Path, known: Option<Root>) -> (Root, Vec<OpenError>) {
    let recorder = Recorder { files: modules.files, paths: RefCell::default() };
    let (found, errors) = find(directory, &recorder);
    let mut known: BTreeMap<PathBuf, Kept> =
        known.into_iter().flat_map(|root| root.modules).map(|kept| (kept.found.file.clone(), kept)).collect();
    let kept = found.into_iter().map(|found| match known.remove(&found.file) {
        Some(kept) if kept.found == found && kept.on.hold(modules.environment) => kept,
        _ => read(modules, found),
    });
    let modules = kept.collect();
    let on = Dependencies { paths: recorder.paths.into_inner(), ..Dependencies::default() };
    // What could not be looked at is looked at again.
    (Root { complete: errors.is_empty(), on, modules }, errors)
}

fn read(modules: &Modules<'_>, found: Found) -> Kept {
    let recorder = Recorder { files: modules.files, paths: RefCell::default() };
    let variables = RefCell::new(BTreeMap::new());
    let environment = |name: &str| {
        let value = (modules.environment)(name);
        variables.borrow_mut().insert(name.to_owned(), value.clone());
        value
    };
    let module =
        Modules { files: &recorder, environment: &environment, directories: modules.directories }.module(&found);
    let on = Dependencies { paths: recorder.paths.into_inner(), variables: variables.into_inner() };
    Kept { found, on, module }
}
