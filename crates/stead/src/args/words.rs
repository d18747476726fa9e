//! The words of the command line for values that are one of a few, and what help says of each.

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::request::{Compat, Drawing, GetFormat, Language, ProgressFormat, Shell};
use crate::terminal::{ListFormat, Output, OutputFormat};

macro_rules! words {
    ($($type:ident { $($word:literal $variant:ident $help:literal)+ })+) => {$(
        impl ValueEnum for $type {
            fn value_variants<'a>() -> &'a [Self] {
                &[$(Self::$variant),+]
            }

            fn to_possible_value(&self) -> Option<PossibleValue> {
                Some(match self {
                    $(Self::$variant => PossibleValue::new($word).help($help)),+
                })
            }
        }
    )+};
}

words! {
    Output {
        "text" Text "For users"
        "json" Json "One JSON value"
        "yaml" Yaml "The same as YAML"
        "ndjson" Ndjson "A line of JSON for each event of a run, and for each item of a list"
    }
    OutputFormat {
        "json" Json "One line of JSON"
        "pretty-json" PrettyJson "JSON in many lines"
        "yaml" Yaml "YAML"
    }
    GetFormat {
        "json" Json "One line of JSON"
        "json-array" JsonArray "All results as one array"
        "pass-through" PassThrough "The state alone"
        "pretty-json" PrettyJson "JSON in many lines"
        "yaml" Yaml "YAML"
    }
    ListFormat {
        "json" Json "One line of JSON each"
        "pretty-json" PrettyJson "JSON in many lines"
        "yaml" Yaml "YAML"
        "table-no-truncate" TableNoTruncate "A table whose columns are as wide as they need to be"
    }
    Drawing {
        "dot" Dot "For Graphviz"
        "mermaid" Mermaid "For Mermaid"
        "svg" Svg "For browsers: drawn by stead itself"
    }
    Language {
        "sh" Sh "A shell script with get and set"
        "python" Python "A Python script that also has test, delete and what-if"
        "rust" Rust "A program to build with cargo"
    }
    Shell {
        "bash" Bash "Bash"
        "elvish" Elvish "Elvish"
        "fish" Fish "Fish"
        "nushell" Nushell "Nushell"
        "powershell" Powershell "PowerShell"
        "zsh" Zsh "Zsh"
    }
    Compat {
        "results" Results "The results of what was done"
        "strict" Strict "Nothing, as dsc does"
    }
    ProgressFormat {
        "default" Default "If interactive, use a progress bar. If not interactive, no progress is shown"
        "none" None "No progress is shown"
        "json" Json "Show progress as JSON"
    }
}
