//! Where reports of jobs go.

use std::error::Error;

use jiff::Timestamp;
use serde_json::Value as Json;

use crate::state::{Job, JobOutcome};

/// A place that takes the reports of jobs.
///
/// Guarantees: a sink is given each job that is worth a report once, in the order in which jobs ended, after the record of the agent
/// was saved. What a sink refuses is logged, and keeps nobody from converging: one that must miss nothing reads the
/// [database](crate::Reports) behind a cursor instead, which has what it missed.
///
/// Shipped are the database and the log, a line of JSON for each job.
///
/// # Examples
/// ```
/// use stead_agent::{EndedJob, JobResult, Sink};
///
/// /// Counts what failed.
/// #[derive(Default)]
/// struct Failures(std::sync::atomic::AtomicUsize);
///
/// impl Sink for Failures {
///     fn take(&self, ended: &EndedJob<'_>) -> Result<(), Box<dyn std::error::Error>> {
///         if ended.outcome.result == JobResult::Failed {
///             self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
///         }
///         Ok(())
///     }
/// }
/// ```
pub trait Sink: Send + Sync {
    /// Takes the report of a job that has ended. Called while the agent decides nothing: it should not wait.
    ///
    /// # Errors
    /// When the report is lost to this sink.
    fn take(&self, ended: &EndedJob<'_>) -> Result<(), Box<dyn Error>>;
}

/// A job that has ended, and its report.
#[derive(Clone, Copy, Debug)]
pub struct EndedJob<'a> {
    /// When it ended.
    pub at: Timestamp,
    /// The job.
    pub job: &'a Job,
    /// The outcome of the job.
    pub outcome: &'a JobOutcome,
    /// The report, as `stead agent report` prints it. It holds no secrets.
    pub report: &'a Json,
}
