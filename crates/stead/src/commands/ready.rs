//! From the request for a document to one that can be run, or to what is wrong with it.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use stead_core::diag::{self, Diagnostic, any_error, counted};
use stead_core::event::Mode;
use stead_core::graph::Values;
use stead_core::run::policy::Policy;
use stead_core::text::Sources;
use stead_engine::{Parts, Prepared, ReconcileOptions, Session, UnknownPart, json};
use stead_system::fs::{Distrust, OpenError, Trust, User, judge};

use crate::exit::Exit;
use crate::input::{self, BadParameters, ParameterSources, Unreadable};
use crate::interrupt;
use crate::process_env::ProcessEnv;
use crate::request::{DocumentRequest, Origin, View, Volume};
use crate::terminal::{Output, complain, data_as, show_findings};

/// A document that can be run, with everything that the request says of it.
pub(super) struct Ready {
    pub(super) session: Session,
    pub(super) prepared: Prepared,
    pub(super) policy: Arc<dyn Policy>,
    pub(super) parts: Parts,
    pub(super) width: NonZeroUsize,
}

/// Reads a document, resolves it, and refuses it where it cannot be run.
pub(super) fn get_ready(
    request: &DocumentRequest,
    view: View,
    session: Session,
    (mode, reconcile): (Mode, &ReconcileOptions),
) -> Result<Ready, Exit> {
    let (mut session, mut prepared) = prepare(request, view.output, session, Values::Required, mode)?;
    warn_of_others(&prepared.sources, view);
    session.account_for_removed(&mut prepared, mode);
    if let Some(finding) = prepared.graph.refused(session.machine().elevated) {
        return Err(refuse(&[finding], &session, view.output));
    }
    let policy = session.policy(reconcile, &prepared.reconcile);
    let policy = policy.map_err(|findings| refuse(&findings, &session, view.output))?;
    // Nobody wrote a document that was made.
    let is_written = matches!(request.origin, Origin::Path(_));
    let misread = if is_written { session.misreadings(&prepared) } else { Vec::new() };
    let warnings: Vec<Diagnostic> = prepared.warnings.iter().cloned().chain(misread).collect();
    check_properties(&session, (&prepared, &warnings), mode, view.output)?;
    warn(view, &distinct(&warnings), &prepared.sources);
    let width = request.width.of(&session, &prepared);
    Ok(Ready { session, prepared, policy, parts: request.parts.clone(), width })
}

/// Warns root of files of a document that other users can change: itself, what it includes, and its parameters. What belongs to whoever
/// is root by sudo counts as root's.
fn warn_of_others(sources: &Sources, view: View) {
    if view.volume <= Volume::Quiet {
        return;
    }
    let trust = match User::current().trust() {
        Trust::Root => Trust::RootAnywhere,
        other => other,
    };
    let own = std::env::var("SUDO_UID").ok().and_then(|id| id.parse().ok());
    let is_own = |reason| matches!(reason, Distrust::Owner(user) | Distrust::DirectoryOf(user) if Some(user) == own);
    for (_, source) in sources.iter() {
        // What has no file, such as `<input>`, cannot be opened.
        if let Err(OpenError::Untrusted(untrusted)) = judge(Path::new(&source.name), trust)
            && !is_own(untrusted.reason)
        {
            let name = &source.name;
            complain(&format!("warning: '{name}' is used as root, but other users can change it: {untrusted}"));
            complain(&format!("help: {}", untrusted.help()));
        }
    }
}

/// The session of a command with a document; Ctrl-C ends it.
pub(super) fn session_for(request: &DocumentRequest, env: &ProcessEnv) -> Session {
    let root = match &request.supplied.root {
        Some(root) => std::path::absolute(root).unwrap_or_else(|_| root.clone()),
        None => input::folder(request.path()),
    };
    let session = env.host.session(root);
    interrupt::catch(&session);
    session
}

/// Reads a document and resolves it. No program of a resource is called but those that discovery asks, and where the
/// document is refused those that check properties.
pub(super) fn prepare(
    request: &DocumentRequest,
    output: Output,
    session: Session,
    values: Values,
    mode: Mode,
) -> Result<(Session, Prepared), Exit> {
    load(request, session, values, mode).map_err(|refusal| match refusal {
        Refusal::Findings(findings, session) => refuse_unless_cancelled(&findings, &session, output),
        refusal => refusal.report(output),
    })
}

/// Why there is nothing to run. Nothing has been said of it.
pub(super) enum Refusal {
    /// The document, or something else that the request names, cannot be read.
    Unreadable(Unreadable),
    /// There is no such system, or no such part of the document: the messages.
    Request(Vec<String>),
    /// There is something wrong with the document.
    Findings(Vec<Diagnostic>, Box<Session>),
}

