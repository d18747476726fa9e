//! The processes of one call: found again, and ended.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::os::procfs::{self, Stat};
use super::os::{self};

/// How long processes that were ended by force may take to be gone: the kernel must give back their memory.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// The variable that every process of a call carries. Its value is a path of calls: a program that runs calls of its
/// own appends to what it was given, so that the outer one still finds everything.
pub const MARKER: &str = "STEAD_CALL";

/// How many calls are under way in this process; see [`Tree::is_stray`].
static IN_FLIGHT: AtomicUsize = AtomicUsize::new(0);

/// The processes that belong to this one for longer than a call.
static RESIDENTS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// A child of this process that lasts longer than a call, until this is dropped. To be entered as soon as it is started,
/// and dropped once it was waited for.
///
/// Calls neither wait for it nor end it, nor what is in its group or its session; that remains with whoever started it.
#[must_use = "the process is taken for a part of a call when this is dropped"]
pub struct Resident(i32);

impl Resident {
    /// Enters a child.
    pub fn enter(pid: u32) -> Self {
        let pid = i32::try_from(pid).unwrap_or_default();
        residents().insert(pid);
        Self(pid)
    }
}

impl Drop for Resident {
    fn drop(&mut self) {
        residents().remove(&self.0);
    }
}

fn residents() -> MutexGuard<'static, BTreeSet<i32>> {
    RESIDENTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How the processes of one call are distinguished from all others.
pub(super) struct Tree {
    token: String,
    born: u64,
    /// The processes that lead the groups of the call.
    leaders: BTreeSet<i32>,
    known: BTreeSet<(i32, u64)>,
}

impl Tree {
    /// A tree without a process yet.
    pub(super) fn new() -> Self {
        Self::of_process(&token(), BTreeSet::new(), now_in_ticks())
    }

    /// Returns the remains of another process: its [`process_token`], the groups that it had under way, and since
    /// when.
    pub(super) fn of_process(token: &str, leaders: BTreeSet<i32>, born: u64) -> Self {
        IN_FLIGHT.fetch_add(1, Ordering::SeqCst);
        Self { token: token.to_owned(), born, leaders, known: BTreeSet::new() }
    }

    /// The value of [`MARKER`] for the program.
    pub(super) fn marker(&self) -> String {
        match std::env::var(MARKER) {
            Ok(outer) => format!("{outer}/{}", self.token),
            Err(_) => self.token.clone(),
        }
    }

    /// Tells the process that everything starts from.
    pub(super) fn set_leader(&mut self, pid: u32) {
        self.leaders.extend(i32::try_from(pid));
    }

    /// Returns whether something of the call seems to be there after its leader was waited for. Costs two small
    /// system calls and a small file, however many processes there are.
    pub(super) fn has_survivors(&self) -> bool {
        let adopted: Vec<Stat> = procfs::adopted().into_iter().filter_map(procfs::stat).collect();
        adopted.iter().filter(|each| each.ended && is_adopted(each)).for_each(|each| os::reap(each.pid));
        let lives = |leader: &i32| {
            os::group_lives(*leader) && {
                os::reap_group(*leader);
                os::group_lives(*leader)
            }
        };
        self.leaders.iter().any(lives) || adopted.iter().any(|each| !each.ended && self.owns(each))
    }

    /// Every process of the call that is still running. Looks at all processes of the machine.
    pub(super) fn members(&mut self) -> Vec<Stat> {
        let all: Vec<Stat> = procfs::all().into_iter().filter(|each| each.start >= self.born).collect();
        let mut pids: BTreeSet<i32> = all.iter().filter(|each| self.owns(each)).map(|each| each.pid).collect();
        loop {
            let before = pids.len();
            pids.extend(all.iter().filter(|each| pids.contains(&each.parent)).map(|each| each.pid).collect::<Vec<_>>());
            if pids.len() == before {
                break;
            }
        }
        let members: Vec<Stat> = all.into_iter().filter(|each| pids.contains(&each.pid)).collect();
        self.known.extend(members.iter().map(|each| (each.pid, each.start)));
        members.iter().filter(|each| each.ended && is_adopted(each)).for_each(|each| os::reap(each.pid));
        members.into_iter().filter(|each| !each.ended).collect()
    }

