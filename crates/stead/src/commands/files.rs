//! Files that commands write.

use std::fs::File;
use std::path::{Path, PathBuf};

use stead_core::text::Limits;
use stead_engine::error_chain;
use stead_system::fs::{
    self, FileKind, Former, FsError, How, Ownership, Place, Replacement, Status, SystemPath, Writes,
};

use crate::exit::Exit;
use crate::input;
use crate::terminal::{complain, plain};

/// Writes a file, at once and whole. No link that another user made leads it elsewhere, and anything but a
/// file, such as a device or a link, stays.
pub(super) fn write(file: &Path, content: &[u8], mode: u32, writes: &Writes) -> Result<(), FsError> {
    let place = place(file, writes)?;
    if let Some(Status { kind: found, .. }) = place.status()?.filter(|status| status.kind != FileKind::File) {
        return Err(FsError::WrongKind { path: file.to_owned(), found, wanted: FileKind::File });
    }
    let new = Replacement::begin(&place, Former::Any)?;
    new.write(content)?;
    new.finish(mode, Ownership::default())?;
    Ok(())
}

/// Returns whether a file may be written that begins with `begin`: what is there is empty or begins so as well, or is not a
/// file, which [`write`] refuses.
pub(super) fn may_become(file: &Path, begin: &str) -> bool {
    let is_empty = || file.metadata().is_ok_and(|metadata| metadata.len() == 0);
    !file.is_file() || input::begins_with(file, begin) || is_empty()
}

/// A file about a run, which is written once that has ended.
pub(crate) struct RunFile {
    path: PathBuf,
    /// What messages call it.
    what: &'static str,
}

impl RunFile {
    /// Refuses what could not be written in the end, before anything is done: of a file that is there, one that begins otherwise.
    pub(crate) fn begin(path: &Path, what: &'static str, begin: &str) -> Result<Self, Exit> {
        let path = std::path::absolute(path).map_err(|error| not_written(what, &fs::reason(&error)))?;
        if !may_become(&path, begin) {
            complain(&format!("error: {what} cannot be written: '{}' exists and holds something else", path.display()));
            complain("help: choose another file name, or remove the file first");
            return Err(Exit::Unusable);
        }
        place(&path, &Writes::default()).map_err(|error| {
            not_written(what, &error_chain(&error));
            Exit::Unusable
        })?;
        Ok(Self { path, what })
    }

    /// Replaces the file at once: whoever reads it sees what is about one run.
    pub(super) fn write(&self, content: &str, mode: u32) -> Result<(), Exit> {
        self.replace(content, mode).map_err(|error| not_written(self.what, &error_chain(&error)))
    }

    /// Does the same, and reports nothing.
    pub(super) fn replace(&self, content: &str, mode: u32) -> Result<(), FsError> {
        write(&self.path, content.as_bytes(), mode, &Writes::default())
    }
}

fn not_written(what: &str, reason: &str) -> Exit {
    complain(&format!("error: {what} cannot be written: {}", plain(reason)));
    Exit::Failed
}

/// Writes a file where nothing is, at once and whole. Returns whether: what is there stays.
pub(crate) fn create(file: &Path, content: &[u8], mode: u32) -> Result<bool, FsError> {
    let place = place(file, &Writes::default())?;
    let new = Replacement::begin(&place, Former::Absent)?;
    new.write(content)?;
    Ok(new.finish(mode, Ownership::default())?.is_some())
}

/// Makes a directory where nothing is. Returns whether: what is there stays.
pub(crate) fn create_directory(path: &Path) -> Result<bool, FsError> {
    let place = place(path, &Writes::default())?;
    if place.status()?.is_some() {
        return Ok(false);
    }
    place.make_directory_with(0o755, Ownership::default())?;
    Ok(true)
}

/// Removes files, and the directory in front of them, which were just created. What cannot be removed stays.
pub(super) fn discard(made: &[PathBuf]) {
    for (at, path) in made.iter().enumerate().rev() {
        let Ok(place) = place(path, &Writes::default()) else { continue };
        let _ = if at == 0 { place.remove_directory() } else { place.remove() };
    }
}

/// Replaces the content of a file that users write, and reports what keeps it from that.
pub(super) fn correct(path: &Path, former: &str, new: &str) -> Result<(), Exit> {
    rewrite(path, former.as_bytes(), new.as_bytes()).map_err(|error| {
        complain(&format!("error: {}", plain(&error_chain(&error))));
        if matches!(error, FsError::WrongKind { found: FileKind::Symlink, .. }) {
            complain("help: another user could have placed it; name the path that it leads to");
        }
        Exit::Failed
    })
}

/// Replaces the content of a file, which keeps its mode, its owner and its other attributes. A link to it
/// stays a link. A file that does not have the former content any more stays, which is an error.
fn rewrite(path: &Path, former: &[u8], new: &[u8]) -> Result<(), FsError> {
    let path = &linked(path)?;
    let opened = fs::open(&SystemPath::here(path), How::Read)?;
    let file = File::from(opened.ok_or_else(|| missing(path))?);
    let copy = file.try_clone().map_err(|source| FsError::System { doing: "read", path: path.clone(), source })?;
    // A byte order mark may stand in front of the largest text.
    let content = fs::read_open(copy.into(), path, (Limits::default().bytes + 3) as u64)?;
    let place = place(path, &Writes::default())?;
    let mut replacement = Replacement::begin(&place, Former::Unchanged(&content.status))?;
    replacement.keep_attributes(&file)?;
    replacement.write(new)?;
    let ownership = Ownership { uid: Some(content.status.uid), gid: Some(content.status.gid) };
    let is_former = content.bytes == former && replacement.finish(content.status.mode, ownership)?.is_some();
    if is_former { Ok(()) } else { Err(FsError::KeepsChanging(path.clone())) }
}

/// The file that a path leads to, through links that nobody else can have placed.
fn linked(path: &Path) -> Result<PathBuf, FsError> {
    let failed = |source| FsError::System { doing: "read", path: path.to_owned(), source };
    // Links are followed that stand in front of the last component.
    let below = fs::below_root(Path::new("/"), &std::path::absolute(path).map_err(failed)?.join("_"));
    Ok(below.parent().unwrap_or(&below).to_owned())
}

/// Where a file is, or will be. Its directory must exist.
pub(super) fn place(path: &Path, writes: &Writes) -> Result<Place, FsError> {
    Place::find(&SystemPath::here(path), writes)?.ok_or_else(|| missing(path))
}

/// That there is nothing to write to.
fn missing(path: &Path) -> FsError {
    FsError::System { doing: "write", path: path.to_owned(), source: fs::not_found() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_created_is_discarded_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let made = ["new", "new/a", "new/b"].map(|name| folder.path().join(name));
        assert!(create_directory(&made[0]).unwrap());
        assert!(!create_directory(&made[0]).unwrap());
        assert!(create(&made[1], b"a", 0o644).unwrap() && create(&made[2], b"b", 0o644).unwrap());
        assert!(!create(&made[1], b"c", 0o644).unwrap());
        discard(&made[..2]);
        assert!(!made[1].exists() && made[2].exists());
        discard(&made);
        assert!(!made[0].exists());
    }

    #[test]
    fn a_file_that_somebody_else_changed_is_not_rewritten() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        std::fs::write(&file, "theirs").unwrap();
        let refused = rewrite(&file, b"former", b"new");
        assert!(matches!(refused, Err(FsError::KeepsChanging(_))), "{refused:?}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "theirs");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        rewrite(&file, b"theirs", b"new").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
    }
}
