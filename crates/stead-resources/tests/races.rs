//! Somebody exchanges a directory and a link to another one, again and again, while resources work below it.
//!
//! The target of the link is the victim: nothing of it may change. That the attack is a real one is shown by a naive
//! implementation, which does reach the victim.
//!
//! `STEAD_RACES=1000000` has each kind of resource called so often, in place of 20,000 times.
//! `STEAD_APPLIERS=100` has processes edit one file so often, in place of 5 times.

#![expect(clippy::print_stdout, reason = "it says how often was attacked")]
#![expect(clippy::disallowed_methods, reason = "a test looks at its own files as it likes")]
#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use stead_core::call::Execution;
use stead_host::provider::Plain;
use stead_testkit::times;
use support::{World, provider, walk};

/// How often each kind of resource is called while the two are exchanged.
fn rounds() -> usize {
    times("STEAD_RACES", 20_000)
}

/// The attacker's place, which others may write to, with a directory `d` and a link `l` to the victim.
fn battlefield() -> World {
    let world = World::build(
        "dir play 0777\ndir play/d 0777\ndir victim 0755\nfile victim/f 0600 \"precious\"\ndir victim/sub 0755\nfile victim/sub/g 0644 \"g\"\ndir source 0755\nfile source/f 0644 \"copied\"\ndir source/sub 0755\n",
    );
    symlink(world.root.path().join("victim"), world.root.path().join("play/l")).unwrap();
    world
}

/// Runs the work while the two are being exchanged. Returns how often they were.
fn under_attack(world: &World, work: impl FnOnce()) -> usize {
    let done = AtomicBool::new(false);
    let (d, l) = (world.root.path().join("play/d"), world.root.path().join("play/l"));
    thread::scope(|scope| {
        let attacker = scope.spawn(|| {
            let mut swaps = 0;
            while !done.load(Ordering::Relaxed) {
                swaps += usize::from(renameat_with(CWD, &d, CWD, &l, RenameFlags::EXCHANGE).is_ok());
            }
            swaps
        });
        work();
        done.store(true, Ordering::Relaxed);
        attacker.join().unwrap()
    })
}

/// Calls `set` again and again. Returns how often it worked and how often it was refused.
fn set_repeatedly(world: &World, type_name: &str, states: &[Plain]) -> (usize, usize) {
    let (provider, cx) = (provider(type_name), world.context());
    let (mut worked, mut refused) = (0, 0);
    for desired in states.iter().cycle().take(rounds()) {
        match provider.set(&cx, desired, Execution::Actual) {
            Ok(_) => worked += 1,
            Err(_) => refused += 1,
        }
    }
    (worked, refused)
}

fn stays_untouched(type_name: &str, states: &[&str]) {
    let world = battlefield();
    let victim = world.root.path().join("victim");
    let before = walk(&victim);
    let states: Vec<Plain> = states.iter().map(|state| support::plain(state)).collect();
    let mut counts = (0, 0);
    let swaps = under_attack(&world, || counts = set_repeatedly(&world, type_name, &states));
    assert_eq!(walk(&victim), before, "the victim was reached");
    println!("{type_name}: {} sets during {swaps} exchanges; {} were refused", counts.0 + counts.1, counts.1);
    assert!(swaps > 0 && counts.0 > 0 && counts.1 > 0, "no attack took place: {swaps} swaps, {counts:?}");
}

#[test]
fn files_are_written_and_removed_where_they_should_be() {
    stays_untouched(
        "Stead/File",
        &[
            r#"{"path": "play/d/f", "content": "new", "mode": "0666"}"#,
            r#"{"path": "play/d/f", "content": "newer", "mode": "0600", "backup": ".old"}"#,
            r#"{"path": "play/d/f", "_exist": false}"#,
            r#"{"path": "play/d/sub/g", "_exist": false}"#,
        ],
    );
}

