//! The record of the things that a run manages, creates and removes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use stead_core::call::{Execution, Outcome};
use stead_core::destruction::Effect;
use stead_core::diff::exists;
use stead_core::event::{Event, EventKind, Status};
use stead_core::graph::Graph;
use stead_core::id::NodeId;
use stead_core::report::Report;
use stead_core::run::Run;
use stead_core::value::Value;
use stead_host::store::kept::{Kept, Managed, Note};

use crate::things::{Keyed, Things};

/// The fates of the things that a document does not have any more.
#[derive(Clone, Default, Debug)]
pub(crate) struct Gone {
    /// The instances that remove one, and the keys of those things.
    pub(crate) removing: BTreeMap<NodeId, String>,
    /// The keys of things that its runs need not know any more.
    pub(crate) forgotten: BTreeSet<String>,
    /// The keys of things that it has under another one now. Once the instance of that has succeeded, the former one need not be
    /// known.
    pub(crate) inherited: BTreeMap<String, Heir>,
}

/// The key that a thing has now.
#[derive(Clone, Debug)]
pub(crate) struct Heir {
    pub(crate) key: String,
    /// True if a run created the thing.
    pub(crate) is_of_created: bool,
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
    /// The keys of things of the document that were created under another key.
    heirs: BTreeSet<String>,
    /// The record, as far as this run knows it.
    recorded: BTreeMap<String, Managed>,
    /// The sets under way, and the states that they are to reach.
    under_way: BTreeMap<NodeId, Arc<Value>>,
    /// The things that a set of this run made.
    created: BTreeMap<NodeId, String>,
    /// Those things, by their keys.
    made: BTreeSet<String>,
    /// The things that this run will remove and a former one made, as far as that is known, in order.
    next: VecDeque<String>,
    /// The things that this run has begun to remove.
    begun: BTreeSet<String>,
}

/// The changes of the record that a run is to write.
#[derive(Default)]
pub(crate) struct News {
    managed: BTreeMap<String, Managed>,
    dropped: BTreeSet<String>,
}

/// Since when it is known what an instance came to.
#[derive(PartialEq, Eq)]
enum Known {
    Now,
    /// It did not come to an end: the record says what it said before the run.
    Before,
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

/// Returns whether a thing is to be absent.
pub(crate) fn is_removal(desired: &Value) -> bool {
    desired.as_object().is_some_and(|desired| !exists(desired))
}

impl Managing {
    /// Of a run of a graph, with what the record has before it, and which of the things there it will remove, in order.
    pub(crate) fn new(
        (things, graph): (Things, &Arc<Graph>),
        gone: &Gone,
        recorded: &BTreeMap<String, Managed>,
        next: VecDeque<String>,
    ) -> Self {
        let heirs = gone.inherited.values().filter(|heir| heir.is_of_created).map(|heir| heir.key.clone());
        Self {
            heirs: heirs.collect(),
            graph: Arc::clone(graph),
            gone: gone.clone(),
            recorded: recorded.clone(),
            under_way: BTreeMap::new(),
            created: BTreeMap::new(),
            made: BTreeSet::new(),
            begun: BTreeSet::new(),
            next,
            things,
        }
    }

    /// What is to be noted of calls that begin and end: the things that were created, and those that may be removed and that the
    /// record has as created. It must not say so any more, since what is there after a crash may be another's.
    pub(crate) fn note(&mut self, events: &[Event]) -> Note {
        let mut note = Note::default();
        for event in events {
            match &event.kind {
                EventKind::CallStarted { instance, operation, execution: Execution::Actual, desired }
                    if operation.may_change() =>
                {
                    if is_removal(desired) {
                        self.leaves(instance.node(), desired, &mut note.leaving);
                    } else {
                        self.under_way.insert(instance.node(), Arc::clone(desired));
                    }
                }
                EventKind::CallEnded { instance, response, .. } => {
                    let desired = self.under_way.remove(&instance.node());
                    if let (Some(desired), Outcome::Changed(changed)) = (desired, &response.outcome)
                        && changed.effect() == Effect::Create
                    {
                        let created = self.create(instance.node(), response.desired.as_ref().unwrap_or(&desired));
                        note.created.extend(created);
                    }
                }
                _ => {}
            }
        }
        note
    }

