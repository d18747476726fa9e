//! The memory of former runs of a document: the instances that are owed a notification or uncertain, and the things that they
//! manage.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use stead_core::call::Operation;
use stead_core::event::{Event, Mode};
use stead_core::graph::Graph;
use stead_core::id::NodeId;
use stead_core::identity::DocumentIdentity;
use stead_core::instance_path::InstancePath;
use stead_core::run::{Acting, Owed, Run};
use stead_host::journal::{Journal, JournalError};
use stead_host::store::StoreError;
use stead_host::store::kept::{Accounted, Kept, Noting, Outline, RecordReading, Slot};
use stead_system::places;

use crate::delivery::Delivery;
use crate::managing::{Gone, Managing, Recorded, UNKNOWN, things_in};
use crate::messages::error_chain;
use crate::uncertain::Uncertain;

/// Access to the record of a document between its runs, in the private store of this user.
///
/// Runs that compare or set read it, and runs that set for real write it: each instance that acts on changes is
/// recorded as owed before the first call that may be such a change, and is so until it succeeded. Nothing is kept for
/// a user without a home, or where the store cannot be used, which is reported.
#[derive(Clone, Debug)]
pub struct Memory {
    /// `None` for a user without a store.
    slot: Option<Slot>,
    document: DocumentIdentity,
    /// True if notifications that are owed, and what is uncertain, are in the record. The agent keeps its own with the stages of its
    /// documents.
    owes: bool,
    delivery: Delivery,
}

/// The record at the beginning of a run.
pub(crate) struct Recalled<'m> {
    slot: &'m Slot,
    /// See [`Memory::owes`].
    owes: bool,
    /// True if recorded paths that the document does not know may belong to another document.
    is_shared: bool,
    /// The notifications that the record has as owed.
    recorded: Owed,
    /// The instances of the document that are owed a notification.
    pub(crate) owed: BTreeSet<NodeId>,
    /// The paths that the record has uncertain.
    pub(crate) uncertain: BTreeSet<String>,
    /// The things that the record has.
    pub(crate) things: Recorded,
    /// True if the things of this run are recorded: the document has an identity of its own, and the record can be written.
    pub(crate) keeps_things: bool,
}

