//! Many machines: inventories of them, and commands that are carried out on them over SSH.

mod inventory;
mod order;
mod outcome;
mod plans;
mod read;
mod remote;
mod run;
mod screen;
mod ssh;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::json;
use stead_core::call::Execution;
use stead_engine::ReconcileOptions;
use stead_hosts::Machine;
use stead_system::Cancel;

use crate::commands;
use crate::exit::Exit;
use crate::interrupt;
use crate::process_env::ProcessEnv;
use crate::request::{
    ApplyRequest, Detail, DocumentRequest, DriftRequest, ExportRequest, FactsRequest, FleetRequest, GetRequest,
    HistoryRequest, HistoryView, HostsRequest, Keep, PlanRequest, SetRequest, ShowRequest, View, Volume,
};
use crate::terminal::{Output, complain, data_as, is_terminal, print, print_coloured, table, width};
use order::{Operation, Work};
use plans::{PlanOfAll, PlansErrand};
pub(crate) use remote::remote;
use run::{DocumentErrand, Errand, Task, on_many};
use ssh::Ssh;

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
    check_consent("apply", request.asks)?;
    let ApplyRequest { document, view, reconcile, recording, .. } = request;
    check_wait(&reconcile)?;
    let errand = Errand::Document(Box::new(DocumentErrand { document, reconcile, recording }));
    on_many(&Task { operation: Operation::Apply, errand, view, fleet, out: None }, env)
}

/// Does what was planned on each machine, or nothing there.
fn on_plans(plans: PlanOfAll, request: ApplyRequest, fleet: FleetRequest, env: &ProcessEnv) -> Result<Exit, Exit> {
    let ApplyRequest { document: DocumentRequest { supplied, parts, system_root, width, .. }, .. } = request;
    let Some(fleet) = fleet.elevated(plans.elevation) else {
        complain("error: the plan was made without '--sudo', and is not done with it");
        complain("help: make a new plan with '--sudo'");
        return Err(Exit::Unusable);
    };
    let is_whole = parts.only.is_empty() && parts.skip.is_empty() && system_root.is_none();
    if request.about.report.is_some() || request.about.metrics.is_some() {
        complain("error: '--report' and '--metrics' cannot be used with a plan of several machines");
        return Err(Exit::Unusable);
    }
    if !is_whole || supplied.parameters.is_some() || !supplied.files.is_empty() || supplied.root.is_some() {
        complain("error: a saved plan is done as it is: of parameters only the secret ones can be given, with '--set'");
        return Err(Exit::Unusable);
    }
    let ApplyRequest { view, reconcile, recording, .. } = request;
    check_wait(&reconcile)?;
    let stated = plans.stated(supplied.single)?;
    let errand = PlansErrand { plans, stated, width: width.0, reconcile, recording };
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
    if let Err(exit) = check_consent("set", asks && !what_if) {
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
        HistoryView::Run(run) | HistoryView::Page(run) => (Some(run), 0),
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

/// Lists the machines of an inventory.
pub(crate) fn list(request: &HostsRequest, env: &ProcessEnv) -> Exit {
    listed(request, env).unwrap_or_else(|exit| exit)
}

fn listed(request: &HostsRequest, env: &ProcessEnv) -> Result<Exit, Exit> {
    let cancel = Cancel::default();
    interrupt::catch_with(&cancel);
    let machines = inventory::selected(&request.inventory, request.filter.as_deref(), env, &cancel)?;
    let found = if request.tries { Some(connections(&machines, env, &cancel)?) } else { None };
    match request.output {
        Output::Text if machines.is_empty() => print("no machine matches\n"),
        Output::Text => print_coloured(&listing(&machines, found.as_deref())),
        output => {
            let found = found.iter().flatten().map(Some).chain(std::iter::repeat(None));
            let machines: Vec<_> =
                machines.iter().zip(found).map(|(machine, found)| of_machine(machine, found)).collect();
            data_as(&json!({ "version": 1, "machines": machines }), output);
        }
    }
    let is_reached = found.iter().flatten().all(Result::is_ok);
    Ok(interrupt::exit(&cancel, if is_reached { Exit::Success } else { Exit::Failed }))
}

/// The connection to a machine: why there is none.
type Connection = Result<(), String>;

/// Tries the connections, some at once.
fn connections(machines: &[Machine], env: &ProcessEnv, cancel: &Cancel) -> Result<Vec<Connection>, Exit> {
    const AT_ONCE: usize = 25;
    let ssh = Ssh::find(env).map_err(|why| {
        complain(&format!("error: {why}"));
        Exit::Failed
    })?;
    let (next, found) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(machines.len()) {
            scope.spawn(|| {
                let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|_| !cancel.is_cancelled());
                while let Some((at, machine)) = take().and_then(|at| Some((at, machines.get(at)?))) {
                    let connection = ssh.try_connection(&machine.destination, cancel);
                    found.lock().unwrap_or_else(PoisonError::into_inner).insert(at, connection);
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let connection = |at: usize| found.remove(&at).unwrap_or_else(|| Err("it was not tried".to_owned()));
    Ok((0..machines.len()).map(connection).collect())
}

fn listing(machines: &[Machine], found: Option<&[Connection]>) -> String {
    let mut rows: Vec<Vec<String>> = machines.iter().map(row).collect();
    let mut headings = vec!["Name", "Address", "Labels"];
    if let Some(found) = found {
        headings.push("Connection");
        for (row, connection) in rows.iter_mut().zip(found) {
            row.push(connection.as_ref().map_or_else(Clone::clone, |()| "ok".to_owned()));
        }
    }
    table(&headings, &rows, width(&std::io::stdout()))
}

fn row(machine: &Machine) -> Vec<String> {
    let Machine { name, destination, labels, .. } = machine;
    let user = destination.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
    let port = destination.port.map(|port| format!(" port {port}")).unwrap_or_default();
    let labels: Vec<String> = labels.iter().map(|(label, value)| format!("{label}={value}")).collect();
    vec![name.to_string(), format!("{user}{}{port}", destination.address), labels.join(" ")]
}

/// A machine as data. Of parameters only the names: a value may be a secret.
fn of_machine(machine: &Machine, connection: Option<&Connection>) -> serde_json::Value {
    let Machine { name, destination, labels, parameters } = machine;
    let mut data = json!({
        "name": name.as_str(),
        "address": destination.address.as_str(),
        "user": destination.user.as_ref().map(stead_hosts::UserName::as_str),
        "port": destination.port,
        "labels": labels,
        "parameters": parameters.keys().collect::<Vec<_>>(),
    });
    if let (Some(members), Some(connection)) = (data.as_object_mut(), connection) {
        members.insert("reached".to_owned(), connection.is_ok().into());
        members.extend(connection.as_ref().err().map(|why| ("message".to_owned(), why.as_str().into())));
    }
    data
}
