//! One call from its start to the moment when nothing of it is left.

use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::time::{Duration, Instant};

use super::os::procfs::Stat;
use super::os::{self, Awaited, End};
use super::pump::Pump;
use super::supervisor::{self, Supervised};
use super::tree::{MARKER, Tree};
use super::{Exit, Finished, Limits, ProcessError, Processes, Program};
use crate::provider::Cancel;

/// How often the flag that cancels is looked at.
const TICK: Duration = Duration::from_millis(100);

/// How long processes that were ended by force may take to be gone: the kernel must give back their memory.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// How long a program that floods may take to end: every moment of it costs a processor.
const FLOOD_GRACE: Duration = Duration::from_secs(1);

/// A program under way.
pub(super) struct Running<'a> {
    child: Child,
    ends: OwnedFd,
    exit: Option<Exit>,
    pump: Pump<'a>,
    tree: Tree,
    _supervised: Supervised,
    limits: &'a Limits,
    begun: Instant,
}

impl<'a> Running<'a> {
    pub(super) fn start(program: &Program<'a>, limits: &'a Limits) -> Result<Self, ProcessError> {
        os::adopt_orphans();
        supervisor::ensure();
        let begun = Instant::now();
        let mut tree = Tree::new();
        let mut child = os::spawn(program, (MARKER, &tree.marker()))
            .map_err(|source| ProcessError::Start { path: program.path.to_owned(), source })?;
        tree.set_leader(child.id());
        let supervised = Supervised::enter(child.id());
        let input = program.input.unwrap_or_default();
        let prepared = os::watch(&child).and_then(|ends| Ok((ends, Pump::new(&mut child, input, limits.output)?)));
        match prepared {
            Ok((ends, pump)) => {
                Ok(Self { child, ends, exit: None, pump, tree, _supervised: supervised, limits, begun })
            }
            Err(source) => {
                os::end_group(&child, End::Force);
                tree.end(PATIENCE);
                drop(child.wait());
                Err(ProcessError::System { doing: "watch the program", source })
            }
        }
    }

    /// Follows the program to its end and makes sure that it was the end of all of it.
    pub(super) fn finish(mut self, cancel: &Cancel, errors: &mut dyn FnMut(&[u8])) -> Result<Finished, ProcessError> {
        let exit = match self.follow(cancel, errors) {
            Ok(exit) => exit,
            Err(cause) => return Err(self.end(cause)),
        };
        if !self.pump.is_closed() || self.tree.has_survivors() {
            self.settle(exit, cancel)?;
        }
        let stdout = std::mem::take(&mut self.pump.output);
        Ok(Finished { exit, stdout, stderr_bytes: self.pump.error_bytes })
    }

    /// Moves bytes until the program ended and its outputs are closed, or have not been for too long after it.
    fn follow(&mut self, cancel: &Cancel, errors: &mut dyn FnMut(&[u8])) -> Result<Exit, ProcessError> {
        let mut ended: Option<Instant> = None;
        loop {
            if let Some(exit) = self.exit {
                let since = ended.get_or_insert_with(Instant::now);
                if self.pump.is_closed() || since.elapsed() >= self.limits.settle {
                    return Ok(exit);
                }
            }
            if cancel.is_cancelled() {
                return Err(ProcessError::Cancelled);
            }
            let Some(left) = self.limits.deadline.checked_sub(self.begun.elapsed()).filter(|left| !left.is_zero())
            else {
                return Err(ProcessError::Deadline { after: self.limits.deadline, processes: Processes::default() });
            };
            let ready = self.wait(left.min(TICK))?;
            self.pump.advance(ready, errors)?;
        }
    }

    fn wait(&mut self, timeout: Duration) -> Result<os::Ready, ProcessError> {
        let failed = |source| ProcessError::System { doing: "wait for the program", source };
        let exit = if self.exit.is_none() { Some(self.ends.as_fd()) } else { None };
        let ready = os::wait(&Awaited { exit, ..self.pump.awaited() }, timeout).map_err(failed)?;
        if ready.exit {
            self.exit = self.child.try_wait().map_err(failed)?.map(os::exit_of);
            self.pump.close_input();
        }
        Ok(ready)
    }

    /// The program ended, and something of it may be left: lets that end by itself for a moment, then by force.
    fn settle(&mut self, exit: Exit, cancel: &Cancel) -> Result<(), ProcessError> {
        let begun = Instant::now();
        while self.pump.is_closed() && begun.elapsed() < self.limits.settle && !cancel.is_cancelled() {
            std::thread::sleep(Duration::from_millis(5));
            if !self.tree.has_survivors() {
                return Ok(());
            }
        }
        let left = describe(&mut self.tree);
        let immortal = self.tree.end(PATIENCE);
        if !immortal.is_empty() {
            return Err(ProcessError::Immortal { processes: names(&immortal) });
        }
        if left.0.is_empty() && self.pump.is_closed() {
            return Ok(());
        }
        Err(ProcessError::LeftBehind { exit, processes: left })
    }

    /// Ends everything: asks the group, waits for a grace, then forces whatever is there.
    fn end(&mut self, cause: ProcessError) -> ProcessError {
        let left = describe(&mut self.tree);
        let grace = match cause {
            ProcessError::OutputLimit { .. } => self.limits.grace.min(FLOOD_GRACE),
            _ => self.limits.grace,
        };
        if self.exit.is_none() {
            os::end_group(&self.child, End::Ask);
        }
        self.drain(grace);
        if self.exit.is_none() {
            os::end_group(&self.child, End::Force);
        }
        let immortal = self.tree.end(PATIENCE);
        self.drain(PATIENCE);
        match cause {
            _ if !immortal.is_empty() => ProcessError::Immortal { processes: names(&immortal) },
            ProcessError::Deadline { after, .. } => ProcessError::Deadline { after, processes: left },
            other => other,
        }
    }

    /// Waits for the program to end, reading what it writes and forgetting it.
    fn drain(&mut self, at_most: Duration) {
        let begun = Instant::now();
        while let Some(left) = at_most.checked_sub(begun.elapsed())
            && self.exit.is_none()
        {
            match self.wait(left.min(TICK)) {
                Ok(ready) => self.pump.discard(ready),
                Err(_) => return,
            }
        }
    }
}

impl Drop for Running<'_> {
    /// For the case that handing on what the program says panics: nothing stays behind even then.
    fn drop(&mut self) {
        if self.exit.is_none() {
            os::end_group(&self.child, End::Force);
            self.tree.end(PATIENCE);
            drop(self.child.try_wait());
        }
    }
}

fn describe(tree: &mut Tree) -> Processes {
    names(&tree.members())
}

fn names(processes: &[Stat]) -> Processes {
    Processes(processes.iter().map(|each| format!("{} ({})", each.name, each.pid)).collect())
}
