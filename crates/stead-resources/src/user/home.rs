//! The home of a user: made of the skeleton, and removed.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{Mode, OFlags, RenameFlags, fchmod, openat, renameat_with};
use rustix::io::Errno;
use stead_core::call::{Failure, Presumed};
use stead_core::destruction::{Item, ItemKind};
use stead_host::provider::Context;
use stead_system::fs::{self, Former, Kind, Ownership, Place, Replacement, SystemPath};

use super::{HOME, UID};
use crate::accounts::{Record, Table};
use crate::input::{blocked, cannot};
use crate::{pending, removal};

/// A home that is to be made or removed.
pub(super) enum HomeStep {
    Make { home: SystemPath, skeleton: SystemPath, mode: u32, uid: u32, gid: u32 },
    Remove { home: SystemPath },
}

/// Where a new home is made until it is complete.
const UNFINISHED: &str = ".stead-home-";

/// What making a home would create, and the directory that is missing for it; `None` where there is something already,
/// which is left as it is.
pub(super) fn made(
    cx: &Context,
    text: &str,
    skeleton: &SystemPath,
) -> Result<Option<(Item, Option<Presumed>)>, Failure> {
    let home = cx.resolve(text);
    let place = Place::find(&home, &cx.writes)?;
    let presumed = place.is_none().then(|| pending::without_directory(&home));
    if place.map(|place| place.status()).transpose()?.flatten().is_some() {
        return Ok(None);
    }
    let of_skeleton =
        Place::find(skeleton, &cx.writes)?.map(|place| removal::item(&place, text.to_owned(), &cx.patience()));
    let item = of_skeleton.transpose()?.flatten();
    let item = item.filter(|item| matches!(item.kind, ItemKind::Directory(_)));
    let item = item.unwrap_or_else(|| Item { path: text.to_owned(), kind: removal::empty_directory() });
    Ok(Some((item, presumed)))
}

/// What removing the home of a user would destroy; `None` where there is none. Only a directory is removed that belongs to the
/// user and is not above the home of another one.
pub(super) fn removed(cx: &Context, users: &Table, user: &Record) -> Result<Option<(SystemPath, Item)>, Failure> {
    let (text, uid) = (user.get(HOME).into_owned(), user.number(UID));
    let refuse = |why: &str| Err(blocked("removeHome", format!("'{text}' {why}. Remove it by itself")));
    if text.is_empty() {
        return Ok(None);
    }
    let path = Path::new(&text);
    if !path.is_absolute() || path.file_name().is_none() || path.components().any(|part| part == Component::ParentDir) {
        return refuse("is not the path of a home");
    }
    let others = users.records().filter(|other| other.name() != user.name());
    if let Some(other) = others.into_iter().find(|other| Path::new(&*other.get(HOME)).starts_with(path)) {
        return refuse(&format!("is or holds the home of the user '{}'", other.name()));
    }
    let home = cx.resolve(path);
    let Some(place) = Place::find(&home, &cx.writes)? else { return Ok(None) };
    let Some(status) = place.status()? else { return Ok(None) };
    if status.kind != Kind::Directory || Some(status.uid) != uid {
        return refuse("is not a directory that belongs to that user");
    }
    Ok(removal::item(&place, text, &cx.patience())?.map(|item| (home, item)))
}

impl HomeStep {
    pub(super) fn take(&self, cx: &Context) -> Result<(), Failure> {
        match self {
            Self::Remove { home } => {
                if let Some(place) = Place::find(home, &cx.writes)? {
                    fs::remove_tree(&place, &cx.patience())?;
                }
                Ok(())
            }
            Self::Make { home, skeleton, mode, uid, gid } => {
                let Some(place) = Place::find(home, &cx.writes)? else { return Err(pending::no_directory(home)) };
                if place.status()?.is_some() {
                    return Ok(());
                }
                let ownership = Ownership { uid: Some(*uid), gid: Some(*gid) };
                make(cx, &place, skeleton, *mode, ownership)
            }
        }
    }
}

/// Makes a home under another name, and gives it its own when it is complete.
fn make(cx: &Context, place: &Place, skeleton: &SystemPath, mode: u32, ownership: Ownership) -> Result<(), Failure> {
    let name = format!("{UNFINISHED}{}", place.name().to_string_lossy());
    let unfinished = place.sibling(name.as_ref())?;
    fs::remove_tree(&unfinished, &cx.patience())?;
    let directory = unfinished.make_directory()?;
    let found = Place::find(skeleton, &cx.writes)?.map(|place| place.status()).transpose()?.flatten();
    let is_directory = found.is_some_and(|status| status.kind == Kind::Directory);
    if let Some(from) =
        is_directory.then(|| fs::open(skeleton, OFlags::RDONLY | OFlags::DIRECTORY)).transpose()?.flatten()
    {
        copy(cx, &from, skeleton, &directory, unfinished.path(), ownership)?;
    }
    finish(&directory, place.path(), mode, ownership)?;
    let renamed =
        renameat_with(place.directory(), unfinished.name(), place.directory(), place.name(), RenameFlags::NOREPLACE);
    renamed.map_err(|errno| cannot("create", place.path(), errno))?;
    Ok(cx.writes.changed(&directory, place.path())?)
}

fn finish(directory: &OwnedFd, path: &Path, mode: u32, ownership: Ownership) -> Result<(), Failure> {
    ownership.apply(directory.as_fd()).map_err(|errno| cannot("change the owner of", path, errno))?;
    fchmod(directory, Mode::from_raw_mode(mode)).map_err(|errno| cannot("change the mode of", path, errno))
}

/// Copies files, directories and links. Everything in the copy belongs to the user.
fn copy(
    cx: &Context,
    from: &OwnedFd,
    shown: &Path,
    to: &OwnedFd,
    path: &Path,
    ownership: Ownership,
) -> Result<(), Failure> {
    for (name, kind) in fs::entries(from, shown)? {
        let (shown, path) = (shown.join(&name), path.join(&name));
        let place = Place::within(to, &name, path.clone(), &cx.writes)?;
        let open = |flags: OFlags| {
            openat(from, name.as_os_str(), flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
                .map_err(|errno: Errno| cannot("open", &shown, errno))
        };
        match kind {
            Kind::File => {
                let mut file = File::from(open(OFlags::RDONLY | OFlags::NONBLOCK)?);
                let mode = rustix::fs::fstat(&file).map_err(|errno| cannot("examine", &shown, errno))?.st_mode;
                let mut content = Vec::new();
                file.read_to_end(&mut content).map_err(|error| cannot("read", &shown, error))?;
                let replacement = Replacement::begin(&place, Former::Absent)?;
                replacement.write(&content)?;
                replacement.finish(mode & 0o777, ownership)?;
            }
            Kind::Directory => {
                let below = open(OFlags::RDONLY | OFlags::DIRECTORY)?;
                let mode = rustix::fs::fstat(&below).map_err(|errno| cannot("examine", &shown, errno))?.st_mode;
                let new = place.make_directory()?;
                copy(cx, &below, &shown, &new, &path, ownership)?;
                finish(&new, &path, mode & 0o777, ownership)?;
            }
            Kind::Symlink => {
                let target = rustix::fs::readlinkat(from, name.as_os_str(), Vec::new());
                let target = target.map_err(|errno| cannot("read", &shown, errno))?.into_bytes();
                let target: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(target.as_slice());
                place.replace_by_link(target, ownership)?;
            }
            Kind::Special => {}
        }
    }
    Ok(())
}
