//! What a run is told like, for people: a line for each instance, and a summary.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use anstyle::{AnsiColor, Style as Paint};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use stead_core::call::{FailureKind, Operation, Restart, code};
use stead_core::destruction::{Effects, Listing};
use stead_core::diag;
use stead_core::event::{Event, SkipReason};
use stead_core::event::{Mode, Status};
use stead_core::graph::{Graph, Role};
use stead_core::id::NodeId;
use stead_core::report::Record;
use stead_core::run::Run;
use stead_core::text::Sources;
use stead_core::wire::results::reason;

use super::differences::{Difference, Kind};
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
        let Some(node) = super::settled(event) else { return };
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
        let Some(status) = record.status() else { return String::new() };
        let container = matches!(graph.node(node).role, Role::Container { .. });
        // A container is the sum of what is nested in it, which is told by itself; only its own failing is news.
        let told = match status {
            Status::Failed | Status::Pending => true,
            Status::Skipped(SkipReason::Condition | SkipReason::NoChange | SkipReason::NoFailure)
            | Status::Read
            | Status::InState => self.style.volume == Volume::Verbose && !container,
            Status::Skipped(_) | Status::Changed | Status::Drifted | Status::Unknown(_) => {
                self.style.volume > Volume::Quiet && !container
            }
        };
        if !told {
            return String::new();
        }
        let (sign, word, paint) = self.wording(status, record);
        let mut lines = painted(paint, &format!("{sign} {}", heading(graph, node, record)));
        // Writing to a string cannot fail.
        let _ = writeln!(lines, "  {word}{}", Self::detail(run, node, status));
        lines + &self.body(run, node, status)
    }

    fn wording(&self, status: &Status, record: &Record) -> (char, &'static str, AnsiColor) {
        let planned = self.style.mode == Mode::PLAN;
        let kind = Difference::of(record).map(|difference| difference.kind);
        match status {
            Status::Read => (' ', "read", AnsiColor::White),
            Status::InState => (' ', "unchanged", AnsiColor::White),
            Status::Drifted => match kind {
                Some(Kind::Comes) => ('+', "missing", AnsiColor::Yellow),
                Some(Kind::Goes) => ('-', "present, should be absent", AnsiColor::Yellow),
                _ => ('~', "drifted", AnsiColor::Yellow),
            },
            Status::Changed => match (kind, planned) {
                (Some(Kind::Comes), true) => ('+', "to be created", AnsiColor::Green),
                (Some(Kind::Comes), false) => ('+', "created", AnsiColor::Green),
                (Some(Kind::Goes), true) => ('-', "to be removed", AnsiColor::Red),
                (Some(Kind::Goes), false) => ('-', "removed", AnsiColor::Red),
                (_, true) => ('~', "to be changed", AnsiColor::Yellow),
                (_, false) => ('~', "changed", AnsiColor::Yellow),
            },
            Status::Failed => ('!', "failed", AnsiColor::Red),
            Status::Pending => ('!', "still pending", AnsiColor::Red),
            Status::Skipped(_) => ('>', "skipped", AnsiColor::White),
            Status::Unknown(_) => ('?', "unknown", AnsiColor::Cyan),
        }
    }

    fn detail(run: &Run, node: NodeId, status: &Status) -> String {
        let graph = run.graph();
        match status {
            Status::Unknown(because) => {
                format!(" until {} has been changed", graph.label(because.node()))
            }
            Status::Skipped(SkipReason::Condition) => ": its condition is false".to_owned(),
            Status::Skipped(SkipReason::Need(other)) => {
                format!(": it depends on {}, which {}", graph.label(other.node()), became(run, other.node()))
            }
            Status::Skipped(SkipReason::Container(other)) => {
                format!(": it is nested in {}, which {}", graph.label(other.node()), became(run, other.node()))
            }
            Status::Skipped(SkipReason::NoChange) => ": nothing that it waits on has changed".to_owned(),
            Status::Skipped(SkipReason::NoFailure) => ": nothing that it waits on has failed".to_owned(),
            Status::Skipped(SkipReason::Cancelled) => ": the run was cancelled".to_owned(),
            Status::Failed | Status::Pending => {
                let why = reason(graph, run.report(), node).unwrap_or_default();
                let lines: Vec<_> = why.trim_end().lines().map(values::plain).collect();
                format!(": {}", lines.join("\n    "))
            }
            Status::Drifted => match &run.report().record(node).tested {
                Some(tested) if tested.differing.iter().any(|name| name != "_exist") => {
                    format!(": {}", tested.differing.join(", "))
                }
                _ => String::new(),
            },
            Status::Changed | Status::InState | Status::Read => String::new(),
        }
    }

    /// What stands below the line: differences, or the place of what is wrong.
    fn body(&self, run: &Run, node: NodeId, status: &Status) -> String {
        let record = run.report().record(node);
        match status {
            Status::Failed => match record.finding() {
                Some(finding) => diag::render(finding, &self.sources, is_coloured()),
                None => self.place_of_failure(run, node),
            },
            Status::Changed | Status::Drifted => {
                let shown = Difference::of(record).map(|difference| told(&difference)).unwrap_or_default();
                // What cannot be shown is told in the words of the resource.
                let said = record.changed().filter(|_| shown.is_empty()).map(|changed| words(&changed.what_if));
                let effects = record.changed().map(|changed| effects(&changed.effects)).unwrap_or_default();
                said.unwrap_or(shown) + &effects
            }
            _ => String::new(),
        }
    }

    fn place_of_failure(&self, run: &Run, node: NodeId) -> String {
        let record = run.report().record(node);
        let place = self.sources.place(run.graph().declaration(node).name.span);
        let kind = record.failure().map(|failure| &failure.kind);
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

/// `Type 'name'`, within what holds it, and where it is if its name does not tell.
fn heading(graph: &Graph, node: NodeId, record: &Record) -> String {
    let containers = std::iter::successors(graph.container(node), |id| graph.container(*id));
    let mut names: Vec<String> = containers.map(|id| graph.node(id).name.to_string()).collect();
    names.reverse();
    names.push(graph.node(node).name.to_string());
    let name = names.join(" / ");
    let path = record.desired.as_ref().and_then(|desired| desired.as_object()?.get("path")?.as_str());
    let tells = |path: &str| name.split_whitespace().any(|word| word == path);
    let place = path.filter(|path| !tells(path)).map(|path| format!(" ({path})")).unwrap_or_default();
    values::plain(&format!("{} '{name}'{place}", graph.declaration(node).type_name.value)).into_owned()
}

/// What became of an instance that others wait for.
fn became(run: &Run, node: NodeId) -> &'static str {
    match run.report().status(node) {
        Some(Status::Failed) => "failed",
        Some(Status::Unknown(_)) => "is unknown",
        Some(Status::Pending) => "is still pending",
        _ => "was skipped",
    }
}

