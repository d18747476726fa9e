//! The agent in virtual time: random documents, administrators, clocks, crashes and restarts. What is not saved is lost, and
//! what is saved is read anew after every change.
//!
//! `STEAD_AGENT_SEEDS=10000` tries so many. A failure names its seed, which alone makes it again.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "simulation/laws.rs"]
mod laws;
#[path = "simulation/machine.rs"]
mod machine;
#[path = "../../stead-core/tests/support/random.rs"]
mod random;
#[path = "simulation/world.rs"]
mod world;

use world::{CrashAt, World};

/// How many seeds are tried where nobody says it.
const USUAL: usize = 100;

/// The number of events before the world becomes fair.
const TURNS: usize = 100;

#[test]
fn a_fair_world_converges_after_whatever_happened() {
    let seeds = stead_testkit::times("STEAD_AGENT_SEEDS", USUAL);
    let (mut jobs, mut parts) = (0, 0);
    for world in (0..seeds as u64).map(|seed| run(seed, CrashAt::Random)) {
        (jobs, parts) = (jobs + world.jobs(), parts + world.parts());
    }
    println!("{seeds} seeds, {jobs} jobs, {parts} of them over parts, no law violated");
}

#[test]
fn a_crash_before_any_change_is_saved_loses_nothing() {
    let seeds = stead_testkit::times("STEAD_AGENT_SEEDS", USUAL).div_ceil(50);
    let mut points = 0;
    for seed in 0..seeds as u64 {
        let changes = run(seed, CrashAt::Never).changes();
        points += changes;
        for change in 0..changes {
            run(seed, CrashAt::Change(change));
        }
    }
    println!("{seeds} seeds, {points} crashes, no law violated");
}

#[test]
fn a_seed_replays_exactly() {
    for seed in [1, 7, 19] {
        assert_eq!(run(seed, CrashAt::Random).trace(), run(seed, CrashAt::Random).trace());
    }
}

fn run(seed: u64, crash: CrashAt) -> World {
    let mut world = World::new(seed, crash);
    let done = (0..TURNS).try_for_each(|_| world.turn()).and_then(|()| world.become_fair());
    if let Err(violated) = done {
        let trace = world.trace();
        let last = &trace[trace.len().saturating_sub(40)..];
        panic!("seed {seed}, {crash:?}: {violated}\n{}", last.join("\n"));
    }
    world
}