impl Memory {
    /// The memory of a document on a root of the operating system.
    pub(crate) fn of(root: &Path, document: &DocumentIdentity) -> Self {
        let root = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_path_buf());
        let slot = places::store().map(|store| Slot::of(&store, &root, document));
        Self { slot, document: document.clone(), owes: true, delivery: Delivery::default() }
    }

    /// The memory of the things alone that a document manages on a root, in a store of deliveries.
    pub(crate) fn of_things(store: &Path, root: &Path, document: &DocumentIdentity, delivery: Delivery) -> Self {
        let root = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_path_buf());
        Self { slot: Some(Slot::of(store, &root, document)), document: document.clone(), owes: false, delivery }
    }

    /// The identity of the document between runs.
    pub fn identity(&self) -> &DocumentIdentity {
        &self.document
    }

    /// Returns whether what is owed is kept elsewhere.
    pub(crate) fn is_of_things(&self) -> bool {
        !self.owes
    }

    /// The delivery that its runs are of.
    pub(crate) fn delivery(&self) -> Delivery {
        self.delivery
    }

    /// Has the record take over what this delivery takes back of other documents.
    ///
    /// # Errors
    /// When the records cannot be read or changed.
    pub(crate) fn take_over(&self) -> Result<(), StoreError> {
        match &self.slot {
            Some(slot) if self.delivery.restores.is_some() && !self.document.is_shared() => {
                slot.take_over(|managed| self.delivery.takes_back(managed))
            }
            _ => Ok(()),
        }
    }

    /// The things that its runs manage, where they are recorded, and those of other documents that it takes back.
    ///
    /// # Errors
    /// When a record cannot be read.
    pub(crate) fn managed(&self) -> Result<Option<Kept>, StoreError> {
        let Some(slot) = self.slot.as_ref().filter(|_| !self.document.is_shared()) else { return Ok(None) };
        match slot.read()? {
            RecordReading::Known(mut kept) => {
                if self.delivery.restores.is_some() {
                    kept.take(slot.of_others(|managed| self.delivery.takes_back(managed))?);
                }
                Ok(Some(kept))
            }
            RecordReading::Damaged(path) => Err(StoreError::Damaged(path)),
        }
    }

    /// The document that the things of the record were compared with, where they are recorded and known.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub(crate) fn accounted(&self) -> Result<Option<Accounted>, StoreError> {
        let Some(slot) = self.slot.as_ref().filter(|_| !self.document.is_shared()) else { return Ok(None) };
        match slot.outline()? {
            RecordReading::Known(outline) => Ok(outline.accounted),
            RecordReading::Damaged(_) => Ok(None),
        }
    }

    /// The digest of which records of other documents there are.
    pub(crate) fn digest_of_others(&self) -> Result<String, StoreError> {
        self.slot.as_ref().map_or_else(|| Ok(String::new()), Slot::digest_of_others)
    }

    /// The records of the other documents on the root.
    pub(crate) fn others(&self) -> Result<Vec<Kept>, StoreError> {
        self.slot.as_ref().map_or_else(|| Ok(Vec::new()), Slot::others)
    }

    /// Reads the record for a run; `None` where there is none, the run needs none, or none can be kept, which is
    /// reported.
    ///
    /// Guarantees: every notification that may be owed is among those returned. After damage to the record, everything
    /// that acts on changes is due once.
    ///
    /// # Errors
    /// When the system fails, or a newer version wrote the record.
    pub(crate) fn recall(&self, graph: &Graph, mode: Mode, gone: &Gone) -> Result<Option<Recalled<'_>>, StoreError> {
        let acts = self.owes && graph.notified().next().is_some();
        let compares = matches!(mode.operation, Operation::Test | Operation::Set);
        if !compares {
            return Ok(None);
        }
        let will_write = acts && mode.changes();
        let forgets = |why: &str| {
            if will_write {
                tracing::warn!("handlers that fail in this run will not be retried later: {why}");
            }
            Ok(None)
        };
        let Some(slot) = &self.slot else {
            return forgets("there is no home folder; STEAD_STATE names a folder to keep it in");
        };
        // Where there is a folder that cannot be used, nobody knows what is owed, and nothing must be said to be in order.
        let reading = slot.outline()?;
        let is_uncertain = self.owes && matches!(&reading, RecordReading::Known(kept) if !kept.uncertain.is_empty());
        if !acts && !is_uncertain && !mode.changes() {
            return Ok(None);
        }
        let is_first = mode.changes() && reading == RecordReading::default() && graph.iter().next().is_some();
        if let Some(error) = is_first.then(|| slot.prepare().err()).flatten() {
            return forgets(&error_chain(&error));
        }
        self.recalled(slot, reading, (graph, gone), mode).map(Some)
    }

    fn recalled<'m>(
        &self,
        slot: &'m Slot,
        reading: RecordReading<Outline>,
        (graph, gone): (&Graph, &Gone),
        mode: Mode,
    ) -> Result<Recalled<'m>, StoreError> {
        let (recorded, uncertain, things) = match reading {
            RecordReading::Known(outline) => {
                let things = match outline.accounted.filter(|accounted| gone.is_as_in(accounted)) {
                    Some(accounted) => Recorded::Unread { slot: slot.clone(), accounted: Box::new(accounted) },
                    None => Recorded::Known(Box::new(things_in(slot)?)),
                };
                let (owed, uncertain) = (outline.owed, outline.uncertain);
                if self.owes { (owed, uncertain, things) } else { (Owed::new(), BTreeSet::new(), things) }
            }
            RecordReading::Damaged(path) if !self.owes => {
                tracing::warn!("'{}' is damaged: {UNKNOWN}", path.display());
                (Owed::new(), BTreeSet::new(), Recorded::default())
            }
            RecordReading::Damaged(path) => {
                let all: Owed = graph.notified().map(|id| graph.node(id).path.to_string()).collect();
                tracing::warn!("'{}' is damaged: all that acts on changes is due once, and {UNKNOWN}", path.display());
                if mode.changes() {
                    slot.change(|kept| kept.owed.clone_from(&all))?;
                }
                (all, BTreeSet::new(), Recorded::default())
            }
        };
        let is_shared = self.document.is_shared();
        Ok(Recalled {
            slot,
            owes: self.owes,
            is_shared,
            owed: graph.known(&recorded),
            recorded,
            uncertain,
            things,
            keeps_things: !is_shared,
        })
    }
}

