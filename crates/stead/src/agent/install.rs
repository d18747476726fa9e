//! `agent install`.

use std::path::Path;

use crate::exit::Exit;
use crate::output::{complain, print};

/// Installs this program as a service, or prints the unit that does.
pub(super) fn install(directory: &Path, print_only: bool) -> Exit {
    let program = std::env::current_exe().unwrap_or_else(|_| "/usr/bin/stead".into());
    let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    if print_only {
        print(&stead_agent::unit(&program, &directory));
        return Exit::Success;
    }
    match stead_agent::install(&program, &directory) {
        Ok(unit) => {
            print(&format!("{unit} is installed; the agent is running\n"));
            Exit::Success
        }
        Err(message) => {
            complain(&format!("error: {message}"));
            Exit::Failed
        }
    }
}
