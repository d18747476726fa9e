//! The journal of a job that changes things: what the job is about to owe is recorded before it changes anything.

use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use stead_core::event::Event;
use stead_core::run::{Acting, Owed, Run};
use stead_host::journal::{Journal, JournalError};

use super::ready::ReadyDocument;
use super::{JobSpec, Observer};

/// Has the observer record what acts on a change before the change is made.
pub(super) struct Owing<'a> {
    acting: Acting,
    observer: &'a dyn Observer,
    path: &'a Path,
    recorded: &'a Mutex<Owed>,
    journal: Box<dyn Journal + 'a>,
}

impl<'a> Owing<'a> {
    /// Around another journal, which lies at a path.
    pub(super) fn new(
        spec: &'a JobSpec,
        ready: &ReadyDocument,
        observer: &'a dyn Observer,
        path: &'a Path,
        journal: Box<dyn Journal + 'a>,
    ) -> Self {
        Self { acting: Acting::of(&ready.prepared.graph), observer, path, recorded: &spec.intended, journal }
    }

    fn intend(&mut self, events: &[Event]) -> io::Result<()> {
        let mut new = self.acting.on(events);
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        new.retain(|path| !recorded.contains(path));
        if new.is_empty() {
            return Ok(());
        }
        self.observer.owes(&new)?;
        recorded.extend(new);
        Ok(())
    }
}

impl Journal for Owing<'_> {
    fn append(&mut self, events: &[Event]) -> Result<(), JournalError> {
        self.intend(events).map_err(|source| JournalError { path: self.path.to_owned(), source })?;
        self.journal.append(events)
    }

    fn settle(&mut self, run: &Run) {
        self.journal.settle(run);
    }

    fn is_durable(&self) -> bool {
        self.journal.is_durable()
    }
}
