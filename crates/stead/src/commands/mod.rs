//! The commands for users: plan, apply, check, bundle, graph, lint, fmt, new, explain, eval, sls, history, get, set, export, facts,
//! doctor, invoke, puppetize.

mod bundle;
mod confirm;
mod direct;
mod doctor;
mod drawing;
mod effects;
mod eval;
mod explain;
mod facts;
mod files;
mod fmt;
mod history;
mod invoke;
mod lint;
mod new;
mod puppetize;
mod report;
mod saved;
pub(crate) mod sls;
mod values;
mod why;

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use stead_core::diag::{self, Diagnostic, any_error, counted};
use stead_core::event::{Event, EventKind, Mode};
use stead_core::graph::Values;
use stead_core::run::Run;
use stead_core::text::Sources;

use crate::args::{Apply, Document, Graph, Output, Plan};
use crate::exit::Exit;
use crate::input::{self, BadParameters, ParameterSources, Text, Unreadable};
use crate::interrupt;
use crate::output::{complain, complain_coloured, complain_json, data_as, print, written_soon};
use crate::process_env::ProcessEnv;
pub(crate) use bundle::{bundle, refuse as refuse_bundle};
pub(crate) use direct::{export, get, set};
pub(crate) use doctor::doctor;
pub(crate) use eval::eval;
pub(crate) use explain::explain;
pub(crate) use facts::facts;
pub(crate) use fmt::fmt;
use history::Recorder;
pub(crate) use history::history;
pub(crate) use invoke::invoke;
pub(crate) use lint::lint;
pub(crate) use new::new;
pub(crate) use puppetize::puppetize;
use report::{Printer, Style};
use saved::Source;
pub(crate) use saved::show;
use stead_engine::{
    Execution, Memory, Parts, Planned, Prepared, ReconcileOptions, SavedPlan, Session, Summary, UnknownPart,
    error_chain, json,
};

/// Shows what apply would change, and saves it if asked for.
pub(crate) fn plan(arguments: &Plan, env: &ProcessEnv) -> Exit {
    let task = Task { out: arguments.out.as_deref(), ..Task::new(Mode::PLAN) };
    carry_out(&arguments.document, session_for(&arguments.document, env), task, env)
}

/// Brings the machine to the desired state, or does what a saved plan shows.
pub(crate) fn apply(mut arguments: Apply, env: &ProcessEnv) -> Exit {
    let plan = match saved::to_apply(arguments.document.path()).transpose() {
        Ok(plan) => plan,
        Err(exit) => return exit,
    };
    if let Some(plan) = &plan {
        arguments = match saved::document(plan, arguments) {
            Ok(arguments) => arguments,
            Err(exit) => return exit,
        };
    }
    let consent = match &plan {
        Some(plan) => Consent::Planned(plan),
        None if arguments.yes => Consent::Given,
        None => Consent::Asked,
    };
    let recorder = match Recorder::open(&arguments.recording) {
        Ok(recorder) => recorder,
        Err(exit) => return exit,
    };
    let (session, reconcile) = (session_for(&arguments.document, env), arguments.reconcile.options());
    let task = Task { consent, reconcile, recorder: recorder.as_ref(), ..Task::new(Mode::APPLY) };
    carry_out(&arguments.document, session, task, env)
}

/// Reports drift.
pub(crate) fn check(document: &Document, env: &ProcessEnv) -> Exit {
    carry_out(document, session_for(document, env), Task::new(Mode::TEST), env)
}

/// What is done with a document.
struct Task<'a> {
    mode: Mode,
    consent: Consent<'a>,
    reconcile: ReconcileOptions,
    recorder: Option<&'a Recorder>,
    /// Where a plan is saved.
    out: Option<&'a Path>,
}

impl Task<'_> {
    fn new(mode: Mode) -> Self {
        Self { mode, consent: Consent::Given, reconcile: ReconcileOptions::none(), recorder: None, out: None }
    }
}

