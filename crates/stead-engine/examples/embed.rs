//! stead as a library: plans a document, applies it, and prints every event.
//!
//! `cargo run -p stead-engine --example embed -- web.yaml`

use std::error::Error;
use std::io::{Write, stdout};
use std::path::Path;

use stead_engine::{Event, Host, HostOptions, Mode, Object, Run, RunOptions, folder_of};

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args_os().nth(1).ok_or("usage: embed DOCUMENT")?;
    plan_and_apply(Path::new(&file), &mut stdout())
}

/// Fails where the document cannot be used, or a run cannot be carried out. What instances failed at is in the events.
pub(crate) fn plan_and_apply(file: &Path, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let host = Host::new(HostOptions::default());
    let mut session = host.session(folder_of(file));
    let text = std::fs::read_to_string(file)?;
    // What is wrong with it is in the error, with the lines.
    let prepared = session.prepare_checked(&file.to_string_lossy(), text, Object::new(), Mode::APPLY)?;
    for mode in [Mode::PLAN, Mode::APPLY] {
        let mut events = Vec::new();
        let keep = |_: &Run, event: &Event| events.push(event.clone());
        let run = session.run(&prepared, RunOptions::new(mode, host.width()).consumer(keep))?;
        for event in &events {
            writeln!(out, "{}", serde_json::to_string(event)?)?;
        }
        writeln!(out, "{:?}", run.totals())?;
    }
    Ok(())
}
