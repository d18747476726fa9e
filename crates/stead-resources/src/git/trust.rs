//! Who could have written a repository. Its settings name programs, which git runs as the user who calls it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use stead_core::call::{Failure, Presumed};
use stead_system::fs::{OpenError, SystemPath, Trust, TrustedDirectory, TrustedFile, User, os_text};

use super::Properties;
use super::program::Git;
use crate::input::blocked;

/// How deep a repository is looked into: references have the depth of their names.
const MAX_DEPTH: usize = 16;

/// As many levels of included settings as git follows.
const MAX_INCLUDES: usize = 10;

/// Far more than a list of directories.
const MAX_ALTERNATES: u64 = 1 << 20;

/// Refuses to call git for a working tree, where it is root who would, and somebody else can write to the repository or
/// exchange a part of its path.
///
/// Where an instance states another user, git runs as this one, and what belongs to it is its own affair.
///
/// Guarantees: what was accepted stays so until root changes it. Of objects only the directories are looked at: what they
/// hold was made by who can write to those. What its settings include, and what paths they and the list of alternates name, is
/// judged as well. Where there is no repository yet, its path is judged as far as there is one.
pub(super) fn check(git: &Git<'_>) -> Result<(), Presumed> {
    let source = git.remote.and_then(|remote| remote.directory.as_ref());
    let own = git.path.join(".git");
    let all = source.into_iter().flat_map(|bare| [bare.clone(), bare.join(".git")]).chain([own.clone()]);
    for repository in all.filter(|repository| repository.join("HEAD").status().is_some()) {
        for part in ["", "info", "objects", "objects/info", "objects/pack", "refs", "hooks"] {
            repository.join(part).check_for_program().map_err(|error| failed(error.into()))?;
        }
    }
    if let Some(user) = git.user {
        user.check(git.path)?;
    }
    if git.user.is_some_and(|user| !user.is_caller()) || User::current().trust() == Trust::Everyone {
        return Ok(());
    }
    match TrustedDirectory::open(&own, Trust::Root).and_then(|git| judge(&git, MAX_DEPTH)) {
        Err(error) if !error.is_not_found() => return Err(distrusted(error)),
        _ => {}
    }
    let source = source.into_iter();
    // Git itself refuses a repository of another user.
    let is_roots = |repository: &SystemPath| repository.followed().is_some_and(|status| status.uid == 0);
    let source = source.flat_map(|bare| [bare.clone(), bare.join(".git")]).filter(is_roots);
    for repository in source.chain([own]) {
        let judgement = Judgement::of(git, &repository);
        for settings in ["config", "config.worktree"] {
            judgement.settings(&repository.join(settings), MAX_INCLUDES)?;
        }
        judge_alternates(&repository.join("objects"))?;
    }
    Ok(())
}

/// Checks the paths that the settings of a repository name.
struct Judgement<'g> {
    git: &'g Git<'g>,
    /// The directories that git, or a program of its, is in when it meets a relative path.
    bases: Vec<PathBuf>,
    home: Option<PathBuf>,
}

impl<'g> Judgement<'g> {
    fn of(git: &'g Git<'g>, repository: &Path) -> Self {
        // Without a working tree git stays where it is started.
        let bases = [repository.parent(), Some(repository), Some(Path::new("/"))];
        Self { git, bases: bases.into_iter().flatten().map(Path::to_owned).collect(), home: git.home() }
    }

    /// Checks the paths in settings: the files that they include, under whatever condition, and all other paths that they
    /// name, which may be those of programs.
    fn settings(&self, file: &Path, includes: usize) -> Result<(), Presumed> {
        match TrustedFile::open(file, Trust::Root) {
            Ok(_) => {}
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(distrusted(error)),
        }
        // Git reads its own syntax, and runs nothing for it.
        let shown = file.display().to_string();
        let arguments = ["config", "--file", &shown, "--no-includes", "--null", "--list"];
        let listed = self.git.outside(&arguments).map_err(failed)?;
        if listed.code != 0 {
            return Err(failed(listed.failure("git")));
        }
        for (key, value) in listed.output.split('\0').filter_map(|setting| setting.split_once('\n')) {
            let is_include =
                key == "include.path" || key.starts_with("includeif.") && key.strip_suffix(".path").is_some();
            if is_address(key) {
                continue;
            }
            if let Some(problem) = unclear(value, is_include) {
                return Err(refusal(&format!("'{key}' in '{shown}' has {problem}"), Vec::new()));
            }
            if !is_include {
                words(value).iter().try_for_each(|word| self.word(word))?;
            } else if includes > 0 {
                let other = self.at_home(value).unwrap_or_else(|| file.with_file_name(value));
                self.settings(&other, includes - 1)?;
            }
        }
        Ok(())
    }

    /// Checks what a word leads to, if it is a path; most are not.
    fn word(&self, word: &str) -> Result<(), Presumed> {
        let at_home = self.at_home(word);
        let paths = at_home.map_or_else(|| self.bases.iter().map(|base| base.join(word)).collect(), |path| vec![path]);
        paths.iter().try_for_each(|path| match stead_system::fs::judge(path, Trust::Root) {
            Err(OpenError::System { source, .. }) if source.kind() == ErrorKind::InvalidFilename => Ok(()),
            judged => judged.map_err(distrusted),
        })
    }

    fn at_home(&self, path: &str) -> Option<PathBuf> {
        let below = path.strip_prefix("~/")?;
        Some(self.home.as_ref()?.join(below))
    }
}

