//! The program that a manifest names: judged before it runs, and what was judged is what runs.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::fs::{OpenError, Trust, TrustedDirectory, TrustedFile};

/// A program that may be run.
///
/// Guarantees: with [`Trust::Root`], nobody but root can change the file, its interpreters, or what their paths lead to.
#[derive(Debug)]
pub struct Executable {
    path: PathBuf,
    /// The directory that a binary was judged in.
    directory: Option<TrustedDirectory>,
}

/// Why a program is not run.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// It is not there, or somebody else could change it.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It cannot be read, so that its interpreter is not known.
    #[error("cannot read '{}'", path.display())]
    Read {
        /// The program.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// Which interpreter is meant depends on where it is run.
    #[error("the interpreter '{}' of '{}' is not an absolute path", interpreter.display(), script.display())]
    RelativeInterpreter {
        /// The script.
        script: PathBuf,
        /// Its interpreter.
        interpreter: PathBuf,
    },
    /// More than the kernel follows.
    #[error("the interpreter of '{}' is a script whose interpreter is a script, and so on", .0.display())]
    TooManyInterpreters(PathBuf),
}

impl Refused {
    /// What to do about it.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Open(OpenError::Untrusted(untrusted)) => Some(untrusted.help()),
            _ => None,
        }
    }
}

