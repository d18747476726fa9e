//! The things that instances manage, as they are known between runs, and who else manages them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value as Json};
use stead_core::call::{Execution, FailureKind};
use stead_core::claims::{Claim, Claims, Extent, Provision};
use stead_core::diff::exists;
use stead_core::graph::{Graph, Role};
use stead_core::id::NodeId;
use stead_core::manifest::Implementation;
use stead_core::value::{Object, Value};
use stead_host::provider::{Context, Plain};
use stead_host::store::kept::Managed;
use stead_resources::{Thing, builtin, builtin_of};

use crate::contexts::Contexts;
use crate::implied::Known;
use crate::providers::Providers;
use crate::real_paths::RealPaths;

/// Tells the things of the instances of a document.
pub(crate) struct Things {
    contexts: Contexts,
    providers: Arc<Providers>,
    /// The root of the system, if it is not the one that runs.
    root: Option<PathBuf>,
}

/// A thing, and the key that tells it from others.
#[derive(Clone)]
pub(crate) struct Keyed {
    pub(crate) key: String,
    pub(crate) managed: Managed,
}

impl Things {
    /// Those of the instances of a graph, below a root of the system if it is not the one that runs.
    pub(crate) fn new(contexts: Contexts, providers: Arc<Providers>, root: Option<&Path>) -> Self {
        Self { contexts, providers, root: root.map(Path::to_path_buf) }
    }

    /// The thing that an instance with this desired state is about; `None` where it manages none, or it is not known which.
    pub(crate) fn of(&self, graph: &Graph, id: NodeId, desired: &Value) -> Option<Keyed> {
        let (node, desired) = (graph.node(id), desired.as_object()?);
        if node.role != Role::Instance || graph.is_asserted(id) {
            return None;
        }
        let Some(built_in) = builtin_of(&node.manifest) else {
            // Nobody knows what of its properties tells the thing.
            let is_program = matches!(node.manifest.implementation, Implementation::Command(_));
            let has_existence = node.manifest.capabilities.set_handles_exist || node.manifest.capabilities.delete;
            return (is_program && has_existence).then(|| keyed(graph, id, node.path.to_string().into(), None));
        };
        let mut thing = built_in.thing(desired)?;
        let cx = self.contexts.of(id);
        let Thing { key, removal, place } = &mut thing;
        let places = [key, removal].into_iter().filter_map(|properties| properties.get_mut((*place)?));
        // Both have it from what is stated.
        let mut complete = None;
        for path in places {
            let complete = match &complete {
                Some(complete) => complete,
                None => complete.insert(self.complete(path.as_str()?, cx)?),
            };
            *path = Value::from(complete.as_str());
        }
        Some(keyed(graph, id, Json::Object(json(thing.key)), Some(json(thing.removal))))
    }

    /// The path as it is seen in the system, absolute: the folder of a document may be another one next time.
    fn complete(&self, path: &str, cx: &Context) -> Option<String> {
        let whole = PathBuf::from(cx.resolve(path));
        let within = match &self.root {
            Some(root) => Path::new("/").join(whole.strip_prefix(root).ok()?),
            None => whole,
        };
        let plain: PathBuf = within.components().collect();
        plain.into_os_string().into_string().ok()
    }

    /// Where what instances hold is collected.
    pub(crate) fn held(&self) -> Held {
        Held::below(self.root.as_deref().unwrap_or(Path::new("/")))
    }

    /// The things that must be there for an instance, as their keys.
    pub(crate) fn needed(graph: &Graph, id: NodeId, key_of: impl Fn(NodeId) -> Option<String>) -> Vec<String> {
        let needs = graph.node(id).needs.iter().filter(|need| need.kind.must_succeed());
        needs.filter_map(|need| key_of(need.node)).collect()
    }

    /// The claims on a thing; `None` where it is not known how it is removed, or what that takes along.
    pub(crate) fn claims(&self, managed: &Managed) -> Option<Claims> {
        let built_in = builtin(&managed.type_name)?;
        let removal = Map::clone(managed.removal.as_ref()?);
        let removal = Plain::new(Value::from(Json::Object(removal)));
        let claims = self.providers.claims_of(&built_in.manifest, &removal, &self.contexts.usual)?;
        let is_tree = |Claim::Path { extent, .. }: &Claim| matches!(extent, Extent::Tree { .. });
        let is_known = claims.0.iter().any(is_own) && !claims.0.iter().any(is_tree);
        is_known.then_some(claims)
    }

    /// What keeps a thing from being removed as it is now; `None` where nothing does that is known.
    pub(crate) fn blocked(&self, managed: &Managed) -> Option<Blocked> {
        let (built_in, removal) = (builtin(&managed.type_name)?, to_remove(managed)?);
        let provider = self.providers.of(&built_in.manifest);
        let failure = provider.set(&self.contexts.usual, &Plain::new(removal), Execution::WhatIf).err()?;
        let is_directory =
            |claims: Claims| claims.0.iter().any(|Claim::Path { extent, .. }| *extent == Extent::Directory);
        let path = || {
            managed
                .removal
                .as_ref()?
                .get(built_in.place?)?
                .as_str()
                .filter(|_| self.claims(managed).is_some_and(is_directory))
        };
        let entries = path().and_then(|path| self.contexts.usual.system_root.entries(path).ok());
        Some(match entries.filter(|entries| !entries.is_empty()) {
            Some(entries) => Blocked::By(entries.into_keys().collect()),
            None if failure.kind == FailureKind::Blocked => Blocked::Otherwise(failure.message),
            None => return None,
        })
    }

