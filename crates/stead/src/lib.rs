//! The program `stead` but for its `main`: arguments in, a report and an exit code out.

mod agent;
mod args;
mod codes;
mod commands;
mod completion;
mod detached;
mod dsc;
mod exit;
mod fleet;
mod hosts;
mod input;
mod interrupt;
mod manual;
mod mcp;
mod process_env;
mod request;
#[cfg(test)]
mod rights;
mod rpc;
mod schemas;
mod serve;
mod terminal;
mod trace;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

use clap::error::{ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches};
use stead_core::visible::{is_obeyed, visible};

use args::{Arguments, Color, Command, Extension, SlsCommand};
use exit::Exit;
use process_env::ProcessEnv;
use request::{ExplainRequest, ProgressFormat};

/// Carries out the command line of this process.
pub fn main() -> ExitCode {
    let began = Instant::now();
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == interrupt::SUPERVISE) {
        let supervised = stead_system::process::supervise(&words.next().unwrap_or_default());
        return if supervised.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    if let Some(exit) = completion::answer() {
        return terminal::finish(exit).into();
    }
    let _supervision = interrupt::prepare();
    let (arguments, program) = match parse(std::env::args_os().collect()) {
        Ok(parsed) => parsed,
        Err(exit) => return terminal::finish(exit).into(),
    };
    // The message of a panic may hold secrets; only its place is printed.
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        terminal::complain(&format!("internal error at {place}; please report this bug"));
    }));
    let env = ProcessEnv::of_this_process(&arguments.process(), began);
    trace::install(&env.settings);
    tracing::debug!("Running DSC version: {}", version_as_dsc());
    env.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    if arguments.command.is_paged() && !arguments.no_pager {
        terminal::page();
    }
    let host = env.host.clone();
    let exit = match &env.unusable_policy {
        // What it says is the same on every machine.
        Some(why) if !matches!(arguments.command, Command::Explain(_) | Command::Doctor(_)) => {
            terminal::complain(why);
            if arguments.command.is_for_users() { Exit::Unusable } else { Exit::DscInput }
        }
        _ => run(arguments, env, program),
    };
    host.end();
    terminal::finish(exit).into()
}

/// The version in traces: that of DSC whose behaviour this is, which is all that `dsc --version` says, and whose it is.
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
    if words.len() < 2 && !as_dsc {
        terminal::print(args::OVERVIEW);
        return Err(Exit::Unusable);
    }
    if let Some(arguments) = Arguments::of_frequent_command(&words) {
        return Ok((arguments, program));
    }
    let command = Arguments::command();
    // Scripts ask dsc for its version to know what it can do.
    let command = if as_dsc { command.name("dsc").version(stead_engine::DSC_VERSION) } else { command };
    let parsed = command.try_get_matches_from(&words).and_then(|matches| Arguments::from_arg_matches(&matches));
    let parsed = parsed.and_then(Arguments::checked).inspect(|all| all.color.into_iter().for_each(Color::choose));
    parsed.map(|arguments| (arguments, program)).map_err(|error| {
        let error = args::with_hint(error, &words);
        if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
            terminal::print_coloured(&error.render().ansi().to_string());
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
        return terminal::complain_coloured(&error.render().ansi().to_string());
    }
    let shown = error.context().filter_map(|(kind, value)| match value {
        ContextValue::String(text) => Some((kind, visible(text).into_owned())),
        _ => None,
    });
    for (kind, text) in shown.collect::<Vec<_>>() {
        error.insert(kind, ContextValue::String(text));
    }
    terminal::complain_text(&error.render().to_string());
}

/// Returns whether a command line that could not be read was for one of the commands that dsc has.
fn is_as_dsc(words: &[OsString]) -> bool {
    const COMMANDS: [&str; 8] = ["config", "resource", "function", "extension", "schema", "completer", "server", "mcp"];
    words
        .iter()
        .find_map(|word| word.to_str().filter(|word| args::is_command(word)))
        .is_some_and(|word| COMMANDS.contains(&word))
}

