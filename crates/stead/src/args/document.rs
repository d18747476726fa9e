//! `plan`, `apply`, `check`, `graph` and `lint`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};
use clap_complete::engine::ArgValueCandidates;
use stead_core::wait::Wait;
use stead_engine::{Parts, ReconcileOptions};

use super::candidates;
use super::history::Recording;
use super::hosts::Fleet;
use super::values::{assignment, at_least_one, seconds};
use crate::request::{
    self, AboutRun, ApplyRequest, Detail, DocumentRequest, Drawing, DriftRequest, FleetRequest, GraphRequest,
    GraphView, Keep, LintForm, LintRequest, MetricsRequest, Origin, PlanRequest, View, Volume, Width,
};
use crate::terminal::Output;

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option that is given or not")]
pub(crate) struct Document {
    /// The document, YAML or JSON, or a bundle of one; - reads standard input
    #[arg(value_name = "FILE", required_unless_present = "file")]
    positional: Option<PathBuf>,
    /// The same as FILE
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    supplied: Supplied,
    /// Include only these instances and everything that they depend on
    #[arg(long, value_name = "NAME|TYPE|TAG", value_delimiter = ',', add = ArgValueCandidates::new(candidates::parts))]
    only: Vec<String>,
    /// Leave out these instances and everything that depends on them
    #[arg(long, value_name = "NAME|TYPE|TAG", value_delimiter = ',', add = ArgValueCandidates::new(candidates::parts))]
    skip: Vec<String>,
    /// Manage the operating system below FOLDER instead of the running one; relative paths start there as well
    #[arg(long, value_name = "FOLDER")]
    system_root: Option<PathBuf>,
    /// How many instances run at once [default: the number of cores]
    #[arg(long, value_parser = at_least_one)]
    width: Option<NonZeroUsize>,
    /// Time limit of one program, in seconds [default: 600, and 60 during discovery]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) deadline: Option<Duration>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Print events as JSON lines on standard error
    #[arg(long)]
    events: bool,
    /// List only what failed: no warnings, outputs or summary
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Also list unchanged instances; -vv logs what is called as well, -vvv details
    #[arg(short, long, action = ArgAction::Count)]
    pub(super) verbose: u8,
    /// One line for each instance, without what differs
    #[arg(long)]
    brief: bool,
    /// List how long the slowest instances took
    #[arg(long)]
    timings: bool,
}

const PARAMETERS_FILE: &str = "\
Read parameters from a file; of several files, later ones override earlier ones, and all override environment variables \
STEAD_PARAM_NAME";

/// The options for a document.
#[derive(Debug, Default, Args)]
pub(super) struct Supplied {
    /// Parameters as JSON or YAML: '{"name": value}'
    #[arg(short, long)]
    parameters: Option<String>,
    #[arg(long, value_name = "FILE", help = PARAMETERS_FILE)]
    parameters_file: Vec<PathBuf>,
    /// Set one parameter, overriding all others; parsed as JSON if valid, otherwise used as a string
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment, add = ArgValueCandidates::new(candidates::parameters))]
    set: Vec<(String, String)>,
    /// Resolve relative paths in resources against FOLDER [default: the folder of the document]
    #[arg(long = "relative-to", value_name = "FOLDER")]
    root: Option<PathBuf>,
}

impl Document {
    /// Two documents, as messages call them: one was named by its place, the other by its option.
    pub(super) fn ambiguous(&self) -> Option<(String, String)> {
        Some((self.positional.as_ref()?.display().to_string(), self.file.as_ref()?.display().to_string()))
    }

    /// Its place on the command line, if that is a number: a document is hardly called so.
    pub(super) fn number(&self) -> Option<&str> {
        let word = self.positional.as_ref()?.to_str()?;
        (!word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())).then_some(word)
    }

    /// The document, and how the run is shown.
    pub(crate) fn request(self) -> (DocumentRequest, View) {
        let view = View {
            output: self.output,
            volume: volume(self.quiet, self.verbose),
            detail: if self.brief { Detail::Brief } else { Detail::Full },
            events: self.events,
            timings: self.timings,
        };
        // The command line lets nothing through without one; `-` would be the least surprising otherwise.
        let path = self.positional.or(self.file).unwrap_or_else(|| PathBuf::from("-"));
        let document = DocumentRequest {
            origin: Origin::Path(path),
            supplied: self.supplied.into(),
            parts: Parts { only: self.only, skip: self.skip },
            system_root: self.system_root,
            width: Width(self.width),
        };
        (document, view)
    }
}