    /// Returns whether the thing is not there. What is not known may be there.
    pub(crate) fn is_absent(&self, managed: &Managed) -> bool {
        let (Some(built_in), Some(removal)) = (builtin(&managed.type_name), to_remove(managed)) else { return false };
        let reply = self.providers.of(&built_in.manifest).test(&self.contexts.usual, &Plain::new(removal));
        reply.is_ok_and(|reply| match (reply.in_desired_state, &reply.differing, &reply.actual) {
            (Some(verdict), ..) => verdict,
            (None, Some(differing), _) => differing.is_empty(),
            (None, None, Some(actual)) => actual.expose().as_object().is_some_and(|actual| !exists(actual)),
            (None, None, None) => false,
        })
    }
}

/// What is in the way of a removal.
pub(crate) enum Blocked {
    /// The entries of a directory.
    By(Vec<OsString>),
    /// Something else: the message of the resource.
    Otherwise(String),
}

/// Properties of which none is sealed.
fn json(members: Object) -> Map<String, Json> {
    members.into_iter().map(|(name, value)| (name, value.to_redacted_json())).collect()
}

fn keyed(graph: &Graph, id: NodeId, key: Json, removal: Option<Map<String, Json>>) -> Keyed {
    let node = graph.node(id);
    let managed = Managed {
        name: (&*node.name).into(),
        type_name: node.manifest.type_name.clone(),
        removal: removal.map(Arc::new),
        created: false,
        since: 0,
        after: Vec::new(),
    };
    let key = Json::Array(vec![node.manifest.type_name.as_str().into(), key]);
    Keyed { key: key.to_string(), managed }
}

/// The desired state in which a thing is absent.
pub(crate) fn to_remove(managed: &Managed) -> Option<Value> {
    let mut desired = Map::clone(managed.removal.as_ref()?);
    desired.insert("_exist".to_owned(), Json::Bool(false));
    Some(Value::from(Json::Object(desired)))
}

/// A claim on something that an instance makes and removes itself.
fn is_own(Claim::Path { extent, .. }: &Claim) -> bool {
    !matches!(extent, Extent::Read | Extent::Backup | Extent::Mode(_) | Extent::Presence | Extent::Absent)
}

/// Everything that instances manage and use, by path: as it is stated, and where links lead to it.
pub(crate) struct Held {
    real_paths: RealPaths,
    by_path: BTreeMap<PathBuf, Vec<(Option<NodeId>, Extent)>>,
    used: BTreeSet<PathBuf>,
}

/// How a thing is held by others.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Hold {
    /// An instance manages it: that one, where it is of this document.
    Managed(Option<NodeId>),
    /// Something lies in it, or reads it.
    Used,
}

impl Held {
    /// Nothing yet, of the system with this root.
    fn below(root: &Path) -> Self {
        Self { real_paths: RealPaths::below(root), by_path: BTreeMap::new(), used: BTreeSet::new() }
    }

    pub(crate) fn add(&mut self, by: Option<NodeId>, claims: &Claims) {
        for Claim::Path { path, extent } in &claims.0 {
            for path in self.real_paths.of(path).into_iter().chain([path.to_path_buf()]) {
                self.by_path.entry(path).or_default().push((by, extent.clone()));
            }
        }
    }

    pub(crate) fn add_known(&mut self, known: &Known) {
        known.claims.iter().for_each(|claims| self.add(Some(known.id), claims));
        let paths = known.ties.iter().flat_map(|ties| &ties.uses).filter_map(|used| match used {
            Provision::Path(path) => Some(path.to_path_buf()),
            _ => None,
        });
        let both = |path: PathBuf| self.real_paths.of(&path).into_iter().chain([path]);
        self.used.extend(paths.flat_map(both));
    }

    /// The claims on what an instance makes itself, with the paths where links lead to. A file is one, whoever states its content.
    pub(crate) fn own(&self, mut claims: Claims) -> Claims {
        claims.0.retain(is_own);
        for Claim::Path { extent, .. } in &mut claims.0 {
            if *extent == Extent::Attributes {
                *extent = Extent::Whole;
            }
        }
        claims.resolved(|path| self.real_paths.of(path).map_or(Cow::Borrowed(path), Cow::Owned))
    }

    /// How a thing with these claims is held. The first of them is the thing itself.
    pub(crate) fn hold(&self, claims: &Claims) -> Option<Hold> {
        let mut own = claims.0.iter().filter(|claim| is_own(claim));
        let hold = |Claim::Path { path, extent }: &Claim| {
            let real = || self.hold_of(&self.real_paths.of(path)?, extent);
            self.hold_of(path, extent).or_else(real)
        };
        let first = hold(own.next()?);
        first.or_else(|| own.find_map(hold).map(|_| Hold::Used))
    }

