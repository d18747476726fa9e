//! The index on disk of modules that were read, so that no module is read again that has not changed.
//!
//! A table has the modules that were found, with the stamps of the directories that finding them looked at. The
//! content of a module lies behind the table, with all that it depends on: directories, files, names that did not
//! exist, and variables of the environment. It is looked at only when the module is asked for: a document that names
//! one resource pays for one module.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use stead_host::cache::{CacheError, CacheFile, CachePart, Parted};
use stead_powershell_reader::manifest::same;
use stead_powershell_reader::module::{Environment, Files, FoundModule, Module, Modules, Names, Stamped, find};
use stead_system::fs::{Identity, OpenError, Trust, TrustedDirectory, User};

/// The index in a cache directory.
#[derive(Debug)]
pub struct Index<'a> {
    /// The directory; `None` for no index.
    pub cache: Option<&'a Path>,
    /// Whose it is.
    pub user: User,
    /// The present time.
    pub now: SystemTime,
}

const CACHE: CacheFile =
    CacheFile::new("powershell.index", concat!("stead powershell modules 5 ", env!("CARGO_PKG_VERSION"), " "));

/// About as many bytes as the index keeps of a module.
const PART: usize = 2048;

/// Directories of other searches that are kept.
const KEPT: usize = 16;

/// The modules below the directories of a search, each read when it is asked for.
#[derive(Debug)]
pub struct ModuleInventory {
    /// The directories that were searched, in this order.
    roots: Vec<(PathBuf, Root)>,
    /// The directories of other searches.
    others: BTreeMap<PathBuf, Root>,
    /// Where parts are.
    index: Option<Parted>,
    /// True if something was found or read that is not in the index.
    changed: bool,
    /// The listings made while modules were looked for: reading one needs them again.
    lists: Lists,
    /// Directories that cannot be read, or are not trusted.
    pub errors: Vec<OpenError>,
}

/// The names in directories, by the bytes of their paths: comparing paths takes them apart.
type Lists = HashMap<OsString, Stamped<Arc<Names>>>;

/// A directory of `PSModulePath`.
#[derive(Debug, Serialize, Deserialize)]
struct Root {
    /// True if all modules are there, and every later change will show.
    complete: bool,
    /// The paths and variables that finding the modules depends on.
    on: Dependencies,
    modules: Vec<KeptModule>,
}

/// A module that was found.
#[derive(Debug, Serialize, Deserialize)]
struct KeptModule {
    found: FoundModule,
    state: ModuleState,
}

#[derive(Debug, Serialize, Deserialize)]
enum ModuleState {
    Unread,
    /// It was read earlier: the part is a [`Reading`].
    Kept(CachePart),
    /// It was read or checked by this search.
    #[serde(skip)]
    Read(Reading),
}

/// The dependencies of reading a module, and the module; `None` where PowerShell does not see it.
type Reading = (Dependencies, Option<Arc<Module>>);

/// The paths and variables that a result depends on, with their stamps and values.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Dependencies {
    /// Directories and files, in order; nothing for what was not there.
    paths: Vec<(PathBuf, Option<Identity>)>,
    /// Variables of the environment.
    variables: BTreeMap<String, Option<String>>,
}

impl Dependencies {
    fn hold(&self, environment: &Environment<'_>) -> bool {
        self.variables.iter().all(|(name, value)| environment(name) == *value)
            && self.paths.iter().all(|(path, known)| stamp(path) == *known)
    }

    /// Returns whether every later change will show.
    fn settled(&self, now: SystemTime) -> bool {
        self.paths.iter().filter_map(|(_, stamp)| *stamp).all(|stamp| stamp.settled(now))
    }
}

fn stamp(path: &Path) -> Option<Identity> {
    std::fs::metadata(path).ok().map(|metadata| Identity::of(&metadata))
}

