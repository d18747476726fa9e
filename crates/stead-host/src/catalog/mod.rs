//! The resources and extensions of this machine: where they are looked for, which are trusted, which are usable.
//!
//! A search of the machine costs; a document of built-in resources needs none. [`Discovery`] searches when it is first
//! asked for something that is not built in, once, and an index on disk keeps what was read until it changes.

mod index;
mod load;
mod problem;
mod scan;
mod search;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use serde_json::Value as Json;
use stead_core::call::Failure;
use stead_core::expr::FactKey;
use stead_core::id::TypeName;
use stead_core::manifest::{
    Catalog, Extension, Implementation, Manifest, NotChosen, ResourceKind, VersionRequirement, parse_listed,
};
use stead_core::value::Value;

pub use problem::{CatalogProblem, ProblemReason};
pub use search::{Search, SearchEnvironment};

/// The programs and facts of the machine that discovery needs.
pub trait Programs: Send + Sync {
    /// The adapters that this program is itself, and what it has for PowerShell; asked for when the machine is searched.
    fn adapters(&self) -> Vec<Manifest> {
        Vec::new()
    }

    /// Folders below which manifests lie at any depth: those of PowerShell modules.
    fn module_folders(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Runs `list` of an adapter: one object for each resource that it can carry out.
    fn list_adapted(&self, adapter: &Manifest) -> Result<Vec<Json>, Failure>;

    /// Returns the resources that an adapter lists for one type, maybe among others, where it can tell that for less than
    /// listing everything; `None` where not.
    fn find_adapted(&self, _adapter: &Manifest, _wanted: &TypeName) -> Option<Result<Vec<Json>, Failure>> {
        None
    }

    /// Runs `discover` of an extension: one object for each manifest that it found.
    fn discover(&self, extension: &Extension) -> Result<Vec<Json>, Failure>;

    /// Discards what is known of the machine, before it is searched again.
    fn forget(&self) {}

    /// Finds out what the condition of a manifest asks for.
    fn fact(&self, key: &FactKey) -> Option<Value>;
}

/// A request: a type, and what narrows the choice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WantedType {
    /// The type.
    pub type_name: TypeName,
    /// The requirement that its version must satisfy.
    pub requirement: Option<VersionRequirement>,
    /// The adapter that must carry it out.
    pub adapter: Option<TypeName>,
}

/// Everything that was found on the machine.
#[derive(Clone, Debug, Default)]
pub struct Discovered {
    /// Every resource that is usable, built-in ones included.
    pub catalog: Catalog,
    /// The newest version of every extension that is usable, by type.
    pub extensions: BTreeMap<TypeName, Arc<Extension>>,
    /// The problems with what was left out or is suspicious, in the order of the search.
    pub problems: Vec<CatalogProblem>,
}

/// The resources of this machine, searched for when first needed.
///
/// Guarantees: the machine is searched at most once, and each adapter lists its resources at most once, however often
/// and from how many threads it is asked. The types of this program, `Stead/..`, never need a search.
///
/// Caveats: what adapters list is kept for the life of this value and not on disk. It depends on things that cannot be
/// seen from here, such as installed modules, so that no older answer could be known to be still true.
pub struct Discovery {
    search: Search,
    programs: Arc<dyn Programs>,
    built_in: Arc<Catalog>,
    files: OnceLock<load::Files>,
    discovered: OnceLock<Discovered>,
    /// By adapter, and by the type where it was asked for one.
    listed: Mutex<BTreeMap<(TypeName, Option<TypeName>), Slot>>,
}

/// Filled once, outside of the lock of the map that it is in.
type Slot = Arc<OnceLock<Arc<Listed>>>;

/// The resources that one adapter listed.
#[derive(Default)]
struct Listed {
    manifests: Catalog,
    problems: Vec<CatalogProblem>,
}

impl Discovery {
    /// A discovery that has searched nothing yet.
    pub fn new(search: Search, built_in: Arc<Catalog>, programs: Arc<dyn Programs>) -> Self {
        Self {
            search,
            programs,
            built_in,
            files: OnceLock::new(),
            discovered: OnceLock::new(),
            listed: Mutex::default(),
        }
    }

    /// Returns a discovery with the same search that has not been made yet, for when something may have been installed
    /// since.
    #[must_use]
    pub fn again(&self) -> Self {
        self.programs.forget();
        Self::new(self.search.clone(), Arc::clone(&self.built_in), Arc::clone(&self.programs))
    }

    /// Where it looks.
    pub fn search(&self) -> &Search {
        &self.search
    }

