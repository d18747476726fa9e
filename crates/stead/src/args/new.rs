use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum New {
    /// Create a document to start from
    Document(NewDocument),
    /// Create a resource to start from: a folder with a manifest and a program
    Resource(NewResource),
}

#[derive(Debug, Args)]
pub(crate) struct NewDocument {
    /// The file to create; - prints the document
    #[arg(value_name = "FILE", default_value = "main.stead.yaml")]
    pub(crate) file: PathBuf,
    /// Add an instance of each of these resources, such as file,line, with comments on its properties
    #[arg(long, value_name = "TYPE", value_delimiter = ',')]
    pub(crate) from: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct NewResource {
    /// The type of the resource, such as Example.Notes/Note
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The folder to create [default: the part of NAME after the slash, in lower case]
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
    /// The language of the program
    #[arg(long, value_enum, default_value_t = Language::Sh)]
    pub(crate) language: Language,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Language {
    /// A shell script with get and set
    Sh,
    /// A Python script that also has test, delete and what-if
    Python,
    /// A program to build with cargo
    Rust,
}
