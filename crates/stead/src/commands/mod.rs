//! The commands for users: plan, apply, check, bundle, graph, lint, fmt, new, explain, eval, sls, history, get, set, export, facts,
//! doctor, invoke, puppetize, release, test, undo.

mod bundle;
pub(crate) mod confirm;
mod direct;
mod doctor;
mod drawing;
mod effects;
mod eval;
mod explain;
mod facts;
pub(crate) mod files;
mod fmt;
mod history;
mod invoke;
mod lint;
mod metrics;
mod new;
mod page;
mod parameter;
mod puppetize;
mod ready;
mod recorder;
mod release;
mod report;
mod saved;
pub(crate) mod sls;
mod test;
mod undo;
mod values;
mod why;

use std::sync::Arc;

use stead_core::event::{Event, EventKind, Mode};
use stead_core::graph::Values;
use stead_core::history::History;
use stead_core::run::Run;
use stead_core::wire::results::operation_name;
use stead_engine::{Planned, ReconcileOptions, RunOptions, Summary, error_chain, json};

use crate::exit::Exit;
use crate::process_env::ProcessEnv;
use crate::request::{AboutRun, ApplyRequest, Drawing, DriftRequest, GraphRequest, GraphView, Keep, PlanRequest, View};
use crate::terminal::{Output, complain, complain_json, data_as, data_line, print, print_exactly, written_soon};
pub(crate) use bundle::{bundle, of_text as bundle_of, refuse as refuse_bundle};
pub(crate) use confirm::{Removals, is_attended};
pub(crate) use direct::{export, get, set};
pub(crate) use doctor::doctor;
pub(crate) use eval::eval;
pub(crate) use explain::{explain, not_explained};
pub(crate) use facts::facts;
pub(crate) use fmt::fmt;
pub(crate) use history::history;
pub(crate) use invoke::invoke;
pub(crate) use lint::lint;
pub(crate) use metrics::Metrics;
pub(crate) use new::new;
pub(crate) use parameter::parameter;
pub(crate) use puppetize::puppetize;
use ready::{Ready, get_ready, prepare, session_for, warn};
use recorder::Recorder;
pub(crate) use release::release;
pub(crate) use report::counts;
use report::{Printer, Style};
use saved::Source;
pub(crate) use saved::{plan_file, reported, show};
pub(crate) use test::test;
pub(crate) use undo::undo;

/// Shows what apply would change, and saves it if asked for.
pub(crate) fn plan(request: &PlanRequest, env: &ProcessEnv) -> Exit {
    planned(request, env).unwrap_or_else(|exit| exit)
}

fn planned(request: &PlanRequest, env: &ProcessEnv) -> Result<Exit, Exit> {
    let PlanRequest { document, view, about, out, fleet: _ } = request;
    let ready = get_ready(document, *view, session_for(document, env), (Mode::PLAN, &ReconcileOptions::none()))?;
    let done = carry_out(&ready, *view, Task { is_stored: out.is_some(), ..Task::new(Mode::PLAN, about) }, env)?;
    let saved = match out {
        None => Ok(()),
        Some(Keep::File(path)) => saved::save(path, &ready, &done),
        Some(Keep::Printed) => saved::print(&ready, &done),
    };
    let exit = done.end(ready);
    saved.map(|()| exit)
}

/// Brings the machine to the desired state, or does what a saved plan shows.
pub(crate) fn apply(request: ApplyRequest, env: &ProcessEnv) -> Exit {
    applied(request, env).unwrap_or_else(|exit| exit)
}

fn applied(request: ApplyRequest, env: &ProcessEnv) -> Result<Exit, Exit> {
    let ApplyRequest { mut document, view, about, plan, asks, reconcile, recording, fleet: _ } = request;
    let plan = match plan {
        Some(plan) => Some(saved::of_this_machine(*plan, document.path())?),
        None => saved::to_apply(document.path()).transpose()?,
    };
    if let Some(plan) = &plan {
        document = saved::document(plan, document)?;
    }
    let recorder = recording.as_ref().map(Recorder::open).transpose()?.flatten();
    let ready = get_ready(&document, view, session_for(&document, env), (Mode::APPLY, &reconcile))?;
    let planned = match &plan {
        Some(plan) => {
            let confirm = || saved::confirm((plan, Source::Saved), &ready);
            let planned = confirm()?;
            // Whoever thinks about it takes time.
            if asks && confirm::was_asked(plan, view.detail, ready.session.cancel())? { confirm()? } else { planned }
        }
        None if asks => confirm::confirm(view, &ready)?,
        None => Planned::default(),
    };
    let task = Task { planned, recorder: recorder.as_ref(), ..Task::new(Mode::APPLY, &about) };
    Ok(carry_out(&ready, view, task, env)?.end(ready))
}

/// Reports drift.
pub(crate) fn check(request: &DriftRequest, env: &ProcessEnv) -> Exit {
    checked(request, env).unwrap_or_else(|exit| exit)
}

fn checked(request: &DriftRequest, env: &ProcessEnv) -> Result<Exit, Exit> {
    let DriftRequest { document, view, about, fleet: _ } = request;
    let ready = get_ready(document, *view, session_for(document, env), (Mode::TEST, &ReconcileOptions::none()))?;
    Ok(carry_out(&ready, *view, Task::new(Mode::TEST, about), env)?.end(ready))
}

/// What is done with a document.
struct Task<'a> {
    mode: Mode,
    /// The plan that users have seen, which must come true.
    planned: Planned,
    recorder: Option<&'a Recorder>,
    /// True if what is done is stored: nothing of it is left out then.
    is_stored: bool,
    /// The files that are written about it.
    about: &'a AboutRun,
}