/// Whether users are asked before something is removed.
#[derive(Clone, Copy)]
enum Consent<'a> {
    Given,
    Asked,
    /// They were, when they saved this plan. It must still hold.
    Planned(&'a SavedPlan),
}

fn carry_out(document: &Document, session: Session, task: Task<'_>, env: &ProcessEnv) -> Exit {
    let Task { mode, consent, reconcile, recorder, out } = task;
    let (session, prepared) = match prepare(document, session, Values::Required, mode) {
        Ok(ready) => ready,
        Err(exit) => return exit,
    };
    if let Some(finding) = prepared.graph.refused(session.machine().elevated) {
        return refuse(document, &[finding], &session);
    }
    let policy = match session.policy(&reconcile, &prepared.reconcile) {
        Ok(policy) => policy,
        Err(findings) => return refuse(document, &findings, &session),
    };
    if let Err(exit) = check_properties(document, &session, &prepared, mode) {
        return exit;
    }
    warn(document, &distinct(&prepared.warnings), &prepared.sources);
    let planned = match confirmed(&consent, document, &session, &prepared) {
        Ok(planned) => planned,
        Err(exit) => return exit,
    };
    let style = Style::new(document, mode);
    let retention = style.retention(out.is_some() || recorder.is_some());
    let mut printer = Printer::new(style, Arc::clone(&prepared.sources));
    let mut execution =
        Execution { policy, retention, planned, ..Execution::new(mode, width(document.width, &session, &prepared)) };
    match recorder.map(Recorder::begin).transpose() {
        Ok(None) => {}
        Ok(Some(journal)) => execution.journal = Box::new(journal),
        Err(exit) => return exit,
    }
    let run = || run(document, &session, &prepared, execution, |run, event| printer.event(run, event));
    let run = match written_soon(run) {
        Ok(run) => run,
        Err(exit) => return exit,
    };
    warn(document, &session.computed_conflicts(&run), &prepared.sources);
    let summary = Summary::of(&run);
    match document.output {
        Output::Text => printer.summary(&run, &summary, env.began.elapsed()),
        Output::Json | Output::Yaml => {
            data_as(&json::report(&run, &summary, env.began.elapsed()), document.output);
        }
    }
    if document.timings && document.output == Output::Text {
        print(&report::timings(&run));
    }
    let mut exit = exit_of(&run, &summary);
    if let Some(path) = out
        && let Err(failed) = saved::save(path, (document, &session, &prepared), (&run, &summary))
    {
        exit = failed;
    }
    // The program ends here; taking a large run apart value by value would only take time. It holds no secret.
    std::mem::forget((run, prepared));
    exit
}

/// Asks for consent where something would be removed, or makes sure that the plan that was consented to still holds; returns what
/// it has shown.
fn confirmed(
    consent: &Consent<'_>,
    document: &Document,
    session: &Session,
    prepared: &Prepared,
) -> Result<Planned, Exit> {
    match consent {
        Consent::Given => Ok(Planned::default()),
        Consent::Asked => written_soon(|| confirm::confirm(document, session, prepared)),
        Consent::Planned(plan) => {
            saved::confirm((plan, Source::Saved), session, prepared, width(document.width, session, prepared))
        }
    }
}

fn run(
    document: &Document,
    session: &Session,
    prepared: &Prepared,
    execution: Execution<'_>,
    mut consumer: impl FnMut(&Run, &Event),
) -> Result<Run, Exit> {
    let execution = execution.consumer(|run, event| {
        if document.events {
            complain_json(&json::event(event));
        }
        consumer(run, event);
    });
    session.run(prepared, execution).map_err(|error| {
        complain(&format!("error: {}", error_chain(&error)));
        Exit::Failed
    })
}

/// Shows warnings, unless only failures are wanted.
fn warn(document: &Document, findings: &[Diagnostic], sources: &Sources) {
    if !document.quiet {
        show_findings(findings, sources);
    }
}

