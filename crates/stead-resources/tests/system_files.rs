//! Laws of files of the system: whenever the process ends they are whole, rules of sudo are checked before they are
//! placed, and what is mounted is what is said.
//!
//! `STEAD_CUT_CHANGES=13` cuts all changes off at every system call, in place of one of each resource.
//! `STEAD_MOUNTS=1000` tries so many states of mounts.

#![expect(clippy::disallowed_methods, reason = "a test looks at its own files as it likes")]
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
const TIMER: &str = "file etc/systemd/system/t.timer 0644 \"[Timer]\\nOnCalendar=daily\\n\"\nfile etc/systemd/system/t.service 0644 \"[Service]\\nExecStart=/bin/x\\nNice=1\\n\"\n";
const MODULES: &str = "dir etc/modules-load.d 0755\nfile etc/modprobe.d/a.conf 0644 \"options loop b=2\\n# c\\n\"\n";
const LOCALE: &str =
    "file etc/default/locale 0644 \"# c\\nLANG=C\\n\"\nfile etc/locale.gen 0644 \"# de_DE.UTF-8 UTF-8\\n# c\\n\"\n";
const HOME: &str = "file etc/passwd 0644 \"u:x:{uid}:{gid}::/home/u:/bin/sh\\n\"\ndir home/u 0755\n";
const JOB: &str = "file etc/cron.d/j 0644 \"# c\\n@daily root x\\n\"\n";

/// One of each resource first.
const CHANGES: [Change; 13] = [
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
        before: TIMER,
        type_name: "Stead/Timer",
        state: r#"{"name": "t", "onCalendar": "hourly", "command": "/bin/y"}"#,
        files: &["etc/systemd/system/t.timer", "etc/systemd/system/t.service"],
    },
    Change {
        before: MODULES,
        type_name: "Stead/KernelModule",
        state: r#"{"name": "loop", "boot": true, "options": "a=1", "blacklisted": true}"#,
        files: &["etc/modprobe.d/a.conf", "etc/modprobe.d/stead-loop.conf", "etc/modules-load.d/stead-loop.conf"],
    },
    Change {
        before: LOCALE,
        type_name: "Stead/Locale",
        state: r#"{"variables": {"LANG": "de_DE.UTF-8"}, "generated": ["de_DE.UTF-8"]}"#,
        files: &["etc/default/locale", "etc/locale.gen"],
    },
    Change {
        before: HOME,
        type_name: "Stead/SshKey",
        state: r#"{"user": "u", "type": "ssh-rsa", "key": "AAAA"}"#,
        files: &["home/u/.ssh/authorized_keys"],
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
    let changes = stead_testkit::times("STEAD_CUT_CHANGES", 7).min(CHANGES.len());
    let kills: Vec<usize> =
        CHANGES.iter().take(changes).map(|change| kills::cut(change, "process_that_is_killed")).collect();
    println!("{kills:?} kills, no file torn");
    assert!(kills.iter().all(|kills| *kills > 0), "{kills:?}");
}

/// The kernel may ask to try again at any opening of a file below another root.
#[test]
fn an_opening_that_is_to_be_tried_again_is() {
    const TEST: &str = "an_opening_that_is_to_be_tried_again_is";
    if Command::new("strace").arg("-V").output().is_err() {
        return stead_testkit::skip(TEST, "there is no strace");
    }
    CHANGES.iter().take(7).for_each(|change| kills::retry(change, "process_that_is_killed"));
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
    for skipped in complained.lines().filter(|line| line.starts_with("SKIPPED")) {
        stead_testkit::skip(test, skipped);
    }
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
    assert_eq!(*predicted.paths, [Path::new("/usr/sbin/visudo")]);
    let message = set("Stead/Sudoers", &cx, &state, Execution::Actual).err().unwrap().message;
    assert_eq!(message, predicted.failure.message);
    assert!(message.starts_with("there is no program 'visudo' to check the rules. Install sudo"), "{message}");
    assert_eq!(world.imprint(), before);
}

