//! A fleet in simulated time: machines, controllers and their store are the real ones, and time, network and processes are not.
//!
//! `STEAD_SIM_SEEDS` is how many worlds are tried, `STEAD_SIM_SEED=n` tries one of them.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

mod controllers;
#[path = "../../../stead-release/tests/support/mod.rs"]
mod keys;
mod machine;
mod operators;
mod queue;
mod random;
#[path = "../support/site.rs"]
mod site;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use controllers::BEGIN;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use random::Random;
use stead_fleet::server::Controller;
use stead_protocol::{EventShown, ListPage, MachineState};
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
        killed: 0,
        away: None,
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
    let (mut deaths, mut restores) = (0, 0);
    for seed in 0..4 {
        let nature = nature(&mut Random::new(seed));
        let [one, other] = [seed; 2].map(|seed| lived(seed, nature));
        assert_eq!((&one.staged, &one.asked, one.deaths), (&other.staged, &other.asked, other.deaths), "{seed}");
        assert_eq!((one.reports, one.settled), (other.reports, other.settled), "{seed}");
        (deaths, restores) = (deaths + one.deaths, restores + one.restores);
    }
    assert!(deaths > 0 && restores > 0, "{deaths} {restores}");
}

/// A world in which nothing fails.
fn calm(machines: usize) -> Nature {
    Nature {
        machines,
        controllers: 1,
        releases: 0,
        trouble: 90_000,
        lost: 0,
        doubled: 0,
        delay: 5,
        skew: 0,
        deaths: false,
        cuts: false,
        restores: false,
        killed: 0,
        away: None,
    }
}

/// When the last machine asked again behind a time, and how many asked in the fullest second, in thousandths of the mean until then.
fn returned(history: &History, machines: usize, from: u64) -> (u64, u64) {
    let (mut seconds, mut back) = (std::collections::BTreeMap::new(), std::collections::BTreeMap::new());
    for (at, machine) in history.asked.iter().filter(|(at, _)| *at >= from) {
        if back.insert(*machine, *at).is_none() {
            *seconds.entry((at - from) / 1000).or_insert(0_u64) += 1;
        }
    }
    assert_eq!(back.len(), machines, "not all came back");
    let first: std::collections::BTreeMap<usize, u64> =
        history.asked.iter().rev().filter(|(at, _)| *at >= from).map(|(at, machine)| (*machine, *at)).collect();
    let last = first.values().max().unwrap() - from;
    let (peak, busy) = (seconds.values().max().unwrap(), last.div_ceil(1000).max(1));
    (last, peak * 1000 * busy / machines as u64)
}

#[test]
fn machines_come_back_to_a_controller_that_began_again_within_twelve_seconds_and_apart() {
    let machines = 30 * times("STEAD_SIM_RETURN", 10);
    let nature = Nature { away: Some((30_000, 250)), ..calm(machines) };
    let history = lived(1, nature);
    assert!(history.wrong.is_empty() && history.settled.is_some(), "{:#?}", history.wrong);
    let (last, peak) = returned(&history, machines, 30_000);
    println!("{machines} machines are back within {last} ms; the fullest second has {peak} thousandths of the mean");
    assert!(last <= 12_000 && peak <= 2_000, "{last} {peak}");
}

#[test]
fn machines_come_back_apart_when_a_controller_was_away_for_long() {
    let (machines, hours) = (60, 2 * times("STEAD_SIM_AWAY", 1) as u64);
    let away = hours * 3_600_000;
    let nature = Nature { away: Some((30_000, away)), trouble: away + 340_000, ..calm(machines) };
    let history = lived(2, nature);
    assert!(history.wrong.is_empty() && history.settled.is_some(), "{:#?}", history.wrong);
    let (last, _) = returned(&history, machines, 30_000 + away);
    println!("{machines} machines are back within {last} ms of a controller that was away for {hours} h");
    // The longest wait is five minutes, and a second.
    assert!(last <= 301_000 + 1_000, "{last}");
}

/// When a controller said of machines that they are silent, in milliseconds behind the beginning: of the last thousand events.
async fn silent(controller: Arc<Controller>) -> BTreeMap<String, u64> {
    let request = Request::get("/v1/events?most=1000").header("authorization", "Bearer operator");
    let answer = controller.answer(request.body(Full::new(Bytes::new())).unwrap()).await;
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let page: ListPage<EventShown> = serde_json::from_slice(&body).unwrap();
    let silent = page.items.into_iter().filter_map(|event| match event {
        EventShown::State { at, machine, to: MachineState::Silent, .. } => Some((machine, at - BEGIN)),
        _ => None,
    });
    silent.collect()
}

/// `STEAD_SIM_SILENT=50` has ten thousand machines, of which five hundred end for good.
#[test]
fn machines_that_end_are_said_to_be_silent_in_time_and_no_other_is() {
    let machines = 200 * times("STEAD_SIM_SILENT", 1);
    let nature = Nature { killed: machines / 20, trouble: 300_000, ..calm(machines) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let (history, silent) = runtime.block_on(async {
        let mut world = World::new(4, nature);
        world.run().await;
        let controller = world.controller().unwrap();
        (std::mem::take(&mut world.history), silent(controller).await)
    });
    assert!(history.wrong.is_empty() && history.settled.is_some(), "{:#?}", history.wrong);
    assert_eq!(history.killed.len(), machines / 20);
    assert!(silent.keys().eq(history.killed.keys()), "{silent:?} of {:?}", history.killed);
    let longest = silent.iter().map(|(machine, at)| at - history.killed[machine]).max().unwrap();
    println!("{} of {machines} machines end, and are silent within {longest} ms; no other one is", silent.len());
    // Two intervals of 60 s, and ten seconds, and those in which a controller looks.
    assert!(longest <= 130_000 + 4_000, "{longest}");
}

#[test]
fn a_release_is_at_each_machine_at_once() {
    let nature = Nature { controllers: 3, releases: 4, ..calm(25) };
    let history = lived(3, nature);
    assert!(history.wrong.is_empty() && history.settled.is_some(), "{:#?}", history.wrong);
    let newest: BTreeSet<u64> = history.staged.values().map(|staged| staged.last().unwrap().1).collect();
    assert!(history.staged.len() == 25 && newest.len() == 1, "{newest:?}");
    // A release comes with the answer to who waits for it, with its bundle. Before the first one a machine asks for what leads to it.
    let of_files = history.numbers.values().filter(|path| path.starts_with("/v1/source/"));
    let files: BTreeSet<&str> = of_files.map(String::as_str).collect();
    assert_eq!(files, BTreeSet::from(["/v1/source/root", "/v1/source/roster"]));
    // Machines may have it before the operator is answered.
    let last = history.staged_at.last().unwrap().saturating_sub(*history.published_at.last().unwrap());
    println!("the last of 25 machines at three controllers has a release staged {last} ms behind its answer");
    // A hint and an answer on ways of up to five milliseconds and, for hints, twenty; the turn of a planner is two seconds.
    assert!(last < 100, "{last}");
}
