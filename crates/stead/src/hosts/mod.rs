//! Many machines: inventories of them, and commands that are carried out on them over SSH.

mod delivery;
mod inventory;
mod list;
mod order;
mod outcome;
mod plans;
mod programs;
mod read;
mod ready;
mod remote;
mod run;
mod screen;
mod secrets;
mod ssh;
mod task;

use stead_core::call::Execution;
use stead_engine::ReconcileOptions;

use crate::commands;
use crate::exit::Exit;
use crate::process_env::ProcessEnv;
use crate::request::{
    ApplyRequest, Detail, DocumentRequest, DriftRequest, ExportRequest, FactsRequest, FleetRequest, GetRequest,
    HistoryRequest, HistoryView, Keep, PlanRequest, SetRequest, ShowRequest, View, Volume,
};
use crate::terminal::{Output, complain, is_terminal};
pub(crate) use list::list;
use order::{Operation, Work};
use plans::{PlanOfAll, PlansErrand};
pub(crate) use programs::artifacts;
pub(crate) use remote::remote;
use run::on_many;
use task::{DocumentErrand, Errand, Task};

/// Shows what apply would change, on this machine or on others.
pub(crate) fn plan(request: PlanRequest, env: &ProcessEnv) -> Exit {
    let PlanRequest { document, view, out, fleet: Some(fleet), .. } = request else {
        return commands::plan(&request, env);
    };
    let out = out.and_then(|keep| if let Keep::File(path) = keep { Some(path) } else { None });
    end(&Task { operation: Operation::Plan, errand: Errand::looking(document), view, fleet, out }, env)
}

/// Reports drift of this machine or of others.
pub(crate) fn check(request: DriftRequest, env: &ProcessEnv) -> Exit {
    let DriftRequest { document, view, fleet: Some(fleet), .. } = request else {
        return commands::check(&request, env);
    };
    end(&Task { operation: Operation::Check, errand: Errand::looking(document), view, fleet, out: None }, env)
}

/// Brings this machine or others to the desired state.
pub(crate) fn apply(mut request: ApplyRequest, env: &ProcessEnv) -> Exit {
    let fleet = request.fleet.take();
    match (plans::to_apply(request.document.path()), fleet) {
        (None, None) => commands::apply(request, env),
        (Some(Err(exit)), _) => exit,
        (Some(Ok(plans)), fleet) => {
            let fleet = fleet.unwrap_or_else(|| FleetRequest::of_plan(env.deadline));
            on_plans(plans, request, fleet, env).unwrap_or_else(|exit| exit)
        }
        (None, Some(fleet)) => on_document(request, fleet, env).unwrap_or_else(|exit| exit),
    }
}

fn on_document(request: ApplyRequest, fleet: FleetRequest, env: &ProcessEnv) -> Result<Exit, Exit> {
    check_consent("apply", request.asks && !fleet.is_of_nobody())?;
    let ApplyRequest { document, view, reconcile, recording, .. } = request;
    check_wait(&reconcile)?;
    let errand = Errand::Document(Box::new(DocumentErrand { document, reconcile, recording }));
    on_many(&Task { operation: Operation::Apply, errand, view, fleet, out: None }, env)
}

/// Does what was planned on each machine, or nothing there.
fn on_plans(plans: PlanOfAll, request: ApplyRequest, fleet: FleetRequest, env: &ProcessEnv) -> Result<Exit, Exit> {
    let ApplyRequest { document: DocumentRequest { supplied, parts, system_root, width, .. }, .. } = request;
    let Some(fleet) = fleet.elevated(plans.elevation) else {
        complain("error: this plan was made without '--sudo'; it cannot be applied with it");
        complain("help: apply it without '--sudo', or make a new plan with it");
        return Err(Exit::Unusable);
    };
    let is_whole = parts.only.is_empty() && parts.skip.is_empty() && system_root.is_none();
    if request.about.report.is_some() || request.about.metrics.is_some() {
        complain("error: '--report' and '--metrics' cannot be used with a plan of several machines");
        return Err(Exit::Unusable);
    }
    if !is_whole || supplied.parameters.is_some() || !supplied.files.is_empty() || supplied.root.is_some() {
        complain("error: a saved plan is applied as it is; only its secret parameters can be given, with '--set'");
        return Err(Exit::Unusable);
    }
    let ApplyRequest { view, reconcile, recording, asks, .. } = request;
    check_wait(&reconcile)?;
    let stated = plans.stated(supplied.single)?;
    let errand = PlansErrand { plans, stated, width: width.0, reconcile, recording, asks };
    let errand = Errand::Plans(Box::new(errand));
    on_many(&Task { operation: Operation::Apply, errand, view, fleet, out: None }, env)
}

