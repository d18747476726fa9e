use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum New {
    /// Write a document to start from
    Document(NewDocument),
    /// Write a resource to start from: a folder with a manifest and a program
    Resource(NewResource),
}

#[derive(Debug, Args)]
pub(crate) struct NewDocument {
    /// The file; - prints the document
    #[arg(value_name = "FILE", default_value = "main.stead.yaml")]
    pub(crate) file: PathBuf,
    /// Resources, separated by commas, such as file,line: one instance of each, with comments on its properties
    #[arg(long, value_name = "TYPE", value_delimiter = ',')]
    pub(crate) from: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct NewResource {
    /// The type, such as Example.Notes/Note
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The folder [default: the part of the name behind the slash]
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
    /// The language of the program
    #[arg(long, value_enum, default_value_t = Language::Sh)]
    pub(crate) language: Language,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Language {
    /// A shell script that gets and sets
    Sh,
    /// A script that also tests, removes and predicts
    Python,
    /// A program to be compiled by cargo
    Rust,
}
