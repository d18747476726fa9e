//! The resources that a document waiting for its next attempt may have changed, which the current document leaves
//! alone.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use stead_core::claims::{Claim, Claims, Extent};

/// Claims of the pending document according to its last job, and instances seen to change during its jobs.
///
/// A document that no job has worked on yet may change anything.
#[derive(Clone, Default)]
pub(crate) struct Touched {
    /// The document.
    generation: Option<u64>,
    paths: Arc<HashMap<Arc<Path>, Reach>>,
    /// Instances of the current document, by their paths, that were seen to change while a job worked on a pending
    /// one, and the generation of that one.
    seen: (u64, BTreeSet<String>),
}

/// How far a claim on a path reaches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    /// The path itself.
    Path,
    /// Everything below it as well.
    Below,
}

fn reach(extent: &Extent) -> Option<Reach> {
    match extent {
        Extent::Read => None,
        Extent::Link { .. } | Extent::Entries { .. } | Extent::Tree { .. } | Extent::Absent => Some(Reach::Below),
        _ => Some(Reach::Path),
    }
}

fn reaches(claims: &Claims) -> impl Iterator<Item = (&Arc<Path>, Reach)> {
    claims.0.iter().filter_map(|Claim::Path { path, extent }| Some((path, reach(extent)?)))
}

/// Returns whether the claims change a path or anything below it.
pub(crate) fn reaches_into(claims: &Claims, folder: &Path) -> bool {
    claims.0.iter().any(|Claim::Path { path, extent }| {
        let below = folder.strip_prefix(path).ok().and_then(|below| below.iter().next());
        match (reach(extent), extent) {
            (None, _) => false,
            _ if path.starts_with(folder) => true,
            (_, Extent::Entries { kept }) => {
                below.is_some_and(|name| !name.to_str().is_some_and(|name| kept.contains(name)))
            }
            (_, Extent::Tree { purge }) => *purge && below.is_some(),
            (Some(Reach::Below), _) => below.is_some(),
            _ => false,
        }
    })
}

impl Touched {
    /// Records what a pending document manages.
    pub(crate) fn learn<'c>(&mut self, generation: u64, claims: impl Iterator<Item = &'c Claims>) {
        let mut paths: HashMap<Arc<Path>, Reach> = HashMap::new();
        for (path, reach) in claims.flat_map(reaches) {
            let known = paths.entry(Arc::clone(path)).or_insert(reach);
            *known = reach.max(*known);
        }
        (self.generation, self.paths) = (Some(generation), Arc::new(paths));
    }

    /// Records that these instances of the current document changed while a job worked on a pending one.
    pub(crate) fn see<'i>(&mut self, pending: u64, instances: impl IntoIterator<Item = &'i String>) {
        let (generation, seen) = &mut self.seen;
        if std::mem::replace(generation, pending) != pending {
            seen.clear();
        }
        seen.extend(instances.into_iter().cloned());
    }

    /// Returns these changes if they are of `pending`; otherwise an empty record, by which anything may have changed.
    pub(crate) fn by(&self, pending: u64) -> Self {
        if self.generation == Some(pending) { self.clone() } else { Self::default() }
    }

    /// Returns whether the pending document may change an instance of the current one. True if the claims of the
    /// instance are unknown.
    pub(crate) fn may_change(&self, instance: &str, claims: Option<&Claims>) -> bool {
        let Some(claims) = claims.filter(|claims| self.generation.is_some() && !claims.0.is_empty()) else {
            return true;
        };
        let (generation, seen) = &self.seen;
        let was_seen = self.generation == Some(*generation) && seen.contains(instance);
        was_seen || reaches(claims).any(|(path, reach)| self.overlaps(path, reach))
    }

    fn overlaps(&self, path: &Path, reach: Reach) -> bool {
        let above = path.ancestors().skip(1).any(|above| self.paths.get(above) == Some(&Reach::Below));
        let below = || reach == Reach::Below && self.paths.keys().any(|other| other.starts_with(path));
        above || self.paths.contains_key(path) || below()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(path: &str, extent: Extent) -> Claims {
        Claims::from_iter([(path, extent)])
    }

    #[test]
    fn what_may_be_changed_by_both_is_left_alone() {
        let mut touched = Touched::default();
        let file = claims("/srv/a/f", Extent::Whole);
        assert!(touched.may_change("f", Some(&file)), "nothing is known yet");
        touched.learn(2, [claims("/srv/b", Extent::Absent), claims("/srv/a", Extent::Directory)].iter());
        assert!(!touched.may_change("f", Some(&file)));
        assert!(touched.may_change("f", None), "nobody knows what it manages");
        for (path, extent) in [("/srv/b/f", Extent::Whole), ("/srv", Extent::Absent), ("/srv/a", Extent::Mode(0o755))] {
            assert!(touched.may_change("other", Some(&claims(path, extent))), "{path}");
        }
        assert!(touched.by(3).may_change("f", Some(&file)), "that is another document");
        touched.see(2, &["f".to_owned()]);
        assert!(touched.by(2).may_change("f", Some(&file)));
        touched.learn(3, [].iter());
        assert!(!touched.may_change("f", Some(&file)));
    }
}
