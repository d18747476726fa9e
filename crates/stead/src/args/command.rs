//! The commands.

use std::ffi::OsString;
use std::time::Duration;

use clap::Subcommand;

use super::TraceLevel;
use super::agent::Agent;
use super::deferred::Deferred;
use super::document::{Apply, Check, Document, Graph, Lint, Plan};
use super::dsc::{Config, Extension, Function, Resource, Schema};
use super::files::{Bundle, Eval, Fmt, New, Show, SlsCommand, Test};
use super::history::{History, Undo};
use super::hosts::{Artifacts, Hosts, Remote};
use super::machine::{Doctor, Explain, Facts, Puppetize};
use super::release::Release;
use super::resource::{Export, Get, Invoke, Serve, Set};
use super::values::seconds;
use crate::request::Shell;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show what apply would change; changes nothing
    Plan(Deferred<Plan>),
    /// Bring the machine into the state of the document
    Apply(Deferred<Apply>),
    /// Show a plan that 'plan --out' saved
    Show(Deferred<Show>),
    /// Report drift: what is not in the state of the document
    Check(Deferred<Check>),
    /// Bundle a document with the files it reads
    Bundle(Deferred<Bundle>),
    /// Print the order and the dependencies of a document
    Graph(Deferred<Graph>),
    /// Check a document without looking at the machine
    Lint(Deferred<Lint>),
    /// Test documents, each test in a root of its own
    Test(Deferred<Test>),
    /// Format documents; changes only white space
    Fmt(Deferred<Fmt>),
    /// Create a document or a resource to start from
    New {
        #[command(subcommand)]
        command: Deferred<New>,
    },
    /// Explain a resource, a property, a document key, a function or a code, or the value of a parameter
    Explain(Deferred<Explain>),
    /// Evaluate an expression
    Eval(Deferred<Eval>),
    /// Convert SLS files of Idem into documents
    Sls {
        #[command(subcommand)]
        command: Deferred<SlsCommand>,
    },
    /// List the runs that 'apply' recorded, or show one of them
    History(Deferred<History>),
    /// Make and check what operators sign and machines follow
    Release {
        #[command(subcommand)]
        command: Deferred<Release>,
    },
    /// Take back what a recorded run changed
    Undo(Deferred<Undo>),
    /// List the machines of an inventory
    Hosts(Deferred<Hosts>),
    /// Look after the machines of a controller: starts the program 'stead-fleet'
    Fleet {
        /// Its command and options; 'stead fleet help' lists them
        #[arg(value_name = "WORD", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// List the programs that are sent to machines without stead
    Artifacts(Deferred<Artifacts>),
    /// Keep this machine in the state of a document: apply it until it has converged, then report or correct drift
    Agent(Deferred<Agent>),
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
    /// Generate a Puppet module for resources
    Puppetize(Deferred<Puppetize>),
    /// Answer the calls of another program, such as Puppet, over standard input and output
    Serve(Deferred<Serve>),
    /// Help an editor with documents, by the Language Server Protocol on standard input and output
    Lsp,
    /// Print a script that completes commands in a shell
    Completer {
        /// The shell
        shell: Shell,
    },
    /// Work with a configuration document, as dsc does
    Config(Deferred<Config>),
    /// Call one resource directly, as dsc does
    Resource {
        /// Time limit of one program, in seconds [default: 600, and 60 during discovery]
        #[arg(long, global = true, value_name = "SECONDS", value_parser = seconds)]
        deadline: Option<Duration>,
        #[command(subcommand)]
        command: Deferred<Resource>,
    },
    /// List the functions of expressions, as dsc does
    Function {
        #[command(subcommand)]
        command: Deferred<Function>,
    },
    /// List extensions, as dsc does
    Extension {
        #[command(subcommand)]
        command: Deferred<Extension>,
    },
    /// Print the JSON Schema of documents or results, as dsc does
    Schema(Deferred<Schema>),
    /// Serve the Model Context Protocol on standard input and output, as dsc does
    #[command(visible_alias = "mcp")]
    Server,
    /// Carry out what another stead asks for over standard input, for 'plan', 'apply' and 'check' of many machines
    #[command(hide = true)]
    Remote(Deferred<Remote>),
    /// Print the manual page of a command
    #[command(hide = true)]
    Manual {
        /// The command, such as 'agent apply' [default: the program]
        command: Vec<String>,
    },
}

impl Command {
    /// The document that a command is about, where it is stated as for most of them.
    pub(super) fn document(&self) -> Option<&Document> {
        match self {
            Self::Check(check) => Some(&check.document),
            Self::Lint(lint) => Some(&lint.document),
            Self::Plan(plan) => Some(&plan.document),
            Self::Apply(apply) => Some(&apply.document),
            Self::Graph(graph) => Some(&graph.document),
            _ => None,
        }
    }

    /// Returns whether it prints text to be read at length, and asks nothing meanwhile.
    pub(crate) fn is_paged(&self) -> bool {
        match self {
            Self::Explain(_) | Self::History(_) | Self::Show(_) => true,
            Self::Agent(agent) => agent.is_paged(),
            _ => false,
        }
    }

    /// Returns whether it is one of the commands that dsc does not have.
    pub(crate) fn is_for_users(&self) -> bool {
        !matches!(
            self,
            Self::Config(_)
                | Self::Resource { .. }
                | Self::Function { .. }
                | Self::Extension { .. }
                | Self::Schema(_)
                | Self::Server
                | Self::Completer { .. }
        )
    }

    /// The log level that `-vv` and `-vvv` stand for.
    pub(super) fn log_level(&self) -> Option<TraceLevel> {
        let count = match self {
            Self::Set(set) => set.verbose,
            other => other.document()?.verbose,
        };
        match count {
            0 | 1 => None,
            2 => Some(TraceLevel::Info),
            _ => Some(TraceLevel::Debug),
        }
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
            Self::Remote(remote) => remote.deadline,
            other => other.document()?.deadline,
        }
    }
}
