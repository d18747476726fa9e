//! Nothing of a worker outlives the program, however that ends.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Place, is_alive, printed};

/// Leaves a process behind, and says which processes there are and where their temporary files are.
const LEAVE: &str = "$left = Start-Process -PassThru sleep 3600; \
                     $this.Seen = '{0} {1} {2}' -f [Environment]::ProcessId, $left.Id, [IO.Path]::GetTempPath()";

/// Returns what is left of what Get of `LEAVE` saw.
fn left(seen: &str) -> Vec<&str> {
    let is_there = |each: &&str| if each.starts_with('/') { Path::new(each).exists() } else { is_alive(each) };
    seen.split(' ').filter(is_there).collect()
}

#[test]
fn an_orderly_end_leaves_nothing() {
    let Some(place) = Place::new("an_orderly_end_leaves_nothing") else { return };
    place.class("Leave", LEAVE);
    for _ in 0..stead_testkit::times("STEAD_ENDS", 6) {
        let seen = place.seen("Leave/Leave", "n", |_| ());
        assert_eq!(left(&seen), [""; 0], "of {seen}");
    }
}

/// One that takes its time when it is asked to end is ended by force.
#[test]
fn a_worker_that_hangs_in_its_end_is_ended() {
    let Some(place) = Place::new("a_worker_that_hangs_in_its_end_is_ended") else { return };
    let hang = "$null = Register-EngineEvent PowerShell.Exiting -Action { Start-Sleep 600 }; \
                [AppDomain]::CurrentDomain.add_ProcessExit({ [Threading.Thread]::Sleep(600000) });";
    place.class("Leave", &format!("{hang}\n{LEAVE}"));
    let seen = place.seen("Leave/Leave", "n", |_| ());
    assert_eq!(left(&seen), [""; 0], "of {seen}");
}

/// Killed at any moment, from the start of a worker to its end; what is left on the disk goes with the next start.
#[test]
fn a_kill_leaves_nothing() {
    let Some(place) = Place::new("a_kill_leaves_nothing") else { return };
    let record = "Set-Content -LiteralPath $this.Name ('{0} {1}' -f [Environment]::ProcessId, [IO.Path]::GetTempPath()); Start-Sleep 600";
    place.class("Stay", record);
    let mark = place.path("mark");
    let property = format!("Name={}", mark.display());
    let start = || {
        let mut command = place.command(&["invoke", "Stay/Stay", "--method", "get", "--property", &property]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let workers_of = |pid: u32| -> Vec<String> {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let all = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
        let all = all.chain([children]).collect::<Vec<_>>().join(" ");
        let is_worker =
            |pid: &&str| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "pwsh");
        all.split_whitespace().filter(is_worker).map(str::to_owned).collect()
    };
    // In its start: as soon as the process is there.
    let mut program = start();
    let starting = stead_testkit::until(|| workers_of(program.id()).pop());
    program.kill().unwrap();
    program.wait().unwrap();
    stead_testkit::until(|| (!is_alive(&starting)).then_some(()));
    // In a call.
    let _ = fs::remove_file(&mark);
    let mut program = start();
    let seen = stead_testkit::until(|| fs::read_to_string(&mark).ok().filter(|text| text.ends_with('\n')));
    program.kill().unwrap();
    program.wait().unwrap();
    let (pid, folder) = seen.trim().split_once(' ').unwrap();
    stead_testkit::until(|| (!is_alive(pid)).then_some(()));
    place.class("Leave", LEAVE);
    let next = place.seen("Leave/Leave", "n", |_| ());
    assert_eq!((left(&next), Path::new(folder).exists()), (Vec::new(), false));
}

/// A PowerShell that fails itself had started something.
#[test]
fn a_failed_start_leaves_nothing() {
    let Some(place) = Place::new("a_failed_start_leaves_nothing") else { return };
    place.class("Leave", LEAVE);
    let mark = place.path("mark");
    let text =
        format!("#!/bin/sh\nsetsid sleep 3600 >/dev/null 2>&1 &\necho $! $TMPDIR > '{}'\nexit 3\n", mark.display());
    let program = place.write("bin/pwsh", &text);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command: Command = place.command(&["invoke", "Leave/Leave", "--method", "get", "--property", "Name=n"]);
    let output = command.env("PATH", format!("{}:/usr/bin:/bin", place.path("bin").display())).output().unwrap();
    assert!(!output.status.success(), "{}", printed(&output));
    let seen = fs::read_to_string(&mark).unwrap();
    assert_eq!(left(seen.trim()), [""; 0], "of {seen}");
}
