//! A fleet in simulated time: machines, controllers and their store are the real ones, and time, network and processes are not.
//!
//! `STEAD_SIM_SEEDS` is how many worlds are tried, `STEAD_SIM_SEED=n` tries one of them.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

mod controllers;
#[path = "../../../stead-release/tests/support/mod.rs"]
mod keys;
mod machine;
mod operators;
mod random;
#[path = "../support/site.rs"]
mod site;
mod world;

use std::fmt::Write as _;

use random::Random;
use stead_testkit::{asked, times};
use world::{History, Nature, World};

/// Lets a world be until it is in the desired state.
fn lived(seed: u64, nature: Nature) -> History {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut world = World::new(seed, nature);
        world.run().await;
        std::mem::take(&mut world.history)
    })
}

fn nature(random: &mut Random) -> Nature {
    Nature {
        machines: usize::try_from(random.between(1, 14)).unwrap(),
        controllers: usize::try_from(random.between(1, 4)).unwrap(),
        releases: usize::try_from(random.between(1, 7)).unwrap(),
        trouble: random.between(60_000, 400_000),
        lost: random.below(500),
        doubled: random.below(300),
        delay: random.between(1, 4_000),
        skew: i64::try_from(random.below(7_200_000)).unwrap(),
        deaths: random.happens(700),
        cuts: random.happens(400),
        restores: random.happens(400),
    }
}

#[test]
fn nothing_is_lost_doubled_or_goes_back_whatever_fails() {
    let seeds: Vec<u64> = match asked("STEAD_SIM_SEED") {
        Some(seed) => vec![seed as u64],
        None => (0..times("STEAD_SIM_SEEDS", 20) as u64).collect(),
    };
    let (mut wrong, mut all, worlds) = (String::new(), History::default(), seeds.len());
    for seed in seeds {
        let nature = nature(&mut Random::new(seed));
        let history = lived(seed, nature);
        if history.settled.is_none() || !history.wrong.is_empty() {
            let _ = writeln!(wrong, "STEAD_SIM_SEED={seed} {nature:?}:\n  {}", history.wrong.join("\n  "));
        }
        all.deaths += history.deaths;
        all.restores += history.restores;
        all.reports += history.reports;
        all.settled = all.settled.max(history.settled);
    }
    let History { deaths, restores, reports, settled, .. } = all;
    println!(
        "{worlds} worlds: {deaths} deaths, {restores} older copies, {reports} reports, settled within {settled:?} ms"
    );
    assert!(wrong.is_empty(), "{wrong}");
    assert!(worlds < 20 || deaths > 50 && restores > 3 && reports > 500, "too little happened to say anything");
}

#[test]
fn a_seed_is_a_world() {
    let nature = nature(&mut Random::new(0));
    let [one, other] = [0; 2].map(|seed| lived(seed, nature));
    assert_eq!((&one.staged, &one.requests, one.deaths), (&other.staged, &other.requests, other.deaths));
    assert_eq!((one.reports, one.settled), (other.reports, other.settled));
    assert!(one.deaths > 0 && one.restores > 0);
}