/// The journal of a run that changes things: what the run is about to owe is on the disk before it changes anything.
///
/// Between its own changes other runs may have the machine, and change the record: what they owe stays in it.
pub(crate) struct Ledger<'a> {
    slot: &'a Slot,
    /// See [`Memory::owes`].
    owes: bool,
    acting: Acting,
    /// The paths that the record has, as far as this run knows.
    recorded: Owed,
    /// Those that it has for sure, because no other run had the machine since.
    certain: Owed,
    /// Those that this run has added since then.
    added: Owed,
    /// Those that the document does not have any more.
    obsolete: Owed,
    /// Those that were delivered when the machine was left to others last. What they owe since is theirs.
    delivered: Owed,
    uncertain: Uncertain,
    /// `None` where things are not recorded.
    managing: Option<Managing>,
    noting: Noting<'a>,
    /// True if there are notes that the record has not taken in.
    has_noted: bool,
    journal: Box<dyn Journal + 'a>,
}

impl<'a> Ledger<'a> {
    /// A ledger around another journal.
    pub(crate) fn new(
        recalled: Recalled<'a>,
        graph: &Graph,
        managing: Option<Managing>,
        journal: Box<dyn Journal + 'a>,
    ) -> Self {
        let Recalled { slot, owes, is_shared, recorded, owed, uncertain, .. } = recalled;
        let known: Owed = owed.into_iter().map(|id| graph.node(id).path.to_string()).collect();
        let unknown = recorded.difference(&known).filter(|_| !is_shared);
        Self {
            slot,
            owes,
            acting: Acting::of(graph),
            obsolete: unknown.cloned().collect(),
            certain: recorded.clone(),
            recorded,
            added: Owed::new(),
            delivered: Owed::new(),
            uncertain: Uncertain::of(uncertain, graph, is_shared),
            managing,
            noting: slot.noting(),
            has_noted: false,
            journal,
        }
    }

    /// Records what is owed if the process ends during the calls that are about to begin, and what is to be noted of things. What a
    /// call that ended has left uncertain is recorded before it counts.
    fn intend(&mut self, events: &[Event]) -> Result<(), StoreError> {
        let mut new = if self.owes { self.acting.on(events) } else { Owed::new() };
        new.retain(|path| !self.certain.contains(path));
        self.note(events)?;
        let arisen = if self.owes { self.uncertain.arise(events) } else { BTreeSet::new() };
        if new.is_empty() && arisen.is_empty() {
            return Ok(());
        }
        self.managing.iter_mut().for_each(Managing::look);
        let added = &mut self.added;
        self.slot.change(|kept| {
            added.extend(new.difference(&kept.owed).cloned());
            kept.owed.extend(new.iter().cloned());
            kept.uncertain.extend(arisen);
        })?;
        self.recorded.extend(new.iter().cloned());
        self.certain.extend(new);
        Ok(())
    }

    /// Notes what was created, and what may be gone after the calls that are about to begin. Where nobody can, the former is left
    /// to the end of the run.
    fn note(&mut self, events: &[Event]) -> Result<(), StoreError> {
        let note = self.managing.as_mut().map(|managing| managing.note(events)).transpose()?.unwrap_or_default();
        if note.is_empty() {
            return Ok(());
        }
        self.has_noted = true;
        let is_leaving = !note.leaving.is_empty();
        self.noting.note(note).or_else(|error| if is_leaving { Err(error) } else { Ok(()) })
    }
}