fn check_wait(reconcile: &ReconcileOptions) -> Result<(), Exit> {
    if reconcile.wait.is_some() {
        complain("error: '--wait' cannot be used with '--host' and '--hosts'");
        return Err(Exit::Unusable);
    }
    Ok(())
}

/// Shows a saved plan, of this machine or of others.
pub(crate) fn show(request: &ShowRequest) -> Exit {
    plans::show(request).unwrap_or_else(|| commands::show(request))
}

/// At a terminal a removal wants consent, and nobody is asked for each of several machines.
fn check_consent(command: &str, asks: bool) -> Result<(), Exit> {
    if !asks || !is_terminal() {
        return Ok(());
    }
    complain(&format!("error: '{command}' does not ask for each of several machines before it removes something"));
    complain("help: look at what would change on these machines, and then pass --yes");
    Err(Exit::Unusable)
}

/// Brings one instance into the desired state, on this machine or on others.
pub(crate) fn set(mut request: SetRequest, env: &ProcessEnv) -> Exit {
    let Some(fleet) = request.fleet.take() else { return commands::set(&request, env) };
    let SetRequest { resource, words, execution, asks, view, .. } = request;
    let what_if = execution == Execution::WhatIf;
    if let Err(exit) = check_consent("set", asks && !what_if && !fleet.is_of_nobody()) {
        return exit;
    }
    let operation = if what_if { Operation::Plan } else { Operation::Apply };
    end(&Task { operation, errand: Errand::Words(Work::Set { resource, words, what_if }), view, fleet, out: None }, env)
}

/// Shows instances of this machine or of others.
pub(crate) fn get(mut request: GetRequest, env: &ProcessEnv) -> Exit {
    let Some(fleet) = request.fleet.take() else { return commands::get(&request, env) };
    let GetRequest { resource, words, output, .. } = request;
    read_on(Work::Get { resource, words }, output, fleet, env)
}

/// Writes a document of all instances that exist, on this machine or on others.
pub(crate) fn export(mut request: ExportRequest, env: &ProcessEnv) -> Exit {
    let Some(fleet) = request.fleet.take() else { return commands::export(&request, env) };
    read_on(Work::Export { words: request.words }, request.output, fleet, env)
}

/// Prints what is known about this machine or others.
pub(crate) fn facts(request: FactsRequest, env: &ProcessEnv) -> Exit {
    match request.fleet {
        Some(fleet) => read_on(Work::Facts { path: request.path }, request.output, fleet, env),
        None => commands::facts(request.path.as_deref(), request.output, env),
    }
}

/// Lists runs that were recorded on this machine or on others, or shows one.
pub(crate) fn history(mut request: HistoryRequest, env: &ProcessEnv) -> Exit {
    let Some(fleet) = request.fleet.take() else { return commands::history(&request) };
    if matches!(request.shows, HistoryView::Page(_)) {
        complain("error: '--html' cannot be used with '--host' and '--hosts'");
        return Exit::Unusable;
    }
    let HistoryRequest { runs, output, shows, .. } = request;
    let (run, newest) = match shows {
        HistoryView::Newest(newest) => (None, newest),
        HistoryView::Run(run, _) | HistoryView::Page(run) => (Some(run), 0),
        HistoryView::Difference(..) => {
            complain("error: 'history diff' compares runs of this machine, not of others");
            return Exit::Unusable;
        }
    };
    read_on(Work::History { runs, run, newest }, output, fleet, env)
}

fn read_on(work: Work, output: Output, fleet: FleetRequest, env: &ProcessEnv) -> Exit {
    let (volume, detail) = (Volume::Usual, Detail::Full);
    let view = View { output, volume, detail, events: false, timings: false };
    end(&Task { operation: Operation::Read, errand: Errand::Words(work), view, fleet, out: None }, env)
}

fn end(task: &Task, env: &ProcessEnv) -> Exit {
    on_many(task, env).unwrap_or_else(|exit| exit)
}
