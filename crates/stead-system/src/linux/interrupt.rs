//! Requests from outside that this process end, or look at everything anew.

use std::ffi::c_int;
use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXFSZ};

use super::fs::AsHandle;
use crate::cancel::Cancel;

/// Makes writing fail in place of ending the process where the size of files is limited (`ulimit -f`).
pub fn survive_file_limits() {
    // A handler is enough; programs would inherit an ignored signal, but not a handler.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

/// Lets Ctrl-C, and the end of the terminal, cancel what is under way; a second one ends the process with this exit code.
///
/// To be called once: the second call would take the first signal for a second one. What this program was started to ignore, as
/// `nohup` has it ignore the end of the terminal, stays ignored.
pub fn catch(cancel: &Cancel, code: i32) {
    let flag = cancel.flag();
    for signal in signals() {
        // Without a handler Ctrl-C ends the program at once, which is what it does without us, too.
        let _ = signal_hook::flag::register_conditional_shutdown(signal, code, flag.clone());
        let _ = signal_hook::flag::register(signal, flag.clone());
    }
}

/// Asks this process to end, by the first signal for that which it was not started to ignore.
pub fn raise() -> io::Result<()> {
    signals().next().map_or(Ok(()), signal_hook::low_level::raise)
}

/// The way in which an agent was started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Runs {
    /// The service manager of the system.
    AsService,
    /// Somebody who may have a terminal.
    AtTerminal,
}

/// Like [`catch`], for an agent. A request to end is one however often it comes; only Ctrl-C ends it at once when it is repeated.
/// Signals by which agents are asked elsewhere to look at everything set `look`. To a service the end of a terminal is such a
/// signal, since it has none: services are asked so to reload.
pub fn catch_for_agent(stop: &Cancel, look: &Arc<AtomicBool>, runs: Runs, code: i32) {
    let ignored = ignored();
    let flag = stop.flag();
    let heeded = |signal: &c_int| !is_in(ignored, *signal);
    if heeded(&SIGINT) {
        let _ = signal_hook::flag::register_conditional_shutdown(SIGINT, code, flag.clone());
    }
    let is_reload = |signal: &c_int| *signal == SIGHUP && runs == Runs::AsService;
    for signal in [SIGINT, SIGTERM, SIGHUP].into_iter().filter(heeded).filter(|signal| !is_reload(signal)) {
        let _ = signal_hook::flag::register(signal, flag.clone());
    }
    let others = [SIGHUP].into_iter().filter(is_reload);
    for signal in [SIGUSR1, SIGUSR2, SIGALRM].into_iter().chain(others).filter(heeded) {
        let _ = signal_hook::flag::register(signal, Arc::clone(look));
    }
}

/// The notice that this process is to end early, which can be waited for together with an input.
pub struct Notice(UnixStream);

impl Notice {
    /// Like [`catch`], with a notice.
    pub fn catch(cancel: &Cancel, code: i32) -> io::Result<Self> {
        catch(cancel, code);
        let (noticed, mut by_handler) = UnixStream::pair()?;
        for signal in signals() {
            signal_hook::low_level::pipe::register(signal, by_handler.try_clone()?)?;
        }
        // A signal may have come between the two.
        if cancel.is_cancelled() {
            by_handler.write_all(&[0])?;
        }
        Ok(Self(noticed))
    }

    /// Returns this notice for another thread.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Waits for it.
    pub fn wait(&self) {
        self.is_before(None);
    }

    /// Waits until it has come or the input can be read. Returns whether it has.
    pub fn comes_before(&self, input: &impl AsHandle) -> bool {
        self.is_before(Some(PollFd::from_borrowed_fd(input.as_fd(), PollFlags::IN)))
    }

    fn is_before(&self, input: Option<PollFd<'_>>) -> bool {
        let is_alone = input.is_none();
        let mut awaited: Vec<_> = std::iter::once(PollFd::new(&self.0, PollFlags::IN)).chain(input).collect();
        loop {
            match poll(&mut awaited, None) {
                Err(Errno::INTR) => {}
                // What cannot be waited for is read, which says why.
                Err(_) => return is_alone,
                Ok(_) => return awaited.first().is_some_and(|notice| !notice.revents().is_empty()),
            }
        }
    }
}

/// The signals that end this process early.
fn signals() -> impl Iterator<Item = i32> {
    let ignored = ignored();
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(move |signal| !is_in(ignored, *signal))
}

/// The signals that are ignored, a bit each; none where that is not known.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}

fn is_in(signals: u64, signal: i32) -> bool {
    u32::try_from(signal - 1).is_ok_and(|bit| signals.checked_shr(bit).unwrap_or_default() & 1 == 1)
}
