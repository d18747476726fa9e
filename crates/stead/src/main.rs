//! The command `stead`: arguments in, a report and an exit code out.

mod args;
mod dsc;
mod engine;
mod exit;
mod input;
mod interrupt;
mod output;
mod people;
#[cfg(test)]
mod rights;
mod schemas;
#[cfg(feature = "server")]
mod server;
mod session;
mod surroundings;
mod trace;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};

use args::{Arguments, Command};
use exit::Exit;
use surroundings::Surroundings;

/// A run makes and drops many small values; this allocator halves what that costs (docs/decisions/0006).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == interrupt::SUPERVISE) {
        let supervised = stead_host::process::supervise(&words.next().unwrap_or_default());
        return if supervised.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let _supervision = interrupt::prepare();
    let (arguments, program) = match parse(std::env::args_os().collect()) {
        Ok(parsed) => parsed,
        Err(exit) => return exit.into(),
    };
    // What panicked may hold secrets, so that only the place is told.
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        output::complain(&format!("stead has a defect, at {place}. Please report it."));
    }));
    let surroundings = Surroundings::of_this_process(&arguments);
    trace::install(&surroundings.settings);
    tracing::debug!("Running DSC version: {}", version_as_dsc());
    surroundings.doubts.iter().for_each(|doubt| tracing::warn!("{doubt}"));
    run(arguments, surroundings, program).into()
}

/// What `dsc --version` says: the version of DSC whose behaviour this is, and whose it is.
fn version_as_dsc() -> String {
    format!("{} (stead {})", session::DSC_VERSION, env!("CARGO_PKG_VERSION"))
}

/// Reads the command line, and the name that it is called by. `stead dsc …` and a link named `dsc` are the same as
/// `stead …`.
fn parse(mut words: Vec<OsString>) -> Result<(Arguments, &'static str), Exit> {
    let linked = words
        .first()
        .is_some_and(|program| std::path::Path::new(program).file_stem().is_some_and(|stem| stem == "dsc"));
    let prefixed = words.get(1).is_some_and(|word| word == "dsc");
    if prefixed {
        words.remove(1);
    }
    let as_dsc = linked || prefixed;
    let command = Arguments::command();
    // Scripts ask dsc for its version to know what it can do.
    let command = if as_dsc { command.name("dsc").version(version_as_dsc()) } else { command };
    let parsed = command.try_get_matches_from(&words).and_then(|matches| Arguments::from_arg_matches(&matches));
    let program = if linked { "dsc" } else { "stead" };
    parsed.map(|arguments| (arguments, program)).map_err(|error| {
        // Whatever cannot be printed here cannot be reported either.
        let _ = error.print();
        match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Success,
            _ if as_dsc || !is_for_people(&words) => Exit::DscError,
            _ => Exit::Unusable,
        }
    })
}

/// Whether a command line that could not be read was for one of the commands that dsc does not have.
fn is_for_people(words: &[OsString]) -> bool {
    const COMMANDS: [&str; 6] = ["plan", "apply", "check", "graph", "lint", "explain"];
    words.iter().any(|word| COMMANDS.iter().any(|command| word == command))
}

fn run(arguments: Arguments, surroundings: Surroundings, program: &str) -> Exit {
    match arguments.command {
        Command::Plan(document) => people::plan(&document, &surroundings),
        Command::Apply(document) => people::apply(&document, &surroundings),
        Command::Check(document) => people::check(&document, &surroundings),
        Command::Graph(graph) => people::graph(&graph, &surroundings),
        Command::Lint(document) => people::lint(&document, &surroundings),
        Command::Explain(explain) => people::explain(&explain),
        Command::Config(config) => dsc::config(&config, arguments.progress_format, arguments.compat, &surroundings),
        Command::Resource { command } => dsc::resource(&command, arguments.progress_format, &surroundings),
        Command::Function { command } => dsc::function(&command),
        Command::Extension { command } => dsc::extension(&command, &surroundings),
        Command::Schema(schema) => dsc::schema(&schema),
        #[cfg(feature = "server")]
        Command::Server => server::serve(surroundings),
        Command::Completer { shell } => dsc::completer(shell, program),
    }
}
