//! Programs: checked before they run, and run exactly as they were checked.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::error::Error as _;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stead_core::call::FailureKind;

use super::Environment;
use crate::linux::fs::{OpenError, Trust, TrustedDirectory, TrustedFile};

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
pub enum RefusedProgram {
    /// It is not there, or somebody else could change it.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It cannot be read, so that its interpreter is not known.
    #[error("cannot read '{}'", path.display())]
    Read {
        /// The program.
        path: PathBuf,
        /// The error of the system.
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
    /// The program that its first line runs by `env` cannot be determined from that line.
    #[error("the first line of '{}' does not name its interpreter plainly", .0.display())]
    Unclear(PathBuf),
    /// More than the kernel follows.
    #[error("the interpreter of '{}' is a script whose interpreter is a script, and so on", .0.display())]
    TooManyInterpreters(PathBuf),
}

impl RefusedProgram {
    /// Why, with its causes and what to do about it, in one line; to be put behind the name of the program.
    pub fn reason(&self) -> String {
        let causes = std::iter::successors(self.source(), |cause| (*cause).source());
        let why = causes.fold(self.to_string(), |line, cause| format!("{line}: {cause}"));
        let help = self.help().map(|help| format!("; {help}")).unwrap_or_default();
        format!("is not run as root: {why}{help}")
    }

    /// The kind of failure that it is for callers.
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Open(OpenError::System { source, .. }) | Self::Read { source, .. } => super::start_kind(source),
            _ => FailureKind::Start,
        }
    }

    /// The path that was refused: the file or folder that is not trusted, or the program.
    pub fn path(&self) -> &Path {
        match self {
            Self::Open(OpenError::Untrusted(untrusted)) => &untrusted.component,
            Self::Open(OpenError::System { path, .. })
            | Self::Read { path, .. }
            | Self::RelativeInterpreter { script: path, .. }
            | Self::Unclear(path)
            | Self::TooManyInterpreters(path) => path,
        }
    }

    /// Returns the advice about it.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Open(OpenError::Untrusted(untrusted)) => Some(untrusted.help()),
            Self::RelativeInterpreter { .. } => Some("write its whole path".to_owned()),
            Self::Unclear(_) => Some("write `#!/usr/bin/env NAME`, or the path of the interpreter".to_owned()),
            _ => None,
        }
    }
}

impl Executable {
    /// Finds a program as [`Environment::find`] does, and judges it. The first of that name counts: another in its place would
    /// be a surprise. `None` when there is none.
    pub fn find(name: &str, directory: &Path, environment: &Environment) -> Option<Result<Self, RefusedProgram>> {
        Some(Self::open(environment.find(name, directory)?, environment))
    }