    fn hold_of(&self, path: &Path, extent: &Extent) -> Option<Hold> {
        let here = self.by_path.get(path).into_iter().flatten();
        let mut here: Vec<_> = here.filter(|(_, held)| overlap(held, extent)).collect();
        here.sort_by_key(|(_, held)| *held == Extent::Read);
        if let Some((by, held)) = here.first() {
            return Some(if *held == Extent::Read { Hold::Used } else { Hold::Managed(*by) });
        }
        if matches!(extent, Extent::Part { .. }) {
            return None;
        }
        let mut below =
            self.by_path.range(path.to_path_buf()..).map(|(below, _)| below).filter(|below| **below != *path);
        if self.used.contains(path) || below.next().is_some_and(|below| below.starts_with(path)) {
            return Some(Hold::Used);
        }
        path.ancestors().skip(1).find_map(|above| {
            let mut held = self.by_path.get(above).into_iter().flatten();
            held.find(|(_, held)| keeps(held, above, path)).map(|(by, _)| Hold::Managed(*by))
        })
    }
}

/// Returns whether a claim on a directory says that something in it is there.
fn keeps(held: &Extent, directory: &Path, path: &Path) -> bool {
    let name = || path.strip_prefix(directory).ok()?.iter().next()?.to_str();
    match held {
        Extent::Tree { .. } => true,
        Extent::Entries { kept } => name().is_some_and(|name| kept.contains(name)),
        _ => false,
    }
}

/// Returns whether a claim of another is on what a claim on the same path is on, or uses it.
fn overlap(held: &Extent, lost: &Extent) -> bool {
    let within = |outer: &str, inner: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(Extent::WITHIN))
    };
    match (held, lost) {
        (Extent::Backup, _)
        | (Extent::Read, Extent::Part { .. })
        | (Extent::Part { key: Some(_), line: None }, Extent::Part { line: Some(_), key: None })
        | (Extent::Part { line: Some(_), key: None }, Extent::Part { key: Some(_), line: None }) => false,
        (Extent::Part { key: Some(held), .. }, Extent::Part { key: Some(lost), .. }) => {
            within(held, lost) || within(lost, held)
        }
        (Extent::Part { line: Some(held), .. }, Extent::Part { line: Some(lost), .. }) => held == lost,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(line: Option<&str>, key: Option<&str>) -> Extent {
        Extent::Part { line: line.map(str::to_owned), key: key.map(str::to_owned) }
    }

    fn hold(held: &[(&str, Extent)], lost: &[(&str, Extent)]) -> Option<Hold> {
        let mut all = Held::below(Path::new("/"));
        all.add(None, &held.iter().cloned().collect());
        all.hold(&lost.iter().cloned().collect())
    }

    #[test]
    fn a_thing_is_held_by_what_manages_it_and_used_by_what_lies_in_it() {
        let managed = Some(Hold::Managed(None));
        let (file, directory) = (Extent::Whole, Extent::Directory);
        assert_eq!(hold(&[("/a", file.clone())], &[("/a", file.clone())]), managed);
        assert_eq!(hold(&[("/ab", file.clone())], &[("/a", directory.clone())]), None);
        assert_eq!(hold(&[("/a/b/c", file.clone())], &[("/a", directory.clone())]), Some(Hold::Used));
        assert_eq!(hold(&[("/a", Extent::Read)], &[("/a", file.clone())]), Some(Hold::Used));
        assert_eq!(hold(&[("/a", part(Some("x"), None))], &[("/a", file.clone())]), managed);
        let entries = Extent::Entries { kept: BTreeSet::from(["b".to_owned()]) };
        assert_eq!(hold(&[("/a", entries.clone())], &[("/a/b", file.clone())]), managed);
        assert_eq!(hold(&[("/a", entries)], &[("/a/c", file.clone())]), None);
        assert_eq!(hold(&[("/a", Extent::Tree { purge: false })], &[("/a/b/c", file)]), managed);
        // The group of a user is another's: the user is not, and cannot go without it.
        let user = [("/passwd/u", directory.clone()), ("/group/u", directory.clone())];
        assert_eq!(hold(&[("/group/u", directory)], &user), Some(Hold::Used));
    }

    #[test]
    fn parts_of_a_file_are_distinguished() {
        let held = |held: Extent, lost: Extent| hold(&[("/f", held)], &[("/f", lost)]).is_some();
        assert!(held(part(Some("a"), None), part(Some("a"), None)));
        assert!(!held(part(Some("a"), None), part(Some("b"), None)));
        assert!(held(part(None, None), part(Some("b"), None)), "it may be any line");
        assert!(held(part(None, Some("\u{1f}a")), part(None, Some("\u{1f}a\u{1f}b"))));
        assert!(held(part(None, Some("\u{1f}a\u{1f}b")), part(None, Some("\u{1f}a"))));
        assert!(!held(part(None, Some("\u{1f}ab")), part(None, Some("\u{1f}a"))));
        assert!(held(Extent::Whole, part(Some("b"), None)));
        assert!(!held(Extent::Read, part(Some("b"), None)));
    }
}
