//! `get`, `set`, `export`, `invoke` and `serve`: resources without a document.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use stead_core::call::Execution;
use stead_engine::ResourceSpecification;

use super::candidates;
use super::document::volume;
use super::hosts::Fleet;
use super::values::{assignment, seconds};
use crate::request::{Detail, ExportRequest, GetRequest, Given, InvokeRequest, ServeRequest, SetRequest, View};
use crate::terminal::{Output, OutputFormat};

#[derive(Debug, Args)]
pub(crate) struct Get {
    /// The type of the resource; the part after the slash is enough if only one resource has that name
    #[arg(value_name = "TYPE", add = ArgValueCompleter::new(candidates::types_like))]
    resource: String,
    /// Name the instance by the value of its key, or by properties [default: all instances]
    #[arg(value_name = "KEY|NAME=VALUE", add = ArgValueCompleter::new(candidates::properties))]
    words: Vec<String>,
    /// Time limit of one program, in seconds [default: 600, and 60 during discovery]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) deadline: Option<Duration>,
    /// Output format; text is YAML
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    fleet: Fleet,
}

#[derive(Debug, Args)]
pub(crate) struct Set {
    /// The type of the resource; the part after the slash is enough if only one resource has that name
    #[arg(value_name = "TYPE", add = ArgValueCompleter::new(candidates::types_like))]
    resource: String,
    /// Name the instance by the value of its key, and set properties. Values are parsed as JSON if valid; for a property of
    /// type string only if they are in double quotes
    #[arg(value_name = "KEY|NAME=VALUE", required = true, add = ArgValueCompleter::new(candidates::properties))]
    words: Vec<String>,
    /// Show what would change; changes nothing
    #[arg(short, long, visible_aliases = ["dry-run", "noop"])]
    what_if: bool,
    /// Remove and replace without asking; without a terminal nothing is asked
    #[arg(short, long)]
    yes: bool,
    /// Time limit of one program, in seconds [default: 600, and 60 during discovery]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) deadline: Option<Duration>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// List only what failed: no warnings, outputs or summary
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Also show an unchanged instance; -vv logs what is called as well, -vvv details
    #[arg(short, long, action = ArgAction::Count)]
    pub(super) verbose: u8,
    #[command(flatten)]
    fleet: Fleet,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Export all instances of these types. NAME=VALUE after a type limits the export to instances that match it
    #[arg(value_name = "TYPE|NAME=VALUE", add = ArgValueCompleter::new(candidates::types_like), required = true)]
    words: Vec<String>,
    /// Time limit of one program, in seconds [default: 600, and 60 during discovery]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) deadline: Option<Duration>,
    /// Output format; text is YAML
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    fleet: Fleet,
}

#[derive(Debug, Args)]
pub(crate) struct Invoke {
    /// The type of the resource; the part after the slash is enough if only one resource has that name
    #[arg(value_name = "TYPE", add = ArgValueCompleter::new(candidates::types_like))]
    resource: String,
    /// The method
    #[arg(short, long, value_enum, ignore_case = true)]
    method: Method,
    /// One property; parsed as JSON if valid and not declared as a string, otherwise used as a string
    #[arg(short, long = "property", value_name = "NAME=VALUE", value_parser = assignment)]
    #[arg(add = ArgValueCompleter::new(candidates::properties))]
    properties: Vec<(String, String)>,
    /// Properties as JSON or YAML; - reads standard input
    #[arg(short, long, value_name = "JSON")]
    input: Option<String>,
    /// The module of the resource, or its owner: the part before the slash
    #[arg(long, value_name = "NAME[@VERSION]")]
    module: Option<String>,
    #[arg(long, help = "Leave out the property PsDscRunAsCredential, instead of refusing it")]
    ignore_run_as_credential: bool,
    /// Time limit of one program, in seconds [default: 600, and 60 during discovery]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) deadline: Option<Duration>,
    /// Output format [default: yaml on a terminal, else json]
    #[arg(short, long, value_enum, ignore_case = true)]
    output_format: Option<OutputFormat>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Method {
    /// Read the actual state
    Get,
    /// Compare it with the desired one
    Test,
    /// Reach the desired state, without testing before
    Set,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Read requests from standard input and print answers, as JSON lines, until the input ends
    #[arg(long, required_unless_present = "replay")]
    stdio: bool,
    /// Answer the requests in a file, one after the other
    #[arg(long, value_name = "FILE", conflicts_with = "stdio")]
    replay: Option<PathBuf>,
    /// Apply the sets in the file; by default they only report what would change
    #[arg(long, requires = "replay")]
    apply: bool,
    /// Time limit of a request that states none, in seconds [default: 600]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) deadline: Option<Duration>,
}

impl From<Get> for GetRequest {
    fn from(Get { resource, words, deadline, output, fleet }: Get) -> Self {
        Self { resource, words, output, fleet: fleet.request(deadline) }
    }
}

impl From<Set> for SetRequest {
    fn from(set: Set) -> Self {
        let volume = volume(set.quiet, set.verbose);
        Self {
            resource: set.resource,
            words: set.words,
            execution: if set.what_if { Execution::WhatIf } else { Execution::Actual },
            asks: !set.yes,
            view: View { output: set.output, volume, detail: Detail::Full, events: false, timings: false },
            fleet: set.fleet.request(set.deadline),
        }
    }
}

impl From<Export> for ExportRequest {
    fn from(Export { words, deadline, output, fleet }: Export) -> Self {
        Self { words, output, fleet: fleet.request(deadline) }
    }
}

impl From<Invoke> for InvokeRequest {
    fn from(invoke: Invoke) -> Self {
        let (module, version) = match invoke.module.as_deref().map(|module| module.split_once('@')) {
            Some(Some((module, version))) => (Some(module.to_owned()), Some(version.to_owned())),
            _ => (invoke.module, None),
        };
        let given = |text: String| if text == "-" { Given::File(text.into()) } else { Given::Inline(text) };
        Self {
            resource: ResourceSpecification {
                name: invoke.resource,
                module,
                version,
                ..ResourceSpecification::default()
            },
            method: match invoke.method {
                Method::Get => stead_engine::Method::Get,
                Method::Test => stead_engine::Method::Test,
                Method::Set => stead_engine::Method::Set,
            },
            properties: invoke.properties,
            input: invoke.input.map(given),
            ignores_run_as_credential: invoke.ignore_run_as_credential,
            format: invoke.output_format,
        }
    }
}

impl From<Serve> for ServeRequest {
    fn from(serve: Serve) -> Self {
        let sets = if serve.apply { Execution::Actual } else { Execution::WhatIf };
        serve.replay.map_or(Self::Converse, |file| Self::Replay { file, sets })
    }
}