impl Index<'_> {
    /// Finds the modules; none is read yet.
    ///
    /// Guarantees: after any change of a file, a directory or a variable that a module was found or read by, that is done
    /// again. The index is private to its user and written all or nothing; a damaged one counts as empty. With
    /// [`Trust::Root`], directories that others than root could change are left out, whatever the index says.
    pub fn search(&self, modules: &Modules<'_>) -> ModuleInventory {
        let (index, mut others) = self.load();
        let mut inventory = ModuleInventory {
            roots: Vec::new(),
            others: BTreeMap::new(),
            index,
            changed: false,
            lists: Lists::new(),
            errors: Vec::new(),
        };
        for directory in modules.directories {
            let known = others.remove(directory);
            let root = match known {
                Some(root) if self.holds(directory, &root, modules.environment) => root,
                known => {
                    inventory.changed = true;
                    let (root, unreadable) = inventory.find_again(modules, directory, known);
                    inventory.errors.extend(unreadable);
                    root
                }
            };
            inventory.roots.push((directory.clone(), root));
        }
        inventory.others = others;
        inventory
    }

    /// Reads modules like [`Modules::read`]; those that have not changed come from the index.
    pub fn read(&self, modules: &Modules<'_>) -> (Vec<Arc<Module>>, Vec<OpenError>) {
        let mut inventory = self.search(modules);
        let read = inventory.modules(self, modules, None);
        (read, inventory.errors)
    }

    fn holds(&self, directory: &Path, root: &Root, environment: &Environment<'_>) -> bool {
        root.complete && root.on.hold(environment) && self.is_trusted(directory)
    }

    /// Returns whether nobody else could exchange the directory. Of what is below it, the stamps show changed rights.
    fn is_trusted(&self, directory: &Path) -> bool {
        let trust = self.user.trust();
        trust == Trust::Everyone
            || TrustedDirectory::open(directory, trust).map_or_else(|error| error.is_not_found(), |_| true)
    }

    fn load(&self) -> (Option<Parted>, BTreeMap<PathBuf, Root>) {
        let Some(cache) = self.cache else { return Default::default() };
        let loaded = CACHE.open(cache, self.user).and_then(|index| {
            let table = serde_json::from_slice(index.table()).map_err(|_| CacheError::Damaged)?;
            Ok((Some(index), table))
        });
        loaded.unwrap_or_else(|reason| {
            tracing::debug!(%reason, "the index of PowerShell modules is built anew");
            Default::default()
        })
    }
}

impl ModuleInventory {
    /// The modules in the order of [`Modules::read`], those of one name where one is given. What was not read before is read,
    /// and kept in the index.
    pub fn modules(&mut self, index: &Index<'_>, modules: &Modules<'_>, name: Option<&str>) -> Vec<Arc<Module>> {
        let mut read = Vec::new();
        for entry in self.roots.iter_mut().flat_map(|(_, root)| &mut root.modules) {
            if name.is_some_and(|name| !same(name, &entry.found.name)) {
                continue;
            }
            self.changed |= entry.bring_up(self.index.as_ref(), modules, &self.lists);
            if let ModuleState::Read((_, Some(module))) = &entry.state {
                read.push(Arc::clone(module));
            }
        }
        if std::mem::take(&mut self.changed)
            && let Some(cache) = index.cache
            && let Err(error) = self.store(cache, index)
        {
            tracing::debug!(%error, "the index of PowerShell modules cannot be written");
        }
        read
    }

    /// Searches a directory; what is known of modules that are still there is taken over.
    fn find_again(&mut self, modules: &Modules<'_>, directory: &Path, known: Option<Root>) -> (Root, Vec<OpenError>) {
        let nothing = Lists::new();
        let recorder = Recorder::new(modules.files, &nothing);
        let (found, errors) = find(directory, &recorder);
        let mut known: BTreeMap<PathBuf, KeptModule> =
            known.into_iter().flat_map(|root| root.modules).map(|entry| (entry.found.file.clone(), entry)).collect();
        let entry = |found: FoundModule| match known.remove(&found.file) {
            Some(entry) if entry.found == found => entry,
            _ => KeptModule { found, state: ModuleState::Unread },
        };
        let modules = found.into_iter().map(entry).collect();
        let (on, lists) = recorder.into_parts();
        self.lists.extend(lists);
        // What could not be looked at is looked at again.
        (Root { complete: errors.is_empty(), on, modules }, errors)
    }

    /// Writes what can be relied on later, and what is known of directories that were not searched now.
    fn store(&self, cache: &Path, index: &Index<'_>) -> Result<(), CacheError> {
        // What is not used of it costs nothing, and growing costs a copy.
        let modules: usize = self.roots.iter().map(|(_, root)| root.modules.len()).sum();
        let mut parts = Vec::with_capacity(modules * PART);
        let searched = self.roots.iter().map(|(directory, root)| (directory, root));
        let others = self.others.iter().take(KEPT);
        let mut kept = |(directory, root): (&PathBuf, &Root)| {
            let entry = |entry: &KeptModule| KeptModule {
                found: entry.found.clone(),
                state: entry.kept(self.index.as_ref(), index.now, &mut parts).unwrap_or(ModuleState::Unread),
            };
            let modules = root.modules.iter().map(entry).collect();
            let complete = root.complete && root.on.settled(index.now);
            (directory.clone(), Root { complete, on: root.on.clone(), modules })
        };
        let table: BTreeMap<_, _> = others.map(&mut kept).collect();
        let table: BTreeMap<_, _> = table.into_iter().chain(searched.map(kept)).collect();
        let table = serde_json::to_vec(&table).map_err(std::io::Error::from)?;
        CACHE.write_parts(cache, index.user, &table, &parts)
    }
}