impl<'a> Task<'a> {
    fn new(mode: Mode, about: &'a AboutRun) -> Self {
        Self { mode, planned: Planned::default(), recorder: None, is_stored: false, about }
    }
}

/// A run that has been carried out and shown.
struct Done {
    run: Run,
    summary: Summary,
}

impl Done {
    /// Ends the command. Taking a large run apart value by value would only take time, as the program ends. It holds no
    /// secret.
    fn end(self, ready: Ready) -> Exit {
        let exit = exit_of(&self.run, &self.summary);
        std::mem::forget((self, ready.prepared));
        exit
    }
}

fn carry_out(ready: &Ready, view: View, task: Task<'_>, env: &ProcessEnv) -> Result<Done, Exit> {
    let Task { mode, planned, recorder, is_stored, about } = task;
    let style = Style::new(view, mode);
    let retention = style.retention(is_stored || recorder.is_some_and(Recorder::is_stated) || about.report.is_some());
    let mut history = about.report.as_deref().map(page::Writer::begin).transpose()?;
    let metrics = about.metrics.as_ref().map(Metrics::begin).transpose()?;
    let mut printer = Printer::new(style, Arc::clone(&ready.prepared.sources));
    let policy = Arc::clone(&ready.policy);
    let mut execution = RunOptions { policy, retention, planned, ..RunOptions::new(mode, ready.width) };
    let recorded = recorder.map(|recorder| recorder.record(ready, &mut execution)).transpose()?;
    let run = written_soon(|| {
        executed(ready, view, execution, |run, event| {
            if let Some(history) = &mut history {
                history.event(event);
            }
            printer.event(run, event);
        })
    })?;
    warn(view, &ready.session.computed_conflicts(&run), &ready.prepared.sources);
    let summary = Summary::of(&run);
    if let (Some(recorder), Some(id)) = (recorder, recorded) {
        recorder.end(&id, &run, &summary);
    }
    match view.output {
        Output::Text => printer.summary(&run, &summary, env.began.elapsed()),
        output => {
            let mut data = json::report(&run, &summary, env.began.elapsed());
            if view.timings {
                data["slowest"] = report::timings_as_json(&run);
            }
            if output == Output::Ndjson {
                let members = data.as_object_mut().map(std::mem::take).unwrap_or_default();
                data = std::iter::once(("event".to_owned(), "report".into())).chain(members).collect();
            }
            data_as(&data, output);
        }
    }
    if view.timings && view.output == Output::Text {
        print(&report::timings(&run));
    }
    if let Some(metrics) = metrics {
        metrics.write(&run, &summary, &ready.prepared.origin)?;
    }
    if let Some(history) = history {
        history.write(&run, ready)?;
    }
    Ok(Done { run, summary })
}

fn executed(
    ready: &Ready,
    view: View,
    execution: RunOptions<'_>,
    mut consumer: impl FnMut(&Run, &Event),
) -> Result<Run, Exit> {
    let execution = execution.consumer(|run, event| {
        if view.events {
            complain_json(&json::event(event));
        }
        if view.output == Output::Ndjson {
            data_line(&json::event(event));
        }
        consumer(run, event);
    });
    ready.session.run(&ready.prepared, execution).map_err(|error| {
        complain(&format!("error: {}", error_chain(&error)));
        Exit::Failed
    })
}

/// The word for a mode on the command line.
fn command_word(mode: Mode) -> &'static str {
    match mode {
        Mode::APPLY => "apply",
        Mode::PLAN => "plan",
        Mode::TEST => "check",
        other => operation_name(other.operation),
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

/// Prints the order and the dependencies.
pub(crate) fn graph(request: &GraphRequest, env: &ProcessEnv) -> Exit {
    graphed(request, env).unwrap_or_else(|exit| exit)
}

fn graphed(request: &GraphRequest, env: &ProcessEnv) -> Result<Exit, Exit> {
    let (document, output) = (&request.document, request.output);
    let session = session_for(document, env);
    if let GraphView::Planned = &request.shows {
        let ready = get_ready(document, View::for_programs(), session, (Mode::PLAN, &ReconcileOptions::none()))?;
        let execution = RunOptions { policy: Arc::clone(&ready.policy), ..RunOptions::new(Mode::PLAN, ready.width) };
        let mut history = History::default();
        let run = executed(&ready, View::for_programs(), execution, |_, event| history.apply(event))?;
        print_exactly(&stead_report::svg(&page::of_run(&run, &history, &ready)));
        return Ok(Exit::Success);
    }
    let (session, prepared) = prepare(document, output, session, Values::Required, Mode::PLAN)?;
    match (&request.shows, output) {
        (GraphView::Why(name), _) => return Ok(why::why(&session, &prepared, name, output)),
        (GraphView::Recorded(run, runs), _) => {
            let history = history::recorded(runs.as_deref(), run)?;
            print_exactly(&page::drawing(&prepared, Some(&history)));
        }
        (GraphView::Drawing(Drawing::Svg), Output::Text) => print_exactly(&page::drawing(&prepared, None)),
        (GraphView::Drawing(language), Output::Text) => print(&drawing::draw(&prepared, *language)),
        (GraphView::Drawing(_) | GraphView::Planned, _) => data_as(&drawing::data(&prepared), output),
    }
    Ok(Exit::Success)
}

/// The instance that an event settles, or settles otherwise.
fn settled(event: &Event) -> Option<stead_core::id::NodeId> {
    match &event.kind {
        EventKind::Settled { instance, .. } | EventKind::Refuted { instance, .. } => Some(instance.node()),
        _ => None,
    }
}
