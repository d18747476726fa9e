//! The home of a user: made of the skeleton, and removed.

use std::fs::File;
use std::io::Read as _;
use std::path::{Component, Path};

use stead_core::call::{Failure, Presumed};
use stead_core::destruction::{Item, ItemKind};
use stead_host::provider::Context;
use stead_system::fs::{self, FileKind, Former, Handle, How, Ownership, Place, Replacement, SystemPath, Writes};

use super::{HOME, Properties, UID};
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
    let refuse = |why: &str| Err(blocked(Properties::REMOVE_HOME, format!("'{text}' {why}. Remove it by itself")));
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
    if status.kind != FileKind::Directory || Some(status.uid) != uid {
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
                let owner = Ownership { uid: Some(*uid), gid: Some(*gid) };
                let ownership = if cx.gives_files_away() { owner } else { Ownership::default() };
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
    let is_directory = found.is_some_and(|status| status.kind == FileKind::Directory);
    if let Some(from) = is_directory.then(|| fs::open(skeleton, How::Directory)).transpose()?.flatten() {
        copy(cx, &from, skeleton, &directory, unfinished.path(), ownership)?;
    }
    cx.writes.change(&directory, place.path(), ownership, Some(mode))?;
    Ok(unfinished.rename_if_free(place.name())?)
}

/// Copies files, directories and links. Everything in the copy belongs to the user.
fn copy(
    cx: &Context,
    from: &Handle,
    shown: &Path,
    to: &Handle,
    path: &Path,
    ownership: Ownership,
) -> Result<(), Failure> {
    for (name, kind) in fs::entries(from, shown)? {
        let (shown, path) = (shown.join(&name), path.join(&name));
        let place = Place::within(to, &name, path.clone(), &cx.writes)?;
        let original = Place::within(from, &name, shown.clone(), &Writes::unrecorded())?;
        let open = |how| original.open(how)?.ok_or_else(|| cannot("open", &shown, fs::not_found()));
        match kind {
            FileKind::File => {
                let mut file = File::from(open(How::Read)?);
                let mode = fs::status_of(&file, &shown)?.mode;
                let mut content = Vec::new();
                file.read_to_end(&mut content).map_err(|error| cannot("read", &shown, error))?;
                let replacement = Replacement::begin(&place, Former::Absent)?;
                replacement.write(&content)?;
                replacement.finish(mode & 0o777, ownership)?;
            }
            FileKind::Directory => {
                let below = open(How::Directory)?;
                let mode = fs::status_of(&below, &shown)?.mode;
                let new = place.make_directory()?;
                copy(cx, &below, &shown, &new, &path, ownership)?;
                cx.writes.change(&new, &path, ownership, Some(mode & 0o777))?;
            }
            FileKind::Symlink => {
                place.replace_by_link(fs::os_text(&original.read_link()?), ownership)?;
            }
            FileKind::Special => {}
        }
    }
    Ok(())
}
