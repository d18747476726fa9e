//! The cost of the runner beyond the spawn itself: a thousand times `/bin/true`, against a loop of bare spawns.
//!
//! `cargo bench -p stead-host --bench spawn`. With `runner` or `bare` as argument one side alone runs, for `strace
//! -c`.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use stead_system::Cancel;
use stead_system::process::{self, Environment, Executable, Limits, Program};

const ROUNDS: u32 = 1000;

fn bare() {
    let status = Command::new("/bin/true").stdin(Stdio::null()).status().expect("a program to run");
    assert!(status.success());
}

fn bare_with_pipes() {
    let output = Command::new("/bin/true").stdin(Stdio::null()).output().expect("a program to run");
    assert!(output.status.success());
}

fn runner(environment: &Environment) {
    let executable = Executable::open("/bin/true".into(), &Environment::default()).expect("a program");
    let program = Program {
        executable: &executable,
        arguments: &[],
        directory: Path::new("/"),
        environment,
        variables: &[],
        input: None,
    };
    let finished = process::run(&program, &Limits::default(), &Cancel::default(), &mut |_| {});
    assert!(finished.is_ok());
}

/// Processor time of this process; that of the children is the kernel's and theirs.
fn processor() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

fn children() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text.rsplit_once(')').map_or("", |(_, tail)| tail).split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok()).unwrap_or_default();
    Duration::from_millis(10 * (ticks(13) + ticks(14)))
}

fn measure(call: &dyn Fn()) -> (Duration, Duration, Duration) {
    let (wall, own, theirs) = (Instant::now(), processor(), children());
    (0..ROUNDS).for_each(|_| call());
    (wall.elapsed(), processor().saturating_sub(own), children().saturating_sub(theirs))
}

fn main() {
    let environment = Environment::of_this_process(&[]);
    let supervised = || runner(&environment);
    let mut out = std::io::stdout();
    let only = std::env::args().nth(1).filter(|argument| !argument.starts_with("--"));
    let sides: [(&str, &dyn Fn()); 3] = [("bare", &bare), ("pipes", &bare_with_pipes), ("runner", &supervised)];
    // In turns, so that whatever else the machine does hits all of them.
    for _ in 0..if only.is_some() { 1 } else { 5 } {
        for (name, call) in sides.iter().filter(|(name, _)| only.as_deref().is_none_or(|only| only == *name)) {
            let (wall, own, theirs) = measure(*call);
            let line = format!("{name:>7}: wall {wall:>10.2?}  own cpu {own:>10.2?}  children's cpu {theirs:>8.2?}");
            writeln!(out, "{line}").expect("a terminal to write to");
        }
    }
}