    /// Opens and checks the program at an absolute path, by the trust of the environment.
    pub fn open(path: PathBuf, environment: &Environment) -> Result<Self, RefusedProgram> {
        let trust = environment.trust();
        let (Trust::Root, Some(parent), Some(name)) = (trust, path.parent(), path.file_name()) else {
            return Ok(Self { path, directory: None });
        };
        let directory = TrustedDirectory::open(parent, trust)?;
        let is_script = judge_interpreters(&directory.file(name)?, environment)?;
        // A script is opened once more by its interpreter, and must know its own path.
        Ok(Self { path, directory: Some(directory).filter(|_| !is_script) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path to the same file for the kernel: for a binary through the directory that was judged, which keeps the name
    /// of the process.
    pub(super) fn image(&self) -> PathBuf {
        match (&self.directory, self.path.file_name()) {
            (Some(directory), Some(name)) => directory.through_descriptor(name),
            _ => self.path.clone(),
        }
    }
}

/// As many as the kernel follows.
const MOST_INTERPRETERS: usize = 5;

/// Checks every file that the kernel opens for the first line of a script, for that of its interpreter, and so on.
/// Returns whether the program is a script.
fn judge_interpreters(program: &TrustedFile, environment: &Environment) -> Result<bool, RefusedProgram> {
    let Some(mut next) = interpreter(program, environment)? else { return Ok(false) };
    for _ in 0..MOST_INTERPRETERS {
        match interpreter(&TrustedFile::open(&next, environment.trust())?, environment)? {
            Some(path) => next = path,
            None => return Ok(true),
        }
    }
    Err(RefusedProgram::TooManyInterpreters(program.path()))
}

/// The program that the first line of a script runs in the end; `None` if it is not a script. The paths among its
/// other words are checked, too: an interpreter reads them as it likes.
fn interpreter(program: &TrustedFile, environment: &Environment) -> Result<Option<PathBuf>, RefusedProgram> {
    /// As much as the kernel looks at.
    const HEAD: u64 = 256;
    let mut head = Vec::new();
    let read = program.read()?.take(HEAD).read_to_end(&mut head);
    read.map_err(|source| RefusedProgram::Read { path: program.path(), source })?;
    let Some(line) = head.strip_prefix(b"#!").and_then(|rest| rest.split(|byte| *byte == b'\n').next()) else {
        return Ok(None);
    };
    let line = FirstLine::of(line);
    let interpreter = Path::new(line.interpreter);
    if !interpreter.is_absolute() {
        return Err(relative(program, line.interpreter));
    }
    let trust = environment.trust();
    for word in &line.words {
        match path_in(word) {
            Some(path) if path.is_absolute() => crate::linux::fs::judge(path, trust)?,
            Some(_) => return Err(relative(program, word)),
            None => {}
        }
    }
    if interpreter.file_name() != Some(OsStr::new("env")) {
        return Ok(Some(interpreter.to_owned()));
    }
    // Checks env itself, besides the program that it runs.
    drop(TrustedFile::open(interpreter, trust)?);
    let command = line.command_of_env().ok_or_else(|| RefusedProgram::Unclear(program.path()))?;
    let found = if path_in(command).is_some() { Some(command.into()) } else { environment.find_trusted(command) };
    Ok(Some(found.unwrap_or_else(|| interpreter.to_owned())))
}

fn relative(script: &TrustedFile, interpreter: &OsStr) -> RefusedProgram {
    RefusedProgram::RelativeInterpreter { script: script.path(), interpreter: interpreter.into() }
}

/// The first line of a script, without its `#!`.
struct FirstLine<'a> {
    interpreter: &'a OsStr,
    words: Vec<&'a OsStr>,
}

impl<'a> FirstLine<'a> {
    fn of(line: &'a [u8]) -> Self {
        let words = line.split(|byte| matches!(byte, b' ' | b'\t' | b'\r')).filter(|word| !word.is_empty());
        let mut words = words.map(OsStr::from_bytes);
        Self { interpreter: words.next().unwrap_or_default(), words: words.collect() }
    }

    /// The program that env(1) runs; `None` where the line does not name it plainly.
    fn command_of_env(&self) -> Option<&'a OsStr> {
        let is_plain =
            |word: &&OsStr| !word.as_bytes().iter().any(|byte| matches!(byte, b'\\' | b'$' | b'\'' | b'"' | b'#'));
        if !self.words.iter().all(is_plain) {
            return None;
        }
        let is_setting = |word: &&OsStr| word.as_bytes().contains(&b'=') && !word.as_bytes().starts_with(b"PATH=");
        let mut words = self.words.iter().copied();
        let first = words.next()?;
        let split = first.as_bytes().strip_prefix(b"--split-string=").or_else(|| first.as_bytes().strip_prefix(b"-S"));
        let command = match split {
            None if first.as_bytes().starts_with(b"-") => return None,
            None => first,
            Some(b"") => words.find(|word| !is_setting(word))?,
            Some(attached) => Some(OsStr::from_bytes(attached))
                .filter(|word| !is_setting(word))
                .or_else(|| words.find(|word| !is_setting(word)))?,
        };
        let is_clear = !command.as_bytes().starts_with(b"-") && !command.as_bytes().contains(&b'=');
        is_clear.then_some(command)
    }
}

/// The path in a word: all of it, or what an option or an assignment has behind its name.
fn path_in(word: &OsStr) -> Option<&Path> {
    let bytes = word.as_bytes();
    let slash = bytes.iter().position(|byte| *byte == b'/')?;
    let before = bytes.get(..slash)?;
    let start = match before.iter().rposition(|byte| *byte == b'=') {
        Some(sign) => sign + 1,
        None if before.starts_with(b"-") => slash,
        None => 0,
    };
    Some(Path::new(OsStr::from_bytes(bytes.get(start..)?)))
}

/// The directories of `PATH` that were found trusted; clones share them.
///
/// A directory that only root can change stays trusted until root changes it, so that it is judged once; every other is
/// judged for each program.
#[derive(Clone, Default)]
pub(super) struct TrustedEntries(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    entries: BTreeSet<PathBuf>,
    /// A `PATH` of which every entry is one of them.
    whole: Option<OsString>,
}

impl TrustedEntries {
    /// A `PATH` without the directories in which others than the trusted could place programs: shells and `/usr/bin/env`
    /// look there.
    pub(super) fn path<'p>(&self, path: &'p OsStr, trust: Trust) -> Cow<'p, OsStr> {
        if trust == Trust::Everyone || self.lock().whole.as_deref() == Some(path) {
            return path.into();
        }
        let kept = std::env::split_paths(path).filter(|entry| entry.is_absolute()).filter(|entry| self.holds(entry));
        // A path that was split at colons contains none.
        let kept = std::env::join_paths(kept).unwrap_or_default();
        if kept == path {
            self.lock().whole = Some(kept.clone());
        }
        kept.into()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // Nothing panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn holds(&self, entry: &Path) -> bool {
        let mut known = self.lock();
        if known.entries.contains(entry) {
            return true;
        }
        match TrustedDirectory::open(entry, Trust::Root) {
            Ok(_) => known.entries.insert(entry.to_owned()),
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

    fn environment() -> Environment {
        Environment::of([("PATH".into(), "/usr/bin:/bin".into())], &[]).trusting(Trust::Root)
    }

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
                    let judged = Executable::open(path.to_owned(), &environment()).ok()?;
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

    /// Runs attempts with exchanges at any moment. Returns how many of them ran the wrong one.
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
        Executable::open(path.to_owned(), &environment()).err().map(|refused| refused.to_string())
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

    /// The program that env(1) runs is checked, whatever other words the line has.
    #[test]
    fn indirect_interpreters_are_judged_too() {
        if !is_root("indirect_interpreters_are_judged_too") {
            return;
        }
        let (home, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (at, eve) = (home.path(), theirs.path().display().to_string());
        script(theirs.path(), "sh", "#!/bin/sh\n");
        chown(theirs.path(), Some(EVE), None).unwrap();
        for fine in
            ["/usr/bin/env sh", "/usr/bin/env -S sh -e", "/usr/bin/env -S A=b /bin/sh", "/bin/sh -e", "/bin/sh\t-e\r"]
        {
            assert_eq!(refused(&script(at, "fine", &format!("#!{fine}\n"))), None, "{fine}");
        }
        for theirs in [
            "/usr/bin/env -S EVE/sh",
            "/usr/bin/env -SEVE/sh",
            "/usr/bin/env -S A=b EVE/sh",
            "/bin/sh EVE/sh",
            "/bin/sh --rcfile=EVE/gone",
            "/usr/bin/env EVE/sh",
            "/usr/bin/env --split-string=EVE/sh -e",
        ] {
            let why =
                refused(&script(at, "theirs", &format!("#!{}\n", theirs.replace("EVE", &eve)))).unwrap_or_default();
            assert!(why.contains("is owned by user 12345"), "{theirs}: {why}");
        }
        for unclear in [
            "/usr/bin/env -S PATH=/x sh",
            "/usr/bin/env -S \"sh\"",
            "/usr/bin/env -i sh",
            "/usr/bin/env",
            "/usr/bin/env -S -i sh",
        ] {
            let why = refused(&script(at, "unclear", &format!("#!{unclear}\n"))).unwrap_or_default();
            assert!(why.contains("does not name its interpreter plainly"), "{unclear}: {why}");
        }
        let why = refused(&script(at, "relative", "#!/bin/sh ../x\n")).unwrap_or_default();
        assert!(why.contains("the interpreter '../x'"), "{why}");
    }

    /// An access list shows in the bits of the group, which are its mask.
    #[test]
    fn whoever_could_exchange_a_program_is_named() {
        if !is_root("whoever_could_exchange_a_program_is_named") {
            return;
        }
        let home = tempfile::tempdir().unwrap();
        let inner = home.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let program = script(&inner, "program", "#!/bin/sh\n");
        assert_eq!(refused(&program), None);
        chown(&inner, Some(EVE), None).unwrap();
        assert!(refused(&program).unwrap_or_default().contains("inner' is owned by user 12345"));
        chown(&inner, Some(0), None).unwrap();
        fs::set_permissions(home.path(), Permissions::from_mode(0o777)).unwrap();
        assert!(refused(&program).unwrap_or_default().contains("can be written by everyone (mode 0777)"));
        fs::set_permissions(home.path(), Permissions::from_mode(0o700)).unwrap();
        let list =
            access_list(&[(1, 7, u32::MAX), (2, 7, EVE), (4, 5, u32::MAX), (16, 7, u32::MAX), (32, 5, u32::MAX)]);
        let set = rustix::fs::setxattr(&inner, "system.posix_acl_access", &list, rustix::fs::XattrFlags::empty());
        if set.is_err() {
            return stead_testkit::skip("whoever_could_exchange_a_program_is_named", "there are no access lists here");
        }
        assert!(refused(&program).unwrap_or_default().contains("can be written by its group or an access list"));
    }

    /// In the form of the kernel: kinds of entries, rights and numbers.
    fn access_list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
        let mut bytes = 2_u32.to_le_bytes().to_vec();
        for (kind, rights, id) in entries {
            bytes.extend([&kind.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat());
        }
        bytes
    }

    #[test]
    fn a_path_keeps_what_only_root_can_write() {
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), Permissions::from_mode(0o777)).unwrap();
        let path =
            std::env::join_paths([Path::new("/usr/bin"), home.path(), Path::new("."), Path::new("/gone")]).unwrap();
        assert_eq!(TrustedEntries::default().path(&path, Trust::Everyone), path);
        if fs::metadata("/usr/bin").unwrap().uid() == 0 {
            assert_eq!(TrustedEntries::default().path(&path, Trust::Root), OsStr::new("/usr/bin"));
        }
    }
}
