//! `--metrics`: figures about the last run, or the last job of an agent, in the text format of Prometheus.

use std::error::Error;
use std::fmt::Write as _;

use stead_agent::{EndedJob, JobResult, Sink, Work};
use stead_core::run::Run;
use stead_engine::Summary;
use stead_system::fs::FsError;

use super::command_word;
use super::files::RunFile;
use crate::exit::Exit;
use crate::request::MetricsRequest;

/// The beginning of every file of figures.
const BEGIN: &str = "# HELP stead_run_";

/// The statuses of instances that are counted, as reports have them.
const STATUSES: [&str; 7] = ["changed", "unchanged", "drifted", "unknown", "pending", "failed", "skipped"];

/// A file that figures are written to.
pub(crate) struct Metrics {
    file: RunFile,
    mode: u32,
}

impl Metrics {
    /// Refuses what could not be written in the end; see [`RunFile::begin`].
    pub(crate) fn begin(asked: &MetricsRequest) -> Result<Self, Exit> {
        let file = RunFile::begin(&asked.path, "the metrics", BEGIN)?;
        Ok(Self { file, mode: if asked.is_for_all { 0o644 } else { 0o600 } })
    }

    /// Writes the figures of a run.
    pub(super) fn write(self, run: &Run, summary: &Summary, document: &str) -> Result<(), Exit> {
        self.file.write(&Figures::of_run(run, summary, document).text(), self.mode)
    }
}

impl Sink for Metrics {
    fn take(&self, ended: &EndedJob<'_>) -> Result<(), Box<dyn Error>> {
        self.file.replace(&Figures::of_job(ended).text(), self.mode).map_err(|error: FsError| error.into())
    }
}

/// What is written.
struct Figures<'a> {
    document: &'a str,
    operation: &'static str,
    ended: f64,
    duration: f64,
    succeeded: bool,
    re_runs: u64,
    /// How many instances ended in each of [`STATUSES`].
    instances: [u64; 7],
}

impl<'a> Figures<'a> {
    fn of_run(run: &Run, summary: &Summary, document: &'a str) -> Self {
        let (report, totals) = (run.report(), &summary.totals);
        let (began, ended) = (report.began.unwrap_or_default(), report.ended.unwrap_or_default());
        let counts = [
            totals.changed,
            totals.unchanged,
            totals.drifted,
            totals.unknown,
            totals.pending,
            totals.failed,
            totals.skipped,
        ];
        Self {
            document,
            operation: command_word(run.mode()),
            ended: ended.as_duration().as_secs_f64(),
            duration: ended.duration_since(began).as_secs_f64(),
            succeeded: !summary.has_failures(run) && !report.cancelled,
            re_runs: u64::from(report.re_runs),
            instances: counts.map(|count| count as u64),
        }
    }

    fn of_job(ended: &EndedJob<'_>) -> Figures<'static> {
        let count = |path: &str| ended.report.pointer(path).and_then(serde_json::Value::as_u64).unwrap_or_default();
        let began = ended.job.began;
        Figures {
            document: "agent",
            operation: match ended.job.work {
                Work::Apply => "apply",
                Work::Test => "check",
            },
            ended: ended.at.as_duration().as_secs_f64(),
            duration: ended.at.duration_since(began).as_secs_f64(),
            succeeded: matches!(ended.outcome.result, JobResult::Converged | JobResult::NotInState),
            re_runs: count("/reconcile/re_runs_count"),
            instances: STATUSES.map(|status| count(&format!("/totals/{status}"))),
        }
    }

    fn text(&self) -> String {
        let labels = format!("document=\"{}\",operation=\"{}\"", escaped(self.document), self.operation);
        let mut text = String::new();
        for (name, help, value) in [
            ("run_end_time_seconds", "When the last run ended, in seconds since 1970.", self.ended),
            ("run_duration_seconds", "How long it took.", self.duration),
            ("run_success", "1 if nothing failed, else 0.", f64::from(u8::from(self.succeeded))),
        ] {
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "# HELP stead_{name} {help}\n# TYPE stead_{name} gauge\nstead_{name}{{{labels}}} {value}\n"
            );
        }
        text += "# HELP stead_run_reruns How often something was run again.\n# TYPE stead_run_reruns gauge\n";
        let _ = writeln!(text, "stead_run_reruns{{{labels}}} {}", self.re_runs);
        text += "# HELP stead_instances How many instances ended in this status.\n# TYPE stead_instances gauge\n";
        for (status, count) in STATUSES.iter().zip(self.instances) {
            let _ = writeln!(text, "stead_instances{{{labels},status=\"{status}\"}} {count}");
        }
        text
    }
}

/// A value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
