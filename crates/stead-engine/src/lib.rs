//! stead as a library: what the command line, the server and everything else that applies documents is built on.
//!
//! ```text
//! text ──Session::prepare──▶ Prepared ──Session::check_properties──▶ findings ──Session::run──▶ Run, and its report
//! ```
//!
//! A [`Host`] lives as long as the process. A [`Session`] is one piece of work with its texts and secrets: a document that is
//! prepared and run, or a resource that is called. `examples/embed.rs` is the whole way in thirty lines, and
//! `examples/provider.rs` adds a resource of one's own, a secret and a journal; a [`Batch`] runs several documents with a
//! reconciler of one's own, as `examples/batch.rs` does.
//!
//! Programs that embed stead need no other crate of it: types of the others that they meet are here, and in [`provider`],
//! [`journal`] and [`policy`].

mod accounting;
mod batch;
mod beside_root;
mod bundle;
mod calls;
mod conflicts;
mod contexts;
mod delivery;
mod difference;
mod document_keys;
mod embedded;
mod evaluation;
mod execution;
mod finding;
mod gone;
mod host;
mod implied;
mod importing;
mod invoke;
pub mod json;
mod known;
mod late;
mod lints;
mod managing;
mod memory;
mod messages;
mod modules;
mod opened;
mod options;
mod parts;
mod planned;
mod prepared;
mod preparing;
mod property_check;
mod providers;
mod real_paths;
mod reconcile;
mod reference;
mod resource;
mod saved_plan;
mod second_look;
mod session;
mod shared;
mod shared_files;
mod staying;
mod summary;
mod things;
mod uncertain;
mod undo;
mod watch;
mod watched_files;
mod wildcards;

pub use batch::{Batch, BatchDocument, BatchResult, Completed, RefusedDocument, RefusedDocuments};
pub use bundle::{Bundled, NotBundled, NotOpened, VaultEntry};
pub use delivery::Delivery;
pub use difference::{Difference, printed, schema, words};
pub use document_keys::DocumentKey;
pub use execution::{Consumer, ResumeError, RunError, RunOptions, RunWatch, Waits};
pub use host::{DSC_VERSION, ENGINE_VERSION, Host, HostOptions, PowerShellSearch, SecretSource};
pub use invoke::{InvokeError, Invoked, Method, ResourceSpecification, VersionLimits};
pub use known::NotFound;
pub use memory::Memory;
pub use messages::{error_chain, failure_lines, finding_line, problem_text};
pub use options::SessionOptions;
pub use parts::{Parts, UnknownPart};
pub use planned::Planned;
pub use prepared::{Prepared, Unusable};
pub use reconcile::{PENDING_RULES, RECONCILERS, ReconcileOptions};
pub use reference::{PropertyReference, Reference};
pub use resource::{CallRefusal, ResourceCall, set_mode};
pub use saved_plan::{Deviation, PlanError, SavedPlan, is_single};
pub use session::{Session, folder_of};
pub use summary::Summary;
pub use undo::{NotTakenBack, Undo, UndoDocument};

pub use stead_core::diag::Diagnostic;
pub use stead_core::event::{Event, Mode};
pub use stead_core::graph::{Names, Values};
pub use stead_core::report::Report;
pub use stead_core::run::Run;
pub use stead_core::value::{Object, Value};
pub use stead_system::Cancel;

/// The parts that a resource of one's own is made of; see [`EmbeddedResource`] and `examples/provider.rs`.
///
/// [`EmbeddedResource`]: provider::EmbeddedResource
pub mod provider {
    pub use stead_core::call::{Execution, Exported, Failure, FailureKind, Pending};
    pub use stead_core::claims::{Claim, Claims, Extent, Provision, Ties};
    pub use stead_core::destruction::Effects;
    pub use stead_core::id::TypeName;
    pub use stead_core::manifest::{Capabilities, Implementation, Manifest, Promises, ResourceKind, Version};
    pub use stead_core::schema::Schema;
    pub use stead_core::statements::Statement;
    pub use stead_host::check;
    pub use stead_host::provider::{
        Context, Cost, Plain, Prediction, Provider, Review, SetReply, State, TestReply, Trace, TraceLevel, WayBack,
    };

    pub use crate::embedded::{EmbeddedResource, NotEmbedded};
}

/// Where events of a run are recorded before they count: a file that survives a power cut, or a folder of recorded runs.
pub mod journal {
    pub use stead_host::journal::{
        FileJournal, Journal, JournalError, NoJournal, OpenJournalError, ReadError, RecordedRun, RecordedRuns, RunId,
        read,
    };
}

/// The policies by which instances that are pending are run again.
pub mod policy {
    pub use stead_core::run::policy::{Attempt, Policy, SinglePass, Verdict};
    pub use stead_core::run::reconcile::{PendingRule, Reconciler, WhileProgress};
    pub use stead_core::wait::Wait;
}
