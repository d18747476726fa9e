//! `--metrics`: figures about a run, in the text format of Prometheus.

use std::fmt::Write as _;
use std::path::Path;

use stead_core::event::Mode;
use stead_core::run::Run;
use stead_core::wire::results::operation_name;
use stead_engine::Summary;

use super::files::RunFile;
use crate::exit::Exit;

/// The beginning of every file of figures.
const BEGIN: &str = "# HELP stead_run_";

/// A file that figures about a run are written to.
pub(super) struct Metrics {
    file: RunFile,
    mode: u32,
}

impl Metrics {
    /// Refuses what could not be written in the end; see [`RunFile::begin`].
    pub(super) fn begin(path: &Path, is_for_all: bool) -> Result<Self, Exit> {
        let file = RunFile::begin(path, "the metrics", BEGIN)?;
        Ok(Self { file, mode: if is_for_all { 0o644 } else { 0o600 } })
    }

    /// Writes the figures of a run.
    pub(super) fn write(self, run: &Run, summary: &Summary, document: &str) -> Result<(), Exit> {
        self.file.write(&text(run, summary, document), self.mode)
    }
}

fn text(run: &Run, summary: &Summary, document: &str) -> String {
    let (report, totals) = (run.report(), &summary.totals);
    let (began, ended) = (report.began.unwrap_or_default(), report.ended.unwrap_or_default());
    let operation = match run.mode() {
        Mode::APPLY => "apply",
        Mode::PLAN => "plan",
        Mode::TEST => "check",
        mode => operation_name(mode.operation),
    };
    let labels = format!("document=\"{}\",operation=\"{operation}\"", escaped(document));
    let succeeded = f64::from(u8::from(!summary.has_failures(run) && !report.cancelled));
    let mut text = String::new();
    for (name, help, value) in [
        ("run_end_time_seconds", "When the last run ended, in seconds since 1970.", ended.as_duration().as_secs_f64()),
        ("run_duration_seconds", "How long it took.", ended.duration_since(began).as_secs_f64()),
        ("run_success", "1 if nothing failed, else 0.", succeeded),
        ("run_reruns", "How often something was run again.", f64::from(report.re_runs)),
    ] {
        // Writing to a string cannot fail.
        let _ =
            write!(text, "# HELP stead_{name} {help}\n# TYPE stead_{name} gauge\nstead_{name}{{{labels}}} {value}\n");
    }
    text += "# HELP stead_instances How many instances ended in this status.\n# TYPE stead_instances gauge\n";
    for (status, count) in [
        ("changed", totals.changed),
        ("unchanged", totals.unchanged),
        ("drifted", totals.drifted),
        ("unknown", totals.unknown),
        ("pending", totals.pending),
        ("failed", totals.failed),
        ("skipped", totals.skipped),
    ] {
        let _ = writeln!(text, "stead_instances{{{labels},status=\"{status}\"}} {count}");
    }
    text
}

/// A value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
