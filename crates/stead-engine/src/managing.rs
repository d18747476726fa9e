//! The record of the things that a run manages, creates and removes.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::sync::Arc;

use stead_core::call::Outcome;
use stead_core::destruction::Effect;
use stead_core::diff::exists;
use stead_core::event::{Event, EventKind};
use stead_core::graph::Graph;
use stead_core::id::NodeId;
use stead_core::report::Report;
use stead_core::run::Run;
use stead_core::value::Value;
use stead_host::store::StoreError;
use stead_host::store::kept::{self, Accounted, Kept, Managed, Note, RecordReading, Slot, StayReason};

use crate::accounting::{digest_of_success, has_succeeded, summarized};
use crate::delivery::Delivery;
use crate::staying::NotRestored;
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
    /// The keys of things that stay, and that its runs go on to know; `None` where a former run compared them, and this one did not.
    pub(crate) staying: Option<BTreeMap<String, StayReason>>,
    /// The document and the records of others that it was compared with; `None` where it was not, or that is of no use to later runs.
    pub(crate) compared: Option<Compared>,
    /// What a delivery that restores a former one does not take back.
    pub(crate) not_restored: NotRestored,
}

/// The digests of what the things of a record were compared with.
#[derive(Clone, Debug)]
pub(crate) struct Compared {
    /// See [`Accounted::document`].
    pub(crate) document: String,
    /// See [`Accounted::others`].
    pub(crate) others: String,
}

impl Gone {
    /// Returns whether a comparison of a former run says all that one with this document would.
    pub(crate) fn is_as_in(&self, accounted: &Accounted) -> bool {
        let is_compared = self.compared.as_ref().is_some_and(|compared| compared.document == accounted.document);
        let changes_nothing = self.removing.is_empty() && self.forgotten.is_empty() && self.inherited.is_empty();
        is_compared && changes_nothing && (self.staying.is_none() || accounted.left.is_empty())
    }
}

/// The things that a record has at the beginning of a run.
pub(crate) enum Recorded {
    /// Those that a former run of the same document compared with it. They are read once one of them matters.
    Unread {
        /// The record.
        slot: Slot,
        /// That comparison.
        accounted: Box<Accounted>,
    },
    /// These.
    Known(Box<Kept>),
}

impl Default for Recorded {
    fn default() -> Self {
        Self::Known(Box::default())
    }
}

impl Recorded {
    /// The things, which are read now at the latest.
    fn known(&mut self) -> Result<&mut Kept, StoreError> {
        if let Self::Unread { slot, .. } = self {
            *self = Self::Known(Box::new(things_in(slot)?));
        }
        match self {
            Self::Known(kept) => Ok(kept),
            Self::Unread { .. } => unreachable!("they were read"),
        }
    }

    /// A thing, where they were read.
    pub(crate) fn thing(&self, key: &str) -> Option<&Managed> {
        match self {
            Self::Known(kept) => kept.thing(key),
            Self::Unread { .. } => None,
        }
    }

    /// Returns whether a run is known to have created one of them.
    pub(crate) fn has_created(&self) -> bool {
        matches!(self, Self::Known(kept) if kept.things().any(|(_, thing)| thing.created))
    }
}

/// The key that a thing has now.
#[derive(Clone, Debug)]
pub(crate) struct Heir {
    pub(crate) key: String,
    /// True if a run created the thing.
    pub(crate) is_of_created: bool,
    /// See [`Managed::since`].
    pub(crate) since: u64,
}

/// The consequence of damage to a record for the things in it.
pub(crate) const UNKNOWN: &str =
    "it is not known any more what former runs created, which stays where the document does not have it";

/// The content of a record whose things are not all intact is that without them.
pub(crate) fn things_in(slot: &Slot) -> Result<Kept, StoreError> {
    Ok(match slot.read()? {
        RecordReading::Known(kept) => kept,
        RecordReading::Damaged(path) => {
            tracing::warn!("'{}' is damaged: {UNKNOWN}", path.display());
            Kept::default()
        }
    })
}

