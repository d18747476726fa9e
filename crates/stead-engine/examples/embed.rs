//! stead as a library: plans a document, applies it, and prints every event.
//!
//! `cargo run -p stead-engine --example embed -- web.yaml`

use std::error::Error;
use std::io::{Write, stdout};
use std::path::Path;

use stead_core::event::{Event, Mode};
use stead_core::run::Run;
use stead_core::value::Object;
use stead_engine::{Execution, Host, HostOptions, finding_line, folder_of};

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args_os().nth(1).ok_or("usage: embed DOCUMENT")?;
    plan_and_apply(Path::new(&file), &mut stdout())
}

/// Fails where the document cannot be used, or a run cannot be carried out. What instances failed at is in the events.
pub(crate) fn plan_and_apply(file: &Path, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let host = Host::new(HostOptions::default());
    let mut session = host.session(folder_of(file));
    let text = std::fs::read_to_string(file)?;
    let prepared = session.prepare(&file.to_string_lossy(), &text, Object::new()).map_err(|unusable| {
        let lines = unusable.findings.iter().map(|finding| finding_line(finding, &session.sources));
        lines.collect::<Vec<_>>().join("\n")
    })?;
    for mode in [Mode::PLAN, Mode::APPLY] {
        let mut events = Vec::new();
        let keep = |_: &Run, event: &Event| events.push(event.clone());
        let run = session.run(&prepared, Execution::new(mode, host.width()).consumer(keep))?;
        for event in &events {
            writeln!(out, "{}", serde_json::to_string(event)?)?;
        }
        writeln!(out, "{:?}", run.totals())?;
    }
    Ok(())
}
