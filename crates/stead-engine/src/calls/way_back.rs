//! The way back: what a run changed is put back where something that ran before does not come up with it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stead_core::call::{Call, Failure, FailureKind, Outcome};
use stead_core::graph::{Graph, Role};
use stead_core::id::NodeId;
use stead_core::instance_path::InstancePath;
use stead_core::manifest::UndoWay;
use stead_core::run::KnownInstance;
use stead_host::provider::{Context, Plain};
use stead_host::store::images::{Images, ImagesError, Scene, SetEntry, SetImages};
use stead_system::fs::{ImageNode, SystemPath};

use super::SessionCalls;
use crate::providers::Providers;
use crate::session::Session;
use crate::undo::{Item, Undo};

/// How many files a message names.
const NAMED: usize = 3;

/// The instances of a graph that have a way back.
#[derive(Default)]
pub(crate) struct WaysBack {
    /// By their paths, all instances, so that who made a change is found.
    paths: BTreeMap<String, InstancePath>,
    /// Those that have one, each with the paths of itself and those whose changes it acts on.
    causes: BTreeMap<NodeId, BTreeSet<String>>,
}

impl WaysBack {
    pub(super) fn of(graph: &Graph, providers: &Providers) -> Self {
        let has_state = |id: NodeId| {
            let node = graph.node(id);
            node.role == Role::Instance && node.manifest.undo == UndoWay::State
        };
        let has_one = |id: &NodeId| has_state(*id) && providers.of(&graph.node(*id).manifest).way_back().is_some();
        let path = |id: NodeId| graph.node(id).path.to_string();
        let own = graph.iter().map(|(id, _)| id).filter(has_one).map(|id| (id, BTreeSet::from([path(id)])));
        let mut causes: BTreeMap<NodeId, BTreeSet<String>> = own.collect();
        if causes.is_empty() {
            return Self::default();
        }
        for (source, acting) in graph.acting() {
            for handler in acting {
                if let Some(causes) = causes.get_mut(&handler) {
                    causes.insert(path(source));
                }
            }
        }
        Self { paths: graph.iter().map(|(id, node)| (path(id), node.path.clone())).collect(), causes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.causes.is_empty()
    }
}

impl Session {
    /// The keeper of the changes of a run, also for the run itself.
    pub(super) fn remembered(&self, images: Option<Images>) -> Images {
        let scene = Scene {
            root: self.system_root().map(Path::to_owned),
            origin: String::new(),
            folder: self.root().to_owned(),
            handlers: Vec::new(),
            undoes: None,
        };
        match images {
            Some(images) => images.remembering(scene),
            None => Images::in_memory(scene),
        }
    }
}

impl SessionCalls {
    /// Puts back what keeps instances from coming up that ran before the run, and brings them up again. Returns the instances that
    /// failed by it, with what is to be said of each.
    pub(super) fn put_back_for(&self, failed: &[(KnownInstance, String)]) -> Vec<(InstancePath, Failure)> {
        let has_one =
            |(known, _): &&(KnownInstance, String)| self.ways_back.causes.contains_key(&known.instance.node());
        let failed: Vec<_> = failed.iter().filter(has_one).collect();
        let images = self.contexts.usual.images.as_ref().filter(|_| !failed.is_empty());
        let Some(undo) = images.and_then(Images::take).and_then(Undo::of) else { return Vec::new() };
        let mut said: BTreeMap<NodeId, (InstancePath, Failure)> = BTreeMap::new();
        for (known, why) in failed {
            for (instance, failure) in self.put_back_for_one(&undo, known, why) {
                said.entry(instance.node()).or_insert((instance, failure));
            }
        }
        said.into_values().collect()
    }

    /// A set that failed, or that did not reach the desired state, as a failure that is not tried again unless something else changes,
    /// where the changes of the run that brought the instance down can be put back: trying again would only draw it out.
    pub(super) fn to_be_put_back(&self, call: &Call, outcome: &Outcome) -> Option<Failure> {
        let has_one = self.ways_back.causes.contains_key(&call.instance.node());
        let failure = match outcome {
            _ if !has_one => return None,
            Outcome::Failed(failure) => (**failure).clone(),
            Outcome::Changed(changed) => Failure::new(FailureKind::NotConverged, changed.why_not_reached()?),
            _ => return None,
        };
        let images = self.contexts.usual.images.as_ref().filter(|_| failure.can_heal());
        let undo = images.and_then(Images::so_far).and_then(Undo::of)?;
        let known = KnownInstance {
            instance: call.instance.clone(),
            manifest: Arc::clone(&call.manifest),
            desired: Arc::clone(&call.desired),
        };
        let is_sure = !self.brought_down_by(&undo, &known).is_empty();
        is_sure.then_some(Failure { kind: FailureKind::Blocked, ..failure })
    }

