//! `config`, `resource`, `function`, `extension` and `schema`, with the options of dsc.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use stead_core::call::Execution;
use stead_host::check::Depth;

use super::values::{TYPE_NAMES, at_least_one, required_version, seconds};
use crate::request::{
    self, Caller, CheckRequest, Compat, ConfigOperation, ConfigRequest, FunctionsRequest, GetFormat, Given,
    ListRequest, ProgressFormat, ResourceRequest, TestForm, Width, category,
};
use crate::schemas::TYPES;
use crate::terminal::{ListFormat, Output, OutputFormat};

#[derive(Debug, Args)]
pub(crate) struct Config {
    /// Parameters to pass to the configuration as JSON or YAML
    #[arg(short, long)]
    parameters: Option<String>,
    /// Parameters to pass to the configuration as a JSON or YAML file
    #[arg(short = 'f', long)]
    parameters_file: Option<PathBuf>,
    /// Manage the operating system below this folder instead of the running one
    #[arg(short = 'r', long)]
    system_root: Option<PathBuf>,
    /// How many instances run at once [default: the number of cores]
    #[arg(long, global = true, value_parser = at_least_one)]
    width: Option<NonZeroUsize>,
    /// Time limit of one program, in seconds [default: 600, and 60 during discovery]
    #[arg(long, global = true, value_name = "SECONDS", value_parser = seconds)]
    pub(super) deadline: Option<Duration>,
    #[command(flatten)]
    held: Held,
    #[command(subcommand)]
    command: ConfigCommand,
}

