//! The journal of a job over a part of a document.

use std::io;
use std::path::Path;

use stead_core::event::{Event, EventKind};
use stead_host::journal::{FileJournal, Journal, JournalError};

use super::Observer;

/// Announces the job when something is about to be set, and keeps a journal from then on. Most such jobs set nothing: what
/// woke the agent was its own doing.
///
/// The journal is not flushed. It says what the agent crashed over and what asked for a restart of the machine, and after a
/// power failure the first is nobody's fault and the second has happened. What the job may owe is known by its instances,
/// which the announcement names durably.
pub(super) struct Announced<'a> {
    observer: &'a dyn Observer,
    path: &'a Path,
    early: Vec<Event>,
    journal: Option<FileJournal>,
}

impl<'a> Announced<'a> {
    pub(super) fn new(observer: &'a dyn Observer, path: &'a Path) -> Self {
        Self { observer, path, early: Vec::new(), journal: None }
    }

    fn open(&self) -> io::Result<FileJournal> {
        self.observer.announce()?;
        // One of a job that was announced and killed at once.
        let _ = std::fs::remove_file(self.path);
        FileJournal::create_unflushed(self.path).map_err(io::Error::other)
    }
}

impl Journal for Announced<'_> {
    fn append(&mut self, events: &[Event]) -> Result<(), JournalError> {
        if let Some(journal) = &mut self.journal {
            return journal.append(events);
        }
        self.early.extend_from_slice(events);
        if events.iter().any(sets) {
            let opened = self.open().map_err(|source| JournalError { path: self.path.to_owned(), source })?;
            let early = std::mem::take(&mut self.early);
            self.journal.insert(opened).append(&early)?;
        }
        Ok(())
    }
}

fn sets(event: &Event) -> bool {
    matches!(&event.kind, EventKind::CallStarted { operation, .. } if operation.may_change())
}
