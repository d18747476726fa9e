//! Who could have written a repository. Its settings name programs, which git runs as the user who calls it.

use std::ffi::OsStr;
use std::path::Path;

use stead_core::call::Presumed;
use stead_host::fs::{OpenError, Trust, TrustedDirectory, User};

use super::user::AsUser;
use crate::input::refused;

/// How deep a repository is looked into: references have the depth of their names.
const MAX_DEPTH: usize = 16;

/// Refuses to call git for a working tree, where it is root who would, and somebody else can write to the repository or
/// exchange a part of its path.
///
/// Where an instance states another user, git runs as this one, and what belongs to it is its own affair.
///
/// Guarantees: what was accepted stays so until root changes it. Of objects only the directories are looked at: what they
/// hold was made by who can write to those. Where there is no repository yet, its path is judged as far as there is one.
pub(super) fn check(tree: &Path, user: Option<&AsUser<'_>>) -> Result<(), Presumed> {
    if let Some(user) = user {
        user.check(tree)?;
    }
    if user.is_some_and(|user| !user.is_caller()) {
        return Ok(());
    }
    let trust = User::current().trust();
    if trust == Trust::Everyone {
        return Ok(());
    }
    match TrustedDirectory::open(&tree.join(".git"), trust).and_then(|git| judge(&git, MAX_DEPTH)) {
        Err(error) if !error.is_not_found() => Err(distrusted(error)),
        _ => Ok(()),
    }
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