/// OpenSSH reads no other key in a file of which one is the only key, whatever lines there were.
#[test]
fn openssh_reads_the_only_key() {
    if Command::new("ssh-keygen").arg("-?").output().is_err() {
        return stead_testkit::skip("openssh_reads_the_only_key", "there is no ssh-keygen");
    }
    let key = |sign: &str| format!("AAAAC3NzaC1lZDI1NTE5AAAAIG{}", sign.repeat(42));
    let own = key("A");
    let piece =
        select(vec!["a=\"", "\\\"", "\\\\\"", "\"", "\\", " ", "\t", ",", "no-pty", "\r", "\u{a0}", "# ", "ssh-rsa"]);
    // Of several blanks behind options, `sshd` skips all, and `ssh-keygen` one.
    let pieces = prop::collection::vec(piece, 0..5);
    let pieces = pieces.prop_map(|pieces| pieces.concat().trim_end_matches([' ', '\t']).to_owned());
    let entry = select(["A", "B"].map(|sign| format!(" ssh-ed25519 {}", key(sign))).to_vec());
    let line = (pieces.clone(), entry.clone(), pieces, entry).prop_map(|(a, b, c, d)| format!("{a}{b}{c}{d}\n"));
    let config = ProptestConfig {
        cases: stead_testkit::cases(stead_testkit::ALL_LAWS, 100),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    // The digests of the keys in a file.
    let listed = |file: &Path| -> Vec<String> {
        let printed = Command::new("ssh-keygen").args(["-l", "-f"]).arg(file).output().unwrap().stdout;
        let words = String::from_utf8_lossy(&printed).into_owned();
        words.split(' ').filter(|word| word.starts_with("SHA256:")).map(str::to_owned).collect()
    };
    let alone = World::build(&format!("file k 0600 \"ssh-ed25519 {own}\\n\"\n"));
    let expected = listed(&alone.root.path().join("k"));
    assert_eq!(expected.len(), 1);
    proptest!(config, |(lines in prop::collection::vec(line, 1..20))| {
        let world = World::build(HOME);
        let file = world.root.path().join("home/u/.ssh/authorized_keys");
        std::fs::create_dir(file.parent().unwrap()).unwrap();
        std::fs::write(&file, lines.concat()).unwrap();
        let state = json!({"user": "u", "type": "ssh-ed25519", "key": own, "exclusive": true});
        set("Stead/SshKey", &world.context_for("Stead/SshKey"), &state, Execution::Actual).ok().unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        prop_assert_eq!(listed(&file), &expected[..], "{}", text);
    });
}

/// A system of its own within this one: what it mounts and writes below /etc and /srv, nobody else sees.
const APART: &str = "mount -t tmpfs apart /srv && mount -t tmpfs apart /etc && mount -t tmpfs apart /run && \
                     touch /etc/apart && mkdir /srv/a /srv/b /srv/a/in && exec \"$@\"";

/// Passes in a process in a system of its own, in which the rest of the test is done. Outside of it fails with what that
/// process printed.
fn apart(test: &'static str) -> Result<(), String> {
    if !stead_testkit::is_root(test) {
        return Err(String::new());
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", APART, "sh"]);
    if !Command::new("unshare").args(["--mount", "true"]).status().is_ok_and(|status| status.success()) {
        stead_testkit::skip(test, "mounts of its own are not allowed");
        return Err(String::new());
    }
    if let Some(printed) = elsewhere(test, &mut command) {
        return Err(printed);
    }
    assert!(Path::new("/etc/apart").exists(), "this is not the system of its own");
    Ok(())
}

#[test]
fn mounts_converge() {
    if let Err(printed) = apart("mounts_converge") {
        return printed.lines().filter(|line| line.contains("states")).for_each(|line| println!("{line}"));
    }
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

#[test]
fn what_an_unmount_loses_is_shown() {
    if apart("what_an_unmount_loses_is_shown").is_err() {
        return;
    }
    let cx = Context::new(Path::new("/"));
    let lost = |state: &Json, paths: &[&str]| {
        let predicted = set("Stead/Mount", &cx, state, Execution::WhatIf).ok().unwrap();
        let tested = provider("Stead/Mount").test(&cx, &Plain::new(state.clone())).ok().unwrap();
        let effects = set("Stead/Mount", &cx, state, Execution::Actual).ok().unwrap().effects;
        assert_eq!((&predicted.effects, &tested.predicted.unwrap().effects), (&effects, &effects), "{state}");
        assert_eq!(
            predicted.what_if.iter().any(|words| words.contains("lose its files")),
            !paths.is_empty(),
            "{state}"
        );
        let below = effects.destroys.items().iter().filter(|item| item.path == "/srv/b");
        let names: Vec<_> = below.flat_map(|item| item.kind.entries().names().to_vec()).collect();
        assert_eq!(names, paths, "{state}");
    };
    let fill = "mount -t tmpfs -o size=1m t /srv/b && mkdir /srv/b/d && touch /srv/b/d/f";
    let bind = json!({"path": "/srv/b", "device": "/srv/a", "fstype": "none", "options": "bind", "state": "mounted"});
    let gone = json!({"path": "/srv/b", "_exist": false});
    for state in [&gone, &json!({"path": "/srv/b", "device": "t", "fstype": "tmpfs", "state": "unmounted"}), &bind] {
        assert!(sh(fill));
        lost(state, &["d/", "d/f"]);
    }
    // What is mounted elsewhere as well, or is empty, loses nothing.
    lost(&gone, &[]);
    assert!(sh(&format!("{fill} && mkdir /srv/c && mount --bind /srv/b/d /srv/c")));
    lost(&gone, &[]);
    // What another mount hides is lost with it.
    assert!(sh(&format!("umount /srv/c && {fill} && mount --bind /srv/a /srv/b")));
    let effects = set("Stead/Mount", &cx, &gone, Execution::WhatIf).ok().unwrap().effects;
    assert!(effects.destroys.items()[0].kind.entries().is_incomplete(), "{effects:?}");
}

#[test]
fn what_the_system_needs_is_not_unmounted() {
    if apart("what_the_system_needs_is_not_unmounted").is_err() {
        return;
    }
    let (cx, mounts) = (Context::new(Path::new("/")), || std::fs::read_to_string("/proc/self/mountinfo").unwrap());
    let own = "mount --bind /srv/a /srv/b && mount --bind \"$(dirname \"$OWN\")\" /srv/b";
    let program = std::env::current_exe().unwrap();
    assert!(Command::new("sh").args(["-c", own]).env("OWN", &program).status().unwrap().success());
    let before = mounts();
    let folder = program.parent().unwrap().to_str().unwrap();
    assert!(sh(&format!("mount --bind {folder} {folder} && ln -s /proc /srv/link")));
    for (path, message) in [
        ("/", "is required by the running system"),
        ("/proc", "is required by the running system"),
        ("/run", "is required by the running system"),
        ("/srv/link", "'/proc' is required"),
        (folder, "stead runs from it"),
    ] {
        let states = [
            json!({"path": path, "_exist": false}),
            json!({"path": path, "device": "other", "fstype": "tmpfs", "options": "ro", "state": "unmounted"}),
        ];
        for state in states {
            let predicted = set("Stead/Mount", &cx, &state, Execution::WhatIf).ok().unwrap().presumed.unwrap();
            let failure = set("Stead/Mount", &cx, &state, Execution::Actual).err().unwrap();
            assert_eq!(predicted.failure.message, failure.message);
            assert!(failure.message.contains(message), "{}", failure.message);
        }
    }
    assert!(sh(&format!("umount {folder}")));
    assert_eq!(mounts(), before);
}

#[test]
fn links_of_others_do_not_lead_to_a_mount_point() {
    if apart("links_of_others_do_not_lead_to_a_mount_point").is_err() {
        return;
    }
    assert!(sh(
        "chmod 1777 /srv/a && ln -s /srv/b /srv/a/in/theirs && chown -h 12345 /srv/a/in/theirs && ln -s /srv/a/in /srv/own && mkdir /srv/b/x"
    ));
    let cx = Context::new(Path::new("/"));
    let (before, mounts) = (Path::new("/proc/self/mountinfo"), |path: &Path| std::fs::read_to_string(path).unwrap());
    let settled = mounts(before);
    for path in ["/srv/a/in/theirs", "/srv/a/in/theirs/x", "/srv/own/theirs/x"] {
        for state in [
            json!({"path": path, "device": "t", "fstype": "tmpfs", "state": "mounted"}),
            json!({"path": path, "_exist": false}),
        ] {
            for execution in [Execution::WhatIf, Execution::Actual] {
                let message = set("Stead/Mount", &cx, &state, execution).err().unwrap().message;
                assert!(message.contains("theirs' is not followed"), "{message}");
            }
        }
    }
    let bind = json!({"path": "/srv/b/x", "device": "/srv/a/in/theirs", "fstype": "none", "options": "bind", "state": "mounted"});
    assert!(
        set("Stead/Mount", &cx, &bind, Execution::Actual).err().unwrap().message.contains("theirs' is not followed")
    );
    assert_eq!((mounts(before), Path::new("/etc/fstab").exists()), (settled, false));
    let own = json!({"path": "/srv/own", "device": "t", "fstype": "tmpfs", "state": "mounted"});
    set("Stead/Mount", &cx, &own, Execution::Actual).ok().unwrap();
    assert!(mounts(before).contains(" /srv/a/in rw"));
}

#[test]
fn images_and_propagation_are_what_is_stated() {
    if apart("images_and_propagation_are_what_is_stated").is_err() {
        return;
    }
    let is = |options: &str, expected: &str| {
        let state = json!({"path": "/srv/b", "device": "t", "fstype": "tmpfs", "options": options, "state": "mounted"});
        assert!(converges(&state).unwrap(), "{options}");
        let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let line = table.lines().find(|line| line.contains(" /srv/b ")).unwrap();
        assert!(line.contains(expected), "{options}: {line}");
    };
    assert!(sh("mount -t tmpfs t /srv/b"));
    is("shared", " shared:");
    is("rprivate,nosuid", " rw,nosuid,relatime - ");
    is("unbindable", " unbindable ");
    is("user,exec", " rw,nosuid,nodev,relatime");
    is("user", " rw,nosuid,nodev,noexec,relatime");
    assert!(sh("umount /srv/b"));

    let images = "truncate -s 4m /srv/one /srv/two && mkfs.ext4 -q /srv/one && mkfs.ext4 -q /srv/two && mount /srv/one /srv/b && umount /srv/b";
    if !sh(&format!("({images}) >/dev/null 2>&1")) {
        return stead_testkit::skip("images_and_propagation_are_what_is_stated", "images cannot be mounted");
    }
    let image = |device: &str| json!({"path": "/srv/b", "device": device, "fstype": "ext4", "options": "loop,nofail", "state": "mounted"});
    for device in ["/srv/one", "/srv/two"] {
        assert!(converges(&image(device)).unwrap());
        assert!(sh(&format!("losetup -j {device} | grep -q .")), "{device}");
        // The table is right; what is mounted is another one.
        assert!(sh("umount /srv/b && mount -o loop /srv/one /srv/b"));
        assert!(converges(&image(device)).unwrap());
        let tested =
            provider("Stead/Mount").test(&Context::new(Path::new("/")), &Plain::new(image(device))).ok().unwrap();
        assert_eq!(tested.differing, Some(Vec::new()));
        assert!(sh(&format!("losetup -j {device} | grep -q .")), "{device}");
    }
    // What cannot be mounted leaves what was mounted before.
    assert!(sh("truncate -s 4m /srv/bad"));
    let cx = Context::new(Path::new("/"));
    let table = std::fs::read_to_string("/etc/fstab").unwrap();
    assert!(set("Stead/Mount", &cx, &image("/srv/bad"), Execution::Actual).is_err());
    assert!(sh("findmnt /srv/b >/dev/null && losetup -j /srv/two | grep -q ."));
    assert_eq!(std::fs::read_to_string("/etc/fstab").unwrap(), table);
    assert!(sh("umount /srv/b"));
}

fn sh(script: &str) -> bool {
    Command::new("sh").args(["-c", script]).status().unwrap().success()
}

/// Draws what others do before, and a desired state.
fn mount() -> impl Strategy<Value = (&'static str, Json)> {
    let tmpfs =
        vec![json!("size=1m"), json!("defaults"), json!("size=2m,nosuid,mode=0700"), json!("ro,noatime,size=1m")];
    let bind = vec![
        json!("bind"),
        json!("bind,ro"),
        json!("rbind,nosuid,noexec"),
        json!("bind,nofail,x-systemd.automount"),
        json!("bind,rw,dev,noatime"),
    ];
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
        "mount -o remount,bind,nosuid,strictatime /srv",
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
    let exists = desired["_exist"] != json!(false);
    let wanted = desired["state"].as_str().filter(|_| exists);
    prop_assert!(wanted.is_none_or(|state| (state == "mounted") == is_mounted));
    prop_assert!(exists || !is_mounted && !settled[0].contains(desired["path"].as_str().unwrap()));
    Ok(true)
}