    /// How much memory its processes take, in bytes. Costs a small file for each of their threads, however many other processes
    /// there are. What two of them share counts twice.
    pub(super) fn resident_memory(&self) -> u64 {
        let orphans =
            procfs::adopted().into_iter().filter(|pid| procfs::stat(*pid).is_some_and(|each| self.owns(&each)));
        let (mut seen, mut found) = (BTreeSet::new(), self.leaders.iter().copied().chain(orphans).collect::<Vec<_>>());
        while let Some(pid) = found.pop() {
            if seen.insert(pid) {
                found.extend(procfs::children(pid));
            }
        }
        seen.into_iter().filter_map(procfs::resident_memory).sum()
    }

    /// Ends every process of the call by force, those that start meanwhile too. Returns those that are still there when
    /// the patience is over: they hang in the kernel, or belong to a user that this one has no power over.
    pub(super) fn end(&mut self, patience: Duration) -> Vec<Stat> {
        let begun = Instant::now();
        let mut quiet = 0;
        // Twice, for one that was forking or between two programs while the list was read.
        while quiet < 2 {
            let members = self.members();
            quiet = if members.is_empty() { quiet + 1 } else { 0 };
            members.iter().for_each(os::end_process);
            if begun.elapsed() > patience {
                return members;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Vec::new()
    }

    fn owns(&self, process: &Stat) -> bool {
        self.leaders.contains(&process.pid)
            || self.leaders.contains(&process.group)
            || self.known.contains(&(process.pid, process.start))
            || procfs::environment_has(process.pid, MARKER, &self.token)
            || self.is_stray(process)
    }

    /// Returns whether it was given to this process as an orphan without a mark. It is from this call for certain
    /// only when there is no other one; it stays when there is, rather than ending the work of somebody else.
    fn is_stray(&self, process: &Stat) -> bool {
        process.start >= self.born
            && IN_FLIGHT.load(Ordering::SeqCst) == 1
            && !is_init()
            && is_adopted(process)
            && procfs::own().is_some_and(|own| process.session != own.session)
            && !procfs::environment_has(process.pid, MARKER, "")
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        IN_FLIGHT.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Returns whether a process was given to this one as an orphan, and not started by it: a process that it starts is
/// either in its group, or leads a group in its session.
fn is_adopted(process: &Stat) -> bool {
    // From the same source as what it is compared with, and not by a system call: in the namespace of a container the
    // group and the session can be those of a process outside, which has the number 0 here.
    procfs::own().is_some_and(|own| {
        let leads_own = process.session == own.session && process.group == process.pid;
        process.parent == own.pid && process.group != own.group && !leads_own && !is_resident(process)
    })
}

/// Returns whether it belongs to a child that lasts longer than a call.
pub(super) fn is_resident(process: &Stat) -> bool {
    let residents = residents();
    [process.pid, process.group, process.session].iter().any(|id| residents.contains(id))
}

/// Returns whether this is the first process of the machine or of a container: every orphan comes to it then, whoever
/// started it.
fn is_init() -> bool {
    rustix::process::getpid().is_init()
}

/// Unique on the machine, with the separator that keeps it from being the start of another.
fn token() -> String {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    format!("{}{};", process_token(), CALLS.fetch_add(1, Ordering::Relaxed))
}

/// Returns the prefix of the tokens of all calls of this process.
pub(super) fn process_token() -> String {
    static SEED: OnceLock<u64> = OnceLock::new();
    let seed = SEED.get_or_init(|| RandomState::new().build_hasher().finish());
    format!("{seed:016x}-")
}

/// Returns whether a text could be one of [`process_token`].
pub(super) fn is_process_token(text: &str) -> bool {
    text.len() == 17 && text.strip_suffix('-').is_some_and(|seed| seed.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn now_in_ticks() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    // The kernel shows a hundred ticks a second on every architecture that matters. Earlier by a second, so that
    // rounding never hides a process.
    u64::try_from(now.tv_sec).unwrap_or_default().saturating_sub(1) * 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_none_starts_another() {
        let tokens: BTreeSet<String> = (0..100).map(|_| token()).collect();
        assert_eq!(tokens.len(), 100);
        assert!(tokens.iter().all(|token| token.starts_with(&process_token())));
        assert!(is_process_token(&process_token()) && !is_process_token("") && !is_process_token("-"));
        assert!(tokens.iter().all(|one| tokens.iter().all(|other| one == other || !other.contains(one.as_str()))));
    }
}
