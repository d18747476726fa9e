//! Ends the programs of this process when it is killed itself and cannot do so any more.
//!
//! One supervisor, a process of its own, waits on a pipe that this process holds open. It never wakes up while all goes
//! well: which process groups are under way stands in shared memory, not in messages.
//!
//! Where it can be had, a control group holds the programs of this process, and this process with them: so a program is in
//! it from its first moment on. The supervisor is outside of it (docs/decisions/0032).
//!
//! A setting of the kernel for this (`PR_SET_PDEATHSIG`) must be made between fork and exec, which takes unsafe
//! code and the slow way to start a process, and it would not reach what a program starts in turn.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::MemfdFlags;

use super::os::cgroup::{self, Group};
use super::os::procfs;
use super::tree::{self, MARKER, PATIENCE, Resident, Tree};

/// Said by a process that ends in order: then there is nothing to do.
const FAREWELL: u8 = b'.';

/// One process group, or zero, in shared memory.
const SLOT: usize = size_of::<i32>();

/// There is one supervisor for a process, as there is one process.
static SUPERVISION: Mutex<State> = Mutex::new(State::Off);

enum State {
    /// Nobody asked for it, or it cannot be obtained.
    Off,
    /// It begins with the first program.
    Wanted {
        program: PathBuf,
        arguments: Vec<OsString>,
    },
    On(Supervisor),
}

struct Supervisor {
    process: Child,
    groups: File,
    /// Which slots are taken.
    taken: Vec<bool>,
    group: Option<Group>,
    _resident: Resident,
}

/// Supervision of this process, until this is dropped.
#[must_use = "supervision ends when this is dropped"]
pub struct Supervision(());

/// Lets everything that is started by [`super::run`] end with this process, however that ends: by SIGKILL too.
///
/// `program` is started when the first program is, with these arguments and one more. It must call [`supervise`] with
/// that one, and nothing else.
///
/// For root, this process is moved to a control group for that, where there are groups of version 2 that it can write.
///
/// Caveats: elsewhere, programs that left their process group *and* emptied their environment are not found when this process
/// is killed.
pub fn start_supervision(program: &Path, arguments: &[&str]) -> Supervision {
    let arguments = arguments.iter().map(OsString::from).collect();
    *state() = State::Wanted { program: program.to_owned(), arguments };
    Supervision(())
}

impl Drop for Supervision {
    fn drop(&mut self) {
        let ended = std::mem::replace(&mut *state(), State::Off);
        if let State::On(mut supervisor) = ended {
            if let Some(group) = supervisor.group.take() {
                leave(&group);
            }
            // If it does not hear it, it looks for programs and finds none.
            let _ = supervisor.process.stdin.take().map(|mut pipe| pipe.write_all(&[FAREWELL]));
            let _ = supervisor.process.wait();
        }
    }
}

/// The work of the supervisor, in the process that was started for it. Returns when there is nothing left to do.
///
/// Fails on a token that is not of [`start_supervision`]: less of one would fit processes of others.
pub fn supervise(token: &OsStr) -> io::Result<()> {
    let token = token.to_str().filter(|token| tree::is_process_token(token)).ok_or(io::ErrorKind::InvalidInput)?;
    // Away from the terminal, whose Ctrl-C is meant for others.
    let _ = rustix::process::setsid();
    let mut said = [0];
    if io::stdin().read(&mut said)? == 1 {
        return Ok(());
    }
    // What this process was given as its standard output is what the other one wrote to, as its standard error the group.
    let group = Group::of_directory(rustix::io::dup(rustix::stdio::stderr())?);
    if let Some(group) = &group {
        group.end(PATIENCE);
    }
    let shared = File::from(rustix::io::dup(rustix::stdio::stdout())?);
    let mut groups = vec![0; usize::try_from(shared.metadata()?.len()).unwrap_or_default()];
    shared.read_exact_at(&mut groups, 0)?;
    let groups = groups.chunks_exact(SLOT).filter_map(|slot| slot.try_into().ok().map(i32::from_ne_bytes));
    let born = procfs::own().map_or(0, |own| own.start);
    Tree::of_process(token, groups.filter(|group| *group > 1).collect(), born).end(PATIENCE);
    if let Some(group) = &group {
        group.remove();
    }
    Ok(())
}

/// Lines by which is found what this process leaves behind when it is killed: what its programs are marked with, and the
/// control group that it is in, if it can be in one.
pub fn traces() -> String {
    let group = cgroup::current().map(|group| group + "\n").unwrap_or_default();
    format!("{}\n{group}", tree::process_token())
}

