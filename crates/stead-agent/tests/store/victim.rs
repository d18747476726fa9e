//! The process that goes through a script while its system calls are recorded, fail, or end it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use stead_testkit::{memory_folder, skip};
use tempfile::TempDir;

use crate::script::Script;

/// The variable of the environment that has the task of the process.
const VICTIM: &str = "STEAD_TEST_VICTIM";

/// The system calls by which anything changes.
pub(crate) const CHANGES: &[&str] = &[
    "openat",
    "openat2",
    "mkdirat",
    "mkdir",
    "linkat",
    "renameat",
    "renameat2",
    "rename",
    "unlinkat",
    "unlink",
    "write",
    "pwrite64",
    "ftruncate",
    "fallocate",
    "fsync",
    "fdatasync",
    "fchmod",
    "fchmodat",
    "flock",
];

const WARM_UP: usize = 16;

/// Runs the script, in the process that was started for it.
#[test]
fn process_that_is_disturbed() {
    let Ok(task) = std::env::var(VICTIM) else { return };
    let mut words = task.splitn(5, ' ');
    let mut number = || words.next().unwrap().parse::<usize>().unwrap();
    let (seed, retries, reports, umask) = (number(), number() == 1, number() == 1, number());
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(u32::try_from(umask).unwrap()));
    warm_up();
    Script { directory: Path::new(words.next().unwrap()), seed, retries, reports }.run();
}

/// Calls what is counted. What the main thread does is counted apart: with these, each count of this thread is beyond all of that
/// one.
pub(crate) fn warm_up() {
    for _ in 0..WARM_UP {
        let mut file = File::options().read(true).write(true).open("/dev/null").unwrap();
        let _ = (file.write(b"w"), file.read(&mut [0]), file.read_at(&mut [0], 0), file.metadata(), file.try_clone());
    }
}

/// A process that goes through a script.
#[derive(Clone, Copy)]
pub(crate) struct Victim<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) seed: usize,
    pub(crate) retries: bool,
    pub(crate) reports: bool,
    pub(crate) umask: u32,
}

/// The output of a process.
#[derive(Default, Debug)]
pub(crate) struct Heard {
    /// How many steps it said were done.
    pub(crate) done: usize,
    pub(crate) failures: Vec<String>,
    pub(crate) repairs: Vec<String>,
    /// True if it ended by itself.
    pub(crate) exited: bool,
}

impl Victim<'_> {
    /// Runs it under strace with these options.
    pub(crate) fn run(&self, options: &[String]) -> Heard {
        let Self { directory, seed, retries, reports, umask } = *self;
        let task = format!("{seed} {} {} {umask} {}", u8::from(retries), u8::from(reports), directory.display());
        let output = Command::new("strace")
            .args(["-f", "-qq"])
            .args(options)
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "victim::process_that_is_disturbed", "--nocapture", "--test-threads=1"])
            .env(VICTIM, task)
            .env("RUST_BACKTRACE", "0")
            // The loader would look into each of them.
            .env_remove("LD_LIBRARY_PATH")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let mut heard = Heard { exited: output.status.success(), ..Heard::default() };
        for line in String::from_utf8_lossy(&output.stdout).lines().filter_map(|line| line.strip_prefix('=')) {
            match line.split_once(": ") {
                Some(("repaired", what)) => heard.repairs.push(what.to_owned()),
                Some((_, why)) => heard.failures.push(why.to_owned()),
                None => heard.done = line.parse().unwrap(),
            }
        }
        heard
    }

    /// Runs it undisturbed, and returns which system calls it made after it began: their names, with how often it had made
    /// each before.
    pub(crate) fn calls(&self, names: &[&str]) -> Vec<(String, usize)> {
        let log = self.recorded(names, &[]).0;
        let script = log.iter().find(|line| line.contains("\"/begin\"")).unwrap();
        let thread = script.split(' ').next().unwrap().to_owned();
        let mut counts = std::collections::BTreeMap::<String, usize>::new();
        let (mut calls, mut has_begun) = (Vec::new(), false);
        for line in log.iter().filter(|line| line.starts_with(&thread)) {
            has_begun |= line.contains("\"/begin\"");
            let Some((name, _)) = line.trim_start_matches(&thread).trim_start().split_once('(') else { continue };
            let count = counts.entry(name.to_owned()).or_default();
            *count += 1;
            if has_begun && names.contains(&name) {
                calls.push((name.to_owned(), *count));
            }
        }
        calls
    }

    /// Runs it and records system calls, with everything that is written.
    pub(crate) fn recorded(&self, names: &[&str], more: &[String]) -> (Vec<String>, Heard) {
        let log = self.directory.ancestors().nth(2).unwrap().join("log");
        let trace = format!("trace={},readlink,readlinkat,close,fcntl", names.join(","));
        let path = log.to_str().unwrap().to_owned();
        let _ = std::fs::remove_file(&log);
        let mut options: Vec<String> = ["-s", "10000000", "-o", &path, "-e", &trace].map(str::to_owned).to_vec();
        options.extend_from_slice(more);
        let heard = self.run(&options);
        (std::fs::read_to_string(log).unwrap().lines().map(str::to_owned).collect(), heard)
    }
}

/// Returns whether strace is installed and may do its work; where not, the test is reported as skipped.
pub(crate) fn has_strace(test: &str) -> bool {
    let traced = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).output();
    let works = traced.is_ok_and(|output| output.status.success());
    if !works {
        skip(test, "strace is not installed, or may not trace");
    }
    works
}

/// A directory in memory, if there is one: what is flushed there costs nothing.
pub(crate) fn fast_directory() -> TempDir {
    TempDir::new_in(memory_folder()).unwrap()
}

/// Where the store is in it: a path of which nothing is there yet.
pub(crate) fn store_in(directory: &TempDir) -> PathBuf {
    directory.path().join("lib/agent")
}
