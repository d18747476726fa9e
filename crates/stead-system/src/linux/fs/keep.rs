//! Keeping what is about to be changed.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, fstat, openat};

use super::attributes::Attributes;
use super::durability::Writes;
use super::handle::{How, path_by_handle, real_path};
use super::image::{Image, ImageNode, Keeper};
use super::listing::entries;
use super::place::Place;
use super::status::Status;
use super::tree::open_below;
use crate::error::FsError;
use crate::kind::FileKind;

impl Writes {
    /// Keeps what is at a name in the directory of a place, which is about to be changed.
    pub(super) fn keep(&self, place: &Place, name: &OsStr) -> Result<(), FsError> {
        self.kept(place.path(), |keeper| {
            let path = place.real_directory()?.join(name);
            let (image, content) = Image::read(&place.directory(), name, keeper.room())?;
            keeper.keep(&path, &image, &content)
        })
    }

    /// Keeps the mode, the owner and the attributes of what is open, which are about to be changed.
    pub(super) fn keep_open(&self, opened: &impl AsFd, shown: &Path) -> Result<(), FsError> {
        self.kept(shown, |keeper| {
            let path = real_path(opened)?;
            let status = Status::from(fstat(opened)?);
            let node = if status.kind == FileKind::Directory { ImageNode::Directory } else { ImageNode::SameContent };
            // What was opened for a look only does not tell its attributes; opened again it does, where that is allowed.
            let again = openat(CWD, path_by_handle(opened), How::Read.flags(), Mode::empty());
            let attributes = again.ok().map(|fd| Attributes::of(&File::from(fd))).transpose()?.unwrap_or_default();
            keeper.keep(&path, &Image::of(&status, node, attributes), &[])?;
            keeper.changed(&path);
            Ok(())
        })
    }

    /// Keeps a directory that is about to be removed, with all that is in it.
    pub(super) fn keep_tree(&self, place: &Place) -> Result<(), FsError> {
        self.kept(place.path(), |keeper| {
            let top = open_below(&place.directory(), place.name(), place.path()).map_err(io::Error::other)?;
            let Some(top) = top else { return Ok(()) };
            let path = real_path(&top)?;
            keep_entries(keeper, &top, &path, 0)?;
            keeper.changed(&path);
            Ok(())
        })
    }

    /// Keeps that nothing is where a directory with all that is in it is about to be moved to.
    pub(super) fn keep_moved(&self, place: &Place, name: &OsStr) -> Result<(), FsError> {
        self.kept(place.path(), |keeper| {
            let Ok(Some(top)) = open_below(&place.directory(), place.name(), place.path()) else { return Ok(()) };
            let target = place.real_directory()?.join(name);
            keep_absent(keeper, &top, &target)
        })
    }

    /// Says that what is at a place is changed by now.
    pub(super) fn kept_is_changed(&self, place: &Place) {
        if let Some(keeper) = &self.keeper
            && let Ok(path) = place.real_directory()
        {
            keeper.changed(&path.join(place.name()));
        }
    }

    /// Has something kept, if anything is.
    fn kept(&self, shown: &Path, keep: impl FnOnce(&dyn Keeper) -> io::Result<()>) -> Result<(), FsError> {
        let Some(keeper) = &self.keeper else { return Ok(()) };
        let kept = keep(&**keeper).or_else(|error| keeper.cannot(error));
        kept.map_err(|source| FsError::System { doing: "keep what is at", path: shown.to_owned(), source })
    }
}

/// Keeps what is in a directory.
fn keep_entries(keeper: &dyn Keeper, directory: &OwnedFd, path: &Path, depth: usize) -> io::Result<()> {
    /// Each takes a descriptor and room on the stack.
    const DEEPEST: usize = 200;
    for (name, kind) in entries(directory, path).map_err(io::Error::other)? {
        let below = path.join(&name);
        let (image, content) = Image::read(directory, &name, keeper.room())?;
        keeper.keep(&below, &image, &content)?;
        if kind == FileKind::Directory
            && let Some(inner) = open_below(directory, &name, &below).map_err(io::Error::other)?
        {
            if depth == DEEPEST {
                return Err(io::Error::other("it has too many directories in each other"));
            }
            keep_entries(keeper, &inner, &below, depth + 1)?;
        }
        keeper.changed(&below);
    }
    Ok(())
}

/// Keeps that nothing is where each entry of a directory will be.
fn keep_absent(keeper: &dyn Keeper, directory: &OwnedFd, target: &Path) -> io::Result<()> {
    for (name, kind) in entries(directory, target).map_err(io::Error::other)? {
        let below = target.join(&name);
        keeper.keep(&below, &Image::default(), &[])?;
        keeper.changed(&below);
        if kind == FileKind::Directory
            && let Some(inner) = open_below(directory, &name, &below).map_err(io::Error::other)?
        {
            keep_absent(keeper, &inner, &below)?;
        }
    }
    Ok(())
}