/// Ends the programs that another process left behind when it was killed, by its [`traces`]. Its supervisor does so as well,
/// but takes a moment, and may have been killed too. Does nothing for lines that are not traces, or for those of a process
/// that this one belongs to.
pub fn end_left_behind(traces: &[String]) {
    let Some((mark, group)) = traces.split_first() else { return };
    let is_around = std::env::var(MARKER).is_ok_and(|marks| marks.contains(mark));
    if tree::is_process_token(mark) && *mark != tree::process_token() && !is_around {
        if let Some(group) = Group::find(mark, group.first().map(String::as_str)) {
            group.end(PATIENCE);
            group.remove();
        }
        Tree::of_process(mark, BTreeSet::new(), 0).end(PATIENCE);
    }
}

/// A process group that the supervisor would end, until this is dropped.
pub(super) struct Supervised {
    slot: Option<usize>,
}

impl Supervised {
    /// Enters a group; does nothing when there is no supervisor.
    pub(super) fn enter(group: u32) -> Self {
        let State::On(supervisor) = &mut *state() else { return Self { slot: None } };
        let free = supervisor.taken.iter().position(|taken| !taken).unwrap_or_else(|| {
            supervisor.taken.push(false);
            supervisor.taken.len() - 1
        });
        supervisor.write(free, i32::try_from(group).unwrap_or_default());
        Self { slot: Some(free) }
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        if let (Some(slot), State::On(supervisor)) = (self.slot, &mut *state()) {
            supervisor.write(slot, 0);
        }
    }
}

/// Starts the supervisor, if there is to be one and is none. To be called before a program is started.
pub(super) fn ensure() {
    let mut state = state();
    if let State::Wanted { program, arguments } = &*state {
        *state = match Supervisor::start(program, arguments) {
            Ok(supervisor) => State::On(supervisor),
            Err(error) => {
                tracing::warn!(
                    "cannot start the supervisor of programs: {error}; they go on if this process is killed"
                );
                State::Off
            }
        };
    }
}

fn state() -> MutexGuard<'static, State> {
    SUPERVISION.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A control group for the programs of this process, where one can be had.
fn own_group() -> Option<Group> {
    let created = rustix::process::geteuid().is_root().then(|| Group::create(&tree::process_token()));
    created?.inspect_err(not_grouped).ok()
}

fn entered(group: Group) -> io::Result<Group> {
    group.enter().inspect_err(|_| group.remove())?;
    Ok(group)
}

fn not_grouped(error: &io::Error) {
    tracing::debug!("programs are in no control group of their own: {error}");
}

/// Leaves a group in an orderly end. A process still in it escaped from its call.
fn leave(group: &Group) {
    if let Err(error) = group.leave() {
        tracing::warn!("cannot leave the control group of the programs, which stays: {error}");
        return;
    }
    let begun = Instant::now();
    let mut left = strays(group);
    while !left.is_empty() && begun.elapsed() < DYING {
        std::thread::sleep(Duration::from_millis(2));
        left = strays(group);
    }
    if !left.is_empty() {
        tracing::warn!("programs left processes behind, which are ended: {}", left.join(", "));
    }
    group.end(PATIENCE);
    group.remove();
}

/// How long a large process that was ended may take until it is gone.
const DYING: Duration = Duration::from_millis(300);

/// The names of the processes in a group that do not belong to this one any more.
fn strays(group: &Group) -> Vec<String> {
    let members = group.members().into_iter().filter_map(procfs::stat);
    members.filter(|each| !each.ended && !tree::is_resident(each)).map(|each| each.name).collect()
}

impl Supervisor {
    fn start(program: &Path, arguments: &[OsString]) -> io::Result<Self> {
        let groups = File::from(rustix::fs::memfd_create("programs", MemfdFlags::CLOEXEC)?);
        let mut command = Command::new(program);
        // What this process was marked with, and not what it marks: whoever runs this process ends the supervisor too.
        let outer = std::env::var_os(MARKER).map(|outer| (MARKER, outer));
        command.args(arguments).arg(tree::process_token()).env_clear().envs(outer).current_dir("/");
        command.stdin(Stdio::piped()).stdout(groups.try_clone()?);
        let group = own_group();
        let directory = group.as_ref().and_then(|group| group.as_fd().try_clone_to_owned().ok());
        command.stderr(directory.map_or_else(Stdio::null, Stdio::from));
        let process = command.spawn().inspect_err(|_| group.iter().for_each(Group::remove))?;
        let resident = Resident::enter(process.id());
        // Not before the supervisor is there, which stays outside.
        let group = group.and_then(|group| entered(group).inspect_err(not_grouped).ok());
        Ok(Self { process, groups, taken: Vec::new(), group, _resident: resident })
    }

    fn write(&mut self, slot: usize, group: i32) {
        if let Some(taken) = self.taken.get_mut(slot) {
            *taken = group != 0;
        }
        // Memory that is there cannot refuse it; without it the mark in the environment is still found.
        let _ = self.groups.write_all_at(&group.to_ne_bytes(), (slot * SLOT) as u64);
    }
}
