//! The two ways out: data on standard output, everything else on standard error.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;
use serde_json::Value as Json;

use crate::args::{ListFormat, Output, OutputFormat};

/// Prints text on standard output. A closed pipe is no failure: whoever reads has read enough.
pub(crate) fn print(text: &str) {
    let mut out = anstream::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Prints a line on standard error.
pub(crate) fn complain(text: &str) {
    let mut out = anstream::stderr().lock();
    let _ = writeln!(out, "{text}");
}

/// Prints text on standard error as it is.
pub(crate) fn complain_text(text: &str) {
    let mut out = anstream::stderr().lock();
    let _ = out.write_all(text.as_bytes());
}

/// Whether people read standard error.
pub(crate) fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Prints JSON in a format; to a terminal YAML unless another was asked for, as dsc does.
pub(crate) fn data(value: &Json, format: Option<OutputFormat>) {
    let usual = if io::stdout().is_terminal() { OutputFormat::Yaml } else { OutputFormat::Json };
    let format = format.unwrap_or(usual);
    print(&match format {
        OutputFormat::Json => value.to_string() + "\n",
        OutputFormat::PrettyJson => pretty(value) + "\n",
        OutputFormat::Yaml => yaml(value),
    });
}

/// Prints one of several values; those in YAML are told apart by a line between them.
pub(crate) fn data_item(value: &Json, format: Option<OutputFormat>, first: bool) {
    let is_yaml = format == Some(OutputFormat::Yaml) || (format.is_none() && io::stdout().is_terminal());
    if is_yaml && !first {
        print("---\n");
    }
    data(value, format);
}

/// Prints JSON in one of the formats of people's commands.
pub(crate) fn data_as(value: &Json, output: Output) {
    match output {
        Output::Yaml => print(&yaml(value)),
        Output::Text | Output::Json => print(&(pretty(value) + "\n")),
    }
}

/// Whether messages on standard error are coloured: for people, unless they asked for none.
pub(crate) fn is_coloured() -> bool {
    is_watched() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Prints one of several values.
pub(crate) fn list_item(value: &Json, format: ListFormat, first: bool) {
    print(&match format {
        ListFormat::Json | ListFormat::TableNoTruncate => value.to_string() + "\n",
        ListFormat::PrettyJson => pretty(value) + "\n",
        ListFormat::Yaml if first => yaml(value),
        ListFormat::Yaml => format!("---\n{}", yaml(value)),
    });
}

/// JSON in many lines.
pub(crate) fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// YAML, ending in a line break.
pub(crate) fn yaml(value: &Json) -> String {
    // Text stays in one line however long it is, so that it can be searched for.
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    let mut text = serde_saphyr::to_string_with_options(value, options).unwrap_or_default();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}