/// How many things are marked at once as those that may be gone. After a kill so many may be left that nobody removes any more.
const MARKED_AT_ONCE: usize = 64;

/// Things that are at least this part of those there are merged with them, in place of a search for each.
const MERGED_FROM: usize = 8;

/// How many things are recorded at most that no run created.
const MOST_FOUND: usize = 100_000;

/// The things of a document, as a run comes to know them.
pub(crate) struct Managing {
    things: Things,
    graph: Arc<Graph>,
    gone: Gone,
    /// The number of the delivery that the run is of.
    delivery: u64,
    /// The keys of things of the document that were created under another key, and since when they are there.
    heirs: BTreeMap<String, u64>,
    /// The record, as far as this run knows it.
    recorded: Recorded,
    /// The sets under way, and the states that they are to reach.
    under_way: BTreeMap<NodeId, Arc<Value>>,
    /// The things that a set of this run made.
    created: BTreeMap<NodeId, Keyed>,
    /// Those things, by their keys.
    made: BTreeSet<String>,
    /// The things that this run will remove and a former one made, as far as that is known, in order.
    next: VecDeque<String>,
    /// The things that this run has begun to remove.
    begun: BTreeSet<String>,
}

/// The changes of the record that a run is to write.
#[derive(Clone, Default)]
pub(crate) struct News {
    managed: kept::Things,
    dropped: BTreeSet<String>,
    /// The keys of things that no instance has any more.
    left: BTreeSet<String>,
    accounted: Option<Accounted>,
    /// True if the record has another comparison.
    is_newly_accounted: bool,
    /// See [`Kept::delivered`].
    delivered: bool,
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
        self.managed.is_empty() && self.dropped.is_empty() && self.left.is_empty() && !self.is_newly_accounted
    }

    pub(crate) fn write(mut self, kept: &mut Kept) {
        for key in &self.dropped {
            kept.managed.remove(key);
        }
        kept.left.retain(|key, _| !self.dropped.contains(key) && !self.managed.contains_key(key));
        if !self.managed.is_empty() {
            kept.delivered = self.delivered;
        }
        // Many are merged in their order.
        if self.managed.len() < kept.managed.len() / MERGED_FROM {
            kept.managed.extend(self.managed);
        } else {
            kept.managed.append(&mut self.managed);
        }
        let left = self.left.iter().filter_map(|key| kept.managed.remove_entry(key)).collect::<Vec<_>>();
        kept.left.extend(left);
        kept.accounted = self.accounted.or(kept.accounted.take());
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
        delivery: Delivery,
        gone: &Gone,
        recorded: Recorded,
        next: VecDeque<String>,
    ) -> Self {
        let heirs =
            gone.inherited.values().filter(|heir| heir.is_of_created).map(|heir| (heir.key.clone(), heir.since));
        Self {
            delivery: delivery.number,
            heirs: heirs.collect(),
            graph: Arc::clone(graph),
            gone: gone.clone(),
            recorded,
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
    ///
    /// # Errors
    /// When the record cannot be read.
    pub(crate) fn note(&mut self, events: &[Event]) -> Result<Note, StoreError> {
        let mut note = Note::default();
        for event in events {
            match &event.kind {
                EventKind::CallStarted { instance, operation, execution, desired }
                    if operation.changes_in(*execution) =>
                {
                    if is_removal(desired) {
                        self.leaves(instance.node(), desired, &mut note.leaving)?;
                    } else {
                        self.under_way.insert(instance.node(), Arc::clone(desired));
                    }
                }
                EventKind::CallEnded { instance, response, .. } => {
                    let desired = self.under_way.remove(&instance.node());
                    if let (Some(desired), Outcome::Changed(changed)) = (desired, &response.outcome)
                        && changed.effect() == Effect::Create
                    {
                        self.look();
                        let created = self.create(instance.node(), response.desired.as_ref().unwrap_or(&desired));
                        note.created.extend(created);
                    }
                }
                _ => {}
            }
        }
        Ok(note)
    }

    /// Reads the things before the record is written, which would hide damage to them. That they cannot be read is reported where the
    /// run settles.
    pub(crate) fn look(&mut self) {
        drop(self.recorded.known());
    }

    fn leaves(&mut self, id: NodeId, desired: &Value, leaving: &mut BTreeSet<String>) -> Result<(), StoreError> {
        let removing = self.gone.removing.get(&id).cloned();
        let Some(key) = removing.or_else(|| Some(self.things.of(&self.graph, id, desired)?.key)) else { return Ok(()) };
        self.recorded.known()?;
        if !self.is_created(&key) {
            return Ok(());
        }
        let mut begins = vec![key];
        // One flush is for many.
        while begins.len() < MARKED_AT_ONCE
            && let Some(next) = self.next.pop_front()
        {
            begins.extend(Some(next).filter(|next| self.is_created(next)));
        }
        self.begun.extend(begins.iter().cloned());
        leaving.extend(begins);
        Ok(())
    }

    /// Returns whether the record says that a thing was created.
    fn is_created(&self, key: &String) -> bool {
        let is_recorded = || self.recorded.thing(key).is_some_and(|thing| thing.created);
        !self.begun.contains(key) && (is_recorded() || self.made.contains(key))
    }

    fn create(&mut self, id: NodeId, desired: &Value) -> Option<(String, Managed)> {
        let made = self.things.of(&self.graph, id, desired)?;
        let stated = |need: NodeId| self.things.of(&self.graph, need, self.graph.node(need).stated.as_ref()?);
        let of_need = |need| self.created.get(&need).map(|made| made.key.clone()).or_else(|| Some(stated(need)?.key));
        let after = Things::needed(&self.graph, id, of_need);
        let Keyed { key, managed } = made.clone();
        self.made.insert(key.clone());
        self.created.insert(id, made);
        Some((key, Managed { created: true, since: self.delivery, after, ..managed }))
    }

    /// Returns whether a run came to what the one did that the record was compared in, and created and removed nothing.
    fn is_as_before(&self, succeeded: &str) -> bool {
        let is_quiet = self.made.is_empty() && self.begun.is_empty();
        is_quiet && matches!(&self.recorded, Recorded::Unread { accounted, .. } if accounted.succeeded == succeeded)
    }

    /// The changes that are due and not recorded yet.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub(crate) fn news(&mut self, run: &Run) -> Result<News, StoreError> {
        let report = run.report();
        let succeeded = digest_of_success(&self.graph, report);
        if self.is_as_before(&succeeded) {
            return Ok(News::default());
        }
        self.recorded.known()?;
        let mut keys: BTreeMap<NodeId, String> = BTreeMap::new();
        let mut news = News { delivered: self.delivery > 0, ..News::default() };
        // Those that are known now, where that matters to others.
        let mut known = HashSet::new();
        for id in self.graph.order.iter().filter(|id| !self.gone.removing.contains_key(id)) {
            let Some(Keyed { key, mut managed }) = self.thing(report, *id) else { continue };
            managed.after = Things::needed(&self.graph, *id, |need| keys.get(&need).cloned());
            keys.insert(*id, key.clone());
            let is_known = self.judge(report, *id, (key.clone(), managed), &mut news) == Known::Now;
            if is_known && !self.gone.inherited.is_empty() {
                known.insert(key);
            }
        }
        for (id, key) in &self.gone.removing {
            if has_succeeded(report, *id) {
                news.dropped.insert(key.clone());
            } else {
                // It was not removed, and is what a former run made.
                news.managed.extend(self.recorded.thing(key).map(|thing| (key.clone(), thing.clone())));
            }
        }
        let is_over = |key: &&String| self.gone.inherited.get(*key).is_none_or(|heir| known.contains(&heir.key));
        news.dropped.extend(self.gone.forgotten.iter().filter(is_over).cloned());
        let keys = keys.into_values().collect();
        self.settled(news, &keys, succeeded)
    }

    fn thing(&self, report: &Report, id: NodeId) -> Option<Keyed> {
        if let Some(made) = self.created.get(&id) {
            return Some(made.clone());
        }
        let desired = report.record(id).desired.as_ref().or(self.graph.node(id).stated.as_ref())?;
        self.things.of(&self.graph, id, desired)
    }

    fn judge(&self, report: &Report, id: NodeId, (key, managed): (String, Managed), news: &mut News) -> Known {
        let record = report.record(id);
        let is_there = record.desired.as_ref().and_then(|desired| desired.as_object()).is_none_or(exists);
        let has_succeeded = has_succeeded(report, id);
        let recorded = self.recorded.thing(&key).filter(|thing| thing.created).map(|thing| thing.since);
        let is_new = self.created.contains_key(&id);
        let made = is_new.then_some(self.delivery).or(recorded).or_else(|| self.heirs.get(&key).copied());
        match (is_there, has_succeeded) {
            (false, true) => drop(news.dropped.insert(key)),
            (true, true) => {
                let (created, since) = (made.is_some(), made.unwrap_or_default());
                news.managed.insert(key, Managed { created, since, ..managed });
            }
            (true, false) if is_new => {
                news.managed.insert(key, Managed { created: true, since: self.delivery, ..managed });
            }
            _ => {
                news.managed.extend(self.recorded.thing(&key).cloned().map(|thing| (key, thing)));
                return Known::Before;
            }
        }
        Known::Now
    }

    /// Leaves out what the record has already, and takes the rest for recorded.
    fn settled(&mut self, mut news: News, own: &HashSet<String>, succeeded: String) -> Result<News, StoreError> {
        let found = news.managed.values().filter(|managed| !managed.created).count();
        if found > MOST_FOUND {
            news.managed.retain(|_, managed| managed.created);
        }
        let (begun, gone) = (std::mem::take(&mut self.begun), &self.gone);
        let recorded = self.recorded.known()?;
        let is_new = |key: &String, managed: &Managed| begun.contains(key) || recorded.thing(key) != Some(managed);
        news.managed
            .retain(|key, managed| is_new(key, managed) || recorded.left.contains_key(key) && own.contains(key));
        news.dropped.retain(|key| !news.managed.contains_key(key) && recorded.thing(key).is_some());
        let is_left =
            |key: &&String| !own.contains(*key) && !news.dropped.contains(*key) && !recorded.left.contains_key(*key);
        news.left = recorded.managed.keys().chain(news.managed.keys()).filter(is_left).cloned().collect();
        let former = recorded.accounted.take();
        news.clone().write(recorded);
        // Where there is nothing, nothing needs to be known.
        let has_any = recorded.things().next().is_some();
        news.accounted = accounted(gone, &recorded.left, succeeded).filter(|_| has_any);
        news.is_newly_accounted = news.accounted.is_some() && news.accounted != former;
        recorded.accounted.clone_from(&news.accounted);
        Ok(news)
    }
}

/// The comparison of the things of a record with a document, after those that it does not have any more are in `left`; `None` where
/// a later run must look at one of them.
fn accounted(gone: &Gone, left: &kept::Things, succeeded: String) -> Option<Accounted> {
    let (staying, compared) = (gone.staying.as_ref()?, gone.compared.as_ref()?);
    let reasons: Option<Vec<StayReason>> = left.keys().map(|key| staying.get(key).copied()).collect();
    let left = summarized(reasons?.into_iter().zip(left.values()));
    let Compared { document, others } = compared.clone();
    Some(Accounted { document, succeeded, others, left })
}
