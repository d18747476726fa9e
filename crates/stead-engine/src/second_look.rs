//! Finds what others in a run have changed after an instance was brought to its desired state.
//!
//! An instance that says what it manages has an effect on nothing else. So files are only looked at when something runs that does
//! not say so, such as a package or a command: once before it, and once at the end of the run. What has a state elsewhere, such as
//! a service that runs or a tree that is copied, shows nothing at its path: what can have changed anything can have changed it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use stead_core::id::NodeId;
use stead_core::instance_path::InstancePath;
use stead_system::fs::{Identity, SystemPath};

/// The instances of a run that were answered, and what ran after them that can have changed anything. `A` is an answer, of which
/// the paths are found out when they are needed. By default nothing is looked at, and no answer is kept.
pub(crate) struct SecondLook<A>(Option<Mutex<Looks<A>>>);

impl<A> Default for SecondLook<A> {
    fn default() -> Self {
        Self(None)
    }
}

struct Looks<A> {
    /// Those that nothing has run after yet that can have changed anything.
    answered: Vec<(NodeId, A)>,
    looked_at: BTreeMap<NodeId, Look>,
    /// How many sets are under way that can change anything.
    under_way: usize,
    /// The instances of those that have ended, in the order in which they did.
    ended: Vec<InstancePath>,
}

/// What is known of an instance once it was answered.
pub(crate) struct Traces {
    /// The paths that it manages.
    pub(crate) paths: Vec<SystemPath>,
    /// True if it has a state elsewhere.
    pub(crate) elsewhere: bool,
}

/// The files at the paths of an instance once it was answered.
struct Look {
    found: Vec<(SystemPath, Option<Identity>)>,
    elsewhere: bool,
    /// How many of those that can change anything had ended by then.
    ended: usize,
}

impl Look {
    fn is_as_it_was(&self) -> bool {
        !self.elsewhere && self.found.iter().all(|(path, identity)| identity_of(path) == *identity)
    }
}

fn identity_of(path: &SystemPath) -> Option<Identity> {
    path.status().map(|status| status.identity)
}

impl<A> SecondLook<A> {
    /// Of a run that looks at its end.
    pub(crate) fn begin() -> Self {
        let looks = Looks { answered: Vec::new(), looked_at: BTreeMap::new(), under_way: 0, ended: Vec::new() };
        Self(Some(Mutex::new(looks)))
    }

    /// An instance was answered.
    pub(crate) fn answered(&self, id: NodeId, answer: A, traces: impl Fn(NodeId, A) -> Traces) {
        let Some(mut looks) = self.looks() else { return };
        looks.looked_at.remove(&id);
        looks.answered.push((id, answer));
        if looks.under_way > 0 {
            looks.look(traces);
        }
    }

    /// An instance has no answer any more that could be wrong at the end.
    pub(crate) fn forget(&self, id: NodeId) {
        let Some(mut looks) = self.looks() else { return };
        looks.looked_at.remove(&id);
        looks.answered.retain(|(answered, _)| *answered != id);
    }

    /// A set of an instance begins that can change anything; it ends when what is returned is dropped.
    pub(crate) fn disturb(&self, instance: &InstancePath, traces: impl Fn(NodeId, A) -> Traces) -> Disturbance<'_, A> {
        if let Some(mut looks) = self.looks() {
            looks.look(traces);
            looks.under_way += 1;
        }
        Disturbance { look: self, instance: instance.clone() }
    }

    /// An instance that says what it manages changed these paths: what another one had found there is not there by the doing of
    /// those that do not say so.
    pub(crate) fn changed_openly(&self, by: NodeId, paths: impl FnOnce() -> Vec<SystemPath>) {
        let Some(mut looks) = self.looks().filter(|looks| !looks.looked_at.is_empty()) else { return };
        let changed: BTreeSet<PathBuf> = paths().iter().map(|path| path.to_path_buf()).collect();
        for (_, look) in looks.looked_at.iter_mut().filter(|(id, _)| **id != by) {
            look.found.retain(|(path, _)| !changed.contains(&path.to_path_buf()));
        }
    }

    /// The instances of which something was changed after they were answered, each with those that can have done so, in the order of
    /// the document: which of those that run beside each other ends first is chance.
    pub(crate) fn disturbed(&self) -> BTreeMap<NodeId, Vec<InstancePath>> {
        let Some(looks) = self.looks() else { return BTreeMap::new() };
        let after = |look: &Look| {
            let mut after = looks.ended.get(look.ended..).unwrap_or_default().to_vec();
            after.sort_by_key(InstancePath::node);
            after.dedup_by_key(|instance| instance.node());
            after
        };
        let touched = looks.looked_at.iter().map(|(id, look)| (*id, look, after(look)));
        let touched = touched.filter(|(_, look, after)| !after.is_empty() && !look.is_as_it_was());
        touched.map(|(id, _, after)| (id, after)).collect()
    }

    fn looks(&self) -> Option<MutexGuard<'_, Looks<A>>> {
        self.0.as_ref().map(|looks| looks.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<A> Looks<A> {
    /// Remembers what is at the paths of all that were answered.
    fn look(&mut self, traces: impl Fn(NodeId, A) -> Traces) {
        let ended = self.ended.len();
        for (id, answer) in std::mem::take(&mut self.answered) {
            let at = |path: SystemPath| {
                let identity = identity_of(&path);
                (path, identity)
            };
            let Traces { paths, elsewhere } = traces(id, answer);
            self.looked_at.insert(id, Look { found: paths.into_iter().map(at).collect(), elsewhere, ended });
        }
    }
}

/// A set that is under way and can change anything.
#[must_use = "it ends when it is dropped"]
pub(crate) struct Disturbance<'l, A> {
    look: &'l SecondLook<A>,
    instance: InstancePath,
}