impl Journal for Ledger<'_> {
    fn append(&mut self, events: &[Event]) -> Result<(), JournalError> {
        let slot = self.slot;
        let unwritten =
            |error: StoreError| JournalError { path: slot.path(), source: io::Error::other(error_chain(&error)) };
        self.intend(events).map_err(unwritten)?;
        self.journal.append(events)
    }

    fn counted(&mut self, events: Vec<Event>) {
        self.journal.counted(events);
    }

    /// Records what is owed by now. A failure is only reported: the record then says more than is owed, and nothing is lost.
    fn settle(&mut self, run: &Run) {
        let paths = |instances: Vec<InstancePath>| instances.iter().map(ToString::to_string).collect::<Owed>();
        let (owed, delivered) =
            if self.owes { (paths(run.owed()), paths(run.delivered())) } else { (Owed::new(), Owed::new()) };
        let mut over: Owed = delivered.difference(&self.delivered).cloned().collect();
        over.extend(self.added.difference(&owed).cloned());
        over.append(&mut self.obsolete);
        let is_recorded = owed.is_subset(&self.recorded) && over.is_disjoint(&self.recorded);
        let news = self.managing.as_mut().map(|managing| managing.news(run)).transpose();
        let news = news.unwrap_or_else(|error| {
            report_unwritten(&error);
            None
        });
        let news = news.unwrap_or_default();
        let has_news = !news.is_empty();
        let cleared = self.uncertain.cleared(run);
        let change = |kept: &mut Kept| {
            kept.owed.retain(|path| !over.contains(path));
            kept.owed.extend(owed.iter().cloned());
            kept.uncertain.retain(|path| !cleared.contains(path));
            news.write(kept);
        };
        if (!is_recorded || has_news || !cleared.is_empty() || std::mem::take(&mut self.has_noted))
            && let Err(error) = self.noting.change(change)
        {
            report_unwritten(&error);
        }
        self.recorded.retain(|path| !over.contains(path));
        self.recorded.extend(owed);
        self.delivered = delivered;
        (self.certain, self.added) = (Owed::new(), Owed::new());
        self.journal.settle(run);
    }

    fn is_durable(&self) -> bool {
        self.journal.is_durable()
    }
}

