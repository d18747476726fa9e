//! Many jobs in one process: what each takes is given back.
//!
//! `STEAD_SOAK=1800 cargo test -p stead --test agent soak -- --nocapture` waits for so many jobs, one a second: half an hour at
//! 900 times the normal rate.

use serde_json::json;
use stead_testkit::{times, until};

use crate::machine::{Machine, Usage};

/// How many jobs are waited for where nothing is asked for.
const JOBS: usize = 4;

/// So much more than after the first jobs does not count as growth: allocators keep some, and another caller may be answered.
const MORE_MEMORY_KIB: u64 = 4 << 10;
const MORE_DESCRIPTORS: usize = 2;
const MORE_THREADS: usize = 2;

#[test]
fn jobs_take_no_more_the_longer_the_agent_runs() {
    let mut machine = Machine::new();
    machine.start();
    machine.set("ConfigurationModeFrequencyMins=0.0166667", "SplaySecs=0");
    let files = (0..20).map(|number| {
        json!({"name": format!("f{number}"), "type": "Stead/File",
            "properties": {"path": machine.path(&format!("f{number}")), "content": format!("right {number}\n")}})
    });
    let commands = (0..5).map(|number| {
        let path = machine.path(&format!("c{number}")).display().to_string();
        json!({"name": format!("c{number}"), "type": "Stead/Command",
            "properties": {"test": format!("test -e {path}"), "set": format!("touch {path}")}})
    });
    let auto = json!({"configurationMode": "ApplyAndAutoCorrect"});
    machine.deliver_with("soak", &auto, &files.chain(commands).collect());
    machine.wait(0);
    let jobs = times("STEAD_SOAK", JOBS);
    // The first jobs fill what is kept between them.
    let warm_up = jobs / 10 + 1;
    let mut settled = None;
    for job in 0..jobs {
        machine.write("f3", "drifted\n");
        let _ = std::fs::remove_file(machine.path("c2"));
        until(|| (machine.read("f3")? == "right 3\n" && machine.read("c2").is_some()).then_some(()));
        machine.ok(&["wait", "--job"]);
        let usage = machine.usage();
        if job % jobs.div_ceil(20) == 0 {
            println!("job {job}: {usage:?}");
        }
        if job == warm_up {
            settled = Some(usage);
        } else if let Some(settled) = settled {
            // A job under way takes more for a moment.
            until(|| is_flat(&settled, &machine.usage()).then_some(()));
        }
    }
    println!("{jobs} jobs: {settled:?} after the first, {:?} at the end", machine.usage());
    machine.stop();
}

fn is_flat(settled: &Usage, usage: &Usage) -> bool {
    usage.resident_kib <= settled.resident_kib + MORE_MEMORY_KIB
        && usage.descriptors <= settled.descriptors + MORE_DESCRIPTORS
        && usage.threads <= settled.threads + MORE_THREADS
        && usage.zombies == 0
}
