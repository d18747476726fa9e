//! Waiting for somebody else, and for how long.

use std::fmt;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use crate::cancel::Cancel;
use crate::error::FsError;

/// How long work on a tree may go on.
pub struct Patience {
    cancel: Cancel,
    deadline: Duration,
    until: Option<Instant>,
}

impl Patience {
    /// So long from now on, and not cancelled.
    pub fn new(cancel: &Cancel, deadline: Duration) -> Self {
        Self { cancel: cancel.clone(), deadline, until: Instant::now().checked_add(deadline) }
    }

    /// Fails when it is over.
    pub fn check(&self) -> Result<(), FsError> {
        if self.cancel.is_cancelled() {
            Err(FsError::Cancelled)
        } else if self.until.is_some_and(|until| Instant::now() > until) {
            Err(FsError::Deadline(self.deadline))
        } else {
            Ok(())
        }
    }
}

/// How long a lock is waited for, and who is notified.
pub struct Wait<'a> {
    /// Ends the wait early.
    pub cancel: &'a Cancel,
    /// How long the wait may take.
    pub deadline: Duration,
    /// Called once about each process that is waited for, `None` when it did not record who it is; decides whether to wait
    /// for it.
    pub on_wait: &'a mut dyn FnMut(Option<&Owner>) -> ControlFlow<()>,
}

/// Who holds a lock, as far as it said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owner {
    /// Its process id.
    pub pid: u32,
    /// Since when, as RFC 3339 text.
    pub since: String,
    /// The command, such as `stead apply web.yaml`.
    pub command: String,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' (process {}, since {})", self.command, self.pid, self.since)
    }
}

/// The process that holds a lock, in words.
pub fn describe(owner: Option<&Owner>) -> String {
    owner.map_or_else(|| "another process".to_owned(), ToString::to_string)
}
