//! Requests with a document.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stead_core::bundle::Bundle;
use stead_core::identity::DocumentIdentity;
use stead_engine::{Parts, PlanError, Prepared, ReconcileOptions, SavedPlan, Session};

use super::hosts::FleetRequest;
use crate::terminal::Output;

/// A document, and which part of which system it is for.
#[derive(Debug)]
pub(crate) struct DocumentRequest {
    pub(crate) origin: Origin,
    pub(crate) supplied: Supplied,
    pub(crate) parts: Parts,
    /// The folder of the operating system that is managed instead of the running one.
    pub(crate) system_root: Option<PathBuf>,
    pub(crate) width: Width,
}

impl DocumentRequest {
    /// All of a document in a file, for this machine.
    pub(crate) fn of_file(path: PathBuf) -> Self {
        Self {
            origin: Origin::Path(path),
            supplied: Supplied::default(),
            parts: Parts::default(),
            system_root: None,
            width: Width::default(),
        }
    }

    /// A document that a command made of its arguments.
    pub(crate) fn on_command_line(text: String) -> Self {
        let name = "<command line>".to_owned();
        let path = PathBuf::from("-");
        Self {
            origin: Origin::Made(MadeDocument { path, name, text, bundle: None, identity: None }),
            supplied: Supplied::default(),
            parts: Parts::default(),
            system_root: None,
            width: Width::default(),
        }
    }

    /// The document of a saved plan, with its parameters and those that are given now.
    pub(crate) fn of_plan(self, plan: &SavedPlan) -> Result<Self, PlanError> {
        let made = MadeDocument {
            path: self.path().to_owned(),
            name: plan.name.clone(),
            text: plan.document.clone(),
            bundle: plan.bundle()?,
            identity: plan.identity.clone(),
        };
        let supplied = Supplied {
            parameters: Some(serde_json::json!({ "parameters": plan.parameters }).to_string()),
            files: Vec::new(),
            single: self.supplied.single,
            root: Some(plan.root.clone()),
        };
        Ok(Self {
            origin: Origin::Made(made),
            supplied,
            parts: Parts { only: plan.only.clone(), skip: plan.skip.clone() },
            system_root: plan.system_root.clone(),
            width: self.width,
        })
    }

    /// Where the document is, or what it was made of; `-` for standard input.
    pub(crate) fn path(&self) -> &Path {
        match &self.origin {
            Origin::Path(path) => path,
            Origin::Made(made) => &made.path,
        }
    }
}

/// Where a document comes from.
#[derive(Debug)]
pub(crate) enum Origin {
    /// A file, or standard input for `-`.
    Path(PathBuf),
    /// It is not read.
    Made(MadeDocument),
}

impl Origin {
    /// The text of a file, as it would be if this were in it.
    pub(crate) fn of_text(path: &Path, text: String) -> Self {
        let name = path.display().to_string();
        Self::Made(MadeDocument { path: path.to_owned(), name, text, bundle: None, identity: None })
    }
}

/// A document that was not read from where it says.
#[derive(Debug)]
pub(crate) struct MadeDocument {
    /// The path whose folder relative paths start in.
    pub(crate) path: PathBuf,
    /// The name of the text in messages.
    pub(crate) name: String,
    pub(crate) text: String,
    /// The bundle that it came in.
    pub(crate) bundle: Option<Arc<Bundle>>,
    /// Its identity between runs.
    pub(crate) identity: Option<DocumentIdentity>,
}

/// Values for the parameters of a document, and where relative paths start.
#[derive(Debug, Default)]
pub(crate) struct Supplied {
    /// JSON or YAML.
    pub(crate) parameters: Option<String>,
    /// Files, of which later ones win.
    pub(crate) files: Vec<PathBuf>,
    /// Single parameters by name, which win over all others.
    pub(crate) single: Vec<(String, String)>,
    /// The folder that relative paths start in, where it is not that of the document.
    pub(crate) root: Option<PathBuf>,
}

/// How many instances are worked on at once, if that is stated.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Width(pub(crate) Option<NonZeroUsize>);

impl Width {
    /// The number for a document. For a single instance, the number of processors is not looked up.
    pub(crate) fn of(self, session: &Session, prepared: &Prepared) -> NonZeroUsize {
        let is_single = prepared.graph.iter().nth(1).is_none();
        let usual = || if is_single { NonZeroUsize::MIN } else { session.host().width() };
        self.0.unwrap_or_else(usual)
    }
}

