//! `agent install`.

use std::path::{Path, PathBuf};

use crate::exit::Exit;
use crate::terminal::{complain, print};

/// Installs this program as a service.
pub(super) fn install(directory: &Path) -> Exit {
    let (program, directory) = installed(directory);
    match stead_agent::install(&program, &directory) {
        Ok(unit) => {
            print(&format!("{} is installed; the agent is running\n", unit.display()));
            Exit::Success
        }
        Err(message) => {
            complain(&format!("error: {message}"));
            Exit::Failed
        }
    }
}

/// Prints the unit of the service.
pub(super) fn print_unit(directory: &Path) -> Exit {
    let (program, directory) = installed(directory);
    print(&stead_agent::unit(&program, &directory));
    Exit::Success
}

/// The program and the state directory that the unit names.
fn installed(directory: &Path) -> (PathBuf, PathBuf) {
    let program = std::env::current_exe().unwrap_or_else(|_| "/usr/bin/stead".into());
    (program, std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned()))
}
