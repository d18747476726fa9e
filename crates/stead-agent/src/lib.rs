//! The agent: keeps a machine in the state of the document that was delivered to it.
//!
//! ```text
//!  control (Unix socket), Source ──▶ AgentState::submit, … ──▶ Store (one record, replaced as a whole)
//!                                          │
//!                  time, boot ──▶ AgentState::next ──▶ Begin ──▶ job: Session::prepare, run or resume, with a journal
//!                                          ▲                                        │
//!                                          └──────────── AgentState::end ───────────┘
//! ```
//!
//! [`AgentState`] decides and has no effects; everything else carries out.

mod boot;
pub mod control;
mod decide;
mod follow;
mod install;
mod job;
mod keys;
mod log;
mod mode;
mod rate_limit;
mod reports;
mod service;
pub mod settings;
mod sink;
mod source;
mod state;
mod status;
mod store;
mod touched;
mod window;

pub use boot::{BOOT_ID, boot_id};
pub use control::{CallError, SERVICE_STATE, call};
pub use decide::{Moment, Next, Waiting};
pub use follow::{BadAddress, Fetch, FetchError, SourceAddress};
pub use install::{install, unit};
pub use keys::{KeysError, KeysOrigin, KeysWanted, OwnKeys};
pub use reports::{Reports, ReportsError, Stored};
pub use service::{AgentError, Options, STOP_GRACE, is_service, run};
pub use settings::codes as settings_codes;
pub use settings::{ActionAfterReboot, Backoff, InvalidSetting, NewDocument, SETTINGS, Setting, Settings};
pub use sink::{EndedJob, Sink};
pub use source::{Folder, Newer, Source, UnusableFolder};
pub use state::{
    AgentState, BootId, Crashes, DamageNote, Debts, Ended, Followed, Following, Generation, HoldReason, Interrupted,
    Job, JobKind, JobOutcome, JobResult, Joining, LastJob, LeftOver, Overtaken, Progress, Refusal, RestartDue,
    Restarts, Settled, Spread, Stage, StagedRelease, Submission, Trouble, TroubleKind, Work,
};
pub use status::{Activity, Health, JobStatus, LcmState, Outcome, StageStatus, Status};
pub use store::{Damage, Delivered, Repair, Store, StoreError};
pub use window::{Intent, Opening, Purpose, Window, opening};
