//! Requests of the commands that dsc has as well.

use std::path::PathBuf;

use stead_core::call::Execution;
use stead_host::check::Depth;

use super::{Given, Width};
use crate::terminal::{ListFormat, Output, OutputFormat};

/// `config`
#[derive(Debug)]
pub(crate) struct ConfigRequest {
    pub(crate) operation: ConfigOperation,
    /// The document.
    pub(crate) input: Option<Given>,
    pub(crate) format: Option<OutputFormat>,
    /// Parameters, as JSON or YAML.
    pub(crate) parameters: Option<String>,
    pub(crate) parameters_file: Option<PathBuf>,
    /// The folder of the operating system that is managed instead of the running one.
    pub(crate) system_root: Option<PathBuf>,
    pub(crate) width: Width,
    pub(crate) caller: Caller,
    pub(crate) progress: ProgressFormat,
    /// The form of what is printed when something failed, if that is stated.
    pub(crate) compat: Option<Compat>,
}

/// An operation on a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ConfigOperation {
    Get,
    Set(Execution),
    Test(TestForm),
    Export,
    Validate,
    Resolve,
}

/// The form of the result of a test that was asked for by a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TestForm {
    Tests,
    /// That of a get.
    Gets,
    /// The states as a document.
    Document,
}

/// A program that calls this one for what it holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    /// True if it wants the results alone.
    pub(crate) is_group: bool,
    /// True if it wants an exit code of its own when something is not in the desired state.
    pub(crate) is_assertion: bool,
    /// True if the input names the document.
    pub(crate) is_include: bool,
}

/// `resource`
#[derive(Debug)]
pub(crate) enum ResourceRequest {
    List(ListRequest),
    Get { target: Target, input: Option<Given>, all: bool, format: Option<GetFormat> },
    Set { target: Target, input: Option<Given>, execution: Execution, format: Option<OutputFormat> },
    Test { target: Target, input: Option<Given>, format: Option<OutputFormat> },
    Delete { target: Target, input: Option<Given>, execution: Execution, format: Option<OutputFormat> },
    Export { target: Target, input: Option<Given>, format: Option<OutputFormat> },
    Schema { target: Target, format: Option<OutputFormat> },
    Describe(Target),
    Check(CheckRequest),
}

/// A resource by its type, and the versions of it that are meant.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) resource: String,
    pub(crate) required_version: Option<String>,
}

/// `resource list`
#[derive(Debug)]
pub(crate) struct ListRequest {
    /// The name, in which `*` stands for any text.
    pub(crate) name: Option<String>,
    pub(crate) adapter: Option<String>,
    pub(crate) description: Option<String>,
    /// Any of these.
    pub(crate) tags: Vec<String>,
    pub(crate) format: Option<ListFormat>,
}

/// `resource check`
#[derive(Debug)]
pub(crate) struct CheckRequest {
    pub(crate) resource: String,
    /// The desired states that are checked.
    pub(crate) states: Vec<Given>,
    /// Of an adapter, the resource that the states are of.
    pub(crate) adapted: Option<String>,
    /// The filter for what is exported, as JSON or YAML.
    pub(crate) filter: Option<Given>,
    pub(crate) depth: Depth,
    pub(crate) output: Output,
}

/// `function list`
#[derive(Debug)]
pub(crate) struct FunctionsRequest {
    /// The name, in which `*` stands for any text.
    pub(crate) name: Option<String>,
    /// All of these.
    pub(crate) categories: Vec<String>,
    pub(crate) description: Option<String>,
    pub(crate) format: Option<ListFormat>,
}

/// The form of what `resource get` prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GetFormat {
    /// One line of JSON.
    Json,
    /// All results as one array.
    JsonArray,
    /// The state alone.
    PassThrough,
    /// JSON in many lines.
    PrettyJson,
    /// YAML.
    Yaml,
}

/// The form in which progress is reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ProgressFormat {
    Default,
    None,
    /// Lines of JSON.
    Json,
}

/// The form of what `config` prints when something failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Compat {
    /// The results of what was done.
    Results,
    /// Nothing, as dsc.
    Strict,
}

impl Compat {
    /// Reads one of the two words, without regard to case.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        let all = [("results", Self::Results), ("strict", Self::Strict)];
        all.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, compat)| compat)
    }
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
