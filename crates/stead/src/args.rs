//! The command line, as it is written: for users (`plan`, `apply`, `check`, ...) and for programs (`config`,
//! `resource`, ..., as DSC v3 has them).

mod deferred;
mod fmt;
mod new;

use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::builder::{
    FalseyValueParser, PossibleValue, PossibleValuesParser, StringValueParser, StyledStr, TypedValueParser,
};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Args, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter};

use stead_core::bundle;
use stead_core::identity::DocumentIdentity;
use stead_core::manifest::VersionRequirement;
use stead_core::wait::Wait;
use stead_engine::{PlanError, ReconcileOptions, SavedPlan};

use crate::completion;
use crate::schemas::TYPES;
use deferred::Deferred;
pub(crate) use fmt::Fmt;
pub(crate) use new::{Language, New, NewDocument, NewResource};

/// Brings machines into the state their documents describe.
#[derive(Debug, Parser)]
#[command(name = "stead", version, max_term_width = 100, after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// Log level on standard error
    #[arg(short = 'l', long, value_enum, ignore_case = true)]
    pub(crate) trace_level: Option<TraceLevel>,
    /// Log format
    #[arg(short = 't', long, value_enum, ignore_case = true)]
    pub(crate) trace_format: Option<TraceFormat>,
    /// How progress is shown
    #[arg(short = 'p', long, value_enum, ignore_case = true)]
    pub(crate) progress_format: Option<ProgressFormat>,
    /// Ignore settings files
    #[arg(long)]
    pub(crate) ignore_settings_file: bool,
    /// Start a new PowerShell process for each call
    #[arg(long)]
    pub(crate) isolated: bool,
    /// Pass an environment variable to the programs of resources; repeatable, `NAME*` matches several
    #[arg(long = "env", value_name = "NAME", global = true)]
    pub(crate) environment: Vec<String>,
    #[arg(long, value_enum, ignore_case = true, help = "What config prints when something failed [env: STEAD_COMPAT]")]
    pub(crate) compat: Option<Compat>,
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Command,
}

pub(crate) const AFTER_HELP: &str = "\
Exit codes of plan, show, check, apply, bundle, lint, fmt, new, graph, explain, sls, history, get,
set, export, facts, invoke, puppetize and serve:
  0    in the desired state; no findings (lint, sls)
  1    something failed
  2    not in the desired state (plan, check, set --what-if, invoke --method test);
       warnings (lint, sls); stale files (puppetize --check); unformatted files (fmt --check)
  3    the document, its parameters, the policy or the command line is not valid, or a saved plan
       no longer holds; the run cannot be recorded (apply --record); there is no such run
       (history), resource (get, set, export, invoke) or fact (facts)
  4    apply gave up: re-runs made no progress or reached their limit
  6    ended early, by Ctrl-C or by the answer No
Other commands have the exit codes of dsc. For all commands:
  10   standard output cannot be written
  141  standard output was closed by its reader";

impl Arguments {
    /// Reads a command line that starts with one of the commands that run most often, without declaring all others, which
    /// would be a twentieth of the time of an empty document. `None` is for whatever else is there, mistakes and requests
    /// for help included.
    pub(crate) fn of_frequent_command(words: &[OsString]) -> Option<Self> {
        let (name, rest) = words.get(1..)?.split_first()?;
        let command = match name.to_str()? {
            "plan" => Command::Plan(Deferred::alone(rest)?),
            "apply" => Command::Apply(Deferred::alone(rest)?),
            "check" => Command::Check(Deferred::alone(rest)?),
            _ => return None,
        };
        let nothing = Self {
            trace_level: None,
            trace_format: None,
            progress_format: None,
            ignore_settings_file: false,
            isolated: false,
            environment: Vec::new(),
            compat: None,
            command,
        };
        nothing.checked().ok()
    }

    /// What the types of the options do not say.
    pub(crate) fn checked(self) -> Result<Self, clap::Error> {
        let Some(Document { positional: Some(document), file: Some(file), .. }) = self.command.document() else {
            return Ok(self);
        };
        let (document, file) = (document.display(), file.display());
        let message = format!(
            "two documents: '{document}' and '{file}'\n\n  tip: -f names the document; for a file with parameters use \
             '--parameters-file {file}'"
        );
        Err(Self::command().error(ErrorKind::ArgumentConflict, message))
    }
}

/// Whether a word is the name of a command.
pub(crate) fn is_command(word: &str) -> bool {
    Arguments::command().find_subcommand(word).is_some()
}

/// The same error, with a hint where an option is meant that the command has by another name, or another command has.
pub(crate) fn with_hint(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    if let Some(hint) = error.get(ContextKind::InvalidSubcommand).and_then(known_elsewhere) {
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(hint)]));
        return error;
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return error };
    let command = called(words, option);
    let has = |option: &str| command.get_arguments().any(|each| each.get_long() == Some(option));
    let hint = match option.as_str() {
        "--dry-run" | "--what-if" | "--noop" | "--check" if has("what-if") => "'--what-if' shows what would change",
        "--dry-run" | "--what-if" | "--noop" | "--check" | "--test" => "'stead plan' shows what apply would do",
        "--diff" | "-D" => "plans and results show each difference without it",
        "--tags" | "--limit" | "--target" | "-l" | "-t" if has("only") => {
            "'--only' limits a run to names, types and tags"
        }
        "--skip-tags" if has("skip") => "'--skip' leaves out names, types and tags",
        "--var" | "--extra-vars" | "-e" if has("set") => "'--set NAME=VALUE' supplies a parameter",
        "--var-file" | "--vars-file" | "--values" if has("parameters-file") => {
            "'--parameters-file' names a file with parameters"
        }
        "--auto-approve" | "--assume-yes" if has("yes") => "'--yes' asks nothing",
        "--json" if has("output") => "'-o json' prints JSON",
        "--inventory" | "-i" | "--host" => {
            "a document is for this machine; run stead on each, or deliver it with 'stead agent'"
        }
        "--root" if has("system-root") && has("relative-to") => {
            "'--system-root' names another operating system, '--relative-to' where relative paths start"
        }
        "--root" if has("system-root") => "'--system-root' names another operating system",
        "--root" if has("relative-to") => "'--relative-to' names where relative paths start",
        _ => return error,
    };
    if error.kind() == ErrorKind::UnknownArgument {
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(hint)]));
    }
    error
}

