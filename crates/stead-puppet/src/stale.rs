//! Whether a module that was written before is what would be written now.

use crate::Files;

/// A file that is not as it would be written now.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StaleFile {
    /// Its path in the module.
    pub path: String,
    /// What is wrong with it.
    pub reason: Staleness,
}

/// What is wrong with a file of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Staleness {
    /// It is not there.
    Missing,
    /// Its content is another.
    Different,
    /// It was generated before, and no longer is.
    Obsolete,
}

/// The files of a module that are not as they would be written now, sorted by path.
///
/// Files that are only on disk are obsolete where only generated ones are: below `lib/puppet/type`, `lib/puppet/provider` and
/// `lib/puppet_x`. Elsewhere they are those of an author, and none of our business.
pub fn stale_files(generated: &Files, on_disk: &Files) -> Vec<StaleFile> {
    let changed = generated.iter().filter_map(|(path, content)| {
        let reason = match on_disk.get(path) {
            None => Staleness::Missing,
            Some(found) if found != content => Staleness::Different,
            Some(_) => return None,
        };
        Some(StaleFile { path: path.clone(), reason })
    });
    let obsolete = on_disk.keys().filter(|path| is_ours(path) && !generated.contains_key(*path));
    let obsolete = obsolete.map(|path| StaleFile { path: path.clone(), reason: Staleness::Obsolete });
    let mut stale: Vec<_> = changed.chain(obsolete).collect();
    stale.sort();
    stale
}

fn is_ours(path: &str) -> bool {
    ["lib/puppet/type/", "lib/puppet/provider/", "lib/puppet_x/"].iter().any(|folder| path.starts_with(folder))
}
