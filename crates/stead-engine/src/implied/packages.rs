//! The order that follows from what packages bring and nobody names.

use std::collections::BTreeSet;
use std::path::Path;

use stead_core::claims::{Claim, Provision};
use stead_core::graph::{Graph, Implied};
use stead_core::id::NodeId;

use super::{Index, Known, adjacent};

/// How many packages in front of an instance it comes after. A document with more states them in one instance, which is one
/// transaction.
const MOST_PACKAGES: usize = 64;

/// Which instances come after the packages that stand in front of them in the document, whatever becomes of those. A package
/// brings programs, units, accounts and folders whose names are not its own, and its scripts write to /etc.
pub(crate) fn after_packages(graph: &Graph, all: &[Known], root: &Path) -> BTreeSet<Implied> {
    let is_package = |known: &&Known| known.provides(|provision| matches!(provision, Provision::Package(_)));
    let mut packages: Vec<NodeId> = all.iter().filter(is_package).map(|known| known.id).collect();
    packages.sort();
    let mut found = BTreeSet::new();
    if packages.is_empty() {
        return found;
    }
    let index = Index::of(all.iter().filter(|known| !graph.is_asserted(known.id)));
    let brings = |known: &&Known| known.provides(|provision| !matches!(provision, Provision::Path(_)));
    for known in all.iter().filter(|known| !brings(known) && index.may_use_packages(known, root)) {
        let before = packages.partition_point(|package| *package < known.id);
        let nearest = packages.get(..before).unwrap_or_default().iter().rev().take(MOST_PACKAGES);
        let implied = nearest.map(|package| Implied { instance: known.id, needed: *package });
        found.extend(implied.filter_map(|each| adjacent(graph, each)));
    }
    found
}

impl Index<'_> {
    /// Returns whether an instance may use something of packages that nobody names: a program or a unit after which no package is
    /// named, an account that the document does not create, or a place below /etc.
    fn may_use_packages(&self, known: &Known, root: &Path) -> bool {
        let mut programs = known.uses().filter(|used| matches!(used, Provision::Package(_))).peekable();
        let lacks_program = programs.peek().is_some() && !programs.any(|used| self.providers.contains_key(used));
        let used = known.uses().filter_map(|used| match used {
            Provision::Path(path) => Some(path),
            _ => None,
        });
        let claimed = || known.claims.iter().flat_map(|claims| &claims.0).map(|Claim::Path { path, .. }| path);
        lacks_program
            || used.chain(claimed()).any(|path| self.lacks_account(path, root))
            || claimed().any(|path| is_configuration(path, root))
    }

    /// Returns whether a path is, or lies in, the record of an account that no instance creates. Every system has root.
    fn lacks_account(&self, path: &Path, root: &Path) -> bool {
        let is_created = |record: &Path| {
            self.folders.contains_key(record.as_os_str()) || self.files.contains_key(record.as_os_str())
        };
        account_of(path, root).is_some_and(|record| !record.ends_with("root") && !is_created(record))
    }
}

/// Returns the part of a path below `etc` of a root; `None` if it lies elsewhere.
fn below_etc<'p>(path: &'p Path, root: &Path) -> Option<&'p Path> {
    path.strip_prefix(root).ok()?.strip_prefix("etc").ok()
}

/// The databases of accounts: what is below them are records.
const ACCOUNTS: [&str; 2] = ["passwd", "group"];

/// The record of an account that a path is, or lies in.
pub(crate) fn account_of<'p>(path: &'p Path, root: &Path) -> Option<&'p Path> {
    let below = below_etc(path, root)?;
    let is_record = ACCOUNTS.iter().any(|database| below.starts_with(database));
    let depth = below.components().count();
    path.ancestors().nth(depth.checked_sub(2).filter(|_| is_record)?)
}

/// Returns whether a path is a place for files that packages create or change. The files of accounts and of package managers are
/// not: they are there before packages are.
fn is_configuration(path: &Path, root: &Path) -> bool {
    const OTHERS: [&str; 8] = ["passwd", "group", "shadow", "gshadow", "apt", "dnf", "yum", "yum.repos.d"];
    below_etc(path, root).is_some_and(|below| !OTHERS.iter().any(|other| below.starts_with(other)))
}
