//! What a run is told like, for people: a line for each instance, and a summary.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use anstyle::{AnsiColor, Style as Paint};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use stead_core::call::{FailureKind, Operation, Restart, code};
use stead_core::diag;
use stead_core::diff::{Rules, changes};
use stead_core::event::{Because, Event};
use stead_core::graph::{Graph, Role};
use stead_core::id::NodeId;
use stead_core::run::{Mode, Record, Run, Status};
use stead_core::text::Sources;
use stead_core::value::Value;
use stead_core::wire::results::reason;

use super::values;
use crate::args::{Document, Output};
use crate::output::{is_coloured, is_watched, print};

/// What is told, and how.
pub(super) struct Style {
    /// Whether it is told as text at all.
    text: bool,
    volume: Volume,
    progress: bool,
    mode: Mode,
}

/// How much is told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Volume {
    /// What failed.
    Quiet,
    /// And what changed.
    Usual,
    /// And what did not.
    Verbose,
}

impl Style {
    pub(super) fn new(document: &Document, mode: Mode) -> Self {
        let text = document.output == Output::Text;
        let progress = text && !document.quiet && !document.events && is_watched();
        let volume = match (document.quiet, document.verbose) {
            (true, _) => Volume::Quiet,
            (false, true) => Volume::Verbose,
            (false, false) => Volume::Usual,
        };
        Self { text, volume, progress, mode }
    }
}

/// Tells of a run while it goes on.
pub(super) struct Printer {
    style: Style,
    sources: Arc<Sources>,
    bar: Option<ProgressBar>,
}

