//! Putting back what was at a name, and comparing it with what is there now.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use rustix::fs::{Mode, fstat, openat};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use stead_core::digest::hex;

use super::digest::add_content;
use super::durability::Writes;
use super::handle::{Handle, How, path_by_handle};
use super::image::{Image, ImageNode, Mark};
use super::listing::entries;
use super::path::SystemPath;
use super::place::Place;
use super::replace::{Former, Replacement};
use super::status::Status;
use super::walk::open_file_at;
use crate::error::FsError;
use crate::kind::FileKind;

/// For paths without links, as a [`Keeper`] gets them: what lies behind a link that is in the way by now is not there.
impl SystemPath {
    /// Its place; `None` where its directory is not there, or something else is by now.
    fn place(&self, writes: &Writes) -> Result<Option<Place>, FsError> {
        let is_within_directory = || self.parent()?.status().map(|status| status.kind == FileKind::Directory);
        let place = match Place::find(self, writes) {
            Err(_) if is_within_directory() != Some(true) => return Ok(None),
            found => found?,
        };
        let Some(place) = place else { return Ok(None) };
        let failed = |source| FsError::System { doing: "find", path: self.to_path_buf(), source };
        let is_here = self.parent_path() == Some(place.real_directory().map_err(failed)?);
        Ok(is_here.then_some(place))
    }

    /// What is there now, for comparisons; `None` where it cannot be read.
    pub fn mark(&self) -> Option<Mark> {
        // Nearly always it is a file, which is found by one call.
        let file = open_file_at(self).and_then(|(file, status)| mark_of_file(&file, &status));
        file.or_else(|| self.mark_within_directory())
    }

    /// [`Self::mark`], of whatever is there.
    fn mark_within_directory(&self) -> Option<Mark> {
        let Some(place) = self.place(&Writes::unrecorded()).ok()? else { return Some(Mark::ABSENT) };
        let Some(status) = place.status().ok()? else { return Some(Mark::ABSENT) };
        match status.kind {
            FileKind::Directory | FileKind::Special => Some(Mark::of(&status, None)),
            FileKind::Symlink => Some(Mark::of(&status, Some(hex(&Sha256::digest(place.read_link().ok()?))))),
            FileKind::File => mark_of_file(&place.open(How::Read).ok()??, &status),
        }
    }

    /// The names in the directory that is there; none where there is no directory.
    pub fn names(&self) -> Result<Vec<PathBuf>, FsError> {
        let Some(place) = self.place(&Writes::unrecorded())? else { return Ok(Vec::new()) };
        if place.status()?.is_none_or(|status| status.kind != FileKind::Directory) {
            return Ok(Vec::new());
        }
        let Some(directory) = place.open(How::Directory)? else { return Ok(Vec::new()) };
        Ok(entries(&directory, self)?.into_keys().map(PathBuf::from).collect())
    }

    /// What is there now, with the content of a file of at most `max` bytes.
    pub fn image(&self, max: u64) -> Result<(Image, Vec<u8>), FsError> {
        let Some(place) = self.place(&Writes::unrecorded())? else { return Ok(Default::default()) };
        Image::read(&place.directory(), place.name(), max).map_err(|errno| place.failed("examine", errno))
    }

    /// Puts back what was there. What is in a directory is not touched, and one that is not empty is not removed.
    ///
    /// # Errors
    /// When the directory that it was in is missing, or the system refuses it; or for what cannot be kept.
    pub fn put_back(&self, image: &Image, content: &[u8], writes: &Writes) -> Result<(), FsError> {
        let missing = || FsError::system("put back", self, Errno::NOENT);
        let Some(place) = self.place(writes)? else {
            return if image.node == ImageNode::Absent { Ok(()) } else { Err(missing()) };
        };
        let present = place.status()?;
        let is_directory = present.is_some_and(|status| status.kind == FileKind::Directory);
        match &image.node {
            ImageNode::Lost(_) => Err(FsError::system("put back", self, Errno::INVAL)),
            ImageNode::Absent if is_directory => place.remove_directory().map(drop),
            ImageNode::Absent => place.remove().map(drop),
            ImageNode::SameContent => reowned(&place, image, writes),
            ImageNode::Directory if is_directory => reowned(&place, image, writes),
            ImageNode::Directory => {
                place.remove()?;
                let made = place.make_directory_with(image.mode, image.ownership())?;
                apply(image, &File::from(made), &place)
            }
            ImageNode::File | ImageNode::Link(_) => {
                if is_directory {
                    place.remove_directory()?;
                }
                put(&place, image, content)
            }
        }
    }
}

fn mark_of_file(file: &Handle, status: &Status) -> Option<Mark> {
    let mut digest = Sha256::new();
    add_content(&mut digest, file).ok()?;
    Some(Mark::of(status, Some(hex(&digest.finalize()))))
}

fn put(place: &Place, image: &Image, content: &[u8]) -> Result<(), FsError> {
    if let ImageNode::Link(target) = &image.node {
        return place.replace_by_link(OsStr::from_bytes(target), image.ownership());
    }
    let mut replacement = Replacement::begin(place, Former::Any)?;
    replacement.write(content)?;
    replacement.give_attributes(image.attributes.clone());
    replacement.finish(image.mode, image.ownership()).map(drop)
}

/// Gives what is there the mode, the owner and the attributes of an image.
fn reowned(place: &Place, image: &Image, writes: &Writes) -> Result<(), FsError> {
    let Some(opened) = place.open(How::Look)? else { return Err(place.failed("put back", Errno::NOENT)) };
    let status = fstat(&opened).map(Status::from).map_err(|errno| place.failed("examine", errno))?;
    writes.change(&opened, place.path(), image.ownership().beyond(&status), Some(image.mode))?;
    match openat(rustix::fs::CWD, path_by_handle(&opened), How::Read.flags(), Mode::empty()) {
        Ok(readable) => apply(image, &File::from(readable), place),
        Err(_) => Ok(()),
    }
}

fn apply(image: &Image, file: &File, place: &Place) -> Result<(), FsError> {
    let path: PathBuf = place.path().to_owned();
    image.attributes.apply(file).map_err(|source| FsError::System { doing: "put back the attributes of", path, source })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::linux::fs::SystemRoot;

    #[test]
    fn a_mark_is_the_same_whichever_way_it_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        std::fs::create_dir(top.join("directory")).unwrap();
        for name in ["file", "directory/file"] {
            std::fs::write(top.join(name), name).unwrap();
        }
        symlink("file", top.join("link")).unwrap();
        symlink("directory", top.join("way")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, top.join("fifo"), rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        let root = SystemRoot::below(&top);
        for name in ["file", "directory", "directory/file", "link", "fifo", "absent", "absent/file"] {
            let (here, below) = (SystemPath::here(top.join(name)), root.at(name));
            assert!(here.mark().is_some() && here.mark() == here.mark_within_directory(), "{name}");
            assert_eq!(below.mark(), here.mark(), "{name}");
            assert_eq!(open_file_at(&here).is_some(), name.ends_with("file") && top.join(name).exists(), "{name}");
        }
        // What lies behind a link is not what is there.
        assert_eq!(SystemPath::here(top.join("way/file")).mark(), Some(Mark::ABSENT));
        assert_eq!(SystemPath::here(top.join("way/../file")).mark(), Some(Mark::ABSENT));
    }
}