    /// Everything there is, without what only adapters know. Searches the machine unless that has been done.
    pub fn discovered(&self) -> &Discovered {
        self.discovered.get_or_init(|| {
            let mut known = if self.search.is_alone { Catalog::default() } else { (*self.built_in).clone() };
            let adapters = if self.search.is_alone { Vec::new() } else { self.programs.adapters() };
            for adapter in adapters {
                known.add(Arc::new(adapter));
            }
            load::assemble(self.files(), (&known, &self.built_in), &self.search, (&*self.programs, SystemTime::now()))
        })
    }

    /// The extensions. Searches the machine, but runs no `discover`.
    pub fn extensions(&self) -> &BTreeMap<TypeName, Arc<Extension>> {
        &self.files().extensions
    }

    fn files(&self) -> &load::Files {
        self.files.get_or_init(|| load::files(&self.search, SystemTime::now(), &*self.programs))
    }

    /// Returns whether the machine has been searched, so that there may be problems to report.
    pub fn has_searched(&self) -> bool {
        self.files.get().is_some()
    }

    /// Returns the problems that were found so far. Searches nothing.
    pub fn problems(&self) -> Vec<CatalogProblem> {
        let mut all = Vec::new();
        self.find_problem::<()>(|problem| {
            all.push(problem.clone());
            None
        });
        all
    }

    /// The first answer to a question about each of [`Self::problems`].
    pub fn find_problem<T>(&self, mut of: impl FnMut(&CatalogProblem) -> Option<T>) -> Option<T> {
        let searched = match self.discovered.get() {
            Some(discovered) => &*discovered.problems,
            None => self.files.get().map_or(&[][..], |files| &files.problems),
        };
        let found = searched.iter().find_map(&mut of);
        found.or_else(|| {
            let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
            let by_adapters = listed.values().filter_map(|listed| listed.get());
            by_adapters.flat_map(|listed| &listed.problems).find_map(of)
        })
    }

    /// Finds the resource for a type: the newest of what is built in and what is on the machine, then what adapters list.
    ///
    /// For what is only built in no program is asked. Adapters are asked in the order of their types, and only for a
    /// type that is not known at all: where there are versions that the requirement excludes, that is the answer.
    pub fn find(&self, wanted: &WantedType) -> Result<Arc<Manifest>, NotChosen> {
        if !self.search.is_alone
            && let Ok(manifest) = fitting(&self.built_in, wanted)
            && !self.may_be_installed(&wanted.type_name)
        {
            return Ok(manifest);
        }
        match fitting(&self.discovered().catalog, wanted) {
            Err(NotChosen::Type { .. }) => self.find_adapted(wanted),
            answer => answer,
        }
    }

    /// Returns whether an installed resource may replace a built-in one. Types reserved for this program are never
    /// searched for.
    fn may_be_installed(&self, type_name: &TypeName) -> bool {
        !is_reserved(type_name) && (self.files().declares(type_name) || self.files().has_discoverers())
    }

    /// Returns the resources that an adapter lists; empty when it cannot, with the reason among the problems.
    pub fn adapted_by(&self, adapter: &Arc<Manifest>) -> Catalog {
        self.listed(adapter).manifests.clone()
    }

    /// The adapters that can list their resources, by type, the newest version of each.
    pub fn adapters(&self) -> Vec<Arc<Manifest>> {
        let newest = self.discovered().catalog.iter().filter_map(|(_, versions)| versions.first());
        newest.filter(|manifest| lists(manifest)).cloned().collect()
    }

    fn find_adapted(&self, wanted: &WantedType) -> Result<Arc<Manifest>, NotChosen> {
        let asked = |adapter: &Arc<Manifest>| wanted.adapter.as_ref().is_none_or(|name| *name == adapter.type_name);
        let adapters: Vec<_> = self.adapters().into_iter().filter(asked).collect();
        let found = adapters.iter().find_map(|adapter| {
            let listed = self.listed_for(adapter, &wanted.type_name);
            fitting(&listed.manifests, wanted).ok()
        });
        found.map_or_else(|| self.not_found(wanted, &adapters), Ok)
    }

    /// Nothing fits; asking everything that is known says what is near, or which versions there are.
    fn not_found(&self, wanted: &WantedType, adapters: &[Arc<Manifest>]) -> Result<Arc<Manifest>, NotChosen> {
        let mut known = self.discovered().catalog.clone();
        for adapter in adapters {
            let listed = self.listed(adapter);
            listed.manifests.iter().flat_map(|(_, versions)| versions).for_each(|each| known.add(each.clone()));
        }
        fitting(&known, wanted)
    }

