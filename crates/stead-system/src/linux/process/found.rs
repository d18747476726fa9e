//! The programs that were found a moment ago.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Environment, Executable, RefusedProgram};

/// How long a program that was found is not looked for again, while this process changes nothing: a thousand calls of one program
/// would look through the directories of `PATH` a thousand times.
const FRESH: Duration = Duration::from_millis(100);

/// As many as are kept.
const MOST: usize = 256;

/// How often this process has changed what may be, or come before, a program.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// Has every program be looked for again: this process has changed something, and one may be new, or in front of another.
pub fn forget_programs() {
    CHANGES.fetch_add(1, Ordering::SeqCst);
}

/// The programs that were found with an environment; clones share them.
#[derive(Clone, Default)]
pub(super) struct FoundPrograms(Arc<Mutex<HashMap<PathBuf, Found>>>);

struct Found {
    since: Instant,
    changes: u64,
    executable: Arc<Executable>,
}

impl FoundPrograms {
    /// Finds and judges a program as [`Executable::find`] does, or returns the one that was found a moment ago.
    pub(super) fn open(
        &self,
        name: &str,
        directory: &Path,
        environment: &Environment,
    ) -> Option<Result<Arc<Executable>, RefusedProgram>> {
        let (since, changes) = (Instant::now(), CHANGES.load(Ordering::SeqCst));
        // A name has no NUL, which no path has either.
        let key = directory.join("\0").join(name);
        let is_fresh = |found: &&Found| found.changes == changes && since.duration_since(found.since) < FRESH;
        let known = |found: &Found| Arc::clone(&found.executable);
        if let Some(executable) = self.lock().get(&key).filter(is_fresh).map(known) {
            return Some(Ok(executable));
        }
        let opened = Executable::find(name, directory, environment)?.map(Arc::new);
        if let Ok(executable) = &opened {
            let mut all = self.lock();
            if all.len() >= MOST {
                all.clear();
            }
            all.insert(key, Found { since, changes, executable: Arc::clone(executable) });
        }
        Some(opened)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, Found>> {
        // Nothing panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn place(folder: &Path) -> PathBuf {
        let program = folder.join("stead-program");
        fs::create_dir_all(folder).unwrap();
        fs::write(&program, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        program
    }

    #[test]
    fn a_change_of_this_process_has_a_program_be_looked_for_again() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
        let mut environment = Environment::default();
        environment.set("PATH", std::env::join_paths([&first, &second]).unwrap());
        let found = |environment: &Environment| {
            let opened = environment.open("stead-program", Path::new("/nonexistent"));
            opened.map(|opened| opened.unwrap().path().to_owned())
        };
        assert_eq!(found(&environment), None);
        // That there is none is not kept.
        let behind = place(&second);
        assert_eq!(found(&environment), Some(behind));
        let before = place(&first);
        forget_programs();
        assert_eq!(found(&environment), Some(before));
        environment.set("PATH", second.as_os_str());
        assert_eq!(found(&environment), Some(second.join("stead-program")), "another PATH has others");
    }
}