impl KeptModule {
    /// Reads the module unless it is known as it is now; returns whether it did.
    fn bring_up(&mut self, index: Option<&Parted>, modules: &Modules<'_>, lists: &Lists) -> bool {
        let kept: Option<Reading> = match &self.state {
            ModuleState::Read(_) => return false,
            ModuleState::Kept(part) => index.and_then(|index| serde_json::from_slice(&index.part(part)?).ok()),
            ModuleState::Unread => None,
        };
        let kept = kept.filter(|(on, _)| on.hold(modules.environment));
        let is_new = kept.is_none();
        self.state = ModuleState::Read(kept.unwrap_or_else(|| read(modules, &self.found, lists)));
        is_new
    }

    /// The state as it is stored; `None` where it cannot be relied on later.
    fn kept(&self, index: Option<&Parted>, now: SystemTime, parts: &mut Vec<u8>) -> Option<ModuleState> {
        let part = match &self.state {
            ModuleState::Kept(part) => CachePart::append(parts, |parts| {
                parts.extend(index?.part(part)?);
                Some(())
            }),
            ModuleState::Read(reading) if reading.0.settled(now) => {
                CachePart::append(parts, |parts| serde_json::to_writer(parts, reading).ok())
            }
            ModuleState::Unread | ModuleState::Read(_) => None,
        };
        part.map(ModuleState::Kept)
    }
}

/// Notes what is read, and lists each directory once.
struct Recorder<'a> {
    files: &'a dyn Files,
    known: &'a Lists,
    paths: RefCell<BTreeMap<OsString, Option<Identity>>>,
    lists: RefCell<Lists>,
}

impl<'a> Recorder<'a> {
    fn new(files: &'a dyn Files, known: &'a Lists) -> Self {
        Self { files, known, paths: RefCell::default(), lists: RefCell::default() }
    }

    /// Notes the stamp that was there first: what changes meanwhile has another one next time.
    fn note(&self, path: &Path, stamp: Option<Identity>) {
        let mut paths = self.paths.borrow_mut();
        if !paths.contains_key(path.as_os_str()) {
            paths.insert(path.as_os_str().to_owned(), stamp);
        }
    }

    /// Reads a path and notes its stamp. A read that fails is repeated behind its stamp.
    fn noted<T>(&self, path: &Path, read: impl Fn() -> Result<Stamped<T>, OpenError>) -> Result<Stamped<T>, OpenError> {
        let found = read().or_else(|_| {
            self.note(path, stamp(path));
            read()
        })?;
        self.note(path, found.1);
        Ok(found)
    }

    /// Returns what was noted, and what was listed.
    fn into_parts(self) -> (Dependencies, Lists) {
        let paths = self.paths.into_inner().into_iter().map(|(path, stamp)| (path.into(), stamp)).collect();
        (Dependencies { paths, ..Dependencies::default() }, self.lists.into_inner())
    }
}

impl Files for Recorder<'_> {
    fn list(&self, directory: &Path) -> Result<Stamped<Arc<Names>>, OpenError> {
        if let Some(listed) = self.lists.borrow().get(directory.as_os_str()) {
            return Ok(listed.clone());
        }
        if let Some(listed) = self.known.get(directory.as_os_str()) {
            self.note(directory, listed.1);
            return Ok(listed.clone());
        }
        let listed = self.noted(directory, || self.files.list(directory))?;
        self.lists.borrow_mut().insert(directory.as_os_str().to_owned(), listed.clone());
        Ok(listed)
    }

    fn read(&self, file: &Path) -> Result<Stamped<Vec<u8>>, OpenError> {
        self.noted(file, || self.files.read(file))
    }
}

fn read(modules: &Modules<'_>, found: &FoundModule, lists: &Lists) -> Reading {
    let recorder = Recorder::new(modules.files, lists);
    let variables = RefCell::new(BTreeMap::new());
    let environment = |name: &str| {
        let value = (modules.environment)(name);
        variables.borrow_mut().insert(name.to_owned(), value.clone());
        value
    };
    let module =
        Modules { files: &recorder, environment: &environment, directories: modules.directories }.module(found);
    let (on, _) = recorder.into_parts();
    (Dependencies { variables: variables.into_inner(), ..on }, module.map(Arc::new))
}