/// What a command of other programs is here.
fn known_elsewhere(word: &ContextValue) -> Option<&'static str> {
    let ContextValue::String(word) = word else { return None };
    match word.as_str() {
        "init" | "create" => Some("'stead new document' writes a document to start from"),
        "validate" => Some("'stead lint' checks a document"),
        "format" => Some("'stead fmt' formats documents"),
        _ => None,
    }
}

/// The command that an option stands behind, with its options.
fn called(words: &[OsString], option: &str) -> clap::Command {
    let mut all = Arguments::command();
    all.build();
    let deeper = |command: clap::Command, word: &OsString| command.find_subcommand(word).cloned().unwrap_or(command);
    let is_option = |word: &&OsString| word.to_str().is_some_and(|word| word.starts_with(option));
    words.iter().skip(1).take_while(|word| !is_option(word)).fold(all, deeper)
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show what apply would change; changes nothing
    Plan(Deferred<Plan>),
    /// Bring the machine into the state of the document
    Apply(Deferred<Apply>),
    /// Show a plan that 'plan --out' saved
    Show(Deferred<Show>),
    /// Report drift: what is not in the state of the document
    Check(Deferred<Document>),
    /// Bundle a document with the files it reads
    Bundle(Deferred<Bundle>),
    /// Print the order and the dependencies of a document
    Graph(Deferred<Graph>),
    /// Check a document without looking at the machine
    Lint(Deferred<Lint>),
    /// Format documents; changes only white space
    Fmt(Deferred<Fmt>),
    /// Create a document or a resource to start from
    New {
        #[command(subcommand)]
        command: Deferred<New>,
    },
    /// Explain a code, a function, or a resource and its properties
    Explain(Deferred<Explain>),
    /// Evaluate an expression
    Eval(Deferred<Eval>),
    /// Convert SLS files of Idem into documents
    Sls {
        #[command(subcommand)]
        command: Deferred<SlsCommand>,
    },
    /// List the runs that 'apply --record' recorded, or show one of them
    History(Deferred<History>),
    /// Work with a configuration document, as dsc does
    Config(Deferred<Config>),
    /// Keep this machine in the state of a document: apply it until it has converged, then report or correct drift
    Agent(Deferred<Agent>),
    /// Call one resource directly, as dsc does
    Resource {
        /// Time limit of one program, in seconds [default: 600, and 60 during discovery]
        #[arg(long, global = true, value_name = "SECONDS", value_parser = seconds)]
        deadline: Option<Duration>,
        #[command(subcommand)]
        command: Deferred<Resource>,
    },
    /// Show one instance of a resource, or all instances, as a document
    Get(Deferred<Get>),
    /// Set properties of one instance of a resource, without a document
    Set(Deferred<Set>),
    /// Export all instances of resource types as a document
    Export(Deferred<Export>),
    /// Show facts about this machine
    Facts(Deferred<Facts>),
    /// Check whether stead finds what it needs on this machine
    Doctor(Deferred<Doctor>),
    /// Call one method of one resource, as Invoke-DscResource does
    Invoke(Deferred<Invoke>),
    /// List the functions of expressions
    Function {
        #[command(subcommand)]
        command: Deferred<Function>,
    },
    /// List extensions
    Extension {
        #[command(subcommand)]
        command: Deferred<Extension>,
    },
    /// Print the JSON Schema of documents or results
    Schema(Deferred<Schema>),
    /// Generate a Puppet module for resources
    Puppetize(Deferred<Puppetize>),
    /// Answer the calls of another program, such as Puppet, over standard input and output
    Serve(Deferred<Serve>),
    /// Help an editor with documents, by the Language Server Protocol on standard input and output
    Lsp,
    /// Serve the Model Context Protocol on standard input and output
    #[command(visible_alias = "mcp")]
    Server,
    /// Print a script that completes commands in a shell
    Completer {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page of a command
    #[command(hide = true)]
    Manual {
        /// The command, such as 'agent apply' [default: the program]
        command: Vec<String>,
    },
}

impl Command {
    fn document(&self) -> Option<&Document> {
        match self {
            Self::Check(document) => Some(document),
            Self::Lint(lint) => Some(&lint.document),
            Self::Plan(plan) => Some(&plan.document),
            Self::Apply(apply) => Some(&apply.document),
            Self::Graph(graph) => Some(&graph.document),
            _ => None,
        }
    }

    /// Whether it is one of the commands that dsc does not have.
    pub(crate) fn is_for_users(&self) -> bool {
        self.document().is_some()
            || matches!(
                self,
                Self::Fmt(_)
                    | Self::New { .. }
                    | Self::Explain(_)
                    | Self::Eval(_)
                    | Self::Show(_)
                    | Self::Bundle(_)
                    | Self::Agent(_)
                    | Self::Sls { .. }
                    | Self::History(_)
                    | Self::Invoke(_)
                    | Self::Get(_)
                    | Self::Set(_)
                    | Self::Export(_)
                    | Self::Facts(_)
                    | Self::Doctor(_)
                    | Self::Puppetize(_)
                    | Self::Serve(_)
                    | Self::Lsp
                    | Self::Manual { .. }
            )
    }

    /// How long one program may take.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        match self {
            Self::Config(config) => config.deadline,
            Self::Resource { deadline, .. } => *deadline,
            Self::Invoke(invoke) => invoke.deadline,
            Self::Get(get) => get.deadline,
            Self::Set(set) => set.deadline,
            Self::Export(export) => export.deadline,
            Self::Serve(serve) => serve.deadline,
            other => other.document()?.deadline,
        }
    }
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option that is given or not")]
pub(crate) struct Document {
    /// The document, YAML or JSON, or a bundle of one; - reads standard input
    #[arg(value_name = "FILE", required_unless_present = "file")]
    positional: Option<PathBuf>,
    /// The same as FILE
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The document itself and what messages call it, of a command that makes one.
    #[arg(skip)]
    pub(crate) text: Option<(String, String)>,
    /// The bundle that this document came in.
    #[arg(skip)]
    pub(crate) bundle: Option<Arc<bundle::Bundle>>,
    /// The identity between runs of a document that is not in a file.
    #[arg(skip)]
    pub(crate) identity: Option<DocumentIdentity>,
    #[command(flatten)]
    pub(crate) supplied: Supplied,
    /// Include only these instances and everything that they depend on
    #[arg(long, value_name = "NAME|TYPE|TAG", value_delimiter = ',', add = ArgValueCandidates::new(completion::parts))]
    pub(crate) only: Vec<String>,
    /// Leave out these instances and everything that depends on them
    #[arg(long, value_name = "NAME|TYPE|TAG", value_delimiter = ',', add = ArgValueCandidates::new(completion::parts))]
    pub(crate) skip: Vec<String>,
    /// Manage the operating system below FOLDER instead of the running one; relative paths start there as well
    #[arg(long, value_name = "FOLDER")]
    pub(crate) system_root: Option<PathBuf>,
    /// How many instances run at once [default: the number of cores]
    #[arg(short, long, value_parser = at_least_one)]
    pub(crate) width: Option<NonZeroUsize>,
    /// Time limit of one program, in seconds [default: 600, and 60 during discovery]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) deadline: Option<Duration>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
    /// Print events as JSON lines on standard error
    #[arg(long)]
    pub(crate) events: bool,
    /// List only what failed: no warnings, outputs or summary
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Also list unchanged instances
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// One line for each instance, without what differs
    #[arg(long)]
    pub(crate) brief: bool,
    /// List how long the slowest instances took
    #[arg(long)]
    pub(crate) timings: bool,
}

