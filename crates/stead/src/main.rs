//! The program `stead`: arguments in, a report and an exit code out.

mod agent;
mod args;
mod commands;
mod completion;
mod dsc;
mod exit;
mod input;
mod interrupt;
mod manual;
mod mcp;
mod output;
mod process_env;
#[cfg(test)]
mod rights;
mod rpc;
mod schemas;
mod serve;
mod trace;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

use clap::error::{ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches};
use stead_core::visible::{is_obeyed, visible};

use args::{Arguments, Command, SlsCommand};
use exit::Exit;
use process_env::ProcessEnv;

/// A run makes and drops many small values; this allocator halves what that costs (docs/decisions/0006).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let began = Instant::now();
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == interrupt::SUPERVISE) {
        let supervised = stead_system::process::supervise(&words.next().unwrap_or_default());
        return if supervised.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    if let Some(exit) = completion::answer() {
        return output::finish(exit).into();
    }
    let _supervision = interrupt::prepare();
    let (arguments, program) = match parse(std::env::args_os().collect()) {
        Ok(parsed) => parsed,
        Err(exit) => return output::finish(exit).into(),
    };
    // The message of a panic may hold secrets; only its place is printed.
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        output::complain(&format!("internal error at {place}; please report this bug"));
    }));
    let env = ProcessEnv::of_this_process(&arguments, began);
    trace::install(&env.settings);
    tracing::debug!("Running DSC version: {}", version_as_dsc());
    env.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    let exit = match &env.unusable_policy {
        // What it says is the same on every machine.
        Some(why) if !matches!(arguments.command, Command::Explain(_) | Command::Doctor(_)) => {
            output::complain(why);
            if arguments.command.is_for_users() { Exit::Unusable } else { Exit::DscInput }
        }
        _ => run(arguments, env, program),
    };
    output::finish(exit).into()
}

/// What `dsc --version` says: the version of DSC whose behaviour this is, and whose it is.
fn version_as_dsc() -> String {
    format!("{} (stead {})", stead_engine::DSC_VERSION, env!("CARGO_PKG_VERSION"))
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
    let program = if linked { "dsc" } else { "stead" };
    if let Some(arguments) = Arguments::of_frequent_command(&words) {
        return Ok((arguments, program));
    }
    let command = Arguments::command();
    // Scripts ask dsc for its version to know what it can do.
    let command = if as_dsc { command.name("dsc").version(version_as_dsc()) } else { command };
    let parsed = command.try_get_matches_from(&words).and_then(|matches| Arguments::from_arg_matches(&matches));
    let parsed = parsed.and_then(Arguments::checked);
    parsed.map(|arguments| (arguments, program)).map_err(|error| {
        let error = args::with_hint(error, &words);
        if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
            output::print_coloured(&error.render().ansi().to_string());
            return Exit::Success;
        }
        let is_as_dsc = as_dsc || is_as_dsc(&words);
        complain_of(error, &words);
        if is_as_dsc { Exit::DscError } else { Exit::Unusable }
    })
}

/// Says what is wrong with a command line: without colours where words of it would be taken for such.
fn complain_of(mut error: clap::Error, words: &[OsString]) {
    if !words.iter().any(|word| word.to_string_lossy().contains(is_obeyed)) {
        return output::complain_coloured(&error.render().ansi().to_string());
    }
    let shown = error.context().filter_map(|(kind, value)| match value {
        ContextValue::String(text) => Some((kind, visible(text).into_owned())),
        _ => None,
    });
    for (kind, text) in shown.collect::<Vec<_>>() {
        error.insert(kind, ContextValue::String(text));
    }
    output::complain_text(&error.render().to_string());
}

/// Whether a command line that could not be read was for one of the commands that dsc has.
fn is_as_dsc(words: &[OsString]) -> bool {
    const COMMANDS: [&str; 8] = ["config", "resource", "function", "extension", "schema", "completer", "server", "mcp"];
    words
        .iter()
        .find_map(|word| word.to_str().filter(|word| args::is_command(word)))
        .is_some_and(|word| COMMANDS.contains(&word))
}

fn run(arguments: Arguments, env: ProcessEnv, program: &str) -> Exit {
    match arguments.command {
        Command::Plan(plan) => commands::plan(&plan, &env),
        Command::Apply(apply) => commands::apply(apply.into_inner(), &env),
        Command::Show(show) => commands::show(&show),
        Command::Check(document) => commands::check(&document, &env),
        Command::Bundle(bundle) => commands::bundle(&bundle, &env),
        Command::Graph(graph) => commands::graph(&graph, &env),
        Command::Lint(lint) => commands::lint(lint.into_inner(), &env),
        Command::Fmt(fmt) => commands::fmt(&fmt),
        Command::New { command } => commands::new(&command, &env),
        Command::Explain(explain) => commands::explain(&explain, &env),
        Command::Eval(eval) => commands::eval(&eval, &env),
        Command::History(history) => commands::history(&history),
        Command::Get(get) => commands::get(&get, &env),
        Command::Set(set) => commands::set(&set, &env),
        Command::Export(export) => commands::export(&export, &env),
        Command::Facts(facts) => commands::facts(&facts, &env),
        Command::Doctor(doctor) => commands::doctor(&doctor, &env),
        Command::Invoke(invoke) => commands::invoke(&invoke, &env),
        Command::Agent(agent) => agent::run(&agent, &env),
        Command::Sls { command } => match &*command {
            SlsCommand::Convert(convert) => commands::sls::convert(convert),
        },
        Command::Config(config) => dsc::config(&config, arguments.progress_format, arguments.compat, &env),
        Command::Resource { command, .. } => dsc::resource(&command, arguments.progress_format, &env),
        Command::Function { command } => dsc::function(&command),
        Command::Extension { command } => dsc::extension(&command, &env),
        Command::Schema(schema) => dsc::schema(&schema),
        Command::Puppetize(puppetize) => commands::puppetize(&puppetize, &env),
        Command::Serve(arguments) => serve::serve(&arguments, &env),
        Command::Lsp => match stead_lsp::serve(&env.host, env!("CARGO_PKG_VERSION")) {
            Ok(()) => Exit::Success,
            Err(error) => {
                output::complain(&format!("error: {error}"));
                Exit::Failed
            }
        },
        Command::Server => mcp::serve(env),
        Command::Completer { shell } => completion::script(shell, program),
        Command::Manual { command } => manual::manual(&command),
    }
}

#[cfg(test)]
mod tests {
    /// This test is linked as the program is (docs/decisions/0026).
    #[test]
    fn a_panic_is_caught_by_the_unwinder_in_the_program() {
        let outcome = std::panic::catch_unwind(|| std::panic::resume_unwind(Box::new(7)));
        assert_eq!(outcome.expect_err("a panic").downcast_ref::<i32>(), Some(&7));
    }
}
