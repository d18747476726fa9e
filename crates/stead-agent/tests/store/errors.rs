//! Each system call of a process fails once, or from then on: when the store is new, when it is opened after a kill, and when
//! it is repaired.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use stead_agent::Store;
use stead_testkit::times;
use tempfile::TempDir;

use crate::script::{number_of, steps};
use crate::victim::{Heard, Victim, fast_directory, has_strace, store_in};

/// System calls, and the errors that they may fail with.
const ERRORS: &[(&str, &[&str])] = &[
    ("openat", &["EMFILE", "ENOSPC", "EIO", "EROFS", "EDQUOT", "ENOMEM", "EINTR"]),
    ("openat2", &["EMFILE", "EIO", "EDQUOT", "ENOMEM", "EINTR"]),
    ("read", &["EIO", "ENOMEM", "EINTR"]),
    ("pread64", &["EIO", "ENOMEM", "EINTR"]),
    ("getdents64", &["EIO", "ENOMEM"]),
    ("fcntl", &["EMFILE", "ENOMEM"]),
    ("fstat", &["EIO", "ENOMEM"]),
    ("newfstatat", &["EIO", "ENOMEM"]),
    ("statx", &["EIO", "ENOMEM"]),
    ("mkdirat", &["ENOSPC", "EIO", "EROFS", "EDQUOT", "ENOMEM"]),
    ("linkat", &["ENOSPC", "EIO", "EROFS", "EDQUOT", "ENOMEM"]),
    ("renameat", &["ENOSPC", "EIO", "EROFS", "EDQUOT", "ENOMEM"]),
    ("renameat2", &["ENOSPC", "EIO", "EROFS", "EDQUOT", "ENOMEM"]),
    ("unlinkat", &["EIO", "EROFS", "ENOMEM"]),
    ("write", &["ENOSPC", "EIO", "EDQUOT", "ENOMEM", "EINTR"]),
    ("pwrite64", &["ENOSPC", "EIO", "EDQUOT", "ENOMEM", "EINTR"]),
    ("ftruncate", &["ENOSPC", "EIO", "EDQUOT", "EINTR"]),
    ("fallocate", &["ENOSPC", "EDQUOT", "EINTR"]),
    ("fsync", &["EIO", "ENOSPC", "EDQUOT", "EINTR"]),
    ("fdatasync", &["EIO", "ENOSPC", "EDQUOT", "EINTR"]),
    ("fchmod", &["EIO", "EROFS", "ENOMEM"]),
    ("flock", &["ENOMEM", "EINTR"]),
];

const INTERRUPTED: &str = "EINTR";

/// The state of the files that the process finds.
#[derive(Clone, Copy, PartialEq)]
enum Begin {
    Nothing,
    Killed,
    Damaged,
}

/// A directory as a process finds it, to be copied.
fn prepared(begin: Begin, seed: usize) -> TempDir {
    let home = fast_directory();
    let directory = store_in(&home);
    let victim = Victim { directory: &directory, seed, retries: false, reports: true, umask: 0o022 };
    match begin {
        Begin::Nothing => {}
        Begin::Killed => {
            let kill = "inject=fsync:signal=KILL:when=19";
            assert!(!victim.run(&["-o", "/dev/null", "-e", "trace=fsync", "-e", kill].map(str::to_owned)).exited);
        }
        Begin::Damaged => {
            assert!(victim.run(&["-o", "/dev/null", "-e", "trace=fsync"].map(str::to_owned)).exited);
            fs::write(directory.join("state.json"), "{}").unwrap();
        }
    }
    home
}

struct Try<'a> {
    name: &'a str,
    error: &'a str,
    when: String,
    begin: Begin,
    /// How many steps were done before the process was started.
    done_before: usize,
}