/// How a resource that is a program calls this one for what it holds.
#[derive(Debug, Args)]
pub(crate) struct Held {
    /// Print the results alone
    #[arg(long, hide = true)]
    as_group: bool,
    /// End with an exit code of its own when something is not in the desired state
    #[arg(long, hide = true)]
    as_assert: bool,
    /// The input is an include, which names the document
    #[arg(long, hide = true)]
    as_include: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Retrieve the current configuration
    Get(Input),
    /// Set the current configuration
    Set(Change),
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
pub(crate) struct Source {
    /// The input document as JSON or YAML
    #[arg(short, long, conflicts_with = "file")]
    input: Option<String>,
    /// The path to a file used as input; '-' reads standard input
    #[arg(short, long)]
    file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Input {
    #[command(flatten)]
    from: Source,
    /// The output format to use
    #[arg(short, long, value_enum, ignore_case = true)]
    output_format: Option<OutputFormat>,
}

#[derive(Debug, Args)]
pub(crate) struct Change {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    what_if: WhatIf,
}

#[derive(Debug, Args)]
pub(crate) struct WhatIf {
    /// Show what would be done, without doing it
    #[arg(short, long, visible_aliases = ["dry-run", "noop"])]
    what_if: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Target {
    /// The name of the resource to invoke
    #[arg(short, long, value_parser = TYPE_NAMES, hide_possible_values = true)]
    resource: String,
    /// The version requirement for the resource, like '^1.2' or '>1.2.3, <1.3'
    #[arg(short = 'v', long, alias = "version", value_parser = required_version)]
    required_version: Option<String>,
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
        #[command(flatten)]
        from: Source,
        /// The output format to use
        #[arg(short, long, value_enum, ignore_case = true)]
        output_format: Option<GetFormat>,
    },
    /// Invoke the set operation to a resource
    Set {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        change: Change,
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
        change: Change,
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
    resource: Option<String>,
    /// Type of the resource, as for the other 'resource' commands
    #[arg(short = 'r', long = "resource", id = "named", value_name = "TYPE", conflicts_with = "resource")]
    #[arg(value_parser = TYPE_NAMES, hide_possible_values = true)]
    named: Option<String>,
    /// A desired state that the resource allows, as JSON or YAML; more than one is checked one after the other
    #[arg(short, long)]
    input: Vec<String>,
    /// A file that holds one; '-' reads standard input
    #[arg(short, long)]
    file: Vec<PathBuf>,
    /// Of what an adapter carries out, the resource that the states are of; needed where it lists several
    #[arg(long, value_name = "TYPE")]
    adapted: Option<String>,
    /// What to export, as JSON or YAML, where the resource does not list everything unasked
    #[arg(long)]
    filter: Option<String>,
    /// Call set, too: the machine is changed, and not changed back
    #[arg(long)]
    set: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
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

impl Config {
    /// The request, with what is stated before the name of the command.
    pub(crate) fn request(self, progress: ProgressFormat, compat: Option<Compat>) -> ConfigRequest {
        let (operation, input) = match self.command {
            ConfigCommand::Get(input) => (ConfigOperation::Get, input),
            ConfigCommand::Set(Change { input, what_if }) => (ConfigOperation::Set(what_if.execution()), input),
            ConfigCommand::Test { input, as_config: true, .. } => (ConfigOperation::Test(TestForm::Document), input),
            ConfigCommand::Test { input, as_get: true, .. } => (ConfigOperation::Test(TestForm::Gets), input),
            ConfigCommand::Test { input, .. } => (ConfigOperation::Test(TestForm::Tests), input),
            ConfigCommand::Export(input) => (ConfigOperation::Export, input),
            ConfigCommand::Validate(input) => (ConfigOperation::Validate, input),
            ConfigCommand::Resolve(input) => (ConfigOperation::Resolve, input),
        };
        let Held { as_group, as_assert, as_include } = self.held;
        ConfigRequest {
            operation,
            input: input.from.given(),
            format: input.output_format,
            parameters: self.parameters,
            parameters_file: self.parameters_file,
            system_root: self.system_root,
            width: Width(self.width),
            caller: Caller { is_group: as_group, is_assertion: as_assert, is_include: as_include },
            progress,
            compat,
        }
    }
}

impl Source {
    fn given(self) -> Option<Given> {
        self.input.map(Given::Inline).or(self.file.map(Given::File))
    }
}

impl WhatIf {
    fn execution(&self) -> Execution {
        if self.what_if { Execution::WhatIf } else { Execution::Actual }
    }
}

impl From<Target> for request::Target {
    fn from(Target { resource, required_version }: Target) -> Self {
        Self { resource, required_version }
    }
}

impl From<Resource> for ResourceRequest {
    fn from(resource: Resource) -> Self {
        match resource {
            Resource::List { resource_name: name, adapter_name: adapter, description, tags, output_format: format } => {
                Self::List(ListRequest { name, adapter, description, tags, format })
            }
            Resource::Get { all, target, from, output_format: format } => {
                Self::Get { target: target.into(), input: from.given(), all, format }
            }
            Resource::Set { target, change: Change { input, what_if } } => {
                let (target, execution, format) = (target.into(), what_if.execution(), input.output_format);
                Self::Set { target, input: input.from.given(), execution, format }
            }
            Resource::Test { target, input } => {
                let (target, format) = (target.into(), input.output_format);
                Self::Test { target, input: input.from.given(), format }
            }
            Resource::Delete { target, change: Change { input, what_if } } => {
                let (target, execution, format) = (target.into(), what_if.execution(), input.output_format);
                Self::Delete { target, input: input.from.given(), execution, format }
            }
            Resource::Export { target, input } => {
                let (target, format) = (target.into(), input.output_format);
                Self::Export { target, input: input.from.given(), format }
            }
            Resource::Schema { target, output_format: format } => Self::Schema { target: target.into(), format },
            Resource::Describe { target } => Self::Describe(target.into()),
            Resource::Check(check) => Self::Check(check.into()),
        }
    }
}

impl From<Check> for CheckRequest {
    fn from(check: Check) -> Self {
        let states = check.input.into_iter().map(Given::Inline).chain(check.file.into_iter().map(Given::File));
        Self {
            // The command line lets nothing through without one of them.
            resource: check.resource.or(check.named).unwrap_or_default(),
            states: states.collect(),
            adapted: check.adapted,
            filter: check.filter.map(Given::Inline),
            depth: if check.set { Depth::Set } else { Depth::Look },
            output: check.output,
        }
    }
}

impl From<Function> for FunctionsRequest {
    fn from(function: Function) -> Self {
        let Function::List { function_name: name, category: categories, description, output_format: format } = function;
        Self { name, categories, description, format }
    }
}