const PARAMETERS_FILE: &str = "\
Read parameters from a file; of several files, later ones override earlier ones, and all override environment variables \
STEAD_PARAM_NAME";

/// What a document is given.
#[derive(Debug, Default, Args)]
pub(crate) struct Supplied {
    /// Parameters as JSON or YAML: '{"name": value}'
    #[arg(short, long)]
    pub(crate) parameters: Option<String>,
    #[arg(long, value_name = "FILE", help = PARAMETERS_FILE)]
    pub(crate) parameters_file: Vec<PathBuf>,
    /// Set one parameter, overriding all others; parsed as JSON if valid, otherwise used as a string
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment, add = ArgValueCandidates::new(completion::parameters))]
    pub(crate) set: Vec<(String, String)>,
    /// Resolve relative paths in resources against FOLDER [default: the folder of the document]
    #[arg(long = "relative-to", value_name = "FOLDER")]
    pub(crate) root: Option<PathBuf>,
}

impl Document {
    /// The document that a command line amounts to.
    pub(crate) fn on_command_line(text: String, set: &Set) -> Self {
        Self {
            positional: None,
            file: None,
            text: Some(("<command line>".to_owned(), text)),
            bundle: None,
            identity: None,
            supplied: Supplied::default(),
            only: Vec::new(),
            skip: Vec::new(),
            system_root: None,
            width: None,
            deadline: set.deadline,
            output: set.output,
            events: false,
            quiet: set.quiet,
            verbose: set.verbose,
            brief: false,
            timings: false,
        }
    }

    /// The document of a saved plan, with its parameters and those that are given now.
    pub(crate) fn of_plan(self, plan: &SavedPlan) -> Result<Self, PlanError> {
        let supplied = Supplied {
            parameters: Some(serde_json::json!({ "parameters": plan.parameters }).to_string()),
            parameters_file: Vec::new(),
            set: self.supplied.set,
            root: Some(plan.root.clone()),
        };
        Ok(Self {
            text: Some((plan.name.clone(), plan.document.clone())),
            bundle: plan.bundle()?,
            identity: plan.identity.clone(),
            supplied,
            only: plan.only.clone(),
            skip: plan.skip.clone(),
            system_root: plan.system_root.clone(),
            ..self
        })
    }

    /// Where the document is.
    pub(crate) fn path(&self) -> &Path {
        // The command line lets nothing through without one; `-` would be the least surprising otherwise.
        self.positional.as_deref().or(self.file.as_deref()).unwrap_or(Path::new("-"))
    }
}

/// `NAME=VALUE`
fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

fn at_least_one(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "must be a number of at least 1".to_owned())
}

fn seconds(text: &str) -> Result<Duration, String> {
    at_least_one(text).map(|seconds| Duration::from_secs(seconds.get() as u64))
}