/// Returns whether a setting has an address. Git checks the owner of one on this machine itself, and runs no program of it.
fn is_address(key: &str) -> bool {
    let ends = |ends: &[&str]| ends.iter().any(|end| key.ends_with(end));
    (key.starts_with("remote.") || key.starts_with("submodule.")) && ends(&[".url", ".pushurl"])
        || key.starts_with("url.") && ends(&[".insteadof", ".pushinsteadof"])
}

/// Returns the part of a value that keeps its paths from being known, as the end of a sentence; `None` if they are known.
fn unclear(value: &str, is_path: bool) -> Option<&'static str> {
    let hint = "a path that only the shell completes. Write the whole path, or move the command to a script";
    let quoted = |at: usize| {
        value.bytes().take(at).collect::<Vec<_>>().iter().rev().take_while(|b| **b == b'\\').count() % 2 == 1
    };
    let completes = |letter: char| letter.is_ascii_alphanumeric() || "_{(@*".contains(letter);
    let is_variable =
        |at: usize| !quoted(at) && value.get(at + 1..).and_then(|rest| rest.chars().next()).is_some_and(completes);
    let mut variables = value.match_indices('$').map(|(at, _)| at);
    if !is_path && value.contains('/') && (value.contains('`') || variables.any(is_variable)) {
        return Some(hint);
    }
    if value.contains("%(prefix)/") || words(value).iter().any(|word| word.starts_with('~') && !word.starts_with("~/"))
    {
        return Some("a path that is relative to a user or to git. Write the whole path");
    }
    value.contains(char::REPLACEMENT_CHARACTER).then_some("a value that is not UTF-8")
}

/// The words of a value that may be paths, where it is a path, and where it is a command: as the shell would see them, and
/// as a shell that gets one of them would.
fn words(value: &str) -> BTreeSet<String> {
    let is_quote = |letter: char| "'\"".contains(letter);
    let is_end = |letter: char| letter.is_whitespace() || "=;|&()<>`:".contains(letter);
    let plain: String = value.chars().filter(|letter| !is_quote(*letter) && *letter != '\\').collect();
    let ends = |letter: char| is_quote(letter) || is_end(letter);
    let all = value.split(is_quote).chain(value.split(ends)).chain(plain.split(is_end)).chain([plain.as_str()]);
    // A single name is that of a program on PATH.
    let is_command = value.trim().contains(char::is_whitespace);
    let may_be_path = |word: &&str| word.contains('/') || is_command && !word.contains(char::is_whitespace);
    all.filter(|word| !word.is_empty()).filter(may_be_path).map(str::to_owned).collect()
}

/// Judges the directories that objects are taken from besides, and those that these take objects from.
fn judge_alternates(objects: &Path) -> Result<(), Presumed> {
    let mut seen = BTreeSet::new();
    let mut pending = vec![objects.to_owned()];
    while let Some(objects) = pending.pop() {
        for other in alternates(&objects)? {
            match TrustedDirectory::open(&other, Trust::Root).and_then(|found| judge(&found, 0).map(|()| found)) {
                Ok(found) if seen.insert(found.path().to_owned()) => pending.push(found.path().to_owned()),
                Ok(_) => {}
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(distrusted(error)),
            }
        }
    }
    Ok(())
}

/// Returns the directories that `info/alternates` in a directory of objects names. Fails if that file is not trusted, or cannot
/// be read.
fn alternates(objects: &Path) -> Result<Vec<PathBuf>, Presumed> {
    let list = objects.join("info/alternates");
    let file = match TrustedFile::open(&list, Trust::Root).and_then(|file| file.read()) {
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        file => file.map_err(distrusted)?,
    };
    let listed =
        stead_system::fs::read_open(file.into(), &list, MAX_ALTERNATES).map_err(|error| failed(error.into()))?;
    let lines = listed.bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && !line.starts_with(b"#"));
    let path = |line: &[u8]| {
        let quoted = || refusal(&format!("'{}' has a path in quotes. Write it without", list.display()), Vec::new());
        if line.starts_with(b"\"") { Err(quoted()) } else { Ok(objects.join(os_text(line))) }
    };
    lines.map(path).collect()
}

fn failed(failure: Failure) -> Presumed {
    Presumed::of(failure, Vec::new())
}

fn judge(directory: &TrustedDirectory, depth: usize) -> Result<(), OpenError> {
    let failed = |source| OpenError::System { path: directory.path().to_owned(), source };
    for name in directory.names().map_err(failed)? {
        match directory.directory(&name) {
            Ok(below) if depth > 0 && below.path() == directory.path().join(&name) => {
                judge(&below, if name == OsStr::new("objects") { 0 } else { depth - 1 })?;
            }
            // What a link leads to was judged, and so was a file.
            Ok(_) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn distrusted(error: OpenError) -> Presumed {
    let (problem, paths) = match error {
        OpenError::Untrusted(untrusted) => (untrusted.to_string(), vec![untrusted.component]),
        OpenError::System { ref path, ref source } => {
            (format!("'{}' cannot be examined: {}", path.display(), stead_system::fs::reason(source)), Vec::new())
        }
    };
    refusal(&problem, paths)
}

fn refusal(problem: &str, paths: Vec<PathBuf>) -> Presumed {
    let hint = "Add 'user' to run git as the owner, or let only root write the repository and every directory above it";
    let message = format!("{problem}, and git would run programs as root that a repository names. {hint}");
    Presumed::of(blocked(Properties::PATH, message), paths)
}
