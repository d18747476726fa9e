//! What a repository on the disk says of itself, read from its files: no program of the repository's runs.

use stead_core::call::Failure;
use stead_system::fs::{self, FileKind, FsError, How, Status, SystemPath};

use super::Properties;
use crate::input::blocked;

/// The greatest file of a repository that is read: a million packed references.
const MAX_FILE: u64 = 64 << 20;

/// References below this say which commit a revision stood for when it was checked out.
pub(super) const CHECKED_OUT: &str = "refs/stead/revision";

/// The reference of a revision. Each has a directory of its own, since one name may go on where another ends, as `a/b` and
/// `a`; no part of a name is `@`.
pub(super) fn record_of(revision: &str) -> String {
    format!("{CHECKED_OUT}/{revision}/@")
}

/// A repository with a working tree.
pub(super) struct Repository {
    git: SystemPath,
    /// The commit that is checked out; `None` before the first.
    pub(super) head: Option<String>,
    packed: String,
}

impl Repository {
    /// The repository whose working tree is at a path; `None` where there is none. It belongs to root, the user who runs stead,
    /// or the one whom git runs as.
    pub(super) fn at(path: &SystemPath, user: Option<u32>) -> Result<Option<Self>, Failure> {
        let Some(tree) = examine(path)? else { return Ok(None) };
        match tree.kind {
            FileKind::Directory => {}
            FileKind::Symlink => {
                let hint = "Name the path that it leads to";
                return Err(blocked(Properties::PATH, format!("'{}' is a symbolic link. {hint}", path.display())));
            }
            FileKind::File | FileKind::Special => return Ok(None),
        }
        let git = path.join(".git");
        let Some(status) = examine(&git)? else { return Ok(None) };
        if status.kind != FileKind::Directory {
            let found = status.kind.word();
            return Err(blocked(
                Properties::PATH,
                format!("'{}' is a {found}, not a repository of its own", git.display()),
            ));
        }
        // Its settings name programs, which git would run. What else git requires of it is checked before git is called.
        let owners = [Some(stead_system::user::own()), Some(0), user];
        if !owners.contains(&Some(status.uid)) {
            return Err(blocked(Properties::PATH, format!("'{}' belongs to another user", git.display())));
        }
        if examine(&git.join("commondir"))?.is_some() {
            return Err(blocked(Properties::PATH, format!("'{}' is a part of another repository", git.display())));
        }
        let packed = read(&git.join("packed-refs"))?.unwrap_or_default();
        let mut repository = Self { git, head: None, packed };
        let head = read(&repository.git.join("HEAD"))?.unwrap_or_default();
        let head = head.trim();
        repository.head = match head.strip_prefix("ref: ") {
            Some(branch) => repository.reference(branch)?,
            None => is_commit(head).then(|| head.to_owned()),
        };
        Ok(Some(repository))
    }

    /// The object that a reference names.
    pub(super) fn reference(&self, name: &str) -> Result<Option<String>, Failure> {
        let is_below = name.starts_with("refs/") && !name.split('/').any(|part| matches!(part, "" | "." | ".."));
        if !is_below {
            return Ok(None);
        }
        let loose = read(&self.git.join(name))?.map(|text| text.trim().to_owned());
        let packed = || {
            let mut lines = self.packed.lines().filter_map(|line| line.split_once(' '));
            lines.find(|(_, reference)| *reference == name).map(|(object, _)| object.to_owned())
        };
        Ok(loose.or_else(packed).filter(|object| is_commit(object)))
    }

    /// Returns whether it may hold anything: `git init` makes the directory of the objects.
    pub(super) fn has_objects(&self) -> Result<bool, Failure> {
        Ok(examine(&self.git.join("objects"))?.is_some())
    }

    /// Returns whether a set began to check something out, into what was empty, and did not come to its end.
    pub(super) fn is_unfinished(&self) -> Result<bool, Failure> {
        Ok(self.head.is_none() && examine(&self.git.join(CHECKED_OUT))?.is_some())
    }

    /// Returns whether it has submodules, whose repositories are within this one.
    pub(super) fn has_submodules(&self) -> Result<bool, Failure> {
        Ok(examine(&self.git.join("modules"))?.is_some())
    }

    /// Where it was cloned from.
    pub(super) fn origin(&self) -> Result<Option<String>, Failure> {
        let config = read(&self.git.join("config"))?.unwrap_or_default();
        let mut lines = config.lines().map(str::trim).skip_while(|line| *line != "[remote \"origin\"]").skip(1);
        let url = lines.by_ref().take_while(|line| !line.starts_with('[')).find_map(|line| {
            let (name, value) = line.split_once('=')?;
            (name.trim() == "url").then(|| unquoted(value.trim()))
        });
        Ok(url)
    }
}

/// A value of a setting as git writes it: in quotes where needed, with a backslash before quotes and backslashes.
fn unquoted(value: &str) -> String {
    let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
    let mut letters = value.chars();
    std::iter::from_fn(|| letters.next().map(|letter| if letter == '\\' { letters.next() } else { Some(letter) }))
        .flatten()
        .collect()
}

/// Returns whether a text is the whole number of a commit.
pub(super) fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|digit| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit))
}

/// What is at a path, a link itself.
fn examine(path: &SystemPath) -> Result<Option<Status>, Failure> {
    let Some(opened) = present(fs::open(path, How::Look))? else { return Ok(None) };
    Ok(Some(fs::status_of(&opened, path)?))
}

fn read(path: &SystemPath) -> Result<Option<String>, Failure> {
    let content = match present(fs::read(path, MAX_FILE)) {
        Err(FsError::WrongKind { found: FileKind::Directory, .. }) => None,
        content => content?,
    };
    Ok(content.map(|content| String::from_utf8_lossy(&content.bytes).into_owned()))
}

/// Below what is not a directory there is nothing.
fn present<T>(opened: Result<Option<T>, FsError>) -> Result<Option<T>, FsError> {
    match opened {
        Err(FsError::System { source, .. }) if source.kind() == std::io::ErrorKind::NotADirectory => Ok(None),
        opened => opened,
    }
}