fn exit_of(run: &Run, summary: &Summary) -> Exit {
    if run.report().cancelled {
        Exit::Cancelled
    } else if summary.only_gave_up() {
        Exit::GaveUp
    } else if summary.has_failures(run) {
        Exit::Failed
    } else if run.mode() != Mode::APPLY && summary.has_changes() {
        Exit::Drifted
    } else {
        Exit::Success
    }
}

/// How many instances are worked on at once. For a single one, the number of processors is not looked up.
pub(crate) fn width(asked: Option<NonZeroUsize>, session: &Session, prepared: &Prepared) -> NonZeroUsize {
    let is_single = prepared.graph.iter().nth(1).is_none();
    let usual = || if is_single { NonZeroUsize::MIN } else { session.host().width() };
    asked.unwrap_or_else(usual)
}

/// Reads a document and resolves it. No program of a resource is called but those that discovery asks, and where the
/// document is refused those that check properties.
fn prepare(document: &Document, session: Session, values: Values, mode: Mode) -> Result<(Session, Prepared), Exit> {
    load(document, session, values, mode).map_err(|refusal| match refusal {
        Refusal::Exit(exit) => exit,
        Refusal::Findings(findings, session) => refuse_unless_cancelled(document, &findings, &session),
    })
}

/// Why there is nothing to run.
enum Refusal {
    /// It was said.
    Exit(Exit),
    /// What is wrong with the document, which has not been said.
    Findings(Vec<Diagnostic>, Box<Session>),
}

/// The same, but says nothing about what is wrong with the document.
fn load(document: &Document, session: Session, values: Values, mode: Mode) -> Result<(Session, Prepared), Refusal> {
    if let Some(root) = document.system_root.as_ref().filter(|root| !root.is_dir()) {
        complain(&format!("error: the system root '{}' is not a folder", root.display()));
        return Err(Refusal::Exit(Exit::Unusable));
    }
    let mut session = session.with(|options| {
        (options.values, options.system_root) = (values, document.system_root.clone());
    });
    let cannot = |error| Refusal::Exit(unreadable(document, &error));
    let (text, takes_input) = match document.text.clone() {
        Some((name, text)) => {
            let mut opened = document.bundle.iter().map(|bundle| input::opened(&mut session, bundle, document.path()));
            opened.try_for_each(|opened| opened.map_err(cannot))?;
            (Text { name, text }, false)
        }
        None => (input::loaded(&mut session, document.path()).map_err(cannot)?, input::is_standard(document.path())),
    };
    let from = ParameterSources { takes_input, ..ParameterSources::of(&document.supplied, &text) };
    let supplied = match input::parameters(&mut session, &from) {
        Ok(supplied) => supplied,
        Err(BadParameters::Unreadable(error)) => return Err(cannot(error)),
        Err(BadParameters::Findings(findings)) => return Err(Refusal::Findings(findings, Box::new(session))),
    };
    match session.prepare(&text.name, text.text, supplied) {
        Ok(mut prepared) => {
            prepared.memory = memory(document, &session, &prepared);
            match prepared.select(&Parts { only: document.only.clone(), skip: document.skip.clone() }) {
                Ok(()) => Ok((session, prepared)),
                Err(unknown) => Err(Refusal::Exit(unknown_part(&unknown))),
            }
        }
        Err(unusable) => {
            let findings = session.with_properties(unusable, mode).findings;
            Err(Refusal::Findings(findings, Box::new(session)))
        }
    }
}

/// Returns the memory of a document between runs: of one in a file, from standard input, or in a saved plan.
fn memory(document: &Document, session: &Session, prepared: &Prepared) -> Option<Memory> {
    match &document.text {
        Some(_) => document.identity.as_ref().map(|identity| session.memory(identity)),
        None => Some(input::memory(session, prepared, document.path())),
    }
}

fn unknown_part(unknown: &UnknownPart) -> Exit {
    complain(&format!("error: {unknown}"));
    if let Some(meant) = &unknown.meant {
        complain(&format!("help: {}", diag::did_you_mean(meant)));
    }
    Exit::Unusable
}