impl<A> Drop for Disturbance<'_, A> {
    fn drop(&mut self) {
        let Some(mut looks) = self.look.looks() else { return };
        looks.under_way = looks.under_way.saturating_sub(1);
        looks.ended.push(self.instance.clone());
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use stead_core::id::{ResourceId, TypeName};

    use super::*;

    /// Sets of an instance without a container.
    fn instance(node: u32) -> InstancePath {
        let id =
            ResourceId { type_name: TypeName::parse("Test/Loose").expect("a type"), name: node.to_string().into() };
        InstancePath::new(None, id, NodeId(node))
    }

    #[test]
    fn what_was_changed_by_what_ran_afterwards_is_found() {
        let folder = tempfile::tempdir().expect("a directory");
        let at = |name: &str| folder.path().join(name);
        for name in ["a", "b"] {
            fs::write(at(name), "x").expect("it is written");
        }
        let look = SecondLook::<&str>::begin();
        let paths = |name: &str| vec![SystemPath::here(at(name))];
        let traces = |_, name: &str| Traces { paths: paths(name), elsewhere: name == "running" };
        let [a, b, c] = [0, 1, 2].map(NodeId);
        look.answered(a, "a", traces);
        drop(look.disturb(&instance(4), traces));
        let under_way = look.disturb(&instance(5), traces);
        look.answered(b, "b", traces);
        look.answered(c, "c", traces);
        assert!(look.disturbed().is_empty());
        for name in ["a", "b", "c"] {
            fs::write(at(name), "other").expect("it is written");
        }
        drop(under_way);
        drop(look.disturb(&instance(5), traces));
        drop(look.disturb(&instance(3), traces));
        let by = |found: &BTreeMap<NodeId, Vec<InstancePath>>, id| {
            found[&id].iter().map(|other| other.name().to_string()).collect::<Vec<_>>()
        };
        let found = look.disturbed();
        assert_eq!([a, b, c].map(|id| by(&found, id).concat()), ["345", "35", "35"]);
        // Another instance that says what it manages has changed one of them.
        assert!(look.disturbed().contains_key(&b));
        look.changed_openly(NodeId(9), || paths("b"));
        assert!(!look.disturbed().contains_key(&b));
        // It was set again.
        look.answered(c, "c", traces);
        assert!(!look.disturbed().contains_key(&c));
        // What has a state elsewhere shows nothing at a path.
        let running = NodeId(6);
        look.answered(running, "running", traces);
        assert!(!look.disturbed().contains_key(&running));
        drop(look.disturb(&instance(7), traces));
        assert_eq!(by(&look.disturbed(), running), ["7"]);
        look.forget(running);
        assert!(!look.disturbed().contains_key(&running));
        // A run that does not look keeps no answer.
        let (look, answer) = (SecondLook::default(), std::sync::Arc::new(()));
        let traces = |_, _| Traces { paths: Vec::new(), elsewhere: true };
        look.answered(running, std::sync::Arc::clone(&answer), traces);
        assert_eq!(std::sync::Arc::strong_count(&answer), 1);
        drop(look.disturb(&instance(7), traces));
        assert!(look.disturbed().is_empty());
    }
}
