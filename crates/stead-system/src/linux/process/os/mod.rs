//! The calls of the runner to the operating system, and nothing else makes them. Written for Linux: another system
//! needs these functions and [`procfs`] in its own words.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Once;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions};

use super::super::memory_file::MemoryFile;
use super::{Executable, Exit, Program};
use procfs::Stat;

mod account;
pub(super) mod cgroup;
mod conditions;
pub(super) mod procfs;

pub(super) use account::Account;
pub use conditions::Conditions;
pub use procfs::{is_ancestor, own_unit};

/// The longest argument and the longest `NAME=value` that the kernel takes: 32 pages, with the NUL at the end.
pub const LONGEST_ARGUMENT: usize = 32 * 4096 - 1;

/// Starts a program as the leader of a process group of its own, with nothing but three pipes open.
///
/// The standard library spawns with `posix_spawn` as long as nothing needs to run between fork and exec.
pub(super) fn spawn(program: &Program<'_>, marker: (&str, &str)) -> io::Result<Child> {
    let input = if program.input.is_some() { Stdio::piped() } else { Stdio::null() };
    Command::new(program.executable.image())
        .arg0(program.executable.path())
        .args(program.arguments)
        .env_clear()
        .envs(program.environment.iter())
        .envs(program.variables.iter().map(|(name, value)| (name, value)))
        .env(marker.0, marker.1)
        .current_dir(program.directory)
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
}

/// Has a program take the place of this process, with its environment, its folder and its descriptors. It returns if that fails.
pub fn become_program(executable: &Executable, arguments: &[OsString]) -> io::Error {
    Command::new(executable.image()).arg0(executable.path()).args(arguments).exec()
}

/// The same with a text as standard input, and variables besides those of this process.
pub fn become_reader(
    executable: &Executable,
    arguments: &[OsString],
    variables: &[(&str, &str)],
    text: &[u8],
) -> io::Error {
    let input = MemoryFile::new("text", text).and_then(MemoryFile::into_input);
    let start = |input: File| {
        let mut command = Command::new(executable.image());
        command.arg0(executable.path()).args(arguments).envs(variables.iter().copied()).stdin(input).exec()
    };
    input.map_or_else(|error| error, start)
}

/// Makes this process the parent of every descendant that loses its own, so that none gets out of sight.
///
/// Once for all, at the first use: it is a property of the process. A kernel that refuses costs the certainty to find
/// daemons that also emptied their environment, nothing else; so its answer is not looked at.
pub(super) fn adopt_orphans() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    });
}

/// Keeps the memory of this process out of core files, and out of the reach of debuggers that do not run as root. Programs
/// that it starts are not affected.
///
/// Where the kernel refuses that, core files are limited to nothing, for programs too unless they raise the limit.
pub fn forbid_core_dumps() -> io::Result<()> {
    use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};
    if set_dumpable_behavior(DumpableBehavior::NotDumpable).is_ok() {
        return Ok(());
    }
    let limit = getrlimit(Resource::Core);
    Ok(setrlimit(Resource::Core, Rlimit { current: Some(0), ..limit })?)
}

/// Lets this process have as many descriptors at once as it may have at all. Programs that it starts may, too.
pub fn allow_most_descriptors() -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?)
}

/// A descriptor that becomes readable when the process ends.
pub(super) fn watch(child: &Child) -> io::Result<OwnedFd> {
    Ok(rustix::process::pidfd_open(Pid::from_child(child), PidfdFlags::empty())?)
}

pub(super) fn set_nonblocking(pipe: &impl AsFd) -> io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(pipe, true)?)
}

/// The descriptors that can go on without waiting.
#[derive(Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "one for each of five independent descriptors")]
pub(super) struct Ready {
    pub(super) stdin: bool,
    pub(super) stdout: bool,
    pub(super) stderr: bool,
    pub(super) channel: bool,
    pub(super) exit: bool,
}

/// Descriptors to wait for; absent ones are closed or of no interest any more.
#[derive(Default)]
pub(super) struct Awaited<'a> {
    pub(super) stdin: Option<BorrowedFd<'a>>,
    pub(super) stdout: Option<BorrowedFd<'a>>,
    pub(super) stderr: Option<BorrowedFd<'a>>,
    /// A socket besides.
    pub(super) channel: Option<BorrowedFd<'a>>,
    pub(super) exit: Option<BorrowedFd<'a>>,
}

