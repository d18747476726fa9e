//! stead as a library: applies documents with a reconciler and a pending rule of one's own, and prints their reports.
//!
//! `cargo run -p stead-engine --example batch -- first.yaml second.yaml`

use std::error::Error;
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use stead_engine::policy::{Attempt, PendingRule, Reconciler, Wait};
use stead_engine::{Batch, BatchDocument, Host, HostOptions, error_chain};

/// Pending is what is waited for, for up to ten re-runs. Other failures are final.
struct Waits;

impl PendingRule for Waits {
    fn is_pending(&self, attempt: &Attempt<'_>, _: Duration) -> bool {
        attempt.retries < 10 && (attempt.is_working() || attempt.reason().contains("there is no file"))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let files: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    apply(&files, &mut stdout())
}

/// Fails where a document is refused; then nothing was applied.
pub(crate) fn apply(files: &[PathBuf], out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let host = Host::new(HostOptions::default());
    let documents = files.iter().map(|file| BatchDocument::read(file)).collect::<Result<_, _>>()?;
    let wait = Some(Wait::fixed(Duration::from_millis(50)));
    // A reconciler that differs in more than its rule and its waits implements `Policy`.
    let reconciler = Reconciler { rule: Arc::new(Waits), wait, ..Reconciler::continuous(0) };
    let batch = Batch { policy: Some(Arc::new(reconciler)), ..Batch::apply(documents, &host) };
    for result in batch.run(&host)? {
        match result.outcome {
            Ok(completed) => writeln!(out, "{}: {}", result.name, completed.json)?,
            Err(error) => writeln!(out, "{}: {}", result.name, error_chain(&error))?,
        }
    }
    Ok(())
}