/// Refuses a document with properties that its resources do not accept. Programs may be asked for that.
fn check_properties(document: &Document, session: &Session, prepared: &Prepared, mode: Mode) -> Result<(), Exit> {
    let mismatches = session.check_properties(prepared, mode);
    if mismatches.is_empty() && !session.cancel().is_cancelled() {
        return Ok(());
    }
    let findings: Vec<Diagnostic> = prepared.warnings.iter().cloned().chain(mismatches).collect();
    Err(refuse_unless_cancelled(document, &findings, session))
}

/// Reports findings, unless the search for them was ended early: then they are not the document's.
fn refuse_unless_cancelled(document: &Document, findings: &[Diagnostic], session: &Session) -> Exit {
    if !session.cancel().is_cancelled() {
        refuse(document, findings, session);
    }
    interrupt::exit(session.cancel(), Exit::Unusable)
}

/// Reports a file that cannot be read.
fn unreadable(document: &Document, error: &Unreadable) -> Exit {
    complain(&format!("error: {error}"));
    if document.output != Output::Text {
        data_as(&json::unreadable(&error.to_string()), document.output);
    }
    Exit::Unusable
}

/// The session of a command with a document; Ctrl-C ends it.
fn session_for(document: &Document, env: &ProcessEnv) -> Session {
    let root = match &document.supplied.root {
        Some(root) => std::path::absolute(root).unwrap_or_else(|_| root.clone()),
        None => input::folder(document.path()),
    };
    let session = env.host.session(root);
    interrupt::catch(&session);
    session
}

/// Reports why a document cannot be used.
fn refuse(document: &Document, findings: &[Diagnostic], session: &Session) -> Exit {
    let findings = &distinct(findings);
    let explanations = session.explanations(findings);
    for explanation in &explanations {
        complain(&format!("warning: {explanation}"));
    }
    match document.output {
        Output::Text => {
            show_findings(findings, &session.sources);
            let errors = findings.iter().filter(|finding| any_error(std::slice::from_ref(finding))).count();
            complain(&format!("{} found; nothing was run", counted(errors, "error")));
        }
        Output::Json | Output::Yaml => data_as(&json::findings(findings, &session.sources), document.output),
    }
    Exit::Unusable
}

/// Each finding once: the iterations of a loop have one text.
fn distinct(findings: &[Diagnostic]) -> Vec<Diagnostic> {
    let mut seen = HashSet::new();
    findings.iter().filter(|finding| seen.insert((finding.code.id, finding.span, &finding.message))).cloned().collect()
}

/// Prints findings on standard error, with their lines of the document.
pub(crate) fn show_findings(findings: &[Diagnostic], sources: &Sources) {
    complain_coloured(&diag::render_all(findings, sources, crate::output::is_coloured()));
}

/// Prints the order and the dependencies.
pub(crate) fn graph(arguments: &Graph, env: &ProcessEnv) -> Exit {
    let session = session_for(&arguments.document, env);
    match prepare(&arguments.document, session, Values::Required, Mode::PLAN) {
        Ok((session, prepared)) => {
            if let Some(name) = &arguments.why {
                return why::why(&session, &prepared, name, arguments.document.output);
            }
            match arguments.document.output {
                Output::Text => print(&drawing::draw(&prepared, arguments.format)),
                output => data_as(&drawing::data(&prepared), output),
            }
            Exit::Success
        }
        Err(exit) => exit,
    }
}

/// Every code there is.
pub(crate) fn codes() -> Vec<diag::Code> {
    let mut codes = diag::all();
    codes.extend(stead_host::settings::codes::CODES);
    codes.extend(stead_host::check::codes::CODES);
    codes.extend(stead_agent::settings_codes::CODES);
    codes
}

/// The instance that an event settles, or settles otherwise.
fn settled(event: &Event) -> Option<stead_core::id::NodeId> {
    match &event.kind {
        EventKind::Settled { instance, .. } | EventKind::Refuted { instance, .. } => Some(instance.node()),
        _ => None,
    }
}
