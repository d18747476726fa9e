//! `agent report --out`: the reports of this machine as signed files.

use std::path::Path;

use serde_json::json;
use stead_agent::call;
use stead_agent::control::{SignReports, SignedReports};
use stead_core::diag::counted;
use stead_engine::error_chain;
use stead_system::fs::FsError;

use super::Client;
use crate::commands::files;
use crate::exit::Exit;
use crate::terminal::{Output, complain, data_as, print};

/// How many reports the agent signs for one answer.
const AT_ONCE: usize = 20;

impl Client {
    /// Writes the reports from a number on to a folder. Those whose files are there are not written again.
    pub(super) fn write_reports(&self, folder: &Path, after: u64) -> Exit {
        let (mut next, mut written) = (after, 0);
        loop {
            let question = SignReports { after: next, most: AT_ONCE };
            let SignedReports { reports, next: behind } = match self.answered(call(&self.directory, question)) {
                Ok(answered) => answered.answer,
                Err(exit) => return exit,
            };
            for report in &reports {
                match write(folder, &report.name, &report.text) {
                    Ok(is_new) => written += usize::from(is_new),
                    Err(error) => {
                        complain(&format!("error: {}", error_chain(&error)));
                        return Exit::Failed;
                    }
                }
            }
            if behind == next {
                break;
            }
            next = behind;
        }
        match self.output {
            Output::Text => print(&format!("{}: {} written\n", folder.display(), counted(written, "report"))),
            output => data_as(&json!({ "version": 1, "written": written, "next": next }), output),
        }
        Exit::Success
    }
}

/// Returns whether the file was not there.
fn write(folder: &Path, name: &str, text: &str) -> Result<bool, FsError> {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    files::create_directory(&folder)?;
    files::create(&folder.join(name), text.as_bytes(), 0o644)
}
