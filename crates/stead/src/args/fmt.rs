use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Fmt {
    /// YAML or JSON documents, or folders with documents; - formats standard input to standard output
    #[arg(value_name = "FILE|FOLDER", default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,
    /// List files that are not formatted, and exit with 2 if there are any; changes nothing
    #[arg(long)]
    pub(crate) check: bool,
    /// Show what would change, and exit with 2 if anything would; changes nothing
    #[arg(long)]
    pub(crate) diff: bool,
}
