//! The first process of a program, and through it everything that the program starts.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use super::os::procfs::Stat;
use super::os::{self, Awaited, End};
use super::supervisor::{self, Supervised};
use super::tree::{MARKER, PATIENCE, Tree};
use super::{Exit, ProcessError, Processes, Program};

/// A program that was started: its processes are marked, and known to the supervisor. If it is dropped before its first
/// process has ended, everything of it is ended by force.
pub(super) struct Leader {
    pub(super) child: Child,
    pub(super) tree: Tree,
    ends: OwnedFd,
    exit: Option<Exit>,
    _supervised: Supervised,
}

/// The other ends of what a program reads and writes.
pub(super) struct Pipes {
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: Option<ChildStdout>,
    pub(super) stderr: Option<ChildStderr>,
}

impl Leader {
    pub(super) fn start(program: &Program<'_>) -> Result<Self, ProcessError> {
        os::adopt_orphans();
        supervisor::ensure();
        let mut tree = Tree::new();
        let mut child = os::spawn(program, (MARKER, &tree.marker()))
            .map_err(|source| ProcessError::Start { path: program.executable.path().to_owned(), source })?;
        tree.set_leader(child.id());
        let supervised = Supervised::enter(child.id());
        match os::watch(&child) {
            Ok(ends) => Ok(Self { child, tree, ends, exit: None, _supervised: supervised }),
            Err(source) => {
                os::end_group(&child, End::Force);
                tree.end(PATIENCE);
                drop(child.wait());
                Err(ProcessError::System { doing: "watch the program", source })
            }
        }
    }

    /// Starts a program with pipes to and from it, none of which is ever waited for.
    pub(super) fn start_with_pipes(program: &Program<'_>) -> Result<(Self, Pipes), ProcessError> {
        let mut leader = Self::start(&Program { input: Some(&[]), ..*program })?;
        let child = &mut leader.child;
        let pipes = Pipes { stdin: child.stdin.take(), stdout: child.stdout.take(), stderr: child.stderr.take() };
        let nonblocking = pipes.stdin.iter().try_for_each(os::set_nonblocking);
        let nonblocking = nonblocking.and_then(|()| pipes.stdout.iter().try_for_each(os::set_nonblocking));
        let nonblocking = nonblocking.and_then(|()| pipes.stderr.iter().try_for_each(os::set_nonblocking));
        match nonblocking {
            Ok(()) => Ok((leader, pipes)),
            Err(source) => Err(ProcessError::System { doing: "talk to the program", source }),
        }
    }

    /// How it ended, once [`Self::note_end`] found that it did.
    pub(super) fn exit(&self) -> Option<Exit> {
        self.exit
    }

    /// Returns the descriptor that becomes readable when it ends; `None` once it has.
    pub(super) fn awaited(&self) -> Option<BorrowedFd<'_>> {
        if self.exit.is_none() { Some(self.ends.as_fd()) } else { None }
    }

    /// Takes in that it ended, if it did.
    pub(super) fn note_end(&mut self) -> io::Result<()> {
        self.exit = self.child.try_wait()?.map(os::exit_of);
        Ok(())
    }

    /// Signals its process group, unless it has ended.
    pub(super) fn end_group(&self, how: End) {
        if self.exit.is_none() {
            os::end_group(&self.child, how);
        }
    }

    /// Everything of it that is running.
    pub(super) fn members(&mut self) -> Processes {
        names(&self.tree.members())
    }

    /// Ends what its first process left behind, if that has ended.
    pub(super) fn end_left_behind(&mut self) {
        if self.exit.is_some() && self.tree.has_survivors() {
            self.end_all();
        }
    }

    /// Ends everything of it by force; returns what could not be ended.
    pub(super) fn end_all(&mut self) -> Processes {
        names(&self.tree.end(PATIENCE))
    }
}

impl Leader {
    /// Waits for the first process, which was ended. It counts as ended while others of its threads are still there: only
    /// its descriptor says when it can be waited for. One that hangs in the kernel is waited for by somebody else.
    fn reap(&mut self) {
        let ends = Awaited { exit: Some(self.ends.as_fd()), ..Awaited::default() };
        let is_gone = os::wait(&ends, PATIENCE).is_ok_and(|ready| ready.exit);
        if is_gone {
            drop(self.child.wait());
        } else {
            let child = self.child.id();
            drop(std::thread::Builder::new().name("process end".to_owned()).spawn(move || os::wait_for(child)));
        }
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if self.exit.is_none() {
            self.end_group(End::Force);
            self.tree.end(PATIENCE);
            self.reap();
        }
    }
}

fn names(processes: &[Stat]) -> Processes {
    Processes(processes.iter().map(|each| format!("{} ({})", each.name, each.pid)).collect())
}