/// Any text. Completions offer the values that are known.
#[derive(Clone)]
struct Known(fn() -> Vec<PossibleValue>);

impl TypedValueParser for Known {
    type Value = String;

    fn parse_ref(&self, command: &clap::Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter()))
    }
}

const TYPE_NAMES: Known = Known(completion::types);

const SUBJECTS: Known = Known(completion::subjects);

#[derive(Debug, Args)]
pub(crate) struct Plan {
    #[command(flatten)]
    pub(crate) document: Document,
    /// Save the plan in a file: 'stead apply FILE' does what it shows, or refuses
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Lint {
    #[command(flatten)]
    pub(crate) document: Document,
    /// Fix mistakes in the file where only one fix is possible
    #[arg(long)]
    pub(crate) fix: bool,
    /// Also report what dsc does not support
    #[arg(long)]
    pub(crate) portable: bool,
    /// Print the findings in a format for other programs
    #[arg(long, value_enum, conflicts_with = "output")]
    pub(crate) format: Option<LintFormat>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum LintFormat {
    /// SARIF 2.1.0, which code hosts and editors read
    Sarif,
}

#[derive(Debug, Args)]
pub(crate) struct Eval {
    /// The expression, with or without brackets [default: one per line of standard input]
    #[arg(value_name = "EXPRESSION")]
    pub(crate) expression: Option<String>,
    /// A document, whose parameters, variables and functions the expression can use
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) supplied: Supplied,
    /// The format of the value
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Bundle {
    /// The document, YAML or JSON; - reads standard input
    #[arg(value_name = "DOCUMENT")]
    pub(crate) document: PathBuf,
    /// Output file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// The folder that relative paths start in [default: the folder of the document]
    #[arg(long = "relative-to", value_name = "FOLDER")]
    pub(crate) root: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The saved plan
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Show one line per instance, without what changes
    #[arg(long)]
    pub(crate) brief: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Apply {
    #[command(flatten)]
    pub(crate) document: Document,
    /// Remove and replace without asking; without a terminal nothing is asked
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) reconcile: Reconcile,
    #[command(flatten)]
    pub(crate) recording: Recording,
}

/// Whether and where a run is recorded.
#[derive(Debug, Args)]
#[command(next_help_heading = "Recording")]
pub(crate) struct Recording {
    /// Record what the run does, for 'stead history'
    #[arg(long, env = "STEAD_RECORD", hide_env_values = true, value_parser = FalseyValueParser::new())]
    pub(crate) record: bool,
    /// How many recorded runs are kept; the oldest are removed
    #[arg(long, value_name = "COUNT", default_value = "100", value_parser = at_least_one)]
    pub(crate) keep_runs: NonZeroUsize,
    /// The directory of recorded runs [default: /var/lib/stead/runs for root, else ~/.local/state/stead/runs]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) runs: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct History {
    /// The directory of recorded runs [default: /var/lib/stead/runs for root, else ~/.local/state/stead/runs]
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(crate) runs: Option<PathBuf>,
    /// Output format
    #[arg(short, long, global = true, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
    /// Number of runs to list
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20)]
    pub(crate) lines: usize,
    #[command(subcommand)]
    pub(crate) command: Option<HistoryCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HistoryCommand {
    /// Show every instance of a run, and every attempt at it
    Show {
        /// The run, or the first characters of its name; 'last' is the newest
        run: String,
    },
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

impl Reconcile {
    /// What is stated of it.
    pub(crate) fn options(&self) -> ReconcileOptions {
        ReconcileOptions {
            // A variable that is empty is one that is not set.
            reconciler: self.reconciler.clone().filter(|name| !name.is_empty()),
            pending: self.pending.clone(),
            max_pending_reruns: self.max_pending_reruns,
            max_unchanged_reruns: self.max_unchanged_reruns,
            wait: self.wait,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Agent {
    /// The state directory of the agent [default: /var/lib/stead for root, else ~/.local/state/stead]
    #[arg(long, global = true, value_name = "FOLDER", env = "STEAD_STATE")]
    pub(crate) state: Option<PathBuf>,
    /// Output format
    #[arg(short, long, global = true, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
    #[command(subcommand)]
    pub(crate) command: AgentCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// Run the agent in this terminal, or as a service
    Run {
        /// The file that tells one boot of the machine from another; for tests
        #[arg(long, value_name = "FILE", hide = true)]
        boot_id: Option<PathBuf>,
        /// How long a job may go on after a request to end, before its end by force is a crash; for tests
        #[arg(long, value_name = "SECONDS", value_parser = seconds, hide = true)]
        stop_grace: Option<Duration>,
    },
    /// Deliver a document; the agent applies it until the machine converges
    Apply {
        /// The document, YAML or JSON; - reads standard input
        #[arg(value_name = "FILE", required_unless_present = "use_existing")]
        file: Option<PathBuf>,
        #[command(flatten)]
        delivery: Delivery,
        /// Apply the staged document now, without a new one
        #[arg(long, conflicts_with_all = ["file", "parameters", "parameters_file", "set"])]
        use_existing: bool,
        #[command(flatten)]
        waiting: Waiting,
    },
    /// Deliver a document that is only staged: 'apply --use-existing' starts it
    Publish {
        /// The document, YAML or JSON; - reads standard input
        file: PathBuf,
        #[command(flatten)]
        delivery: Delivery,
    },
    /// Test the current and the pending document now; changes nothing
    Check,
    /// Read the state of every instance of the current document
    Get,
    /// Show the stages, what is wrong, what the agent does or waits for, and the last result
    ///
    /// Exit codes: 0 converged; 2 not in the desired state; 4 something fails; 6 held, or no document; 1 the agent
    /// cannot be asked.
    Status,
    /// Clear the damage that 'status' reports
    Acknowledge,
    /// Wait until the pending document converges, an attempt fails, or it waits for a restart, a window or an operator
    Wait {
        /// Give up after this many seconds
        #[arg(long, value_name = "SECONDS", value_parser = seconds)]
        timeout: Option<Duration>,
        /// Keep waiting through failed attempts and maintenance windows
        #[arg(long, conflicts_with = "job")]
        until_converged: bool,
        /// Wait only until the current job ends, or the next one
        #[arg(long)]
        job: bool,
    },
    /// Stop the running job; its document is then held until 'apply --use-existing'
    Stop {
        /// End programs of resources at once
        #[arg(long)]
        force: bool,
    },
    /// List the documents that are kept
    History,
    /// Deliver an earlier document again: the previous one, or that of a generation
    Restore {
        /// The generation, from 'history'
        generation: Option<u64>,
        /// Replace a pending document even if the settings refuse it
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        waiting: Waiting,
    },
    /// Compare two documents; by default the current and the pending one
    Diff {
        /// The first generation
        from: Option<u64>,
        /// The second generation
        to: Option<u64>,
    },
    /// Remove the document of a stage
    Remove {
        /// The stage
        #[arg(long, value_enum, ignore_case = true)]
        stage: StageName,
        /// Stop the job that uses it first
        #[arg(long)]
        force: bool,
    },
    /// Show or change the settings
    Settings {
        #[command(subcommand)]
        command: Option<SettingsCommand>,
    },
    /// Show the reports of the last jobs, or one of them
    Report {
        /// Job id, or any unique part of it
        job: Option<String>,
        /// Number of reports to show
        #[arg(short = 'n', long, default_value_t = 10)]
        lines: usize,
        /// Show those behind this cursor, oldest first: the 'next' of an earlier answer, or 0 for all
        #[arg(long, value_name = "CURSOR", conflicts_with = "job")]
        after: Option<u64>,
    },
    /// Show the last lines of the log
    Logs {
        /// Number of lines to show
        #[arg(short = 'n', long, default_value_t = 20)]
        lines: usize,
    },
    /// Install the agent as a service of systemd, and start it
    Install {
        /// Print the unit, and change nothing
        #[arg(long)]
        print: bool,
    },
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Waiting {
    /// Wait until it converges, an attempt fails, or it waits for a restart, a window or an operator
    #[arg(short, long)]
    pub(crate) wait: bool,
    /// Give up waiting after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds, requires = "wait")]
    pub(crate) timeout: Option<Duration>,
    /// Keep waiting through failed attempts and maintenance windows
    #[arg(long, requires = "wait")]
    pub(crate) until_converged: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Delivery {
    #[command(flatten)]
    pub(crate) supplied: Supplied,
    /// Replace a pending document even if the settings refuse it, and end the running job
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SettingsCommand {
    /// Print all settings
    Get,
    /// Change settings; all of them or none
    Set {
        /// A setting and its value
        #[arg(required = true, value_name = "NAME=VALUE", value_parser = assignment)]
        changes: Vec<(String, String)>,
    },
    /// Replace all settings with those in a file; missing ones get their defaults
    Load {
        /// The file, YAML or JSON; - reads standard input
        file: PathBuf,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum StageName {
    /// The document that is worked on
    Pending,
    /// The document the machine last converged to
    Current,
    /// The one before
    Previous,
}

#[derive(Debug, Args)]
pub(crate) struct Graph {
    #[command(flatten)]
    pub(crate) document: Document,
    /// The language that the drawing is printed in, for --output text
    #[arg(long, value_enum, default_value_t = Drawing::Dot)]
    pub(crate) format: Drawing,
    /// Explain instead what an instance waits for and what waits for it, and why
    #[arg(long, value_name = "NAME", conflicts_with = "format", add = ArgValueCandidates::new(completion::names))]
    pub(crate) why: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Get {
    /// The type of the resource; the part after the slash is enough if only one resource has that name
    #[arg(value_name = "TYPE", value_parser = TYPE_NAMES, hide_possible_values = true)]
    pub(crate) resource: String,
    /// Name the instance by the value of its key, or by properties [default: all instances]
    #[arg(value_name = "KEY|NAME=VALUE", add = ArgValueCompleter::new(completion::properties))]
    pub(crate) words: Vec<String>,
    /// Time limit of one program, in seconds [default: 600, and 60 during discovery]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) deadline: Option<Duration>,
    /// Output format; text is YAML
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option that is given or not")]
pub(crate) struct Set {
    /// The type of the resource; the part after the slash is enough if only one resource has that name
    #[arg(value_name = "TYPE", value_parser = TYPE_NAMES, hide_possible_values = true)]
    pub(crate) resource: String,
    /// Name the instance by the value of its key, and set properties. Values are parsed as JSON if valid; for a property of
    /// type string only if they are in double quotes
    #[arg(value_name = "KEY|NAME=VALUE", required = true, add = ArgValueCompleter::new(completion::properties))]
    pub(crate) words: Vec<String>,
    /// Show what would change; changes nothing
    #[arg(short, long)]
    pub(crate) what_if: bool,
    /// Remove and replace without asking; without a terminal nothing is asked
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Time limit of one program, in seconds [default: 600, and 60 during discovery]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) deadline: Option<Duration>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
    /// List only what failed: no warnings, outputs or summary
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Also show an unchanged instance
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Export all instances of these types. NAME=VALUE after a type limits the export to instances that match it
    #[arg(value_name = "TYPE|NAME=VALUE", value_parser = TYPE_NAMES, hide_possible_values = true, required = true)]
    pub(crate) words: Vec<String>,
    /// Time limit of one program, in seconds [default: 600, and 60 during discovery]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) deadline: Option<Duration>,
    /// Output format; text is YAML
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Facts {
    /// One fact, such as os.family [default: all]
    #[arg(value_name = "PATH")]
    pub(crate) path: Option<String>,
    /// Output format; text is YAML
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Invoke {
    /// The type of the resource; the part after the slash is enough if only one resource has that name
    #[arg(value_name = "TYPE", value_parser = TYPE_NAMES, hide_possible_values = true)]
    pub(crate) resource: String,
    /// The method
    #[arg(short, long, value_enum, ignore_case = true)]
    pub(crate) method: Method,
    /// One property; parsed as JSON if valid and not declared as a string, otherwise used as a string
    #[arg(short, long = "property", value_name = "NAME=VALUE", value_parser = assignment)]
    #[arg(add = ArgValueCompleter::new(completion::properties))]
    pub(crate) properties: Vec<(String, String)>,
    /// Properties as JSON or YAML; - reads standard input
    #[arg(short, long, value_name = "JSON")]
    pub(crate) input: Option<String>,
    /// The module of the resource, or its owner: the part before the slash
    #[arg(long, value_name = "NAME[@VERSION]")]
    pub(crate) module: Option<String>,
    #[arg(long, help = "Leave out the property PsDscRunAsCredential, instead of refusing it")]
    pub(crate) ignore_run_as_credential: bool,
    /// Time limit of one program, in seconds [default: 600, and 60 during discovery]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) deadline: Option<Duration>,
    /// Output format [default: yaml on a terminal, else json]
    #[arg(short, long, value_enum, ignore_case = true)]
    pub(crate) output_format: Option<OutputFormat>,
}

#[derive(Debug, Args)]
pub(crate) struct Puppetize {
    /// The resources: their types
    #[arg(value_name = "TYPE", value_parser = TYPE_NAMES, hide_possible_values = true)]
    #[arg(required_unless_present_any = ["adapter", "powershell_module"])]
    pub(crate) types: Vec<String>,
    /// All resources that this adapter lists
    #[arg(long, value_name = "TYPE")]
    pub(crate) adapter: Option<String>,
    #[arg(long, value_name = "NAME", help = "All resources of this PowerShell module")]
    pub(crate) powershell_module: Option<String>,
    /// The name of the module, without its author
    #[arg(long, value_name = "NAME")]
    pub(crate) module: String,
    /// The directory of the module [default: the name of the module]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
    /// The author of the module
    #[arg(long, value_name = "NAME", default_value = "stead")]
    pub(crate) author: String,
    /// The version of the module
    #[arg(long, value_name = "VERSION", default_value = "0.1.0")]
    pub(crate) module_version: semver::Version,
    /// Prefix of type names [default: stead_, with --dsc-compat: dsc_]
    #[arg(long, value_name = "TEXT")]
    pub(crate) prefix: Option<String>,
    #[arg(long, help = "Name attributes as modules of Puppet.Dsc do, so that their manifests need no change")]
    pub(crate) dsc_compat: bool,
    /// Accept secrets as plain strings, too, not only as Sensitive
    #[arg(long)]
    pub(crate) plain_secrets: bool,
    #[command(flatten)]
    pub(crate) metadata: ModuleMetadata,
    /// Write nothing; list files that are out of date
    #[arg(long)]
    pub(crate) check: bool,
}

/// What `metadata.json` of a module says for its readers.
#[derive(Clone, Debug, Args)]
pub(crate) struct ModuleMetadata {
    /// What the module is for, in one line [default: the types of its resources]
    #[arg(long, value_name = "TEXT")]
    pub(crate) summary: Option<String>,
    /// Where the source of the module is
    #[arg(long, value_name = "URL")]
    pub(crate) source: Option<String>,
    /// Where the module is described
    #[arg(long, value_name = "URL")]
    pub(crate) project_page: Option<String>,
    /// Where issues of the module are reported
    #[arg(long, value_name = "URL")]
    pub(crate) issues_url: Option<String>,
    /// A word that the module is found by, beside 'stead'; can be repeated
    #[arg(long, value_name = "WORD")]
    pub(crate) tag: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Read requests from standard input and print answers, as JSON lines, until the input ends
    #[arg(long, required_unless_present = "replay")]
    pub(crate) stdio: bool,
    /// Answer the requests in a file, one after the other
    #[arg(long, value_name = "FILE", conflicts_with = "stdio")]
    pub(crate) replay: Option<PathBuf>,
    /// Apply the sets in the file; by default they only report what would change
    #[arg(long, requires = "replay")]
    pub(crate) apply: bool,
    /// Time limit of a request that states none, in seconds [default: 600]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) deadline: Option<Duration>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Method {
    /// Read the actual state
    Get,
    /// Compare it with the desired one
    Test,
    /// Reach the desired state, without testing before
    Set,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SlsCommand {
    /// Print the document that SLS files become
    Convert(Convert),
}

#[derive(Debug, Args)]
pub(crate) struct Convert {
    /// The SLS files; they become one document
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, ignore_case = true, default_value_t = OutputFormat::Yaml)]
    pub(crate) output_format: OutputFormat,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// A code, a function, a type, its name behind the slash, or TYPE.PROPERTY; without it all codes are listed
    #[arg(value_name = "CODE|FUNCTION|TYPE", value_parser = SUBJECTS, hide_possible_values = true)]
    pub(crate) subject: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Output {
    /// For users
    Text,
    /// One JSON value
    Json,
    /// The same as YAML
    Yaml,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Drawing {
    /// For Graphviz
    Dot,
    /// For Mermaid
    Mermaid,
}

#[derive(Debug, Args)]
pub(crate) struct Config {
    /// Parameters to pass to the configuration as JSON or YAML
    #[arg(short, long)]
    pub(crate) parameters: Option<String>,
    /// Parameters to pass to the configuration as a JSON or YAML file
    #[arg(short = 'f', long)]
    pub(crate) parameters_file: Option<PathBuf>,
    /// Manage the operating system below this folder instead of the running one
    #[arg(short = 'r', long)]
    pub(crate) system_root: Option<PathBuf>,
    /// How many instances run at once [default: the number of cores]
    #[arg(long, global = true, value_parser = at_least_one)]
    pub(crate) width: Option<NonZeroUsize>,
    /// Time limit of one program, in seconds [default: 600, and 60 during discovery]
    #[arg(long, global = true, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) deadline: Option<Duration>,
    #[command(flatten)]
    pub(crate) held: Held,
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

/// How a resource that is a program calls this one for what it holds.
#[derive(Debug, Args)]
pub(crate) struct Held {
    /// Print the results alone
    #[arg(long, hide = true)]
    pub(crate) as_group: bool,
    /// End with an exit code of its own when something is not in the desired state
    #[arg(long, hide = true)]
    pub(crate) as_assert: bool,
    /// The input is an include, which names the document
    #[arg(long, hide = true)]
    pub(crate) as_include: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Retrieve the current configuration
    Get(Input),
    /// Set the current configuration
    Set {
        #[command(flatten)]
        input: Input,
        #[command(flatten)]
        what_if: WhatIf,
    },
    /// Test the current configuration
    Test {
        #[command(flatten)]
        input: Input,
        /// With --as-group: print the results as those of a get
        #[arg(long, hide = true)]
        as_get: bool,
        /// With --as-group: print the states as a document
        #[arg(long, hide = true)]
        as_config: bool,
    },
    /// Export the current configuration
    Export(Input),
    /// Validate the current configuration
    #[command(hide = true)]
    Validate(Input),
    /// Resolve the current configuration
    #[command(hide = true)]
    Resolve(Input),
}

#[derive(Debug, Args)]
#[expect(clippy::struct_field_names, reason = "the field is the option '--input', which dsc has")]
pub(crate) struct Input {
    /// The input document as JSON or YAML
    #[arg(short, long, conflicts_with = "file")]
    pub(crate) input: Option<String>,
    /// The path to a file used as input; '-' reads standard input
    #[arg(short, long)]
    pub(crate) file: Option<PathBuf>,
    /// The output format to use
    #[arg(short, long, value_enum, ignore_case = true)]
    pub(crate) output_format: Option<OutputFormat>,
}

#[derive(Debug, Args)]
pub(crate) struct WhatIf {
    /// Show what would be done, without doing it
    #[arg(short, long, visible_aliases = ["dry-run", "noop"])]
    pub(crate) what_if: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum OutputFormat {
    /// One line of JSON
    Json,
    /// JSON in many lines
    PrettyJson,
    /// YAML
    Yaml,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum GetFormat {
    /// One line of JSON
    Json,
    /// All results as one array
    JsonArray,
    /// The state alone
    PassThrough,
    /// JSON in many lines
    PrettyJson,
    /// YAML
    Yaml,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ListFormat {
    /// One line of JSON each
    Json,
    /// JSON in many lines
    PrettyJson,
    /// YAML
    Yaml,
    /// A table whose columns are as wide as they need to be
    TableNoTruncate,
}

#[derive(Debug, Args)]
pub(crate) struct Target {
    /// The name of the resource to invoke
    #[arg(short, long, value_parser = TYPE_NAMES, hide_possible_values = true)]
    pub(crate) resource: String,
    /// The version requirement for the resource, like '^1.2' or '>1.2.3, <1.3'
    #[arg(short = 'v', long, alias = "version", value_parser = required_version)]
    pub(crate) required_version: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Resource {
    /// List or find resources
    List {
        /// Only resources of this name; * stands for any text
        #[arg(value_parser = TYPE_NAMES, hide_possible_values = true)]
        resource_name: Option<String>,
        /// Adapter filter to limit the resource search
        #[arg(short, long = "adapter")]
        adapter_name: Option<String>,
        /// Description keyword to search for in the resource description
        #[arg(short, long)]
        description: Option<String>,
        /// Tag to search for in the resource tags
        #[arg(short, long)]
        tags: Vec<String>,
        /// The output format to use
        #[arg(short, long, value_enum, ignore_case = true)]
        output_format: Option<ListFormat>,
    },
    /// Invoke the get operation to a resource
    Get {
        /// Get all instances of the resource
        #[arg(short, long)]
        all: bool,
        #[command(flatten)]
        target: Target,
        /// The input document as JSON or YAML
        #[arg(short, long, conflicts_with = "file")]
        input: Option<String>,
        /// The path to a file used as input; '-' reads standard input
        #[arg(short, long)]
        file: Option<PathBuf>,
        /// The output format to use
        #[arg(short, long, value_enum, ignore_case = true)]
        output_format: Option<GetFormat>,
    },
    /// Invoke the set operation to a resource
    Set {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        input: Input,
        #[command(flatten)]
        what_if: WhatIf,
    },
    /// Invoke the test operation to a resource
    Test {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        input: Input,
    },
    /// Invoke the delete operation to a resource
    Delete {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        input: Input,
        #[command(flatten)]
        what_if: WhatIf,
    },
    /// Get the JSON schema for a resource
    Schema {
        #[command(flatten)]
        target: Target,
        /// The output format to use
        #[arg(short, long, value_enum, ignore_case = true)]
        output_format: Option<OutputFormat>,
    },
    /// Show the properties of a resource, as Get-DscResource -Syntax does
    Describe {
        #[command(flatten)]
        target: Target,
    },
    /// Check whether a resource follows the protocol of resources; for authors
    Check(Check),
    /// Retrieve all resource instances
    Export {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        input: Input,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The type of the resource
    #[arg(value_parser = TYPE_NAMES, hide_possible_values = true, required_unless_present = "named")]
    pub(crate) resource: Option<String>,
    /// Type of the resource, as for the other 'resource' commands
    #[arg(short = 'r', long = "resource", id = "named", value_name = "TYPE", conflicts_with = "resource")]
    #[arg(value_parser = TYPE_NAMES, hide_possible_values = true)]
    pub(crate) named: Option<String>,
    /// A desired state that the resource allows, as JSON or YAML; more than one is checked one after the other
    #[arg(short, long)]
    pub(crate) input: Vec<String>,
    /// A file that holds one; '-' reads standard input
    #[arg(short, long)]
    pub(crate) file: Vec<PathBuf>,
    /// Of what an adapter carries out, the resource that the states are of; needed where it lists several
    #[arg(long, value_name = "TYPE")]
    pub(crate) adapted: Option<String>,
    /// What to export, as JSON or YAML, where the resource does not list everything unasked
    #[arg(long)]
    pub(crate) filter: Option<String>,
    /// Call set, too: the machine is changed, and not changed back
    #[arg(long)]
    pub(crate) set: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

/// A requirement of a version, as it is written.
fn required_version(text: &str) -> Result<String, String> {
    VersionRequirement::parse(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// A category that some function has, without regard to case.
pub(crate) fn category(text: &str) -> Result<String, String> {
    let all = || stead_core::expr::functions().iter().flat_map(|function| function.categories);
    let known: std::collections::BTreeSet<&&str> = all().collect();
    if known.iter().any(|each| each.eq_ignore_ascii_case(text)) {
        return Ok(text.to_owned());
    }
    let known = known.into_iter().copied().collect::<Vec<_>>().join(", ");
    Err(format!("Invalid function category '{text}', valid categories are: {known}"))
}

#[derive(Debug, Subcommand)]
pub(crate) enum Function {
    /// List or find functions
    List {
        /// Only functions of this name; * stands for any text
        function_name: Option<String>,
        /// Category to filter functions on; specify multiple times to require all categories
        #[arg(short, long, value_parser = category)]
        category: Vec<String>,
        /// Description to search for in the function description, accepts wildcards
        #[arg(short, long)]
        description: Option<String>,
        /// The output format to use
        #[arg(short, long, value_enum, ignore_case = true)]
        output_format: Option<ListFormat>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Extension {
    /// List or find extensions
    List {
        /// Only extensions of this name; * stands for any text
        extension_name: Option<String>,
        /// The output format to use
        #[arg(short, long, value_enum, ignore_case = true)]
        output_format: Option<ListFormat>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// The type of schema to get
    #[arg(short = 't', long = "type", value_parser = PossibleValuesParser::new(TYPES))]
    pub(crate) type_name: String,
    /// The output format to use
    #[arg(short, long, value_enum, ignore_case = true)]
    pub(crate) output_format: Option<OutputFormat>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum)]
pub(crate) enum TraceLevel {
    /// Errors
    Error,
    /// And warnings
    Warn,
    /// And progress
    Info,
    /// And details for authors of resources
    Debug,
    /// Everything
    Trace,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum TraceFormat {
    /// With colours
    Default,
    /// Without colours
    Plaintext,
    /// One JSON object a line
    Json,
    /// As JSON, as it comes from resources
    #[value(hide = true)]
    PassThrough,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Compat {
    /// The results of what was done
    Results,
    /// Nothing, as dsc does
    Strict,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ProgressFormat {
    /// If interactive, use a progress bar. If not interactive, no progress is shown
    Default,
    /// No progress is shown
    None,
    /// Show progress as JSON
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is read the short way is what the declaration of all commands says.
    #[test]
    fn frequent_commands_are_read_as_all_are() {
        let read_shortly = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let shortly = Arguments::of_frequent_command(&words);
            if let Some(arguments) = &shortly {
                let all = Arguments::try_parse_from(&words).and_then(Arguments::checked);
                assert_eq!(format!("{:?}", all.expect("a command line")), format!("{arguments:?}"), "{line}");
            }
            shortly.is_some()
        };
        for line in [
            "stead apply a.yaml",
            "stead apply --yes -w 3 --set a=b --set c=d -o json --events a.yaml",
            "stead apply -f a.yaml --parameters-file b.yaml --brief --timings",
            "stead plan --out saved a.yaml --only x,y --deadline 5",
            "stead plan -- -",
            "stead check --system-root / -q a.yaml",
        ] {
            assert!(read_shortly(line), "{line}");
        }
        for line in [
            "stead",
            "stead apply",
            "stead apply --help",
            "stead apply --version",
            "stead apply a.yaml -f b.yaml",
            "stead apply a.yaml --unknown",
            "stead -l debug apply a.yaml",
            "stead help apply",
            "stead lint a.yaml",
        ] {
            assert!(!read_shortly(line), "{line}");
        }
    }
}
