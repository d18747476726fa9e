//! A process is killed before each of its system calls.

use std::time::{Duration, Instant};

use stead_agent::Store;
use stead_testkit::times;

use crate::script::{number_of, states};
use crate::victim::{CHANGES, Heard, Victim, fast_directory, has_strace, store_in};

/// How long opening what a killed process left may take.
const RECOVERY: Duration = Duration::from_secs(1);

/// Returns the mistake in the files that were left, if there is one.
fn recovered(victim: &Victim<'_>, heard: &Heard) -> Result<(), String> {
    let begun = Instant::now();
    let (mut store, state, repairs) = Store::open_with(victim.directory, None).map_err(|error| error.to_string())?;
    if begun.elapsed() > RECOVERY {
        return Err(format!("it took {:?}", begun.elapsed()));
    }
    let number = number_of(&store, &state, victim.seed)?;
    if !repairs.is_empty() || !heard.repairs.is_empty() {
        return Err(format!("repaired {repairs:?} {:?}", heard.repairs));
    }
    if number < heard.done || number > heard.done + 1 {
        return Err(format!("{} steps were done, and {number} are there", heard.done));
    }
    store.save(&states(victim.seed).pop().unwrap()).map_err(|error| error.to_string())
}

#[test]
fn a_kill_before_any_system_call_loses_nothing() {
    if !has_strace("a_kill_before_any_system_call_loses_nothing") {
        return;
    }
    let (wanted, mut tried) = (times("STEAD_AGENT_KILLS", 60), 0);
    let mut found = Vec::new();
    for seed in 0.. {
        let home = fast_directory();
        let directory = store_in(&home);
        let victim = Victim { directory: &directory, seed, retries: false, reports: seed % 3 == 0, umask: 0o022 };
        let calls = victim.calls(CHANGES);
        // A dose is spread over all of the calls.
        let stride = (calls.len() / wanted).max(1);
        for (name, count) in calls.iter().skip(seed % stride).step_by(stride) {
            if tried == wanted {
                println!("{tried} kills: {} losses", found.len());
                assert_eq!(found, Vec::<String>::new());
                return;
            }
            tried += 1;
            let _ = std::fs::remove_dir_all(home.path().join("lib"));
            let kill = |when: usize| {
                ["-o", "/dev/null", "-e", &format!("trace={name}"), "-e"]
                    .map(str::to_owned)
                    .into_iter()
                    .chain([format!("inject={name}:signal=KILL:when={when}")])
                    .collect::<Vec<_>>()
            };
            let mut heard = victim.run(&kill(*count));
            assert!(!heard.exited, "{name} {count} was not reached");
            // What goes on from there is killed as well.
            if tried % 4 == 0 {
                heard.done = heard.done.max(victim.run(&kill(*count / 2 + 1)).done);
            }
            if let Err(error) = recovered(&victim, &heard) {
                found.push(format!("seed {seed}, {name} {count}: {error}"));
            }
        }
        println!("{tried} kills so far: {} losses", found.len());
    }
}
