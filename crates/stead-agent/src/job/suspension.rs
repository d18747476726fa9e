//! How a job is suspended, and why.

use std::sync::{Arc, OnceLock};

use stead_system::Cancel;

/// Stops a job so that it can be resumed. The first reason counts. Clones stop the same job.
#[derive(Clone, Default)]
pub(crate) struct Suspension {
    pub(crate) cancel: Cancel,
    /// Ends calls that change nothing.
    pub(crate) end_reads: Cancel,
    because: Arc<OnceLock<SuspendReason>>,
}

/// Why a job was suspended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SuspendReason {
    /// A resource asked for a restart of the machine.
    Restart,
    /// The maintenance window has closed.
    Window,
    /// An operator stopped it, or replaced or removed its document.
    Operator,
    /// The agent ends.
    End,
}

impl Suspension {
    pub(crate) fn suspend(&self, because: SuspendReason) {
        let _ = self.because.set(because);
        self.cancel.cancel();
        // Somebody waits for the end of it.
        if matches!(because, SuspendReason::Operator | SuspendReason::End) {
            self.end_reads.cancel();
        }
    }

    pub(crate) fn because(&self) -> Option<SuspendReason> {
        self.because.get().copied()
    }
}

impl SuspendReason {
    /// Returns why an instance was not begun.
    pub(super) fn clause(self) -> &'static str {
        match self {
            Self::Restart => "a resource asked for a restart of the machine before it was begun",
            Self::Window => "the maintenance window closed before it was begun",
            Self::Operator => "the job was stopped before it was begun",
            Self::End => "the agent was stopped before it was begun",
        }
    }
}
