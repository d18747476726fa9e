//! What differs between package managers.

use crate::input::transient;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use stead_core::call::Failure;
use stead_core::destruction::{Item, ItemKind};
use stead_host::provider::Context;
use stead_system::fs::SystemRoot;
use stead_system::memory_file::MemoryFile;

use super::version::Order;

/// A package manager: reads what is installed by itself, and calls programs only to find out what a change comes to, and to
/// make it.
pub(super) trait PackageManager: Send + Sync {
    /// The order of its versions.
    fn order(&self) -> Order;

    /// What cannot be stated of its packages.
    fn unsupported(&self) -> &'static [Unsupported] {
        &[]
    }

    /// What is installed. Starts no program where the database can be read without.
    fn installed(&self, cx: &Context) -> Result<Arc<Installed>, Failure>;

    /// Which versions of those of these packages that are known could be installed. Changes nothing.
    fn available(&self, cx: &Context, names: &[&str], release: Option<&str>) -> Result<Vec<Available>, Failure>;

    /// The names of packages that begin as a name does, as far as that is known.
    fn names(&self, _cx: &Context, _like: &str) -> Vec<String> {
        Vec::new()
    }

    /// The packages that provide a virtual one, as far as that is known, by their names.
    fn providers(&self, _cx: &Context, _name: &str) -> Vec<String> {
        Vec::new()
    }

    /// Returns whether a stated version selects the version `known` of the package lists.
    fn names_version(&self, stated: &str, known: &str) -> bool {
        stated == known
    }

    /// How old the lists of packages are.
    fn lists(&self, cx: &Context) -> Lists;

    /// Gets the lists of packages anew.
    fn update_lists(&self, cx: &Context) -> Result<Update, Failure>;

    /// What a transaction comes to: everything that would be installed and removed. Changes nothing.
    fn plan(&self, cx: &Context, transaction: &Transaction) -> Result<Plan, Failure>;

    /// Carries a transaction out, and completes what an interrupted one left.
    fn carry_out(&self, cx: &Context, transaction: &Transaction) -> Result<(), Failure>;
}

/// A property that a package manager has nothing for, and what there is instead.
pub(super) type Unsupported = (&'static str, &'static str);

/// Settings that a program reads from a file, which nobody else has.
pub(super) struct Settings(MemoryFile);

impl Settings {
    pub(super) fn of(text: &str) -> Result<Self, Failure> {
        MemoryFile::new("settings", text.as_bytes()).map(Self).map_err(|error| {
            let message = format!("cannot pass settings to the package manager: {error}");
            transient("", message)
        })
    }

    /// Where the program finds them while this value lives.
    pub(super) fn path(&self) -> String {
        self.0.path().display().to_string()
    }
}

/// How an update of the package lists ended that the package manager calls successful.
pub(super) enum Update {
    /// Those of all repositories are there.
    Complete,
    /// Those of one could not be obtained, for this reason.
    Incomplete(String),
}

impl Update {
    /// A failure for what the lists do not have: where they are not complete, a repository that cannot be reached is the reason,
    /// and trying again can help.
    pub(super) fn explain(&self, failure: Failure) -> Failure {
        match self {
            Self::Complete => failure,
            Self::Incomplete(why) => {
                let message =
                    format!("the package lists could not be updated: {why}\nWithout them: {}", failure.message);
                transient("", message)
            }
        }
    }
}

/// How old the lists of packages are.
pub(super) struct Lists {
    updated: Option<SystemTime>,
    /// When a repository that they are of was changed last.
    changed: Option<SystemTime>,
}

impl Lists {
    /// Of these files, and of the repositories in these.
    pub(super) fn of(root: &SystemRoot, lists: impl Iterator<Item = String>, repositories: &[&str]) -> Self {
        let modified = |path: String| root.status(path)?.modified_at();
        let changed = repositories.iter().flat_map(|path| with_entries(root, path)).filter_map(modified).max();
        Self { updated: lists.filter_map(modified).max(), changed }
    }

    /// Returns whether the lists are missing, older than `maximum`, or older than a change of their repositories.
    pub(super) fn are_stale(&self, maximum: Duration) -> bool {
        let Some(updated) = self.updated else { return true };
        let is_old = SystemTime::now().duration_since(updated).is_ok_and(|age| age > maximum);
        is_old || self.changed.is_some_and(|changed| changed >= updated)
    }

    /// Returns whether there are no lists yet.
    pub(super) fn are_missing(&self) -> bool {
        self.updated.is_none()
    }

    /// Returns the item for their update, as a set reports it.
    pub(super) fn item(&self) -> Item {
        let updated = self.updated.and_then(|updated| Timestamp::try_from(updated).ok());
        let updated = updated.map(|updated| updated.strftime("%Y-%m-%d %H:%M:%S UTC").to_string());
        Item { path: "package lists".to_owned(), kind: ItemKind::Lists { updated } }
    }
}

/// A path, and those of what is in it if it is a directory.
fn with_entries(root: &SystemRoot, path: &str) -> Vec<String> {
    names_in(root, path).into_iter().map(|name| format!("{path}/{name}")).chain([path.to_owned()]).collect()
}

