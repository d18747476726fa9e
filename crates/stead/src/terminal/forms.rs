//! The forms of data that commands print.

/// The form of what a command for users prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Output {
    /// For users.
    Text,
    /// One JSON value.
    Json,
    /// That value as YAML.
    Yaml,
    /// A line of JSON for each event of a run and for each item of a list.
    Ndjson,
}

/// The form of what a command of dsc prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OutputFormat {
    /// One line of JSON.
    Json,
    /// JSON in many lines.
    PrettyJson,
    /// YAML.
    Yaml,
}

/// The form of a listing of dsc.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ListFormat {
    /// One line of JSON each.
    Json,
    /// JSON in many lines.
    PrettyJson,
    /// YAML.
    Yaml,
    /// A table whose columns are as wide as they need to be.
    TableNoTruncate,
}
