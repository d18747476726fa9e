//! Signals, and what else may end this process early.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use stead_system::Cancel;
use stead_system::interrupt::{self, Notice, Runs};
use stead_system::process::{self, Supervision};

use crate::exit::Exit;
use stead_engine::Session;

/// The first argument of the process that ends programs of resources when this process is killed.
pub(crate) const SUPERVISE: &str = "__supervise";

/// Prepares for an end at any time: no core file holds secrets, no program of a resource outlives this process, and a
/// limit on the size of files (`ulimit -f`) makes writing fail in place of ending the process.
pub(crate) fn prepare() -> Supervision {
    // The limit that is the last resort can always be lowered.
    let _ = process::forbid_core_dumps();
    interrupt::survive_file_limits();
    process::start_supervision(Path::new("/proc/self/exe"), &[SUPERVISE])
}

/// Lets Ctrl-C, and the end of the terminal, end in order what is under way; a second one ends the program.
///
/// Programs of resources are in process groups of their own, so that whoever presses Ctrl-C reaches this program alone.
/// To be called once: the second call would take the first signal for a second one.
///
/// What this program was started to ignore, as `nohup` has it ignore the end of the terminal, stays ignored.
pub(crate) fn catch(session: &Session) {
    catch_with(session.cancel());
}

/// The same for what has no session of its own.
pub(crate) fn catch_with(cancel: &Cancel) {
    interrupt::catch(cancel, CODE);
}

/// For the agent; [`interrupt::catch_for_agent`] says what is otherwise.
pub(crate) fn catch_for_agent(stop: &Cancel, look: &Arc<AtomicBool>, is_service: bool) {
    let runs = if is_service { Runs::AsService } else { Runs::AtTerminal };
    interrupt::catch_for_agent(stop, look, runs, CODE);
}

/// Like [`catch_with`], with a notice that can be waited for.
pub(crate) fn notice(cancel: &Cancel) -> io::Result<Notice> {
    Notice::catch(cancel, CODE)
}

/// The exit code after an early end.
const CODE: i32 = 6;

/// What a command ends with, unless it was to end early.
pub(crate) fn exit(cancel: &Cancel, exit: Exit) -> Exit {
    if cancel.is_cancelled() { Exit::Cancelled } else { exit }
}