/// How a run is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub(crate) output: Output,
    pub(crate) volume: Volume,
    pub(crate) detail: Detail,
    /// True if events are printed as lines of JSON on standard error.
    pub(crate) events: bool,
    /// True if the slowest instances are listed.
    pub(crate) timings: bool,
}

impl View {
    /// Of a run of which nothing is printed but what is made of it.
    pub(crate) fn for_programs() -> Self {
        Self { output: Output::Text, volume: Volume::Quiet, detail: Detail::Brief, events: false, timings: false }
    }
}

/// Which instances are printed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Volume {
    /// Those that failed, and no warnings.
    Quiet,
    /// And those that changed.
    Usual,
    /// And those that did not.
    Verbose,
}

/// How much is printed of one instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Detail {
    /// A line.
    Brief,
    /// And what differs.
    Full,
}

/// The files that are written about a run.
#[derive(Debug, Default)]
pub(crate) struct AboutRun {
    /// A page for a browser.
    pub(crate) report: Option<PathBuf>,
    /// Figures for Prometheus.
    pub(crate) metrics: Option<MetricsRequest>,
}

/// Figures for Prometheus.
#[derive(Debug)]
pub(crate) struct MetricsRequest {
    /// Where they are written.
    pub(crate) path: PathBuf,
    /// True if every user may read them.
    pub(crate) is_for_all: bool,
}

/// `plan`
#[derive(Debug)]
pub(crate) struct PlanRequest {
    pub(crate) document: DocumentRequest,
    pub(crate) view: View,
    /// The files that are written about it.
    pub(crate) about: AboutRun,
    /// Where the plan is kept, if it is.
    pub(crate) out: Option<Keep>,
    /// The machines that it is for, where it is not this one.
    pub(crate) fleet: Option<FleetRequest>,
}

/// Where a plan is kept.
#[derive(Debug)]
pub(crate) enum Keep {
    /// In a file.
    File(PathBuf),
    /// It is printed behind the report, for whoever keeps it.
    Printed,
}

/// `check`
#[derive(Debug)]
pub(crate) struct DriftRequest {
    pub(crate) document: DocumentRequest,
    pub(crate) view: View,
    /// The files that are written about it.
    pub(crate) about: AboutRun,
    /// The machines that it is for, where it is not this one.
    pub(crate) fleet: Option<FleetRequest>,
}

/// `apply`
#[derive(Debug)]
pub(crate) struct ApplyRequest {
    pub(crate) document: DocumentRequest,
    pub(crate) view: View,
    /// The files that are written about it.
    pub(crate) about: AboutRun,
    /// The plan that is done, where it is not in a file.
    pub(crate) plan: Option<Box<SavedPlan>>,
    /// True if users are asked before something is removed.
    pub(crate) asks: bool,
    pub(crate) reconcile: ReconcileOptions,
    /// Where the run is recorded, if it is.
    pub(crate) recording: Option<RecordingRequest>,
    /// The machines that it is for, where it is not this one.
    pub(crate) fleet: Option<FleetRequest>,
}

/// The recording of a run.
#[derive(Debug)]
pub(crate) struct RecordingRequest {
    /// How many recorded runs are kept.
    pub(crate) keep: NonZeroUsize,
    /// The directory of recorded runs, where it is not the usual one.
    pub(crate) runs: Option<PathBuf>,
    /// True if it was asked for: then nothing is done where the run cannot be recorded, and one that changes nothing is recorded as well.
    pub(crate) stated: bool,
    /// True if the run goes on without whoever asked for it.
    pub(crate) detaches: bool,
}

/// `undo`
#[derive(Debug)]
pub(crate) struct UndoRequest {
    /// The run: its name or the first characters of that, or the last one that changed something.
    pub(crate) run: Option<String>,
    /// The root whose last run is meant, where it is not the running system.
    pub(crate) system_root: Option<PathBuf>,
    /// True if it is shown alone, and nothing is changed.
    pub(crate) shows: bool,
    /// True if users are asked, and what cannot be taken back needs their consent.
    pub(crate) asks: bool,
    /// True if what was changed since is taken back as well.
    pub(crate) force: bool,
    pub(crate) view: View,
    /// Where the undo is recorded, and where runs are.
    pub(crate) recording: Option<RecordingRequest>,
    pub(crate) runs: Option<PathBuf>,
}

