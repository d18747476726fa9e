//! The side of the machine: an order comes over standard input, and is carried out as the command of a user would be.

use std::io::{self, BufRead, Read};
use std::path::PathBuf;
use std::sync::Arc;

use stead_core::bundle::{Bundle, Reach};
use stead_engine::Parts;
use stead_system::interrupt;
use stead_system::process::Environment;

use super::order::{LONGEST, Operation, Order, PROTOCOL};
use crate::commands;
use crate::exit::Exit;
use crate::process_env::ProcessEnv;
use crate::request::{
    ApplyRequest, Detail, DocumentRequest, DriftRequest, MadeDocument, Origin, PlanRequest, RecordingRequest, Supplied,
    View, Volume, Width,
};
use crate::terminal::{Output, complain};

/// Carries out the order on standard input. Its end asks to end: whoever gave the order is gone.
pub(crate) fn remote(env: &ProcessEnv) -> Exit {
    match read() {
        Ok((order, bundle)) => {
            // The thread ends with the process.
            std::thread::spawn(end_with_input);
            carry_out(order, Arc::new(bundle), env)
        }
        Err(why) => {
            complain(&format!("error: cannot read what is to be done: {why}"));
            Exit::Failed
        }
    }
}

fn read() -> Result<(Order, Bundle), String> {
    let mut input = io::stdin().lock();
    let mut line = Vec::new();
    input.by_ref().take(LONGEST as u64).read_until(b'\n', &mut line).map_err(|error| error.to_string())?;
    // The text of an error of JSON could hold a secret.
    let order: Order = serde_json::from_slice(&line).map_err(|_| "it is not an order".to_owned())?;
    if order.protocol != PROTOCOL {
        return Err(format!("unsupported protocol version {}", order.protocol));
    }
    let mut bytes = Vec::new();
    input.take(order.bundle.min(LONGEST * 2) as u64).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let bundle = Bundle::decode(&bytes, Reach::Folder, None).map_err(|error| error.to_string())?;
    Ok((order, bundle))
}

/// Asks this process to end once standard input does.
fn end_with_input() {
    let mut rest = [0; 64];
    while io::stdin().lock().read(&mut rest).is_ok_and(|bytes| bytes > 0) {}
    let _ = interrupt::raise();
}

fn carry_out(order: Order, bundle: Arc<Bundle>, env: &ProcessEnv) -> Exit {
    let Order { operation, identity, parameters, only, skip, width, system_root, reconcile, record, .. } = order;
    // Where somebody who logs in would be.
    let home = Environment::of_this_process(&[]).get("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from);
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
    let view = View { output: Output::Json, volume: Volume::Usual, detail: Detail::Full, events: true, timings: false };
    let (report, fleet) = (None, None);
    match operation {
        Operation::Plan => commands::plan(&PlanRequest { document, view, report, out: None, fleet }, env),
        Operation::Check => commands::check(&DriftRequest { document, view, report, fleet }, env),
        Operation::Apply => {
            let recording = record.map(|record| RecordingRequest { keep: record.keep, runs: record.runs });
            let request =
                ApplyRequest { document, view, report, asks: false, reconcile: reconcile.into(), recording, fleet };
            commands::apply(request, env)
        }
    }
}