/// Makes a request of what was asked for, and carries it out.
fn run(arguments: Arguments, env: ProcessEnv, program: &str) -> Exit {
    let progress = arguments.progress_format.unwrap_or(ProgressFormat::Default);
    match arguments.command {
        Command::Plan(plan) => hosts::plan(plan.into_inner().into(), &env),
        Command::Apply(apply) => match apply.into_inner().or_plan() {
            Ok(apply) => hosts::apply(apply.into(), &env),
            Err(plan) => hosts::plan(*plan, &env),
        },
        Command::Show(show) => hosts::show(&show.into_inner().into()),
        Command::Check(check) => hosts::check(check.into_inner().into(), &env),
        Command::Bundle(bundle) => commands::bundle(&bundle.into_inner().into(), &env),
        Command::Graph(graph) => commands::graph(&graph.into_inner().into(), &env),
        Command::Lint(lint) => commands::lint(lint.into_inner().into(), &env),
        Command::Test(test) => commands::test(&test.into_inner().into(), &env),
        Command::Fmt(fmt) => commands::fmt(&fmt.into_inner().into()),
        Command::New { command } => commands::new(&command.into_inner().into(), &env),
        Command::Explain(explain) => match explain.into_inner().into() {
            ExplainRequest::Subject(subject) => commands::explain(subject.as_deref(), &env),
            ExplainRequest::Unusable { has_name } => commands::not_explained(has_name),
            ExplainRequest::Parameter(request) => commands::parameter(&request, &env),
        },
        Command::Eval(eval) => commands::eval(&eval.into_inner().into(), &env),
        Command::History(history) => hosts::history(history.into_inner().into(), &env),
        Command::Artifacts(artifacts) => hosts::artifacts(&artifacts.into_inner().into()),
        Command::Release { command } => commands::release(&command.into_inner().into(), &env),
        Command::Undo(undo) => commands::undo(&undo.into_inner().into(), &env),
        Command::Fleet { words } => fleet::start(&words),
        Command::Hosts(hosts) => hosts::list(&hosts.into_inner().into(), &env),
        Command::Get(get) => hosts::get(get.into_inner().into(), &env),
        Command::Set(set) => hosts::set(set.into_inner().into(), &env),
        Command::Export(export) => hosts::export(export.into_inner().into(), &env),
        Command::Facts(facts) => hosts::facts(facts.into_inner().into(), &env),
        Command::Doctor(doctor) => commands::doctor(doctor.output, &env),
        Command::Invoke(invoke) => commands::invoke(&invoke.into_inner().into(), &env),
        Command::Agent(agent) => agent::run(agent.into_inner().into(), &env),
        Command::Sls { command } => match &*command {
            SlsCommand::Convert(convert) => commands::sls::convert(&convert.files, convert.output_format),
        },
        Command::Config(config) => dsc::config(&config.into_inner().request(progress, arguments.compat), &env),
        Command::Resource { command, .. } => dsc::resource(&command.into_inner().into(), progress, &env),
        Command::Function { command } => dsc::functions(&command.into_inner().into()),
        Command::Extension { command } => match &*command {
            Extension::List { extension_name, output_format } => {
                dsc::extensions(extension_name.as_deref(), *output_format, &env)
            }
        },
        Command::Schema(schema) => dsc::schema(&schema.type_name, schema.output_format),
        Command::Puppetize(puppetize) => commands::puppetize(&puppetize.into_inner().into(), &env),
        Command::Serve(serve) => serve::serve(&serve.into_inner().into(), &env),
        Command::Lsp => lsp(&env),
        Command::Server => mcp::serve(env),
        Command::Completer { shell } => completion::script(shell, program),
        Command::Remote(_) => hosts::remote(env),
        Command::Manual { command } => manual::manual(&command),
    }
}

fn lsp(env: &ProcessEnv) -> Exit {
    match stead_lsp::serve(&env.host, env!("CARGO_PKG_VERSION")) {
        Ok(()) => Exit::Success,
        Err(error) => {
            terminal::complain(&format!("error: {error}"));
            Exit::Failed
        }
    }
}
