//! Signals, and what else may end this process early.

use std::ffi::c_int;
use std::fs;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXFSZ};
use stead_system::Cancel;
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
    // A handler is enough; programs would inherit an ignored signal, but not a handler.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    process::start_supervision(Path::new("/proc/self/exe"), &[SUPERVISE])
}

/// Lets Ctrl-C, and the end of the terminal, end in order what is under way; a second one ends the program.
///
/// Programs of resources are in process groups of their own, so that whoever presses Ctrl-C reaches this program alone.
/// To be called once: the second call would take the first signal for a second one.
///
/// What this program was started to ignore, as `nohup` has it ignore the end of the terminal, stays ignored.
pub(crate) fn catch(session: &Session) {
    catch_with(&session.cancel);
}

/// The same for what has no session of its own.
pub(crate) fn catch_with(cancel: &Cancel) {
    let flag = cancel.flag();
    for signal in signals() {
        // Without a handler Ctrl-C ends the program at once, which is what it does without us, too.
        let _ = signal_hook::flag::register_conditional_shutdown(signal, CODE, flag.clone());
        let _ = signal_hook::flag::register(signal, flag.clone());
    }
}

/// For the agent. A request to end is one however often it comes; only Ctrl-C ends it at once when it is repeated. Signals by which
/// agents are asked elsewhere to look at everything have it do that. To a service the end of a terminal is such a signal, since it has
/// none: services are asked so to reload.
pub(crate) fn catch_for_agent(stop: &Cancel, look: &Arc<AtomicBool>, is_service: bool) {
    let ignored = ignored();
    let flag = stop.flag();
    let heeded = |signal: &c_int| !is_in(ignored, *signal);
    if heeded(&SIGINT) {
        let _ = signal_hook::flag::register_conditional_shutdown(SIGINT, CODE, flag.clone());
    }
    let is_reload = |signal: &c_int| *signal == SIGHUP && is_service;
    for signal in [SIGINT, SIGTERM, SIGHUP].into_iter().filter(heeded).filter(|signal| !is_reload(signal)) {
        let _ = signal_hook::flag::register(signal, flag.clone());
    }
    let others = [SIGHUP].into_iter().filter(is_reload);
    for signal in [SIGUSR1, SIGUSR2, SIGALRM].into_iter().chain(others).filter(heeded) {
        let _ = signal_hook::flag::register(signal, Arc::clone(look));
    }
}

/// Like [`catch_with`], and a stream that becomes readable when this process is to end early.
pub(crate) fn notice(cancel: &Cancel) -> io::Result<UnixStream> {
    catch_with(cancel);
    let (noticed, mut by_handler) = UnixStream::pair()?;
    for signal in signals() {
        signal_hook::low_level::pipe::register(signal, by_handler.try_clone()?)?;
    }
    // A signal may have come between the two.
    if cancel.is_cancelled() {
        by_handler.write_all(&[0])?;
    }
    Ok(noticed)
}

/// Waits until one of these can be read; whether that is the notice that this process is to end.
pub(crate) fn ends_before_input(notice: &UnixStream, input: Option<&dyn AsFd>) -> bool {
    loop {
        let mut awaited: Vec<_> = [
            Some(PollFd::new(notice, PollFlags::IN)),
            input.map(|input| PollFd::from_borrowed_fd(input.as_fd(), PollFlags::IN)),
        ]
        .into_iter()
        .flatten()
        .collect();
        match poll(&mut awaited, None) {
            Err(Errno::INTR) => {}
            // What cannot be waited for is read, which says why.
            Err(_) => return input.is_none(),
            Ok(_) => return awaited.first().is_some_and(|notice| !notice.revents().is_empty()),
        }
    }
}

/// The exit code after an early end.
const CODE: i32 = 6;

/// What a command ends with, unless it was to end early.
pub(crate) fn exit(cancel: &Cancel, exit: Exit) -> Exit {
    if cancel.is_cancelled() { Exit::Cancelled } else { exit }
}

/// The signals that end this process early.
fn signals() -> impl Iterator<Item = i32> {
    let ignored = ignored();
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(move |signal| !is_in(ignored, *signal))
}

/// The signals that are ignored, a bit each; none where that is not known.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}

fn is_in(signals: u64, signal: i32) -> bool {
    u32::try_from(signal - 1).is_ok_and(|bit| signals.checked_shr(bit).unwrap_or_default() & 1 == 1)
}