/// The volume that two options ask for of which one at most is given.
pub(super) fn volume(quiet: bool, verbose: u8) -> Volume {
    match (quiet, verbose) {
        (true, _) => Volume::Quiet,
        (false, 0) => Volume::Usual,
        (false, _) => Volume::Verbose,
    }
}

impl From<Supplied> for request::Supplied {
    fn from(given: Supplied) -> Self {
        Self { parameters: given.parameters, files: given.parameters_file, single: given.set, root: given.root }
    }
}

/// The page about what was done.
#[derive(Debug, Args)]
pub(super) struct FilesAbout {
    /// Also write a report to FILE that any browser shows: what failed and changed, what waited for what, what took how long
    #[arg(long, value_name = "FILE", conflicts_with_all = ["host", "hosts"])]
    report: Option<PathBuf>,
    /// Also write metrics to FILE for the textfile collector of the node exporter of Prometheus: time, duration, instances by status
    #[arg(long, value_name = "FILE", conflicts_with_all = ["host", "hosts"])]
    metrics: Option<PathBuf>,
    /// Let all users read the file of --metrics
    #[arg(long, requires = "metrics")]
    metrics_for_all: bool,
}

impl From<FilesAbout> for AboutRun {
    fn from(given: FilesAbout) -> Self {
        let is_for_all = given.metrics_for_all;
        Self { report: given.report, metrics: given.metrics.map(|path| MetricsRequest { path, is_for_all }) }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Plan {
    #[command(flatten)]
    pub(super) document: Document,
    #[command(flatten)]
    report: FilesAbout,
    /// Save the plan in a file: 'stead apply FILE' does what it shows, or refuses
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    fleet: Fleet,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(super) document: Document,
    #[command(flatten)]
    report: FilesAbout,
    #[command(flatten)]
    fleet: Fleet,
}

#[derive(Debug, Args)]
pub(crate) struct Apply {
    #[command(flatten)]
    pub(super) document: Document,
    #[command(flatten)]
    report: FilesAbout,
    /// Show what would change, as 'plan' does; changes nothing
    #[arg(short, long, visible_aliases = ["dry-run", "noop"])]
    pub(super) what_if: bool,
    /// Remove and replace without asking; without a terminal nothing is asked
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    reconcile: Reconcile,
    #[command(flatten)]
    recording: Recording,
    #[command(flatten)]
    fleet: Fleet,
    /// Return once the runs on these machines have begun; they go on by themselves, and 'stead history' shows how they ended
    #[arg(long, help_heading = "Many machines")]
    detach: bool,
}

/// How what is pending is run again.
#[derive(Debug, Args)]
#[command(next_help_heading = "Reconciliation")]
pub(crate) struct Reconcile {
    /// Run pending instances again each after its own wait (continuous), all together (basic), never (none), or as the
    /// program stead-reconciler-NAME says [default: continuous]
    #[arg(
        short = 'R',
        long = "reconcile",
        short_alias = 'r',
        alias = "reconciler",
        value_name = "NAME",
        env = "STEAD_RECONCILE",
        hide_env_values = true
    )]
    reconciler: Option<String>,
    /// The rule that says what is pending: default, or the program stead-pending-NAME [default: default]
    #[arg(short = 'P', long, value_name = "NAME")]
    pending: Option<String>,
    /// Maximum number of reruns [default: 600]
    #[arg(long, value_name = "COUNT")]
    max_pending_reruns: Option<u32>,
    /// Give up after this many reruns without progress [default: 3]
    #[arg(long, value_name = "COUNT")]
    max_unchanged_reruns: Option<u32>,
    /// Time between reruns: SECONDS, random:MIN,MAX or exponential:WAIT,MULTIPLIER[,CAP] [default: what the resource
    /// states, else 3]
    #[arg(long, value_name = "WAIT")]
    wait: Option<Wait>,
}

