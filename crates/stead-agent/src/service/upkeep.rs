//! Checks of the things that the agent itself needs, any of which can disappear while it runs: folder, socket,
//! program, clock.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use stead_system::socket::Messages;

use super::{Agent, Inner};
use crate::control::{Listener, serve};
use crate::job::SuspendReason;

/// How often the agent looks whether everything is in place.
const INTERVAL: Duration = Duration::from_mins(1);

/// The time and the results of the last check.
#[derive(Default)]
pub(super) struct Upkeep {
    last: Option<Instant>,
    /// Why this process is to end, if it is.
    pub(super) ends: Option<Why>,
}

/// Why the process of an agent ends by itself. The first two wait until nothing is under way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Why {
    /// A resource asked for a restart of the agent.
    Asked,
    /// The program at the agent's path is no longer the one that runs.
    ProgramReplaced,
    /// The agent's folder is gone, so that it cannot continue.
    FolderGone,
}

impl Upkeep {
    /// Everything is looked at again at once.
    pub(super) fn look_again(&mut self) {
        self.last = None;
    }

    /// There is a reason to end; the last one in the order of reasons counts.
    pub(super) fn ends(&mut self, why: Why) {
        self.ends = self.ends.max(Some(why));
    }
}

impl Agent {
    /// Notifies the watchdog of systemd, and checks from time to time that everything is in place.
    pub(super) fn look_after_itself(self: &Arc<Self>, inner: &mut Inner) {
        Messages::notify_service_manager("WATCHDOG=1");
        let is_idle = inner.running.is_none() && inner.ended.is_none() && inner.state.job.is_none();
        let is_over = inner.upkeep.ends.is_some();
        // systemd starts the agent again, by then perhaps the program that replaced this one.
        if is_over && self.is_service && is_idle && !inner.stopping {
            self.log.write("restartingItself", json!({}));
            inner.stopping = true;
        }
        let is_due = inner.upkeep.last.is_none_or(|last| last.elapsed() >= INTERVAL) || inner.unsaved.is_some();
        if !is_due {
            return;
        }
        inner.upkeep.last = Some(Instant::now());
        if !inner.store.is_in_place() {
            return self.end_without_folder(inner);
        }
        self.listen_again();
        let is_known = inner.upkeep.ends >= Some(Why::ProgramReplaced);
        if !is_known && self.program.as_ref().is_some_and(Program::is_replaced) {
            inner.upkeep.ends(Why::ProgramReplaced);
            self.log.write("programReplaced", json!({}));
        }
    }

    /// Another agent may begin in a new folder; this one must not change the machine beside it.
    fn end_without_folder(&self, inner: &mut Inner) {
        inner.stopping = true;
        inner.upkeep.ends(Why::FolderGone);
        self.log.write("folderGone", json!({ "failure": "the folder of the agent was removed or replaced" }));
        if let Some(running) = &inner.running {
            running.suspension.suspend(SuspendReason::End);
        }
    }

    /// Listens on another socket if callers cannot find the present one.
    fn listen_again(self: &Arc<Self>) {
        let mut listener = self.lock_listener();
        if listener.as_ref().is_some_and(|listener| listener.is_in_place()) {
            return;
        }
        match Listener::bind(&self.directory) {
            Ok(new) => {
                let is_first = listener.is_none();
                if let Some(former) = listener.replace(Arc::new(new)) {
                    former.end();
                }
                if !is_first {
                    self.log.write("socketMade", json!({}));
                }
                drop(listener);
                self.answer_callers();
            }
            Err(error) => self.log.write("socketNotMade", json!({ "failure": error.to_string() })),
        }
    }

    /// Answers callers on threads of their own until the socket is closed.
    pub(super) fn answer_callers(self: &Arc<Self>) {
        let Some(listener) = self.lock_listener().clone() else { return };
        let answering = Arc::clone(self);
        let answer: Arc<crate::control::Answer> = Arc::new(move |request, user| answering.answer(request, user));
        thread::spawn(move || serve(&listener, &answer));
    }
}

/// The program that runs, and where it was started from.
pub(super) struct Program {
    path: PathBuf,
    identity: (u64, u64),
}

impl Program {
    /// The program of this process.
    pub(super) fn of_this_process() -> Option<Self> {
        let running = Path::new("/proc/self/exe");
        Some(Self { path: running.read_link().ok()?, identity: identity(running)? })
    }

    /// Returns whether another program lies at the path. A missing one is not replaced: a package may be about to
    /// install the next.
    fn is_replaced(&self) -> bool {
        identity(&self.path).is_some_and(|found| found != self.identity)
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|found| stead_system::fs::Status::from(&found).identity.inode())
}

/// A clock that may be wrong, and be put right.
pub(super) struct WallClock {
    began: Instant,
    /// Since when it has gone on without a jump, and what it showed at the beginning by that.
    steady: Option<(Instant, Timestamp)>,
}

/// A clock that has gone on for so long without a jump is taken for right.
const STEADY: Duration = Duration::from_hours(1);

/// A difference between the clock and the time that has passed that does not count as a jump.
const SLACK: SignedDuration = SignedDuration::from_mins(1);

impl WallClock {
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), steady: None }
    }

    /// Looks at the clock; whether it has shown the time without a jump for long.
    pub(super) fn is_steady(&mut self, now: Instant, shown: Timestamp) -> bool {
        let passed = SignedDuration::try_from(now.duration_since(self.began)).unwrap_or(SignedDuration::MAX);
        let Ok(beginning) = shown.checked_sub(passed) else { return false };
        let same = |(_, known): &(Instant, Timestamp)| beginning.duration_since(*known).abs() <= SLACK;
        let steady = self.steady.filter(same).unwrap_or((now, beginning));
        self.steady = Some(steady);
        now.duration_since(steady.0) >= STEADY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_right_when_it_has_not_jumped_for_long() {
        let mut clock = WallClock::new();
        let (begin, shown) = (Instant::now(), Timestamp::UNIX_EPOCH);
        let mut look = |minutes: u64, jump: i64| {
            let passed = SignedDuration::from_mins(i64::try_from(minutes).unwrap() + jump);
            clock.is_steady(begin + Duration::from_mins(minutes), shown + passed)
        };
        assert!(!look(0, 0) && !look(59, 0));
        assert!(look(61, 0));
        assert!(!look(62, 400 * 24 * 60), "it is ahead");
        assert!(!look(63, 0), "it is right again, which nobody knows");
        assert!(look(124, 0));
    }
}