/// The names in a directory; none where there is no such directory.
pub(super) fn names_in(root: &SystemRoot, path: &str) -> Vec<String> {
    let names = root.entries(path).unwrap_or_default().into_keys();
    names.filter_map(|name| name.into_string().ok()).collect()
}

/// The architecture of a system: that of a package that every system has, or else of any.
pub(super) fn native(of: &str, packages: &[Package]) -> String {
    let everywhere = |package: &&Package| !is_everywhere(&package.architecture);
    let own = packages.iter().filter(everywhere).find(|package| *package.name == *of);
    let any = || packages.iter().find(everywhere);
    own.or_else(any).map(|package| package.architecture.to_string()).unwrap_or_default()
}

/// Returns whether a package is for every architecture.
fn is_everywhere(architecture: &str) -> bool {
    matches!(architecture, "all" | "noarch")
}

/// The packages of a system.
pub(super) struct Installed {
    /// In the order of the names.
    packages: Vec<Package>,
    /// The architecture of packages that are named without one.
    native: String,
}

/// A package that is installed, or of which something is left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Package {
    pub(super) name: Box<str>,
    pub(super) architecture: Box<str>,
    pub(super) version: Box<str>,
    pub(super) presence: Presence,
    pub(super) hold: bool,
    /// Whether it was installed only because others require it, where that is known.
    pub(super) automatic: Option<bool>,
}

/// How much of a package is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Presence {
    /// All of it.
    Installed,
    /// An installation or removal was broken off.
    Broken,
    /// Only its configuration files.
    Configuration,
}

impl Installed {
    pub(super) fn new(mut packages: Vec<Package>, native: String) -> Self {
        packages.sort_by(|left, right| left.name.cmp(&right.name));
        Self { packages, native }
    }

    /// The package of this name, which may have an architecture behind a colon.
    pub(super) fn find(&self, name: &str) -> Option<&Package> {
        let (name, architecture) = name.split_once(':').map_or((name, None), |(name, of)| (name, Some(of)));
        let start = self.packages.partition_point(|package| *package.name < *name);
        let mut same = self.packages.iter().skip(start).take_while(|package| *package.name == *name);
        same.find(|package| match architecture {
            Some(architecture) => *package.architecture == *architecture,
            None => self.is_native(&package.architecture),
        })
    }

    /// Those that are completely installed.
    pub(super) fn complete(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.presence == Presence::Installed)
    }

    /// The name under which [`Installed::find`] finds it.
    pub(super) fn full_name(&self, package: &Package) -> String {
        self.name_of(&package.name, &package.architecture)
    }

    /// The same of a package that may not be installed. Where no architecture is known, every one is the system's.
    pub(super) fn name_of(&self, name: &str, architecture: &str) -> String {
        if self.is_native(architecture) { name.to_owned() } else { format!("{name}:{architecture}") }
    }

    pub(super) fn is_native(&self, architecture: &str) -> bool {
        *architecture == *self.native || self.native.is_empty() || is_everywhere(architecture)
    }
}

/// What the package lists have of one package.
#[derive(Default)]
pub(super) struct Available {
    pub(super) name: String,
    /// The version that would be installed where none is asked for.
    pub(super) candidate: Option<String>,
    pub(super) versions: Vec<String>,
}

/// What is to be done at once.
#[derive(Default)]
pub(super) struct Transaction {
    /// Names, and versions where one is asked for.
    pub(super) install: Vec<(String, Option<String>)>,
    pub(super) remove: Vec<String>,
    /// Whether configuration files of what is removed are removed as well.
    pub(super) purge: bool,
    /// Names, and whether each is to be kept at its version.
    pub(super) hold: Vec<(String, bool)>,
    /// Names, and whether each is to count as installed only because others require it.
    pub(super) automatic: Vec<(String, bool)>,
    pub(super) release: Option<String>,
    /// Whether recommended packages are installed too; `None` for as the system is configured.
    pub(super) recommends: Option<bool>,
    pub(super) allow_downgrade: bool,
    /// Whether packages that are held may change.
    pub(super) changes_held: bool,
}

impl Transaction {
    /// Returns whether packages are installed or removed.
    pub(super) fn moves_packages(&self) -> bool {
        !self.install.is_empty() || !self.remove.is_empty()
    }
}

/// Returns whether a planned package is the stated one: package managers omit the architecture of the system.
pub(super) fn is_same(planned: &str, stated: &str) -> bool {
    planned == stated || stated.split_once(':').is_some_and(|(name, _)| name == planned)
}

/// What a transaction comes to.
#[derive(Default, Debug)]
pub(super) struct Plan {
    pub(super) installs: Vec<Install>,
    pub(super) removes: Vec<Remove>,
}

/// A package that gets a version.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Install {
    pub(super) name: String,
    pub(super) former: Option<String>,
    pub(super) version: String,
}

/// A package that goes.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Remove {
    pub(super) name: String,
    pub(super) version: String,
}
