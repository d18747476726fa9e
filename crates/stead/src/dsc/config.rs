//! `config get|set|test|export|validate|resolve`

use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use stead_core::call::Execution;
use stead_core::event::{Approach, Mode, Verify};
use stead_core::graph::Names;
use stead_core::parameters::Supplied;
use stead_core::wire::nested;

use super::progress::Progress;
use super::{bad_parameters, given, include, notes, tell, validate};
use crate::exit::Exit;
use crate::input::{self, ParameterSources, is_standard};
use crate::interrupt;
use crate::process_env::ProcessEnv;
use crate::request::{Compat, ConfigOperation, ConfigRequest, Given, ProgressFormat, TestForm};
use crate::terminal::data;
use stead_engine::{
    Prepared, RunOptions, Session, SessionOptions, Unusable, error_chain, failure_lines, finding_line, set_mode,
};

/// Does something with a document, as dsc does it.
pub(crate) fn config(request: &ConfigRequest, env: &ProcessEnv) -> Exit {
    let mode = match request.operation {
        ConfigOperation::Get => Mode::GET,
        ConfigOperation::Test(_) => Mode { approach: Approach::Direct, ..Mode::TEST },
        ConfigOperation::Export => Mode::EXPORT,
        ConfigOperation::Set(Execution::WhatIf) => set_mode(Execution::WhatIf),
        ConfigOperation::Set(Execution::Actual) => {
            Mode { verification: env.settings.verification, ..set_mode(Execution::Actual) }
        }
        ConfigOperation::Validate => return validate(request, env),
        ConfigOperation::Resolve => return resolve(request, env),
    };
    match prepare_or_report(request, env) {
        Ok((session, prepared)) => {
            if let Some(finding) = prepared.graph.refused(session.machine().elevated) {
                tracing::error!("{}", finding_line(&finding, &prepared.sources));
                return Exit::DscError;
            }
            tell(&prepared.warnings, &prepared.sources);
            notes::warn(&prepared, mode);
            let wrong = session.check_properties(&prepared, mode);
            if !wrong.is_empty() {
                tell(&wrong, &prepared.sources);
                return Exit::DscError;
            }
            match carry_out(request, mode, &session, &prepared) {
                Ok(executed) => report(executed, request),
                Err(exit) => exit,
            }
        }
        Err(not_ready) => not_ready.report(mode),
    }
}

fn resolve(request: &ConfigRequest, env: &ProcessEnv) -> Exit {
    match prepare(request, env) {
        Ok((_, prepared)) => {
            tell(&prepared.warnings, &prepared.sources);
            include::print_resolved(&prepared, request.format)
        }
        Err(not_ready) => not_ready.report(Mode::PLAN),
    }
}

/// The outcome of a document.
struct Executed {
    /// The result, in the shape that dsc gives it.
    document: Json,
    /// What failed, one line each.
    failures: Vec<String>,
    /// Whether it was ended early.
    cancelled: bool,
}

fn carry_out(request: &ConfigRequest, mode: Mode, session: &Session, prepared: &Prepared) -> Result<Executed, Exit> {
    let mut progress = (request.progress == ProgressFormat::Json).then(Progress::new);
    let plan = RunOptions::new(mode, request.width.of(session, prepared)).consumer(|run, event| {
        if let Some(progress) = &mut progress {
            progress.event(run, event);
        }
    });
    let run = session.run(prepared, plan).map_err(|error| {
        tracing::error!("{}", error_chain(&error));
        Exit::DscError
    })?;
    if mode.verification == Verify::Lenient {
        notes::warn_of_unreached(&run);
    }
    let (document, failures) = (session.result_document(&run), failure_lines(&run));
    Ok(Executed { document, failures, cancelled: run.report().cancelled })
}

fn report(executed: Executed, request: &ConfigRequest) -> Exit {
    executed.failures.iter().for_each(|failure| tracing::error!("{failure}"));
    let failed = !executed.failures.is_empty();
    if request.caller.is_assertion
        && !failed
        && let Some(type_name) = nested::failed_assertion(&executed.document)
    {
        tracing::error!("Assertion failed for resource '{type_name}'");
        return Exit::DscAssertion;
    }
    if !failed || (has_results(&executed.document) && !is_strict(request.compat)) {
        data(&as_asked(executed.document, request), request.format);
    }
    if executed.cancelled {
        Exit::Cancelled
    } else if failed {
        Exit::DscError
    } else {
        Exit::Success
    }
}

/// The result document in the shape that the options ask for.
fn as_asked(document: Json, request: &ConfigRequest) -> Json {
    match request.operation {
        _ if !request.caller.is_group => document,
        ConfigOperation::Test(TestForm::Document) => nested::tests_as_document(&document),
        ConfigOperation::Test(TestForm::Gets) => nested::tests_as_gets(&document),
        ConfigOperation::Export => document,
        _ => nested::results_alone(document),
    }
}

/// Returns whether a failed run prints nothing, as that of dsc. Otherwise what was done is worth knowing.
fn is_strict(compat: Option<Compat>) -> bool {
    let from_environment = || {
        let stated = std::env::var("STEAD_COMPAT").ok()?;
        let known = Compat::parse(&stated);
        if known.is_none() {
            tracing::warn!("ignoring STEAD_COMPAT: '{stated}' is neither 'results' nor 'strict'");
        }
        known
    };
    compat.or_else(from_environment) == Some(Compat::Strict)
}

/// Returns whether a result document tells of any instance. One that does not says nothing that messages have not said.
fn has_results(document: &Json) -> bool {
    ["results", "resources"].iter().any(|key| document[*key].as_array().is_some_and(|all| !all.is_empty()))
}

