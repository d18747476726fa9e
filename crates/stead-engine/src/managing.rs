//! The record of the things that a run manages, creates and removes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use stead_core::call::{Execution, Outcome};
use stead_core::destruction::Effect;
use stead_core::diff::exists;
use stead_core::event::{Event, EventKind, Status};
use stead_core::graph::Graph;
use stead_core::id::NodeId;
use stead_core::report::Report;
use stead_core::run::Run;
use stead_host::store::kept::{Kept, Managed};

use crate::things::{Keyed, Things};

/// The fates of the things that a document does not have any more.
#[derive(Clone, Default, Debug)]
pub(crate) struct Gone {
    /// The instances that remove one, and the keys of those things.
    pub(crate) removing: BTreeMap<NodeId, String>,
    /// The keys of things that its runs need not know any more.
    pub(crate) forgotten: BTreeSet<String>,
    /// The keys of things of the document that were created under another key.
    pub(crate) inherited: BTreeSet<String>,
}

/// How many things are marked at once as those that may be gone. After a kill so many may be left that nobody removes any more.
const MARKED_AT_ONCE: usize = 64;

/// How many things are recorded at most that no run created.
const MOST_FOUND: usize = 100_000;

/// The things of a document, as a run comes to know them.
pub(crate) struct Managing {
    things: Things,
    graph: Arc<Graph>,
    gone: Gone,
    /// The record, as far as this run knows it.
    recorded: BTreeMap<String, Managed>,
    /// The instances that a set of this run made.
    created: BTreeSet<NodeId>,
    /// The things that this run has begun to remove.
    begun: BTreeSet<String>,
}

/// The changes of the record that a run is to write.
#[derive(Default)]
pub(crate) struct News {
    managed: BTreeMap<String, Managed>,
    dropped: BTreeSet<String>,
}

impl News {
    pub(crate) fn is_empty(&self) -> bool {
        self.managed.is_empty() && self.dropped.is_empty()
    }

    pub(crate) fn write(&self, kept: &mut Kept) {
        kept.managed.retain(|key, _| !self.dropped.contains(key));
        kept.managed.extend(self.managed.iter().map(|(key, managed)| (key.clone(), managed.clone())));
    }
}

impl Managing {
    /// Of a run of this graph, with what the record has before it.
    pub(crate) fn new(things: Things, graph: &Arc<Graph>, gone: &Gone, recorded: &BTreeMap<String, Managed>) -> Self {
        Self {
            things,
            graph: Arc::clone(graph),
            gone: gone.clone(),
            recorded: recorded.clone(),
            created: BTreeSet::new(),
            begun: BTreeSet::new(),
        }
    }

    /// The things that calls which are about to begin may remove, and that the record has as created: it must not say so any
    /// more, since what is there after a crash may be another's.
    pub(crate) fn about_to_remove(&mut self, events: &[Event]) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for event in events {
            match &event.kind {
                EventKind::CallStarted { instance, operation, execution: Execution::Actual, desired }
                    if operation.may_change() =>
                {
                    let id = instance.node();
                    let is_removal = desired.as_object().is_some_and(|desired| !exists(desired));
                    let stated = || self.things.of(&self.graph, id, desired).filter(|_| is_removal);
                    found.extend(self.gone.removing.get(&id).cloned().or_else(|| Some(stated()?.key)));
                }
                EventKind::CallEnded { instance, response, .. } => {
                    if let Outcome::Changed(changed) = &response.outcome
                        && changed.effect() == Effect::Create
                    {
                        self.created.insert(instance.node());
                    }
                }
                _ => {}
            }
        }
        let is_new =
            |key: &String| !self.begun.contains(key) && self.recorded.get(key).is_some_and(|thing| thing.created);
        found.retain(is_new);
        // One write is for many: each replaces the whole record.
        if !found.is_empty() {
            let next = self.gone.removing.values().filter(|key| is_new(key));
            found.extend(next.take(MARKED_AT_ONCE).cloned());
        }
        self.begun.extend(found.iter().cloned());
        found
    }

    /// The changes that are due and not recorded yet.
    pub(crate) fn news(&mut self, run: &Run) -> News {
        let report = run.report();
        let mut keys: BTreeMap<NodeId, String> = BTreeMap::new();
        let mut news = News::default();
        for id in self.graph.order.iter().filter(|id| !self.gone.removing.contains_key(id)) {
            let Some(Keyed { key, mut managed }) = self.thing(report, *id) else { continue };
            managed.after = Things::needed(&self.graph, *id, |need| keys.get(&need).map(String::as_str));
            keys.insert(*id, key.clone());
            self.note(report, *id, (key, managed), &mut news);
        }
        for (id, key) in &self.gone.removing {
            match report.status(*id) {
                Some(Status::Changed | Status::InState) => drop(news.dropped.insert(key.clone())),
                // It was not removed, and is what a former run made.
                _ => news.managed.extend(self.recorded.get(key).map(|thing| (key.clone(), thing.clone()))),
            }
        }
        news.dropped.extend(self.gone.forgotten.iter().cloned());
        self.settled(news)
    }

    fn thing(&self, report: &Report, id: NodeId) -> Option<Keyed> {
        let desired = report.record(id).desired.as_ref().or(self.graph.node(id).stated.as_ref())?;
        self.things.of(&self.graph, id, desired)
    }

    fn note(&self, report: &Report, id: NodeId, (key, managed): (String, Managed), news: &mut News) {
        let record = report.record(id);
        let is_there = record.desired.as_ref().and_then(|desired| desired.as_object()).is_none_or(exists);
        let has_succeeded = matches!(record.status(), Some(Status::Changed | Status::InState));
        let was_created = self.recorded.get(&key).is_some_and(|thing| thing.created);
        let created = self.created.contains(&id) || was_created || self.gone.inherited.contains(&key);
        match (is_there, has_succeeded) {
            (false, true) => drop(news.dropped.insert(key)),
            (true, true) => drop(news.managed.insert(key, Managed { created, ..managed })),
            (true, false) if self.created.contains(&id) => {
                news.managed.insert(key, Managed { created, ..managed });
            }
            // What it came to is not known: the record says what it said before the run.
            _ => news.managed.extend(self.recorded.get(&key).map(|thing| (key, thing.clone()))),
        }
    }

    /// Leaves out what the record has already, and takes the rest for recorded.
    fn settled(&mut self, mut news: News) -> News {
        let found = news.managed.values().filter(|managed| !managed.created).count();
        if found > MOST_FOUND {
            news.managed.retain(|_, managed| managed.created);
        }
        let is_new =
            |key: &String, managed: &Managed| self.begun.contains(key) || self.recorded.get(key) != Some(managed);
        news.managed.retain(|key, managed| is_new(key, managed));
        news.dropped.retain(|key| !news.managed.contains_key(key) && self.recorded.contains_key(key));
        self.recorded.retain(|key, _| !news.dropped.contains(key));
        self.recorded.extend(news.managed.iter().map(|(key, managed)| (key.clone(), managed.clone())));
        self.begun.clear();
        news
    }
}
