//! Paths of a system below a directory, as paths of the running one.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use rustix::fs::lstat;

use super::status::Status;
use super::trust::distrust;
use crate::kind::FileKind;

/// As many as the kernel follows.
pub(super) const MAX_LINKS: usize = 40;

/// Where a path of the system below `root` is: links in front of its last component lead to what is below the root, as they
/// would in that system. A link that is not trusted stays in the path, and so is refused by whoever opens it.
pub fn below_root(root: &Path, path: &Path) -> PathBuf {
    let mut rest: Vec<OsString> = Vec::new();
    push_names(&mut rest, path);
    let (mut below, mut links) = (PathBuf::new(), 0);
    while let Some(name) = rest.pop() {
        if name == ".." {
            below.pop();
            continue;
        }
        let followed =
            if rest.is_empty() || links == MAX_LINKS { None } else { trusted_link(&root.join(&below), &name) };
        match followed {
            Some(target) => {
                links += 1;
                if target.is_absolute() {
                    below.clear();
                }
                push_names(&mut rest, &target);
            }
            None => below.push(name),
        }
    }
    root.join(below)
}

/// Puts the names of a path on a stack, the first one on top.
fn push_names(rest: &mut Vec<OsString>, path: &Path) {
    let names = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    rest.extend(names.rev().map(|part| part.as_os_str().to_owned()));
}

/// Returns the target of a link that nobody else can have placed.
fn trusted_link(directory: &Path, name: &OsStr) -> Option<PathBuf> {
    let path = directory.join(name);
    let link = Status::from(lstat(&path).ok()?);
    if link.kind != FileKind::Symlink || distrust(&Status::from(lstat(directory).ok()?), &link).is_some() {
        return None;
    }
    std::fs::read_link(path).ok()
}