impl Executable {
    /// Judges the program at an absolute path.
    pub fn open(path: PathBuf, trust: Trust) -> Result<Self, Refused> {
        let (Trust::Root, Some(parent), Some(name)) = (trust, path.parent(), path.file_name()) else {
            return Ok(Self { path, directory: None });
        };
        let directory = TrustedDirectory::open(parent, trust)?;
        let is_script = judge_interpreters(&directory.file(name)?, trust)?;
        // A script is opened once more by its interpreter, and must know its own path.
        Ok(Self { path, directory: Some(directory).filter(|_| !is_script) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path to the same file for the kernel: for a binary through the directory that was judged, which keeps the name
    /// of the process.
    pub fn image(&self) -> PathBuf {
        match (&self.directory, self.path.file_name()) {
            (Some(directory), Some(name)) => directory.through_descriptor(name),
            _ => self.path.clone(),
        }
    }
}

/// As many as the kernel follows.
const MOST_INTERPRETERS: usize = 5;

/// Judges the interpreter that the first line of a script names, and that one's, and so on. Returns whether there is one.
fn judge_interpreters(program: &TrustedFile, trust: Trust) -> Result<bool, Refused> {
    let Some(mut next) = interpreter(program)? else { return Ok(false) };
    for _ in 0..MOST_INTERPRETERS {
        match interpreter(&TrustedFile::open(&next, trust)?)? {
            Some(path) => next = path,
            None => return Ok(true),
        }
    }
    Err(Refused::TooManyInterpreters(program.path()))
}

/// The interpreter that the first line of a script names; `None` for what is not a script.
fn interpreter(program: &TrustedFile) -> Result<Option<PathBuf>, Refused> {
    /// As much as the kernel looks at.
    const HEAD: u64 = 256;
    let mut head = Vec::new();
    let read = program.read()?.take(HEAD).read_to_end(&mut head);
    read.map_err(|source| Refused::Read { path: program.path(), source })?;
    let Some(line) = head.strip_prefix(b"#!").and_then(|rest| rest.split(|byte| *byte == b'\n').next()) else {
        return Ok(None);
    };
    let mut words = line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty());
    let interpreter = Path::new(OsStr::from_bytes(words.next().unwrap_or_default())).to_owned();
    if interpreter.is_absolute() {
        return Ok(Some(interpreter));
    }
    Err(Refused::RelativeInterpreter { script: program.path(), interpreter })
}

/// The directories of `PATH` that were found trusted; clones share them.
///
/// A directory that only root can change stays trusted until root changes it, so that it is judged once; every other is
/// judged for each program.
#[derive(Clone, Default)]
pub struct TrustedEntries(Arc<Mutex<BTreeSet<PathBuf>>>);

impl TrustedEntries {
    /// A `PATH` without the directories in which others than the trusted could place programs: shells and `/usr/bin/env`
    /// look there.
    pub(super) fn path(&self, path: &OsStr, trust: Trust) -> OsString {
        if trust == Trust::Everyone {
            return path.to_owned();
        }
        let kept = std::env::split_paths(path).filter(|entry| entry.is_absolute()).filter(|entry| self.holds(entry));
        // A path that was split at colons contains none.
        std::env::join_paths(kept).unwrap_or_default()
    }

    fn holds(&self, entry: &Path) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains(entry) {
            return true;
        }
        match TrustedDirectory::open(entry, Trust::Root) {
            Ok(_) => known.insert(entry.to_owned()),
            Err(OpenError::Untrusted(untrusted)) => {
                tracing::info!("'{}' is left out of PATH: {untrusted}; {}", entry.display(), untrusted.help());
                false
            }
            // A directory that does not exist could be created by others.
            Err(OpenError::System { .. }) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use stead_testkit::{is_root, times};

    use super::*;

    const EVE: u32 = 12345;

    fn exchange(nest: &Path) {
        renameat_with(CWD, nest.join("in"), CWD, nest.join("ev"), RenameFlags::EXCHANGE).unwrap();
    }

    /// How a program is judged and then run.
    enum Strategy {
        /// As this module does.
        Descriptor,
        /// Both by path, judging the file and its directory: the control, which must fail.
        Path,
    }

    impl Strategy {
        /// The exit code of what ran; `between` comes after judging. `None` when it was refused.
        fn run(&self, path: &Path, between: impl FnOnce()) -> Option<i32> {
            let (image, judged) = match self {
                Self::Descriptor => {
                    let judged = Executable::open(path.to_owned(), Trust::Root).ok()?;
                    (judged.image(), Some(judged))
                }
                Self::Path => {
                    let is_fine =
                        |path: &Path| fs::metadata(path).is_ok_and(|all| all.uid() == 0 && all.mode() & 2 == 0);
                    [path, path.parent()?].into_iter().all(is_fine).then(|| (path.to_owned(), None))?
                }
            };
            between();
            let status = Command::new(image).arg0(path).status().ok()?;
            drop(judged);
            status.code()
        }
    }

    /// How often something is exchanged: `STEAD_EXCHANGES=100000`, or 200 times.
    fn attempts() -> usize {
        times("STEAD_EXCHANGES", 200)
    }

    /// Of all attempts to run `nest/in/program`, with an exchange of directories between judging and running, how many
    /// ran the wrong one, and how many the right one.
    fn race(strategy: &Strategy, nest: &Path) -> (usize, usize) {
        let attempt = || {
            let answer = strategy.run(&nest.join("in/program"), || exchange(nest))?;
            exchange(nest);
            Some(answer)
        };
        let answers: Vec<Option<i32>> = (0..attempts()).map(|_| attempt()).collect();
        let count = |code: i32| answers.iter().filter(|answer| **answer == Some(code)).count();
        (count(1), count(0))
    }

    /// The same with exchanges at any moment. Returns how many attempts ran the wrong one.
    fn storm(strategy: &Strategy, nest: &Path) -> usize {
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    exchange(nest);
                }
            });
            let wrong = (0..attempts()).filter(|_| strategy.run(&nest.join("in/program"), || ()) == Some(1)).count();
            done.store(true, Ordering::Relaxed);
            wrong
        })
    }

    /// `in` holds a program of root's, `ev` one of another user's.
    fn nest() -> tempfile::TempDir {
        let nest = tempfile::tempdir().unwrap();
        for (name, program) in [("in", "/bin/true"), ("ev", "/bin/false")] {
            fs::create_dir(nest.path().join(name)).unwrap();
            fs::copy(program, nest.path().join(name).join("program")).unwrap();
        }
        for path in ["ev", "ev/program"] {
            chown(nest.path().join(path), Some(EVE), None).unwrap();
        }
        nest
    }

    #[test]
    fn what_was_judged_is_what_runs() {
        if !is_root("what_was_judged_is_what_runs") {
            return;
        }
        let all = attempts();
        let nest = nest();
        assert_eq!(race(&Strategy::Path, nest.path()), (all, 0), "the control is caught");
        assert_eq!(race(&Strategy::Descriptor, nest.path()), (0, all));
        assert_eq!(storm(&Strategy::Descriptor, nest.path()), 0);
        // Whoever owns an ancestor could do the same.
        let nest = self::nest();
        chown(nest.path(), Some(EVE), None).unwrap();
        assert_eq!(race(&Strategy::Path, nest.path()), (all, 0), "the control is caught");
        assert_eq!(race(&Strategy::Descriptor, nest.path()), (0, 0));
    }

    fn script(directory: &Path, name: &str, text: &str) -> PathBuf {
        let path = directory.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn refused(path: &Path) -> Option<String> {
        Executable::open(path.to_owned(), Trust::Root).err().map(|refused| refused.to_string())
    }

    #[test]
    fn interpreters_are_judged_too() {
        if !is_root("interpreters_are_judged_too") {
            return;
        }
        let home = tempfile::tempdir().unwrap();
        let at = home.path();
        assert_eq!(refused(&script(at, "plain", "#!/bin/sh -e\nexit 0\n")), None);
        let inner = script(at, "inner", "#!/bin/sh\n");
        let outer = script(at, "outer", &format!("#! {} x\n", inner.display()));
        assert_eq!(refused(&outer), None);
        fs::set_permissions(&inner, Permissions::from_mode(0o775)).unwrap();
        let why = refused(&outer).unwrap_or_default();
        assert!(why.contains("inner' can be written by its group"), "{why}");
        let why = refused(&script(at, "relative", "#!sh\n")).unwrap_or_default();
        assert!(why.contains("the interpreter 'sh'"), "{why}");
        let myself = format!("#!{}\n", at.join("loop").display());
        let why = refused(&script(at, "loop", &myself)).unwrap_or_default();
        assert!(why.contains("and so on"), "{why}");
    }

    #[test]
    fn a_path_keeps_what_only_root_can_write() {
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), Permissions::from_mode(0o777)).unwrap();
        let path =
            std::env::join_paths([Path::new("/usr/bin"), home.path(), Path::new("."), Path::new("/gone")]).unwrap();
        assert_eq!(TrustedEntries::default().path(&path, Trust::Everyone), path);
        if fs::metadata("/usr/bin").unwrap().uid() == 0 {
            assert_eq!(TrustedEntries::default().path(&path, Trust::Root), "/usr/bin");
        }
    }
}
