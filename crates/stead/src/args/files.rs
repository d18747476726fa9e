//! `show`, `bundle`, `eval`, `fmt`, `new`, `test` and `sls`: files of stead and of others.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::document::Supplied;
use super::values::{assignment, at_least_one};
use crate::request::{
    BundleRequest, Detail, EvalRequest, FmtRequest, Language, NewDocumentRequest, NewRequest, NewResourceRequest,
    NewTestRequest, ResultsForm, ShowRequest, TestRequest, Width,
};
use crate::terminal::{Output, OutputFormat};

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The saved plan
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Show one line per instance, without what changes
    #[arg(long)]
    brief: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Bundle {
    /// The document, YAML or JSON; - reads standard input
    #[arg(value_name = "DOCUMENT")]
    document: PathBuf,
    /// Output file
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    /// The folder that relative paths start in [default: the folder of the document]
    #[arg(long = "relative-to", value_name = "FOLDER")]
    root: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Eval {
    /// The expression, with or without brackets [default: one per line of standard input]
    #[arg(value_name = "EXPRESSION")]
    expression: Option<String>,
    /// A document, whose parameters, variables and functions the expression can use
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    supplied: Supplied,
    /// The format of the value
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Fmt {
    /// YAML or JSON documents, or folders with documents; - formats standard input to standard output
    #[arg(value_name = "FILE|FOLDER", default_value = ".")]
    paths: Vec<PathBuf>,
    /// List files that are not formatted, and exit with 2 if there are any; changes nothing
    #[arg(long)]
    check: bool,
    /// Show what would change, and exit with 2 if anything would; changes nothing
    #[arg(long)]
    diff: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Test {
    /// Files of tests, or folders with such
    #[arg(value_name = "FILE|FOLDER", default_value = ".")]
    paths: Vec<PathBuf>,
    /// Only tests whose name contains TEXT
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// How many tests run at once [default: the number of cores]
    #[arg(long, value_parser = at_least_one)]
    width: Option<NonZeroUsize>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Print the results in a format for pipelines
    #[arg(long, value_enum, conflicts_with = "output")]
    format: Option<TestFormat>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum TestFormat {
    /// The Test Anything Protocol, version 14
    Tap,
    /// `JUnit` XML
    Junit,
}

impl From<Test> for TestRequest {
    fn from(Test { paths, filter, width, output, format }: Test) -> Self {
        let form = match format {
            Some(TestFormat::Tap) => ResultsForm::Tap,
            Some(TestFormat::Junit) => ResultsForm::Junit,
            None => ResultsForm::Output(output),
        };
        Self { paths, filter, width: Width(width), form }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum New {
    /// Create a document to start from
    Document(NewDocument),
    /// Create a resource to start from: a folder with a manifest and a program
    Resource(NewResource),
    /// Create a test of a document, by what a run does in a root of its own
    Test(NewTest),
}

#[derive(Debug, Args)]
pub(crate) struct NewTest {
    /// The document
    #[arg(value_name = "DOCUMENT")]
    document: PathBuf,
    /// The file to create; - prints the test [default: the document's name with .test in front of its extension]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Set one parameter for the test; parsed as JSON if valid, otherwise used as a string; a secret is not written into the test
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
}

#[derive(Debug, Args)]
pub(crate) struct NewDocument {
    /// The file to create; - prints the document
    #[arg(value_name = "FILE", default_value = "main.stead.yaml")]
    file: PathBuf,
    /// Add an instance of each of these resources, such as file,line, with comments on its properties
    #[arg(long, value_name = "TYPE", value_delimiter = ',')]
    from: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct NewResource {
    /// The type of the resource, such as Example.Notes/Note
    #[arg(value_name = "NAME")]
    name: String,
    /// The folder to create [default: the part of NAME after the slash, in lower case]
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// The language of the program
    #[arg(long, value_enum, default_value_t = Language::Sh)]
    language: Language,
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

impl From<Show> for ShowRequest {
    fn from(Show { file, brief, output }: Show) -> Self {
        Self { file, detail: if brief { Detail::Brief } else { Detail::Full }, output }
    }
}

impl From<Bundle> for BundleRequest {
    fn from(Bundle { document, out, root, output }: Bundle) -> Self {
        Self { document, out, root, output }
    }
}

impl From<Eval> for EvalRequest {
    fn from(Eval { expression, file, supplied, output }: Eval) -> Self {
        Self { expression, file, supplied: supplied.into(), output }
    }
}

impl From<Fmt> for FmtRequest {
    fn from(Fmt { paths, check, diff }: Fmt) -> Self {
        Self { paths, lists: check, shows_changes: diff }
    }
}

impl From<New> for NewRequest {
    fn from(new: New) -> Self {
        match new {
            New::Document(NewDocument { file, from }) => Self::Document(NewDocumentRequest { file, from }),
            New::Resource(NewResource { name, folder, language }) => {
                Self::Resource(NewResourceRequest { name, folder, language })
            }
            New::Test(NewTest { document, file, set }) => Self::Test(NewTestRequest { document, file, single: set }),
        }
    }
}
