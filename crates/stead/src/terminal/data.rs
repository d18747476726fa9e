//! Data on standard output, in the form that was asked for.

use serde::Serialize;
use serde_json::Value as Json;
use stead_report::{json, pretty, yaml};

use super::forms::{ListFormat, Output, OutputFormat};
use super::is_terminal;
use super::output::{print, write};

/// Prints JSON in a format; to a terminal YAML unless another was asked for, as dsc does.
pub(crate) fn data(value: &Json, format: Option<OutputFormat>) {
    let usual = if is_terminal() { OutputFormat::Yaml } else { OutputFormat::Json };
    let format = format.unwrap_or(usual);
    write(&match format {
        OutputFormat::Json => json(value) + "\n",
        OutputFormat::PrettyJson => pretty(value) + "\n",
        OutputFormat::Yaml => yaml(value),
    });
}

/// Prints one of several values; in YAML they are separated by a line.
pub(crate) fn data_item(value: &Json, format: Option<OutputFormat>, first: bool) {
    let is_yaml = format == Some(OutputFormat::Yaml) || (format.is_none() && is_terminal());
    if is_yaml && !first {
        print("---\n");
    }
    data(value, format);
}

/// Prints JSON in one of the formats of commands for users.
pub(crate) fn data_as(value: &Json, output: Output) {
    match output {
        Output::Yaml => write(&yaml(value)),
        Output::Ndjson => items(value).into_iter().for_each(data_line),
        Output::Text | Output::Json => write(&(pretty(value) + "\n")),
    }
}

/// Prints JSON in one line.
pub(crate) fn data_line(value: &Json) {
    write(&(json(value) + "\n"));
}

/// The items of a list that has a version and nothing else; otherwise the value as it is.
fn items(value: &Json) -> Vec<&Json> {
    let members = value.as_object().into_iter().flatten().filter(|(name, _)| *name != "version");
    match members.map(|(_, member)| member).collect::<Vec<_>>().as_slice() {
        [Json::Array(items)] => items.iter().collect(),
        _ => vec![value],
    }
}

/// Prints one of several values.
pub(crate) fn list_item(value: &impl Serialize, format: ListFormat, first: bool) {
    write(&match format {
        ListFormat::Json | ListFormat::TableNoTruncate => json(value) + "\n",
        ListFormat::PrettyJson => pretty(value) + "\n",
        ListFormat::Yaml if first => yaml(value),
        ListFormat::Yaml => format!("---\n{}", yaml(value)),
    });
}