/// Waits until one of the descriptors is ready or the time is over.
pub(super) fn wait(awaited: &Awaited<'_>, timeout: Duration) -> io::Result<Ready> {
    let wanted = [
        (awaited.stdin, PollFlags::OUT),
        (awaited.stdout, PollFlags::IN),
        (awaited.stderr, PollFlags::IN),
        (awaited.channel, PollFlags::IN),
        (awaited.exit, PollFlags::IN),
    ];
    let mut polled: Vec<_> =
        wanted.iter().filter_map(|(fd, flags)| Some(PollFd::from_borrowed_fd((*fd)?, *flags))).collect();
    match rustix::event::poll(&mut polled, Timespec::try_from(timeout).ok().as_ref()) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(Ready::default()),
        Err(error) => return Err(error.into()),
    }
    let mut answers = polled.iter().map(|each| !each.revents().is_empty());
    let mut ready = |fd: Option<BorrowedFd<'_>>| fd.is_some() && answers.next().unwrap_or(false);
    Ok(Ready {
        stdin: ready(awaited.stdin),
        stdout: ready(awaited.stdout),
        stderr: ready(awaited.stderr),
        channel: ready(awaited.channel),
        exit: ready(awaited.exit),
    })
}

/// The result of one read or write on a pipe.
pub(super) enum Moved {
    /// So many bytes.
    Bytes(usize),
    /// Nothing for now.
    Blocked,
    /// The other end is closed.
    Closed,
}

fn moved(result: rustix::io::Result<usize>) -> io::Result<Moved> {
    match result {
        Ok(0) | Err(Errno::PIPE) => Ok(Moved::Closed),
        Ok(bytes) => Ok(Moved::Bytes(bytes)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(Moved::Blocked),
        Err(error) => Err(error.into()),
    }
}

/// Appends what is there to read, at most `at_most` bytes.
pub(super) fn read(pipe: &impl AsFd, into: &mut Vec<u8>, at_most: usize) -> io::Result<Moved> {
    // What little there usually is leaves room enough for the end to be noticed in.
    if into.capacity() - into.len() < at_most / 2 {
        into.reserve(at_most);
    }
    moved(rustix::io::read(pipe, rustix::buffer::spare_capacity(into)))
}

pub(super) fn write(pipe: &impl AsFd, bytes: &[u8]) -> io::Result<Moved> {
    moved(rustix::io::write(pipe, bytes))
}

pub(super) fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or_default()),
    }
}

/// How the members of a tree are asked to end.
#[derive(Clone, Copy)]
pub(super) enum End {
    /// They may tidy up.
    Ask,
    /// At once.
    Force,
}

impl End {
    fn signal(self) -> Signal {
        match self {
            Self::Ask => Signal::TERM,
            Self::Force => Signal::KILL,
        }
    }
}

/// Signals the group of a child that was not waited for yet; before that its number cannot belong to anyone else.
pub(super) fn end_group(child: &Child, how: End) {
    // It may be gone already, which is what is wanted.
    let _ = rustix::process::kill_process_group(Pid::from_child(child), how.signal());
}

/// Returns whether anyone is left in the group of a child that was waited for.
pub(super) fn group_lives(leader: i32) -> bool {
    Pid::from_raw(leader).is_some_and(|group| rustix::process::test_kill_process_group(group) != Err(Errno::SRCH))
}

/// Ends one process, if it is still the one that was seen.
pub(super) fn end_process(seen: &Stat) {
    let Some(pid) = Pid::from_raw(seen.pid) else { return };
    let Ok(handle) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { return };
    // The number may have been given to another process meanwhile; the handle cannot.
    if procfs::stat(seen.pid).is_some_and(|now| now.start == seen.start) {
        let _ = rustix::process::pidfd_send_signal(&handle, Signal::KILL);
    }
}

/// Waits until a child has ended, however long that takes, and forgets it.
pub(super) fn wait_for(child: u32) {
    if let Some(pid) = i32::try_from(child).ok().and_then(Pid::from_raw) {
        let _ = rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED);
    }
}

/// Forgets an adopted process that has ended.
pub(super) fn reap(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    }
}

/// Forgets the adopted processes of a group that have ended.
pub(super) fn reap_group(leader: i32) {
    if let Some(group) = Pid::from_raw(leader) {
        while let Ok(Some(_)) = rustix::process::waitpgid(group, WaitOptions::NOHANG) {}
    }
}
