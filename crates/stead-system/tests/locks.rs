//! Locks between runs: one at a time, waited for by name, and free when their process ended.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

use std::io::{BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use stead_system::Cancel;
use stead_system::lock::{Lock, LockError, Locks, Owner, Wait};
use tempfile::TempDir;

/// The directory of the locks and the root, in the environment of the process that takes one.
const DIRECTORY_VARIABLE: &str = "STEAD_TEST_LOCK";

/// Far longer than anything takes here.
const LONG: Duration = Duration::from_mins(2);

fn lock(locks: &Locks, root: &Path) -> Lock {
    lock_within(locks, root, LONG).unwrap_or_else(|error| panic!("{error}"))
}

fn lock_within(locks: &Locks, root: &Path, deadline: Duration) -> Result<Lock, LockError> {
    locks.lock_root(
        root,
        "stead apply",
        Wait { cancel: &Cancel::default(), deadline, on_wait: &mut |_| ControlFlow::Continue(()) },
    )
}

/// Takes the lock, says so, and waits to be killed: what [`holding_process`] starts.
#[test]
fn process_that_holds_a_lock() {
    let Ok(directory) = std::env::var(DIRECTORY_VARIABLE) else { return };
    let directory = Path::new(&directory);
    let _lock = lock(&Locks::in_directory(&directory.join("locks")), directory);
    let mut out = std::io::stdout();
    out.write_all(b"\nlocked\n").and_then(|()| out.flush()).expect("standard output");
    std::thread::sleep(LONG);
}

/// A process that holds the lock of a root.
fn holding_process(directory: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process_that_holds_a_lock", "--nocapture"])
        .env(DIRECTORY_VARIABLE, directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    assert!(out.lines().any(|line| line.unwrap() == "locked"));
    child
}

#[test]
fn a_new_home_gets_the_directory_of_its_locks() {
    let home = TempDir::new().unwrap();
    let directory = home.path().join(".cache/stead");
    drop(lock(&Locks::in_directory(&directory), home.path()));
    for made in [directory.parent().unwrap(), &directory] {
        assert_eq!(made.metadata().unwrap().permissions().mode() & 0o777, 0o700, "{}", made.display());
    }
    let far = home.path().join("not/there/either");
    assert!(lock_within(&Locks::in_directory(&far), home.path(), LONG).is_err(), "only one is made on the way");
}

#[test]
fn one_at_a_time() {
    let directory = TempDir::new().unwrap();
    let locks = Locks::in_directory(&directory.path().join("locks"));
    let inside = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..25 {
                    let _lock = lock(&locks, directory.path());
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two have the lock");
                    assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
                }
            });
        }
    });
    assert_eq!(std::fs::read_dir(directory.path().join("locks")).unwrap().count(), 0, "no file stays");
}

#[test]
fn the_file_of_the_machine_itself_stays_and_says_nothing() {
    let directory = TempDir::new().unwrap();
    let locks = Locks::in_directory(directory.path());
    let text = || {
        let files = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
        let [file] = files.collect::<Vec<_>>().try_into().unwrap();
        std::fs::read_to_string(file).unwrap()
    };
    for _ in 0..2 {
        let held = lock(&locks, Path::new("/"));
        assert!(text().starts_with(&format!("{}\n", std::process::id())), "{}", text());
        drop(held);
        assert_eq!(text(), "");
    }
}

#[test]
fn whoever_waits_learns_for_whom_until_it_is_killed() {
    let directory = TempDir::new().unwrap();
    let locks = Locks::in_directory(&directory.path().join("locks"));
    let mut child = holding_process(directory.path());
    let pid = child.id();
    let mut owners: Vec<Owner> = Vec::new();
    // Its end is what the wait is for: killed once it has been waited for.
    let mut on_wait = |owner: Option<&Owner>| {
        owners.extend(owner.cloned());
        child.kill().unwrap();
        child.wait().unwrap();
        ControlFlow::Continue(())
    };
    let (cancel, begun) = (Cancel::default(), Instant::now());
    let wait = Wait { cancel: &cancel, deadline: LONG, on_wait: &mut on_wait };
    let taken = locks.lock_root(directory.path(), "stead apply", wait);
    assert!(taken.is_ok());
    assert!(begun.elapsed() < Duration::from_secs(10), "took {:?}", begun.elapsed());
    let [Owner { pid: said, command, .. }] = owners.as_slice() else { panic!("{owners:?}") };
    assert_eq!((*said, command.as_str()), (pid, "stead apply"));
    assert!(owners[0].to_string().starts_with(&format!("'stead apply' (process {pid}, since 2")), "{}", owners[0]);
}

#[test]
fn a_wait_ends_at_its_deadline_and_when_it_is_cancelled() {
    let directory = TempDir::new().unwrap();
    let locks = Locks::in_directory(&directory.path().join("locks"));
    let held = lock(&locks, directory.path());
    let error = lock_within(&locks, directory.path(), Duration::from_millis(20)).err().unwrap();
    let LockError::Deadline { owner: Some(owner), .. } = &error else { panic!("{error}") };
    assert_eq!(owner.pid, std::process::id());

    let cancel = Cancel::default();
    let mut on_wait = |_: Option<&Owner>| {
        cancel.cancel();
        ControlFlow::Continue(())
    };
    let wait = Wait { cancel: &cancel, deadline: LONG, on_wait: &mut on_wait };
    assert!(matches!(locks.lock_root(directory.path(), "", wait), Err(LockError::Cancelled)));
    drop(held);
    assert!(lock_within(&locks, directory.path(), Duration::ZERO).is_ok());
}

#[test]
fn a_root_has_one_lock_whatever_it_is_called() {
    let directory = TempDir::new().unwrap();
    let [root, other, link] = ["root", "other", "link"].map(|name| directory.path().join(name));
    std::fs::create_dir(&root).unwrap();
    std::fs::create_dir(&other).unwrap();
    symlink(&root, &link).unwrap();
    let locks = Locks::in_directory(&directory.path().join("locks"));
    let _lock = lock(&locks, &root);
    assert!(matches!(lock_within(&locks, &link, Duration::ZERO), Err(LockError::Deadline { .. })));
    assert!(lock_within(&locks, &other, Duration::ZERO).is_ok());
    assert!(matches!(lock_within(&locks, &directory.path().join("none"), LONG), Err(LockError::NoRoot(_))));
}

#[test]
fn a_directory_that_others_can_write_to_is_refused() {
    let directory = TempDir::new().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let error = lock_within(&Locks::in_directory(directory.path()), Path::new("/"), LONG).err().unwrap();
    assert!(matches!(error, LockError::Untrusted(_)), "{error}");
    let error = lock_within(&Locks::in_directory(Path::new("/dev/null/none")), Path::new("/"), LONG).err().unwrap();
    assert!(matches!(error, LockError::Directory(_)), "{error}");
}