fn report_unwritten(error: &StoreError) {
    let why = error_chain(error);
    tracing::warn!("the next run may do again what acts on changes, and not know what this one created: {why}");
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::num::NonZeroUsize;
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    use stead_core::event::EventKind;
    use stead_core::run::policy::{Attempt, Policy, Verdict};
    use stead_core::value::Object;
    use stead_host::journal::FileJournal;
    use tempfile::TempDir;

    use super::*;
    use crate::execution::RunOptions;
    use crate::host::{Host, HostOptions};
    use crate::prepared::Prepared;
    use crate::session::Session;

    const DOCUMENT: &str = "resources:
- {name: a, type: Stead/File, properties: {path: /a, content: right}}
- {name: b, type: Stead/File, properties: {path: /b, content: right}}
- {name: on-a, type: Stead/Command, properties: {set: exit 0}, directives: {onChanges: ['Stead/File:a']}}
- {name: on-b, type: Stead/Command, properties: {set: exit 1}, directives: {onChanges: ['Stead/File:b']}}
- {name: never, type: Stead/Command, properties: {test: exit 1, set: exit 1}}
";

    /// Tries again, after nobody waits any more.
    struct Later;

    impl Policy for Later {
        fn after(&self, _: &Attempt<'_>) -> Verdict {
            Verdict::RetryAfter(Duration::from_hours(1))
        }
    }

    /// A root with a document, and the record of what it owes.
    struct Place {
        folder: TempDir,
        slot: Slot,
    }

    impl Place {
        fn new() -> Self {
            let folder = TempDir::new().unwrap();
            let root = fs::canonicalize(folder.path()).unwrap();
            let slot = Slot::of(&root.join("store"), &root, &DocumentIdentity::of_file(Path::new("/main.yaml")));
            Self { folder, slot }
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.folder.path().join(name), text).unwrap();
        }

        fn prepared(&self) -> (Session, Prepared) {
            let root = self.folder.path();
            let session = Host::new(HostOptions::default()).session(root);
            let mut session = session.with(|options| options.system_root = Some(root.to_owned()));
            let mut prepared =
                session.prepare("main.yaml", DOCUMENT, Object::new()).unwrap_or_else(|_| panic!("valid"));
            let document = DocumentIdentity::of_file(Path::new("/main.yaml"));
            prepared.memory =
                Some(Memory { slot: Some(self.slot.clone()), document, owes: true, delivery: Delivery::default() });
            (session, prepared)
        }

        fn owed(&self) -> Vec<String> {
            let RecordReading::Known(kept) = self.slot.read().unwrap() else { panic!("damaged") };
            kept.owed.iter().map(|path| path.rsplit(':').next().unwrap().to_owned()).collect()
        }
    }

    fn once() -> RunOptions<'static> {
        RunOptions::new(Mode::APPLY, NonZeroUsize::MIN)
    }

    #[test]
    fn runs_of_a_document_that_take_turns_lose_nothing_of_each_other() {
        let place = Place::new();
        place.write("b", "right");
        let (waiting, waits) = channel();
        let (session, prepared) = place.prepared();
        let suspend = session.options.suspend.clone();
        thread::scope(|scope| {
            scope.spawn(move || {
                let execution = RunOptions { policy: Arc::new(Later), ..once() };
                let execution = execution.consumer(move |_, event| {
                    if matches!(event.kind, EventKind::RetryScheduled { .. }) {
                        waiting.send(()).unwrap();
                    }
                });
                assert!(!session.run(&prepared, execution).unwrap().is_finished());
            });
            waits.recv_timeout(Duration::from_mins(2)).unwrap();
            place.write("b", "wrong");
            let (other, prepared) = place.prepared();
            // It has the machine as soon as the first one leaves it.
            assert!(other.run(&prepared, once()).unwrap().is_finished());
            assert_eq!(place.owed(), ["on-b"]);
            suspend.cancel();
        });
        assert_eq!(place.owed(), ["on-b"], "the first one knows nothing of it");
    }

    #[test]
    fn what_a_run_made_before_it_is_resumed_is_recorded_as_made() {
        let place = Place::new();
        let (session, mut prepared) = place.prepared();
        prepared.memory = prepared.memory.map(|memory| Memory { owes: false, ..memory });
        let path = place.folder.path().join("journal");
        let journal = Box::new(FileJournal::create(&path).unwrap());
        session.run(&prepared, RunOptions { journal, ..once() }).unwrap();
        // A program that another test starts has the file open until it runs.
        let (_, mut events) = stead_testkit::until(|| FileJournal::resume(&path).ok());
        let is_of_a =
            |event: &Event| event.kind.instance().is_some_and(|instance| instance.to_string().ends_with(":a"));
        let settled = |event: &Event| is_of_a(event) && matches!(event.kind, EventKind::Settled { .. });
        let end = events.iter().position(settled).unwrap();
        events.truncate(end + 1);
        // The power failed, and nothing that was noted of them is there.
        fs::remove_dir_all(place.slot.path().parent().unwrap()).unwrap();
        fs::remove_file(place.folder.path().join("b")).unwrap();
        session.resume(&prepared, &events, once()).unwrap();
        let RecordReading::Known(kept) = place.slot.read().unwrap() else { panic!("damaged") };
        let created = kept.managed.into_values().filter(|managed| managed.created).map(|managed| managed.name);
        assert_eq!(created.collect::<Vec<_>>(), ["a".into(), "b".into()]);
    }

    #[test]
    fn what_others_did_with_the_record_meanwhile_counts() {
        let place = Place::new();
        place.write("b", "right");
        let (session, prepared) = place.prepared();
        let mut events = Vec::new();
        let run = session.run(&prepared, RunOptions { journal: Box::new(&mut events), ..once() }).unwrap();
        let sets_a = |event: &&Event| {
            let is_a = event.kind.instance().is_some_and(|instance| instance.to_string().ends_with(":a"));
            is_a && matches!(&event.kind, EventKind::CallStarted { operation, .. } if operation.may_change())
        };
        let change = events.iter().find(sets_a).unwrap().clone();
        assert!(place.owed().is_empty());
        let memory = prepared.memory.as_ref().unwrap();
        let recalled = memory.recall(&prepared.graph, Mode::APPLY, &Gone::default()).unwrap().unwrap();
        let mut ledger = Ledger::new(recalled, &prepared.graph, None, Box::new(Vec::new()));
        ledger.append(std::slice::from_ref(&change)).unwrap();
        assert_eq!(place.owed(), ["on-a"]);
        ledger.settle(&run);
        assert!(place.owed().is_empty());
        place.slot.change(|kept| kept.owed.extend(["another".to_owned()])).unwrap();
        ledger.settle(&run);
        assert_eq!(place.owed(), ["another"]);
        ledger.append(std::slice::from_ref(&change)).unwrap();
        place.slot.change(|kept| kept.owed.clear()).unwrap();
        ledger.settle(&run);
        ledger.append(&[change]).unwrap();
        assert_eq!(place.owed(), ["on-a"], "another run delivered the former one, and not this one");
    }
}
