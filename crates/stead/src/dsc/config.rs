//! `config get|set|test|export|validate|resolve`

use std::path::PathBuf;

use serde_json::{Value as Json, json};
use stead_core::call::{Execution, Operation};
use stead_core::diag::Diagnostic;
use stead_core::event::{Event, Fact};
use stead_core::graph::Names;
use stead_core::run::{Mode, Run, Status, Verify};
use stead_core::value::Object;
use stead_core::wire::results::{self, Setting, document, reason};
use stead_host::drive::drive;

use super::{bad_parameters, given, tell};
use crate::args::{Compat, Config, ConfigCommand, Input, ProgressFormat};
use crate::exit::Exit;
use crate::input::{self, ParameterSources, Text};
use crate::output::{complain, data};
use crate::people::{catch_interrupts, width};
use crate::session::{DSC_VERSION, Prepared, Session, Unusable, search};

pub(crate) fn config(config: &Config, progress: Option<ProgressFormat>, compat: Option<Compat>) -> Exit {
    let (input, mode) = match &config.command {
        ConfigCommand::Get(input) => (input, Mode::GET),
        ConfigCommand::Test(input) => (input, Mode::TEST),
        ConfigCommand::Export(input) => (input, Mode::EXPORT),
        ConfigCommand::Set { input, what_if } if what_if.what_if => (input, set(Execution::WhatIf)),
        ConfigCommand::Set { input, .. } => (input, set(Execution::Actual)),
        ConfigCommand::Validate(input) => return validate(config, input),
        ConfigCommand::Resolve(_) => {
            tracing::error!("'config resolve' is not supported");
            return Exit::DscError;
        }
    };
    let (session, prepared) = match prepare_told(config, input, progress) {
        Ok(ready) => ready,
        Err(NotReady::Exit(exit)) => return exit,
        Err(NotReady::Document(session, unusable)) => {
            tell(&unusable.findings, &session.sources);
            return if unusable.is_input { Exit::DscInput } else { Exit::DscError };
        }
    };
    if let Err(exit) = permitted(&session, &prepared) {
        return exit;
    }
    tell(&prepared.warnings, &prepared.sources);
    let mut run = Run::new(prepared.graph, prepared.sources, mode, prepared.facts);
    carry_out(&mut run, &session, config, progress);
    let failed = tell_failures(&run, &session) | tell_bad_outputs(&run, &session);
    let setting = Setting { version: DSC_VERSION, elevated: session.machine.elevated };
    let results = document(&run, setting);
    if !failed || (has_results(&results) && !is_strict(compat)) {
        data(&results, input.output_format);
    }
    if run.report().cancelled {
        Exit::Cancelled
    } else if failed {
        Exit::DscError
    } else {
        Exit::Success
    }
}

/// Refuses a document that has to run with other rights, before anything of it runs.
fn permitted(session: &Session, prepared: &Prepared) -> Result<(), Exit> {
    let needed = prepared.graph.scopes.first().and_then(|scope| scope.document.directives.security_context.as_ref());
    match needed.and_then(|needed| Some((needed, needed.value.refusal(session.machine.elevated)?))) {
        Some((needed, why)) => {
            tracing::error!("{}: Security context: {why}", prepared.sources.place(needed.span));
            Err(Exit::DscError)
        }
        None => Ok(()),
    }
}

/// Carries out a document of one instance and returns the result of that.
pub(super) fn carry_out_one(session: &mut Session, instance: &Json, mode: Mode) -> Result<Json, Exit> {
    let text = json!({ "resources": [instance] }).to_string();
    let prepared = session.prepare("<instance>", &text, Object::new()).map_err(|unusable| {
        tell(&unusable.findings, &session.sources);
        Exit::DscError
    })?;
    let mut run = Run::new(prepared.graph, prepared.sources, mode, prepared.facts);
    drive(&mut run, session, width(None), &session.cancel, &mut |_, _| {});
    if tell_failures(&run, session) {
        return Err(Exit::DscError);
    }
    let setting = Setting { version: DSC_VERSION, elevated: session.machine.elevated };
    Ok(document(&run, setting).pointer_mut("/results/0/result").map(Json::take).unwrap_or_default())
}

/// A set whose outcome is reported as the resource reports it, as dsc does.
pub(super) fn set(execution: Execution) -> Mode {
    Mode { operation: Operation::Set, execution, verification: Verify::Lenient }
}

fn carry_out(run: &mut Run, session: &Session, config: &Config, progress: Option<ProgressFormat>) {
    catch_interrupts(session);
    let mut progress = (progress == Some(ProgressFormat::Json)).then(Progress::new);
    drive(run, session, width(config.width), &session.cancel, &mut |run, event| {
        if let Some(progress) = &mut progress {
            progress.event(run, event);
        }
    });
}

/// Whether a failed run prints nothing, as that of dsc. Otherwise what was done is worth knowing.
fn is_strict(compat: Option<Compat>) -> bool {
    use clap::ValueEnum;
    let from_environment = || Compat::from_str(&std::env::var("STEAD_COMPAT").ok()?, true).ok();
    compat.or_else(from_environment) == Some(Compat::Strict)
}

/// Whether a result document tells of any instance. One that does not says nothing that messages have not said.
fn has_results(document: &Json) -> bool {
    ["results", "resources"].iter().any(|key| document[*key].as_array().is_some_and(|all| !all.is_empty()))
}

/// Tells which outputs cannot be computed, and whether any cannot.
fn tell_bad_outputs(run: &Run, session: &Session) -> bool {
    let bad: Vec<Diagnostic> = run.outputs().into_iter().filter_map(|(_, value)| value.err()).collect();
    tell(&bad, &session.sources);
    !bad.is_empty()
}

