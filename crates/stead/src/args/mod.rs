//! The command line, as it is written: for users (`plan`, `apply`, `check`, ...) and for programs (`config`,
//! `resource`, ..., as DSC v3 has them). What a command gets of it is a request.

mod agent;
pub(crate) mod candidates;
mod command;
mod deferred;
mod document;
mod documents;
mod dsc;
mod elsewhere;
mod files;
mod hints;
mod history;
mod hosts;
mod machine;
mod release;
mod resource;
mod values;
mod words;

use std::ffi::OsString;

use anstream::ColorChoice;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, ValueEnum};
use stead_host::settings;

use crate::request::{Compat, ProcessRequest, ProgressFormat};
pub(crate) use command::Command;
use deferred::Deferred;
use document::Document;
pub(crate) use dsc::Extension;
pub(crate) use files::SlsCommand;
pub(crate) use hints::with_hint;

/// Brings machines into the state their documents describe.
#[derive(Debug, Parser)]
#[command(name = "stead", version, max_term_width = 100, after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// Log level on standard error
    #[arg(short = 'l', long, value_enum, ignore_case = true)]
    trace_level: Option<TraceLevel>,
    /// Log format
    #[arg(short = 't', long, value_enum, ignore_case = true)]
    trace_format: Option<TraceFormat>,
    /// How progress is shown
    #[arg(short = 'p', long, value_enum, ignore_case = true)]
    pub(crate) progress_format: Option<ProgressFormat>,
    /// Ignore settings files
    #[arg(long)]
    ignore_settings_file: bool,
    /// Start a new PowerShell process for each call
    #[arg(long)]
    isolated: bool,
    /// Pass an environment variable to the programs of resources; repeatable, `NAME*` matches several
    #[arg(long = "env", value_name = "NAME", global = true)]
    environment: Vec<String>,
    /// Colours of text: where users read it, always or never [default: auto]
    #[arg(long, value_enum, value_name = "WHEN", global = true)]
    pub(crate) color: Option<Color>,
    #[arg(long, global = true, help = "Do not show long text with a pager [env: STEAD_PAGER, PAGER]")]
    pub(crate) no_pager: bool,
    #[arg(long, value_enum, ignore_case = true, help = "What config prints when something failed [env: STEAD_COMPAT]")]
    pub(crate) compat: Option<Compat>,
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The page that `stead` prints without a command.
pub(crate) const OVERVIEW: &str = "\
stead brings a machine into the state that a document describes

Write a document
  new      Create a document to start from: stead new document main.yaml
  lint     Find mistakes without looking at the machine
  explain  Explain a resource, a property, a key, a function or a code
  graph    Draw the order, or explain what an instance waits for

Run it
  plan     Show what apply would change; changes nothing
  apply    Bring the machine into the state of the document
  check    Report drift: what is not in that state any more
  history  Show what recorded runs did
  undo     Take back what a recorded run changed

Look at a machine
  get      Show a resource as it is: stead get file /etc/hosts
  export   Write a document of what there is
  doctor   Check whether stead finds what it needs
  agent    Keep this machine in the state of a document

stead COMMAND --help has the options of a command, stead --help all commands.
";

pub(crate) const AFTER_HELP: &str = "\
Exit codes of plan, show, check, apply, bundle, lint, fmt, new, graph, explain, sls, history,
undo, get, set, hosts, release, export, facts, invoke, puppetize and serve:
  0    in the desired state; no findings (lint, sls)
  1    something failed
  2    not in the desired state (plan, check, set --what-if, invoke --method test);
       warnings (lint, sls); stale files (puppetize --check); unformatted files (fmt --check)
  3    the document, its parameters, the policy or the command line is not valid, or a saved plan
       no longer holds; the run cannot be recorded (apply --record); there is no such run
       (history, undo), resource (get, set, export, invoke) or fact (facts)
  4    apply gave up: re-runs made no progress or reached their limit
  6    ended early, by Ctrl-C or by the answer No
Other commands have the exit codes of dsc. For all commands:
  10   standard output cannot be written
  141  standard output was closed by its reader";

impl Arguments {
    /// The options for the whole process.
    pub(crate) fn process(&self) -> ProcessRequest {
        ProcessRequest {
            trace_level: self
                .trace_level
                .or_else(|| self.command.log_level())
                .and_then(|level| settings::TraceLevel::parse(level.to_possible_value()?.get_name())),
            trace_format: self.trace_format.map(|format| match format {
                TraceFormat::Default => settings::TraceFormat::Default,
                TraceFormat::Plaintext => settings::TraceFormat::Plaintext,
                TraceFormat::Json => settings::TraceFormat::Json,
                TraceFormat::PassThrough => settings::TraceFormat::PassThrough,
            }),
            ignores_settings: self.ignore_settings_file,
            isolated: self.isolated,
            environment: self.environment.clone(),
            deadline: self.command.deadline(),
            as_dsc: !self.command.is_for_users(),
        }
    }

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
            color: None,
            no_pager: false,
            compat: None,
            command,
        };
        nothing.checked().ok()
    }

    /// Checks what the types of the options do not say.
    pub(crate) fn checked(self) -> Result<Self, clap::Error> {
        if let Command::Apply(apply) = &self.command
            && apply.what_if
            && let Some(number) = apply.document.number()
        {
            let message = format!("unexpected argument '{number}' found\n\n  tip: {}", hints::no_number(number));
            return Err(subcommand("apply").error(ErrorKind::UnknownArgument, message));
        }
        if let Command::Graph(graph) = &self.command
            && graph.lacks_colours()
        {
            let message = "'--plan' and '--run' require '--format svg'";
            return Err(subcommand("graph").error(ErrorKind::ArgumentConflict, message));
        }
        let Some((document, file)) = self.command.document().and_then(Document::ambiguous) else {
            return Ok(self);
        };
        let message = format!(
            "two documents: '{document}' and '{file}'\n\n  tip: -f names the document; for a file with parameters use \
             '--parameters-file {file}'"
        );
        Err(Self::command().error(ErrorKind::ArgumentConflict, message))
    }
}

/// Returns whether a word is the name of a command.
pub(crate) fn is_command(word: &str) -> bool {
    Arguments::command().find_subcommand(word).is_some()
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum)]
enum TraceLevel {
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

/// When text is coloured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal
    Auto,
    /// Also in files and pipes
    Always,
    /// Nowhere
    Never,
}

impl Color {
    /// Has it so from now on.
    pub(crate) fn choose(self) {
        let choice = match self {
            Self::Auto => ColorChoice::Auto,
            Self::Always => ColorChoice::Always,
            Self::Never => ColorChoice::Never,
        };
        choice.write_global();
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum TraceFormat {
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

/// A command with its usage line.
fn subcommand(name: &str) -> clap::Command {
    let mut whole = Arguments::command();
    whole.build();
    whole.find_subcommand(name).cloned().unwrap_or(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command line that is read the short way gives what the declaration of all commands gives.
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
            "stead apply --yes --width 3 --set a=b --set c=d -o json --events a.yaml",
            "stead apply -f a.yaml --parameters-file b.yaml --brief --timings",
            "stead plan --out saved a.yaml --only x,y --deadline 5",
            "stead plan -- -",
            "stead apply a.yaml -w",
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
            "stead apply -w 3",
            "stead apply a.yaml -w 3",
            "stead -l debug apply a.yaml",
            "stead help apply",
            "stead lint a.yaml",
        ] {
            assert!(!read_shortly(line), "{line}");
        }
    }
}
