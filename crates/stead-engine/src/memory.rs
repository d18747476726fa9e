//! The memory of former runs of a document: the instances that are owed a notification.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use stead_core::call::{Execution as Effect, Operation};
use stead_core::event::{Event, EventKind, Mode};
use stead_core::graph::Graph;
use stead_core::id::NodeId;
use stead_core::identity::DocumentIdentity;
use stead_core::run::{Owed, Run};
use stead_host::journal::{Journal, JournalError};
use stead_host::store::kept::{Reading, Slot};
use stead_host::store::{self, StoreError};

use crate::resource::error_chain;

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
}

/// The record at the beginning of a run.
pub(crate) struct Recalled<'m> {
    slot: &'m Slot,
    /// True if recorded paths that the document does not know may belong to another document.
    is_shared: bool,
    /// The notifications that the record has as owed.
    recorded: Owed,
    /// The instances of the document that are owed a notification.
    pub(crate) owed: BTreeSet<NodeId>,
}

impl Memory {
    /// The memory of a document on a root of the operating system.
    pub(crate) fn of(root: &Path, document: &DocumentIdentity) -> Self {
        let root = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_path_buf());
        let slot = store::directory().map(|store| Slot::of(&store, &root, document));
        Self { slot, document: document.clone() }
    }

    /// The identity of the document between runs.
    pub fn identity(&self) -> &DocumentIdentity {
        &self.document
    }

    /// Reads the record for a run; `None` where there is none, the run needs none, or none can be kept, which is
    /// reported.
    ///
    /// Guarantees: every notification that may be owed is among those returned. After damage to the record, everything
    /// that acts on changes is due once.
    ///
    /// # Errors
    /// When the system fails, or a newer version wrote the record.
    pub(crate) fn recall(&self, graph: &Graph, mode: Mode) -> Result<Option<Recalled<'_>>, StoreError> {
        let acts = graph.notified().next().is_some();
        let compares = matches!(mode.operation, Operation::Test | Operation::Set);
        if !compares || !acts && !changes(mode) {
            return Ok(None);
        }
        let will_write = acts && changes(mode);
        let forgets = |why: &str| {
            if will_write {
                tracing::warn!("what acts on changes and fails in this run is forgotten afterwards: {why}");
            }
            Ok(None)
        };
        let Some(slot) = &self.slot else {
            return forgets("there is no home folder; STEAD_STATE names a folder to keep it in");
        };
        let reading = match slot.read() {
            // Then nothing was kept there either.
            Err(error @ StoreError::Directory { .. }) => return forgets(&error_chain(&error)),
            reading => reading?,
        };
        if will_write
            && reading == Reading::default()
            && let Err(error) = slot.prepare()
        {
            return forgets(&error_chain(&error));
        }
        self.recalled(slot, reading, graph, mode).map(Some)
    }

    fn recalled<'m>(
        &self,
        slot: &'m Slot,
        reading: Reading,
        graph: &Graph,
        mode: Mode,
    ) -> Result<Recalled<'m>, StoreError> {
        let recorded = match reading {
            Reading::Known(kept) => kept.owed,
            Reading::Damaged => {
                let all: Owed = graph.notified().map(|id| graph.node(id).path.to_string()).collect();
                let path = slot.path();
                tracing::warn!("'{}' is damaged: all that acts on changes is due once", path.display());
                if changes(mode) {
                    slot.change(|kept| kept.owed.clone_from(&all))?;
                }
                all
            }
        };
        Ok(Recalled { slot, is_shared: self.document.is_shared(), owed: graph.known(&recorded), recorded })
    }
}

/// Returns whether a run changes the machine, so that it can come to owe notifications.
pub(crate) fn changes(mode: Mode) -> bool {
    mode.operation.may_change() && mode.execution == Effect::Actual
}

/// The journal of a run that changes things: what the run is about to owe is on the disk before it changes anything.
pub(crate) struct Ledger<'a> {
    recalled: Recalled<'a>,
    /// By instance, what acts on its changes.
    acting: BTreeMap<NodeId, BTreeSet<String>>,
    journal: Box<dyn Journal + 'a>,
}

impl<'a> Ledger<'a> {
    /// A ledger around another journal.
    pub(crate) fn new(recalled: Recalled<'a>, graph: &Graph, journal: Box<dyn Journal + 'a>) -> Self {
        let mut acting: BTreeMap<NodeId, BTreeSet<String>> = BTreeMap::new();
        for id in graph.notified() {
            let path = graph.node(id).path.to_string();
            let mut open: Vec<NodeId> = graph.notified_by(id).collect();
            while let Some(source) = open.pop() {
                acting.entry(source).or_default().insert(path.clone());
                open.extend(graph.members(source));
            }
        }
        Self { recalled, acting, journal }
    }

    /// Records what is owed if the process ends during the calls that are about to begin.
    fn intend(&mut self, events: &[Event]) -> Result<(), StoreError> {
        let acting = |event: &Event| match &event.kind {
            EventKind::CallStarted { instance, operation, execution: Effect::Actual, .. } if operation.may_change() => {
                self.acting.get(&instance.node())
            }
            _ => None,
        };
        let recorded = &self.recalled.recorded;
        let all = events.iter().filter_map(acting).flatten();
        let new: Owed = all.filter(|path| !recorded.contains(*path)).cloned().collect();
        if new.is_empty() {
            return Ok(());
        }
        self.recalled.slot.change(|kept| kept.owed.extend(new.iter().cloned()))?;
        self.recalled.recorded.extend(new);
        Ok(())
    }

    /// Records what is owed after the run. What the document does not have any more is owed nothing.
    ///
    /// A failure is only reported: the record then says more than is owed, and nothing is lost.
    pub(crate) fn close(self, run: &Run) {
        let Recalled { slot, is_shared, recorded, .. } = self.recalled;
        let mut owed: Owed = run.owed().iter().map(ToString::to_string).collect();
        if is_shared {
            let known = run.graph().known(&recorded);
            let known: Owed = known.into_iter().map(|id| run.graph().node(id).path.to_string()).collect();
            owed.extend(recorded.difference(&known).cloned());
        }
        if owed == recorded {
            return;
        }
        if let Err(error) = slot.change(|kept| kept.owed = owed) {
            tracing::warn!("the next run may do again what acts on changes: {}", error_chain(&error));
        }
    }
}

impl Journal for Ledger<'_> {
    fn append(&mut self, events: &[Event]) -> Result<(), JournalError> {
        let path = self.recalled.slot.path();
        let unwritten = |error: StoreError| JournalError { path, source: io::Error::other(error_chain(&error)) };
        self.intend(events).map_err(unwritten)?;
        self.journal.append(events)
    }

    fn is_durable(&self) -> bool {
        self.journal.is_durable()
    }
}