#[test]
fn links_are_placed_where_they_should_be() {
    stays_untouched(
        "Stead/Symlink",
        &[
            r#"{"path": "play/d/f", "target": "x", "force": true}"#,
            r#"{"path": "play/d/sub", "target": "x", "force": true}"#,
            r#"{"path": "play/d/sub", "_exist": false}"#,
        ],
    );
}

#[test]
fn lines_are_written_where_they_should_be() {
    stays_untouched(
        "Stead/Line",
        &[
            r#"{"path": "play/d/f", "line": "x", "create": true}"#,
            r#"{"path": "play/d/f", "match": ".", "_exist": false}"#,
        ],
    );
}

#[test]
fn parts_of_files_are_written_where_they_should_be() {
    stays_untouched(
        "Stead/Block",
        &[
            r#"{"path": "play/d/f", "name": "n", "content": "x", "create": true}"#,
            r#"{"path": "play/d/f", "name": "n", "_exist": false}"#,
        ],
    );
}

#[test]
fn trees_are_copied_and_removed_where_they_should_be() {
    stays_untouched(
        "Stead/Directory",
        &[
            r#"{"path": "play/d/copy", "source": "source", "_purge": true, "mode": "0777"}"#,
            r#"{"path": "play/d/copy/sub", "_exist": false, "recurse": true}"#,
            r#"{"path": "play/d/sub", "_exist": false, "recurse": true}"#,
            r#"{"path": "play/d/copy", "_exist": false, "recurse": true}"#,
        ],
    );
}

#[test]
fn a_tree_is_removed_while_its_parts_are_exchanged() {
    let world = battlefield();
    let victim = world.root.path().join("victim");
    let before = walk(&victim);
    let (provider, cx) = (provider("Stead/Directory"), world.context());
    let desired = support::plain(r#"{"path": "play/d", "_exist": false, "recurse": true}"#);
    for _ in 0..50 {
        let (d, l) = (world.root.path().join("play/d"), world.root.path().join("play/l"));
        let _ = fs::remove_file(&d).and_then(|()| fs::remove_dir_all(&l));
        let _ = fs::remove_dir_all(&d).and_then(|()| fs::remove_file(&l));
        for each in 0..50 {
            fs::create_dir_all(d.join(format!("{each}/sub"))).unwrap();
        }
        let _ = symlink(&victim, &l);
        under_attack(&world, || {
            for _ in 0..20 {
                let _ = provider.set(&cx, &desired, Execution::Actual);
            }
        });
        assert_eq!(walk(&victim), before, "the victim was reached");
    }
}

/// Looks whether a parent is a link, and then trusts the path.
fn naive_write(path: &Path) {
    let parent = path.parent().unwrap();
    if parent.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
        let _ = fs::write(path, "naive");
    }
}

#[test]
fn control_a_naive_implementation_reaches_the_victim() {
    let world = battlefield();
    let (path, victim) = (world.root.path().join("play/d/naive"), world.root.path().join("victim/naive"));
    let mut reached = false;
    under_attack(&world, || {
        let until = Instant::now() + Duration::from_mins(1);
        while !reached && Instant::now() < until {
            (0..1000).for_each(|_| naive_write(&path));
            reached = victim.exists();
        }
    });
    assert!(reached, "the attack does not work, so the other tests prove nothing");
}

/// A file that a test found to be absent may have been created before the set: it is then neither overwritten unseen
/// nor lost.
#[test]
fn a_file_that_appears_before_the_set_is_looked_at() {
    for appeared in [None, Some("by somebody else")] {
        let world = World::build("dir place 0755\n");
        let path = world.root.path().join("place/file");
        if let Some(content) = appeared {
            fs::write(&path, content).unwrap();
        }
        let state = serde_json::json!({"path": path, "content": "wanted", "mode": "0600", "backup": ".kept"});
        let cx = stead_host::provider::Context { found_absent: true, ..world.context() };
        let reply = provider("Stead/File").set(&cx, &Plain::new(state), Execution::Actual).unwrap();

        assert_eq!(fs::read_to_string(&path).unwrap(), "wanted");
        assert_eq!(fs::read_to_string(path.with_file_name("file.kept")).ok().as_deref(), appeared);
        let changed = reply.changed.unwrap();
        assert_eq!(changed.contains(&"_exist".to_owned()), appeared.is_none(), "{changed:?}");
        let names: Vec<_> = walk(&path.with_file_name("")).into_keys().collect();
        assert!(!names.iter().any(|name| name.to_string_lossy().contains(".stead-")), "{names:?}");
    }
}