    fn listed(&self, adapter: &Arc<Manifest>) -> Arc<Listed> {
        let list = || {
            tracing::info!("Listing the resources of the adapter '{}'", adapter.type_name);
            Arc::new(list(adapter, self.programs.list_adapted(adapter)))
        };
        Arc::clone(self.slot(adapter, None).get_or_init(list))
    }

    /// Returns the resources that an adapter lists, at least of one type. The answer for one type may say more of it than the
    /// whole list does.
    fn listed_for(&self, adapter: &Arc<Manifest>, wanted: &TypeName) -> Arc<Listed> {
        if let Some(listed) = self.found(adapter, wanted) {
            return listed;
        }
        match self.programs.find_adapted(adapter, wanted) {
            Some(objects) => {
                let one = self.slot(adapter, Some(wanted));
                Arc::clone(one.get_or_init(|| Arc::new(list(adapter, objects))))
            }
            None => self.listed(adapter),
        }
    }

    /// Returns what an adapter said when it was asked for a type, or for another one and this is among the answer.
    fn found(&self, adapter: &Arc<Manifest>, wanted: &TypeName) -> Option<Arc<Listed>> {
        let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let of_adapter = listed.iter().filter(|((name, asked), _)| *name == adapter.type_name && asked.is_some());
        let mut answers = of_adapter.filter_map(|((_, asked), slot)| Some((asked.as_ref(), slot.get()?)));
        let fits = |(asked, answer): &(Option<&TypeName>, &Arc<Listed>)| {
            *asked == Some(wanted) || !answer.manifests.versions(wanted).is_empty()
        };
        answers.find(fits).map(|(_, answer)| Arc::clone(answer))
    }

    fn slot(&self, adapter: &Arc<Manifest>, wanted: Option<&TypeName>) -> Slot {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        Slot::clone(listed.entry((adapter.type_name.clone(), wanted.cloned())).or_default())
    }
}

/// Returns whether a type is reserved for this program. A document that uses no other types needs no search of the
/// machine, and nothing installed replaces the resources that manage accounts and files.
fn is_reserved(type_name: &TypeName) -> bool {
    type_name.as_str().split_once('/').is_some_and(|(owner, _)| owner.eq_ignore_ascii_case("Stead"))
}

/// The manifest of a catalog for what is wanted.
fn fitting(catalog: &Catalog, wanted: &WantedType) -> Result<Arc<Manifest>, NotChosen> {
    let Some(adapter) = &wanted.adapter else {
        return catalog.find(&wanted.type_name, wanted.requirement.as_ref()).cloned();
    };
    let mut carried_out = Catalog::default();
    let versions = catalog.versions(&wanted.type_name).iter();
    let by_adapter = versions.filter(|manifest| manifest.require_adapter() == Some(adapter));
    by_adapter.for_each(|manifest| carried_out.add(manifest.clone()));
    carried_out.find(&wanted.type_name, wanted.requirement.as_ref()).cloned()
}

fn lists(manifest: &Manifest) -> bool {
    match &manifest.implementation {
        Implementation::Command(command) => {
            manifest.kind == ResourceKind::Adapter
                && command.adapter.as_ref().is_some_and(|adapter| adapter.list.is_some())
        }
        _ => manifest.is_own_adapter(),
    }
}

fn list(adapter: &Arc<Manifest>, objects: Result<Vec<Json>, Failure>) -> Listed {
    let path = match &adapter.implementation {
        Implementation::Command(command) => command.manifest_path.clone(),
        _ => PathBuf::new(),
    };
    let mut listed = Listed::default();
    let name = &adapter.type_name;
    let problem = |message: String| CatalogProblem::new(&path, ProblemReason::List(name.clone(), message));
    match objects {
        Err(failure) => listed.problems.push(problem(failure.message)),
        Ok(objects) => {
            for object in objects {
                match parse_listed(object) {
                    Ok(manifest) if manifest.implementation.require_adapter == *name => {
                        listed.manifests.add(Arc::new(manifest.into_manifest(adapter.clone())));
                    }
                    Ok(manifest) => listed.problems.push(problem(format!(
                        "it lists '{}', which needs the adapter '{}'",
                        manifest.type_name, manifest.implementation.require_adapter
                    ))),
                    Err(findings) => {
                        let messages = findings.into_iter().map(|finding| finding.message);
                        listed.problems.push(problem(messages.collect::<Vec<_>>().join("; ")));
                    }
                }
            }
        }
    }
    listed
}