    /// The changes that brought an instance down that ran before the run.
    fn brought_down_by<'u>(&self, undo: &'u Undo, known: &KnownInstance) -> Vec<&'u Item> {
        let provider = self.providers.of(&known.manifest);
        let Some(way_back) = provider.way_back() else { return Vec::new() };
        let desired = Plain::covered(&known.desired);
        let before = undo.state_before(&known.instance.to_string());
        if !before.is_some_and(|before| way_back.is_down(&desired, before)) {
            return Vec::new();
        }
        self.causes(undo, known, &way_back.reads_at_start(&self.context_of(known), &desired))
    }

    fn context_of(&self, known: &KnownInstance) -> Context {
        Context { name: Arc::clone(known.instance.name()), ..self.contexts.of(known.instance.node()).clone() }
    }

    fn put_back_for_one(&self, undo: &Undo, known: &KnownInstance, why: &str) -> Vec<(InstancePath, Failure)> {
        let provider = self.providers.of(&known.manifest);
        let items = self.brought_down_by(undo, known);
        let Some(way_back) = provider.way_back().filter(|_| !items.is_empty()) else { return Vec::new() };
        let (own, cx) = (known.instance.to_string(), self.context_of(known));
        let desired = Plain::covered(&known.desired);
        let changes = format!("This run's changes of {}", named(&items));
        let end = match self.put_items_back(&items, known) {
            Err(failure) => {
                let message = followed(why, &format!("{changes} cannot be put back: {}", failure.message));
                return vec![(known.instance.clone(), Failure::new(FailureKind::System, message))];
            }
            Ok(()) => match way_back.bring_up(&cx, &desired) {
                Ok(()) => "it runs again".to_owned(),
                Err(failure) => format!("it still does not come up: {}", failure.message),
            },
        };
        let message = followed(why, &format!("{changes} were put back, and {end}"));
        let service = Failure::new(FailureKind::System, message);
        let message = format!("taken back, since {} did not come up with it", known.instance.label());
        let taken_back = Failure::new(FailureKind::NotConverged, message);
        let makers: BTreeSet<&String> = items.iter().flat_map(|item| &item.instances).collect();
        let makers = makers.into_iter().filter(|maker| **maker != own).filter_map(|by| self.ways_back.paths.get(by));
        let makers = makers.map(|maker| (maker.clone(), taken_back.clone()));
        makers.chain([(known.instance.clone(), service)]).collect()
    }

    /// The paths that an instance changed itself, or that were changed by what it acts on, or that it reads.
    fn causes<'u>(&self, undo: &'u Undo, known: &KnownInstance, reads: &[SystemPath]) -> Vec<&'u Item> {
        // The last name of a path may be a link as well, as that of a site that is enabled.
        let behind = |path: &Path| Some(self.real_paths.of(&path.join("x"))?.parent()?.to_owned());
        let reads = reads.iter().map(|path| PathBuf::from(path.clone()));
        let reads: BTreeSet<PathBuf> = reads.flat_map(|path| [behind(&path), Some(path)]).flatten().collect();
        let causes = self.ways_back.causes.get(&known.instance.node());
        let is_read = |item: &Item| item.place.ancestors().any(|place| reads.contains(&PathBuf::from(place)));
        let is_cause = |by: &String| causes.is_some_and(|causes| causes.contains(by));
        undo.items().filter(|item| item.instances.iter().any(is_cause) || is_read(item)).collect()
    }

    /// Puts all of it back, or nothing where something of it is not as the run left it.
    fn put_items_back(&self, items: &[&Item], known: &KnownInstance) -> Result<(), Failure> {
        let open = || items.iter().filter(|item| !item.is_back());
        for item in open() {
            if let Some(why) = item.lost().or_else(|| item.why_unknown()) {
                return Err(Failure::new(FailureKind::Refused, format!("'{}': {why}", item.shown)));
            }
        }
        let Some(images) = &self.contexts.usual.images else { return Ok(()) };
        let failed = |error: ImagesError| Failure::new(FailureKind::System, error.to_string());
        let set = images.set(SetEntry {
            instance: known.instance.to_string(),
            type_name: known.manifest.type_name.clone(),
            undo: UndoWay::Files,
            desired: None,
            covered: false,
            before: None,
        });
        let set = set.map_err(failed)?;
        let writes = self.contexts.usual.writes.kept_by(Arc::<SetImages>::clone(&set));
        // What was made goes before the directory that it is in; what was removed comes after it.
        let is_made = |item: &&&Item| item.before.node == ImageNode::Absent;
        let (made, changed): (Vec<&&Item>, Vec<&&Item>) = open().partition(is_made);
        let put = made.into_iter().rev().chain(changed).try_for_each(|item| item.put_back(&writes));
        set.over().map_err(failed)?;
        Ok(put?)
    }
}

/// A message with a sentence behind its first line, in front of what it quotes.
fn followed(message: &str, sentence: &str) -> String {
    let (first, rest) = message.split_at(message.find('\n').unwrap_or(message.len()));
    format!("{first}. {sentence}{rest}")
}

/// The files in a message.
fn named(items: &[&Item]) -> String {
    let (first, others) = items.split_at(items.len().min(NAMED));
    let mut named: Vec<String> = first.iter().map(|item| format!("'{}'", item.shown)).collect();
    named.extend((!others.is_empty()).then(|| format!("{} more", others.len())));
    named.join(", ")
}
