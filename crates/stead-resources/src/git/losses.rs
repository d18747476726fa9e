//! What a set would discard: changes of tracked files, files that git does not track, and commits that nothing else has.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use stead_core::call::Failure;
use stead_core::destruction::{Item, ItemKind};
use stead_host::provider::Context;
use stead_system::fs::{FileKind, Place, SystemPath};

use super::Properties;
use super::program::Git;
use crate::input::blocked;
use crate::removal;

/// What would be discarded, as far as that is known.
#[derive(Default)]
pub(super) struct Losses {
    /// Tracked files that differ from the commit that is checked out.
    pub(super) modified: Vec<String>,
    /// What is where the new commit has files, and is not tracked.
    pub(super) untracked: Vec<String>,
    /// The commit that is checked out, where no branch leads to it.
    pub(super) commit: Option<String>,
    /// For a removal: a commit that no other repository is known to have.
    pub(super) unpushed: Option<String>,
    /// Whether there are submodules, which are not looked into.
    pub(super) submodules: bool,
}

impl Losses {
    /// Refuses to discard anything.
    pub(super) fn refuse(&self) -> Result<(), Failure> {
        let (problem, hint) = if !self.modified.is_empty() {
            let problem = format!("{} was changed in the working tree", some_of(&self.modified));
            (problem, "Commit the changes, or add 'force: true' to discard them")
        } else if !self.untracked.is_empty() {
            let problem = format!("{} is not tracked, and would be overwritten", some_of(&self.untracked));
            (problem, "Move it away, or add 'force: true' to discard it")
        } else if let Some(commit) = &self.commit {
            let problem = format!("the commit that is checked out ({commit:.12}) is on no branch");
            (problem, "Give it a branch, or add 'force: true' to discard it")
        } else if let Some(commit) = &self.unpushed {
            (format!("the commit {commit:.12} was not pushed"), "Push it, or add 'force: true' to discard it")
        } else if self.submodules {
            let problem = "there are submodules, and whether they have changes is not examined";
            (problem.to_owned(), "Add 'force: true' to discard them")
        } else {
            return Ok(());
        };
        Err(blocked(Properties::PATH, format!("{problem}. {hint}")))
    }

    /// What is done to it, in words.
    pub(super) fn what_if(&self) -> Vec<String> {
        let modified = (!self.modified.is_empty()).then(|| format!("discard changes of {}", some_of(&self.modified)));
        let untracked =
            (!self.untracked.is_empty()).then(|| format!("overwrite {}, not tracked", some_of(&self.untracked)));
        let commit =
            self.commit.as_ref().map(|commit| format!("discard the commit {commit:.12}, which is on no branch"));
        [modified, untracked, commit].into_iter().flatten().collect()
    }

    /// The files of a working tree, which the instance states like that, whose content is discarded.
    pub(super) fn items(&self, cx: &Context, tree: &SystemPath, stated: &str) -> Result<Vec<Item>, Failure> {
        let patience = cx.patience();
        let names: BTreeSet<&String> = self.modified.iter().chain(&self.untracked).collect();
        let item = |name: &String| {
            let Some(place) = Place::find(&tree.join(name), &cx.writes)? else { return Ok(None) };
            let item = removal::item(&place, removal::shown(stated, Path::new(name)), &patience)?;
            Ok(item.map(|item| match item.kind {
                ItemKind::File { size } => Item { kind: ItemKind::Content { size, sha256: None }, ..item },
                _ => item,
            }))
        };
        names.into_iter().filter_map(|name| item(name).transpose()).collect()
    }
}

/// The first of some files, and how many others there are.
fn some_of(names: &[String]) -> String {
    let more = names.len().saturating_sub(1);
    let others = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("'{}'{others}", names.first().map_or("", String::as_str))
}

/// What is in a working tree where a commit has files, and git does not track.
pub(super) fn in_the_way(git: &Git<'_>, commit: &str) -> Result<Vec<String>, Failure> {
    let (mut found, mut files, mut directories) = (BTreeSet::new(), Vec::new(), Vec::new());
    for name in git.missing_of(commit)? {
        match first_in_the_way(git.path, Path::new(&name)) {
            None => {}
            Some((at, Obstacle::Directory)) => directories.push(at),
            Some((at, Obstacle::Above)) => files.push(at),
            Some((at, Obstacle::Itself)) => _ = found.insert(at),
        }
    }
    // A tracked file makes way for a directory of the commit, and a directory with nothing else in it for a file.
    if !files.is_empty() {
        let tracked = git.files("--cached", &files)?;
        found.extend(files.into_iter().filter(|file| !tracked.contains(file)));
    }
    if !directories.is_empty() {
        found.extend(git.files("--others", &directories)?);
    }
    Ok(found.into_iter().collect())
}

/// What is where a file of the commit is to be.
enum Obstacle {
    /// It is a directory.
    Directory,
    /// One of its directories is not a directory.
    Above,
    /// Something that is not a directory.
    Itself,
}

fn first_in_the_way(tree: &SystemPath, name: &Path) -> Option<(String, Obstacle)> {
    let mut at = PathBuf::new();
    for part in name {
        at.push(part);
        let found = tree.join(&at).status()?.kind;
        let shown = || at.to_string_lossy().into_owned();
        match (found == FileKind::Directory, at == name) {
            (true, false) => {}
            (true, true) => return Some((shown(), Obstacle::Directory)),
            (false, false) => return Some((shown(), Obstacle::Above)),
            (false, true) => return Some((shown(), Obstacle::Itself)),
        }
    }
    None
}