    fn leaves(&mut self, id: NodeId, desired: &Value, leaving: &mut BTreeSet<String>) {
        let removing = self.gone.removing.get(&id).cloned();
        let key = removing.or_else(|| Some(self.things.of(&self.graph, id, desired)?.key));
        let Some(key) = key.filter(|key| self.is_created(key)) else { return };
        let mut begins = vec![key];
        // One flush is for many.
        while begins.len() < MARKED_AT_ONCE
            && let Some(next) = self.next.pop_front()
        {
            begins.extend(Some(next).filter(|next| self.is_created(next)));
        }
        self.begun.extend(begins.iter().cloned());
        leaving.extend(begins);
    }

    /// Returns whether the record says that a thing was created.
    fn is_created(&self, key: &String) -> bool {
        let is_recorded = || self.recorded.get(key).is_some_and(|thing| thing.created);
        !self.begun.contains(key) && (is_recorded() || self.made.contains(key))
    }

    fn create(&mut self, id: NodeId, desired: &Value) -> Option<(String, Managed)> {
        let Keyed { key, managed } = self.things.of(&self.graph, id, desired)?;
        let stated = |need: NodeId| self.things.of(&self.graph, need, self.graph.node(need).stated.as_ref()?);
        let of_need = |need| self.created.get(&need).cloned().or_else(|| Some(stated(need)?.key));
        let after = Things::needed(&self.graph, id, of_need);
        self.created.insert(id, key.clone());
        self.made.insert(key.clone());
        Some((key, Managed { created: true, after, ..managed }))
    }

    /// The changes that are due and not recorded yet.
    pub(crate) fn news(&mut self, run: &Run) -> News {
        let report = run.report();
        let mut keys: BTreeMap<NodeId, String> = BTreeMap::new();
        let mut news = News::default();
        let mut known = BTreeSet::new();
        for id in self.graph.order.iter().filter(|id| !self.gone.removing.contains_key(id)) {
            let Some(Keyed { key, mut managed }) = self.thing(report, *id) else { continue };
            managed.after = Things::needed(&self.graph, *id, |need| keys.get(&need).cloned());
            keys.insert(*id, key.clone());
            if self.judge(report, *id, (key.clone(), managed), &mut news) == Known::Now {
                known.insert(key);
            }
        }
        for (id, key) in &self.gone.removing {
            match report.status(*id) {
                Some(Status::Changed | Status::InState) => drop(news.dropped.insert(key.clone())),
                // It was not removed, and is what a former run made.
                _ => news.managed.extend(self.recorded.get(key).map(|thing| (key.clone(), thing.clone()))),
            }
        }
        let is_over = |key: &&String| self.gone.inherited.get(*key).is_none_or(|heir| known.contains(&heir.key));
        news.dropped.extend(self.gone.forgotten.iter().filter(is_over).cloned());
        self.settled(news)
    }

    fn thing(&self, report: &Report, id: NodeId) -> Option<Keyed> {
        let desired = report.record(id).desired.as_ref().or(self.graph.node(id).stated.as_ref())?;
        self.things.of(&self.graph, id, desired)
    }

    fn judge(&self, report: &Report, id: NodeId, (key, managed): (String, Managed), news: &mut News) -> Known {
        let record = report.record(id);
        let is_there = record.desired.as_ref().and_then(|desired| desired.as_object()).is_none_or(exists);
        let has_succeeded = matches!(record.status(), Some(Status::Changed | Status::InState));
        let was_created = self.recorded.get(&key).is_some_and(|thing| thing.created);
        let is_new = self.created.contains_key(&id);
        match (is_there, has_succeeded) {
            (false, true) => drop(news.dropped.insert(key)),
            (true, true) => {
                let created = is_new || was_created || self.heirs.contains(&key);
                news.managed.insert(key, Managed { created, ..managed });
            }
            (true, false) if is_new => drop(news.managed.insert(key, Managed { created: true, ..managed })),
            _ => {
                news.managed.extend(self.recorded.get(&key).map(|thing| (key, thing.clone())));
                return Known::Before;
            }
        }
        Known::Now
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
