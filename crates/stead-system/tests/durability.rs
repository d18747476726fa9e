//! Which writes are flushed, and when, as the system would be asked for it.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

use std::path::Path;
use std::sync::{Arc, Mutex};

use rustix::io::Errno;
use stead_core::call::Failure;
use stead_system::fs::{Durability, FlushTarget, Former, FsError, Ownership, Place, Replacement, SystemPath, Writes};
use stead_testkit::skip;
use tempfile::TempDir;

type Asked = Arc<Mutex<Vec<FlushTarget>>>;

/// Writes that are asked to be flushed, and what was asked.
fn recorded(durability: Durability) -> (Writes, Asked) {
    let asked = Asked::default();
    let record = Arc::clone(&asked);
    let writes = Writes::with_flush(durability, move |target, _| {
        record.lock().unwrap().push(target);
        Ok(())
    });
    (writes, asked)
}

fn write(directory: &Path, name: &str, writes: &Writes) {
    let place = Place::find(&SystemPath::here(directory.join(name)), writes).unwrap().unwrap();
    let replacement = Replacement::begin(&place, Former::Any).unwrap();
    replacement.write(b"content").unwrap();
    replacement.finish(0o600, Ownership::default()).unwrap().unwrap();
}

fn taken(asked: &Asked) -> Vec<FlushTarget> {
    std::mem::take(&mut *asked.lock().unwrap())
}

#[test]
fn a_file_is_flushed_before_its_directory() {
    let (directory, (writes, asked)) = (TempDir::new().unwrap(), recorded(Durability::PerFile));
    for _ in ["new", "replaced"] {
        write(directory.path(), "f", &writes);
        assert_eq!(taken(&asked), [FlushTarget::File, FlushTarget::Directory]);
    }
    writes.flush().unwrap();
    assert_eq!(taken(&asked), [], "nothing is left for the end of the run");
}

#[test]
fn each_change_of_a_name_flushes_the_directory() {
    let (directory, (writes, asked)) = (TempDir::new().unwrap(), recorded(Durability::PerFile));
    write(directory.path(), "f", &writes);
    let place = |name| Place::find(&SystemPath::here(directory.path().join(name)), &writes).unwrap().unwrap();
    taken(&asked);
    let changes: [&dyn Fn(); 5] = [
        &|| assert!(place("f").keep_as("kept".as_ref()).unwrap()),
        &|| place("link").replace_by_link("f".as_ref(), Ownership::default()).unwrap(),
        &|| drop(place("directory").make_directory().unwrap()),
        &|| assert!(place("directory").remove_directory().unwrap()),
        &|| assert!(place("link").remove().unwrap()),
    ];
    for change in changes {
        change();
        assert_eq!(taken(&asked), [FlushTarget::Directory]);
    }
    assert!(!place("link").remove().unwrap());
    assert_eq!(taken(&asked), [], "nothing was there");
    let file = std::fs::File::open(directory.path().join("f")).unwrap();
    writes.change(&file, Path::new("f"), Ownership::default(), None).unwrap();
    assert_eq!(taken(&asked), [FlushTarget::File]);
}

#[test]
fn a_run_flushes_each_file_system_once() {
    let (directory, (writes, asked)) = (TempDir::new().unwrap(), recorded(Durability::PerRun));
    for each in 0..100 {
        write(directory.path(), &each.to_string(), &writes.clone());
    }
    assert_eq!(taken(&asked), []);
    writes.flush().unwrap();
    assert_eq!(taken(&asked), [FlushTarget::FileSystem]);
    writes.flush().unwrap();
    assert_eq!(taken(&asked), [], "nothing was written since");

    let elsewhere = writes.flushed_elsewhere();
    write(directory.path(), "f", &elsewhere);
    elsewhere.flush().unwrap();
    assert_eq!(taken(&asked), [], "another clone flushes it");
    writes.flush().unwrap();
    assert_eq!(taken(&asked), [FlushTarget::FileSystem]);

    let Ok(other) = TempDir::new_in("/dev/shm") else {
        return skip("a_run_flushes_each_file_system_once, its end", "no second file system at /dev/shm");
    };
    write(directory.path(), "f", &writes);
    write(other.path(), "f", &writes);
    writes.flush().unwrap();
    assert_eq!(taken(&asked), [FlushTarget::FileSystem; 2]);
}

#[test]
fn nothing_is_flushed_where_nobody_asks_for_it() {
    let (directory, (writes, asked)) = (TempDir::new().unwrap(), recorded(Durability::Never));
    write(directory.path(), "f", &writes);
    write(directory.path(), "g", &Writes::unrecorded());
    writes.flush().unwrap();
    assert_eq!(taken(&asked), []);
}

#[test]
fn a_flush_that_fails_is_a_failure_once() {
    let directory = TempDir::new().unwrap();
    let writes = Writes::with_flush(Durability::PerRun, |_, _| Err(Errno::IO));
    write(directory.path(), "f", &writes);
    let failed = writes.flush().unwrap_err();
    assert!(matches!(&failed, FsError::Flush { source, .. } if source.raw_os_error() == Some(5)));
    let message = Failure::from(failed).message;
    assert!(message.starts_with("cannot flush '") && message.ends_with("to the disk: input/output error"), "{message}");
    // The system reports it once only; asking again would look like success for the same bytes.
    assert!(writes.flush().is_ok());

    let writes = Writes::with_flush(Durability::PerFile, |_, _| Err(Errno::IO));
    let place = Place::find(&SystemPath::here(directory.path().join("g")), &writes).unwrap().unwrap();
    let replacement = Replacement::begin(&place, Former::Absent).unwrap();
    assert!(matches!(replacement.finish(0o600, Ownership::default()), Err(FsError::Flush { .. })));
    assert!(place.status().unwrap().is_none(), "what is not on the disk gets no name");
}

#[test]
fn the_system_can_flush_what_is_given_to_it() {
    let directory = TempDir::new().unwrap();
    for durability in [Durability::PerFile, Durability::PerRun] {
        let writes = Writes::new(durability);
        write(directory.path(), "f", &writes);
        // Opened only to be looked up in, and without the right to read it.
        let opened = stead_system::fs::open_directory(&SystemPath::here(directory.path())).unwrap().unwrap();
        writes.change(&opened, directory.path(), Ownership::default(), None).unwrap();
        writes.flush().unwrap();
    }
}
