//! Who could have written a repository. Its settings name programs, which git runs as the user who calls it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use stead_core::call::{Failure, Presumed};
use stead_host::fs::{OpenError, SystemPath, Trust, TrustedDirectory, TrustedFile, User};

use super::program::Git;
use crate::input::refused;

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
        for settings in ["config", "config.worktree"] {
            judge_settings(git, &repository.join(settings), MAX_INCLUDES)?;
        }
        judge_alternates(&repository.join("objects"))?;
    }
    Ok(())
}

/// Checks the paths in settings: the files that they include, under whatever condition, and all other paths that they
/// name, which may be those of programs.
fn judge_settings(git: &Git<'_>, file: &Path, includes: usize) -> Result<(), Presumed> {
    match TrustedFile::open(file, Trust::Root) {
        Ok(_) => {}
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(distrusted(error)),
    }
    // Git reads its own syntax, and runs nothing for it.
    let shown = file.display().to_string();
    let listed = git.outside(&["config", "--file", &shown, "--no-includes", "--null", "--list"]).map_err(failed)?;
    if listed.code != 0 {
        return Err(failed(listed.failure("git")));
    }
    for (key, value) in listed.output.split('\0').filter_map(|setting| setting.split_once('\n')) {
        let is_include = key == "include.path" || key.starts_with("includeif.") && key.strip_suffix(".path").is_some();
        if is_include && includes > 0 {
            let other = at_home(value).unwrap_or_else(|| file.with_file_name(value));
            judge_settings(git, &other, includes - 1)?;
        } else if !["url", "pushurl", "insteadof", "pushinsteadof"].iter().any(|address| key.ends_with(address)) {
            for path in paths_in(value) {
                stead_host::fs::judge(&path, Trust::Root).map_err(distrusted)?;
            }
        }
    }
    Ok(())
}

/// The absolute paths among the words of a value, which may be a command.
fn paths_in(value: &str) -> impl Iterator<Item = PathBuf> {
    let words = value.split(|letter: char| letter.is_whitespace() || "'\"=;|&()<>`:".contains(letter));
    words.filter_map(|word| at_home(word).or_else(|| word.starts_with('/').then(|| word.into())))
}

fn at_home(path: &str) -> Option<PathBuf> {
    let below = path.strip_prefix("~/")?;
    Some(Path::new(&std::env::var_os("HOME")?).join(below))
}

/// Judges the directories that objects are taken from besides.
fn judge_alternates(objects: &SystemPath) -> Result<(), Presumed> {
    let listed = stead_host::fs::read(&objects.join("info/alternates"), MAX_ALTERNATES);
    let Ok(Some(listed)) = listed else { return Ok(()) };
    for line in String::from_utf8_lossy(&listed.bytes).lines().filter(|line| !line.starts_with('#')) {
        stead_host::fs::judge(&Path::new(objects.as_os_str()).join(line), Trust::Root).map_err(distrusted)?;
    }
    Ok(())
}

fn failed(failure: Failure) -> Presumed {
    Presumed { failure, paths: Vec::new() }
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
            (format!("'{}' cannot be examined: {}", path.display(), stead_host::fs::reason(source)), Vec::new())
        }
    };
    let hint = "Add 'user' to run git as the owner, or let only root write the repository and every directory above it";
    let message = format!("{problem}, and git would run programs as root that a repository names. {hint}");
    Presumed { failure: refused("path", message), paths }
}