#[derive(Debug, Args)]
pub(crate) struct Graph {
    #[command(flatten)]
    pub(super) document: Document,
    /// The language that the drawing is printed in, for --output text
    #[arg(long, value_enum, default_value_t = Drawing::Dot)]
    format: Drawing,
    /// Explain instead what an instance waits for and what waits for it, and why
    #[arg(long, value_name = "NAME", conflicts_with = "format", add = ArgValueCandidates::new(candidates::names))]
    why: Option<String>,
    /// Colour the drawing, an SVG, by what apply would do
    #[arg(long, conflicts_with_all = ["why", "run"])]
    plan: bool,
    /// Colour the drawing, an SVG, by a recorded run: its name, the first characters of it, or 'last'
    #[arg(long, value_name = "RUN", conflicts_with = "why")]
    run: Option<String>,
    /// The directory of recorded runs [default: /var/lib/stead/runs for root, else ~/.local/state/stead/runs]
    #[arg(long, value_name = "FOLDER", requires = "run")]
    runs: Option<PathBuf>,
}

impl Graph {
    /// Returns whether colours are asked for where there are none.
    pub(super) fn lacks_colours(&self) -> bool {
        let has_colours = self.format == Drawing::Svg && self.document.output == Output::Text;
        (self.plan || self.run.is_some()) && !has_colours
    }
}

#[derive(Debug, Args)]
pub(crate) struct Lint {
    #[command(flatten)]
    pub(super) document: Document,
    /// Fix mistakes in the file where only one fix is possible
    #[arg(long)]
    fix: bool,
    /// Also report what dsc does not support
    #[arg(long)]
    portable: bool,
    /// Print the findings in a format for other programs
    #[arg(long, value_enum, conflicts_with = "output")]
    format: Option<LintFormat>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum LintFormat {
    /// SARIF 2.1.0, which code hosts and editors read
    Sarif,
    /// Annotations of GitHub Actions, a line each
    Github,
}

impl From<Plan> for PlanRequest {
    fn from(plan: Plan) -> Self {
        let fleet = plan.fleet.request(plan.document.deadline);
        let (document, view) = plan.document.request();
        Self { document, view, about: plan.report.into(), out: plan.out.map(Keep::File), fleet }
    }
}

impl Apply {
    /// The plan that is shown in place of a run, if one is asked for.
    pub(crate) fn or_plan(self) -> Result<Self, Box<PlanRequest>> {
        if !self.what_if {
            return Ok(self);
        }
        let plan = Plan { document: self.document, report: self.report, out: None, fleet: self.fleet };
        Err(Box::new(plan.into()))
    }
}

impl From<Check> for DriftRequest {
    fn from(check: Check) -> Self {
        let fleet = check.fleet.request(check.document.deadline);
        let (document, view) = check.document.request();
        Self { document, view, about: check.report.into(), fleet }
    }
}

impl From<Apply> for ApplyRequest {
    fn from(apply: Apply) -> Self {
        let deadline = apply.document.deadline;
        let fleet = apply.fleet.request(deadline).or_else(|| apply.detach.then(|| FleetRequest::of_plan(deadline)));
        let (document, view) = apply.document.request();
        let (asks, reconcile) = (!apply.yes, apply.reconcile.into());
        let recording = apply.recording.request(apply.detach);
        Self { document, view, about: apply.report.into(), plan: None, asks, reconcile, recording, fleet }
    }
}

impl From<Reconcile> for ReconcileOptions {
    fn from(stated: Reconcile) -> Self {
        Self {
            // A variable that is empty is one that is not set.
            reconciler: stated.reconciler.filter(|name| !name.is_empty()),
            pending: stated.pending,
            max_pending_reruns: stated.max_pending_reruns,
            max_unchanged_reruns: stated.max_unchanged_reruns,
            wait: stated.wait,
        }
    }
}

impl From<Graph> for GraphRequest {
    fn from(graph: Graph) -> Self {
        let (document, view) = graph.document.request();
        let shows = match (graph.why, graph.run) {
            (Some(name), _) => GraphView::Why(name),
            (None, Some(run)) => GraphView::Recorded(run, graph.runs),
            (None, None) if graph.plan => GraphView::Planned,
            (None, None) => GraphView::Drawing(graph.format),
        };
        Self { document, shows, output: view.output }
    }
}

impl From<Lint> for LintRequest {
    fn from(lint: Lint) -> Self {
        let (document, view) = lint.document.request();
        let form = match lint.format {
            Some(LintFormat::Sarif) => LintForm::Sarif,
            Some(LintFormat::Github) => LintForm::Github,
            None => LintForm::Output(view.output),
        };
        Self { document, fix: lint.fix, portable: lint.portable, form, volume: view.volume }
    }
}
