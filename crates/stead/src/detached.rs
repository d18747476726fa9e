//! A run that goes on without whoever asked for it.

use stead_host::journal::RunId;

use crate::terminal::print_now;

/// How a line begins that a program elsewhere says to the one here.
pub(crate) const MARK: &str = "stead-hosts ";

/// The words with which a run says that it goes on without its caller; its name is behind them.
pub(crate) const DETACHED: &str = "detached";

/// Lets go of whoever asked for a run, once it has a name.
pub(crate) fn detach(run: &RunId) {
    print_now(&format!("{MARK}{DETACHED} {run}"), || {});
    // What is printed from now on is for nobody; a pipe that is closed would end the run.
    let _ = stead_system::terminal::leave();
}
