//! Nobody else can read what is kept, and no secret is in a file as it is.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use stead_agent::{Store, StoreError};
use stead_testkit::is_root;

use crate::script::{CANARY, document, steps};
use crate::victim::{CHANGES, Victim, fast_directory, has_strace, store_in};

/// Everything below a directory.
fn walk(path: &Path, visit: &mut dyn FnMut(&Path)) {
    visit(path);
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            walk(&entry.unwrap().path(), visit);
        }
    }
}

#[test]
fn only_the_owner_may_read_what_is_kept() {
    if !has_strace("only_the_owner_may_read_what_is_kept") {
        return;
    }
    let umasks: &[u32] = if is_root("only_the_owner_may_read_what_is_kept, with the umask 0777") {
        &[0, 0o077, 0o777]
    } else {
        &[0, 0o077]
    };
    for umask in umasks {
        let home = fast_directory();
        let directory = store_in(&home);
        let victim = Victim { directory: &directory, seed: 0, retries: false, reports: true, umask: *umask };
        let (log, heard) = victim.recorded(CHANGES, &[]);
        assert_eq!((heard.done, heard.failures), (steps(0).len(), vec![]));
        let mut created = 0;
        for call in log.iter().skip_while(|line| !line.contains("\"/begin\"")).map(|line| line.replace(" = ", ") = ")) {
            let is_creation = call.contains("O_CREAT") || call.contains("O_TMPFILE") || call.contains("mkdirat(");
            let is_private = call.contains(", 0600)") || (call.contains("mkdirat(") && call.contains(", 0700)"));
            assert!(!is_creation || is_private, "{call}");
            created += usize::from(is_creation);
        }
        assert!(created > 20, "{created} only");
        walk(&directory, &mut |path| {
            let (mode, wanted) = (path.metadata().unwrap().permissions().mode() & 0o777, path.is_dir());
            assert_eq!(mode, if wanted { 0o700 } else { 0o600 }, "{} with the umask {umask:o}", path.display());
        });
    }
}

#[test]
fn a_directory_that_others_may_read_is_closed_to_them() {
    let home = fast_directory();
    let directory = store_in(&home);
    fs::create_dir_all(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
    let (store, _, _) = Store::open_with(&directory, None).unwrap();
    assert_eq!(directory.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(store.journal("j"), directory.join("jobs/j.journal"));
    assert!(matches!(Store::open_with(store.directory(), None), Err(StoreError::InUse(_))));
}

#[test]
fn no_secret_is_in_a_file_or_a_message_as_it_is() {
    let home = fast_directory();
    let directory = store_in(&home);
    let victim = Victim { directory: &directory, seed: 1, retries: false, reports: true, umask: 0 };
    if has_strace("no_secret_is_in_a_file_or_a_message_as_it_is, after kills") {
        for when in [4, 9, 17, 21] {
            let kill = format!("inject=fsync:signal=KILL:when={when}");
            victim.run(&["-o", "/dev/null", "-e", "trace=fsync", "-e", &kill].map(str::to_owned));
        }
    }
    let (store, _, _) = Store::open_with(&directory, None).unwrap();
    let name = store.put(&document(3, 5)).unwrap();
    assert_eq!(name.len(), 64);
    let mut files = 0;
    walk(home.path(), &mut |path| {
        let content = if path.is_file() { fs::read(path).unwrap() } else { Vec::new() };
        let canary = CANARY.as_bytes();
        assert!(!content.windows(canary.len()).any(|window| window == canary), "{}", path.display());
        files += usize::from(path.is_file());
    });
    assert!(files > 3);
    let shown = format!("{:?}", document(3, 5));
    assert!(shown.contains("3.yaml") && !shown.contains(CANARY), "{shown}");
}