/// `graph`
#[derive(Debug)]
pub(crate) struct GraphRequest {
    pub(crate) document: DocumentRequest,
    pub(crate) shows: GraphView,
    pub(crate) output: Output,
}

/// The part of a graph that is shown.
#[derive(Debug)]
pub(crate) enum GraphView {
    /// All of it.
    Drawing(Drawing),
    /// All of it, in the colours of what would be done.
    Planned,
    /// All of it, in the colours of a recorded run: its name, and the directory where it is not the usual one.
    Recorded(String, Option<PathBuf>),
    /// Why the instances of this name wait, and what waits for them.
    Why(String),
}

/// The language of a drawing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Drawing {
    /// For Graphviz.
    Dot,
    /// For Mermaid.
    Mermaid,
    /// For browsers and editors, drawn here.
    Svg,
}

/// `lint`
#[derive(Debug)]
pub(crate) struct LintRequest {
    pub(crate) document: DocumentRequest,
    /// True if mistakes are fixed where only one fix is possible.
    pub(crate) fix: bool,
    /// True if what dsc does not support is reported as well.
    pub(crate) portable: bool,
    pub(crate) form: LintForm,
    pub(crate) volume: Volume,
}

/// The form of the findings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LintForm {
    Output(Output),
    /// SARIF 2.1.0, which code hosts and editors read.
    Sarif,
    /// Annotations of GitHub Actions, a line each.
    Github,
}

impl LintForm {
    /// The form of what keeps a document from being checked.
    pub(crate) fn output(self) -> Output {
        match self {
            Self::Output(output) => output,
            Self::Sarif | Self::Github => Output::Text,
        }
    }
}

/// `show`
#[derive(Debug)]
pub(crate) struct ShowRequest {
    /// The saved plan.
    pub(crate) file: PathBuf,
    pub(crate) detail: Detail,
    pub(crate) output: Output,
}

/// `explain parameter`
#[derive(Debug)]
pub(crate) struct ParameterRequest {
    pub(crate) document: DocumentRequest,
    pub(crate) name: String,
}

/// `test`
#[derive(Debug)]
pub(crate) struct TestRequest {
    /// Files of tests, and folders with such.
    pub(crate) paths: Vec<PathBuf>,
    /// A part that the names of tests must have.
    pub(crate) filter: Option<String>,
    /// How many tests run at once.
    pub(crate) width: Width,
    pub(crate) form: ResultsForm,
}

/// The form of the results of tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ResultsForm {
    Output(Output),
    /// The Test Anything Protocol.
    Tap,
    Junit,
}

/// `bundle`
#[derive(Debug)]
pub(crate) struct BundleRequest {
    pub(crate) document: PathBuf,
    pub(crate) out: PathBuf,
    /// The folder that relative paths start in, where it is not that of the document.
    pub(crate) root: Option<PathBuf>,
    pub(crate) output: Output,
}

/// `eval`
#[derive(Debug)]
pub(crate) struct EvalRequest {
    /// One expression, or those of standard input.
    pub(crate) expression: Option<String>,
    /// The document whose parameters, variables and functions can be used.
    pub(crate) file: Option<PathBuf>,
    pub(crate) supplied: Supplied,
    pub(crate) output: Output,
}

/// `history`
#[derive(Debug)]
pub(crate) struct HistoryRequest {
    /// The directory of recorded runs, where it is not the usual one.
    pub(crate) runs: Option<PathBuf>,
    pub(crate) output: Output,
    pub(crate) shows: HistoryView,
    /// The machines that it is about, where it is not this one.
    pub(crate) fleet: Option<FleetRequest>,
}

/// Which recorded runs are shown.
#[derive(Debug)]
pub(crate) enum HistoryView {
    /// The newest ones, so many, a line each.
    Newest(usize),
    /// The run of a name, or of the first characters of one, in so much detail.
    Run(String, Detail),
    /// A page about such a run.
    Page(String),
    /// The differences between two such runs.
    Difference(String, String),
}
