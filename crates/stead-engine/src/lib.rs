//! stead as a library: what the command line, the server and everything else that applies documents is built on.
//!
//! ```text
//! text ──Session::prepare──▶ Prepared ──Session::check_properties──▶ findings ──Session::run──▶ Run, and its report
//! ```
//!
//! A [`Host`] lives as long as the process. A [`Session`] is one piece of work with its texts and secrets: a document that is
//! prepared and run, or a resource that is called. `examples/embed.rs` is the whole way in thirty lines;
//! a [`Batch`] runs several documents with a reconciler of one's own, as `examples/batch.rs` does.

mod batch;
mod bundle;
mod calls;
mod conflicts;
mod difference;
mod evaluation;
mod execution;
mod host;
mod implied;
mod importing;
mod invoke;
pub mod json;
mod late;
mod memory;
mod parts;
mod property_check;
mod reconcile;
mod reference;
mod resource;
mod saved_plan;
mod second_look;
mod session;
mod summary;
mod watch;

pub use batch::{Batch, BatchDocument, BatchResult, Completed, Refused, RefusedDocument};
pub use bundle::{Bundled, NotBundled, NotOpened};
pub use difference::{Difference, printed, schema, words};
pub use execution::{Consumer, ENGINE_VERSION, Execution, Planned, ResumeError, RunError, RunWatch, Waits};
pub use host::{DSC_VERSION, Host, HostOptions, PowerShellSearch};
pub use invoke::{InvokeError, Invoked, Method, ResourceSpecification};
pub use memory::Memory;
pub use parts::{Parts, UnknownPart};
pub use reconcile::{PENDING_RULES, RECONCILERS, ReconcileOptions};
pub use reference::{PropertyReference, Reference};
pub use resource::{Refusal, ResourceCall, error_chain, failure_lines, finding_line, set_mode};
pub use saved_plan::{Deviation, PlanError, SavedPlan, is_single};
pub use session::{NotFound, Prepared, Session, Unusable, folder_of, problem_text};
pub use summary::Summary;
