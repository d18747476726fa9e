//! The test resources that most cases use, in one program: `dsctest RESOURCE [OPERATION] [OPTIONS]`.
//!
//! The input is the argument of `--input`, or standard input where `-` is given. Each line of output is one JSON value.
//! The manifests are in `corpus/compat/resources`; beside them are small resources in other languages.

mod adapter;
mod exports;
mod schemas;
mod states;

use std::env;
use std::io::{self, Read, Write};
use std::process::ExitCode;

use serde_json::{Map, Value as Json};

/// What a resource prints, one value a line.
type Lines = Vec<Json>;

/// A resource: all of its operations in one function.
type Resource = fn(&Args) -> Lines;

/// The resources by their name on the command line.
const RESOURCES: &[(&str, Resource)] = &[
    ("adapter", adapter::single),
    ("delete", states::delete),
    ("document", adapter::document),
    ("echo", states::echo),
    ("exist", states::exist),
    ("export", exports::export),
    ("exporter", exports::exporter),
    ("export-schema", exports::users),
    ("get", states::get),
    ("group", adapter::group),
    ("in-desired-state", states::in_desired_state),
    ("metadata", states::metadata),
    ("operation", states::operation),
    ("refresh-env", states::refresh_env),
    ("schema", schemas::schema),
    ("schema-default", states::schema_default),
    ("security-context", states::security_context),
    ("size", states::size),
    ("state-and-diff", states::state_and_diff),
    ("whatif", states::what_if),
    ("whatif-delete", states::what_if_delete),
    ("whatif-diff", states::what_if_diff),
];

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            drop(writeln!(io::stderr(), "{error}"));
            ExitCode::from(2)
        }
    }
}

fn run() -> io::Result<ExitCode> {
    let args = Args::read()?;
    let name = args.at(0).unwrap_or_default();
    if name == "exit-code" {
        return exit_code(&args);
    }
    let Some((_, resource)) = RESOURCES.iter().find(|(known, _)| *known == name) else {
        return Err(io::Error::other(format!("there is no test resource '{name}'")));
    };
    let mut out = io::stdout().lock();
    for line in resource(&args) {
        writeln!(out, "{line}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Ends with the code that it is given.
fn exit_code(args: &Args) -> io::Result<ExitCode> {
    let code = args.input.get("exitCode").and_then(Json::as_u64).and_then(|code| u8::try_from(code).ok()).unwrap_or(0);
    if code != 0 {
        writeln!(io::stderr(), "Exiting with code: {code}")?;
    }
    writeln!(io::stdout(), "{}", Json::Object(args.input.clone()))?;
    Ok(ExitCode::from(code))
}

/// The command line, and the input that came with it.
struct Args {
    words: Vec<String>,
    input: Map<String, Json>,
}

impl Args {
    fn read() -> io::Result<Self> {
        let mut args = Self { words: env::args().skip(1).collect(), input: Map::new() };
        let text = match args.option("--input") {
            Some(text) => text.to_owned(),
            None if args.has("-") => io::read_to_string(io::stdin().lock().take(1 << 24))?,
            None => String::new(),
        };
        if !text.trim().is_empty() {
            args.input = serde_json::from_str(&text)?;
        }
        Ok(args)
    }

    fn at(&self, index: usize) -> Option<&str> {
        self.words.get(index).map(String::as_str)
    }

    /// The second word: what is to be done.
    fn operation(&self) -> &str {
        self.at(1).unwrap_or_default()
    }

    fn has(&self, flag: &str) -> bool {
        self.words.iter().any(|word| word == flag)
    }

    fn option(&self, name: &str) -> Option<&str> {
        let place = self.words.iter().position(|word| word == name)?;
        self.at(place + 1)
    }

    fn text(&self, property: &str) -> Option<&str> {
        self.input.get(property)?.as_str()
    }
}
