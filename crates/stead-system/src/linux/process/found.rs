//! The programs that were found a moment ago.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Environment, Executable, RefusedProgram};

/// How long a program that was found is not looked for again: a thousand calls of one program would look through the directories of
/// `PATH` a thousand times.
const FRESH: Duration = Duration::from_millis(100);

/// The most programs that are kept.
const MOST: usize = 256;

/// The programs that were found with an environment; clones share them.
#[derive(Clone, Default)]
pub(super) struct FoundPrograms(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    /// How often all of them were forgotten: what was looked for meanwhile is not kept.
    forgotten: u64,
    programs: HashMap<PathBuf, (Instant, Arc<Executable>)>,
}

impl FoundPrograms {
    /// Finds and judges a program as [`Executable::find`] does, or returns the one that was found a moment ago.
    pub(super) fn open(
        &self,
        name: &str,
        directory: &Path,
        environment: &Environment,
        now: Instant,
    ) -> Option<Result<Arc<Executable>, RefusedProgram>> {
        // No path has a NUL: what is looked for beside a directory is another key than a path in it.
        let key = directory.join("\0").join(name);
        let forgotten = {
            let known = self.lock();
            let found = known.programs.get(&key);
            if let Some((_, executable)) = found.filter(|(since, _)| now.duration_since(*since) < FRESH) {
                return Some(Ok(Arc::clone(executable)));
            }
            known.forgotten
        };
        let opened = Executable::find(name, directory, environment)?.map(Arc::new);
        let mut known = self.lock();
        if let Ok(executable) = &opened
            && known.forgotten == forgotten
        {
            if known.programs.len() >= MOST {
                known.programs.clear();
            }
            known.programs.insert(key, (now, Arc::clone(executable)));
        }
        Some(opened)
    }

    /// Forgets all of them, and closes the directories that they were found in.
    pub(super) fn forget(&self) {
        let mut known = self.lock();
        known.forgotten += 1;
        known.programs.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
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
    fn a_program_is_looked_for_again_once_its_time_is_over_or_something_was_changed() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
        let mut environment = Environment::default();
        environment.set("PATH", std::env::join_paths([&first, &second]).unwrap());
        let (known, now) = (FoundPrograms::default(), Instant::now());
        let found = |now: Instant| {
            let opened = known.open("stead-program", Path::new("/nonexistent"), &environment, now);
            opened.map(|opened| opened.unwrap().path().to_owned())
        };
        assert_eq!(found(now), None);
        // That there is none is not kept.
        let behind = place(&second);
        assert_eq!(found(now), Some(behind.clone()));
        let before = place(&first);
        assert_eq!([found(now), found(now + FRESH)], [Some(behind.clone()), Some(before.clone())]);
        fs::remove_file(&before).unwrap();
        assert_eq!(found(now + FRESH), Some(before));
        known.forget();
        assert_eq!(found(now + FRESH), Some(behind));
    }

    #[test]
    fn clones_forget_together_and_another_path_has_other_programs() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
        let mut environment = Environment::default();
        environment.set("PATH", std::env::join_paths([&first, &second]).unwrap());
        let path_of = |environment: &Environment| {
            let opened = environment.open("stead-program", Path::new("/nonexistent"));
            opened.unwrap().unwrap().path().to_owned()
        };
        let behind = place(&second);
        assert_eq!(path_of(&environment), behind);
        let before = place(&first);
        environment.clone().forget_programs();
        assert_eq!(path_of(&environment), before);
        environment.set("PATH", second.as_os_str());
        assert_eq!(path_of(&environment), behind);
    }
}
