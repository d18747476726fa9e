//! Runs one program safely: whatever it does, the call ends in time, costs bounded memory, and nothing stays behind.
//!
//! One thread moves all bytes of a call, in both directions at once. The tree of processes is found again by three
//! marks: the process group, the parents, and a variable in the environment whose value is the call's own. What all calls of
//! a process started is in its control group besides, where there is one ([`start_supervision`]).

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use stead_core::call::FailureKind;

use crate::cancel::Cancel;

mod command;
mod conversation;
pub mod dialogue;
mod environment;
mod executable;
mod found;
mod leader;
mod os;
mod pump;
mod running;
mod session;
mod supervisor;
mod talk;
mod tree;

pub use command::run_command;
pub use conversation::{Conversation, ConversationError};
pub use environment::{Environment, INHERITED, InheritedVariable, is_program};
pub use executable::{Executable, RefusedProgram};
pub use os::{
    Conditions, LONGEST_ARGUMENT, allow_most_descriptors, become_program, become_reader, forbid_core_dumps,
    is_ancestor, own_unit,
};
pub use session::{Hear, Heard, ProgramSession};
pub use supervisor::{Supervision, end_left_behind, start_supervision, supervise, traces};
pub use talk::{OutputHandler, Talk, TimeLimits};
pub use tree::{MARKER, Resident};

/// A program to run.
#[derive(Clone, Copy)]
pub struct Program<'a> {
    /// The program, judged.
    pub executable: &'a Executable,
    /// The arguments, without its own name.
    pub arguments: &'a [OsString],
    /// The directory that it is started in.
    pub directory: &'a Path,
    /// The environment that it is given.
    pub environment: &'a Environment,
    /// Variables besides, which win.
    pub variables: &'a [(OsString, OsString)],
    /// The bytes that it can read from its standard input; nothing at all when absent.
    pub input: Option<&'a [u8]>,
}

/// The limits of a program.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long it may run.
    pub deadline: Duration,
    /// How many bytes it may write to each of its outputs.
    pub output: usize,
    /// How long it may take to end once it was asked to, before it is forced.
    pub grace: Duration,
    /// How long processes that it left behind may take to end by themselves. A shell often ends a moment before the
    /// last command of its pipelines does.
    pub settle: Duration,
    /// True if it may be in the middle of a change. A program that only reads is killed soon after the run is
    /// cancelled.
    pub changes: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // Long enough for a package manager on a slow line; a call that takes longer says so in its settings.
            deadline: Duration::from_mins(10),
            output: 16 << 20,
            grace: Duration::from_secs(5),
            settle: Duration::from_millis(500),
            changes: true,
        }
    }
}

/// How a program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// A program that ended by itself and left nothing behind.
pub struct Finished {
    /// How it ended.
    pub exit: Exit,
    /// Everything it wrote to its standard output. It may hold secrets.
    pub stdout: Vec<u8>,
    /// How many bytes it wrote to its standard error, all of which were handed on.
    pub stderr_bytes: usize,
}

/// One of the outputs of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// Standard output
    Stdout,
    /// Standard error
    Stderr,
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stdout => "standard output",
            Self::Stderr => "standard error",
        })
    }
}

/// The processes of a call that had to be ended, as `name (pid)`.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Processes(pub Vec<String>);

impl fmt::Display for Processes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // More names help nobody, and a fork bomb has hundreds.
        const SHOWN: usize = 8;
        if self.0.is_empty() {
            return f.write_str("a process that could not be found");
        }
        f.write_str(&self.0.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", "))?;
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// Why a program did not end by itself, or not cleanly. Its processes have been ended.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It could not be started.
    #[error("cannot start '{}'", path.display())]
    Start {
        /// The program.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// It took longer than allowed.
    #[error("it did not end within {after:?}; ended by force: {processes}")]
    Deadline {
        /// The time that was allowed.
        after: Duration,
        /// The processes that were running.
        processes: Processes,
    },
    /// It wrote more than allowed.
    #[error("it wrote more than {limit} bytes to its {stream}")]
    OutputLimit {
        /// Where.
        stream: Stream,
        /// The bytes that were allowed.
        limit: usize,
    },
    /// The run was cancelled.
    #[error("it was cancelled")]
    Cancelled,
    /// It ended and left processes behind.
    #[error(
        "it left processes behind, which were ended: {processes}; what is to go on running is a service: use Stead/Service, or \
         start it with systemd-run"
    )]
    LeftBehind {
        /// How it ended itself.
        exit: Exit,
        /// Those that were left.
        processes: Processes,
    },
    /// Processes of it could not be ended, even by force: they hang in the kernel, or run as a user that this process
    /// has no power over.
    #[error("it had to be ended, and these processes could not be: {processes}")]
    Immortal {
        /// Those that are still there.
        processes: Processes,
    },
    /// The system failed.
    #[error("cannot {doing}")]
    System {
        /// The action that was attempted.
        doing: &'static str,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

impl ProcessError {
    /// The kind of failure that it is for callers.
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Start { source, .. } => start_kind(source),
            Self::Deadline { .. } => FailureKind::Deadline,
            Self::OutputLimit { .. } => FailureKind::OutputLimit,
            Self::Cancelled => FailureKind::Cancelled,
            Self::LeftBehind { .. } | Self::Immortal { .. } => FailureKind::LeftBehind,
            Self::System { .. } => FailureKind::System,
        }
    }
}

/// The kind of failure that keeps a program from starting: one of the system where it passes by itself, since the program is
/// being written or too much runs.
fn start_kind(error: &io::Error) -> FailureKind {
    use io::ErrorKind::{ExecutableFileBusy, Interrupted, OutOfMemory, ResourceBusy, WouldBlock};
    let is_passing = matches!(error.kind(), ExecutableFileBusy | Interrupted | OutOfMemory | ResourceBusy | WouldBlock);
    let exhausted = [Errno::MFILE, Errno::NFILE].map(|errno| Some(errno.raw_os_error()));
    let is_momentary = is_passing || exhausted.contains(&error.raw_os_error());
    if is_momentary { FailureKind::System } else { FailureKind::Start }
}

/// Runs a program to its end. What it writes to its standard error is handed to `errors` as it comes.
///
/// Guarantees: returns within the deadline, the grace and some seconds; holds at most the output limit and little more
/// in memory; every process that the program started is gone afterwards, daemons included, or named in
/// [`ProcessError::Immortal`]. A program that closes its standard input early is not a failure by itself.
///
/// Caveats: a process that escaped its group, lost its parents and emptied its environment is only found while no other
/// call runs. When this process is killed, programs go on unless there is a [`Supervision`]. Descriptors that this
/// process itself inherited without the flag to close them reach the program.
pub fn run(
    program: &Program<'_>,
    limits: &Limits,
    cancel: &Cancel,
    errors: &mut dyn FnMut(&[u8]),
) -> Result<Finished, ProcessError> {
    if cancel.is_cancelled() {
        return Err(ProcessError::Cancelled);
    }
    running::Running::start(program, limits)?.finish(cancel, errors)
}