fn told(difference: &Difference) -> String {
    let properties = difference.properties.iter().map(|change| values::change(change, "    "));
    properties.chain([words(&difference.words)]).collect()
}

fn words(said: &[String]) -> String {
    said.iter().flat_map(|text| ["    ".into(), values::plain(text), "\n".into()]).collect()
}

/// What comes into being and what is destroyed besides what the states show, an item a line.
fn effects(effects: &Effects) -> String {
    let lines = |sign: char, color, listing: &Listing| {
        let items = listing.items().iter().map(ToString::to_string);
        let more = Some(listing.more()).filter(|more| *more > 0).map(|more| format!("and {more} more"));
        let line = |text: String| painted(color, &format!("    {sign} {}", values::plain(&text))) + "\n";
        items.chain(more).map(line).collect::<String>()
    };
    lines('+', AnsiColor::Green, &effects.creates) + &lines('-', AnsiColor::Red, &effects.destroys)
}

fn painted(color: AnsiColor, text: &str) -> String {
    let paint = Paint::new().fg_color(Some(color.into()));
    format!("{paint}{text}{paint:#}")
}

fn totals(run: &Run, elapsed: Duration) -> String {
    let totals = run.totals();
    let planned = run.mode() == Mode::PLAN;
    let parts = [
        (totals.changed, if planned { "to change" } else { "changed" }),
        (totals.drifted, "drifted"),
        (totals.unknown, "unknown"),
        (totals.unchanged, if run.mode().operation == Operation::Test { "in desired state" } else { "unchanged" }),
        (totals.failed, "failed"),
        (totals.pending, "pending"),
        (totals.skipped, "skipped"),
    ];
    let always = |word: &str| matches!(word, "changed" | "to change" | "unchanged" | "in desired state" | "failed");
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
