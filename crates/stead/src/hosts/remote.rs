//! The side of the machine: an order comes over standard input, and is carried out as the command of a user would be.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use serde_json::Value as Json;
use stead_core::bundle::{Bundle, Reach};
use stead_core::call::Execution;
use stead_core::value::Sensitive;
use stead_engine::{Parts, SavedPlan, error_chain};
use stead_system::interrupt;
use stead_system::process::Environment;

use super::order::{DocumentWork, LONGEST, Operation, Order, PROTOCOL, PlanWork, Record, Reply, Work};
use super::secrets::Asking;
use crate::commands;
use crate::exit::Exit;
use crate::input;
use crate::process_env::ProcessEnv;
use crate::request::{
    AboutRun, ApplyRequest, Detail, DocumentRequest, DriftRequest, ExportRequest, GetRequest, HistoryRequest,
    HistoryView, Keep, MadeDocument, Origin, PlanRequest, SetRequest, Supplied, View, Volume, Width,
};
use crate::terminal::{Output, complain};

/// Carries out the order on standard input. Its end asks to end: whoever gave the order is gone.
pub(crate) fn remote(mut env: ProcessEnv) -> Exit {
    // Where somebody who logs in would be: the program was started where it lies.
    let home = Environment::of_this_process(&[]).get("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from);
    let _ = std::env::set_current_dir(&home);
    match read() {
        Ok((Work::Document(work), Some(bundle))) => {
            watch_input(work.record.as_ref(), work.asks, &mut env);
            of_document(*work, Arc::new(bundle), home, &env)
        }
        Ok((Work::Plan(work), _)) => {
            watch_input(work.record.as_ref(), work.asks, &mut env);
            of_plan(*work, &home, &env)
        }
        Ok((work, _)) => {
            watch_input(None, false, &mut env);
            of_words(work, &env)
        }
        Err(why) => {
            complain(&format!("error: cannot read what is to be done: {why}"));
            Exit::Failed
        }
    }
}

fn read() -> Result<(Work, Option<Bundle>), String> {
    let mut input = io::stdin().lock();
    let line = input::line(&mut input, LONGEST).map_err(|error| error.to_string())?;
    // The text of an error of JSON could hold a secret.
    let not_an_order = || "it is not an order".to_owned();
    let order: Json = serde_json::from_slice(&line).map_err(|_| not_an_order())?;
    match &order["protocol"] {
        Json::Number(version) if version.as_u64() != Some(PROTOCOL.into()) => {
            return Err(format!("unsupported protocol version {version}"));
        }
        _ => {}
    }
    let order: Order = serde_json::from_value(order).map_err(|_| not_an_order())?;
    if order.bundle == 0 {
        return Ok((order.work, None));
    }
    let mut bytes = Vec::new();
    input.take(order.bundle.min(LONGEST * 2) as u64).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let bundle = Bundle::decode(&bytes, Reach::Folder, None).map_err(|error| error.to_string())?;
    Ok((order.work, Some(bundle)))
}

/// Has the end of standard input end this process, unless the run goes on without its caller, and its lines answer what a run asks.
fn watch_input(record: Option<&Record>, asks: bool, env: &mut ProcessEnv) {
    let detaches = record.is_some_and(|record| record.detaches);
    let (sender, answers) = sync_channel(1);
    if asks {
        env.host = env.host.with_secrets(Asking::source((!detaches).then_some(answers)));
    }
    if !detaches {
        // The thread ends with the process.
        std::thread::spawn(move || end_with_input(&sender));
    }
}

/// Hands on the answers in standard input, and asks this process to end once that ends. Other lines are passed over.
fn end_with_input(answers: &SyncSender<Reply>) {
    while let Ok(line) = input::line(&mut io::stdin().lock(), LONGEST)
        && !line.is_empty()
    {
        let read = Sensitive::new(line);
        if let Ok(reply) = serde_json::from_slice(read.expose()) {
            // Nobody may be waiting: a second answer to one question has no place.
            let _ = answers.try_send(reply);
        }
    }
    let _ = interrupt::raise();
}

const VIEW: View =
    View { output: Output::Json, volume: Volume::Usual, detail: Detail::Full, events: true, timings: false };

fn of_document(work: DocumentWork, bundle: Arc<Bundle>, home: PathBuf, env: &ProcessEnv) -> Exit {
    let DocumentWork {
        operation, identity, parameters, only, skip, width, system_root, reconcile, record, saves, ..
    } = work;
    let (name, text) = bundle.document();
    let (name, text) = (name.to_owned(), text.to_string());
    let made = MadeDocument { path: home.join(&name), name, text, bundle: Some(bundle), identity: Some(identity) };
    let document = DocumentRequest {
        origin: Origin::Made(made),
        supplied: Supplied { parameters: Some(parameters.to_string()), root: Some(home), ..Supplied::default() },
        parts: Parts { only, skip },
        system_root,
        width: Width(width),
    };
    let (view, about, fleet) = (VIEW, AboutRun::default(), None);
    match operation {
        Operation::Plan => {
            let out = saves.then_some(Keep::Printed);
            commands::plan(&PlanRequest { document, view, about, out, fleet }, env)
        }
        Operation::Check | Operation::Read => commands::check(&DriftRequest { document, view, about, fleet }, env),
        Operation::Apply => {
            let (plan, asks, reconcile, recording) = (None, false, reconcile.into(), record.map(Into::into));
            let request = ApplyRequest { document, view, about, plan, asks, reconcile, recording, fleet };
            commands::apply(request, env)
        }
    }
}

fn of_plan(work: PlanWork, home: &Path, env: &ProcessEnv) -> Exit {
    let PlanWork { plan, secrets, width, reconcile, record, .. } = work;
    let plan = match SavedPlan::read(&plan) {
        Ok(plan) => Some(Box::new(plan)),
        Err(error) => {
            complain(&format!("error: {}", error_chain(&error)));
            return Exit::Unusable;
        }
    };
    let document = DocumentRequest {
        origin: Origin::of_text(&home.join("plan"), String::new()),
        supplied: Supplied { single: secrets.into_iter().collect(), ..Supplied::default() },
        width: Width(width),
        ..DocumentRequest::on_command_line(String::new())
    };
    let (view, about, asks, fleet) = (VIEW, AboutRun::default(), false, None);
    let (reconcile, recording) = (reconcile.into(), record.map(Into::into));
    commands::apply(ApplyRequest { document, view, about, plan, asks, reconcile, recording, fleet }, env)
}

fn of_words(work: Work, env: &ProcessEnv) -> Exit {
    let (output, fleet) = (Output::Json, None);
    match work {
        Work::Document(_) | Work::Plan(_) => {
            complain("error: cannot read what is to be done: there is no document");
            Exit::Failed
        }
        Work::Get { resource, words } => commands::get(&GetRequest { resource, words, output, fleet }, env),
        Work::Export { words } => commands::export(&ExportRequest { words, output, fleet }, env),
        Work::Facts { path } => commands::facts(path.as_deref(), output, env),
        Work::Set { resource, words, what_if } => {
            let execution = if what_if { Execution::WhatIf } else { Execution::Actual };
            commands::set(&SetRequest { resource, words, execution, asks: false, view: VIEW, fleet }, env)
        }
        Work::History { runs, run, newest } => {
            let shows = run.map_or(HistoryView::Newest(newest), |run| HistoryView::Run(run, Detail::Full));
            commands::history(&HistoryRequest { runs, output, shows, fleet })
        }
    }
}
