//! Sets in processes that are killed at every system call that changes something.

use std::path::Path;

use stead_core::call::Execution;
use stead_host::provider::Context;
use stead_system::fs::{SystemRoot, Writes};

use crate::support::{World, plain, provider};

/// Where the process that will be killed works, and what it sets, in its environment.
const VICTIM: &str = "STEAD_TEST_VICTIM";
const STATE: &str = "STEAD_TEST_STATE";

/// The system calls that change something.
const MUTATING: [&str; 9] =
    ["write", "linkat", "renameat", "renameat2", "unlinkat", "fchmod", "fchown", "mkdirat", "symlinkat"];

/// A change that is cut off, of a system that is so before.
pub(crate) struct Change {
    pub(crate) before: &'static str,
    pub(crate) type_name: &'static str,
    pub(crate) state: &'static str,
    /// The files that must be whole: as they were, or as they are to be.
    pub(crate) files: &'static [&'static str],
}

/// Sets, if this is the process that will be killed: to be called by the test of that name.
pub(crate) fn victim() {
    let (Some(root), Ok(state)) = (std::env::var_os(VICTIM), std::env::var(STATE)) else { return };
    let (type_name, state) = state.split_once(' ').unwrap();
    set(Path::new(&root), type_name, state);
}

fn set(root: &Path, type_name: &str, state: &str) {
    let cx =
        Context { system_root: SystemRoot::below(root), writes: Writes::default(), ..Context::new(root.to_owned()) };
    let done = provider(type_name).set(&cx, &plain(state), Execution::Actual);
    done.map_err(|failure| failure.message).unwrap();
}

/// Cuts the change off at each call in turn, until it comes to its end, and returns how often that was. `victim` is the name
/// of the test that calls [`victim`].
pub(crate) fn cut(change: &Change, victim: &str) -> usize {
    let Change { before, type_name, state, files } = change;
    let (untouched, reference) = (World::build(before), World::build(before));
    set(reference.root.path(), type_name, state);
    let read = |world: &World, file: &str| std::fs::read(world.root.path().join(file)).ok();
    let mut kills = 0;
    for call in MUTATING {
        for when in 1.. {
            let world = World::build(before);
            let ended = traced(change, &world, &format!("{call}:signal=KILL:when={when}"), victim);
            for file in *files {
                let found = read(&world, file);
                let is_whole = [&untouched, &reference].iter().any(|whole| read(whole, file) == found);
                assert!(is_whole, "{state}: {call} {when}: {file}: {found:?}");
            }
            set(world.root.path(), type_name, state);
            assert_eq!(world.tree(), reference.tree(), "{state}: {call} {when}");
            if ended.status.success() {
                break;
            }
            kills += 1;
        }
    }
    kills
}

/// Makes the change while every other opening is to be tried again.
pub(crate) fn retry(change: &Change, victim: &str) {
    let Change { before, type_name, state, .. } = change;
    let (world, reference) = (World::build(before), World::build(before));
    set(reference.root.path(), type_name, state);
    let ended = traced(change, &world, "openat2:error=EAGAIN:when=1+2", victim);
    assert!(ended.status.success(), "{state}: {}", String::from_utf8_lossy(&ended.stdout));
    assert_eq!(world.tree(), reference.tree(), "{state}");
}

/// Runs the victim with something done to one of its system calls.
fn traced(change: &Change, world: &World, inject: &str, victim: &str) -> std::process::Output {
    let Change { type_name, state, .. } = change;
    let call = inject.split(':').next().unwrap();
    std::process::Command::new("strace")
        .args(["-f", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &format!("inject={inject}")])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", victim, "--test-threads=1"])
        .envs([(VICTIM, world.root.path().as_os_str()), (STATE, format!("{type_name} {state}").as_ref())])
        .output()
        .unwrap()
}
