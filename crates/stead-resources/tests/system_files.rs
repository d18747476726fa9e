//! What holds for files of the system: whenever the process ends they are whole, rules of sudo are checked before they are
//! placed, and what is mounted is what is said.
//!
//! `STEAD_CUT_CHANGES=9` cuts all changes off at every system call, in place of one of each resource.
//! `STEAD_MOUNTS=1000` tries so many states of mounts.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "support/kills.rs"]
mod kills;
mod support;

use std::path::Path;
use std::process::Command;

use kills::Change;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value as Json, json};
use stead_core::call::{Execution, Failure};
use stead_host::provider::{Context, Plain, SetReply};
use support::{World, plain, provider};

const TABLE: &str = "file etc/fstab 0644 \"# c\\n/dev/a / ext4 defaults 0 1\\n/dev/b /b xfs ro\\n\"\n";
const RULES: &str = "file etc/sudoers.d/s 0440 \"u ALL=ALL\\n\"\n";
const JOB: &str = "file etc/cron.d/j 0644 \"# c\\n@daily root x\\n\"\n";

/// One of each resource first.
const CHANGES: [Change; 9] = [
    Change {
        before: TABLE,
        type_name: "Stead/Mount",
        state: r#"{"path": "/b", "device": "/dev/c", "fstype": "xfs"}"#,
        files: &["etc/fstab"],
    },
    Change {
        before: RULES,
        type_name: "Stead/Sudoers",
        state: r#"{"name": "s", "content": "Defaults insults\n", "validate": false}"#,
        files: &["etc/sudoers.d/s"],
    },
    Change {
        before: JOB,
        type_name: "Stead/Cron",
        state: r#"{"name": "j", "schedule": "@hourly", "user": "root", "command": "y"}"#,
        files: &["etc/cron.d/j"],
    },
    Change {
        before: TABLE,
        type_name: "Stead/Mount",
        state: r#"{"path": "/n", "device": "tmpfs", "fstype": "tmpfs"}"#,
        files: &["etc/fstab"],
    },
    Change {
        before: TABLE,
        type_name: "Stead/Mount",
        state: r#"{"path": "/b", "_exist": false}"#,
        files: &["etc/fstab"],
    },
    Change {
        before: "dir etc/sudoers.d 0755\n",
        type_name: "Stead/Sudoers",
        state: r#"{"name": "s", "rules": [{"users": ["u"], "commands": ["ALL"]}], "validate": false}"#,
        files: &["etc/sudoers.d/s"],
    },
    Change {
        before: RULES,
        type_name: "Stead/Sudoers",
        state: r#"{"name": "s", "_exist": false}"#,
        files: &["etc/sudoers.d/s"],
    },
    Change {
        before: "dir etc/cron.d 0755\n",
        type_name: "Stead/Cron",
        state: r#"{"name": "j", "schedule": "@hourly", "user": "root", "command": "y"}"#,
        files: &["etc/cron.d/j"],
    },
    Change {
        before: JOB,
        type_name: "Stead/Cron",
        state: r#"{"name": "j", "_exist": false}"#,
        files: &["etc/cron.d/j"],
    },
];

/// Sets once: what the test starts and kills.
#[test]
fn process_that_is_killed() {
    kills::victim();
}

/// Every file is as it was or as it is to be, whenever the process ends; and the next set completes what is missing.
#[test]
fn a_kill_at_any_change_leaves_whole_files() {
    if Command::new("strace").arg("-V").output().is_err() {
        return stead_testkit::skip("a_kill_at_any_change_leaves_whole_files", "there is no strace");
    }
    let changes = stead_testkit::times("STEAD_CUT_CHANGES", 3).min(CHANGES.len());
    let kills: Vec<usize> =
        CHANGES.iter().take(changes).map(|change| kills::cut(change, "process_that_is_killed")).collect();
    println!("{kills:?} kills, no file torn");
    assert!(kills.iter().all(|kills| *kills > 0), "{kills:?}");
}

/// Runs a test of this file in a process of its own, if this is not that process already. `None` in it.
fn elsewhere(test: &str, command: &mut Command) -> Option<String> {
    const ELSEWHERE: &str = "STEAD_TEST_ELSEWHERE";
    if std::env::var_os(ELSEWHERE).is_some() {
        return None;
    }
    let command = command.arg(std::env::current_exe().unwrap()).args(["--exact", test, "--nocapture"]);
    let output = command.env(ELSEWHERE, "1").output().unwrap();
    let [printed, complained] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success(), "{printed}{complained}");
    Some(printed.into_owned())
}

