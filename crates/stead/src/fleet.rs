//! `fleet`: the program `stead-fleet`, in the place of this one.

use std::ffi::OsString;
use std::path::PathBuf;

use stead_system::process::{Environment, Executable, become_program};

use crate::exit::Exit;
use crate::terminal::complain;

const PROGRAM: &str = "stead-fleet";

/// Starts the program with these words: the one beside this program, or else the first on the path. Root runs none that others can
/// change.
pub(crate) fn start(words: &[OsString]) -> Exit {
    let own = std::env::current_exe().ok();
    let folder = own.and_then(|own| own.parent().map(PathBuf::from)).unwrap_or_default();
    let found = Executable::find(PROGRAM, &folder, &Environment::of_this_process(&[]));
    let (why, help) = match found {
        None => ("is not installed".to_owned(), Some("it is a program of its own: install it where 'stead' is")),
        Some(Err(refused)) => (refused.reason(), None),
        Some(Ok(program)) => (format!("cannot be started: {}", become_program(&program, words)), None),
    };
    complain(&format!("error: '{PROGRAM}' {why}"));
    if let Some(help) = help {
        complain(&format!("help: {help}"));
    }
    Exit::Failed
}
