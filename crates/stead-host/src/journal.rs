//! Where the events of a run are recorded before they count.

mod file;
mod format;
mod recorded;

use std::path::PathBuf;

use stead_core::event::Event;
use stead_core::run::Run;

pub(crate) use format::Chain;

pub use file::{FileJournal, OpenJournalError};
pub use format::{ReadError, read};
pub use recorded::{Beginning, RecordedRun, RecordedRuns, RunId};

/// Records the events of a run, in order.
pub trait Journal {
    /// Records events. Returns once they survive what the journal promises to survive; after an error none of them counts,
    /// and nothing may be appended any more.
    fn append(&mut self, events: &[Event]) -> Result<(), JournalError>;

    /// Takes over events that were appended, once they count.
    fn counted(&mut self, _: Vec<Event>) {}

    /// Called before the run lets others change the machine, and at its end: everything appended so far has come to an end.
    fn settle(&mut self, _: &Run) {}

    /// Returns whether its records survive a power failure, so that what they say was done must survive one as well.
    fn is_durable(&self) -> bool {
        false
    }
}

/// Why events could not be recorded.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the journal '{}'", path.display())]
pub struct JournalError {
    /// The journal.
    pub path: PathBuf,
    /// The error of the system.
    #[source]
    pub source: std::io::Error,
}

/// Keeps nothing: a run that nobody resumes.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoJournal;

impl Journal for NoJournal {
    fn append(&mut self, _: &[Event]) -> Result<(), JournalError> {
        Ok(())
    }
}

impl<J: Journal + ?Sized> Journal for &mut J {
    fn append(&mut self, events: &[Event]) -> Result<(), JournalError> {
        (**self).append(events)
    }

    fn counted(&mut self, events: Vec<Event>) {
        (**self).counted(events);
    }

    fn settle(&mut self, run: &Run) {
        (**self).settle(run);
    }

    fn is_durable(&self) -> bool {
        (**self).is_durable()
    }
}

/// Keeps events in memory.
impl Journal for Vec<Event> {
    fn append(&mut self, events: &[Event]) -> Result<(), JournalError> {
        self.extend_from_slice(events);
        Ok(())
    }
}
