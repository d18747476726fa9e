//! Requests to this program, as plain data: the command line is read into it once, and nothing below knows that there
//! is one.

mod agent;
mod document;
mod dsc;
mod hosts;
mod release;
mod resource;

use std::path::PathBuf;
use std::time::Duration;

use stead_host::settings::{TraceFormat, TraceLevel};

pub(crate) use agent::{
    AgentQuestion, AgentRequest, AgentTask, DeliveryRequest, IdentityRequest, JoinRequest, Patience,
};
pub(crate) use document::{
    AboutRun, ApplyRequest, BundleRequest, Detail, DocumentRequest, Drawing, DriftRequest, EvalRequest, GraphRequest,
    GraphView, HistoryRequest, HistoryView, Keep, LintForm, LintRequest, MadeDocument, MetricsRequest, Origin,
    ParameterRequest, PlanRequest, RecordingRequest, ResultsForm, ShowRequest, Supplied, TestRequest, UndoRequest,
    View, Volume, Width,
};
pub(crate) use dsc::{
    Caller, CheckRequest, Compat, ConfigOperation, ConfigRequest, FunctionsRequest, GetFormat, ListRequest,
    ProgressFormat, ResourceRequest, Target, TestForm, category,
};
pub(crate) use hosts::{AT_ONCE, ArtifactsRequest, Elevation, FactsRequest, FleetRequest, HostsRequest};
pub(crate) use release::{Draft, KeysOfMachine, MakeRequest, NewSigners, ReleaseRequest, RosterChange, SecretsRequest};
pub(crate) use resource::{ExportRequest, GetRequest, InvokeRequest, PuppetizeRequest, ServeRequest, SetRequest};

/// The decisions for the whole process.
#[derive(Debug)]
pub(crate) struct ProcessRequest {
    pub(crate) trace_level: Option<TraceLevel>,
    pub(crate) trace_format: Option<TraceFormat>,
    pub(crate) ignores_settings: bool,
    /// True if every call of PowerShell is a process of its own.
    pub(crate) isolated: bool,
    /// Names of variables that the programs of resources get.
    pub(crate) environment: Vec<String>,
    /// How long one program may take.
    pub(crate) deadline: Option<Duration>,
    /// True for the commands that dsc has.
    pub(crate) as_dsc: bool,
}

/// A text that is given to a command.
#[derive(Clone, Debug)]
pub(crate) enum Given {
    /// The text itself.
    Inline(String),
    /// A file, or standard input for `-`.
    File(PathBuf),
}

/// `fmt`
#[derive(Debug)]
pub(crate) struct FmtRequest {
    pub(crate) paths: Vec<PathBuf>,
    /// True if files that are not formatted are listed, and stay.
    pub(crate) lists: bool,
    /// True if what would change is shown, and files stay.
    pub(crate) shows_changes: bool,
}

/// `explain`
#[derive(Debug)]
pub(crate) enum ExplainRequest {
    /// A code, a function, a type or the like; all codes without one.
    Subject(Option<String>),
    /// Nothing: a name was given with something else than `parameter`, or `parameter` without one.
    Unusable { has_name: bool },
    /// A parameter of a document.
    Parameter(Box<ParameterRequest>),
}

/// `new`
#[derive(Debug)]
pub(crate) enum NewRequest {
    Document(NewDocumentRequest),
    Resource(NewResourceRequest),
    Test(NewTestRequest),
}

/// `new test`
#[derive(Debug)]
pub(crate) struct NewTestRequest {
    pub(crate) document: PathBuf,
    /// The file to create, where it is not the usual one; `-` for standard output.
    pub(crate) file: Option<PathBuf>,
    /// Single parameters by name.
    pub(crate) single: Vec<(String, String)>,
}

/// `new document`
#[derive(Debug)]
pub(crate) struct NewDocumentRequest {
    pub(crate) file: PathBuf,
    /// The resources of which it has an instance each.
    pub(crate) from: Vec<String>,
}

/// `new resource`
#[derive(Debug)]
pub(crate) struct NewResourceRequest {
    /// The type of the resource.
    pub(crate) name: String,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) language: Language,
}

/// A shell that completions are printed for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shell {
    Bash,
    Elvish,
    Fish,
    Nushell,
    Powershell,
    Zsh,
}

/// The language of the program of a new resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Language {
    Sh,
    Python,
    Rust,
}