/// Takes what has the word "bad" in it for an error, as the real one does with what is one.
const VISUDO: &str = r#"#!/bin/sh
[ "$1 $2" = "-c -f" ] || exit 9
grep -q bad "$3" || exit 0
echo "$3:1:1: syntax error" >&2
exit 1
"#;

fn set(type_name: &str, cx: &Context, state: &Json, execution: Execution) -> Result<SetReply, Failure> {
    provider(type_name).set(cx, &Plain::new(state.clone()), execution)
}

#[test]
fn rules_with_an_error_are_not_placed() {
    let programs = World::build(&format!("file visudo 0755 {}\n", json!(VISUDO)));
    let path = format!("{}:{}", programs.root.path().display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("env");
    if elsewhere("rules_with_an_error_are_not_placed", command.env("PATH", path)).is_some() {
        return;
    }
    let world = World::build(RULES);
    let cx = world.context_for("Stead/Sudoers");
    let before = world.imprint();
    let bad = json!({"name": "s", "rules": [{"users": ["u"], "commands": ["/bin/bad"]}]});
    let predicted = set("Stead/Sudoers", &cx, &bad, Execution::WhatIf).ok().unwrap().presumed.unwrap().failure.message;
    let message = set("Stead/Sudoers", &cx, &bad, Execution::Actual).err().unwrap().message;
    assert_eq!(message, predicted);
    let expected = "visudo refuses the rules: /etc/sudoers.d/s:1:1: syntax error";
    assert_eq!(message, expected);
    assert_eq!(world.imprint(), before);

    let good = json!({"name": "s", "rules": [{"users": ["u"], "commands": ["/bin/good"]}]});
    assert!(set("Stead/Sudoers", &cx, &good, Execution::WhatIf).ok().unwrap().presumed.is_none());
    assert_eq!(world.imprint(), before);
    set("Stead/Sudoers", &cx, &good, Execution::Actual).ok().unwrap();
    assert_eq!(
        world.tree(),
        "dir etc 0755\ndir etc/sudoers.d 0755\nfile etc/sudoers.d/s 0440 \"u ALL=/bin/good\\n\"\n"
    );
    // What is there needs no check, and what goes neither.
    let there = json!({"name": "t", "content": "bad\n", "validate": false});
    set("Stead/Sudoers", &cx, &there, Execution::Actual).ok().unwrap();
    for state in [json!({"name": "t", "content": "bad\n"}), json!({"name": "t", "_exist": false})] {
        assert!(set("Stead/Sudoers", &cx, &state, Execution::Actual).is_ok(), "{state}");
    }
}

#[test]
fn rules_are_not_placed_unchecked() {
    const TEST: &str = "rules_are_not_placed_unchecked";
    if ["/usr/sbin/visudo", "/sbin/visudo", "/usr/local/sbin/visudo"].iter().any(|path| Path::new(path).exists()) {
        return stead_testkit::skip(TEST, "there is a visudo");
    }
    let world = World::build("dir etc/sudoers.d 0755\n");
    let (cx, before) = (world.context_for("Stead/Sudoers"), world.imprint());
    let state = json!({"name": "s", "content": "Defaults insults\n"});
    let predicted = set("Stead/Sudoers", &cx, &state, Execution::WhatIf).ok().unwrap().presumed.unwrap();
    assert_eq!(predicted.paths, [Path::new("/usr/sbin/visudo")]);
    let message = set("Stead/Sudoers", &cx, &state, Execution::Actual).err().unwrap().message;
    assert_eq!(message, predicted.failure.message);
    assert!(message.starts_with("there is no program 'visudo' to check the rules. Install sudo"), "{message}");
    assert_eq!(world.imprint(), before);
}

/// A system of its own within this one: what it mounts and writes below /etc and /srv, nobody else sees.
const APART: &str = "mount -t tmpfs apart /srv && mount -t tmpfs apart /etc && mount -t tmpfs apart /run && \
                     touch /etc/apart && mkdir /srv/a /srv/b /srv/a/in && exec \"$@\"";

#[test]
fn mounts_converge() {
    const TEST: &str = "mounts_converge";
    if !stead_testkit::is_root(TEST) {
        return;
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", APART, "sh"]);
    if !Command::new("unshare").args(["--mount", "true"]).status().is_ok_and(|status| status.success()) {
        return stead_testkit::skip(TEST, "mounts of its own are not allowed");
    }
    if let Some(printed) = elsewhere(TEST, &mut command) {
        return printed.lines().filter(|line| line.contains("states")).for_each(|line| println!("{line}"));
    }
    assert!(Path::new("/etc/apart").exists(), "this is not the system of its own");
    let cases = u32::try_from(stead_testkit::times("STEAD_MOUNTS", 250)).unwrap();
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let mut tried = [0; 2];
    let counted = std::cell::RefCell::new(&mut tried);
    // The states come one after the other: each starts where the former ended.
    runner
        .run(&mount(), |(drift, desired)| {
            assert!(drift.is_empty() || sh(drift), "{drift}");
            counted.borrow_mut()[usize::from(converges(&desired)?)] += 1;
            Ok(())
        })
        .unwrap();
    println!("states of mounts: {} reached, {} refused", tried[1], tried[0]);
    assert!(tried[1] > tried[0], "{tried:?}");
}

fn sh(script: &str) -> bool {
    Command::new("sh").args(["-c", script]).status().unwrap().success()
}

/// What others do before, and a desired state.
fn mount() -> impl Strategy<Value = (&'static str, Json)> {
    let tmpfs =
        vec![json!("size=1m"), json!("defaults"), json!("size=2m,nosuid,mode=0700"), json!("ro,noatime,size=1m")];
    let bind =
        vec![json!("bind"), json!("bind,ro"), json!("rbind,nosuid,noexec"), json!("bind,nofail,x-systemd.automount")];
    let of = |device: &'static str, fstype: &'static str, options: Vec<Json>| {
        let state = select(vec![json!("mounted"), json!("mounted"), json!("unmounted"), json!(null)]);
        let path = select(vec!["/srv/b", "/srv/b", "/srv/none"]);
        (path, select(options), state, prop::bool::weighted(0.8)).prop_map(move |(path, options, state, exist)| {
            let mut desired =
                json!({"path": path, "device": device, "fstype": fstype, "options": options, "_exist": exist});
            if !state.is_null() {
                desired["state"] = state;
            }
            desired
        })
    };
    let drift = select(vec![
        "",
        "",
        "",
        "rm -f /etc/fstab",
        "echo 'tmpfs /srv/b tmpfs size=1m 0 0' >/etc/fstab",
        "mount -t tmpfs other /srv/b",
        "mount --bind /srv/a/in /srv/b",
        "umount /srv/b 2>/dev/null || true",
        "mount -o remount,bind,ro,nodev /srv/b 2>/dev/null || true",
    ]);
    let desired = prop_oneof![
        of("tmpfs", "tmpfs", tmpfs),
        of("/srv/a", "none", bind.clone()),
        of("/srv/gone", "none", bind),
        of("/dev/none", "ext4", vec![json!("defaults")]),
    ];
    (drift, desired)
}

/// Returns whether the state could be reached.
fn converges(desired: &Json) -> Result<bool, TestCaseError> {
    let (provider, cx, input) = (provider("Stead/Mount"), Context::new(Path::new("/")), plain(&desired.to_string()));
    let look = || ["/etc/fstab", "/proc/self/mountinfo"].map(|path| std::fs::read_to_string(path).unwrap_or_default());
    let answered = |failure: Failure| TestCaseError::fail(failure.message);
    let before = look();
    let tested = provider.test(&cx, &input).map_err(answered)?;
    let predicted = provider.set(&cx, &input, Execution::WhatIf).map_err(answered)?;
    prop_assert_eq!(&look(), &before, "a test or a what-if changed something");
    let set = match provider.set(&cx, &input, Execution::Actual) {
        Ok(set) => set,
        Err(failure) => {
            prop_assert_eq!(predicted.presumed.map(|presumed| presumed.failure.message), Some(failure.message));
            prop_assert_eq!(&look(), &before, "a set that failed changed something");
            return Ok(false);
        }
    };
    prop_assert!(predicted.presumed.is_none());
    prop_assert_eq!((&predicted.changed, &predicted.effects), (&set.changed, &set.effects));
    prop_assert!(predicted.after.unwrap().expose() == set.after.unwrap().expose());
    prop_assert_eq!(&tested.differing, &set.changed);
    let settled = look();
    prop_assert_eq!(provider.test(&cx, &input).map_err(answered)?.differing, Some(Vec::new()), "{:?}", &settled);
    let again = provider.set(&cx, &input, Execution::Actual).map_err(answered)?;
    prop_assert_eq!(again.changed, Some(Vec::new()));
    prop_assert_eq!(&look(), &settled, "a second set changed something");
    let is_mounted = settled[1].lines().any(|line| line.split(' ').nth(4) == desired["path"].as_str());
    let wanted = desired["state"].as_str().filter(|_| desired["_exist"] == json!(true));
    prop_assert!(wanted.is_none_or(|state| (state == "mounted") == is_mounted));
    prop_assert!(
        desired["_exist"] == json!(true) || !is_mounted && !settled[0].contains(desired["path"].as_str().unwrap())
    );
    Ok(true)
}