impl Try<'_> {
    /// Runs the script with it. Returns whether a call failed, and what is wrong then.
    fn run(&self, victim: &Victim<'_>, log: &Path) -> (bool, Result<(), String>) {
        let Self { name, error, when, .. } = self;
        let inject = format!("inject={name}:error={error}:when={when}");
        let options = ["-o", log.to_str().unwrap(), "-e", &format!("trace={name}"), "-e", &inject].map(str::to_owned);
        let heard = victim.run(&options);
        let was_injected = fs::read_to_string(log).unwrap().contains("(INJECTED)");
        (was_injected, self.judge(victim, &heard))
    }

    fn judge(&self, victim: &Victim<'_>, heard: &Heard) -> Result<(), String> {
        let is_once = !self.when.ends_with('+');
        // A call that was interrupted may be made again at once.
        if is_once && self.name == "fsync" && self.error != INTERRUPTED && heard.failures.is_empty() {
            return Err("a flush that failed was taken for a success".to_owned());
        }
        let (store, state, repairs) = Store::open_with(victim.directory, None).map_err(|error| error.to_string())?;
        let number = number_of(&store, &state, victim.seed)?;
        let last = steps(victim.seed).len();
        // What it says is written, too.
        let done = heard.done.max(self.done_before);
        let most = if self.name == "write" { last } else { done + 1 };
        if number < done || number > most {
            return Err(format!("{done} steps were done, and {number} are there"));
        }
        if is_once && number != last {
            return Err(format!("it went on to step {number} only: {:?}", heard.failures));
        }
        if self.begin != Begin::Damaged && !(repairs.is_empty() && heard.repairs.is_empty()) {
            return Err(format!("repaired {repairs:?} {:?}", heard.repairs));
        }
        if heard.exited || self.name == "write" { Ok(()) } else { Err("it did not end by itself".to_owned()) }
    }
}

/// Every call with every error of it, once and lasting.
fn tries(victim: &Victim<'_>, begin: Begin, done_before: usize) -> Vec<Try<'static>> {
    let names: Vec<&str> = ERRORS.iter().map(|(name, _)| *name).collect();
    let mut tries = Vec::new();
    for (name, count) in victim.calls(&names) {
        let Some((name, errors)) = ERRORS.iter().find(|(each, _)| *each == name) else { continue };
        for error in *errors {
            // Nothing is interrupted for ever.
            let times = if *error == INTERRUPTED { &[""][..] } else { &["", "+"] };
            for lasting in times {
                tries.push(Try { name, error, when: format!("{count}{lasting}"), begin, done_before });
            }
        }
    }
    tries
}

/// How many steps are done in a directory.
fn done(victim: &Victim<'_>) -> usize {
    let (store, state, _) = Store::open_with(victim.directory, None).unwrap();
    number_of(&store, &state, victim.seed).unwrap()
}

fn copy(from: &TempDir, to: &TempDir) -> PathBuf {
    let _ = fs::remove_dir_all(to.path().join("lib"));
    if from.path().join("lib").exists() {
        assert!(Command::new("cp").arg("-a").arg(from.path().join("lib")).arg(to.path()).status().unwrap().success());
    }
    store_in(to)
}

#[test]
fn no_error_is_taken_for_a_success_or_for_damage() {
    if !has_strace("no_error_is_taken_for_a_success_or_for_damage") {
        return;
    }
    let wanted = times("STEAD_AGENT_ERRORS", 30);
    let (mut failed, mut found) = (0, Vec::new());
    for (seed, begin) in (0..).flat_map(|seed| [Begin::Nothing, Begin::Killed, Begin::Damaged].map(|each| (seed, each)))
    {
        let (template, home) = (prepared(begin, seed), fast_directory());
        let directory = copy(&template, &home);
        let victim = Victim { directory: &directory, seed, retries: true, reports: seed % 3 == 0, umask: 0o022 };
        let done_before = done(&victim);
        copy(&template, &home);
        let tries = tries(&victim, begin, done_before);
        // A dose is spread over all of them.
        let stride = (3 * tries.len() / wanted).max(1);
        for each in tries.iter().skip(seed % stride).step_by(stride) {
            if failed == wanted {
                println!("{failed} errors: {} wrong answers", found.len());
                assert_eq!(found, Vec::<String>::new());
                return;
            }
            copy(&template, &home);
            let (was_injected, judged) = each.run(&victim, &home.path().join("injected"));
            failed += usize::from(was_injected);
            if let (true, Err(error)) = (was_injected, judged) {
                found.push(format!("seed {seed}, {} {} {}: {error}", each.name, each.error, each.when));
            }
        }
        println!("{failed} errors so far: {} wrong answers", found.len());
    }
}