impl Printer {
    pub(super) fn new(style: Style, sources: Arc<Sources>) -> Self {
        let bar = style.progress.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let template = ProgressStyle::with_template("{bar:30} {pos}/{len} {wide_msg}");
            bar.with_style(template.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        Self { style, sources, bar }
    }

    /// An apply is told as it goes, since what was done has to be known even if the rest is cut off. A plan and a check
    /// are told in the order of the document at the end.
    pub(super) fn event(&mut self, run: &Run, event: &Event) {
        let Some(node) = super::settled(run, event) else { return };
        if let Some(bar) = &self.bar {
            bar.set_length(run.graph().nodes.len() as u64);
            bar.set_message(run.graph().node(node).name.to_string());
            bar.inc(1);
        }
        if self.style.text && self.style.mode == Mode::APPLY {
            self.tell(run, node);
        }
    }

    fn tell(&self, run: &Run, node: NodeId) {
        let lines = self.lines(run, node);
        if lines.is_empty() {
            return;
        }
        match &self.bar {
            Some(bar) => bar.suspend(|| print(&lines)),
            None => print(&lines),
        }
    }

    /// The lines about one instance; empty when there is nothing to tell.
    fn lines(&self, run: &Run, node: NodeId) -> String {
        let (graph, record) = (run.graph(), run.report().record(node));
        let Some(status) = &record.status else { return String::new() };
        let holder = matches!(graph.node(node).role, Role::Holder { .. });
        // A holder is the sum of what is nested in it, which is told by itself; only its own failing is news.
        let told = match status {
            Status::Failed => true,
            Status::Skipped(Because::Condition) | Status::Read | Status::InState => {
                self.style.volume == Volume::Verbose && !holder
            }
            Status::Skipped(_) | Status::Changed | Status::Drifted | Status::Unforeseen(_) => {
                self.style.volume > Volume::Quiet && !holder
            }
        };
        if !told {
            return String::new();
        }
        let (sign, word, paint) = self.wording(status, record);
        let mut lines = painted(paint, &format!("{sign} {}", heading(graph, node)));
        // Writing to a string cannot fail.
        let _ = writeln!(lines, "  {word}{}", Self::detail(run, node, status));
        lines + &self.body(run, node, status)
    }

    fn wording(&self, status: &Status, record: &Record) -> (char, &'static str, AnsiColor) {
        let planned = self.style.mode == Mode::PLAN;
        match status {
            Status::Read => (' ', "read", AnsiColor::White),
            Status::InState => (' ', "unchanged", AnsiColor::White),
            Status::Drifted => ('~', "not as it should be", AnsiColor::Yellow),
            Status::Changed => match (appears(record), planned) {
                (Some(true), true) => ('+', "to be created", AnsiColor::Green),
                (Some(true), false) => ('+', "created", AnsiColor::Green),
                (Some(false), true) => ('-', "to be removed", AnsiColor::Red),
                (Some(false), false) => ('-', "removed", AnsiColor::Red),
                (None, true) => ('~', "to be changed", AnsiColor::Yellow),
                (None, false) => ('~', "changed", AnsiColor::Yellow),
            },
            Status::Failed => ('!', "failed", AnsiColor::Red),
            Status::Skipped(_) => ('>', "left out", AnsiColor::White),
            Status::Unforeseen(_) => ('?', "unknown", AnsiColor::Cyan),
        }
    }

    fn detail(run: &Run, node: NodeId, status: &Status) -> String {
        let graph = run.graph();
        match status {
            Status::Unforeseen(because) => {
                format!(" until {} has been changed", graph.label(*because))
            }
            Status::Skipped(Because::Condition) => ": its condition is false".to_owned(),
            Status::Skipped(_) | Status::Failed => {
                let why = reason(graph, run.report(), node).unwrap_or_default();
                format!(": {}", why.trim_start_matches("left out, ").trim_end())
            }
            Status::Drifted => match &run.report().record(node).tested {
                Some(tested) if !tested.differing.is_empty() => format!(": {}", tested.differing.join(", ")),
                _ => String::new(),
            },
            Status::Changed | Status::InState | Status::Read => String::new(),
        }
    }

    /// What stands below the line: differences, or the place of what is wrong.
    fn body(&self, run: &Run, node: NodeId, status: &Status) -> String {
        let record = run.report().record(node);
        match status {
            Status::Failed => match &record.finding {
                Some(finding) => diag::render(finding, &self.sources, is_coloured()),
                None => self.place_of_failure(run, node),
            },
            Status::Changed | Status::Drifted => match (differences(record), record.changed()) {
                // What cannot be shown as properties is told in the words of the resource.
                (shown, Some(changed)) if shown.is_empty() => {
                    changed.what_if.iter().flat_map(|text| ["    ", text, "\n"]).collect()
                }
                (shown, _) => shown,
            },
            _ => String::new(),
        }
    }

    fn place_of_failure(&self, run: &Run, node: NodeId) -> String {
        let record = run.report().record(node);
        let place = self.sources.place(run.graph().declaration(node).name.span);
        let kind = record.failure.as_ref().map(|failure| &failure.kind);
        let kind = kind.or(record.not_converged().map(|_| &FailureKind::NotConverged));
        let explained = kind.map(|kind| format!(", see stead explain {}", code(kind).id)).unwrap_or_default();
        format!("    declared at {place}{explained}\n")
    }

    /// The last lines, and before them what was not told as it went.
    pub(super) fn summary(&self, run: &Run, elapsed: Duration) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        if self.style.mode != Mode::APPLY {
            print(&run.graph().order.iter().map(|node| self.lines(run, *node)).collect::<String>());
        }
        self.outputs(run);
        self.restarts(run);
        if self.style.volume > Volume::Quiet {
            print(&totals(run, elapsed));
        }
    }

    fn outputs(&self, run: &Run) {
        for (name, value) in run.outputs() {
            match value {
                Ok(value) => print(&format!("output {name} = {}\n", value.to_redacted_json())),
                Err(finding) => print(&diag::render(&finding, &self.sources, is_coloured())),
            }
        }
    }