impl Refusal {
    /// Says it.
    pub(super) fn report(self, output: Output) -> Exit {
        match self {
            Self::Unreadable(error) => {
                complain(&format!("error: {error}"));
                if output != Output::Text {
                    data_as(&json::unreadable(&error.to_string()), output);
                }
            }
            Self::Request(messages) => messages.iter().for_each(|message| complain(message)),
            Self::Findings(findings, session) => return refuse(&findings, &session, output),
        }
        Exit::Unusable
    }
}

/// Does what [`prepare`] does, but says nothing about what is wrong.
pub(super) fn load(
    request: &DocumentRequest,
    session: Session,
    values: Values,
    mode: Mode,
) -> Result<(Session, Prepared), Refusal> {
    if let Some(root) = request.system_root.as_ref().filter(|root| !root.is_dir()) {
        let (there, help) = if root.exists() {
            ("is not a folder", "name the folder that holds the root of the operating system")
        } else {
            (
                "does not exist",
                "name the folder that holds a system, such as one that `debootstrap` made; files alone can be managed below an empty one",
            )
        };
        let message = format!("error: the system root '{}' {there}", root.display());
        return Err(Refusal::Request(vec![message, format!("help: {help}")]));
    }
    let mut session = session.with(|options| {
        (options.values, options.system_root) = (values, request.system_root.clone());
    });
    let text = input::requested(&mut session, &request.origin).map_err(Refusal::Unreadable)?;
    let takes_input = matches!(&request.origin, Origin::Path(path) if input::is_standard(path));
    let from = ParameterSources { takes_input, ..ParameterSources::of(&request.supplied, &text) };
    let supplied = match input::parameters(&mut session, &from) {
        Ok(supplied) => supplied,
        Err(BadParameters::Unreadable(error)) => return Err(Refusal::Unreadable(error)),
        Err(BadParameters::Findings(findings)) => return Err(Refusal::Findings(findings, Box::new(session))),
    };
    match session.prepare(&text.name, text.text, supplied) {
        Ok(mut prepared) => {
            prepared.memory = match &request.origin {
                Origin::Path(path) => Some(input::memory(&session, &prepared, path)),
                Origin::Made(text) => text.identity.as_ref().map(|identity| session.memory(identity)),
            };
            match prepared.select(&request.parts) {
                Ok(()) => {
                    let is_stated = matches!(request.origin, Origin::Path(_));
                    prepared.warnings.extend(session.beside_root(&prepared).filter(|_| is_stated));
                    Ok((session, prepared))
                }
                Err(unknown) => Err(Refusal::Request(unknown_part(&unknown))),
            }
        }
        Err(unusable) => {
            let findings = session.with_properties(unusable, mode).findings;
            Err(Refusal::Findings(findings, Box::new(session)))
        }
    }
}

fn unknown_part(unknown: &UnknownPart) -> Vec<String> {
    let known = || format!("the document has {}", unknown.known);
    let help = unknown.meant.as_ref().map_or_else(known, |meant| diag::did_you_mean(meant));
    vec![format!("error: {unknown}"), format!("help: {help}")]
}

/// Refuses a document with properties that its resources do not accept. Programs may be asked for that.
fn check_properties(
    session: &Session,
    (prepared, warnings): (&Prepared, &[Diagnostic]),
    mode: Mode,
    output: Output,
) -> Result<(), Exit> {
    let mismatches = session.check_properties(prepared, mode);
    if mismatches.is_empty() && !session.cancel().is_cancelled() {
        return Ok(());
    }
    let findings: Vec<Diagnostic> = warnings.iter().cloned().chain(mismatches).collect();
    Err(refuse_unless_cancelled(&findings, session, output))
}

/// Reports findings, unless the search for them was ended early: then they are not the document's.
fn refuse_unless_cancelled(findings: &[Diagnostic], session: &Session, output: Output) -> Exit {
    if !session.cancel().is_cancelled() {
        refuse(findings, session, output);
    }
    interrupt::exit(session.cancel(), Exit::Unusable)
}

/// Reports why a document cannot be used.
pub(super) fn refuse(findings: &[Diagnostic], session: &Session, output: Output) -> Exit {
    let findings = &distinct(findings);
    let explanations = session.explanations(findings);
    for explanation in &explanations {
        complain(&format!("warning: {explanation}"));
    }
    match output {
        Output::Text => {
            show_findings(findings, &session.sources);
            let errors = findings.iter().filter(|finding| any_error(std::slice::from_ref(finding))).count();
            complain(&format!("{} found; nothing was run", counted(errors, "error")));
        }
        output => data_as(&json::findings(findings, &session.sources), output),
    }
    Exit::Unusable
}

/// Shows warnings, unless only failures are wanted.
pub(super) fn warn(view: View, findings: &[Diagnostic], sources: &Sources) {
    if view.volume > Volume::Quiet {
        show_findings(findings, sources);
    }
}

/// Each finding once: the iterations of a loop have one text.
pub(super) fn distinct(findings: &[Diagnostic]) -> Vec<Diagnostic> {
    let mut seen = HashSet::new();
    findings.iter().filter(|finding| seen.insert((finding.code.id, finding.span, &finding.message))).cloned().collect()
}
