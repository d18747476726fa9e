//! What a repository on the disk says of itself, read from its files: no program of the repository's runs.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, fstat};
use stead_core::call::Failure;
use stead_host::fs::{self, Kind, Status};

use crate::input::{cannot, refused};

/// The greatest file of a repository that is read: a million packed references.
const MAX_FILE: u64 = 64 << 20;

/// References of this name say which commit a revision stood for when it was checked out.
pub(super) const CHECKED_OUT: &str = "refs/stead";

/// A repository with a working tree.
pub(super) struct Repository {
    git: PathBuf,
    /// The commit that is checked out; `None` before the first.
    pub(super) head: Option<String>,
    /// Whether it is checked out as such, and not as the tip of a branch.
    pub(super) is_detached: bool,
    packed: String,
}

impl Repository {
    /// The repository whose working tree is at a path; `None` where there is none.
    pub(super) fn at(path: &Path) -> Result<Option<Self>, Failure> {
        let git = path.join(".git");
        let opened = match fs::open(&git, OFlags::PATH) {
            Err(fs::FsError::System { source, .. }) if source.kind() == std::io::ErrorKind::NotADirectory => None,
            opened => opened?,
        };
        let Some(directory) = opened else { return Ok(None) };
        let status = fstat(&directory).map(Status::from).map_err(|errno| cannot("examine", &git, errno))?;
        if status.kind != Kind::Directory {
            let found = status.kind.word();
            return Err(refused("path", format!("'{}' is a {found}, not a repository of its own", git.display())));
        }
        // Its settings name programs, which git would run.
        if status.uid != rustix::process::geteuid().as_raw() && status.uid != 0 {
            return Err(refused("path", format!("'{}' belongs to another user", git.display())));
        }
        let packed = read(&git.join("packed-refs"))?.unwrap_or_default();
        let mut repository = Self { git, head: None, is_detached: false, packed };
        let head = read(&repository.git.join("HEAD"))?.unwrap_or_default();
        let head = head.trim();
        (repository.is_detached, repository.head) = match head.strip_prefix("ref: ") {
            Some(branch) => (false, repository.reference(branch)?),
            None => (true, is_commit(head).then(|| head.to_owned())),
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

    /// Whether the commit that is checked out is kept by anything else: a branch, or what was checked out before.
    pub(super) fn keeps_head(&self) -> Result<bool, Failure> {
        let Some(head) = self.head.as_deref().filter(|_| self.is_detached) else { return Ok(true) };
        let in_packed = self.packed.lines().any(|line| line.trim_start_matches('^').starts_with(head));
        Ok(in_packed || any_reference(&self.git.join("refs"), head, MAX_DEPTH)?)
    }

    /// Where it was cloned from.
    pub(super) fn origin(&self) -> Result<Option<String>, Failure> {
        let config = read(&self.git.join("config"))?.unwrap_or_default();
        let mut lines = config.lines().map(str::trim).skip_while(|line| *line != "[remote \"origin\"]").skip(1);
        let url = lines.by_ref().take_while(|line| !line.starts_with('[')).find_map(|line| {
            let (name, value) = line.split_once('=')?;
            (name.trim() == "url").then(|| value.trim().trim_matches('"').to_owned())
        });
        Ok(url)
    }
}

/// How deep references are looked for.
const MAX_DEPTH: usize = 16;

fn any_reference(directory: &Path, commit: &str, depth: usize) -> Result<bool, Failure> {
    let Some(opened) = fs::open(directory, OFlags::RDONLY | OFlags::DIRECTORY)? else { return Ok(false) };
    for (name, kind) in fs::entries(&opened, directory)? {
        let path = directory.join(name);
        let found = match kind {
            Kind::File => read(&path)?.is_some_and(|object| object.trim() == commit),
            Kind::Directory if depth > 0 => any_reference(&path, commit, depth - 1)?,
            _ => false,
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a text is the whole number of a commit.
pub(super) fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|digit| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit))
}

fn read(path: &Path) -> Result<Option<String>, Failure> {
    let opened = match fs::open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY) {
        Err(fs::FsError::System { source, .. }) if source.kind() == std::io::ErrorKind::NotADirectory => None,
        opened => opened?,
    };
    let Some(opened) = opened else { return Ok(None) };
    let file = File::from(opened);
    let status = fstat(&file).map(Status::from).map_err(|errno| cannot("examine", path, errno))?;
    if status.kind != Kind::File {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE).read_to_end(&mut bytes).map_err(|error| cannot("read", path, error))?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}