/// Where a process that adds a line works and which line it adds, in its environment.
const APPLIER: &str = "STEAD_TEST_APPLIER";

const APPLIERS: usize = 20;

/// Adds a line to a file that is locked against other processes, with a provider of its own.
fn add_line(directory: &Path, line: &str) {
    let locks = stead_system::lock::Locks::in_directory(&directory.join("locks"));
    let world = World::build("");
    let writes = stead_system::fs::Writes::default().with_locks(locks);
    let cx = stead_host::provider::Context { writes, ..world.context() };
    let state = Plain::new(serde_json::json!({"path": directory.join("file"), "line": line, "create": true}));
    provider("Stead/Line").set(&cx, &state, Execution::Actual).map_err(|failure| failure.message).unwrap();
}

/// Waits for the signal to begin, and adds its line: what the test below starts.
#[test]
fn process_that_adds_a_line() {
    let Ok(work) = std::env::var(APPLIER) else { return };
    let (line, directory) = work.split_once(':').unwrap();
    std::io::stdin().read_line(&mut String::new()).unwrap();
    add_line(Path::new(directory), line);
}

fn assert_all_lines(directory: &Path) {
    let content = fs::read_to_string(directory.join("file")).unwrap();
    let mut found: Vec<&str> = content.lines().collect();
    found.sort_unstable();
    let mut expected: Vec<String> = (0..APPLIERS).map(|each| each.to_string()).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn processes_that_edit_one_file_lose_no_line() {
    let rounds = times("STEAD_APPLIERS", 5);
    for _ in 0..rounds {
        let directory = tempfile::tempdir().unwrap();
        let start = |each: usize| {
            std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "process_that_adds_a_line", "--nocapture"])
                .env(APPLIER, format!("{each}:{}", directory.path().display()))
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        };
        let mut appliers: Vec<_> = (0..APPLIERS).map(start).collect();
        // Closing their input begins the race.
        for applier in &mut appliers {
            drop(applier.stdin.take());
        }
        for mut applier in appliers {
            assert!(applier.wait().unwrap().success());
        }
        assert_all_lines(directory.path());
    }
}

#[test]
fn threads_that_edit_one_file_lose_no_line() {
    let directory = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        for each in 0..APPLIERS {
            let directory = directory.path();
            scope.spawn(move || add_line(directory, &each.to_string()));
        }
    });
    assert_all_lines(directory.path());
}

/// A file that changes hands may still be open where it came from: its new owner gets another one.
#[test]
fn a_former_owner_cannot_write_to_a_file_that_was_taken_over() {
    use std::io::Write;
    if !stead_testkit::is_root("a_former_owner_cannot_write_to_a_file_that_was_taken_over") {
        return;
    }
    for state in [
        serde_json::json!({"path": "d/f", "content": "right", "owner": "0", "group": "0"}),
        serde_json::json!({"path": "d/f", "owner": "0", "mode": "0600"}),
    ] {
        let world = World::build("dir d 0755\nfile d/f 0644 \"right\"\n");
        let path = world.root.path().join("d/f");
        std::os::unix::fs::chown(&path, Some(12345), Some(12345)).unwrap();
        let mut held = fs::File::options().append(true).open(&path).unwrap();

        provider("Stead/File").set(&world.context(), &Plain::new(state), Execution::Actual).unwrap();
        held.write_all(b" and wrong").unwrap();

        assert_eq!(fs::read_to_string(&path).unwrap(), "right");
        assert_eq!(std::os::unix::fs::MetadataExt::uid(&path.metadata().unwrap()), 0);
    }
}