/// Tells what failed, and whether anything did.
fn tell_failures(run: &Run, session: &Session) -> bool {
    let (graph, report) = (run.graph(), run.report());
    let failed = graph.order.iter().filter(|id| report.status(**id).is_some_and(Status::blocks));
    let mut any = false;
    for id in failed {
        any = true;
        if let Some(finding) = &report.record(*id).finding {
            tell(std::slice::from_ref(&**finding), &session.sources);
            continue;
        }
        let place = session.sources.place(graph.declaration(*id).name.span);
        let why = reason(graph, report, *id).unwrap_or_default();
        tracing::error!("{place}: {}: {}", graph.label(*id), why.trim_end());
    }
    any
}

enum NotReady {
    Exit(Exit),
    Document(Box<Session>, Unusable),
}

/// As [`prepare`], with lines of progress around it: resources are looked for meanwhile.
fn prepare_told(
    config: &Config,
    input: &Input,
    progress: Option<ProgressFormat>,
) -> Result<(Session, Prepared), NotReady> {
    if progress != Some(ProgressFormat::Json) {
        return prepare(config, input);
    }
    let progress = Progress::new();
    progress.searching(0);
    let ready = prepare(config, input);
    progress.searching(1);
    ready
}

fn prepare(config: &Config, input: &Input) -> Result<(Session, Prepared), NotReady> {
    let text = given(input.input.as_deref(), input.file.as_deref()).map_err(NotReady::Exit)?;
    let Some(text) = text else {
        tracing::error!("No input provided; use '--input' or '--file'");
        return Err(NotReady::Exit(Exit::DscInput));
    };
    let mut session = Session::new(root(config, &text).map_err(NotReady::Exit)?, search());
    if let ConfigCommand::Export(_) = config.command {
        session.names = Names::Repeated;
    }
    let supplied = supplied(config, &mut session).map_err(NotReady::Exit)?;
    match session.prepare(&text.name, &text.text, supplied) {
        Ok(prepared) => Ok((session, prepared)),
        Err(unusable) => Err(NotReady::Document(Box::new(session), unusable)),
    }
}

fn root(config: &Config, text: &Text) -> Result<PathBuf, Exit> {
    match &config.system_root {
        Some(root) if !root.is_dir() => {
            tracing::error!("The system root '{}' is not a folder", root.display());
            Err(Exit::DscArguments)
        }
        Some(root) => Ok(std::path::absolute(root).unwrap_or_else(|_| root.clone())),
        None => Ok(text.folder.clone()),
    }
}

fn supplied(config: &Config, session: &mut Session) -> Result<Object, Exit> {
    let from =
        ParameterSources { file: config.parameters_file.as_deref(), inline: config.parameters.as_deref(), single: &[] };
    input::parameters(session, &from).map_err(|bad| bad_parameters(&bad, &session.sources))
}

fn validate(config: &Config, input: &Input) -> Exit {
    let valid = match prepare(config, input) {
        Ok((_, prepared)) => {
            tell(&prepared.warnings, &prepared.sources);
            true
        }
        Err(NotReady::Exit(exit)) => return exit,
        Err(NotReady::Document(session, unusable)) => {
            tell(&unusable.findings, &session.sources);
            false
        }
    };
    data(&json!({ "valid": valid, "reason": null }), input.output_format);
    Exit::Success
}

/// Progress as JSON lines on standard error.
struct Progress {
    id: String,
    completed: usize,
}

impl Progress {
    fn new() -> Self {
        // Lines of one run belong together by this; nothing else depends on it.
        let seed = jiff::Timestamp::now().as_nanosecond().unsigned_abs() ^ (u128::from(std::process::id()) << 96);
        let hex = format!("{seed:032x}");
        let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
        Self {
            id: format!("{}-{}-4{}-8{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32)),
            completed: 0,
        }
    }

    /// Tells that resources are looked for, or with 1 that they were.
    fn searching(&self, completed: usize) {
        let activity = "Searching for resources";
        let line = json!({ "id": self.id, "activity": activity, "totalItems": 1, "completedItems": completed });
        complain(&line.to_string());
    }

    fn event(&mut self, run: &Run, event: &Event) {
        let (Fact::Asked { node, .. }
        | Fact::Answered { node, .. }
        | Fact::Opened { node }
        | Fact::Closed { node }
        | Fact::Skipped { node, .. }
        | Fact::Refused { node, .. }) = &event.fact
        else {
            return;
        };
        let settled = run.report().status(*node).is_some();
        self.completed += usize::from(settled);
        let graph = run.graph();
        let mut line = json!({
            "id": self.id,
            "activity": format!("{} '{}'", activity(run.mode().operation), graph.node(*node).name),
            "totalItems": graph.nodes.len(),
            "completedItems": self.completed,
            "resourceName": graph.node(*node).name,
            "resourceType": graph.declaration(*node).type_name.value.as_str(),
        });
        if settled && let Some((key, value)) = ending(run, *node) {
            line[key] = value;
        }
        complain(&line.to_string());
    }
}

fn activity(operation: Operation) -> &'static str {
    match operation {
        Operation::Get => "Get",
        Operation::Test => "Test",
        Operation::Set => "Set",
        Operation::Export => "Export",
    }
}

fn ending(run: &Run, node: stead_core::id::NodeId) -> Option<(&'static str, Json)> {
    let record = run.report().record(node);
    if record.status == Some(Status::Failed) {
        let code = match record.failure.as_ref().map(|failure| &failure.kind) {
            Some(stead_core::call::FailureKind::Exit(code)) => *code,
            _ => 2,
        };
        let message = reason(run.graph(), run.report(), node).unwrap_or_default();
        return Some(("failure", json!({ "message": message, "exitCode": code })));
    }
    results::result(record, run.mode().operation).map(|result| ("result", result))
}