enum NotReady {
    Exit(Exit),
    Document(Box<Session>, Unusable),
}

impl NotReady {
    /// Tells what is wrong, if that was not done yet.
    fn report(self, mode: Mode) -> Exit {
        match self {
            Self::Exit(exit) => exit,
            Self::Document(session, unusable) => {
                let unusable = session.with_properties(unusable, mode);
                tell(&unusable.findings, &session.sources);
                interrupt::exit(session.cancel(), if unusable.is_input { Exit::DscInput } else { Exit::DscError })
            }
        }
    }
}

/// As [`prepare`], with lines of progress around it: resources are looked for meanwhile.
fn prepare_or_report(request: &ConfigRequest, env: &ProcessEnv) -> Result<(Session, Prepared), NotReady> {
    let search = || prepare(request, env);
    if request.progress == ProgressFormat::Json { Progress::of_search(search) } else { search() }
}

fn prepare(request: &ConfigRequest, env: &ProcessEnv) -> Result<(Session, Prepared), NotReady> {
    let root = root(request);
    tracing::debug!("DSC_CONFIG_ROOT = {}", root.display());
    let system_root = request.system_root.as_deref().map(managed).transpose().map_err(NotReady::Exit)?;
    let names = if request.operation == ConfigOperation::Export { Names::Repeated } else { Names::Unique };
    let options = SessionOptions { implicit_order: false, system_root, names, ..SessionOptions::default() };
    let mut session = env.host.session_with(root, options);
    if request.parameters_file.as_deref().is_some_and(is_standard) && file(request).is_some_and(is_standard) {
        tracing::error!("Cannot read from STDIN for both parameters and input");
        return Err(NotReady::Exit(Exit::DscInput));
    }
    let text = given(&session, request.input.as_ref()).map_err(NotReady::Exit)?;
    let Some(text) = text else {
        tracing::error!("No input provided; use '--input' or '--file'");
        return Err(NotReady::Exit(Exit::DscInput));
    };
    let is_include = request.caller.is_include || request.operation == ConfigOperation::Resolve;
    let (text, own) = if is_include {
        let included = include::read(&mut session, &text).map_err(NotReady::Exit)?;
        (included.document, included.parameters)
    } else {
        (text, None)
    };
    let supplied = own.map_or_else(|| supplied(request, &mut session), Ok).map_err(NotReady::Exit)?;
    interrupt::catch(&session);
    let prepared = match request.operation {
        ConfigOperation::Resolve => session.prepare_values(&text.name, &text.text, supplied),
        _ => session.prepare(&text.name, &text.text, supplied),
    };
    session.trace_problems();
    match prepared {
        Ok(mut prepared) => {
            if notes::looks_again(&prepared) {
                let why = "'resourceDiscovery' mode set to 'DuringDeployment'";
                tracing::debug!("Skipping resource discovery due to {why}");
            }
            // A group or an assertion calls for a part of a document, a different one each time.
            let is_whole = !is_include && !request.caller.is_group && !request.caller.is_assertion;
            let path = file(request).unwrap_or(Path::new("-"));
            prepared.memory = is_whole.then(|| input::memory(&session, &prepared, path));
            Ok((session, prepared))
        }
        Err(unusable) => Err(NotReady::Document(Box::new(session), unusable)),
    }
}

/// The file of the document, or `-` for standard input.
fn file(request: &ConfigRequest) -> Option<&Path> {
    match &request.input {
        Some(Given::File(path)) => Some(path),
        Some(Given::Inline(_)) | None => None,
    }
}

/// The folder that relative paths start from: that of the document, or for a document without one what the caller says.
fn root(request: &ConfigRequest) -> PathBuf {
    let from_environment = std::env::var_os("DSC_CONFIG_ROOT").map(PathBuf::from).filter(|root| root.is_absolute());
    match (file(request).filter(|path| !is_standard(path)), from_environment) {
        (Some(file), said) => {
            if said.is_some() {
                tracing::warn!("The current value of 'DSC_CONFIG_ROOT' env var will be overridden");
            }
            input::folder(file)
        }
        (None, said) => said.unwrap_or_else(input::current_folder),
    }
}

/// The folder that the operating system to work on lies in.
fn managed(root: &Path) -> Result<PathBuf, Exit> {
    if !root.is_dir() {
        tracing::error!("The system root '{}' is not a folder", root.display());
        return Err(Exit::DscArguments);
    }
    Ok(root.to_owned())
}

fn supplied(request: &ConfigRequest, session: &mut Session) -> Result<Supplied, Exit> {
    let from = ParameterSources {
        files: request.parameters_file.as_slice(),
        inline: request.parameters.as_deref(),
        needs_key: true,
        ..ParameterSources::default()
    };
    input::parameters(session, &from).map_err(|bad| {
        if request.parameters_file.is_some() && request.parameters.is_some() {
            tracing::error!("Failed to merge parameters");
        }
        bad_parameters(&bad, &session.sources)
    })
}

fn validate(request: &ConfigRequest, env: &ProcessEnv) -> Exit {
    let valid = match prepare(request, env) {
        Ok((session, prepared)) => {
            tell(&prepared.warnings, &prepared.sources);
            let faults = validate::faults(&session, &prepared);
            for fault in &faults {
                tracing::error!("{fault}");
            }
            faults.is_empty()
        }
        Err(NotReady::Exit(exit)) => return exit,
        Err(NotReady::Document(session, unusable)) => {
            tell(&session.with_properties(unusable, Mode::PLAN).findings, &session.sources);
            false
        }
    };
    data(&json!({ "valid": valid, "reason": null }), request.format);
    Exit::Success
}
