//! The agent: keeps a machine in the state of the document that was delivered to it.
//!
//! ```text
//!  control (Unix socket) ──▶ State::submit, remove, … ──▶ Store (one record, replaced as a whole)
//!                                     │
//!        time, boot ──▶ State::next ──▶ Begin ──▶ job: Session::prepare, run or resume, with a journal ──▶ State::end
//! ```
//!
//! [`State`] decides and has no effects; everything else carries out.

mod decide;
mod settings;
mod state;
mod window;

pub use decide::{Moment, Next, Waiting};
pub use settings::{ActionAfterReboot, Backoff, NewDocument, Settings};
pub use state::{
    BootId, Crashes, Ended, Generation, Held, Job, JobKind, JobOutcome, JobResult, LastJob, Progress, Refusal,
    RestartDue, Stage, State, Submission, Work,
};
pub use window::{Intent, Opening, Purpose, Window, opening};