    fn restarts(&self, run: &Run) {
        let verb = if self.style.mode == Mode::PLAN { "would have" } else { "has" };
        for restart in &run.report().restarts {
            let what = match restart {
                Restart::System(name) => format!("the machine ({name})"),
                Restart::Service(name) => format!("the service {name}"),
                Restart::Process { name, id } => format!("the process {name} ({id})"),
            };
            print(&format!("{what} {verb} to be restarted\n"));
        }
    }
}

/// `Type 'name'`, within what holds it.
fn heading(graph: &Graph, node: NodeId) -> String {
    let holders = std::iter::successors(graph.holder(node), |id| graph.holder(*id));
    let mut path: Vec<String> = holders.map(|id| graph.node(id).name.to_string()).collect();
    path.reverse();
    path.push(graph.node(node).name.to_string());
    format!("{} '{}'", graph.declaration(node).type_name.value, path.join(" / "))
}

fn painted(color: AnsiColor, text: &str) -> String {
    let paint = Paint::new().fg_color(Some(color.into()));
    format!("{paint}{text}{paint:#}")
}

/// Whether a change creates or removes the instance; `None` when it was there before and after.
fn appears(record: &Record) -> Option<bool> {
    let changed = record.changed()?;
    let exists = |state: &Value| state.as_object().is_none_or(stead_core::diff::exists);
    match (exists(&changed.before), exists(&changed.after)) {
        (false, true) => Some(true),
        (true, false) => Some(false),
        _ => None,
    }
}

/// What differs between before and after, or between what is and what should be.
fn differences(record: &Record) -> String {
    let (before, after) = match (record.changed(), &record.tested, &record.desired) {
        (Some(changed), _, _) => (changed.before.clone(), changed.after.clone()),
        (None, Some(tested), Some(desired)) => {
            (tested.actual.clone(), stead_core::diff::overlaid(&tested.actual, desired, &Rules::default()))
        }
        _ => return String::new(),
    };
    let named = named(record);
    let shown = changes(&before, &after);
    let news = shown.iter().filter(|change| change.path != "/_exist" && is_named(&change.path, named));
    news.map(|change| values::change(change, "    ")).collect()
}

/// The properties that the resource says have changed; `None` for all, since what is new is new as a whole.
pub(super) fn named(record: &Record) -> Option<&[String]> {
    record.changed().filter(|_| appears(record) != Some(true))?.changed.as_deref()
}

/// Whether a change is of a property that the resource says has changed; one that tells more of the state before than
/// of the state after has not removed anything.
pub(super) fn is_named(path: &str, named: Option<&[String]>) -> bool {
    let property = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    named.is_none_or(|named| named.iter().any(|name| name == property))
}

fn totals(run: &Run, elapsed: Duration) -> String {
    let totals = run.totals();
    let planned = run.mode() == Mode::PLAN;
    let parts = [
        (totals.changed, if planned { "to change" } else { "changed" }),
        (totals.drifted, "drifted"),
        (totals.unforeseen, "unknown"),
        (totals.unchanged, if run.mode().operation == Operation::Test { "as they should be" } else { "unchanged" }),
        (totals.failed, "failed"),
        (totals.skipped, "left out"),
    ];
    let always = |word: &str| matches!(word, "changed" | "to change" | "unchanged" | "as they should be" | "failed");
    let told = parts.iter().filter(|(count, word)| *count > 0 || always(word)).filter(|(count, word)| {
        // A check changes nothing and need not say so.
        *count > 0 || run.mode().operation != Operation::Test || *word != "changed"
    });
    let text: Vec<String> = told.map(|(count, word)| format!("{count} {word}")).collect();
    let verb = match (run.mode().operation, planned) {
        (_, true) => "Plan",
        (Operation::Test, _) => "Check",
        _ => "Applied",
    };
    format!("{verb}: {} in {}\n", text.join(", "), human(elapsed))
}

fn human(elapsed: Duration) -> String {
    if elapsed < Duration::from_secs(1) {
        format!("{} ms", elapsed.as_millis())
    } else {
        format!("{:.1} s", elapsed.as_secs_f64())
    }
}
