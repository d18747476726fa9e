//! In what-if: what a set would fail for as things are. An instance before it may still change that.

use std::path::Path;

use stead_core::call::{Failure, Presumed};
use stead_system::fs::{self, AsHandle, FsError, Handle, How, Ownership, Place, Status, SystemPath, Writes};
use stead_system::user;

use crate::input::{blocked, cannot, impossible};

/// The failure that something is to be created in a directory that does not exist.
pub(crate) fn no_directory(path: &SystemPath) -> Failure {
    let directory = path.parent_path().unwrap_or(path).display().to_string();
    let is_missing = |above: &SystemPath| matches!(fs::open_directory(above), Ok(None));
    let outermost = path.ancestors().skip(2).take_while(is_missing).last();
    let is_unfinished = ["{{", "${"].iter().any(|begin| directory.contains(begin));
    let hint = if is_unfinished {
        "Its name has a placeholder that is not evaluated: write an expression, such as \"[concat(parameters('folder'), '/x')]\""
    } else {
        "Add a Stead/Directory for it to the document"
    };
    match outermost {
        Some(outermost) if !is_unfinished => {
            let hint =
                "Add a Stead/Directory with 'parents: true' to the document, or the Stead/Package that brings it";
            blocked("path", format!("there is no directory '{directory}', nor '{}'. {hint}", outermost.display()))
        }
        _ => blocked("path", format!("there is no directory '{directory}'. {hint}")),
    }
}

/// That the directory must be created first.
pub(crate) fn without_directory(path: &SystemPath) -> Presumed {
    Presumed::of(no_directory(path), path.parent_path().map(Path::to_owned).into_iter().collect())
}

/// What keeps names in the directory from being given or taken away.
pub(crate) fn not_writable(place: &Place) -> Option<Presumed> {
    let refused = place.check_writable().err().map(Failure::from);
    let failure = refused.or_else(|| protected(place))?;
    Some(Presumed::of(failure, place.path().parent().map(Path::to_owned).into_iter().collect()))
}

/// That a flag of the file system protects what is there, or its directory.
fn protected(place: &Place) -> Option<Failure> {
    let directory = || place.path().parent().filter(|_| fs::is_immutable(&place.directory()));
    let path = if entry_is_immutable(place) { Some(place.path()) } else { directory() };
    path.map(immutable)
}

/// The failure that a flag of the file system protects a path.
fn immutable(path: &Path) -> Failure {
    let hint = "Remove the flag first, with `chattr -ia`";
    impossible("path", format!("'{}' is immutable or can only be appended to. {hint}", path.display()))
}

/// What keeps anything from being put at a path.
pub(crate) fn at(path: &SystemPath) -> Result<Option<Presumed>, Failure> {
    Ok(Place::find(path, &Writes::unrecorded())?
        .map_or_else(|| Some(without_directory(path)), |place| not_writable(&place)))
}

/// Returns what keeps a path from being removed with everything in it; `None` if it can be. Fails if this cannot be examined.
pub(crate) fn not_removable(path: &SystemPath) -> Result<Option<Presumed>, Failure> {
    let Some(place) = Place::find(path, &Writes::unrecorded())? else { return Ok(None) };
    let presumed = |error: FsError| {
        let paths = match &error {
            FsError::MountPoint(mounted) => vec![mounted.clone()],
            _ => Vec::new(),
        };
        Presumed::of(error.into(), paths)
    };
    Ok(not_writable(&place).or_else(|| fs::check_unmounted(&place).err().map(presumed)))
}

/// That what is created there may not be given this owner.
pub(crate) fn not_owner(path: &Path, ownership: Ownership) -> Option<Presumed> {
    ownership.check_allowed(path).err().map(|error| Presumed::of(error.into(), Vec::new()))
}

/// That the owner, or else the mode, of what belongs to somebody else, or is immutable, cannot be changed.
pub(crate) fn not_changeable(
    path: &Path,
    status: &Status,
    fd: &impl AsHandle,
    ownership: Ownership,
) -> Option<Presumed> {
    let foreign = !user::is_root() && status.uid != user::own();
    let doing = if ownership.is_none() { "change the mode of" } else { "change the owner of" };
    let failure = || cannot(doing, path, fs::not_permitted());
    let failure = if fs::is_immutable(fd) { Some(immutable(path)) } else { foreign.then(failure) };
    failure.map(|failure| Presumed::of(failure, Vec::new()))
}

fn entry_is_immutable(place: &Place) -> bool {
    let opened: Option<Handle> = place.open(How::Read).ok().flatten();
    opened.is_some_and(|file| fs::is_immutable(&file))
}
